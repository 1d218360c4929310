#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "lib/certs.h"
#include "lib/dir.h"
#include "lib/rng.h"
#include "net/listen.h"
#include "net/stream.h"

/* One end of a conversation: sends `total` patterned bytes, checks what it receives, counts its callbacks. */
struct end {
    struct net_stream stream;
    uint64_t to_send, sent;
    uint64_t received;
    uint64_t wrong;    /* bytes that were not the pattern */
    unsigned take_max; /* bytes taken per read call; 0: all */
    unsigned ready, eof, closed;
    bool fin_when_done;
    bool close_on_eof;
    bool resume_later;
    uv_timer_t timer;
    struct err why;
};

static uv_loop_t loop;
static struct net_loop nl;
static struct dir dir;
static char ca[600], good[600];

static uint8_t pattern(uint64_t i)
{
    return (uint8_t)((i * 2654435761u) >> 13);
}

static void pump(struct end *e)
{
    static uint8_t chunk[50000];
    while (e->sent < e->to_send) {
        size_t n = sizeof(chunk);
        if (e->to_send - e->sent < n) {
            n = (size_t)(e->to_send - e->sent);
        }
        for (size_t i = 0; i < n; i++) {
            chunk[i] = pattern(e->sent + i);
        }
        size_t took = net_stream_send(&e->stream, chunk, n);
        e->sent += took;
        if (took < n) {
            return;
        }
    }
    if (e->fin_when_done) {
        net_stream_shutdown(&e->stream);
    }
}

static void on_ready(struct net_stream *s)
{
    struct end *e = s->owner;
    e->ready++;
    if (e->to_send > 0) {
        pump(e);
    }
}

static void on_resume(uv_timer_t *t)
{
    struct end *e = t->data;
    net_stream_resume(&e->stream);
}

static size_t on_read(struct net_stream *s, const uint8_t *p, size_t n)
{
    struct end *e = s->owner;
    size_t take = e->take_max != 0 && e->take_max < n ? e->take_max : n;
    for (size_t i = 0; i < take; i++) {
        e->wrong += p[i] != pattern(e->received + i);
    }
    e->received += take;
    if (take < n) {
        if (e->resume_later) {
            uv_timer_start(&e->timer, on_resume, 1, 0);
        } else {
            net_stream_resume(s); /* from within: comes again in a later turn */
        }
    }
    return take;
}

static void on_eof(struct net_stream *s)
{
    struct end *e = s->owner;
    e->eof++;
    if (e->close_on_eof) {
        net_stream_close(s);
    }
}

static void on_writable(struct net_stream *s)
{
    pump(s->owner);
}

static void on_closed(struct net_stream *s, const struct err *why)
{
    struct end *e = s->owner;
    e->closed++;
    e->why = *why;
    uv_close((uv_handle_t *)&e->timer, NULL);
}

static const struct net_stream_type end_type = {.ready = on_ready,
                                                .read = on_read,
                                                .eof = on_eof,
                                                .writable = on_writable,
                                                .closed = on_closed};

static void open_end(struct end *e, int fd, struct net_tls *tls, const char *host)
{
    struct err err = {0};
    uv_timer_init(&loop, &e->timer);
    e->timer.data = e;
    TEST_ASSERT_EQUAL_INT_MESSAGE(
        0, net_stream_open(&e->stream, &nl, fd, tls, host, &end_type, e, &err), err.msg);
}

static void make_pair(int fds[2])
{
    TEST_ASSERT_EQUAL_INT(0,
                          socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
}

static void tls_pair(struct net_tls *client, struct net_tls *server, const char *cert)
{
    struct err err = {0};
    char crt[700], key[700];
    snprintf(crt, sizeof(crt), "%s.crt", cert);
    snprintf(key, sizeof(key), "%s.key", cert);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, net_tls_init_server(server, crt, key, &err), err.msg);
    char root[700];
    snprintf(root, sizeof(root), "%s.crt", ca);
    struct net_tls_client opts = {.ca_file = root};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, net_tls_init_client(client, &opts, &err), err.msg);
}

void setUp(void)
{
    uv_loop_init(&loop);
    TEST_ASSERT_EQUAL_INT(0, net_loop_init(&nl, &loop));
}

