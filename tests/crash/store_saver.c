/* store_saver - drives jobs through weir.db for ever; the program that powercut.sh and kill.sh cut off.
 *
 *     store_saver save DIR                a line "job state seq" for each transition that was acknowledged
 *     store_saver check DIR < LAST-LINE   0: that transition is there, and rows and events agree everywhere
 *     store_saver full DIR                until the disk is full; removes DIR/ballast; goes on
 *
 * --without sync plants a bug: commits are not synced. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "queue/queue.h"
#include "store/history.h"
#include "store/internal.h"

static bool without_sync;

static struct clock_time now(void)
{
    return clock_now(&clock_system);
}

static int open_store(const char *dir, struct store **s, struct store_report *r, struct err *e)
{
    struct store_options o = {
        .dir = dir, .fs = &fsx_kernel, .job_type = &queue_job_type, .now = now()};
    int rv = store_open(s, &o, r, e);
    if (rv == 0 && without_sync) {
        rv = db_script(&(*s)->db, e, "PRAGMA synchronous = OFF");
    }
    return rv;
}

/* ---- save ---- */

static void acknowledge(uint32_t job, enum store_state state, int64_t seq)
{
    printf("%" PRIu32 " %s %" PRId64 "\n", job, store_state_name(state), seq);
    fflush(stdout);
}

static int step(struct store *s, uint32_t job, enum store_state to, struct err *e)
{
    struct store_move m = {.job = job, .to = to, .reason = "a step on the way"};
    struct store_moved moved;
    int rv = store_job_move(s, &m, now(), &moved, e);
    if (rv == 0) {
        acknowledge(job, to, moved.seq);
    }
    return rv;
}

static int import_files(struct store *s, uint32_t job, struct err *e)
{
    static const struct store_task_new files[3] = {{.source = "/a", .method = STORE_COPY},
                                                   {.source = "/b", .method = STORE_COPY},
                                                   {.source = "/c", .method = STORE_COPY}};
    struct store_page page = {0};
    int rv = store_import_spawn(s, job, files, 3, now(), NULL, e);
    while (rv == 0) {
        rv = store_import_claim(s, 2, now(), &page, e);
        if (rv != 0 || page.count == 0) {
            break;
        }
        const struct store_task *t = page.rows;
        for (unsigned i = 0; rv == 0 && i < page.count; i++) {
            struct store_task_end end = {.task = t[i].id, .attempt = t[i].attempt, .ok = true};
            rv = store_import_end(s, &end, now(), NULL, e);
        }
        store_page_free(&page);
    }
    store_page_free(&page);
    return rv;
}

static int one_life(struct store *s, uint32_t job, struct err *e)
{
    static const enum store_state way[] = {STORE_QUEUED, STORE_DOWNLOADING, STORE_PROCESSING,
                                           STORE_COMPLETED};
    struct store_job_made made;
    struct store_job_new n = {.id = job, .name = "a job", .source = "a.nzb"};
    int rv = store_job_add(s, &n, now(), &made, e);
    for (int i = 0; rv == 0 && i < 4; i++) {
        rv = step(s, job, way[i], e);
    }
    rv = rv != 0 ? rv : import_files(s, job, e);
    rv = rv != 0 ? rv : step(s, job, STORE_IMPORTED, e);
    rv = rv != 0 ? rv : step(s, job, STORE_CLEANED, e);
    struct store_history h = {.job = job, .at = now().wall_ms, .name = "a job"};
    return rv != 0 ? rv : store_history_put(s, &h, e);
}

static int save(const char *dir)
{
    struct store *s;
    struct err e = {0};
    uint32_t job = 0;
    int rv = open_store(dir, &s, NULL, &e);
    if (rv != 0) {
        fprintf(stderr, "%s\n", e.msg);
        return 0;
    }
    rv = store_last_job_id(s, &job, &e);
    while (rv == 0) {
        bool done;
        rv = one_life(s, ++job, &e);
        if (rv == 0 && job % 4 == 0) {
            rv = store_backup_step(s, 4, now(), &done, &e);
        }
    }
    fprintf(stderr, "%s\n", e.msg); /* the power is gone */
    return 0;
}

/* ---- check ---- */

enum { JOBS_MAX = 200000 };

static int fail(const char *what, const char *detail)
{
    fprintf(stderr, "store_saver: %s%s%s\n", what, detail[0] != '\0' ? ": " : "", detail);
    return 1;
}

