/* gf16_gfni512.c - GFNI on 64-byte registers. */
#if defined(__GFNI__) && defined(__AVX512BW__)
#    include <immintrin.h>

typedef __m512i V;
#    define V             V
#    define WIDTH         64
#    define KERNEL        gf16_kernel_gfni512
#    define KERNEL_NAME   "gfni512"
#    define NEEDS         (CPU_GFNI | CPU_AVX512)
#    define ZERO          _mm512_setzero_si512()
#    define SET64(x)      _mm512_set1_epi64((long long)(x))
#    define LOAD(p)       _mm512_load_si512(p)
#    define STORE(p, v)   _mm512_store_si512(p, v)
#    define LOADU(p)      _mm512_loadu_si512(p)
#    define STOREU(p, v)  _mm512_storeu_si512(p, v)
#    define MUL           _mm512_gf2p8mul_epi8
#    define AFFINE(x, m)  _mm512_gf2p8affine_epi64_epi8(x, m, 0)
#    define XOR           _mm512_xor_si512
#    define XOR3(a, b, c) _mm512_ternarylogic_epi32(a, b, c, 0x96)
#    define BROADCAST(p)  _mm512_set1_epi32((int)*(p))
#    define LOW_BYTES     _mm512_set1_epi16(255)
#    define PACK_LOW(a, b) \
        _mm512_packus_epi16(_mm512_and_si512(a, LOW_BYTES), _mm512_and_si512(b, LOW_BYTES))
#    define PACK_HIGH(a, b) _mm512_packus_epi16(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8))
#    define UNPACK_LOW      _mm512_unpacklo_epi8
#    define UNPACK_HIGH     _mm512_unpackhi_epi8

#    include "par2/gf16_gfni.h"
#else
typedef int gf16_gfni512_empty; /* not this CPU, or built without it */
#endif
