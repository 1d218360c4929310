/* db.h - SQLite, wrapped once: arguments with their types, statements prepared once, nested transactions, errors in our
 * own codes, and memory for what was read. Private to src/store: no SQL and no sqlite3_ name leaves this folder.
 *
 * One thread. A statement text is a literal; its address is the key of the prepared statement. */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

enum { DB_STATEMENTS = 256, DB_DEPTH_MAX = 8 };

struct db {
    sqlite3 *h;
    struct {
        const char *sql;
        sqlite3_stmt *st;
    } prepared[DB_STATEMENTS];
    int depth; /* of transactions; 0: none */
};

struct db_arg {
    enum { DB_END, DB_INT, DB_TEXT, DB_BLOB, DB_NULL } kind;
    int64_t i; /* or the length of a blob */
    const void *p;
};
/* Arguments of a statement, in the order of its ?1, ?2, ... */
#define DB_ARGS(...) ((const struct db_arg[]){__VA_ARGS__, {DB_END, 0, NULL}})
#define I(x)         db_int((int64_t)(x))
#define U(x)         db_uint(x)
#define T(x)         db_text(x)
#define B(p, n)      db_blob((p), (n))

static inline struct db_arg db_int(int64_t i)
{
    return (struct db_arg){DB_INT, i, NULL};
}
/* A number that the column cannot hold is kept as the largest that it can. */
static inline struct db_arg db_uint(uint64_t u)
{
    return (struct db_arg){DB_INT, u > INT64_MAX ? INT64_MAX : (int64_t)u, NULL};
}
static inline struct db_arg db_text(const char *s) /* NULL is NULL */
{
    return (struct db_arg){s != NULL ? DB_TEXT : DB_NULL, 0, s};
}
static inline struct db_arg db_blob(const void *p, size_t n) /* NULL is NULL */
{
    return (struct db_arg){p != NULL ? DB_BLOB : DB_NULL, (int64_t)n, p};
}

enum db_mode { DB_READ_WRITE, DB_READ_ONLY };

/* Opens an existing file. The path must not end in a symbolic link. On failure *db is closed. */
int db_open(struct db *db, const char *path, enum db_mode mode, struct err *e);
int db_close(struct db *db, struct err *e);

/* What SQLite just said, as a code and a message. */
int db_error(const struct db *db, struct err *e, const char *doing);

/* A statement without rows. */
int db_exec(struct db *db, struct err *e, const char *sql, const struct db_arg *args);
/* Statements that are run once: schema, pragmas. May hold several. Rows are passed over. */
int db_script(struct db *db, struct err *e, const char *sql);
/* 1: *st is on the first row, and db_end(*st) is owed. 0: no row, nothing is owed. Or an error. */
int db_first(struct db *db, struct err *e, const char *sql, const struct db_arg *args,
             sqlite3_stmt **st);
/* The same for the rows after it; on 0 and on errors nothing more is owed. */
int db_next(struct db *db, struct err *e, sqlite3_stmt *st);
void db_end(sqlite3_stmt *st);
/* The first column of the first row. `missing` when there is none. */
int db_number(struct db *db, struct err *e, const char *sql, const struct db_arg *args,
              int64_t missing, int64_t *value);
int64_t db_changes(const struct db *db);
int64_t db_last_id(const struct db *db);

/* Transactions nest: the outermost is one of the file, those inside are undone alone. After db_begin exactly one
 * db_finish: it commits when `rv` is 0 and undoes otherwise, and returns rv or what the commit said. When SQLite had
 * to give up the whole transaction (disk full), every level ends in an error and nothing of it stays. */
int db_begin(struct db *db, struct err *e);
int db_finish(struct db *db, int rv, struct err *e);

/* Text columns as borrowed strings, "" for NULL; valid until the next step. */
const char *db_col_text(sqlite3_stmt *st, int col);

/* ---- memory of one answer, freed at once ---- */
struct store_mem;
void *store_mem_alloc(struct store_mem **m, size_t size); /* cleared; NULL: none */
/* NULL in, NULL out (and no failure). */
int store_mem_text(struct store_mem **m, const char *text, const char **copy);
int store_mem_blob(struct store_mem **m, const void *p, size_t n, const void **copy);
void store_mem_free(struct store_mem *m);

#endif
