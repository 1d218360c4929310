/* server.h - one news server as its connections need it. Levels, groups and retention are the asker's business. */
#ifndef NNTP_SERVER_H
#define NNTP_SERVER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    NNTP_HOST_MAX = 253,
    NNTP_WORD_MAX = 255, /* user, password, cipher list */
    NNTP_GROUP_MAX = 128,
    NNTP_DEPTH_MAX = 32, /* commands under way on one connection */
};

struct nntp_server {
    uint32_t id; /* the asker's name for it */
    char host[NNTP_HOST_MAX + 1];
    uint16_t port;
    bool tls;
    bool no_verify;                  /* to be shown to the user as such */
    char ciphers[NNTP_WORD_MAX + 1]; /* "": our default */
    char ca_file[NNTP_WORD_MAX + 1]; /* "": the system's authorities */
    char user[NNTP_WORD_MAX + 1];    /* "": no login */
    char pass[NNTP_WORD_MAX + 1];
    bool join_group;
    bool mode_reader;
    int family;                         /* AF_UNSPEC, AF_INET, AF_INET6 */
    char bind_address[46];              /* "": the kernel's choice */
    char socks_host[NNTP_HOST_MAX + 1]; /* "": direct */
    uint16_t socks_port;
    char socks_user[NNTP_WORD_MAX + 1];
    char socks_pass[NNTP_WORD_MAX + 1];
    unsigned connections; /* at most, in one pool */
    unsigned depth; /* commands under way per connection; 0: adapts by itself; 1: no pipelining */
    unsigned connect_ms; /* name, connect, TLS and login together */
    unsigned timeout_ms; /* silence while an answer is awaited; also the window of the least rate */
    unsigned idle_ms;    /* a connection without work is closed after this */
    unsigned
        redial_ms; /* after a failed attempt, while other connections work: no further one for so long */
};

/* Defaults of everything but id, host, port: 60 s timeouts, 10 s between attempts, 4 connections, depth adapts. */
void nntp_server_init(struct nntp_server *s);
/* The same connection would result: only the number of connections or the depth may differ. */
bool nntp_server_same(const struct nntp_server *a, const struct nntp_server *b);

#endif
