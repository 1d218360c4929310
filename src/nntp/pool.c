/* pool.c - which fetch goes to which connection.
 *
 * A slot is a server as it is configured now. Its fetches wait in `queue` until a connection has space; connections pull
 * when they have, and a fetch that arrives goes to the one with the least work. When settings change in a way that
 * matters, a new slot takes the queue over and the old one lives on until its connections are done.
 *
 * Connection structs are made once, for the most that may ever be needed, and are reused; the free ones form a list. */
#include "nntp/pool.h"

#include <stdio.h>
#include <string.h>

#include "base/actor.h"
#include "base/check.h"
#include "base/mem.h"
#include "nntp/conn.h"

enum {
    TICK_MS = 250,
    LIMIT_MS = 100,    /* how soon a speed limit that was just set is noticed */
    REFILL_MIN_MS = 4, /* a limited pool wakes up no more often than this */
    REFILL_MAX_MS = 40,
    REFILL_BYTES = 64 * 1024, /* what a wake-up should be good for */
};

struct slot {
    struct list node;
    struct nntp_server conf;
    struct net_tls tls;
    bool has_tls;
    bool gone;         /* replaced or removed: takes no more work, goes with its last connection */
    struct err broken; /* the settings cannot work */
    struct list queue; /* fetches */
    unsigned queued;
    struct list conns;
    unsigned conn_count; /* in any state but CLOSED */
    unsigned up_count;
    unsigned way_count; /* on their way up */
    uint64_t hold_ms;   /* no further attempt before this, as long as others work */
    struct nntp_pipe_memory memory;
};

struct pconn {              /* a connection in the pool */
    struct list node;       /* in its slot's conns, or in the free list */
    struct nntp_msg room;   /* the message that wakes it */
    atomic_int room_posted; /* and whether it is under way */
    struct slot *slot;
    struct nntp_pool *pool;
    uint64_t seen_bytes; /* of its stream, that are counted already */
    bool was_ready;
    struct nntp_conn conn;
};

struct nntp_pool {
    struct actor actor;
    struct actor_type type;
    struct nntp_pool_opts opts;
    struct net_loop nl;
    struct net_meter meter;
    uv_timer_t tick;
    uv_timer_t refill;
    struct list slots;
    struct pconn *conns;
    struct list free_conns;
    unsigned open_conns;
    bool stopping;
    atomic_uint_fast64_t bytes_in;
    atomic_uint_fast64_t dials;
    atomic_uint up;
    atomic_uint fetches;
};

static struct pconn *pconn_of(struct nntp_conn *c)
{
    return LIST_ENTRY(c, struct pconn, conn);
}

/* ---- answers ---- */

/* What this server could have in hand: what its connections can have under way, and one more for each, so that there is
 * no pause between an answer and the next question. */
static uint32_t credit_of(const struct slot *s)
{
    unsigned depth = 2, most = s->conf.depth > 0 ? s->conf.depth : NNTP_DEPTH_MAX;
    LIST_FOREACH (node, &s->conns) {
        const struct pconn *pc = LIST_ENTRY(node, struct pconn, node);
        if (pc->conn.sm.state == NNTP_READY || pc->conn.sm.state == NNTP_BODY) {
            unsigned d = nntp_conn_depth(&pc->conn);
            depth = d > depth ? d : depth;
        }
    }
    depth = depth < most ? depth : most;
    return s->conf.connections * (depth + 1);
}

static void deliver(struct nntp_pool *p, struct nntp_fetch *f, uint32_t credit)
{
    atomic_fetch_sub_explicit(&p->fetches, 1, memory_order_relaxed);
    f->credit = credit;
    p->opts.deliver(p->opts.arg, &f->msg);
}

static void fail_fetch(struct nntp_pool *p, struct nntp_fetch *f, enum nntp_trouble trouble,
                       int code, const char *text, uint32_t credit)
{
    f->result = f->cancelled ? NNTP_CANCELLED : NNTP_FAILED;
    f->trouble = trouble;
    f->code = code;
    f->began = false;
    f->buf = NULL;
    snprintf(f->text, sizeof(f->text), "%s", text);
    deliver(p, f, credit);
}

