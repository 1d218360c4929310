/* commands.h - the rows of the command table, one per cmd_*.c. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct cli_command cmd_bench;
extern const struct cli_command cmd_config;
extern const struct cli_command cmd_help;
extern const struct cli_command cmd_yenc;

#endif
