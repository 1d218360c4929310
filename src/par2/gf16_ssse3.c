/* gf16_ssse3.c - table look-ups on 16-byte registers. */
#if defined(__SSSE3__)
#    include <tmmintrin.h>

typedef __m128i V;
#    define V               V
#    define WIDTH           16
#    define KERNEL          gf16_kernel_ssse3
#    define KERNEL_NAME     "ssse3"
#    define NEEDS           CPU_SSSE3
#    define LOAD(p)         _mm_load_si128((const __m128i *)(const void *)(p))
#    define STORE(p, v)     _mm_store_si128((__m128i *)(void *)(p), v)
#    define LOADU(p)        _mm_loadu_si128((const __m128i *)(const void *)(p))
#    define STOREU(p, v)    _mm_storeu_si128((__m128i *)(void *)(p), v)
#    define TABLE           LOAD
#    define SHUFFLE         _mm_shuffle_epi8
#    define XOR             _mm_xor_si128
#    define AND             _mm_and_si128
#    define LOW4            _mm_set1_epi8(15)
#    define HIGH_NIBBLES(x) AND(_mm_srli_epi16(x, 4), LOW4)
#    define LOW_BYTES       _mm_set1_epi16(255)
#    define PACK_LOW(a, b)  _mm_packus_epi16(AND(a, LOW_BYTES), AND(b, LOW_BYTES))
#    define PACK_HIGH(a, b) _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8))
#    define UNPACK_LOW      _mm_unpacklo_epi8
#    define UNPACK_HIGH     _mm_unpackhi_epi8

#    include "par2/gf16_shuffle.h"
#else
typedef int gf16_ssse3_empty; /* not this CPU, or built without it */
#endif
