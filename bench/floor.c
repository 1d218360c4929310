/* floor.c - what the work itself costs: drain articles over the same TLS, decode them with our kernels, pwrite them.
 * One thread, bare epoll; no queue, no checks, no policy, no recovery. The engine is measured against it.
 *
 *     bench_floor FILE.nzb --host ADDRESS --port P [--tls] [--bio fd|ahead|mem|wire] [--user U --pass P]
 *                 [--connections N] [--depth D] --out DIR
 *
 * --bio is how OpenSSL gets its bytes: from the descriptor; with read-ahead into a 64 KiB buffer; from a memory BIO
 * that we fill with large reads; or from one buffer for all connections through a BIO of our own ("wire", as in
 * src/net). The default is the last, which the engine uses, so that the comparison is about the engine. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/nzbscan.h"
#include "yenc/yenc.h"

enum {
    WIRE = 128 * 1024,
    RECORD = 16 * 1024,
    ARTICLE = 4 << 20,
    CONNS = 100,
    DEPTH = 64,
    FILES = 1000
};
enum bio { BIO_FD, BIO_AHEAD, BIO_MEM, BIO_WIRE };

struct conn {
    int fd;
    SSL *ssl;
    BIO *in; /* BIO_MEM: what we fill */
    unsigned asked[DEPTH];
    unsigned head, count;
    bool in_body;
    char line[1024];
    size_t line_len;
    struct yenc_article article;
    uint8_t *out;
};

static struct {
    struct scan nzb;
    unsigned next, done;
    unsigned depth;
    enum bio bio;
    SSL_CTX *ctx;
    BIO_METHOD *method;
    uint8_t wire[WIRE], plain[RECORD];
    const uint8_t *at; /* BIO_WIRE: unread bytes of wire */
    size_t left;
    bool may_read;
    int files[FILES];
    int dirfd;
    uint64_t bytes, wire_bytes;
} f;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- articles ---- */

static void ask(struct conn *c)
{
    char out[DEPTH * 300];
    size_t n = 0;
    while (c->count < f.depth && f.next < f.nzb.count) {
        n += (size_t)sprintf(out + n, "BODY <%s>\r\n", f.nzb.segments[f.next].id);
        c->asked[(c->head + c->count++) % DEPTH] = f.next++;
    }
    if (n > 0 &&
        (c->ssl != NULL ? SSL_write(c->ssl, out, (int)n) : send(c->fd, out, n, 0)) != (ssize_t)n) {
        die("write");
    }
}

static void article_done(struct conn *c)
{
    const struct scan_segment *s = &f.nzb.segments[c->asked[c->head]];
    if (f.dirfd >= 0) {
        if (f.files[s->file] == 0) {
            char name[32];
            snprintf(name, sizeof(name), "%u.bin", s->file);
            unlinkat(f.dirfd, name, 0);
            f.files[s->file] = openat(f.dirfd, name, O_RDWR | O_CREAT, 0600);
            if (f.files[s->file] < 0 ||
                posix_fallocate(f.files[s->file], 0, (off_t)c->article.header.size) != 0) {
                die(name);
            }
        }
        if (pwrite(f.files[s->file], c->out, c->article.len, (off_t)c->article.header.begin) !=
            (ssize_t)c->article.len) {
            die("pwrite");
        }
    }
    f.bytes += c->article.len;
    f.wire_bytes += c->article.raw;
    f.done++;
    c->head = (c->head + 1) % DEPTH;
    c->count--;
    c->in_body = false;
    ask(c);
}

static void take(struct conn *c, const uint8_t *p, size_t n)
{
    while (n > 0) {
        if (c->in_body) {
            size_t used;
            enum yenc_feed rv = yenc_article_feed(&c->article, p, n, &used);
            p += used;
            n -= used;
            if (rv == YENC_FEED_DONE) {
                article_done(c);
            }
            continue;
        }
        const uint8_t *lf = memchr(p, '\n', n);
        size_t len = lf != NULL ? (size_t)(lf - p) + 1 : n;
        memcpy(c->line + c->line_len, p, len);
        c->line_len += len;
        p += len;
        n -= len;
        if (lf != NULL) {
            if (memcmp(c->line, "222", 3) != 0) {
                fprintf(stderr, "%.*s", (int)c->line_len, c->line);
                exit(1);
            }
            c->line_len = 0;
            c->in_body = true;
            yenc_article_init(&c->article, false);
            yenc_article_room(&c->article, c->out, ARTICLE);
        }
    }
}

