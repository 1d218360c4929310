#include "lib/peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "yenc/yenc.h"

struct session {
    struct peer *p;
    unsigned slot;
    int fd;
    SSL *ssl;
    char in[8192];
    size_t in_len;
    bool dead;
    bool logged_in;
};

uint8_t peer_byte(uint64_t offset)
{
    return (uint8_t)((offset * 2654435761u) >> 11);
}

unsigned peer_hits(struct peer *p, unsigned article)
{
    return atomic_load(&p->hits[article]);
}

/* ---- bytes ---- */

static void put_raw(struct session *s, const char *bytes, size_t n)
{
    while (n > 0 && !s->dead && !atomic_load(&s->p->stop)) {
        ssize_t k = s->ssl != NULL ? SSL_write(s->ssl, bytes, n > 16000 ? 16000 : (int)n)
                                   : send(s->fd, bytes, n, MSG_NOSIGNAL);
        if (k <= 0) {
            s->dead = true;
            return;
        }
        bytes += k;
        n -= (size_t)k;
    }
}

static void put(struct session *s, const char *bytes, size_t n)
{
    if (s->p->plan.fault != PEER_BYTEWISE) {
        put_raw(s, bytes, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        put_raw(s, bytes + i, 1);
    }
}

static void say(struct session *s, const char *line)
{
    char text[1000];
    snprintf(text, sizeof(text), "%s%s", line, s->p->lf_only ? "\n" : "\r\n");
    put(s, text, strlen(text));
}

static bool read_line(struct session *s, char *line, size_t size)
{
    for (;;) {
        char *lf = memchr(s->in, '\n', s->in_len);
        if (lf != NULL) {
            size_t n = (size_t)(lf - s->in);
            snprintf(line, size, "%.*s", (int)(n > 0 && lf[-1] == '\r' ? n - 1 : n), s->in);
            s->in_len -= n + 1;
            memmove(s->in, lf + 1, s->in_len);
            return true;
        }
        if (s->dead || s->in_len == sizeof(s->in)) {
            return false;
        }
        ssize_t k = s->ssl != NULL
                        ? SSL_read(s->ssl, s->in + s->in_len, (int)(sizeof(s->in) - s->in_len))
                        : recv(s->fd, s->in + s->in_len, sizeof(s->in) - s->in_len, 0);
        if (k <= 0) {
            return false;
        }
        s->in_len += (size_t)k;
    }
}

static void nap(void)
{
    struct timespec t = {0, 20000000};
    nanosleep(&t, NULL);
}

static bool peer_gone(struct session *s)
{
    char byte;
    ssize_t k = recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return atomic_load(&s->p->stop) || k == 0 ||
           (k < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* ---- misbehaviour ---- */

static bool due(struct session *s, enum peer_place place, int article)
{
    const struct peer_plan *plan = &s->p->plan;
    if (plan->fault == PEER_OK || plan->fault == PEER_BYTEWISE || plan->place != place ||
        (plan->article >= 0 && article >= 0 && plan->article != article)) {
        return false;
    }
    unsigned fired = atomic_fetch_add(&s->p->fired, 1);
    return plan->times == 0 || fired < plan->times;
}

static void flood(struct session *s)
{
    static const char zeros[65536];
    while (!s->dead && !atomic_load(&s->p->stop)) {
        put_raw(s, zeros, sizeof(zeros));
    }
}

static void endless(struct session *s)
{
    static const char line[] = "this line comes again and again and again and again and again\r\n";
    put(s, "222 0 body\r\n", 12);
    while (!s->dead && !atomic_load(&s->p->stop)) {
        put_raw(s, line, sizeof(line) - 1);
    }
}

/* Ends the session in some way; false: it is to go on. */
static bool misbehave(struct session *s)
{
    const struct peer_plan *plan = &s->p->plan;
    struct linger now = {1, 0};
    switch (plan->fault) {
    case PEER_RST:
        setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        break;
    case PEER_FIN:
        break;
    case PEER_HALF_CLOSE:
        shutdown(s->fd, SHUT_WR);
        while (!peer_gone(s)) {
            nap();
        }
        break;
    case PEER_SILENCE:
        while (!peer_gone(s)) {
            nap();
        }
        break;
    case PEER_DRIP:
        while (!s->dead && !peer_gone(s)) {
            put_raw(s, "x", 1);
            nap();
        }
        break;
    case PEER_NO_CRLF:
        flood(s);
        break;
    case PEER_ENDLESS:
        endless(s);
        break;
    case PEER_SAY:
        put(s, plan->say, strlen(plan->say));
        return false;
    case PEER_SAY_CLOSE:
        put(s, plan->say, strlen(plan->say));
        break;
    default:
        return false;
    }
    s->dead = true;
    return true;
}

/* ---- articles ---- */

static char *make_reply(unsigned article, bool lf_only, bool bad_crc, unsigned named, size_t *len)
{
    static const char name[] = "peer file.bin";
    uint8_t data[PEER_PART];
    for (size_t i = 0; i < PEER_PART; i++) {
        data[i] = peer_byte((uint64_t)article * PEER_PART + i);
    }
    struct yenc_post post = {.name = name,
                             .size = (uint64_t)PEER_PART * PEER_ARTICLES,
                             .begin = (uint64_t)article * PEER_PART,
                             .part = article + 1,
                             .total = PEER_ARTICLES,
                             .line = 128};
    char *reply = malloc(yenc_post_max(&post, PEER_PART) + 100);
    size_t at = (size_t)sprintf(reply, "222 0 <%u@peer> body\r\n", named);
    at += yenc_post_make(&post, data, PEER_PART, (uint8_t *)reply + at);
    if (bad_crc) {
        char *c = NULL;
        for (size_t i = 0; i + 7 < at; i++) {
            if (memcmp(reply + i, "pcrc32=", 7) == 0) {
                c = reply + i + 7;
            }
        }
        PRE(c != NULL);
        *c = *c == '0' ? '1' : '0';
    }
    memcpy(reply + at, ".\r\n", 3);
    at += 3;
    if (lf_only) {
        size_t n = 0;
        for (size_t i = 0; i < at; i++) {
            if (reply[i] != '\r' || i + 1 == at || reply[i + 1] != '\n') {
                reply[n++] = reply[i];
            }
        }
        at = n;
    }
    *len = at;
    return reply;
}

static void send_body(struct session *s, unsigned article)
{
    struct peer *p = s->p;
    enum peer_fault fault = p->plan.fault;
    if (due(s, PEER_BEFORE_BODY, (int)article)) {
        if (misbehave(s) || fault == PEER_SKIP || fault == PEER_SAY) {
            return;
        }
        if (fault == PEER_ONE_AT_A_TIME) {
            nap();
            while (recv(s->fd, s->in, sizeof(s->in), MSG_DONTWAIT) > 0) {
            }
            s->in_len = 0;
        }
    } else {
        fault = PEER_OK;
    }
    size_t len;
    bool other = fault == PEER_SWAP || fault == PEER_OTHER_ID;
    unsigned body = other ? (article + 1) % PEER_ARTICLES : article;
    char *reply = make_reply(body, p->lf_only, fault == PEER_BAD_CRC,
                             fault == PEER_OTHER_ID ? 999 : article, &len);
    if (due(s, PEER_MID_BODY, (int)article)) {
        put(s, reply, len / 2);
        if (p->plan.fault == PEER_SAY) {
            put(s, p->plan.say, strlen(p->plan.say));
        }
        if (!misbehave(s)) {
            put(s, reply + len / 2, len - len / 2);
        }
    } else {
        put(s, reply, len);
        if (fault == PEER_DOUBLE) {
            put(s, reply, len);
        }
    }
    free(reply);
}

/* ---- sessions ---- */

static void on_command(struct session *s, const char *line)
{
    struct peer *p = s->p;
    unsigned article;
    char rest[100];
    if (strncasecmp(line, "AUTHINFO USER ", 14) == 0) {
        if (due(s, PEER_AUTH, -1) && (misbehave(s) || p->plan.fault == PEER_SAY)) {
            return;
        }
        say(s, "381 password please");
    } else if (strncasecmp(line, "AUTHINFO PASS ", 14) == 0) {
        atomic_fetch_add(&p->logins, 1);
        s->logged_in = p->pass != NULL && strcmp(line + 14, p->pass) == 0;
        say(s, s->logged_in ? "281 welcome" : "481 wrong password");
    } else if (strcasecmp(line, "MODE READER") == 0) {
        say(s, "200 reader");
    } else if (strncasecmp(line, "GROUP ", 6) == 0) {
        say(s, strstr(line, "unknown") != NULL ? "411 no such group" : "211 1 1 1 group");
    } else if (strcasecmp(line, "QUIT") == 0) {
        say(s, "205 bye");
        s->dead = true;
    } else if (sscanf(line, "BODY <%u@peer%1[>]", &article, rest) == 2 && article < PEER_ARTICLES) {
        atomic_fetch_add(&p->hits[article], 1);
        if (p->pass != NULL && !s->logged_in) {
            say(s, "480 login first");
        } else if (p->lack_all) {
            say(s, "430 no such article");
        } else {
            send_body(s, article);
        }
    } else if (sscanf(line, "STAT <%u@peer%1[>]", &article, rest) == 2 && article < PEER_ARTICLES) {
        atomic_fetch_add(&p->hits[article], 1);
        char reply[100];
        snprintf(reply, sizeof(reply), p->lack_all ? "430 no" : "223 0 <%u@peer>", article);
        say(s, reply);
    } else if (strncmp(line, "BODY <none", 10) == 0 || strncmp(line, "STAT <none", 10) == 0) {
        say(s, "430 no such article");
    } else {
        atomic_fetch_add(&p->strange, 1);
        say(s, "500 what?");
    }
}

static void talk(struct session *s)
{
    struct peer *p = s->p;
    unsigned now = atomic_fetch_add(&p->open_now, 1) + 1;
    if (now > atomic_load(&p->most_open)) {
        atomic_store(&p->most_open, now);
    }
    if (p->max_conns != 0 && now > p->max_conns) {
        say(s, "502 too many connections for you");
    } else if (!(due(s, PEER_CONNECT, -1) && misbehave(s))) {
        say(s, "200 peer");
        char line[1000];
        while (!s->dead && read_line(s, line, sizeof(line))) {
            on_command(s, line);
        }
    }
    atomic_fetch_sub(&p->open_now, 1);
}

static void run_session(void *arg)
{
    struct session *s = arg;
    bool ok = true;
    if (s->p->ctx != NULL) {
        s->ssl = SSL_new(s->p->ctx);
        SSL_set_fd(s->ssl, s->fd);
        ok = SSL_accept(s->ssl) == 1;
    }
    if (ok) {
        talk(s);
    }
    if (s->ssl != NULL) {
        SSL_free(s->ssl);
        ERR_clear_error();
    }
    atomic_store(&s->p->fds[s->slot], -1);
    close(s->fd);
    free(s);
}

static void run_listener(void *arg)
{
    struct peer *p = arg;
    while (!atomic_load(&p->stop)) {
        struct pollfd fd = {.fd = p->listener, .events = POLLIN};
        if (poll(&fd, 1, 50) <= 0) {
            continue;
        }
        int conn = accept(p->listener, NULL, NULL);
        if (conn < 0) {
            continue;
        }
        PRE(p->thread_count < PEER_CONNS);
        int on = 1;
        setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        struct session *s = calloc(1, sizeof(*s));
        s->p = p;
        s->fd = conn;
        s->slot = p->thread_count;
        atomic_store(&p->fds[s->slot], conn);
        atomic_fetch_add(&p->sessions, 1);
        uv_thread_create(&p->threads[p->thread_count++], run_session, s);
    }
}

static void load_cert(struct peer *p)
{
    char path[1024];
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    snprintf(path, sizeof(path), "%s.crt", p->cert);
    PRE(SSL_CTX_use_certificate_chain_file(ctx, path) == 1);
    snprintf(path, sizeof(path), "%s.key", p->cert);
    PRE(SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM) == 1);
    p->ctx = ctx;
}

void peer_start(struct peer *p)
{
    signal(SIGPIPE, SIG_IGN); /* OpenSSL writes with write(2) */
    if (p->cert != NULL) {
        load_cert(p);
    }
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    PRE(bind(p->listener, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(p->listener, 100) == 0);
    getsockname(p->listener, (struct sockaddr *)&a, &len);
    p->port = ntohs(a.sin_port);
    for (unsigned i = 0; i < PEER_CONNS; i++) {
        atomic_init(&p->fds[i], -1);
    }
    uv_thread_create(&p->thread, run_listener, p);
}

void peer_stop(struct peer *p)
{
    atomic_store(&p->stop, true);
    shutdown(p->listener, SHUT_RDWR); /* wakes its thread */
    uv_thread_join(&p->thread);
    for (unsigned i = 0; i < p->thread_count; i++) {
        int fd = atomic_load(&p->fds[i]);
        if (fd >= 0) {
            shutdown(fd, SHUT_RDWR);
        }
        uv_thread_join(&p->threads[i]);
    }
    close(p->listener);
    SSL_CTX_free(p->ctx);
    p->ctx = NULL;
}
