/* crc32_armv8.c - the CRC instructions of ARMv8, on three stripes side by side: one instruction takes eight bytes and
 * three cycles, and a new one can start in each. */
#include "base/crc32_kernel.h"

#if defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)

#    include <arm_acle.h>
#    include <string.h>

#    include "base/crc32.h"

enum { STRIPE = 4096 };

static uint64_t load(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

uint32_t crc32_update_armv8(uint32_t crc, const uint8_t *p, size_t n)
{
    uint32_t a = ~crc;
    if (n >= 3 * STRIPE) {
        const uint32_t by_stripe = crc32_power(STRIPE);
        for (; n >= 3 * STRIPE; p += 3 * STRIPE, n -= 3 * STRIPE) {
            uint32_t b = 0, c = 0;
            for (const uint8_t *q = p; q < p + STRIPE; q += 8) {
                a = __crc32d(a, load(q));
                b = __crc32d(b, load(q + STRIPE));
                c = __crc32d(c, load(q + 2 * STRIPE));
            }
            a = crc32_multiply(crc32_multiply(a, by_stripe) ^ b, by_stripe) ^ c;
        }
    }
    for (; n >= 8; p += 8, n -= 8) {
        a = __crc32d(a, load(p));
    }
    for (; n > 0; p++, n--) {
        a = __crc32b(a, *p);
    }
    return ~a;
}

#endif