/* ---- bytes ---- */

static int wire_read(BIO *b, char *p, int n)
{
    const struct conn *c = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    if (f.left == 0) {
        ssize_t got = f.may_read ? recv(c->fd, f.wire, WIRE, 0) : -1;
        f.may_read = got == WIRE || (fcntl(c->fd, F_GETFL) & O_NONBLOCK) == 0;
        if (got <= 0) {
            BIO_set_retry_read(b);
            return -1;
        }
        f.at = f.wire;
        f.left = (size_t)got;
    }
    size_t k = (size_t)n < f.left ? (size_t)n : f.left;
    memcpy(p, f.at, k);
    f.at += k;
    f.left -= k;
    return (int)k;
}

static int wire_write(BIO *b, const char *p, int n)
{
    const struct conn *c = BIO_get_data(b);
    return (int)send(c->fd, p, (size_t)n, 0);
}

static long wire_ctrl(BIO *b, int cmd, long num, void *ptr)
{
    (void)b;
    (void)num;
    (void)ptr;
    return cmd == BIO_CTRL_FLUSH;
}

static int wire_create(BIO *b)
{
    BIO_set_init(b, 1);
    return 1;
}

static void drain(struct conn *c)
{
    if (c->ssl == NULL) {
        ssize_t got = recv(c->fd, f.wire, WIRE, 0);
        if (got > 0) {
            take(c, f.wire, (size_t)got);
        }
        return;
    }
    if (c->in != NULL) {
        ssize_t got = recv(c->fd, f.wire, WIRE, 0);
        if (got > 0) {
            BIO_write(c->in, f.wire, (int)got);
        }
    }
    f.may_read = true;
    int got;
    while ((got = SSL_read(c->ssl, f.plain, RECORD)) > 0) {
        take(c, f.plain, (size_t)got);
    }
}

/* ---- sessions ---- */

static void command(struct conn *c, const char *text, const char *expected)
{
    char reply[1024];
    int n = (int)strlen(text);
    if (n > 0 &&
        (c->ssl != NULL ? SSL_write(c->ssl, text, n) : (int)send(c->fd, text, (size_t)n, 0)) != n) {
        die("login");
    }
    f.may_read = true;
    n = c->ssl != NULL ? SSL_read(c->ssl, reply, sizeof(reply))
                       : (int)recv(c->fd, reply, sizeof(reply), 0);
    if (n < 3 || memcmp(reply, expected, 3) != 0) {
        fprintf(stderr, "%.*s", n > 0 ? n : 0, reply);
        exit(1);
    }
}

static void attach_tls(struct conn *c)
{
    c->ssl = SSL_new(f.ctx);
    if (f.bio == BIO_WIRE) {
        BIO *b = BIO_new(f.method);
        BIO_set_data(b, c);
        SSL_set_bio(c->ssl, b, b);
    } else {
        SSL_set_fd(c->ssl, c->fd);
    }
    if (f.bio == BIO_AHEAD) {
        SSL_set_read_ahead(c->ssl, 1);
        SSL_set_default_read_buffer_len(c->ssl, 65536);
    }
    f.may_read = true;
    if (SSL_connect(c->ssl) != 1) {
        die("TLS");
    }
}

