/* queue.h - the queue: jobs, their files, their articles, and where each of them stands.
 *
 * One thread owns a queue (the coordinator) and calls everything here; nothing blocks, nothing reads a clock, nothing
 * touches a file. Times come in as arguments: `_ms` on the monotonic clock, `_at` in Unix seconds.
 *
 * Reading order: this file is the data. pick.h chooses the next article and takes results back; edit.h is what users do
 * to a queue; health.h and dupe.h judge; state.h writes it down and reads it again; nzb.h is the posted, immutable side.
 *
 *     queue ── jobs by id ─┬─ in queue order   (what users see and move)
 *                          └─ history          (same struct, `place` says so)
 *     job   ── files in fetch order: PAR2 main, data, PAR2 volumes; users may move them
 *     file  ── its articles as parallel arrays; the posted half in `nzb`, shared after a split
 *
 * Structs are open for reading; only functions of this folder write them. Pointers to jobs and files stay valid until
 * the job is removed for good, so keep ids across turns: queue_job() and queue_file() find them in O(1) and say NULL
 * for what is gone. Ids are positive 31-bit numbers, never used twice. Every change of a job bumps its row_version
 * and the queue's `changes`, which is what "dirty" means.
 *
 * Progress of single articles is the one exception: it bumps `changes` only; row_version counts what a user or the
 * lifecycle did, so that a client's edit does not conflict with every article that arrives. */
#ifndef QUEUE_QUEUE_H
#define QUEUE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/sm.h"
#include "base/timer.h"
#include "queue/bitset.h"
#include "queue/nzb.h"

enum {
    QUEUE_SERVERS_MAX = 32,
    QUEUE_LANES_MAX = QUEUE_SERVERS_MAX + 1, /* one per server, and one for "no server is left" */
    QUEUE_ATTEMPTS_MAX = 63,                 /* what is counted per article stops here */
    QUEUE_GRACE_MAX = 7,
    QUEUE_FALLBACK_MAX = 127,
};

/* ---- articles ---- */

enum queue_article_state {
    QUEUE_OPEN,   /* nobody has it: may be picked by the servers that did not try it */
    QUEUE_LEASED, /* picked; ends in exactly one call of pick.h */
    QUEUE_WAIT,   /* open again at a time of its own */
    QUEUE_DONE,
    QUEUE_FAILED, /* no server has a good copy; damaged data may be on disk */
};

enum queue_tried { /* of one article on one server; the order is the saved one */
                   QUEUE_UNTRIED,
                   QUEUE_NOT_THERE, /* 430 */
                   QUEUE_BAD_DATA,  /* arrived damaged */
                   QUEUE_GAVE_UP,   /* transport attempts used up */
};

/* One article, good for messages and leases: survives moves, merges and splits. */
struct queue_ref {
    uint32_t file_id;
    uint32_t index; /* inside the file, by part number */
};

/* What a decoded article was: enough to check blocks without reading the file again. */
struct queue_part {
    uint64_t offset; /* in the output file */
    uint32_t size;   /* decoded bytes; 0: nothing is there */
    uint32_t crc32;
};

/* ---- files ---- */

struct queue_job;

struct queue_file {
    uint32_t id;
    uint32_t position; /* in job->files */
    struct queue_job *job;
    struct nzb *nzb;               /* a reference; one of job->sources has it too */
    const struct nzb_file *posted; /* in nzb */
    char *found_name;              /* from yEnc, PAR2 or the user; NULL: posted->name */
    uint64_t size;                 /* decoded, from =ybegin; 0 unknown */
    uint64_t left_bytes;           /* hints of articles neither done nor failed */
    uint64_t done_bytes;           /* hints */
    uint64_t failed_bytes;         /* hints; parts that the NZB lacks are estimated */
    uint32_t count;                /* articles; the five below add up to it */
    uint32_t open, leased, waiting, done, failed;
    uint32_t blocks;       /* PAR2 volume: recovery blocks; 0 unknown */
    uint32_t in_retention; /* bit per server slot: may have it by its age */
    uint32_t mark;         /* scratch of edit.c: the last batch that named it */
    uint8_t kind;          /* enum nzb_kind; may change when the content says so */
    bool paused;           /* by the user */
    bool wanted;           /* false: a PAR2 volume nobody has asked for yet */
    bool name_confirmed;   /* found_name comes from the content */
    bool closed;           /* its bytes are synced and it has its name: nothing more to do */
    bool opened, closing;  /* the coordinator's notes, not saved: what the disk was told */
    /* Per article; see article.h. One block of memory, `cells`. */
    void *cells;
    struct queue_part *part;
    uint8_t *state;              /* enum queue_article_state */
    uint16_t *tries;             /* attempts, grace rounds, which fallback id */
    uint64_t *open_bits;         /* the state as a bit plane: OPEN */
    uint64_t *tried_bits;        /* two bit planes per server */
    struct bitset *ready;        /* per lane: who may pick what */
    struct queue_damage *damage; /* lost PAR2 blocks; NULL while unknown (health.h) */
};

