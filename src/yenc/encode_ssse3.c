/* encode_ssse3.c - eight bytes at a time: a shuffle makes room for each '=' and one addition puts it there and adds 64
 * to the byte behind it. The bytes in which a line ends are encoded as any others; then as many of them count as fill
 * the line. */
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

INLINE bool is_edge_blank(uint8_t c)
{
    return c == '\t' || c == ' ';
}

/* The fewest of the bytes that fill `room` columns, given which are escaped. */
INLINE unsigned bytes_that_fill(unsigned room, unsigned critical)
{
    unsigned k = room < 16 ? room : 16;
    while (k - 1 + (unsigned)_mm_popcnt_u32(critical & ((1u << (k - 1)) - 1)) >= room) {
        k--;
    }
    return k;
}

size_t yenc_encode_ssse3(const uint8_t *src, size_t n, unsigned line, uint8_t *dst)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
    uint8_t *p = dst, *start = dst;
    size_t i = 0;
    while (i + 16 < n) {
        __m128i v = _mm_add_epi8(_mm_loadu_si128((const __m128i *)(src + i)), _mm_set1_epi8(42));
        __m128i critical = _mm_or_si128(_mm_or_si128(is_byte(v, 0), is_byte(v, '\n')),
                                        _mm_or_si128(is_byte(v, '\r'), is_byte(v, '=')));
        unsigned m = (unsigned)_mm_movemask_epi8(critical);
        if (p == start) {
            uint8_t c = (uint8_t)(src[i] + 42);
            m |= c == '.' || is_edge_blank(c);
        }
        unsigned room = line - (unsigned)(p - start), k = 16;
        if (16 + (unsigned)_mm_popcnt_u32(m) < room) {
            p = put8(put8(p, v, m & 0xff), _mm_srli_si128(v, 8), m >> 8);
        } else { /* the line ends in these bytes */
            k = bytes_that_fill(room, m);
            m |= (unsigned)is_edge_blank((uint8_t)(src[i + k - 1] + 42)) << (k - 1);
            put8(put8(p, v, m & 0xff), _mm_srli_si128(v, 8), m >> 8);
            p += k + (unsigned)_mm_popcnt_u32(m & ((1u << k) - 1));
            *p++ = '\r';
            *p++ = '\n';
            start = p;
        }
        i += k;
    }
    /* The last bytes: their last one is at the edge of a line wherever it stands. */
    for (; i < n; i++) {
        p = yenc_encode_byte(p, src[i], p == start, p - start + 1 == line || i + 1 == n);
        if (p - start >= line || i + 1 == n) {
            *p++ = '\r';
            *p++ = '\n';
            start = p;
        }
    }
    return (size_t)(p - dst);
}

#endif
