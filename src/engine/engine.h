/* engine.h - the parts joined: the coordinator core on its thread, NNTP pools, the disk, post-processing.
 *
 * The engine's thread owns the core (coordinator/step.h). Everything that happens to the other parts comes to it as a
 * message, becomes an event, and the effects of the step are carried out at once, as messages to others. Nothing on
 * this thread blocks: files are the disk's business, sockets the pools', hashing and repair a worker's.
 *
 * Whoever wants something asks with engine_ask(): a command (answered when it is durable, by the core's REPLY) or a
 * look (a function that runs on the engine's thread and copies what it wants to know). */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "coordinator/step.h"
#include "nntp/server.h"

enum { ENGINE_SERVERS_MAX = QUEUE_SERVERS_MAX, ENGINE_WORKERS_MAX = 16 };

struct engine_server {
    struct coord_server policy; /* level, connections, ... ; its id also goes into `link` */
    struct nntp_server link;    /* host, TLS, login, ... */
};

struct engine_options {
    const char *state_dir; /* made with 0700; one engine at a time has its lock */
    const char *root_dir;  /* below it the jobs' directories */
    const struct engine_server *servers;
    unsigned server_count;
    struct coord_limits limits;
    unsigned workers;    /* pools; 0: one per CPU, at most 4 */
    size_t buffer_bytes; /* article buffers; 0: 32 MiB */
    const struct clock *clock;
    /* Something is worth telling (a record of the core; a job is borrowed for the call). On the engine's thread. */
    void (*record)(void *arg, const struct coord_record *r);
    /* The queue could not be loaded as it should have been, and such: one sentence. On the caller's thread. */
    void (*say)(void *arg, const char *line);
    void *arg;
};

struct engine;

/* Takes the lock, loads the queue, starts the threads. On failure nothing is left. */
int engine_start(struct engine **out, const struct engine_options *o, struct err *e);
/* Any thread. Graceful; called again: quick. */
void engine_stop(struct engine *e);
/* Waits until all threads have ended and frees everything. 0, or why the last save failed. */
int engine_join(struct engine *e);

struct engine_ask {
    /* One of the two. */
    void (*look)(struct engine_ask *a, struct coord *c);
    struct coord_command command; /* what it points to must live until `done` */
    const void *bytes;            /* COORD_ADD: the NZB's text, to be stored; copied */
    size_t len;
    /* Runs on the engine's thread; the reply (NULL for a look) is borrowed. Always called, once: when the engine ends
     * first, with ERR_STOPPED. It must only copy and post. */
    void (*done)(struct engine_ask *a, const struct coord_reply *r);
    void *arg;
    struct list node; /* private */
};
/* Any thread. 0, or ERR_STOPPED, ERR_FULL: not taken. */
int engine_ask(struct engine *e, struct engine_ask *a);

/* Bytes from all sockets so far; connections that are up. Any thread. */
struct engine_counters {
    uint64_t bytes_in;
    unsigned connections;
};
struct engine_counters engine_counters(const struct engine *e);

#endif
