#include "unit/queue/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

void model_free(struct model *m)
{
    while (m->job_count > 0) {
        model_delete(m, m->order[0]->id);
    }
}

void model_add(struct model *m, const struct queue *q, const struct queue_job *j)
{
    PRE(m->job_count < MODEL_JOBS && j->file_count <= MODEL_FILES);
    struct model_job *mj = calloc(1, sizeof(*mj));
    mj->id = j->id;
    mj->priority = j->priority;
    mj->held = (j->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_USER)) != 0;
    strncpy(mj->name, j->name, sizeof(mj->name) - 1);
    for (uint32_t i = 0; i < j->file_count; i++) {
        const struct queue_file *f = j->files[i];
        struct model_file *mf = calloc(1, sizeof(*mf));
        PRE(f->count <= MODEL_ARTICLES);
        mf->id = f->id;
        mf->kind = f->kind;
        mf->wanted = f->wanted;
        mf->count = f->count;
        mf->bytes = f->posted->bytes / f->count;
        mj->file[mj->file_count++] = mf;
    }
    (void)q;
    memmove(m->order + j->position + 1, m->order + j->position,
            (m->job_count - j->position) * sizeof(struct model_job *));
    m->order[j->position] = mj;
    m->job_count++;
}

struct model_job *model_job(struct model *m, uint32_t id)
{
    for (unsigned i = 0; i < m->job_count; i++) {
        if (m->order[i]->id == id) {
            return m->order[i];
        }
    }
    return NULL;
}

struct model_file *model_file(struct model *m, uint32_t id, struct model_job **job)
{
    for (unsigned i = 0; i < m->job_count; i++) {
        for (unsigned k = 0; k < m->order[i]->file_count; k++) {
            if (m->order[i]->file[k]->id == id) {
                *job = m->order[i];
                return m->order[i]->file[k];
            }
        }
    }
    return NULL;
}

/* ---- who may take what ---- */

static bool may_take(const struct model *m, const struct model_article *a, unsigned lane)
{
    bool any = false;
    if (a->state != QUEUE_OPEN) {
        return false;
    }
    for (unsigned s = 0; s < m->server_count; s++) {
        const struct queue_server *v = &m->server[s];
        if (!v->active || a->tried[s] != QUEUE_UNTRIED || (v->optional && v->down)) {
            continue;
        }
        any = true;
        if (lane < m->server_count && s != lane && v->level < m->server[lane].level &&
            !v->optional && !v->down) {
            return false; /* a lower level has to be asked first */
        }
    }
    if (lane == m->server_count) {
        return !any;
    }
    const struct queue_server *v = &m->server[lane];
    return v->active && !v->down && a->tried[lane] == QUEUE_UNTRIED;
}

bool model_pick(struct model *m, unsigned lane, uint32_t *file_id, uint32_t *index)
{
    const struct model_job *best = NULL;
    for (unsigned i = 0; i < m->job_count; i++) {
        const struct model_job *j = m->order[i];
        bool forced = j->priority >= QUEUE_FORCE;
        if (j->held || (m->paused_all && !forced) ||
            (best != NULL && j->priority <= best->priority)) {
            continue;
        }
        for (unsigned k = 0; k < j->file_count && best != j; k++) {
            const struct model_file *f = j->file[k];
            for (unsigned n = 0; n < f->count && !f->paused && f->wanted && best != j; n++) {
                if (may_take(m, &f->article[n], lane)) {
                    best = j;
                    *file_id = f->id;
                    *index = n;
                }
            }
        }
    }
    return best != NULL;
}

/* ---- moves ---- */

