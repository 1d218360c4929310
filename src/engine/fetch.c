/* fetch.c - the core's leases become fetches of the NNTP pools, and their answers results.
 *
 * Several pools (threads) share a server's connections; a lease goes to the pool that has the fewest per connection.
 * Every slot comes back exactly once, so nothing is allocated once as many exist as the core ever leased at a time. */
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/parts.h"

struct fetch_slot {
    struct nntp_fetch fetch; /* first: a message is its slot */
    struct list node;        /* spare or leased */
    unsigned pool;
    unsigned server; /* index */
};

static struct fetch_slot *slot_of(struct list *node)
{
    return LIST_ENTRY(node, struct fetch_slot, node);
}

static unsigned server_index(const struct fetches *f, uint32_t id)
{
    for (unsigned i = 0; i < f->server_count; i++) {
        if (f->servers[i].policy.id == id) {
            return i;
        }
    }
    IMPOSSIBLE("a server that nobody configured");
}

/* ---- servers ---- */

/* How many of n connections pool i gets. */
static unsigned share(unsigned n, unsigned pools, unsigned i)
{
    return n / pools + (i < n % pools);
}

/* Tells every pool which servers there are and how many connections it may make to each. */
static void configure(struct engine *e)
{
    struct fetches *f = &e->fetch;
    for (unsigned p = 0; p < f->pool_count; p++) {
        struct nntp_servers *m = mem_zalloc(1, sizeof(*m));
        struct nntp_server *list = mem_zalloc(f->server_count + 1, sizeof(*list));
        if (m == NULL || list == NULL) { /* the old numbers stay in force: a connection too many */
            log_error("engine: no memory to change the number of connections");
            mem_free(list);
            mem_free(m);
            return;
        }
        m->msg.kind = NNTP_MSG_SERVERS;
        m->list = list;
        for (unsigned s = 0; s < f->server_count; s++) {
            if (f->links[p][s].connections > 0) {
                list[m->count] = f->servers[s].link;
                list[m->count].connections = f->links[p][s].connections;
                m->count++;
            }
        }
        if (nntp_pool_post(f->pools[p], &m->msg) == 0) {
            f->config_out++;
        } else {
            mem_free(list);
            mem_free(m);
        }
    }
}

static void set_connections(struct fetches *f, unsigned server, unsigned n)
{
    for (unsigned p = 0; p < f->pool_count; p++) {
        f->links[p][server].connections = share(n, f->pool_count, p);
    }
}

/* ---- out ---- */

static struct fetch_slot *take_slot(struct fetches *f)
{
    struct list *node = list_pop_front(&f->spare);
    if (node != NULL) {
        return slot_of(node);
    }
    struct fetch_slot *s = mem_zalloc(1, sizeof(*s));
    if (s == NULL) {
        IMPOSSIBLE(
            "no memory for a fetch"); /* the queue on disk is whole: a restart loses nothing */
    }
    list_init(&s->node);
    return s;
}

/* The pool with the fewest fetches per connection of that server. */
static unsigned best_pool(const struct fetches *f, unsigned server)
{
    unsigned best = 0;
    uint64_t least = UINT64_MAX;
    for (unsigned p = 0; p < f->pool_count; p++) {
        const struct link_state *l = &f->links[p][server];
        uint64_t load = l->connections > 0 ? 1000ull * l->held / l->connections : UINT64_MAX;
        if (load < least) {
            least = load;
            best = p;
        }
    }
    return best;
}

static void post(struct engine *e, const struct coord_fetch *want)
{
    struct fetches *f = &e->fetch;
    struct fetch_slot *s = take_slot(f);
    s->server = server_index(f, want->server_id);
    s->pool = best_pool(f, s->server);
    struct nntp_fetch *m = &s->fetch;
    memset(m, 0, offsetof(struct nntp_fetch, header));
    m->msg.kind = NNTP_MSG_FETCH;
    m->lease = want->lease;
    m->owner = want->lease;
    m->server = want->server_id;
    m->part = want->part_number;
    m->raw_bytes = want->bytes;
    size_t len = strlen(want->message_id);
    PRE(len <= NNTP_ID_MAX);
    memcpy(m->id, want->message_id, len + 1);
    list_push_back(&f->leased, &s->node);
    f->links[s->pool][s->server].held++;
    int rv = nntp_pool_post(f->pools[s->pool], &m->msg);
    if (rv != 0) { /* the pools end after the core: it has no lease out then */
        IMPOSSIBLE("a pool that does not take a fetch");
    }
}

static void cancel(struct engine *e, uint64_t lease)
{
    struct fetches *f = &e->fetch;
    for (unsigned p = 0; p < f->pool_count; p++) {
        struct nntp_cancel *m = mem_zalloc(1, sizeof(*m));
        if (m == NULL) {
            return; /* it comes back by itself, and its lease is gone by then */
        }
        m->msg.kind = NNTP_MSG_CANCEL;
        m->owner = lease;
        if (nntp_pool_post(f->pools[p], &m->msg) != 0) {
            mem_free(m);
        }
    }
}

