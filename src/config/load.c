/* load.c - makes a configuration: defaults, then the layers of input.c, variables replaced, then fill.c. */
#include <errno.h>
#include <fnmatch.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/redact.h"
#include "config/private.h"
#include "version.h"

/* ---- what a build keeps ---- */

struct item *build_find(struct build *b, const char *name)
{
    for (size_t i = 0; i < b->count; i++) {
        if (same_name(b->items[i].e.name, name)) {
            return &b->items[i];
        }
    }
    return NULL;
}

struct item *build_add(struct build *b, const struct config_entry *e)
{
    if (b->count == CONFIG_ENTRIES_MAX) {
        if (!b->full_said) {
            build_problem(b, CONFIG_ERROR, e,
                          "there are more than %d options; the rest is not read",
                          CONFIG_ENTRIES_MAX);
            b->full_said = true;
        }
        return NULL;
    }
    if (b->count == b->room) {
        size_t room = b->room > 0 ? 2 * b->room : 256;
        struct item *items = mem_realloc(b->items, room, sizeof(*items));
        if (items == NULL) {
            b->arena.failed = true;
            return NULL;
        }
        b->items = items;
        b->room = room;
    }
    b->items[b->count] = (struct item){.e = *e};
    return &b->items[b->count++];
}

void build_problem(struct build *b, enum config_level level, const struct config_entry *about,
                   const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    b->c.errors_count += level == CONFIG_ERROR;
    if (b->problems == NULL) {
        b->problems = mem_zalloc(CONFIG_PROBLEMS_MAX, sizeof(*b->problems));
        if (b->problems == NULL) {
            b->arena.failed = true;
            return;
        }
    }
    if (b->problems_count == CONFIG_PROBLEMS_MAX) {
        return;
    }
    b->problems[b->problems_count++] = (struct config_problem){
        .level = level,
        .from = about != NULL ? about->from : CONFIG_FROM_DEFAULT,
        .line = about != NULL ? about->line : 0,
        .name = about != NULL ? build_shown(b, about->name) : "",
        .text = arena_strn(&b->arena, text, strlen(text)),
    };
}

const char *build_shown(struct build *b, const char *s)
{
    enum { MAX = 120 };
    char out[MAX + 4];
    size_t n = 0;
    for (; *s != '\0' && n < MAX; s++) {
        out[n++] = (unsigned char)*s < ' ' || *s == 0x7f ? '?' : *s;
    }
    n += *s != '\0' ? (size_t)snprintf(out + n, 4, "...") : 0;
    return arena_strn(&b->arena, out, n);
}

bool build_published(const char *secret)
{
    static const char *const known[] = {"tegbzn6789", "pass", "mypass", "mypass2", "password"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i], secret) == 0) {
            return true;
        }
    }
    return false;
}

const char *build_env(const struct build *b, const char *name)
{
    size_t len = strlen(name);
    for (const char *const *v = b->in->env; v != NULL && *v != NULL; v++) {
        if (strncmp(*v, name, len) == 0 && (*v)[len] == '=' && (*v)[len + 1] != '\0') {
            return *v + len + 1;
        }
    }
    return NULL;
}

static void find_home(struct build *b)
{
    char room[4096];
    struct passwd entry, *found = NULL;
    const char *home = build_env(b, "HOME");
    if (home == NULL && getpwuid_r(geteuid(), &entry, room, sizeof(room), &found) == 0 &&
        found != NULL) {
        home = found->pw_dir;
    }
    if (home != NULL && home[0] == '/' && strlen(home) < sizeof(b->home)) {
        snprintf(b->home, sizeof(b->home), "%s", home);
    }
}

/* ---- the layer below all: what Weir itself says ---- */

