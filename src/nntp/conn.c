/* conn.c - the session: how it begins, is kept, and ends. What happens to an article is in conn_body.c.
 *
 * Happy path: net_dial_start -> on_dialled: net_stream_open -> on_ready -> greeting -> AUTHINFO -> (MODE READER) ->
 * become_ready: `up` -> nntp_conn_fetch: BODY commands, gathered by the stream into one write -> on_read: status line,
 * body, status line, ... each in exactly the order in which it was asked.
 *
 * Ways it fails: all of them end in die(), which gives every fetch back once and closes the stream. A reply that
 * cannot be the answer to the question at hand ends the session, because nothing behind it could be trusted either. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "nntp/conn_private.h"

enum {
    QUIT_MS = 2000,
    PROBE_MS = 10000, /* a server that has not yet shown that it can pipeline gets less time */
    SLOW_BYTES_PER_S = 1024, /* the least, over a window of timeout_ms */
};

#define S(id, next_) [NNTP_##id] = {.name = #id, .next = (next_)}
#define N(id)        SM_BIT(NNTP_##id)
static const struct sm_state states[NNTP_CONN_STATES] = {
    S(CLOSED, N(DIAL)),
    S(DIAL, N(TLS) | N(DYING)),
    S(TLS, N(GREET) | N(DYING)),
    S(GREET, N(LOGIN) | N(READY) | N(DYING)),
    S(LOGIN, N(READY) | N(DYING)),
    S(READY, N(BODY) | N(DYING)),
    S(BODY, N(READY) | N(DYING)),
    S(DYING, N(CLOSED)),
};
#undef S
#undef N

static bool invariant(const struct sm *m, int prev)
{
    const struct nntp_conn *c = LIST_ENTRY(m, struct nntp_conn, sm);
    (void)prev;
    return ERGO(m->state == NNTP_READY, c->fetch_count == 0) &&
           ERGO(m->state == NNTP_BODY, c->fetch_count > 0) &&
           ERGO(m->state == NNTP_CLOSED, c->fetch_count == 0 && c->buf == NULL && c->dial == NULL);
}

static const struct sm_type conn_sm = {
    .name = "conn", .states = states, .count = NNTP_CONN_STATES, .invariant = invariant};

static uint64_t now_us(void)
{
    return uv_hrtime() / 1000;
}

static uint64_t now_ms(const struct nntp_conn *c)
{
    return uv_now(c->nl->loop);
}

static void on_memory(void *arg)
{
    struct nntp_conn *c = arg;
    c->type->room(c);
}

void nntp_conn_init(struct nntp_conn *c, const struct nntp_conn_type *type, void *owner,
                    unsigned id, struct net_loop *nl, struct buf_pool *bufs,
                    struct net_meter *meter)
{
    memset(c, 0, sizeof(*c));
    c->type = type;
    c->owner = owner;
    c->nl = nl;
    c->bufs = bufs;
    c->meter = meter;
    list_init(&c->fetches);
    buf_waiter_init(&c->waiter, on_memory, c);
    sm_init(&c->sm, &conn_sm, NNTP_CLOSED, id);
}

/* ---- the end ---- */

static bool is_up(const struct nntp_conn *c)
{
    return c->sm.state == NNTP_READY || c->sm.state == NNTP_BODY;
}

static void finish(struct nntp_conn *c)
{
    sm_move(&c->sm, NNTP_CLOSED);
    c->type->down(c);
}

static void give_back_all(struct nntp_conn *c)
{
    bool began = c->in_body;
    struct list *node;
    while ((node = list_pop_front(&c->fetches)) != NULL) {
        struct nntp_fetch *f = LIST_ENTRY(node, struct nntp_fetch, node);
        c->fetch_count--;
        f->result = f->cancelled ? NNTP_CANCELLED : NNTP_FAILED;
        f->trouble = c->trouble;
        f->began = began;
        f->code = c->code;
        snprintf(f->text, sizeof(f->text), "%s", c->text);
        began = false;
        c->type->done(c, f);
    }
}

