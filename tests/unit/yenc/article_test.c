/* Whole article bodies through yenc_article_feed(). */
#include <string.h>
#include <unity.h>

#include "base/crc32.h"
#include "base/mem.h"
#include "lib/fault.h"
#include "lib/guard.h"
#include "lib/rng.h"
#include "yenc/yenc.h"

static struct rng rng;
static struct yenc_article art;

void setUp(void)
{
    rng_init(&rng, rng_seed(1));
}
void tearDown(void) {}

static void fill(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = (uint8_t)rng_next(&rng);
    }
}

/* What the encoder makes comes back with its verdict, in one piece, and the bytes of the next reply stay unread. */
static void test_round_trip(void)
{
    for (size_t n = 1; n < 40000; n = n * 3 / 2 + 1) {
        uint8_t *data = mem_alloc(n), *out = mem_alloc(n);
        struct yenc_post post = {
            .name = "a b.bin", .size = n + 17, .begin = 7, .part = 2, .total = 3};
        post.line = 64 + (unsigned)rng_below(&rng, 100);
        uint8_t *body = mem_alloc(yenc_post_max(&post, n) + 64);
        fill(data, n);
        size_t len = yenc_post_make(&post, data, n, body), used;
        memcpy(body + len, ".\r\n222 next", 11);
        yenc_article_init(&art, false);
        yenc_article_room(&art, out, n);
        TEST_ASSERT_EQUAL_INT(YENC_FEED_DONE, yenc_article_feed(&art, body, len + 11, &used));
        TEST_ASSERT_EQUAL_UINT64(len + 3, used);
        TEST_ASSERT_EQUAL_STRING("ok", yenc_verdict_name(art.verdict));
        TEST_ASSERT_EQUAL_UINT64(n, art.len);
        TEST_ASSERT_EQUAL_MEMORY(data, out, n);
        TEST_ASSERT_EQUAL_STRING("a b.bin", art.header.name);
        TEST_ASSERT_EQUAL_UINT64(7, art.header.begin);
        mem_free(data);
        mem_free(out);
        mem_free(body);
    }
}

static enum yenc_feed feed_text(const char *text)
{
    size_t used;
    return yenc_article_feed(&art, (const uint8_t *)text, strlen(text), &used);
}

/* Articles that follow each other in one stream, cut anywhere: each takes exactly its own bytes, and nothing is
 * allocated on the way. */
static void test_pipeline(void)
{
    enum { ARTICLES = 12, PART = 5000 };
    static uint8_t data[ARTICLES][PART], stream[ARTICLES * 3 * PART], room[PART];
    size_t ends[ARTICLES], len = 0, at = 0;
    for (int i = 0; i < ARTICLES; i++) {
        fill(data[i], PART);
        struct yenc_post post = {.name = "x",
                                 .size = ARTICLES * PART,
                                 .begin = (uint64_t)i * PART,
                                 .part = (uint32_t)i + 1,
                                 .total = ARTICLES,
                                 .line = 128};
        len += yenc_post_make(&post, data[i], PART, stream + len);
        memcpy(stream + len, ".\r\n", 3);
        ends[i] = len += 3;
    }
    fault_arm(0);
    for (int i = 0; i < ARTICLES; i++) {
        enum yenc_feed f = YENC_FEED_MORE;
        yenc_article_init(&art, false);
        yenc_article_room(&art, room, sizeof(room));
        while (f == YENC_FEED_MORE) {
            size_t n = 1 + rng_below(&rng, 3000), used;
            f = yenc_article_feed(&art, stream + at, n < len - at ? n : len - at, &used);
            at += used;
        }
        TEST_ASSERT_EQUAL_INT(YENC_FEED_DONE, f);
        TEST_ASSERT_EQUAL_UINT64(ends[i], at);
        TEST_ASSERT_EQUAL_STRING("ok", yenc_verdict_name(art.verdict));
        TEST_ASSERT_EQUAL_UINT32((uint32_t)i + 1, art.header.part);
        TEST_ASSERT_EQUAL_MEMORY(data[i], room, PART);
    }
    TEST_ASSERT_EQUAL_UINT(0, fault_count());
    fault_disarm();
}

