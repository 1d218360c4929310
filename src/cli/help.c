/* help.c - every text about commands, made from the one table: --help, the man page, bash completion. */
#include <string.h>

#include "cli/cli.h"
#include "version.h"

/* "-t, --threads N"; the width it took. */
static int print_option(FILE *f, const struct cli_option *o)
{
    int n = 0;
    if (o->letter != 0) {
        n += fprintf(f, "-%c%s", o->letter, o->name != NULL ? ", " : "");
    }
    if (o->name != NULL) {
        n += fprintf(f, "--%s", o->name);
    }
    if (o->value != NULL) {
        n += fprintf(f, " %s", o->value);
    }
    return n;
}

static bool more(const struct cli_option *o)
{
    return o != NULL && (o->name != NULL || o->letter != 0);
}

void cli_help_overview(FILE *f)
{
    fprintf(f, "Weir, a Usenet/NZB downloader engine\n\n"
               "usage: weir COMMAND [ARGUMENT...]     weir COMMAND --help tells more\n\n"
               "commands:\n");
    for (const struct cli_command *const *c = cli_commands; *c != NULL; c++) {
        fprintf(f, "  %-12s %s\n", (*c)->name, (*c)->summary);
    }
    fprintf(f, "\n  %-12s %s\n  %-12s %s\n", "--version",
            "version, CPU kernels and library versions (also with --json)", "--help", "this text");
}

static void print_usage_line(FILE *f, const char *path, const struct cli_command *c)
{
    fprintf(f, "weir %s%s%s%s", path, more(c->options) ? " [OPTION...]" : "",
            c->args != NULL ? " " : "", c->args != NULL ? c->args : "");
}

void cli_help_command(FILE *f, const char *path, const struct cli_command *c)
{
    fprintf(f, "weir %s: %s\n\nusage: ", path, c->summary);
    if (c->subs != NULL) {
        fprintf(f, "weir %s COMMAND [ARGUMENT...]\n\ncommands:\n", path);
        for (const struct cli_command *const *s = c->subs; *s != NULL; s++) {
            fprintf(f, "  %-12s %s\n", (*s)->name, (*s)->summary);
        }
    } else {
        print_usage_line(f, path, c);
        fputc('\n', f);
    }
    if (c->about != NULL) {
        fprintf(f, "\n%s", c->about);
    }
    if (more(c->options)) {
        fputs("\noptions:\n", f);
        for (const struct cli_option *o = c->options; more(o); o++) {
            fputs("  ", f);
            int n = print_option(f, o);
            fprintf(f, "%*s%s\n", n < 26 ? 28 - n : 2, "", o->help);
        }
    }
    if (c->example != NULL) {
        fprintf(f, "\nexample:\n%s", c->example);
    }
}

/* Text for roff: a backslash doubled, a dash kept a dash, a dot or quote at the line's start made harmless. */
static void roff(FILE *f, const char *s)
{
    for (bool start = true; *s != '\0'; s++) {
        if (start && (*s == '.' || *s == '\'')) {
            fputs("\\&", f);
        }
        start = *s == '\n';
        if (*s == '\\') {
            fputs("\\e", f);
        } else if (*s == '-') {
            fputs("\\-", f);
        } else {
            fputc(*s, f);
        }
    }
}

static void roff_example(FILE *f, const char *example)
{
    if (example != NULL) {
        fputs(".PP\n.nf\n", f);
        roff(f, example);
        fputs(".fi\n", f);
    }
}

static void man_command(FILE *f, const char *path, const struct cli_command *c)
{
    if (c->subs != NULL) {
        for (const struct cli_command *const *s = c->subs; *s != NULL; s++) {
            char sub[64];
            snprintf(sub, sizeof(sub), "%s %s", path, (*s)->name);
            man_command(f, sub, *s);
        }
        return;
    }
    fputs(".SS ", f);
    print_usage_line(f, path, c);
    fputc('\n', f);
    roff(f, c->summary);
    fputs(".\n", f);
    if (c->about != NULL) {
        fputs(".PP\n", f);
        roff(f, c->about);
    }
    for (const struct cli_option *o = c->options; more(o); o++) {
        fputs(".TP\n.B ", f);
        if (o->letter != 0) {
            fprintf(f, "\\-%c%s", o->letter, o->name != NULL ? ", " : "");
        }
        if (o->name != NULL) {
            fputs("\\-\\-", f);
            roff(f, o->name);
        }
        fprintf(f, "%s%s\n", o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
        roff(f, o->help);
        fputc('\n', f);
    }
    roff_example(f, c->example);
}

void cli_help_man(FILE *f)
{
    fprintf(f,
            ".TH WEIR 1 \"\" \"weir %s\" \"User Commands\"\n"
            ".SH NAME\nweir \\- Usenet/NZB downloader engine\n"
            ".SH SYNOPSIS\n.B weir\nCOMMAND [ARGUMENT...]\n"
            ".SH COMMANDS\n",
            WEIR_VERSION);
    for (const struct cli_command *const *c = cli_commands; *c != NULL; c++) {
        man_command(f, (*c)->name, *c);
    }
    fputs(".SH EXIT STATUS\n"
          "0: done. 1: tried, and it did not succeed; stderr says why. 2: the command line is "
          "wrong;\n"
          "nothing was done. Commands with codes of their own name them above.\n",
          f);
}

/* What may follow `path`: its sub-commands, or its options. */
static void completion_case(FILE *f, const char *path, const struct cli_command *c)
{
    fprintf(f, "    \"%s\") words=\"", path);
    for (const struct cli_command *const *s = c->subs; s != NULL && *s != NULL; s++) {
        fprintf(f, "%s ", (*s)->name);
    }
    for (const struct cli_option *o = c->options; more(o); o++) {
        if (o->name != NULL) {
            fprintf(f, "--%s ", o->name);
        }
    }
    fputs("--help\" ;;\n", f);
    for (const struct cli_command *const *s = c->subs; s != NULL && *s != NULL; s++) {
        char sub[64];
        snprintf(sub, sizeof(sub), "%s %s", path, (*s)->name);
        completion_case(f, sub, *s);
    }
}

void cli_help_completion(FILE *f)
{
    fputs("# bash completion of weir, made from its command table\n"
          "_weir() {\n"
          "  local cur=${COMP_WORDS[COMP_CWORD]} path= words= i\n"
          "  for ((i = 1; i < COMP_CWORD && i < 3; i++)); do\n"
          "    [[ ${COMP_WORDS[i]} == -* || ${COMP_WORDS[i]} == */* || ${COMP_WORDS[i]} == *.* ]] "
          "&& break\n"
          "    path=\"${path:+$path }${COMP_WORDS[i]}\"\n"
          "  done\n"
          "  case $path in\n    \"\") words=\"",
          f);
    for (const struct cli_command *const *c = cli_commands; *c != NULL; c++) {
        fprintf(f, "%s ", (*c)->name);
    }
    fputs("--help --version\" ;;\n", f);
    for (const struct cli_command *const *c = cli_commands; *c != NULL; c++) {
        completion_case(f, (*c)->name, *c);
    }
    fputs("  esac\n"
          "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "  [[ $cur == -* ]] || COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
          "}\n"
          "complete -o filenames -F _weir weir\n",
          f);
}
