/* lease.c - leases: given out, found again, ended; and filling every free place.
 *
 * A lease is a promise in both directions: the worker answers once, and until then nobody else has the article. The id
 * has a generation in it, so an answer to a lease that was ended meanwhile finds nothing and is dropped. A cancelled
 * lease gives its article back at once but keeps its slot (and its place in the server's credit) until the worker
 * answers: the number of messages under way can then never exceed what was agreed. */
#include <errno.h>

#include "base/mem.h"
#include "coordinator/core.h"

enum { NO_SLOT = UINT16_MAX, NOBODY_PER_STEP = 1024, UNKNOWN_BYTES = 768 << 10 };
_Static_assert((int)COORD_LEASES_MAX < (int)NO_SLOT, "slots fit");

/* Room for every connection of every server at its deepest, and as much again being written. */
int coord_leases_reserve(struct coord *c)
{
    uint64_t want = 64;
    for (unsigned i = 0; i < c->server_count; i++) {
        want += 2u * c->servers[i]->conf.connections * COORD_DEPTH_MAX;
    }
    uint32_t room = want < COORD_LEASES_MAX ? (uint32_t)want : COORD_LEASES_MAX;
    if (room <= c->lease_room) {
        return 0;
    }
    if (c->lease_count > 0) {
        return 0; /* timers point into the array: it grows when all are back, and is large enough till then */
    }
    struct lease *bigger = mem_zalloc(room, sizeof(*bigger));
    if (bigger == NULL) {
        return -ENOMEM;
    }
    mem_free(c->leases);
    c->leases = bigger;
    c->lease_room = room;
    for (uint32_t i = 0; i < room; i++) {
        bigger[i].timer.kind = TIMER_LEASE;
        bigger[i].next_free = i + 1 < room ? (uint16_t)(i + 1) : (uint16_t)NO_SLOT;
    }
    c->lease_free = 0;
    return coord_reserve_timers(c, 0);
}

struct lease *coord_lease_find(struct coord *c, uint64_t id)
{
    uint32_t slot = (uint32_t)(id & 0xffff);
    if (id == 0 || slot >= c->lease_room) {
        return NULL;
    }
    if (MUTANT(1)) { /* the generation is not looked at */
        return c->leases[slot].id != 0 ? &c->leases[slot] : NULL;
    }
    return c->leases[slot].id == id ? &c->leases[slot] : NULL;
}

static struct lease *lease_new(struct coord *c, const struct queue_pick *p, unsigned lane)
{
    uint16_t slot = c->lease_free;
    struct lease *l = &c->leases[slot];
    c->lease_free = l->next_free;
    struct timer timer = l->timer;
    *l = (struct lease){
        .timer = timer,
        .id = ++c->generation << 16 | slot,
        .article = queue_pick_ref(p),
        .bytes = p->bytes > 0 ? p->bytes : UNKNOWN_BYTES,
        .server = (uint16_t)lane,
        .next_free = NO_SLOT,
    };
    c->lease_count++;
    c->reserved_bytes += l->bytes;
    c->servers[lane]->leases++;
    c->servers[lane]->reserved_bytes += l->bytes;
    timer_set(&c->timers, &l->timer, c->now.mono_ms + COORD_LEASE_MS);
    return l;
}

/* The worker is done with it: its place in the server's credit is free. */
static void lease_is_back(struct coord *c, struct lease *l)
{
    struct server *s = c->servers[l->server];
    s->leases--;
    s->reserved_bytes -= l->bytes;
    c->reserved_bytes -= l->bytes;
    if (s->probe_lease == l->id) {
        s->probe_lease = 0;
        c->servers_changed = true;
    }
}

static void lease_free(struct coord *c, struct lease *l)
{
    timer_stop(&c->timers, &l->timer);
    l->id = 0;
    l->next_free = c->lease_free;
    c->lease_free = (uint16_t)(l - c->leases);
    c->lease_count--;
}