void fetch_effect(struct engine *e, const struct coord_effect *fx)
{
    struct fetches *f = &e->fetch;
    switch (fx->type) {
    case COORD_FX_FETCH:
        post(e, &fx->fetch);
        break;
    case COORD_FX_CANCEL:
        cancel(e, fx->lease);
        break;
    case COORD_FX_SERVER:
        set_connections(f, server_index(f, fx->server.id), fx->server.connections);
        configure(e);
        break;
    default:
        IMPOSSIBLE("not an effect for the pools");
    }
}

/* ---- in ---- */

static enum coord_code code_of_trouble(enum nntp_trouble t)
{
    switch (t) {
    case NNTP_TROUBLE_DNS:
        return COORD_DNS;
    case NNTP_TROUBLE_CONNECT:
        return COORD_CONNECT;
    case NNTP_TROUBLE_TLS:
        return COORD_TLS_IO;
    case NNTP_TROUBLE_CONFIG:
        return COORD_CIPHER;
    case NNTP_TROUBLE_CERT:
        return COORD_CERTIFICATE;
    case NNTP_TROUBLE_LOGIN:
        return COORD_LOGIN;
    case NNTP_TROUBLE_LIMIT:
        return COORD_TOO_MANY;
    case NNTP_TROUBLE_GOODBYE:
        return COORD_SERVICE;
    case NNTP_TROUBLE_CLOSED:
        return COORD_EOF;
    case NNTP_TROUBLE_TIMEOUT:
    case NNTP_TROUBLE_SLOW:
        return COORD_TIMEOUT;
    case NNTP_TROUBLE_PROTOCOL:
    case NNTP_TROUBLE_DESYNC:
    case NNTP_TROUBLE_FLOOD:
        return COORD_DESYNC;
    default:
        return COORD_CANCELLED;
    }
}

static enum coord_code code_of_verdict(enum yenc_verdict v)
{
    return v == YENC_BAD_CRC                        ? COORD_YENC_CRC
           : v == YENC_BAD_SIZE || v == YENC_NO_END ? COORD_YENC_SIZE
                                                    : COORD_YENC_HEADER;
}

static enum coord_code code_of(const struct nntp_fetch *m)
{
    switch (m->result) {
    case NNTP_FOUND:
        /* UUencode tells no offset: only a file of one article can be placed. */
        return m->format == YENC_FORMAT_UU && m->part > 1 ? COORD_YENC_HEADER : COORD_OK;
    case NNTP_DAMAGED:
        return code_of_verdict(m->verdict);
    case NNTP_UNUSABLE:
        return COORD_YENC_HEADER;
    case NNTP_WRONG:
        return COORD_WRONG_ARTICLE;
    case NNTP_MISSING:
        return m->code == 451 ? COORD_REMOVED : COORD_NOT_FOUND;
    case NNTP_REFUSED:
        return COORD_UNKNOWN;
    case NNTP_FAILED:
        return code_of_trouble(m->trouble);
    default:
        return COORD_CANCELLED;
    }
}

static void on_credit(struct engine *e, unsigned pool, unsigned server, unsigned credit)
{
    struct fetches *f = &e->fetch;
    if (credit == f->links[pool][server].credit) {
        return;
    }
    f->links[pool][server].credit = credit;
    uint32_t sum = 0;
    for (unsigned p = 0; p < f->pool_count; p++) {
        sum += f->links[p][server].credit;
    }
    struct coord_event ev = {.type = COORD_EV_CREDIT,
                             .server = {.id = f->servers[server].policy.id, .credit = sum}};
    engine_step(e, &ev);
}

static void on_fetch(struct engine *e, struct fetch_slot *s)
{
    struct fetches *f = &e->fetch;
    struct nntp_fetch *m = &s->fetch;
    list_remove(&s->node);
    f->links[s->pool][s->server].held--;
    bool yenc = m->format == YENC_FORMAT_YENC;
    struct coord_event ev = {
        .type = COORD_EV_RESULT,
        .result = {
            .lease = m->lease,
            .code = code_of(m),
            .began = m->began,
            .data = (uint64_t)(uintptr_t)m->buf,
            .part = {.offset = yenc ? m->header.begin : 0,
                     .size = m->buf != NULL ? (uint32_t)m->buf->len : 0,
                     .crc32 = m->crc},
            .file_size = yenc ? m->header.size : 0,
            .name = yenc && m->header.name[0] != '\0' ? m->header.name : NULL,
            .wire_bytes = m->wire_bytes < UINT32_MAX ? (uint32_t)m->wire_bytes : UINT32_MAX,
            .text = m->text[0] != '\0' ? m->text : NULL,
        }};
    unsigned pool = s->pool, server = s->server, credit = m->credit;
    engine_step(e, &ev);
    list_push_front(&f->spare, &s->node);
    on_credit(e, pool, server, credit);
}

