#include "nntp/msg.h"

#include <string.h>
#include <sys/socket.h>

#include "base/check.h"

static const struct {
    const char *name;
    const char *words;
    enum nntp_category category;
    enum nntp_scope scope;
} troubles[NNTP_TROUBLES] = {
#define X(id, category_, scope_, words_) \
    [NNTP_TROUBLE_##id] = {#id, words_, NNTP_##category_, NNTP_SCOPE_##scope_},
    NNTP_TROUBLE_MAP(X)
#undef X
};

static const char *const results[NNTP_RESULTS] = {
    [NNTP_FOUND] = "found",   [NNTP_DAMAGED] = "damaged",     [NNTP_UNUSABLE] = "unusable",
    [NNTP_WRONG] = "wrong",   [NNTP_MISSING] = "missing",     [NNTP_REFUSED] = "refused",
    [NNTP_FAILED] = "failed", [NNTP_CANCELLED] = "cancelled",
};

const char *nntp_trouble_name(enum nntp_trouble t)
{
    return troubles[t].name;
}

const char *nntp_trouble_words(enum nntp_trouble t)
{
    return troubles[t].words;
}

enum nntp_category nntp_trouble_category(enum nntp_trouble t)
{
    return troubles[t].category;
}

enum nntp_scope nntp_trouble_scope(enum nntp_trouble t)
{
    return troubles[t].scope;
}

const char *nntp_result_name(enum nntp_result r)
{
    return results[r];
}

void nntp_server_init(struct nntp_server *s)
{
    memset(s, 0, sizeof(*s)); /* all of it, so that servers can be compared */
    s->connections = 4;
    s->connect_ms = 60000;
    s->timeout_ms = 60000;
    s->idle_ms = 60000;
    s->redial_ms = 10000;
}

bool nntp_server_same(const struct nntp_server *a, const struct nntp_server *b)
{
    return a->id == b->id && a->port == b->port && a->tls == b->tls &&
           a->no_verify == b->no_verify && a->join_group == b->join_group &&
           a->mode_reader == b->mode_reader && a->family == b->family &&
           a->socks_port == b->socks_port && a->connect_ms == b->connect_ms &&
           a->timeout_ms == b->timeout_ms && a->idle_ms == b->idle_ms &&
           a->redial_ms == b->redial_ms && strcmp(a->host, b->host) == 0 &&
           strcmp(a->ciphers, b->ciphers) == 0 && strcmp(a->ca_file, b->ca_file) == 0 &&
           strcmp(a->user, b->user) == 0 && strcmp(a->pass, b->pass) == 0 &&
           strcmp(a->bind_address, b->bind_address) == 0 &&
           strcmp(a->socks_host, b->socks_host) == 0 && strcmp(a->socks_user, b->socks_user) == 0 &&
           strcmp(a->socks_pass, b->socks_pass) == 0;
}