/* A line of 64 KiB outside of the data is read, a longer one is the end of our patience; inside of the data, lines may
 * be as long as the article. */
static void test_line_limit(void)
{
    static char line[YENC_TEXT_LINE_MAX + 4];
    memset(line, 'x', YENC_TEXT_LINE_MAX);
    yenc_article_init(&art, false);
    memcpy(line + YENC_TEXT_LINE_MAX - 1, "\r\n", 3);
    TEST_ASSERT_EQUAL_INT(YENC_FEED_MORE, feed_text(line));
    TEST_ASSERT_EQUAL_INT(YENC_FEED_DONE, feed_text(".\r\n"));
    TEST_ASSERT_EQUAL_INT(YENC_NOT_YENC, art.verdict);
    memset(line, 'x', YENC_TEXT_LINE_MAX + 1);
    line[YENC_TEXT_LINE_MAX + 1] = '\0';
    yenc_article_init(&art, false);
    TEST_ASSERT_EQUAL_INT(YENC_FEED_LIMIT, feed_text(line));
    TEST_ASSERT_EQUAL_INT(YENC_LIMIT, art.verdict);
}

/* A body that does not end is cut at 16 MiB, whether it is data, text or an endless trailer. */
static void test_article_limit(void)
{
    static const char *const starts[] = {"=ybegin line=128 size=99999999 name=x\r\n", "text\r\n",
                                         "=ybegin line=128 size=0 name=x\r\n"};
    static char block[65536];
    for (size_t i = 0; i < sizeof(block); i++) {
        block[i] = i % 100 == 0 ? '\n' : 'x';
    }
    uint8_t *room = mem_alloc(YENC_RAW_MAX);
    for (size_t i = 0; i < 3; i++) {
        yenc_article_init(&art, false);
        yenc_article_room(&art, room, YENC_RAW_MAX);
        size_t fed = strlen(starts[i]), used;
        enum yenc_feed f = feed_text(starts[i]);
        while (f == YENC_FEED_MORE) {
            f = yenc_article_feed(&art, (const uint8_t *)block, sizeof(block), &used);
            fed += used;
        }
        TEST_ASSERT_EQUAL_INT(YENC_FEED_LIMIT, f);
        TEST_ASSERT_EQUAL_UINT64(YENC_RAW_MAX, fed);
        TEST_ASSERT_EQUAL_STRING("limit", yenc_verdict_name(art.verdict));
    }
    mem_free(room);
}

/* Room is asked for at the first byte of data, once the header is known, and never more than an article can hold. */
static void test_room_is_bounded(void)
{
    yenc_article_init(&art, false);
    TEST_ASSERT_EQUAL_INT(YENC_FEED_MORE,
                          feed_text("=ybegin line=128 size=4611686018427387904 name=x\r\n"));
    TEST_ASSERT_EQUAL_INT(YENC_FEED_ROOM, feed_text("kkk"));
    TEST_ASSERT_EQUAL_UINT64(YENC_RAW_MAX, yenc_article_wants(&art));
    yenc_article_init(&art, false);
    TEST_ASSERT_EQUAL_INT(YENC_FEED_ROOM, feed_text("=ybegin part=1 line=128 size=900000 name=x\r\n"
                                                    "=ypart begin=1 end=3\r\nkkk"));
    TEST_ASSERT_EQUAL_UINT64(3, yenc_article_wants(&art)); /* the part's, not the file's */
    uint8_t room[3];
    yenc_article_room(&art, room, 2);
    size_t used;
    TEST_ASSERT_EQUAL_INT(YENC_FEED_ROOM,
                          yenc_article_feed(&art, (const uint8_t *)"kkk", 3, &used));
    TEST_ASSERT_EQUAL_UINT64(2, used);
    yenc_article_room(&art, room, 3);
    TEST_ASSERT_EQUAL_INT(YENC_FEED_MORE, yenc_article_feed(&art, (const uint8_t *)"k", 1, &used));
    TEST_ASSERT_EQUAL_MEMORY("AAA", room, 3);
}