/* Every article is done or failed. (Done with it: `closed`.) */
static inline bool queue_file_ended(const struct queue_file *f)
{
    return f->open + f->leased + f->waiting == 0;
}
static inline bool queue_file_is_par2(const struct queue_file *f)
{
    return f->kind == NZB_PAR2_MAIN || f->kind == NZB_PAR2_VOLUME;
}
/* The job is not complete without it: wanted, and not a PAR2 file that the user paused. */
static inline bool queue_file_awaited(const struct queue_file *f)
{
    return f->wanted && !(f->paused && queue_file_is_par2(f));
}
static inline const char *queue_file_name(const struct queue_file *f)
{
    return f->found_name != NULL ? f->found_name : f->posted->name;
}
/* The message-id to ask for, without <>: the posted one, or the fallback that is being tried. */
const char *queue_message_id(const struct queue_file *f, uint32_t index);

/* ---- jobs ---- */

/* The lifecycle; the table of legal edges is queue_job_type in job.c.
 *
 *   created -> queued -> downloading <-> processing -> completed -> imported -> cleaned
 *   downloading -> queued (recovery); any but imported -> failed | cancelled */
enum queue_state {
    QUEUE_CREATED, /* no NZB yet (URL), or not yet durable */
    QUEUE_QUEUED,
    QUEUE_DOWNLOADING,
    QUEUE_PROCESSING,
    QUEUE_COMPLETED,
    QUEUE_IMPORTED,
    QUEUE_CLEANED,
    QUEUE_JOB_FAILED,
    QUEUE_CANCELLED,
    QUEUE_STATES,
};
extern const struct sm_type queue_job_type; /* names as in the saved form: "queued", ... */

enum queue_place {
    QUEUE_ACTIVE,  /* in the queue: listgroups */
    QUEUE_HISTORY, /* finished, deleted, parked or standing by: history */
    QUEUE_HIDDEN,  /* deleted from history, kept so that duplicates are known (NZBGet's Kind=DUP) */
};

#define QUEUE_HOLD_MAP(X)                                                \
    X(USER, "user")     /* paused by hand */                             \
    X(GLOBAL, "global") /* the whole queue is paused */                  \
    X(DISK, "disk")     /* no space */                                   \
    X(QUOTA, "quota")                                                    \
    X(SCHEDULE, "schedule")                                              \
    X(PROPAGATION, "propagation") /* the post is too young */            \
    X(HEALTH, "health")           /* parked by the health check */       \
    X(PASSWORD, "password")                                              \
    X(DUPE_STANDBY, "dupe_standby") /* waits for a better one to fail */ \
    X(SERVERS_DOWN, "servers_down")                                      \
    X(BACKOFF, "backoff")                                                \
    X(POISON, "poison")
enum queue_hold {
#define X(id, name) QUEUE_HOLD_##id,
    QUEUE_HOLD_MAP(X)
#undef X
        QUEUE_HOLDS,
};
#define QUEUE_HOLD_BIT(hold) (UINT32_C(1) << (hold))
/* What Force priority goes past; it never passes DISK, PASSWORD or POISON. */
#define QUEUE_FORCE_PASSES                                                     \
    (QUEUE_HOLD_BIT(QUEUE_HOLD_GLOBAL) | QUEUE_HOLD_BIT(QUEUE_HOLD_SCHEDULE) | \
     QUEUE_HOLD_BIT(QUEUE_HOLD_QUOTA))
const char *queue_hold_name(enum queue_hold hold);

struct queue_hold_info {
    int64_t since_at;
    int64_t until_at; /* cleared by itself then; 0: only by whoever set it */
};

