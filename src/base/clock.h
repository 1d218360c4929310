/* clock.h - time as a value.
 *
 * Only shells (loops, the CLI) read a clock; everything below takes `struct clock_time` or a number. Waits,
 * deadlines and backoff count on `mono_ms`, which no one can set back; `wall_ms` is for display, schedules and
 * quota days, and may jump either way. Tests pass a clock of their own. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

struct clock_time {
    uint64_t mono_ms; /* since some fixed point; never goes back */
    int64_t wall_ms;  /* since 1970-01-01 UTC; may jump */
};

struct clock {
    struct clock_time (*read)(void *arg);
    void *arg;
};

static inline struct clock_time clock_now(const struct clock *c)
{
    return c->read(c->arg);
}

/* The machine's own clocks. */
extern const struct clock clock_system;

#endif