/* Did it break over pipelining? Only commands that were sent behind another one can show that. */
static void judge_pipelining(struct nntp_conn *c)
{
    bool suspicious = c->trouble == NNTP_TROUBLE_CLOSED || c->trouble == NNTP_TROUBLE_TIMEOUT ||
                      c->trouble == NNTP_TROUBLE_PROTOCOL || c->trouble == NNTP_TROUBLE_DESYNC;
    c->pipeline_off =
        suspicious && c->pipelined && !c->in_body && nntp_pipe_strike(c->memory, now_us());
}

/* Everything that has to be said and given back; the stream, if there is one, is the caller's to close. */
static void begin_death(struct nntp_conn *c, enum nntp_trouble trouble, int code, const char *text)
{
    c->trouble = trouble;
    c->code = code;
    snprintf(c->text, sizeof(c->text), "%s", text);
    c->was_up = is_up(c);
    c->was_in_use = c->fetch_count > 0;
    judge_pipelining(c);
    sm_move(&c->sm, NNTP_DYING);
    buf_wait_cancel(c->bufs, &c->waiter);
    c->wants_room = false;
    if (c->buf != NULL) {
        buf_give(c->bufs, c->buf);
        c->buf = NULL;
    }
    give_back_all(c);
}

void nntp_conn_die(struct nntp_conn *c, enum nntp_trouble trouble, int code, const char *text)
{
    if (c->sm.state == NNTP_CLOSED || c->sm.state == NNTP_DYING) {
        return;
    }
    bool has_stream = c->sm.state != NNTP_DIAL;
    if (c->dial != NULL) {
        net_dial_cancel(c->dial);
        c->dial = NULL;
    }
    begin_death(c, trouble, code, text);
    if (has_stream) {
        net_stream_close(&c->stream);
    } else {
        finish(c);
    }
}

void nntp_conn_die_reply(struct nntp_conn *c, enum nntp_trouble trouble)
{
    char text[NNTP_TEXT_MAX];
    snprintf(text, sizeof(text), "%s: %d %s", nntp_trouble_words(trouble), c->reply.code,
             c->reply.text);
    nntp_conn_die(c, trouble, c->reply.code, text);
}

void nntp_conn_stop(struct nntp_conn *c, enum nntp_trouble trouble, const char *text)
{
    if (c->sm.state == NNTP_DYING) {
        net_stream_close(&c->stream); /* no more waiting for the answer to QUIT */
    }
    nntp_conn_die(c, trouble, 0, text);
}

static enum nntp_trouble stream_trouble(const struct nntp_conn *c, int code)
{
    switch (code) {
    case ERR_CERT:
        return NNTP_TROUBLE_CERT;
    case ERR_TLS:
        return NNTP_TROUBLE_TLS;
    case UV_ENOMEM:
    case ERR_FULL:
        return NNTP_TROUBLE_LOCAL;
    default:
        if (c->sm.state == NNTP_READY) {
            return NNTP_TROUBLE_IDLE;
        }
        return code == UV_ETIMEDOUT ? NNTP_TROUBLE_TIMEOUT : NNTP_TROUBLE_CLOSED;
    }
}

static void on_stream_closed(struct net_stream *s, const struct err *why)
{
    struct nntp_conn *c = s->owner;
    if (c->sm.state != NNTP_DYING) {
        begin_death(c, stream_trouble(c, why->code), 0, why->msg);
    }
    finish(c);
}

void nntp_conn_quit(struct nntp_conn *c)
{
    if (c->sm.state == NNTP_READY) {
        net_stream_write(&c->stream, "QUIT\r\n", 6);
        net_stream_shutdown(&c->stream);
        net_stream_set_deadline(&c->stream, QUIT_MS);
        begin_death(c, NNTP_TROUBLE_IDLE, 0, nntp_trouble_words(NNTP_TROUBLE_IDLE));
    } else if (!is_up(c)) {
        nntp_conn_die(c, NNTP_TROUBLE_STOPPED, 0, nntp_trouble_words(NNTP_TROUBLE_STOPPED));
    } else {
        c->quit_wanted = true;
    }
}

