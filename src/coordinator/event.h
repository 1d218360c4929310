/* event.h - everything that can happen to the coordinator: news from workers, and commands.
 *
 * Plain data. Pointers are borrowed for the length of coord_step(), but for the two that say "taken". Numbers that come
 * from workers name things by id (lease, file, job, server), never by pointer: what is gone by then is simply not found. */
#ifndef COORDINATOR_EVENT_H
#define COORDINATOR_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "coordinator/errors.h"
#include "queue/edit.h"
#include "queue/health.h"
#include "queue/queue.h"

/* ---- servers, as configured ---- */

enum { COORD_NAME_MAX = 64, COORD_CONNECTIONS_MAX = 255, COORD_DEPTH_MAX = 32 };

struct coord_server {
    uint32_t id; /* its number in the configuration, not 0 */
    char name[COORD_NAME_MAX];
    int level;
    int group;
    uint32_t retention_days;
    bool optional;
    bool active;
    uint8_t connections; /* at most */
    uint8_t depth; /* articles under way per connection; until the pools say better (CREDIT) */
    uint64_t volume_limit; /* bytes of a block account; 0: none */
    uint64_t volume_used;  /* of it before we began */
};

struct coord_limits {
    uint64_t rate;            /* bytes per second; 0: no limit */
    uint64_t quota_day;       /* bytes; 0: no limit */
    uint64_t quota_month;     /* bytes; 0: no limit */
    uint8_t quota_start_day;  /* of the month, 1..31; a shorter month begins on its last day */
    int32_t utc_offset_sec;   /* local time, for days and months */
    uint64_t disk_min_bytes;  /* below this much free space nothing is fetched; 0: no guard */
    uint32_t propagation_sec; /* posts younger than this wait */
    uint32_t young_sec;       /* posts younger than this get the not-found grace */
    uint8_t health_check;     /* enum queue_health_check */
    uint8_t post_slots;       /* jobs in post-processing at once */
    bool dupe_check;
    bool imports; /* finished jobs are imported: one that is not after an hour is stuck */
};

/* ---- commands ---- */

enum coord_op {
    COORD_ADD,          /* .add */
    COORD_EDIT,         /* .edit: everything of queue/edit.h */
    COORD_PAUSE,        /* the whole queue; .number: seconds, 0: until resumed */
    COORD_RESUME,       /* the whole queue */
    COORD_SCHEDULE,     /* .number: 1 sets, 0 clears the SCHEDULE hold */
    COORD_RATE,         /* .number: bytes per second, 0: no limit */
    COORD_LIMITS,       /* .limits: all of them */
    COORD_SERVERS,      /* .servers, .count: the whole list */
    COORD_SERVER_RESET, /* .number: server id; a disabled server is used again */
    COORD_STATUS,       /* answered at once, from memory */
    COORD_STUCK,        /* ids of jobs on the ladder */
    COORD_SHUTDOWN,     /* graceful; given again: quick */
    COORD_OPS,
};

struct coord_add {
    struct queue_add
        job;         /* .nzb is taken when the step returns, also on refusal; NULL with a url */
    uint64_t data;   /* the NZB's text, for STORE_NZB; the shell's own number, 0 none */
    const char *key; /* the client's idempotency key; NULL or "": none */
};

struct coord_command {
    uint64_t request; /* whose answer this will be; echoed in REPLY */
    enum coord_op op;
    int64_t number;
    const struct coord_add *add;
    const struct queue_edit *edit;
    const struct coord_limits *limits;
    const struct coord_server *servers;
    uint32_t count;
};

/* ---- news ---- */

enum coord_event_type {
    COORD_EV_START,      /* once, first: the queue was loaded */
    COORD_EV_TICK,       /* time passed */
    COORD_EV_COMMAND,    /* .command */
    COORD_EV_RESULT,     /* a lease came back: .result */
    COORD_EV_PROGRESS,   /* bytes for this lease, or its connection is known to be alive: .lease */
    COORD_EV_SERVER,     /* without a lease: logged in (OK), or why not: .server */
    COORD_EV_CREDIT,     /* .server: how many leases its pools would like to hold */
    COORD_EV_WRITTEN,    /* disk: a WRITE ended: .disk */
    COORD_EV_CLOSED,     /* disk: a CLOSE_FILE ended: .disk */
    COORD_EV_LOST,       /* disk: what was written to a file is not there any more: .disk */
    COORD_EV_SPACE,      /* disk: free bytes: .disk */
    COORD_EV_SAVED,      /* disk: a SAVE ended: .saved */
    COORD_EV_NZB_STORED, /* disk: a STORE_NZB ended: .nzb */
    COORD_EV_NZB_LOADED, /* disk: a LOAD_NZB ended: .nzb */
    COORD_EV_URL,        /* a FETCH_URL ended: .nzb */
    COORD_EV_POST,       /* post-processing: .post */
    COORD_EVENTS,
};

struct coord_result {
    uint64_t lease;
    enum coord_code code;
    bool began; /* the article's own answer had begun when the connection broke */
    uint64_t
        data; /* the decoded bytes, the shell's own number; 0: none. Answered by WRITE or DISCARD */
    struct queue_part part;
    uint64_t file_size; /* =ybegin size; 0 unknown */
    const char *name;   /* =ybegin name; NULL unknown */
    uint32_t wire_bytes;
    const char *text; /* what the server said; NULL: nothing */
};

struct coord_disk {
    uint64_t lease;   /* WRITTEN */
    uint32_t file_id; /* CLOSED, LOST */
    enum coord_code code;
    uint64_t free_bytes; /* SPACE */
};

struct coord_saved {
    uint64_t changes;    /* as in SAVE */
    uint64_t generation; /* of the snapshot */
    enum coord_code code;
    const char *text;
};

struct coord_nzb {
    uint32_t job_id;
    enum coord_code code;
    struct nzb *nzb;         /* URL: taken */
    struct nzb *const *nzbs; /* LOADED: one per source of the job; taken */
    uint32_t nzb_count;
    uint64_t data;          /* URL: its text, for STORE_NZB */
    const char *stored;     /* STORED: its name */
    const char *text;       /* what went wrong */
    uint32_t retry_after_s; /* URL: as the site asked; 0: it did not */
};

enum coord_post_kind {
    COORD_POST_PROGRESS,
    COORD_POST_ENDED, /* .code: OK, or what went wrong */
    COORD_POST_MOVED, /* a finished job goes on: .to is IMPORTED or CLEANED */
    COORD_POST_PAR2,  /* the PAR2 main file was read: .slice, .members */
};
struct coord_post {
    uint32_t job_id;
    enum coord_post_kind kind;
    enum coord_code code;
    uint32_t blocks; /* PAR_BLOCKS: how many more */
    enum queue_state to;
    uint64_t slice;
    const struct queue_par2_member *members;
    uint32_t member_count;
    const char *text;
};

struct coord_event {
    enum coord_event_type type;
    struct clock_time now;
    uint64_t
        read_bytes; /* every event: bytes read from all sockets since the start, for the limit */
    union {
        uint64_t lease;
        struct coord_command command;
        struct coord_result result;
        struct {
            uint32_t id;
            enum coord_code code;
            uint32_t credit;
            const char *text;
        } server;
        struct coord_disk disk;
        struct coord_saved saved;
        struct coord_nzb nzb;
        struct coord_post post;
    };
};

const char *coord_event_name(enum coord_event_type type);
const char *coord_op_name(enum coord_op op);

#endif
