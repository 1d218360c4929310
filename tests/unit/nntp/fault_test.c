/* Every misbehaviour of a server that the fault list names, at every place of a session, with and without a second
 * server, pipelined or not: the right bytes or the right reason, and no article asked for more often than the asker
 * wanted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "lib/asker.h"
#include "lib/certs.h"
#include "lib/dir.h"

enum { ARTICLES = 4, PATIENCE_MS = 150, PATIENCE_LONG_MS = 5000 };

static struct peer bad, good;
static struct asker a;
static struct asker_article list[ARTICLES];
static char where[200];
static char cert[600];

void setUp(void) {}
void tearDown(void) {}

struct run {
    struct peer_plan plan;
    bool fill;
    bool pipelined;
    bool lack_all; /* the bad server has nothing */
    bool tls;      /* both speak TLS */
};

/* Only our own clock ends these. */
static bool waits_for_us(enum peer_fault f)
{
    return f == PEER_SILENCE || f == PEER_DRIP || f == PEER_SKIP;
}

static unsigned run(const struct run *r)
{
    memset(&bad, 0, sizeof(bad));
    memset(&good, 0, sizeof(good));
    memset(&a, 0, sizeof(a));
    bad.plan = r->plan;
    bad.lack_all = r->lack_all;
    bad.cert = good.cert = r->tls ? cert : NULL;
    bad.user = "me";
    bad.pass = "secret";
    peer_start(&bad);
    peer_start(&good);
    asker_server(&a, &bad);
    if (r->fill) {
        asker_server(&a, &good);
    }
    for (unsigned i = 0; i < a.server_count; i++) {
        a.servers[i].connections = 2;
        a.servers[i].depth = r->pipelined ? 4 : 1;
        snprintf(a.servers[i].ca_file, sizeof(a.servers[i].ca_file), "%s.crt", cert);
        a.servers[i].connect_ms = a.servers[i].timeout_ms =
            waits_for_us(r->plan.fault) ? PATIENCE_MS : PATIENCE_LONG_MS;
    }
    a.failures_max = 2;
    asker_start(&a);
    unsigned done = asker_run(&a, list, ARTICLES);
    TEST_ASSERT_LESS_OR_EQUAL_UINT64(a.bufs.budget_bytes, a.bufs.peak_bytes);
    asker_stop(&a);
    peer_stop(&bad);
    peer_stop(&good);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(0, bad.strange + good.strange, where);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(0, a.wrong_bytes, where);
    for (unsigned i = 0; i < ARTICLES; i++) {
        TEST_ASSERT_LESS_OR_EQUAL_UINT_MESSAGE(list[i].asked[0], peer_hits(&bad, i), where);
        TEST_ASSERT_LESS_OR_EQUAL_UINT_MESSAGE(list[i].asked[1], peer_hits(&good, i), where);
    }
    return done;
}

struct row {
    const char *name;
    struct peer_plan plan; /* fault and words */
    unsigned places;       /* bits of enum peer_place */
    uint32_t troubles;     /* bits of enum nntp_trouble that may be the reason */
};

#define T(id)      (UINT32_C(1) << NNTP_TROUBLE_##id)
#define AT(id)     (1u << PEER_##id)
#define EVERYWHERE (AT(CONNECT) | AT(AUTH) | AT(BEFORE_BODY) | AT(MID_BODY))

