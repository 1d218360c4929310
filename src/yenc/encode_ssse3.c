/* encode_ssse3.c - eight bytes at a time: a shuffle makes room for each '=' and one addition puts it there and adds 64
 * to the byte behind it. What depends on the column (the first and the last character of a line) is left to the
 * specification's rule, one byte at a time. */
#include "yenc/kernel.h"

#if defined(__SSSE3__) && defined(__POPCNT__)

#    include <immintrin.h>
#    include <pthread.h>

#    include "yenc/simd.h"

/* For each set of critical bytes among eight: where each output byte comes from, and what is added to it. */
static uint8_t from[256][16] __attribute__((aligned(64)));
static uint8_t plus[256][16] __attribute__((aligned(64)));

static void fill(void)
{
    for (unsigned m = 0; m < 256; m++) {
        unsigned n = 0;
        for (unsigned i = 0; i < 8; i++) {
            if (m >> i & 1) {
                from[m][n] = 0x80; /* zero, to which '=' is added */
                plus[m][n++] = '=';
                plus[m][n] = 64;
            }
            from[m][n++] = (uint8_t)i;
        }
    }
}

INLINE __m128i is_byte(__m128i v, char c)
{
    return _mm_cmpeq_epi8(v, _mm_set1_epi8(c));
}

INLINE uint8_t *put8(uint8_t *p, __m128i v, unsigned critical)
{
    __m128i moved = _mm_shuffle_epi8(v, _mm_load_si128((const __m128i *)from[critical]));
    moved = _mm_add_epi8(moved, _mm_load_si128((const __m128i *)plus[critical]));
    _mm_storeu_si128((__m128i *)p, moved);
    return p + 8 + _mm_popcnt_u32(critical);
}

size_t yenc_encode_ssse3(const uint8_t *src, size_t n, unsigned line, uint8_t *dst)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
    uint8_t *p = dst;
    size_t i = 0;
    while (i < n) {
        uint8_t *start = p;
        p = yenc_encode_byte(p, src[i], true, i + 1 == n || line == 1);
        i++;
        /* Sixteen bytes become at most 32, none of which is in the last column. */
        while (p - start + 32 < line && i + 16 < n) {
            __m128i v =
                _mm_add_epi8(_mm_loadu_si128((const __m128i *)(src + i)), _mm_set1_epi8(42));
            __m128i critical = _mm_or_si128(_mm_or_si128(is_byte(v, 0), is_byte(v, '\n')),
                                            _mm_or_si128(is_byte(v, '\r'), is_byte(v, '=')));
            unsigned m = (unsigned)_mm_movemask_epi8(critical);
            p = put8(p, v, m & 0xff);
            p = put8(p, _mm_srli_si128(v, 8), m >> 8);
            i += 16;
        }
        while (p - start < line && i < n) {
            p = yenc_encode_byte(p, src[i], false, p - start + 1 == line || i + 1 == n);
            i++;
        }
        *p++ = '\r';
        *p++ = '\n';
    }
    return (size_t)(p - dst);
}

#endif
