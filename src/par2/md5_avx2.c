/* md5_avx2.c - 2 x 8 streams. */
#if defined(__AVX2__)
#    include <immintrin.h>
#    include <stddef.h>
#    include <stdint.h>

#    include "par2/kernel.h"

typedef __m256i V;
#    define V       V
#    define WIDTH   8
#    define NAME    md5_update_avx2
#    define ADD     _mm256_add_epi32
#    define SET1(x) _mm256_set1_epi32((int)(x))
#    define ROTL(x, n) \
        _mm256_or_si256(_mm256_slli_epi32((x), (n)), _mm256_srli_epi32((x), 32 - (n)))
#    define AND         _mm256_and_si256
#    define XOR         _mm256_xor_si256
#    define ONES        _mm256_set1_epi32(-1)
#    define F(x, y, z)  XOR(z, AND(x, XOR(y, z)))
#    define ANDNOT      _mm256_andnot_si256
#    define H(x, y, z)  XOR(x, XOR(y, z))
#    define I(x, y, z)  XOR(y, _mm256_or_si256(x, XOR(z, ONES)))
#    define LOAD(p)     _mm256_loadu_si256((const __m256i *)(const void *)(p))
#    define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)

/* Two 8 x 8 transpositions of 32-bit words: 16-byte halves are joined while loading, so that the rest stays inside
 * the 128-bit lanes. */
static inline void transpose(V *w, const uint8_t *const *p, size_t at)
{
    for (unsigned q = 0; q < 4; q++) {
        V r[4] KERNEL_SCRATCH;
        for (unsigned l = 0; l < 4; l++) {
            __m128i lo = _mm_loadu_si128((const __m128i *)(const void *)(p[l] + at + 16 * q));
            __m128i hi = _mm_loadu_si128((const __m128i *)(const void *)(p[l + 4] + at + 16 * q));
            r[l] = _mm256_inserti128_si256(_mm256_castsi128_si256(lo), hi, 1);
        }
        V t0 = _mm256_unpacklo_epi32(r[0], r[1]), t1 = _mm256_unpackhi_epi32(r[0], r[1]);
        V t2 = _mm256_unpacklo_epi32(r[2], r[3]), t3 = _mm256_unpackhi_epi32(r[2], r[3]);
        w[4 * q] = _mm256_unpacklo_epi64(t0, t2);
        w[4 * q + 1] = _mm256_unpackhi_epi64(t0, t2);
        w[4 * q + 2] = _mm256_unpacklo_epi64(t1, t3);
        w[4 * q + 3] = _mm256_unpackhi_epi64(t1, t3);
    }
}
#    define TRANSPOSE transpose

#    include "par2/md5_lanes.h"
#else
typedef int md5_avx2_empty; /* not this CPU, or built without it */
#endif