static void add_read_only(struct build *b)
{
    char bin[VALUE_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", bin, sizeof(bin) - 1);
    bin[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(bin, '/');
    const char *dir = arena_strn(&b->arena, bin, slash != NULL ? (size_t)(slash - bin) : 0);
    const char *const rows[][2] = {{"ConfigFile", ""},
                                   {"AppBin", arena_strn(&b->arena, bin, strlen(bin))},
                                   {"AppDir", dir},
                                   {"Version", WEIR_VERSION}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config_entry e = {.name = rows[i][0], .raw = rows[i][1], .value = rows[i][1]};
        struct item *item = build_add(b, &e);
        if (item != NULL) {
            item->state = EXPANDED;
        }
    }
}

static void add_globals(struct build *b)
{
    uint64_t section = 1;
    for (const struct config_section *s = config_sections; s->title != NULL; s++, section++) {
        for (const struct config_option *o = s->options; o != NULL && o->name != NULL; o++) {
            struct config_entry e = {.name = o->name, .raw = o->preset, .option = o};
            struct item *item = build_add(b, &e);
            if (item != NULL) {
                item->rank = section << 48 | (uint64_t)(o - s->options);
            }
        }
    }
}

/* A numbered group that is mentioned at all has all its options. */
static void add_rest_of_groups(struct build *b)
{
    size_t given = b->count;
    for (size_t i = 0; i < given; i++) {
        struct config_entry first = b->items[i].e;
        if (first.group == CONFIG_GLOBAL) {
            continue;
        }
        const struct config_option *o = config_group_options(first.group);
        for (; o->name != NULL; o++) {
            char name[CONFIG_NAME_MAX];
            snprintf(name, sizeof(name), "%s%u.%s", config_group_name(first.group), first.number,
                     o->name);
            if (build_find(b, name) != NULL) {
                continue;
            }
            struct config_entry e = {.name = arena_strn(&b->arena, name, strlen(name)),
                                     .raw = o->preset,
                                     .option = o,
                                     .group = first.group,
                                     .number = first.number};
            if (build_add(b, &e) == NULL) {
                return;
            }
        }
    }
}

/* ---- order ---- */

/* For all but the options that stand alone, which got theirs when they were added. */
static uint64_t rank_of(const struct config_entry *e)
{
    if (e->option == NULL) { /* read-only ones before all, then extensions, then unknown ones */
        return e->from == CONFIG_FROM_DEFAULT ? 0 : (uint64_t)(e->unknown ? 201 : 200) << 48;
    }
    uint64_t section = 1;
    for (const struct config_section *s = config_sections; s->group != e->group; s++) {
        section++;
    }
    return section << 48 | (uint64_t)e->number << 16 |
           (uint64_t)(e->option - config_group_options(e->group));
}

static int by_rank(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    /* Extensions and unknown ones: as they came. */
    return x->e.line != y->e.line ? (x->e.line < y->e.line ? -1 : 1)
                                  : strcasecmp(x->e.name, y->e.name);
}

static int by_line(const void *a, const void *b)
{
    const struct config_problem *x = a, *y = b;
    if (x->from != y->from) {
        return x->from < y->from ? -1 : 1;
    }
    return x->line != y->line ? (x->line < y->line ? -1 : 1) : strcmp(x->name, y->name);
}

/* ---- ${Name} ---- */

static const char *value_of(struct build *b, struct item *item);

/* Appends to a value that is being put together; false when it gets too long. */
static bool append(char *out, size_t *used, const char *s, size_t len)
{
    if (len >= VALUE_MAX - *used) {
        return false;
    }
    memcpy(out + *used, s, len);
    *used += len;
    return true;
}

static const char *expand(struct build *b, const struct config_entry *e, const char *raw)
{
    char out[VALUE_MAX];
    size_t used = 0;
    bool secret = config_is_secret(e->option, e->name), fits = true;
    bool home = !secret && strncmp(raw, "~/", 2) == 0;
    if (!home && strstr(raw, "${") == NULL) {
        return raw;
    }
    if (home && b->home[0] == '\0') {
        build_problem(b, CONFIG_ERROR, e, "begins with ~/, but there is no home directory");
    }
    if (home) {
        fits = append(out, &used, b->home, strlen(b->home));
    }
    for (const char *p = home ? raw + 1 : raw; *p != '\0' && fits;) {
        const char *end = strncmp(p, "${", 2) == 0 ? strchr(p, '}') : NULL;
        if (end == NULL) {
            size_t plain = 1 + strcspn(p + 1, "$");
            fits = append(out, &used, p, plain);
            p += plain;
            continue;
        }
        size_t len = (size_t)(end - p) + 1;
        struct item *other = build_find(b, arena_strn(&b->arena, p + 2, len - 3));
        if (other == NULL && !secret) {
            build_problem(b, CONFIG_WARNING, e, "%s: there is no such option; left as it is",
                          build_shown(b, arena_strn(&b->arena, p, len)));
        }
        const char *value = other != NULL ? value_of(b, other) : p;
        fits = append(out, &used, value, other != NULL ? strlen(value) : len);
        p = end + 1;
    }
    if (!fits) {
        build_problem(b, CONFIG_ERROR, e, "is longer than %d bytes with its variables replaced",
                      VALUE_MAX - 1);
        return raw;
    }
    return arena_strn(&b->arena, out, used);
}

static const char *value_of(struct build *b, struct item *item)
{
    if (item->state == EXPANDING) {
        build_problem(b, CONFIG_ERROR, &item->e, "its variables lead back to itself");
        item->e.value = item->e.raw;
        item->state = EXPANDED;
        item->broken = true;
    }
    if (item->state == RAW) {
        item->state = EXPANDING;
        const char *value = expand(b, &item->e, item->e.raw);
        if (item->state == EXPANDING) {
            item->e.value = value;
            item->state = EXPANDED;
        }
    }
    return item->e.value;
}

/* ---- the whole ---- */

static void check_rights(struct build *b)
{
    bool secrets = false;
    for (size_t i = 0; i < b->count; i++) {
        const struct config_entry *e = &b->items[i].e;
        secrets |= e->from == CONFIG_FROM_FILE && config_is_secret(e->option, e->name) &&
                   e->value[0] != '\0' && !build_published(e->value);
    }
    const struct config_entry at = {.name = "", .from = CONFIG_FROM_FILE};
    if (b->file_mode & 02) {
        build_problem(b, CONFIG_ERROR, &at,
                      "everybody on this machine can write this file, and it names programs that "
                      "Weir runs; chmod o-rwx %s",
                      b->c.file);
    } else if ((b->file_mode & 04) && secrets) {
        build_problem(
            b, CONFIG_WARNING, &at,
            "everybody on this machine can read the passwords in this file; chmod o-rwx %s",
            b->c.file);
    }
}

static int tell_secrets(struct build *b, struct err *e)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct config_entry *x = &b->items[i].e;
        int rv = config_is_secret(x->option, x->name) && !build_published(x->value)
                     ? redact_add(x->value)
                     : 0;
        if (rv == ERR_FULL) {
            build_problem(b, CONFIG_WARNING, x,
                          "there are too many passwords; this one might be seen in the log");
        } else if (rv != 0) {
            return err_sys(e, rv, "configuration");
        }
    }
    return 0;
}

