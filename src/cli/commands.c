/* commands.c - the table of commands, in the order in which `weir --help` shows them. */
#include "cli/commands.h"

#include <stddef.h>

const struct cli_command cli_commands[] = {
    {
        .name = "help",
        .summary = "help on a command; the man page; shell completion",
        .args = "[COMMAND...]",
        .example = "  weir help yenc decode\n"
                   "  weir help --completion > /etc/bash_completion.d/weir\n",
        .options = cmd_help_options,
        .run = cmd_help,
    },
    {.name = NULL},
};

const struct cli_link cli_links[] = {
    {.name = NULL},
};
