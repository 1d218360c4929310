/* timer.h - many deadlines, the earliest first, without allocating when one is set.
 *
 * A binary heap of pointers to timers that live inside other structs. Room is made beforehand with timers_reserve(),
 * where a failure can be answered; setting, moving and stopping a timer then cannot fail and costs O(log n). Equal
 * deadlines come out in the order in which they were set, so a run is repeatable. One thread. */
#ifndef BASE_TIMER_H
#define BASE_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMER_NEVER UINT64_MAX

struct timer { /* all zero: not set */
    uint64_t due_ms;
    uint64_t seq; /* order among equal deadlines */
    uint32_t at;  /* place in the heap + 1; 0: not set */
    uint8_t kind; /* the owner's: which struct this one is in */
};

struct timers {
    struct timer **heap;
    uint32_t count;
    uint32_t room;
    uint64_t seq;
};

void timers_init(struct timers *t);
void timers_free(struct timers *t);
/* Room for `n` timers in all. -ENOMEM: as before. */
int timers_reserve(struct timers *t, uint32_t n);
/* Sets or moves; TIMER_NEVER stops. */
void timer_set(struct timers *t, struct timer *one, uint64_t due_ms);
void timer_stop(struct timers *t, struct timer *one);
/* Takes out the earliest timer that is due, or NULL. */
struct timer *timers_pop(struct timers *t, uint64_t now_ms);
/* When the earliest is due; TIMER_NEVER: none is set. */
uint64_t timers_next_ms(const struct timers *t);

static inline bool timer_is_set(const struct timer *one)
{
    return one->at != 0;
}

#endif
