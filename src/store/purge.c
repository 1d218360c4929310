#include "store/internal.h"

enum { DAY_MS = 24 * 3600 * 1000 };

static int64_t before(struct clock_time now, unsigned days)
{
    return days == 0 ? INT64_MIN : now.wall_ms - (int64_t)days * DAY_MS;
}

/* One DELETE of at most `rows`; ?1 is the time, ?2 the bound. */
static int sweep(struct store *s, const char *sql, int64_t until, unsigned rows, int64_t *removed,
                 bool *more, struct err *e)
{
    int rv = db_exec(&s->db, e, sql, DB_ARGS(I(until), I(rows)));
    if (rv == 0) {
        *removed = db_changes(&s->db);
        *more = *more || *removed >= rows;
    }
    return rv;
}

#define ENDED "('cleaned','failed','cancelled')"

static int purge(struct store *s, const struct store_keep *keep, unsigned rows,
                 struct clock_time now, struct store_purged *out, struct err *e)
{
    int rv = sweep(s,
                   "DELETE FROM history WHERE job IN (SELECT h.job FROM history h"
                   " JOIN job j ON j.id = h.job AND j.state IN " ENDED
                   " WHERE h.at < ?1 ORDER BY h.at LIMIT ?2)",
                   before(now, keep->history_days), rows, &out->history, &out->more, e);
    /* All tasks of a job together: a chain is not cut. */
    rv = rv != 0 ? rv
                 : sweep(s,
                         "DELETE FROM import_task WHERE job IN (SELECT t.job FROM import_task t"
                         " JOIN job j ON j.id = t.job AND j.state IN " ENDED
                         " GROUP BY t.job HAVING max(t.updated_at) < ?1 AND"
                         " sum(t.state IN ('pending','in_progress')) = 0 LIMIT max(1, ?2 / 100))",
                         before(now, keep->task_days), rows, &out->tasks, &out->more, e);
    rv = rv != 0 ? rv : meta_set(&s->db, "purging", 1, e);
    rv = rv != 0 ? rv
                 : sweep(s,
                         "DELETE FROM event WHERE seq IN (SELECT seq FROM event v WHERE at < ?1"
                         " AND NOT EXISTS (SELECT 1 FROM job j WHERE j.id = v.job AND"
                         " j.state NOT IN " ENDED ") ORDER BY at LIMIT ?2)",
                         before(now, keep->event_days), rows, &out->events, &out->more, e);
    rv = rv != 0 ? rv : db_exec(&s->db, e, "DELETE FROM meta WHERE key = 'purging'", DB_NO_ARGS);
    rv = rv != 0 ? rv
                 : sweep(s,
                         "DELETE FROM idem WHERE key IN (SELECT key FROM idem WHERE at < ?1"
                         " ORDER BY at LIMIT ?2)",
                         now.wall_ms - STORE_IDEM_MS, rows, &out->keys, &out->more, e);
    /* A number is not given out again because its row is gone. */
    rv = rv != 0 ? rv
                 : db_exec(&s->db, e,
                           "INSERT OR REPLACE INTO meta SELECT 'last_job_id', max(coalesce("
                           "(SELECT max(id) FROM job), 0), coalesce((SELECT value FROM meta"
                           " WHERE key = 'last_job_id'), 0))",
                           DB_NO_ARGS);
    return rv != 0 ? rv
                   : sweep(s,
                           "DELETE FROM job WHERE id IN (SELECT id FROM job j WHERE ?1 = ?1"
                           " AND state IN " ENDED
                           " AND NOT EXISTS (SELECT 1 FROM history h WHERE h.job = j.id)"
                           " AND NOT EXISTS (SELECT 1 FROM import_task t WHERE t.job = j.id)"
                           " AND NOT EXISTS (SELECT 1 FROM event v WHERE v.job = j.id)"
                           " ORDER BY id LIMIT ?2)",
                           0, rows, &out->jobs, &out->more, e);
}

int store_purge(struct store *s, const struct store_keep *keep, unsigned rows,
                struct clock_time now, struct store_purged *out, struct err *e)
{
    struct store_purged own;
    out = out != NULL ? out : &own;
    *out = (struct store_purged){0};
    int rv = db_begin(&s->db, e);
    rv = rv != 0 ? rv : db_finish(&s->db, purge(s, keep, rows > 0 ? rows : 1, now, out, e), e);
    if (rv != 0) {
        *out = (struct store_purged){0};
    }
    return rv;
}
