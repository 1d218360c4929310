/* run.c - the loop: the earliest thing happens, the core takes a step, what must hold is checked. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum {
    STORM_MS = 20 * 60 * 1000, /* how long things go wrong */
    CALM_MS =
        24 * 3600 *
        1000, /* how long everything may take after that: a grace of over an hour per standby */
    START_MS = 1000 * 1000,
};

_Noreturn void sim_violation(struct sim *s, const char *fmt, ...)
{
    va_list ap;
    fflush(stdout);
    fprintf(stderr, "\nVIOLATION seed %llu at %.3f s, step %u: ", (unsigned long long)s->seed,
            (double)(s->now_ms - START_MS) / 1000, s->steps);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    abort(); /* main.c's handler says how to see it again */
}

void sim_say(struct sim *s, const char *fmt, ...)
{
    if (!s->trace) {
        return;
    }
    va_list ap;
    printf("%10.3f ", (double)(s->now_ms - START_MS) / 1000);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

int64_t sim_wall_ms(const struct sim *s)
{
    return (int64_t)s->now_ms + INT64_C(1700000000000) + s->wall_offset_ms;
}

/* ---- the future ---- */

static bool before(const struct future *a, const struct future *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->seq < b->seq;
}

void sim_later(struct sim *s, uint64_t in_ms, enum happening what, uint64_t n)
{
    if (s->heap_count == s->heap_room) {
        s->heap_room = s->heap_room * 2 + 64;
        s->heap = realloc(s->heap, s->heap_room * sizeof(*s->heap));
    }
    unsigned i = s->heap_count++;
    struct future f = {s->now_ms + in_ms, s->seq++, what, n};
    while (i > 0 && before(&f, &s->heap[(i - 1) / 2])) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = f;
}

static struct future next_future(struct sim *s)
{
    struct future top = s->heap[0], last = s->heap[--s->heap_count];
    unsigned i = 0;
    for (;;) {
        unsigned c = 2 * i + 1;
        if (c >= s->heap_count) {
            break;
        }
        if (c + 1 < s->heap_count && before(&s->heap[c + 1], &s->heap[c])) {
            c++;
        }
        if (!before(&s->heap[c], &last)) {
            break;
        }
        s->heap[i] = s->heap[c];
        i = c;
    }
    s->heap[i] = last;
    return top;
}

/* ---- steps ---- */

static void take_snapshot(struct sim *s)
{
    struct op op = {.kind = OP_SAVE, .changes = s->save_changes};
    s->save_asked = false;
    MUST(s, queue_snapshot(coord_queue(s->c), &op.snapshot) == 0, "no snapshot");
    disk_push(s, &op);
}

void sim_step(struct sim *s, struct coord_event *ev)
{
    struct coord_effects out = {effects_emit, s};
    if (!s->running) {
        return;
    }
    ev->now = (struct clock_time){s->now_ms, sim_wall_ms(s)};
    s->steps++;
    s->steps_now = s->now_ms == s->last_step_ms ? s->steps_now + 1 : 0;
    s->last_step_ms = s->now_ms;
    MUST(s, s->steps_now < 3000, "the core does not come to rest");
    coord_step(s->c, ev, &out);
    if (s->save_asked) {
        take_snapshot(s);
    }
    coord_check(s->c);
    outcome_step(s);
    if (s->steps % 16 == 0) {
        queue_check(coord_queue(s->c));
    }
}

/* ---- lives ---- */

static void start(struct sim *s)
{
    struct coord_server list[SERVERS];
    for (unsigned i = 0; i < s->server_count; i++) {
        list[i] = s->servers[i].conf;
        s->servers[i].inflight = 0;
        s->told[i] = COORD_SERVER_UP;
        s->probes[i] = 0;
    }
    struct coord_config config = {.limits = s->limits,
                                  .servers = list,
                                  .server_count = s->server_count,
                                  .seed = rng_next(&s->r),
                                  .day_bytes = s->day_bytes};
    s->c = coord_new(disk_load(s), &config, (struct clock_time){s->now_ms, sim_wall_ms(s)});
    MUST(s, s->c != NULL, "no core");
    queue_check(coord_queue(s->c));
    outcome_loaded(s);
    s->running = true;
    s->stopped = false;
    s->stop_asked_ms = 0;
    s->outstanding = 0;
    memset(s->fetches, 0, sizeof(s->fetches));
    memset(s->posting, 0, sizeof(s->posting));
    s->fetch_next = 0;
    struct queue *q = coord_queue(s->c);
    s->paused_until_ms = (q->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_GLOBAL)) != 0 ? UINT64_MAX : 0;
    s->scheduled = (q->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_SCHEDULE)) != 0;
    /* Ids of the last life that never became durable are given again, to others. */
    for (uint32_t id = q->next_job_id; id < JOBS; id++) {
        s->made_by_add[id] = s->par_requested[id] = s->files_edited[id] = false;
    }
    struct coord_event ev = {.type = COORD_EV_START};
    memset(s->recovered, 0, sizeof(s->recovered));
    sim_step(s, &ev);
    for (uint32_t i = 0; i < q->active_count; i++) {
        const struct queue_job *j = q->order[i];
        bool held = (j->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_POISON)) != 0;
        MUST(s, j->id >= JOBS || !s->recovered[j->id] || j->attempt <= COORD_JOB_ATTEMPTS || held,
             "job %u died %u times and goes on", j->id, j->attempt);
    }
}

