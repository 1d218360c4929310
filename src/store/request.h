/* request.h - the store behind an inbox: a thread of its own that owns the database.
 *
 * A request is one struct that goes out and comes back: `in` is what the function of the same name takes, `out` what it
 * gives. Make it with store_request_new(op), fill `in` (texts that must outlive the call through store_request_text),
 * and post it. Exactly once for every request that was taken, `done` runs on the store's thread with `code` and `out`
 * filled in; it posts the request on to where the answer is wanted. Whoever then has it frees it. Without `done` the
 * store frees it, and a failure is logged.
 *
 * A change is answered when it is on the disk, not before. Changes that wait together are committed together (one sync
 * for up to STORE_BATCH_MAX of them); each is undone alone when it is refused, and if the commit fails all of them are
 * answered with that error and none of them happened. A question sees every change that was posted before it by the
 * same sender.
 *
 * Room is bounded by the inbox: store_post says ERR_FULL and the request stays the sender's. The thread also writes
 * folded errors, purges what is old and copies the previous generation, a little at a time. */
#ifndef STORE_REQUEST_H
#define STORE_REQUEST_H

#include "base/actor.h"
#include "store/event.h"
#include "store/explain.h"
#include "store/history.h"
#include "store/import.h"
#include "store/job.h"
#include "store/stage.h"
#include "store/store.h"
#include "store/volume.h"

enum { STORE_INBOX = 1024, STORE_BATCH_MAX = 256 };

/* id, and whether it changes something. */
#define STORE_OP_MAP(X)       \
    X(JOB_ADD, true)          \
    X(JOB_ADOPT, true)        \
    X(JOB_MOVE, true)         \
    X(JOB_EDIT, true)         \
    X(JOB_PROGRESS, true)     \
    X(JOB_NOT_FOUND, true)    \
    X(JOB_HOLD, true)         \
    X(JOB_GET, false)         \
    X(JOB_LIST, false)        \
    X(JOB_COUNTS, false)      \
    X(JOB_STUCK, false)       \
    X(EVENT_ADD, true)        \
    X(EVENT_ERRORS, true)     \
    X(EVENT_LIST, false)      \
    X(STAGE_BEGIN, true)      \
    X(STAGE_PROGRESS, true)   \
    X(STAGE_END, true)        \
    X(STAGE_LIST, false)      \
    X(IMPORT_SPAWN, true)     \
    X(IMPORT_CLAIM, true)     \
    X(IMPORT_PROGRESS, true)  \
    X(IMPORT_END, true)       \
    X(IMPORT_CANCEL, true)    \
    X(IMPORT_AGAIN, true)     \
    X(IMPORT_NEXT, false)     \
    X(IMPORT_GET, false)      \
    X(IMPORT_LIST, false)     \
    X(IMPORT_CHAIN, false)    \
    X(IMPORT_COUNTS, false)   \
    X(IMPORT_SUMMARY, false)  \
    X(HISTORY_PUT, true)      \
    X(HISTORY_REMOVE, true)   \
    X(HISTORY_GET, false)     \
    X(HISTORY_LIST, false)    \
    X(HISTORY_COUNT, false)   \
    X(VOLUME_ADD, true)       \
    X(VOLUME_RESET, true)     \
    X(VOLUME_DAYS, false)     \
    X(VOLUME_COUNTERS, false) \
    X(EXPLAIN, false)         \
    X(PURGE, true)            \
    X(LAST_JOB_ID, false)
enum store_op {
#define X(id, changes) STORE_OP_##id,
    STORE_OP_MAP(X)
#undef X
        STORE_OPS,
};

