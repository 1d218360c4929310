/* catalog.h - which articles there are: those made from files, and those that were posted.
 *
 * Built before the server's thread starts and owned by it afterwards. Articles are known by their place in the table,
 * which never changes, since posting makes the table move. A message-id is made from the file's path below the
 * directory, its size and the article size, so that a restart, or another server with a damaged copy, has the same. */
#ifndef NEWSD_CATALOG_H
#define NEWSD_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    CATALOG_NONE = -1,
    CATALOG_ID_MAX = 250, /* RFC 3977 3.6, angle brackets included */
    CATALOG_ID_OURS = 64,
    CATALOG_SUBJECT_MAX = 1024,
};

struct newsd_file {
    char *path; /* below the directory: "set/sub/name" */
    char *name; /* as it is posted: the last part, without control characters */
    uint64_t size;
    int64_t date;        /* seconds since 1970 */
    uint32_t number, of; /* which file of its set, from 1 */
    uint32_t parts;
    uint32_t first; /* article; the others follow it */
};

struct newsd_set {
    char *name;
    uint32_t first_file;
    uint32_t files;
};

struct newsd_article {
    char *id;          /* without angle brackets */
    int32_t file;      /* CATALOG_NONE: it was posted */
    uint32_t part;     /* from 1; 0: posted */
    uint32_t hits;     /* how often its text was asked for */
    uint32_t checks;   /* and how often STAT or HEAD asked for it */
    int32_t slot;      /* of the cache; CATALOG_NONE: not there */
    uint32_t head_len; /* of a posted article; the rest of its text is len - head_len */
    uint64_t at;       /* where the spool has it */
    uint64_t len;
};

struct newsd_catalog {
    struct newsd_set *sets;
    size_t sets_len, sets_room;
    struct newsd_file *files;
    size_t files_len, files_room;
    struct newsd_article *articles;
    size_t articles_len, articles_room;
    int32_t *index;    /* open addressing by message-id; CATALOG_NONE: free */
    size_t index_room; /* a power of two */
    size_t article_bytes;
    size_t empty_files;
    uint64_t bytes;
};

void newsd_catalog_init(struct newsd_catalog *c, size_t article_bytes);
void newsd_catalog_free(struct newsd_catalog *c);

/* scan.c: every regular file below each directory in `dirfd`; links are not followed. Empty files have no article. */
int newsd_catalog_scan(struct newsd_catalog *c, int dirfd, int64_t age_s, struct err *e);

int newsd_catalog_add_set(struct newsd_catalog *c, const char *name);
/* Adds the file to the last set, with its articles. */
int newsd_catalog_add_file(struct newsd_catalog *c, const char *path, uint64_t size, int64_t date);
/* Numbers the files of the last set. */
void newsd_catalog_end_set(struct newsd_catalog *c);
/* The place of a new posted article, or a negative code: ERR_EXISTS. */
int newsd_catalog_add_posted(struct newsd_catalog *c, const char *id, size_t id_len);

/* CATALOG_NONE when there is none. `id` is without angle brackets. */
int32_t newsd_find(const struct newsd_catalog *c, const char *id, size_t len);
const struct newsd_file *newsd_catalog_file(const struct newsd_catalog *c, int32_t article);
/* `[n/m] - "name" yEnc (part/parts)` */
void newsd_catalog_subject(const struct newsd_file *f, uint32_t part, char *out, size_t size);
/* First byte of a part in its file, and how many. */
uint64_t newsd_catalog_part_at(const struct newsd_catalog *c, uint32_t part);
size_t newsd_catalog_part_len(const struct newsd_catalog *c, const struct newsd_file *f,
                              uint32_t part);

#endif
