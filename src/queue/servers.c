/* servers.c - the servers as picking sees them: levels, who is there, what a change does to every lane. */
#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "queue/model.h"
#include "queue/pick.h"

/* Level masks of the active servers, lowest level first. */
static void find_levels(struct queue *q)
{
    uint32_t left = 0;
    q->level_count = 0;
    for (unsigned s = 0; s < q->server_count; s++) {
        left |= (uint32_t)q->servers[s].active << s;
    }
    while (left != 0) {
        int lowest = q->servers[__builtin_ctz(left)].level;
        for (uint32_t m = left; m != 0; m &= m - 1) {
            int level = q->servers[__builtin_ctz(m)].level;
            lowest = level < lowest ? level : lowest;
        }
        struct queue_level *l = &q->levels[q->level_count++];
        *l = (struct queue_level){0, 0};
        for (uint32_t m = left; m != 0; m &= m - 1) {
            unsigned s = (unsigned)__builtin_ctz(m);
            if (q->servers[s].level == lowest) {
                l->all |= UINT32_C(1) << s;
                l->firm |= (uint32_t)!q->servers[s].optional << s;
            }
        }
        left &= ~l->all;
    }
}

typedef int (*job_cb)(struct queue *q, struct queue_job *j, void *arg);

static int each_job(struct queue *q, job_cb cb, void *arg)
{
    int rc = 0;
    for (uint32_t i = 0; i < q->active_count && rc == 0; i++) {
        rc = cb(q, q->order[i], arg);
    }
    for (uint32_t i = 0; i < q->past_count && rc == 0; i++) {
        rc = cb(q, q->past[i], arg);
    }
    return rc;
}

/* ---- another number or order of servers: every file gets new memory, all of it before any is used ---- */

struct replacement {
    struct bitset *job_ready;
    struct queue_cells **cells; /* per file */
};

struct change {
    const struct queue_server *servers; /* to come */
    unsigned count;
    int from[QUEUE_SERVERS_MAX]; /* slot that the server had, or -1 */
    struct replacement *made;    /* per job, in the order of each_job */
    uint32_t jobs, at;
    int64_t now_at;
};

static int prepare(struct queue *q, struct queue_job *j, void *arg)
{
    struct change *c = arg;
    struct replacement *r = &c->made[c->at++];
    (void)q;
    if (j->file_count == 0) {
        return 0;
    }
    r->cells = mem_zalloc(j->file_count, sizeof(struct queue_cells *));
    if (r->cells == NULL || queue_ready_alloc(&r->job_ready, c->count + 1, j->file_count) != 0) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < j->file_count; i++) {
        r->cells[i] = queue_cells_new(j->files[i]->count, c->count);
        if (r->cells[i] == NULL) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int take(struct queue *q, struct queue_job *j, void *arg)
{
    struct change *c = arg;
    struct replacement *r = &c->made[c->at++];
    (void)q;
    for (uint32_t i = 0; i < j->file_count; i++) {
        queue_file_take_cells(j->files[i], r->cells[i], c->count, c->from);
        r->cells[i] = NULL;
    }
    if (j->file_count > 0) {
        mem_free(j->ready);
        j->ready = r->job_ready;
        r->job_ready = NULL;
    }
    return 0;
}

static int drop(struct queue *q, struct queue_job *j, void *arg)
{
    struct change *c = arg;
    struct replacement *r = &c->made[c->at++];
    (void)q;
    for (uint32_t i = 0; i < j->file_count && r->cells != NULL; i++) {
        queue_cells_free(r->cells[i]);
    }
    mem_free(r->cells);
    mem_free(r->job_ready);
    return 0;
}

static int replace_cells(struct queue *q, struct change *c)
{
    struct bitset *ready = NULL;
    c->made = mem_zalloc(q->active_count + q->past_count, sizeof(*c->made));
    if (c->made == NULL) {
        return -ENOMEM;
    }
    c->at = 0;
    int rc = each_job(q, prepare, c);
    if (rc == 0) {
        rc = queue_ready_alloc(&ready, c->count + 1, q->active_room);
    }
    if (rc == 0) {
        c->at = 0;
        (void)each_job(q, take, c);
        mem_free(q->ready);
        q->ready = ready;
    }
    c->at = 0;
    (void)each_job(q, drop, c);
    mem_free(c->made);
    return rc;
}

/* ---- what is left to do for every file ---- */

static int show_again(struct queue *q, struct queue_job *j, void *arg)
{
    const struct change *c = arg;
    for (uint32_t i = 0; i < j->file_count; i++) {
        struct queue_file *f = j->files[i];
        f->in_retention = queue_in_retention(q, f, c->now_at);
        queue_file_refresh(q, f);
    }
    for (uint32_t i = 0; i < j->file_count; i++) {
        queue_file_show(q, j->files[i]);
    }
    return 0;
}

static int make_stats(struct queue *q, struct queue_job *j, void *arg)
{
    const struct change *c = arg;
    (void)q;
    return queue_job_ensure_stats(j, c->servers, c->count);
}

int queue_set_servers(struct queue *q, const struct queue_server *servers, unsigned count,
                      int64_t now_at, struct err *e)
{
    if (count > QUEUE_SERVERS_MAX) {
        return err_set(e, ERR_LIMIT, "more than %d servers", QUEUE_SERVERS_MAX);
    }
    struct change c = {.servers = servers, .count = count, .now_at = now_at};
    bool same = count == q->server_count;
    for (unsigned s = 0; s < count; s++) {
        c.from[s] = -1;
        for (unsigned old = 0; old < q->server_count; old++) {
            c.from[s] = q->servers[old].id == servers[s].id ? (int)old : c.from[s];
        }
        same = same && c.from[s] == (int)s;
    }
    if (each_job(q, make_stats, &c) != 0 || (!same && replace_cells(q, &c) != 0)) {
        return err_sys(e, -ENOMEM, "servers");
    }
    memmove(q->servers, servers,
            count * sizeof(*servers)); /* the caller may give them back changed */
    q->server_count = count;
    find_levels(q);
    bool adding = q->adding;
    q->adding = true; /* the jobs are shown all at once, at the end */
    (void)each_job(q, show_again, &c);
    q->adding = adding;
    queue_order_rebuild(q);
    return 0;
}
