/* job.c - a job's way through its life: transitions, holds, files, completion, failure, recovery. */
#include <stdio.h>
#include <string.h>

#include "coordinator/core.h"

/* What must be cleared before a job goes on to post-processing, or goes on in it. */
#define OWN_STOPS                                                                   \
    (QUEUE_HOLD_BIT(QUEUE_HOLD_HEALTH) | QUEUE_HOLD_BIT(QUEUE_HOLD_PASSWORD) |      \
     QUEUE_HOLD_BIT(QUEUE_HOLD_DUPE_STANDBY) | QUEUE_HOLD_BIT(QUEUE_HOLD_BACKOFF) | \
     QUEUE_HOLD_BIT(QUEUE_HOLD_POISON))

/* ---- the one transition function ---- */

int coord_move(struct coord *c, struct queue_job *j, enum queue_state to, const char *text)
{
    struct err e = {0};
    int from = j->life.state;
    int rc = queue_job_move(c->q, j, to, coord_now_at(c), &e);
    if (rc != 0) {
        c->illegal_moves++;
        coord_record(c, &(struct coord_record){.type = COORD_REC_ILLEGAL,
                                               .job_id = j->id,
                                               .row_version = j->row_version,
                                               .from = from,
                                               .to = (int)to,
                                               .text = e.msg});
        return rc;
    }
    coord_record(c, &(struct coord_record){.type = COORD_REC_STATUS_CHANGED,
                                           .job_id = j->id,
                                           .row_version = j->row_version,
                                           .from = from,
                                           .to = (int)to,
                                           .text = text});
    j->watch.rung = 0;
    coord_progress(c, j);
    return 0;
}

void coord_progress(struct coord *c, struct queue_job *j)
{
    j->watch.since_ms = c->free_clock_ms;
    j->watch.idle_since_ms = c->idle_clock_ms;
    if (j->watch.rung > 0 && (j->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_POISON)) == 0) {
        j->watch.rung = 0;
    }
}

/* ---- holds ---- */

static void record_hold(struct coord *c, const struct queue_job *j, enum queue_hold hold, bool on,
                        const char *text)
{
    coord_record(c, &(struct coord_record){
                        .type = on ? COORD_REC_HOLD_SET : COORD_REC_HOLD_CLEARED,
                        .job_id = j->id,
                        .row_version = j->row_version,
                        .to = (int)hold,
                        .text = text,
                    });
}

void coord_hold(struct coord *c, struct queue_job *j, enum queue_hold hold, uint64_t for_ms,
                const char *text)
{
    bool fresh = (j->holds & QUEUE_HOLD_BIT(hold)) == 0;
    int64_t until = for_ms > 0 ? coord_now_at(c) + (int64_t)((for_ms + 999) / 1000) : 0;
    queue_hold_set(c->q, j, hold, coord_now_at(c), until);
    j->watch.hold_due_ms[hold] = for_ms > 0 ? c->now.mono_ms + for_ms : 0;
    if (fresh) {
        record_hold(c, j, hold, true, text);
    }
    if (j->place == QUEUE_ACTIVE) {
        coord_job_timer(c, j);
    }
}

void coord_unhold(struct coord *c, struct queue_job *j, enum queue_hold hold)
{
    bool not_yet = hold == QUEUE_HOLD_BACKOFF && j->watch.wait_changes != 0;
    j->watch.hold_due_ms[hold] = 0;
    if ((j->holds & QUEUE_HOLD_BIT(hold)) == 0 || not_yet) {
        return;
    }
    queue_hold_clear(c->q, j, hold);
    j->watch.hold_due_ms[hold] = 0;
    record_hold(c, j, hold, false, "");
    coord_progress(c, j);
    coord_go_on(c, j);
}

void coord_wake_saved(struct coord *c)
{
    bool more = false;
    for (uint32_t i = 0; i < c->q->active_count && c->waits_for_save; i++) {
        struct queue_job *j = c->q->order[i];
        if (j->watch.wait_changes == 0 || j->watch.wait_changes > c->q->saved_changes) {
            more = more || j->watch.wait_changes != 0;
            continue;
        }
        j->watch.wait_changes = 0;
        coord_unhold(c, j, QUEUE_HOLD_BACKOFF);
    }
    c->waits_for_save = more;
}

