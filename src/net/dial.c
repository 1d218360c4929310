/* lookup -> attempts, one more every 250 ms or at a failure -> (SOCKS5 words) -> callback.
 *
 * The object frees itself when its last handle is closed and no lookup runs any more: `refs` counts them. */
#include "net/dial.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/list.h"
#include "base/mem.h"
#include "net/addr.h"
#include "net/socks.h"

enum { ADDRS_MAX = 64, STAGGER_MS = 250 };

struct attempt {
    struct list node;
    struct net_dial *dial;
    uv_poll_t poll;
    int fd;
    union net_addr addr;
};

struct net_dial {
    uv_loop_t *loop;
    net_dial_cb cb; /* NULL: called already, or nobody wants to know */
    void *arg;
    uv_getaddrinfo_t lookup;
    uv_timer_t deadline;
    uv_timer_t stagger;
    union net_addr addrs[ADDRS_MAX];
    unsigned naddrs;
    unsigned next;        /* the address to try next */
    struct list attempts; /* under way */
    unsigned refs;
    bool done;
    union net_addr bind;
    bool has_bind;
    bool has_socks;
    struct socks socks;
    uint8_t in[SOCKS_IN_MAX];
    size_t in_len;
    int receive_bytes;
    unsigned timeout_ms;
    char name[300]; /* "host:port", for messages */
    struct err why; /* of the first attempt that failed */
};

static void unref(struct net_dial *d)
{
    if (--d->refs == 0) {
        mem_free(d);
    }
}

static void on_timer_closed(uv_handle_t *h)
{
    unref(h->data);
}

static void on_attempt_closed(uv_handle_t *h)
{
    struct attempt *a = h->data;
    unref(a->dial);
    mem_free(a);
}

static void drop_attempt(struct attempt *a)
{
    list_remove(&a->node);
    if (a->fd >= 0) {
        close(a->fd);
        a->fd = -1;
    }
    uv_close((uv_handle_t *)&a->poll, on_attempt_closed);
}

static void end(struct net_dial *d, int fd)
{
    PRE(!d->done);
    d->done = true;
    struct list *node;
    while ((node = list_pop_front(&d->attempts)) != NULL) {
        drop_attempt(LIST_ENTRY(node, struct attempt, node));
    }
    uv_cancel((uv_req_t *)&d->lookup);
    uv_close((uv_handle_t *)&d->deadline, on_timer_closed);
    uv_close((uv_handle_t *)&d->stagger, on_timer_closed);
    net_dial_cb cb = d->cb;
    d->cb = NULL;
    if (cb != NULL) {
        cb(d->arg, fd, &d->why);
    } else if (fd >= 0) {
        close(fd);
    }
}

static void end_with(struct net_dial *d, int code, const char *text)
{
    err_set(&d->why, code, "%s: %s", d->name, text);
    end(d, -1);
}

void net_dial_cancel(struct net_dial *d)
{
    d->cb = NULL;
    end(d, -1);
}

static void on_deadline(uv_timer_t *t)
{
    end_with(t->data, UV_ETIMEDOUT, "connecting took too long");
}

/* ---- SOCKS5 ---- */

static void win(struct attempt *a)
{
    struct net_dial *d = a->dial;
    int fd = a->fd;
    a->fd = -1;
    uv_poll_stop(&a->poll); /* the descriptor goes on to live in another handle */
    err_clear(&d->why);
    end(d, fd);
}

static void on_proxy(uv_poll_t *h, int status, int events)
{
    struct attempt *a = h->data;
    struct net_dial *d = a->dial;
    (void)events;
    ssize_t got = status < 0 ? -1 : recv(a->fd, d->in + d->in_len, d->socks.need - d->in_len, 0);
    if (got < 0 && status == 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        end_with(d, got == 0 ? UV_EOF : status < 0 ? status : -errno, "the SOCKS5 proxy hung up");
        return;
    }
    d->in_len += (size_t)got;
    if (d->in_len < d->socks.need) {
        return;
    }
    d->in_len = 0;
    struct err e = {0};
    int rv = socks_take(&d->socks, d->in, &e);
    if (rv < 0) {
        end_with(d, rv, e.msg);
    } else if (rv == 1) {
        win(a);
    } else if (d->socks.out_len > 0 && send(a->fd, d->socks.out, d->socks.out_len, MSG_NOSIGNAL) !=
                                           (ssize_t)d->socks.out_len) {
        end_with(d, UV_EIO, "the SOCKS5 proxy takes no bytes");
    }
}

