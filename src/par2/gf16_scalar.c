/* gf16_scalar.c - the specification: word by word, in the field of PAR2 itself, without the tower. */
#include <string.h>

#include "par2/gf16.h"

enum { UNIT = 32 };

static void pack(uint8_t *in, size_t stride, const uint8_t *data, size_t units)
{
    for (size_t u = 0; u < units; u++) {
        memcpy(in + u * stride, data + u * UNIT, UNIT);
    }
}

static void unpack(uint8_t *data, const uint8_t *acc, size_t stride, size_t units)
{
    for (size_t u = 0; u < units; u++) {
        memcpy(data + u * UNIT, acc + u * stride, UNIT);
    }
}

static void muladd(uint8_t *acc, const uint8_t *in, const struct gf16_coef *coef, size_t outs,
                   size_t ins, size_t units)
{
    for (size_t u = 0; u < units; u++) {
        for (size_t o = 0; o < outs; o++) {
            uint8_t *sum = acc + (u * outs + o) * UNIT;
            for (size_t i = 0; i < ins; i++) {
                const uint8_t *x = in + (u * ins + i) * UNIT;
                for (size_t b = 0; b < UNIT; b += 2) { /* words are little-endian */
                    uint16_t word = (uint16_t)(x[b] | x[b + 1] << 8);
                    uint16_t product = gf16_mul(word, (uint16_t)coef[o * ins + i].value);
                    sum[b] ^= (uint8_t)product;
                    sum[b + 1] ^= (uint8_t)(product >> 8);
                }
            }
        }
    }
}

const struct gf16_kernel gf16_kernel_scalar = {
    .name = "scalar",
    .unit = UNIT,
    .in_bytes = UNIT,
    .strip = 1024,
    .batch = 16,
    .pack = pack,
    .unpack = unpack,
    .muladd = muladd,
};
