#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "base/mem.h"
#include "net/addr.h"
#include "net/dial.h"
#include "net/socks.h"

static uv_loop_t loop;

/* ---- a resolver of our own, in the place of libc's ---- */

static const char *answer; /* "127.0.0.2 127.0.0.1", or NULL: no such name */

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **res)
{
    (void)node;
    *res = NULL;
    if (answer == NULL) {
        return EAI_NONAME;
    }
    char words[4000];
    snprintf(words, sizeof(words), "%s", answer);
    char *save = NULL;
    for (char *w = strtok_r(words, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
        struct {
            struct addrinfo info;
            union net_addr addr;
        } *item = calloc(1, sizeof(*item));
        if (net_addr_parse(&item->addr, w, (uint16_t)atoi(service)) != 0 ||
            (hints->ai_family != AF_UNSPEC && hints->ai_family != item->addr.any.sa_family)) {
            free(item);
            continue;
        }
        item->info.ai_family = item->addr.any.sa_family;
        item->info.ai_addr = &item->addr.any;
        item->info.ai_addrlen = net_addr_len(&item->addr);
        struct addrinfo **tail = res;
        while (*tail != NULL) {
            tail = &(*tail)->ai_next;
        }
        *tail = &item->info;
    }
    return 0;
}

void freeaddrinfo(struct addrinfo *res)
{
    while (res != NULL) {
        struct addrinfo *next = res->ai_next;
        free(res);
        res = next;
    }
}

/* ---- helpers ---- */

struct outcome {
    int calls;
    int fd;
    struct err why;
};

static void on_dialled(void *arg, int fd, const struct err *why)
{
    struct outcome *o = arg;
    o->calls++;
    o->fd = fd;
    o->why = *why;
}

static int listener(const char *address, uint16_t *port, int backlog)
{
    union net_addr a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    TEST_ASSERT_EQUAL_INT(0, net_addr_parse(&a, address, *port));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    TEST_ASSERT_EQUAL_INT(0, bind(fd, &a.any, net_addr_len(&a)));
    TEST_ASSERT_EQUAL_INT(0, listen(fd, backlog));
    socklen_t len = sizeof(a);
    getsockname(fd, &a.any, &len);
    *port = net_addr_port(&a);
    return fd;
}

static struct outcome dial(const struct net_dial_opts *opts)
{
    struct outcome o = {.fd = -1};
    struct err e = {0};
    TEST_ASSERT_NOT_NULL_MESSAGE(net_dial_start(&loop, opts, on_dialled, &o, &e), e.msg);
    TEST_ASSERT_EQUAL_INT(0, o.calls);
    uv_run(&loop, UV_RUN_DEFAULT);
    TEST_ASSERT_EQUAL_INT(1, o.calls);
    return o;
}

void setUp(void)
{
    uv_loop_init(&loop);
}

void tearDown(void)
{
    TEST_ASSERT_EQUAL_INT(0, uv_loop_close(&loop));
}

/* ---- tests ---- */

/* A name with one good address behind many that refuse is reached; the error of a name without any says where it was
 * tried; a name that does not exist says so. */
static void test_every_address_is_tried(void)
{
    uint16_t port = 0;
    int server = listener("127.0.0.1", &port, 10);
    char many[2000] = "";
    for (int i = 0; i < 49; i++) {
        char one[32];
        snprintf(one, sizeof(one), "127.0.1.%d ", i + 1);
        strcat(many, one);
    }
    struct net_dial_opts opts = {.host = "news.test", .port = port, .timeout_ms = 20000};
    answer = strcat(many, "127.0.0.1");
    struct outcome o = dial(&opts);
    TEST_ASSERT_GREATER_OR_EQUAL_INT_MESSAGE(0, o.fd, o.why.msg);
    union net_addr peer;
    socklen_t len = sizeof(peer);
    TEST_ASSERT_EQUAL_INT(0, getpeername(o.fd, &peer.any, &len));
    TEST_ASSERT_EQUAL_UINT(htonl(INADDR_LOOPBACK), peer.v4.sin_addr.s_addr);
    TEST_ASSERT_TRUE(fcntl(o.fd, F_GETFL) & O_NONBLOCK);
    close(o.fd);
    close(server);

    answer = "127.0.0.1 127.0.1.1";
    o = dial(&opts);
    TEST_ASSERT_EQUAL_INT(-1, o.fd);
    TEST_ASSERT_EQUAL_INT(UV_ECONNREFUSED, o.why.code);
    char words[100];
    snprintf(words, sizeof(words), "news.test:%u: connect to 127.0.0.1:%u", port, port);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(o.why.msg, words), o.why.msg);

    answer = NULL;
    o = dial(&opts);
    TEST_ASSERT_EQUAL_INT(UV_EAI_NONAME, o.why.code);
    answer = "";
    o = dial(&opts);
    TEST_ASSERT_EQUAL_INT(UV_EAI_NODATA, o.why.code);
}

/* An address that neither answers nor refuses holds the others up for a quarter of a second only; alone, it ends with
 * the time limit. A family with no route does no harm. */
