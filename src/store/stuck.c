#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "store/internal.h"

static const struct {
    int64_t after_ms;
    const char *words;
} thresholds[] = {
    [STORE_STUCK_NOT] = {INT64_MAX, ""},
    [STORE_STUCK_CREATED] = {10 * 60000, "was made 10 min ago and is not queued yet"},
    [STORE_STUCK_QUEUED] = {60 * 60000, "has been queued for 1 h"},
    [STORE_STUCK_DOWNLOADING] = {24 * 60 * 60000, "has been downloading for 24 h"},
    [STORE_STUCK_NO_BYTE] = {15 * 60000, "got no byte for 15 min while a server is up"},
    [STORE_STUCK_PROCESSING] = {10 * 60000, "post-processing made no progress for 10 min"},
    [STORE_STUCK_NO_TASKS] = {60 * 60000, "was completed 1 h ago and has no import tasks"},
    [STORE_STUCK_IMPORT] = {15 * 60000, "an import made no progress for 15 min"},
    [STORE_STUCK_IMPORTED] = {24 * 60 * 60000, "was imported 24 h ago and is not cleaned up"},
};

int64_t store_stuck_after_ms(enum store_stuck_why why)
{
    PRE((int)why >= 0 && why <= STORE_STUCK_IMPORTED);
    return thresholds[why].after_ms;
}

const char *store_stuck_words(enum store_stuck_why why)
{
    PRE((int)why >= 0 && why <= STORE_STUCK_IMPORTED);
    return thresholds[why].words;
}

/* The task without a sign of life for longest, of those that a worker has, counts for a job with imports. */
#define STUCK                                                                                     \
    "SELECT j.id, j.state, j.last_transition_at, j.held_since, j.held_ms, j.progress_at, j.name," \
    " CASE WHEN j.state IN ('completed','imported') THEN"                                         \
    "  (SELECT count(*) FROM import_task t WHERE t.job = j.id) ELSE 0 END,"                       \
    " t.id, t.progress_at FROM job j LEFT JOIN import_task t ON t.id ="                           \
    " (SELECT u.id FROM import_task u WHERE u.job = j.id AND u.state = 'in_progress'"             \
    "  AND u.next_run_at = 0 AND j.state IN ('completed','imported')"                             \
    "  ORDER BY u.progress_at, u.id LIMIT 1)"

struct standing {
    enum store_state state;
    int64_t here_ms, silent_ms, task_silent_ms; /* each without held time */
    bool has_tasks, has_task;
};

static enum store_stuck_why judge(const struct standing *w, bool server_up, int64_t *for_ms)
{
    enum store_stuck_why why = STORE_STUCK_NOT;
    *for_ms = w->here_ms;
    switch (w->state) {
    case STORE_CREATED:
        why = STORE_STUCK_CREATED;
        break;
    case STORE_QUEUED:
        why = STORE_STUCK_QUEUED;
        break;
    case STORE_DOWNLOADING:
        why = STORE_STUCK_DOWNLOADING;
        if (server_up && w->silent_ms >= thresholds[STORE_STUCK_NO_BYTE].after_ms) {
            why = STORE_STUCK_NO_BYTE;
            *for_ms = w->silent_ms;
        }
        break;
    case STORE_PROCESSING:
        why = STORE_STUCK_PROCESSING;
        *for_ms = w->silent_ms;
        break;
    case STORE_COMPLETED:
    case STORE_IMPORTED:
        if (w->has_task) {
            why = STORE_STUCK_IMPORT;
            *for_ms = w->task_silent_ms;
        } else if (w->state == STORE_IMPORTED) {
            why = STORE_STUCK_IMPORTED;
        } else if (!w->has_tasks) {
            why = STORE_STUCK_NO_TASKS;
        }
        break;
    default:
        break;
    }
    return *for_ms >= thresholds[why].after_ms ? why : STORE_STUCK_NOT;
}

static int64_t elapsed(int64_t since, int64_t until)
{
    return until > since ? until - since : 0; /* the clock was set back */
}

/* One row of STUCK. why is NOT when it is not stuck. */
static int look(sqlite3_stmt *st, bool server_up, struct clock_time now, struct store_mem **mem,
                struct store_stuck *out, struct err *e)
{
    struct standing w = {0};
    int rv = state_parse(db_col_text(st, 1), &w.state, e);
    if (rv != 0) {
        return rv;
    }
    int64_t held_since = sqlite3_column_int64(st, 3);
    int64_t until = held_since > 0 ? held_since : now.wall_ms; /* time stands still under a hold */
    w.here_ms = elapsed(sqlite3_column_int64(st, 2) + sqlite3_column_int64(st, 4), until);
    w.silent_ms = elapsed(sqlite3_column_int64(st, 5), until);
    w.has_tasks = sqlite3_column_int64(st, 7) > 0;
    w.has_task = sqlite3_column_type(st, 8) != SQLITE_NULL;
    w.task_silent_ms = elapsed(sqlite3_column_int64(st, 9), until);
    *out = (struct store_stuck){.job = col_u32(st, 0), .state = w.state, .name = ""};
    out->why = judge(&w, server_up, &out->for_ms);
    out->task = out->why == STORE_STUCK_IMPORT ? sqlite3_column_int64(st, 8) : 0;
    if (out->why != STORE_STUCK_NOT && mem != NULL &&
        store_mem_text(mem, db_col_text(st, 6), &out->name) != 0) {
        return err_sys(e, -ENOMEM, "database: read");
    }
    return 0;
}

int job_stuck(struct store *s, uint32_t job, bool server_up, struct clock_time now,
              struct store_stuck *out, struct err *e)
{
    sqlite3_stmt *st;
    *out = (struct store_stuck){0};
    int rv = db_first(&s->db, e, STUCK " WHERE j.id = ?1", DB_ARGS(I(job)), &st);
    if (rv == 1) {
        rv = look(st, server_up, now, NULL, out, e);
        db_end(st);
    }
    return rv;
}

int store_job_stuck(struct store *s, bool server_up, struct clock_time now,
                    const struct store_range *range, struct store_page *page, struct err *e)
{
    *page = (struct store_page){0};
    unsigned limit = page_limit(range), seen = 0;
    struct store_stuck *rows = mem_zalloc(limit, sizeof(*rows));
    if (rows == NULL) {
        return err_sys(e, -ENOMEM, "database: read");
    }
    page->rows = rows;
    sqlite3_stmt *st;
    int rv = db_first(&s->db, e,
                      STUCK " WHERE j.id > ?1 AND j.state NOT IN ('cleaned','failed','cancelled')"
                            " ORDER BY j.id LIMIT ?2",
                      DB_ARGS(I(range != NULL ? range->after.a : 0), I(limit)), &st);
    while (rv == 1) {
        seen++;
        page->next.a = sqlite3_column_int64(st, 0);
        int bad = look(st, server_up, now, &page->mem, &rows[page->count], e);
        if (bad != 0) {
            db_end(st);
            rv = bad;
            break;
        }
        page->count += rows[page->count].why != STORE_STUCK_NOT;
        rv = db_next(&s->db, e, st);
    }
    page->more = seen == limit;
    if (rv != 0) {
        store_page_free(page);
    }
    return rv;
}
