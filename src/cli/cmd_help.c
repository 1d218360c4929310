/* cmd_help.c - `weir help`: any help text, and the files that packages install. */
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"

enum { OPT_MAN, OPT_COMPLETION };

static const struct cli_option options[] = {
    [OPT_MAN] = {"man", NULL, "the man page, as roff", 0},
    [OPT_COMPLETION] = {"completion", NULL, "the bash completion script", 0},
    {NULL, NULL, NULL, 0},
};

/* Goes down the table by the words of the arguments. */
static int help_on(struct cli_args *a)
{
    const struct cli_command *const *table = cli_commands;
    const struct cli_command *c = NULL;
    char path[64] = "";
    for (int got = CLI_ARG; got == CLI_ARG; got = cli_next(a)) {
        c = table != NULL ? cli_find(table, a->value) : NULL;
        if (c == NULL) {
            return cli_usage_error(a, "no command '%s%s%s'", path, path[0] != '\0' ? " " : "",
                                   a->value);
        }
        size_t used = strlen(path);
        snprintf(path + used, sizeof(path) - used, "%s%s", used > 0 ? " " : "", c->name);
        table = c->subs;
    }
    cli_help_command(stdout, path, c);
    return CLI_OK;
}

static int run(struct cli_args *a)
{
    switch (cli_next(a)) {
    case OPT_MAN:
        cli_help_man(stdout);
        return CLI_OK;
    case OPT_COMPLETION:
        cli_help_completion(stdout);
        return CLI_OK;
    case CLI_ARG:
        return help_on(a);
    case CLI_BAD:
        return CLI_USAGE;
    default:
        cli_help_overview(stdout);
        return CLI_OK;
    }
}

const struct cli_command cmd_help = {
    .name = "help",
    .summary = "help on a command; the man page; shell completion",
    .args = "[COMMAND...]",
    .example = "  weir help yenc decode\n"
               "  weir help --completion > /etc/bash_completion.d/weir\n",
    .options = options,
    .run = run,
};