static void fail_queue(struct nntp_pool *p, struct slot *s, enum nntp_trouble trouble, int code,
                       const char *text)
{
    struct list *node;
    while ((node = list_pop_front(&s->queue)) != NULL) {
        s->queued--;
        fail_fetch(p, LIST_ENTRY(node, struct nntp_fetch, node), trouble, code, text, credit_of(s));
    }
}

static void tell(struct nntp_pool *p, const struct slot *s, enum nntp_event_kind kind,
                 const struct nntp_conn *c)
{
    struct nntp_event *e = mem_zalloc(1, sizeof(*e));
    if (e == NULL) {
        return; /* every fetch that this touched comes back with the same words */
    }
    e->msg.kind = NNTP_MSG_EVENT;
    e->kind = kind;
    e->server = s->conf.id;
    e->pool = p->opts.index;
    e->trouble = c->trouble;
    e->was_up = c->was_up;
    e->in_use = c->was_in_use;
    e->code = c->code;
    e->connections = s->up_count;
    e->credit = credit_of(s);
    snprintf(e->text, sizeof(e->text), "%s", c->text);
    p->opts.deliver(p->opts.arg, &e->msg);
}

/* ---- slots ---- */

static struct slot *find_slot(struct nntp_pool *p, uint32_t id)
{
    LIST_FOREACH (node, &p->slots) {
        struct slot *s = LIST_ENTRY(node, struct slot, node);
        if (s->conf.id == id && !s->gone) {
            return s;
        }
    }
    return NULL;
}

static void free_slot(struct slot *s)
{
    PRE(s->conn_count == 0 && s->queued == 0);
    list_remove(&s->node);
    if (s->has_tls) {
        net_tls_close(&s->tls);
    }
    OPENSSL_cleanse(s->conf.pass, sizeof(s->conf.pass));
    mem_free(s);
}

static void set_up_tls(struct slot *s)
{
    struct net_tls_client opts = {
        .no_verify = s->conf.no_verify, .ciphers = s->conf.ciphers, .ca_file = s->conf.ca_file};
    if (s->conf.tls) {
        s->has_tls = net_tls_init_client(&s->tls, &opts, &s->broken) == 0;
    }
}

static struct slot *new_slot(struct nntp_pool *p, const struct nntp_server *conf)
{
    struct slot *s = mem_zalloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    s->conf = *conf;
    list_init(&s->queue);
    list_init(&s->conns);
    list_push_back(&p->slots, &s->node);
    set_up_tls(s);
    return s;
}

/* ---- work to connections ---- */

static void open_conns(struct nntp_pool *p, struct slot *s);

static struct pconn *least_loaded(struct slot *s)
{
    struct pconn *best = NULL;
    LIST_FOREACH (node, &s->conns) {
        struct pconn *pc = LIST_ENTRY(node, struct pconn, node);
        if (nntp_conn_space(&pc->conn) > 0 &&
            (best == NULL || pc->conn.fetch_count < best->conn.fetch_count)) {
            best = pc;
        }
    }
    return best;
}

static void hand_over(struct slot *s, struct pconn *pc)
{
    struct nntp_fetch *f = LIST_ENTRY(list_pop_front(&s->queue), struct nntp_fetch, node);
    s->queued--;
    nntp_conn_fetch(&pc->conn, f);
}

static void dispatch(struct nntp_pool *p, struct slot *s)
{
    struct pconn *pc;
    while (s->queued > 0 && (pc = least_loaded(s)) != NULL) {
        hand_over(s, pc);
    }
    if (s->queued > s->way_count) {
        open_conns(p, s);
    }
}

static void on_more(struct nntp_conn *c)
{
    struct pconn *pc = pconn_of(c);
    struct slot *s = pc->slot;
    while (s->queued > 0 && nntp_conn_space(c) > 0) {
        hand_over(s, pc);
    }
}

static void on_up(struct nntp_conn *c)
{
    struct pconn *pc = pconn_of(c);
    struct nntp_pool *p = pc->pool;
    pc->was_ready = true;
    pc->slot->way_count--;
    pc->slot->up_count++;
    atomic_fetch_add_explicit(&p->up, 1, memory_order_relaxed);
    tell(p, pc->slot, NNTP_CONN_UP, c);
    if (pc->slot->gone) {
        nntp_conn_quit(c);
    } else {
        on_more(c);
    }
}

