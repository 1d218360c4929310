/* CRC-32: the arithmetic of joining, against zlib. */
#include <string.h>
#include <unity.h>
#include <zlib.h>

#include "base/crc32.h"
#include "lib/rng.h"

static struct rng rng;

void setUp(void)
{
    rng_init(&rng, rng_seed(3));
}
void tearDown(void) {}

static void fill(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = (uint8_t)rng_next(&rng);
    }
}

/* A CRC taken in pieces is the CRC of the whole. */
static void test_pieces(void)
{
    static uint8_t data[20000];
    fill(data, sizeof(data));
    uint32_t whole = crc32_update(0, data, sizeof(data)), crc = 0;
    for (size_t at = 0, n; at < sizeof(data); at += n) {
        n = rng_below(&rng, 700);
        n = n < sizeof(data) - at ? n : sizeof(data) - at;
        crc = crc32_update(crc, data + at, n);
    }
    TEST_ASSERT_EQUAL_HEX32(whole, crc);
    TEST_ASSERT_EQUAL_HEX32(crc32(0, data, sizeof(data)), crc);
    TEST_ASSERT_EQUAL_HEX32(0xcbf43926, crc32_update(0, "123456789", 9));
}

/* Joining agrees with zlib's crc32_combine for random lengths up to 2^40, and cutting takes it back. */
static void test_join_equals_zlib(void)
{
    for (int i = 0; i < 20000; i++) {
        uint32_t a = (uint32_t)rng_next(&rng), b = (uint32_t)rng_next(&rng);
        uint64_t len = rng_next(&rng) >> (24 + rng_below(&rng, 40));
        uint32_t ab = crc32_join(a, b, len);
        TEST_ASSERT_EQUAL_HEX32((uint32_t)crc32_combine64(a, b, (z_off64_t)len), ab);
        TEST_ASSERT_EQUAL_HEX32(a, crc32_cut(ab, b, len));
        TEST_ASSERT_EQUAL_HEX32(b, crc32_join(a, ab, len)); /* a front taken off */
        TEST_ASSERT_EQUAL_HEX32(ab, crc32_multiply(a, crc32_power(len)) ^ b);
    }
}

/* Zeros without bytes are zeros with bytes; for lengths no memory holds, they agree with zlib's combination of the
 * doubled pieces; and they can be taken off again. */
static void test_zeros(void)
{
    static const uint8_t zero[5000];
    for (int i = 0; i < 2000; i++) {
        uint32_t crc = (uint32_t)rng_next(&rng);
        size_t len = rng_below(&rng, sizeof(zero));
        TEST_ASSERT_EQUAL_HEX32(crc32(crc, zero, (unsigned)len), crc32_zeros(crc, len));
    }
    uint32_t doubled = crc32_update(0, zero, 1);
    for (int bits = 0; bits <= 40; bits++) {
        uint64_t len = 1ull << bits;
        TEST_ASSERT_EQUAL_HEX32(doubled, crc32_zeros(0, len));
        doubled = (uint32_t)crc32_combine64(doubled, doubled, (z_off64_t)len);
    }
    for (int i = 0; i < 2000; i++) {
        uint32_t crc = (uint32_t)rng_next(&rng);
        uint64_t len = rng_next(&rng) >> rng_below(&rng, 64);
        TEST_ASSERT_EQUAL_HEX32(crc, crc32_unzeros(crc32_zeros(crc, len), len));
        TEST_ASSERT_EQUAL_HEX32(crc32_zeros(crc, len), crc32_join(crc, crc32_zeros(0, len), len));
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_pieces);
    RUN_TEST(test_join_equals_zlib);
    RUN_TEST(test_zeros);
    return UNITY_END();
}
