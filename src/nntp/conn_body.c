/* conn_body.c - an article's way through its connection: asked, arriving, decoded, given back. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "nntp/conn_private.h"

unsigned nntp_conn_depth(const struct nntp_conn *c)
{
    unsigned max = c->server->depth > 0 ? c->server->depth : NNTP_DEPTH_MAX;
    return nntp_pipe_depth(&c->pipe, c->memory, max < NNTP_DEPTH_MAX ? max : NNTP_DEPTH_MAX);
}

unsigned nntp_conn_space(const struct nntp_conn *c)
{
    if ((c->sm.state != NNTP_READY && c->sm.state != NNTP_BODY) || c->quit_wanted) {
        return 0;
    }
    unsigned depth = nntp_conn_depth(c);
    return depth > c->fetch_count ? depth - c->fetch_count : 0;
}

static bool join(struct nntp_conn *c, const char *group)
{
    if (!c->server->join_group || group[0] == '\0' || strcmp(group, c->group) == 0) {
        return true;
    }
    char command[NNTP_COMMAND_MAX];
    snprintf(c->group, sizeof(c->group), "%s", group);
    return nntp_conn_ask(c, ASKED_GROUP, command, nntp_command(command, "GROUP ", "", group, ""));
}

void nntp_conn_fetch(struct nntp_conn *c, struct nntp_fetch *f)
{
    PRE(nntp_conn_space(c) > 0);
    PRE(nntp_id_valid(f->id));
    f->sent_us = uv_hrtime() / 1000;
    f->cancelled = false;
    f->buf = NULL;
    f->pipelined = c->fetch_count > 0;
    list_init(&f->node);
    list_push_back(&c->fetches, &f->node);
    c->fetch_count++;
    c->pipelined = c->pipelined || f->pipelined;
    if (c->sm.state == NNTP_READY) {
        sm_move(&c->sm, NNTP_BODY);
        nntp_conn_watch(c);
    } else if (c->fetch_count == 2 && !c->memory->proven) {
        nntp_conn_watch(c);
    }
    char command[NNTP_COMMAND_MAX];
    size_t len = nntp_command(command, f->stat ? "STAT " : "BODY ", "<", f->id, ">");
    if (join(c, f->group)) {
        nntp_conn_ask(c, f->stat ? ASKED_STAT : ASKED_BODY, command, len);
    }
}

/* The head of the line has its answer. */
static void give_back(struct nntp_conn *c)
{
    struct nntp_fetch *f = nntp_conn_head(c);
    list_remove(&f->node);
    c->fetch_count--;
    f->code = c->reply.code;
    if (f->cancelled) {
        f->result = NNTP_CANCELLED;
        if (f->buf != NULL) {
            buf_give(c->bufs, f->buf);
            f->buf = NULL;
        }
    }
    nntp_pipe_complete(&c->pipe, f->sent_us, uv_hrtime() / 1000);
    if (f->pipelined) {
        nntp_pipe_good(c->memory);
    }
    if (c->fetch_count == 0) {
        sm_move(&c->sm, NNTP_READY);
        net_stream_set_idle(&c->stream, c->server->idle_ms);
    }
    c->type->done(c, f);
}

static void answer(struct nntp_conn *c, enum nntp_result result, const char *text)
{
    struct nntp_fetch *f = nntp_conn_head(c);
    f->result = result;
    f->trouble = NNTP_TROUBLE_NONE;
    f->began = false;
    f->format = YENC_FORMAT_NONE;
    f->verdict = YENC_OPEN;
    f->wire_bytes = 0;
    snprintf(f->text, sizeof(f->text), "%s", text);
}

static void answer_reply(struct nntp_conn *c, enum nntp_result result)
{
    char text[NNTP_TEXT_MAX];
    snprintf(text, sizeof(text), "%d %s", c->reply.code, c->reply.text);
    answer(c, result, text);
}

/* ---- status lines ---- */

/* Neither the article nor its absence. What ends sessions costs the article nothing; an error that answers just this
 * question is the article's own, or it would be asked for ever. */
