/* commands.c - the table of commands, in the order in which `weir --help` shows them. */
#include "cli/commands.h"

#include <stddef.h>

/* One row per line, so that branches which add some can be joined. */
/* clang-format off */
const struct cli_command *const cli_commands[] = {
    &cmd_yenc,
    &cmd_bench,
    &cmd_config,
    &cmd_help,
    NULL,
};
/* clang-format on */

const struct cli_link cli_links[] = {
    {.name = NULL},
};
