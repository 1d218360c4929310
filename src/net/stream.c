/* A stream's life:
 *
 *     HANDSHAKE -> OPEN -> CLOSING -> CLOSED        HANDSHAKE -> CLOSING
 *
 * The poll handle asks for exactly what can be used: reading unless the owner, the meter or the peer's end forbids it,
 * writing only while something waits for the socket. All endings go through begin_close(), whose two handles call back
 * later, so `closed` is never called from inside anything. Work that must not happen inside the caller (the first
 * `ready`, sending what was gathered, bytes left over from a pause) is done in the stream's next turn: net_loop_kick().
 */
#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "net/stream_private.h"

enum {
    READ_ROUNDS = 4
}; /* full buffers per turn, so that a fast peer does not starve the others */

#define S(id, next_) [ST_##id] = {.name = #id, .next = (next_)}
#define N(id)        SM_BIT(ST_##id)
static const struct sm_state states[ST_NR] = {
    S(HANDSHAKE, N(OPEN) | N(CLOSING)),
    S(OPEN, N(CLOSING)),
    S(CLOSING, N(CLOSED)),
    S(CLOSED, 0),
};
#undef S
#undef N

static const struct sm_type stream_sm = {.name = "stream", .states = states, .count = ST_NR};

static void on_poll(uv_poll_t *h, int status, int events);

bool net_stream_is_open(const struct net_stream *s)
{
    return s->sm.state == ST_OPEN;
}

bool net_stream_is_closing(const struct net_stream *s)
{
    return s->sm.state >= ST_CLOSING;
}

static bool may_read(const struct net_stream *s)
{
    return s->sm.state == ST_OPEN && s->reading && !s->got_eof;
}

/* Bytes that are here and not in the socket: no poll tells of them. */
static bool holds_input(const struct net_stream *s)
{
    return net_bytes_waiting(&s->rest) > 0 || s->wire_len > 0;
}

/* ---- ends ---- */

static void on_handle_closed(uv_handle_t *h)
{
    struct net_stream *s = h->data;
    if (--s->handles > 0) {
        return;
    }
    SSL_free(s->ssl);
    s->ssl = NULL;
    net_bytes_free(&s->put);
    net_bytes_free(&s->out);
    net_bytes_free(&s->rest);
    net_bytes_free(&s->cipher);
    sm_move(&s->sm, ST_CLOSED);
    s->type->closed(s, &s->why);
}

static void begin_close(struct net_stream *s)
{
    sm_move(&s->sm, ST_CLOSING);
    list_remove(&s->kick_node);
    list_remove(&s->meter_node);
    if (s->meter != NULL) {
        s->meter->streams--;
    }
    s->handles = 2;
    uv_close((uv_handle_t *)&s->poll, on_handle_closed);
    uv_close((uv_handle_t *)&s->timer, on_handle_closed);
    close(s->fd);
    s->fd = -1;
}

void net_stream_close(struct net_stream *s)
{
    if (net_stream_is_closing(s)) {
        return;
    }
    if (s->ssl != NULL && s->sm.state == ST_OPEN && !s->fin_sent) {
        SSL_shutdown(s->ssl); /* a word of goodbye, if the socket takes it at once */
        ERR_clear_error();
        if (net_bytes_waiting(&s->out) > 0) {
            ssize_t ignored = send(s->fd, s->out.p + s->out.at, net_bytes_waiting(&s->out),
                                   MSG_NOSIGNAL | MSG_DONTWAIT);
            (void)ignored;
        }
    }
    begin_close(s);
}

void net_stream_fail(struct net_stream *s, int code, const char *fmt, ...)
{
    if (net_stream_is_closing(s)) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    char text[ERR_MSG_MAX];
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    err_set(&s->why, code, "%s", text);
    begin_close(s);
}

static void fail_tls(struct net_stream *s, int ret)
{
    struct err e = {0};
    int code = net_tls_error(s->tls, s->ssl, ret, s->sys_code, &e);
    net_io_flush(s, &s->out); /* the alert that tells the peer */
    net_stream_fail(s, code, "%s", e.msg);
}

/* ---- what is polled ---- */

static bool wants_write(const struct net_stream *s)
{
    return net_bytes_waiting(&s->out) > 0 || net_bytes_waiting(&s->put) > 0 || s->send_short;
}

static void update_poll(struct net_stream *s)
{
    if (net_stream_is_closing(s)) {
        return;
    }
    int events = wants_write(s) ? UV_WRITABLE : 0;
    if (s->sm.state == ST_HANDSHAKE ? s->ssl != NULL : may_read(s) && list_empty(&s->meter_node)) {
        events |= UV_READABLE;
    }
    if (events == s->events) {
        return;
    }
    s->events = events;
    int rv = events != 0 ? uv_poll_start(&s->poll, events, on_poll) : uv_poll_stop(&s->poll);
    if (rv != 0) {
        net_stream_fail(s, rv, "poll: %s", err_text(rv));
    }
}

