/* store.h - what must be remembered and asked about: weir.db. Opening, closing, pages, purging.
 *
 * One thread calls everything of this folder (the store's actor, request.h) and every function may block on the disk.
 * Nothing here reads a clock: times come in as arguments; `_at` are milliseconds since 1970 on the wall clock, 0: none.
 *
 *   job.h      job rows: the authority on where a job stands; holds, stuck, idempotency
 *   event.h    what happened, append-only, numbered through; the timeline
 *   stage.h    post-processing steps and their attempts
 *   import.h   one task per output file, chains of them, and what they add up to
 *   history.h  what clients see of finished jobs
 *   volume.h   bytes and articles per server and day
 *   explain.h  why a job stands where it does
 *   request.h  all of it behind an inbox, on a thread of its own
 *
 * Two rules hold everywhere. A change and the event that tells of it are in one transaction: both are there or neither.
 * A change that the lifecycle does not allow is refused (ERR_INVALID), and the refusal itself is an event.
 *
 * Strings: what is passed in is borrowed for the call, NULL counts as ""; what comes out lives as long as its answer
 * and is never NULL. Failures leave everything as it was. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fsx.h"
#include "base/sm.h"

enum {
    STORE_TEXT_MAX = 32768, /* bytes of one text that is kept whole; longer: ERR_LIMIT */
    STORE_NOTE_MAX = 1024,  /* bytes of a text in an event or of an error; longer: cut */
    STORE_PAGE_MAX = 1000,
    STORE_PAGE_USUAL = 100,
    STORE_JOB_ATTEMPTS = 3,
    STORE_STAGE_ATTEMPTS = 3,
    STORE_IMPORT_ATTEMPTS = 5,
};

struct store;

/* The states that this folder knows the meaning of. Which may follow which is not its business: the table is the
 * caller's (store_options.job_type), and so are the numbers; the names are what is stored. */
#define STORE_STATE_MAP(X)        \
    X(CREATED, "created")         \
    X(QUEUED, "queued")           \
    X(DOWNLOADING, "downloading") \
    X(PROCESSING, "processing")   \
    X(COMPLETED, "completed")     \
    X(IMPORTED, "imported")       \
    X(CLEANED, "cleaned")         \
    X(FAILED, "failed")           \
    X(CANCELLED, "cancelled")
enum store_state {
#define X(id, name) STORE_##id,
    STORE_STATE_MAP(X)
#undef X
        STORE_STATES,
};

enum store_category { STORE_NO_ERROR, STORE_TRANSIENT, STORE_PERMANENT }; /* unknown: transient */
const char *store_category_name(enum store_category c);                   /* "" for no error */

/* ---- opening ---- */

struct store_options {
    const char *dir;                /* the state directory; its weir.db is ours */
    const struct fsx *fs;           /* for everything but SQLite's own files */
    const struct sm_type *job_type; /* the job lifecycle; must have all names of STORE_STATE_MAP */
    struct clock_time now;
};

enum store_opened {
    STORE_AS_LEFT, /* what was there is there */
    STORE_NEW,     /* there was nothing: a first start */
    STORE_RESTORED, /* weir.db was bad or gone: the previous generation, and what could be read of the bad one */
    STORE_SALVAGED, /* no previous generation either: only what could be read of the bad one */
};

/* What opening found. Anything but AS_LEFT and NEW was logged as an error, too, and is an event. */
struct store_report {
    enum store_opened how;
    bool unclean;                 /* the last run did not close it */
    int from_version;             /* of the schema, when it was brought up to date; else 0 */
    char aside[FSX_NAME_MAX + 1]; /* the name under which the bad file is kept; "" none */
    char why[256];                /* what was wrong with it */
    int64_t salvaged_rows;        /* read from the bad file */
    unsigned jobs_recovered;      /* downloading -> queued */
    unsigned jobs_failed;         /* their attempts were used up */
    unsigned tasks_recovered;     /* in_progress -> pending */
    unsigned tasks_failed;
    unsigned stages_recovered;
};

/* A bad file is set aside under "weir.db.corrupt-<time>", never deleted and never written over; see `how` for what is
 * used instead. A file of a newer Weir is refused (ERR_VERSION) and stays. After a crash, what was in progress is set
 * back here, with an event each. `report` may be NULL. */
int store_open(struct store **s, const struct store_options *o, struct store_report *report,
               struct err *e);
/* Everything is on the disk when this returns 0. `s` is gone in any case. */
int store_close(struct store *s, struct clock_time now, struct err *e);

/* Several calls in one transaction: one sync instead of many. Calls in between that fail are undone alone. When the
 * end fails, nothing of all of it is there. */
int store_batch_begin(struct store *s, struct err *e);
int store_batch_end(struct store *s, struct err *e);

/* Copies the database to weir.db.prev, some pages per call, while others write: the previous generation that a bad file
 * is replaced by. *done: it is in place. The next call then begins a new one. */
int store_backup_step(struct store *s, int pages, struct clock_time now, bool *done, struct err *e);
/* When the last one was finished; 0: never. */
int64_t store_backup_at(const struct store *s);

/* The largest job id ever stored, so that none is given out twice. */
int store_last_job_id(struct store *s, uint32_t *id, struct err *e);
/* Looks at the whole file (not only at its structure). ERR_CORRUPT with the first thing that is wrong. */
int store_check(struct store *s, struct err *e);

/* ---- pages ----
 *
 * A cursor says where the next page begins, by the values that the list is ordered by, so pages neither repeat nor
 * leave out a row that was there all the time, whatever is added or removed in between. {0, 0}: the beginning. */
struct store_cursor {
    int64_t a, b;
};
enum { STORE_CURSOR_TEXT = 48 };
void store_cursor_print(const struct store_cursor *c, char text[STORE_CURSOR_TEXT]);
int store_cursor_parse(struct store_cursor *c, const char *text, struct err *e);

struct store_range {
    struct store_cursor after;
    unsigned limit; /* 0: STORE_PAGE_USUAL; more than STORE_PAGE_MAX is cut */
};

struct store_mem;
struct store_page {
    void *rows; /* of the type that the function names */
    unsigned count;
    bool more; /* `next` leads on */
    struct store_cursor next;
    struct store_mem *mem; /* everything that rows point to */
};
void store_page_free(struct store_page *p); /* zeros it; twice is once */

/* ---- what is old goes ---- */

struct store_keep {
    unsigned history_days; /* KeepHistory; 0: for ever */
    unsigned event_days;   /* of jobs that have ended; 0: for ever */
    unsigned task_days;    /* import tasks of jobs that have ended; 0: for ever */
};
struct store_purged {
    int64_t history, events, tasks, jobs, keys;
    bool more; /* call again: the bound was met */
};
/* Removes at most `rows` rows of each kind. What belongs to a job that has not ended is never touched. A job row goes
 * when it has ended and neither history, tasks nor events of it are left. */
int store_purge(struct store *s, const struct store_keep *keep, unsigned rows,
                struct clock_time now, struct store_purged *out, struct err *e);

#endif
