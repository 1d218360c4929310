#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "lib/rng.h"
#include "nntp/pipe.h"
#include "nntp/proto.h"
#include "nntp/rate.h"

void setUp(void) {}
void tearDown(void) {}

/* A status line is understood however it is cut into pieces, and the bytes behind it are left alone. */
static void test_lines_in_pieces(void)
{
    static const char text[] = "222 0 <a@b> body follows\r\n=ybegin";
    for (size_t cut = 0; cut < sizeof(text) - 1; cut++) {
        struct nntp_reply r;
        nntp_reply_init(&r);
        size_t used = 0, at = 0;
        enum nntp_reply_state state = nntp_reply_feed(&r, (const uint8_t *)text, cut, &used);
        at += used;
        if (state == NNTP_REPLY_MORE) {
            state = nntp_reply_feed(&r, (const uint8_t *)text + at, sizeof(text) - 1 - at, &used);
            at += used;
        }
        TEST_ASSERT_EQUAL_INT(NNTP_REPLY_LINE, state);
        TEST_ASSERT_EQUAL_INT(222, r.code);
        TEST_ASSERT_EQUAL_STRING("0 <a@b> body follows", r.text);
        TEST_ASSERT_FALSE(r.bare_lf);
        TEST_ASSERT_EQUAL_STRING("=ybegin", text + at);
        size_t len;
        TEST_ASSERT_EQUAL_MEMORY("a@b", nntp_reply_id(&r, &len), 3);
        TEST_ASSERT_EQUAL_UINT64(3, len);
    }
}

/* What is not a status line, or has no end, is told apart; control bytes never reach a log. */
static void test_lines_that_are_none(void)
{
    static const struct {
        const char *line;
        enum nntp_reply_state state;
        int code;
        const char *text;
    } rows[] = {{"430\r\n", NNTP_REPLY_LINE, 430, ""},
                {"430 \r\n", NNTP_REPLY_LINE, 430, ""},
                {"222, 0 <a>\r\n", NNTP_REPLY_LINE, 222, "0 <a>"},
                {"200 hi\n", NNTP_REPLY_LINE, 200, "hi"},
                {"481 \x1b[31mred\r\n", NNTP_REPLY_LINE, 481, "?[31mred"},
                {"\r\n", NNTP_REPLY_BAD, 0, ""},
                {"\n", NNTP_REPLY_BAD, 0, ""},
                {"22 x\r\n", NNTP_REPLY_BAD, 0, "22 x"},
                {"2222 x\r\n", NNTP_REPLY_BAD, 0, "2222 x"},
                {"600 x\r\n", NNTP_REPLY_BAD, 0, "600 x"},
                {"000 x\r\n", NNTP_REPLY_BAD, 0, "000 x"},
                {"HTTP/1.1 200 OK\r\n", NNTP_REPLY_BAD, 0, "HTTP/1.1 200 OK"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nntp_reply r;
        nntp_reply_init(&r);
        size_t used;
        TEST_ASSERT_EQUAL_INT_MESSAGE(
            rows[i].state,
            nntp_reply_feed(&r, (const uint8_t *)rows[i].line, strlen(rows[i].line), &used),
            rows[i].line);
        TEST_ASSERT_EQUAL_INT(rows[i].code, r.code);
        TEST_ASSERT_EQUAL_STRING(rows[i].text, r.text);
        TEST_ASSERT_EQUAL_UINT64(strlen(rows[i].line), used);
    }
    static uint8_t zeros[NNTP_LINE_MAX + 1];
    struct nntp_reply r;
    nntp_reply_init(&r);
    size_t used;
    TEST_ASSERT_EQUAL_INT(NNTP_REPLY_MORE, nntp_reply_feed(&r, zeros, NNTP_LINE_MAX, &used));
    TEST_ASSERT_EQUAL_INT(NNTP_REPLY_FLOOD, nntp_reply_feed(&r, zeros, 1, &used));
}

/* Limits of servers are recognised whatever the code they come with; logins and goodbyes are not limits. */
static void test_troubles_by_their_words(void)
{
    static const struct {
        const char *line;
        enum nntp_trouble trouble;
    } rows[] = {{"502 Too many connections, max is 20\r\n", NNTP_TROUBLE_LIMIT},
                {"400 connection limit reached\r\n", NNTP_TROUBLE_LIMIT},
                {"481 max simultaneous IP addresses per user reached\r\n", NNTP_TROUBLE_LIMIT},
                {"482 you are already connected from elsewhere\r\n", NNTP_TROUBLE_LIMIT},
                {"502 access denied\r\n", NNTP_TROUBLE_LOGIN},
                {"481 wrong password\r\n", NNTP_TROUBLE_LOGIN},
                {"480 authentication required\r\n", NNTP_TROUBLE_LOGIN},
                {"400 idle for too long\r\n", NNTP_TROUBLE_GOODBYE},
                {"400 server shutting down\r\n", NNTP_TROUBLE_GOODBYE},
                {"503 program fault\r\n", NNTP_TROUBLE_PROTOCOL},
                {"999 what\r\n", NNTP_TROUBLE_PROTOCOL}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nntp_reply r;
        nntp_reply_init(&r);
        size_t used;
        nntp_reply_feed(&r, (const uint8_t *)rows[i].line, strlen(rows[i].line), &used);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].trouble, nntp_reply_trouble(&r), rows[i].line);
    }
    for (unsigned t = 0; t < NNTP_TROUBLES; t++) {
        TEST_ASSERT_NOT_NULL(nntp_trouble_name(t));
        TEST_ASSERT_NOT_EQUAL('\0', nntp_trouble_words(t)[0]);
    }
    TEST_ASSERT_EQUAL_INT(NNTP_PERMANENT, nntp_trouble_category(NNTP_TROUBLE_CERT));
    TEST_ASSERT_EQUAL_INT(NNTP_SCOPE_SERVER, nntp_trouble_scope(NNTP_TROUBLE_LOGIN));
    TEST_ASSERT_EQUAL_INT(NNTP_SCOPE_CONNECTION, nntp_trouble_scope(NNTP_TROUBLE_DESYNC));
}