static void open_conn(struct conn *c, const char *host, int port, bool tls, const char *user,
                      const char *pass)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, host, &a.sin_addr);
    int on = 1;
    char text[600];
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(c->fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
        die(host);
    }
    if (tls) {
        attach_tls(c);
    }
    command(c, "", "200");
    if (user != NULL) {
        snprintf(text, sizeof(text), "AUTHINFO USER %s\r\n", user);
        command(c, text, "381");
        snprintf(text, sizeof(text), "AUTHINFO PASS %s\r\n", pass);
        command(c, text, "281");
    }
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    if (f.bio == BIO_MEM && tls) {
        c->in = BIO_new(BIO_s_mem());
        BIO_set_mem_eof_return(c->in, -1);
        SSL_set0_rbio(c->ssl, c->in);
    }
    c->out = aligned_alloc(64, ARTICLE);
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run(struct conn *conns, unsigned count)
{
    int ep = epoll_create1(0);
    for (unsigned i = 0; i < count; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &conns[i]};
        epoll_ctl(ep, EPOLL_CTL_ADD, conns[i].fd, &e);
        ask(&conns[i]);
    }
    while (f.done < f.nzb.count) {
        struct epoll_event events[CONNS];
        int n = epoll_wait(ep, events, CONNS, -1);
        for (int i = 0; i < n; i++) {
            drain(events[i].data.ptr);
        }
    }
}

static void report(double began, const struct rusage *before)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    double wall = now() - began;
    double user = seconds(u.ru_utime) - seconds(before->ru_utime);
    double sys = seconds(u.ru_stime) - seconds(before->ru_stime);
    printf(
        "{\"articles\":%u,\"bytes\":%" PRIu64 ",\"wire_bytes\":%" PRIu64
        ",\"wall_s\":%.3f,\"user_s\":%.3f,\"sys_s\":%.3f,\"cpu_s_per_gb\":%.3f,\"mb_per_s\":%.1f,"
        "\"peak_rss_kb\":%ld}\n",
        f.done, f.bytes, f.wire_bytes, wall, user, sys, (user + sys) / ((double)f.wire_bytes / 1e9),
        (double)f.wire_bytes / 1e6 / wall, u.ru_maxrss);
}

static enum bio bio_of(const char *name)
{
    static const char *const names[] = {"fd", "ahead", "mem", "wire"};
    for (unsigned i = 0; i < 4; i++) {
        if (strcmp(name, names[i]) == 0) {
            return i;
        }
    }
    fprintf(stderr, "--bio: fd, ahead, mem or wire\n");
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"host", 1, NULL, 'h'},  {"port", 1, NULL, 'p'},
                                            {"tls", 0, NULL, 't'},   {"bio", 1, NULL, 'b'},
                                            {"user", 1, NULL, 'u'},  {"pass", 1, NULL, 'w'},
                                            {"out", 1, NULL, 'o'},   {"connections", 1, NULL, 'c'},
                                            {"depth", 1, NULL, 'd'}, {0}};
    const char *host = "127.0.0.1", *user = NULL, *pass = "", *out = NULL;
    int port = 119, o;
    bool tls = false;
    unsigned count = 4;
    f.depth = 2;
    f.bio = BIO_WIRE;
    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (o) {
        case 'h':
            host = optarg;
            break;
        case 'p':
            port = atoi(optarg);
            break;
        case 't':
            tls = true;
            break;
        case 'b':
            f.bio = bio_of(optarg);
            break;
        case 'u':
            user = optarg;
            break;
        case 'w':
            pass = optarg;
            break;
        case 'o':
            out = optarg;
            break;
        case 'c':
            count = (unsigned)atoi(optarg);
            break;
        case 'd':
            f.depth = (unsigned)atoi(optarg);
            break;
        default:
            return 2;
        }
    }
    if (optind != argc - 1 || out == NULL || count > CONNS || f.depth > DEPTH) {
        fprintf(stderr, "usage: see the top of bench/floor.c\n");
        return 2;
    }
    scan_load(&f.nzb, argv[optind]);
    f.dirfd = -1;
    if (strcmp(out, "none") != 0) {
        mkdir(out, 0777);
        f.dirfd = open(out, O_RDONLY | O_DIRECTORY);
    }
    f.ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_ciphersuites(f.ctx, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384");
    f.method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "wire");
    BIO_meth_set_read(f.method, wire_read);
    BIO_meth_set_write(f.method, wire_write);
    BIO_meth_set_ctrl(f.method, wire_ctrl);
    BIO_meth_set_create(f.method, wire_create);
    struct rusage before;
    getrusage(RUSAGE_SELF, &before);
    double began = now();
    static struct conn conns[CONNS];
    for (unsigned i = 0; i < count; i++) {
        open_conn(&conns[i], host, port, tls, user, pass);
    }
    run(conns, count);
    report(began, &before);
    return 0;
}
