/* server.c - servers as the core sees them: up, resting, probed, disabled; and how many connections they get.
 *
 *        ┌────────── an answer ───────────┐
 *        ▼                                │
 *       UP ── broke ──► BACKOFF ── due ─► PROBE ── broke ──► BACKOFF (longer, up to 300 s)
 *        ▲                 │ an answer that was under way
 *        └─────────────────┘
 *     any ── login, certificate, volume used up ──► DISABLED ── the user ──► UP
 *
 * While a server rests, its articles go past it to others of the same or a higher level; they are not given up before
 * it was asked. With every server disabled or resting nothing can be fetched: SERVERS_DOWN says so. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "coordinator/core.h"

#define S(id, next_) [COORD_SERVER_##id] = {.name = #id, .next = (next_)}
#define N(id)        SM_BIT(COORD_SERVER_##id)
static const struct sm_state server_states[COORD_SERVER_STATES] = {
    S(UP, N(BACKOFF) | N(DISABLED)),
    S(BACKOFF, N(PROBE) | N(UP) | N(DISABLED)),
    S(PROBE, N(UP) | N(BACKOFF) | N(DISABLED)),
    S(DISABLED, N(UP)),
};
#undef S
#undef N
const struct sm_type coord_server_type = {"server", server_states, COORD_SERVER_STATES, NULL};

struct server *coord_server_find(struct coord *c, uint32_t id)
{
    for (unsigned i = 0; i < c->server_count; i++) {
        if (c->servers[i]->conf.id == id) {
            return c->servers[i];
        }
    }
    return NULL;
}

uint32_t coord_server_credit(const struct server *s)
{
    if (!s->conf.active) {
        return 0;
    }
    switch ((enum coord_server_state)s->life.state) {
    case COORD_SERVER_UP: {
        uint32_t usual = (uint32_t)s->connections * s->conf.depth;
        uint32_t most = (uint32_t)s->connections * COORD_DEPTH_MAX;
        uint32_t want = s->told_credit > 0 ? s->told_credit : usual;
        return want < most ? want : most;
    }
    case COORD_SERVER_PROBE:
        if (MUTANT(23)) { /* everybody runs to the door */
            return s->connections;
        }
        return s->probe_lease == 0 ? s->leases + 1 : 0;
    default:
        return 0;
    }
}

/* ---- moving ---- */

static void tell(struct coord *c, const struct server *s)
{
    coord_emit(c, &(struct coord_effect){
                      .type = COORD_FX_SERVER,
                      .server = {.id = s->conf.id,
                                 .state = (enum coord_server_state)s->life.state,
                                 .connections = s->connections,
                                 .why = s->why},
                  });
}

static void move(struct coord *c, struct server *s, enum coord_server_state to, const char *why)
{
    int from = s->life.state;
    sm_move(&s->life, (int)to);
    snprintf(s->why, sizeof(s->why), "%s", to == COORD_SERVER_UP ? "" : why);
    c->servers_changed = true;
    if (c->out == NULL) {
        return; /* being set up */
    }
    tell(c, s);
    if (to != COORD_SERVER_PROBE) {
        coord_record(c, &(struct coord_record){.type = COORD_REC_SERVER,
                                               .server_id = s->conf.id,
                                               .from = from,
                                               .to = (int)to,
                                               .text = s->why});
    }
}

void coord_server_good(struct coord *c, struct server *s)
{
    s->failures = 0;
    s->body_failures = 0;
    s->good_since = true;
    if (s->life.state == COORD_SERVER_BACKOFF || s->life.state == COORD_SERVER_PROBE) {
        timer_stop(&c->timers, &s->timer);
        move(c, s, COORD_SERVER_UP, "");
    }
}

/* Breaks that are reported while it rests already belong to the same trouble. */
void coord_server_broke(struct coord *c, struct server *s, enum coord_code code, const char *text)
{
    if (s->life.state == COORD_SERVER_BACKOFF || s->life.state == COORD_SERVER_DISABLED) {
        return;
    }
    s->good_since = false;
    s->failures++;
    uint64_t rest = coord_backoff_ms(c, s->failures, COORD_SERVER_BACKOFF_S);
    if (MUTANT(6)) { /* no rest at all */
        rest = 0;
    }
    timer_set(&c->timers, &s->timer, c->now.mono_ms + rest);
    move(c, s, COORD_SERVER_BACKOFF,
         text != NULL && text[0] != '\0' ? text : coord_error(code)->text);
}

void coord_server_due(struct coord *c, struct server *s)
{
    if (s->life.state == COORD_SERVER_BACKOFF) {
        s->probe_lease = 0;
        char why[sizeof(s->why)];
        memcpy(why, s->why, sizeof(why));
        move(c, s, COORD_SERVER_PROBE, why);
    }
}

void coord_server_disable(struct coord *c, struct server *s, const char *why)
{
    if (s->life.state != COORD_SERVER_DISABLED && !MUTANT(7)) {
        timer_stop(&c->timers, &s->timer);
        move(c, s, COORD_SERVER_DISABLED, why);
    }
}