/* Message-ids and groups that could be more than one word are refused. */
static void test_words_that_may_be_sent(void)
{
    TEST_ASSERT_TRUE(nntp_id_valid("part1of2.abc$def@news.example"));
    TEST_ASSERT_TRUE(nntp_id_valid("a@b"));
    static const char *const bad[] = {"",     "ab",    "a b@c",   "a@b\r\nQUIT", "a@b>",
                                      "<a@b", "a@\tb", "a@b\x7f", "\xc3\xa4@b",  "a@b\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        TEST_ASSERT_FALSE_MESSAGE(nntp_id_valid(bad[i]), bad[i]);
    }
    char longest[NNTP_ID_MAX + 2];
    memset(longest, 'a', sizeof(longest));
    longest[NNTP_ID_MAX] = '\0';
    TEST_ASSERT_TRUE(nntp_id_valid(longest));
    longest[NNTP_ID_MAX] = 'a';
    longest[NNTP_ID_MAX + 1] = '\0';
    TEST_ASSERT_FALSE(nntp_id_valid(longest));
    TEST_ASSERT_TRUE(nntp_group_valid("alt.binaries.test"));
    TEST_ASSERT_FALSE(nntp_group_valid("alt.binaries.test x"));
    TEST_ASSERT_FALSE(nntp_group_valid(""));
    TEST_ASSERT_TRUE(nntp_word_valid("pass word"));
    TEST_ASSERT_FALSE(nntp_word_valid("pass\r\nQUIT"));
    char out[NNTP_COMMAND_MAX];
    TEST_ASSERT_EQUAL_UINT64(12, nntp_command(out, "BODY ", "<", "a@b", ">"));
    TEST_ASSERT_EQUAL_MEMORY("BODY <a@b>\r\n", out, 12);
}

/* A connection over a simulated line: every command is answered after one round trip, and bodies follow each other
 * at the line's rate. Returns the depth it settles at; *lost is how much of the line's time was idle at the end. */
static unsigned settle(uint64_t trip_us, uint64_t body_us, unsigned *lost_permille)
{
    struct nntp_pipe p;
    struct nntp_pipe_memory m = {0};
    nntp_pipe_init(&p);
    uint64_t sent[NNTP_DEPTH_MAX], now = 1000, line_free = 0, idle = 0, busy = 0;
    unsigned head = 0, count = 0;
    for (unsigned reply = 0; reply < 400; reply++) {
        while (count < nntp_pipe_depth(&p, &m, NNTP_DEPTH_MAX)) {
            sent[(head + count++) % NNTP_DEPTH_MAX] = now;
        }
        uint64_t asked = sent[head];
        uint64_t begins = asked + trip_us > line_free ? asked + trip_us : line_free;
        if (reply >= 300) {
            idle += begins - line_free;
            busy += body_us;
        }
        now = begins;
        nntp_pipe_first_byte(&p, asked, now);
        now = line_free = begins + body_us;
        nntp_pipe_complete(&p, asked, now);
        nntp_pipe_good(&m);
        head = (head + 1) % NNTP_DEPTH_MAX;
        count--;
    }
    *lost_permille = (unsigned)(idle * 1000 / (idle + busy));
    return nntp_pipe_depth(&p, &m, NNTP_DEPTH_MAX);
}

