/* mailbox.h - the only way threads talk: a bounded ring with many senders, one receiver and a wake-up.
 *
 * The receiver is a uv loop; `recv` runs on its thread, once per message, in the order in which each sender
 * posted. A posted message belongs to the receiver. When mbox_post() refuses, the sender still owns it.
 *
 * Room is a matter of credit: senders are given fewer tickets than there are slots, so ERR_FULL is a bug in most
 * places. Where it is not (tests, external callers), it is back-pressure: nothing was taken.
 *
 * Stopping loses nothing: mbox_close() refuses further posts from one instant on, delivers everything that was
 * accepted before it, and then calls back. Senders may go on calling mbox_post() (and get ERR_STOPPED) until the
 * memory is freed, so free it only when no thread can reach it any more. */
#ifndef BASE_MAILBOX_H
#define BASE_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct mbox;
typedef void (*mbox_recv_cb)(struct mbox *m, void *msg);
typedef void (*mbox_close_cb)(struct mbox *m);

struct mbox_slot;

struct mbox {
    _Alignas(64) atomic_uint_fast64_t tail; /* next turn to claim; its top bit says closed */
    _Alignas(64) atomic_int armed; /* 1: a wake-up is under way and nobody needs to send one */
    _Alignas(64) uint64_t head;    /* receiver only: next turn to deliver */
    uint64_t end;                  /* receiver only: where the ring ends once closed */
    struct mbox_slot *slots;
    uint64_t mask; /* slots - 1 */
    bool closing;  /* receiver only */
    mbox_recv_cb recv;
    mbox_close_cb closed;
    void *arg; /* the receiver's own */
    uv_async_t wake;
};

/* `capacity` is rounded up to a power of two, at least 2. 0, UV_ENOMEM or what libuv says; on failure nothing
 * is held. Called on the loop's thread or before it runs. */
int mbox_init(struct mbox *m, uv_loop_t *loop, size_t capacity, mbox_recv_cb recv, void *arg);
/* Any thread. 0: given away. ERR_FULL, ERR_STOPPED: not taken. Never blocks, never allocates. */
int mbox_post(struct mbox *m, void *msg);
/* The loop's thread, once. `cb` runs later, on that thread, when all was delivered. */
void mbox_close(struct mbox *m, mbox_close_cb cb);

#endif
