/* md5.c - one stream, the ends of many, and the choice of the kernel. */
#include "par2/md5.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/cpu.h"
#include "par2/md5_steps.h"

static uint32_t load32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void store32(uint8_t *p, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++) {
        p[i] = (uint8_t)(v >> (8 * i));
    }
}

static uint32_t rotl(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

#define F(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define G(x, y, z) F(z, x, y)
#define H(x, y, z) ((x) ^ (y) ^ (z))
#define I(x, y, z) ((y) ^ ((x) | ~(z)))
#define STEP(f, a, b, c, d, word, turn, constant) \
    (a) = (b) + rotl((a) + f(b, c, d) + w[word] + (constant), turn);

static void compress(uint32_t state[4], const uint8_t *p, size_t blocks)
{
    for (; blocks > 0; blocks--, p += MD5_BLOCK) {
        uint32_t w[16], a = state[0], b = state[1], c = state[2], d = state[3];
        for (unsigned i = 0; i < 16; i++) {
            w[i] = load32(p + 4 * i);
        }
        MD5_STEPS(STEP)
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
    }
}

void md5_init(struct md5 *m)
{
    *m = (struct md5){.state = {MD5_A, MD5_B, MD5_C, MD5_D}};
}

void md5_update(struct md5 *m, const void *p, size_t n)
{
    if (n == 0) {
        return;
    }
    const uint8_t *in = p;
    size_t used = m->bytes % MD5_BLOCK;
    m->bytes += n;
    if (used > 0) {
        size_t take = n < MD5_BLOCK - used ? n : MD5_BLOCK - used;
        memcpy(m->tail + used, in, take);
        in += take;
        n -= take;
        if (used + take < MD5_BLOCK) {
            return;
        }
        compress(m->state, m->tail, 1);
    }
    compress(m->state, in, n / MD5_BLOCK);
    memcpy(m->tail, in + n / MD5_BLOCK * MD5_BLOCK, n % MD5_BLOCK);
}

/* Writes what follows the last whole block of a message of `bytes` bytes: rest, 0x80, zeros, length. The number of
 * 64-byte blocks in `out`. */
static size_t pad(uint8_t out[2 * MD5_BLOCK], const uint8_t *rest, uint64_t bytes)
{
    size_t n = bytes % MD5_BLOCK, blocks = n < MD5_BLOCK - 8 ? 1 : 2;
    memset(out, 0, 2 * MD5_BLOCK);
    if (n > 0) {
        memcpy(out, rest, n);
    }
    out[n] = 0x80;
    store32(out + blocks * MD5_BLOCK - 8, (uint32_t)(bytes << 3));
    store32(out + blocks * MD5_BLOCK - 4, (uint32_t)(bytes >> 29));
    return blocks;
}

void md5_final(struct md5 *m, uint8_t out[MD5_SIZE])
{
    uint8_t end[2 * MD5_BLOCK];
    size_t blocks = pad(end, m->tail, m->bytes);
    compress(m->state, end, blocks);
    for (unsigned i = 0; i < 4; i++) {
        store32(out + 4 * i, m->state[i]);
    }
}

void md5_of(const void *p, size_t n, uint8_t out[MD5_SIZE])
{
    struct md5 m;
    md5_init(&m);
    md5_update(&m, p, n);
    md5_final(&m, out);
}

void md5_update_scalar(struct md5_lanes *m, const uint8_t *const *p, unsigned n, size_t blocks)
{
    for (unsigned l = 0; l < n; l++) {
        uint32_t s[4];
        for (unsigned i = 0; i < 4; i++) {
            s[i] = m->state[i][l];
        }
        compress(s, p[l], blocks);
        for (unsigned i = 0; i < 4; i++) {
            m->state[i][l] = s[i];
        }
    }
}

void md5_lanes_init(struct md5_lanes *m)
{
    static const uint32_t start[4] = {MD5_A, MD5_B, MD5_C, MD5_D};
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned l = 0; l < MD5_LANES_MAX; l++) {
            m->state[i][l] = start[i];
        }
    }
}

void md5_lanes_final(struct md5_lanes *m, const struct md5_kernel *k, const uint8_t *const *rest,
                     unsigned n, uint64_t bytes, uint8_t (*out)[MD5_SIZE])
{
    uint8_t end[MD5_LANES_MAX][2 * MD5_BLOCK];
    const uint8_t *p[MD5_LANES_MAX] = {NULL};
    size_t blocks = 0;
    PRE(n > 0 && n <= k->lanes);
    for (unsigned l = 0; l < n; l++) {
        blocks = pad(end[l], rest[l], bytes);
        p[l] = end[l];
    }
    k->update(m, p, n, blocks);
    for (unsigned l = 0; l < n; l++) {
        for (unsigned i = 0; i < 4; i++) {
            store32(out[l] + 4 * i, m->state[i][l]);
        }
    }
}

void md5_lane_final(const struct md5_lanes *m, unsigned lane, const uint8_t *rest, uint64_t bytes,
                    uint8_t out[MD5_SIZE])
{
    struct md5 one = {.bytes = bytes};
    for (unsigned i = 0; i < 4; i++) {
        one.state[i] = m->state[i][lane];
    }
    memcpy(one.tail, rest, bytes % MD5_BLOCK);
    md5_final(&one, out);
}

const struct md5_kernel md5_kernels[] = {
#if defined(WEIR_SIMD) && defined(__x86_64__)
    {"avx512", CPU_AVX512, 32, md5_update_avx512},
    {"avx2", CPU_AVX2, 16, md5_update_avx2},
    {"sse2", 0, 8, md5_update_sse2},
#endif
#if defined(WEIR_SIMD) && defined(__aarch64__)
    {"neon", CPU_NEON, 8, md5_update_neon},
#endif
    {"scalar", 0, 4, md5_update_scalar},
    {NULL, 0, 0, NULL},
};

static const struct md5_kernel *choose(void)
{
    const char *wish = getenv("PAR2_MD5");
    const struct md5_kernel *best = NULL;
    for (const struct md5_kernel *k = md5_kernels; k->name != NULL; k++) {
        if ((k->needs & ~cpu_features()) != 0) {
            continue;
        }
        if (wish != NULL && strcmp(wish, k->name) == 0) {
            return k;
        }
        best = best == NULL ? k : best;
    }
    return best;
}

const struct md5_kernel *md5_best(void)
{
    static _Atomic(const struct md5_kernel *) chosen;
    const struct md5_kernel *k = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (k == NULL) {
        k = choose(); /* racing threads find the same */
        atomic_store_explicit(&chosen, k, memory_order_relaxed);
    }
    return k;
}
