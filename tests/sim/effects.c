/* effects.c - what the core asks for, held against what is allowed, and made to happen. */
#include <stdio.h>
#include <string.h>

#include "queue/health.h"
#include "queue/pick.h"
#include "sim.h"

/* ---- fetching ---- */

static void check_force_first(struct sim *s, const struct queue_job *mine, unsigned lane)
{
    const struct queue *q = coord_queue(s->c);
    for (uint32_t i = 0; i < q->active_count && mine->priority < QUEUE_FORCE; i++) {
        const struct queue_job *j = q->order[i];
        bool loading = j->life.state == QUEUE_QUEUED || j->life.state == QUEUE_DOWNLOADING;
        if (j->priority < QUEUE_FORCE || !loading || queue_job_blocking(q, j) != 0) {
            continue;
        }
        for (uint32_t k = 0; k < j->file_count; k++) {
            const struct queue_file *f = j->files[k];
            for (uint32_t a = 0; a < f->count && f->wanted && !f->paused; a++) {
                bool here = f->state[a] == QUEUE_OPEN && bitset_has(&f->ready[lane], a);
                MUST(s, !here, "job %u was served before the Force job %u", mine->id, j->id);
            }
        }
    }
}

static void check_fetch(struct sim *s, const struct coord_fetch *f, unsigned post, unsigned index)
{
    struct queue *q = coord_queue(s->c);
    const struct queue_file *file = queue_file(q, f->article.file_id);
    MUST(s, file != NULL && file->job->id == f->job_id, "a fetch for a file that is not there");
    const struct queue_job *j = file->job;
    unsigned live = 0;
    for (unsigned i = 0; i < LEASES && s->limits.quota_day > 0; i++) {
        live += s->fetches[i].lease != 0 && !s->fetches[i].cancelled;
    }
    bool force = j->priority >= QUEUE_FORCE;
    struct fake_server *v = &s->servers[f->server_id - 1];
    MUST(s, s->stop_asked_ms == 0, "a fetch after the shutdown was asked for");
    MUST(s, j->place == QUEUE_ACTIVE && j->life.state == QUEUE_DOWNLOADING,
         "a fetch for job %u which is %s", j->id, sm_name(&j->life));
    MUST(s, file->wanted && !file->paused, "a fetch for file %u that nobody wants", file->id);
    MUST(s, file->state[f->article.index] == QUEUE_LEASED, "a fetch for an article not leased");
    MUST(s, force || s->now_ms >= s->paused_until_ms, "job %u is fetched while all is paused",
         j->id);
    MUST(s, force || !s->scheduled, "job %u is fetched although the schedule says no", j->id);
    MUST(s, queue_job_blocking(q, j) == 0, "job %u is fetched although it is held (%x)", j->id,
         queue_job_blocking(q, j));
    MUST(s, v->conf.active, "server %u is not active", f->server_id);
    MUST(s,
         s->told[f->server_id - 1] == COORD_SERVER_UP ||
             s->told[f->server_id - 1] == COORD_SERVER_PROBE,
         "server %u is asked although it rests or is disabled", f->server_id);
    MUST(s, s->told[f->server_id - 1] != COORD_SERVER_PROBE || ++s->probes[f->server_id - 1] <= 1,
         "server %u gets a second probe", f->server_id);
    MUST(s, v->inflight < v->conf.connections * (uint32_t)COORD_DEPTH_MAX,
         "server %u gets more than its credit", f->server_id);
    MUST(s,
         force || s->limits.quota_day == 0 || s->wall_jumps > 0 ||
             s->day_bytes + live * 1000 < s->limits.quota_day,
         "the quota is passed: %llu used", (unsigned long long)s->day_bytes);
    const struct post *p = &s->posts[post];
    const struct post_file *pf = p->files;
    bool has_main = false;
    for (unsigned i = 0; i < p->file_count; i++) {
        has_main = has_main || p->files[i].main;
    }
    while (index >= pf->first + pf->count) {
        pf++;
    }
    MUST(s,
         !pf->volume || !has_main || j->id >= JOBS || !s->made_by_add[j->id] ||
             j->previous_id != 0 || s->par_requested[j->id] || s->files_edited[j->id],
         "volume %s is fetched although nobody needs it", pf->name);
    unsigned lane = 0;
    while (q->servers[lane].id != f->server_id) {
        lane++;
    }
    MUST(s, queue_tried_on(file, f->article.index, lane) == QUEUE_UNTRIED,
         "server %u is asked again for what it did not have", f->server_id);
    check_force_first(s, j, lane);
}

