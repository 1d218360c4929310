/* gf16_shuffle.h - the body of a kernel on 16-entry byte table look-ups, expanded once per ISA. The file that
 * includes this defines V, WIDTH (bytes), SHUFFLE(table, index), XOR, AND, LOW4 (0x0f bytes), HIGH_NIBBLES(x) (each byte
 * shifted right by 4, cleared above), TABLE(const uint8_t *) (16 bytes to every lane), PACK_LOW, PACK_HIGH,
 * UNPACK_LOW, UNPACK_HIGH, LOAD, STORE, LOADU, STOREU, and KERNEL, KERNEL_NAME, NEEDS.
 *
 * A product in GF(2^8) with a constant is two look-ups, one per nibble. An input is packed as its six index vectors:
 * both nibbles of a0, a1 and a0+a1. Two inputs go together, their twelve tables in registers. */

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "par2/gf16.h"

#if !defined(V) || !defined(WIDTH) || !defined(KERNEL)
#    error only the kernels include this
#endif

enum { UNIT = 2 * WIDTH, IN_UNIT = 6 * WIDTH };

/* A change of basis: low and high byte of the result from the four nibbles of the words. */
#define BASIS(tables, low, high, out_low, out_high)                                              \
    do {                                                                                         \
        const V n0 = AND(low, LOW4), n1 = HIGH_NIBBLES(low);                                     \
        const V n2 = AND(high, LOW4), n3 = HIGH_NIBBLES(high);                                   \
        out_low = XOR(XOR(SHUFFLE(TABLE(tables[0][0]), n0), SHUFFLE(TABLE(tables[1][0]), n1)),   \
                      XOR(SHUFFLE(TABLE(tables[2][0]), n2), SHUFFLE(TABLE(tables[3][0]), n3)));  \
        out_high = XOR(XOR(SHUFFLE(TABLE(tables[0][1]), n0), SHUFFLE(TABLE(tables[1][1]), n1)),  \
                       XOR(SHUFFLE(TABLE(tables[2][1]), n2), SHUFFLE(TABLE(tables[3][1]), n3))); \
    } while (0)

static void pack(uint8_t *in, size_t stride, const uint8_t *data, size_t units)
{
    for (size_t u = 0; u < units; u++, in += stride, data += UNIT) {
        const V v0 = LOADU(data), v1 = LOADU(data + WIDTH);
        const V low = PACK_LOW(v0, v1), high = PACK_HIGH(v0, v1);
        V a0, a1;
        BASIS(gf16_tower.to, low, high, a0, a1);
        const V l0 = AND(a0, LOW4), h0 = HIGH_NIBBLES(a0), l1 = AND(a1, LOW4),
                h1 = HIGH_NIBBLES(a1);
        STORE(in, l0);
        STORE(in + WIDTH, h0);
        STORE(in + 2 * WIDTH, l1);
        STORE(in + 3 * WIDTH, h1);
        STORE(in + 4 * WIDTH, XOR(l0, l1));
        STORE(in + 5 * WIDTH, XOR(h0, h1));
    }
}

static void unpack(uint8_t *data, const uint8_t *acc, size_t stride, size_t units)
{
    for (size_t u = 0; u < units; u++, acc += stride, data += UNIT) {
        const V a0 = LOAD(acc), a1 = LOAD(acc + WIDTH);
        V low, high;
        BASIS(gf16_tower.from, a0, a1, low, high);
        STOREU(data, UNPACK_LOW(low, high));
        STOREU(data + WIDTH, UNPACK_HIGH(low, high));
    }
}

#define TABLES(n, c)                                       \
    const V pl##n = TABLE(gf16_tower.mul[(c).p & 255][0]), \
            ph##n = TABLE(gf16_tower.mul[(c).p & 255][1]); \
    const V ql##n = TABLE(gf16_tower.mul[(c).q & 255][0]), \
            qh##n = TABLE(gf16_tower.mul[(c).q & 255][1]); \
    const V rl##n = TABLE(gf16_tower.mul[(c).r & 255][0]), \
            rh##n = TABLE(gf16_tower.mul[(c).r & 255][1])
#define PRODUCT(n, x, l, h, at) \
    XOR(SHUFFLE(l##n, LOAD((x) + (at)*WIDTH)), SHUFFLE(h##n, LOAD((x) + ((at) + 1) * WIDTH)))

static void two_inputs(uint8_t *acc, size_t acc_stride, const uint8_t *in, size_t in_stride,
                       const struct gf16_coef *c, size_t units)
{
    TABLES(0, c[0]);
    TABLES(1, c[1]);
    for (size_t u = 0; u < units; u++, acc += acc_stride, in += in_stride) {
        const uint8_t *x = in, *y = in + IN_UNIT;
        const V p = XOR(PRODUCT(0, x, pl, ph, 0), PRODUCT(1, y, pl, ph, 0));
        const V q = XOR(PRODUCT(0, x, ql, qh, 2), PRODUCT(1, y, ql, qh, 2));
        const V r = XOR(PRODUCT(0, x, rl, rh, 4), PRODUCT(1, y, rl, rh, 4));
        STORE(acc, XOR(LOAD(acc), XOR(p, q)));
        STORE(acc + WIDTH, XOR(LOAD(acc + WIDTH), XOR(p, r)));
    }
}

static void one_input(uint8_t *acc, size_t acc_stride, const uint8_t *in, size_t in_stride,
                      const struct gf16_coef *c, size_t units)
{
    TABLES(0, c[0]);
    for (size_t u = 0; u < units; u++, acc += acc_stride, in += in_stride) {
        const V p = PRODUCT(0, in, pl, ph, 0);
        const V q = PRODUCT(0, in, ql, qh, 2);
        const V r = PRODUCT(0, in, rl, rh, 4);
        STORE(acc, XOR(LOAD(acc), XOR(p, q)));
        STORE(acc + WIDTH, XOR(LOAD(acc + WIDTH), XOR(p, r)));
    }
}

static void muladd(uint8_t *acc, const uint8_t *in, const struct gf16_coef *coef, size_t outs,
                   size_t ins, size_t units)
{
    for (size_t o = 0; o < outs; o++, coef += ins) {
        size_t i = 0;
        for (; i + 2 <= ins; i += 2) {
            two_inputs(acc + o * UNIT, outs * UNIT, in + i * IN_UNIT, ins * IN_UNIT, coef + i,
                       units);
        }
        if (i < ins) {
            one_input(acc + o * UNIT, outs * UNIT, in + i * IN_UNIT, ins * IN_UNIT, coef + i,
                      units);
        }
    }
}

const struct gf16_kernel KERNEL = {
    .name = KERNEL_NAME,
    .needs = NEEDS,
    .unit = UNIT,
    .in_bytes = IN_UNIT,
    .strip = 512,
    .batch = 12,
    .pack = pack,
    .unpack = unpack,
    .muladd = muladd,
};