static int publish(struct build *b, struct err *e)
{
    struct config_entry *entries = arena_alloc(&b->arena, b->count, sizeof(*entries));
    for (size_t i = 0; entries != NULL && i < b->count; i++) {
        entries[i] = b->items[i].e;
    }
    if (b->arena.failed) {
        return err_sys(e, -ENOMEM, "configuration");
    }
    if (b->problems_count > 0) {
        qsort(b->problems, b->problems_count, sizeof(*b->problems), by_line);
    }
    b->c.entries = entries;
    b->c.entries_count = b->count;
    b->c.problems = b->problems;
    b->c.problems_count = b->problems_count;
    return 0;
}

static int build_all(struct build *b, struct err *e)
{
    find_home(b);
    add_read_only(b);
    add_globals(b);
    int rv = build_read_file(b, e);
    if (rv != 0) {
        return rv;
    }
    build_read_env(b);
    build_read_options(b);
    add_rest_of_groups(b);
    if (b->arena.failed) {
        return err_sys(e, -ENOMEM, "configuration");
    }
    struct item *file = build_find(b, "ConfigFile");
    file->e.raw = file->e.value = b->c.file;
    for (size_t i = 0; i < b->count; i++) {
        struct item *item = &b->items[i];
        item->rank = item->rank != 0 ? item->rank : rank_of(&item->e);
    }
    qsort(b->items, b->count, sizeof(*b->items), by_rank);
    for (size_t i = 0; i < b->count; i++) {
        value_of(b, &b->items[i]);
    }
    build_fill(b);
    check_rights(b);
    rv = tell_secrets(b, e);
    return rv != 0 ? rv : publish(b, e);
}

