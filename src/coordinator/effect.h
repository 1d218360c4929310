/* effect.h - everything the coordinator can ask of others.
 *
 * Effects are handed out one by one while coord_step() runs, through the sink. What they point to is borrowed until
 * the sink returns; the sink must not call coord_step(). Effects of one step, and those of later steps, reach each
 * receiver in the order in which they were given: DELETE_FILES overtakes no WRITE, and what SAVE has was journalled. */
#ifndef COORDINATOR_EFFECT_H
#define COORDINATOR_EFFECT_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/event.h"
#include "queue/state.h"

enum coord_effect_type {
    COORD_FX_FETCH,      /* nntp: a lease. Ends in exactly one RESULT */
    COORD_FX_CANCEL,     /* nntp: nobody waits for this lease any more; a RESULT may come or not */
    COORD_FX_RATE,       /* nntp: .bytes per second may be read; 0: no limit */
    COORD_FX_SERVER,     /* nntp, rpc: .server: its state or its number of connections changed */
    COORD_FX_OPEN_FILE,  /* disk: .file: make it ready for writing, create or reopen */
    COORD_FX_WRITE,      /* disk: .write. Ends in exactly one WRITTEN */
    COORD_FX_DISCARD,    /* nntp: .data is not needed */
    COORD_FX_CLOSE_FILE, /* disk: .file: sync, give it its name. Ends in exactly one CLOSED */
    COORD_FX_DELETE_FILES, /* disk: .file; file_id 0: everything of the job */
    COORD_FX_QUARANTINE,   /* disk: .file: everything of the job is put out of reach */
    COORD_FX_MOVE_DIR,     /* disk: .file: name or category changed */
    COORD_FX_CHECK_SPACE,  /* disk: ends in one SPACE */
    COORD_FX_JOURNAL,      /* disk: .journal, once the data it names is synced */
    COORD_FX_SAVE, /* disk: the queue as it is when the step returns, once all data is synced. One SAVED */
    COORD_FX_STORE_NZB,  /* disk: .nzb. One NZB_STORED */
    COORD_FX_LOAD_NZB,   /* disk: .nzb. One NZB_LOADED */
    COORD_FX_FORGET_NZB, /* disk: .nzb */
    COORD_FX_FETCH_URL,  /* .nzb. One URL */
    COORD_FX_POST_START, /* post: .job_id. One POST ENDED, unless it is stopped */
    COORD_FX_POST_STOP,  /* post: .job_id */
    COORD_FX_RECORD,     /* store: .record */
    COORD_FX_VOLUME,     /* store: .volume: bytes read from a server since the last one */
    COORD_FX_REPLY,      /* rpc: .reply: each request gets exactly one */
    COORD_FX_STOPPED,    /* the shell: nothing more will come; .code says whether all is saved */
    COORD_EFFECTS,
};

/* The server machine:
 *
 *     UP -> BACKOFF -> PROBE -> UP          BACKOFF -> UP (an answer came after all)
 *     any -> DISABLED -> UP                 PROBE -> BACKOFF */
enum coord_server_state {
    COORD_SERVER_UP,
    COORD_SERVER_BACKOFF,
    COORD_SERVER_PROBE, /* one article may try it */
    COORD_SERVER_DISABLED,
    COORD_SERVER_STATES,
};
extern const struct sm_type coord_server_type;

enum coord_record_type { /* design: the list of events in the store */
                         COORD_REC_CREATED,
                         COORD_REC_CLAIMED,
                         COORD_REC_STATUS_CHANGED,
                         COORD_REC_ERROR, /* folded: .count of them */
                         COORD_REC_RETRY_SCHEDULED,
                         COORD_REC_RECOVERED,
                         COORD_REC_HOLD_SET,
                         COORD_REC_HOLD_CLEARED,
                         COORD_REC_HEALTH,
                         COORD_REC_PAR_REQUESTED,
                         COORD_REC_STAGE,
                         COORD_REC_FILE_DONE,
                         COORD_REC_STUCK,
                         COORD_REC_VERDICT,
                         COORD_REC_ILLEGAL,
                         COORD_REC_SERVER,
                         COORD_REC_SAVE_FAILED,
                         COORD_RECORDS,
};
const char *coord_record_name(enum coord_record_type type);

struct coord_record {
    uint64_t seq; /* from 1, without gaps */
    int64_t at;
    enum coord_record_type type;
    uint32_t job_id;      /* 0: the whole queue */
    uint64_t row_version; /* of the job after it */
    uint32_t server_id;
    enum coord_code code;
    int from, to; /* enum queue_state, or the hold in `to` */
    uint64_t count;
    const char *text; /* "" or a sentence */
};

struct coord_fetch {
    uint64_t lease;
    uint32_t server_id;
    uint32_t job_id;
    struct queue_ref article;
    const char *message_id; /* without <> */
    uint32_t part_number;
    uint32_t bytes; /* hint */
    uint64_t deadline_ms;
};

struct coord_file {
    uint32_t job_id;
    uint32_t file_id;
    const char *dir;
    const char *name;
    uint64_t size; /* decoded; 0 unknown */
    bool has_data; /* OPEN_FILE: parts were written before; LOST when they are not there */
};

struct coord_write {
    uint64_t lease;
    uint64_t data;
    uint32_t file_id;
    uint64_t offset;
    uint32_t size;
};

struct coord_status { /* COORD_STATUS; also coord_status() */
    uint64_t rate_limit;
    uint64_t read_bytes;
    uint64_t left_bytes, forced_bytes;
    uint64_t day_bytes, month_bytes; /* against the quota */
    uint64_t free_bytes;
    uint64_t stale_results; /* of leases that were gone */
    uint64_t illegal_moves;
    uint64_t saves, failed_saves;
    int64_t pause_until_at; /* timed pause; 0: none */
    uint32_t holds;         /* on everything */
    uint32_t leases;
    uint32_t jobs;
    uint32_t servers_up;
    bool save_failing; /* the last save did not succeed */
    bool stopping;
    char save_error[128];
};

struct coord_reply {
    uint64_t request;
    int code; /* 0, or an ERR_ code with .text in words */
    uint32_t job_id;
    bool existed; /* ADD: the job was there already */
    const struct queue_edit_result *results;
    const uint32_t *ids; /* STUCK */
    uint32_t count;
    const struct coord_status *status;
    const char *text;
};

struct coord_effect {
    enum coord_effect_type type;
    union {
        uint64_t lease;
        uint64_t data;
        uint64_t bytes;
        uint32_t job_id;
        uint64_t changes; /* SAVE: comes back in SAVED */
        struct coord_fetch fetch;
        struct {
            uint32_t id;
            enum coord_server_state state;
            uint8_t connections;
            const char *why;
        } server;
        struct coord_file file;
        struct coord_write write;
        struct queue_journal_record journal;
        struct {
            uint32_t job_id;
            uint64_t data;
            const char *stored;
            const char *url;
        } nzb;
        struct coord_record record;
        struct {
            uint32_t server_id;
            uint64_t bytes;
        } volume;
        struct coord_reply reply;
        int code;
    };
};

struct coord_effects {
    void (*emit)(void *arg, const struct coord_effect *fx);
    void *arg;
};

const char *coord_effect_name(enum coord_effect_type type);

#endif