static void talk_to_proxy(struct attempt *a)
{
    struct net_dial *d = a->dial;
    list_remove(&a->node);
    struct list *node;
    while ((node = list_pop_front(&d->attempts)) != NULL) {
        drop_attempt(LIST_ENTRY(node, struct attempt, node));
    }
    list_push_back(&d->attempts, &a->node);
    uv_timer_stop(&d->stagger);
    if (send(a->fd, d->socks.out, d->socks.out_len, MSG_NOSIGNAL) != (ssize_t)d->socks.out_len) {
        end_with(d, UV_EIO, "the SOCKS5 proxy takes no bytes");
        return;
    }
    uv_poll_start(&a->poll, UV_READABLE, on_proxy);
}

/* ---- attempts ---- */

static void try_next(struct net_dial *d);

static void note_failure(struct net_dial *d, const union net_addr *addr, int code)
{
    if (d->why.code == 0) {
        char text[80];
        net_addr_text(addr, text, sizeof(text));
        err_sys(&d->why, code, "%s: connect to %s", d->name, text);
    }
}

static void on_connect(uv_poll_t *h, int status, int events)
{
    struct attempt *a = h->data;
    struct net_dial *d = a->dial;
    (void)events;
    int code = 0;
    socklen_t len = sizeof(code);
    getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &code, &len);
    if (status < 0 || code != 0) {
        note_failure(d, &a->addr, code != 0 ? -code : status);
        drop_attempt(a);
        try_next(d);
        return;
    }
    uv_poll_stop(&a->poll);
    if (d->has_socks) {
        talk_to_proxy(a);
    } else {
        win(a);
    }
}

static int open_socket(const struct net_dial *d, const union net_addr *addr)
{
    int fd = socket(addr->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    int on = 1, idle_s = 60, every_s = 10, times = 6;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
    if (d->receive_bytes > 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &d->receive_bytes, sizeof(d->receive_bytes));
    }
    if ((d->has_bind && bind(fd, &d->bind.any, net_addr_len(&d->bind)) != 0) ||
        (connect(fd, &addr->any, net_addr_len(addr)) != 0 && errno != EINPROGRESS)) {
        int rv = -errno;
        close(fd);
        return rv;
    }
    return fd;
}

static int begin_attempt(struct net_dial *d, const union net_addr *addr)
{
    struct attempt *a = mem_alloc(sizeof(*a));
    if (a == NULL) {
        return UV_ENOMEM;
    }
    a->dial = d;
    a->addr = *addr;
    a->fd = open_socket(d, addr);
    int rv = a->fd < 0 ? a->fd : uv_poll_init(d->loop, &a->poll, a->fd);
    if (rv != 0) {
        if (a->fd >= 0) {
            close(a->fd);
        }
        mem_free(a);
        return rv;
    }
    d->refs++;
    a->poll.data = a;
    list_init(&a->node);
    list_push_back(&d->attempts, &a->node);
    uv_poll_start(&a->poll, UV_WRITABLE, on_connect);
    return 0;
}

static void on_stagger(uv_timer_t *t)
{
    try_next(t->data);
}

static void try_next(struct net_dial *d)
{
    while (d->next < d->naddrs) {
        const union net_addr *addr = &d->addrs[d->next++];
        int rv = begin_attempt(d, addr);
        if (rv == 0) {
            uv_timer_start(&d->stagger, on_stagger, STAGGER_MS, 0);
            return;
        }
        note_failure(d, addr, rv);
    }
    uv_timer_stop(&d->stagger);
    if (list_empty(&d->attempts)) {
        end(d, -1);
    }
}

/* ---- the lookup ---- */

