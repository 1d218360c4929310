/* decode_vbmi2.c - the primitives of decode_loop.h with one register of 64 bytes (AVX-512 VBMI2, GFNI). */
#include "yenc/kernel.h"

#if defined(__AVX512VBMI2__)

#    include <immintrin.h>

#    include "yenc/simd.h"

struct bytes {
    __m512i v;
};

INLINE struct bytes load_block(const uint8_t *s)
{
    return (struct bytes){_mm512_loadu_si512(s)};
}

INLINE uint64_t eq_bits(struct bytes b)
{
    return _mm512_cmpeq_epi8_mask(b.v, _mm512_set1_epi8('='));
}

INLINE uint64_t dot_bits(struct bytes b)
{
    return _mm512_cmpeq_epi8_mask(b.v, _mm512_set1_epi8('.'));
}

/* LF and CR differ by the bits 0x07. A linear map that makes zero of 0 and 0x07 only, moved so that LF becomes zero,
 * therefore makes zeros of these two bytes and of no other. Here it keeps bits 7 to 3, and has the sums of bits 2 and 1
 * and of bits 1 and 0 in places 2 and 1. */
INLINE __m512i zero_if_newline(struct bytes b)
{
    return _mm512_gf2p8affine_epi64_epi8(b.v, _mm512_set1_epi64(0x0003060810204080), 0x0e);
}

INLINE uint64_t nl_bits(struct bytes b)
{
    __m512i v = zero_if_newline(b);
    return _mm512_testn_epi8_mask(v, v);
}

INLINE bool any_newline(struct bytes b, struct bytes c)
{
    __m512i least = _mm512_min_epu8(zero_if_newline(b), zero_if_newline(c));
    return _mm512_testn_epi8_mask(least, least) != 0;
}

INLINE struct bytes unescape_bits(struct bytes b, uint64_t escaped)
{
    __m512i v = _mm512_add_epi8(b.v, _mm512_set1_epi8(-42));
    return (struct bytes){_mm512_mask_add_epi8(v, escaped, v, _mm512_set1_epi8(-64))};
}

INLINE struct bytes unescape(struct bytes b, uint64_t eq, uint64_t carry)
{
    return unescape_bits(b, eq << 1 | carry);
}

INLINE struct bytes unescape_first(struct bytes b, uint64_t eq, const uint8_t *s)
{
    (void)s;
    return unescape(b, eq, 0);
}

INLINE struct bytes unescape_inner(struct bytes b, uint64_t eq, uint64_t carry, const uint8_t *s)
{
    (void)s;
    return unescape(b, eq, carry);
}

INLINE uint8_t *put(uint8_t *p, struct bytes b, uint64_t keep)
{
    _mm512_storeu_si512(p, _mm512_maskz_compress_epi8(keep, b.v));
    return p + _mm_popcnt_u64(keep);
}

#    include "yenc/decode_loop.h"

void yenc_decode_vbmi2(struct yenc_raw *r)
{
    decode_loop(r);
}

#endif
