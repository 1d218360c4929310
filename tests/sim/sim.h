/* sim.h - the coordinator core in a made-up world: one seed, one run, bit for bit.
 *
 * The world has news servers that lack articles, hand out damaged or wrong ones, drop connections, fall silent, refuse
 * logins and flap; a disk that is slow, full, failing, and forgets what was not synced; post-processing; a user who
 * does anything at any time; and crashes, after which everything begins again from what was durable. Time is a number.
 *
 * world.c   posts and servers: what is true            disk.c    files, journal, snapshots (on tests/lib/fsim)
 * effects.c what the core asks for, and checks of it   user.c    random commands, and what was promised
 * outcome.c what must hold in the end                  run.c     the loop, the crashes, the phases
 *
 * A violation prints the seed, one line that replays it, and, when asked to trace, everything that happened. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/step.h"
#include "lib/fsim.h"
#include "lib/rng.h"

enum {
    POSTS = 6,
    POST_FILES = 8,
    POST_ARTICLES = 64, /* of one post */
    SERVERS = 4,
    JOBS = 256, /* job ids of one run */
    FILES = 2048,
    LEASES = 4096,
    REQUESTS = 4096,
    SAVES = 8,
};

/* ---- what was posted ---- */

struct post_file {
    char name[48];
    unsigned count;  /* articles */
    unsigned first;  /* of the post */
    unsigned blocks; /* PAR2 volume */
    bool volume, main;
};
struct post {
    char *text; /* the NZB */
    size_t len;
    struct post_file files[POST_FILES];
    unsigned file_count, article_count;
    int64_t date;
    char title[16];
};

enum copy { COPY_GOOD, COPY_MISSING, COPY_DAMAGED, COPY_WRONG, COPY_LATE, COPY_BREAKS };

struct fake_server {
    struct coord_server conf;
    unsigned missing, damaged, wrong, late, breaks; /* of 1000 articles */
    unsigned drop;                                  /* of 1000 answers: the connection breaks */
    unsigned silent;                                /* of 1000: no answer at all */
    unsigned latency_ms;
    unsigned max_connections;               /* more are refused; 0: any */
    uint64_t down_from_ms, down_until_ms;   /* cannot be reached */
    uint64_t login_from_ms, login_until_ms; /* refuses the login */
    uint64_t flap_ms;                       /* up and down in turns; 0: no */
    bool reliable; /* only missing and damaged articles: the truth can be told */
    uint32_t inflight;
    bool was_disabled; /* at any time in this run */
};

/* ---- the disk ---- */

struct cell { /* one article's bytes in a file */
    uint32_t crc, size;
    bool there, synced;
};
struct disk_file {
    uint32_t job_id;
    bool exists, closed;
    bool open;          /* what was lost or deleted takes no write before it is opened again */
    struct cell *cells; /* by index of 1000 bytes */
    unsigned room;
};

enum op_kind {
    OP_OPEN,
    OP_WRITE,
    OP_CLOSE,
    OP_DELETE,
    OP_JOURNAL,
    OP_SAVE,
    OP_STORE,
    OP_LOAD,
    OP_FORGET,
    OP_SPACE
};
struct op {
    enum op_kind kind;
    uint32_t job_id, file_id;
    uint64_t lease, offset;
    uint32_t size, crc;
    bool has_data;
    struct queue_journal_record record;
    struct queue_snapshot snapshot;
    uint64_t changes;
    unsigned post; /* STORE: which NZB */
    char stored[QUEUE_STORED_NAME];
};

/* ---- things that will happen ---- */

enum happening {
    H_TICK,
    H_RESULT,
    H_DISK, /* the disk does its next operation */
    H_SYNC, /* the disk's own second */
    H_POST,
    H_URL,
    H_USER,
    H_CRASH,
    H_CALM,
};
struct future {
    uint64_t at_ms, seq;
    enum happening what;
    uint64_t n;
};

struct fetch { /* a lease as the world knows it */
    uint64_t lease;
    uint32_t server_id, job_id;
    struct queue_ref article;
    unsigned post, index; /* which article of which post */
    bool cancelled;
};

struct want {            /* what is promised about a job after the answer came */
    bool added, removed; /* acknowledged */
    bool vague;          /* an edit may have taken it away */
    int32_t priority;    /* acknowledged, when sure */
    bool priority_sure;
};

struct request {
    bool open, answered;
    enum coord_op op;
    uint32_t job_id; /* edit: the (single) job or file */
    int edit_op;
    int64_t number;
    uint64_t life; /* which life of the program it was sent to */
};

