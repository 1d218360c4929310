/* dupe.h - the same thing twice: by content, and by NZBGet's dupe key, score and mode.
 *
 * Content: two NZBs with the same message-ids are the same job; adding one again returns the first (idempotent),
 * unless the mode is FORCE. Meaning: two jobs are duplicates when their dupe keys are equal, or, when either has no key,
 * their names (case ignored). Then, for a new job in mode SCORE:
 *     a success in history with the same or a higher score   -> not needed: to history, DELETED/DUPE
 *     one in the queue with the same or a higher score       -> stands by in history, may be woken
 *     one in the queue with a lower score                    -> the new one runs, the old one stands by
 * ALL takes every one, FORCE too and ignores equal content. */
#ifndef QUEUE_DUPE_H
#define QUEUE_DUPE_H

#include "queue/queue.h"

enum queue_dupe_verdict {
    QUEUE_DUPE_TAKE,     /* no duplicate that matters */
    QUEUE_DUPE_SAME,     /* same content, active: `other` is the answer */
    QUEUE_DUPE_COPY,     /* same content, done before: to history as DELETED/COPY */
    QUEUE_DUPE_NEEDLESS, /* a good one is in history: to history as DELETED/DUPE */
    QUEUE_DUPE_STANDBY,  /* a better one is in the queue: to history as DELETED/DUPE, backup */
    QUEUE_DUPE_REPLACE,  /* take it; `other` and its like stand by: queue_dupe_stand_by() each */
};

struct queue_dupe_query {
    const uint8_t *key; /* content; NULL or zeros: unknown */
    const char *name;
    const char *dupe_key;
    int32_t score;
    uint8_t mode;  /* enum queue_dupe_mode */
    uint32_t self; /* job id that is asking, not compared with itself; 0: not in the queue yet */
};
enum queue_dupe_verdict queue_dupe_check(const struct queue *q, const struct queue_dupe_query *ask,
                                         uint32_t *other);

/* Carries out a verdict on a job that was added: moves it, or for REPLACE all lower ones in the queue that have not
 * begun post-processing, to history as standby. Returns how many jobs moved; `moved` (may be NULL) gets up to `room`
 * ids: their leases are to be dropped. */
uint32_t queue_dupe_apply(struct queue *q, struct queue_job *j, enum queue_dupe_verdict verdict,
                          int64_t now_at, uint32_t *moved, uint32_t room);

/* A job failed (or was marked bad): the best standby of the same kind comes back into the queue, unless a good one is
 * there already. Its id, or 0. It may need its NZB (QUEUE_TODO_LOAD_NZB: file_count is 0). */
uint32_t queue_dupe_wake(struct queue *q, const struct queue_job *failed, int64_t now_at);
/* A job was marked good: its standbys are no longer needed. Returns how many lost their backup mark. */
uint32_t queue_dupe_settle(struct queue *q, const struct queue_job *good);

bool queue_dupe_alike(const char *name_a, const char *key_a, const char *name_b, const char *key_b);

#endif