static void on_done(struct nntp_conn *c, struct nntp_fetch *f)
{
    struct pconn *pc = pconn_of(c);
    deliver(pc->pool, f, credit_of(pc->slot));
}

/* Another thread gave memory back. */
static void on_room(struct nntp_conn *c)
{
    struct pconn *pc = pconn_of(c);
    if (atomic_exchange(&pc->room_posted, 1) == 0) {
        int rv = actor_post(&pc->pool->actor, &pc->room);
        PRE(rv == 0 || rv == ERR_STOPPED);
    }
}

/* True: bytes arrived since the last look. */
static bool count_bytes(struct nntp_pool *p, struct pconn *pc)
{
    uint64_t more = pc->conn.stream.bytes_in - pc->seen_bytes;
    atomic_fetch_add_explicit(&p->bytes_in, more, memory_order_relaxed);
    pc->seen_bytes += more;
    return more > 0;
}

static void close_rest(struct nntp_pool *p);

static void on_down(struct nntp_conn *c)
{
    struct pconn *pc = pconn_of(c);
    struct nntp_pool *p = pc->pool;
    struct slot *s = pc->slot;
    count_bytes(p, pc);
    list_remove(&pc->node);
    list_push_back(&p->free_conns, &pc->node);
    s->conn_count--;
    if (--p->open_conns == 0) {
        uv_timer_stop(&p->tick);
        uv_timer_stop(&p->refill);
    }
    if (pc->was_ready) {
        s->up_count--;
        atomic_fetch_sub_explicit(&p->up, 1, memory_order_relaxed);
    } else {
        s->way_count--;
        s->hold_ms = uv_now(&p->actor.loop) + s->conf.redial_ms;
    }
    tell(p, s, NNTP_CONN_DOWN, c);
    if (c->pipeline_off) {
        tell(p, s, NNTP_PIPELINE_OFF, c);
    }
    bool harmless = c->trouble == NNTP_TROUBLE_IDLE || c->trouble == NNTP_TROUBLE_STOPPED;
    if (s->conn_count == 0 && !harmless) {
        fail_queue(p, s, c->trouble, c->code, c->text);
    }
    if (s->gone && s->conn_count == 0) {
        free_slot(s);
    } else if (!p->stopping && s->queued > 0) {
        dispatch(p, s);
    }
    if (p->stopping && p->open_conns == 0) {
        close_rest(p);
    }
}

static const struct nntp_conn_type conn_type = {
    .up = on_up, .more = on_more, .done = on_done, .down = on_down, .room = on_room};

static void on_tick(uv_timer_t *t);
static void on_refill(uv_timer_t *t);

static void open_one(struct nntp_pool *p, struct slot *s, struct pconn *pc)
{
    if (p->open_conns == 0) { /* a pool without connections sleeps undisturbed */
        uv_timer_start(&p->tick, on_tick, TICK_MS, TICK_MS);
        uv_timer_start(&p->refill, on_refill, 0, LIMIT_MS);
    }
    list_push_back(&s->conns, &pc->node);
    pc->slot = s;
    pc->was_ready = false;
    pc->seen_bytes = 0;
    pc->conn.stream.bytes_in = 0;
    p->open_conns++;
    s->conn_count++;
    s->way_count++;
    atomic_fetch_add_explicit(&p->dials, 1, memory_order_relaxed);
    nntp_conn_open(&pc->conn, &s->conf, s->has_tls ? &s->tls : NULL, &s->memory);
}

/* As many as there are fetches that no connection is on its way for. */
static void open_conns(struct nntp_pool *p, struct slot *s)
{
    while (s->queued > s->way_count && s->conn_count < s->conf.connections && !p->stopping) {
        bool held = s->conn_count > 0 && uv_now(&p->actor.loop) < s->hold_ms;
        struct list *node = held ? NULL : list_pop_front(&p->free_conns);
        if (node == NULL) {
            return;
        }
        open_one(p, s, LIST_ENTRY(node, struct pconn, node));
    }
}

/* ---- messages ---- */

static uint64_t mono_ms(void)
{
    return uv_hrtime() / 1000000;
}

static void mark_alive(struct list *fetches)
{
    uint64_t now = mono_ms();
    LIST_FOREACH (node, fetches) {
        struct nntp_fetch *f = LIST_ENTRY(node, struct nntp_fetch, node);
        atomic_store_explicit(&f->alive_ms, now, memory_order_relaxed);
    }
}