void tearDown(void)
{
    net_loop_close(&nl, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    TEST_ASSERT_EQUAL_INT(0, uv_loop_close(&loop));
}

/* A large transfer in both directions at once arrives byte for byte, whatever amounts the receiver takes and however
 * late it goes on; both ends learn of the other's FIN, and each is closed exactly once. */
static void transfer(bool tls, unsigned take_max, bool later, uint64_t total)
{
    struct net_tls client_tls = {0}, server_tls = {0};
    if (tls) {
        tls_pair(&client_tls, &server_tls, good);
    }
    struct end a = {.to_send = total, .fin_when_done = true};
    struct end b = {
        .to_send = total, .take_max = take_max, .resume_later = later, .fin_when_done = true};
    int fds[2];
    make_pair(fds);
    open_end(&a, fds[0], tls ? &client_tls : NULL, "localhost");
    open_end(&b, fds[1], tls ? &server_tls : NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT); /* ends when both have said and heard everything */
    TEST_ASSERT_TRUE(a.eof == 1 && b.eof == 1);
    net_stream_close(&a.stream);
    net_stream_close(&b.stream);
    uv_run(&loop, UV_RUN_DEFAULT);
    TEST_ASSERT_EQUAL_UINT64(total, a.received);
    TEST_ASSERT_EQUAL_UINT64(total, b.received);
    TEST_ASSERT_EQUAL_UINT64(0, a.wrong + b.wrong);
    TEST_ASSERT_EQUAL_UINT(1, a.ready);
    TEST_ASSERT_EQUAL_UINT(1, a.closed);
    TEST_ASSERT_EQUAL_UINT(1, b.closed);
    TEST_ASSERT_EQUAL_INT(0, b.why.code);
    if (tls) {
        net_tls_close(&client_tls);
        net_tls_close(&server_tls);
    }
}

static void test_plain_and_tls_carry_bytes(void)
{
    for (int tls = 0; tls <= 1; tls++) {
        transfer(tls, 0, false, 8000000);
        transfer(tls, 7001, false, 3000000);
        transfer(tls, 1000, true, 300000);
        transfer(tls, 1, false, 3000);
        transfer(tls, 0, false, 1);
    }
}

/* A client refuses a certificate that is expired, of another host, by an unknown authority or not yet valid, says so
 * in words, and has sent nothing the server could read. Without verification the same connection works. */
static void refuse(const struct certs_want *want, const char *host, const char *words)
{
    char cert[600];
    snprintf(cert, sizeof(cert), "%s/bad", dir.path);
    certs_make(cert, want);
    for (int no_verify = 0; no_verify <= 1; no_verify++) {
        struct net_tls client_tls, server_tls;
        tls_pair(&client_tls, &server_tls, cert);
        if (no_verify) {
            struct err err = {0};
            struct net_tls_client opts = {.no_verify = true};
            net_tls_close(&client_tls);
            TEST_ASSERT_EQUAL_INT(0, net_tls_init_client(&client_tls, &opts, &err));
        }
        struct end a = {.to_send = 100, .fin_when_done = true, .close_on_eof = true};
        struct end b = {.close_on_eof = true};
        int fds[2];
        make_pair(fds);
        open_end(&a, fds[0], &client_tls, host);
        open_end(&b, fds[1], &server_tls, NULL);
        uv_run(&loop, UV_RUN_DEFAULT);
        TEST_ASSERT_EQUAL_UINT64(no_verify ? 100 : 0, b.received);
        TEST_ASSERT_EQUAL_UINT(1, a.closed);
        TEST_ASSERT_EQUAL_INT(no_verify ? 0 : ERR_CERT, a.why.code);
        if (!no_verify) {
            TEST_ASSERT_NOT_NULL_MESSAGE(strstr(a.why.msg, words), a.why.msg);
            TEST_ASSERT_NULL(client_tls.session);
        }
        net_tls_close(&client_tls);
        net_tls_close(&server_tls);
    }
}

static void test_bad_certificates_are_refused(void)
{
    const char *names = "DNS:localhost,IP:127.0.0.1";
    struct certs_want expired = {names, -7200, -3600, ca};
    struct certs_want early = {names, 3600, 7200, ca};
    struct certs_want other = {"DNS:news.example.net", -3600, 3600, ca};
    struct certs_want self = {names, -3600, 3600, NULL};
    refuse(&expired, "localhost", "expired");
    refuse(&early, "localhost", "not yet valid");
    refuse(&other, "localhost", "ostname mismatch");
    refuse(&other, "127.0.0.1", "IP address mismatch");
    refuse(&self, "localhost", "self-signed certificate");
}

/* The second connection of a client context resumes the first one's session, in TLS 1.3 and 1.2. */
static void test_sessions_are_resumed(void)
{
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        struct net_tls client_tls, server_tls;
        tls_pair(&client_tls, &server_tls, good);
        SSL_CTX_set_max_proto_version(client_tls.ctx, version);
        for (int round = 0; round < 2; round++) {
            struct end a = {0}, b = {.to_send = 1000, .close_on_eof = true};
            int fds[2];
            make_pair(fds);
            open_end(&a, fds[0], &client_tls, "localhost");
            open_end(&b, fds[1], &server_tls, NULL);
            while (a.received < 1000) {
                TEST_ASSERT_TRUE(uv_run(&loop, UV_RUN_ONCE));
            }
            char text[100];
            net_stream_describe(&a.stream, text, sizeof(text));
            TEST_ASSERT_EQUAL_INT_MESSAGE(round == 1, strstr(text, ", resumed") != NULL, text);
            net_stream_close(&a.stream);
            uv_run(&loop, UV_RUN_DEFAULT);
            TEST_ASSERT_EQUAL_UINT(1, b.closed);
        }
        net_tls_close(&client_tls);
        net_tls_close(&server_tls);
    }
}