static void take_addrs(struct net_dial *d, const struct addrinfo *list, int family)
{
    for (const struct addrinfo *i = list; i != NULL && d->naddrs < ADDRS_MAX; i = i->ai_next) {
        if (i->ai_family == family && i->ai_addrlen <= sizeof(d->addrs[0])) {
            memcpy(&d->addrs[d->naddrs++], i->ai_addr, i->ai_addrlen);
        }
    }
}

/* The resolver's order decides which family comes first (RFC 6724); then they take turns. */
static void interleave(struct net_dial *d, const struct addrinfo *list)
{
    int first = list != NULL ? list->ai_family : AF_INET;
    take_addrs(d, list, first);
    unsigned half = d->naddrs;
    take_addrs(d, list, first == AF_INET ? AF_INET6 : AF_INET);
    union net_addr mixed[ADDRS_MAX];
    unsigned a = 0, b = half, n = 0;
    while (n < d->naddrs) {
        if (a < half) {
            mixed[n++] = d->addrs[a++];
        }
        if (b < d->naddrs) {
            mixed[n++] = d->addrs[b++];
        }
    }
    memcpy(d->addrs, mixed, n * sizeof(mixed[0]));
}

static void on_lookup(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
    struct net_dial *d = req->data;
    if (!d->done && status == 0) {
        interleave(d, list);
    }
    uv_freeaddrinfo(list);
    if (!d->done) {
        if (status != 0) {
            end_with(d, status, err_text(status));
        } else if (d->naddrs == 0) {
            end_with(d, UV_EAI_NODATA, "no address");
        } else {
            try_next(d);
        }
    }
    unref(d);
}

/* ---- begin ---- */

static int take_opts(struct net_dial *d, const struct net_dial_opts *o, struct err *e)
{
    snprintf(d->name, sizeof(d->name), "%s:%u", o->host, o->port);
    d->receive_bytes = o->receive_bytes;
    d->timeout_ms = o->timeout_ms;
    if (o->bind_address != NULL && o->bind_address[0] != '\0') {
        if (net_addr_parse(&d->bind, o->bind_address, 0) != 0) {
            return err_set(e, ERR_INVALID, "bind address \"%s\" is not a numeric address",
                           o->bind_address);
        }
        d->has_bind = true;
    }
    if (o->socks_host != NULL && o->socks_host[0] != '\0') {
        d->has_socks = true;
        return socks_init(&d->socks, o->host, o->port, o->socks_user, o->socks_pass, e);
    }
    return 0;
}

struct net_dial *net_dial_start(uv_loop_t *loop, const struct net_dial_opts *opts, net_dial_cb cb,
                                void *arg, struct err *e)
{
    struct net_dial *d = mem_zalloc(1, sizeof(*d));
    if (d == NULL) {
        err_sys(e, UV_ENOMEM, "connect");
        return NULL;
    }
    d->loop = loop;
    d->cb = cb;
    d->arg = arg;
    list_init(&d->attempts);
    if (take_opts(d, opts, e) != 0) {
        goto err_after_alloc;
    }
    struct addrinfo hints = {.ai_family = d->has_bind ? d->bind.any.sa_family : opts->family,
                             .ai_socktype = SOCK_STREAM};
    char port[8];
    snprintf(port, sizeof(port), "%u", d->has_socks ? opts->socks_port : opts->port);
    d->lookup.data = d;
    int rv = uv_getaddrinfo(loop, &d->lookup, on_lookup,
                            d->has_socks ? opts->socks_host : opts->host, port, &hints);
    if (rv != 0) {
        err_sys(e, rv, "%s", d->name);
        goto err_after_alloc;
    }
    uv_timer_init(loop, &d->deadline);
    uv_timer_init(loop, &d->stagger);
    d->deadline.data = d;
    d->stagger.data = d;
    d->refs = 3;
    if (d->timeout_ms > 0) {
        uv_timer_start(&d->deadline, on_deadline, d->timeout_ms, 0);
    }
    return d;

err_after_alloc:
    mem_free(d);
    return NULL;
}