int config_load(const struct config_input *in, struct config **out, struct err *e)
{
    struct build *b = mem_zalloc(1, sizeof(*b));
    if (b == NULL) {
        return err_sys(e, -ENOMEM, "configuration");
    }
    b->in = in;
    b->c.file = "";
    int rv = build_all(b, e);
    b->in = NULL;
    if (rv != 0) {
        config_free(&b->c);
        return rv;
    }
    *out = &b->c;
    return 0;
}

void config_free(struct config *c)
{
    if (c == NULL) {
        return;
    }
    struct build *b = (struct build *)c; /* its first member */
    arena_free(&b->arena);
    mem_free(b->items);
    mem_free(b->problems);
    mem_free(b);
}

/* ---- looking things up ---- */

const char *config_from_name(enum config_from from)
{
    static const char *const names[] = {"default", "file", "environment", "command line"};
    return names[from];
}

const char *config_level_name(enum config_level level)
{
    static const char *const names[] = {"error", "warning", "note"};
    return names[level];
}

void config_problem_text(const struct config *c, const struct config_problem *p, char *out,
                         size_t size)
{
    char where[VALUE_MAX + 32];
    const char *file = strcmp(c->file, "-") == 0 ? "standard input" : c->file;
    if (p->from == CONFIG_FROM_FILE && p->line > 0) {
        snprintf(where, sizeof(where), "%s:%u: ", file, p->line);
    } else if (p->from == CONFIG_FROM_FILE) {
        snprintf(where, sizeof(where), "%s: ", file);
    } else {
        snprintf(where, sizeof(where), "%s%s",
                 p->from != CONFIG_FROM_DEFAULT ? config_from_name(p->from) : "",
                 p->from != CONFIG_FROM_DEFAULT ? ": " : "");
    }
    snprintf(out, size, "%s%s: %s%s%s", where, config_level_name(p->level), p->name,
             p->name[0] != '\0' ? ": " : "", p->text);
}

const struct config_entry *config_find(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->entries_count; i++) {
        if (same_name(c->entries[i].name, name)) {
            return &c->entries[i];
        }
    }
    return NULL;
}

const struct config_category *config_find_category(const struct config *c, const char *name,
                                                   bool aliases)
{
    for (size_t i = 0; i < c->categories_count; i++) {
        if (strcasecmp(c->categories[i].name, name) == 0) {
            return &c->categories[i];
        }
    }
    for (size_t i = 0; aliases && i < c->categories_count; i++) {
        const struct config_list *list = &c->categories[i].aliases;
        for (size_t k = 0; k < list->count; k++) {
            if (fnmatch(list->items[k], name, FNM_CASEFOLD | FNM_NOESCAPE) == 0) {
                return &c->categories[i];
            }
        }
    }
    return NULL;
}