static bool among(uint32_t id, const uint32_t *ids, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* One step of one element, up (-1) or down (+1), if its neighbour is not of the moving block. */
static void step(void **list, unsigned count, unsigned at, int way, bool *moving)
{
    unsigned to = at + (unsigned)way;
    if ((way < 0 && at == 0) || (way > 0 && at + 1 >= count) || moving[to]) {
        return;
    }
    void *t = list[at];
    list[at] = list[to];
    list[to] = t;
    moving[at] = false;
    moving[to] = true;
}

static void move_by(void **list, unsigned count, bool *moving, int64_t by)
{
    for (; by < 0 && by > -1000; by++) {
        for (unsigned i = 0; i < count; i++) {
            if (moving[i]) {
                step(list, count, i, -1, moving);
            }
        }
    }
    for (; by > 0 && by < 1000; by--) {
        for (unsigned i = count; i-- > 0;) {
            if (moving[i]) {
                step(list, count, i, 1, moving);
            }
        }
    }
}

void model_move(struct model *m, const uint32_t *ids, unsigned n, enum queue_edit_op op,
                int64_t number)
{
    bool moving[MODEL_JOBS];
    for (unsigned i = 0; i < m->job_count; i++) {
        moving[i] = among(m->order[i]->id, ids, n);
    }
    if (op == QUEUE_EDIT_GROUP_MOVE_TOP || op == QUEUE_EDIT_GROUP_MOVE_BOTTOM) {
        move_by((void **)m->order, m->job_count, moving,
                op == QUEUE_EDIT_GROUP_MOVE_TOP ? -999 : 999);
        return;
    }
    if (op == QUEUE_EDIT_GROUP_MOVE_OFFSET) {
        move_by((void **)m->order, m->job_count, moving, number);
        return;
    }
    /* Before or after another: take them out, then put them in again. */
    struct model_job *out[MODEL_JOBS], *rest[MODEL_JOBS];
    unsigned outs = 0, rests = 0;
    for (unsigned i = 0; i < m->job_count; i++) {
        if (moving[i] && m->order[i]->id != (uint32_t)number) {
            out[outs++] = m->order[i];
        } else {
            rest[rests++] = m->order[i];
        }
    }
    m->job_count = 0;
    for (unsigned i = 0; i < rests; i++) {
        bool here = rest[i]->id == (uint32_t)number;
        for (unsigned k = 0; k < outs && here && op == QUEUE_EDIT_GROUP_MOVE_BEFORE; k++) {
            m->order[m->job_count++] = out[k];
        }
        m->order[m->job_count++] = rest[i];
        for (unsigned k = 0; k < outs && here && op == QUEUE_EDIT_GROUP_MOVE_AFTER; k++) {
            m->order[m->job_count++] = out[k];
        }
    }
}

void model_move_files(struct model_job *j, const uint32_t *ids, unsigned n, enum queue_edit_op op,
                      int64_t number)
{
    bool moving[MODEL_FILES];
    for (unsigned i = 0; i < j->file_count; i++) {
        moving[i] = among(j->file[i]->id, ids, n);
    }
    int64_t by = op == QUEUE_EDIT_FILE_MOVE_TOP      ? -999
                 : op == QUEUE_EDIT_FILE_MOVE_BOTTOM ? 999
                                                     : number;
    move_by((void **)j->file, j->file_count, moving, by);
}

void model_delete(struct model *m, uint32_t id)
{
    for (unsigned i = 0; i < m->job_count; i++) {
        struct model_job *j = m->order[i];
        if (j->id != id) {
            continue;
        }
        for (unsigned k = 0; k < j->file_count; k++) {
            free(j->file[k]);
        }
        free(j);
        m->job_count--;
        memmove(m->order + i, m->order + i + 1, (m->job_count - i) * sizeof(*m->order));
        return;
    }
}

void model_restart(struct model *m)
{
    for (unsigned i = 0; i < m->job_count; i++) {
        for (unsigned k = 0; k < m->order[i]->file_count; k++) {
            struct model_file *f = m->order[i]->file[k];
            for (unsigned n = 0; n < f->count; n++) {
                int state = f->article[n].state;
                f->article[n].state =
                    state == QUEUE_LEASED || state == QUEUE_WAIT ? QUEUE_OPEN : state;
            }
        }
    }
}

/* ---- comparing ---- */

static void compare_file(const struct model *m, const struct model_file *mf,
                         const struct queue_file *f)
{
    uint64_t left = 0;
    POST(mf->id == f->id && mf->count == f->count && mf->paused == f->paused);
    POST(mf->wanted == f->wanted && mf->kind == f->kind);
    for (unsigned i = 0; i < mf->count; i++) {
        const struct model_article *a = &mf->article[i];
        POST(a->state == f->state[i] && a->attempts == queue_attempts(f, i));
        for (unsigned s = 0; s < m->server_count; s++) {
            POST(a->tried[s] == (int)queue_tried_on(f, i, s));
        }
        left += a->state != QUEUE_DONE && a->state != QUEUE_FAILED ? mf->bytes : 0;
    }
    POST(left == f->left_bytes);
}

void model_compare(struct model *m, const struct queue *q)
{
    uint64_t left = 0;
    POST(m->job_count == q->active_count);
    for (unsigned i = 0; i < m->job_count; i++) {
        const struct model_job *mj = m->order[i];
        const struct queue_job *j = q->order[i];
        uint64_t job_left = 0, paused = 0;
        POST(mj->id == j->id && mj->priority == j->priority && mj->file_count == j->file_count);
        POST(strcmp(mj->name, j->name) == 0);
        POST(mj->held == ((j->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_USER)) != 0));
        for (unsigned k = 0; k < mj->file_count; k++) {
            compare_file(m, mj->file[k], j->files[k]);
            job_left += j->files[k]->left_bytes;
            paused += mj->file[k]->paused || !mj->file[k]->wanted ? j->files[k]->left_bytes : 0;
        }
        POST(job_left == j->left_bytes && paused == j->paused_bytes);
        left += job_left;
    }
    POST(left == q->left_bytes);
}
