#include "base/clock.h"

#include <stddef.h>
#include <time.h>

static uint64_t read_ms(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* CLOCK_BOOTTIME goes on while the machine is suspended, so that a lease handed out before a suspend is
 * seen to be old after it. */
static struct clock_time read_system(void *arg)
{
    (void)arg;
    return (struct clock_time){
        .mono_ms = read_ms(CLOCK_BOOTTIME),
        .wall_ms = (int64_t)read_ms(CLOCK_REALTIME),
    };
}

const struct clock clock_system = {read_system, NULL};
