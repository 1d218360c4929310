/* gf16.c - the tables, the way into the tower field and back, and the choice of the kernel. */
#include "par2/gf16.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/cpu.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "words of regions are used as they stand in memory");

uint16_t gf16_log[65536];
uint16_t gf16_exp[2 * GF16_ORDER];
struct gf16_tower gf16_tower;

/* y^2 + y + k has no root in GF(2^8) for this k, the smallest; and this element t, the smallest of sixteen, has t^16 +
 * t^12 + t^3 + t + 1 = 0. That products agree in both fields is tested. */
enum { TOWER_K = 0x20, TOWER_TWO = 0x42b7 };

static uint16_t tower_base[16]; /* what the bits of a word become */

static uint8_t mul8(uint8_t a, uint8_t b)
{
    unsigned r = 0;
    for (unsigned i = 0; i < 8; i++) {
        r ^= (b >> i & 1) ? (unsigned)a << i : 0;
    }
    for (unsigned i = 14; i >= 8; i--) {
        r ^= (r >> i & 1) ? 0x11bu << (i - 8) : 0;
    }
    return (uint8_t)r;
}

static uint16_t mul_tower(uint16_t a, uint16_t b)
{
    uint8_t a1 = (uint8_t)(a >> 8), a0 = (uint8_t)a, b1 = (uint8_t)(b >> 8), b0 = (uint8_t)b;
    uint8_t p = mul8(a0, b0), q = mul8(a1, mul8(TOWER_K, b1));
    uint8_t r = mul8(a0 ^ a1, b0 ^ b1);
    return (uint16_t)((r ^ p) << 8 | (p ^ q));
}

/* The linear map whose bit i becomes base[i]. */
static uint16_t apply(const uint16_t base[16], uint16_t x)
{
    uint16_t r = 0;
    for (unsigned i = 0; i < 16; i++) {
        r ^= (x >> i & 1) ? base[i] : 0;
    }
    return r;
}

static void init_logs(void)
{
    uint32_t x = 1;
    for (unsigned i = 0; i < GF16_ORDER; i++) {
        gf16_exp[i] = gf16_exp[i + GF16_ORDER] = (uint16_t)x;
        gf16_log[x] = (uint16_t)i;
        x <<= 1;
        x ^= x >> 16 ? GF16_POLY : 0;
    }
    gf16_log[0] = GF16_ORDER;
}

/* The powers of what plays the part of 2 are what the bits of a word become. */
static void find_base(void)
{
    tower_base[0] = 1;
    for (unsigned i = 1; i < 16; i++) {
        tower_base[i] = mul_tower(tower_base[i - 1], TOWER_TWO);
    }
}

static void invert(const uint16_t base[16], uint16_t inverse[16])
{
    uint16_t a[16], b[16]; /* columns: a is brought to the identity, b follows */
    for (unsigned i = 0; i < 16; i++) {
        a[i] = base[i];
        b[i] = (uint16_t)(1u << i);
    }
    for (unsigned bit = 0; bit < 16; bit++) {
        unsigned pivot = bit;
        while (!(a[pivot] >> bit & 1)) {
            pivot++;
        }
        uint16_t ta = a[pivot], tb = b[pivot];
        a[pivot] = a[bit], b[pivot] = b[bit];
        a[bit] = ta, b[bit] = tb;
        for (unsigned i = 0; i < 16; i++) {
            if (i != bit && (a[i] >> bit & 1)) {
                a[i] ^= ta, b[i] ^= tb;
            }
        }
    }
    memcpy(inverse, b, sizeof(b));
}

static void make_tables(uint8_t nibbles[4][2][16], uint64_t matrix[2][2], const uint16_t base[16])
{
    for (unsigned n = 0; n < 4; n++) {
        for (unsigned i = 0; i < 16; i++) {
            uint16_t x = apply(base, (uint16_t)(i << (4 * n)));
            nibbles[n][0][i] = (uint8_t)x;
            nibbles[n][1][i] = (uint8_t)(x >> 8);
        }
    }
    /* vgf2p8affineqb: bit i of the result is the parity of (byte 7-i of the matrix) & x. */
    for (unsigned to = 0; to < 2; to++) {
        for (unsigned from = 0; from < 2; from++) {
            uint64_t m = 0;
            for (unsigned i = 0; i < 8; i++) {
                for (unsigned j = 0; j < 8; j++) {
                    uint64_t bit = base[8 * from + j] >> (8 * to + i) & 1;
                    m |= bit << (8 * (7 - i) + j);
                }
            }
            matrix[to][from] = m;
        }
    }
}

static void init(void)
{
    init_logs();
    find_base();
    uint16_t back[16];
    invert(tower_base, back);
    for (unsigned c = 0; c < 256; c++) {
        for (unsigned i = 0; i < 16; i++) {
            gf16_tower.mul[c][0][i] = mul8((uint8_t)c, (uint8_t)i);
            gf16_tower.mul[c][1][i] = mul8((uint8_t)c, (uint8_t)(i << 4));
        }
    }
    make_tables(gf16_tower.to, gf16_tower.to_matrix, tower_base);
    make_tables(gf16_tower.from, gf16_tower.from_matrix, back);
}

void gf16_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init);
}

uint16_t gf16_inv(uint16_t a)
{
    PRE(a != 0);
    return gf16_exp[GF16_ORDER - gf16_log[a]];
}

uint16_t gf16_pow(uint16_t a, uint32_t n)
{
    if (n == 0) {
        return 1;
    }
    return a == 0 ? 0 : gf16_exp[(uint64_t)gf16_log[a] * n % GF16_ORDER];
}

struct gf16_coef gf16_coef(uint16_t value)
{
    const struct gf16_tower *t = &gf16_tower;
    unsigned n0 = value & 15, n1 = value >> 4 & 15, n2 = value >> 8 & 15, n3 = value >> 12;
    uint8_t b0 = t->to[0][0][n0] ^ t->to[1][0][n1] ^ t->to[2][0][n2] ^ t->to[3][0][n3];
    uint8_t b1 = t->to[0][1][n0] ^ t->to[1][1][n1] ^ t->to[2][1][n2] ^ t->to[3][1][n3];
    uint8_t kb1 = t->mul[TOWER_K][0][b1 & 15] ^ t->mul[TOWER_K][1][b1 >> 4];
    const uint32_t four = 0x01010101u;
    return (struct gf16_coef){b0 * four, kb1 * four, (uint8_t)(b0 ^ b1) * four, value};
}

const struct gf16_kernel *const gf16_kernels[] = {
#if defined(WEIR_SIMD) && defined(__x86_64__)
    &gf16_kernel_gfni512, &gf16_kernel_gfni256,
    &gf16_kernel_avx2,    &gf16_kernel_ssse3,
#endif
#if defined(WEIR_SIMD) && defined(__aarch64__)
    &gf16_kernel_neon,
#endif
    &gf16_kernel_scalar,  NULL,
};

const struct gf16_kernel *gf16_best(void)
{
    static _Atomic(const struct gf16_kernel *) chosen;
    const struct gf16_kernel *best = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (best != NULL) {
        return best;
    }
    const char *wish = getenv("PAR2_GF16");
    for (size_t i = 0; gf16_kernels[i] != NULL; i++) {
        const struct gf16_kernel *k = gf16_kernels[i];
        if ((k->needs & ~cpu_features()) != 0) {
            continue;
        }
        if (wish != NULL && strcmp(wish, k->name) == 0) {
            best = k;
            break;
        }
        best = best == NULL ? k : best;
    }
    atomic_store_explicit(&chosen, best, memory_order_relaxed); /* racing threads find the same */
    return best;
}
