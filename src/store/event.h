/* event.h - what happened: append-only rows with one number sequence for the whole database.
 *
 * An event whose `to` is set is a transition: of the job when `task` is 0 and `stage` is "", else of that. Following
 * the `to` of a job's events leads to the state in its row. Numbers are never used twice, also not after a purge.
 *
 * Errors that come by the thousand (articles) and refusals fold: per (job, server, code) the first is written at once,
 * the others are counted and written as one row when STORE_FOLD_MS are over. Counts that wait are in memory: a crash
 * loses at most those of the last ten seconds. */
#ifndef STORE_EVENT_H
#define STORE_EVENT_H

#include "store/store.h"

#define STORE_KIND_MAP(X)                                                                        \
    X(CREATED, "created")               /* a job row */                                          \
    X(CLAIMED, "claimed")               /* work began: job, stage or task */                     \
    X(STATUS_CHANGED, "status_changed") /* any other transition */                               \
    X(ERROR, "error")                                                                            \
    X(RETRY_SCHEDULED, "retry_scheduled") /* value: when */                                      \
    X(RECOVERED, "recovered")             /* set back after a crash; or the database restored */ \
    X(HOLD_SET, "hold_set")               /* code: its name; value: until */                     \
    X(HOLD_CLEARED, "hold_cleared")                                                              \
    X(HEALTH, "health")               /* value: permille */                                      \
    X(PAR_REQUESTED, "par_requested") /* value: blocks */                                        \
    X(STAGE, "stage")                 /* a step ended */                                         \
    X(FILE_DONE, "file_done")                                                                    \
    X(IMPORT_SPAWNED, "import_spawned")                                                          \
    X(REIMPORT_REQUESTED, "reimport_requested") /* value: the task it follows */                 \
    X(CLEANUP_DONE, "cleanup_done")                                                              \
    X(CLEANUP_REFUSED, "cleanup_refused")                                                        \
    X(STUCK, "stuck")                                                                            \
    X(VERDICT, "verdict")                                                                        \
    X(ILLEGAL_TRANSITION, "illegal_transition") /* refused; code: "from>to" */                   \
    X(EDITED, "edited")                         /* a user changed the job; text: what */
enum store_kind {
#define X(id, name) STORE_EV_##id,
    STORE_KIND_MAP(X)
#undef X
        STORE_KINDS,
};
#define STORE_KIND_BIT(kind) (UINT32_C(1) << (kind))
const char *store_kind_name(enum store_kind kind);
int store_kind_parse(const char *name); /* the kind, or -1 */

enum { STORE_FOLD_MS = 10000, STORE_FOLDS_MAX = 1024 };

struct store_event {
    int64_t seq;
    int64_t at;
    enum store_kind kind;
    uint32_t job;      /* 0: of the whole program */
    int64_t task;      /* 0: none */
    const char *stage; /* "" none */
    int32_t server;    /* its number in the configuration; 0: none */
    const char *from, *to;
    const char *code; /* ENOSPC, article_not_found, ttl_expired: a word */
    enum store_category category;
    uint32_t attempt;
    int64_t count; /* how many in one; 1 but for folded ones */
    int64_t value; /* see STORE_KIND_MAP */
    const char *text;
};

/* Tells of something that changes no state: error, hold, health, par_requested, file_done, cleanup_refused, stuck,
 * verdict. Other kinds and a `to` are ERR_INVALID: they are written by the functions that make the change. `seq` and
 * `at` are not read. */
int store_event_add(struct store *s, const struct store_event *ev, struct clock_time now,
                    int64_t *seq, struct err *e);
/* `count` errors of this code from this server. Folds. */
int store_event_errors(struct store *s, uint32_t job, int32_t server, const char *code,
                       enum store_category category, const char *text, int64_t count,
                       struct clock_time now, struct err *e);
/* Writes counts that are due; `all`: also those that are not. */
int store_event_flush(struct store *s, bool all, struct clock_time now, struct err *e);

struct store_event_filter {
    uint32_t job;   /* 0: any. With a job this is its timeline: job, stages and imports by number */
    int64_t task;   /* 0: any */
    uint32_t kinds; /* STORE_KIND_BITs; 0: any */
    bool newest_first;
};
/* Rows: struct store_event. The cursor is {seq, 0}: what was read last. */
int store_event_list(struct store *s, const struct store_event_filter *f,
                     const struct store_range *range, struct store_page *page, struct err *e);
/* How many there are of a job. */
int store_event_count(struct store *s, uint32_t job, int64_t *count, struct err *e);

/* The event as a line for people, and how urgent it is (a log_level): what loadlog shows. */
int store_event_words(const struct store_event *ev, char *text, size_t size);

#endif