static void on_fetch(struct sim *s, const struct coord_fetch *f)
{
    unsigned post = 0, index = 0;
    MUST(s, world_find(s, f->message_id, &post, &index), "an unknown article <%s>", f->message_id);
    MUST(s, f->server_id >= 1 && f->server_id <= s->server_count, "an unknown server");
    check_fetch(s, f, post, index);
    if (s->now_ms - s->window_ms > 10000) {
        memset(s->fetch_window, 0, sizeof(s->fetch_window));
        s->window_ms = s->now_ms;
    }
    MUST(s, ++s->fetch_window[post][index] <= 16 + 8 * s->server_count,
         "article %u.%u is fetched in a hot loop", post, index);
    unsigned slot = 0;
    for (unsigned i = 0; i < LEASES; i++) {
        const struct fetch *o = &s->fetches[(s->fetch_next + i) % LEASES];
        if (o->lease == 0) {
            slot = (unsigned)((s->fetch_next + i) % LEASES);
            break;
        }
        MUST(s, i < LEASES - 1, "thousands of fetches at once");
    }
    for (unsigned i = 0; i < LEASES && s->outstanding > 0; i++) {
        const struct fetch *o = &s->fetches[i];
        if (o->lease == 0) {
            if (i > s->fetch_next + 4) {
                break;
            }
            continue;
        }
        MUST(s, o->lease != f->lease, "a lease is given out twice");
        MUST(s,
             o->cancelled || o->article.file_id != f->article.file_id ||
                 o->article.index != f->article.index,
             "article %u.%u is leased twice", post, index);
    }
    s->fetches[slot] =
        (struct fetch){f->lease, f->server_id, f->job_id, f->article, post, index, false};
    s->fetch_next = slot > s->fetch_next ? slot : s->fetch_next;
    s->outstanding++;
    s->fetch_count++;
    struct fake_server *v = &s->servers[f->server_id - 1];
    v->inflight++;
    if (!s->calm && sim_chance(s, v->silent)) {
        return; /* never answered */
    }
    uint64_t ms = v->latency_ms / 2 + rng_below(&s->r, v->latency_ms + 1);
    sim_later(s, ms, H_RESULT, f->lease << 13 | slot);
}

static void on_cancel(struct sim *s, uint64_t lease)
{
    for (unsigned i = 0; i < LEASES; i++) {
        if (s->fetches[i].lease == lease) {
            s->fetches[i].cancelled = true;
            s->probes[s->fetches[i].server_id - 1] = 0; /* it may be tried with another one */
        }
    }
}

/* ---- the truth about a lost article ---- */

static bool could_be_had(const struct sim *s, unsigned post, unsigned index)
{
    int64_t age = sim_wall_ms(s) / 1000 - s->posts[post].date;
    bool only_missing =
        true; /* the grace is for articles that nobody has; damaged ones do not get better */
    for (unsigned i = 0; i < s->server_count; i++) {
        enum copy copy = world_copy(s, i, post, index);
        only_missing =
            only_missing && s->servers[i].reliable && copy != COPY_DAMAGED && copy != COPY_WRONG;
    }
    for (unsigned i = 0; i < s->server_count; i++) {
        const struct fake_server *v = &s->servers[i];
        if (!v->reliable || !v->conf.active || v->was_disabled || s->wall_jumps > 0) {
            continue;
        }
        if (v->conf.retention_days > 0 && age > (int64_t)v->conf.retention_days * 86400 - 86400) {
            continue;
        }
        enum copy copy = world_copy(s, i, post, index);
        if (copy == COPY_GOOD || (copy == COPY_LATE && only_missing)) {
            return true;
        }
    }
    return false;
}

static void on_journal(struct sim *s, const struct queue_journal_record *r)
{
    const struct queue_file *f = queue_file(coord_queue(s->c), r->article.file_id);
    unsigned post = 0, index = 0;
    MUST(s, f != NULL && world_find(s, queue_message_id(f, r->article.index), &post, &index),
         "journal: what?");
    if (r->failed) {
        MUST(s, !could_be_had(s, post, index), "article %u.%u is given up although a server has it",
             post, index);
    } else {
        MUST(s, r->part.crc32 == world_crc(s, post, index),
             "article %u.%u counts as done but is damaged", post, index);
    }
    disk_push(s, &(struct op){.kind = OP_JOURNAL, .record = *r, .file_id = r->article.file_id});
}

/* ---- everything else ---- */

static void on_record(struct sim *s, const struct coord_record *r)
{
    sim_say(s, "  record %s job %u server %u %s: %s", coord_record_name(r->type), r->job_id,
            r->server_id, coord_error(r->code)->name, r->text);
    MUST(s, r->type != COORD_REC_ILLEGAL || s->moved_by_hand, "illegal transition: %s", r->text);
    const struct queue_job *j = queue_job(coord_queue(s->c), r->job_id);
    if (r->type == COORD_REC_HEALTH && j != NULL) {
        MUST(s, queue_job_health(j) < queue_job_critical(j),
             "job %u is called beyond repair with health %u of %u", j->id, queue_job_health(j),
             queue_job_critical(j));
    }
    if (r->type == COORD_REC_CREATED && r->job_id < JOBS) {
        s->made_by_add[r->job_id] = true;
    }
    if (r->type == COORD_REC_RECOVERED && r->job_id < JOBS) {
        s->recovered[r->job_id] = true;
    }
    if (r->type == COORD_REC_PAR_REQUESTED && r->job_id < JOBS) {
        s->par_requested[r->job_id] = true;
    }
}