void coord_lease_back(struct coord *c, struct lease *l)
{
    PRE(!l->writing);
    lease_is_back(c, l);
    l->writing = true;
    c->writing_count++;
    timer_stop(&c->timers, &l->timer); /* the disk always answers, and may be slow */
}

void coord_lease_end(struct coord *c, struct lease *l)
{
    if (l->writing) {
        c->writing_count--;
    } else {
        lease_is_back(c, l);
    }
    lease_free(c, l);
}

void coord_lease_drop(struct coord *c, struct lease *l)
{
    if (l->gone) {
        return;
    }
    queue_article_return(c->q, l->article);
    if (l->writing) { /* the write may still happen: the same bytes or none, whoever comes next */
        c->writing_count--;
        lease_free(c, l);
        return;
    }
    l->gone = true;
    timer_set(&c->timers, &l->timer, c->now.mono_ms + COORD_LEASE_MS);
    coord_emit(c, &(struct coord_effect){.type = COORD_FX_CANCEL, .lease = l->id});
}

void coord_drop_job(struct coord *c, uint32_t job_id)
{
    const struct queue_job *j = queue_job(c->q, job_id);
    for (uint32_t i = 0; i < c->lease_room && j != NULL && j->leased_articles > 0; i++) {
        struct lease *l = &c->leases[i];
        if (l->id != 0 && !l->gone && queue_file(c->q, l->article.file_id)->job == j) {
            coord_lease_drop(c, l);
        }
    }
}

void coord_drop_file(struct coord *c, uint32_t file_id)
{
    const struct queue_file *f = queue_file(c->q, file_id);
    for (uint32_t i = 0; i < c->lease_room && f != NULL && f->leased > 0; i++) {
        struct lease *l = &c->leases[i];
        if (l->id != 0 && !l->gone && l->article.file_id == file_id) {
            coord_lease_drop(c, l);
        }
    }
}

void coord_drop_all(struct coord *c)
{
    for (uint32_t i = 0; i < c->lease_room; i++) {
        if (c->leases[i].id != 0) {
            coord_lease_drop(c, &c->leases[i]);
        }
    }
}

void coord_forget_leases(struct coord *c)
{
    coord_drop_all(c);
    for (uint32_t i = 0; i < c->lease_room; i++) {
        if (c->leases[i].id != 0) {
            coord_lease_end(c, &c->leases[i]);
        }
    }
}

/* A minute without a byte: the worker is stuck or gone. The server is treated as if it had gone silent. */
void coord_lease_due(struct coord *c, struct lease *l)
{
    if (l->gone) {
        coord_lease_end(c, l); /* not even the cancel was answered */
        return;
    }
    struct server *s = c->servers[l->server];
    coord_record_error(c, queue_file(c->q, l->article.file_id)->job, s->conf.id, COORD_TIMEOUT);
    coord_lease_drop(c, l);
    coord_server_broke(c, s, COORD_TIMEOUT, "a lease was not answered in time");
}

/* ---- articles that nobody can get ---- */

static bool is_young(const struct coord *c, const struct queue_file *f)
{
    return f->posted->date > 0 && f->posted->date > coord_now_at(c) - c->limits.young_sec;
}

static void settle_nobodys(struct coord *c, const struct queue_pick *p)
{
    struct queue_ref a = queue_pick_ref(p);
    unsigned round = queue_grace(p->file, p->index);
    if (queue_article_fallback(c->q, a)) {
        return;
    }
    bool missing = queue_only_missing(c->q, p->file, p->index);
    /* A restart asks again at once and so uses up a round: the last one is not before its time in this life. */
    uint64_t last_ms = c->start_ms + COORD_GRACE_MS;
    bool rounds_left = round < 4 || c->now.mono_ms < last_ms;
    if (missing && is_young(c, p->file) && rounds_left && !MUTANT(2)) {
        uint64_t at =
            round < 4 ? c->now.mono_ms + (uint64_t)coord_grace_sec[round] * 1000 : last_ms;
        if (queue_article_grace(c->q, a, at) == 0) {
            coord_record_error(c, p->job, 0, COORD_NOT_FOUND);
            return;
        }
    }
    coord_article_failed(c, a, missing ? COORD_NOT_FOUND : COORD_YENC_CRC);
}