static void take_fetch(struct nntp_pool *p, struct nntp_fetch *f)
{
    atomic_fetch_add_explicit(&p->fetches, 1, memory_order_relaxed);
    atomic_store_explicit(&f->alive_ms, mono_ms(), memory_order_relaxed);
    f->cancelled = false;
    f->wire_bytes = 0;
    f->format = YENC_FORMAT_NONE;
    f->verdict = YENC_OPEN;
    struct slot *s = find_slot(p, f->server);
    if (s == NULL || p->stopping || s->conf.connections == 0) {
        fail_fetch(p, f, NNTP_TROUBLE_STOPPED, 0, "no such server here", 0);
    } else if (s->broken.code != 0) {
        fail_fetch(p, f, NNTP_TROUBLE_CONFIG, 0, s->broken.msg, credit_of(s));
    } else if (!nntp_id_valid(f->id) || (f->group[0] != '\0' && !nntp_group_valid(f->group))) {
        f->result = NNTP_UNUSABLE;
        snprintf(f->text, sizeof(f->text), "message-id or group cannot be sent");
        f->buf = NULL;
        f->code = 0;
        deliver(p, f, credit_of(s));
    } else {
        list_init(&f->node);
        list_push_back(&s->queue, &f->node);
        s->queued++;
        dispatch(p, s);
    }
}

static void take_cancel(struct nntp_pool *p, struct nntp_cancel *m)
{
    LIST_FOREACH_SAFE (slot_node, &p->slots) {
        struct slot *s = LIST_ENTRY(slot_node, struct slot, node);
        LIST_FOREACH_SAFE (node, &s->queue) {
            struct nntp_fetch *f = LIST_ENTRY(node, struct nntp_fetch, node);
            if (m->owner == 0 || f->owner == m->owner) {
                list_remove(&f->node);
                s->queued--;
                f->cancelled = true;
                fail_fetch(p, f, NNTP_TROUBLE_NONE, 0, "", credit_of(s));
            }
        }
        LIST_FOREACH_SAFE (node, &s->conns) {
            nntp_conn_cancel(&LIST_ENTRY(node, struct pconn, node)->conn, m->owner);
        }
    }
    p->opts.deliver(p->opts.arg, &m->msg);
}

/* No new work; what is under way is finished. The slot goes with its last connection, or now. */
static void retire(struct nntp_pool *p, struct slot *s, struct slot *heir)
{
    s->gone = true;
    if (heir != NULL) {
        struct list *node;
        while ((node = list_pop_front(&s->queue)) != NULL) {
            list_push_back(&heir->queue, node);
        }
        heir->queued += s->queued;
        s->queued = 0;
    } else {
        fail_queue(p, s, NNTP_TROUBLE_STOPPED, 0, "the server was removed");
    }
    s->conn_count++; /* so that none of these calls frees it */
    LIST_FOREACH_SAFE (node, &s->conns) {
        nntp_conn_quit(&LIST_ENTRY(node, struct pconn, node)->conn);
    }
    if (--s->conn_count == 0) {
        free_slot(s);
    }
}

/* Fewer connections than before: the surplus goes, those without work first. */
static void shed(struct slot *s)
{
    unsigned kept = 0;
    for (int working = 1; working >= 0; working--) {
        LIST_FOREACH_SAFE (node, &s->conns) {
            struct pconn *pc = LIST_ENTRY(node, struct pconn, node);
            if ((pc->conn.fetch_count > 0) == (working == 1) && ++kept > s->conf.connections) {
                nntp_conn_quit(&pc->conn);
            }
        }
    }
}

static void apply_server(struct nntp_pool *p, const struct nntp_server *conf)
{
    struct slot *s = find_slot(p, conf->id);
    if (s != NULL && nntp_server_same(&s->conf, conf)) {
        s->conf.connections = conf->connections;
        s->conf.depth = conf->depth;
        s->hold_ms = 0;
        shed(s);
        if (conf->connections == 0) {
            fail_queue(p, s, NNTP_TROUBLE_STOPPED, 0, "the server may have no connections");
        }
        dispatch(p, s);
        return;
    }
    struct slot *fresh = new_slot(p, conf);
    if (s != NULL) {
        retire(p, s, fresh);
    }
    if (fresh != NULL) {
        if (fresh->broken.code != 0) {
            fail_queue(p, fresh, NNTP_TROUBLE_CONFIG, 0, fresh->broken.msg);
        }
        dispatch(p, fresh);
    }
}

