/* pool.h - one thread, one loop, N connections: a worker that fetches articles.
 *
 * An actor. Messages of msg.h go in with nntp_pool_post() from any thread and come back through `deliver`, which runs
 * on the pool's thread and must not block: it posts to its owner's inbox. Within one server, fetches are begun in the
 * order in which they came. Connections are opened when fetches wait for them, at most nntp_server.connections, and
 * closed when they were idle for long.
 *
 * What happens to a fetch whose server cannot be reached: as long as one connection of that server works, it waits for
 * that; with the last one gone it comes back as NNTP_FAILED, at once. The pool never waits before it tries again (but
 * for nntp_server.redial_ms while others work): giving it a fetch is the order to try. */
#ifndef NNTP_POOL_H
#define NNTP_POOL_H

#include <stdatomic.h>

#include "base/err.h"
#include "nntp/msg.h"
#include "nntp/rate.h"

struct nntp_pool;

struct nntp_pool_opts {
    unsigned index;         /* which pool this is, in events */
    struct buf_pool *bufs;  /* shared by all pools; outlives them */
    struct nntp_rate *rate; /* likewise */
    unsigned messages;      /* the most that will ever be posted and not yet have come back */
    unsigned connections;   /* the most connections it will ever have, of all servers together */
    void (*deliver)(void *arg, struct nntp_msg *msg);
    void *arg;
};

/* On failure nothing is held. */
int nntp_pool_start(struct nntp_pool **out, const struct nntp_pool_opts *opts, struct err *e);
/* Any thread. 0, or ERR_STOPPED: then the message is still the caller's. */
int nntp_pool_post(struct nntp_pool *p, struct nntp_msg *msg);
/* Any thread. Everything under way comes back, then the thread ends. */
void nntp_pool_stop(struct nntp_pool *p);
void nntp_pool_join(struct nntp_pool *p);
/* After the join, when nobody posts or gives buffers back any more. */
void nntp_pool_free(struct nntp_pool *p);

struct nntp_pool_counters { /* only grow, but for the last two */
    uint64_t bytes_in;      /* from the sockets, TLS included */
    uint64_t dials;
    unsigned connections_up;
    unsigned fetches; /* here now */
};
/* Any thread; a moment old. */
struct nntp_pool_counters nntp_pool_counters(const struct nntp_pool *p);

#endif
