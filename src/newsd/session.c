#include "newsd/session.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"

enum {
    GATHER_MAX =
        4096, /* a smaller piece waits for the next one, so that a status line costs no packet */
    GATHERED_MAX = 32 * 1024, /* until so much has been gathered */
    RATE_MIN = 4096, /* under --rate: no smaller pieces than this, what is too much is owed */
    LINGER_MS =
        1000, /* for the peer to close after us: a socket closed with unread commands would reset */
};

/* A fatal alert (40: handshake failure), as a plain record. */
static const uint8_t alert[] = {21, 3, 3, 0, 2, 2, 40};

/* ---- life ---- */

static void free_session(struct newsd_session *s)
{
    newsd_sending_end(s);
    struct list *node;
    while ((node = list_pop_front(&s->replies)) != NULL) {
        mem_free(LIST_ENTRY(node, struct newsd_reply, node));
    }
    newsd_post_free(s->post);
    list_remove(&s->node);
    list_remove(&s->rate_node);
    s->server->count.open--;
    mem_free(s);
}

static void handle_gone(struct newsd_session *s)
{
    if (--s->handles == 0) {
        free_session(s);
    }
}

static void on_timer_closed(uv_handle_t *h)
{
    handle_gone(h->data);
}

static void on_closed(struct net_stream *stream, const struct err *why)
{
    struct newsd_session *s = stream->owner;
    (void)why; /* who went first does not matter to a server */
    s->server->count.bytes_out += stream->bytes_out;
    list_remove(&s->node);
    list_remove(&s->rate_node);
    uv_close((uv_handle_t *)&s->timer, on_timer_closed);
    handle_gone(s);
}

void newsd_session_close(struct newsd_session *s)
{
    s->ended = true;
    net_stream_close(&s->stream);
}

/* The peer has had its time to read and to close. What still waits for its socket gets more. */
static void on_lingered(uv_timer_t *h)
{
    struct newsd_session *s = h->data;
    if (net_stream_unsent(&s->stream) == 0) {
        uv_timer_stop(&s->timer);
        net_stream_fail(&s->stream, ERR_STOPPED, "the peer does not close");
    }
}

static void linger(struct newsd_session *s)
{
    s->ended = true;
    uv_timer_start(&s->timer, on_lingered, LINGER_MS, LINGER_MS);
}

/* Nothing more is written, and what is read is thrown away until the peer closes. */
static void end_writing(struct newsd_session *s)
{
    s->ended = true;
    net_stream_shutdown(&s->stream);
}

/* The same behind TLS's back: no close_notify. Nothing may wait to be sent. */
static void cut(struct newsd_session *s)
{
    shutdown(s->stream.fd, SHUT_WR);
    linger(s);
}

static void reset_fd(int fd)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

/* ---- sending ---- */

/* Bytes past TLS and past what was gathered. Only when nothing waits, or they would overtake it. */
static void send_raw(struct newsd_session *s, const void *p, size_t n)
{
    ssize_t ignored = send(s->stream.fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)ignored;
}

static void wake_at(struct newsd_session *s, uint64_t when_ms);

/* Carries out what the rule wants at its mark. True: sending goes on. */
static bool do_mark(struct newsd_session *s)
{
    const struct newsd_rule *r = s->sending.reply->rule;
    s->sending.marked = true;
    switch (r->deliver) {
    case DELIVER_RESET:
        reset_fd(s->stream.fd);
        s->ended = true;
        net_stream_fail(&s->stream, ERR_STOPPED, "as the script says"); /* no close_notify */
        return false;
    case DELIVER_CLOSE:
        end_writing(s);
        linger(s);
        return false;
    case DELIVER_CUT:
        cut(s);
        return false;
    case DELIVER_HALF_CLOSE:
        end_writing(s);
        return false;
    case DELIVER_SILENCE:
        s->mute = true;
        return false;
    case DELIVER_ALERT:
        send_raw(s, alert, sizeof(alert));
        cut(s);
        return false;
    case DELIVER_PAUSE:
        s->not_before_ms = uv_now(s->server->loop) + r->every_ms;
        return true;
    case DELIVER_RAW:
        send_raw(s, r->raw.p, r->raw.len);
        return true;
    case DELIVER_KEY_UPDATE:
        if (s->stream.ssl != NULL) {
            SSL_key_update(s->stream.ssl, SSL_KEY_UPDATE_REQUESTED);
        }
        return true;
    default:
        return true;
    }
}

static bool ready_for_mark(const struct newsd_session *s)
{
    const struct newsd_sending *x = &s->sending;
    return !x->marked && x->sent >= x->mark;
}

static bool drips(const struct newsd_session *s)
{
    const struct newsd_rule *r = s->sending.reply->rule;
    return r != NULL && r->deliver == DELIVER_DRIP && s->sending.marked;
}

