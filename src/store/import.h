/* import.h - import tasks: one per output file, retried, chained by reimport, and what they add up to for a job.
 *
 *   pending -> in_progress -> completed | failed        pending -> cancelled
 *   in_progress -> pending                              by crash recovery only
 *
 * A task that failed for a passing reason and has attempts left stays in_progress, without a worker, until next_run_at:
 * the table has no way back to pending but recovery. Completed, failed and cancelled rows never change again; a
 * reimport is a new task with previous_task_id, and only the newest of a chain (its head) counts. */
#ifndef STORE_IMPORT_H
#define STORE_IMPORT_H

#include "store/store.h"

enum store_task_state {
    STORE_TASK_PENDING,
    STORE_TASK_IN_PROGRESS,
    STORE_TASK_COMPLETED,
    STORE_TASK_FAILED,
    STORE_TASK_CANCELLED,
    STORE_TASK_STATES,
};
extern const struct sm_type store_task_type;
const char *store_task_state_name(enum store_task_state state);

enum store_method { STORE_HARDLINK, STORE_REFLINK, STORE_RENAME, STORE_COPY, STORE_METHODS };
const char *store_method_name(enum store_method m);

struct store_task {
    int64_t id;
    uint32_t job;
    int64_t previous_id; /* 0: the first of its chain */
    enum store_task_state state;
    const char *source, *dest;
    enum store_method method;
    uint64_t size_bytes;
    uint64_t source_dev, source_ino; /* which file it was: cleanup removes no other */
    uint32_t attempt;                /* how often it was begun */
    int64_t next_run_at;             /* in_progress: waits until then; 0: a worker has it */
    int64_t created_at, updated_at, started_at, progress_at, ended_at;
    const char *code;
    enum store_category category;
    const char *text;
    bool head; /* nothing follows it */
};

struct store_task_new {
    const char *source, *dest;
    enum store_method method;
    uint64_t size_bytes, source_dev, source_ino;
};
/* One pending task per file of a completed job, all or none. A source that has a task in this job is passed over, so
 * asking again after a crash does no harm; *made counts the new ones. */
int store_import_spawn(struct store *s, uint32_t job, const struct store_task_new *tasks,
                       unsigned count, struct clock_time now, unsigned *made, struct err *e);
/* Begins the next attempt of up to `limit` tasks that are due, longest waiting first: pending, or waiting and due.
 * Rows: struct store_task, as they are now; `attempt` is the lease. */
int store_import_claim(struct store *s, unsigned limit, struct clock_time now,
                       struct store_page *page, struct err *e);
/* When the next waiting task is due; 0: now, -1: there is none. */
int store_import_next(struct store *s, struct clock_time now, int64_t *at, struct err *e);
int store_import_progress(struct store *s, int64_t task, uint32_t attempt, struct clock_time now,
                          struct err *e);

struct store_task_end {
    int64_t task;
    uint32_t attempt; /* the lease: an older one is ERR_CONFLICT */
    bool ok;
    const char *code;
    enum store_category category; /* NO_ERROR and unknown count as transient */
    const char *text;
    const char *dest; /* where it went in the end; NULL: as planned */
};
struct store_task_ended {
    enum store_task_state state; /* IN_PROGRESS: it will be tried again */
    int64_t next_run_at;
    uint32_t job;
};
int store_import_end(struct store *s, const struct store_task_end *end, struct clock_time now,
                     struct store_task_ended *out, struct err *e);
/* Only what has not begun can be cancelled. */
int store_import_cancel(struct store *s, int64_t task, struct clock_time now, struct err *e);
/* A new task for the file of a completed or failed one, which must be the head of its chain; the job must be completed
 * or imported (once it is cleaned the source is gone). */
int store_import_again(struct store *s, int64_t task, struct clock_time now, int64_t *made,
                       struct err *e);

/* The page holds one row. ERR_NOT_FOUND. */
int store_import_get(struct store *s, int64_t task, struct store_page *page, struct err *e);
struct store_task_filter {
    uint32_t job;    /* 0: any */
    uint32_t states; /* SM_BITs; 0: any */
    bool heads;      /* only what counts */
    bool newest_first;
};
/* Rows: struct store_task, by id. */
int store_import_list(struct store *s, const struct store_task_filter *f,
                      const struct store_range *range, struct store_page *page, struct err *e);
/* The whole chain that a task belongs to, oldest first; at most STORE_PAGE_MAX. */
int store_import_chain(struct store *s, int64_t task, struct store_page *page, struct err *e);
int store_import_counts(struct store *s, int64_t counts[STORE_TASK_STATES], struct err *e);

/* ---- what they add up to ---- */

enum store_import_status {
    STORE_DOWNLOAD_PENDING, /* the job is not completed (or ended before) */
    STORE_AWAITING_IMPORT,  /* completed, no tasks yet */
    STORE_IMPORTING,        /* not all have ended */
    STORE_FULLY_IMPORTED,
    STORE_PARTIAL_FAILURE, /* all ended, some completed */
    STORE_IMPORT_FAILED,   /* all ended, none completed */
};
const char *store_import_status_name(enum store_import_status status);
struct store_import_summary {
    enum store_import_status status;
    int64_t heads[STORE_TASK_STATES];
    int64_t begun; /* tasks, heads or not, that a worker ever had */
};
int store_import_summary(struct store *s, uint32_t job, struct store_import_summary *out,
                         struct err *e);

/* 2^attempt seconds, at most 10 min, ±20 % by task and attempt, so that what failed together comes back apart. */
int64_t store_import_backoff_ms(int64_t task, uint32_t attempt);

#endif
