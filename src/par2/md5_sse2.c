/* md5_sse2.c - 2 x 4 streams; every x86-64 runs it. */
#if defined(__x86_64__)
#    include <emmintrin.h>
#    include <stddef.h>
#    include <stdint.h>

#    include "par2/kernel.h"

typedef __m128i V;
#    define V           V
#    define WIDTH       4
#    define NAME        md5_update_sse2
#    define ADD         _mm_add_epi32
#    define SET1(x)     _mm_set1_epi32((int)(x))
#    define ROTL(x, n)  _mm_or_si128(_mm_slli_epi32((x), (n)), _mm_srli_epi32((x), 32 - (n)))
#    define AND         _mm_and_si128
#    define XOR         _mm_xor_si128
#    define ONES        _mm_set1_epi32(-1)
#    define F(x, y, z)  XOR(z, AND(x, XOR(y, z)))
#    define ANDNOT      _mm_andnot_si128
#    define H(x, y, z)  XOR(x, XOR(y, z))
#    define I(x, y, z)  XOR(y, _mm_or_si128(x, XOR(z, ONES)))
#    define LOAD(p)     _mm_load_si128((const __m128i *)(const void *)(p))
#    define STORE(p, v) _mm_store_si128((__m128i *)(void *)(p), v)

static inline void transpose(V *w, const uint8_t *const *p, size_t at)
{
    for (unsigned q = 0; q < 4; q++) {
        V r[4] KERNEL_SCRATCH;
        for (unsigned l = 0; l < 4; l++) {
            r[l] = _mm_loadu_si128((const __m128i *)(const void *)(p[l] + at + 16 * q));
        }
        V t0 = _mm_unpacklo_epi32(r[0], r[1]), t1 = _mm_unpackhi_epi32(r[0], r[1]);
        V t2 = _mm_unpacklo_epi32(r[2], r[3]), t3 = _mm_unpackhi_epi32(r[2], r[3]);
        w[4 * q] = _mm_unpacklo_epi64(t0, t2);
        w[4 * q + 1] = _mm_unpackhi_epi64(t0, t2);
        w[4 * q + 2] = _mm_unpacklo_epi64(t1, t3);
        w[4 * q + 3] = _mm_unpackhi_epi64(t1, t3);
    }
}
#    define TRANSPOSE transpose

#    include "par2/md5_lanes.h"
#else
typedef int md5_sse2_empty; /* not this CPU */
#endif
