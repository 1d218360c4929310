/* decode_avx2.c - the primitives of decode_loop.h with two registers of 32 bytes. */
#include "yenc/kernel.h"

#if defined(__AVX2__)

#    include <immintrin.h>

#    include "yenc/compact.h"
#    include "yenc/simd.h"

struct bytes {
    __m256i a, b;
};

INLINE __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

INLINE struct bytes load_block(const uint8_t *s)
{
    return (struct bytes){load(s), load(s + 32)};
}

INLINE uint64_t bits(__m256i a, __m256i b)
{
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

INLINE __m256i is_byte(__m256i v, char c)
{
    return _mm256_cmpeq_epi8(v, _mm256_set1_epi8(c));
}

INLINE uint64_t eq_bits(struct bytes v)
{
    return bits(is_byte(v.a, '='), is_byte(v.b, '='));
}

INLINE uint64_t dot_bits(struct bytes v)
{
    return bits(is_byte(v.a, '.'), is_byte(v.b, '.'));
}

/* Each byte picks, by its low four bits, the one it would have to be. */
INLINE __m256i is_newline(__m256i v)
{
    const __m256i t = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, '\n', -1, -1, '\r', -1, -1));
    return _mm256_cmpeq_epi8(v, _mm256_shuffle_epi8(t, v));
}

INLINE uint64_t nl_bits(struct bytes v)
{
    return bits(is_newline(v.a), is_newline(v.b));
}

INLINE bool any_newline(struct bytes v, struct bytes w)
{
    __m256i any = _mm256_or_si256(_mm256_or_si256(is_newline(v.a), is_newline(v.b)),
                                  _mm256_or_si256(is_newline(w.a), is_newline(w.b)));
    return _mm256_movemask_epi8(any) != 0;
}

INLINE __m256i subtract(__m256i v, __m256i escaped)
{
    return _mm256_add_epi8(_mm256_add_epi8(v, _mm256_set1_epi8(-42)),
                           _mm256_and_si256(escaped, _mm256_set1_epi8(-64)));
}

/* The bytes one place on: the 31 of v behind the last one of u. */
INLINE __m256i shifted(__m256i v, __m256i u)
{
    return _mm256_alignr_epi8(v, _mm256_permute2x128_si256(u, v, 0x21), 15);
}

INLINE struct bytes unescape(struct bytes v, uint64_t eq, uint64_t carry)
{
    (void)eq;
    __m256i before = _mm256_setzero_si256();
    if (!__builtin_constant_p(carry) || carry != 0) {
        before = _mm256_set1_epi8((char)-(int)carry);
    }
    __m256i a = is_byte(v.a, '='), b = is_byte(v.b, '=');
    return (struct bytes){subtract(v.a, shifted(a, before)), subtract(v.b, shifted(b, a))};
}

/* What stands in s[-1] is masked out: in place it may be anything by now. */
INLINE struct bytes unescape_first(struct bytes v, uint64_t eq, const uint8_t *s)
{
    (void)eq;
    const __m256i not_first = _mm256_setr_epi64x(~0xff, -1, -1, -1);
    __m256i a = _mm256_and_si256(is_byte(load(s - 1), '='), not_first);
    return (struct bytes){subtract(v.a, a), subtract(v.b, is_byte(load(s + 31), '='))};
}

INLINE struct bytes unescape_inner(struct bytes v, uint64_t eq, uint64_t carry, const uint8_t *s)
{
    (void)eq, (void)carry;
    return (struct bytes){subtract(v.a, is_byte(load(s - 1), '=')),
                          subtract(v.b, is_byte(load(s + 31), '='))};
}

INLINE __m256i expand(uint32_t m)
{
    const __m256i spread =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i select = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    __m256i v = _mm256_shuffle_epi8(_mm256_set1_epi32((int32_t)m), spread);
    return _mm256_cmpeq_epi8(_mm256_and_si256(v, select), select);
}

static struct bytes unescape_bits(struct bytes v, uint64_t escaped)
{
    return (struct bytes){subtract(v.a, expand((uint32_t)escaped)),
                          subtract(v.b, expand((uint32_t)(escaped >> 32)))};
}

INLINE __m256i moves(uint64_t low, uint64_t high)
{
    const char *table = (const char *)yenc_compact_table;
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_load_si128((const __m128i *)(table + low))),
        _mm_load_si128((const __m128i *)(table + high)), 1);
}

INLINE uint8_t *put(uint8_t *p, struct bytes v, uint64_t keep)
{
    __m256i a = _mm256_shuffle_epi8(v.a, moves(keep << 4 & 0x7fff0, keep >> 12 & 0x7fff0));
    __m256i b = _mm256_shuffle_epi8(v.b, moves(keep >> 28 & 0x7fff0, keep >> 44 & 0x7fff0));
    __m128i *to1 = (__m128i *)(p + _mm_popcnt_u32((uint16_t)keep));
    __m128i *to2 = (__m128i *)(p + _mm_popcnt_u32((uint32_t)keep));
    __m128i *to3 = (__m128i *)(p + _mm_popcnt_u64(keep << 16));
    _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(a));
    _mm_storeu_si128(to1, _mm256_extracti128_si256(a, 1));
    _mm_storeu_si128(to2, _mm256_castsi256_si128(b));
    _mm_storeu_si128(to3, _mm256_extracti128_si256(b, 1));
    return p + _mm_popcnt_u64(keep);
}

#    include "yenc/decode_loop.h"

void yenc_decode_avx2(struct yenc_raw *r)
{
    yenc_compact_init();
    decode_loop(r);
}

#endif
