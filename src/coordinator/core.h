/* core.h - what the files of the core share; nobody else includes it.
 *
 * Rules that keep the pieces honest:
 *  - A job changes its state only through coord_move(), gets and loses holds only through coord_hold() and
 *    coord_unhold(): these write the record, so nothing happens silently.
 *  - An article that is LEASED in the queue has exactly one lease here, and a lease ends in exactly one place:
 *    coord_lease_end(). A result or write whose lease is gone is counted and dropped.
 *  - Nothing is sent to a server before step.c's epilogue: handlers change state, coord_fill() acts on it. */
#ifndef COORDINATOR_CORE_H
#define COORDINATOR_CORE_H

#include "base/check.h"
#include "base/list.h"
#include "base/timer.h"
#include "coordinator/step.h"
#include "queue/dupe.h"
#include "queue/pick.h"

/* Planted bugs, to see that the simulator finds them. In the product this is the constant 0. */
#ifdef COORD_MUTANTS
extern int coord_mutant;
#    define MUTANT(n) (coord_mutant == (n))
#else
#    define MUTANT(n) 0
#endif

enum timer_kind { TIMER_JOB, TIMER_LEASE, TIMER_SERVER, TIMER_SERVER_LIMIT, TIMER_CORE };
enum post_state { POST_NONE, POST_IN_LINE, POST_RUNNING };

/* Timers of the whole core; each calls its function when due. */
enum core_timer {
    CORE_SAVE,     /* the periodic save, or the next try of a failed one */
    CORE_SWEEP,    /* stuck jobs */
    CORE_FOLD,     /* write folded errors */
    CORE_SPACE,    /* look at the disk */
    CORE_PAUSE,    /* end of a timed pause */
    CORE_STOP,     /* deadline of the shutdown */
    CORE_CALENDAR, /* a new day: quota, retention */
    CORE_TIMERS,
};

struct lease {
    struct timer timer;
    uint64_t id; /* generation << 16 | slot; 0: free */
    struct queue_ref article;
    uint32_t bytes; /* reserved: the hint */
    uint16_t server;
    uint16_t next_free;
    bool writing;
    bool damaged;         /* being written although it is not good */
    bool gone;            /* the article is open again; only the worker's answer is awaited */
    enum coord_code code; /* of a damaged one */
    struct queue_part part;
    uint32_t wire_bytes;
};

struct server {
    struct coord_server conf;
    struct sm life;
    struct timer timer;       /* end of BACKOFF */
    struct timer limit_timer; /* one connection more */
    uint8_t connections;      /* allowed now, 1..conf.connections */
    uint32_t told_credit;     /* by the pools; 0: nothing yet */
    uint32_t leases;          /* sent, not counting those being written */
    uint64_t reserved_bytes;
    uint64_t volume_bytes;  /* read by us */
    uint64_t volume_told;   /* of it in VOLUME effects */
    uint32_t failures;      /* in a row, each a new backoff */
    uint32_t body_failures; /* in a row: broke inside an article */
    bool good_since;        /* an answer came since the last break */
    uint64_t probe_lease;
    uint64_t good, missing, bad, broken;
    char why[160];
};

/* A request whose answer waits: for its NZB to be stored, then for a save that has its change. */
struct waiting {
    struct list node; /* in coord.free_waiting, .unstored or .unsaved */
    uint64_t request;
    uint64_t changes; /* durable when the queue's saved_changes reach it */
    uint32_t job_id;
    bool existed;
    int code; /* of the answer once durable */
    uint32_t count;
    struct queue_edit_result *results; /* owned */
};

enum { KEY_MAX = 128, KEYS_MAX = 4096, KEY_BUCKETS = 4096 };
struct key {
    uint64_t hash;
    int64_t until_at;
    uint32_t job_id;
    uint32_t next; /* in its bucket + 1 */
    char text[KEY_MAX];
};

/* An effect that may happen only when what it follows from is durable: what is deleted before could be missed after a
 * crash, when the job is back. */
