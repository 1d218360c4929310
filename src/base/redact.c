/* redact.c - see redact.h. One walk over the text; at each place first the words, then the shapes. */
#include "base/redact.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <uv.h>

#include "base/err.h"
#include "base/mem.h"

/* The only process-wide state: secrets are secrets whoever logs them. */
static struct {
    uv_once_t once;
    uv_rwlock_t lock;
    char *words[REDACT_WORDS_MAX];
    size_t lens[REDACT_WORDS_MAX];
    size_t count;
} known = {.once = UV_ONCE_INIT};

static void make_lock(void)
{
    if (uv_rwlock_init(&known.lock) != 0) {
        __builtin_trap(); /* without it nothing could be logged safely */
    }
}

static int add_word(char *word)
{
    if (word == NULL) {
        return UV_ENOMEM;
    }
    size_t len = strlen(word);
    int rv = 0;
    uv_once(&known.once, make_lock);
    uv_rwlock_wrlock(&known.lock);
    for (size_t i = 0; i < known.count; i++) {
        if (known.lens[i] == len && memcmp(known.words[i], word, len) == 0) {
            goto out;
        }
    }
    if (known.count == REDACT_WORDS_MAX) {
        rv = ERR_FULL;
        goto out;
    }
    /* The longest first, so that of two that begin alike the whole is taken out. */
    size_t at = known.count++;
    for (; at > 0 && known.lens[at - 1] < len; at--) {
        known.words[at] = known.words[at - 1];
        known.lens[at] = known.lens[at - 1];
    }
    known.words[at] = word;
    known.lens[at] = len;
    word = NULL;
out:
    uv_rwlock_wrunlock(&known.lock);
    mem_free(word);
    return rv;
}

int redact_add(const char *secret)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t len = strlen(secret);
    if (len < REDACT_WORD_MIN) {
        return 0;
    }
    int rv = add_word(mem_strdup(secret));
    char *encoded = rv == 0 ? mem_alloc(3 * len + 1) : NULL;
    if (encoded == NULL) {
        return rv != 0 ? rv : UV_ENOMEM;
    }
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)secret[i];
        if (isalnum(c) || strchr("-._~", c) != NULL) {
            encoded[n++] = (char)c;
        } else {
            encoded[n++] = '%';
            encoded[n++] = hex[c >> 4];
            encoded[n++] = hex[c & 15];
        }
    }
    encoded[n] = '\0';
    return add_word(encoded);
}

void redact_forget(void)
{
    uv_once(&known.once, make_lock);
    uv_rwlock_wrlock(&known.lock);
    for (size_t i = 0; i < known.count; i++) {
        explicit_bzero(known.words[i], known.lens[i]);
        mem_free(known.words[i]);
    }
    known.count = 0;
    uv_rwlock_wrunlock(&known.lock);
}

/* Length of the known word at s, 0 when there is none. */
static size_t match_word(const char *s, size_t rest, bool cut)
{
    for (size_t i = 0; i < known.count; i++) {
        size_t len = known.lens[i];
        if (len <= rest ? memcmp(s, known.words[i], len) == 0
                        : cut && rest > 0 && memcmp(s, known.words[i], rest) == 0) {
            return len <= rest ? len : rest;
        }
    }
    return 0;
}

static bool begins(const char *s, const char *with)
{
    return strncasecmp(s, with, strlen(with)) == 0;
}

/* A shape: `skip` bytes stay, `len` bytes behind them are secret. */
struct shape {
    size_t skip;
    size_t len;
};

/* Everything up to the end of the line, behind one of these words. */
static bool match_line(const char *s, struct shape *m)
{
    static const char *const heads[] = {"AUTHINFO PASS ",
                                        "Authorization:", "X-Auth-Token:", "X-Api-Key:", "Cookie:"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        if (begins(s, heads[i])) {
            m->skip = strlen(heads[i]);
            m->skip += strspn(s + m->skip, " \t");
            m->len = strcspn(s + m->skip, "\r\n");
            return true;
        }
    }
    return false;
}

