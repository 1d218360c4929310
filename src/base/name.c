/* name.c - see name.h. The steps: decode each character, replace what is unfit, strip the ends, cut to length in
 * front of the extension, guard the beginning and the reserved words. */
#include "base/name.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

enum { EXT_MAX = 16 }; /* a longer tail behind the last dot is no extension and may be cut */

/* Windows-1252 of 0x80..0x9f; 0: not assigned. The rest of the upper half is Latin-1. */
static const uint16_t cp1252[32] = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178,
};

/* The next character and its length in the input; never fails. */
static size_t next_char(const char *s, size_t n, uint32_t *cp)
{
    size_t len = utf8_decode(s, n, cp);
    if (len > 0) {
        return len;
    }
    unsigned char byte = (unsigned char)s[0];
    *cp = byte < 0xa0 ? cp1252[byte & 0x1f] : byte;
    return 1;
}

static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}

static bool in_range(uint32_t cp, uint32_t first, uint32_t last)
{
    return cp >= first && cp <= last;
}

static bool unfit(uint32_t cp)
{
    if (cp < 0x80) {
        return cp < 0x20 || cp == 0x7f || strchr("/\\<>:\"|?*", (int)cp) != NULL;
    }
    switch (cp) {
    case 0x00ad: /* soft hyphen: not seen */
    case 0x061c: /* direction marks */
    case 0x200b: /* zero width space; the joiners behind it carry meaning and stay */
    case 0x200e:
    case 0x200f:
    case 0x2044: /* what looks like a slash, or a backslash */
    case 0x2215:
    case 0x29f5:
    case 0x29f8:
    case 0x29f9:
    case 0xfe68:
    case 0xff0f:
    case 0xff3c:
    case 0xfeff: /* byte order mark */
        return true;
    default:
        return in_range(cp, 0x80, 0x9f) ||     /* C1 controls */
               in_range(cp, 0x2028, 0x202e) || /* line separators, direction overrides */
               in_range(cp, 0x2060, 0x206f) || /* word joiner, direction isolates */
               in_range(cp, 0xfff9, 0xfffc) || in_range(cp, 0xe0000, 0xe0fff) || /* tags */
               (cp & 0xfffe) == 0xfffe; /* never a character */
    }
}

static size_t put_utf8(char *out, uint32_t cp)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

/* A blank as a person sees one; no-break and ideographic spaces among them. */
static bool is_blank(uint32_t cp)
{
    return cp == ' ' || cp == 0xa0 || cp == 0x1680 || in_range(cp, 0x2000, 0x200a) ||
           cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

/* ".part01", ".vol03+04", ".tar", ".7z": what belongs to the extension behind it. Without it a volume would lose its
 * number, and so its place in the set. */
static bool belongs_to_ext(const char *s, size_t len)
{
    static const char *const words[] = {".tar", ".7z", ".zip", ".rar"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (len == strlen(words[i]) && strncasecmp(s, words[i], len) == 0) {
            return true;
        }
    }
    size_t digits = len > 5 && strncasecmp(s, ".part", 5) == 0  ? 5
                    : len > 4 && strncasecmp(s, ".vol", 4) == 0 ? 4
                                                                : len;
    return digits < len && strspn(s + digits, "0123456789+-") >= len - digits;
}

/* Where the last dotted piece begins; `len` when there is none, or it is too long to be an extension. */
static size_t last_piece(const char *s, size_t len)
{
    for (size_t i = len; i > 1 && len - i < EXT_MAX; i--) {
        if (s[i - 1] == '.') {
            return i - 1;
        }
    }
    return len;
}

/* Where the extension, with its dot, begins; `len` when there is none. */
static size_t ext_start(const char *s, size_t len)
{
    size_t ext = last_piece(s, len);
    size_t before = ext < len ? last_piece(s, ext) : ext;
    return before < ext && belongs_to_ext(s + before, ext - before) ? before : ext;
}

/* The largest cut <= n that does not split a UTF-8 character. */
static size_t cut_at(const char *s, size_t n)
{
    while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80) {
        n--;
    }
    return n;
}

/* Length without the blanks and dots at the end. */
static size_t strip_end(const char *s, size_t len)
{
    while (len > 0) {
        size_t at = cut_at(s, len - 1);
        uint32_t cp = 0;
        utf8_decode(s + at, len - at, &cp);
        if (cp != '.' && !is_blank(cp)) {
            break;
        }
        len = at;
    }
    return len;
}

