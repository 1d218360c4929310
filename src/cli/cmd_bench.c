/* cmd_bench.c - `weir bench`: how fast the parts are on this machine. */
#include "cli/bench.h"

#include <stddef.h>

#include "cli/commands.h"

static const struct cli_command *const subs[] = {&bench_yenc, &bench_queue, &bench_par2, NULL};

const struct cli_command cmd_bench = {
    .name = "bench",
    .summary = "measures how fast the parts are on this machine",
    .subs = subs,
};