/* Faults of the session: they cost no article an attempt. */
static const struct row rows[] = {
    {"N1 reset", {.fault = PEER_RST}, EVERYWHERE, T(CLOSED) | T(CONNECT)},
    {"N1 FIN", {.fault = PEER_FIN}, EVERYWHERE, T(CLOSED)},
    {"N1 half close", {.fault = PEER_HALF_CLOSE}, EVERYWHERE, T(CLOSED)},
    {"N2 silence", {.fault = PEER_SILENCE}, EVERYWHERE, T(TIMEOUT) | T(SLOW)},
    {"N3 drip", {.fault = PEER_DRIP}, AT(CONNECT) | AT(AUTH) | AT(MID_BODY), T(TIMEOUT) | T(SLOW)},
    {"N4 endless line", {.fault = PEER_NO_CRLF}, EVERYWHERE, T(FLOOD)},
    {"N4 endless body", {.fault = PEER_ENDLESS}, AT(BEFORE_BODY), T(FLOOD)},
    {"N5 400",
     {.fault = PEER_SAY_CLOSE, .say = "400 going down\r\n"},
     AT(CONNECT) | AT(AUTH) | AT(BEFORE_BODY),
     T(GOODBYE)},
    {"N5 502 limit",
     {.fault = PEER_SAY_CLOSE, .say = "502 too many connections\r\n"},
     AT(CONNECT) | AT(AUTH) | AT(BEFORE_BODY),
     T(LIMIT)},
    {"N5 502 permission",
     {.fault = PEER_SAY_CLOSE, .say = "502 no permission\r\n"},
     AT(CONNECT) | AT(AUTH) | AT(BEFORE_BODY),
     T(LOGIN)},
    {"N5 480", {.fault = PEER_SAY, .say = "480 login first\r\n"}, AT(AUTH), T(LOGIN)},
    {"N5 480 later",
     {.fault = PEER_SAY, .say = "480 login first\r\n"},
     AT(BEFORE_BODY),
     T(GOODBYE)},
    {"N5 481", {.fault = PEER_SAY, .say = "481 wrong\r\n"}, AT(AUTH) | AT(BEFORE_BODY), T(LOGIN)},
    {"N5 482", {.fault = PEER_SAY, .say = "482 wrong\r\n"}, AT(AUTH) | AT(BEFORE_BODY), T(LOGIN)},
    {"N7 garbage",
     {.fault = PEER_SAY_CLOSE, .say = "HTTP/1.1 400 Bad Request\r\n"},
     AT(CONNECT) | AT(AUTH) | AT(BEFORE_BODY),
     T(PROTOCOL)},
    {"N7 empty status",
     {.fault = PEER_SAY_CLOSE, .say = "\r\n"},
     AT(CONNECT) | AT(AUTH) | AT(BEFORE_BODY),
     T(PROTOCOL)},
    {"N11 two greetings",
     {.fault = PEER_SAY, .say = "200 hello\r\n201 hello again\r\n"},
     AT(CONNECT),
     T(DESYNC) | T(LOGIN) | T(PROTOCOL)},
};

static void session_fault(const struct row *row, enum peer_place place, bool fill, bool pipelined,
                          bool always, bool tls)
{
    snprintf(where, sizeof(where), "%s, place %d, %s, %s, %s%s", row->name, place,
             fill ? "with fill server" : "alone", pipelined ? "pipelined" : "one by one",
             always ? "always" : "once", tls ? ", TLS" : "");
    struct run r = {.plan = row->plan, .fill = fill, .pipelined = pipelined, .tls = tls};
    r.plan.place = place;
    r.plan.times = always ? 0 : 1;
    r.plan.article = -1;
    unsigned done = run(&r);
    if (fill || !always) {
        TEST_ASSERT_EQUAL_UINT_MESSAGE(ARTICLES, done, where);
    } else {
        TEST_ASSERT_EQUAL_UINT_MESSAGE(0, done, where);
        TEST_ASSERT_NOT_EQUAL_MESSAGE('\0', a.text[0], where);
    }
    for (unsigned t = 0; t < NNTP_TROUBLES; t++) {
        char text[400];
        snprintf(text, sizeof(text), "%s: %s: %s", where, nntp_trouble_name(t), a.text);
        if (!(row->troubles & (UINT32_C(1) << t))) {
            TEST_ASSERT_EQUAL_UINT_MESSAGE(0, a.troubles[t], text);
        }
    }
}

/* Of a fault that takes time: each of fill, pipelined and always both ways at each place, but not all eight. All of
 * them with NNTP_FAULTS=all. */
static bool chosen(const struct row *row, int place, unsigned bits)
{
    const char *all = getenv("NNTP_FAULTS");
    unsigned turned = bits ^ (unsigned)place;
    bool takes_time = waits_for_us(row->plan.fault) || row->plan.fault == PEER_ENDLESS;
    return !takes_time || turned == 1 || turned == 6 || (all != NULL && strcmp(all, "all") == 0);
}

static void test_session_faults(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int place = 0; place < PEER_PLACES; place++) {
            for (unsigned bits = 0; bits < 8 && (rows[i].places & (1u << place)); bits++) {
                if (chosen(&rows[i], place, bits)) {
                    session_fault(&rows[i], (enum peer_place)place, bits & 1, bits & 2, bits & 4,
                                  false);
                }
            }
        }
    }
}

/* T3: a TLS session that is cut off, with and without a reset, is like a plain one: no goodbye was said, so nothing of it
 * counts. */
static void test_session_faults_over_tls(void)
{
    for (size_t i = 0; i < 4; i++) { /* the rows N1 and N2 */
        for (int place = 0; place < PEER_PLACES; place++) {
            for (unsigned bits = 0; bits < 8; bits++) {
                if (chosen(&rows[i], place, bits)) {
                    session_fault(&rows[i], (enum peer_place)place, bits & 1, bits & 2, bits & 4,
                                  true);
                }
            }
        }
    }
}