static void on_refusal(struct nntp_conn *c)
{
    enum nntp_trouble t = nntp_reply_trouble(&c->reply);
    if (t == NNTP_TROUBLE_LOGIN && c->reply.code == 480 && c->logged_in) {
        t = NNTP_TROUBLE_GOODBYE; /* we were in: the session has expired */
    }
    if (t == NNTP_TROUBLE_PROTOCOL) {
        answer_reply(c, NNTP_REFUSED);
        give_back(c);
    }
    nntp_conn_die_reply(c, t);
}

void nntp_conn_on_group(struct nntp_conn *c)
{
    /* 211: joined. 411: this server does not carry it; the article may be there all the same. */
    int code = c->reply.code;
    if (code != 211 && code != 411) {
        enum nntp_trouble t = nntp_reply_trouble(&c->reply);
        nntp_conn_die_reply(c, t);
    }
}

void nntp_conn_on_stat(struct nntp_conn *c)
{
    if (c->reply.code == 223) {
        answer(c, NNTP_FOUND, "");
        give_back(c);
    } else if (nntp_reply_missing(c->reply.code)) {
        answer_reply(c, NNTP_MISSING);
        give_back(c);
    } else {
        on_refusal(c);
    }
}

static bool same_id(const char *id, size_t len, const struct nntp_fetch *f)
{
    return strlen(f->id) == len && memcmp(id, f->id, len) == 0;
}

static uint32_t hash_id(const char *id, size_t len)
{
    uint32_t h = 2166136261u; /* FNV-1a: only to recognise what was asked for a moment ago */
    for (size_t i = 0; i < len; i++) {
        h = (h ^ (uint8_t)id[i]) * 16777619u;
    }
    return h;
}

/* 222 may name the article. Another id means: out of step, when it is one that was asked for behind this one or has
 * been answered already; else this server has a wrong article here. */
static bool id_in_step(struct nntp_conn *c)
{
    size_t len;
    const char *id = nntp_reply_id(&c->reply, &len);
    c->body_wrong = false;
    if (id == NULL || len == 0 || same_id(id, len, nntp_conn_head(c))) {
        return true;
    }
    LIST_FOREACH (node, &c->fetches) {
        if (same_id(id, len, LIST_ENTRY(node, struct nntp_fetch, node))) {
            return false;
        }
    }
    for (unsigned i = 0; i < NNTP_RECENT; i++) {
        if (c->recent[i] == hash_id(id, len)) {
            return false;
        }
    }
    c->body_wrong = true;
    return true;
}

void nntp_conn_on_body(struct nntp_conn *c)
{
    if (c->reply.code == 222 ||
        c->reply.code == 220) { /* 220: headers in front, which do no harm */
        if (!id_in_step(c)) {
            nntp_conn_die_reply(c, NNTP_TROUBLE_DESYNC);
            return;
        }
        c->in_body = true;
        yenc_article_init(&c->article, c->lf_peer);
    } else if (nntp_reply_missing(c->reply.code)) {
        answer_reply(c, NNTP_MISSING);
        give_back(c);
    } else {
        on_refusal(c);
    }
}

/* ---- the body ---- */

/* Memory for the part, once its size is known. A size in a header buys no more than the limit of an article, and
 * the budget of all articles stands behind that. */
static void make_room(struct nntp_conn *c)
{
    size_t want = yenc_article_wants(&c->article);
    if (c->article.format == YENC_FORMAT_UU && want < nntp_conn_head(c)->raw_bytes) {
        want = nntp_conn_head(c)->raw_bytes; /* nothing is declared; encoded is more than decoded */
    }
    if (want > YENC_RAW_MAX || want > buf_pool_max(c->bufs)) {
        nntp_conn_die(c, NNTP_TROUBLE_FLOOD, 0, "an article larger than the limit");
        return;
    }
    struct buf *b = buf_take(c->bufs, want > 0 ? want : 1, &c->waiter);
    if (b == NULL) {
        c->wants_room = true;
        return;
    }
    if (c->buf != NULL) {
        memcpy(b->data, c->buf->data, c->article.len);
        buf_give(c->bufs, c->buf);
    }
    c->buf = b;
    yenc_article_room(&c->article, b->data, b->capacity);
}

