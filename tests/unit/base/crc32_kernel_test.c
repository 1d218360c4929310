/* CRC-32: every kernel this CPU runs against the definition, bit by bit. */
#include <string.h>
#include <unity.h>

#include "base/crc32_kernel.h"
#include "lib/guard.h"
#include "lib/rng.h"

static struct rng rng;
static struct guard memory;

void setUp(void)
{
    rng_init(&rng, rng_seed(3));
    guard_init(&memory, 1 << 16);
}

void tearDown(void)
{
    guard_close(&memory);
}

static uint32_t by_definition(uint32_t crc, const uint8_t *p, size_t n)
{
    uint32_t c = ~crc;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int bit = 0; bit < 8; bit++) {
            c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0);
        }
    }
    return ~c;
}

static void check(const uint8_t *p, size_t n)
{
    uint32_t start = (uint32_t)rng_next(&rng), want = by_definition(start, p, n);
    for (const struct crc32_kernel *k = crc32_kernels(); k->name != NULL; k++) {
        if (crc32_kernel_runs(k)) {
            TEST_ASSERT_EQUAL_HEX32_MESSAGE(want, k->update(start, p, n), k->name);
        }
    }
}

/* All lengths up to 1100 (four times the widest step and more), ending at a page that must not be touched and at
 * every place in a cache line; and some long ones. */
static void test_kernels(void)
{
    for (uint8_t *p = memory.end - 8192; p < memory.end; p++) {
        *p = (uint8_t)rng_next(&rng);
    }
    for (size_t n = 0; n <= 1100; n++) {
        check(memory.end - n, n);
        check(memory.end - n - n % 64, n);
    }
    for (int i = 0; i < 20; i++) {
        size_t n = 1100 + rng_below(&rng, 60000);
        check(memory.end - n, n);
    }
}

int main(void)
{
    for (const struct crc32_kernel *k = crc32_kernels(); k->name != NULL; k++) {
        printf("kernel %s: %s\n", k->name, crc32_kernel_runs(k) ? "runs" : "not on this CPU");
    }
    UNITY_BEGIN();
    RUN_TEST(test_kernels);
    return UNITY_END();
}
