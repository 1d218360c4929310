/* crc32_pclmul.c - four registers of 16 bytes. */
#include "base/crc32_kernel.h"

#if defined(__PCLMUL__) && defined(__SSE4_1__)

#    include "base/crc32_fold.h"

uint32_t crc32_update_pclmul(uint32_t crc, const uint8_t *p, size_t n)
{
    if (n < 16) {
        return crc32_update_scalar(crc, p, n);
    }
    __m128i a = _mm_xor_si128(crc32_load(p), _mm_cvtsi32_si128((int32_t)~crc));
    if (n < 64) {
        return crc32_finish(a, p + 16, n - 16);
    }
    __m128i b = crc32_load(p + 16), c = crc32_load(p + 32), d = crc32_load(p + 48);
    const __m128i by512 = crc32_factors(CRC32_BY_512), by128 = crc32_factors(CRC32_BY_128);
    for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
        a = crc32_fold(a, by512, crc32_load(p));
        b = crc32_fold(b, by512, crc32_load(p + 16));
        c = crc32_fold(c, by512, crc32_load(p + 32));
        d = crc32_fold(d, by512, crc32_load(p + 48));
    }
    a = crc32_fold(crc32_fold(crc32_fold(a, by128, b), by128, c), by128, d);
    return crc32_finish(a, p, n);
}

#endif