/* A peer that speaks plain text, only TLS 1.1, or no common cipher, is told from a broken certificate. */
static void test_no_agreement_is_said_in_words(void)
{
    static const char *const words[] = {"does not speak TLS", "TLS version", "no common cipher"};
    for (int kind = 0; kind < 3; kind++) {
        struct net_tls client_tls, server_tls;
        tls_pair(&client_tls, &server_tls, good);
        struct end a = {.to_send = 10}, b = {.to_send = 1000, .close_on_eof = true};
        if (kind == 1) {
            SSL_CTX_set_min_proto_version(server_tls.ctx, TLS1_VERSION);
            SSL_CTX_set_max_proto_version(server_tls.ctx, TLS1_1_VERSION);
            SSL_CTX_set_security_level(server_tls.ctx, 0);
        } else if (kind == 2) {
            SSL_CTX_set_max_proto_version(server_tls.ctx, TLS1_2_VERSION);
            SSL_CTX_set_cipher_list(server_tls.ctx, "ECDHE-ECDSA-CHACHA20-POLY1305");
            SSL_CTX_set_cipher_list(client_tls.ctx, "ECDHE-ECDSA-AES128-GCM-SHA256");
        }
        int fds[2];
        make_pair(fds);
        open_end(&a, fds[0], &client_tls, "localhost");
        open_end(&b, fds[1], kind == 0 ? NULL : &server_tls, NULL);
        uv_run(&loop, UV_RUN_DEFAULT);
        TEST_ASSERT_EQUAL_INT(ERR_TLS, a.why.code);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(a.why.msg, words[kind]), a.why.msg);
        TEST_ASSERT_EQUAL_UINT(1, b.closed);
        net_tls_close(&client_tls);
        net_tls_close(&server_tls);
    }
}