void coord_propagation(struct coord *c, struct queue_job *j)
{
    int64_t age = coord_now_at(c) - j->max_post_at;
    int64_t wait = (int64_t)c->limits.propagation_sec - age;
    if (j->max_post_at <= 0 || wait <= 0 || c->limits.propagation_sec == 0) {
        return;
    }
    if (wait > (int64_t)c->limits.propagation_sec) { /* posted in the future */
        wait = c->limits.propagation_sec;
    }
    coord_hold(c, j, QUEUE_HOLD_PROPAGATION, (uint64_t)wait * 1000, "the post is young");
}

/* ---- timers ---- */

enum {
    EXPIRY_LOOK_MS = 3600 * 1000
}; /* the wall clock may be set: look again at least this often */

void coord_job_timer(struct coord *c, struct queue_job *j)
{
    uint64_t due = TIMER_NEVER;
    for (unsigned h = 0; h < QUEUE_HOLDS; h++) {
        uint64_t at = j->watch.hold_due_ms[h];
        due = at > 0 && at < due ? at : due;
    }
    if (j->expires_at > 0) {
        int64_t left = j->expires_at - coord_now_at(c);
        uint64_t ms = left <= 0                      ? 0
                      : left > EXPIRY_LOOK_MS / 1000 ? EXPIRY_LOOK_MS
                                                     : (uint64_t)left * 1000;
        due = c->now.mono_ms + ms < due ? c->now.mono_ms + ms : due;
    }
    timer_set(&c->timers, &j->watch.timer, due);
}

void coord_job_due(struct coord *c, struct queue_job *j)
{
    uint32_t id = j->id;
    if (j->expires_at > 0 && coord_now_at(c) >= j->expires_at && j->life.state < QUEUE_COMPLETED) {
        coord_cancel(c, j, "ttl_expired");
        return;
    }
    for (unsigned h = 0; h < QUEUE_HOLDS; h++) {
        uint64_t at = j->watch.hold_due_ms[h];
        if (at > 0 && at <= c->now.mono_ms) {
            coord_unhold(c, j, (enum queue_hold)h);
        }
        j = queue_job(c->q, id); /* going on may end it */
        if (j == NULL || j->place != QUEUE_ACTIVE) {
            return;
        }
    }
    coord_job_timer(c, j);
}

/* ---- entering and leaving the queue ---- */

void coord_watch(struct coord *c, struct queue_job *j)
{
    j->watch.timer.kind = TIMER_JOB;
    j->watch.rung = 0;
    coord_progress(c, j);
    for (unsigned h = 0; h < QUEUE_HOLDS; h++) {
        int64_t until = (j->holds & QUEUE_HOLD_BIT(h)) != 0 ? j->hold_info[h].until_at : 0;
        if (until > 0 && j->watch.hold_due_ms[h] == 0) {
            int64_t left = until - coord_now_at(c);
            left = left < 0 ? 0 : left > 86400 ? 86400 : left;
            j->watch.hold_due_ms[h] = c->now.mono_ms + (uint64_t)left * 1000;
        }
    }
    if ((j->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_BACKOFF)) != 0 &&
        j->watch.hold_due_ms[QUEUE_HOLD_BACKOFF] == 0 && j->watch.wait_changes == 0) {
        j->watch.hold_due_ms[QUEUE_HOLD_BACKOFF] = c->now.mono_ms; /* what it waited for is over */
    }
    coord_job_timer(c, j);
}

void coord_forget(struct coord *c, struct queue_job *j)
{
    coord_drop_job(c, j->id);
    coord_post_leave(c, j);
    nzb_unref(j->watch.nzb);
    j->watch.nzb = NULL;
    j->watch.fetching = false;
    timer_stop(&c->timers, &j->watch.timer);
    memset(j->watch.hold_due_ms, 0, sizeof(j->watch.hold_due_ms));
    j->watch.wait_changes = 0;
    for (uint32_t i = 0; i < j->file_count; i++) {
        j->files[i]->opened = j->files[i]->closing = false;
    }
}