int coord_server_reset(struct coord *c, uint32_t id)
{
    struct server *s = coord_server_find(c, id);
    if (s == NULL) {
        return ERR_NOT_FOUND;
    }
    s->failures = 0;
    s->body_failures = 0;
    s->connections = s->conf.connections;
    if (s->life.state != COORD_SERVER_UP) {
        timer_stop(&c->timers, &s->timer);
        move(c, s, COORD_SERVER_UP, "");
    } else {
        tell(c, s);
    }
    return 0;
}

/* ---- connections ---- */

void coord_server_too_many(struct coord *c, struct server *s, const char *text)
{
    if (s->connections > 1) {
        s->connections--;
        timer_set(&c->timers, &s->limit_timer, c->now.mono_ms + COORD_TOO_MANY_MS);
        tell(c, s);
        if (s->life.state == COORD_SERVER_PROBE) {
            coord_server_broke(c, s, COORD_TOO_MANY, text);
        }
        return;
    }
    coord_server_broke(c, s, COORD_TOO_MANY, text); /* not even one */
}

void coord_server_limit_due(struct coord *c, struct server *s)
{
    if (s->connections < s->conf.connections) {
        s->connections++;
        tell(c, s);
    }
    if (s->connections < s->conf.connections) {
        timer_set(&c->timers, &s->limit_timer, c->now.mono_ms + COORD_TOO_MANY_MS);
    }
}

void coord_server_used(struct coord *c, struct server *s, uint64_t bytes)
{
    s->volume_bytes += bytes;
    if (s->conf.volume_limit > 0 && s->conf.volume_used + s->volume_bytes >= s->conf.volume_limit) {
        coord_server_disable(c, s, "the volume of this account is used up");
    }
}

void coord_volumes_tell(struct coord *c)
{
    for (unsigned i = 0; i < c->server_count; i++) {
        struct server *s = c->servers[i];
        if (s->volume_bytes > s->volume_told) {
            coord_emit(c, &(struct coord_effect){
                              .type = COORD_FX_VOLUME,
                              .volume = {s->conf.id, s->volume_bytes - s->volume_told},
                          });
            s->volume_told = s->volume_bytes;
        }
    }
}

/* What an answer that no article waits for any more tells about the server. */
void coord_server_news(struct coord *c, struct server *s, enum coord_code code, const char *text)
{
    const struct coord_error *e = coord_error(code);
    switch (e->action) {
    case COORD_ACT_DISABLE:
        coord_server_disable(c, s, text != NULL ? text : e->text);
        break;
    case COORD_ACT_FEWER:
        coord_server_too_many(c, s, text);
        break;
    case COORD_ACT_BACK_OFF: /* one of several connections went: their articles will tell */
        if (s->leases == 0 || s->life.state == COORD_SERVER_PROBE) {
            coord_server_broke(c, s, code, text);
        }
        break;
    default:
        break;
    }
}

/* News without a lease. A login that worked proves the server reachable, not that it serves: only an answer to an
 * article does that. */
void coord_on_server(struct coord *c, const struct coord_event *ev)
{
    struct server *s = coord_server_find(c, ev->server.id);
    if (s == NULL) {
        return;
    }
    if (ev->type == COORD_EV_CREDIT) {
        s->told_credit = ev->server.credit;
        return;
    }
    coord_server_news(c, s, ev->server.code, ev->server.text);
}

/* ---- what the queue is told ---- */

static bool usable(const struct server *s)
{
    return s->conf.active && s->life.state != COORD_SERVER_DISABLED;
}

void coord_servers_sync(struct coord *c)
{
    if (!c->servers_changed) {
        return;
    }
    struct queue_server list[QUEUE_SERVERS_MAX];
    bool any_usable = false, any_up = false;
    for (unsigned i = 0; i < c->server_count; i++) {
        const struct server *s = c->servers[i];
        any_usable = any_usable || usable(s);
        any_up = any_up || (s->conf.active && (s->life.state == COORD_SERVER_UP ||
                                               s->life.state == COORD_SERVER_PROBE));
    }
    for (unsigned i = 0; i < c->server_count; i++) {
        const struct server *s = c->servers[i];
        int state = s->life.state;
        bool probing = state == COORD_SERVER_PROBE && s->probe_lease == 0;
        list[i] = (struct queue_server){
            .id = s->conf.id,
            .level = s->conf.level,
            .group = s->conf.group,
            .retention_days = s->conf.retention_days,
            .optional = s->conf.optional,
            /* With the last one disabled nothing may look as if everybody had been asked. */
            .active = any_usable ? usable(s) : s->conf.active,
            .down = state != COORD_SERVER_UP && !probing,
        };
    }
    if (queue_set_servers(c->q, list, c->server_count, coord_now_at(c), NULL) != 0) {
        return; /* no memory: the next step tries again */
    }
    c->servers_changed = false;
    if (c->out == NULL) {
        return;
    }
    /* The gate opens for a probe; the hold stays until a server is really up. */
    bool up = false;
    for (unsigned i = 0; i < c->server_count; i++) {
        up = up || (c->servers[i]->conf.active && c->servers[i]->life.state == COORD_SERVER_UP);
    }
    c->servers_down = !any_up;
    if (up || !any_up) {
        coord_set_hold(c, QUEUE_HOLD_SERVERS_DOWN, !up,
                       c->server_count == 0 ? "no server is configured" : "no server can be used");
    }
    coord_gate(c, QUEUE_HOLD_SERVERS_DOWN, !any_up);
}

