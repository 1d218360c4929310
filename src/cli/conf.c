/* conf.c - see conf.h. */
#include "cli/conf.h"

#include <unistd.h>

bool cli_conf_set(struct cli_conf *conf, const struct cli_args *a)
{
    if (conf->count == CLI_CONF_OPTIONS) {
        cli_usage_error(a, "more than %d times -o; put them into a file", CLI_CONF_OPTIONS);
        return false;
    }
    conf->options[conf->count++] = a->value;
    return true;
}

int cli_conf_read(const struct cli_args *a, const struct cli_conf *conf, struct config **out)
{
    struct err e = {.code = 0};
    struct config_input in = {
        .file = conf->file,
        .nzbget_places = conf->nzbget,
        .env = (const char *const *)environ,
        .options = conf->options,
        .server = conf->server,
    };
    return config_load(&in, out, &e) == 0 ? CLI_OK : cli_failed(a, "%s", e.msg);
}

int cli_conf_load(const struct cli_args *a, const struct cli_conf *conf, struct config **out)
{
    struct config *c;
    int rv = cli_conf_read(a, conf, &c);
    if (rv != CLI_OK) {
        return rv;
    }
    for (size_t i = 0; i < c->problems_count; i++) {
        char text[2048];
        if (c->problems[i].level != CONFIG_NOTE) {
            config_problem_text(c, &c->problems[i], text, sizeof(text));
            fprintf(stderr, "%s\n", text);
        }
    }
    if (c->errors_count > 0) {
        config_free(c);
        return cli_failed(a, "the configuration has errors; 'weir config check' shows them all");
    }
    *out = c;
    return CLI_OK;
}
