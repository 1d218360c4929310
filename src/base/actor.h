/* actor.h - one thread, one uv loop, one inbox.
 *
 * An actor owns its state alone; others reach it only by posting. Life: actor_start() makes the thread and returns
 * when `start` has run on it (or failed, and then nothing is left). actor_stop(), from any thread, once or often,
 * closes the inbox: what was accepted is still delivered, then `stop` runs, closes the actor's own handles, and the
 * thread ends when the last is closed. actor_join() waits for that.
 *
 * Whoever built the actors stops and joins them in order, those first that feed the others, and frees them all
 * only after the last join: a late actor_post() to a stopped actor gets ERR_STOPPED and keeps its message. */
#ifndef BASE_ACTOR_H
#define BASE_ACTOR_H

#include <stdatomic.h>
#include <stddef.h>
#include <uv.h>

#include "base/err.h"
#include "base/mailbox.h"

struct actor;

struct actor_type {
    const char *name;                               /* also the thread's name */
    size_t inbox;                                   /* slots */
    int (*start)(struct actor *a, struct err *err); /* make handles on a->loop; may be NULL */
    void (*recv)(struct actor *a, void *msg);       /* owns msg */
    void (*stop)(struct actor *a);                  /* close what start made; may be NULL */
};

struct actor {
    const struct actor_type *type;
    void *self; /* the actor's own state */
    uv_loop_t loop;
    struct mbox inbox;
    uv_async_t quit;
    uv_thread_t thread;
    uv_sem_t ready;
    atomic_int stopping;
    int start_code;
    struct err *start_err;
};

int actor_start(struct actor *a, const struct actor_type *type, void *self, struct err *err);
int actor_post(struct actor *a, void *msg);
void actor_stop(struct actor *a);
void actor_join(struct actor *a);

#endif
