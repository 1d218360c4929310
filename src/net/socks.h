/* socks.h - the client's words of SOCKS5 (RFC 1928, 1929), without a socket.
 *
 * The caller sends socks->out[0 .. out_len), reads exactly socks->need bytes and hands them to socks_take(), until that
 * says done. Never asks for more than it needs: the byte behind the proxy's last answer is the server's first. */
#ifndef NET_SOCKS_H
#define NET_SOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { SOCKS_OUT_MAX = 600, SOCKS_IN_MAX = 262 };

struct socks {
    uint8_t out[SOCKS_OUT_MAX];
    size_t out_len;
    size_t need;
    int phase;
    char host[256];
    char user[256];
    char pass[256];
    uint16_t port;
};

/* ERR_INVALID when a string is too long for the protocol. */
int socks_init(struct socks *s, const char *host, uint16_t port, const char *user, const char *pass,
               struct err *e);
/* `p` has s->need bytes. 1: through; 0: send and read on; negative: refused. */
int socks_take(struct socks *s, const uint8_t *p, struct err *e);

#endif
