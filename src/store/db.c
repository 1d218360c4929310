#include "store/db.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/check.h"
#include "base/mem.h"

/* ---- SQLite's heap is ours ----
 *
 * So that a test can make the k-th allocation fail inside SQLite too. */

static void *heap_alloc(int n)
{
    return mem_alloc((size_t)n);
}

static void *heap_realloc(void *p, int n)
{
    return mem_realloc(p, 1, (size_t)n);
}

static int heap_size(void *p)
{
    return p != NULL ? (int)malloc_usable_size(p) : 0;
}

static int heap_roundup(int n)
{
    return (n + 7) & ~7;
}

static int heap_init(void *arg)
{
    (void)arg;
    return SQLITE_OK;
}

static void heap_shutdown(void *arg)
{
    (void)arg;
}

static void configure(void)
{
    static const sqlite3_mem_methods heap = {
        .xMalloc = heap_alloc,
        .xFree = mem_free,
        .xRealloc = heap_realloc,
        .xSize = heap_size,
        .xRoundup = heap_roundup,
        .xInit = heap_init,
        .xShutdown = heap_shutdown,
    };
    /* Refused when somebody used SQLite before us in this process: then it keeps its own heap. */
    sqlite3_config(SQLITE_CONFIG_MALLOC, &heap);
    sqlite3_initialize();
}

/* ---- open, close, errors ---- */

static int system_code(const struct db *db, int otherwise)
{
    int sys = db->h != NULL ? sqlite3_system_errno(db->h) : 0;
    return sys > 0 ? -sys : otherwise;
}

static int code_of(const struct db *db, int rc)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_READONLY:
        return -EROFS;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return -EACCES;
    case SQLITE_IOERR:
        if (rc == SQLITE_IOERR_SHORT_READ) {
            return ERR_CORRUPT; /* the file ends too early */
        }
        return rc == SQLITE_IOERR_NOMEM ? -ENOMEM : system_code(db, -EIO);
    case SQLITE_CANTOPEN:
        return rc == SQLITE_CANTOPEN_SYMLINK ? ERR_UNSAFE : system_code(db, -ENOENT);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ERR_LOCKED;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
        return ERR_CORRUPT;
    case SQLITE_CONSTRAINT:
        return ERR_EXISTS;
    case SQLITE_TOOBIG:
        return ERR_LIMIT;
    default:
        return ERR_INVALID;
    }
}

int db_error(const struct db *db, struct err *e, const char *doing)
{
    int rc = db->h != NULL ? sqlite3_extended_errcode(db->h) : SQLITE_NOMEM;
    int code = code_of(db, rc);
    const char *text = db->h != NULL ? sqlite3_errmsg(db->h) : "out of memory";
    return err_set(e, code, "database: %s: %s (%s)", doing, text, err_name(code));
}