/* T3: the peer changes its keys in the middle (TLS 1.3 KeyUpdate, also asking for ours); not a byte is lost. */
static void test_key_update(void)
{
    struct net_tls client_tls, server_tls;
    tls_pair(&client_tls, &server_tls, good);
    struct end a = {.to_send = 500000}, b = {.to_send = 500000};
    int fds[2];
    make_pair(fds);
    open_end(&a, fds[0], &client_tls, "localhost");
    open_end(&b, fds[1], &server_tls, NULL);
    for (unsigned i = 0; a.received < 500000 || b.received < 500000; i++) {
        TEST_ASSERT_TRUE(uv_run(&loop, UV_RUN_ONCE));
        if (b.ready && i % 4 == 0 && i < 40) {
            SSL_key_update(b.stream.ssl,
                           i % 8 == 0 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
            b.to_send += 1000; /* it travels with the next bytes */
            pump(&b);
        }
    }
    net_stream_close(&a.stream);
    net_stream_close(&b.stream);
    uv_run(&loop, UV_RUN_DEFAULT);
    TEST_ASSERT_EQUAL_UINT64(0, a.wrong + b.wrong);
    TEST_ASSERT_EQUAL_INT(0, a.why.code);
    net_tls_close(&client_tls);
    net_tls_close(&server_tls);
}

/* Silence ends a stream after its idle time, in the handshake and later, but not while it is paused. */
static void test_silence_times_out(void)
{
    struct net_tls client_tls, server_tls;
    tls_pair(&client_tls, &server_tls, good);
    int fds[2];
    make_pair(fds);
    struct end a = {0};
    open_end(&a, fds[0], &client_tls, "localhost");
    net_stream_set_idle(&a.stream, 20);
    uv_run(&loop, UV_RUN_DEFAULT);
    TEST_ASSERT_EQUAL_INT(UV_ETIMEDOUT, a.why.code);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(a.why.msg, "handshake"), a.why.msg);
    close(fds[1]);

    make_pair(fds);
    struct end c = {0};
    open_end(&c, fds[0], NULL, NULL);
    net_stream_set_idle(&c.stream, 20);
    while (!c.ready) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    net_stream_pause(&c.stream);
    for (uint64_t until = uv_now(&loop) + 100; uv_now(&loop) < until;) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    TEST_ASSERT_EQUAL_UINT(0, c.closed);
    net_stream_resume(&c.stream);
    uv_run(&loop, UV_RUN_DEFAULT);
    TEST_ASSERT_EQUAL_INT(UV_ETIMEDOUT, c.why.code);
    close(fds[1]);
    net_tls_close(&client_tls);
    net_tls_close(&server_tls);
}

/* The peer's reset or vanishing in the middle of a handshake or of data ends the stream with a reason. */
static void test_vanished_peers_end_the_stream(void)
{
    struct net_tls client_tls, server_tls;
    tls_pair(&client_tls, &server_tls, good);
    for (int tls = 0; tls <= 1; tls++) {
        int fds[2];
        make_pair(fds);
        struct end a = {0};
        open_end(&a, fds[0], tls ? &client_tls : NULL, "localhost");
        uv_run(&loop, UV_RUN_NOWAIT);
        TEST_ASSERT_EQUAL_INT(3, write(fds[1], "\x16\x03\x03", 3));
        close(fds[1]);
        a.close_on_eof = true;
        uv_run(&loop, UV_RUN_DEFAULT);
        TEST_ASSERT_EQUAL_UINT(1, a.closed);
        TEST_ASSERT_EQUAL_UINT(tls ? 0 : 1, a.eof);
        TEST_ASSERT_TRUE(tls ? a.why.code != 0 : a.why.code == 0);
    }
    net_tls_close(&client_tls);
    net_tls_close(&server_tls);
}

/* Words gathered in one turn leave in one piece; more than the cap is refused whole. */
static void test_writes_are_gathered_under_a_cap(void)
{
    int fds[2];
    make_pair(fds);
    struct end a = {0};
    open_end(&a, fds[0], NULL, NULL);
    for (int i = 0; i < 100; i++) {
        TEST_ASSERT_EQUAL_INT(0, net_stream_write(&a.stream, "BODY <x@y>\r\n", 12));
    }
    static char large[NET_PUT_MAX];
    TEST_ASSERT_EQUAL_INT(ERR_FULL, net_stream_write(&a.stream, large, sizeof(large)));
    TEST_ASSERT_EQUAL_UINT64(1200, net_stream_unsent(&a.stream));
    while (net_stream_unsent(&a.stream) > 0) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    char got[2000];
    TEST_ASSERT_EQUAL_INT(1200, read(fds[1], got, sizeof(got)));
    net_stream_close(&a.stream);
    uv_run(&loop, UV_RUN_DEFAULT);
    close(fds[1]);
}