/* Something of this job is in its directory, or may be. */
static bool has_output(const struct queue_job *j)
{
    if (j->place == QUEUE_ACTIVE) {
        return j->reload != QUEUE_RELOAD_FRESH &&
               (j->file_count > 0 ? j->done_articles > 0 : j->shed != NULL);
    }
    return j->life.state == QUEUE_COMPLETED || j->life.state == QUEUE_IMPORTED || j->shed != NULL ||
           j->done_articles > 0;
}

/* A job that was retried has left its files to its successor. */
static bool shares_directory(const struct coord *c, const struct queue_job *j)
{
    uint32_t active = c->q->active_count;
    for (uint32_t i = 0; i < active + c->q->past_count && j->dest_dir[0] != '\0'; i++) {
        const struct queue_job *o = i < active ? c->q->order[i] : c->q->past[i - active];
        if (o != j && strcmp(o->dest_dir, j->dest_dir) == 0 && has_output(o)) {
            return true;
        }
    }
    return false;
}

void coord_delete_files(struct coord *c, struct queue_job *j, const struct queue_file *f)
{
    if (f == NULL) {
        queue_job_forget_progress(c->q, j);
        if (shares_directory(c, j)) {
            return;
        }
    }
    coord_after_save(c,
                     &(struct coord_effect){
                         .type = COORD_FX_DELETE_FILES,
                         .file = {.job_id = j->id,
                                  .file_id = f != NULL ? f->id : 0,
                                  .dir = j->dest_dir,
                                  .name = ""},
                     },
                     j->dest_dir);
}

void coord_to_history(struct coord *c, struct queue_job *j)
{
    PRE(j->leased_articles == 0);
    queue_job_place(c->q, j, QUEUE_HISTORY, false, coord_now_at(c));
    (void)queue_job_shed(c->q, j); /* no memory for the saved form: it stays whole */
    coord_save_soon(c);
}

void coord_came_back(struct coord *c, uint32_t job_id)
{
    struct queue_job *j = queue_job(c->q, job_id);
    if (j == NULL || j->place != QUEUE_ACTIVE) {
        return;
    }
    coord_watch(c, j);
    if (j->file_count == 0 && j->source_count > 0) {
        /* Behind the deletion of what it replaces, and not while a crash could bring the old one back. */
        coord_after_save(
            c, &(struct coord_effect){.type = COORD_FX_LOAD_NZB, .nzb = {.job_id = j->id}},
            j->sources[0].stored);
        return;
    }
    coord_go_on(c, j);
}

/* ---- ends ---- */

void coord_fail(struct coord *c, struct queue_job *j, enum coord_code code, const char *text)
{
    char reason[192];
    const struct coord_error *e = coord_error(code);
    bool said = text != NULL && text[0] != '\0';
    snprintf(reason, sizeof(reason), "%s: %s", e->name, said ? text : e->text);
    if (!sm_allows(&j->life, QUEUE_JOB_FAILED)) {
        (void)coord_move(c, j, QUEUE_JOB_FAILED, reason); /* refused, and said */
        return;
    }
    coord_forget(c, j);
    (void)queue_job_set_text(c->q, j, &j->reason, reason);
    (void)coord_move(c, j, QUEUE_JOB_FAILED, reason);
    coord_to_history(c, j);
    if (!MUTANT(11)) {
        coord_came_back(c, queue_dupe_wake(c->q, j, coord_now_at(c)));
    }
}

void coord_cancel(struct coord *c, struct queue_job *j, const char *why)
{
    if (!sm_allows(&j->life, QUEUE_CANCELLED)) {
        (void)coord_move(c, j, QUEUE_CANCELLED, why);
        return;
    }
    coord_forget(c, j);
    (void)queue_job_set_text(c->q, j, &j->reason, why);
    (void)coord_move(c, j, QUEUE_CANCELLED, why);
    coord_to_history(c, j);
    coord_delete_files(c, j, NULL);
}

