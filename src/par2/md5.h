/* md5.h - MD5, one stream or many side by side.
 *
 * PAR2 hashes equal-sized blocks, so several of them can run in the lanes of one SIMD register: one stream is bound
 * by the latency of a chain of four dependent operations per step, sixteen or more by throughput. Pure functions,
 * any thread. The scalar code is the specification; the kernels are compared with it (tests/unit/par2). */
#ifndef PAR2_MD5_H
#define PAR2_MD5_H

#include <stddef.h>
#include <stdint.h>

enum { MD5_SIZE = 16, MD5_BLOCK = 64, MD5_LANES_MAX = 32 };

/* ---- one stream ---- */

struct md5 {
    uint32_t state[4];
    uint64_t bytes;
    uint8_t tail[MD5_BLOCK];
};

void md5_init(struct md5 *m);
void md5_update(struct md5 *m, const void *p, size_t n);
void md5_final(struct md5 *m, uint8_t out[MD5_SIZE]);
void md5_of(const void *p, size_t n, uint8_t out[MD5_SIZE]);

/* ---- many streams of one length ---- */

/* state[word][lane]; lanes that are not used hold anything. */
struct md5_lanes {
    _Alignas(64) uint32_t state[4][MD5_LANES_MAX];
};

struct md5_kernel {
    const char *name;
    unsigned needs; /* bits of cpu.h */
    unsigned lanes; /* streams side by side at full speed, at most MD5_LANES_MAX */
    /* `blocks` times 64 bytes of each of the n <= lanes streams p[0..n). */
    void (*update)(struct md5_lanes *m, const uint8_t *const *p, unsigned n, size_t blocks);
};

/* All that are built in, best first; ends with a row without a name. The last is scalar. */
extern const struct md5_kernel md5_kernels[];
/* The best that this CPU runs; PAR2_MD5=name chooses another that it runs. Decided once. */
const struct md5_kernel *md5_best(void);

void md5_lanes_init(struct md5_lanes *m);
/* Ends n streams, each `bytes` long, whose last bytes % 64 bytes stand at rest[lane]. */
void md5_lanes_final(struct md5_lanes *m, const struct md5_kernel *k, const uint8_t *const *rest,
                     unsigned n, uint64_t bytes, uint8_t (*out)[MD5_SIZE]);

/* Ends one stream of a group whose others go on. */
void md5_lane_final(const struct md5_lanes *m, unsigned lane, const uint8_t *rest, uint64_t bytes,
                    uint8_t out[MD5_SIZE]);

/* Kernels, one per ISA; only those that are built exist. */
void md5_update_scalar(struct md5_lanes *m, const uint8_t *const *p, unsigned n, size_t blocks);
void md5_update_sse2(struct md5_lanes *m, const uint8_t *const *p, unsigned n, size_t blocks);
void md5_update_avx2(struct md5_lanes *m, const uint8_t *const *p, unsigned n, size_t blocks);
void md5_update_avx512(struct md5_lanes *m, const uint8_t *const *p, unsigned n, size_t blocks);
void md5_update_neon(struct md5_lanes *m, const uint8_t *const *p, unsigned n, size_t blocks);

#endif
