#include "base/actor.h"

#include <pthread.h>
#include <signal.h>

#include "base/check.h"

static void on_inbox_closed(struct mbox *m)
{
    struct actor *a = m->arg;
    if (a->start_code == 0 && a->type->stop != NULL) {
        a->type->stop(a);
    }
    uv_close((uv_handle_t *)&a->quit, NULL);
}

static void on_quit(uv_async_t *h)
{
    struct actor *a = h->data;
    mbox_close(&a->inbox, on_inbox_closed);
}

static void on_recv(struct mbox *m, void *msg)
{
    struct actor *a = m->arg;
    a->type->recv(a, msg);
}

/* Signals belong to the main thread's loop; no other thread may be interrupted by one. */
static void block_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static void run(void *arg)
{
    struct actor *a = arg;
    block_signals();
    pthread_setname_np(pthread_self(), a->type->name);
    a->start_code = a->type->start != NULL ? a->type->start(a, a->start_err) : 0;
    if (a->start_code == 0) {
        uv_sem_post(&a->ready);
        uv_run(&a->loop, UV_RUN_DEFAULT);
    } else { /* nobody knows of us yet: go the way of a stop, and only then let actor_start() go on */
        mbox_close(&a->inbox, on_inbox_closed);
        uv_run(&a->loop, UV_RUN_DEFAULT);
        uv_sem_post(&a->ready);
    }
}

/* Closes the two handles that actor_start() made, when no thread has run the loop yet. */
static void on_nothing_closed(struct mbox *m)
{
    (void)m;
}

int actor_start(struct actor *a, const struct actor_type *type, void *self, struct err *err)
{
    *a = (struct actor){.type = type, .self = self, .start_err = err};
    int rv = uv_loop_init(&a->loop);
    if (rv != 0) {
        return err_sys(err, rv, "%s: event loop", type->name);
    }
    rv = uv_async_init(&a->loop, &a->quit, on_quit);
    if (rv != 0) {
        goto err_after_loop;
    }
    a->quit.data = a;
    rv = mbox_init(&a->inbox, &a->loop, type->inbox, on_recv, a);
    if (rv != 0) {
        goto err_after_quit;
    }
    rv = uv_sem_init(&a->ready, 0);
    if (rv != 0) {
        goto err_after_inbox;
    }
    rv = uv_thread_create(&a->thread, run, a);
    if (rv != 0) {
        goto err_after_sem;
    }
    uv_sem_wait(&a->ready);
    if (a->start_code != 0) {
        rv = a->start_code;
        actor_join(a);
        return err_wrap(err, rv, "%s", type->name);
    }
    return 0;

err_after_sem:
    uv_sem_destroy(&a->ready);
err_after_inbox:
    mbox_close(&a->inbox, on_nothing_closed);
err_after_quit:
    uv_close((uv_handle_t *)&a->quit, NULL);
    uv_run(&a->loop, UV_RUN_DEFAULT);
err_after_loop:
    uv_loop_close(&a->loop);
    return err_sys(err, rv, "%s: cannot start", type->name);
}

int actor_post(struct actor *a, void *msg)
{
    return mbox_post(&a->inbox, msg);
}

void actor_stop(struct actor *a)
{
    if (atomic_exchange(&a->stopping, 1) == 0) {
        uv_async_send(&a->quit); /* the only send ever, so none can be lost behind a pending one */
    }
}

void actor_join(struct actor *a)
{
    uv_thread_join(&a->thread);
    uv_sem_destroy(&a->ready);
    int rv = uv_loop_close(&a->loop);
    POST(rv == 0); /* UV_EBUSY: `stop` left a handle open */
}
