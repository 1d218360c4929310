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
    struct queue_turn *run = mem_realloc(q->run, room, sizeof(*run));
    q->run = run != NULL ? run : q->run;
    struct queue_turn *run_spare = mem_realloc(q->run_spare, room, sizeof(*run_spare));
    q->run_spare = run_spare != NULL ? run_spare : q->run_spare;
    if (run == NULL || run_spare == NULL || grow(&q->order, room) != 0 ||
        grow(&q->spare, room) != 0 ||
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

/* Stable, by key: a radix sort of which those passes are left out that would change nothing (most queues have a
 * handful of priorities). */
static void sort_run(struct queue *q, uint32_t differ)
{
    for (unsigned shift = 0; shift < 32; shift += 8) {
        if ((differ >> shift & 0xff) == 0) {
            continue;
        }
        uint32_t at[256] = {0}, sum = 0, n = q->active_count;
        for (uint32_t i = 0; i < n; i++) {
            at[q->run[i].key >> shift & 0xff]++;
        }
        for (unsigned b = 0; b < 256; b++) {
            uint32_t count = at[b];
            at[b] = sum;
            sum += count;
        }
        for (uint32_t i = 0; i < n; i++) {
            q->run_spare[at[q->run[i].key >> shift & 0xff]++] = q->run[i];
        }
        struct queue_turn *sorted = q->run_spare;
        q->run_spare = q->run;
        q->run = sorted;
    }
}

/* Every bit of `shown` set for the job's rank; the levels above follow at the end. */
static void show_ranks(struct queue *q)
{
    for (unsigned lane = 0; lane <= q->server_count && q->active_room > 0; lane++) {
        struct bitset *b = &q->ready[lane];
        memset(b->words, 0, bitset_words(b->size) * sizeof(uint64_t));
        for (uint32_t from = 0; from < q->active_count; from += 64) {
            uint64_t word = 0;
            for (uint32_t i = from; i < q->active_count && i < from + 64; i++) {
                word |= (q->run[i].shown >> lane & 1) << (i - from);
            }
            if (word != 0) {
                bitset_put_word(b, from / 64, word);
            }
        }
    }
}

void queue_order_rebuild(struct queue *q)
{
    uint32_t differ = 0;
    q->left_bytes = q->forced_bytes = q->article_count = 0;
    q->force_count = 0;
    for (uint32_t i = 0; i < q->active_count; i++) {
        struct queue_job *j = q->order[i];
        j->position = i;
        q->run[i] = (struct queue_turn){j, run_key(j), j->shown};
        differ |= q->run[i].key ^ q->run[0].key;
        q->left_bytes += j->left_bytes;
        q->article_count += j->total_articles;
        if (j->priority >= QUEUE_FORCE) {
            q->force_count++;
            q->forced_bytes += j->left_bytes;
        }
    }
    sort_run(q, differ);
    for (uint32_t i = 0; i < q->active_count; i++) {
        q->run[i].job->rank = i;
    }
    show_ranks(q);
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
