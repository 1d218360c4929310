/* value.c - one value: is it allowed, what is its proper spelling, and into the field with it. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "config/private.h"

static const struct {
    const char *word;
    bool value;
} yesno[] = {
    {"yes", true},    {"no", false},      {"true", true},    {"false", false},
    {"1", true},      {"0", false},       {"on", true},      {"off", false},
    {"enable", true}, {"disable", false}, {"enabled", true}, {"disabled", false},
};

static const char *allowed(struct arena *a, const struct config_option *o)
{
    char text[512];
    config_allowed(o, text, sizeof(text));
    return arena_printf(a, "wants %s", text);
}

bool value_number(const char *text, int base, int64_t *out)
{
    bool minus = *text == '-';
    const char *p = minus ? text + 1 : text;
    int64_t v = 0;
    if (*p == '\0') {
        return false;
    }
    for (; *p != '\0'; p++) {
        if (*p < '0' || *p >= '0' + base || __builtin_mul_overflow(v, base, &v) ||
            __builtin_add_overflow(v, *p - '0', &v)) {
            return false;
        }
    }
    *out = minus ? -v : v;
    return true;
}

/* The index of a word in "a b c", or -1. */
static int find_word(const char *words, const char *text, size_t len)
{
    int i = 0;
    for (const char *w = words; *w != '\0'; i++) {
        size_t n = strcspn(w, " ");
        if (n == len && strncasecmp(w, text, n) == 0) {
            return i;
        }
        w += n + strspn(w + n, " ");
    }
    return -1;
}

/* The same in "a=b c=d", where it gives the index of b or d in `words`. */
static int find_other(const struct config_option *o, const char *text)
{
    for (const char *w = o->also != NULL ? o->also : ""; *w != '\0';) {
        size_t n = strcspn(w, "="), m = strcspn(w, " ");
        if (n == strlen(text) && strncasecmp(w, text, n) == 0) {
            return find_word(o->words, w + n + 1, m - n - 1);
        }
        w += m + strspn(w + m, " ");
    }
    return -1;
}

static const char *store_word(struct arena *a, const struct config_option *o, const char *text,
                              int *field, const char **canonical)
{
    int i = find_word(o->words, text, strlen(text));
    i = i >= 0 ? i : find_other(o, text);
    if (i < 0) {
        return allowed(a, o);
    }
    const char *w = o->words;
    for (int k = 0; k < i; k++) {
        w += strcspn(w, " ");
        w += strspn(w, " ");
    }
    *field = i;
    *canonical = arena_strn(a, w, strcspn(w, " "));
    return NULL;
}

static const char *store_yesno(struct arena *a, const struct config_option *o, const char *text,
                               bool *field, const char **canonical)
{
    for (size_t i = 0; i < sizeof(yesno) / sizeof(yesno[0]); i++) {
        if (strcasecmp(yesno[i].word, text) == 0) {
            *field = yesno[i].value;
            *canonical = *field ? "yes" : "no";
            return NULL;
        }
    }
    return allowed(a, o);
}

static const char *store_number(struct arena *a, const struct config_option *o, const char *text,
                                int64_t *field)
{
    int64_t v;
    if (!value_number(text, o->kind == CONFIG_OCTAL ? 8 : 10, &v) || v < o->min || v > o->max) {
        return allowed(a, o);
    }
    *field = v;
    return NULL;
}

/* Absolute, without slashes at the end or doubled ones. NULL when it cannot be. */
static const char *make_path(struct arena *a, const char *text, size_t len, const char *dir)
{
    bool absolute = len > 0 && text[0] == '/';
    dir = absolute || dir == NULL ? "" : dir;
    if ((!absolute && dir[0] != '/') || len >= VALUE_MAX || strlen(dir) + 1 + len >= VALUE_MAX) {
        return NULL;
    }
    char out[VALUE_MAX];
    size_t n = 0, dir_len = strlen(dir);
    for (size_t i = 0; i < dir_len + 1 + len; i++) {
        char c = i < dir_len ? dir[i] : i == dir_len ? '/' : text[i - dir_len - 1];
        if (c != '/' || n == 0 || out[n - 1] != '/') {
            out[n++] = c;
        }
    }
    n -= n > 1 && out[n - 1] == '/';
    return arena_strn(a, out, n);
}

static const char *store_path(struct arena *a, const char *text, const char *dir,
                              const char **field, const char **canonical)
{
    const char *path = text[0] == '\0' ? "" : make_path(a, text, strlen(text), dir);
    if (path == NULL) {
        return "wants a path that begins with / or ~/ and has less than 4096 bytes";
    }
    *field = *canonical = path;
    return NULL;
}

