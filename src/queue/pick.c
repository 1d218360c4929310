/* pick.c - leasing articles and ending leases. The lanes themselves are file.c's. */
#include "queue/pick.h"

#include "base/check.h"
#include "queue/model.h"

unsigned queue_attempts(const struct queue_file *f, uint32_t index)
{
    return f->tries[index] & QUEUE_ATTEMPTS_MAX;
}

unsigned queue_grace(const struct queue_file *f, uint32_t index)
{
    return f->tries[index] >> QUEUE_GRACE_SHIFT & QUEUE_GRACE_MAX;
}

/* ---- choosing ---- */

bool queue_peek(const struct queue *q, unsigned lane, struct queue_pick *out)
{
    PRE(lane <= q->server_count);
    if (q->active_count == 0 || (q->holds & ~QUEUE_FORCE_PASSES) != 0) {
        return false;
    }
    uint32_t rank = bitset_next(&q->ready[lane], 0);
    /* Force jobs come first in the run order: under a pause of everything, only they count. */
    if (rank == BITSET_NONE || (q->holds != 0 && rank >= q->force_count)) {
        return false;
    }
    struct queue_job *j = q->run[rank].job;
    uint32_t position = bitset_next(&j->ready[lane], 0);
    PRE(position < j->file_count);
    struct queue_file *f = j->files[position];
    uint32_t index = bitset_next(&f->ready[lane], 0);
    PRE(index < f->count);
    *out = (struct queue_pick){
        .job = j,
        .file = f,
        .index = index,
        .message_id = queue_message_id(f, index),
        .bytes = f->nzb->bytes[f->posted->first + index],
    };
    return true;
}

bool queue_pick(struct queue *q, unsigned lane, struct queue_pick *out)
{
    if (!queue_peek(q, lane, out)) {
        return false;
    }
    queue_article_change(q, out->file, out->index, QUEUE_LEASED);
    return true;
}

/* ---- ends of a lease ---- */

static struct queue_file *leased_file(struct queue *q, struct queue_ref a)
{
    struct queue_file *f = queue_file(q, a.file_id);
    PRE(f != NULL && a.index < f->count && f->state[a.index] == QUEUE_LEASED);
    return f;
}

void queue_article_return(struct queue *q, struct queue_ref a)
{
    queue_article_change(q, leased_file(q, a), a.index, QUEUE_OPEN);
}

void queue_article_tried(struct queue *q, struct queue_ref a, unsigned lane, enum queue_tried how)
{
    struct queue_file *f = leased_file(q, a);
    PRE(lane < q->server_count && how != QUEUE_UNTRIED);
    const struct queue_server *server = &q->servers[lane];
    queue_article_set_tried(f, a.index, lane, how);
    for (unsigned s = 0; s < q->server_count && how == QUEUE_NOT_THERE && server->group > 0; s++) {
        if (q->servers[s].group == server->group &&
            queue_tried_on(f, a.index, s) == QUEUE_UNTRIED) {
            queue_article_set_tried(f, a.index, s, QUEUE_NOT_THERE);
        }
    }
    if (how != QUEUE_GAVE_UP) {
        queue_job_count(f->job, server->id, 0, 1);
    }
    queue_article_change(q, f, a.index, QUEUE_OPEN);
    q->changes++;
}

bool queue_article_fallback(struct queue *q, struct queue_ref a)
{
    struct queue_file *f = leased_file(q, a);
    unsigned next = (unsigned)(f->tries[a.index] >> QUEUE_FALLBACK_SHIFT) + 1;
    if (next > QUEUE_FALLBACK_MAX || next > queue_fallback_count(f, a.index)) {
        return false;
    }
    f->tries[a.index] = (uint16_t)(next << QUEUE_FALLBACK_SHIFT); /* a new id starts from nothing */
    queue_article_forget_tried(q, f, a.index);
    queue_article_change(q, f, a.index, QUEUE_OPEN);
    q->changes++;
    return true;
}

static unsigned settle(struct queue *q, struct queue_file *f, uint32_t index,
                       enum queue_article_state to)
{
    uint32_t left_before = f->job->wanted_left;
    queue_article_change(q, f, index, to);
    q->changes++;
    unsigned news = queue_file_ended(f) ? QUEUE_NEWS_FILE_ENDED : 0;
    return news | (left_before > 0 && f->job->wanted_left == 0 ? QUEUE_NEWS_JOB_ENDED : 0);
}

unsigned queue_article_done(struct queue *q, struct queue_ref a, unsigned lane,
                            const struct queue_part *part, uint32_t wire_bytes)
{
    struct queue_file *f = leased_file(q, a);
    PRE(lane < q->server_count);
    f->part[a.index] = *part;
    f->job->downloaded_bytes += wire_bytes;
    queue_job_count(f->job, q->servers[lane].id, 1, 0);
    return settle(q, f, a.index, QUEUE_DONE);
}

unsigned queue_article_failed(struct queue *q, struct queue_ref a, const struct queue_part *part)
{
    struct queue_file *f = leased_file(q, a);
    f->part[a.index] = part != NULL ? *part : (struct queue_part){0};
    queue_damage_failed(f, a.index);
    return settle(q, f, a.index, QUEUE_FAILED);
}

bool queue_only_missing(const struct queue *q, const struct queue_file *f, uint32_t index)
{
    bool missing = false;
    for (unsigned s = 0; s < q->server_count; s++) {
        enum queue_tried how = queue_tried_on(f, index, s);
        if (how == QUEUE_BAD_DATA || how == QUEUE_GAVE_UP) {
            return false;
        }
        missing = missing || how == QUEUE_NOT_THERE;
    }
    return missing;
}