void coord_drain_nobody(struct coord *c)
{
    struct queue_pick p;
    unsigned n = 0;
    if (c->servers_down || c->servers_changed) {
        return; /* nobody was asked: that is no answer */
    }
    while (n < NOBODY_PER_STEP && queue_pick(c->q, QUEUE_NOBODY(c->q), &p)) {
        if (p.job->life.state == QUEUE_QUEUED) {
            (void)coord_move(c, p.job, QUEUE_DOWNLOADING, "");
        }
        settle_nobodys(c, &p);
        n++;
    }
    c->more = c->more || n == NOBODY_PER_STEP;
}

/* ---- filling ---- */

static void fetch(struct coord *c, const struct queue_pick *p, unsigned lane)
{
    struct server *s = c->servers[lane];
    if (p->job->life.state == QUEUE_QUEUED) {
        coord_record_job(c, COORD_REC_CLAIMED, p->job, COORD_OK, "");
        (void)coord_move(c, p->job, QUEUE_DOWNLOADING, "");
    }
    struct lease *l = lease_new(c, p, lane);
    if (s->life.state == COORD_SERVER_PROBE) {
        s->probe_lease = l->id;
        c->servers_changed = true; /* others need not wait for how the probe ends */
    }
    coord_emit(c,
               &(struct coord_effect){
                   .type = COORD_FX_FETCH,
                   .fetch = {.lease = l->id,
                             .server_id = s->conf.id,
                             .job_id = p->job->id,
                             .article = l->article,
                             .message_id = p->message_id,
                             .part_number = p->file->nzb->number[p->file->posted->first + p->index],
                             .bytes = p->bytes,
                             .deadline_ms = l->timer.due_ms},
               });
}

static bool may_lease(struct coord *c, const struct server *s)
{
    if (s->leases >= coord_server_credit(s) || c->lease_free == NO_SLOT) {
        return false;
    }
    if (s->conf.volume_limit > 0 &&
        s->conf.volume_used + s->volume_bytes + s->reserved_bytes >= s->conf.volume_limit) {
        return false; /* what is under way may use it up */
    }
    return c->reserved_bytes < coord_flight_room(c);
}

/* True: there is more to give than one step may. */
static bool fill_once(struct coord *c, unsigned *left)
{
    struct queue_pick p;
    for (unsigned i = 0; i < c->server_count; i++) {
        struct server *s = c->servers[i];
        for (;;) {
            if (*left == 0) {
                return true;
            }
            if (!may_lease(c, s)) {
                break;
            }
            coord_quota_check(c);
            if (!queue_pick(c->q, i, &p)) {
                break;
            }
            fetch(c, &p, i);
            --*left;
        }
    }
    return false;
}

void coord_fill(struct coord *c)
{
    unsigned left = COORD_FILL_MAX;
    bool more = fill_once(c, &left);
    if (c->servers_changed) { /* a probe went out: what waited for its server goes past it now */
        coord_servers_sync(c);
        more = fill_once(c, &left) || more;
    }
    c->more = c->more || more;
}

/* ---- views ---- */

uint32_t coord_lease_room(const struct coord *c)
{
    return c->lease_room;
}

bool coord_lease_view(const struct coord *c, uint32_t i, struct coord_lease_view *v)
{
    const struct lease *l = &c->leases[i];
    if (l->id == 0) {
        return false;
    }
    *v = (struct coord_lease_view){
        .id = l->id,
        .article = l->article,
        .server_id = c->servers[l->server]->conf.id,
        .deadline_ms = l->timer.due_ms,
        .writing = l->writing,
        .gone = l->gone,
    };
    return true;
}
