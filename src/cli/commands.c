/* commands.c - the table of commands, in the order in which `weir --help` shows them. */
#include "cli/commands.h"

#include <stddef.h>

const struct cli_command *const cli_commands[] = {
    &cmd_nzb,   &cmd_yenc,   &cmd_par2, //
    &cmd_bench, &cmd_config, &cmd_help, NULL, &cmd_newsd, &cmd_get, &cmd_par2, &cmd_help, NULL,
};

const struct cli_link cli_links[] = {
    {.name = "par2", .words = {"par2"}},
    {.name = "par2verify", .words = {"par2", "verify"}},
    {.name = "par2repair", .words = {"par2", "repair"}},
    {.name = NULL},
};
