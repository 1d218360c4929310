/* conf.h - the configuration for commands: the options -c and -o, loading, and saying what is wrong with it. */
#ifndef CLI_CONF_H
#define CLI_CONF_H

#include "cli/cli.h"
#include "config/config.h"

enum { CLI_CONF_OPTIONS = 256 };

/* Rows for a command's table. The value of the first goes to `file`, the second is for cli_conf_set(). */
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

/* Loads the configuration as it counts for this process, problems and all. CLI_OK and *out, or CLI_FAILED: it cannot be
 * read, and that was said. */
int cli_conf_read(const struct cli_args *a, const struct cli_conf *conf, struct config **out);
/* The same for those who work with it: its errors and warnings go to stderr, and with errors it is CLI_FAILED. */
int cli_conf_load(const struct cli_args *a, const struct cli_conf *conf, struct config **out);

#endif
