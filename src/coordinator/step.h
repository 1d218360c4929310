/* step.h - the coordinator core: a function from events to effects.
 *
 * It owns the queue and decides everything: which server fetches which article, what a failure means, when a job
 * moves on, what is held and why, when to save. It does no I/O, reads no clock, starts no thread, and its only
 * randomness comes from the seed, so the same events give the same effects, always. loop.h is the shell that feeds it
 * in the daemon; tests/sim feeds it storms.
 *
 * One step costs O(1) in the length of the queue (O(log jobs) for timers); work that could be long is done in
 * portions, and coord_next_ms() then says "at once".
 *
 * Reading order: errors.h (what can go wrong), event.h, effect.h, this; then step.c (the walk through one step),
 * lease.c, result.c, server.c, limit.c, job.c, post.c, disk.c, stuck.c, command.c, save.c, record.c. */
#ifndef COORDINATOR_STEP_H
#define COORDINATOR_STEP_H

#include "coordinator/effect.h"
#include "coordinator/event.h"

/* Thresholds of the model, in one place. */
enum {
    COORD_LEASE_MS = 60 * 1000,         /* without a byte */
    COORD_ARTICLE_ATTEMPTS = 10,        /* charged to an article */
    COORD_ARTICLE_BACKOFF_S = 60,       /* cap */
    COORD_SERVER_BACKOFF_S = 300,       /* cap, then a probe every so often */
    COORD_SERVER_BLAME = 3,             /* breaks inside articles in a row before articles pay */
    COORD_TOO_MANY_MS = 10 * 60 * 1000, /* one connection fewer, then one more is tried */
    COORD_URL_ATTEMPTS = 10,
    COORD_URL_BACKOFF_S = 15 * 60,
    COORD_STAGE_ATTEMPTS = 3,
    COORD_JOB_ATTEMPTS = 3,
    COORD_DISK_GRACE_MS = 60 * 1000,
    COORD_SPACE_CHECK_MS = 10 * 1000,
    COORD_SAVE_MS = 30 * 1000,
    COORD_SAVE_RETRY_S = 30, /* cap of the backoff after failed saves */
    COORD_SWEEP_MS = 15 * 1000,
    COORD_SWEEP_JOBS = 100,
    COORD_FOLD_MS = 10 * 1000,
    COORD_FLIGHT_MS = 5000, /* under a speed limit, so much time's worth of bytes is under way */
    COORD_KEY_SEC = 24 * 3600,
    COORD_STOP_MS = 4 * 1000, /* leases and writes may end; then the last save */
    COORD_QUICK_MS = 1000,
    COORD_STUCK_CREATED_MS = 10 * 60 * 1000,
    COORD_STUCK_QUEUED_MS = 60 * 60 * 1000,
    COORD_STUCK_SILENT_MS = 15 * 60 * 1000,
    COORD_STUCK_DOWNLOADING_MS = 24 * 60 * 60 * 1000,
    COORD_STUCK_PROCESSING_MS = 10 * 60 * 1000,
    COORD_STUCK_COMPLETED_MS = 60 * 60 * 1000,
    COORD_STUCK_IMPORTED_MS = 24 * 60 * 60 * 1000,
    COORD_GRACE_MS = 45 * 60 * 1000, /* of a young post that nobody has */
    COORD_LEASES_MAX = 16384,
    COORD_WAITING_MAX = 1024, /* commands whose change is not durable yet */
    COORD_FILL_MAX = 256,     /* leases given out in one step */
};
extern const uint32_t
    coord_grace_sec[4]; /* between the rounds: 60 s, 5, 15 and 45 min after the first */

struct coord;

struct coord_config {
    struct coord_limits limits;
    const struct coord_server *servers;
    unsigned server_count;
    uint64_t seed;
    uint64_t day_bytes, month_bytes; /* used of the quotas before we began */
};

/* Takes `q`, whole and checked, on success. The first step must be START. NULL: no memory. */
struct coord *coord_new(struct queue *q, const struct coord_config *config, struct clock_time now);
void coord_free(struct coord *c); /* and the queue; waiting requests get no answer any more */

void coord_step(struct coord *c, const struct coord_event *ev, struct coord_effects *out);

/* When the next TICK is needed at the latest (monotonic); never later than a second while anything runs. */
uint64_t coord_next_ms(const struct coord *c);

/* ---- for the shell, views and tests; the queue may be read between steps ---- */

struct queue *coord_queue(struct coord *c);
struct coord_status coord_status(const struct coord *c);
bool coord_stopped(const struct coord *c);

struct coord_server_view {
    uint32_t id;
    enum coord_server_state state;
    uint8_t connections; /* how many it may have now */
    uint32_t credit;     /* leases it may hold now */
    uint32_t leases;
    uint32_t failures;                   /* in a row */
    uint64_t good, missing, bad, broken; /* articles; broken: transport */
    uint64_t bytes;
    uint64_t retry_in_ms; /* BACKOFF */
    char why[160];        /* not UP: the reason in words */
};
unsigned coord_server_count(const struct coord *c);
struct coord_server_view coord_server_view(const struct coord *c, unsigned i);

struct coord_lease_view {
    uint64_t id;
    struct queue_ref article;
    uint32_t server_id;
    uint64_t deadline_ms;
    bool writing; /* came back good and is on its way to the disk */
    bool gone;    /* cancelled; its slot is kept until the worker answers */
};
/* False: slot `i` (below coord_lease_room()) is free. */
uint32_t coord_lease_room(const struct coord *c);
bool coord_lease_view(const struct coord *c, uint32_t i, struct coord_lease_view *v);

/* Everything that must be true between steps, walked slowly; aborts when it is not. For tests. */
void coord_check(const struct coord *c);

#endif
