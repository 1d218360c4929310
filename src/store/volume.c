#include "store/volume.h"

#include <inttypes.h>

#include "store/internal.h"

static int add_one(struct store *s, uint32_t server, const struct store_volume *v,
                   struct clock_time now, struct err *e)
{
    /* Sums stop at the largest number instead of wrapping. */
    int rv = db_exec(
        &s->db, e,
        "INSERT INTO volume VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET"
        " bytes = iif(bytes > 9223372036854775807 - ?3, 9223372036854775807,"
        "  bytes + ?3), done = done + ?4, failed = failed + ?5",
        DB_ARGS(I(server), I(v->day), U(v->bytes), U(v->articles_done), U(v->articles_failed)));
    return rv != 0 ? rv
                   : db_exec(&s->db, e,
                             "INSERT INTO counter VALUES (?1, ?2, ?2, ?3, ?3, ?3)"
                             " ON CONFLICT DO UPDATE SET data_at = ?3,"
                             " total = iif(total > 9223372036854775807 - ?2, 9223372036854775807,"
                             "  total + ?2),"
                             " custom = iif(custom > 9223372036854775807 - ?2,"
                             "  9223372036854775807, custom + ?2)",
                             DB_ARGS(I(server), U(v->bytes), I(now.wall_ms)));
}

int store_volume_add(struct store *s, const struct store_volume *v, struct clock_time now,
                     struct err *e)
{
    if (v->server == 0 || v->articles_done > UINT32_MAX || v->articles_failed > UINT32_MAX) {
        return err_set(e, ERR_INVALID, "server %" PRIu32 ": not a volume", v->server);
    }
    int rv = db_begin(&s->db, e);
    if (rv != 0) {
        return rv;
    }
    rv = add_one(s, v->server, v, now, e);
    rv = rv != 0 ? rv : add_one(s, 0, v, now, e);
    return db_finish(&s->db, rv, e);
}

static int volume_read(struct store_mem **mem, sqlite3_stmt *st, void *row, void *arg,
                       struct err *e)
{
    (void)mem;
    (void)arg;
    (void)e;
    *(struct store_volume *)row = (struct store_volume){
        col_u32(st, 0), col_u32(st, 1), col_u64(st, 2), col_u64(st, 3), col_u64(st, 4)};
    return 0;
}

/* Day 0 is a day: the cursor is one further. */
static struct store_cursor volume_cursor(const void *row)
{
    return (struct store_cursor){(int64_t)((const struct store_volume *)row)->day + 1, 0};
}

int store_volume_days(struct store *s, uint32_t server, uint32_t from_day,
                      const struct store_range *range, struct store_page *page, struct err *e)
{
    static const struct page_type type = {sizeof(struct store_volume), volume_read, volume_cursor,
                                          NULL};
    unsigned limit = page_limit(range);
    int64_t from = range != NULL && range->after.a > from_day ? range->after.a : from_day;
    return page_read(s, page,
                     "SELECT * FROM volume WHERE server = ?1 AND day >= ?2 ORDER BY day LIMIT ?3",
                     DB_ARGS(I(server), I(from), I(limit + 1)), limit, &type, e);
}

static int counter_read(struct store_mem **mem, sqlite3_stmt *st, void *row, void *arg,
                        struct err *e)
{
    (void)mem;
    (void)arg;
    (void)e;
    *(struct store_counter *)row = (struct store_counter){
        .server = col_u32(st, 0),
        .total_bytes = col_u64(st, 1),
        .custom_bytes = col_u64(st, 2),
        .custom_at = sqlite3_column_int64(st, 3),
        .reset_at = sqlite3_column_int64(st, 4),
        .data_at = sqlite3_column_int64(st, 5),
        .first_day = col_u32(st, 6),
    };
    return 0;
}

int store_volume_counters(struct store *s, struct store_page *page, struct err *e)
{
    static const struct page_type type = {sizeof(struct store_counter), counter_read, NULL, NULL};
    return page_read(s, page,
                     "SELECT c.*, (SELECT min(day) FROM volume v WHERE v.server = c.server)"
                     " FROM counter c ORDER BY server LIMIT ?1",
                     DB_ARGS(I(STORE_PAGE_MAX)), STORE_PAGE_MAX, &type, e);
}

int store_volume_reset(struct store *s, int32_t server, bool custom, struct clock_time now,
                       struct err *e)
{
    int rv = db_begin(&s->db, e);
    if (rv != 0) {
        return rv;
    }
    if (!custom) {
        rv = db_exec(&s->db, e, "DELETE FROM volume WHERE ?1 = -1 OR server = ?1",
                     DB_ARGS(I(server)));
    }
    rv = rv != 0 ? rv
                 : db_exec(&s->db, e,
                           "UPDATE counter SET custom = 0, custom_at = ?2,"
                           " total = iif(?3, total, 0), reset_at = iif(?3, reset_at, ?2)"
                           " WHERE ?1 = -1 OR server = ?1",
                           DB_ARGS(I(server), I(now.wall_ms), I(custom)));
    if (rv == 0 && db_changes(&s->db) == 0 && server >= 0) {
        rv = err_set(e, ERR_NOT_FOUND, "no volumes of server %" PRId32, server);
    }
    return db_finish(&s->db, rv, e);
}
