/* job.h - job rows: the authority on where a job stands.
 *
 * A row is made by store_job_add, moved by store_job_move alone, and never changes again once its state is terminal.
 * row_version grows with every change a user or the lifecycle makes (not with progress): who edits says which version
 * he saw, and gets ERR_CONFLICT when it is no longer that one. */
#ifndef STORE_JOB_H
#define STORE_JOB_H

#include "store/import.h"
#include "store/store.h"

enum { STORE_KEY_BYTES = 32, STORE_IDEM_MAX = 128, STORE_IDEM_MS = 24 * 3600 * 1000 };

/* How far a job is and how well: what is known of it, 0 for what is not. Set as a whole by store_job_progress. */
struct store_facts {
    uint64_t total_bytes, left_bytes;
    uint32_t articles, articles_done, articles_failed;
    uint32_t health_permille, critical_permille;
    uint32_t blocks;         /* PAR2 source blocks; 0: not known */
    uint32_t blocks_missing; /* of them */
    uint32_t blocks_spare;   /* recovery blocks here or to be had */
    uint32_t servers_asked;  /* servers that do not have what is missing */
};

struct store_job {
    uint32_t id;
    enum store_state state;
    uint64_t row_version; /* from 1 */
    uint32_t attempt;     /* from 1 */
    uint32_t previous_id; /* the job that this one retries; 0: none */
    const char *name, *category;
    const char *source; /* file name or URL, as submitted */
    const char *path;   /* where its files are */
    const uint8_t *key; /* STORE_KEY_BYTES of content identity; NULL: not known */
    uint32_t holds;     /* bits are the caller's */
    uint32_t passes;    /* holds on everything that this one goes past (Force) */
    int64_t created_at, updated_at, last_transition_at;
    int64_t completed_at;
    int64_t progress_at; /* the last byte or step: its heartbeat */
    int64_t expires_at, next_run_at, first_not_found_at;
    const char *code; /* of the last error, or why it ended: "ttl_expired" */
    enum store_category category_of_error;
    const char *reason; /* the same for people */
    struct store_facts facts;
};

/* ---- making ---- */

struct store_job_new {
    uint32_t id; /* the caller's, never used before */
    const char *name, *category, *source, *path;
    const uint8_t *key;   /* STORE_KEY_BYTES or NULL */
    bool forced;          /* a second one of the same content is wanted */
    uint32_t previous_id; /* 0, or a job that has ended */
    uint32_t passes;
    int64_t expires_at;
    const char *idem_key; /* the client's; NULL: none */
};
struct store_job_made {
    uint32_t id;
    bool
        existed; /* the same idempotency key within 24 h, or an active job of the same content: nothing was made */
};
/* The job begins as `created`. */
int store_job_add(struct store *s, const struct store_job_new *j, struct clock_time now,
                  struct store_job_made *made, struct err *e);
/* The row of a job that the queue knows and the database lost: takes it as it is, with a `recovered` event.
 * ERR_EXISTS when there is one: then the row is right and the queue is not. */
int store_job_adopt(struct store *s, const struct store_job *j, struct clock_time now,
                    struct err *e);

/* ---- moving ---- */

struct store_move {
    uint32_t job;
    enum store_state to;
    uint64_t expect_version; /* 0: whatever it is */
    const char *code, *reason;
    enum store_category category;
    int64_t next_run_at;
    const char *path; /* NULL: unchanged */
};
struct store_moved {
    enum store_state from;
    uint64_t row_version;
    int64_t seq;              /* of the event */
    unsigned tasks_cancelled; /* the cascade */
};
/* ERR_NOT_FOUND; ERR_CONFLICT: another version; ERR_INVALID: refused, in words, and recorded. Refused is what the table
 * does not have, and
 *   downloading -> queued when STORE_JOB_ATTEMPTS are used up (ERR_LIMIT): the job is to be failed,
 *   completed -> cancelled when an import has begun,
 *   completed -> imported unless every file is imported, imported -> cleaned likewise.
 * -> cancelled cancels the job's pending imports. imported -> cleaned is told as cleanup_done. */
