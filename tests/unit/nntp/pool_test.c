#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "lib/asker.h"
#include "lib/certs.h"
#include "lib/dir.h"

static struct dir dir;
static char ca[600], cert[600];
static struct asker_article list[PEER_ARTICLES];

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
    static struct peer p;
    memset(&p, 0, sizeof(p));
    p.cert = tls ? cert : NULL;
    p.user = login ? "me" : NULL;
    p.pass = login ? "secret" : NULL;
    p.lf_only = lf;
    p.plan.fault = bytewise ? PEER_BYTEWISE : PEER_OK;
    peer_start(&p);
    static struct asker a;
    memset(&a, 0, sizeof(a));
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

int main(void)
{
    dir_make(&dir);
    snprintf(ca, sizeof(ca), "%s/ca", dir.path);
    snprintf(cert, sizeof(cert), "%s/cert", dir.path);
    struct certs_want root = {"DNS:ca.test", -3600, 86400, NULL};
    struct certs_want leaf = {"DNS:localhost,IP:127.0.0.1", -3600, 86400, ca};
    certs_make(ca, &root);
    certs_make(cert, &leaf);
    UNITY_BEGIN();
    RUN_TEST(test_articles_arrive);
    int rv = UNITY_END();
    dir_remove(&dir);
    return rv;
}
