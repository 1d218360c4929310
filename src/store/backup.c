/* backup.c - the previous generation, and what can be read of a damaged file. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "store/internal.h"

#define PREV_NAME "weir.db.prev"

/* ---- copies ---- */

static int copy_begin(struct store *s, struct db *from, const char *name, struct err *e)
{
    char path[PATH_MAX];
    int rv = fsx_begin(&s->backup.w, s->fs, s->dirfd, name, e);
    if (rv != 0) {
        return rv;
    }
    rv = store_path(s, s->backup.w.tmp, path, sizeof(path), e);
    if (rv == 0) {
        rv = db_open(&s->backup.to, path, DB_READ_WRITE, e);
    }
    if (rv != 0) {
        fsx_abort(&s->backup.w);
        return rv;
    }
    /* No journal beside it: whatever happens to an unfinished copy, it is thrown away. */
    rv = db_script(&s->backup.to, e, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;");
    if (rv == 0) {
        s->backup.b = sqlite3_backup_init(s->backup.to.h, "main", from->h, "main");
        rv = s->backup.b != NULL ? 0 : db_error(&s->backup.to, e, "copy");
    }
    if (rv != 0) {
        db_close(&s->backup.to, NULL);
        fsx_abort(&s->backup.w);
    }
    return rv;
}

void backup_abort(struct store *s)
{
    if (s->backup.b != NULL) {
        sqlite3_backup_finish(s->backup.b);
        s->backup.b = NULL;
        db_close(&s->backup.to, NULL);
        fsx_abort(&s->backup.w);
    }
}

/* 1: there is more; 0: it is in place; or an error, and then it is given up. */
static int copy_step(struct store *s, int pages, struct err *e)
{
    int rc = sqlite3_backup_step(s->backup.b, pages);
    if (rc == SQLITE_OK || rc == SQLITE_BUSY || rc == SQLITE_LOCKED) {
        return 1;
    }
    if (rc != SQLITE_DONE) {
        sqlite3_backup_finish(s->backup.b); /* leaves the error at the connection */
        s->backup.b = NULL;
        int rv = db_error(&s->backup.to, e, "copy");
        db_close(&s->backup.to, NULL);
        fsx_abort(&s->backup.w);
        return rv;
    }
    int rv =
        sqlite3_backup_finish(s->backup.b) == SQLITE_OK ? 0 : db_error(&s->backup.to, e, "copy");
    s->backup.b = NULL;
    if (rv == 0) { /* the copied header says WAL; one file alone is to be enough */
        rv = db_script(&s->backup.to, e, "PRAGMA journal_mode = DELETE;");
    }
    int closed = db_close(&s->backup.to, rv == 0 ? e : NULL);
    rv = rv != 0 ? rv : closed;
    if (rv != 0) {
        fsx_abort(&s->backup.w);
        return rv;
    }
    return fsx_commit(&s->backup.w, NULL, e);
}

int backup_copy(struct store *s, const char *from, const char *to, struct err *e)
{
    struct db db;
    char path[PATH_MAX];
    int rv = store_path(s, from, path, sizeof(path), e);
    if (rv == 0) {
        rv = db_open(&db, path, DB_READ_ONLY, e);
    }
    if (rv != 0) {
        return rv;
    }
    rv = copy_begin(s, &db, to, e);
    if (rv == 0) {
        do {
            rv = copy_step(s, 1000, e);
        } while (rv == 1);
    }
    db_close(&db, NULL);
    return rv == 0 ? 0 : err_wrap(e, rv, "%s as %s", from, to);
}

int backup_all(struct store *s, struct clock_time now, struct err *e)
{
    bool done = false;
    int rv = 0;
    while (rv == 0 && !done) {
        rv = store_backup_step(s, 1000, now, &done, e);
    }
    return rv;
}

int store_backup_step(struct store *s, int pages, struct clock_time now, bool *done, struct err *e)
{
    PRE(s->db.depth == 0);
    *done = false;
    int rv = s->backup.b == NULL ? copy_begin(s, &s->db, PREV_NAME, e) : 0;
    if (rv == 0) {
        rv = copy_step(s, pages, e);
        *done = rv == 0;
        rv = rv == 1 ? 0 : rv;
    }
    if (rv == 0 && *done) {
        s->backup_at = now.wall_ms;
        rv = meta_set(&s->db, "backup_at", now.wall_ms, e);
    }
    return rv == 0 ? 0 : err_wrap(e, rv, PREV_NAME);
}

int64_t store_backup_at(const struct store *s)
{
    return s->backup_at;
}

/* ---- reading what is damaged ----
 *
 * Row by row, first forwards until the damage, then backwards up to it. The tables are STRICT and have checks, so that
 * what was read as nonsense is not taken; which nonsense passes for a row cannot be known, and the report says how
 * many rows came this way. A row that is here already stays unless the other one is newer. */
struct salvage_table {
    const char *forwards, *backwards;
    const char *
        newer; /* says no row when ours is as new; ?1 key, ?2 its age; NULL: theirs replaces ours */
    int key, age; /* columns */
    const char *insert;
    int columns;
};

#define Q10 "?,?,?,?,?,?,?,?,?,?"
static const struct salvage_table salvage_tables[] = {
    {"SELECT * FROM job ORDER BY id", "SELECT * FROM job ORDER BY id DESC",
     "SELECT 1 FROM job WHERE id = ?1 AND row_version >= ?2", 0, 2,
     "INSERT OR REPLACE INTO job VALUES (" Q10 "," Q10 "," Q10 ",?,?,?,?,?,?,?,?)", 38},
    {"SELECT * FROM import_task ORDER BY id", "SELECT * FROM import_task ORDER BY id DESC",
     "SELECT 1 FROM import_task WHERE id = ?1 AND updated_at >= ?2", 0, 13,
     "INSERT OR REPLACE INTO import_task VALUES (" Q10 "," Q10 ")", 20},
    {"SELECT * FROM stage ORDER BY job, name", "SELECT * FROM stage ORDER BY job DESC, name DESC",
     NULL, 0, 0, "INSERT OR REPLACE INTO stage VALUES (" Q10 ",?,?,?)", 13},
    {"SELECT * FROM history ORDER BY job", "SELECT * FROM history ORDER BY job DESC", NULL, 0, 0,
     "INSERT OR REPLACE INTO history VALUES (" Q10 "," Q10 "," Q10 "," Q10 ",?,?,?,?)", 44},
    {"SELECT * FROM event ORDER BY seq", "SELECT * FROM event ORDER BY seq DESC",
     "SELECT 1 FROM event WHERE seq = ?1 AND ?2 = ?2", 0, 0,
     "INSERT OR IGNORE INTO event VALUES (" Q10 ",?,?,?,?,?)", 15},
    {"SELECT * FROM idem ORDER BY key", "SELECT * FROM idem ORDER BY key DESC", NULL, 0, 0,
     "INSERT OR REPLACE INTO idem VALUES (?,?,?)", 3},
    {"SELECT * FROM volume ORDER BY server, day",
     "SELECT * FROM volume ORDER BY server DESC, day DESC", NULL, 0, 0,
     "INSERT OR REPLACE INTO volume VALUES (?,?,?,?,?)", 5},
    {"SELECT * FROM counter ORDER BY server", "SELECT * FROM counter ORDER BY server DESC", NULL, 0,
     0, "INSERT OR REPLACE INTO counter VALUES (?,?,?,?,?,?)", 6},
};

static int salvage_row(struct store *s, const struct salvage_table *t, sqlite3_stmt *from,
                       sqlite3_stmt *into, int64_t *rows, struct err *e)
{
    int64_t have = 0;
    if (t->newer != NULL) {
        int rv = db_number(
            &s->db, e, t->newer,
            DB_ARGS(I(sqlite3_column_int64(from, t->key)), I(sqlite3_column_int64(from, t->age))),
            0, &have);
        if (rv != 0 || have != 0) {
            return rv;
        }
    }
    for (int c = 0; c < t->columns; c++) {
        sqlite3_bind_value(into, c + 1, sqlite3_column_value(from, c));
    }
    int rc = sqlite3_step(into);
    int rv = 0;
    if (rc == SQLITE_DONE) {
        *rows += sqlite3_changes(s->db.h);
    } else if ((rc & 0xff) != SQLITE_CONSTRAINT && (rc & 0xff) != SQLITE_MISMATCH) {
        rv = db_error(&s->db, e, "salvage"); /* our own side: the disk is full */
    }
    sqlite3_reset(into);
    sqlite3_clear_bindings(into);
    return rv;
}

static int salvage_walk(struct store *s, struct db *bad, const struct salvage_table *t,
                        const char *sql, sqlite3_stmt *into, bool *damaged, int64_t *rows,
                        struct err *e)
{
    sqlite3_stmt *from = NULL;
    *damaged = false;
    if (sqlite3_prepare_v2(bad->h, sql, -1, &from, NULL) != SQLITE_OK ||
        sqlite3_column_count(from) != t->columns) {
        sqlite3_finalize(from);
        return 0; /* the table is not there, or not as we know it */
    }
    int rv = 0, rc;
    while (rv == 0 && (rc = sqlite3_step(from)) == SQLITE_ROW) {
        rv = salvage_row(s, t, from, into, rows, e);
    }
    *damaged = rv == 0 && rc != SQLITE_DONE;
    sqlite3_finalize(from);
    return rv;
}

static int salvage_one(struct store *s, struct db *bad, const struct salvage_table *t,
                       int64_t *rows, struct err *e)
{
    sqlite3_stmt *into = NULL;
    if (sqlite3_prepare_v2(s->db.h, t->insert, -1, &into, NULL) != SQLITE_OK) {
        return db_error(&s->db, e, "salvage");
    }
    bool damaged = false;
    int rv = salvage_walk(s, bad, t, t->forwards, into, &damaged, rows, e);
    if (rv == 0 && damaged) {
        rv = salvage_walk(s, bad, t, t->backwards, into, &damaged, rows, e);
    }
    sqlite3_finalize(into);
    return rv;
}

int salvage(struct store *s, const char *name, int64_t *rows, struct err *e)
{
    struct db bad;
    char path[PATH_MAX];
    int rv = store_path(s, name, path, sizeof(path), e);
    if (rv != 0 || db_open(&bad, path, DB_READ_WRITE, NULL) != 0) {
        return rv;
    }
    /* It is evidence: read, never written, also not by tidying up its log. */
    sqlite3_db_config(bad.h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    db_script(&bad, NULL, "PRAGMA query_only = ON;");
    rv = db_begin(&s->db, e);
    if (rv == 0) {
        size_t count = sizeof(salvage_tables) / sizeof(salvage_tables[0]);
        for (size_t i = 0; rv == 0 && i < count; i++) {
            rv = salvage_one(s, &bad, &salvage_tables[i], rows, e);
        }
        rv = db_finish(&s->db, rv, e);
    }
    db_close(&bad, NULL);
    return rv;
}