/* ---- time ---- */

static void on_timer(uv_timer_t *h);

static uint64_t idle_until(const struct net_stream *s, uint64_t now)
{
    bool held = s->sm.state == ST_OPEN && (!s->reading || !list_empty(&s->meter_node));
    return (held ? now : s->active_ms) + s->idle_ms;
}

static void arm_timer(struct net_stream *s)
{
    uint64_t now = uv_now(s->nl->loop);
    uint64_t at = UINT64_MAX;
    if (s->idle_ms > 0) {
        at = idle_until(s, now);
    }
    if (s->deadline_ms > 0 && s->deadline_ms < at) {
        at = s->deadline_ms;
    }
    if (at == UINT64_MAX) {
        uv_timer_stop(&s->timer);
    } else {
        uv_timer_start(&s->timer, on_timer, at > now ? at - now : 0, 0);
    }
}

/* Not restarted for every byte: when it fires early, it is set for the rest. */
static void on_timer(uv_timer_t *h)
{
    struct net_stream *s = h->data;
    uint64_t now = uv_now(s->nl->loop);
    bool idle = s->idle_ms > 0 && now >= idle_until(s, now);
    bool late = s->deadline_ms > 0 && now >= s->deadline_ms;
    if (idle || late) {
        const char *phase = s->sm.state == ST_HANDSHAKE ? "TLS handshake: " : "";
        if (idle) {
            net_stream_fail(s, UV_ETIMEDOUT, "%snothing received for %u ms", phase, s->idle_ms);
        } else {
            net_stream_fail(s, UV_ETIMEDOUT, "%snot done in time", phase);
        }
        return;
    }
    arm_timer(s);
}

void net_stream_set_idle(struct net_stream *s, unsigned ms)
{
    if (net_stream_is_closing(s)) {
        return;
    }
    s->active_ms = uv_now(s->nl->loop);
    bool sooner = s->idle_ms == 0 || ms < s->idle_ms;
    s->idle_ms = ms;
    if (sooner || ms == 0 || !uv_is_active((uv_handle_t *)&s->timer)) {
        arm_timer(s);
    }
}

void net_stream_set_deadline(struct net_stream *s, unsigned ms)
{
    if (!net_stream_is_closing(s)) {
        s->deadline_ms = ms > 0 ? uv_now(s->nl->loop) + ms : 0;
        arm_timer(s);
    }
}

/* ---- reading ---- */

static void take_eof(struct net_stream *s)
{
    s->got_eof = true;
    if (s->type->eof != NULL) {
        s->type->eof(s);
    } else {
        net_stream_fail(s, UV_EOF, "closed by the peer");
    }
}

/* Hands bytes to the owner and keeps what it leaves. False: no more now. */
static bool deliver(struct net_stream *s, const uint8_t *p, size_t n)
{
    s->resumed = false;
    size_t taken = s->type->read(s, p, n);
    PRE(taken <= n);
    if (net_stream_is_closing(s)) {
        return false;
    }
    if (taken < n) {
        s->reading = false;
        bool at_once = s->resumed; /* asked for from within the call */
        int rv = net_bytes_append(&s->rest, p + taken, n - taken, NET_WIRE_SIZE);
        if (rv != 0) {
            net_stream_fail(s, rv, "read: %s", err_text(rv));
        } else if (at_once) {
            net_stream_resume(s);
        }
        return false;
    }
    return s->reading;
}

/* The bytes of a pause come first. They leave `rest` before the call, which may put some back. */
static bool deliver_rest(struct net_stream *s)
{
    while (net_bytes_waiting(&s->rest) > 0) {
        struct net_bytes b = s->rest;
        s->rest = (struct net_bytes){0};
        bool more = deliver(s, b.p + b.at, net_bytes_waiting(&b));
        net_bytes_free(&b);
        if (!more) {
            return false;
        }
    }
    return true;
}

static void read_plain(struct net_stream *s)
{
    for (;;) {
        ssize_t got = net_io_recv(s, s->nl->wire, NET_WIRE_SIZE);
        if (got == UV_EAGAIN) {
            return;
        }
        if (got < 0) {
            net_stream_fail(s, (int)got, "receive: %s", err_text((int)got));
            return;
        }
        if (got == 0) {
            take_eof(s);
            return;
        }
        if (!deliver(s, s->nl->wire, (size_t)got)) {
            return;
        }
    }
}

