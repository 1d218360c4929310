/* parts.h - what the files of src/engine share. Private. */
#ifndef ENGINE_PARTS_H
#define ENGINE_PARTS_H

#include "base/actor.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "disk/disk.h"
#include "engine/engine.h"
#include "nntp/pool.h"

enum {
    INBOX = 4 * COORD_LEASES_MAX, /* room for everything that can be under way at a time */
};

/* ---- fetch.c: leases out, results in ---- */

struct link_state { /* one server in one pool */
    unsigned connections;
    unsigned held;   /* fetches it has */
    unsigned credit; /* how many it would like to have */
};

struct fetches {
    struct nntp_rate rate;
    struct nntp_pool *pools[ENGINE_WORKERS_MAX];
    unsigned pool_count;
    struct engine_server servers[ENGINE_SERVERS_MAX];
    unsigned server_count;
    struct link_state links[ENGINE_WORKERS_MAX][ENGINE_SERVERS_MAX];
    struct list spare;                        /* struct nntp_fetch by its node */
    struct list leased;                       /* struct fetch_slot: with a pool */
    uint64_t alive_bytes[ENGINE_WORKERS_MAX]; /* bytes_in when its leases were last vouched for */
    unsigned config_out;                      /* nntp_servers messages under way */
};

int fetch_start(struct engine *e, struct err *err);
void fetch_stop(struct engine *e);
void fetch_free(struct engine *e);
void fetch_effect(struct engine *e, const struct coord_effect *fx);
void fetch_message(struct engine *e, struct nntp_msg *m);
/* Now and then: leases of pools that still read something are alive. */
void fetch_vouch(struct engine *e);

/* ---- write.c: effects for the disk, and what it answers ---- */

void write_free(struct engine *e);
void write_effect(struct engine *e, const struct coord_effect *fx);
void write_snapshot(struct engine *e);
void write_message(struct engine *e, struct disk_msg *m);

/* ---- verify.c: PAR2 when a job has all it wanted ---- */

void verify_start(struct engine *e, uint32_t job_id);
void verify_stop(struct engine *e, uint32_t job_id);
/* Tells the core which ones get on. */
void verify_vouch(struct engine *e);

/* ---- engine.c ---- */

/* The text of an NZB on its way to the disk. The core knows it and article buffers alike by a number; a text's is
 * odd. */
struct engine_text {
    size_t len;
    char bytes[];
};
static inline uint64_t engine_text_number(struct engine_text *t)
{
    return (uint64_t)(uintptr_t)t | 1;
}
static inline struct engine_text *engine_text_of(uint64_t number)
{
    return (number & 1) != 0 ? (struct engine_text *)(uintptr_t)(number - 1) : NULL;
}

struct engine {
    struct engine_options o;
    struct actor actor; /* its inbox: struct engine_ask */
    struct actor_type type;
    struct coord *core;
    struct coord_effects effects;
    struct fetches fetch;
    struct buf_pool bufs;
    struct disk *disk;
    int root, state, lock; /* directories; the lock file */
    uint64_t generation;   /* of the snapshot that was loaded */
    struct mbox from_pools;
    struct mbox from_disk;
    unsigned mboxes_open;
    uv_timer_t tick;
    uint64_t tick_at_ms; /* what it is set to */
    uv_timer_t vouch;
    struct engine_ask stop_asks[2]; /* graceful, quick */
    atomic_uint stops;
    bool in_step;
    bool save_wanted; /* a SAVE effect of this step */
    uint64_t save_changes;
    bool stopped; /* the core said so */
    int stop_code;
    uv_sem_t stopped_sem;
    struct list waiting;      /* struct engine_ask: commands without their reply */
    struct list spare_writes; /* struct write_slot */
    struct list verifies;     /* struct verify */
};

/* Fills in the time, makes the step, carries the effects out. */
void engine_step(struct engine *e, struct coord_event *ev);

#endif
