#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "lib/asker.h"
#include "lib/certs.h"
#include "lib/dir.h"
#include "lib/fault.h"

static struct dir dir;
static char ca[600], cert[600], other_host[600];
static struct asker_article list[PEER_ARTICLES];
static struct peer p;
static struct asker a;

void setUp(void) {}
void tearDown(void) {}

static void use_ca(struct nntp_server *s)
{
    snprintf(s->ca_file, sizeof(s->ca_file), "%s.crt", ca);
}

/* Every article arrives with the right bytes, each asked for once, with 1 to 20 connections, plain and TLS, pipelined
 * or not, with and without login, from a server that ends lines with LF, and in single bytes. */
static void fetch_all(bool tls, unsigned connections, unsigned depth, bool login, bool lf,
                      bool bytewise)
{
    memset(&p, 0, sizeof(p));
    memset(&a, 0, sizeof(a));
    p.cert = tls ? cert : NULL;
    p.user = login ? "me" : NULL;
    p.pass = login ? "secret" : NULL;
    p.lf_only = lf;
    p.plan.fault = bytewise ? PEER_BYTEWISE : PEER_OK;
    peer_start(&p);
    a.window = 40;
    asker_server(&a, &p);
    a.servers[0].connections = connections;
    a.servers[0].depth = depth;
    use_ca(&a.servers[0]);
    asker_start(&a);
    unsigned count = bytewise ? 4 : PEER_ARTICLES;
    TEST_ASSERT_EQUAL_UINT_MESSAGE(count, asker_run(&a, list, count), a.text);
    asker_stop(&a);
    peer_stop(&p);
    for (unsigned i = 0; i < count; i++) {
        TEST_ASSERT_EQUAL_UINT(1, peer_hits(&p, i));
        TEST_ASSERT_EQUAL_STRING("peer file.bin", list[i].fetch.header.name);
    }
    TEST_ASSERT_EQUAL_UINT(0, p.strange);
    TEST_ASSERT_LESS_OR_EQUAL_UINT(connections, p.most_open);
}

static void test_articles_arrive(void)
{
    static const unsigned connections[] = {1, 4, 20};
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned depth = 0; depth <= 1; depth++) {
            fetch_all(false, connections[i], depth, false, false, false);
            fetch_all(true, connections[i], depth, true, false, false);
        }
    }
    fetch_all(false, 2, 0, true, true, false);
    fetch_all(false, 2, 4, false, false, true);
}

/* ---- what the pool is told ---- */

static void begin(void)
{
    memset(&p, 0, sizeof(p));
    memset(&a, 0, sizeof(a));
}

static void end(void)
{
    asker_stop(&a);
    peer_stop(&p);
    TEST_ASSERT_EQUAL_UINT(0, p.strange);
}

/* STAT asks without fetching; GROUP is sent once per group, and a group that is not carried does no harm. */
static void test_stat_and_groups(void)
{
    begin();
    peer_start(&p);
    asker_server(&a, &p);
    a.servers[0].connections = 1;
    a.servers[0].join_group = true;
    a.servers[0].mode_reader = true;
    asker_start(&a);
    memset(list, 0, sizeof(list));
    for (unsigned i = 0; i < 6; i++) {
        list[i].fetch.stat = i % 2 == 0;
        snprintf(list[i].fetch.group, sizeof(list[i].fetch.group), "%s",
                 i < 3 ? "alt.binaries.test" : "alt.unknown");
        asker_post(&a, &list[i], i, 0);
    }
    snprintf(list[6].fetch.id, sizeof(list[6].fetch.id), "none@peer");
    list[6].fetch.stat = true;
    asker_post(&a, &list[6], 6, 0);
    for (unsigned i = 0; i < 7; i++) {
        struct asker_article *art = asker_wait(&a);
        TEST_ASSERT_EQUAL_PTR(&list[i], art); /* one connection: in the order of asking */
        TEST_ASSERT_EQUAL_INT_MESSAGE(i < 6 ? NNTP_FOUND : NNTP_MISSING, art->fetch.result,
                                      art->fetch.text);
        TEST_ASSERT_EQUAL_INT(!art->fetch.stat, art->fetch.buf != NULL);
        if (art->fetch.buf != NULL) {
            buf_give(&a.bufs, art->fetch.buf);
        }
    }
    end();
}