static void take_servers(struct nntp_pool *p, struct nntp_servers *m)
{
    LIST_FOREACH_SAFE (node, &p->slots) {
        struct slot *s = LIST_ENTRY(node, struct slot, node);
        bool listed = false;
        for (unsigned i = 0; i < m->count; i++) {
            listed = listed || m->list[i].id == s->conf.id;
        }
        if (!listed && !s->gone) {
            retire(p, s, NULL);
        }
    }
    for (unsigned i = 0; i < m->count; i++) {
        apply_server(p, &m->list[i]);
    }
    p->opts.deliver(p->opts.arg, &m->msg);
}

static void on_recv(struct actor *a, void *raw)
{
    struct nntp_pool *p = a->self;
    struct nntp_msg *msg = raw;
    switch (msg->kind) {
    case NNTP_MSG_FETCH:
        take_fetch(p, LIST_ENTRY(msg, struct nntp_fetch, msg));
        break;
    case NNTP_MSG_CANCEL:
        take_cancel(p, LIST_ENTRY(msg, struct nntp_cancel, msg));
        break;
    case NNTP_MSG_SERVERS:
        take_servers(p, LIST_ENTRY(msg, struct nntp_servers, msg));
        break;
    case NNTP_MSG_ROOM: {
        struct pconn *pc = LIST_ENTRY(msg, struct pconn, room);
        atomic_store(&pc->room_posted, 0); /* before it looks, so that no later wake-up is lost */
        nntp_conn_room(&pc->conn);
        break;
    }
    case NNTP_MSG_EVENT:
        IMPOSSIBLE("an event posted to a pool");
    }
}

/* ---- time ---- */

static void on_tick(uv_timer_t *t)
{
    struct nntp_pool *p = t->data;
    LIST_FOREACH_SAFE (slot_node, &p->slots) {
        struct slot *s = LIST_ENTRY(slot_node, struct slot, node);
        bool alive = false;
        s->conn_count++; /* keeps it while its connections are looked at */
        LIST_FOREACH_SAFE (node, &s->conns) {
            struct pconn *pc = LIST_ENTRY(node, struct pconn, node);
            if (count_bytes(p, pc)) {
                mark_alive(&pc->conn.fetches);
                alive = true;
            }
            nntp_conn_tick(&pc->conn);
        }
        if (alive) {
            mark_alive(&s->queue);
        }
        s->conn_count--;
        if (s->gone && s->conn_count == 0) {
            free_slot(s);
        } else if (!s->gone && s->queued > 0) {
            dispatch(p, s); /* a hold may be over */
        }
    }
}

/* How long to wait so that there is something worth waking up for. */
static unsigned refill_ms(uint64_t bytes_per_s)
{
    uint64_t ms = REFILL_BYTES * UINT64_C(1000) / bytes_per_s;
    return ms < REFILL_MIN_MS ? REFILL_MIN_MS : ms > REFILL_MAX_MS ? REFILL_MAX_MS : (unsigned)ms;
}

static void on_refill(uv_timer_t *t)
{
    struct nntp_pool *p = t->data;
    uint64_t rate = nntp_rate_get(p->opts.rate);
    struct net_meter *m = &p->meter;
    if (rate == 0) {
        if (m->limited) {
            net_meter_refill(m, false, 0);
        }
        uv_timer_set_repeat(t, LIMIT_MS);
        return;
    }
    unsigned ms = refill_ms(rate);
    if (uv_timer_get_repeat(t) != ms) {
        uv_timer_set_repeat(t, ms);
    }
    /* Nobody waits: what is left is enough for now, and time goes on earning for others. */
    if (m->limited && list_empty(&m->waiting)) {
        return;
    }
    int64_t left = m->limited ? m->allow_bytes : 0;
    uint64_t bytes = nntp_rate_claim(p->opts.rate, uv_hrtime() / 1000, UINT64_MAX);
    net_meter_refill(m, true, left + (int64_t)bytes);
}

/* ---- life ---- */

