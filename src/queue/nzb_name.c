/* nzb_name.c - what a file is called and what it is, out of what posters and indexers write.
 *
 * Subjects seen in the wild, and what users expect of them:
 *     Some Show [01/27] - "some.show.r00" yEnc (1/50)         the quoted name; the last one when there are several
 *     [PRiVATE]-[#a.b.x]-[show.mkv]-[1/9] - "" yEnc (1/7)     empty quotes: the word with an extension
 *     (01/12) some file name.rar (1/30)                       unquoted, blanks inside, extension at the end
 *     [3/9] - 9f86d081884c7d65 yEnc (1/20)                    obfuscated: what is left without counters
 *     "&quot;a.rar&quot; yEnc (1/3)"                          quotes encoded twice
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/name.h"
#include "queue/nzb.h"

_Static_assert((int)NZB_NAME_MAX == (int)NAME_LEN_MAX, "one component of a path");

struct span {
    const char *at;
    size_t len;
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static struct span trim(struct span s, const char *away)
{
    while (s.len > 0 && strchr(away, s.at[0]) != NULL) {
        s.at++;
        s.len--;
    }
    while (s.len > 0 && strchr(away, s.at[s.len - 1]) != NULL) {
        s.len--;
    }
    return s;
}

/* ".rar", ".7z", ".mkv", ".part01", ".001", ".vol003+04.par2": a dot and 2 to 5 letters or digits at the end, with
 * something in front. One character would make a name of every "v1.2" and every sentence. */
static bool has_extension(struct span s)
{
    size_t n = 0;
    while (n < s.len && isalnum((unsigned char)s.at[s.len - 1 - n])) {
        n++;
    }
    return n >= 2 && n <= 5 && s.len > n + 1 && s.at[s.len - 1 - n] == '.';
}

/* ---- counters: "(1/50)", "[01/27]" ---- */

/* The counter that ends exactly at `end` (one behind its bracket), with `open` and `close`. */
static bool counter_before(const char *start, const char *end, char open, char close,
                           const char **begin, uint64_t *total)
{
    if (end - start < 5 || end[-1] != close) {
        return false;
    }
    const char *p = end - 1;
    while (p > start && isdigit((unsigned char)p[-1])) {
        p--;
    }
    const char *digits = p;
    if (p == end - 1 || end - 1 - p > 9 || p == start || p[-1] != '/') {
        return false;
    }
    p--;
    const char *slash = p;
    while (p > start && isdigit((unsigned char)p[-1])) {
        p--;
    }
    if (p == slash || p == start || p[-1] != open) {
        return false;
    }
    *begin = p - 1;
    *total = strtoull(digits, NULL, 10);
    return true;
}

/* The last "yEnc" that is a word of its own; s.len when there is none. */
static size_t find_yenc(struct span s)
{
    size_t found = s.len;
    for (size_t i = 0; i + 4 <= s.len; i++) {
        bool starts = i == 0 || !is_word(s.at[i - 1]);
        bool ends = i + 4 == s.len || !isalpha((unsigned char)s.at[i + 4]);
        found = starts && ends && strncasecmp(s.at + i, "yenc", 4) == 0 ? i : found;
    }
    return found;
}

/* Cuts what stands behind the name: "yEnc (1/50) 734003200", "(1/50)", "[01/27]". Tells the number of parts: the
 * counter behind "yEnc", wherever it is there, or the one at the end. */
static struct span without_tail(struct span s, uint32_t *parts)
{
    const char *begin;
    uint64_t total = 0, found;
    s = trim(s, " \t");
    size_t yenc = find_yenc(s);
    if (yenc < s.len) {
        for (size_t i = yenc + 4; i <= s.len && total == 0; i++) {
            total = counter_before(s.at + yenc, s.at + i, '(', ')', &begin, &found) ? found : 0;
        }
        s.len = yenc;
    } else if (counter_before(s.at, s.at + s.len, '(', ')', &begin, &total)) {
        s.len = (size_t)(begin - s.at);
    }
    *parts = total <= NZB_ARTICLES_MAX ? (uint32_t)total : 0;
    s = trim(s, " \t-");
    while (counter_before(s.at, s.at + s.len, '[', ']', &begin, &total) ||
           counter_before(s.at, s.at + s.len, '(', ')', &begin, &total)) {
        s.len = (size_t)(begin - s.at);
        s = trim(s, " \t-");
    }
    for (size_t i = 5; i <= s.len; i++) { /* "(01/12) name": one in front */
        if ((counter_before(s.at, s.at + i, '(', ')', &begin, &total) ||
             counter_before(s.at, s.at + i, '[', ']', &begin, &total)) &&
            begin == s.at) {
            return trim((struct span){s.at + i, s.len - i}, " \t-");
        }
    }
    return s;
}

/* ---- candidates ---- */

static bool quote_at(const char *s, size_t left, size_t *len)
{
    *len = s[0] == '"' ? 1 : left >= 6 && strncmp(s, "&quot;", 6) == 0 ? 6 : 0;
    return *len > 0;
}

/* The last quoted text, better: the last with an extension. */
static struct span quoted_name(const char *subject)
{
    struct span best = {NULL, 0};
    size_t n = strlen(subject), q = 0, r = 0;
    for (size_t i = 0; i < n; i++) {
        if (!quote_at(subject + i, n - i, &q)) {
            continue;
        }
        size_t end = i + q;
        while (end < n && !quote_at(subject + end, n - end, &r)) {
            end++;
        }
        if (end == n) {
            break;
        }
        struct span s = trim((struct span){subject + i + q, end - i - q}, " \t");
        if (s.len > 0 && (best.len == 0 || has_extension(s) || !has_extension(best))) {
            best = s;
        }
        i = end + r - 1;
    }
    return best;
}