/* With room for one article at a time, connections wait for each other and everything arrives; the budget holds. */
static void test_memory_is_waited_for(void)
{
    begin();
    a.budget = 32768;
    a.window = 40;
    peer_start(&p);
    asker_server(&a, &p);
    a.servers[0].connections = 8;
    asker_start(&a);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(PEER_ARTICLES, asker_run(&a, list, PEER_ARTICLES), a.text);
    TEST_ASSERT_LESS_OR_EQUAL_UINT64(32768, buf_pool_stats(&a.bufs).peak_bytes);
    for (unsigned i = 0; i < PEER_ARTICLES; i++) {
        TEST_ASSERT_EQUAL_UINT(1, peer_hits(&p, i));
    }
    end();
}

/* Once buffers and connections are there, an article costs no allocation at all. */
static void test_articles_allocate_nothing(void)
{
    for (int tls = 0; tls <= 1; tls++) {
        begin();
        p.cert = tls ? cert : NULL;
        a.window = 8;
        peer_start(&p);
        asker_server(&a, &p);
        a.servers[0].connections = 2;
        use_ca(&a.servers[0]);
        asker_start(&a);
        while (nntp_pool_counters(a.pool).connections_up < 2) {
            TEST_ASSERT_EQUAL_UINT(PEER_ARTICLES, asker_run(&a, list, PEER_ARTICLES));
        }
        struct buf *all[10]; /* as many buffers as can ever be needed at a time are there */
        for (unsigned i = 0; i < 10; i++) {
            all[i] = buf_take(&a.bufs, PEER_PART, NULL);
        }
        for (unsigned i = 0; i < 10; i++) {
            buf_give(&a.bufs, all[i]);
        }
        fault_arm(0);
        for (unsigned i = 0; i < 10; i++) {
            TEST_ASSERT_EQUAL_UINT(PEER_ARTICLES, asker_run(&a, list, PEER_ARTICLES));
        }
        unsigned count = fault_count();
        fault_disarm();
        end();
        TEST_ASSERT_EQUAL_UINT(0, count);
    }
}

/* A server with a connection limit below ours is used up to it, the surplus is reported as LIMIT, and nobody storms
 * it; told to use fewer, the pool does. */
static void test_connection_limit(void)
{
    begin();
    p.max_conns = 2;
    a.window = 30;
    peer_start(&p);
    asker_server(&a, &p);
    a.servers[0].connections = 6;
    a.servers[0].redial_ms = 60000;
    asker_start(&a);
    for (unsigned i = 0; i < 5; i++) {
        TEST_ASSERT_EQUAL_UINT_MESSAGE(PEER_ARTICLES, asker_run(&a, list, PEER_ARTICLES), a.text);
    }
    asker_count_events(&a);
    TEST_ASSERT_EQUAL_UINT(0, a.results[NNTP_FAILED]);
    unsigned sessions =
        p.sessions; /* two that work, and no more than one attempt each of the others */
    TEST_ASSERT_LESS_OR_EQUAL_UINT(6, sessions);
    TEST_ASSERT_LESS_OR_EQUAL_UINT(sessions - 2, a.downs[NNTP_TROUBLE_LIMIT]);
    TEST_ASSERT_GREATER_OR_EQUAL_UINT(1, a.downs[NNTP_TROUBLE_LIMIT]);
    a.servers[0].connections = 1;
    asker_apply(&a);
    TEST_ASSERT_EQUAL_UINT(PEER_ARTICLES, asker_run(&a, list, PEER_ARTICLES));
    while (atomic_load(&p.open_now) > 1) {
        uv_sleep(1);
    }
    TEST_ASSERT_EQUAL_UINT(sessions, p.sessions);
    end();
}

/* Settings change while articles are under way: what was asked is answered once, new questions go to the new server,
 * and one that is removed gives everything back. */