/* For good: its stored NZBs too, unless another job needs them. */
void coord_remove(struct coord *c, struct queue_job *j)
{
    coord_forget(c, j);
    uint32_t count = j->source_count;
    char names[4][QUEUE_STORED_NAME];
    count = count < 4 ? count : 4; /* merged from more: the loader drops what nobody names */
    for (uint32_t s = 0; s < count; s++) {
        snprintf(names[s], sizeof(names[s]), "%s", j->sources[s].stored);
    }
    queue_job_remove(c->q, j);
    for (uint32_t s = 0; s < count; s++) {
        if (names[s][0] != '\0') {
            coord_after_save(c, &(struct coord_effect){.type = COORD_FX_FORGET_NZB}, names[s]);
        }
    }
    coord_save_soon(c);
}

/* ---- health ---- */

void coord_check_health(struct coord *c, struct queue_job *j)
{
    bool loading = j->life.state == QUEUE_QUEUED || j->life.state == QUEUE_DOWNLOADING;
    bool parked = (j->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_HEALTH)) != 0;
    enum queue_health_check mode = (enum queue_health_check)c->limits.health_check;
    if (!loading || parked || j->watch.health_waived || j->place != QUEUE_ACTIVE) {
        return;
    }
    enum queue_health_check verdict = queue_health_verdict(j, mode);
    if (MUTANT(12) && mode != QUEUE_HEALTH_NONE) { /* health as what is done, not what is lost */
        verdict = j->done_articles * 2 < j->total_articles ? mode : verdict;
    }
    if (verdict == QUEUE_HEALTH_NONE) {
        return;
    }
    char text[96];
    snprintf(text, sizeof(text), "health %u is below %u: cannot be repaired", queue_job_health(j),
             queue_job_critical(j));
    coord_record_job(c, COORD_REC_HEALTH, j, COORD_PAR_FAILED, text);
    if (verdict == QUEUE_HEALTH_PARK) {
        coord_hold(c, j, QUEUE_HOLD_HEALTH, 0, text);
        return;
    }
    j->delete_status = QUEUE_DELETE_HEALTH;
    coord_fail(c, j, COORD_PAR_FAILED, text);
    coord_delete_files(c, j, NULL);
}

/* ---- completion ---- */

void coord_close_file(struct coord *c, struct queue_file *f)
{
    if (f->closing || f->closed) {
        return;
    }
    f->closing = true;
    coord_emit(c, &(struct coord_effect){
                      .type = COORD_FX_CLOSE_FILE,
                      .file = {.job_id = f->job->id,
                               .file_id = f->id,
                               .dir = f->job->dest_dir,
                               .name = queue_file_name(f),
                               .size = f->size,
                               .has_data = f->done > 0},
                  });
}

void coord_check_done(struct coord *c, struct queue_job *j)
{
    bool loading = j->life.state == QUEUE_QUEUED || j->life.state == QUEUE_DOWNLOADING;
    if (!loading || j->place != QUEUE_ACTIVE || j->file_count == 0 || (j->holds & OWN_STOPS) != 0) {
        return;
    }
    if (MUTANT(13) && j->left_files > 0) { /* waits for volumes that nobody wants */
        return;
    }
    if (j->wanted_left > 0 || j->wanted_unclosed > 0 || j->leased_articles > 0) {
        return;
    }
    if (j->life.state == QUEUE_QUEUED) {
        (void)coord_move(c, j, QUEUE_DOWNLOADING, "");
    }
    (void)coord_move(c, j, QUEUE_PROCESSING, "downloaded");
    coord_post_enter(c, j);
    coord_save_soon(c);
}

/* Files that ended while something was in the way of closing them. */
static void close_ended(struct coord *c, struct queue_job *j)
{
    for (uint32_t i = 0; i < j->file_count; i++) {
        struct queue_file *f = j->files[i];
        if (queue_file_ended(f) && queue_file_awaited(f) && !f->closed) {
            coord_close_file(c, f);
        }
    }
}

