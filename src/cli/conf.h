/* conf.h - the configuration for commands: the options -c and -o, loading, and saying what is wrong with it. */
#ifndef CLI_CONF_H
#define CLI_CONF_H

#include "cli/cli.h"
#include "config/config.h"

enum { CLI_CONF_OPTIONS = 256 };

/* Rows for a command's table; give a->value to cli_conf_file() and cli_conf_set(). */
#define CLI_CONF_FILE                                                        \
    {                                                                        \
        "config", "FILE", "the configuration file; - is standard input", 'c' \
    }
#define CLI_CONF_SET                                                                       \
    {                                                                                      \
        "option", "NAME=VALUE", "set an option of the configuration; may be repeated", 'o' \
    }

struct cli_conf {
    const char *file;
    const char *server; /* a URL: the only server */
    bool nzbget;        /* called as nzbget: look in its places too */
    const char *options[CLI_CONF_OPTIONS + 1];
    size_t count;
};

/* Remembers an -o; false: there are too many, and it was said. */
bool cli_conf_set(struct cli_conf *conf, const struct cli_args *a);

/* Loads it; errors and warnings go to stderr. CLI_OK and *out, or CLI_FAILED: it cannot be read or has errors. */
int cli_conf_load(const struct cli_args *a, const struct cli_conf *conf, struct config **out);

#endif