static void test_live_reconfiguration(void)
{
    static struct peer other;
    memset(&other, 0, sizeof(other));
    begin();
    peer_start(&p);
    peer_start(&other);
    asker_server(&a, &p);
    asker_start(&a);
    memset(list, 0, sizeof(list));
    for (unsigned i = 0; i < 40; i++) {
        asker_post(&a, &list[i], i, 0);
    }
    a.servers[0].port = other.port;
    asker_apply(&a);
    for (unsigned i = 0; i < 40; i++) {
        struct asker_article *art = asker_wait(&a);
        TEST_ASSERT_EQUAL_INT_MESSAGE(NNTP_FOUND, art->fetch.result, art->fetch.text);
        buf_give(&a.bufs, art->fetch.buf);
        unsigned n = (unsigned)art->fetch.lease;
        TEST_ASSERT_EQUAL_UINT(1, peer_hits(&p, n) + peer_hits(&other, n));
    }
    TEST_ASSERT_EQUAL_UINT(8, asker_run(&a, list, 8));
    for (unsigned i = 0; i < 8; i++) {
        TEST_ASSERT_EQUAL_UINT(2, peer_hits(&p, i) + peer_hits(&other, i));
        TEST_ASSERT_GREATER_OR_EQUAL_UINT(1, peer_hits(&other, i));
    }
    a.server_count = 0;
    asker_apply(&a);
    memset(list, 0, sizeof(list));
    asker_post(&a, &list[0], 0, 0);
    TEST_ASSERT_EQUAL_INT(NNTP_FAILED, asker_wait(&a)->fetch.result);
    TEST_ASSERT_EQUAL_INT(NNTP_TROUBLE_STOPPED, list[0].fetch.trouble);
    end();
    peer_stop(&other);
}

/* Cancelling gives back what belongs to one owner, under way or not, and leaves the others alone. */
static void test_cancel_by_owner(void)
{
    begin();
    peer_start(&p);
    asker_server(&a, &p);
    a.servers[0].connections = 2;
    asker_start(&a);
    memset(list, 0, sizeof(list));
    for (unsigned i = 0; i < 40; i++) {
        list[i].fetch.owner = 1 + i % 2;
        asker_post(&a, &list[i], i, 0);
    }
    struct nntp_cancel cancel = {.msg.kind = NNTP_MSG_CANCEL, .owner = 2};
    TEST_ASSERT_EQUAL_INT(0, nntp_pool_post(a.pool, &cancel.msg));
    unsigned found[3] = {0}, cancelled[3] = {0};
    for (unsigned i = 0; i < 40; i++) {
        struct nntp_fetch *f = &asker_wait(&a)->fetch;
        found[f->owner] += f->result == NNTP_FOUND;
        cancelled[f->owner] += f->result == NNTP_CANCELLED;
        if (f->buf != NULL) {
            buf_give(&a.bufs, f->buf);
        }
    }
    TEST_ASSERT_EQUAL_UINT(20, found[1]);
    TEST_ASSERT_EQUAL_UINT(20, found[2] + cancelled[2]);
    end();
    TEST_ASSERT_TRUE(a.cancel_back);
}

/* Stopping a pool in the middle gives every fetch back. */
static void test_stop_gives_everything_back(void)
{
    for (unsigned round = 0; round < 8; round++) {
        begin();
        p.plan = (struct peer_plan){.fault = round % 2 ? PEER_SILENCE : PEER_OK,
                                    .place = round % 4 < 2 ? PEER_MID_BODY : PEER_CONNECT,
                                    .article = -1};
        peer_start(&p);
        asker_server(&a, &p);
        asker_start(&a);
        memset(list, 0, sizeof(list));
        for (unsigned i = 0; i < 30; i++) {
            asker_post(&a, &list[i], i, 0);
        }
        uv_sleep(round);
        nntp_pool_stop(a.pool);
        for (unsigned i = 0; i < 30; i++) {
            struct nntp_fetch *f = &asker_wait(&a)->fetch;
            if (f->buf != NULL) {
                buf_give(&a.bufs, f->buf);
            }
        }
        end();
    }
}