/* Room of exactly the part's size is enough for it, and for an article that is longer than it says: nothing is written
 * behind it. */
static void test_no_byte_behind_the_room(void)
{
    enum { PART = 3000, MORE = 700 };
    static uint8_t data[PART + MORE], body[3 * (PART + MORE)];
    struct guard g;
    guard_init(&g, PART);
    fill(data, sizeof(data));
    struct yenc_post post = {.name = "x", .size = PART, .line = 128};
    size_t len = yenc_post_make(&post, data, sizeof(data), body), used;
    memcpy(body + len, ".\r\n", 3);
    for (size_t step = 1; step < 5000; step = step * 3 + 1) {
        yenc_article_init(&art, false);
        yenc_article_room(&art, g.end - PART, PART);
        for (size_t at = 0; at < len + 3; at += used) {
            size_t n = step < len + 3 - at ? step : len + 3 - at;
            yenc_article_feed(&art, body + at, n, &used);
            TEST_ASSERT_EQUAL_UINT64(n, used);
        }
        TEST_ASSERT_EQUAL_STRING("bad-size", yenc_verdict_name(art.verdict));
        TEST_ASSERT_EQUAL_UINT64(PART, art.len);
        TEST_ASSERT_EQUAL_UINT64(PART + MORE, art.decoded);
        TEST_ASSERT_EQUAL_MEMORY(data, g.end - PART, PART);
    }
    guard_close(&g);
}

/* A reply that a poster hides behind bare LFs stays part of the article, in the text and in the data. */
static void test_no_smuggling(void)
{
    uint8_t room[100];
    yenc_article_init(&art, false);
    yenc_article_room(&art, room, sizeof(room));
    TEST_ASSERT_EQUAL_INT(YENC_FEED_MORE,
                          feed_text("text\n.\n222 0 <evil@x>\r\n=ybegin size=9 name=x\n"
                                    "k\n.\n430 gone\n.\r\nk\r\n"));
    TEST_ASSERT_EQUAL_INT(YENC_FEED_DONE, feed_text(".\r\n"));
}

/* A name longer than is kept is cut between characters and stays the UTF-8 that it was. */
static void test_long_utf8_name(void)
{
    struct yenc_header h;
    char line[YENC_KEPT_MAX];
    int n = snprintf(line, sizeof(line), "=ybegin size=1 name=x");
    for (size_t i = (size_t)n; i < sizeof(line); i++) { /* the last one is torn */
        line[i] = (i - (size_t)n) % 2 == 0 ? '\xc3' : '\xbc';
    }
    TEST_ASSERT_EQUAL_HEX8(0xc3, line[sizeof(line) - 1]);
    TEST_ASSERT_NULL(yenc_parse_begin(&h, line, sizeof(line)));
    TEST_ASSERT_EQUAL_UINT64(YENC_NAME_MAX - 1, strlen(h.name)); /* "x" and whole characters */
    TEST_ASSERT_EQUAL_STRING_LEN("x\xc3\xbc\xc3\xbc", h.name, 5);
    TEST_ASSERT_NULL(yenc_parse_begin(&h, "=ybegin size=1 name=a\0b", 23));
    TEST_ASSERT_EQUAL_STRING("a_b", h.name);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_round_trip);
    RUN_TEST(test_pipeline);
    RUN_TEST(test_line_limit);
    RUN_TEST(test_article_limit);
    RUN_TEST(test_room_is_bounded);
    RUN_TEST(test_no_byte_behind_the_room);
    RUN_TEST(test_no_smuggling);
    RUN_TEST(test_long_utf8_name);
    return UNITY_END();
}