/* How much of the current segment may go now: up to the mark, a drop of a drip, what the rate has left. */
static size_t allowed(struct newsd_session *s)
{
    struct newsd_server *v = s->server;
    const struct newsd_sending *x = &s->sending;
    uint64_t n = x->segments[x->at].len - x->done;
    if (!x->marked && x->mark - x->sent < n) {
        n = x->mark - x->sent;
    }
    if (drips(s) && x->reply->rule->bytes < n) {
        n = x->reply->rule->bytes;
    }
    if (v->rate_bytes > 0) {
        uint64_t most = v->rate_tokens > RATE_MIN ? (uint64_t)v->rate_tokens : RATE_MIN;
        n = most < n ? most : n;
    }
    return (size_t)n;
}

static void advance(struct newsd_sending *x, size_t n)
{
    x->sent += n;
    x->done += n;
    if (x->done == x->segments[x->at].len) {
        x->done = 0;
        x->at += x->endless && x->at + 1 == x->count ? 0 : 1;
    }
}

/* Sends one piece; false when the socket is full. A drop is not gathered with the next one: each goes to the kernel by
 * itself, as a TLS record of its own. */
static bool send_piece(struct newsd_session *s, size_t n)
{
    struct newsd_sending *x = &s->sending;
    const uint8_t *p = x->segments[x->at].p + x->done;
    size_t put = n;
    if (n <= GATHER_MAX && !drips(s) && net_stream_unsent(&s->stream) < GATHERED_MAX) {
        put = net_stream_write(&s->stream, p, n) == 0 ? n : 0;
    } else {
        put = net_stream_send(&s->stream, p, n);
    }
    advance(x, put);
    s->server->rate_tokens -= (int64_t)put;
    return put == n;
}

static void reply_sent(struct newsd_session *s)
{
    bool last = s->sending.reply->last;
    newsd_sending_end(s);
    if (last) {
        end_writing(s);
        linger(s);
    }
    if (s->replies_len < REPLIES_MAX / 2) {
        net_stream_resume(&s->stream);
    }
}

/* The reply at the head of the queue becomes the one being sent; false when none is due. */
static bool next_reply(struct newsd_session *s, uint64_t now)
{
    if (list_empty(&s->replies)) {
        return false;
    }
    struct newsd_reply *r = LIST_ENTRY(s->replies.next, struct newsd_reply, node);
    if (r->due_ms > now) {
        wake_at(s, r->due_ms);
        return false;
    }
    list_remove(&r->node);
    s->replies_len--;
    newsd_sending_begin(s, r);
    return true;
}

/* One step; false when there is nothing more to do now. */
static bool step(struct newsd_session *s)
{
    struct newsd_server *v = s->server;
    uint64_t now = uv_now(v->loop);
    if (s->sending.reply == NULL && !next_reply(s, now)) {
        return false;
    }
    if (s->not_before_ms > now) {
        wake_at(s, s->not_before_ms);
        return false;
    }
    if (ready_for_mark(s)) {
        const struct newsd_rule *r = s->sending.reply->rule;
        bool flushed = r->deliver == DELIVER_DRIP || net_stream_unsent(&s->stream) == 0;
        if (!flushed) { /* what came before is to arrive before */
            wake_at(s, now + 1);
            return false;
        }
        return do_mark(s);
    }
    if (s->sending.at == s->sending.count) {
        reply_sent(s);
        return true;
    }
    if (v->rate_bytes > 0 && v->rate_tokens <= 0) {
        if (list_empty(&s->rate_node)) {
            list_push_back(&v->rate_waiting, &s->rate_node);
        }
        return false;
    }
    if (!send_piece(s, allowed(s))) {
        return false; /* `writable` comes */
    }
    if (drips(s) && s->sending.reply->rule->every_ms > 0) {
        s->not_before_ms = now + s->sending.reply->rule->every_ms;
        wake_at(s, s->not_before_ms);
        return false;
    }
    return true;
}

void newsd_session_pump(struct newsd_session *s)
{
    while (net_stream_is_open(&s->stream) && !s->mute && !s->ended && step(s)) {
    }
}

static void on_timer(uv_timer_t *h)
{
    newsd_session_pump(h->data);
}

static void wake_at(struct newsd_session *s, uint64_t when_ms)
{
    uint64_t now = uv_now(s->server->loop);
    uv_timer_start(&s->timer, on_timer, when_ms > now ? when_ms - now : 0, 0);
}

void newsd_session_reply(struct newsd_session *s, const struct newsd_rule *rule,
                         enum newsd_want want, int32_t article, const char *text, size_t len)
{
    struct newsd_reply *r = mem_alloc(sizeof(*r) + len);
    if (r == NULL) {
        newsd_session_close(s);
        return;
    }
    *r = (struct newsd_reply){.due_ms = uv_now(s->server->loop) + s->server->rtt_ms, .want = want};
    r->article = article;
    r->rule = rule;
    r->text_len = len;
    memcpy(r->text, text, len);
    s->server->count.faults += rule != NULL;
    list_push_back(&s->replies, &r->node);
    s->replies_len++;
}

