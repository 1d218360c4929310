/* asker.h - one who asks a pool for articles of peer.h: the smallest policy that is still fair.
 *
 * Servers are asked in order. An answer that is the article's own trouble moves it to the next server; a failure of
 * the connection or the server costs it nothing but one of failures_max, and it goes to the next server in turn.
 * Everything runs on the caller's thread but for `deliver`, which puts results into a list. */
#ifndef TESTS_ASKER_H
#define TESTS_ASKER_H

#include "lib/peer.h"
#include "nntp/pool.h"

enum { ASKER_SERVERS = 2 };

struct asker_article {
    struct nntp_fetch fetch;
    struct list ready; /* in the list of results */
    unsigned tried;    /* servers that gave an answer of their own */
    unsigned failures;
    unsigned next; /* server to ask next */
    bool settled[ASKER_SERVERS];
    unsigned asked[ASKER_SERVERS]; /* how often */
    bool done;                     /* the right bytes are here */
    bool over;                     /* done, or nobody is left to ask */
    enum nntp_result last;
};

struct asker {
    struct nntp_pool *pool;
    struct buf_pool bufs;
    struct nntp_rate rate;
    struct nntp_server servers[ASKER_SERVERS];
    unsigned server_count;
    unsigned window; /* fetches given at a time */
    size_t budget;   /* of article buffers */
    unsigned failures_max;
    struct nntp_servers order;

    unsigned results[NNTP_RESULTS];
    unsigned troubles[NNTP_TROUBLES]; /* of failed fetches */
    unsigned downs[NNTP_TROUBLES];    /* of connections */
    unsigned ups;
    unsigned pipeline_off;
    unsigned wrong_bytes;
    uint32_t credit;
    char text[NNTP_TEXT_MAX]; /* of the last failed fetch */

    uv_mutex_t lock;
    uv_cond_t wake;
    struct list inbox;
    unsigned events_lost;
    struct nntp_event *events[4096];
    unsigned event_count;
    bool order_back;
    bool cancel_back;
};

/* Before: zero it, asker_server() for each. After: asker_run() as often as wanted. */
void asker_server(struct asker *a, const struct peer *p);
void asker_start(struct asker *a);
/* False: the pool could not be started, and nothing is held. */
bool asker_try_start(struct asker *a);
/* Asks for articles 0..count-1; how many arrived with the right bytes. */
unsigned asker_run(struct asker *a, struct asker_article *list, unsigned count);
void asker_apply(struct asker *a); /* a->servers as they are now */
void asker_stop(struct asker *a);

/* One fetch by hand; asker_wait() takes the next result. */
void asker_post(struct asker *a, struct asker_article *art, unsigned article, unsigned server);
struct asker_article *asker_wait(struct asker *a);
/* Takes the events that arrived so far into the counters. */
void asker_count_events(struct asker *a);

#endif
