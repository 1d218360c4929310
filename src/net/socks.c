#include "net/socks.h"

#include <arpa/inet.h>
#include <string.h>
#include <uv.h>

#include "net/addr.h"

enum { GREETED, LOGIN_SENT, CONNECT_SENT, BOUND_NAME, BOUND_REST };

static int copy(char *to, size_t size, const char *from, const char *what, struct err *e)
{
    size_t n = from != NULL ? strlen(from) : 0;
    if (n >= size) {
        return err_set(e, ERR_INVALID, "SOCKS5: %s is longer than %zu bytes", what, size - 1);
    }
    memcpy(to, n > 0 ? from : "", n + 1);
    return 0;
}

static void put(struct socks *s, const void *p, size_t n)
{
    memcpy(s->out + s->out_len, p, n);
    s->out_len += n;
}

static void put_byte(struct socks *s, size_t byte)
{
    s->out[s->out_len++] = (uint8_t)byte;
}

int socks_init(struct socks *s, const char *host, uint16_t port, const char *user, const char *pass,
               struct err *e)
{
    memset(s, 0, sizeof(*s));
    int rv = copy(s->host, sizeof(s->host), host, "the host name", e);
    rv = rv != 0 ? rv : copy(s->user, sizeof(s->user), user, "the user name", e);
    rv = rv != 0 ? rv : copy(s->pass, sizeof(s->pass), pass, "the password", e);
    if (rv != 0) {
        return rv;
    }
    s->port = port;
    bool login = s->user[0] != '\0';
    put(s, login ? "\5\2\0\2" : "\5\1\0", login ? 4 : 3);
    s->need = 2;
    s->phase = GREETED;
    return 0;
}

static int ask_connect(struct socks *s)
{
    union net_addr a;
    put(s, "\5\1\0", 3);
    if (net_addr_parse(&a, s->host, s->port) != 0) {
        put_byte(s, 3);
        put_byte(s, strlen(s->host));
        put(s, s->host, strlen(s->host));
    } else if (a.any.sa_family == AF_INET) {
        put_byte(s, 1);
        put(s, &a.v4.sin_addr, 4);
    } else {
        put_byte(s, 4);
        put(s, &a.v6.sin6_addr, 16);
    }
    put_byte(s, s->port >> 8);
    put_byte(s, s->port & 0xff);
    s->need = 4;
    s->phase = CONNECT_SENT;
    return 0;
}

static int log_in(struct socks *s)
{
    put_byte(s, 1);
    put_byte(s, strlen(s->user));
    put(s, s->user, strlen(s->user));
    put_byte(s, strlen(s->pass));
    put(s, s->pass, strlen(s->pass));
    s->need = 2;
    s->phase = LOGIN_SENT;
    return 0;
}

static int take_method(struct socks *s, const uint8_t *p, struct err *e)
{
    if (p[0] != 5) {
        return err_set(e, ERR_PROTOCOL, "the proxy does not speak SOCKS5");
    }
    if (p[1] == 2 && s->user[0] != '\0') {
        return log_in(s);
    }
    if (p[1] != 0) {
        return err_set(e, ERR_PROTOCOL, "the SOCKS5 proxy wants %s",
                       s->user[0] == '\0' ? "a login" : "another kind of login");
    }
    return ask_connect(s);
}

static int take_reply(struct socks *s, const uint8_t *p, struct err *e)
{
    static const char *const words[] = {"",
                                        "general failure",
                                        "not allowed by its rules",
                                        "network unreachable",
                                        "host unreachable",
                                        "connection refused",
                                        "TTL expired",
                                        "command not supported",
                                        "address type not supported"};
    if (p[0] != 5) {
        return err_set(e, ERR_PROTOCOL, "the proxy does not speak SOCKS5");
    }
    if (p[1] != 0) {
        return err_set(e, p[1] == 5 ? UV_ECONNREFUSED : ERR_PROTOCOL, "SOCKS5 proxy: %s",
                       p[1] < sizeof(words) / sizeof(words[0]) ? words[p[1]] : "unknown failure");
    }
    s->phase = BOUND_REST;
    switch (p[3]) {
    case 1:
        s->need = 4 + 2;
        return 0;
    case 4:
        s->need = 16 + 2;
        return 0;
    case 3:
        s->need = 1;
        s->phase = BOUND_NAME;
        return 0;
    default:
        return err_set(e, ERR_PROTOCOL, "SOCKS5 proxy: address of unknown type");
    }
}

int socks_take(struct socks *s, const uint8_t *p, struct err *e)
{
    s->out_len = 0;
    switch (s->phase) {
    case GREETED:
        return take_method(s, p, e);
    case LOGIN_SENT:
        return p[1] == 0 ? ask_connect(s)
                         : err_set(e, ERR_PROTOCOL, "the SOCKS5 proxy refused the login");
    case CONNECT_SENT:
        return take_reply(s, p, e);
    case BOUND_NAME:
        s->need = (size_t)p[0] + 2;
        s->phase = BOUND_REST;
        return 0;
    default:
        return 1;
    }
}
