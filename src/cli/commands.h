/* commands.h - the rows of the command table, one per cmd_*.c. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct cli_command cmd_bench;
extern const struct cli_command cmd_config;
extern const struct cli_command cmd_get;
extern const struct cli_command cmd_help;
extern const struct cli_command cmd_yenc;
extern const struct cli_command cmd_nzb;
extern const struct cli_command cmd_par2;
extern const struct cli_command cmd_newsd;

#endif
