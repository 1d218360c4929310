#include "queue/dupe.h"

#include <string.h>
#include <strings.h>

#include "queue/model.h"

bool queue_dupe_alike(const char *name_a, const char *key_a, const char *name_b, const char *key_b)
{
    if (key_a[0] != '\0' && key_b[0] != '\0') {
        return strcasecmp(key_a, key_b) == 0;
    }
    return name_a[0] != '\0' && strcasecmp(name_a, name_b) == 0;
}

static bool has_key(const uint8_t *key)
{
    static const uint8_t none[NZB_KEY_BYTES];
    return key != NULL && memcmp(key, none, sizeof(none)) != 0;
}

static bool same_content(const struct queue_dupe_query *ask, const struct queue_job *j)
{
    return has_key(ask->key) && memcmp(ask->key, j->key, NZB_KEY_BYTES) == 0;
}

/* Ended well, or said to be good by the user. */
static bool is_good(const struct queue_job *j)
{
    bool ended_well = j->life.state == QUEUE_COMPLETED || j->life.state == QUEUE_IMPORTED ||
                      j->life.state == QUEUE_CLEANED;
    return j->mark_status == QUEUE_MARK_GOOD || j->mark_status == QUEUE_MARK_SUCCESS ||
           (ended_well && j->mark_status != QUEUE_MARK_BAD);
}

static bool matches(const struct queue_dupe_query *ask, const struct queue_job *j)
{
    return j->id != ask->self && queue_dupe_alike(ask->name, ask->dupe_key, j->name, j->dupe_key);
}

enum queue_dupe_verdict queue_dupe_check(const struct queue *q, const struct queue_dupe_query *ask,
                                         uint32_t *other)
{
    enum queue_dupe_verdict verdict = QUEUE_DUPE_TAKE;
    *other = 0;
    if (ask->mode == QUEUE_DUPE_FORCE) {
        return QUEUE_DUPE_TAKE;
    }
    for (uint32_t i = 0; i < q->active_count; i++) {
        if (q->order[i]->id != ask->self && same_content(ask, q->order[i])) {
            *other = q->order[i]->id;
            return QUEUE_DUPE_SAME;
        }
    }
    for (uint32_t i = 0; i < q->past_count; i++) {
        const struct queue_job *j = q->past[i];
        /* Deleted or failed before: the user may want it again. */
        if (j->id != ask->self && same_content(ask, j) && is_good(j)) {
            *other = j->id;
            return QUEUE_DUPE_COPY;
        }
    }
    if (ask->mode == QUEUE_DUPE_ALL) {
        return QUEUE_DUPE_TAKE;
    }
    for (uint32_t i = 0; i < q->past_count; i++) {
        const struct queue_job *j = q->past[i];
        bool said_good = j->mark_status == QUEUE_MARK_GOOD;
        if (j->dupe_mode == QUEUE_DUPE_SCORE && is_good(j) && matches(ask, j) &&
            (said_good || j->dupe_score >= ask->score)) {
            *other = j->id;
            return QUEUE_DUPE_NEEDLESS;
        }
    }
    for (uint32_t i = 0; i < q->active_count; i++) {
        const struct queue_job *j = q->order[i];
        if (j->dupe_mode != QUEUE_DUPE_SCORE || !matches(ask, j)) {
            continue;
        }
        *other = j->id;
        if (j->dupe_score >= ask->score || j->life.state >= QUEUE_PROCESSING) {
            return QUEUE_DUPE_STANDBY;
        }
        verdict = QUEUE_DUPE_REPLACE;
    }
    return verdict;
}

static void stand_by(struct queue *q, struct queue_job *j, enum queue_delete status, bool backup,
                     int64_t now_at)
{
    j->delete_status = (uint8_t)status;
    j->dupe_backup = backup;
    queue_hold_set(q, j, QUEUE_HOLD_DUPE_STANDBY, now_at, 0);
    queue_job_place(q, j, QUEUE_HISTORY, false, now_at);
}

uint32_t queue_dupe_apply(struct queue *q, struct queue_job *j, enum queue_dupe_verdict verdict,
                          int64_t now_at, uint32_t *moved, uint32_t room)
{
    uint32_t n = 0;
    switch (verdict) {
    case QUEUE_DUPE_TAKE:
    case QUEUE_DUPE_SAME:
        return 0;
    case QUEUE_DUPE_COPY:
    case QUEUE_DUPE_NEEDLESS:
    case QUEUE_DUPE_STANDBY:
        stand_by(q, j, verdict == QUEUE_DUPE_COPY ? QUEUE_DELETE_COPY : QUEUE_DELETE_DUPE,
                 verdict != QUEUE_DUPE_COPY, now_at);
        if (moved != NULL && room > 0) {
            moved[0] = j->id;
        }
        return 1;
    case QUEUE_DUPE_REPLACE:
        break;
    }
    const struct queue_dupe_query ask = {
        .name = j->name, .dupe_key = j->dupe_key, .score = j->dupe_score, .self = j->id};
    for (uint32_t i = 0; i < q->active_count;) {
        struct queue_job *other = q->order[i];
        if (other->dupe_mode == QUEUE_DUPE_SCORE && other->dupe_score < j->dupe_score &&
            other->life.state < QUEUE_PROCESSING && matches(&ask, other)) {
            stand_by(q, other, QUEUE_DELETE_DUPE, true, now_at); /* the rest moves up */
            if (moved != NULL && n < room) {
                moved[n] = other->id;
            }
            n++;
        } else {
            i++;
        }
    }
    return n;
}

uint32_t queue_dupe_wake(struct queue *q, const struct queue_job *failed, int64_t now_at)
{
    const struct queue_dupe_query ask = {
        .name = failed->name, .dupe_key = failed->dupe_key, .self = failed->id};
    struct queue_job *best = NULL;
    for (uint32_t i = 0; i < q->active_count; i++) {
        if (q->order[i]->dupe_mode == QUEUE_DUPE_SCORE && matches(&ask, q->order[i])) {
            return 0; /* another one is on its way */
        }
    }
    for (uint32_t i = 0; i < q->past_count; i++) {
        struct queue_job *j = q->past[i];
        if (!matches(&ask, j)) {
            continue;
        }
        if (is_good(j)) {
            return 0;
        }
        bool waits =
            j->dupe_backup && j->life.state < QUEUE_PROCESSING && j->mark_status != QUEUE_MARK_BAD;
        if (waits && (best == NULL || j->dupe_score > best->dupe_score)) {
            best = j;
        }
    }
    if (best == NULL) {
        return 0;
    }
    best->delete_status = QUEUE_DELETE_NONE;
    best->dupe_backup = false;
    queue_hold_clear(q, best, QUEUE_HOLD_DUPE_STANDBY);
    queue_job_place(q, best, QUEUE_ACTIVE, true, now_at);
    return best->id;
}

uint32_t queue_dupe_settle(struct queue *q, const struct queue_job *good)
{
    const struct queue_dupe_query ask = {
        .name = good->name, .dupe_key = good->dupe_key, .self = good->id};
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->past_count; i++) {
        struct queue_job *j = q->past[i];
        if (j->dupe_backup && matches(&ask, j)) {
            j->dupe_backup = false;
            queue_changed(q, j);
            n++;
        }
    }
    return n;
}