struct deferred {
    struct list node;
    uint64_t changes;
    struct coord_effect fx;
    char text[]; /* what fx.file.dir or fx.nzb.stored points to */
};

/* Damaged copies that are on the disk, so that a worse one does not replace a better one. A full place forgets the
 * older: then the newer copy is taken, no more. */
enum { KEPT = 1024 };
struct kept {
    struct queue_ref article;
    struct queue_part part;
};

enum { FOLDS = 256 };
struct fold {
    uint32_t job_id;
    uint32_t server_id;
    uint32_t count; /* not written yet */
    enum coord_code code;
    uint64_t written_ms;
    bool used;
};

/* RUN -> DRAIN (leases and writes may end) -> LAST_SAVE -> STOPPED     any -> LAST_SAVE (quick) */
enum phase { PHASE_RUN, PHASE_DRAIN, PHASE_LAST_SAVE, PHASE_STOPPED, PHASES };

struct coord {
    struct queue *q;
    struct coord_limits limits;
    struct clock_time now;
    uint64_t start_ms;
    uint64_t read_bytes;
    uint64_t random;
    struct sm phase;
    bool started;
    struct coord_effects *out; /* during a step */

    struct timers timers;
    struct timer core_timers[CORE_TIMERS];

    struct server *servers[QUEUE_SERVERS_MAX]; /* lanes of the queue are these indexes */
    unsigned server_count;
    bool servers_changed; /* the queue must be told */
    bool servers_down;    /* said so */

    struct lease *leases;
    uint32_t lease_room;
    uint32_t lease_count;   /* all */
    uint32_t writing_count; /* of them on their way to the disk */
    uint16_t lease_free;
    uint64_t generation;
    uint64_t reserved_bytes; /* hints of leases that are not back */
    bool more;               /* a portion was left: come back at once */

    /* holds on everything: `holds` are real and recorded; `gates` only keep the picking in check */
    uint32_t holds;
    uint32_t gates;
    int64_t holds_since_at[QUEUE_HOLDS];
    int64_t pause_until_at;
    uint64_t free_bytes;
    bool space_asked;
    uint64_t no_space_ms; /* of the last ENOSPC; 0: none */
    uint32_t no_space_tries;

    /* quota */
    int64_t day, month; /* numbers of the running periods */
    uint64_t day_bytes, month_bytes;

    /* clocks for stuck jobs: time without a hold on everything; of that, time without a lease */
    uint64_t free_clock_ms, idle_clock_ms;
    uint32_t sweep_at;

    struct list post_line;
    uint32_t post_running;

    /* saving */
    bool save_under_way, save_wanted; /* wanted: at once */
    uint64_t saving_changes;
    uint64_t saves, failed_saves;
    uint32_t save_failures; /* in a row */
    uint64_t save_retry_ms;
    char save_error[128];
    bool waits_for_save; /* a job has wait_changes */
    bool quick;
    uint64_t lost_writes; /* by the deadline of a shutdown */

    struct waiting *waiting;
    struct list free_waiting, unstored, unsaved;
    struct list deferred; /* struct deferred, oldest first */

    struct key *keys; /* a ring: all live equally long */
    uint32_t key_first, key_count;
    uint32_t key_bucket[KEY_BUCKETS];

    struct kept kept[KEPT];
    struct fold folds[FOLDS];
    uint64_t record_seq;
    uint64_t stale_results, illegal_moves;
};

/* ---- step.c ---- */
static inline int64_t coord_now_at(const struct coord *c)
{
    int64_t ms = c->now.wall_ms;
    return ms >= 0 ? ms / 1000 : -((-ms + 999) / 1000);
}
void coord_emit(struct coord *c, const struct coord_effect *fx);
uint64_t coord_random(struct coord *c);
/* 2^n seconds, a fifth more or less, not above the cap; in ms. */
uint64_t coord_backoff_ms(struct coord *c, unsigned n, unsigned cap_s);
void coord_job_timer(struct coord *c, struct queue_job *j); /* set it anew */

