/* crc32_avx512.c - four registers of 64 bytes. */
#include "base/crc32_kernel.h"

#if defined(__VPCLMULQDQ__) && defined(__AVX512F__)

#    include "base/crc32_fold.h"

static inline __m512i load(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

static inline __m512i fold(__m512i x, __m512i k, __m512i next)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x01),
                                     _mm512_clmulepi64_epi128(x, k, 0x10), next, 0x96);
}

uint32_t crc32_update_avx512(uint32_t crc, const uint8_t *p, size_t n)
{
    if (n < 256) {
        return crc32_update_vpclmul(crc, p, n);
    }
    __m512i a = _mm512_xor_si512(load(p), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int32_t)~crc)));
    __m512i b = load(p + 64), c = load(p + 128), d = load(p + 192);
    const __m512i by2048 = _mm512_broadcast_i32x4(crc32_factors(CRC32_BY_2048));
    const __m512i by512 = _mm512_broadcast_i32x4(crc32_factors(CRC32_BY_512));
    for (p += 256, n -= 256; n >= 256; p += 256, n -= 256) {
        a = fold(a, by2048, load(p));
        b = fold(b, by2048, load(p + 64));
        c = fold(c, by2048, load(p + 128));
        d = fold(d, by2048, load(p + 192));
    }
    a = fold(fold(fold(a, by512, b), by512, c), by512, d);
    for (; n >= 64; p += 64, n -= 64) {
        a = fold(a, by512, load(p));
    }
    const __m128i by128 = crc32_factors(CRC32_BY_128);
    __m128i x = _mm512_castsi512_si128(a);
    x = crc32_fold(x, by128, _mm512_extracti32x4_epi32(a, 1));
    x = crc32_fold(x, by128, _mm512_extracti32x4_epi32(a, 2));
    x = crc32_fold(x, by128, _mm512_extracti32x4_epi32(a, 3));
    return crc32_finish(x, p, n);
}

#endif
