/* cli.c - finds the command that was asked for; help, and hints for what was mistyped. */
#include "cli/cli.h"

#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static void print_help(void)
{
    printf("Weir, a Usenet/NZB downloader engine\n\n"
           "usage: weir COMMAND [ARGUMENT...]     weir COMMAND --help tells more\n\n"
           "commands:\n");
    for (const struct cli_command *c = cli_commands; c->name != NULL; c++) {
        printf("  %-10s %s\n", c->name, c->summary);
    }
    printf("\n  --version  version, CPU kernels and library versions (also with --json)\n"
           "  --help     this text\n");
}

int cli_usage_error(const char *command, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "weir%s%s: ", command[0] != '\0' ? " " : "", command);
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "\nTry: weir%s%s --help\n", command[0] != '\0' ? " " : "", command);
    va_end(args);
    return CLI_USAGE;
}

/* Edit distance of two short words, transpositions counting two; words over 31 bytes are never near. */
static size_t distance(const char *a, const char *b)
{
    enum { MAX = 32 };
    size_t la = strlen(a), lb = strlen(b), row[MAX];
    if (la >= MAX || lb >= MAX) {
        return MAX;
    }
    for (size_t j = 0; j <= lb; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[lb];
}

const char *cli_nearest(const char *word, const char *const *known)
{
    const char *best = NULL;
    size_t limit = strlen(word) / 2 < 3 ? strlen(word) / 2 + 1 : 3;
    for (; *known != NULL; known++) {
        size_t d = distance(word, *known);
        if (d <= limit) {
            limit = d > 0 ? d - 1 : 0;
            best = *known;
        }
    }
    return best;
}

int cli_run(int argc, char **argv)
{
    signal(SIGPIPE,
           SIG_IGN); /* a closed pipe is a write error with a message, not a silent death */
    if (argc < 2) {
        print_help();
        return CLI_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        print_help();
        return CLI_OK;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
        if (argc > 2 && strcmp(argv[2], "--json") != 0) {
            return cli_usage_error("", "--version takes only --json, not '%s'", argv[2]);
        }
        return cli_version(argc > 2);
    }
    const char *names[64];
    size_t n = 0;
    for (const struct cli_command *c = cli_commands; c->name != NULL; c++) {
        if (strcmp(word, c->name) == 0) {
            for (int i = 2; i < argc; i++) {
                if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
                    fputs(c->usage, stdout);
                    return CLI_OK;
                }
            }
            return c->run(argc - 1, argv + 1);
        }
        names[n++] = c->name;
    }
    names[n] = NULL;
    const char *near = cli_nearest(word, names);
    if (near != NULL) {
        return cli_usage_error("", "unknown command '%s'; did you mean '%s'?", word, near);
    }
    return cli_usage_error("", "unknown command '%s'", word);
}