/* Characters that an unquoted name may have inside. */
static bool in_plain_name(char c)
{
    return is_word(c) || strchr("-+()' .,&!#~=@%^$", c) != NULL;
}

/* The last word with an extension, with the words before it that belong to it. */
static struct span plain_name(struct span s)
{
    for (size_t end = s.len; end > 0; end--) {
        struct span head = {s.at, end};
        if ((end < s.len && is_word(s.at[end])) || !has_extension(head)) {
            continue;
        }
        size_t from = end;
        while (from > 0 && in_plain_name(s.at[from - 1]) &&
               !(from >= 3 && strncmp(s.at + from - 3, " - ", 3) == 0)) {
            from--;
        }
        struct span name = trim((struct span){s.at + from, end - from}, " \t-.,");
        if (name.len > 0 && has_extension(name)) {
            return name;
        }
    }
    return (struct span){NULL, 0};
}

bool nzb_subject_name(const char *subject, char *out, uint32_t *parts)
{
    uint32_t n;
    struct span body = without_tail((struct span){subject, strlen(subject)}, &n);
    if (parts != NULL) {
        *parts = n;
    }
    struct span name = quoted_name(subject);
    if (name.len == 0) {
        name = plain_name(body);
    }
    if (name.len == 0) {
        name = trim(body, " \t-\"[](){}|:");
    }
    out[0] = '\0';
    bool some = false;
    for (size_t i = 0; i < name.len; i++) {
        some = some || is_word(name.at[i]);
    }
    if (some) {
        name_clean(NAME_FILE, name.at, name.len, out);
    }
    return some;
}

/* ---- kinds ---- */

const char *nzb_kind_name(enum nzb_kind kind)
{
    static const char *const names[] = {"data", "par2", "par2-volume", "extra"};
    return names[kind];
}

/* ".vol03+04" (or "-07") at the end of `s`: the blocks, 0 unknown; false: it is not a volume. */
static bool is_volume(const char *s, size_t len, uint32_t *blocks)
{
    size_t i = len, second;
    while (i > 0 && isdigit((unsigned char)s[i - 1])) {
        i--;
    }
    second = i;
    if (second == len || i == 0 || (s[i - 1] != '+' && s[i - 1] != '-' && s[i - 1] != '_')) {
        return false;
    }
    bool counts = s[i - 1] == '+';
    size_t sep = i - 1;
    for (i = sep; i > 0 && isdigit((unsigned char)s[i - 1]);) {
        i--;
    }
    if (i == sep || i < 4 || strncasecmp(s + i - 4, ".vol", 4) != 0) {
        return false;
    }
    unsigned long n = counts && len - second <= 5 ? strtoul(s + second, NULL, 10) : 0;
    *blocks = n <= 65535 ? (uint32_t)n : 0; /* PAR2 has no more */
    return true;
}

enum nzb_kind nzb_name_kind(const char *name, uint32_t *blocks)
{
    static const char *const extra[] = {".nfo", ".sfv", ".nzb",  ".srr", ".srs",
                                        ".md5", ".diz", ".sha1", ".url", ".sha256"};
    size_t len = strlen(name);
    uint32_t count = 0;
    enum nzb_kind kind = NZB_DATA;
    if (len > 5 && strcasecmp(name + len - 5, ".par2") == 0) {
        kind = is_volume(name, len - 5, &count) ? NZB_PAR2_VOLUME : NZB_PAR2_MAIN;
    }
    for (size_t i = 0; i < sizeof(extra) / sizeof(extra[0]); i++) {
        size_t n = strlen(extra[i]);
        if (len > n && strcasecmp(name + len - n, extra[i]) == 0) {
            kind = NZB_EXTRA;
        }
    }
    if (blocks != NULL) {
        *blocks = count;
    }
    return kind;
}

/* ---- the name of the NZB file itself ---- */

static void copy(char *out, const char *s, size_t len)
{
    len = len < NZB_NAME_MAX ? len : NZB_NAME_MAX;
    memcpy(out, s, len);
    out[len] = '\0';
}

static size_t cut_suffix(const char *s, size_t len, const char *suffix)
{
    size_t n = strlen(suffix);
    return len > n && strncasecmp(s + len - n, suffix, n) == 0 ? len - n : len;
}

void nzb_split_filename(const char *filename, char *title, char *password)
{
    const char *slash = strrchr(filename, '/'), *back = strrchr(filename, '\\');
    const char *base = slash != NULL && (back == NULL || slash > back) ? slash + 1
                       : back != NULL                                  ? back + 1
                                                                       : filename;
    size_t len = strlen(base);
    len = cut_suffix(base, len, ".gz");
    len = cut_suffix(base, len, ".nzb");
    password[0] = '\0';
    struct span name = {base, len};
    const char *open = strstr(base, "{{"), *close = open != NULL ? strstr(open + 2, "}}") : NULL;
    const char *word = strcasestr(base, "password=");
    if (close != NULL) {
        /* The last "}}": the password itself may end in '}'. */
        while (close[2] == '}') {
            close++;
        }
        copy(password, open + 2, (size_t)(close - open - 2));
        name.len = (size_t)(open - base);
    } else if (word != NULL && word > base && word < base + len) {
        copy(password, word + 9, (size_t)(base + len - word - 9));
        name.len = (size_t)(word - base);
    }
    name = trim(name, " \t.");
    if (name.len > 0) {
        name_clean(NAME_TITLE, name.at, name.len, title);
    } else {
        copy(title, "", 0);
    }
}
