#include "net/listen.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "net/addr.h"

enum { BACKLOG = 256, ACCEPTS_PER_TURN = 64, REST_MS = 1000 };

static void on_poll(uv_poll_t *h, int status, int events);

static void on_rested(uv_timer_t *h)
{
    struct net_listen *l = h->data;
    uv_poll_start(&l->poll, UV_READABLE, on_poll);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct net_listen *l = h->data;
    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN && l->fd >= 0; i++) {
        union net_addr peer = {0};
        socklen_t len = sizeof(peer);
        int fd = accept4(l->fd, &peer.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
                uv_poll_stop(&l->poll);
                uv_timer_start(&l->rest, on_rested, REST_MS, 0);
            }
            return; /* all others: that peer is gone again, or there is none */
        }
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        char text[NET_PEER_MAX];
        net_addr_text(&peer, text, sizeof(text));
        l->type->accept(l, fd, text);
    }
}

static int open_socket(const union net_addr *addr, struct err *e)
{
    int fd = socket(addr->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return err_sys(e, -errno, "socket");
    }
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, &addr->any, net_addr_len(addr)) != 0 || listen(fd, BACKLOG) != 0) {
        int rv = -errno;
        close(fd);
        return err_sys(e, rv, "listen");
    }
    return fd;
}

int net_listen_open(struct net_listen *l, uv_loop_t *loop, const char *address, uint16_t port,
                    const struct net_listen_type *type, void *owner, struct err *e)
{
    *l = (struct net_listen){.type = type, .owner = owner};
    union net_addr addr;
    if (net_addr_parse(&addr, address, port) != 0) {
        return err_set(e, ERR_INVALID, "\"%s\" is not a numeric address", address);
    }
    l->fd = open_socket(&addr, e);
    if (l->fd < 0) {
        return err_wrap(e, l->fd, "%s port %u", address, port);
    }
    socklen_t len = sizeof(addr);
    getsockname(l->fd, &addr.any, &len);
    l->port = net_addr_port(&addr);
    int rv = uv_poll_init(loop, &l->poll, l->fd);
    if (rv != 0) {
        close(l->fd);
        return err_sys(e, rv, "poll");
    }
    uv_timer_init(loop, &l->rest);
    l->poll.data = l;
    l->rest.data = l;
    uv_poll_start(&l->poll, UV_READABLE, on_poll);
    return 0;
}

static void on_closed(uv_handle_t *h)
{
    struct net_listen *l = h->data;
    if (--l->handles == 0 && l->type->closed != NULL) {
        l->type->closed(l);
    }
}

void net_listen_close(struct net_listen *l)
{
    if (l->fd < 0) {
        return;
    }
    l->handles = 2;
    uv_close((uv_handle_t *)&l->poll, on_closed);
    uv_close((uv_handle_t *)&l->rest, on_closed);
    close(l->fd);
    l->fd = -1;
}