int db_open(struct db *db, const char *path, enum db_mode mode, struct err *e)
{
    static uv_once_t once = UV_ONCE_INIT;
    uv_once(&once, configure);
    *db = (struct db){0};
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE |
                (mode == DB_READ_ONLY ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    if (sqlite3_open_v2(path, &db->h, flags, NULL) != SQLITE_OK) {
        int rv = db_error(db, e, "open");
        sqlite3_close_v2(db->h);
        db->h = NULL;
        return rv;
    }
    sqlite3_busy_timeout(db->h, 5000); /* somebody looks at it with another tool */
    /* The file may be hostile or broken: what it says is never executed. */
    sqlite3_db_config(db->h, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db->h, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return 0;
}

int db_close(struct db *db, struct err *e)
{
    if (db->h == NULL) {
        return 0;
    }
    PRE(db->depth == 0);
    for (int i = 0; i < DB_STATEMENTS; i++) {
        sqlite3_finalize(db->prepared[i].st);
        db->prepared[i].st = NULL;
        db->prepared[i].sql = NULL;
    }
    int rc = sqlite3_close(db->h);
    int rv = rc == SQLITE_OK ? 0 : db_error(db, e, "close");
    if (rc != SQLITE_OK) {
        sqlite3_close_v2(db->h);
    }
    db->h = NULL;
    return rv;
}

/* ---- statements ---- */

static sqlite3_stmt *prepared(struct db *db, const char *sql, struct err *e)
{
    size_t at = ((uintptr_t)sql >> 3) * 2654435761u % DB_STATEMENTS;
    size_t i = at;
    while (db->prepared[i].sql != NULL && db->prepared[i].sql != sql) {
        i = (i + 1) % DB_STATEMENTS;
        PRE(i != at); /* more literals than slots: raise DB_STATEMENTS */
    }
    if (db->prepared[i].st == NULL) {
        if (sqlite3_prepare_v3(db->h, sql, -1, SQLITE_PREPARE_PERSISTENT, &db->prepared[i].st,
                               NULL) != SQLITE_OK) {
            db_error(db, e, "prepare");
            return NULL;
        }
        db->prepared[i].sql = sql;
    }
    return db->prepared[i].st;
}

static int bind_args(sqlite3_stmt *st, const struct db_arg *args)
{
    int rc = SQLITE_OK;
    for (int n = 1; rc == SQLITE_OK && args[n - 1].kind != DB_END; n++) {
        const struct db_arg *a = &args[n - 1];
        switch (a->kind) {
        case DB_INT:
            rc = sqlite3_bind_int64(st, n, a->i);
            break;
        case DB_TEXT:
            rc = sqlite3_bind_text(st, n, a->p, -1, SQLITE_STATIC);
            break;
        case DB_BLOB:
            rc = sqlite3_bind_blob64(st, n, a->p, (sqlite3_uint64)a->i, SQLITE_STATIC);
            break;
        default:
            rc = sqlite3_bind_null(st, n);
            break;
        }
    }
    return rc;
}

void db_end(sqlite3_stmt *st)
{
    sqlite3_reset(st); /* what it says was said by the step already */
    sqlite3_clear_bindings(st);
}

int db_next(struct db *db, struct err *e, sqlite3_stmt *st)
{
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        return 1;
    }
    int rv = rc == SQLITE_DONE ? 0 : db_error(db, e, "run");
    db_end(st);
    return rv;
}

int db_first(struct db *db, struct err *e, const char *sql, const struct db_arg *args,
             sqlite3_stmt **st)
{
    *st = prepared(db, sql, e);
    if (*st == NULL) {
        return e != NULL && e->code != 0 ? e->code : db_error(db, NULL, "prepare");
    }
    PRE(!sqlite3_stmt_busy(*st)); /* a row of the same statement is still being read */
    if (bind_args(*st, args) != SQLITE_OK) {
        int rv = db_error(db, e, "bind");
        db_end(*st);
        return rv;
    }
    return db_next(db, e, *st);
}

int db_exec(struct db *db, struct err *e, const char *sql, const struct db_arg *args)
{
    sqlite3_stmt *st;
    int rv = db_first(db, e, sql, args, &st);
    if (rv == 1) { /* RETURNING and SELECT have no place here */
        db_end(st);
        IMPOSSIBLE("a statement without rows gave one");
    }
    return rv;
}

int db_script(struct db *db, struct err *e, const char *sql)
{
    return sqlite3_exec(db->h, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_error(db, e, "script");
}

int db_number(struct db *db, struct err *e, const char *sql, const struct db_arg *args,
              int64_t missing, int64_t *value)
{
    sqlite3_stmt *st;
    int rv = db_first(db, e, sql, args, &st);
    *value = missing;
    if (rv == 1) {
        if (sqlite3_column_type(st, 0) != SQLITE_NULL) {
            *value = sqlite3_column_int64(st, 0);
        }
        db_end(st);
        rv = 0;
    }
    return rv;
}

int64_t db_changes(const struct db *db)
{
    return sqlite3_changes64(db->h);
}

int64_t db_last_id(const struct db *db)
{
    return sqlite3_last_insert_rowid(db->h);
}

/* ---- transactions ---- */

static const char *const savepoints[DB_DEPTH_MAX][3] = {
    {"BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"},
#define LEVEL(n)                                             \
    {                                                        \
        "SAVEPOINT l" #n, "RELEASE l" #n, "ROLLBACK TO l" #n \
    }
    LEVEL(1),
    LEVEL(2),
    LEVEL(3),
    LEVEL(4),
    LEVEL(5),
    LEVEL(6),
    LEVEL(7),
#undef LEVEL
};

int db_begin(struct db *db, struct err *e)
{
    PRE(db->depth < DB_DEPTH_MAX);
    if (db->depth > 0 && sqlite3_get_autocommit(db->h)) {
        return err_set(e, -EIO, "database: the transaction was given up before");
    }
    int rv = db_exec(db, e, savepoints[db->depth][0], DB_ARGS({DB_END, 0, NULL}));
    if (rv == 0) {
        db->depth++;
    }
    return rv;
}

/* The log may be what fills the disk: folding it into the file makes room where there is none. */
static void make_room(struct db *db)
{
    sqlite3_wal_checkpoint_v2(db->h, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

static int finish(struct db *db, const char *const *level, int rv, struct err *e)
{
    if (sqlite3_get_autocommit(db->h)) {
        return rv != 0 ? rv : err_set(e, -EIO, "database: the transaction was given up");
    }
    if (rv == 0) {
        rv = db_exec(db, e, level[1], DB_ARGS({DB_END, 0, NULL}));
        if (rv == 0) {
            return 0;
        }
    }
    /* Undoing may fail only where there is nothing left to undo; the first error is the one to tell. */
    if (!sqlite3_get_autocommit(db->h)) {
        db_exec(db, NULL, level[2], DB_ARGS({DB_END, 0, NULL}));
        if (db->depth > 0 && !sqlite3_get_autocommit(db->h)) {
            db_exec(db, NULL, level[1], DB_ARGS({DB_END, 0, NULL}));
        }
    }
    return rv;
}

int db_finish(struct db *db, int rv, struct err *e)
{
    PRE(db->depth > 0);
    const char *const *level = savepoints[--db->depth];
    rv = finish(db, level, rv, e);
    if (db->depth == 0 && (rv == -ENOSPC || rv == -EIO)) {
        make_room(db);
    }
    return rv;
}

const char *db_col_text(sqlite3_stmt *st, int col)
{
    const char *text = (const char *)sqlite3_column_text(st, col);
    return text != NULL ? text : "";
}

/* ---- memory of one answer ---- */

enum { CHUNK = 8192 };

struct store_mem {
    struct store_mem *next; /* older chunks */
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

void *store_mem_alloc(struct store_mem **m, size_t size)
{
    size_t need = (size + 15) & ~(size_t)15;
    if (*m == NULL || (*m)->size - (*m)->used < need) {
        size_t room = need > CHUNK ? need : CHUNK;
        struct store_mem *chunk = mem_alloc(sizeof(*chunk) + room);
        if (chunk == NULL) {
            return NULL;
        }
        *chunk = (struct store_mem){.next = *m, .size = room};
        *m = chunk;
    }
    void *p = (*m)->bytes + (*m)->used;
    (*m)->used += need;
    memset(p, 0, need);
    return p;
}

int store_mem_blob(struct store_mem **m, const void *p, size_t n, const void **copy)
{
    *copy = NULL;
    if (p == NULL) {
        return 0;
    }
    unsigned char *to = store_mem_alloc(m, n + 1); /* with a zero behind it */
    if (to == NULL) {
        return -ENOMEM;
    }
    memcpy(to, p, n);
    *copy = to;
    return 0;
}

int store_mem_text(struct store_mem **m, const char *text, const char **copy)
{
    return store_mem_blob(m, text, text != NULL ? strlen(text) : 0, (const void **)copy);
}

void store_mem_free(struct store_mem *m)
{
    while (m != NULL) {
        struct store_mem *next = m->next;
        mem_free(m);
        m = next;
    }
}
