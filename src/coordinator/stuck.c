/* stuck.c - jobs that do not move although nothing holds them.
 *
 * Two clocks of the core make this cheap: `free` stands while anything holds the whole queue, `idle` also while any
 * lease is out. A job notes both at its last progress. A job that waits in the queue behind others, or has none of its
 * articles under way because others come first, is not stuck: for these states the idle clock counts. One sweep looks
 * at COORD_SWEEP_JOBS jobs and goes on from there the next time.
 *
 * The ladder, one rung per threshold without progress: an event; leases dropped and waiting articles woken; the stage
 * started again; POISON, which stays until the user resumes the job. */
#include <stdio.h>

#include "coordinator/core.h"

enum { RUNG_EVENT = 1, RUNG_LEASES, RUNG_RESTART, RUNG_POISON };

void coord_clocks(struct coord *c, uint64_t passed_ms)
{
    if (c->holds == 0 && c->gates == 0) {
        c->free_clock_ms += passed_ms;
        c->idle_clock_ms += c->lease_count == 0 ? passed_ms : 0;
    }
}

/* How long this job may go without progress, and on which clock; 0: for ever. */
static uint64_t allowed(const struct coord *c, const struct queue_job *j, bool *idle)
{
    *idle = false;
    switch ((enum queue_state)j->life.state) {
    case QUEUE_CREATED:
        return COORD_STUCK_CREATED_MS;
    case QUEUE_QUEUED:
        *idle = true;
        return COORD_STUCK_QUEUED_MS;
    case QUEUE_DOWNLOADING:
        *idle = true;
        return j->waiting_articles == 0 ? COORD_STUCK_SILENT_MS
                                        : 0; /* they have a time of their own */
    case QUEUE_PROCESSING:
        return j->watch.post_state == POST_RUNNING ? COORD_STUCK_PROCESSING_MS : 0;
    case QUEUE_COMPLETED:
        return c->limits.imports ? COORD_STUCK_COMPLETED_MS : 0;
    case QUEUE_IMPORTED:
        return c->limits.imports ? COORD_STUCK_IMPORTED_MS : 0;
    default:
        return 0;
    }
}

static void climb(struct coord *c, struct queue_job *j)
{
    char text[96];
    j->watch.rung++;
    snprintf(text, sizeof(text), "no progress while %s (rung %u)", sm_name(&j->life),
             j->watch.rung);
    coord_record_job(c, COORD_REC_STUCK, j, COORD_OK, text);
    j->watch.since_ms = c->free_clock_ms; /* the next rung after as long again */
    j->watch.idle_since_ms = c->idle_clock_ms;
    uint8_t rung = j->watch.rung;
    switch (rung) {
    case RUNG_LEASES:
        coord_drop_job(c, j->id);
        queue_wake_job(c->q, j);
        break;
    case RUNG_RESTART:
        if (j->life.state == QUEUE_PROCESSING) {
            coord_post_leave(c, j);
            coord_post_enter(c, j);
        } else {
            coord_go_on(c, j);
        }
        break;
    case RUNG_POISON:
        coord_post_leave(c, j);
        coord_drop_job(c, j->id);
        coord_hold(c, j, QUEUE_HOLD_POISON, 0, text);
        break;
    default:
        break;
    }
    j->watch.rung = rung; /* a restart is no progress */
}

static void look(struct coord *c, struct queue_job *j)
{
    bool idle = false;
    uint64_t limit = allowed(c, j, &idle);
    if (limit == 0 || queue_job_blocking(c->q, j) != 0 ||
        (j->place != QUEUE_ACTIVE && j->watch.rung > 0)) {
        return;
    }
    uint64_t since =
        idle ? c->idle_clock_ms - j->watch.idle_since_ms : c->free_clock_ms - j->watch.since_ms;
    if (since >= limit) {
        climb(c, j);
        return;
    }
    /* A day in one download is worth a word, once, but a slow line is no fault of the job. */
    int64_t in_state = coord_now_at(c) - j->moved_at;
    if (j->life.state == QUEUE_DOWNLOADING && j->watch.rung == 0 && !j->watch.long_said &&
        in_state >= COORD_STUCK_DOWNLOADING_MS / 1000) {
        j->watch.long_said = true;
        coord_record_job(c, COORD_REC_STUCK, j, COORD_OK, "downloading for more than a day");
    }
}

void coord_sweep(struct coord *c)
{
    uint32_t total = c->q->active_count + c->q->past_count;
    uint32_t n = total < COORD_SWEEP_JOBS ? total : COORD_SWEEP_JOBS;
    for (uint32_t i = 0; i < n; i++) {
        c->sweep_at = c->sweep_at + 1 < c->q->active_count + c->q->past_count ? c->sweep_at + 1 : 0;
        bool active = c->sweep_at < c->q->active_count;
        look(c, active ? c->q->order[c->sweep_at] : c->q->past[c->sweep_at - c->q->active_count]);
    }
    timer_set(&c->timers, &c->core_timers[CORE_SWEEP], c->now.mono_ms + COORD_SWEEP_MS);
}
