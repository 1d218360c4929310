/* gf16_gfni256.c - GFNI on 32-byte registers, for CPUs without AVX-512. */
#if defined(__GFNI__) && defined(__AVX2__)
#    include <immintrin.h>

typedef __m256i V;
#    define V             V
#    define WIDTH         32
#    define KERNEL        gf16_kernel_gfni256
#    define KERNEL_NAME   "gfni256"
#    define NEEDS         (CPU_GFNI | CPU_AVX2)
#    define ZERO          _mm256_setzero_si256()
#    define SET64(x)      _mm256_set1_epi64x((long long)(x))
#    define LOAD(p)       _mm256_load_si256((const __m256i *)(const void *)(p))
#    define STORE(p, v)   _mm256_store_si256((__m256i *)(void *)(p), v)
#    define LOADU(p)      _mm256_loadu_si256((const __m256i *)(const void *)(p))
#    define STOREU(p, v)  _mm256_storeu_si256((__m256i *)(void *)(p), v)
#    define MUL           _mm256_gf2p8mul_epi8
#    define AFFINE(x, m)  _mm256_gf2p8affine_epi64_epi8(x, m, 0)
#    define XOR           _mm256_xor_si256
#    define XOR3(a, b, c) XOR(a, XOR(b, c))
#    define BROADCAST(p)  _mm256_set1_epi32((int)*(p))
#    define LOW_BYTES     _mm256_set1_epi16(255)
#    define PACK_LOW(a, b) \
        _mm256_packus_epi16(_mm256_and_si256(a, LOW_BYTES), _mm256_and_si256(b, LOW_BYTES))
#    define PACK_HIGH(a, b) _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8))
#    define UNPACK_LOW      _mm256_unpacklo_epi8
#    define UNPACK_HIGH     _mm256_unpackhi_epi8

#    include "par2/gf16_gfni.h"
#else
typedef int gf16_gfni256_empty; /* not this CPU, or built without it */
#endif