static const char *part(const char *text, size_t *len)
{
    const char *p = text + strspn(text, " \t,;");
    *len = strcspn(p, ",;");
    while (*len > 0 && strchr(" \t", p[*len - 1]) != NULL) {
        (*len)--;
    }
    return p;
}

static const char *store_list(struct arena *a, const struct config_option *o, const char *text,
                              const char *dir, struct config_list *field)
{
    size_t count = 0, len;
    for (const char *p = part(text, &len); *p != '\0'; p = part(p + len, &len)) {
        count++;
    }
    const char **items = arena_alloc(a, count, sizeof(*items));
    *field = (struct config_list){.items = items, .count = items != NULL ? count : 0};
    const char *p = text;
    len = 0;
    for (size_t i = 0; i < field->count; i++) {
        p = part(p + len, &len);
        items[i] = o->kind == CONFIG_PATHS ? make_path(a, p, len, dir) : arena_strn(a, p, len);
        if (items[i] == NULL) {
            *field = (struct config_list){.count = 0};
            return "wants paths that begin with / or ~/ and have less than 4096 bytes";
        }
    }
    return NULL;
}

const char *value_store(struct arena *a, const struct config_option *o, const char *text,
                        const char *dir, void *base, const char **canonical)
{
    /* What has no field is checked all the same. */
    union {
        bool yes;
        int word;
        int64_t number;
        const char *text;
        struct config_list list;
    } nowhere;
    void *field = o->field != CONFIG_NO_FIELD ? (char *)base + o->field : (void *)&nowhere;
    *canonical = text;
    if (text[0] == '\0' && (o->flags & CONFIG_NOT_EMPTY)) {
        return "may not be empty";
    }
    switch (o->kind) {
    case CONFIG_YESNO:
        return store_yesno(a, o, text, field, canonical);
    case CONFIG_NUMBER:
    case CONFIG_OCTAL:
        return store_number(a, o, text, field);
    case CONFIG_WORD:
        return store_word(a, o, text, field, canonical);
    case CONFIG_TEXT:
    case CONFIG_SECRET:
        *(const char **)field = text;
        return NULL;
    case CONFIG_PATH:
        return store_path(a, text, dir, field, canonical);
    case CONFIG_LIST:
    case CONFIG_PATHS:
        return store_list(a, o, text, dir, field);
    }
    IMPOSSIBLE("a kind that the table does not have");
}

/* "HH:MM", "*:MM" or "*". */
static bool one_time(const char *s, size_t len, struct config_time *t)
{
    char text[8], *colon;
    int64_t hour, minute;
    if (len == 1 && s[0] == '*') {
        *t = (struct config_time){.hour = CONFIG_AT_START};
        return true;
    }
    if (len >= sizeof(text)) {
        return false;
    }
    memcpy(text, s, len);
    text[len] = '\0';
    colon = strchr(text, ':');
    if (colon == NULL || !value_number(colon + 1, 10, &minute) || minute < 0 || minute > 59) {
        return false;
    }
    *colon = '\0';
    t->minute = (int)minute;
    if (strcmp(text, "*") == 0) {
        t->hour = CONFIG_EVERY_HOUR;
        return true;
    }
    if (!value_number(text, 10, &hour) || hour < 0 || hour > 23) {
        return false;
    }
    t->hour = (int)hour;
    return true;
}

bool value_times(struct arena *a, const char *text, struct config_task *t)
{
    size_t count = 0, len;
    for (const char *p = part(text, &len); *p != '\0'; p = part(p + len, &len)) {
        count++;
    }
    struct config_time *times = arena_alloc(a, count, sizeof(*times));
    const char *p = text;
    len = 0;
    for (size_t i = 0; times != NULL && i < count; i++) {
        p = part(p + len, &len);
        if (!one_time(p, len, &times[i])) {
            return false;
        }
    }
    t->times = times;
    t->times_count = times != NULL ? count : 0;
    return count > 0;
}

bool value_weekdays(const char *text, unsigned *bits)
{
    unsigned first = 0;
    bool range = false;
    *bits = 0;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '-' && first > 0 && !range) {
            range = true;
        } else if (*p == ',' && !range) {
            first = 0;
        } else if (*p >= '1' && *p <= '7') {
            unsigned day = (unsigned)(*p - '0');
            if (range && day < first) {
                return false;
            }
            for (unsigned d = range ? first : day; d <= day; d++) {
                *bits |= 1u << (d - 1);
            }
            first = range ? 0 : day;
            range = false;
        } else if (*p != ' ') {
            return false;
        }
    }
    return *bits != 0 && !range;
}
