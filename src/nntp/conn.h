/* conn.h - one NNTP connection: dial, TLS, log in, fetch bodies, die.
 *
 *     CLOSED -> DIAL -> TLS -> GREET -> LOGIN -> READY <-> BODY        any but CLOSED -> DYING -> CLOSED
 *
 * Lives on its pool's loop thread; every function here is called on that thread only. Ends each fetch it was given in
 * exactly one `done`, also when it dies. Waiting between attempts, and whether there is another one, is not decided
 * here. See docs/FLOW.md. */
#ifndef NNTP_CONN_H
#define NNTP_CONN_H

#include "base/sm.h"
#include "net/dial.h"
#include "net/stream.h"
#include "nntp/msg.h"
#include "nntp/pipe.h"
#include "nntp/proto.h"

struct nntp_conn;

/* `done` and `down` may come from inside nntp_conn_open(), _fetch(), _cancel() and _stop(); the others do not. */
struct nntp_conn_type {
    void (*up)(struct nntp_conn *c);                         /* logged in: give it work */
    void (*more)(struct nntp_conn *c);                       /* has room for more work */
    void (*done)(struct nntp_conn *c, struct nntp_fetch *f); /* given back, with its answer */
    void (*down)(struct nntp_conn *c); /* CLOSED again; why is in c->trouble, c->code, c->text */
    void (*room)(struct nntp_conn *c); /* ANY THREAD: memory came back; call nntp_conn_room() */
};

enum nntp_conn_state {
    NNTP_CLOSED,
    NNTP_DIAL,
    NNTP_TLS,
    NNTP_GREET,
    NNTP_LOGIN,
    NNTP_READY,
    NNTP_BODY,
    NNTP_DYING,
    NNTP_CONN_STATES
};

enum {
    NNTP_ASKED_MAX = 2 * NNTP_DEPTH_MAX, /* each article may be preceded by a GROUP */
    NNTP_RECENT = 8,                     /* ids that are remembered after their answer */
};

struct nntp_conn {
    const struct nntp_conn_type *type;
    void *owner;
    struct net_loop *nl;
    struct buf_pool *bufs;
    struct net_meter *meter;
    struct sm sm;

    /* While not CLOSED; borrowed. */
    const struct nntp_server *server;
    struct net_tls *tls;
    struct nntp_pipe_memory *memory;

    /* How the last session ended, or is about to. */
    enum nntp_trouble trouble;
    int code;
    char text[NNTP_TEXT_MAX];
    bool was_up;
    bool was_in_use;
    bool pipeline_off; /* its end showed that the server mishandles pipelining */

    /* private */
    struct net_dial *dial;
    struct net_stream stream;
    uint64_t deadline_ms; /* of the way from DIAL to READY */
    struct nntp_reply reply;
    struct nntp_pipe pipe;
    uint8_t asked[NNTP_ASKED_MAX]; /* what the replies to come belong to, in order: enum asked */
    unsigned asked_at, asked_count;
    uint64_t asked_us;   /* when the last command of the login was sent */
    struct list fetches; /* under way, in the order they were asked */
    unsigned fetch_count;
    char group[NNTP_GROUP_MAX + 1]; /* joined, or asked to be */
    uint32_t recent[NNTP_RECENT];   /* hashes of the last ids that were answered */
    unsigned recent_at;
    bool in_body;     /* bytes belong to `article`, not to a status line */
    bool body_wrong;  /* 222 for another id: read only to find its end */
    bool first_seen;  /* the first byte of the current reply is here */
    bool lf_peer;     /* the greeting ended in a bare LF */
    bool wants_room;  /* paused until memory comes back */
    bool quit_wanted; /* takes no more work */
    bool pipelined;   /* a command of this session was sent behind another */
    bool logged_in;
    struct buf *buf; /* of the article that arrives */
    struct buf_waiter waiter;
    struct yenc_article article;
    uint64_t slow_ms;    /* begin of the window in which the least rate is looked at */
    uint64_t slow_bytes; /* stream.bytes_in then */
};

void nntp_conn_init(struct nntp_conn *c, const struct nntp_conn_type *type, void *owner,
                    unsigned id, struct net_loop *nl, struct buf_pool *bufs,
                    struct net_meter *meter);

/* From CLOSED. `tls` is NULL for a plain server; everything is borrowed until `down`. A failure to even begin is
 * reported by `down`, too, later. */
void nntp_conn_open(struct nntp_conn *c, const struct nntp_server *server, struct net_tls *tls,
                    struct nntp_pipe_memory *memory);
/* How many more fetches it can take now; 0 in any state but READY and BODY. */
unsigned nntp_conn_space(const struct nntp_conn *c);
/* How many it likes to have under way. */
unsigned nntp_conn_depth(const struct nntp_conn *c);
/* Takes over `f`; there must be space. Its id and group must be valid (proto.h). */
void nntp_conn_fetch(struct nntp_conn *c, struct nntp_fetch *f);
/* Those of `owner` (0: all) come back as cancelled; when nothing else is under way, the session is given up for
 * that. */
void nntp_conn_cancel(struct nntp_conn *c, uint64_t owner);
/* Ends it. Fetches come back as NNTP_FAILED with this trouble. `down` follows. */
void nntp_conn_stop(struct nntp_conn *c, enum nntp_trouble trouble, const char *text);
/* Says QUIT and ends it when nothing is under way any more. */
void nntp_conn_quit(struct nntp_conn *c);
/* Memory came back. */
void nntp_conn_room(struct nntp_conn *c);
/* A few times per second: looks at the least rate. */
void nntp_conn_tick(struct nntp_conn *c);

#endif