struct store_request {
    enum store_op op;
    void (*done)(struct store_request *r); /* NULL: nobody wants to know */
    void *arg;                             /* the sender's */
    union {
        struct store_job_new job_add;
        struct store_job job_adopt;
        struct store_move job_move;
        struct store_job_edit job_edit;
        struct {
            uint32_t job;
            struct store_facts facts;
        } job_progress;
        struct {
            uint32_t job;
            bool not_found;
        } job_not_found;
        struct store_hold job_hold;
        uint32_t job; /* JOB_GET, STAGE_LIST, IMPORT_SUMMARY, HISTORY_GET, HISTORY_REMOVE */
        struct {
            struct store_job_filter filter;
            struct store_range range;
        } job_list;
        struct {
            bool server_up;
            struct store_range range;
        } job_stuck;
        struct store_event event_add;
        struct {
            uint32_t job;
            int32_t server;
            const char *code;
            enum store_category category;
            const char *text;
            int64_t count;
        } event_errors;
        struct {
            struct store_event_filter filter;
            struct store_range range;
        } event_list;
        struct {
            uint32_t job;
            const char *name;
            uint32_t permille; /* STAGE_PROGRESS */
        } stage;
        struct store_stage_end stage_end;
        struct {
            uint32_t job;
            const struct store_task_new *tasks;
            unsigned count;
        } import_spawn;
        struct {
            unsigned limit;
        } import_claim;
        struct {
            int64_t task;
            uint32_t attempt; /* IMPORT_PROGRESS */
        } import;             /* and CANCEL, AGAIN, GET, CHAIN */
        struct store_task_end import_end;
        struct {
            struct store_task_filter filter;
            struct store_range range;
        } import_list;
        struct store_history history_put;
        struct {
            struct store_history_filter filter;
            struct store_range range;
        } history_list;
        bool with_hidden; /* HISTORY_COUNT */
        struct store_volume volume_add;
        struct {
            int32_t server;
            bool custom;
        } volume_reset;
        struct {
            uint32_t server, from_day;
            struct store_range range;
        } volume_days;
        struct {
            uint32_t job;
            bool server_up;
            store_hold_name_cb hold_name;
        } explain;
        struct {
            struct store_keep keep;
            unsigned rows;
        } purge;
    } in;
    int code;       /* 0, or why not */
    struct err err; /* the same in words */
    union {
        struct store_job_made job_made;
        struct store_moved job_moved;
        uint64_t row_version; /* JOB_EDIT */
        int64_t number; /* NOT_FOUND: since when; EVENT_ADD: seq; AGAIN: task; NEXT: when; COUNT */
        struct store_page page;       /* every list and GET, IMPORT_CLAIM */
        int64_t counts[STORE_STATES]; /* of jobs or, fewer, of tasks */
        struct {
            uint32_t attempt; /* STAGE_BEGIN */
            bool again;       /* STAGE_END */
        } stage;
        unsigned made; /* IMPORT_SPAWN */
        struct store_task_ended import_ended;
        struct store_import_summary import_summary;
        struct store_explain explain;
        struct store_purged purged;
        uint32_t job;
    } out;
    struct store_mem *mem; /* texts of `in` */
};

_Static_assert((int)STORE_TASK_STATES <= (int)STORE_STATES, "one array holds the counts of both");

struct store_request *store_request_new(enum store_op op); /* cleared; NULL: no memory */
/* A copy that lives as long as the request; NULL for NULL or when there is no memory. */
const char *store_request_text(struct store_request *r, const char *text);
void *store_request_alloc(struct store_request *r, size_t size);
void store_request_free(struct store_request *r); /* NULL is fine */
const char *store_op_name(enum store_op op);

/* ---- the actor ---- */

struct store_actor_options {
    struct store_options open; /* `now` is not read: the clock is asked */
    const struct clock *clock;
    struct store_keep keep;
    bool no_upkeep; /* tests: no purging and copying by itself */
};

struct store_actor; /* opaque */
/* Returns when the database is open. `report` as for store_open. */
int store_actor_start(struct store_actor **a, const struct store_actor_options *o,
                      struct store_report *report, struct err *e);
/* Any thread. 0: taken, `done` will run. ERR_FULL, ERR_STOPPED: not taken. */
int store_post(struct store_actor *a, struct store_request *r);
/* Answers everything that was taken, closes the database and ends the thread. The error is that of closing. */
int store_actor_stop(struct store_actor *a, struct err *e);
/* When no thread can post any more. */
void store_actor_free(struct store_actor *a);

#endif