/* ---- lease.c ---- */
int coord_leases_reserve(struct coord *c);
void coord_fill(struct coord *c);
struct lease *coord_lease_find(struct coord *c, uint64_t id); /* NULL: gone */
void coord_lease_back(struct coord *c,
                      struct lease *l); /* the worker is done; now the disk has it */
void coord_lease_end(struct coord *c, struct lease *l);  /* the article is dealt with already */
void coord_lease_drop(struct coord *c, struct lease *l); /* cancelled: the article opens again */
void coord_drop_job(struct coord *c, uint32_t job_id);
void coord_drop_file(struct coord *c, uint32_t file_id);
void coord_drop_all(struct coord *c);
void coord_forget_leases(struct coord *c); /* as drop_all, and no answer is waited for */
void coord_lease_due(struct coord *c, struct lease *l);
void coord_drain_nobody(struct coord *c);

/* ---- result.c ---- */
void coord_on_result(struct coord *c, const struct coord_result *r);
void coord_article_settled(struct coord *c, struct queue_ref a, unsigned news);
void coord_article_failed(struct coord *c, struct queue_ref a, enum coord_code code);
void coord_discard(struct coord *c, uint64_t data);

/* ---- server.c ---- */
int coord_servers_set(struct coord *c, const struct coord_server *list, unsigned count,
                      struct err *e);
void coord_servers_sync(struct coord *c); /* tells the queue, once per step */
struct server *coord_server_find(struct coord *c, uint32_t id);
void coord_server_good(struct coord *c, struct server *s);
void coord_server_broke(struct coord *c, struct server *s, enum coord_code code, const char *text);
void coord_server_disable(struct coord *c, struct server *s, const char *why);
void coord_server_too_many(struct coord *c, struct server *s, const char *text);
int coord_server_reset(struct coord *c, uint32_t id);
uint32_t coord_server_credit(const struct server *s);
void coord_server_due(struct coord *c, struct server *s);
void coord_server_limit_due(struct coord *c, struct server *s);
void coord_server_used(struct coord *c, struct server *s, uint64_t bytes);
void coord_server_news(struct coord *c, struct server *s, enum coord_code code, const char *text);
void coord_on_server(struct coord *c, const struct coord_event *ev);
void coord_volumes_tell(struct coord *c);

/* ---- limit.c ---- */
void coord_set_hold(struct coord *c, enum queue_hold hold, bool on, const char *text);
void coord_apply_holds(struct coord *c); /* the queue sees them */
void coord_calendar_start(struct coord *c);
void coord_gate(struct coord *c, enum queue_hold hold, bool on);
void coord_limits_set(struct coord *c, const struct coord_limits *l);
void coord_rate_set(struct coord *c, uint64_t rate);
uint64_t coord_flight_room(const struct coord *c); /* bytes that may be under way */
void coord_quota_used(struct coord *c, uint64_t bytes);
void coord_quota_check(struct coord *c);
void coord_calendar_due(struct coord *c);
void coord_pause(struct coord *c, int64_t seconds);
void coord_resume(struct coord *c);
void coord_pause_due(struct coord *c);

/* ---- job.c ---- */
int coord_move(struct coord *c, struct queue_job *j, enum queue_state to, const char *text);
void coord_hold(struct coord *c, struct queue_job *j, enum queue_hold hold, uint64_t for_ms,
                const char *text);
void coord_unhold(struct coord *c, struct queue_job *j, enum queue_hold hold);
void coord_progress(struct coord *c, struct queue_job *j);
void coord_watch(struct coord *c, struct queue_job *j); /* a job that came into the queue */
void coord_job_due(struct coord *c, struct queue_job *j);
/* Ends it: leases dropped, post stopped, state moved, to history; a failed one wakes its standby. */
void coord_fail(struct coord *c, struct queue_job *j, enum coord_code code, const char *text);
void coord_cancel(struct coord *c, struct queue_job *j, const char *why);
void coord_check_health(struct coord *c, struct queue_job *j);
void coord_check_done(struct coord *c, struct queue_job *j);
void coord_close_file(struct coord *c, struct queue_file *f);
void coord_go_on(struct coord *c, struct queue_job *j); /* nothing of its own holds it any more */
void coord_to_history(struct coord *c, struct queue_job *j);
void coord_came_back(struct coord *c, uint32_t job_id); /* from history, or as a successor */
void coord_wake_saved(struct coord *c);                 /* jobs that waited for the save */
void coord_recover(struct coord *c);
void coord_forget(struct coord *c,
                  struct queue_job *j); /* before it is freed or leaves the queue */
