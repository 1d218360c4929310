/* open.c - opening weir.db, and what happens when it is not what it should be.
 *
 * Good: quick_check passes, the tables are there, the version is known. Bad: anything else that the file itself is to
 * blame for. A disk that cannot be read, a file of a newer Weir or one that somebody locks is neither: opening fails
 * and nothing is touched.
 *
 * A new database is made under a temporary name and renamed when it is complete, so an empty weir.db is always a bad
 * one. A bad file is set aside before its write-ahead log: if the power goes in between, the next start finds a log
 * without a file, and not a file that looks good without its log. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/internal.h"

#define DB_NAME   "weir.db"
#define PREV_NAME "weir.db.prev"
enum { TABLES = 9 };

int store_path(const struct store *s, const char *name, char *path, size_t size, struct err *e)
{
    int n = snprintf(path, size, "%s/%s", s->dir, name);
    return n < 0 || (size_t)n >= size ? err_sys(e, -ENAMETOOLONG, "%s", name) : 0;
}

int meta_get(struct db *db, const char *key, int64_t missing, int64_t *value, struct err *e)
{
    return db_number(db, e, "SELECT value FROM meta WHERE key = ?1", DB_ARGS(T(key)), missing,
                     value);
}

int meta_set(struct db *db, const char *key, int64_t value, struct err *e)
{
    return db_exec(db, e, "INSERT OR REPLACE INTO meta VALUES (?1, ?2)", DB_ARGS(T(key), I(value)));
}

/* ---- is it good? ---- */

/* SQLite's check reports a page that it could not read as one more finding. No memory and a disk that fails are not
 * the file's fault: a good file must not be set aside for them. */
static int finding(const char *text, struct err *e)
{
    const char *number = strstr(text, "error code=");
    int rc = number != NULL ? atoi(number + strlen("error code=")) : 0;
    if ((rc & 0xff) == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM) {
        return err_set(e, -ENOMEM, "check: %.200s", text);
    }
    if ((rc & 0xff) == SQLITE_IOERR && rc != SQLITE_IOERR_SHORT_READ) {
        return err_set(e, -EIO, "check: %.200s", text);
    }
    return err_set(e, ERR_CORRUPT, "%.200s", text);
}

static int check_structure(struct db *db, struct err *e)
{
    sqlite3_stmt *st;
    int rv = db_first(db, e, "PRAGMA quick_check(1)", DB_NO_ARGS, &st);
    if (rv == 1) {
        rv = strcmp(db_col_text(st, 0), "ok") == 0 ? 0 : finding(db_col_text(st, 0), e);
        db_end(st);
    }
    int64_t tables = 0;
    if (rv == 0) {
        rv =
            db_number(db, e,
                      "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('meta',"
                      "'job','idem','event','stage','import_task','history','volume','counter')",
                      DB_NO_ARGS, 0, &tables);
    }
    if (rv == 0 && tables != TABLES) {
        rv = err_set(e, ERR_CORRUPT, "tables are missing");
    }
    return rv;
}

static int check_version(struct db *db, int *version, struct err *e)
{
    int64_t application = 0, v = 0;
    int rv = db_number(db, e, "PRAGMA application_id", DB_NO_ARGS, 0, &application);
    if (rv == 0) {
        rv = db_number(db, e, "PRAGMA user_version", DB_NO_ARGS, 0, &v);
    }
    if (rv == 0 && (application != SCHEMA_APPLICATION || v < 1)) {
        rv = err_set(e, ERR_CORRUPT, "not a database of Weir");
    }
    if (rv == 0 && v > schema_version) {
        rv = err_set(e, ERR_VERSION, "written by a newer Weir (format %" PRId64 ", known is %d)", v,
                     schema_version);
    }
    *version = (int)v;
    return rv;
}