void coord_go_on(struct coord *c, struct queue_job *j)
{
    if (j->place != QUEUE_ACTIVE || (j->holds & OWN_STOPS) != 0) {
        return;
    }
    if (j->life.state == QUEUE_PROCESSING &&
        j->wanted_unclosed > 0) { /* the user asked for a file */
        coord_post_leave(c, j);
        (void)coord_move(c, j, QUEUE_DOWNLOADING, "another file is wanted");
    }
    switch ((enum queue_state)j->life.state) {
    case QUEUE_CREATED:
        if (j->url[0] != '\0' && j->file_count == 0 && j->source_count == 0) {
            coord_fetch_url(c, j);
        }
        break;
    case QUEUE_QUEUED:
    case QUEUE_DOWNLOADING:
        if (j->wanted_unclosed > 0) {
            close_ended(c, j);
        }
        coord_check_done(c, j);
        break;
    case QUEUE_PROCESSING:
        coord_post_enter(c, j);
        break;
    default:
        break;
    }
}

/* ---- recovery ---- */

static void again(struct coord *c, struct queue_job *j, const char *text)
{
    coord_record_job(c, COORD_REC_RECOVERED, j, COORD_OK, text);
    if (j->replayed >
        0) { /* it got on since the last start: whatever ended the program, not this job */
        j->attempt = 1;
    }
    if (j->attempt > COORD_JOB_ATTEMPTS && !MUTANT(14)) {
        coord_hold(c, j, QUEUE_HOLD_POISON, 0, "the program died with it again and again");
    }
}

static void recover_created(struct coord *c, struct queue_job *j)
{
    bool stored = j->source_count > 0 && j->sources[0].stored[0] != '\0';
    if (stored && j->file_count > 0) {
        (void)coord_move(c, j, QUEUE_QUEUED, "");
    } else if (stored) {
        coord_came_back(c, j->id);
    } else if (j->url[0] != '\0' && j->source_count == 0) {
        coord_go_on(c, j);
    } else {
        coord_fail(c, j, COORD_NZB_INVALID, "its NZB was not stored before the program ended");
    }
}

static void recover_job(struct coord *c, struct queue_job *j)
{
    coord_watch(c, j);
    const char *key = queue_param_get(&j->params, coord_key_param);
    if (key != NULL) {
        coord_key_put(c, key, j->id, j->created_at + COORD_KEY_SEC);
    }
    switch ((enum queue_state)j->life.state) {
    case QUEUE_CREATED:
        recover_created(c, j);
        break;
    case QUEUE_DOWNLOADING:
        (void)coord_move(c, j, QUEUE_QUEUED, "the program ended while it was downloading");
        again(c, j, "downloading");
        break;
    case QUEUE_PROCESSING:
        j->attempt++;
        queue_job_touch(c->q, j);
        again(c, j, "processing");
        break;
    default:
        break;
    }
    if (j->place == QUEUE_ACTIVE && j->life.state != QUEUE_CREATED) {
        coord_go_on(c, j);
    }
}

void coord_recover(struct coord *c)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->q->active_count;) {
        uint32_t before = c->q->active_count;
        recover_job(c, c->q->order[i]);
        i += c->q->active_count >= before; /* it may have gone to history, or woken another */
        if (count++ > 2 * before + 16) {
            break;
        }
    }
    for (uint32_t i = 0; i < c->q->past_count; i++) {
        const struct queue_job *j = c->q->past[i];
        const char *key = queue_param_get(&j->params, coord_key_param);
        if (key != NULL) {
            coord_key_put(c, key, j->id, j->created_at + COORD_KEY_SEC);
        }
    }
    timer_set(&c->timers, &c->core_timers[CORE_SAVE], c->now.mono_ms + COORD_SAVE_MS);
    timer_set(&c->timers, &c->core_timers[CORE_SWEEP], c->now.mono_ms + COORD_SWEEP_MS);
    uint64_t rate = c->limits.rate;
    struct coord_limits limits = c->limits;
    coord_limits_set(c, &limits);
    coord_rate_set(c, rate);
    for (unsigned i = 0; i < c->server_count; i++) {
        coord_emit(c, &(struct coord_effect){.type = COORD_FX_SERVER,
                                             .server = {.id = c->servers[i]->conf.id,
                                                        .state = COORD_SERVER_UP,
                                                        .connections = c->servers[i]->connections,
                                                        .why = ""}});
    }
}