static void on_event(struct engine *e, const struct nntp_event *n)
{
    struct fetches *f = &e->fetch;
    struct coord_event ev = {
        .type = COORD_EV_SERVER,
        .server = {.id = n->server, .code = COORD_OK, .text = n->text},
    };
    switch (n->kind) {
    case NNTP_CONN_UP:
        log_detail("server %u: connected: %s", n->server, n->text);
        engine_step(e, &ev);
        break;
    case NNTP_CONN_DOWN:
        ev.server.code = code_of_trouble(n->trouble);
        if (ev.server.code != COORD_CANCELLED) {
            log_detail("server %u: %s: %s", n->server, nntp_trouble_words(n->trouble), n->text);
            /* With the last connection its fetches come back and say the same; once is enough. */
            if (n->connections > 0) {
                engine_step(e, &ev);
            }
        }
        break;
    case NNTP_PIPELINE_OFF:
        log_warning("server %u does not bear pipelined commands; one at a time from now on",
                    n->server);
        for (unsigned s = 0; s < f->server_count; s++) {
            if (f->servers[s].policy.id == n->server) {
                f->servers[s].link.depth = 1;
            }
        }
        break;
    }
    on_credit(e, n->pool, server_index(f, n->server), n->credit);
}

void fetch_message(struct engine *e, struct nntp_msg *m)
{
    switch (m->kind) {
    case NNTP_MSG_FETCH:
        on_fetch(e, (struct fetch_slot *)m);
        break;
    case NNTP_MSG_EVENT:
        on_event(e, (struct nntp_event *)m);
        mem_free(m);
        break;
    case NNTP_MSG_SERVERS:
        mem_free(((struct nntp_servers *)m)->list);
        mem_free(m);
        e->fetch.config_out--;
        break;
    default:
        mem_free(m);
    }
}

/* A pool has its own timeouts and gives every fetch back in time. What the core's deadline guards against is a pool
 * that hangs: one that reads nothing, or whose thread is gone, is not vouched for. */
void fetch_vouch(struct engine *e)
{
    struct fetches *f = &e->fetch;
    bool alive[ENGINE_WORKERS_MAX];
    for (unsigned p = 0; p < f->pool_count; p++) {
        uint64_t bytes = nntp_pool_counters(f->pools[p]).bytes_in;
        alive[p] = bytes != f->alive_bytes[p];
        f->alive_bytes[p] = bytes;
    }
    LIST_FOREACH_SAFE (n, &f->leased) {
        struct fetch_slot *s = slot_of(n);
        if (alive[s->pool]) {
            struct coord_event ev = {.type = COORD_EV_PROGRESS, .lease = s->fetch.lease};
            engine_step(e, &ev);
        }
    }
}

/* ---- start and stop ---- */

static void deliver(void *arg, struct nntp_msg *m)
{
    struct engine *e = arg;
    int rv = mbox_post(&e->from_pools, m);
    POST(rv == 0); /* room for all that can be under way; open until the pools have ended */
}

int fetch_start(struct engine *e, struct err *err)
{
    struct fetches *f = &e->fetch;
    nntp_rate_init(&f->rate);
    nntp_rate_set(&f->rate, e->o.limits.rate);
    list_init(&f->spare);
    list_init(&f->leased);
    f->server_count = e->o.server_count;
    unsigned connections = 0;
    for (unsigned i = 0; i < f->server_count; i++) {
        f->servers[i] = e->o.servers[i];
        f->servers[i].link.id = f->servers[i].policy.id;
        connections += f->servers[i].policy.connections;
    }
    for (; f->pool_count < e->o.workers; f->pool_count++) {
        struct nntp_pool_opts opts = {
            .index = f->pool_count,
            .bufs = &e->bufs,
            .rate = &f->rate,
            .messages = INBOX,
            .connections = connections > 0 ? connections : 1,
            .deliver = deliver,
            .arg = e,
        };
        int rv = nntp_pool_start(&f->pools[f->pool_count], &opts, err);
        if (rv != 0) {
            return rv;
        }
    }
    for (unsigned i = 0; i < f->server_count; i++) {
        set_connections(f, i, f->servers[i].policy.active ? f->servers[i].policy.connections : 0);
    }
    configure(e);
    return 0;
}

void fetch_stop(struct engine *e)
{
    for (unsigned p = 0; p < e->fetch.pool_count; p++) {
        nntp_pool_stop(e->fetch.pools[p]);
    }
    for (unsigned p = 0; p < e->fetch.pool_count; p++) {
        nntp_pool_join(e->fetch.pools[p]);
    }
}

void fetch_free(struct engine *e)
{
    struct fetches *f = &e->fetch;
    for (unsigned p = 0; p < f->pool_count; p++) {
        nntp_pool_free(f->pools[p]);
    }
    PRE(list_empty(&f->leased));
    for (struct list *n; (n = list_pop_front(&f->spare)) != NULL;) {
        mem_free(slot_of(n));
    }
}
