/* dial.h - from a host name to a connected descriptor, without blocking the loop.
 *
 * Names are looked up in libuv's thread pool. All addresses are tried, the two families in turn (RFC 8305, Happy
 * Eyeballs): the next one starts after 250 ms or as soon as one has failed; the first that connects wins. With a
 * SOCKS5 proxy the proxy is dialled so and then asked for the host, which it looks up itself. One time limit covers it
 * all. Runs on the loop's thread; the callback comes exactly once, never from within net_dial_start(). */
#ifndef NET_DIAL_H
#define NET_DIAL_H

#include <stdint.h>
#include <uv.h>

#include "base/err.h"

struct net_dial_opts {
    const char *host; /* a name or a numeric address */
    uint16_t port;
    int family;               /* AF_UNSPEC, or only AF_INET or AF_INET6 */
    const char *bind_address; /* numeric, ours; NULL: the kernel's choice. Decides the family */
    const char *socks_host;   /* NULL: direct */
    uint16_t socks_port;
    const char *socks_user; /* NULL: no login */
    const char *socks_pass;
    unsigned timeout_ms;
    int receive_bytes; /* SO_RCVBUF; 0: the kernel adapts it */
};

/* fd >= 0: connected, non-blocking, the callee's. Else `why` says what failed: UV_EAI_* for a name that was not found,
 * else a system code, ERR_PROTOCOL for a proxy that refused. */
typedef void (*net_dial_cb)(void *arg, int fd, const struct err *why);

struct net_dial;

/* Everything in `opts` is copied. NULL when it cannot start; `e` says why and nothing is held. */
struct net_dial *net_dial_start(uv_loop_t *loop, const struct net_dial_opts *opts, net_dial_cb cb,
                                void *arg, struct err *e);
/* The callback will not come; the rest cleans up behind itself (a lookup that runs keeps the loop until it ends).
 * Only before the callback. */
void net_dial_cancel(struct net_dial *d);

#endif