static int on_start(struct actor *a, struct err *e)
{
    struct nntp_pool *p = a->self;
    int rv = net_loop_init(&p->nl, &a->loop);
    if (rv != 0) {
        return err_sys(e, rv, "buffers");
    }
    net_meter_init(&p->meter);
    for (unsigned i = 0; i < p->opts.connections; i++) {
        struct pconn *pc = &p->conns[i];
        pc->pool = p;
        pc->room.kind = NNTP_MSG_ROOM;
        nntp_conn_init(&pc->conn, &conn_type, pc, i, &p->nl, p->opts.bufs, &p->meter);
        list_init(&pc->node);
        list_push_back(&p->free_conns, &pc->node);
    }
    uv_timer_init(&a->loop, &p->tick);
    uv_timer_init(&a->loop, &p->refill);
    p->tick.data = p->refill.data = p;
    return 0;
}

static void close_rest(struct nntp_pool *p)
{
    LIST_FOREACH_SAFE (node, &p->slots) {
        free_slot(LIST_ENTRY(node, struct slot, node));
    }
    uv_close((uv_handle_t *)&p->tick, NULL);
    uv_close((uv_handle_t *)&p->refill, NULL);
    net_loop_close(&p->nl, NULL);
}

static void on_stop(struct actor *a)
{
    struct nntp_pool *p = a->self;
    p->stopping = true;
    p->open_conns++; /* until all have been told */
    LIST_FOREACH_SAFE (slot_node, &p->slots) {
        struct slot *s = LIST_ENTRY(slot_node, struct slot, node);
        fail_queue(p, s, NNTP_TROUBLE_STOPPED, 0, "shutting down");
        s->conn_count++;
        LIST_FOREACH_SAFE (node, &s->conns) {
            nntp_conn_stop(&LIST_ENTRY(node, struct pconn, node)->conn, NNTP_TROUBLE_STOPPED,
                           "shutting down");
        }
        s->conn_count--;
        if (s->gone && s->conn_count == 0) {
            free_slot(s);
        }
    }
    if (--p->open_conns == 0) {
        close_rest(p);
    }
}

static const struct actor_type pool_actor = {
    .name = "nntp", .inbox = 0, .start = on_start, .recv = on_recv, .stop = on_stop};

int nntp_pool_start(struct nntp_pool **out, const struct nntp_pool_opts *opts, struct err *e)
{
    struct nntp_pool *p = mem_zalloc(1, sizeof(*p));
    if (p == NULL) {
        return err_sys(e, UV_ENOMEM, "nntp");
    }
    p->opts = *opts;
    list_init(&p->slots);
    list_init(&p->free_conns);
    p->conns = mem_zalloc(opts->connections, sizeof(*p->conns));
    if (p->conns == NULL && opts->connections > 0) {
        mem_free(p);
        return err_sys(e, UV_ENOMEM, "nntp: %u connections", opts->connections);
    }
    p->type = pool_actor;
    /* Each connection may have one wake-up of its own under way beside the messages. */
    p->type.inbox = (size_t)opts->messages + opts->connections;
    int rv = actor_start(&p->actor, &p->type, p, e);
    if (rv != 0) {
        mem_free(p->conns);
        mem_free(p);
        return rv;
    }
    *out = p;
    return 0;
}

int nntp_pool_post(struct nntp_pool *p, struct nntp_msg *msg)
{
    int rv = actor_post(&p->actor, msg);
    PRE(rv != ERR_FULL); /* more messages than the opener allowed for */
    return rv;
}

void nntp_pool_stop(struct nntp_pool *p)
{
    actor_stop(&p->actor);
}

void nntp_pool_join(struct nntp_pool *p)
{
    actor_join(&p->actor);
}

void nntp_pool_free(struct nntp_pool *p)
{
    actor_free(&p->actor);
    mem_free(p->conns);
    mem_free(p);
}

struct nntp_pool_counters nntp_pool_counters(const struct nntp_pool *p)
{
    return (struct nntp_pool_counters){
        .bytes_in = atomic_load_explicit(&p->bytes_in, memory_order_relaxed),
        .dials = atomic_load_explicit(&p->dials, memory_order_relaxed),
        .connections_up = atomic_load_explicit(&p->up, memory_order_relaxed),
        .fetches = atomic_load_explicit(&p->fetches, memory_order_relaxed),
    };
}
