/* internal.h - what the files of this folder share. Nobody else includes it. */
#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

#include "store/db.h"
#include "store/event.h"
#include "store/import.h"
#include "store/job.h"
#include "store/stage.h"
#include "store/store.h"

enum { STORE_CODE_MAX = 64 };

/* Errors that wait to be written as one row. */
struct fold {
    uint32_t job;
    int64_t task;
    int32_t server;
    enum store_kind kind;
    enum store_category category;
    char code[STORE_CODE_MAX];
    char text[200];
    uint64_t since_ms; /* monotonic: when the last row was written */
    int64_t waiting;
};

struct store {
    struct db db;
    const struct fsx *fs;
    const struct sm_type *job_type;
    int index[STORE_STATES]; /* our states in the caller's table */
    int dirfd;
    char dir[4096];
    uint32_t holds_on_all; /* as in the database */
    struct fold *folds;    /* STORE_FOLDS_MAX */
    unsigned fold_count;
    int64_t backup_at;
    struct { /* while one is being made */
        sqlite3_backup *b;
        struct db to;
        struct fsx_writer w;
    } backup;
};

#define DB_NO_ARGS DB_ARGS({DB_END, 0, NULL})

/* ---- schema.c ---- */
struct schema_step {
    const char *sql; /* brings version i to i + 1 */
};
enum { SCHEMA_APPLICATION = 0x57454952 }; /* "WEIR" */
extern const struct schema_step schema_steps[];
extern const int schema_version; /* that this program writes */
/* Runs the steps from `version` on, each with its number in one transaction. */
int schema_upgrade(struct db *db, const struct schema_step *steps, int from, int to, struct err *e);
int schema_pragmas(struct db *db, struct err *e);

/* ---- open.c ---- */
enum store_found { FOUND_GOOD, FOUND_NONE, FOUND_BAD, FOUND_FAILED };
int store_path(const struct store *s, const char *name, char *path, size_t size, struct err *e);
int meta_get(struct db *db, const char *key, int64_t missing, int64_t *value, struct err *e);
int meta_set(struct db *db, const char *key, int64_t value, struct err *e);

/* ---- backup.c ---- */
/* The whole of `from` (a file name) becomes `to`, at once. */
int backup_copy(struct store *s, const char *from, const char *to, struct err *e);
int backup_all(struct store *s, struct clock_time now, struct err *e);
void backup_abort(struct store *s);
/* Rows of the bad file that the open database lacks, as far as they can be read. */
int salvage(struct store *s, const char *bad, int64_t *rows, struct err *e);

/* ---- recover.c ---- */
/* What a crash left in progress is set back; `report` counts. */
int recover(struct store *s, struct clock_time now, struct store_report *report, struct err *e);

/* ---- event.c ---- */
int event_put(struct store *s, const struct store_event *ev, struct clock_time now, int64_t *seq,
              struct err *e);
/* Records a refusal (folded) and returns `code` with the words in `e`. Outside the refused transaction. */
int event_refused(struct store *s, const struct store_event *ev, struct clock_time now, int code,
                  struct err *e);
int event_flush_job(struct store *s, uint32_t job, struct clock_time now, struct err *e);

/* ---- job.c ---- */
/* The state and version of a row; ERR_NOT_FOUND. */
struct job_at {
    enum store_state state;
    uint64_t row_version;
    uint32_t attempt;
    bool progressed; /* since the last transition */
};
int job_at(struct store *s, uint32_t job, struct job_at *at, struct err *e);
bool job_ended(const struct store *s, enum store_state state);
int state_parse(const char *name, enum store_state *state, struct err *e);
int category_parse(const char *name);
/* Moves without asking whether the job's circumstances allow it; the table is asked. */
int job_move_row(struct store *s, const struct store_move *m, const struct job_at *at,
                 enum store_kind kind, uint32_t attempt, struct clock_time now, int64_t *seq,
                 struct err *e);
/* A life sign from one of its steps. */
int job_alive(struct store *s, uint32_t job, struct clock_time now, struct err *e);
/* Copies a row into `mem`. */
int job_get(struct store *s, struct store_mem **mem, uint32_t job, struct store_job *row,
            struct err *e);

/* ---- stuck.c ---- */
/* Whether it is stuck. */
int job_stuck(struct store *s, uint32_t job, bool server_up, struct clock_time now,
              struct store_stuck *out, struct err *e);

/* ---- import.c ---- */
/* pending -> cancelled for all tasks of the job, inside the caller's transaction. */
int import_cancel_all(struct store *s, uint32_t job, struct clock_time now, unsigned *count,
                      struct err *e);
int import_move(struct store *s, int64_t task, uint32_t job, enum store_task_state from,
                enum store_task_state to, const struct store_event *about, struct clock_time now,
                struct err *e);

/* ---- page.c ---- */
unsigned page_limit(const struct store_range *r);
/* Reads rows of a statement into a page: `read` fills one row; `at` tells its cursor (NULL: there are no further
 * pages). The statement must have been asked for one row more than `limit`. */
typedef int (*page_read_cb)(struct store_mem **mem, sqlite3_stmt *st, void *row, void *arg,
                            struct err *e);
typedef struct store_cursor (*page_at_cb)(const void *row);
struct page_type {
    size_t row_size;
    page_read_cb read;
    page_at_cb at;
    void *arg;
};
int page_read(struct store *s, struct store_page *p, const char *sql, const struct db_arg *args,
              unsigned limit, const struct page_type *type, struct err *e);
/* One row or ERR_NOT_FOUND, saying "<what> <id>". */
int page_one(struct store *s, struct store_page *p, const char *sql, const struct db_arg *args,
             const struct page_type *type, const char *what, int64_t id, struct err *e);
/* ERR_LIMIT when a text is too long. */
int text_check(const char *what, const char *text, struct err *e);
/* At most STORE_NOTE_MAX bytes of it, whole characters; "" for NULL. */
const char *text_note(const char *text, char buf[STORE_NOTE_MAX + 1]);
static inline const char *text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}
static inline uint32_t col_u32(sqlite3_stmt *st, int col)
{
    return (uint32_t)sqlite3_column_int64(st, col);
}
static inline uint64_t col_u64(sqlite3_stmt *st, int col)
{
    return (uint64_t)sqlite3_column_int64(st, col);
}
/* A word of a list; the first one is 0. -1: none of them. */
int word_index(const char *const *words, int count, const char *word);

#endif