enum queue_priority { /* any int is legal; these have names */
                      QUEUE_VERY_LOW = -100,
                      QUEUE_LOW = -50,
                      QUEUE_NORMAL = 0,
                      QUEUE_HIGH = 50,
                      QUEUE_VERY_HIGH = 100,
                      QUEUE_FORCE = 900,
};

/* NZBGet's words; the enums are in the order of its documentation and each has a _name() in words.h. */
enum queue_dupe_mode { QUEUE_DUPE_SCORE, QUEUE_DUPE_ALL, QUEUE_DUPE_FORCE };
enum queue_delete { /* DeleteStatus */
                    QUEUE_DELETE_NONE,
                    QUEUE_DELETE_MANUAL,
                    QUEUE_DELETE_HEALTH,
                    QUEUE_DELETE_DUPE,
                    QUEUE_DELETE_BAD,
                    QUEUE_DELETE_GOOD,
                    QUEUE_DELETE_COPY,
                    QUEUE_DELETE_SCAN,
};
enum queue_mark { QUEUE_MARK_NONE, QUEUE_MARK_BAD, QUEUE_MARK_GOOD, QUEUE_MARK_SUCCESS };
enum queue_url_status {
    QUEUE_URL_NONE,
    QUEUE_URL_UNKNOWN, /* being fetched or retried */
    QUEUE_URL_SUCCESS,
    QUEUE_URL_FAILURE,
    QUEUE_URL_SCAN_SKIPPED,
    QUEUE_URL_SCAN_FAILURE,
};
enum queue_par_status {
    QUEUE_PAR_NONE,
    QUEUE_PAR_FAILURE,
    QUEUE_PAR_SUCCESS,
    QUEUE_PAR_REPAIR_POSSIBLE,
    QUEUE_PAR_MANUAL,
};
enum queue_unpack_status {
    QUEUE_UNPACK_NONE,
    QUEUE_UNPACK_FAILURE,
    QUEUE_UNPACK_SUCCESS,
    QUEUE_UNPACK_SPACE,
    QUEUE_UNPACK_PASSWORD,
};
enum queue_step_status {
    QUEUE_STEP_NONE,
    QUEUE_STEP_FAILURE,
    QUEUE_STEP_SUCCESS
}; /* move, script */

/* A name and a value: post-processing parameters ("*Unpack:Password"), script results. Names are unique, compared
 * without regard to case, kept as first written. */
struct queue_param {
    char *name;
    char *value;
};
struct queue_params {
    struct queue_param *at;
    uint32_t count;
};
const char *queue_param_get(const struct queue_params *p, const char *name); /* NULL: not there */

struct queue_server_stat { /* of one job on one server */
    uint32_t server_id;
    uint32_t done;
    uint32_t failed; /* not there or bad data */
};

/* The coordinator's own notes on a job, not saved, all zero at first: nothing in this folder reads them. They live
 * here so that finding them needs no second map and making them cannot fail. */
struct queue_watch {
    struct timer timer;                /* the earliest of what follows, and of the job's expiry */
    uint64_t hold_due_ms[QUEUE_HOLDS]; /* when a hold ends by itself; 0: it does not */
    struct list post;                  /* in the line for post-processing */
    struct nzb *nzb;                   /* fetched by URL, being stored; a reference */
    uint64_t since_ms, idle_since_ms;  /* the core's two clocks at the last progress */
    uint64_t wait_changes;             /* goes on when a save has these changes; 0: does not wait */
    uint64_t io_failed_ms;             /* the first of a row of failed writes; 0: none */
    uint8_t post_state;                /* none, in line, running */
    uint8_t rung;                      /* of the ladder for stuck jobs */
    uint8_t io_tries, url_tries, stage_tries, unpack_tries;
    bool health_waived; /* the user resumed it although it is beyond repair */
    bool fetching;      /* its URL */
    bool long_said;     /* a day in one download was mentioned */
};

struct queue_source {
    char *stored;    /* state.h: name of the file that holds the text; "" while not stored */
    uint64_t layout; /* of the NZB when the progress was made */
    struct nzb *nzb; /* a reference; NULL while the job is shed */
};

