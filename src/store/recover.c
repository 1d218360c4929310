/* recover.c - after a crash: what was in progress has nobody working on it any more.
 *
 *   job downloading     -> queued, attempt + 1; failed when its attempts are used up. A job that got articles since it
 *                       began to download starts its count again: three power cuts are no fault of the job, a job that
 *                       brings the program down each time it is touched is.
 *   job processing      stays: it goes on at the stage that was interrupted
 *   stage running       -> interrupted; its attempt is spent
 *   import in_progress  -> pending when a worker had it; failed when its attempts are used up. One that waits for its
 *                       next attempt goes on waiting. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "store/internal.h"

static int recover_job(struct store *s, uint32_t job, struct clock_time now,
                       struct store_report *report, struct err *e)
{
    struct job_at at;
    int rv = job_at(s, job, &at, e);
    if (rv != 0) {
        return rv;
    }
    bool give_up = !at.progressed && at.attempt >= STORE_JOB_ATTEMPTS;
    struct store_move m = {.job = job,
                           .to = give_up ? STORE_FAILED : STORE_QUEUED,
                           .code = give_up ? "attempts_exhausted" : NULL,
                           .category = give_up ? STORE_PERMANENT : STORE_NO_ERROR,
                           .reason =
                               give_up ? "interrupted too often without getting anywhere" : NULL};
    uint32_t attempt = give_up ? at.attempt : at.progressed ? 1 : at.attempt + 1;
    report->jobs_failed += give_up;
    report->jobs_recovered += !give_up;
    return job_move_row(s, &m, &at, STORE_EV_RECOVERED, attempt, now, NULL, e);
}

static int recover_jobs(struct store *s, struct clock_time now, struct store_report *report,
                        struct err *e)
{
    int64_t job = 0;
    for (;;) {
        int rv =
            db_number(&s->db, e, "SELECT min(id) FROM job WHERE state = 'downloading' AND id > ?1",
                      DB_ARGS(I(job)), 0, &job);
        if (rv != 0 || job == 0) {
            return rv;
        }
        rv = recover_job(s, (uint32_t)job, now, report, e);
        if (rv != 0) {
            return rv;
        }
    }
}

static int recover_tasks(struct store *s, struct clock_time now, struct store_report *report,
                         struct err *e)
{
    for (;;) {
        sqlite3_stmt *st;
        int rv = db_first(&s->db, e,
                          "SELECT id, job, attempt FROM import_task WHERE state = 'in_progress'"
                          " AND next_run_at = 0 ORDER BY id LIMIT 1",
                          DB_NO_ARGS, &st);
        if (rv != 1) {
            return rv;
        }
        int64_t task = sqlite3_column_int64(st, 0);
        uint32_t job = col_u32(st, 1), attempt = col_u32(st, 2);
        db_end(st);
        bool give_up = attempt >= STORE_IMPORT_ATTEMPTS;
        struct store_event about = {.kind = STORE_EV_RECOVERED,
                                    .attempt = attempt,
                                    .code = "interrupted",
                                    .category = give_up ? STORE_PERMANENT : STORE_TRANSIENT};
        rv = import_move(s, task, job, STORE_TASK_IN_PROGRESS,
                         give_up ? STORE_TASK_FAILED : STORE_TASK_PENDING, &about, now, e);
        if (rv != 0) {
            return rv;
        }
        report->tasks_failed += give_up;
        report->tasks_recovered += !give_up;
    }
}

static int recover_stages(struct store *s, struct clock_time now, struct store_report *report,
                          struct err *e)
{
    for (;;) {
        char name[40];
        sqlite3_stmt *st;
        int rv = db_first(&s->db, e,
                          "SELECT job, name, attempt, run FROM stage WHERE state = 'running'"
                          " LIMIT 1",
                          DB_NO_ARGS, &st);
        if (rv != 1) {
            return rv;
        }
        struct store_event ev = {.kind = STORE_EV_RECOVERED,
                                 .job = col_u32(st, 0),
                                 .stage = name,
                                 .from = store_stage_state_name(STORE_STAGE_RUNNING),
                                 .to = store_stage_state_name(STORE_STAGE_INTERRUPTED),
                                 .attempt = col_u32(st, 2),
                                 .value = sqlite3_column_int64(st, 3)};
        snprintf(name, sizeof(name), "%s", db_col_text(st, 1));
        db_end(st);
        rv = db_exec(&s->db, e,
                     "UPDATE stage SET state = 'interrupted', ended_at = ?3"
                     " WHERE job = ?1 AND name = ?2",
                     DB_ARGS(I(ev.job), T(name), I(now.wall_ms)));
        rv = rv != 0 ? rv : event_put(s, &ev, now, NULL, e);
        if (rv != 0) {
            return rv;
        }
        report->stages_recovered++;
    }
}

int recover(struct store *s, struct clock_time now, struct store_report *report, struct err *e)
{
    int rv = recover_jobs(s, now, report, e);
    rv = rv != 0 ? rv : recover_stages(s, now, report, e);
    rv = rv != 0 ? rv : recover_tasks(s, now, report, e);
    if (rv == 0 && (report->jobs_recovered > 0 || report->jobs_failed > 0 ||
                    report->tasks_recovered > 0 || report->stages_recovered > 0)) {
        log_warning("after a crash: %u jobs queued again, %u failed; %u stages and %u imports will "
                    "be done again",
                    report->jobs_recovered, report->jobs_failed, report->stages_recovered,
                    report->tasks_recovered);
    }
    return rv;
}