/* Opens `name` and looks whether it can be trusted. GOOD leaves *db open. */
static enum store_found probe_once(struct store *s, const char *name, struct db *db, int *version,
                                   char *why, size_t size, struct err *e)
{
    char path[PATH_MAX];
    struct stat st;
    err_clear(e);
    int fd = fsx_open(s->fs, s->dirfd, name, O_RDONLY | O_NONBLOCK, 0, e);
    if (fd == -ENOENT) {
        return FOUND_NONE;
    }
    int rv = fd < 0 ? fd : s->fs->ops->fstat(s->fs->arg, fd, &st);
    if (fd >= 0) {
        fsx_close(s->fs, fd, NULL);
    }
    if (rv == 0 && !S_ISREG(st.st_mode)) {
        rv = err_set(e, ERR_UNSAFE, "not a regular file");
    }
    if (rv == 0 && st.st_size == 0) {
        rv = err_set(e, ERR_CORRUPT, "it is empty");
    }
    if (rv == 0) {
        rv = store_path(s, name, path, sizeof(path), e);
    }
    if (rv == 0) {
        rv = db_open(db, path, DB_READ_WRITE, e);
        if (rv == 0) {
            rv = check_version(db, version, e);
            if (rv == 0) {
                rv = check_structure(db, e);
            }
            if (rv != 0) {
                sqlite3_db_config(db->h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
                db_close(db, NULL);
            }
        }
    }
    if (rv == 0) {
        return FOUND_GOOD;
    }
    if (rv == ERR_CORRUPT) {
        snprintf(why, size, "%.*s", (int)size - 1, e != NULL ? e->msg : "corrupt");
        return FOUND_BAD;
    }
    err_wrap(e, rv, "%s", name);
    return FOUND_FAILED;
}

/* SQLite tells a read that failed with EIO as damage, too. Only what looks bad twice is bad. */
static enum store_found probe(struct store *s, const char *name, struct db *db, int *version,
                              char *why, size_t size, struct err *e)
{
    enum store_found found = probe_once(s, name, db, version, why, size, e);
    if (found == FOUND_BAD) {
        log_warning("%s looks damaged (%s); looking again", name, why);
        found = probe_once(s, name, db, version, why, size, e);
    }
    if (found == FOUND_GOOD) {
        why[0] = '\0';
    }
    return found;
}

/* ---- making, restoring ---- */

static int make_new(struct store *s, struct err *e)
{
    struct fsx_writer w;
    struct db db;
    char path[PATH_MAX];
    int rv = fsx_begin(&w, s->fs, s->dirfd, DB_NAME, e);
    if (rv != 0) {
        return rv;
    }
    rv = store_path(s, w.tmp, path, sizeof(path), e);
    if (rv == 0) {
        rv = db_open(&db, path, DB_READ_WRITE, e);
    }
    if (rv == 0) {
        rv = db_script(&db, e, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;");
        if (rv == 0) {
            rv = schema_upgrade(&db, schema_steps, 0, schema_version, e);
        }
        int closed = db_close(&db, rv == 0 ? e : NULL);
        rv = rv != 0 ? rv : closed;
    }
    if (rv != 0) {
        fsx_abort(&w);
        return rv;
    }
    return fsx_commit(&w, NULL, e);
}

/* Moves a file with its log and index out of the way. */
static int set_aside(struct store *s, const char *name, struct clock_time now, char *aside,
                     struct err *e)
{
    int rv = fsx_set_aside(s->fs, s->dirfd, name, now.wall_ms / 1000, aside, e);
    for (int i = 0; rv == 0 && i < 2; i++) {
        const char *suffix = i == 0 ? "-wal" : "-shm";
        char from[FSX_NAME_MAX + 1], to[FSX_NAME_MAX + 1];
        snprintf(from, sizeof(from), "%s%s", name, suffix);
        if (snprintf(to, sizeof(to), "%s%s", aside, suffix) > FSX_NAME_MAX) {
            return err_sys(e, -ENAMETOOLONG, "%s", from);
        }
        int moved = s->fs->ops->renameat(s->fs->arg, s->dirfd, from, s->dirfd, to);
        if (moved != 0 && moved != -ENOENT) {
            rv = err_sys(e, moved, "%s: set aside", from);
        }
    }
    return rv == 0 ? fsx_sync_dir(s->fs, s->dirfd, e) : rv;
}

/* A log whose file is gone belongs to a bad file that was set aside just before a crash. It must not meet a new one. */
static int set_log_aside(struct store *s, struct clock_time now, struct err *e)
{
    static const char *const names[] = {DB_NAME "-wal", DB_NAME "-shm"};
    for (int i = 0; i < 2; i++) {
        char aside[FSX_NAME_MAX + 1];
        int fd = fsx_open(s->fs, s->dirfd, names[i], O_RDONLY | O_NONBLOCK, 0, NULL);
        if (fd == -ENOENT) {
            continue;
        }
        if (fd >= 0) {
            fsx_close(s->fs, fd, NULL);
        }
        int rv = fsx_set_aside(s->fs, s->dirfd, names[i], now.wall_ms / 1000, aside, e);
        if (rv != 0) {
            return rv;
        }
        log_error("%s has no database; kept as %s", names[i], aside);
    }
    return 0;
}

/* There is no weir.db (any more). Puts one there: the previous generation, else a new one. */
static int replace(struct store *s, struct clock_time now, struct store_report *r, struct err *e)
{
    struct db db;
    int version;
    char why[128] = "", aside[FSX_NAME_MAX + 1];
    int rv = set_log_aside(s, now, e);
    if (rv != 0) {
        return rv;
    }
    enum store_found found = probe(s, PREV_NAME, &db, &version, why, sizeof(why), e);
    switch (found) {
    case FOUND_GOOD:
        rv = db_close(&db, e);
        r->how = STORE_RESTORED;
        return rv == 0 ? backup_copy(s, PREV_NAME, DB_NAME, e) : rv;
    case FOUND_FAILED:
        return e != NULL && e->code != 0 ? e->code : -EIO;
    case FOUND_BAD:
        rv = set_aside(s, PREV_NAME, now, aside, e);
        if (rv != 0) {
            return rv;
        }
        log_error("%s is damaged, too (%s); kept as %s", PREV_NAME, why, aside);
        r->how = STORE_SALVAGED;
        break;
    case FOUND_NONE:
        r->how = r->aside[0] != '\0' ? STORE_SALVAGED : STORE_NEW;
        break;
    }
    return make_new(s, e);
}

/* s->db is open and good afterwards. */
static int open_good(struct store *s, struct clock_time now, struct store_report *r, int *version,
                     struct err *e)
{
    struct err probed = {0};
    enum store_found found = probe(s, DB_NAME, &s->db, version, r->why, sizeof(r->why), &probed);
    int rv = 0;
    switch (found) {
    case FOUND_GOOD:
        return 0;
    case FOUND_FAILED:
        return err_set(e, probed.code, "%s", probed.msg);
    case FOUND_BAD:
        rv = set_aside(s, DB_NAME, now, r->aside, e);
        break;
    case FOUND_NONE:
        break;
    }
    if (rv == 0) {
        rv = replace(s, now, r, e);
    }
    if (rv == 0 && r->how == STORE_RESTORED && r->why[0] == '\0') {
        snprintf(r->why, sizeof(r->why), "it was gone");
    }
    if (rv != 0) {
        return rv;
    }
    char why[128];
    found = probe(s, DB_NAME, &s->db, version, why, sizeof(why), &probed);
    if (found == FOUND_GOOD) {
        return 0;
    }
    int code = found == FOUND_NONE ? -ENOENT : probed.code; /* it was just put there */
    return err_set(e, code, "%s: %s", DB_NAME, probed.msg);
}

/* Says loudly what is not as it was left. */
static int tell(struct store *s, struct clock_time now, struct store_report *r, struct err *e)
{
    if (r->how != STORE_RESTORED && r->how != STORE_SALVAGED) {
        return 0;
    }
    char text[STORE_NOTE_MAX];
    snprintf(text, sizeof(text),
             "%s could not be used (%s)%s%s; %s; %" PRId64 " rows were read from the damaged file",
             DB_NAME, r->why, r->aside[0] != '\0' ? ", kept as " : "", r->aside,
             r->how == STORE_RESTORED ? "the previous generation is in use"
                                      : "there was no previous generation",
             r->salvaged_rows);
    log_error("%s", text);
    return event_put(s,
                     &(struct store_event){.kind = STORE_EV_RECOVERED,
                                           .code = "database_damaged",
                                           .category = STORE_PERMANENT,
                                           .count = 1,
                                           .value = r->salvaged_rows,
                                           .text = text},
                     now, NULL, e);
}

static int prepare(struct store *s, struct clock_time now, struct store_report *r, int version,
                   struct err *e)
{
    int64_t clean = 1, holds = 0;
    int rv = 0;
    if (version < schema_version) {
        r->from_version = version;
        log_info("%s: format %d becomes %d; the old one is kept as %s", DB_NAME, version,
                 schema_version, PREV_NAME);
        rv = backup_all(s, now, e);
        if (rv == 0) {
            rv = schema_upgrade(&s->db, schema_steps, version, schema_version, e);
        }
    }
    if (rv == 0) {
        rv = schema_pragmas(&s->db, e);
    }
    if (rv == 0 && r->aside[0] != '\0') {
        rv = salvage(s, r->aside, &r->salvaged_rows, e);
    }
    if (rv == 0) {
        rv = meta_get(&s->db, "clean", 1, &clean, e);
    }
    if (rv == 0) {
        rv = meta_get(&s->db, "holds", 0, &holds, e);
    }
    if (rv == 0) {
        rv = meta_get(&s->db, "backup_at", 0, &s->backup_at, e);
    }
    if (rv != 0) {
        return rv;
    }
    s->holds_on_all = (uint32_t)holds;
    r->unclean = clean == 0 || r->how == STORE_RESTORED || r->how == STORE_SALVAGED;
    rv = db_begin(&s->db, e);
    if (rv != 0) {
        return rv;
    }
    rv = tell(s, now, r, e);
    if (rv == 0 && r->unclean) {
        rv = recover(s, now, r, e);
    }
    if (rv == 0) {
        rv = meta_set(&s->db, "clean", 0, e);
    }
    return db_finish(&s->db, rv, e);
}

/* Our states in the caller's table, by name. */
static int learn_states(struct store *s, const struct sm_type *type, struct err *e)
{
    for (int state = 0; state < STORE_STATES; state++) {
        int at = 0;
        while (at < type->count &&
               strcmp(type->states[at].name, store_state_name((enum store_state)state)) != 0) {
            at++;
        }
        if (at == type->count) {
            return err_set(e, ERR_INVALID, "the lifecycle '%s' has no state '%s'", type->name,
                           store_state_name((enum store_state)state));
        }
        s->index[state] = at;
    }
    s->job_type = type;
    return 0;
}

int store_open(struct store **out, const struct store_options *o, struct store_report *report,
               struct err *e)
{
    struct store_report own;
    struct store_report *r = report != NULL ? report : &own;
    *r = (struct store_report){.how = STORE_AS_LEFT};
    *out = NULL;
    struct store *s = mem_zalloc(1, sizeof(*s));
    if (s == NULL) {
        return err_sys(e, -ENOMEM, "database");
    }
    s->fs = o->fs;
    s->dirfd = -1;
    s->folds = mem_zalloc(STORE_FOLDS_MAX, sizeof(*s->folds));
    int version = 0;
    int rv = s->folds == NULL ? err_sys(e, -ENOMEM, "database") : learn_states(s, o->job_type, e);
    if (rv != 0) {
        goto err_after_alloc;
    }
    /* The path itself may go through links; the last step, to our own files, may not. */
    if (strlen(o->dir) >= sizeof(s->dir) - FSX_NAME_MAX - 2 || realpath(o->dir, s->dir) == NULL) {
        rv = err_sys(e, errno != 0 ? -errno : -ENAMETOOLONG, "%s", o->dir);
        goto err_after_alloc;
    }
    s->dirfd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dirfd < 0) {
        rv = err_sys(e, -errno, "%s", s->dir);
        goto err_after_alloc;
    }
    rv = fsx_remove_tmp(s->fs, s->dirfd, DB_NAME, e);
    if (rv == 0) {
        rv = fsx_remove_tmp(s->fs, s->dirfd, PREV_NAME, e);
    }
    if (rv == 0) {
        rv = open_good(s, o->now, r, &version, e);
    }
    if (rv != 0) {
        goto err_after_dir;
    }
    rv = prepare(s, o->now, r, version, e);
    if (rv != 0) {
        goto err_after_db;
    }
    *out = s;
    return 0;

err_after_db:
    backup_abort(s);
    db_close(&s->db, NULL);
err_after_dir:
    close(s->dirfd);
err_after_alloc:
    mem_free(s->folds);
    mem_free(s);
    return rv;
}

int store_close(struct store *s, struct clock_time now, struct err *e)
{
    backup_abort(s);
    int rv = store_event_flush(s, true, now, e);
    if (rv == 0) {
        rv = meta_set(&s->db, "clean", 1, e);
    }
    int closed = db_close(&s->db, rv == 0 ? e : NULL);
    close(s->dirfd);
    mem_free(s->folds);
    mem_free(s);
    return rv != 0 ? rv : closed;
}

int store_batch_begin(struct store *s, struct err *e)
{
    return db_begin(&s->db, e);
}

int store_batch_end(struct store *s, struct err *e)
{
    int rv = db_finish(&s->db, 0, e);
    int64_t holds;
    if (rv != 0 && meta_get(&s->db, "holds", 0, &holds, NULL) == 0) {
        s->holds_on_all = (uint32_t)holds; /* what a call of the batch set is undone */
    }
    return rv;
}

int store_last_job_id(struct store *s, uint32_t *id, struct err *e)
{
    int64_t kept = 0, seen = 0;
    int rv = meta_get(&s->db, "last_job_id", 0, &kept, e);
    if (rv == 0) {
        rv = db_number(&s->db, e, "SELECT max(id) FROM job", DB_NO_ARGS, 0, &seen);
    }
    *id = (uint32_t)(kept > seen ? kept : seen);
    return rv;
}

int store_check(struct store *s, struct err *e)
{
    sqlite3_stmt *st;
    int rv = db_first(&s->db, e, "PRAGMA integrity_check(1)", DB_NO_ARGS, &st);
    if (rv == 1) {
        rv = strcmp(db_col_text(st, 0), "ok") == 0 ? 0 : finding(db_col_text(st, 0), e);
        db_end(st);
    }
    if (rv == 0) {
        rv = db_first(&s->db, e, "PRAGMA foreign_key_check", DB_NO_ARGS, &st);
        if (rv == 1) {
            rv = err_set(e, ERR_CORRUPT, "%s: a row of %s has lost what it belongs to", DB_NAME,
                         db_col_text(st, 0));
            db_end(st);
        }
    }
    return rv;
}