/* A limited group reads what each refill allows and not a byte more, and nobody in it starves. */
static void test_meter_limits_a_group(void)
{
    enum { STREAMS = 4, REFILL = 40000 };
    struct net_meter meter;
    net_meter_init(&meter);
    net_meter_refill(&meter, true, 0);
    struct end ends[STREAMS] = {0};
    int peers[STREAMS];
    static char data[60000];
    for (unsigned i = 0; i < STREAMS; i++) {
        int fds[2];
        make_pair(fds);
        peers[i] = fds[1];
        TEST_ASSERT_EQUAL_INT((int)sizeof(data), write(fds[1], data, sizeof(data)));
        open_end(&ends[i], fds[0], NULL, NULL);
        net_stream_set_meter(&ends[i].stream, &meter);
    }
    for (int i = 0; i < 10; i++) {
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    uint64_t total = 0;
    for (unsigned refills = 0; refills < 4; refills++) {
        net_meter_refill(&meter, true, REFILL);
        for (int i = 0; i < 50; i++) {
            uv_run(&loop, UV_RUN_NOWAIT);
        }
        uint64_t before = total;
        total = 0;
        for (unsigned i = 0; i < STREAMS; i++) {
            total += ends[i].received;
        }
        TEST_ASSERT_EQUAL_UINT64(REFILL, total - before);
    }
    for (unsigned i = 0; i < STREAMS; i++) {
        TEST_ASSERT_GREATER_THAN_UINT64(20000, ends[i].received);
        net_stream_close(&ends[i].stream);
        close(peers[i]);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    TEST_ASSERT_EQUAL_UINT(0, meter.streams);
}

struct port {
    struct net_listen listen;
    struct end end;
    struct net_tls *tls;
};

static void on_accept(struct net_listen *l, int fd, const char *peer)
{
    struct port *p = l->owner;
    TEST_ASSERT_NOT_NULL(strstr(peer, "127.0.0.1:"));
    open_end(&p->end, fd, p->tls, NULL);
    net_listen_close(l);
}

/* OpenSSL's own client, in another process, talks to our server side with the certificate we made ourselves. */
static void test_foreign_client_reaches_our_server(void)
{
    static const struct net_listen_type type = {.accept = on_accept};
    struct err err = {0};
    struct net_tls tls;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, net_tls_init_server(&tls, NULL, NULL, &err), err.msg);
    struct port p = {.tls = &tls,
                     .end = {.to_send = 2000000, .fin_when_done = true, .close_on_eof = true}};
    TEST_ASSERT_EQUAL_INT_MESSAGE(
        0, net_listen_open(&p.listen, &loop, "127.0.0.1", 0, &type, &p, &err), err.msg);
    char command[200];
    snprintf(
        command, sizeof(command),
        "timeout 20 openssl s_client -quiet -connect 127.0.0.1:%u </dev/null 2>/dev/null | wc -c",
        p.listen.port);
    FILE *client = popen(command, "r");
    TEST_ASSERT_NOT_NULL(client);
    uv_run(&loop, UV_RUN_DEFAULT);
    TEST_ASSERT_EQUAL_UINT(1, p.end.ready);
    unsigned count = 0;
    TEST_ASSERT_EQUAL_INT(1, fscanf(client, "%u", &count));
    TEST_ASSERT_EQUAL_UINT(2000000, count);
    pclose(client);
    net_tls_close(&tls);
}

int main(void)
{
    dir_make(&dir);
    snprintf(ca, sizeof(ca), "%s/ca", dir.path);
    snprintf(good, sizeof(good), "%s/good", dir.path);
    struct certs_want root = {"DNS:ca.test", -3600, 86400, NULL};
    struct certs_want leaf = {"DNS:localhost,IP:127.0.0.1", -3600, 86400, ca};
    certs_make(ca, &root);
    certs_make(good, &leaf);
    UNITY_BEGIN();
    RUN_TEST(test_plain_and_tls_carry_bytes);
    RUN_TEST(test_bad_certificates_are_refused);
    RUN_TEST(test_sessions_are_resumed);
    RUN_TEST(test_no_agreement_is_said_in_words);
    RUN_TEST(test_key_update);
    RUN_TEST(test_silence_times_out);
    RUN_TEST(test_vanished_peers_end_the_stream);
    RUN_TEST(test_writes_are_gathered_under_a_cap);
    RUN_TEST(test_meter_limits_a_group);
    RUN_TEST(test_foreign_client_reaches_our_server);
    int rv = UNITY_END();
    dir_remove(&dir);
    return rv;
}