/* The wire buffer is everybody's: what OpenSSL has not fetched when we stop is kept apart. */
static void keep_cipher(struct net_stream *s)
{
    if (net_stream_is_closing(s)) {
        return;
    }
    if (s->wire_len == 0) {
        net_bytes_free(&s->cipher);
        return;
    }
    bool kept_already =
        s->cipher.p != NULL && s->wire >= s->cipher.p && s->wire < s->cipher.p + s->cipher.capacity;
    if (!kept_already) {
        s->cipher.at = s->cipher.len = 0;
        int rv = net_bytes_append(&s->cipher, s->wire, s->wire_len, NET_WIRE_SIZE);
        if (rv != 0) {
            net_stream_fail(s, rv, "read: %s", err_text(rv));
            return;
        }
        s->wire = s->cipher.p;
    }
}

static void read_tls(struct net_stream *s)
{
    int got;
    s->sys_code = 0;
    while ((got = SSL_read(s->ssl, s->nl->plain, NET_RECORD_MAX)) > 0) {
        if (!deliver(s, s->nl->plain, (size_t)got)) {
            keep_cipher(s);
            return;
        }
    }
    keep_cipher(s);
    switch (SSL_get_error(s->ssl, got)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        break;
    case SSL_ERROR_ZERO_RETURN:
        take_eof(s);
        break;
    default:
        fail_tls(s, got);
    }
}

static void read_some(struct net_stream *s)
{
    if (!may_read(s) || !deliver_rest(s) || !may_read(s)) {
        return;
    }
    s->rounds = READ_ROUNDS;
    if (s->ssl != NULL) {
        read_tls(s);
    } else {
        read_plain(s);
    }
}

void net_stream_pause(struct net_stream *s)
{
    s->reading = false;
    update_poll(s);
}

void net_stream_resume(struct net_stream *s)
{
    s->resumed = true;
    if (net_stream_is_closing(s) || s->reading) {
        return;
    }
    s->reading = true;
    s->active_ms = uv_now(s->nl->loop);
    if (holds_input(s)) {
        net_loop_kick(s->nl, &s->kick_node);
    }
    update_poll(s);
}

void net_stream_wake(struct net_stream *s)
{
    s->active_ms = uv_now(s->nl->loop);
    update_poll(s);
}

void net_stream_set_meter(struct net_stream *s, struct net_meter *m)
{
    PRE(s->meter == NULL);
    if (!net_stream_is_closing(s)) {
        s->meter = m;
        m->streams++;
    }
}

/* ---- writing ---- */

/* Encrypts from p while `out` has room; how much was taken. */
static size_t encrypt(struct net_stream *s, const uint8_t *p, size_t n)
{
    size_t done = 0;
    while (done < n && net_bytes_waiting(&s->out) < NET_OUT_HIGH) {
        int most = n - done < NET_RECORD_MAX ? (int)(n - done) : NET_RECORD_MAX;
        s->sys_code = 0;
        int put = SSL_write(s->ssl, p + done, most);
        if (put <= 0) {
            if (SSL_get_error(s->ssl, put) != SSL_ERROR_WANT_READ) {
                fail_tls(s, put);
            }
            break;
        }
        done += (size_t)put;
    }
    return done;
}

/* Sends what was gathered, then of p as much as goes. */
static size_t push(struct net_stream *s, const uint8_t *p, size_t n)
{
    if (s->ssl == NULL) {
        return net_io_send(s, &s->put, p, n);
    }
    size_t done = 0;
    do {
        s->put.at += encrypt(s, s->put.p + s->put.at, net_bytes_waiting(&s->put));
        if (net_bytes_waiting(&s->put) == 0) {
            s->put.at = s->put.len = 0;
            done += encrypt(s, p + done, n - done);
        }
        if (net_stream_is_closing(s) || !net_io_flush(s, &s->out)) {
            break;
        }
    } while (net_bytes_waiting(&s->put) > 0 || done < n);
    return done;
}

static void send_fin(struct net_stream *s)
{
    s->fin_sent = true;
    if (s->ssl != NULL) {
        SSL_shutdown(s->ssl);
        ERR_clear_error();
        net_io_flush(s, &s->out);
    }
    if (!net_stream_is_closing(s)) {
        shutdown(s->fd, SHUT_WR);
    }
}

static void flush(struct net_stream *s)
{
    push(s, NULL, 0);
    if (net_stream_is_closing(s) || net_stream_unsent(s) > 0) {
        return;
    }
    if (s->send_short) {
        s->send_short = false;
        s->type->writable(s);
    }
    if (s->fin_wanted && !s->fin_sent && !net_stream_is_closing(s) && net_stream_unsent(s) == 0 &&
        !s->send_short) {
        send_fin(s);
    }
}

int net_stream_write(struct net_stream *s, const void *p, size_t n)
{
    PRE(!s->fin_wanted);
    if (net_stream_is_closing(s)) {
        return ERR_STOPPED;
    }
    int rv = net_bytes_append(&s->put, p, n, NET_PUT_MAX);
    if (rv == 0) {
        net_loop_kick(s->nl, &s->kick_node);
    }
    return rv;
}

