/* commands.c - the table of commands, in the order in which `weir --help` shows them. */
#include <stddef.h>

#include "cli/cli.h"

const struct cli_command cli_commands[] = {
    {NULL, NULL, NULL, NULL},
};