/* T1: a server whose certificate is not accepted never hears the password; told not to verify, it does. */
static void test_no_password_for_strangers(void)
{
    for (unsigned kind = 0; kind < 3; kind++) {
        begin();
        p.cert = kind == 1 ? other_host : cert;
        p.user = "me";
        p.pass = "secret";
        peer_start(&p);
        asker_server(&a, &p);
        if (kind == 1) {
            use_ca(&a.servers[0]); /* the authority is known, the name is not this server's */
        }
        a.servers[0].no_verify = kind == 2;
        asker_start(&a);
        unsigned done = asker_run(&a, list, 3);
        end();
        if (kind == 2) {
            TEST_ASSERT_EQUAL_UINT(3, done);
            TEST_ASSERT_GREATER_OR_EQUAL_UINT(1, p.logins);
        } else {
            TEST_ASSERT_EQUAL_UINT(0, done);
            TEST_ASSERT_EQUAL_UINT(0, p.logins);
            TEST_ASSERT_EQUAL_UINT_MESSAGE(a.results[NNTP_FAILED], a.troubles[NNTP_TROUBLE_CERT],
                                           a.text);
        }
    }
}

/* A wrong password is said once per attempt of ours, never in a loop; settings that cannot work are said at once. */
static void test_login_and_settings(void)
{
    begin();
    p.user = "me";
    p.pass = "secret";
    peer_start(&p);
    asker_server(&a, &p);
    snprintf(a.servers[0].pass, sizeof(a.servers[0].pass), "wrong");
    a.servers[0].connections = 1;
    asker_start(&a);
    memset(list, 0, sizeof(list));
    asker_post(&a, &list[0], 0, 0);
    TEST_ASSERT_EQUAL_INT(NNTP_TROUBLE_LOGIN, asker_wait(&a)->fetch.trouble);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(list[0].fetch.text, "481 wrong password"),
                                 list[0].fetch.text);
    TEST_ASSERT_EQUAL_UINT(1, p.logins);
    a.servers[0].tls = true;
    snprintf(a.servers[0].ciphers, sizeof(a.servers[0].ciphers), "NO-SUCH-CIPHER");
    asker_apply(&a);
    asker_post(&a, &list[0], 0, 0);
    TEST_ASSERT_EQUAL_INT(NNTP_TROUBLE_CONFIG, asker_wait(&a)->fetch.trouble);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(list[0].fetch.text, "NO-SUCH-CIPHER"), list[0].fetch.text);
    end();
}

/* Whichever allocation fails, every fetch still comes back once, what is said to be found is right, and nothing
 * leaks; asked again, it arrives. */
static void test_every_allocation_may_fail(void)
{
    for (unsigned k = 1;; k++) {
        begin();
        p.cert = cert;
        peer_start(&p);
        asker_server(&a, &p);
        a.servers[0].connections = 1;
        use_ca(&a.servers[0]);
        fault_arm(k);
        bool started = asker_try_start(&a);
        if (started) {
            unsigned done = asker_run(&a, list, 4);
            if (a.results[NNTP_FAILED] == 0) {
                TEST_ASSERT_EQUAL_UINT(4, done);
            }
            TEST_ASSERT_EQUAL_UINT(0, a.wrong_bytes);
            asker_stop(&a);
        }
        bool fired = fault_fired();
        fault_disarm();
        peer_stop(&p);
        if (!fired) {
            TEST_ASSERT_TRUE(started && k > 10);
            break;
        }
    }
}

int main(void)
{
    dir_make(&dir);
    snprintf(ca, sizeof(ca), "%s/ca", dir.path);
    snprintf(cert, sizeof(cert), "%s/cert", dir.path);
    struct certs_want root = {"DNS:ca.test", -3600, 86400, NULL};
    struct certs_want leaf = {"DNS:localhost,IP:127.0.0.1", -3600, 86400, ca};
    certs_make(ca, &root);
    certs_make(cert, &leaf);
    snprintf(other_host, sizeof(other_host), "%s/other", dir.path);
    struct certs_want other = {"DNS:news.example.net", -3600, 86400, ca};
    certs_make(other_host, &other);
    UNITY_BEGIN();
    RUN_TEST(test_articles_arrive);
    RUN_TEST(test_stat_and_groups);
    RUN_TEST(test_memory_is_waited_for);
    RUN_TEST(test_articles_allocate_nothing);
    RUN_TEST(test_connection_limit);
    RUN_TEST(test_live_reconfiguration);
    RUN_TEST(test_cancel_by_owner);
    RUN_TEST(test_stop_gives_everything_back);
    RUN_TEST(test_no_password_for_strangers);
    RUN_TEST(test_login_and_settings);
    RUN_TEST(test_every_allocation_may_fail);
    int rv = UNITY_END();
    dir_remove(&dir);
    return rv;
}