/* password=x, "apikey": "x", Server1.Password = x. The key's beginning may be anything; what it ends in counts. */
static bool match_key(const char *s, struct shape *m)
{
    static const char *const keys[] = {"password", "passwd", "passphrase", "pass",
                                       "pwd",      "apikey", "api_key",    "api-key",
                                       "nzbkey",   "token",  "secret"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (!begins(s, keys[i])) {
            continue;
        }
        const char *p = s + strlen(keys[i]);
        p += *p == '"' || *p == '\'';
        p += strspn(p, " \t");
        if (*p != '=' && *p != ':') {
            continue;
        }
        p++;
        p += strspn(p, " \t");
        if (*p == '"' || *p == '\'') {
            char quote = *p++;
            const char *end = p;
            while (*end != '\0' && *end != quote) {
                end += end[0] == '\\' && end[1] != '\0' ? 2 : 1;
            }
            m->len = (size_t)(end - p);
        } else {
            m->len = strcspn(p, "& \t\r\n");
        }
        m->skip = (size_t)(p - s);
        return m->len > 0;
    }
    return false;
}

/* ://user:secret@host and ://secret@host */
static bool match_userinfo(const char *s, struct shape *m)
{
    if (!begins(s, "://")) {
        return false;
    }
    size_t authority = strcspn(s + 3, "/?# \t\r\n\"'<>");
    const char *at = memrchr(s + 3, '@', authority);
    if (at == NULL) {
        return false;
    }
    const char *colon = memchr(s + 3, ':', (size_t)(at - s - 3));
    const char *from = colon != NULL ? colon + 1 : s + 3;
    m->skip = (size_t)(from - s);
    m->len = (size_t)(at - from);
    return m->len > 0;
}

static bool match_braces(const char *s, struct shape *m)
{
    const char *end = begins(s, "{{") ? strstr(s + 2, "}}") : NULL;
    if (end == NULL) {
        return false;
    }
    m->skip = 2;
    m->len = (size_t)(end - s - 2);
    return m->len > 0;
}

/* A known word may begin inside a shape and reach beyond it: a password with a blank in it, say. */
static void take_in_words(const char *s, size_t rest, bool cut, struct shape *m)
{
    for (size_t at = 1; at < m->skip + m->len; at++) {
        size_t word = match_word(s + at, rest - at, cut);
        size_t end = m->skip + m->len;
        if (word > 0) {
            m->skip = at < m->skip ? at : m->skip;
            m->len = (at + word > end ? at + word : end) - m->skip;
        }
    }
}

struct out {
    char *s;
    size_t size;
    size_t len;
};

static void put(struct out *o, const char *s, size_t n)
{
    size_t room = o->size - 1 - o->len;
    n = n < room ? n : room;
    memcpy(o->s + o->len, s, n);
    o->len += n;
}

size_t redact(const char *in, bool cut, char *out, size_t size)
{
    struct out o = {.s = out, .size = size};
    size_t len = strlen(in);
    uv_once(&known.once, make_lock);
    uv_rwlock_rdlock(&known.lock);
    for (size_t i = 0; i < len;) {
        size_t word = match_word(in + i, len - i, cut);
        struct shape m = {0, word};
        if (word > 0 || match_line(in + i, &m) || match_key(in + i, &m) ||
            match_userinfo(in + i, &m) || match_braces(in + i, &m)) {
            take_in_words(in + i, len - i, cut, &m);
            put(&o, in + i, m.skip);
            put(&o, "***", m.len > 0 ? 3 : 0);
            i += m.skip + m.len;
        } else {
            put(&o, in + i, 1);
            i++;
        }
    }
    uv_rwlock_rdunlock(&known.lock);
    out[o.len] = '\0';
    return o.len;
}
