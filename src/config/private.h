/* private.h - a configuration while it is being made. */
#ifndef CONFIG_PRIVATE_H
#define CONFIG_PRIVATE_H

#include <strings.h>

#include "config/config.h"

/* Memory that lives and dies with one configuration. After a failure everything it gives is unusable but harmless, and
 * `failed` says so: it is looked at once, at the end. */
struct arena_block;
struct arena {
    struct arena_block *blocks;
    size_t used;
    bool failed;
};
void *arena_alloc(struct arena *a, size_t count, size_t size);      /* cleared; NULL */
const char *arena_strn(struct arena *a, const char *s, size_t len); /* "" */
const char *arena_printf(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void arena_free(struct arena *a); /* wipes */

enum state { RAW, EXPANDING, EXPANDED };

struct item {
    struct config_entry e;
    uint64_t rank; /* place in the order of the sample file */
    enum state state;
    bool broken; /* said already; the default counts */
};

struct build {
    struct config c; /* first: what the world sees */
    struct arena arena;
    struct item *items;
    size_t count, room;
    struct config_problem *problems;
    size_t problems_count;
    const struct config_input *in;
    char home[1024];    /* "": not known */
    unsigned file_mode; /* rights of the file, 0: none or not a file */
    bool full_said;
};

/* strcasecmp() == 0 that mostly needs no call. */
static inline bool same_name(const char *a, const char *b)
{
    return ((a[0] ^ b[0]) & ~0x20) == 0 && strcasecmp(a, b) == 0;
}

enum { VALUE_MAX = 4096 }; /* bytes of a path, and of a value with variables replaced */

/* ---- load.c ---- */
struct item *build_find(struct build *b, const char *name);
struct item *build_add(struct build *b, const struct config_entry *e); /* NULL: no room, said */
void build_problem(struct build *b, enum config_level level, const struct config_entry *about,
                   const char *fmt, ...) __attribute__((format(printf, 4, 5)));
const char *build_env(const struct build *b, const char *name); /* NULL: not set or empty */
/* A name or value as a message may show it: control bytes made visible, cut. */
const char *build_shown(struct build *b, const char *s);
/* Is it a password that everybody knows, because some package brings it? */
bool build_published(const char *secret);

/* ---- input.c: the layers ---- */
int build_read_file(struct build *b, struct err *e);
void build_read_env(struct build *b);
void build_read_options(struct build *b);

/* ---- value.c ---- */

/* Stores `text` in the field of `base`; *canonical is the spelling that counts. NULL, or what is wrong with it. A
 * relative path is put below `dir`. */
const char *value_store(struct arena *a, const struct config_option *o, const char *text,
                        const char *dir, void *base, const char **canonical);
bool value_times(struct arena *a, const char *text, struct config_task *t);
bool value_weekdays(const char *text, unsigned *bits);
bool value_number(const char *text, int base, int64_t *out);

/* ---- fill.c ---- */
void build_fill(struct build *b);

#endif
