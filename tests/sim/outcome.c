/* outcome.c - what must be true: of a job that reaches post-processing, after a restart, and in the end. */
#include <stdio.h>
#include <string.h>

#include "queue/dupe.h"
#include "queue/pick.h"
#include "sim.h"

/* Lost data articles, and recovery blocks that are here. Every article that counts as done must have its bytes. */
unsigned outcome_lost(const struct sim *cs, const struct queue_job *j, unsigned *blocks)
{
    struct sim *s = (struct sim *)(uintptr_t)cs;
    unsigned lost = 0;
    *blocks = 0;
    for (uint32_t k = 0; k < j->file_count; k++) {
        const struct queue_file *f = j->files[k];
        bool volume = f->kind == NZB_PAR2_VOLUME;
        unsigned bad = 0;
        for (uint32_t a = 0; a < f->count; a++) {
            unsigned post = 0, index = 0;
            if (f->state[a] != QUEUE_DONE) {
                bad++;
                continue;
            }
            (void)world_find(s, queue_message_id(f, a), &post, &index);
            const struct cell *c = disk_cell(s, f->id, a * 1000u);
            MUST(s, c != NULL && c->crc == world_crc(s, post, index),
                 "file %u article %u: wrong bytes on the disk", f->id, a);
        }
        if (volume) {
            *blocks += bad == 0 && f->closed ? f->blocks : 0;
        } else if (f->kind != NZB_PAR2_MAIN) {
            lost += bad;
        }
    }
    return lost;
}

void outcome_post(struct sim *s, uint32_t job_id)
{
    const struct queue_job *j = queue_job(coord_queue(s->c), job_id);
    if (j == NULL || job_id >= JOBS || !s->posting[job_id]) {
        return; /* was stopped */
    }
    s->posting[job_id] = false;
    struct coord_event ev = {.type = COORD_EV_POST,
                             .post = {.job_id = job_id, .kind = COORD_POST_ENDED}};
    for (uint32_t k = 0; k < j->file_count; k++) {
        const struct queue_file *f = j->files[k];
        MUST(s, !queue_file_awaited(f) || (f->closed && queue_file_ended(f)),
             "job %u is processed without file %u", job_id, f->id);
    }
    unsigned blocks = 0, lost = outcome_lost(s, j, &blocks);
    if (sim_chance(s, s->calm ? 0 : 60)) {
        static const enum coord_code codes[] = {
            COORD_STAGE,   COORD_UNPACK_CRC,  COORD_NO_SPACE,     COORD_PASSWORD,
            COORD_DISK_IO, COORD_UNSAFE_PATH, COORD_UNPACK_VOLUME};
        ev.post.code = codes[rng_below(&s->r, 7)];
    } else if (lost > blocks) {
        ev.post.code = COORD_PAR_BLOCKS;
        ev.post.blocks = lost - blocks;
    }
    if (sim_chance(s, 200)) {
        struct coord_event alive = {.type = COORD_EV_POST,
                                    .post = {.job_id = job_id, .kind = COORD_POST_PROGRESS}};
        sim_step(s, &alive);
    }
    sim_say(s, "post of job %u: %u lost, %u blocks: %s", job_id, lost, blocks,
            coord_error(ev.post.code)->name);
    sim_step(s, &ev);
}

void outcome_loaded(struct sim *s)
{
    const struct queue *q = coord_queue(s->c);
    for (uint32_t id = 1; id < JOBS; id++) {
        struct want *w = &s->wants[id];
        const struct queue_job *j = queue_job(q, id);
        MUST(s, !w->added || w->vague || j != NULL, "job %u was acknowledged and is gone", id);
        MUST(s, !w->removed || j == NULL, "job %u was removed and is back", id);
        if (j == NULL) {
            continue;
        }
        MUST(s, !w->priority_sure || j->priority == w->priority,
             "job %u lost its acknowledged priority", id);
        for (uint32_t k = 0; k < j->file_count; k++) {
            const struct queue_file *f = j->files[k];
            for (uint32_t a = 0; a < f->count; a++) {
                unsigned post = 0, index = 0;
                (void)world_find(s, queue_message_id(f, a), &post, &index);
                bool there =
                    s->files[f->id]
                        .exists; /* a file that is gone altogether is noticed when it is opened */
                const struct cell *c = disk_cell(s, f->id, a * 1000u);
                MUST(s,
                     f->state[a] != QUEUE_DONE || !there ||
                         (c != NULL && c->crc == world_crc(s, post, index)),
                     "after a crash file %u article %u counts as done but is not on the disk",
                     f->id, a);
            }
        }
    }
}

