/* cli.h - the command table of the one binary, and what all commands share.
 *
 * A command is a row: name, options, help, function. Help texts, the man page, shell completion and the hints for
 * mistyped words are all made from these rows, so they cannot disagree. A command walks its arguments with
 * cli_next(), prints its answer to stdout and its troubles to stderr, and returns an exit code. Everything that
 * prints knows --json. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1, /* the work was tried and did not succeed; stderr says why */
    CLI_USAGE = 2,  /* the command line is wrong; nothing was done */
};

struct cli_option {
    const char *name;  /* "threads": --threads; NULL: a letter only */
    const char *value; /* what it takes, as the help shows it ("N", "FILE"); NULL: a switch */
    const char *help;  /* one line */
    char letter;       /* 't': -t, -tN, -t N; 0: none */
};

struct cli_args;

struct cli_command {
    const char *name;
    const char *summary; /* one line for the list of commands */
    const char *args;    /* what stands behind the options: "[FILE]"; NULL: nothing */
    const char *about;   /* what it does, its exit codes where it has its own; lines end in \n */
    const char *example; /* lines that could be typed, each ending in \n */
    const struct cli_option *options; /* ends with an all-zero row; NULL: none. Without --help */
    const struct cli_command *const
        *subs; /* sub-commands, ends with NULL; NULL: none, then `run` */
    int (*run)(struct cli_args *a);
    int usage_exit; /* for a wrong command line, where it is not CLI_USAGE */
};

/* In the order in which `weir --help` shows them; ends with NULL. Each row stands in its cmd_*.c. */
extern const struct cli_command *const cli_commands[];

/* The binary called by another name is the command that these words say. */
struct cli_link {
    const char *name;
    const char *words[3]; /* ends with NULL */
};
extern const struct cli_link cli_links[]; /* ends with an all-zero row */

int cli_run(int argc, const char *const *argv);
/* The row of that name, or NULL. */
const struct cli_command *cli_find(const struct cli_command *const *table, const char *word);

/* ---- a command's view of its arguments (args.c) ---- */

struct cli_args {
    const struct cli_command *command;
    char path[64];     /* "yenc decode", for messages */
    const char *value; /* of the option or argument that cli_next() just returned */
    int argc;
    const char *const *argv; /* without the command's own words */
    int at;                  /* the next one to look at */
    const char *more;        /* rest of a group of letters: "-qv" */
    int option;              /* index of the last option */
    bool plain;              /* "--" was seen */
};

enum {
    CLI_END = -1, /* no more */
    CLI_ARG = -2, /* not an option: see a->value */
    CLI_BAD = -3, /* unknown or incomplete option; it was said on stderr */
};

/* The index of the next option in the command's table, or one of the above. */
int cli_next(struct cli_args *a);
/* a->value as a number from min to max, or as a size with K, M, G or T behind it (powers of 1024). False: it was
 * said on stderr, and the command returns CLI_USAGE. */
bool cli_number(const struct cli_args *a, uint64_t min, uint64_t max, uint64_t *out);
bool cli_size(const struct cli_args *a, uint64_t min, uint64_t max, uint64_t *out);
/* Prints "weir NAME: message" and where to read more; returns CLI_USAGE. */
int cli_usage_error(const struct cli_args *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints "weir NAME: message"; returns CLI_FAILED. */
int cli_failed(const struct cli_args *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- texts made from the table (help.c) ---- */

void cli_help_overview(FILE *f);
void cli_help_command(FILE *f, const char *path, const struct cli_command *c);
void cli_help_man(FILE *f);
void cli_help_completion(FILE *f);

/* ---- commands that live in files of their own ---- */

int cli_version(bool json);

#endif
