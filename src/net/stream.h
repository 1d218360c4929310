/* stream.h - one connected socket as a byte stream, plain or TLS, client or server side, on a uv loop.
 *
 * Everything here runs on the loop's thread. A stream is embedded in its owner; it takes over the descriptor and tells
 * the owner through callbacks, which are never called from inside a function of this header:
 *
 *     ready      once: the handshake is done (plain: on the next turn of the loop)
 *     read       bytes arrived. They are lent for the call only. The answer is how many were taken; taking fewer than
 *                all keeps the rest here and pauses reading until net_stream_resume()
 *     eof        the peer will send no more (FIN, or TLS close_notify); writing may go on
 *     writable   all that was given is with the kernel, after a net_stream_send() that took less than it was offered
 *     closed     exactly once, last, also after net_stream_close(); `why->code` is 0 when the owner asked for it. The
 *                memory is the owner's again
 *
 * ready, read, eof and writable may call any function here, net_stream_close() too.
 *
 * One read buffer serves all streams of a loop: the bytes are used while they are in the cache, and a thousand idle
 * connections hold none. TLS reads through it too (our own BIO): one recv(2) takes as much as there is, OpenSSL then
 * picks its records from it. */
#ifndef NET_STREAM_H
#define NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/list.h"
#include "base/sm.h"
#include "net/tls.h"

/* ---- what the streams of one loop share ---- */

struct net_loop {
    uv_loop_t *loop;
    uv_prepare_t prepare; /* runs before the loop waits: kicked streams get their turn */
    uv_idle_t idle;       /* active while somebody is kicked from within that turn */
    struct list kicked;
    uint8_t *wire;  /* what recv(2) gave */
    uint8_t *plain; /* one decrypted TLS record */
    BIO_METHOD *bio;
    unsigned closing; /* handles still closing */
    void (*closed)(struct net_loop *nl);
    void *owner;
};

int net_loop_init(struct net_loop *nl, uv_loop_t *loop);
/* After the last stream is closed; `closed` (may be NULL) runs later. */
void net_loop_close(struct net_loop *nl, void (*closed)(struct net_loop *nl));

/* ---- how fast a group of streams of one loop may read ----
 *
 * While `limited`, a stream reads no more than `allow_bytes`, and when that is used up it waits here, unpolled, for
 * the next net_meter_refill(); they are served in the order in which they began to wait. */
struct net_meter {
    bool limited;
    int64_t allow_bytes;
    struct list waiting;
    unsigned streams; /* that use this meter: one may take 1/streams of what is left at a time */
};

void net_meter_init(struct net_meter *m);
/* `allow_bytes` is what may be read from now on; what was left is gone. */
void net_meter_refill(struct net_meter *m, bool limited, int64_t allow_bytes);

/* ---- a stream ---- */

struct net_stream;

struct net_stream_type {
    void (*ready)(struct net_stream *s);
    size_t (*read)(struct net_stream *s, const uint8_t *p, size_t n);
    void (*eof)(struct net_stream *s);      /* NULL: close with UV_EOF */
    void (*writable)(struct net_stream *s); /* NULL: not used */
    void (*closed)(struct net_stream *s, const struct err *why);
};

struct net_bytes { /* bytes that wait: [at, len) of p */
    uint8_t *p;
    size_t at;
    size_t len;
    size_t capacity;
};

enum {
    NET_WIRE_SIZE = 128 * 1024, /* bytes per recv(2): as much as stays in a second level cache */
    NET_PUT_MAX = 256 * 1024,   /* what net_stream_write() gathers at most */
};

struct net_stream {
    const struct net_stream_type *type;
    void *owner;
    struct net_loop *nl;
    struct net_tls *tls; /* NULL: plain */
    SSL *ssl;
    struct sm sm;
    int fd;
    uv_poll_t poll;
    uv_timer_t timer;
    struct list kick_node;
    struct net_meter *meter; /* NULL: no limit */
    struct list meter_node;
    uint64_t bytes_in; /* from the socket, TLS included */
    uint64_t bytes_out;

    /* private */
    struct net_bytes put;    /* written by the owner, not yet encrypted or sent */
    struct net_bytes out;    /* TLS: encrypted, not yet sent */
    struct net_bytes rest;   /* read, but not taken by the owner */
    struct net_bytes cipher; /* TLS: received, but not looked at when reading was paused */
    const uint8_t *wire;     /* TLS: received bytes that OpenSSL has not fetched yet */
    size_t wire_len;
    unsigned rounds; /* recv(2) calls left in this turn */
    int sys_code;    /* of the last failed recv or send */
    int events;      /* what is polled now */
    bool reading;    /* the owner wants bytes */
    bool resumed;    /* since the last `read` began */
    bool got_eof;
    bool send_short; /* a net_stream_send() took less: owes a `writable` */
    bool fin_wanted;
    bool fin_sent;
    unsigned idle_ms;
    uint64_t active_ms;   /* when something last moved */
    uint64_t deadline_ms; /* 0: none */
    unsigned handles;     /* still closing */
    struct err why;
};

/* Takes over the connected, non-blocking `fd`; on failure it is still the caller's. `tls` decides plain or TLS and
 * which side; `host` is the name a client expects. Reading is on. */
int net_stream_open(struct net_stream *s, struct net_loop *nl, int fd, struct net_tls *tls,
                    const char *host, const struct net_stream_type *type, void *owner,
                    struct err *e);
/* Further reads count against `m` (same loop, outlives the stream). Once, from `ready` on. */
void net_stream_set_meter(struct net_stream *s, struct net_meter *m);

/* Back-pressure: after a pause no `read` comes until the resume, and the socket fills up. */
void net_stream_pause(struct net_stream *s);
void net_stream_resume(struct net_stream *s);

/* Copies and sends at the end of this turn of the loop, together with everything else written in it. ERR_FULL above
 * NET_PUT_MAX waiting bytes: nothing was taken. */
int net_stream_write(struct net_stream *s, const void *p, size_t n);
/* For large data: hands as much as fits to the kernel (or the TLS buffer) now, after what net_stream_write() gathered,
 * and returns how many bytes that were. Less than n: `writable` follows. */
size_t net_stream_send(struct net_stream *s, const void *p, size_t n);
/* Sends what is written, then FIN (TLS: close_notify first). Reading goes on. */
void net_stream_shutdown(struct net_stream *s);
/* Bytes written but not yet with the kernel. */
size_t net_stream_unsent(const struct net_stream *s);

/* Ends the stream with UV_ETIMEDOUT when nothing was received or sent for so long; 0: never. Time in which the owner
 * or the meter does not let it read does not count. */
void net_stream_set_idle(struct net_stream *s, unsigned ms);
/* Ends the stream with UV_ETIMEDOUT in `ms`, whatever happens; 0 takes that back. */
void net_stream_set_deadline(struct net_stream *s, unsigned ms);

/* Ends the stream; what is unsent is lost. May be called again. */
void net_stream_close(struct net_stream *s);
/* The same for a reason that `closed` then reports. */
void net_stream_fail(struct net_stream *s, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool net_stream_is_open(const struct net_stream *s); /* ready, and not closing */
bool net_stream_is_closing(const struct net_stream *s);

/* "TLSv1.3 TLS_AES_128_GCM_SHA256", with ", resumed"; "plain". */
void net_stream_describe(const struct net_stream *s, char *buf, size_t size);

#endif
