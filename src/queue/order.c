/* order.c - the order of jobs: as users see it, and as picking walks it. */
#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "queue/model.h"

/* Lanes for `size` things: the structs and their words in one block. */
int queue_ready_alloc(struct bitset **ready, unsigned lanes, uint32_t size)
{
    size_t words = bitset_words(size);
    struct bitset *b = mem_zalloc(1, lanes * (sizeof(*b) + words * sizeof(uint64_t)));
    if (b == NULL) {
        return -ENOMEM;
    }
    uint64_t *first = (uint64_t *)(void *)(b + lanes);
    for (unsigned lane = 0; lane < lanes; lane++) {
        bitset_init(&b[lane], first + words * lane, size);
    }
    mem_free(*ready);
    *ready = b;
    return 0;
}

static int grow(struct queue_job ***array, uint32_t room)
{
    struct queue_job **p = mem_realloc(*array, room, sizeof(**array));
    if (p == NULL) {
        return -ENOMEM;
    }
    *array = p;
    return 0;
}

int queue_order_reserve(struct queue *q, uint32_t jobs)
{
    if (jobs <= q->active_room) {
        return 0;
    }
    uint32_t room = q->active_room < 16 ? 16 : q->active_room;
    while (room < jobs) {
        room *= 2;
    }
    if (grow(&q->order, room) != 0 || grow(&q->run, room) != 0 || grow(&q->spare, room) != 0 ||
        queue_ready_alloc(&q->ready, q->server_count + 1, room) != 0) {
        return -ENOMEM;
    }
    q->active_room = room;
    if (!q->adding) {
        queue_order_rebuild(q); /* the new lanes are empty */
    }
    return 0;
}

/* High priority first: as an unsigned number that grows the other way. */
static uint32_t run_key(const struct queue_job *j)
{
    return ~((uint32_t)j->priority ^ UINT32_C(0x80000000));
}

/* Stable, by priority: four passes of a radix sort, of which those are left out that would change nothing (most
 * queues have a handful of priorities). */
static void sort_run(struct queue *q)
{
    uint32_t differ = 0, n = q->active_count;
    if (n == 0) {
        return;
    }
    memcpy(q->run, q->order, n * sizeof(struct queue_job *));
    for (uint32_t i = 1; i < n; i++) {
        differ |= run_key(q->run[i]) ^ run_key(q->run[0]);
    }
    for (unsigned shift = 0; shift < 32; shift += 8) {
        if ((differ >> shift & 0xff) == 0) {
            continue;
        }
        uint32_t at[256] = {0}, sum = 0;
        for (uint32_t i = 0; i < n; i++) {
            at[run_key(q->run[i]) >> shift & 0xff]++;
        }
        for (unsigned b = 0; b < 256; b++) {
            uint32_t count = at[b];
            at[b] = sum;
            sum += count;
        }
        for (uint32_t i = 0; i < n; i++) {
            q->spare[at[run_key(q->run[i]) >> shift & 0xff]++] = q->run[i];
        }
        struct queue_job **sorted = q->spare;
        q->spare = q->run;
        q->run = sorted;
    }
}

void queue_order_rebuild(struct queue *q)
{
    uint32_t n = q->active_count;
    q->left_bytes = q->forced_bytes = q->article_count = 0;
    q->force_count = 0;
    sort_run(q);
    for (unsigned lane = 0; lane <= q->server_count && q->active_room > 0; lane++) {
        struct bitset *b = &q->ready[lane];
        memset(b->words, 0, bitset_words(b->size) * sizeof(uint64_t));
    }
    for (uint32_t i = 0; i < n; i++) {
        q->order[i]->position = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct queue_job *j = q->run[i];
        j->rank = i;
        q->left_bytes += j->left_bytes;
        q->article_count += j->total_articles;
        if (j->priority >= QUEUE_FORCE) {
            q->force_count = i + 1;
            q->forced_bytes += j->left_bytes;
        }
        queue_job_show(q, j);
    }
}

void queue_order_insert(struct queue *q, struct queue_job *j, uint32_t at)
{
    PRE(q->active_count < q->active_room && at <= q->active_count);
    memmove(q->order + at + 1, q->order + at, (q->active_count - at) * sizeof(*q->order));
    q->order[at] = j;
    q->active_count++;
}

void queue_order_remove(struct queue *q, struct queue_job *j)
{
    PRE(j->position < q->active_count && q->order[j->position] == j);
    q->active_count--;
    memmove(q->order + j->position, q->order + j->position + 1,
            (q->active_count - j->position) * sizeof(*q->order));
}

int queue_past_reserve(struct queue *q, uint32_t jobs)
{
    uint32_t room = q->past_room < 16 ? 16 : q->past_room;
    while (room < jobs) {
        room *= 2;
    }
    if (room > q->past_room) {
        if (grow(&q->past, room) != 0) {
            return -ENOMEM;
        }
        q->past_room = room;
    }
    return 0;
}

void queue_past_append(struct queue *q, struct queue_job *j)
{
    PRE(q->past_count < q->past_room);
    q->past[q->past_count++] = j;
}

void queue_past_remove(struct queue *q, struct queue_job *j)
{
    for (uint32_t i = q->past_count; i-- > 0;) {
        if (q->past[i] == j) {
            q->past_count--;
            memmove(q->past + i, q->past + i + 1, (q->past_count - i) * sizeof(struct queue_job *));
            return;
        }
    }
    IMPOSSIBLE("the job is not in history");
}
