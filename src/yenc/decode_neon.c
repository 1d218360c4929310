/* decode_neon.c - the primitives of decode_loop.h with four registers of 16 bytes (ARMv8). */
#include "yenc/kernel.h"

#if defined(__aarch64__) && defined(__ARM_NEON)

#    include <arm_neon.h>

#    include "yenc/compact.h"
#    include "yenc/simd.h"

struct bytes {
    uint8x16_t a, b, c, d;
};

INLINE struct bytes load_block(const uint8_t *s)
{
    return (struct bytes){vld1q_u8(s), vld1q_u8(s + 16), vld1q_u8(s + 32), vld1q_u8(s + 48)};
}

/* One bit of each byte (all ones or all zeros), in order: three rounds of adding neighbours. */
INLINE uint64_t bits(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d)
{
    const uint8x16_t place = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    uint8x16_t ab = vpaddq_u8(vandq_u8(a, place), vandq_u8(b, place));
    uint8x16_t cd = vpaddq_u8(vandq_u8(c, place), vandq_u8(d, place));
    uint8x16_t all = vpaddq_u8(ab, cd);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

INLINE uint8x16_t is_byte(uint8x16_t v, uint8_t c)
{
    return vceqq_u8(v, vdupq_n_u8(c));
}

INLINE uint64_t byte_bits(struct bytes v, uint8_t c)
{
    return bits(is_byte(v.a, c), is_byte(v.b, c), is_byte(v.c, c), is_byte(v.d, c));
}

INLINE uint64_t eq_bits(struct bytes v)
{
    return byte_bits(v, '=');
}

INLINE uint64_t dot_bits(struct bytes v)
{
    return byte_bits(v, '.');
}

INLINE uint8x16_t is_newline(uint8x16_t v)
{
    return vorrq_u8(is_byte(v, '\n'), is_byte(v, '\r'));
}

INLINE uint64_t nl_bits(struct bytes v)
{
    return bits(is_newline(v.a), is_newline(v.b), is_newline(v.c), is_newline(v.d));
}

INLINE uint8x16_t newlines(struct bytes v)
{
    return vorrq_u8(vorrq_u8(is_newline(v.a), is_newline(v.b)),
                    vorrq_u8(is_newline(v.c), is_newline(v.d)));
}

INLINE bool any_newline(struct bytes v, struct bytes w)
{
    return vmaxvq_u8(vorrq_u8(newlines(v), newlines(w))) != 0;
}

INLINE uint8x16_t subtract(uint8x16_t v, uint8x16_t escaped)
{
    return vsubq_u8(vsubq_u8(v, vdupq_n_u8(42)), vandq_u8(escaped, vdupq_n_u8(64)));
}

INLINE struct bytes unescape(struct bytes v, uint64_t eq, uint64_t carry)
{
    (void)eq;
    uint8x16_t a = is_byte(v.a, '='), b = is_byte(v.b, '='), c = is_byte(v.c, '='),
               d = is_byte(v.d, '=');
    uint8x16_t before = vdupq_n_u8((uint8_t)-carry);
    return (struct bytes){subtract(v.a, vextq_u8(before, a, 15)), subtract(v.b, vextq_u8(a, b, 15)),
                          subtract(v.c, vextq_u8(b, c, 15)), subtract(v.d, vextq_u8(c, d, 15))};
}

INLINE struct bytes unescape_first(struct bytes v, uint64_t eq, const uint8_t *s)
{
    (void)s;
    return unescape(v, eq, 0);
}

INLINE struct bytes unescape_inner(struct bytes v, uint64_t eq, uint64_t carry, const uint8_t *s)
{
    (void)s;
    return unescape(v, eq, carry);
}

INLINE uint8x16_t expand(uint64_t m)
{
    const uint8x16_t place = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    uint8x16_t v = vcombine_u8(vdup_n_u8((uint8_t)m), vdup_n_u8((uint8_t)(m >> 8)));
    return vtstq_u8(v, place);
}

static struct bytes unescape_bits(struct bytes v, uint64_t escaped)
{
    return (struct bytes){subtract(v.a, expand(escaped)), subtract(v.b, expand(escaped >> 16)),
                          subtract(v.c, expand(escaped >> 32)),
                          subtract(v.d, expand(escaped >> 48))};
}

INLINE uint8x16_t moved(uint8x16_t v, uint64_t keep)
{
    return vqtbl1q_u8(v, vld1q_u8(yenc_compact_table[keep & 0x7fff]));
}

INLINE uint8_t *put(uint8_t *p, struct bytes v, uint64_t keep)
{
    vst1q_u8(p, moved(v.a, keep));
    vst1q_u8(p + __builtin_popcountll(keep & 0xffff), moved(v.b, keep >> 16));
    vst1q_u8(p + __builtin_popcountll(keep & 0xffffffff), moved(v.c, keep >> 32));
    vst1q_u8(p + __builtin_popcountll(keep << 16), moved(v.d, keep >> 48));
    return p + __builtin_popcountll(keep);
}

#    include "yenc/decode_loop.h"

void yenc_decode_neon(struct yenc_raw *r)
{
    yenc_compact_init();
    decode_loop(r);
}

#endif
