/* cli.h - the command table of the one binary, and what all commands share.
 *
 * A command parses its own arguments (argv[0] is the command's name), prints its answer to stdout and its
 * troubles to stderr, and returns one of the exit codes. Everything that prints knows --json. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1, /* the work was tried and did not succeed; stderr says why */
    CLI_USAGE = 2,  /* the command line is wrong; nothing was done */
};

struct cli_command {
    const char *name;
    const char *summary; /* one line for `weir --help` */
    const char *usage;   /* the whole text of `weir NAME --help`, with an example */
    int (*run)(int argc, char **argv);
};

extern const struct cli_command cli_commands[]; /* ends with an entry without a name */

int cli_run(int argc, char **argv);
int cli_version(bool json);
/* Prints "weir NAME: message", and where to read more; returns CLI_USAGE. */
int cli_usage_error(const char *command, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The name of `known` (ends with NULL) that is nearest to `word`, or NULL when none is near. */
const char *cli_nearest(const char *word, const char *const *known);

#endif
