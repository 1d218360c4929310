/* mailbox.c - Vyukov's bounded queue, a wake-up that is never lost, and a stop that loses nothing.
 *
 * Post: claim turn t by moving `tail` from t to t+1 (slot t & mask is free when its own `turn` is t), store the
 * message, publish by setting the slot's turn to t+1, then make sure the receiver wakes.
 *
 * Wake-up: uv_async_send() first looks at its `pending` flag with a relaxed load, which the processor may do
 * before our publishing store is visible; a message could then sleep for ever. So the flag that decides is ours:
 * the sender exchanges `armed` to 1 (a full read-modify-write, never a load first) and sends only if it was 0;
 * the receiver exchanges it to 0 and looks at the ring after that. The two exchanges are ordered one way or the
 * other: either the receiver's comes later and it sees the published slot, or the sender's does and it sends.
 *
 * Stop: the top bit of `tail` closes the ring, and the same operation tells how many turns were claimed. A sender
 * that claimed one before may still have to publish it; its exchange of `armed` wakes us, so we need not spin.
 * With everything delivered we exchange `armed` to 1 ourselves: if it was 0, no sender is between its exchange and
 * uv_async_send(), and none will get there again, so the handle can go. If it was 1, a wake-up is still coming and
 * we wait for that. */
#include "base/mailbox.h"

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"

#define CLOSED (UINT64_C(1) << 63)

enum { BATCH = 1024 }; /* messages per wake-up, so that other handles of the loop get their turn */

struct mbox_slot {
    atomic_uint_fast64_t turn;
    void *msg;
};

static void on_wake(uv_async_t *h);

int mbox_init(struct mbox *m, uv_loop_t *loop, size_t capacity, mbox_recv_cb recv, void *arg)
{
    PRE(capacity <= (size_t)1 << 30);
    size_t size = 2;
    while (size < capacity) {
        size *= 2;
    }
    struct mbox_slot *slots = mem_zalloc(size, sizeof(*slots));
    if (slots == NULL) {
        return UV_ENOMEM;
    }
    int rv = uv_async_init(loop, &m->wake, on_wake);
    if (rv != 0) {
        mem_free(slots);
        return rv;
    }
    for (size_t i = 0; i < size; i++) {
        atomic_init(&slots[i].turn, i);
    }
    atomic_init(&m->tail, 0);
    atomic_init(&m->armed, 0);
    m->head = 0;
    m->end = 0;
    m->slots = slots;
    m->mask = size - 1;
    m->closing = false;
    m->recv = recv;
    m->closed = NULL;
    m->arg = arg;
    m->wake.data = m;
    return 0;
}

int mbox_post(struct mbox *m, void *msg)
{
    uint64_t t = atomic_load_explicit(&m->tail, memory_order_relaxed);
    struct mbox_slot *slot;
    for (;;) {
        if (t & CLOSED) {
            return ERR_STOPPED;
        }
        slot = &m->slots[t & m->mask];
        uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        if (turn == t) {
            if (atomic_compare_exchange_weak_explicit(&m->tail, &t, t + 1, memory_order_relaxed,
                                                      memory_order_relaxed)) {
                break;
            }
        } else if (turn < t) {
            return ERR_FULL; /* still holds the message of one round ago */
        } else {
            t = atomic_load_explicit(&m->tail,
                                     memory_order_relaxed); /* another sender was faster */
        }
    }
    slot->msg = msg;
    atomic_store_explicit(&slot->turn, t + 1, memory_order_release);
    if (atomic_exchange_explicit(&m->armed, 1, memory_order_acq_rel) == 0) {
        int rv = uv_async_send(&m->wake);
        POST(rv == 0);
    }
    return 0;
}

/* Delivers what is published, BATCH at most; false when it stopped for that. The slot is given back before the
 * callback, so that the receiver's own answers find room. */
static bool drain(struct mbox *m)
{
    for (int n = 0; n < BATCH; n++) {
        struct mbox_slot *slot = &m->slots[m->head & m->mask];
        if (atomic_load_explicit(&slot->turn, memory_order_acquire) != m->head + 1) {
            return true;
        }
        void *msg = slot->msg;
        atomic_store_explicit(&slot->turn, m->head + m->mask + 1, memory_order_release);
        m->head++;
        m->recv(m, msg);
    }
    return false;
}

static void on_closed(uv_handle_t *h)
{
    struct mbox *m = h->data;
    mem_free(m->slots);
    m->slots = NULL; /* nobody looks at it again: `tail` says closed */
    m->closed(m);
}

static void on_wake(uv_async_t *h)
{
    struct mbox *m = h->data;
    atomic_exchange_explicit(&m->armed, 0, memory_order_acq_rel); /* disarm, then look */
    bool empty = drain(m);
    if (!empty) {
        if (atomic_exchange_explicit(&m->armed, 1, memory_order_acq_rel) == 0) {
            uv_async_send(&m->wake);
        }
        return;
    }
    if (m->closing && m->head == m->end &&
        atomic_exchange_explicit(&m->armed, 1, memory_order_acq_rel) == 0) {
        uv_close((uv_handle_t *)&m->wake, on_closed);
    }
}

void mbox_close(struct mbox *m, mbox_close_cb cb)
{
    PRE(!m->closing);
    m->closing = true;
    m->closed = cb;
    m->end = atomic_fetch_or_explicit(&m->tail, CLOSED, memory_order_acq_rel);
    if (atomic_exchange_explicit(&m->armed, 1, memory_order_acq_rel) == 0) {
        uv_async_send(&m->wake); /* on_wake does the rest, also when there is nothing to deliver */
    }
}