/* ---- the beginning ---- */

static size_t on_read(struct net_stream *s, const uint8_t *p, size_t n);

static void on_ready(struct net_stream *s)
{
    struct nntp_conn *c = s->owner;
    sm_move(&c->sm, NNTP_GREET);
}

static const struct net_stream_type stream_type = {
    .ready = on_ready, .read = on_read, .closed = on_stream_closed};

static void on_dialled(void *arg, int fd, const struct err *why)
{
    struct nntp_conn *c = arg;
    c->dial = NULL;
    struct err e = {0};
    if (fd < 0) {
        bool dns = why->code <= UV_EAI_ADDRFAMILY && why->code >= UV_EAI_PROTOCOL;
        nntp_conn_die(c, dns ? NNTP_TROUBLE_DNS : NNTP_TROUBLE_CONNECT, 0, why->msg);
        return;
    }
    int rv = net_stream_open(&c->stream, c->nl, fd, c->tls, c->server->host, &stream_type, c, &e);
    if (rv != 0) {
        close(fd);
        nntp_conn_die(c, NNTP_TROUBLE_LOCAL, 0, e.msg);
        return;
    }
    sm_move(&c->sm, NNTP_TLS);
    uint64_t now = now_ms(c);
    net_stream_set_deadline(&c->stream,
                            c->deadline_ms > now ? (unsigned)(c->deadline_ms - now) : 1);
}

static void reset_session(struct nntp_conn *c)
{
    c->trouble = NNTP_TROUBLE_NONE;
    c->code = 0;
    c->text[0] = '\0';
    c->was_up = c->was_in_use = c->pipeline_off = false;
    c->asked_at = c->asked_count = 0;
    c->group[0] = '\0';
    memset(c->recent, 0, sizeof(c->recent));
    c->in_body = c->body_wrong = c->first_seen = c->lf_peer = false;
    c->wants_room = c->quit_wanted = c->pipelined = c->logged_in = false;
    nntp_reply_init(&c->reply);
    nntp_pipe_init(&c->pipe);
}

void nntp_conn_open(struct nntp_conn *c, const struct nntp_server *server, struct net_tls *tls,
                    struct nntp_pipe_memory *memory)
{
    reset_session(c);
    c->server = server;
    c->tls = tls;
    c->memory = memory;
    c->deadline_ms = now_ms(c) + server->connect_ms;
    sm_move(&c->sm, NNTP_DIAL);
    struct net_dial_opts opts = {
        .host = server->host,
        .port = server->port,
        .family = server->family,
        .bind_address = server->bind_address,
        .socks_host = server->socks_host,
        .socks_port = server->socks_port,
        .socks_user = server->socks_user[0] != '\0' ? server->socks_user : NULL,
        .socks_pass = server->socks_pass,
        .timeout_ms = server->connect_ms,
    };
    struct err e = {0};
    c->dial = net_dial_start(c->nl->loop, &opts, on_dialled, c, &e);
    if (c->dial == NULL) {
        enum nntp_trouble t = e.code == ERR_INVALID ? NNTP_TROUBLE_CONFIG : NNTP_TROUBLE_LOCAL;
        nntp_conn_die(c, t, 0, e.msg);
    }
}

/* ---- questions, in order ---- */

bool nntp_conn_ask(struct nntp_conn *c, enum asked what, const char *command, size_t len)
{
    PRE(c->asked_count < NNTP_ASKED_MAX);
    int rv = net_stream_write(&c->stream, command, len);
    if (rv != 0 &&
        rv != ERR_STOPPED) { /* stopped: the reason is on its way to on_stream_closed() */
        nntp_conn_die(c, NNTP_TROUBLE_LOCAL, 0, err_text(rv));
        return false;
    }
    c->asked[(c->asked_at + c->asked_count) % NNTP_ASKED_MAX] = (uint8_t)what;
    c->asked_count++;
    return true;
}

