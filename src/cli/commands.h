/* commands.h - what each cmd_*.c gives to the table in commands.c. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct cli_option cmd_help_options[];
int cmd_help(struct cli_args *a);

#endif