struct queue_job {
    /* What putting 10,000 jobs in order looks at, side by side in memory. */
    uint32_t id;       /* NZBID */
    uint32_t position; /* in queue->order; only when active */
    uint32_t rank;     /* in queue->run; only when active */
    int32_t priority;
    uint32_t mark;           /* scratch of edit.c: the last batch that named it */
    uint32_t total_articles; /* gaps included */
    uint64_t shown;          /* lanes that have something to pick here, a bit each */
    uint64_t left_bytes;     /* RemainingSize: neither done nor failed, unwanted volumes included */
    uint8_t place;           /* enum queue_place */

    struct sm life;       /* enum queue_state */
    uint64_t row_version; /* from 1 */
    int64_t created_at;
    int64_t moved_at;     /* last transition */
    int64_t history_at;   /* HistoryTime */
    int64_t expires_at;   /* TTL; 0: never */
    uint32_t attempt;     /* of the job, from 1; +1 by recovery */
    uint32_t previous_id; /* the job this one retries; 0: none */
    uint32_t holds;       /* QUEUE_HOLD_BITs */
    struct queue_hold_info hold_info[QUEUE_HOLDS];

    /* What the user gave. Strings are owned, valid UTF-8, never NULL. */
    char *name;      /* NZBName */
    char *filename;  /* NZBFilename, as submitted */
    char *url;       /* "" unless it was added by URL; Kind=URL while file_count is 0 */
    char *category;  /* as sent, case and all */
    char *dest_dir;  /* where it downloads to, then where it ended */
    char *final_dir; /* set by scripts only */
    char *reason;    /* why it failed, parked or was refused, in words */
    struct queue_params params;

    /* Duplicates (dupe.h) */
    uint8_t key[NZB_KEY_BYTES]; /* content identity; zeros while there is no NZB */
    char *dupe_key;
    int32_t dupe_score;
    uint8_t dupe_mode; /* enum queue_dupe_mode */
    bool dupe_backup;  /* in history, may be woken when the others fail */

    /* Files, in fetch order. */
    struct queue_file **files;
    uint32_t file_count;
    struct bitset *ready; /* per lane: files with something to pick, by position */

    /* Counters, kept up to date; sizes are the NZB's (encoded) bytes. */
    uint64_t total_bytes;  /* FileSize, as added; grows by merge, shrinks by split */
    uint64_t par_bytes;    /* of it in PAR2 files (main and volumes) */
    uint64_t extra_bytes;  /* of it in files that do not count for health */
    uint64_t paused_bytes; /* of left_bytes: in paused or unwanted files */
    uint64_t failed_bytes, failed_par_bytes, failed_extra_bytes;
    uint64_t downloaded_bytes; /* DownloadedSize: encoded bytes that came over the wire */
    uint32_t done_articles, failed_articles, leased_articles, waiting_articles;
    uint32_t added_files;     /* FileCount, as added */
    uint32_t left_files;      /* not ended */
    uint32_t left_par_files;  /* of them PAR2 */
    uint32_t wanted_left;     /* waited for and not ended: 0 means "downloaded" */
    uint32_t wanted_unclosed; /* waited for and not closed: 0 means post-processing may begin */
    int64_t min_post_at, max_post_at;
    struct queue_server_stat *server_stats;
    uint32_t server_stat_count;
    uint64_t par2_slice; /* bytes of a PAR2 block; 0 until the main file is read (health.h) */
    uint32_t par2_lost;  /* blocks of the set that failed articles have cost */

    /* Post-processing, as NZBGet's clients read it; whoever sets it calls queue_job_touch(). */
    uint8_t par_status, unpack_status, move_status, script_status; /* enums above */
    uint8_t delete_status, mark_status, url_status;
    uint32_t download_sec, post_sec, par_sec, repair_sec, unpack_sec;
    uint32_t message_count;
    uint32_t extra_par_blocks;
    struct queue_params script_statuses; /* name -> "SUCCESS" */

    /* The NZBs its files come from: one, more after a merge; none for a URL. */
    struct queue_source *sources;
    uint32_t source_count;
    char *shed; /* progress of a past job whose articles were freed, as it is saved; NULL: none */

    struct queue_watch watch;
    uint32_t replayed; /* articles that the journal brought when it was loaded */
    uint8_t reload;    /* enum queue_reload: what queue_job_reload() makes of it */
};

/* ---- the queue ---- */

