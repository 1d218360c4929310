/* gf16.h - GF(2^16) with the polynomial 0x1100B: single values, and multiply-add of whole regions.
 *
 * A region kernel works in the isomorphic field GF((2^8)^2): a value is a1*y + a0 with a1, a0 in GF(2^8) (0x11B) and
 * y^2 = y + k. With Karatsuba a product is three products of bytes (P = a0*b0, Q = a1*(k*b1), R = (a0+a1)*(b0+b1);
 * low = P+Q, high = R+P), and the tables or constants that a coefficient needs do not depend on its own value: they
 * are those of GF(2^8), 8 KiB for all. Addition stays XOR. Data is carried over (pack) once per use as an input and
 * back (unpack) once per output, which is small beside inputs x outputs.
 *
 * Sums of many products are a matrix product; layouts are chosen for it:
 *     in[u][i]   unit u of input i        acc[u][o]  unit u of output o        coef[o][i]
 * so that a kernel walks memory forwards. A unit is kernel->unit bytes of data. Any thread; all functions but the
 * first use of gf16_init() are pure. */
#ifndef PAR2_GF16_H
#define PAR2_GF16_H

#include <stddef.h>
#include <stdint.h>

enum { GF16_POLY = 0x1100B, GF16_ORDER = 65535 };

/* Makes the tables; any number of times, from any thread. Everything below needs it. */
void gf16_init(void);

extern uint16_t gf16_log[65536]; /* of 0: GF16_ORDER, never a true logarithm */
extern uint16_t
    gf16_exp[2 * GF16_ORDER]; /* twice, so that a sum of two logarithms needs no modulo */
static inline uint16_t gf16_mul(uint16_t a, uint16_t b)
{
    return a == 0 || b == 0 ? 0 : gf16_exp[(unsigned)gf16_log[a] + gf16_log[b]];
}
uint16_t gf16_inv(uint16_t a); /* a != 0 */
uint16_t gf16_pow(uint16_t a, uint32_t n);

/* ---- regions ---- */

struct gf16_coef {
    uint32_t p, q, r; /* the byte factors b0, k*b1, b0+b1, each four times */
    uint32_t value;   /* in the field of PAR2 */
};
struct gf16_coef gf16_coef(uint16_t value);

enum { GF16_UNIT_MAX = 256, GF16_BATCH_MAX = 64 };

struct gf16_kernel {
    const char *name;
    unsigned needs;    /* bits of cpu.h */
    unsigned unit;     /* bytes of data in one unit; divides GF16_UNIT_MAX */
    unsigned in_bytes; /* a unit of an input, packed */
    unsigned
        strip; /* bytes of data per call that stay in the first-level cache with `batch` inputs */
    unsigned batch; /* inputs per call that work best; even */
    /* `units` units of data to in + u*stride, and of acc + u*stride to data. */
    void (*pack)(uint8_t *in, size_t stride, const uint8_t *data, size_t units);
    void (*unpack)(uint8_t *data, const uint8_t *acc, size_t stride, size_t units);
    /* acc[u][o] += sum of coef[o][i] * in[u][i], for all u < units, o < outs, i < ins. */
    void (*muladd)(uint8_t *acc, const uint8_t *in, const struct gf16_coef *coef, size_t outs,
                   size_t ins, size_t units);
};

/* All that are built in, best first; ends with NULL. The last is scalar, which is the specification.
 * gf16_best(): the best that this CPU runs; PAR2_GF16=name chooses another. */
extern const struct gf16_kernel *const gf16_kernels[];
const struct gf16_kernel *gf16_best(void);

/* ---- the tower field, for the kernels ---- */

struct gf16_tower {
    _Alignas(64) uint8_t mul[256][2][16]; /* c times 0..15 and c times 0x00..0xf0 in GF(2^8) */
    uint8_t to[4][2][16]; /* nibble n of a word -> low and high byte in the tower, and back */
    uint8_t from[4][2][16];
    uint64_t to_matrix[2][2]; /* [output byte][input byte], as vgf2p8affineqb wants them */
    uint64_t from_matrix[2][2];
};
extern struct gf16_tower gf16_tower;

extern const struct gf16_kernel gf16_kernel_scalar, gf16_kernel_ssse3, gf16_kernel_avx2,
    gf16_kernel_gfni256, gf16_kernel_gfni512, gf16_kernel_neon;

#endif