static void end_life(struct sim *s)
{
    /* What was going to happen in the old life does not, but for the world's own plans. */
    unsigned kept = 0;
    disk_crash(s);
    s->running = false;
    user_crashed(s);
    coord_free(s->c);
    s->c = NULL;
    struct future *old = s->heap;
    unsigned n = s->heap_count;
    s->heap = NULL;
    s->heap_count = s->heap_room = 0;
    for (unsigned i = 0; i < n; i++) {
        if (old[i].what == H_USER || old[i].what == H_CRASH || old[i].what == H_CALM) {
            sim_later(s, old[i].at_ms - s->now_ms, old[i].what, old[i].n);
            kept++;
        }
    }
    (void)kept;
    free(old);
    s->restarts++;
    s->now_ms += sim_pick(s, 100, 20000);
}

static void crash(struct sim *s)
{
    sim_say(s, "CRASH");
    s->crashes++;
    end_life(s);
    start(s);
}

/* ---- the run ---- */

static void happen(struct sim *s, const struct future *f)
{
    struct coord_event ev = {.type = COORD_EV_TICK};
    switch (f->what) {
    case H_TICK:
        sim_step(s, &ev);
        break;
    case H_RESULT:
        world_answer(s, f->n);
        break;
    case H_DISK:
        if (s->op_count > 0) {
            disk_do(s);
        }
        break;
    case H_SYNC:
        disk_sync(s);
        break;
    case H_POST:
        outcome_post(s, (uint32_t)f->n);
        break;
    case H_URL:
        user_url(s, f->n);
        break;
    case H_USER:
        if (!s->calm) {
            if (sim_chance(s, 20)) {
                s->wall_offset_ms += (int64_t)sim_pick(s, 0, 7200000) - 3600000;
                s->wall_jumps++;
                sim_say(s, "the wall clock jumps");
            }
            user_act(s);
        }
        break;
    case H_CRASH:
        if (!s->calm) {
            crash(s);
        }
        break;
    case H_CALM:
        sim_say(s, "CALM");
        s->calm = true;
        if (s->stop_asked_ms != 0) {
            end_life(s);
            start(s);
        }
        user_calm(s);
        sim_later(s, 1200000, H_CALM, 0); /* again: standbys may have been woken */
        break;
    }
}

static bool all_ended(const struct sim *s)
{
    return s->calm && coord_queue(s->c)->active_count == 0 && s->op_count == 0;
}

static bool unanswered(const struct sim *s)
{
    for (uint64_t i = 1; i <= s->request_next; i++) {
        if (s->requests[i].open) {
            return true;
        }
    }
    return s->op_count > 0;
}

static void plan(struct sim *s)
{
    unsigned acts = (unsigned)sim_pick(s, 3, 40);
    for (unsigned i = 0; i < acts; i++) {
        uint64_t at = sim_chance(s, 600) ? sim_pick(s, 0, 20000) : sim_pick(s, 0, STORM_MS);
        sim_later(s, at, H_USER, 0);
    }
    unsigned crashes = sim_chance(s, 400) ? (unsigned)sim_pick(s, 1, 5) : 0;
    for (unsigned i = 0; i < crashes; i++) {
        sim_later(s, sim_pick(s, 0, sim_chance(s, 500) ? 30000 : STORM_MS), H_CRASH, 0);
    }
    sim_later(s, STORM_MS, H_CALM, 0);
}

void sim_run(struct sim *s, uint64_t seed, bool trace)
{
    memset(s, 0, sizeof(*s));
    s->seed = seed;
    s->trace = trace;
    s->now_ms = s->start_ms = START_MS;
    rng_init(&s->r, seed);
    world_make(s);
    disk_make(s);
    plan(s);
    start(s);
    while (!all_ended(s)) {
        uint64_t due = coord_next_ms(s->c);
        if (s->heap_count == 0 || due < s->heap[0].at_ms) {
            MUST(s, due != UINT64_MAX, "nothing will ever happen again");
            s->now_ms = due > s->now_ms ? due : s->now_ms;
            struct future tick = {.what = H_TICK};
            happen(s, &tick);
        } else {
            struct future f = next_future(s);
            s->now_ms = f.at_ms > s->now_ms ? f.at_ms : s->now_ms;
            happen(s, &f);
        }
        if (s->stop_asked_ms != 0 && !s->stopped) {
            MUST(s, s->now_ms - s->stop_asked_ms <= COORD_STOP_MS + 3000,
                 "the shutdown takes too long");
        }
        if (s->stopped) {
            for (uint64_t i = 1; i <= s->request_next; i++) {
                MUST(s, !s->requests[i].open, "request %llu was not answered before the end",
                     (unsigned long long)i);
            }
            sim_say(s, "STOPPED");
            end_life(s);
            start(s);
        }
        if (s->now_ms > START_MS + STORM_MS + CALM_MS) {
            outcome_check(s);
            MUST(s, false, "no end in sight");
        }
    }
    /* Answers that wait for the last save. */
    for (unsigned i = 0; i < 4000 && unanswered(s); i++) {
        uint64_t due = coord_next_ms(s->c);
        struct future f = {.what = H_TICK, .at_ms = due};
        if (s->heap_count > 0 && due >= s->heap[0].at_ms) {
            f = next_future(s);
        }
        if (f.what == H_CALM || f.what == H_USER || f.what == H_CRASH) {
            continue;
        }
        s->now_ms = f.at_ms > s->now_ms ? f.at_ms : s->now_ms;
        happen(s, &f);
    }
    outcome_check(s);
    queue_check(coord_queue(s->c));
    s->running = false;
    coord_free(s->c);
    disk_free(s);
    world_free(s);
    free(s->heap);
}
