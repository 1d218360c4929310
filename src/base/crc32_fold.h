/* crc32_fold.h - private: CRC by carry-less multiplication, 16 bytes a register; the part that all x86 kernels share.
 *
 * A register holds 16 bytes whose CRC is that of all bytes seen so far. To go on by D bits, its two halves are
 * multiplied by x^(D+32) and x^(D-32) mod P and added to the 16 bytes that stand D bits further on. (Bits are
 * reflected, which costs one place: constants are shifted left by one.) Several registers run side by side, because a
 * multiplication takes longer than it occupies the unit. At the end they are folded into one, and that into 32 bits by
 * Barrett's reduction. */
#ifndef BASE_CRC32_FOLD_H
#define BASE_CRC32_FOLD_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define CRC32_INLINE static inline __attribute__((always_inline))

/* x^(D+32) and x^(D-32), shifted: the factors of the low and of the high half. */
#define CRC32_BY_128  0x1751997d0, 0x0ccaa009e
#define CRC32_BY_256  0x0f1da05aa, 0x15a546366
#define CRC32_BY_512  0x154442bd4, 0x1c6e41596
#define CRC32_BY_1024 0x1e88ef372, 0x14a7fe880
#define CRC32_BY_2048 0x11542778a, 0x1322d1430

CRC32_INLINE __m128i crc32_factors(uint64_t low, uint64_t high)
{
    return _mm_set_epi64x((int64_t)low, (int64_t)high);
}

CRC32_INLINE __m128i crc32_load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

CRC32_INLINE __m128i crc32_fold(__m128i x, __m128i k, __m128i next)
{
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x01), next),
                         _mm_clmulepi64_si128(x, k, 0x10));
}

/* x followed by the last n bytes (0 < n < 16) of the data, which end at `end`. At least 16 bytes stand before it. */
CRC32_INLINE __m128i crc32_fold_rest(__m128i x, const uint8_t *end, size_t n)
{
    static const int8_t slide[48] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                     -1, -1, -1, -1, 0,  1,  2,  3,  4,  5,  6,  7,
                                     8,  9,  10, 11, 12, 13, 14, 15, -1, -1, -1, -1,
                                     -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    __m128i up = _mm_loadu_si128((const __m128i *)(slide + n));
    __m128i down = _mm_loadu_si128((const __m128i *)(slide + 16 + n));
    __m128i front = _mm_shuffle_epi8(x, up); /* the first n bytes of x, moved to its end */
    __m128i back = _mm_blendv_epi8(_mm_shuffle_epi8(x, down), crc32_load(end - 16), down);
    return crc32_fold(front, crc32_factors(CRC32_BY_128), back);
}

/* The CRC of x followed by n more bytes at p. At least 16 bytes stand before p + n. */
CRC32_INLINE uint32_t crc32_finish(__m128i x, const uint8_t *p, size_t n)
{
    const __m128i by128 = crc32_factors(CRC32_BY_128);
    for (; n >= 16; p += 16, n -= 16) {
        x = crc32_fold(x, by128, crc32_load(p));
    }
    if (n > 0) {
        x = crc32_fold_rest(x, p + n, n);
    }
    const __m128i low32 = _mm_setr_epi32(-1, 0, -1, 0);
    const __m128i by64 = _mm_set_epi64x(0, 0x163cd6124);
    const __m128i barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641); /* x^64 / P, and P */
    x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, by128, 0x00));
    x = _mm_xor_si128(_mm_srli_si128(x, 4),
                      _mm_clmulepi64_si128(_mm_and_si128(x, low32), by64, 0x00));
    __m128i q = _mm_clmulepi64_si128(_mm_and_si128(x, low32), barrett, 0x10);
    q = _mm_clmulepi64_si128(_mm_and_si128(q, low32), barrett, 0x00);
    return ~(uint32_t)_mm_extract_epi32(_mm_xor_si128(x, q), 1);
}

#endif
