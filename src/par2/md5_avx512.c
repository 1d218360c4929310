/* md5_avx512.c - 2 x 16 streams; the round functions are one instruction each, and so is the rotation. */
#if defined(__AVX512F__)
#    include <immintrin.h>
#    include <stddef.h>
#    include <stdint.h>

#    include "par2/kernel.h"

typedef __m512i V;
#    define V           V
#    define WIDTH       16
#    define NAME        md5_update_avx512
#    define ADD         _mm512_add_epi32
#    define SET1(x)     _mm512_set1_epi32((int)(x))
#    define ROTL(x, n)  _mm512_rol_epi32((x), (n))
#    define F(x, y, z)  _mm512_ternarylogic_epi32(x, y, z, 0xca) /* x ? y : z */
#    define G(x, y, z)  _mm512_ternarylogic_epi32(x, y, z, 0xe4) /* z ? x : y */
#    define H(x, y, z)  _mm512_ternarylogic_epi32(x, y, z, 0x96)
#    define I(x, y, z)  _mm512_ternarylogic_epi32(x, y, z, 0x39) /* y ^ (x | ~z) */
#    define LOAD(p)     _mm512_load_si512(p)
#    define STORE(p, v) _mm512_store_si512(p, v)

/* 16 x 16 words. Four 16-byte pieces, of streams l, l+4, l+8 and l+12, are joined while loading: the shuffles that
 * remain stay inside the 128-bit lanes. */
static inline void transpose(V *w, const uint8_t *const *p, size_t at)
{
    for (unsigned q = 0; q < 4; q++) {
        V r[4] KERNEL_SCRATCH;
        for (unsigned l = 0; l < 4; l++) {
            const uint8_t *s = p[l] + at + 16 * q;
            r[l] = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)s));
            for (unsigned k = 1; k < 4; k++) {
                const __m128i x =
                    _mm_loadu_si128((const __m128i *)(const void *)(p[l + 4 * k] + at + 16 * q));
                const V wide = _mm512_broadcast_i32x4(x);
                r[l] = _mm512_mask_mov_epi32(r[l], (__mmask16)(0xf << (4 * k)), wide);
            }
        }
        V t0 = _mm512_unpacklo_epi32(r[0], r[1]), t1 = _mm512_unpackhi_epi32(r[0], r[1]);
        V t2 = _mm512_unpacklo_epi32(r[2], r[3]), t3 = _mm512_unpackhi_epi32(r[2], r[3]);
        w[4 * q] = _mm512_unpacklo_epi64(t0, t2);
        w[4 * q + 1] = _mm512_unpackhi_epi64(t0, t2);
        w[4 * q + 2] = _mm512_unpacklo_epi64(t1, t3);
        w[4 * q + 3] = _mm512_unpackhi_epi64(t1, t3);
    }
}
#    define TRANSPOSE transpose

#    include "par2/md5_lanes.h"
#else
typedef int md5_avx512_empty; /* not this CPU, or built without it */
#endif
