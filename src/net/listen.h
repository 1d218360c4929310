/* listen.h - a listening socket on a uv loop: hands out accepted descriptors.
 *
 * Lives on its loop's thread. `accept` gets a non-blocking descriptor that is the callee's (net_stream_open() takes
 * it over) and the peer's address in words. Out of descriptors, it rests a second instead of spinning. */
#ifndef NET_LISTEN_H
#define NET_LISTEN_H

#include <stdint.h>
#include <uv.h>

#include "base/err.h"

enum { NET_PEER_MAX = 64 }; /* "[2001:db8::1]:54321" and its zero */

struct net_listen;

struct net_listen_type {
    void (*accept)(struct net_listen *l, int fd, const char *peer);
    void (*closed)(struct net_listen *l); /* once, after net_listen_close() */
};

struct net_listen {
    const struct net_listen_type *type;
    void *owner;
    int fd;
    uint16_t port; /* the real one, also when 0 was asked for */
    uv_poll_t poll;
    uv_timer_t rest;
    unsigned handles; /* still closing */
};

/* `address` is a numeric IPv4 or IPv6 address ("127.0.0.1", "::"); port 0 takes a free one. On failure nothing is
 * held. */
int net_listen_open(struct net_listen *l, uv_loop_t *loop, const char *address, uint16_t port,
                    const struct net_listen_type *type, void *owner, struct err *e);
void net_listen_close(struct net_listen *l);

#endif