static void test_silent_addresses_are_overtaken(void)
{
    uint16_t port = 0;
    int silent = listener("127.0.0.2", &port, 0);
    int fill[4];
    union net_addr a;
    net_addr_parse(&a, "127.0.0.2", port);
    for (int i = 0; i < 4; i++) { /* its queue is full: further SYNs are dropped */
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(fill[i], &a.any, net_addr_len(&a));
    }
    int server = listener("127.0.0.1", &port, 10);
    struct net_dial_opts opts = {.host = "news.test", .port = port, .timeout_ms = 20000};
    answer = "2001:db8::1 127.0.0.2 127.0.0.1";
    struct outcome o = dial(&opts);
    TEST_ASSERT_GREATER_OR_EQUAL_INT_MESSAGE(0, o.fd, o.why.msg);
    close(o.fd);
    answer = "127.0.0.2";
    opts.timeout_ms = 50;
    o = dial(&opts);
    TEST_ASSERT_EQUAL_INT(UV_ETIMEDOUT, o.why.code);
    struct err e = {0};
    struct outcome never = {0};
    struct net_dial *d = net_dial_start(&loop, &opts, on_dialled, &never, &e);
    uv_run(&loop, UV_RUN_ONCE);
    net_dial_cancel(d);
    uv_run(&loop, UV_RUN_DEFAULT);
    TEST_ASSERT_EQUAL_INT(0, never.calls);
    for (int i = 0; i < 4; i++) {
        close(fill[i]);
    }
    close(server);
    close(silent);
}

/* Our side of the connection has the address that was asked for. */
static void test_bind_address_is_used(void)
{
    uint16_t port = 0;
    int server = listener("127.0.0.1", &port, 10);
    answer = "127.0.0.1";
    struct net_dial_opts opts = {
        .host = "news.test", .port = port, .timeout_ms = 5000, .bind_address = "127.0.0.9"};
    struct outcome o = dial(&opts);
    TEST_ASSERT_GREATER_OR_EQUAL_INT_MESSAGE(0, o.fd, o.why.msg);
    union net_addr own;
    socklen_t len = sizeof(own);
    getsockname(o.fd, &own.any, &len);
    TEST_ASSERT_EQUAL_UINT(htonl(0x7f000009), own.v4.sin_addr.s_addr);
    close(o.fd);
    struct err e = {0};
    opts.bind_address = "eth0";
    TEST_ASSERT_NULL(net_dial_start(&loop, &opts, on_dialled, &o, &e));
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, e.code);
    close(server);
}

struct proxy {
    int listener;
    const char *script; /* hex of what to send after each message */
    uint8_t heard[1024];
    size_t heard_len;
};

static void run_proxy(void *arg)
{
    struct proxy *p = arg;
    int fd = accept(p->listener, NULL, NULL);
    char words[400];
    snprintf(words, sizeof(words), "%s", p->script);
    char *save = NULL;
    for (char *w = strtok_r(words, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
        ssize_t got = read(fd, p->heard + p->heard_len, sizeof(p->heard) - p->heard_len);
        p->heard_len += got > 0 ? (size_t)got : 0;
        for (char *c = w; c[0] != '\0'; c += 2) { /* byte by byte: pieces must not matter */
            char hex[3] = {c[0], c[1], 0};
            uint8_t byte = (uint8_t)strtoul(hex, NULL, 16);
            TEST_ASSERT_EQUAL_INT(1, write(fd, &byte, 1));
        }
    }
    close(fd);
}

static struct outcome dial_proxy(struct proxy *p, const char *user)
{
    uint16_t port = 0;
    p->listener = listener("127.0.0.1", &port, 10);
    uv_thread_t thread;
    uv_thread_create(&thread, run_proxy, p);
    answer = "127.0.0.1";
    struct net_dial_opts opts = {.host = "news.test",
                                 .port = 563,
                                 .timeout_ms = 10000,
                                 .socks_host = "proxy.test",
                                 .socks_port = port,
                                 .socks_user = user,
                                 .socks_pass = "secret"};
    struct outcome o = dial(&opts);
    uv_thread_join(&thread);
    close(p->listener);
    return o;
}

/* A SOCKS5 proxy is asked for the host by name, with and without login; the server's first byte behind its answer is
 * left in the socket; a refusal is said in words. */
static void test_socks_proxy(void)
{
    struct proxy plain = {.script = "0500 05000001010203040001ab"};
    struct outcome o = dial_proxy(&plain, NULL);
    TEST_ASSERT_GREATER_OR_EQUAL_INT_MESSAGE(0, o.fd, o.why.msg);
    TEST_ASSERT_EQUAL_UINT64(3 + 5 + 9 + 2, plain.heard_len);
    TEST_ASSERT_EQUAL_MEMORY("\5\1\0\5\1\0\3\x09news.test\x02\x33", plain.heard, plain.heard_len);
    uint8_t first = 0;
    TEST_ASSERT_EQUAL_INT(1, read(o.fd, &first, 1));
    TEST_ASSERT_EQUAL_HEX8(0xab, first);
    close(o.fd);

    struct proxy login = {.script = "0502 0100 050000030361626300500d"};
    o = dial_proxy(&login, "me");
    TEST_ASSERT_GREATER_OR_EQUAL_INT_MESSAGE(0, o.fd, o.why.msg);
    TEST_ASSERT_EQUAL_MEMORY("\5\2\0\2\1\2me\6secret", login.heard, 4 + 11);
    TEST_ASSERT_EQUAL_INT(1, read(o.fd, &first, 1));
    TEST_ASSERT_EQUAL_HEX8(0x0d, first);
    close(o.fd);

    static const struct {
        const char *script, *user, *words;
    } bad[] = {{"0502", NULL, "wants a login"},
               {"0502 0101", "me", "refused the login"},
               {"0500 05050001000000000000", NULL, "connection refused"},
               {"0500 05000009", NULL, "unknown type"},
               {"4854", NULL, "does not speak SOCKS5"},
               {"05", NULL, "hung up"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct proxy p = {.script = bad[i].script};
        o = dial_proxy(&p, bad[i].user);
        TEST_ASSERT_EQUAL_INT(-1, o.fd);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(o.why.msg, bad[i].words), o.why.msg);
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_every_address_is_tried);
    RUN_TEST(test_silent_addresses_are_overtaken);
    RUN_TEST(test_bind_address_is_used);
    RUN_TEST(test_socks_proxy);
    return UNITY_END();
}
