/* msg.h - what a pool is asked and what it answers: plain structs, no behaviour.
 *
 * Every message given to a pool comes back through its `deliver` exactly once, with the answer filled in: the same
 * struct, so asking costs no allocation and the number of them in circulation is the sender's credit. Only `struct
 * nntp_event` begins in the pool; whoever gets one frees it with mem_free().
 *
 * Two habits make this cheap. Give fetches in batches (top up when a quarter of the credit is free): every wake-up of a
 * busy pool costs it a turn. And where the file is known already, `deliver` may post the data to the disk directly, so
 * that the asker hears of the article when it is written. Together they saved a sixth of all CPU time (TLS, 4
 * connections).
 *
 * The pool carries out; policy is the asker's: which server is asked next, how long one is left alone after trouble,
 * how many connections it gets. A fetch that is given for a server is the permission to connect to it. */
#ifndef NNTP_MSG_H
#define NNTP_MSG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "nntp/server.h"
#include "yenc/yenc.h"

enum {
    NNTP_ID_MAX = 248,   /* bytes of a message-id without its brackets */
    NNTP_TEXT_MAX = 200, /* of a reason in words */
};

enum nntp_msg_kind {
    NNTP_MSG_FETCH,   /* struct nntp_fetch */
    NNTP_MSG_CANCEL,  /* struct nntp_cancel */
    NNTP_MSG_SERVERS, /* struct nntp_servers */
    NNTP_MSG_EVENT,   /* struct nntp_event; from the pool only */
    NNTP_MSG_ROOM,    /* private: a connection may ask for its buffer again */
};

struct nntp_msg {
    enum nntp_msg_kind kind;
};

/* ---- what can go wrong with a connection or a server ----
 *
 * id, category, scope, words. Category and scope are those of the error table: a transient trouble may be gone on the
 * next try, a permanent one of a server is for the user to mend. None of these costs an article an attempt. */
#define NNTP_TROUBLE_MAP(X)                                                   \
    X(NONE, TRANSIENT, CONNECTION, "none")                                    \
    X(DNS, TRANSIENT, SERVER, "name not found")                               \
    X(CONNECT, TRANSIENT, SERVER, "cannot connect")                           \
    X(TLS, TRANSIENT, SERVER, "TLS failed")                                   \
    X(CONFIG, PERMANENT, SERVER, "settings cannot work")                      \
    X(CERT, PERMANENT, SERVER, "certificate refused")                         \
    X(LOGIN, PERMANENT, SERVER, "login refused")                              \
    X(LIMIT, TRANSIENT, SERVER, "too many connections")                       \
    X(GOODBYE, TRANSIENT, SERVER, "server closed the session")                \
    X(CLOSED, TRANSIENT, SERVER, "connection lost")                           \
    X(TIMEOUT, TRANSIENT, SERVER, "no answer in time")                        \
    X(SLOW, TRANSIENT, SERVER, "too slow")                                    \
    X(PROTOCOL, PERMANENT, CONNECTION, "protocol violated")                   \
    X(DESYNC, PERMANENT, CONNECTION, "reply does not belong to the question") \
    X(FLOOD, PERMANENT, CONNECTION, "more data than the limits allow")        \
    X(LOCAL, TRANSIENT, CONNECTION, "no memory or descriptors here")          \
    X(IDLE, TRANSIENT, CONNECTION, "closed while it was not needed")          \
    X(STOPPED, TRANSIENT, CONNECTION, "stopped or reconfigured")

enum nntp_trouble {
#define X(id, category, scope, words) NNTP_TROUBLE_##id,
    NNTP_TROUBLE_MAP(X)
#undef X
        NNTP_TROUBLES
};

enum nntp_category { NNTP_TRANSIENT, NNTP_PERMANENT };
enum nntp_scope { NNTP_SCOPE_CONNECTION, NNTP_SCOPE_SERVER };

const char *nntp_trouble_name(enum nntp_trouble t);  /* "LOGIN" */
const char *nntp_trouble_words(enum nntp_trouble t); /* "login refused" */
enum nntp_category nntp_trouble_category(enum nntp_trouble t);
enum nntp_scope nntp_trouble_scope(enum nntp_trouble t);

/* ---- one article ---- */

