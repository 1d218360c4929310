/* get_servers.h - which servers `weir get` uses: those of the command line, else those of the configuration. */
#ifndef CLI_GET_SERVERS_H
#define CLI_GET_SERVERS_H

#include "cli/conf.h"
#include "engine/engine.h"

struct get_servers {
    struct engine_server list[ENGINE_SERVERS_MAX];
    unsigned count;
};

enum get_server_option {
    GET_SERVER_TLS,
    GET_SERVER_NO_VERIFY,
    GET_SERVER_CA,
    GET_SERVER_USER,
    GET_SERVER_PASS,
    GET_SERVER_CONNECTIONS,
};

/* --server: "host", "host:119", "[::1]:119". */
int get_server_add(struct get_servers *s, const struct cli_args *a);
/* An option about the server that was named last. */
int get_server_set(struct get_servers *s, const struct cli_args *a, enum get_server_option option);
/* At the end: ports and passwords that were not said; without any server, those of the configuration. CLI_FAILED: there
 * is none, and that was said. */
int get_servers_complete(struct get_servers *s, const struct cli_args *a,
                         const struct cli_conf *conf);

#endif
