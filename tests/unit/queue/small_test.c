/* The small parts the queue is made of: bit sets, the id map, base64. */
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "base/mem.h"
#include "lib/rng.h"
#include "queue/b64.h"
#include "queue/bitset.h"
#include "queue/idmap.h"

void setUp(void) {}
void tearDown(void) {}

/* A set of any size agrees with an array of flags about its members and the next one from anywhere. */
static void test_bitset_agrees_with_flags(void)
{
    static const uint32_t sizes[] = {1, 2, 63, 64, 65, 4095, 4096, 4097, 300000};
    struct rng rng;
    rng_init(&rng, rng_seed(3));
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        uint32_t size = sizes[s];
        uint64_t *words = mem_zalloc(bitset_words(size), sizeof(*words));
        bool *flags = mem_zalloc(size, sizeof(*flags));
        struct bitset b;
        bitset_init(&b, words, size);
        TEST_ASSERT_TRUE(bitset_empty(&b));
        for (int step = 0; step < 3000; step++) {
            uint32_t i = (uint32_t)rng_below(&rng, size);
            flags[i] = rng_below(&rng, 3) != 0;
            (flags[i] ? bitset_set : bitset_clear)(&b, i);
            uint32_t from = (uint32_t)rng_below(&rng, size + 1), expected = from;
            while (expected < size && !flags[expected] && expected < from + 5000) {
                expected++;
            }
            uint32_t next = bitset_next(&b, from);
            if (expected < size && flags[expected]) {
                TEST_ASSERT_EQUAL_UINT32(expected, next);
            } else {
                TEST_ASSERT_TRUE(next >= expected);
            }
        }
        for (uint32_t i = 0; i < size; i++) {
            if (flags[i]) {
                bitset_clear(&b, i);
            }
        }
        TEST_ASSERT_TRUE(bitset_empty(&b) && bitset_next(&b, 0) == BITSET_NONE);
        for (size_t w = 0; w < bitset_words(size); w++) {
            TEST_ASSERT_TRUE(words[w] == 0);
        }
        mem_free(words);
        mem_free(flags);
    }
}

/* Ids are found until they are removed, in whatever order that happens. */
static void test_idmap(void)
{
    enum { IDS = 3000 };
    static bool in[IDS];
    struct rng rng;
    struct idmap *m = idmap_new();
    rng_init(&rng, rng_seed(4));
    for (int step = 0; step < 30000; step++) {
        uint32_t id = (uint32_t)rng_below(&rng, IDS - 1) + 1;
        if (in[id]) {
            idmap_remove(m, id);
        } else {
            TEST_ASSERT_EQUAL(0, idmap_reserve(m, 1));
            idmap_put(m, id, &in[id]);
        }
        in[id] = !in[id];
        id = (uint32_t)rng_below(&rng, IDS);
        TEST_ASSERT_TRUE(idmap_get(m, id) == (in[id] ? (void *)&in[id] : NULL));
    }
    idmap_free(m);
}

/* Every length comes back; padding, letters and length are checked. */
static void test_base64(void)
{
    unsigned char bytes[5000], back[5000];
    char text[7000];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(i * 31 + (i >> 8));
    }
    for (size_t n = 0; n < sizeof(bytes); n += n < 300 ? 1 : 997) {
        size_t len = b64_encoded_len(n);
        b64_encode(bytes, n, text);
        TEST_ASSERT_TRUE(b64_decode(text, len, back, n));
        TEST_ASSERT_TRUE(n == 0 || memcmp(bytes, back, n) == 0);
        TEST_ASSERT_FALSE(n > 0 && b64_decode(text, len - 1, back, n));
        if (n > 0) {
            text[len / 2] = '!';
            TEST_ASSERT_FALSE(b64_decode(text, len, back, n));
        }
    }
    b64_encode("any carnal pleas", 16, text);
    TEST_ASSERT_EQUAL_MEMORY("YW55IGNhcm5hbCBwbGVhcw==", text, 24);
    TEST_ASSERT_FALSE(b64_decode("QR==", 4, back, 1)); /* another text for 'A' */
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_bitset_agrees_with_flags);
    RUN_TEST(test_idmap);
    RUN_TEST(test_base64);
    return UNITY_END();
}
