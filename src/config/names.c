/* names.c - from a name as somebody wrote it to a row of the table, and what a name says about its value. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "config/config.h"

static bool same(const char *known, const char *s, size_t len)
{
    return len > 0 && ((known[0] ^ s[0]) & ~0x20) == 0 && strlen(known) == len &&
           strncasecmp(known, s, len) == 0;
}

static const struct config_option *find_in(const struct config_option *rows, const char *s,
                                           size_t len)
{
    for (; rows->name != NULL; rows++) {
        if (same(rows->name, s, len)) {
            return rows;
        }
    }
    return NULL;
}

static const struct config_option *find_global(const char *s, size_t len)
{
    for (const struct config_section *sec = config_sections; sec->title != NULL; sec++) {
        const struct config_option *o = sec->options != NULL ? find_in(sec->options, s, len) : NULL;
        if (o != NULL) {
            return o;
        }
    }
    return NULL;
}

static const struct config_old_name *find_old(enum config_group group, const char *s, size_t len)
{
    for (const struct config_old_name *o = config_old_names; o->name != NULL; o++) {
        if (o->group == group && same(o->name, s, len)) {
            return o;
        }
    }
    return NULL;
}

/* A row by its name of today or of long ago. */
static bool find(enum config_group group, const char *s, size_t len, struct config_name *out)
{
    const struct config_option *rows = group == CONFIG_GLOBAL ? NULL : config_group_options(group);
    out->group = group;
    out->option = rows != NULL ? find_in(rows, s, len) : find_global(s, len);
    if (out->option != NULL) {
        return true;
    }
    out->old = find_old(group, s, len);
    if (out->old != NULL && out->old->now != NULL) {
        const char *now = out->old->now;
        out->option =
            rows != NULL ? find_in(rows, now, strlen(now)) : find_global(now, strlen(now));
    }
    return out->old != NULL;
}

/* "Server12" before a dot: the group and the number; no leading zeros. */
static bool split_group(const char *s, size_t len, enum config_group *group, unsigned *number)
{
    size_t letters = 0;
    while (letters < len && isalpha((unsigned char)s[letters])) {
        letters++;
    }
    *number = 0;
    for (size_t i = letters; i < len; i++) {
        if (!isdigit((unsigned char)s[i]) || (i == letters && s[i] == '0')) {
            return false;
        }
        *number = *number * 10 + (unsigned)(s[i] - '0');
        if (*number > CONFIG_NUMBER_MAX) {
            return false;
        }
    }
    for (unsigned g = CONFIG_GLOBAL + 1; g<CONFIG_GROUPS && * number> 0; g++) {
        if (same(config_group_name(g), s, letters)) {
            *group = g;
            return true;
        }
    }
    return false;
}

static void near_global(const char *name, char *near)
{
    enum { MAX = 256 };
    const char *known[MAX];
    size_t n = 0;
    for (const struct config_section *s = config_sections; s->title != NULL; s++) {
        for (const struct config_option *o = s->options; o != NULL && o->name != NULL; o++) {
            if (n < MAX - 1) {
                known[n++] = o->name;
            }
        }
    }
    known[n] = NULL;
    const char *found = nearest(name, known);
    snprintf(near, CONFIG_NAME_MAX, "%s", found != NULL ? found : "");
}

/* "Sever1.Hots": the nearest group, then its nearest row. */
static void near_numbered(const char *name, char *near)
{
    const char *groups[CONFIG_GROUPS] = {NULL}, *known[64];
    char prefix[CONFIG_NAME_MAX];
    size_t letters = 0, digits;
    while (isalpha((unsigned char)name[letters])) {
        letters++;
    }
    digits = strspn(name + letters, "0123456789");
    snprintf(prefix, sizeof(prefix), "%.*s", (int)letters, name);
    for (unsigned g = CONFIG_GLOBAL + 1; g < CONFIG_GROUPS; g++) {
        groups[g - 1] = config_group_name(g);
    }
    const char *group = nearest(prefix, groups);
    unsigned g = CONFIG_GLOBAL + 1;
    while (group != NULL && g < CONFIG_GROUPS && strcmp(config_group_name(g), group) != 0) {
        g++;
    }
    near[0] = '\0';
    const char *dot = name + letters + digits;
    if (group == NULL || g == CONFIG_GROUPS || digits > 4 || *dot != '.') {
        return;
    }
    size_t n = 0;
    for (const struct config_option *o = config_group_options(g); o->name != NULL && n < 63; o++) {
        known[n++] = o->name;
    }
    known[n] = NULL;
    const char *found = nearest(dot + 1, known);
    if (found != NULL) {
        const char *number = name + letters;
        int width = (int)digits;
        for (; width > 0 && *number == '0'; width--) {
            number++;
        }
        snprintf(near, CONFIG_NAME_MAX, "%s%.*s.%s", group, width > 0 ? width : 1,
                 width > 0 ? number : "1", found);
    }
}