struct queue_server {        /* plain data from the coordinator; see queue_set_servers in pick.h */
    uint32_t id;             /* its number in the configuration: what is saved and shown */
    int level;               /* 0 is asked first */
    int group;               /* servers of one group > 0 have the same articles */
    uint32_t retention_days; /* 0: unlimited */
    bool optional;           /* does not keep its level waiting */
    bool active;             /* configured and allowed; false: as if it were not there */
    bool down; /* for the moment: articles go past it, but it still counts as untried */
};

struct queue_turn { /* a job's turn to be picked from */
    struct queue_job *job;
    uint32_t key;   /* the smaller, the sooner */
    uint64_t shown; /* copy of job->shown while the lanes are rebuilt */
};

struct queue_waits; /* private to wait.c: when waiting articles are due */

struct queue {
    uint64_t changes;       /* grows with everything that has to be saved */
    uint64_t saved_changes; /* of it, what the last durable snapshot has */
    uint32_t next_job_id, next_file_id;
    uint32_t holds; /* QUEUE_HOLD_BITs on everything: GLOBAL, DISK, QUOTA, SCHEDULE, SERVERS_DOWN */

    struct queue_job **order; /* active jobs, in queue order */
    struct queue_job **spare; /* scratch of the same size, for moving */
    struct queue_turn *run;   /* the same by priority, then order: what pick sees */
    struct queue_turn *run_spare;
    uint32_t active_count;
    uint32_t active_room;
    uint32_t force_count;    /* the first so many of `run` have Force priority */
    struct queue_job **past; /* history and hidden, oldest first */
    uint32_t past_count;
    uint32_t past_room;

    struct idmap *jobs;  /* id -> job, active and past */
    struct idmap *files; /* id -> file */

    struct queue_server servers[QUEUE_SERVERS_MAX];
    unsigned server_count;
    unsigned level_count;
    struct queue_level {
        uint32_t all, firm;
    } levels[QUEUE_SERVERS_MAX]; /* server bits, lowest level first */
    struct bitset *ready;        /* per lane: jobs with something to pick, by rank */
    uint32_t batch;              /* number of the last edit */
    bool adding;                 /* between queue_add_begin and _end */
    uint64_t generation;         /* of the last snapshot made (state.h) */
    uint64_t saved_generation;   /* of the last one that is on disk */
    struct queue_waits *waits;

    uint64_t left_bytes, forced_bytes; /* over active jobs: status.RemainingSize, ForcedSize */
    uint64_t article_count;            /* over active jobs */
};

struct queue *queue_new(void);
void queue_free(struct queue *q);

struct queue_job *queue_job(const struct queue *q, uint32_t id);
struct queue_file *queue_file(const struct queue *q, uint32_t id);

/* ---- adding ---- */

struct queue_add {
    struct nzb *nzb;        /* taken on success; NULL for a URL that is still to be fetched */
    const char *stored_nzb; /* state.h; "" or NULL while not stored */
    const char *name;       /* NULL: from the file name, else the NZB's title */
    const char *filename;   /* the rest may be NULL: "" */
    const char *url;
    const char *category;
    const char *dest_dir;
    const char *dupe_key;
    const struct queue_param *params; /* an explicit "*Unpack:Password" wins over the NZB's */
    uint32_t param_count;
    int32_t priority;
    int32_t dupe_score;
    uint8_t dupe_mode;
    bool top;    /* in front of the others of its priority, else behind */
    bool paused; /* begins with the USER hold */
    int64_t now_at;
    int64_t expires_at;
    uint32_t previous_id; /* a retry of this past job */
};

/* Makes an active job in state CREATED; the coordinator moves it to QUEUED when it is durable, and nothing of it is
 * picked before. Duplicates are not looked at: ask queue_dupe_check() first (dupe.h). On failure (-ENOMEM, ERR_FULL
 * when ids run out) nothing is taken. Files are put into fetch order: PAR2 main, data and extra, volumes. */
int queue_add(struct queue *q, const struct queue_add *add, struct queue_job **job, struct err *e);
/* Several adds in a row: the order is put right once, by queue_add_end(). Nothing may be picked in between. */
void queue_add_begin(struct queue *q);
void queue_add_end(struct queue *q);
/* The URL was fetched: same id, same place in the queue, parameters kept. The job must have no files. */
int queue_job_attach(struct queue *q, struct queue_job *j, struct nzb *nzb, const char *stored_nzb,
                     struct err *e);