size_t net_stream_send(struct net_stream *s, const void *p, size_t n)
{
    PRE(!s->fin_wanted && s->type->writable != NULL);
    if (s->sm.state != ST_OPEN) {
        return 0;
    }
    size_t done = push(s, p, n);
    s->send_short = done < n;
    update_poll(s);
    return done;
}

void net_stream_shutdown(struct net_stream *s)
{
    if (!net_stream_is_closing(s) && !s->fin_wanted) {
        s->fin_wanted = true;
        net_loop_kick(s->nl, &s->kick_node);
    }
}

size_t net_stream_unsent(const struct net_stream *s)
{
    return net_bytes_waiting(&s->put) + net_bytes_waiting(&s->out);
}

/* ---- turns ---- */

static void handshake(struct net_stream *s)
{
    if (s->ssl != NULL) {
        s->rounds = READ_ROUNDS;
        s->sys_code = 0;
        int rv = SSL_do_handshake(s->ssl);
        int kind = SSL_get_error(s->ssl, rv);
        keep_cipher(s); /* the server's first words may have come along */
        if (rv <= 0 && kind != SSL_ERROR_WANT_READ && kind != SSL_ERROR_WANT_WRITE) {
            fail_tls(s, rv);
            return;
        }
        net_io_flush(s, &s->out);
        if (rv <= 0 || net_stream_is_closing(s)) {
            return;
        }
    }
    sm_move(&s->sm, ST_OPEN);
    net_loop_kick(s->nl, &s->kick_node); /* for what came along, and what was written early */
    s->type->ready(s);
}

/* The socket is broken (libuv says so with a status and polls no more). What the peer said before, a reason perhaps, is
 * still there to be read. */
static void on_broken(struct net_stream *s)
{
    read_some(s);
    if (net_stream_is_closing(s)) {
        return;
    }
    int code = 0;
    socklen_t len = sizeof(code);
    getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &code, &len);
    int rv = code != 0 ? -code : UV_ECONNRESET;
    net_stream_fail(s, rv, "%s", err_text(rv));
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct net_stream *s = h->data;
    if (status < 0) {
        on_broken(s);
        return;
    }
    if (s->sm.state == ST_HANDSHAKE) {
        handshake(s);
    } else {
        if (events & UV_WRITABLE) {
            flush(s);
        }
        if (events & UV_READABLE) {
            read_some(s);
        }
    }
    update_poll(s);
}

void net_stream_turn(struct net_stream *s)
{
    if (s->sm.state == ST_HANDSHAKE) {
        handshake(s);
    } else {
        flush(s);
        if (holds_input(s)) {
            read_some(s);
        }
    }
    update_poll(s);
}

/* ---- begin ---- */

static int attach_tls(struct net_stream *s, const char *host, struct err *e)
{
    s->ssl = net_tls_new_ssl(s->tls, s->tls->is_server ? NULL : host, e);
    if (s->ssl == NULL) {
        return e != NULL && e->code != 0 ? e->code : ERR_TLS;
    }
    BIO *bio = BIO_new(s->nl->bio);
    if (bio == NULL) {
        SSL_free(s->ssl);
        return err_sys(e, UV_ENOMEM, "TLS");
    }
    BIO_set_data(bio, s);
    SSL_set_bio(s->ssl, bio, bio);
    return 0;
}

int net_stream_open(struct net_stream *s, struct net_loop *nl, int fd, struct net_tls *tls,
                    const char *host, const struct net_stream_type *type, void *owner,
                    struct err *e)
{
    *s = (struct net_stream){
        .type = type, .owner = owner, .nl = nl, .tls = tls, .fd = fd, .reading = true};
    sm_init(&s->sm, &stream_sm, ST_HANDSHAKE, (unsigned)fd);
    list_init(&s->kick_node);
    list_init(&s->meter_node);
    if (tls != NULL) {
        int rv = attach_tls(s, host, e);
        if (rv != 0) {
            return rv;
        }
    }
    int rv = uv_poll_init(nl->loop, &s->poll, fd);
    if (rv != 0) {
        SSL_free(s->ssl);
        return err_sys(e, rv, "poll");
    }
    uv_timer_init(nl->loop, &s->timer);
    s->poll.data = s;
    s->timer.data = s;
    s->active_ms = uv_now(nl->loop);
    net_loop_kick(nl, &s->kick_node);
    return 0;
}

void net_stream_describe(const struct net_stream *s, char *buf, size_t size)
{
    if (s->ssl == NULL) {
        snprintf(buf, size, "plain");
        return;
    }
    snprintf(buf, size, "%s %s%s", SSL_get_version(s->ssl), SSL_get_cipher_name(s->ssl),
             SSL_session_reused(s->ssl) ? ", resumed" : "");
}
