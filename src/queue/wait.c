/* wait.c - articles that are open again at a time of their own: a binary heap, the next one on top.
 *
 * An article in state WAIT has exactly one entry. Entries of files that are gone are purged with them. */
#include <errno.h>

#include "base/check.h"
#include "base/mem.h"
#include "queue/model.h"
#include "queue/pick.h"

struct entry {
    uint64_t at_ms;
    struct queue_ref article;
};

struct queue_waits {
    struct entry *heap;
    uint32_t count, room;
};

int queue_waits_new(struct queue *q)
{
    q->waits = mem_zalloc(1, sizeof(*q->waits));
    return q->waits != NULL ? 0 : -ENOMEM;
}

void queue_waits_free(struct queue *q)
{
    if (q->waits != NULL) {
        mem_free(q->waits->heap);
        mem_free(q->waits);
    }
}

size_t queue_waits_bytes(const struct queue *q)
{
    return sizeof(*q->waits) + q->waits->room * sizeof(struct entry);
}

/* ---- the heap ---- */

static void sift_up(struct queue_waits *w, uint32_t i)
{
    while (i > 0 && w->heap[i].at_ms < w->heap[(i - 1) / 2].at_ms) {
        struct entry e = w->heap[i];
        w->heap[i] = w->heap[(i - 1) / 2];
        w->heap[(i - 1) / 2] = e;
        i = (i - 1) / 2;
    }
}

static void sift_down(struct queue_waits *w, uint32_t i)
{
    for (;;) {
        uint32_t least = i, left = 2 * i + 1, right = 2 * i + 2;
        if (left < w->count && w->heap[left].at_ms < w->heap[least].at_ms) {
            least = left;
        }
        if (right < w->count && w->heap[right].at_ms < w->heap[least].at_ms) {
            least = right;
        }
        if (least == i) {
            return;
        }
        struct entry e = w->heap[i];
        w->heap[i] = w->heap[least];
        w->heap[least] = e;
        i = least;
    }
}

static int push(struct queue_waits *w, uint64_t at_ms, struct queue_ref a)
{
    if (w->count == w->room) {
        uint32_t room = w->room < 64 ? 64 : w->room * 2;
        struct entry *bigger = mem_realloc(w->heap, room, sizeof(*bigger));
        if (bigger == NULL) {
            return -ENOMEM;
        }
        w->heap = bigger;
        w->room = room;
    }
    w->heap[w->count] = (struct entry){at_ms, a};
    sift_up(w, w->count++);
    return 0;
}

static struct entry pop(struct queue_waits *w)
{
    struct entry top = w->heap[0];
    w->heap[0] = w->heap[--w->count];
    sift_down(w, 0);
    return top;
}

/* ---- articles ---- */

static int put_to_wait(struct queue *q, struct queue_ref a, uint64_t at_ms)
{
    struct queue_file *f = queue_file(q, a.file_id);
    PRE(f != NULL && a.index < f->count && f->state[a.index] == QUEUE_LEASED);
    int rc = push(q->waits, at_ms, a);
    if (rc == 0) {
        queue_article_change(q, f, a.index, QUEUE_WAIT);
        q->changes++;
    }
    return rc;
}

int queue_article_wait(struct queue *q, struct queue_ref a, uint64_t at_ms)
{
    int rc = put_to_wait(q, a, at_ms);
    struct queue_file *f = queue_file(q, a.file_id);
    if (rc == 0 && queue_attempts(f, a.index) < QUEUE_ATTEMPTS_MAX) {
        f->tries[a.index]++;
    }
    return rc;
}

int queue_article_grace(struct queue *q, struct queue_ref a, uint64_t at_ms)
{
    int rc = put_to_wait(q, a, at_ms);
    struct queue_file *f = queue_file(q, a.file_id);
    if (rc == 0) {
        queue_article_forget_tried(q, f, a.index);
        if (queue_grace(f, a.index) < QUEUE_GRACE_MAX) {
            f->tries[a.index] = (uint16_t)(f->tries[a.index] + (1 << QUEUE_GRACE_SHIFT));
        }
    }
    return rc;
}

uint64_t queue_next_wake_ms(const struct queue *q)
{
    return q->waits->count > 0 ? q->waits->heap[0].at_ms : UINT64_MAX;
}

unsigned queue_wake(struct queue *q, uint64_t now_ms, unsigned max)
{
    unsigned n = 0;
    while (n < max && q->waits->count > 0 && q->waits->heap[0].at_ms <= now_ms) {
        struct queue_ref a = pop(q->waits).article;
        struct queue_file *f = queue_file(q, a.file_id);
        POST(f != NULL && f->state[a.index] == QUEUE_WAIT);
        queue_article_change(q, f, a.index, QUEUE_OPEN);
        n++;
    }
    return n;
}

/* Keeps the entries that `keep` allows, and makes a heap of them again. */
static void filter(struct queue *q, bool (*keep)(struct queue *q, struct queue_ref a, void *arg),
                   void *arg)
{
    struct queue_waits *w = q->waits;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        if (keep(q, w->heap[i].article, arg)) {
            w->heap[kept++] = w->heap[i];
        }
    }
    w->count = kept;
    for (uint32_t i = kept / 2; i-- > 0;) {
        sift_down(w, i);
    }
}

static bool keep_others(struct queue *q, struct queue_ref a, void *arg)
{
    struct queue_file *f = queue_file(q, a.file_id);
    if (arg != NULL && f->job != arg) {
        return true;
    }
    queue_article_change(q, f, a.index, QUEUE_OPEN);
    return false;
}

void queue_wake_job(struct queue *q, struct queue_job *j)
{
    filter(q, keep_others, j);
}

static bool keep_waiting(struct queue *q, struct queue_ref a, void *arg)
{
    (void)arg;
    const struct queue_file *f = queue_file(q, a.file_id);
    return f != NULL && f->state[a.index] == QUEUE_WAIT;
}

void queue_waits_purge(struct queue *q)
{
    filter(q, keep_waiting, NULL);
}
