/* newsd.h - a news server for tests, demo and benchmarks: files as yEnc articles, and faults on request.
 *
 * newsd_start() looks through the directory, writes the NZBs and starts one thread with one loop that owns everything
 * from then on; newsd_stop() ends it. What the server can be asked for over its connections (XHITS, XSTATS) and what a
 * fault script may say is in docs/NEWSD.md. */
#ifndef NEWSD_NEWSD_H
#define NEWSD_NEWSD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    NEWSD_ARTICLE_USUAL = 716800, /* bytes of a file per article, as posters do it */
    NEWSD_ARTICLE_MAX = 8 * 1024 * 1024,
    NEWSD_POST_MAX = 16 * 1024 * 1024, /* a longer posted article is refused */
};

/* Strings are borrowed during newsd_start() only. Zero is the usual value of every number. */
struct newsd_options {
    const char *dir;     /* each directory in it is a post; NULL: only what gets posted */
    const char *nzb_dir; /* where the NZBs go; NULL: none are written */
    const char *bind;    /* numeric address; NULL: 127.0.0.1 */
    uint16_t port;       /* 0: any free one */
    bool tls;
    const char *cert_file, *key_file; /* PEM; NULL: made now */
    const char *cert_out;             /* writes the certificate in use there */
    const char *user, *pass;          /* NULL: nobody needs to log in */
    const char *group;                /* NULL: alt.binaries.test */
    size_t article_bytes;
    size_t cache_bytes;       /* for encoded articles */
    unsigned rtt_ms;          /* a reply leaves so long after its command came */
    uint64_t rate_bytes;      /* per second, all connections together */
    unsigned age_days;        /* articles say that they are so much older than their files */
    uint64_t seed;            /* of everything that is left to chance */
    const char *script;       /* text of a fault script */
    const char *const *extra; /* more lines of it, ends with NULL */
};

struct newsd;

int newsd_start(struct newsd **out, const struct newsd_options *o, struct err *e);
uint16_t newsd_port(const struct newsd *n);
/* What was found: sets (NZBs), files, articles, bytes of the files. */
struct newsd_found {
    size_t sets, files, articles, empty_files;
    uint64_t bytes;
};
struct newsd_found newsd_found(const struct newsd *n);
/* Ends all connections and the thread, and frees everything. */
void newsd_stop(struct newsd *n);

#endif