void nntp_conn_room(struct nntp_conn *c)
{
    if (!c->wants_room) {
        return; /* died or was served in the meantime */
    }
    c->wants_room = false;
    make_room(c);
    if (c->sm.state == NNTP_BODY && !c->wants_room) {
        net_stream_resume(&c->stream);
    }
}

/* NULL: it is the part that was asked for. Only its number and its place count: names, sizes and totals are often
 * decoys. */
static const char *not_the_part(const struct nntp_fetch *f, const struct yenc_article *a)
{
    const struct yenc_header *h = &a->header;
    if (a->format != YENC_FORMAT_YENC || a->verdict == YENC_BAD_HEADER) {
        return NULL;
    }
    if (f->part > 0 && (h->part > 0 ? h->part != f->part : f->part > 1)) {
        return "another part than the one asked for";
    }
    if (f->has_place && h->has_range && (h->begin != f->begin || h->end != f->end)) {
        return "another place in the file than the one asked for";
    }
    return NULL;
}

static enum nntp_result judge(const struct nntp_conn *c, const char **text)
{
    const struct yenc_article *a = &c->article;
    const char *other = c->body_wrong ? "another message-id than the one asked for"
                                      : not_the_part(nntp_conn_head(c), a);
    *text = other != NULL ? other : a->why != NULL ? a->why : "";
    if (other != NULL) {
        return NNTP_WRONG;
    }
    switch (a->verdict) {
    case YENC_OK:
    case YENC_NO_CRC:
        return c->buf != NULL ? NNTP_FOUND : NNTP_UNUSABLE;
    case YENC_BAD_CRC:
    case YENC_BAD_SIZE:
    case YENC_NO_END:
        return c->buf != NULL && a->len > 0 ? NNTP_DAMAGED : NNTP_UNUSABLE;
    default:
        return NNTP_UNUSABLE;
    }
}

static void body_complete(struct nntp_conn *c)
{
    struct nntp_fetch *f = nntp_conn_head(c);
    const char *text;
    enum nntp_result result = judge(c, &text);
    answer(c, result, text);
    f->verdict = c->article.verdict;
    f->format = c->article.format;
    f->header = c->article.header;
    f->crc = c->article.crc;
    f->wire_bytes = c->article.raw;
    struct buf *b = c->buf;
    c->buf = NULL;
    if (b != NULL && (result == NNTP_FOUND || result == NNTP_DAMAGED)) {
        b->len = c->article.len;
        f->buf = b;
    } else if (b != NULL) {
        buf_give(c->bufs, b);
    }
    c->in_body = false;
    c->recent[c->recent_at++ % NNTP_RECENT] = hash_id(f->id, strlen(f->id));
    give_back(c);
    if (result == NNTP_WRONG) {
        /* A wrong article, or a reply too many that carried no id: what comes next cannot be trusted. */
        nntp_conn_die(c, NNTP_TROUBLE_DESYNC, c->reply.code, text);
    }
}

void nntp_conn_feed_body(struct nntp_conn *c, const uint8_t *p, size_t n, size_t *used)
{
    switch (yenc_article_feed(&c->article, p, n, used)) {
    case YENC_FEED_MORE:
        break;
    case YENC_FEED_DONE:
        body_complete(c);
        break;
    case YENC_FEED_ROOM:
        make_room(c);
        break;
    case YENC_FEED_LIMIT:
        nntp_conn_die(c, NNTP_TROUBLE_FLOOD, 0, c->article.why);
        break;
    }
}

/* ---- cancelling ---- */

void nntp_conn_cancel(struct nntp_conn *c, uint64_t owner)
{
    unsigned left = 0;
    LIST_FOREACH (node, &c->fetches) {
        struct nntp_fetch *f = LIST_ENTRY(node, struct nntp_fetch, node);
        f->cancelled = f->cancelled || owner == 0 || f->owner == owner;
        left += !f->cancelled;
    }
    if (c->fetch_count > 0 && left == 0) {
        nntp_conn_stop(c, NNTP_TROUBLE_STOPPED, "all its work was cancelled");
    }
}
