/* decode_ssse3.c - the primitives of decode_loop.h with four registers of 16 bytes (SSSE3, SSE4.1 and POPCNT: every
 * x86 CPU since 2008). */
#include "yenc/kernel.h"

#if defined(__SSSE3__) && defined(__SSE4_1__) && defined(__POPCNT__)

#    include <immintrin.h>

#    include "yenc/compact.h"
#    include "yenc/simd.h"

struct bytes {
    __m128i a, b, c, d;
};

INLINE __m128i load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

INLINE struct bytes load_block(const uint8_t *s)
{
    return (struct bytes){load(s), load(s + 16), load(s + 32), load(s + 48)};
}

INLINE uint64_t bits(__m128i a, __m128i b, __m128i c, __m128i d)
{
    uint32_t low = (uint32_t)_mm_movemask_epi8(a) | (uint32_t)_mm_movemask_epi8(b) << 16;
    uint32_t high = (uint32_t)_mm_movemask_epi8(c) | (uint32_t)_mm_movemask_epi8(d) << 16;
    return low | (uint64_t)high << 32;
}

INLINE __m128i is_byte(__m128i v, char c)
{
    return _mm_cmpeq_epi8(v, _mm_set1_epi8(c));
}

INLINE uint64_t byte_bits(struct bytes v, char c)
{
    return bits(is_byte(v.a, c), is_byte(v.b, c), is_byte(v.c, c), is_byte(v.d, c));
}

INLINE uint64_t eq_bits(struct bytes v)
{
    return byte_bits(v, '=');
}

INLINE uint64_t dot_bits(struct bytes v)
{
    return byte_bits(v, '.');
}

/* Each byte picks, by its low four bits, the one it would have to be. */
INLINE __m128i is_newline(__m128i v)
{
    const __m128i t =
        _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, '\n', -1, -1, '\r', -1, -1);
    return _mm_cmpeq_epi8(v, _mm_shuffle_epi8(t, v));
}

INLINE uint64_t nl_bits(struct bytes v)
{
    return bits(is_newline(v.a), is_newline(v.b), is_newline(v.c), is_newline(v.d));
}

INLINE __m128i newlines(struct bytes v)
{
    return _mm_or_si128(_mm_or_si128(is_newline(v.a), is_newline(v.b)),
                        _mm_or_si128(is_newline(v.c), is_newline(v.d)));
}

INLINE bool any_newline(struct bytes v, struct bytes w)
{
    return _mm_movemask_epi8(_mm_or_si128(newlines(v), newlines(w))) != 0;
}

INLINE __m128i subtract(__m128i v, __m128i escaped)
{
    return _mm_add_epi8(_mm_add_epi8(v, _mm_set1_epi8(-42)),
                        _mm_and_si128(escaped, _mm_set1_epi8(-64)));
}

INLINE struct bytes unescape(struct bytes v, uint64_t eq, uint64_t carry)
{
    (void)eq;
    __m128i a = is_byte(v.a, '='), b = is_byte(v.b, '='), c = is_byte(v.c, '='),
            d = is_byte(v.d, '=');
    __m128i before = _mm_set1_epi8((char)-(int)carry);
    return (struct bytes){
        subtract(v.a, _mm_alignr_epi8(a, before, 15)), subtract(v.b, _mm_alignr_epi8(b, a, 15)),
        subtract(v.c, _mm_alignr_epi8(c, b, 15)), subtract(v.d, _mm_alignr_epi8(d, c, 15))};
}

INLINE struct bytes unescape_first(struct bytes v, uint64_t eq, const uint8_t *s)
{
    (void)s;
    return unescape(v, eq, 0);
}

INLINE struct bytes unescape_inner(struct bytes v, uint64_t eq, uint64_t carry, const uint8_t *s)
{
    (void)s;
    return unescape(v, eq, carry);
}

INLINE __m128i expand(uint64_t m)
{
    const __m128i select = _mm_set1_epi64x((int64_t)0x8040201008040201);
    __m128i v =
        _mm_shuffle_epi8(_mm_cvtsi32_si128((int32_t)m), _mm_set_epi64x(0x0101010101010101, 0));
    return _mm_cmpeq_epi8(_mm_and_si128(v, select), select);
}

static struct bytes unescape_bits(struct bytes v, uint64_t escaped)
{
    return (struct bytes){subtract(v.a, expand(escaped)), subtract(v.b, expand(escaped >> 16)),
                          subtract(v.c, expand(escaped >> 32)),
                          subtract(v.d, expand(escaped >> 48))};
}

INLINE __m128i moved(__m128i v, uint64_t entry)
{
    const char *table = (const char *)yenc_compact_table;
    return _mm_shuffle_epi8(v, _mm_load_si128((const __m128i *)(table + entry)));
}

INLINE uint8_t *put(uint8_t *p, struct bytes v, uint64_t keep)
{
    __m128i *to1 = (__m128i *)(p + _mm_popcnt_u32((uint16_t)keep));
    __m128i *to2 = (__m128i *)(p + _mm_popcnt_u32((uint32_t)keep));
    __m128i *to3 = (__m128i *)(p + _mm_popcnt_u64(keep << 16));
    _mm_storeu_si128((__m128i *)p, moved(v.a, keep << 4 & 0x7fff0));
    _mm_storeu_si128(to1, moved(v.b, keep >> 12 & 0x7fff0));
    _mm_storeu_si128(to2, moved(v.c, keep >> 28 & 0x7fff0));
    _mm_storeu_si128(to3, moved(v.d, keep >> 44 & 0x7fff0));
    return p + _mm_popcnt_u64(keep);
}

#    include "yenc/decode_loop.h"

void yenc_decode_ssse3(struct yenc_raw *r)
{
    yenc_compact_init();
    decode_loop(r);
}

#endif
