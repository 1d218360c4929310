#include "base/timer.h"

#include <errno.h>

#include "base/check.h"
#include "base/mem.h"

void timers_init(struct timers *t)
{
    *t = (struct timers){.heap = NULL};
}

void timers_free(struct timers *t)
{
    mem_free(t->heap);
    timers_init(t);
}

int timers_reserve(struct timers *t, uint32_t n)
{
    if (n <= t->room) {
        return 0;
    }
    uint32_t room = n < UINT32_MAX / 2 ? n + n / 2 : n;
    struct timer **heap = mem_realloc(t->heap, room, sizeof(struct timer *));
    if (heap == NULL) {
        return -ENOMEM;
    }
    t->heap = heap;
    t->room = room;
    return 0;
}

static bool before(const struct timer *a, const struct timer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->seq < b->seq;
}

static void put(struct timers *t, uint32_t i, struct timer *one)
{
    t->heap[i] = one;
    one->at = i + 1;
}

static void sift_up(struct timers *t, uint32_t i)
{
    struct timer *one = t->heap[i];
    while (i > 0 && before(one, t->heap[(i - 1) / 2])) {
        put(t, i, t->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(t, i, one);
}

static void sift_down(struct timers *t, uint32_t i)
{
    struct timer *one = t->heap[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= t->count) {
            break;
        }
        if (child + 1 < t->count && before(t->heap[child + 1], t->heap[child])) {
            child++;
        }
        if (!before(t->heap[child], one)) {
            break;
        }
        put(t, i, t->heap[child]);
        i = child;
    }
    put(t, i, one);
}

void timer_stop(struct timers *t, struct timer *one)
{
    if (one->at == 0) {
        return;
    }
    uint32_t i = one->at - 1;
    PRE(i < t->count && t->heap[i] == one);
    one->at = 0;
    struct timer *last = t->heap[--t->count];
    if (last != one) {
        put(t, i, last);
        sift_up(t, i);
        sift_down(t, last->at - 1);
    }
}

void timer_set(struct timers *t, struct timer *one, uint64_t due_ms)
{
    if (one->at != 0 && one->due_ms == due_ms) {
        return;
    }
    timer_stop(t, one);
    if (due_ms == TIMER_NEVER) {
        return;
    }
    PRE(t->count < t->room);
    one->due_ms = due_ms;
    one->seq = t->seq++;
    put(t, t->count++, one);
    sift_up(t, t->count - 1);
}

struct timer *timers_pop(struct timers *t, uint64_t now_ms)
{
    if (t->count == 0 || t->heap[0]->due_ms > now_ms) {
        return NULL;
    }
    struct timer *one = t->heap[0];
    timer_stop(t, one);
    return one;
}

uint64_t timers_next_ms(const struct timers *t)
{
    return t->count > 0 ? t->heap[0]->due_ms : TIMER_NEVER;
}