struct newsd_reply *newsd_session_last(struct newsd_session *s)
{
    PRE(!list_empty(&s->replies));
    return LIST_ENTRY(s->replies.prev, struct newsd_reply, node);
}

/* ---- receiving ---- */

/* Bytes up to a line end join the line; what is too long loses its end, and is then no known command. */
static size_t take_line(struct newsd_session *s, const uint8_t *p, size_t n)
{
    const uint8_t *lf = memchr(p, '\n', n);
    size_t len = lf != NULL ? (size_t)(lf - p) : n;
    size_t room = sizeof(s->line) - 1 - s->line_len;
    size_t keep = len < room ? len : room;
    memcpy(s->line + s->line_len, p, keep);
    s->line_len += keep;
    if (lf == NULL) {
        return n;
    }
    if (s->line_len > 0 && s->line[s->line_len - 1] == '\r') {
        s->line_len--;
    }
    s->line[s->line_len] = '\0';
    s->line_len = 0;
    newsd_command_run(s, s->line);
    return len + 1;
}

static size_t on_read(struct net_stream *stream, const uint8_t *p, size_t n)
{
    struct newsd_session *s = stream->owner;
    size_t taken = 0;
    while (taken < n && !s->mute && !s->ended && s->replies_len < REPLIES_MAX) {
        if (s->post != NULL) {
            taken += newsd_post_feed(s, p + taken, n - taken);
        } else {
            taken += take_line(s, p + taken, n - taken);
        }
    }
    newsd_session_pump(s);
    if (s->mute || s->ended) {
        return n;
    }
    if (taken < n && s->replies_len < REPLIES_MAX) { /* the pump has made room already */
        net_stream_resume(stream);
    }
    return taken;
}

static void on_ready(struct net_stream *stream)
{
    struct newsd_session *s = stream->owner;
    if (!s->mute) {
        newsd_command_greet(s);
        newsd_session_pump(s);
    }
}

static void on_writable(struct net_stream *stream)
{
    newsd_session_pump(stream->owner);
}

static void on_eof(struct net_stream *stream)
{
    struct newsd_session *s = stream->owner;
    bool idle = s->sending.reply == NULL && list_empty(&s->replies);
    if (s->mute || s->ended || idle) {
        newsd_session_close(s);
    } else { /* it may have said all it has to say, and still listen */
        struct newsd_reply *last =
            list_empty(&s->replies) ? s->sending.reply : newsd_session_last(s);
        last->last = true;
    }
}

static const struct net_stream_type stream_type = {
    .ready = on_ready,
    .read = on_read,
    .eof = on_eof,
    .writable = on_writable,
    .closed = on_closed,
};

/* What a rule wants before anything is said; false: the descriptor is gone. */
static bool connect_phase(struct newsd_session *s, int fd, const struct newsd_rule *r)
{
    if (r == NULL) {
        return true;
    }
    s->server->count.faults++;
    if (r->before.len > 0) {
        ssize_t ignored = send(fd, r->before.p, r->before.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)ignored;
    }
    switch (r->deliver) {
    case DELIVER_RESET:
        reset_fd(fd);
        return false;
    case DELIVER_CLOSE:
        return false;
    case DELIVER_ALERT: {
        ssize_t ignored = send(fd, alert, sizeof(alert), MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)ignored;
        return false;
    }
    case DELIVER_SILENCE:
        s->mute = true;
        return true;
    default:
        return true;
    }
}

void newsd_session_open(struct newsd_server *v, int fd)
{
    struct newsd_session *s = mem_zalloc(1, sizeof(*s));
    if (s == NULL) {
        close(fd);
        return;
    }
    s->server = v;
    s->number = ++v->count.connections;
    s->current = CATALOG_NONE;
    s->authed = v->user == NULL;
    s->sending.lent.slot = CATALOG_NONE;
    list_init(&s->node);
    list_init(&s->replies);
    list_init(&s->rate_node);
    struct newsd_occasion o = {.phase = PHASE_CONNECT, .conn = s->number};
    bool stays = connect_phase(s, fd, newsd_script_match(&v->script, &o));
    struct net_tls *tls = s->mute ? NULL : v->tls; /* silent from the start: no handshake either */
    if (!stays || net_stream_open(&s->stream, &v->nl, fd, tls, NULL, &stream_type, s, NULL) != 0) {
        close(fd);
        mem_free(s);
        return;
    }
    uv_timer_init(v->loop, &s->timer);
    s->timer.data = s;
    s->handles = 2;
    v->count.open++;
    list_push_back(&v->sessions, &s->node);
}
