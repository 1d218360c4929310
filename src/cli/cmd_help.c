/* cmd_help.c - `weir help`: any help text, and the files that packages install. */
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"

enum { OPT_MAN, OPT_COMPLETION };

const struct cli_option cmd_help_options[] = {
    [OPT_MAN] = {"man", NULL, "the man page, as roff", 0},
    [OPT_COMPLETION] = {"completion", NULL, "the bash completion script", 0},
    {NULL, NULL, NULL, 0},
};

/* Goes down the table by the words of the arguments. */
static int help_on(struct cli_args *a, const char *word)
{
    const struct cli_command *table = cli_commands, *c = NULL;
    char path[64] = "";
    for (int got = CLI_ARG; got == CLI_ARG; got = cli_next(a)) {
        word = a->value;
        for (c = table; c != NULL && c->name != NULL && strcmp(c->name, word) != 0; c++) {
        }
        if (c == NULL || c->name == NULL) {
            return cli_usage_error(a, "no command '%s%s%s'", path, path[0] != '\0' ? " " : "",
                                   word);
        }
        size_t used = strlen(path);
        snprintf(path + used, sizeof(path) - used, "%s%s", used > 0 ? " " : "", c->name);
        table = c->subs;
    }
    cli_help_command(stdout, path, c);
    return CLI_OK;
}

int cmd_help(struct cli_args *a)
{
    switch (cli_next(a)) {
    case OPT_MAN:
        cli_help_man(stdout);
        return CLI_OK;
    case OPT_COMPLETION:
        cli_help_completion(stdout);
        return CLI_OK;
    case CLI_ARG:
        return help_on(a, a->value);
    case CLI_BAD:
        return CLI_USAGE;
    default:
        cli_help_overview(stdout);
        return CLI_OK;
    }
}
