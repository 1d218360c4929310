#include "lib/asker.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/mem.h"

static void on_deliver(void *arg, struct nntp_msg *msg)
{
    struct asker *a = arg;
    uv_mutex_lock(&a->lock);
    switch (msg->kind) {
    case NNTP_MSG_FETCH: {
        struct nntp_fetch *f = LIST_ENTRY(msg, struct nntp_fetch, msg);
        list_push_back(&a->inbox, &LIST_ENTRY(f, struct asker_article, fetch)->ready);
        break;
    }
    case NNTP_MSG_SERVERS:
        a->order_back = true;
        break;
    case NNTP_MSG_CANCEL:
        a->cancel_back = true;
        break;
    default:
        PRE(msg->kind == NNTP_MSG_EVENT && a->event_count < 4096);
        a->events[a->event_count++] = LIST_ENTRY(msg, struct nntp_event, msg);
    }
    uv_cond_signal(&a->wake);
    uv_mutex_unlock(&a->lock);
}

void asker_server(struct asker *a, const struct peer *p)
{
    struct nntp_server *s = &a->servers[a->server_count];
    nntp_server_init(s);
    s->id = 100 + a->server_count++;
    snprintf(s->host, sizeof(s->host), "127.0.0.1");
    s->port = p->port;
    s->tls = p->cert != NULL;
    snprintf(s->user, sizeof(s->user), "%s", p->user != NULL ? p->user : "");
    snprintf(s->pass, sizeof(s->pass), "%s", p->pass != NULL ? p->pass : "");
    s->connect_ms = 3000;
    s->timeout_ms = 3000;
    s->redial_ms = 50;
}

bool asker_try_start(struct asker *a)
{
    uv_mutex_init(&a->lock);
    uv_cond_init(&a->wake);
    list_init(&a->inbox);
    nntp_rate_init(&a->rate);
    a->window = a->window != 0 ? a->window : 16;
    a->failures_max = a->failures_max != 0 ? a->failures_max : 4;
    PRE(buf_pool_init(&a->bufs, a->budget != 0 ? a->budget : 32 << 20) == 0);
    struct nntp_pool_opts opts = {.bufs = &a->bufs,
                                  .rate = &a->rate,
                                  .messages = 256,
                                  .connections = 64,
                                  .deliver = on_deliver,
                                  .arg = a};
    struct err e = {0};
    if (nntp_pool_start(&a->pool, &opts, &e) != 0) {
        PRE(e.code != 0 && e.msg[0] != '\0');
        buf_pool_close(&a->bufs);
        uv_mutex_destroy(&a->lock);
        uv_cond_destroy(&a->wake);
        return false;
    }
    asker_apply(a);
    return true;
}

void asker_start(struct asker *a)
{
    bool started = asker_try_start(a);
    PRE(started);
}

void asker_apply(struct asker *a)
{
    a->order = (struct nntp_servers){
        .msg.kind = NNTP_MSG_SERVERS, .list = a->servers, .count = a->server_count};
    a->order_back = false;
    PRE(nntp_pool_post(a->pool, &a->order.msg) == 0);
    uv_mutex_lock(&a->lock);
    while (!a->order_back) {
        uv_cond_wait(&a->wake, &a->lock);
    }
    uv_mutex_unlock(&a->lock);
}

void asker_post(struct asker *a, struct asker_article *art, unsigned article, unsigned server)
{
    struct nntp_fetch *f = &art->fetch;
    f->msg.kind = NNTP_MSG_FETCH;
    f->lease = article;
    f->owner = f->owner != 0 ? f->owner : 1;
    f->server = a->servers[server].id;
    f->part = article + 1;
    f->raw_bytes = PEER_PART + 1000;
    if (f->id[0] == '\0') {
        snprintf(f->id, sizeof(f->id), "%u@peer", article);
    }
    art->next = server;
    art->asked[server]++;
    PRE(nntp_pool_post(a->pool, &f->msg) == 0);
}

struct asker_article *asker_wait(struct asker *a)
{
    uv_mutex_lock(&a->lock);
    struct list *node;
    while ((node = list_pop_front(&a->inbox)) == NULL) {
        uv_cond_wait(&a->wake, &a->lock);
    }
    uv_mutex_unlock(&a->lock);
    return LIST_ENTRY(node, struct asker_article, ready);
}

static bool right_bytes(const struct nntp_fetch *f)
{
    if (f->buf->len != PEER_PART || f->header.begin != f->lease * PEER_PART) {
        return false;
    }
    for (size_t i = 0; i < PEER_PART; i++) {
        if (f->buf->data[i] != peer_byte(f->lease * PEER_PART + i)) {
            return false;
        }
    }
    return true;
}

static void take_result(struct asker *a, struct asker_article *art)
{
    struct nntp_fetch *f = &art->fetch;
    a->results[f->result]++;
    a->credit = f->credit;
    art->last = f->result;
    if (f->result == NNTP_FAILED) {
        a->troubles[f->trouble]++;
        snprintf(a->text, sizeof(a->text), "%s", f->text);
        art->failures++;
    } else {
        art->settled[art->next] = true;
        art->tried++;
    }
    if (f->result == NNTP_FOUND && f->buf != NULL) {
        art->done = right_bytes(f);
        a->wrong_bytes += !art->done;
    }
    if (f->buf != NULL) {
        buf_give(&a->bufs, f->buf);
        f->buf = NULL;
    }
    art->over = art->done || art->tried == a->server_count || art->failures >= a->failures_max;
}

static void ask_next(struct asker *a, struct asker_article *art)
{
    unsigned server = art->next;
    do {
        server = (server + 1) % a->server_count;
    } while (art->settled[server]);
    asker_post(a, art, (unsigned)art->fetch.lease, server);
}

unsigned asker_run(struct asker *a, struct asker_article *list, unsigned count)
{
    unsigned begun = 0, over = 0, done = 0;
    memset(list, 0, count * sizeof(*list));
    while (over < count) {
        while (begun < count && begun - over < a->window) {
            list_init(&list[begun].ready);
            asker_post(a, &list[begun], begun, 0);
            begun++;
        }
        struct asker_article *art = asker_wait(a);
        take_result(a, art);
        if (!art->over) {
            ask_next(a, art);
            continue;
        }
        over++;
        done += art->done;
    }
    return done;
}

void asker_count_events(struct asker *a)
{
    uv_mutex_lock(&a->lock);
    for (unsigned i = 0; i < a->event_count; i++) {
        const struct nntp_event *e = a->events[i];
        a->ups += e->kind == NNTP_CONN_UP;
        a->pipeline_off += e->kind == NNTP_PIPELINE_OFF;
        if (e->kind == NNTP_CONN_DOWN) {
            a->downs[e->trouble]++;
        }
        mem_free(a->events[i]);
    }
    a->event_count = 0;
    uv_mutex_unlock(&a->lock);
}

void asker_stop(struct asker *a)
{
    nntp_pool_stop(a->pool);
    nntp_pool_join(a->pool);
    nntp_pool_free(a->pool);
    asker_count_events(a);
    buf_pool_close(&a->bufs); /* aborts when a buffer is missing */
    uv_mutex_destroy(&a->lock);
    uv_cond_destroy(&a->wake);
}