/* A server that is up and has nothing to do, and a job that nothing holds and that it could serve: one of the two is
 * forgotten. Holds are taken from the status, not from what the queue was told. */
void outcome_step(struct sim *s)
{
    const struct queue *q = coord_queue(s->c);
    if (s->stop_asked_ms != 0 || s->limits.rate != 0 || coord_next_ms(s->c) <= s->now_ms) {
        return;
    }
    struct coord_status st = coord_status(s->c);
    const uint32_t always =
        QUEUE_HOLD_BIT(QUEUE_HOLD_DISK) | QUEUE_HOLD_BIT(QUEUE_HOLD_SERVERS_DOWN);
    if ((st.holds & always) != 0 || st.rate_limit != 0 || st.leases == coord_lease_room(s->c)) {
        return;
    }
    for (unsigned lane = 0; lane < q->server_count; lane++) {
        unsigned i = q->servers[lane].id - 1;
        if (s->told[i] != COORD_SERVER_UP || !s->servers[i].conf.active ||
            s->servers[i].inflight > 0) {
            continue;
        }
        for (uint32_t k = 0; k < q->active_count; k++) {
            const struct queue_job *j = q->order[k];
            bool loading = j->life.state == QUEUE_QUEUED || j->life.state == QUEUE_DOWNLOADING;
            bool force = j->priority >= QUEUE_FORCE;
            bool may = force ? (j->holds & ~QUEUE_FORCE_PASSES) == 0
                             : j->holds == 0 && st.holds == 0 && s->limits.quota_day == 0;
            for (uint32_t n = 0; loading && may && n < j->file_count; n++) {
                const struct queue_file *f = j->files[n];
                MUST(s, !f->wanted || f->paused || bitset_empty(&f->ready[lane]),
                     "server %u has nothing to do although job %u waits", i + 1, j->id);
            }
        }
    }
}

static bool known_reason(const struct sim *s, const char *reason)
{
    static const char *const always[] = {"par_failed",  "url_",  "nzb_",    "unpack_",
                                         "unsafe_path", "stage", "no_space"};
    for (unsigned i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
        if (strncmp(reason, always[i], strlen(always[i])) == 0) {
            return true;
        }
    }
    return strncmp(reason, "missing_workdir", 15) == 0 && s->bad_window;
}

void outcome_check(struct sim *s)
{
    const struct queue *q = coord_queue(s->c);
    for (uint32_t i = 0; i < q->active_count; i++) {
        const struct queue_job *j = q->order[i];
        MUST(s, false,
             "job %u (%s, holds %x, queue %x) has not ended: %u files left, %u wanted, %u "
             "unclosed, %u waiting",
             j->id, sm_name(&j->life), j->holds, q->holds, j->left_files, j->wanted_left,
             j->wanted_unclosed, j->waiting_articles);
    }
    for (uint32_t i = 0; i < q->past_count; i++) {
        const struct queue_job *j = q->past[i];
        if (j->life.state == QUEUE_JOB_FAILED) {
            bool promised = j->id < JOBS && s->wants[j->id].added;
            bool unstored = strstr(j->reason, "stored NZB") != NULL && !promised;
            MUST(s, unstored || known_reason(s, j->reason), "job %u failed with '%s'", j->id,
                 j->reason);
        }
    }
    for (uint32_t i = 0; i < q->past_count && !s->past_edited && s->restarts == 0; i++) {
        const struct queue_job *j = q->past[i];
        MUST(s, j->life.state != QUEUE_JOB_FAILED || queue_dupe_wake(coord_queue(s->c), j, 0) == 0,
             "job %u failed and its standby was not woken", j->id);
    }
    for (uint64_t i = 1; i <= s->request_next; i++) {
        MUST(s, !s->requests[i].open, "request %llu (%s) was never answered", (unsigned long long)i,
             coord_op_name(s->requests[i].op));
    }
}
