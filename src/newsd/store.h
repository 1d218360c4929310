/* store.h - the text of articles as it goes over the wire: encoded once and kept, or as it was posted.
 *
 * The server's thread only. Articles made from files are encoded when they are first asked for and kept in slots of a
 * memory file, the one that was not needed longest making room; a slot is as large as the worst data could need, but
 * pages that were never written take no memory. Posted articles are kept in a nameless file in the directory that is
 * served, which is gone with the server. Both are mapped, so that sending needs no read. */
#ifndef NEWSD_STORE_H
#define NEWSD_STORE_H

#include "base/list.h"
#include "newsd/catalog.h"

/* Header lines, an empty line, the body with its dots doubled, and the dot line. */
struct newsd_text {
    const uint8_t *p;
    size_t head_len; /* without the empty line */
    size_t len;
    int32_t slot;   /* pinned; CATALOG_NONE: none */
    uint8_t *owned; /* or made for this use only */
};

struct newsd_slot {
    struct list node; /* oldest first */
    int32_t article;  /* CATALOG_NONE: empty */
    unsigned pins;
    size_t head_len;
    size_t len;
};

struct newsd_store {
    struct newsd_catalog *catalog;
    const char *group; /* the owner's */
    int dirfd;         /* the owner's; -1: none */
    int cache_fd, spool_fd;
    uint8_t *cache, *spool;
    size_t cache_size;
    size_t slot_size;
    struct newsd_slot *slots;
    size_t slots_len;
    struct list by_age;
    uint64_t spool_len;
    uint8_t *scratch; /* one part of a file */
    uint64_t encoded; /* articles */
};

int newsd_store_init(struct newsd_store *s, struct newsd_catalog *c, int dirfd, const char *group,
                     size_t cache_bytes, struct err *e);
void newsd_store_free(struct newsd_store *s);

/* Lends the text until newsd_store_put(). Fails when the file is gone or has changed its size. */
int newsd_store_get(struct newsd_store *s, int32_t article, struct newsd_text *t);
void newsd_store_put(struct newsd_store *s, struct newsd_text *t);

/* Keeps the text of a posted article, which ends with the dot line; *at is where. */
int newsd_store_add(struct newsd_store *s, const uint8_t *text, size_t len, uint64_t *at,
                    struct err *e);

/* What newsd_store_get() makes: the whole text of one part. `out` has newsd_article_text_max() bytes; returns its length. */
size_t newsd_article_text_max(const struct newsd_catalog *c);
size_t newsd_article_make(const struct newsd_catalog *c, int32_t article, const char *group,
                          const uint8_t *data, size_t n, uint8_t *out, size_t *head_len);

#endif
