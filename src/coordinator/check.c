/* check.c - what must be true of the core between two steps. Slow: for tests and the simulator. */
#include "coordinator/core.h"

static void check_leases(const struct coord *c)
{
    uint32_t count = 0, writing = 0, per_server[QUEUE_SERVERS_MAX] = {0};
    uint64_t reserved = 0;
    for (uint32_t i = 0; i < c->lease_room; i++) {
        const struct lease *l = &c->leases[i];
        if (l->id == 0) {
            POST(!timer_is_set(&l->timer));
            continue;
        }
        count++;
        POST((l->id & 0xffff) == i && l->server < c->server_count);
        if (!l->gone) {
            const struct queue_file *f = queue_file(c->q, l->article.file_id);
            POST(f != NULL && f->state[l->article.index] == QUEUE_LEASED);
            POST(f->job->place == QUEUE_ACTIVE);
        }
        POST(l->writing != timer_is_set(&l->timer)); /* every wait on a worker has an end */
        if (l->writing) {
            writing++;
        } else {
            per_server[l->server]++;
            reserved += l->bytes;
        }
    }
    POST(count == c->lease_count && writing == c->writing_count && reserved == c->reserved_bytes);
    for (unsigned s = 0; s < c->server_count; s++) {
        POST(c->servers[s]->leases == per_server[s]);
    }
}

/* Every leased article has its lease: the numbers agree, and each lease was seen to have its article. */
static void check_jobs(const struct coord *c)
{
    uint32_t leased = 0, alive = 0, running = 0;
    for (uint32_t i = 0; i < c->q->active_count; i++) {
        const struct queue_job *j = c->q->order[i];
        leased += j->leased_articles;
        running += j->watch.post_state == POST_RUNNING;
        POST(ERGO(j->watch.post_state != POST_NONE, j->life.state == QUEUE_PROCESSING));
        for (unsigned h = 0; h < QUEUE_HOLDS; h++) {
            POST(ERGO(j->watch.hold_due_ms[h] != 0, (j->holds & QUEUE_HOLD_BIT(h)) != 0));
        }
    }
    for (uint32_t i = 0; i < c->q->past_count; i++) {
        const struct queue_job *j = c->q->past[i];
        POST(j->leased_articles == 0 && j->watch.post_state == POST_NONE);
        POST(!timer_is_set(&j->watch.timer));
    }
    for (uint32_t i = 0; i < c->lease_room; i++) {
        alive += c->leases[i].id != 0 && !c->leases[i].gone;
    }
    POST(leased == alive && running == c->post_running);
}

void coord_check(const struct coord *c)
{
    check_leases(c);
    check_jobs(c);
    for (unsigned s = 0; s < c->server_count; s++) {
        const struct server *v = c->servers[s];
        POST(v->connections >= 1 && v->connections <= v->conf.connections);
        POST(ERGO(v->life.state == COORD_SERVER_BACKOFF, timer_is_set(&v->timer)));
        POST(ERGO(v->life.state == COORD_SERVER_DISABLED, v->why[0] != '\0'));
    }
    for (unsigned i = 1; i < c->timers.count; i++) {
        POST(c->timers.heap[(i - 1) / 2]->due_ms <= c->timers.heap[i]->due_ms);
    }
}
