/* get_servers.c - see get_servers.h. */
#include "cli/get_servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/redact.h"

static int bad_server(const struct cli_args *a)
{
    return cli_usage_error(a, "--server wants HOST or HOST:PORT, not '%s'", a->value);
}

static void set_policy(struct engine_server *s, unsigned id, int level, unsigned connections)
{
    s->policy = (struct coord_server){
        .id = id, .level = level, .active = true, .connections = (uint8_t)connections, .depth = 2};
    size_t len = strlen(s->link.host);
    len = len < sizeof(s->policy.name) ? len : sizeof(s->policy.name) - 1;
    memcpy(s->policy.name, s->link.host, len);
}

int get_server_add(struct get_servers *list, const struct cli_args *a)
{
    const char *text = a->value;
    if (list->count == ENGINE_SERVERS_MAX) {
        return cli_usage_error(a, "at most %d servers", ENGINE_SERVERS_MAX);
    }
    struct engine_server *s = &list->list[list->count];
    nntp_server_init(&s->link);
    const char *colon = strrchr(text, ':');
    const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL;
    if (text[0] == '[' && bracket == NULL) {
        return bad_server(a);
    }
    if ((bracket != NULL && colon < bracket) ||
        (bracket == NULL && colon != NULL && strchr(text, ':') != colon)) {
        colon = NULL; /* the colons are those of an IPv6 address */
    }
    size_t len = bracket != NULL ? (size_t)(bracket - text - 1)
                 : colon != NULL ? (size_t)(colon - text)
                                 : strlen(text);
    if (len == 0 || len > NNTP_HOST_MAX) {
        return bad_server(a);
    }
    memcpy(s->link.host, text + (bracket != NULL), len);
    s->link.host[len] = '\0';
    s->link.port = 0; /* not said: by TLS, later */
    if (colon != NULL) {
        char *end;
        unsigned long port = strtoul(colon + 1, &end, 10);
        if (colon[1] < '0' || colon[1] > '9' || *end != '\0' || port < 1 || port > 65535) {
            return bad_server(a);
        }
        s->link.port = (uint16_t)port;
    }
    set_policy(s, list->count + 1, (int)list->count, 8);
    list->count++;
    return CLI_OK;
}

static int set_word(const struct cli_args *a, char *to, size_t size)
{
    if (strlen(a->value) >= size) {
        return cli_usage_error(a, "--%s is too long", a->command->options[a->option].name);
    }
    memcpy(to, a->value, strlen(a->value) + 1);
    return CLI_OK;
}

int get_server_set(struct get_servers *list, const struct cli_args *a,
                   enum get_server_option option)
{
    if (list->count == 0) {
        return cli_usage_error(a, "--%s comes behind its --server",
                               a->command->options[a->option].name);
    }
    struct engine_server *s = &list->list[list->count - 1];
    uint64_t n;
    switch (option) {
    case GET_SERVER_TLS:
        s->link.tls = true;
        return CLI_OK;
    case GET_SERVER_NO_VERIFY:
        s->link.no_verify = true;
        return CLI_OK;
    case GET_SERVER_CA:
        return set_word(a, s->link.ca_file, sizeof(s->link.ca_file));
    case GET_SERVER_USER:
        return set_word(a, s->link.user, sizeof(s->link.user));
    case GET_SERVER_PASS:
        return set_word(a, s->link.pass, sizeof(s->link.pass));
    default:
        if (!cli_number(a, 1, COORD_CONNECTIONS_MAX, &n)) {
            return CLI_USAGE;
        }
        s->policy.connections = (uint8_t)n;
        return CLI_OK;
    }
}

/* ---- out of the configuration ---- */

static bool copy_word(char *to, size_t size, const char *from)
{
    size_t len = strlen(from);
    if (len >= size) {
        return false;
    }
    memcpy(to, from, len + 1);
    return true;
}

static bool from_config(struct engine_server *s, const struct config_server *c)
{
    nntp_server_init(&s->link);
    s->link.port = (uint16_t)c->port;
    s->link.tls = c->encryption;
    s->link.no_verify = c->encryption && c->cert_verification == CONFIG_CERT_NONE;
    s->link.join_group = c->join_group;
    s->link.depth = (unsigned)c->pipelining;
    s->link.family = c->ip_version == CONFIG_IP_V4   ? AF_INET
                     : c->ip_version == CONFIG_IP_V6 ? AF_INET6
                                                     : AF_UNSPEC;
    if (!copy_word(s->link.host, sizeof(s->link.host), c->host) ||
        !copy_word(s->link.user, sizeof(s->link.user), c->username) ||
        !copy_word(s->link.pass, sizeof(s->link.pass), c->password) ||
        !copy_word(s->link.ciphers, sizeof(s->link.ciphers), c->cipher) ||
        !copy_word(s->link.bind_address, sizeof(s->link.bind_address), c->bind_address)) {
        return false;
    }
    set_policy(s, c->id, (int)c->level,
               c->connections < COORD_CONNECTIONS_MAX ? (unsigned)c->connections
                                                      : COORD_CONNECTIONS_MAX);
    s->policy.group = (int)c->group;
    s->policy.optional = c->optional;
    s->policy.retention_days = (uint32_t)c->retention_days;
    return true;
}

static int add_configured(struct get_servers *list, const struct cli_args *a,
                          const struct cli_conf *conf)
{
    struct config *c;
    int rv = cli_conf_load(a, conf, &c);
    if (rv != CLI_OK) {
        return rv;
    }
    for (size_t i = 0; rv == CLI_OK && i < c->servers_count; i++) {
        const struct config_server *s = &c->servers[i];
        if (!s->active || s->host[0] == '\0' || s->connections == 0) {
            continue;
        }
        if (list->count == ENGINE_SERVERS_MAX || !from_config(&list->list[list->count], s)) {
            rv = cli_failed(a, "Server%u has a value that is too long, or is one too many", s->id);
        } else {
            list->count++;
        }
    }
    config_free(c);
    return rv;
}

int get_servers_complete(struct get_servers *list, const struct cli_args *a,
                         const struct cli_conf *conf)
{
    if (list->count == 0) {
        int rv = add_configured(list, a, conf);
        if (rv != CLI_OK) {
            return rv;
        }
    }
    if (list->count == 0) {
        return cli_failed(
            a, "which news server? Name it with --server HOST:PORT, in the configuration "
               "(weir config sample), or as WEIR_SERVER=nntps://user:pass@host");
    }
    const char *pass = getenv("WEIR_PASS");
    for (unsigned i = 0; i < list->count; i++) {
        struct nntp_server *s = &list->list[i].link;
        if (s->port == 0) {
            s->port = s->tls ? 563 : 119;
        }
        if (s->user[0] != '\0' && s->pass[0] == '\0' && pass != NULL &&
            !copy_word(s->pass, sizeof(s->pass), pass)) {
            return cli_failed(a, "WEIR_PASS is too long");
        }
        if (s->pass[0] != '\0' && redact_add(s->pass) != 0) {
            return cli_failed(a, "no memory");
        }
    }
    return CLI_OK;
}