static enum asked take_asked(struct nntp_conn *c)
{
    enum asked what = c->asked[c->asked_at];
    c->asked_at = (c->asked_at + 1) % NNTP_ASKED_MAX;
    c->asked_count--;
    return what;
}

/* ---- login ---- */

static void ask_login(struct nntp_conn *c, enum asked what, const char *verb, const char *arg)
{
    char command[NNTP_COMMAND_MAX];
    c->asked_us = now_us();
    nntp_conn_ask(c, what, command, nntp_command(command, verb, "", arg, ""));
}

static void become_ready(struct nntp_conn *c)
{
    sm_move(&c->sm, NNTP_READY);
    net_stream_set_deadline(&c->stream, 0);
    net_stream_set_idle(&c->stream, c->server->idle_ms);
    net_stream_set_meter(&c->stream, c->meter);
    char session[100];
    net_stream_describe(&c->stream, session, sizeof(session));
    snprintf(c->text, sizeof(c->text), "%s", session);
    c->type->up(c);
}

static void after_login(struct nntp_conn *c)
{
    c->logged_in = true;
    if (c->server->mode_reader) {
        ask_login(c, ASKED_MODE, "MODE READER", "");
    } else {
        become_ready(c);
    }
}

static void on_greeting(struct nntp_conn *c)
{
    if (c->reply.code != 200 && c->reply.code != 201) {
        enum nntp_trouble t = nntp_reply_trouble(&c->reply);
        nntp_conn_die_reply(c, t);
        return;
    }
    c->lf_peer = c->reply.bare_lf;
    if (c->server->user[0] == '\0' && !c->server->mode_reader) {
        become_ready(c);
        return;
    }
    sm_move(&c->sm, NNTP_LOGIN);
    if (c->server->user[0] == '\0') {
        after_login(c);
    } else if (!nntp_word_valid(c->server->user) || !nntp_word_valid(c->server->pass)) {
        nntp_conn_die(c, NNTP_TROUBLE_CONFIG, 0, "user name or password cannot be sent");
    } else {
        ask_login(c, ASKED_USER, "AUTHINFO USER ", c->server->user);
    }
}

static void on_login(struct nntp_conn *c, enum asked what)
{
    int code = c->reply.code;
    nntp_pipe_first_byte(&c->pipe, c->asked_us, now_us());
    if (what == ASKED_MODE) {
        /* A server that knows no modes is a reader's server already; one that shows the door is not. */
        enum nntp_trouble t = nntp_reply_trouble(&c->reply);
        if (code == 200 || code == 201 || t == NNTP_TROUBLE_PROTOCOL) {
            become_ready(c);
        } else {
            nntp_conn_die_reply(c, t);
        }
    } else if (code == 281) {
        after_login(c);
    } else if (code == 381 && what == ASKED_USER) {
        ask_login(c, ASKED_PASS, "AUTHINFO PASS ", c->server->pass);
    } else {
        enum nntp_trouble t = nntp_reply_trouble(&c->reply);
        nntp_conn_die_reply(c, t == NNTP_TROUBLE_PROTOCOL ? NNTP_TROUBLE_LOGIN : t);
    }
}

/* ---- replies ---- */

/* Nobody asked. A server that closes an idle session may say so; everything else is out of step. */
static void on_unasked(struct nntp_conn *c)
{
    nntp_conn_die_reply(c, c->reply.code == 400 ? NNTP_TROUBLE_IDLE : NNTP_TROUBLE_DESYNC);
}

