/* gf16_gfni.h - the body of a kernel on the byte multiplier of GFNI, which computes in 0x11B, the field of our tower.
 * Expanded once per width. The file that includes this defines V, WIDTH (bytes), MUL, AFFINE(x, matrix), XOR,
 * XOR3, BROADCAST(const uint32_t *), the byte shuffles PACK_LOW, PACK_HIGH, UNPACK_LOW, UNPACK_HIGH, LOAD, STORE and
 * SET64, and KERNEL, NEEDS, KERNEL_NAME.
 *
 * A unit is two registers of data; in the tower: the low bytes, then the high bytes. Two outputs of one unit gather
 * their six sums in registers over all inputs of a batch, so sums meet memory once per batch. */

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "par2/gf16.h"

#if !defined(V) || !defined(WIDTH) || !defined(KERNEL)
#    error only the kernels include this
#endif

enum { UNIT = 2 * WIDTH };

static void pack(uint8_t *in, size_t stride, const uint8_t *data, size_t units)
{
    const V m00 = SET64(gf16_tower.to_matrix[0][0]), m01 = SET64(gf16_tower.to_matrix[0][1]);
    const V m10 = SET64(gf16_tower.to_matrix[1][0]), m11 = SET64(gf16_tower.to_matrix[1][1]);
    for (size_t u = 0; u < units; u++, in += stride, data += UNIT) {
        const V v0 = LOADU(data), v1 = LOADU(data + WIDTH);
        const V low = PACK_LOW(v0, v1), high = PACK_HIGH(v0, v1);
        STORE(in, XOR(AFFINE(low, m00), AFFINE(high, m01)));
        STORE(in + WIDTH, XOR(AFFINE(low, m10), AFFINE(high, m11)));
    }
}

static void unpack(uint8_t *data, const uint8_t *acc, size_t stride, size_t units)
{
    const V m00 = SET64(gf16_tower.from_matrix[0][0]), m01 = SET64(gf16_tower.from_matrix[0][1]);
    const V m10 = SET64(gf16_tower.from_matrix[1][0]), m11 = SET64(gf16_tower.from_matrix[1][1]);
    for (size_t u = 0; u < units; u++, acc += stride, data += UNIT) {
        const V a0 = LOAD(acc), a1 = LOAD(acc + WIDTH);
        const V low = XOR(AFFINE(a0, m00), AFFINE(a1, m01));
        const V high = XOR(AFFINE(a0, m10), AFFINE(a1, m11));
        STOREU(data, UNPACK_LOW(low, high));
        STOREU(data + WIDTH, UNPACK_HIGH(low, high));
    }
}

/* The sums of one output over two inputs more. */
#define TWO_INPUTS(n, c)                                                             \
    p##n = XOR3(p##n, MUL(x0, BROADCAST(&(c)[0].p)), MUL(y0, BROADCAST(&(c)[1].p))); \
    q##n = XOR3(q##n, MUL(x1, BROADCAST(&(c)[0].q)), MUL(y1, BROADCAST(&(c)[1].q))); \
    r##n = XOR3(r##n, MUL(xs, BROADCAST(&(c)[0].r)), MUL(ys, BROADCAST(&(c)[1].r)))
#define ONE_INPUT(n, c)                            \
    p##n = XOR(p##n, MUL(x0, BROADCAST(&(c)->p))); \
    q##n = XOR(q##n, MUL(x1, BROADCAST(&(c)->q))); \
    r##n = XOR(r##n, MUL(xs, BROADCAST(&(c)->r)))
#define SUMS(n) V p##n = ZERO, q##n = ZERO, r##n = ZERO
#define FOLD(n, acc)                         \
    STORE(acc, XOR3(LOAD(acc), p##n, q##n)); \
    STORE((acc) + WIDTH, XOR3(LOAD((acc) + WIDTH), p##n, r##n))
#define INPUTS(two, one)                                                              \
    size_t i = 0;                                                                     \
    for (; i + 2 <= ins; i += 2, in += 2 * UNIT) {                                    \
        const V x0 = LOAD(in), x1 = LOAD(in + WIDTH), xs = XOR(x0, x1);               \
        const V y0 = LOAD(in + UNIT), y1 = LOAD(in + UNIT + WIDTH), ys = XOR(y0, y1); \
        two;                                                                          \
    }                                                                                 \
    if (i < ins) {                                                                    \
        const V x0 = LOAD(in), x1 = LOAD(in + WIDTH), xs = XOR(x0, x1);               \
        one;                                                                          \
    }

#if WIDTH == 64 /* 32 registers: four outputs */
static inline void outs4(uint8_t *acc, const uint8_t *in, const struct gf16_coef *c, size_t ins)
{
    SUMS(0);
    SUMS(1);
    SUMS(2);
    SUMS(3);
    const struct gf16_coef *c1 = c + ins, *c2 = c + 2 * ins, *c3 = c + 3 * ins;
    INPUTS(TWO_INPUTS(0, c + i); TWO_INPUTS(1, c1 + i); TWO_INPUTS(2, c2 + i);
           TWO_INPUTS(3, c3 + i), ONE_INPUT(0, c + i); ONE_INPUT(1, c1 + i); ONE_INPUT(2, c2 + i);
           ONE_INPUT(3, c3 + i))
    FOLD(0, acc);
    FOLD(1, acc + UNIT);
    FOLD(2, acc + 2 * UNIT);
    FOLD(3, acc + 3 * UNIT);
}
#endif

static inline void outs2(uint8_t *acc, const uint8_t *in, const struct gf16_coef *c, size_t ins)
{
    SUMS(0);
    SUMS(1);
    const struct gf16_coef *c1 = c + ins;
    INPUTS(TWO_INPUTS(0, c + i); TWO_INPUTS(1, c1 + i), ONE_INPUT(0, c + i); ONE_INPUT(1, c1 + i))
    FOLD(0, acc);
    FOLD(1, acc + UNIT);
}

static inline void outs1(uint8_t *acc, const uint8_t *in, const struct gf16_coef *c, size_t ins)
{
    SUMS(0);
    INPUTS(TWO_INPUTS(0, c + i), ONE_INPUT(0, c + i))
    FOLD(0, acc);
}

static void muladd(uint8_t *acc, const uint8_t *in, const struct gf16_coef *coef, size_t outs,
                   size_t ins, size_t units)
{
    for (size_t u = 0; u < units; u++, in += ins * UNIT, acc += outs * UNIT) {
        size_t o = 0;
#if WIDTH == 64
        for (; o + 4 <= outs; o += 4) {
            outs4(acc + o * UNIT, in, coef + o * ins, ins);
        }
#endif
        for (; o + 2 <= outs; o += 2) {
            outs2(acc + o * UNIT, in, coef + o * ins, ins);
        }
        if (o < outs) {
            outs1(acc + o * UNIT, in, coef + o * ins, ins);
        }
    }
}

const struct gf16_kernel KERNEL = {
    .name = KERNEL_NAME,
    .needs = NEEDS,
    .unit = UNIT,
    .in_bytes = UNIT,
    .strip = 512,
    .batch = 48,
    .pack = pack,
    .unpack = unpack,
    .muladd = muladd,
};
