/* gf16_avx2.c - table look-ups on 32-byte registers. */
#if defined(__AVX2__)
#    include <immintrin.h>

typedef __m256i V;
#    define V               V
#    define WIDTH           32
#    define KERNEL          gf16_kernel_avx2
#    define KERNEL_NAME     "avx2"
#    define NEEDS           CPU_AVX2
#    define LOAD(p)         _mm256_load_si256((const __m256i *)(const void *)(p))
#    define STORE(p, v)     _mm256_store_si256((__m256i *)(void *)(p), v)
#    define LOADU(p)        _mm256_loadu_si256((const __m256i *)(const void *)(p))
#    define STOREU(p, v)    _mm256_storeu_si256((__m256i *)(void *)(p), v)
#    define TABLE(p)        _mm256_broadcastsi128_si256(*(const __m128i *)(const void *)(p))
#    define SHUFFLE         _mm256_shuffle_epi8
#    define XOR             _mm256_xor_si256
#    define AND             _mm256_and_si256
#    define LOW4            _mm256_set1_epi8(15)
#    define HIGH_NIBBLES(x) AND(_mm256_srli_epi16(x, 4), LOW4)
#    define LOW_BYTES       _mm256_set1_epi16(255)
#    define PACK_LOW(a, b)  _mm256_packus_epi16(AND(a, LOW_BYTES), AND(b, LOW_BYTES))
#    define PACK_HIGH(a, b) _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8))
#    define UNPACK_LOW      _mm256_unpacklo_epi8
#    define UNPACK_HIGH     _mm256_unpackhi_epi8

#    include "par2/gf16_shuffle.h"
#else
typedef int gf16_avx2_empty; /* not this CPU, or built without it */
#endif