/* Answers that are the article's own: the next server is asked, and without one the reason stands. */
static void article_fault(const char *name, struct peer_plan plan, enum nntp_result expected,
                          bool lack_all)
{
    for (unsigned bits = 0; bits < 4; bits++) {
        bool fill = bits & 1, pipelined = bits & 2;
        snprintf(where, sizeof(where), "%s, %s, %s", name, fill ? "with fill server" : "alone",
                 pipelined ? "pipelined" : "one by one");
        struct run r = {.plan = plan, .fill = fill, .pipelined = pipelined, .lack_all = lack_all};
        unsigned done = run(&r);
        unsigned hurt = lack_all ? ARTICLES : 1;
        TEST_ASSERT_EQUAL_UINT_MESSAGE(fill ? ARTICLES : ARTICLES - hurt, done, where);
        TEST_ASSERT_EQUAL_UINT_MESSAGE(hurt, a.results[expected], where);
        for (unsigned i = 0; i < ARTICLES; i++) {
            bool this = lack_all || (int)i == plan.article;
            if (this && fill) {
                TEST_ASSERT_EQUAL_UINT_MESSAGE(1, peer_hits(&good, i), where);
            }
            if (this && !fill) {
                TEST_ASSERT_EQUAL_INT_MESSAGE(expected, list[i].last, where);
                TEST_ASSERT_NOT_EQUAL_MESSAGE('\0', list[i].fetch.text[0], where);
            }
        }
    }
}

static void test_article_faults(void)
{
    struct peer_plan plan = {.place = PEER_BEFORE_BODY, .times = 1, .article = 2};
    article_fault("N6 430", plan, NNTP_MISSING, true);
    plan.fault = PEER_SAY;
    plan.say = "423 no such number\r\n";
    article_fault("N6 423", plan, NNTP_MISSING, false);
    plan.say = "420 no article\r\n";
    article_fault("N6 420", plan, NNTP_MISSING, false);
    plan.say = "451 taken down\r\n";
    article_fault("N6 451", plan, NNTP_MISSING, false);
    plan.fault = PEER_SWAP;
    article_fault("N8 another part", plan, NNTP_WRONG, false);
    plan.fault = PEER_OTHER_ID;
    article_fault("N7 another id", plan, NNTP_WRONG, false);
    plan.fault = PEER_BAD_CRC;
    article_fault("Y3 bad CRC", plan, NNTP_DAMAGED, false);
    plan.fault = PEER_SAY;
    plan.say = "222 0 <2@peer> body\r\nnothing of use\r\n.\r\n";
    article_fault("no yEnc", plan, NNTP_UNUSABLE, false);
    plan.say = "222 0 <2@peer> body\r\n.\r\n";
    article_fault("empty body", plan, NNTP_UNUSABLE, false);
}

/* N7: an unknown error answers one question. It is charged to that article, once, and ends the session; the others
 * come back free of charge. */
static void test_unknown_errors_are_charged(void)
{
    struct peer_plan plan = {.fault = PEER_SAY,
                             .place = PEER_BEFORE_BODY,
                             .times = 0,
                             .article = 2,
                             .say = "503 program fault\r\n"};
    for (unsigned pipelined = 0; pipelined < 2; pipelined++) {
        struct run r = {.plan = plan, .pipelined = pipelined};
        TEST_ASSERT_EQUAL_UINT(ARTICLES - 1, run(&r));
        TEST_ASSERT_EQUAL_UINT(1, a.results[NNTP_REFUSED]);
        TEST_ASSERT_EQUAL_UINT(1, peer_hits(&bad, 2));
        TEST_ASSERT_EQUAL_INT(503, list[2].fetch.code);
        TEST_ASSERT_NOT_NULL(strstr(list[2].fetch.text, "program fault"));
    }
}

/* N9: a reply too many or too few is noticed, the session ends, and every article still gets its own bytes. */
static void test_replies_out_of_step(void)
{
    for (unsigned fault = PEER_DOUBLE; fault <= PEER_SKIP; fault++) {
        for (int article = 0; article < ARTICLES; article++) {
            for (unsigned pipelined = 0; pipelined < 2; pipelined++) {
                snprintf(where, sizeof(where), "fault %u at %d", fault, article);
                struct run r = {.plan = {.fault = (enum peer_fault)fault,
                                         .place = PEER_BEFORE_BODY,
                                         .times = 1,
                                         .article = article},
                                .pipelined = pipelined};
                TEST_ASSERT_EQUAL_UINT_MESSAGE(ARTICLES, run(&r), where);
            }
        }
    }
}

/* A server that forgets what was sent behind a command is found out: pipelining is switched off and everything
 * arrives; the asker is told, to remember it. */
