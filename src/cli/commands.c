/* commands.c - the table of commands, in the order in which `weir --help` shows them. */
#include "cli/commands.h"

#include <stddef.h>

/* clang-format off */
const struct cli_command *const cli_commands[] = {
    &cmd_get,
    &cmd_nzb,
    &cmd_par2,
    &cmd_yenc,
    &cmd_newsd,
    &cmd_config,
    &cmd_bench,
    &cmd_help,
    NULL,
};
/* clang-format on */

const struct cli_link cli_links[] = {
    {.name = "par2", .words = {"par2"}},
    {.name = "par2verify", .words = {"par2", "verify"}},
    {.name = "par2repair", .words = {"par2", "repair"}},
    {.name = NULL},
};