/* Gone for good, with everything in it. The caller forgets the leases it has on it. */
void queue_job_remove(struct queue *q, struct queue_job *j);

/* ---- lifecycle and holds ---- */

/* The one way to change a job's state. ERR_CONFLICT with the refusal in words when the edge is not in the table;
 * the job is then unchanged. Only QUEUED and DOWNLOADING jobs are picked from. */
int queue_job_move(struct queue *q, struct queue_job *j, enum queue_state to, int64_t now_at,
                   struct err *e);
/* Puts a job into history (HISTORY or HIDDEN) or back (ACTIVE, at the top when `top`). Its counters and parameters
 * stay; its article arrays are freed by queue_job_shed(). Articles still leased are taken back: the caller forgets
 * its leases on them (and does not return them). */
void queue_job_place(struct queue *q, struct queue_job *j, enum queue_place place, bool top,
                     int64_t now_at);
/* Frees the articles of a past job. Its progress is kept in its saved form, a few bytes per article, so that it can
 * come back through its stored NZBs (queue_job_reload). -ENOMEM: nothing happened. */
int queue_job_shed(struct queue *q, struct queue_job *j);
/* Gives a shed job its articles back, and of its progress what job->reload says. `nzbs`: one for each of its sources,
 * in their order; taken on success. ERR_CONFLICT when one has not the layout it had: then only QUEUE_RELOAD_FRESH
 * works. */
enum queue_reload {
    QUEUE_RELOAD_AS_WAS,
    QUEUE_RELOAD_RETRY_FAILED, /* failed articles are open again */
    QUEUE_RELOAD_FRESH,        /* everything is */
};
int queue_job_reload(struct queue *q, struct queue_job *j, struct nzb *const *nzbs, struct err *e);
/* The output of a past job is deleted: should it ever come back, it begins from nothing. */
void queue_job_forget_progress(struct queue *q, struct queue_job *j);
/* Does a job still need this stored NZB? When not: queue_nzb_forget(). */
bool queue_nzb_in_use(const struct queue *q, const char *stored);

void queue_hold_set(struct queue *q, struct queue_job *j, enum queue_hold hold, int64_t now_at,
                    int64_t until_at);
void queue_hold_clear(struct queue *q, struct queue_job *j, enum queue_hold hold);
/* On everything; O(1). */
void queue_set_global_holds(struct queue *q, uint32_t holds);
/* What keeps the job from running now: its own and the queue's holds, less what Force goes past. */
uint32_t queue_job_blocking(const struct queue *q, const struct queue_job *j);

/* ---- facts that others find out ---- */

/* A name or kind from the content (yEnc header, PAR2, first bytes). NULL name: unchanged. A data file that turns out
 * to be a PAR2 volume stops being wanted unless something of it is here already. */
int queue_file_identify(struct queue *q, struct queue_file *f, const char *name, enum nzb_kind kind,
                        uint32_t blocks);
void queue_file_set_size(struct queue *q, struct queue_file *f, uint64_t size);
/* The disk has it all, synced, under its name. Only after queue_file_ended(). */
void queue_file_close(struct queue *q, struct queue_file *f);
/* The file must be fetched again from nothing (its output was lost). */
void queue_file_reset(struct queue *q, struct queue_file *f);
/* Sets one text field: &job->dest_dir, &job->reason, ... */
int queue_job_set_text(struct queue *q, struct queue_job *j, char **field, const char *text);
int queue_job_set_param(struct queue *q, struct queue_job *j, const char *name, const char *value);
/* Call after writing the post-processing and time fields directly: they only have to be saved. */
void queue_job_touch(struct queue *q, struct queue_job *j);

/* PAR2 volumes on demand: makes the cheapest set of volumes (fewest bytes) wanted that brings `blocks` more recovery
 * blocks; those wanted before do not count. Returns the blocks that were found, fewer when there are not enough. */
uint32_t queue_want_blocks(struct queue *q, struct queue_job *j, uint32_t blocks);

/* Everything that must be true of a queue, walked slowly: for tests and the simulator. Aborts when it is not. */
void queue_check(const struct queue *q);
/* Heap bytes of everything in the queue, NZBs included. */
size_t queue_heap_bytes(const struct queue *q);

#endif