enum nntp_result {
    NNTP_FOUND, /* decoded, size and CRC agree (or there was no CRC to check): `buf` */
    NNTP_DAMAGED, /* decoded, but CRC or size disagree or the end is missing: `buf` has what there is */
    NNTP_UNUSABLE, /* an article, but nothing that could be decoded */
    NNTP_WRONG,    /* another article than the one asked for: other id, part or place in the file */
    NNTP_MISSING,  /* the server does not have it (420, 423, 430, 451) */
    NNTP_REFUSED,  /* the server answered this question with an error of its own */
    NNTP_FAILED,   /* no answer; the connection or the server is to blame, see `trouble` */
    NNTP_CANCELLED, /* as asked */
    NNTP_RESULTS
};
const char *nntp_result_name(enum nntp_result r); /* "found", "damaged", ... */

struct nntp_fetch {
    struct nntp_msg msg; /* NNTP_MSG_FETCH */

    /* The question. The first three are the asker's own and not looked at. */
    uint64_t lease;
    uint32_t generation;
    uint64_t owner;                 /* but this one can be cancelled by (a job's number) */
    uint32_t server;                /* nntp_server.id */
    bool stat;                      /* only ask whether it is there */
    char id[NNTP_ID_MAX + 1];       /* message-id without brackets */
    char group[NNTP_GROUP_MAX + 1]; /* joined first where the server wants that; may be "" */
    uint32_t part;                  /* number of the segment; 0: not known */
    uint32_t raw_bytes;             /* size as the NZB tells it, a hint; 0: not known */
    bool has_place;                 /* begin and end are known already */
    uint64_t begin, end;            /* place in the file */

    /* The answer. */
    enum nntp_result result;
    enum nntp_trouble trouble; /* for NNTP_FAILED */
    bool began;                /* NNTP_FAILED while this very article was arriving */
    int code;                  /* status of the server's reply, 0: none */
    char text[NNTP_TEXT_MAX];  /* the reason in words; "" when found */
    struct buf *buf;           /* given: FOUND, DAMAGED. buf->len bytes for [begin, end) */
    enum yenc_verdict verdict;
    enum yenc_format format;
    struct yenc_header header; /* valid when format is YENC */
    uint32_t crc;              /* of the bytes in buf */
    uint64_t wire_bytes;       /* of the reply, as NNTP bytes */
    uint32_t
        credit; /* how many fetches this pool would like to hold for this server, from now on */

    /* When (uv_hrtime() in ms) bytes last arrived on the connection it is under way on, or, while it waits, on any of
     * its server: the asker may look at it at any time. A few hundred ms old. */
    atomic_uint_fast64_t alive_ms;

    /* Private to the pool. */
    struct list node;
    uint64_t sent_us;
    bool cancelled;
    bool pipelined; /* was sent while another one was under way */
};

/* Gives back, as NNTP_CANCELLED, every fetch with this `owner` that is not under way yet; one that is comes back
 * when its reply is there, or at once if the connection has no other work. */
struct nntp_cancel {
    struct nntp_msg msg; /* NNTP_MSG_CANCEL */
    uint64_t owner;      /* 0: all */
};

/* The servers from now on, and how many connections this pool may make to each. A server whose settings changed
 * finishes what is under way with the old ones; one that is gone gives its fetches back. */
struct nntp_servers {
    struct nntp_msg msg;      /* NNTP_MSG_SERVERS */
    struct nntp_server *list; /* the sender's again when the message comes back */
    unsigned count;
};

/* ---- what happens by itself ---- */

enum nntp_event_kind {
    NNTP_CONN_UP,      /* logged in and ready */
    NNTP_CONN_DOWN,    /* the end of a connection, or of the attempt to make one */
    NNTP_PIPELINE_OFF, /* this server mishandles pipelined commands; to be remembered */
};

struct nntp_event {
    struct nntp_msg msg; /* NNTP_MSG_EVENT */
    enum nntp_event_kind kind;
    uint32_t server;
    unsigned pool;
    enum nntp_trouble trouble; /* CONN_DOWN */
    bool was_up;               /* CONN_DOWN of a connection that had been ready */
    bool in_use;               /* CONN_DOWN with fetches under way */
    int code;                  /* of the server's last reply, 0: none */
    unsigned connections;      /* of this server in this pool that are up after this */
    uint32_t credit;           /* as in nntp_fetch */
    char text[NNTP_TEXT_MAX];  /* UP: "TLSv1.3 ..., 12 ms"; DOWN: the reason */
};

#endif
