/* cli.c - finds the command that was asked for, or says what it might have been. */
#include "cli/cli.h"

#include <signal.h>
#include <string.h>

#include "base/nearest.h"

static int unknown_word(const struct cli_command *parent, const char *path,
                        const struct cli_command *const *table, const char *word)
{
    struct cli_args a = {.command = parent};
    snprintf(a.path, sizeof(a.path), "%s", path);
    enum { MAX = 64 };
    const char *names[MAX];
    size_t n = 0;
    for (; *table != NULL && n < MAX - 1; table++) {
        names[n++] = (*table)->name;
    }
    names[n] = NULL;
    const char *near = nearest(word, names);
    if (near != NULL) {
        return cli_usage_error(&a, "unknown command '%s'; did you mean '%s'?", word, near);
    }
    return cli_usage_error(&a, "unknown command '%s'", word);
}

const struct cli_command *cli_find(const struct cli_command *const *table, const char *word)
{
    while (*table != NULL && strcmp((*table)->name, word) != 0) {
        table++;
    }
    return *table;
}

static bool asks_for_help(int argc, const char *const *argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

/* argv[0] is a word that should be in `table`, that of `parent`; `path` is what led here. */
static int run_in(const struct cli_command *parent, const struct cli_command *const *table,
                  const char *path, int argc, const char *const *argv)
{
    const struct cli_command *c = cli_find(table, argv[0]);
    if (c == NULL) {
        return unknown_word(parent, path, table, argv[0]);
    }
    struct cli_args a = {.command = c, .argc = argc - 1, .argv = argv + 1};
    snprintf(a.path, sizeof(a.path), "%s%s%s", path, path[0] != '\0' ? " " : "", c->name);
    if (c->subs != NULL && argc > 1 && argv[1][0] != '-') {
        return run_in(c, c->subs, a.path, argc - 1, argv + 1);
    }
    if (asks_for_help(argc - 1, argv + 1)) {
        cli_help_command(stdout, a.path, c);
        return CLI_OK;
    }
    if (c->subs != NULL) {
        cli_help_command(stderr, a.path, c);
        return c->usage_exit != 0 ? c->usage_exit : CLI_USAGE;
    }
    return c->run(&a);
}

static const struct cli_link *find_link(const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *base = slash != NULL ? slash + 1 : program;
    for (const struct cli_link *l = cli_links; l->name != NULL; l++) {
        if (strcmp(l->name, base) == 0) {
            return l;
        }
    }
    return NULL;
}

static int run_link(const struct cli_link *l, int argc, const char *const *argv)
{
    enum { MAX = 4096 };
    static const char *words[MAX];
    int n = 0;
    for (; l->words[n] != NULL; n++) {
        words[n] = l->words[n];
    }
    if (argc - 1 > MAX - n) {
        fprintf(stderr, "%s: too many arguments\n", argv[0]);
        return CLI_USAGE;
    }
    for (int i = 1; i < argc; i++) {
        words[n++] = argv[i];
    }
    return run_in(NULL, cli_commands, "", n, words);
}

int cli_run(int argc, const char *const *argv)
{
    /* A closed pipe is a write error with a message, not a silent death. */
    signal(SIGPIPE, SIG_IGN);
    const struct cli_link *l = argc > 0 ? find_link(argv[0]) : NULL;
    if (l != NULL) {
        return run_link(l, argc, argv);
    }
    if (argc < 2) {
        cli_help_overview(stderr);
        return CLI_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        cli_help_overview(stdout);
        return CLI_OK;
    }
    if (strcmp(word, "--version") == 0) {
        return cli_version(argc > 2 && strcmp(argv[2], "--json") == 0);
    }
    return run_in(NULL, cli_commands, "", argc - 1, argv + 1);
}