static void on_post_start(struct sim *s, uint32_t job_id)
{
    const struct queue_job *j = queue_job(coord_queue(s->c), job_id);
    MUST(s, j != NULL && j->life.state == QUEUE_PROCESSING,
         "post-processing of a job that is not there");
    MUST(s, job_id >= JOBS || !s->posting[job_id], "job %u is post-processed twice at once",
         job_id);
    if (job_id < JOBS) {
        s->posting[job_id] = true;
    }
    sim_later(s, sim_pick(s, 10, 5000), H_POST, job_id);
}

static void push_file(struct sim *s, enum op_kind kind, const struct coord_file *f)
{
    disk_push(
        s, &(struct op){
               .kind = kind, .job_id = f->job_id, .file_id = f->file_id, .has_data = f->has_data});
}

void effects_emit(void *arg, const struct coord_effect *fx)
{
    struct sim *s = arg;
    if (fx->type != COORD_FX_RECORD) {
        sim_say(s, "  -> %s", coord_effect_name(fx->type));
    }
    switch (fx->type) {
    case COORD_FX_FETCH:
        sim_say(s, "     <%s> of job %u from server %u", fx->fetch.message_id, fx->fetch.job_id,
                fx->fetch.server_id);
        on_fetch(s, &fx->fetch);
        break;
    case COORD_FX_CANCEL:
        on_cancel(s, fx->lease);
        break;
    case COORD_FX_SERVER:
        if (s->told[fx->server.id - 1] != fx->server.state) {
            s->probes[fx->server.id - 1] = 0;
        }
        s->told[fx->server.id - 1] = fx->server.state;
        s->servers[fx->server.id - 1].was_disabled |= fx->server.state == COORD_SERVER_DISABLED;
        sim_say(s, "     server %u is %d with %u connections: %s", fx->server.id, fx->server.state,
                fx->server.connections, fx->server.why);
        break;
    case COORD_FX_OPEN_FILE:
        push_file(s, OP_OPEN, &fx->file);
        break;
    case COORD_FX_CLOSE_FILE:
        push_file(s, OP_CLOSE, &fx->file);
        break;
    case COORD_FX_DELETE_FILES:
        push_file(s, OP_DELETE, &fx->file);
        break;
    case COORD_FX_WRITE:
        disk_push(s, &(struct op){.kind = OP_WRITE,
                                  .lease = fx->write.lease,
                                  .file_id = fx->write.file_id,
                                  .offset = fx->write.offset,
                                  .size = fx->write.size,
                                  .crc = world_crc(s, s->answer.post, s->answer.index) +
                                         !s->answer.good});
        break;
    case COORD_FX_CHECK_SPACE:
        disk_push(s, &(struct op){.kind = OP_SPACE});
        break;
    case COORD_FX_JOURNAL:
        on_journal(s, &fx->journal);
        break;
    case COORD_FX_SAVE:
        s->save_asked = true;
        s->save_changes = fx->changes;
        break;
    case COORD_FX_STORE_NZB:
        disk_push(s, &(struct op){.kind = OP_STORE,
                                  .job_id = fx->nzb.job_id,
                                  .post = (unsigned)fx->nzb.data - 1});
        break;
    case COORD_FX_LOAD_NZB:
        disk_push(s, &(struct op){.kind = OP_LOAD, .job_id = fx->nzb.job_id});
        break;
    case COORD_FX_FORGET_NZB: {
        struct op op = {.kind = OP_FORGET};
        snprintf(op.stored, sizeof(op.stored), "%s", fx->nzb.stored);
        disk_push(s, &op);
        break;
    }
    case COORD_FX_FETCH_URL:
        sim_later(s, sim_pick(s, 10, 20000), H_URL, fx->nzb.job_id);
        break;
    case COORD_FX_POST_START:
        on_post_start(s, fx->job_id);
        break;
    case COORD_FX_POST_STOP:
        if (fx->job_id < JOBS) {
            s->posting[fx->job_id] = false;
        }
        break;
    case COORD_FX_RECORD:
        on_record(s, &fx->record);
        break;
    case COORD_FX_REPLY:
        user_reply(s, &fx->reply);
        break;
    case COORD_FX_STOPPED:
        s->stopped = true;
        break;
    default:
        break;
    }
}