int store_job_move(struct store *s, const struct store_move *m, struct clock_time now,
                   struct store_moved *out, struct err *e);

/* ---- other changes ---- */

struct store_job_edit { /* NULL and INT64_MIN: unchanged */
    uint32_t job;
    uint64_t expect_version;
    const char *name, *category, *path;
    const uint8_t *key;
    int64_t expires_at;
    int64_t passes;
};
int store_job_edit(struct store *s, const struct store_job_edit *c, struct clock_time now,
                   uint64_t *row_version, struct err *e);
/* Life sign and figures. No event, no new version. A job that has ended is ERR_INVALID. */
int store_job_progress(struct store *s, uint32_t job, const struct store_facts *facts,
                       struct clock_time now, struct err *e);
/* Not there / there again. The first "not there" is remembered until "there again"; *first_at: since when, 0 after
 * "there again". What follows after the grace time is the caller's move. */
int store_job_not_found(struct store *s, uint32_t job, bool not_found, struct clock_time now,
                        int64_t *first_at, struct err *e);

/* A hold on one job (job > 0) or on everything (job 0) is set until `until_at` (0: open) or cleared. `name` is for the
 * event. Setting what is set and clearing what is clear is nothing, and no event. */
struct store_hold {
    uint32_t job;
    uint32_t bit; /* exactly one */
    bool set;
    const char *name;
    int64_t until_at;
    const char *text;
};
int store_job_hold(struct store *s, const struct store_hold *h, struct clock_time now,
                   struct err *e);

/* ---- asking ---- */

/* The page holds one row. ERR_NOT_FOUND. */
int store_job_get(struct store *s, uint32_t job, struct store_page *page, struct err *e);
struct store_job_filter {
    uint32_t states;        /* SM_BIT of each; 0: any */
    const char *category;   /* exactly; NULL: any */
    const char *name;       /* part of it, without regard to ASCII case; NULL: any */
    int64_t expires_before; /* 0: any */
    bool newest_first;      /* by id */
};
/* Rows: struct store_job. */
int store_job_list(struct store *s, const struct store_job_filter *f,
                   const struct store_range *range, struct store_page *page, struct err *e);
int store_job_counts(struct store *s, int64_t counts[STORE_STATES], struct err *e);
const char *store_state_name(enum store_state state);

/* ---- stuck ----
 *
 * Only time without a hold counts. Thresholds are design: they are the same for everyone. */
enum store_stuck_why {
    STORE_STUCK_NOT,
    STORE_STUCK_CREATED,     /* 10 min */
    STORE_STUCK_QUEUED,      /* 1 h */
    STORE_STUCK_DOWNLOADING, /* 24 h in all */
    STORE_STUCK_NO_BYTE,     /* downloading, 15 min without one while a server is up */
    STORE_STUCK_PROCESSING,  /* 10 min without progress */
    STORE_STUCK_NO_TASKS,    /* completed, 1 h without import tasks */
    STORE_STUCK_IMPORT,      /* a task in progress, 15 min without progress */
    STORE_STUCK_IMPORTED,    /* 24 h */
};
int64_t store_stuck_after_ms(enum store_stuck_why why);
const char *store_stuck_words(enum store_stuck_why why);
struct store_stuck {
    uint32_t job;
    int64_t task; /* STORE_STUCK_IMPORT */
    enum store_stuck_why why;
    enum store_state state;
    int64_t for_ms; /* how long */
    const char *name;
};
/* Rows: struct store_stuck, by job. Looks at `limit` jobs that have not ended, so one call costs the same however
 * long the queue is; a page may be empty and still lead on. */
int store_job_stuck(struct store *s, bool server_up, struct clock_time now,
                    const struct store_range *range, struct store_page *page, struct err *e);

#endif