static void test_server_that_cannot_pipeline(void)
{
    struct run r = {.plan = {.fault = PEER_ONE_AT_A_TIME, .place = PEER_BEFORE_BODY, .article = -1},
                    .pipelined = true};
    memset(&bad, 0, sizeof(bad));
    snprintf(where, sizeof(where), "one at a time");
    bad.plan = r.plan;
    peer_start(&bad);
    memset(&a, 0, sizeof(a));
    asker_server(&a, &bad);
    a.servers[0].connections = 1;
    a.servers[0].timeout_ms = 600; /* strikes within a second count once */
    asker_start(&a);
    unsigned done;
    for (unsigned round = 0; round < 10 && a.pipeline_off == 0; round++) {
        asker_run(&a, list, ARTICLES);
        asker_count_events(&a);
    }
    done = asker_run(&a, list, ARTICLES); /* and from now on nothing goes wrong any more */
    TEST_ASSERT_EQUAL_UINT(0, list[0].failures + list[ARTICLES - 1].failures);
    asker_stop(&a);
    peer_stop(&bad);
    TEST_ASSERT_EQUAL_UINT(ARTICLES, done);
    TEST_ASSERT_EQUAL_UINT(1, a.pipeline_off);
    TEST_ASSERT_EQUAL_UINT(0, a.wrong_bytes);
}

/* N13: an id or group that would smuggle a command is refused here; the server hears nothing. */
static void test_nothing_strange_is_sent(void)
{
    static const char *const ids[] = {"a@b\r\nQUIT", "a b@c",   "a@b>",      "<a@b", "",
                                      "ab",          "a@b\x7f", "\xc3\xa4@b"};
    memset(&good, 0, sizeof(good));
    peer_start(&good);
    memset(&a, 0, sizeof(a));
    asker_server(&a, &good);
    a.servers[0].join_group = true;
    asker_start(&a);
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        memset(&list[0], 0, sizeof(list[0]));
        snprintf(list[0].fetch.id, sizeof(list[0].fetch.id), "%s",
                 ids[i][0] != '\0' ? ids[i] : " ");
        asker_post(&a, &list[0], 0, 0);
        TEST_ASSERT_EQUAL_PTR(&list[0], asker_wait(&a));
        TEST_ASSERT_EQUAL_INT(NNTP_UNUSABLE, list[0].fetch.result);
    }
    memset(&list[0], 0, sizeof(list[0]));
    snprintf(list[0].fetch.group, sizeof(list[0].fetch.group), "alt.x\r\nQUIT");
    asker_post(&a, &list[0], 0, 0);
    TEST_ASSERT_EQUAL_INT(NNTP_UNUSABLE, asker_wait(&a)->fetch.result);
    asker_stop(&a);
    peer_stop(&good);
    TEST_ASSERT_EQUAL_UINT(0, good.sessions);
}

/* N12, R1: a server that is down or whose name is unknown fails its fetches at once and with words; nothing loops. */
static void test_dead_servers_fail_at_once(void)
{
    memset(&bad, 0, sizeof(bad));
    peer_start(&bad);
    peer_stop(&bad);
    for (unsigned name = 0; name < 2; name++) {
        memset(&a, 0, sizeof(a));
        asker_server(&a, &bad);
        if (name) {
            snprintf(a.servers[0].host, sizeof(a.servers[0].host), "no-such-host.invalid");
        }
        asker_start(&a);
        TEST_ASSERT_EQUAL_UINT(0, asker_run(&a, list, ARTICLES));
        uint64_t dials = nntp_pool_counters(a.pool).dials;
        asker_stop(&a);
        TEST_ASSERT_EQUAL_UINT(ARTICLES * 4, a.results[NNTP_FAILED]);
        TEST_ASSERT_EQUAL_UINT(a.results[NNTP_FAILED],
                               a.troubles[name ? NNTP_TROUBLE_DNS : NNTP_TROUBLE_CONNECT]);
        TEST_ASSERT_LESS_OR_EQUAL_UINT64(ARTICLES * 4, dials);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(a.text, name ? "no-such-host" : "refused"), a.text);
    }
}

int main(void)
{
    struct dir dir;
    dir_make(&dir);
    snprintf(cert, sizeof(cert), "%s/cert", dir.path);
    struct certs_want want = {"IP:127.0.0.1", -3600, 86400, NULL};
    certs_make(cert, &want);
    UNITY_BEGIN();
    RUN_TEST(test_article_faults);
    RUN_TEST(test_unknown_errors_are_charged);
    RUN_TEST(test_replies_out_of_step);
    RUN_TEST(test_server_that_cannot_pipeline);
    RUN_TEST(test_nothing_strange_is_sent);
    RUN_TEST(test_dead_servers_fail_at_once);
    RUN_TEST(test_session_faults);
    RUN_TEST(test_session_faults_over_tls);
    int rv = UNITY_END();
    dir_remove(&dir);
    return rv;
}