static void on_status(struct nntp_conn *c)
{
    if (c->sm.state == NNTP_GREET) {
        on_greeting(c);
        return;
    }
    if (c->asked_count == 0) {
        on_unasked(c);
        return;
    }
    c->first_seen = false;
    enum asked what = take_asked(c);
    switch (what) {
    case ASKED_USER:
    case ASKED_PASS:
    case ASKED_MODE:
        on_login(c, what);
        break;
    case ASKED_GROUP:
        nntp_conn_on_group(c);
        break;
    case ASKED_BODY:
        nntp_conn_on_body(c);
        break;
    case ASKED_STAT:
        nntp_conn_on_stat(c);
        break;
    }
}

static void feed_line(struct nntp_conn *c, const uint8_t *p, size_t n, size_t *used)
{
    if (!c->first_seen && c->fetch_count > 0) {
        c->first_seen = true;
        nntp_pipe_first_byte(&c->pipe, nntp_conn_head(c)->sent_us, now_us());
    }
    switch (nntp_reply_feed(&c->reply, p, n, used)) {
    case NNTP_REPLY_MORE:
        break;
    case NNTP_REPLY_LINE:
        on_status(c);
        break;
    case NNTP_REPLY_BAD: {
        char text[NNTP_TEXT_MAX];
        snprintf(text, sizeof(text), "not a status line: \"%.60s\"", c->reply.text);
        nntp_conn_die(c, NNTP_TROUBLE_PROTOCOL, 0, text);
        break;
    }
    case NNTP_REPLY_FLOOD:
        nntp_conn_die(c, NNTP_TROUBLE_FLOOD, 0, "a status line without end");
        break;
    }
}

static size_t on_read(struct net_stream *s, const uint8_t *p, size_t n)
{
    struct nntp_conn *c = s->owner;
    size_t at = 0;
    while (at < n && c->sm.state != NNTP_DYING && !c->wants_room) {
        size_t used = 0;
        if (c->in_body) {
            nntp_conn_feed_body(c, p + at, n - at, &used);
        } else {
            feed_line(c, p + at, n - at, &used);
        }
        at += used;
    }
    if (c->sm.state == NNTP_DYING) {
        return n;
    }
    if (c->wants_room) {
        net_stream_pause(s);
        return at;
    }
    if (nntp_conn_space(c) > 0) {
        c->type->more(c);
    }
    if (c->quit_wanted && c->sm.state == NNTP_READY) {
        nntp_conn_quit(c);
    }
    return n;
}

/* ---- time ---- */

static unsigned patience_ms(const struct nntp_conn *c)
{
    unsigned ms = c->server->timeout_ms;
    return c->pipelined && !c->memory->proven && ms > PROBE_MS ? PROBE_MS : ms;
}

void nntp_conn_watch(struct nntp_conn *c)
{
    net_stream_set_idle(&c->stream, patience_ms(c));
    c->slow_ms = now_ms(c);
    c->slow_bytes = c->stream.bytes_in;
}

void nntp_conn_tick(struct nntp_conn *c)
{
    if (c->sm.state != NNTP_BODY) {
        return;
    }
    nntp_conn_room(c); /* for memory that the system lacked: nobody gives that back to us */
    if (c->sm.state != NNTP_BODY) {
        return;
    }
    uint64_t now = now_ms(c);
    if (c->stream.idle_ms != patience_ms(c)) {
        net_stream_set_idle(&c->stream, patience_ms(c)); /* it has proven itself meanwhile */
    }
    bool held = c->wants_room || c->meter->limited;
    uint64_t least = (uint64_t)c->server->timeout_ms * SLOW_BYTES_PER_S / 1000;
    if (held || c->stream.bytes_in - c->slow_bytes >= least) {
        c->slow_ms = now;
        c->slow_bytes = c->stream.bytes_in;
    } else if (now - c->slow_ms >= c->server->timeout_ms) {
        nntp_conn_die(c, NNTP_TROUBLE_SLOW, 0, "less than 1 KiB/s");
    }
}
