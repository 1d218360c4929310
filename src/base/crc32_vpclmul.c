/* crc32_vpclmul.c - four registers of 32 bytes. */
#include "base/crc32_kernel.h"

#if defined(__VPCLMULQDQ__) && defined(__AVX2__)

#    include "base/crc32_fold.h"

static inline __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

static inline __m256i fold(__m256i x, __m256i k, __m256i next)
{
    return _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(x, k, 0x01), next),
                            _mm256_clmulepi64_epi128(x, k, 0x10));
}

uint32_t crc32_update_vpclmul(uint32_t crc, const uint8_t *p, size_t n)
{
    if (n < 128) {
        return crc32_update_pclmul(crc, p, n);
    }
    __m256i a = _mm256_xor_si256(load(p), _mm256_zextsi128_si256(_mm_cvtsi32_si128((int32_t)~crc)));
    __m256i b = load(p + 32), c = load(p + 64), d = load(p + 96);
    const __m256i by1024 = _mm256_broadcastsi128_si256(crc32_factors(CRC32_BY_1024));
    const __m256i by256 = _mm256_broadcastsi128_si256(crc32_factors(CRC32_BY_256));
    for (p += 128, n -= 128; n >= 128; p += 128, n -= 128) {
        a = fold(a, by1024, load(p));
        b = fold(b, by1024, load(p + 32));
        c = fold(c, by1024, load(p + 64));
        d = fold(d, by1024, load(p + 96));
    }
    a = fold(fold(fold(a, by256, b), by256, c), by256, d);
    for (; n >= 32; p += 32, n -= 32) {
        a = fold(a, by256, load(p));
    }
    __m128i x = crc32_fold(_mm256_castsi256_si128(a), crc32_factors(CRC32_BY_128),
                           _mm256_extracti128_si256(a, 1));
    return crc32_finish(x, p, n);
}

#endif