/* The depth follows the line: 2 on a short one, as much as it takes on a long one, and never without need. */
static void test_depth_fills_the_line(void)
{
    unsigned lost;
    TEST_ASSERT_EQUAL_UINT(2, settle(100, 1500, &lost)); /* loopback */
    TEST_ASSERT_EQUAL_UINT(0, lost);
    TEST_ASSERT_EQUAL_UINT(2, settle(20000, 70000, &lost)); /* 10 MB/s, 20 ms */
    TEST_ASSERT_EQUAL_UINT(0, lost);
    unsigned depth = settle(20000, 7000, &lost); /* 100 MB/s, 20 ms: 3 bodies per round trip */
    TEST_ASSERT_GREATER_OR_EQUAL_UINT(4, depth);
    TEST_ASSERT_LESS_OR_EQUAL_UINT(8, depth);
    TEST_ASSERT_EQUAL_UINT(0, lost);
    depth = settle(100000, 7000, &lost); /* 100 ms: 15 bodies */
    TEST_ASSERT_GREATER_OR_EQUAL_UINT(16, depth);
    TEST_ASSERT_EQUAL_UINT(0, lost);
    TEST_ASSERT_EQUAL_UINT(NNTP_DEPTH_MAX, settle(1000000, 7000, &lost));
}

/* Sessions that break over pipelined commands switch it off, soon if it never worked, late if it did; a server that
 * restarts and takes all its sessions down does not. */
static void test_pipelining_is_given_up(void)
{
    struct nntp_pipe_memory m = {0};
    struct nntp_pipe p;
    nntp_pipe_init(&p);
    TEST_ASSERT_EQUAL_UINT(2, nntp_pipe_depth(&p, &m, 32));
    TEST_ASSERT_FALSE(nntp_pipe_strike(&m, 10000000));
    TEST_ASSERT_FALSE(nntp_pipe_strike(&m, 10000001)); /* together with the first */
    TEST_ASSERT_TRUE(nntp_pipe_strike(&m, 20000000));
    TEST_ASSERT_EQUAL_UINT(1, nntp_pipe_depth(&p, &m, 32));

    struct nntp_pipe_memory proven = {0};
    uint64_t now = 10000000;
    for (unsigned i = 0; i < 100; i++) {
        for (unsigned k = 0; k < 20; k++) {
            nntp_pipe_good(&proven);
        }
        TEST_ASSERT_FALSE(nntp_pipe_strike(&proven, now += 10000000));
    }
    TEST_ASSERT_FALSE(nntp_pipe_strike(&proven, now += 10000000));
    TEST_ASSERT_FALSE(nntp_pipe_strike(&proven, now += 10000000));
    TEST_ASSERT_TRUE(nntp_pipe_strike(&proven, now += 10000000));
}

/* Several claimers at odd moments together get the limit, within rounding; a pause earns no more than a moment. */
static void test_rate_is_shared_exactly(void)
{
    struct rng rng;
    rng_init(&rng, rng_seed(7));
    static const uint64_t rates[] = {1000, 50000, 1000000, 12345678, 1250000000};
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        struct nntp_rate r;
        nntp_rate_init(&r);
        nntp_rate_set(&r, rates[i]);
        uint64_t now = 5000000, got = 0;
        nntp_rate_claim(&r, now, UINT64_MAX); /* what was earned before */
        uint64_t from = now;
        while (now - from < 20000000) {
            now += rng_below(&rng, 8000);
            uint64_t want = rng_below(&rng, 8) == 0 ? rng_below(&rng, 5000) : UINT64_MAX;
            got += nntp_rate_claim(&r, now, want);
        }
        got += nntp_rate_claim(&r, now, UINT64_MAX);
        uint64_t due = rates[i] * (now - from) / 1000000;
        TEST_ASSERT_UINT64_WITHIN(due / 1000 + 2, due, got);
        now += 3600ull * 1000000;
        TEST_ASSERT_UINT64_WITHIN(rates[i] / 100 + 2, rates[i] * NNTP_RATE_BURST_MS / 1000,
                                  nntp_rate_claim(&r, now, UINT64_MAX));
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_lines_in_pieces);
    RUN_TEST(test_lines_that_are_none);
    RUN_TEST(test_troubles_by_their_words);
    RUN_TEST(test_words_that_may_be_sent);
    RUN_TEST(test_depth_fills_the_line);
    RUN_TEST(test_pipelining_is_given_up);
    RUN_TEST(test_rate_is_shared_exactly);
    return UNITY_END();
}