/* Every row is where its events lead; *found: the acknowledged transition is among them. */
static int rows_and_events(struct store *s, uint32_t job, const char *state, int64_t seq,
                           bool *found)
{
    static char at[JOBS_MAX][12];
    static char task_at[3 * JOBS_MAX][12];
    struct err e = {0};
    struct store_page page;
    struct store_range range = {.limit = STORE_PAGE_MAX};
    struct store_event_filter all = {0};
    bool more = true;
    while (more) {
        if (store_event_list(s, &all, &range, &page, &e) != 0) {
            return fail("events", e.msg);
        }
        const struct store_event *ev = page.rows;
        for (unsigned i = 0; i < page.count; i++) {
            if (ev[i].to[0] == '\0' || ev[i].job >= JOBS_MAX || ev[i].task >= 3 * JOBS_MAX) {
                continue;
            }
            char *where = ev[i].task != 0 ? task_at[ev[i].task] : at[ev[i].job];
            if (strcmp(where, ev[i].from) != 0) {
                return fail("an event does not follow the one before", ev[i].from);
            }
            snprintf(where, 12, "%s", ev[i].to);
            *found =
                *found || (ev[i].seq == seq && ev[i].job == job && strcmp(ev[i].to, state) == 0);
        }
        more = page.more;
        range.after = page.next;
        store_page_free(&page);
    }
    range.after = (struct store_cursor){0};
    struct store_job_filter jobs = {0};
    for (more = true; more;) {
        if (store_job_list(s, &jobs, &range, &page, &e) != 0) {
            return fail("jobs", e.msg);
        }
        const struct store_job *j = page.rows;
        for (unsigned i = 0; i < page.count; i++) {
            if (strcmp(at[j[i].id], store_state_name(j[i].state)) != 0) {
                return fail("a job is not where its events lead", at[j[i].id]);
            }
        }
        more = page.more;
        range.after = page.next;
        store_page_free(&page);
    }
    range.after = (struct store_cursor){0};
    struct store_task_filter tasks = {0};
    for (more = true; more;) {
        if (store_import_list(s, &tasks, &range, &page, &e) != 0) {
            return fail("tasks", e.msg);
        }
        const struct store_task *t = page.rows;
        for (unsigned i = 0; i < page.count; i++) {
            if (strcmp(task_at[t[i].id], store_task_state_name(t[i].state)) != 0) {
                return fail("a task is not where its events lead", task_at[t[i].id]);
            }
        }
        more = page.more;
        range.after = page.next;
        store_page_free(&page);
    }
    return 0;
}

static int check(const char *dir)
{
    struct store *s;
    struct store_report report;
    struct err e = {0};
    char line[100] = "", state[32] = "";
    uint32_t job = 0;
    int64_t seq = 0;
    if (fgets(line, sizeof(line), stdin) != NULL) {
        sscanf(line, "%" SCNu32 " %31s %" SCNd64, &job, state, &seq);
    }
    if (open_store(dir, &s, &report, &e) != 0) {
        return fail("open", e.msg);
    }
    bool found = job == 0;
    int rv = report.how == STORE_RESTORED || report.how == STORE_SALVAGED
                 ? fail("the file was taken for damaged", report.why)
                 : 0;
    rv = rv != 0 ? rv : store_check(s, &e) != 0 ? fail("check", e.msg) : 0;
    rv = rv != 0 ? rv : rows_and_events(s, job, state, seq, &found);
    if (rv == 0 && !found) {
        rv = fail("an acknowledged transition is gone", line);
    }
    store_close(s, now(), NULL);
    return rv;
}

/* ---- full ---- */

static int full(const char *dir)
{
    struct store *s;
    struct err e = {0};
    char ballast[4096];
    snprintf(ballast, sizeof(ballast), "%s/ballast", dir);
    if (open_store(dir, &s, NULL, &e) != 0) {
        return fail("open", e.msg);
    }
    uint32_t jobs = 0;
    int rv = 0;
    while (rv == 0 && jobs < JOBS_MAX) {
        rv = one_life(s, ++jobs, &e);
    }
    fprintf(stderr, "after %" PRIu32 " jobs: %s\n", jobs - 1, e.msg);
    if (rv != -ENOSPC) {
        return fail("the disk should be full", err_name(rv));
    }
    int64_t counts[STORE_STATES];
    if (store_job_counts(s, counts, &e) != 0 || counts[STORE_CLEANED] != jobs - 1) {
        return fail("reading while it is full", e.msg);
    }
    if (unlink(ballast) != 0) {
        return fail("ballast", strerror(errno));
    }
    for (uint32_t i = 1; i <= 20; i++) {
        if (one_life(s, jobs + i, &e) != 0) {
            return fail("there is room again", e.msg);
        }
    }
    if (store_check(s, &e) != 0 || store_close(s, now(), &e) != 0) {
        return fail("check", e.msg);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--without") == 0) {
        without_sync = strcmp(argv[2], "sync") == 0;
        argc -= 2;
        argv += 2;
    }
    if (argc != 3) {
        fprintf(stderr, "usage: store_saver [--without sync] save|check|full DIR\n");
        return 2;
    }
    return strcmp(argv[1], "save") == 0    ? save(argv[2])
           : strcmp(argv[1], "check") == 0 ? check(argv[2])
                                           : full(argv[2]);
}