/* One file, or everything of a job that is in history. */
void coord_delete_files(struct coord *c, struct queue_job *j, const struct queue_file *f);
void coord_propagation(struct coord *c, struct queue_job *j);
void coord_remove(struct coord *c, struct queue_job *j);

/* ---- post.c ---- */
void coord_post_enter(struct coord *c, struct queue_job *j);
void coord_post_leave(struct coord *c, struct queue_job *j);
void coord_post_fill(struct coord *c);
void coord_on_post(struct coord *c, const struct coord_post *p);

/* ---- disk.c ---- */
void coord_on_written(struct coord *c, const struct coord_disk *d);
void coord_on_closed(struct coord *c, const struct coord_disk *d);
void coord_on_lost(struct coord *c, const struct coord_disk *d);
void coord_on_space(struct coord *c, const struct coord_disk *d);
void coord_no_space(struct coord *c);
void coord_space_due(struct coord *c);
void coord_disk_trouble(struct coord *c, struct queue_job *j, enum coord_code code);

/* ---- stuck.c ---- */
void coord_sweep(struct coord *c);
void coord_clocks(struct coord *c, uint64_t passed_ms);

/* ---- command.c, add.c, key.c ---- */
void coord_on_command(struct coord *c, const struct coord_command *cmd);
void coord_on_nzb_stored(struct coord *c, const struct coord_nzb *n);
void coord_on_nzb_loaded(struct coord *c, const struct coord_nzb *n);
void coord_on_url(struct coord *c, const struct coord_nzb *n);
void coord_add(struct coord *c, const struct coord_command *cmd);
void coord_fetch_url(struct coord *c, struct queue_job *j);
void coord_edit(struct coord *c, const struct coord_command *cmd);
void coord_reply(struct coord *c, uint64_t request, int code, const char *text);
struct waiting *coord_wait(struct coord *c, uint64_t request, uint32_t job_id);
void coord_wait_saved(struct coord *c, struct waiting *w); /* its change is made */
void coord_wait_end(struct coord *c, struct waiting *w, int code, const char *text);
uint32_t coord_key_find(struct coord *c, const char *text);
void coord_key_put(struct coord *c, const char *text, uint32_t job_id, int64_t until_at);
void coord_key_forget(struct coord *c, uint32_t job_id); /* it was never promised */
extern const char coord_key_param[];
int coord_reserve_timers(struct coord *c, uint32_t more_jobs);

/* ---- save.c ---- */
void coord_save_soon(struct coord *c);
/* Emits `fx` when a save has the present state; `text` is copied for it. */
void coord_after_save(struct coord *c, const struct coord_effect *fx, const char *text);
void coord_save_due(struct coord *c);
void coord_save_maybe(struct coord *c); /* the last thing of a step */
void coord_on_saved(struct coord *c, const struct coord_saved *s);
void coord_shutdown(struct coord *c);
void coord_stop_due(struct coord *c);
void coord_stop_check(struct coord *c);
static inline bool coord_running(const struct coord *c)
{
    return c->phase.state == PHASE_RUN;
}
extern const struct sm_type coord_phase_type;

/* ---- record.c ---- */
void coord_record(struct coord *c, const struct coord_record *r); /* fills seq and at */
void coord_record_job(struct coord *c, enum coord_record_type type, const struct queue_job *j,
                      enum coord_code code, const char *text);
void coord_record_error(struct coord *c, const struct queue_job *j, uint32_t server_id,
                        enum coord_code code);
void coord_fold_due(struct coord *c);

#endif