bool config_resolve(const char *name, size_t len, struct config_name *out, char *near)
{
    *out = (struct config_name){.option = NULL};
    near[0] = '\0';
    if (len == 0 || len >= CONFIG_NAME_MAX) {
        return false;
    }
    memcpy(out->name, name, len);
    out->name[len] = '\0';
    const char *dot = strchr(out->name, '.');
    if (strchr(out->name, ':') != NULL) { /* of an extension: its own business */
        return out->name[0] != ':' && out->name[len - 1] != ':';
    }
    if (dot == NULL) {
        if (!find(CONFIG_GLOBAL, name, len, out)) {
            near_global(out->name, near);
            return false;
        }
        if (out->option != NULL) {
            snprintf(out->name, sizeof(out->name), "%s", out->option->name);
        }
        return true;
    }
    enum config_group group;
    size_t before = (size_t)(dot - out->name);
    if (!split_group(out->name, before, &group, &out->number) ||
        !find(group, name + before + 1, len - before - 1, out)) {
        near_numbered(out->name, near);
        return false;
    }
    if (out->option != NULL) {
        snprintf(out->name, sizeof(out->name), "%s%u.%s", config_group_name(group), out->number,
                 out->option->name);
    }
    return true;
}

static bool contains(const char *text, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcasestr(text, *words) != NULL) {
            return true;
        }
    }
    return false;
}

bool config_is_secret(const struct config_option *o, const char *name)
{
    static const char *const words[] = {"pas", "pwd", "secret", "token", "key", NULL};
    return o != NULL ? o->kind == CONFIG_SECRET : contains(name, words);
}

bool config_is_protected(const char *name)
{
    static const char *const parts[] = {":", "username", "password", ".proxy", NULL};
    static const char *const names[] = {
        "ControlIP",      "ControlPort", "FormAuth",  "SecureControl", "SecurePort",
        "SecureCert",     "SecureKey",   "CertStore", "CertCheck",     "AuthorizedIP",
        "DaemonUsername", "UMask",       NULL,
    };
    for (const char *const *n = names; *n != NULL; n++) {
        if (strcasecmp(*n, name) == 0) {
            return true;
        }
    }
    return contains(name, parts);
}

/* "a, b or c" out of "a b c". */
static void list_words(const char *words, char *out, size_t size)
{
    size_t used = 0;
    for (const char *w = words; *w != '\0' && used < size;) {
        size_t len = strcspn(w, " ");
        const char *rest = w + len + strspn(w + len, " ");
        const char *between = w == words ? "" : *rest == '\0' ? " or " : ", ";
        int n = snprintf(out + used, size - used, "%s%.*s", between, (int)len, w);
        used += n > 0 ? (size_t)n : 0;
        w = rest;
    }
}

void config_allowed(const struct config_option *o, char *out, size_t size)
{
    const char *unit = o->unit != NULL ? o->unit : "";
    switch (o->kind) {
    case CONFIG_YESNO:
        snprintf(out, size, "yes or no");
        break;
    case CONFIG_NUMBER:
        snprintf(out, size, "a number from %jd to %jd%s%s%s", (intmax_t)o->min, (intmax_t)o->max,
                 unit[0] != '\0' ? " (" : "", unit, unit[0] != '\0' ? ")" : "");
        break;
    case CONFIG_OCTAL:
        snprintf(out, size, "an octal number from %jo to %jo", (uintmax_t)o->min,
                 (uintmax_t)o->max);
        break;
    case CONFIG_WORD:
        list_words(o->words, out, size);
        break;
    case CONFIG_PATH:
        snprintf(out, size, "a path");
        break;
    case CONFIG_LIST:
    case CONFIG_PATHS:
        snprintf(out, size, "a list with commas");
        break;
    case CONFIG_TEXT:
    case CONFIG_SECRET:
        snprintf(out, size, o->flags & CONFIG_NOT_EMPTY ? "a text that is not empty" : "any text");
        break;
    }
}

void config_variable(const char *prefix, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s%s", prefix, name);
    for (char *p = out; *p != '\0'; p++) {
        *p = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
    }
}
