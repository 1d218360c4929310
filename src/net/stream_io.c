/* The socket under a stream, and OpenSSL's way to it. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/check.h"
#include "base/mem.h"
#include "net/stream_private.h"

int net_bytes_append(struct net_bytes *b, const void *p, size_t n, size_t max)
{
    if (n > max - net_bytes_waiting(b)) {
        return ERR_FULL;
    }
    if (b->at > 0) {
        memmove(b->p, b->p + b->at, net_bytes_waiting(b));
        b->len -= b->at;
        b->at = 0;
    }
    if (b->len + n > b->capacity) {
        size_t capacity = b->capacity > 0 ? b->capacity : 1024;
        while (capacity < b->len + n) {
            capacity *= 2;
        }
        uint8_t *grown = mem_realloc(b->p, capacity, 1);
        if (grown == NULL) {
            return UV_ENOMEM;
        }
        b->p = grown;
        b->capacity = capacity;
    }
    if (n > 0) {
        memcpy(b->p + b->len, p, n);
    }
    b->len += n;
    return 0;
}

void net_bytes_free(struct net_bytes *b)
{
    mem_free(b->p);
    *b = (struct net_bytes){0};
}

/* How much may be read now. A limited stream takes its share of what is left, so that one fast peer does not use up
 * the others' part of every refill; but never a trickle, which would only cost system calls. */
static size_t allowance(struct net_stream *s, size_t n)
{
    struct net_meter *m = s->meter;
    if (m == NULL || !m->limited) {
        return n;
    }
    if (m->allow_bytes <= 0) {
        if (list_empty(&s->meter_node)) {
            list_push_back(&m->waiting, &s->meter_node);
        }
        return 0;
    }
    int64_t share = m->allow_bytes / (m->streams > 0 ? m->streams : 1);
    int64_t most = share > 4096 ? share : m->allow_bytes < 4096 ? m->allow_bytes : 4096;
    return (uint64_t)most < n ? (size_t)most : n;
}

/* > 0: bytes; 0: the peer's end; UV_EAGAIN: nothing more in this turn. A read that came back short has emptied the
 * socket, so the next one would only be told so: it is left out. */
ssize_t net_io_recv(struct net_stream *s, uint8_t *p, size_t n)
{
    size_t most = s->rounds > 0 ? allowance(s, n) : 0;
    if (most == 0) {
        return UV_EAGAIN;
    }
    ssize_t got;
    do {
        got = recv(s->fd, p, most, 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        s->rounds = 0;
        return errno == EWOULDBLOCK ? UV_EAGAIN : -errno;
    }
    s->rounds = (size_t)got < most ? 0 : s->rounds - 1;
    s->bytes_in += (size_t)got;
    if (s->meter != NULL && s->meter->limited) {
        s->meter->allow_bytes -= got;
    }
    s->active_ms = uv_now(s->nl->loop);
    return got;
}

static ssize_t send_iov(struct net_stream *s, struct iovec *iov, size_t count)
{
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = count};
    ssize_t sent;
    do {
        sent = sendmsg(s->fd, &msg, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) {
        return errno == EWOULDBLOCK ? UV_EAGAIN : -errno;
    }
    s->bytes_out += (size_t)sent;
    s->active_ms = uv_now(s->nl->loop);
    return sent;
}

size_t net_io_send(struct net_stream *s, struct net_bytes *first, const uint8_t *p, size_t n)
{
    size_t done = 0;
    while (net_bytes_waiting(first) > 0 || done < n) {
        struct iovec iov[2] = {
            {.iov_base = first->p + first->at, .iov_len = net_bytes_waiting(first)},
            {.iov_base = (void *)(uintptr_t)(p + done), .iov_len = n - done},
        };
        bool skip = iov[0].iov_len == 0;
        ssize_t sent = send_iov(s, iov + (skip ? 1 : 0), n > done && !skip ? 2 : 1);
        if (sent < 0) {
            if (sent != UV_EAGAIN) {
                net_stream_fail(s, (int)sent, "send: %s", err_text((int)sent));
            }
            break;
        }
        size_t head = (size_t)sent < iov[0].iov_len ? (size_t)sent : iov[0].iov_len;
        first->at += head;
        done += (size_t)sent - head;
    }
    if (net_bytes_waiting(first) == 0) {
        first->at = first->len = 0;
    }
    return done;
}

bool net_io_flush(struct net_stream *s, struct net_bytes *b)
{
    net_io_send(s, b, NULL, 0);
    return net_bytes_waiting(b) == 0;
}

/* ---- OpenSSL reads from the loop's wire buffer and writes into `out` ---- */

static int bio_read(BIO *bio, char *p, int n)
{
    struct net_stream *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (n <= 0) {
        return 0;
    }
    if (s->wire_len == 0) {
        ssize_t got = net_io_recv(s, s->nl->wire, NET_WIRE_SIZE);
        if (got == UV_EAGAIN) {
            BIO_set_retry_read(bio);
            return -1;
        }
        if (got <= 0) {
            s->sys_code = (int)got;
            return got == 0 ? 0 : -1;
        }
        s->wire = s->nl->wire;
        s->wire_len = (size_t)got;
    }
    size_t take = (size_t)n < s->wire_len ? (size_t)n : s->wire_len;
    memcpy(p, s->wire, take);
    s->wire += take;
    s->wire_len -= take;
    return (int)take;
}

static int bio_write(BIO *bio, const char *p, int n)
{
    struct net_stream *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (n <= 0) {
        return 0;
    }
    int rv = net_bytes_append(&s->out, p, (size_t)n, NET_OUT_MAX);
    if (rv != 0) {
        s->sys_code = rv;
        return -1;
    }
    return n;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
    (void)bio;
    (void)num;
    (void)ptr;
    return cmd == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

BIO_METHOD *net_bio_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "weir");
    if (m != NULL) {
        BIO_meth_set_read(m, bio_read);
        BIO_meth_set_write(m, bio_write);
        BIO_meth_set_ctrl(m, bio_ctrl);
        BIO_meth_set_create(m, bio_create);
    }
    return m;
}
