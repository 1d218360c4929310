/* work.c - threads for the length of one call, progress, stopping. */
#include <errno.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/mem.h"
#include "par2/internal.h"

enum { PROGRESS_MS = 100, THREADS_MAX = 256 };

void par2_work_init(struct work *w, const struct par2_options *o)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n = o->threads != 0 ? o->threads : cpus > 0 ? (unsigned)cpus : 1;
    *w = (struct work){.options = o, .threads = n < THREADS_MAX ? n : THREADS_MAX};
}

unsigned par2_work_threads(const struct work *w, uint64_t pieces)
{
    return pieces == 0 ? 1 : pieces < w->threads ? (unsigned)pieces : w->threads;
}

static void tell(struct work *w)
{
    uint64_t done = atomic_load(&w->done);
    struct par2_progress p = {w->phase, done < w->total ? done : w->total, w->total};
    if (w->options->progress != NULL && w->options->progress(w->options->arg, &p)) {
        atomic_store(&w->stop, true);
    }
}

void par2_work_phase(struct work *w, enum par2_phase phase, uint64_t total)
{
    w->phase = phase;
    w->total = total;
    atomic_store(&w->done, 0);
    tell(w);
}

void par2_work_fail(struct work *w, int code)
{
    int none = 0;
    atomic_compare_exchange_strong(&w->error, &none, code);
    atomic_store(&w->stop, true);
}

bool par2_work_step(struct work *w, unsigned thread, uint64_t bytes)
{
    atomic_fetch_add_explicit(&w->done, bytes, memory_order_relaxed);
    if (thread == 0) {
        uint64_t now = clock_now(&clock_system).mono_ms;
        if (now - w->last_ms >= PROGRESS_MS) {
            w->last_ms = now;
            tell(w);
        }
    }
    return !atomic_load_explicit(&w->stop, memory_order_relaxed);
}

struct start {
    void (*fn)(void *arg, unsigned thread);
    void *arg;
    unsigned thread;
    uv_thread_t id;
};

static void run_one(void *arg)
{
    const struct start *s = arg;
    s->fn(s->arg, s->thread);
}

int par2_work_run(struct work *w, unsigned threads, void (*fn)(void *arg, unsigned thread),
                  void *arg)
{
    struct start *starts = mem_zalloc(threads, sizeof(*starts));
    unsigned running = 0;
    for (unsigned t = 1; starts != NULL && t < threads; t++) {
        starts[t] = (struct start){.fn = fn, .arg = arg, .thread = t};
        if (uv_thread_create(&starts[t].id, run_one, &starts[t]) != 0) {
            break; /* the pieces are shared out as they are asked for: fewer threads do them all */
        }
        running = t;
    }
    fn(arg, 0);
    for (unsigned t = 1; t <= running; t++) {
        uv_thread_join(&starts[t].id);
    }
    mem_free(starts);
    tell(w);
    int error = atomic_load(&w->error);
    return error != 0 ? error : atomic_load(&w->stop) ? ERR_STOPPED : 0;
}
