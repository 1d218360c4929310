/* cmd_config.c - `weir config`: is the configuration right, what counts, what differs, and the sample file. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "base/redact.h"
#include "cli/commands.h"
#include "cli/conf.h"

enum { OPT_CONFIG, OPT_OPTION, OPT_JSON };

static const struct cli_option options[] = {
    [OPT_CONFIG] = CLI_CONF_FILE,
    [OPT_OPTION] = CLI_CONF_SET,
    [OPT_JSON] = {"json", NULL, "as JSON", 0},
    {NULL, NULL, NULL, 0},
};

enum { ARGS_MAX = 64 };

struct request {
    struct cli_conf conf;
    bool json;
    const char *args[ARGS_MAX];
    size_t count;
};

/* CLI_OK, or what the command returns. */
static int read_request(struct cli_args *a, struct request *r, size_t max)
{
    for (int got; (got = cli_next(a)) != CLI_END;) {
        switch (got) {
        case OPT_CONFIG:
            r->conf.file = a->value;
            break;
        case OPT_OPTION:
            if (!cli_conf_set(&r->conf, a)) {
                return CLI_USAGE;
            }
            break;
        case OPT_JSON:
            r->json = true;
            break;
        case CLI_ARG:
            if (r->count == max) {
                return cli_usage_error(a, "one argument too many: '%s'", a->value);
            }
            r->args[r->count++] = a->value;
            break;
        default:
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

/* What of a value may be seen; mem_free() it. */
static char *shown(const struct config_entry *e)
{
    if (config_is_secret(e->option, e->name)) {
        return mem_strdup(e->value[0] != '\0' ? "***" : "");
    }
    size_t size = 2 * strlen(e->value) + 64;
    char *out = mem_alloc(size);
    if (out != NULL) {
        redact(e->value, false, out, size);
    }
    return out;
}

static int done(struct jsonw *j, const struct cli_args *a)
{
    int rv = jsonw_finish(j);
    putchar('\n');
    return rv == 0 && fflush(stdout) == 0 ? CLI_OK : cli_failed(a, "cannot write the answer");
}

/* ---- check ---- */

struct counts {
    size_t errors, warnings;
};

/* What is no fault of a line, but would stand in the way. */
static const struct config_problem *check_whole(const struct config *c, struct err *e,
                                                struct config_problem *p)
{
    *p = (struct config_problem){.level = CONFIG_ERROR, .name = "", .text = e->msg};
    if (config_may_listen(c, e) != 0) {
        return p;
    }
    if (c->servers_count == 0) {
        *p =
            (struct config_problem){.level = CONFIG_NOTE,
                                    .name = "",
                                    .text = "no news server is set; the first one is Server1.Host"};
        return p;
    }
    return NULL;
}

static void print_problem(struct jsonw *j, const struct config *c, const struct config_problem *p)
{
    char text[2048];
    if (j == NULL) {
        config_problem_text(c, p, text, sizeof(text));
        puts(text);
        return;
    }
    jsonw_object(j);
    jsonw_kstr(j, "level", config_level_name(p->level));
    jsonw_kstr(j, "from", config_from_name(p->from));
    if (p->line > 0) {
        jsonw_kuint(j, "line", p->line);
    }
    jsonw_kstr(j, "option", p->name);
    jsonw_kstr(j, "text", p->text);
    jsonw_end(j);
}

static struct counts print_problems(struct jsonw *j, const struct config *c)
{
    struct err e = {.code = 0};
    struct config_problem own;
    const struct config_problem *whole = check_whole(c, &e, &own);
    struct counts n = {.errors = c->errors_count + (whole != NULL && whole->level == CONFIG_ERROR)};
    for (size_t i = 0; i < c->problems_count; i++) {
        n.warnings += c->problems[i].level == CONFIG_WARNING;
        print_problem(j, c, &c->problems[i]);
    }
    if (whole != NULL) {
        print_problem(j, c, whole);
    }
    return n;
}

static int check_json(const struct cli_args *a, const struct config *c)
{
    struct jsonw j;
    jsonw_init_file(&j, stdout);
    jsonw_object(&j);
    jsonw_kstr(&j, "file", c->file);
    jsonw_key(&j, "problems");
    jsonw_array(&j);
    struct counts n = print_problems(&j, c);
    jsonw_end(&j);
    jsonw_kuint(&j, "errors", n.errors);
    jsonw_kuint(&j, "warnings", n.warnings);
    jsonw_kbool(&j, "ok", n.errors == 0);
    jsonw_end(&j);
    int rv = done(&j, a);
    return rv != CLI_OK ? rv : n.errors == 0 ? CLI_OK : CLI_FAILED;
}

static int run_check(struct cli_args *a)
{
    struct request r = {.count = 0};
    struct config *c;
    int rv = read_request(a, &r, 1);
    r.conf.file = r.count > 0 ? r.args[0] : r.conf.file;
    rv = rv == CLI_OK ? cli_conf_read(a, &r.conf, &c) : rv;
    if (rv != CLI_OK) {
        return rv;
    }
    if (r.json) {
        rv = check_json(a, c);
    } else {
        struct counts n = print_problems(NULL, c);
        printf("%s: %zu error%s, %zu warning%s\n", c->file[0] != '\0' ? c->file : "no file",
               n.errors, n.errors == 1 ? "" : "s", n.warnings, n.warnings == 1 ? "" : "s");
        rv = n.errors == 0 ? CLI_OK : CLI_FAILED;
    }
    config_free(c);
    return rv;
}

static const struct cli_command check = {
    .name = "check",
    .summary = "what is wrong with the configuration",
    .args = "[FILE]",
    .about =
        "Reads the configuration as the other commands would and prints every problem with its\n"
        "file and line. Returns 0 when there is no error (warnings and notes may be), else 1.\n",
    .example = "  weir config check\n"
               "  weir config check /etc/nzbget.conf\n",
    .options = options,
    .run = run_check,
};

/* ---- show ---- */

static bool asked_for(const struct request *r, const struct config_entry *e)
{
    for (size_t i = 0; i < r->count; i++) {
        struct config_name n;
        char near[CONFIG_NAME_MAX];
        config_resolve(r->args[i], strlen(r->args[i]), &n, near);
        if (strcasecmp(n.name, e->name) == 0) {
            return true;
        }
    }
    return r->count == 0;
}

static void show_json(struct jsonw *j, const struct config_entry *e, const char *value)
{
    jsonw_object(j);
    jsonw_kstr(j, "name", e->name);
    jsonw_kstr(j, "value", value);
    jsonw_kstr(j, "from", config_from_name(e->from));
    if (e->line > 0) {
        jsonw_kuint(j, "line", e->line);
    }
    jsonw_kbool(j, "known", !e->unknown);
    jsonw_kbool(j, "effect", e->option == NULL || !(e->option->flags & CONFIG_NO_EFFECT));
    jsonw_kbool(j, "restart", e->option != NULL && (e->option->flags & CONFIG_RESTART));
    jsonw_end(j);
}

static void show_text(const struct config_entry *e, const char *value)
{
    bool idle = e->option != NULL && (e->option->flags & CONFIG_NO_EFFECT);
    printf("%-24s %-40s %s", e->name, value, config_from_name(e->from));
    if (e->line > 0) {
        printf(" line %u", e->line);
    }
    puts(e->unknown ? ", unknown" : idle ? ", no effect" : "");
}

/* Unknown names are an error, with the nearest one. */
static int check_names(const struct cli_args *a, const struct request *r, const struct config *c)
{
    for (size_t i = 0; i < r->count; i++) {
        struct config_name n;
        char near[CONFIG_NAME_MAX];
        bool known = config_resolve(r->args[i], strlen(r->args[i]), &n, near);
        if (config_find(c, n.name) == NULL) {
            return cli_failed(a, known ? "%s is not set%s%s" : "no option '%s'%s%s", r->args[i],
                              near[0] != '\0' ? "; did you mean " : "", near);
        }
    }
    return CLI_OK;
}

static int show(const struct cli_args *a, const struct request *r, const struct config *c)
{
    struct jsonw j;
    int rv = check_names(a, r, c);
    if (rv != CLI_OK) {
        return rv;
    }
    if (r->json) {
        jsonw_init_file(&j, stdout);
        jsonw_object(&j);
        jsonw_kstr(&j, "file", c->file);
        jsonw_key(&j, "options");
        jsonw_array(&j);
    }
    for (size_t i = 0; i < c->entries_count; i++) {
        const struct config_entry *e = &c->entries[i];
        if (!asked_for(r, e)) {
            continue;
        }
        char *value = shown(e);
        const char *text = value != NULL ? value : "";
        if (r->json) {
            show_json(&j, e, text);
        } else {
            show_text(e, text);
        }
        mem_free(value);
    }
    if (r->json) {
        jsonw_end(&j);
        jsonw_end(&j);
        return done(&j, a);
    }
    return CLI_OK;
}

static int run_show(struct cli_args *a)
{
    struct request r = {.count = 0};
    struct config *c;
    int rv = read_request(a, &r, ARGS_MAX);
    rv = rv == CLI_OK ? cli_conf_read(a, &r.conf, &c) : rv;
    if (rv == CLI_OK) {
        rv = show(a, &r, c);
        config_free(c);
    }
    return rv;
}

static const struct cli_command show_command = {
    .name = "show",
    .summary = "what counts, and where each value comes from",
    .args = "[OPTION...]",
    .about = "Variables are replaced; passwords are shown as ***.\n",
    .example = "  weir config show\n"
               "  weir config show DestDir Server1.Host\n",
    .options = options,
    .run = run_show,
};

/* ---- diff ---- */

struct differences {
    struct jsonw *json; /* NULL: as text */
};

static void print_change(void *arg, const struct config_change *change)
{
    struct differences *d = arg;
    const struct config_entry *e = change->after != NULL ? change->after : change->before;
    char *before = change->before != NULL ? shown(change->before) : NULL;
    char *after = change->after != NULL ? shown(change->after) : NULL;
    if (d->json != NULL) {
        jsonw_object(d->json);
        jsonw_kstr(d->json, "name", e->name);
        jsonw_kstr(d->json, "before", before);
        jsonw_kstr(d->json, "after", after);
        jsonw_kbool(d->json, "restart", change->restart);
        jsonw_end(d->json);
    } else {
        if (change->before != NULL) {
            printf("-%s=%s\n", e->name, before != NULL ? before : "");
        }
        if (change->after != NULL) {
            printf("+%s=%s%s\n", e->name, after != NULL ? after : "",
                   change->restart ? "    # needs a restart" : "");
        }
    }
    mem_free(before);
    mem_free(after);
}

/* A file alone, or nothing but the defaults. */
static int load_alone(const struct cli_args *a, const char *file, struct config **out)
{
    char home[4096];
    const char *h = getenv("HOME");
    const char *env[] = {home, NULL};
    snprintf(home, sizeof(home), "HOME=%s", h != NULL ? h : "");
    struct config_input in = {.file = file, .no_file = file == NULL, .env = env};
    struct err e = {.code = 0};
    return config_load(&in, out, &e) == 0 ? CLI_OK : cli_failed(a, "%s", e.msg);
}

static int diff(const struct cli_args *a, bool json, const struct config *before,
                const struct config *after)
{
    struct jsonw j;
    struct differences d = {.json = json ? &j : NULL};
    if (json) {
        jsonw_init_file(&j, stdout);
        jsonw_array(&j);
    }
    config_diff(before, after, print_change, &d);
    if (json) {
        jsonw_end(&j);
        return done(&j, a);
    }
    return CLI_OK;
}

static int run_diff(struct cli_args *a)
{
    struct request r = {.count = 0};
    struct config *before = NULL, *after = NULL;
    int rv = read_request(a, &r, 2);
    if (rv == CLI_OK) {
        rv = load_alone(a, r.count == 2 ? r.args[0] : NULL, &before);
    }
    if (rv == CLI_OK) {
        rv = r.count > 0 ? load_alone(a, r.args[r.count - 1], &after)
                         : cli_conf_read(a, &r.conf, &after);
    }
    if (rv == CLI_OK) {
        rv = diff(a, r.json, before, after);
    }
    config_free(before);
    config_free(after);
    return rv;
}

static const struct cli_command diff_command = {
    .name = "diff",
    .summary = "what differs from the defaults, or between two files",
    .args = "[[OLD] NEW]",
    .about =
        "Without a file: the configuration as it counts now against the defaults. With one: that\n"
        "file against the defaults. With two: the second against the first, and what of it would\n"
        "need a restart.\n",
    .example = "  weir config diff\n"
               "  weir config diff /etc/nzbget.conf ~/.config/weir/weir.conf\n",
    .options = options,
    .run = run_diff,
};

/* ---- sample ---- */

static int run_sample(struct cli_args *a)
{
    int got = cli_next(a);
    if (got != CLI_END) {
        return got == CLI_ARG ? cli_usage_error(a, "one argument too many: '%s'", a->value)
                              : CLI_USAGE;
    }
    if (config_sample(stdout) != 0 || fflush(stdout) != 0) {
        return cli_failed(a, "cannot write the sample");
    }
    return CLI_OK;
}

static const struct cli_command sample = {
    .name = "sample",
    .summary = "a file with every option, its default and what it means",
    .example = "  weir config sample >~/.config/weir/weir.conf\n",
    .run = run_sample,
};

static const struct cli_command *const subs[] = {&check, &show_command, &diff_command, &sample,
                                                 NULL};

const struct cli_command cmd_config = {
    .name = "config",
    .summary = "check, show or compare the configuration",
    .about =
        "Later ones win: defaults, one file, WEIR_... variables, -o. The file is that of -c, of\n"
        "$WEIR_CONF, ~/.config/weir/weir.conf or /etc/weir.conf.\n",
    .subs = subs,
};
