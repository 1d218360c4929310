/* buf.h - pooled byte buffers for articles, under one byte budget for the whole process.
 *
 * A buffer is taken by the worker that reads an article and given back by whoever was the last to need it (the
 * disk, usually): any thread, so the pool has a lock of its own. Sizes are rounded up to classes of powers of two,
 * and freed buffers are kept for the next article, so the steady state neither allocates nor touches fresh pages.
 *
 * The budget counts what is lent out and what is kept. When a take would cross it and nothing kept can be dropped,
 * the answer is NULL and the taker waits to be called, and stops reading its socket meanwhile. Nothing grows. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"

enum {
    BUF_MIN_SHIFT = 12, /* 4 KiB */
    BUF_MAX_SHIFT = 25, /* 32 MiB: the 16 MiB article limit and what decoding may store behind it */
    BUF_CLASSES = BUF_MAX_SHIFT - BUF_MIN_SHIFT + 1,
};

struct buf {
    struct list node; /* the pool's, while it is kept there; the holder's own otherwise */
    uint8_t *data;    /* 64-byte aligned */
    size_t capacity;
    size_t len; /* the holder's */
};

/* Called once, on the thread that gave memory back, outside the pool's lock. It must only wake its owner (post to
 * a mailbox), who then tries to take again; what it reaches must live as long as the pool. */
typedef void (*buf_waiter_cb)(void *arg);

struct buf_waiter {
    struct list node;
    buf_waiter_cb cb;
    void *arg;
};

struct buf_pool {
    uv_mutex_t lock;
    size_t budget_bytes;
    size_t lent_bytes;
    size_t kept_bytes;
    size_t peak_bytes; /* the most that lent + kept ever were */
    struct list kept[BUF_CLASSES];
    struct list waiters;
};

int buf_pool_init(struct buf_pool *p, size_t budget_bytes);
/* All buffers must be back, nobody may wait. */
void buf_pool_close(struct buf_pool *p);

/* A buffer of at least `size` bytes (at most buf_pool_max()) with len 0. NULL: the budget or the memory is used up
 * just now; then `w`, if given, is called after the next give. Both happen under one lock, so no give is missed. A
 * waiter that waits already goes on waiting. */
struct buf *buf_take(struct buf_pool *p, size_t size, struct buf_waiter *w);
void buf_give(struct buf_pool *p, struct buf *b);
/* The largest size that can ever be taken. */
size_t buf_pool_max(const struct buf_pool *p);

void buf_waiter_init(struct buf_waiter *w, buf_waiter_cb cb, void *arg);
/* Stops waiting; a call that another thread has begun already may still be running. */
void buf_wait_cancel(struct buf_pool *p, struct buf_waiter *w);

struct buf_stats {
    size_t budget_bytes;
    size_t lent_bytes;
    size_t kept_bytes;
    size_t peak_bytes;
};
struct buf_stats buf_pool_stats(struct buf_pool *p);

#endif