/* ---- the list ---- */

static bool same_login(const struct coord_server *a, const struct coord_server *b)
{
    return strcmp(a->name, b->name) == 0;
}

static int check_list(const struct coord_server *list, unsigned count, struct err *e)
{
    if (count > QUEUE_SERVERS_MAX) {
        return err_set(e, ERR_LIMIT, "more than %d servers", QUEUE_SERVERS_MAX);
    }
    for (unsigned i = 0; i < count; i++) {
        if (list[i].id == 0) {
            return err_set(e, ERR_INVALID, "a server has no number");
        }
        for (unsigned k = 0; k < i; k++) {
            if (list[k].id == list[i].id) {
                return err_set(e, ERR_INVALID, "two servers have the number %u", list[i].id);
            }
        }
    }
    return 0;
}

static void configure(struct server *s, const struct coord_server *conf)
{
    s->conf = *conf;
    s->conf.name[COORD_NAME_MAX - 1] = '\0';
    s->conf.connections = conf->connections > 0 ? conf->connections : 1;
    s->conf.depth = conf->depth == 0                ? 1
                    : conf->depth > COORD_DEPTH_MAX ? COORD_DEPTH_MAX
                                                    : conf->depth;
}

/* A server that was there keeps its statistics and, unless it was disabled, its state. */
int coord_servers_set(struct coord *c, const struct coord_server *list, unsigned count,
                      struct err *e)
{
    struct server *fresh[QUEUE_SERVERS_MAX] = {0};
    int rc = check_list(list, count, e);
    if (rc != 0) {
        return rc;
    }
    for (unsigned i = 0; i < count; i++) {
        fresh[i] = mem_zalloc(1, sizeof(*fresh[i]));
        if (fresh[i] == NULL) {
            rc = err_sys(e, -ENOMEM, "servers");
            goto err_after_alloc;
        }
    }
    if (c->lease_count > 0) {
        coord_forget_leases(c); /* they know their server by its place in the list */
    }
    for (unsigned i = 0; i < count; i++) {
        const struct server *old = coord_server_find(c, list[i].id);
        struct server *s = fresh[i];
        if (old != NULL && same_login(&old->conf, &list[i])) {
            *s = *old;
            s->timer = s->limit_timer = (struct timer){0};
            s->leases = 0;
            s->reserved_bytes = 0;
            s->probe_lease = 0;
        }
        configure(s, &list[i]);
        s->connections = s->conf.connections;
        s->timer.kind = TIMER_SERVER;
        s->limit_timer.kind = TIMER_SERVER_LIMIT;
        s->why[0] = '\0';
        s->failures = s->body_failures = 0;
        sm_init(&s->life, &coord_server_type, COORD_SERVER_UP, list[i].id);
    }
    for (unsigned i = 0; i < c->server_count; i++) {
        timer_stop(&c->timers, &c->servers[i]->timer);
        timer_stop(&c->timers, &c->servers[i]->limit_timer);
        mem_free(c->servers[i]);
    }
    memcpy(c->servers, fresh, sizeof(fresh));
    c->server_count = count;
    c->servers_changed = true;
    rc = coord_leases_reserve(c);
    for (unsigned i = 0; i < count && c->out != NULL; i++) {
        tell(c, c->servers[i]);
    }
    return rc;

err_after_alloc:
    for (unsigned i = 0; i < count; i++) {
        mem_free(fresh[i]);
    }
    return rc;
}

/* ---- views ---- */

unsigned coord_server_count(const struct coord *c)
{
    return c->server_count;
}

struct coord_server_view coord_server_view(const struct coord *c, unsigned i)
{
    const struct server *s = c->servers[i];
    struct coord_server_view v = {
        .id = s->conf.id,
        .state = (enum coord_server_state)s->life.state,
        .connections = s->connections,
        .credit = coord_server_credit(s),
        .leases = s->leases,
        .failures = s->failures,
        .good = s->good,
        .missing = s->missing,
        .bad = s->bad,
        .broken = s->broken,
        .bytes = s->volume_bytes,
    };
    if (timer_is_set(&s->timer) && s->timer.due_ms > c->now.mono_ms) {
        v.retry_in_ms = s->timer.due_ms - c->now.mono_ms;
    }
    snprintf(v.why, sizeof(v.why), "%s", s->why);
    return v;
}
