/* step.c - the walk through one step.
 *
 *   1 time passes: timers that are due, articles that waited long enough
 *   2 the event itself changes the state
 *   3 the epilogue acts on the state: the queue learns about servers, articles that nobody can get are settled, free
 *     places are filled, post-processing is started, a shutdown moves on, and at the very end a save is asked for
 *
 * Long work is cut into portions; what is left sets `more`, and coord_next_ms() asks for another step at once. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "coordinator/core.h"

const uint32_t coord_grace_sec[4] = {60, 240, 600, 1800};

enum { TIMERS_PER_STEP = 512, WAKES_PER_STEP = 1024 };

void coord_emit(struct coord *c, const struct coord_effect *fx)
{
    c->out->emit(c->out->arg, fx);
}

/* splitmix64 */
uint64_t coord_random(struct coord *c)
{
    uint64_t z = (c->random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t coord_backoff_ms(struct coord *c, unsigned n, unsigned cap_s)
{
    uint64_t seconds = n < 20 ? UINT64_C(1) << n : cap_s;
    uint64_t ms = (seconds < cap_s ? seconds : cap_s) * 1000;
    ms = ms * 4 / 5 + coord_random(c) % (ms * 2 / 5 + 1);
    return ms < (uint64_t)cap_s * 1000 ? ms : (uint64_t)cap_s * 1000;
}

int coord_reserve_timers(struct coord *c, uint32_t more_jobs)
{
    uint64_t n = (uint64_t)c->q->active_count + c->q->past_count + more_jobs + c->lease_room +
                 2 * QUEUE_SERVERS_MAX + CORE_TIMERS;
    return n > UINT32_MAX ? ERR_LIMIT : timers_reserve(&c->timers, (uint32_t)n);
}

/* ---- time ---- */

typedef void (*due_cb)(struct coord *c);

static void core_due(struct coord *c, const struct timer *t)
{
    static const due_cb due[CORE_TIMERS] = {
        [CORE_SAVE] = coord_save_due,         [CORE_SWEEP] = coord_sweep,
        [CORE_FOLD] = coord_fold_due,         [CORE_SPACE] = coord_space_due,
        [CORE_PAUSE] = coord_pause_due,       [CORE_STOP] = coord_stop_due,
        [CORE_CALENDAR] = coord_calendar_due,
    };
    due[t - c->core_timers](c);
}

static void timer_due(struct coord *c, struct timer *t)
{
    switch ((enum timer_kind)t->kind) {
    case TIMER_JOB:
        coord_job_due(c, LIST_ENTRY(t, struct queue_job, watch.timer));
        break;
    case TIMER_LEASE:
        coord_lease_due(c, LIST_ENTRY(t, struct lease, timer));
        break;
    case TIMER_SERVER:
        coord_server_due(c, LIST_ENTRY(t, struct server, timer));
        break;
    case TIMER_SERVER_LIMIT:
        coord_server_limit_due(c, LIST_ENTRY(t, struct server, limit_timer));
        break;
    case TIMER_CORE:
        core_due(c, t);
        break;
    }
}

static void pass_time(struct coord *c, const struct coord_event *ev)
{
    uint64_t before = c->now.mono_ms;
    c->now.wall_ms = ev->now.wall_ms;
    if (ev->now.mono_ms > before) {
        c->now.mono_ms = ev->now.mono_ms;
        coord_clocks(c, c->now.mono_ms - before);
    }
    if (ev->read_bytes > c->read_bytes) {
        c->read_bytes = ev->read_bytes;
    }
    struct timer *t = NULL;
    unsigned n = 0;
    while (n++ < TIMERS_PER_STEP && (t = timers_pop(&c->timers, c->now.mono_ms)) != NULL) {
        timer_due(c, t);
    }
    if (coord_running(c)) {
        c->more = queue_wake(c->q, c->now.mono_ms, WAKES_PER_STEP) == WAKES_PER_STEP || c->more;
    }
}

/* ---- the event ---- */

static void on_start(struct coord *c)
{
    if (c->started) {
        return;
    }
    c->started = true;
    coord_recover(c);
    coord_save_soon(c); /* what was loaded and recovered is the new beginning */
}

static void on_progress(struct coord *c, uint64_t id)
{
    struct lease *l = coord_lease_find(c, id);
    if (l != NULL && !l->writing && !l->gone) {
        timer_set(&c->timers, &l->timer, c->now.mono_ms + COORD_LEASE_MS);
        coord_progress(c, queue_file(c->q, l->article.file_id)->job);
    }
}

static void handle(struct coord *c, const struct coord_event *ev)
{
    switch (ev->type) {
    case COORD_EV_START:
        on_start(c);
        break;
    case COORD_EV_COMMAND:
        coord_on_command(c, &ev->command);
        break;
    case COORD_EV_RESULT:
        coord_on_result(c, &ev->result);
        break;
    case COORD_EV_PROGRESS:
        on_progress(c, ev->lease);
        break;
    case COORD_EV_SERVER:
    case COORD_EV_CREDIT:
        coord_on_server(c, ev);
        break;
    case COORD_EV_WRITTEN:
        coord_on_written(c, &ev->disk);
        break;
    case COORD_EV_CLOSED:
        coord_on_closed(c, &ev->disk);
        break;
    case COORD_EV_LOST:
        coord_on_lost(c, &ev->disk);
        break;
    case COORD_EV_SPACE:
        coord_on_space(c, &ev->disk);
        break;
    case COORD_EV_SAVED:
        coord_on_saved(c, &ev->saved);
        break;
    case COORD_EV_NZB_STORED:
        coord_on_nzb_stored(c, &ev->nzb);
        break;
    case COORD_EV_NZB_LOADED:
        coord_on_nzb_loaded(c, &ev->nzb);
        break;
    case COORD_EV_URL:
        coord_on_url(c, &ev->nzb);
        break;
    case COORD_EV_POST:
        coord_on_post(c, &ev->post);
        break;
    case COORD_EV_TICK:
    case COORD_EVENTS:
        break;
    }
}

void coord_step(struct coord *c, const struct coord_event *ev, struct coord_effects *out)
{
    PRE(c->started || ev->type == COORD_EV_START);
    c->out = out;
    c->more = false;
    if (c->phase.state != PHASE_STOPPED) {
        pass_time(c, ev);
    }
    handle(c, ev);
    if (coord_running(c) ||
        (MUTANT(21) && c->phase.state == PHASE_DRAIN)) { /* refills while it ends */
        coord_servers_sync(c);
        coord_drain_nobody(c);
        coord_fill(c);
        coord_post_fill(c);
    }
    coord_stop_check(c);
    coord_save_maybe(c);
    c->out = NULL;
}

uint64_t coord_next_ms(const struct coord *c)
{
    if (c->phase.state == PHASE_STOPPED) {
        return TIMER_NEVER;
    }
    if (c->more) {
        return c->now.mono_ms;
    }
    uint64_t timer = timers_next_ms(&c->timers);
    uint64_t wake = coord_running(c) ? queue_next_wake_ms(c->q) : TIMER_NEVER;
    return timer < wake ? timer : wake;
}

/* ---- making and freeing ---- */

struct coord *coord_new(struct queue *q, const struct coord_config *config, struct clock_time now)
{
    struct coord *c = mem_zalloc(1, sizeof(*c));
    if (c == NULL) {
        return NULL;
    }
    c->now = now;
    c->start_ms = now.mono_ms;
    c->random = config->seed;
    c->q = q;
    sm_init(&c->phase, &coord_phase_type, PHASE_RUN, 0);
    timers_init(&c->timers);
    list_init(&c->free_waiting);
    list_init(&c->unstored);
    list_init(&c->unsaved);
    list_init(&c->deferred);
    list_init(&c->post_line);
    for (unsigned i = 0; i < CORE_TIMERS; i++) {
        c->core_timers[i].kind = TIMER_CORE;
    }
    c->waiting = mem_zalloc(COORD_WAITING_MAX, sizeof(*c->waiting));
    c->keys = mem_zalloc(KEYS_MAX, sizeof(*c->keys));
    if (c->waiting == NULL || c->keys == NULL || coord_reserve_timers(c, 0) != 0 ||
        coord_servers_set(c, config->servers, config->server_count, NULL) != 0) {
        c->q = NULL; /* not taken */
        coord_free(c);
        return NULL;
    }
    for (unsigned i = 0; i < COORD_WAITING_MAX; i++) {
        list_push_back(&c->free_waiting, &c->waiting[i].node);
    }
    c->day_bytes = config->day_bytes;
    c->month_bytes = config->month_bytes;
    c->limits = config->limits;
    c->free_bytes = UINT64_MAX;
    c->holds = q->holds & (QUEUE_HOLD_BIT(QUEUE_HOLD_GLOBAL) | QUEUE_HOLD_BIT(QUEUE_HOLD_SCHEDULE));
    coord_apply_holds(c); /* the others were of the life before */
    coord_calendar_start(c);
    return c;
}

void coord_free(struct coord *c)
{
    if (c == NULL) {
        return;
    }
    for (unsigned i = 0; c->waiting != NULL && i < COORD_WAITING_MAX; i++) {
        mem_free(c->waiting[i].results);
    }
    for (struct list *node; (node = list_pop_front(&c->deferred)) != NULL;) {
        mem_free(LIST_ENTRY(node, struct deferred,
                            node)); /* not durable: after a restart it is not so */
    }
    for (unsigned i = 0; i < c->server_count; i++) {
        mem_free(c->servers[i]);
    }
    for (uint32_t i = 0; c->q != NULL && i < c->q->active_count; i++) {
        nzb_unref(c->q->order[i]->watch.nzb);
    }
    queue_free(c->q);
    timers_free(&c->timers);
    mem_free(c->leases);
    mem_free(c->waiting);
    mem_free(c->keys);
    mem_free(c);
}

struct queue *coord_queue(struct coord *c)
{
    return c->q;
}

bool coord_stopped(const struct coord *c)
{
    return c->phase.state == PHASE_STOPPED;
}

const char *coord_event_name(enum coord_event_type type)
{
    static const char *const names[COORD_EVENTS] = {
        "start",  "tick", "command", "result", "progress",   "server",     "credit", "written",
        "closed", "lost", "space",   "saved",  "nzb_stored", "nzb_loaded", "url",    "post",
    };
    return (unsigned)type < COORD_EVENTS ? names[type] : "?";
}

const char *coord_op_name(enum coord_op op)
{
    static const char *const names[COORD_OPS] = {
        "add",    "edit",    "pause",        "resume", "schedule", "rate",
        "limits", "servers", "server_reset", "status", "stuck",    "shutdown",
    };
    return (unsigned)op < COORD_OPS ? names[op] : "?";
}
