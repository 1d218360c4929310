/* bench.h - the rows of `weir bench`, one per bench_*.c. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli/cli.h"

extern const struct cli_command bench_yenc;
extern const struct cli_command bench_queue;
extern const struct cli_command bench_par2;

#endif