/* Names that mean a device on Windows, whatever extension follows, and the files that Weir itself keeps. */
static bool is_reserved(const char *s, size_t len)
{
    static const char *const devices[] = {"con", "prn", "aux", "nul", "conin$", "conout$"};
    static const char *const ours[] = {"queue.json", "queue.journal", "weir.db", "weir.lock",
                                       "weir.conf"};
    size_t stem = 0;
    while (stem < len && s[stem] != '.') {
        stem++;
    }
    stem = strip_end(s, stem);
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        if (strlen(devices[i]) == stem && strncasecmp(s, devices[i], stem) == 0) {
            return true;
        }
    }
    if (stem == 4 && (strncasecmp(s, "com", 3) == 0 || strncasecmp(s, "lpt", 3) == 0) &&
        s[3] >= '0' && s[3] <= '9') {
        return true;
    }
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        size_t n = strlen(ours[i]);
        if (len >= n && strncasecmp(s, ours[i], n) == 0) { /* with any tail: "weir.db-wal" */
            return true;
        }
    }
    return false;
}

/* Room for the longest prefix that can matter: beyond it only the extension does. */
enum { WORK_MAX = 4 * NAME_LEN_MAX };

struct work {
    char s[WORK_MAX];
    size_t len;
};

/* Decodes and replaces. Of a very long input the middle is left out; both ends are what the result is made of. */
static void translate(struct work *w, const char *in, size_t len)
{
    enum { HEAD = 2 * NAME_LEN_MAX, TAIL = NAME_LEN_MAX / 2 };
    w->len = 0;
    bool start = true;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t n = next_char(in + i, len - i, &cp);
        i += n;
        if (start && is_blank(cp)) {
            continue;
        }
        start = false;
        if (w->len >= HEAD && len - i > TAIL) { /* skip to the tail, at a character's start */
            i = len - TAIL;
            while (i < len && ((unsigned char)in[i] & 0xc0) == 0x80) {
                i++;
            }
            continue;
        }
        w->len += put_utf8(w->s + w->len, cp == 0 || unfit(cp) ? '_' : cp);
    }
    w->len = strip_end(w->s, w->len);
}

static void cut_to_length(struct work *w)
{
    if (w->len <= NAME_LEN_MAX) {
        return;
    }
    size_t ext = ext_start(w->s, w->len);
    size_t ext_len = w->len - ext;
    size_t stem = cut_at(w->s, NAME_LEN_MAX - ext_len);
    memmove(w->s + stem, w->s + ext, ext_len);
    w->len = strip_end(w->s, stem + ext_len);
}

size_t name_clean(enum name_kind kind, const char *in, size_t len, char *out)
{
    if (kind == NAME_FILE) {
        while (len > 0 && is_separator(in[len - 1])) {
            len--;
        }
        for (size_t i = len; i > 0; i--) {
            if (is_separator(in[i - 1])) {
                in += i;
                len -= i;
                break;
            }
        }
    }
    struct work w;
    translate(&w, in, len);
    cut_to_length(&w); /* first: what is left may be nothing, or a reserved word, only now */
    if (w.len == 0) {
        memcpy(out, "unnamed", sizeof("unnamed"));
        return strlen("unnamed");
    }
    if (strchr(".-~@", w.s[0]) != NULL) {
        w.s[0] = '_';
    } else if (is_reserved(w.s, w.len)) {
        memmove(w.s + 1, w.s, w.len++);
        w.s[0] = '_';
        cut_to_length(&w);
    }
    memcpy(out, w.s, w.len);
    out[w.len] = '\0';
    return w.len;
}

/* "", "." and "..", also with blanks around them, and "C:". */
static bool says_nothing(const char *s, size_t len)
{
    while (len > 0 && *s == ' ') {
        s++;
        len--;
    }
    if (len == 2 && s[1] == ':') {
        return true;
    }
    for (size_t i = 0; i < len; i++) {
        if (s[i] != '.' && s[i] != ' ') {
            return false;
        }
    }
    return true;
}

bool name_clean_path(const char *in, size_t len, char *out, size_t size)
{
    size_t used = 0, parts = 0;
    for (size_t from = 0, to; from <= len; from = to + 1) {
        for (to = from; to < len && !is_separator(in[to]); to++) {
        }
        if (says_nothing(in + from, to - from)) {
            continue;
        }
        char part[NAME_LEN_MAX + 1];
        size_t n = name_clean(NAME_TITLE, in + from, to - from, part);
        if (++parts > NAME_DEPTH_MAX || used + (used > 0) + n >= size) {
            out[0] = '\0';
            return false;
        }
        if (used > 0) {
            out[used++] = '/';
        }
        memcpy(out + used, part, n);
        used += n;
    }
    if (used == 0) {
        used = (size_t)snprintf(out, size, "unnamed");
        return used < size;
    }
    out[used] = '\0';
    return true;
}

void name_numbered(const char *name, unsigned n, char *out)
{
    char suffix[16] = "";
    if (n > 1) {
        snprintf(suffix, sizeof(suffix), " (%u)", n);
    }
    size_t len = strlen(name);
    size_t ext = ext_start(name, len);
    size_t room = NAME_LEN_MAX - strlen(suffix) - (len - ext);
    size_t stem = ext <= room ? ext : cut_at(name, room);
    snprintf(out, NAME_LEN_MAX + 1, "%.*s%s%s", (int)stem, name, suffix, name + ext);
}
