/* Whole article bodies through yenc_article_feed(). */
#include <string.h>
#include <unity.h>

#include "base/crc32.h"
#include "base/mem.h"
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

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_round_trip);
    return UNITY_END();
}