struct sim {
    uint64_t seed;
    struct rng r;
    bool trace;
    uint64_t now_ms;
    int64_t wall_offset_ms;
    uint64_t wall_jumps;
    struct coord *c;
    uint64_t start_ms;
    bool running, stopped, calm;
    uint64_t stop_asked_ms;
    unsigned crashes, restarts, steps;
    uint64_t last_step_ms;
    unsigned steps_now;

    struct post posts[POSTS];
    unsigned post_count;
    struct fake_server servers[SERVERS];
    unsigned server_count;
    struct coord_limits limits;
    uint64_t day_bytes;

    struct future *heap;
    unsigned heap_count, heap_room;
    uint64_t seq;

    struct fetch fetches[LEASES];
    uint64_t fetch_next;
    unsigned fetch_window[POSTS][POST_ARTICLES]; /* fetches of an article in this window */
    uint64_t window_ms;
    uint64_t fetch_count;

    struct fsim *fs;
    struct disk_file files[FILES];
    struct op ops[1024];
    unsigned op_first, op_count;
    bool disk_busy, sync_set;
    struct queue_journal journal;
    bool journal_open;
    struct queue_journal_record kept[4096]; /* not yet in the journal */
    unsigned kept_count;
    uint64_t full_from_ms, full_until_ms, bad_from_ms, bad_until_ms;
    unsigned disk_ms;
    uint32_t bad_file; /* 0 or all: the failing window hits this job only */

    bool save_asked; /* in this step */
    uint64_t save_changes;
    struct { /* the answer that is being handled: what a WRITE writes */
        unsigned post, index;
        bool good;
    } answer;

    struct request requests[REQUESTS];
    uint64_t request_next;
    struct want wants[JOBS];
    uint32_t job_post[JOBS];  /* post + 1 */
    uint64_t paused_until_ms; /* 0: not paused; UINT64_MAX: until resumed */
    bool scheduled;
    bool par_requested[JOBS], files_edited[JOBS];
    enum coord_server_state told[SERVERS];
    unsigned probes[SERVERS]; /* fetches since the last change of state */
    bool past_edited;         /* the user did something in the history */
    bool moved_by_hand;       /* an illegal transition was provoked */
    bool bad_window;          /* the disk failed at some time */
    bool posting[JOBS], recovered[JOBS];
    bool made_by_add[JOBS]; /* not by an edit */
    bool password_given[JOBS];
    unsigned outstanding; /* fetches not answered */
};

/* Something that must never happen did. Prints and ends the process. */
_Noreturn void sim_violation(struct sim *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void sim_say(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define MUST(s, cond, ...)                 \
    do {                                   \
        if (!(cond)) {                     \
            sim_violation(s, __VA_ARGS__); \
        }                                  \
    } while (0)

static inline bool sim_chance(struct sim *s, unsigned of_1000)
{
    return rng_below(&s->r, 1000) < of_1000;
}
static inline uint64_t sim_pick(struct sim *s, uint64_t low, uint64_t high)
{
    return low + rng_below(&s->r, high - low + 1);
}

/* run.c */
void sim_run(struct sim *s, uint64_t seed, bool trace);
void sim_later(struct sim *s, uint64_t in_ms, enum happening what, uint64_t n);
void sim_step(struct sim *s, struct coord_event *ev);
int64_t sim_wall_ms(const struct sim *s);

/* world.c */
void world_make(struct sim *s);
void world_free(struct sim *s);
enum copy world_copy(const struct sim *s, unsigned server, unsigned post, unsigned index);
uint32_t world_crc(const struct sim *s, unsigned post, unsigned index);
void world_answer(struct sim *s, uint64_t n);
/* Which article of the world this is; false: not one of ours. */
bool world_find(const struct sim *s, const char *message_id, unsigned *post, unsigned *index);

/* effects.c */
void effects_emit(void *arg, const struct coord_effect *fx);

/* disk.c */
void disk_make(struct sim *s);
void disk_free(struct sim *s);
void disk_push(struct sim *s, const struct op *op);
void disk_do(struct sim *s);
void disk_sync(struct sim *s);
void disk_crash(struct sim *s);
struct queue *disk_load(struct sim *s);
const struct cell *disk_cell(const struct sim *s, uint32_t file_id, uint64_t offset);

/* user.c */
void user_act(struct sim *s);
void user_calm(struct sim *s);
void user_reply(struct sim *s, const struct coord_reply *r);
void user_crashed(struct sim *s);
void user_url(struct sim *s, uint64_t n);
uint64_t user_command(struct sim *s, struct coord_command *cmd);

/* outcome.c */
void outcome_step(struct sim *s); /* after every step */
void outcome_post(struct sim *s, uint32_t job_id);
void outcome_check(struct sim *s);
void outcome_loaded(struct sim *s);
unsigned outcome_lost(const struct sim *s, const struct queue_job *j, unsigned *blocks);

#endif
