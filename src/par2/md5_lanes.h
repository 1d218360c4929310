/* md5_lanes.h - the body of a multi-stream MD5 kernel, expanded once per ISA.
 *
 * The file that includes this defines: V (the register), WIDTH (its 32-bit lanes), ADD, SET1, ROTL(x, n), the round
 * functions F G H I of vectors (for G instead ANDNOT and AND, where it is no single instruction), LOAD/STORE of state, TRANSPOSE(w, p, offset): w[0..16) become the 16 message words
 * of WIDTH streams, and NAME. Two groups of lanes go through the steps together, so that the units have work while
 * the other group waits for its own last result. */

#include "par2/md5.h"
#include "par2/md5_steps.h"

#if !defined(V) || !defined(WIDTH) || !defined(NAME)
#    error only the kernels include this
#endif

/* Only `late` waits for b, the result of the step before. */
#define STEP1(f, a, b, c, d, word, turn, constant)                          \
    a##0 = EARLY_##f(ADD(a##0, ADD(w0[word], SET1(constant))), c##0, d##0); \
    a##0 = ADD(b##0, ROTL(ADD(a##0, LATE_##f(b##0, c##0, d##0)), turn));

#define STEP2(f, a, b, c, d, word, turn, constant)                          \
    a##0 = EARLY_##f(ADD(a##0, ADD(w0[word], SET1(constant))), c##0, d##0); \
    a##1 = EARLY_##f(ADD(a##1, ADD(w1[word], SET1(constant))), c##1, d##1); \
    a##0 = ADD(b##0, ROTL(ADD(a##0, LATE_##f(b##0, c##0, d##0)), turn));    \
    a##1 = ADD(b##1, ROTL(ADD(a##1, LATE_##f(b##1, c##1, d##1)), turn));

#define EARLY_F(a, c, d) (a)
#define EARLY_H(a, c, d) (a)
#define EARLY_I(a, c, d) (a)
#define LATE_F           F
#define LATE_H           H
#define LATE_I           I
#ifdef ANDNOT /* the two halves of G have no bit in common: they may be added one after the other */
#    define EARLY_G(a, c, d) ADD(a, ANDNOT(d, c))
#    define LATE_G(b, c, d)  AND(d, b)
#else
#    define EARLY_G(a, c, d) (a)
#    define LATE_G           G
#endif

#define LOAD_STATE(g)                                                             \
    V a##g = LOAD(&m->state[0][g * WIDTH]), b##g = LOAD(&m->state[1][g * WIDTH]), \
      c##g = LOAD(&m->state[2][g * WIDTH]), d##g = LOAD(&m->state[3][g * WIDTH])
#define STORE_STATE(g)                    \
    STORE(&m->state[0][g * WIDTH], a##g); \
    STORE(&m->state[1][g * WIDTH], b##g); \
    STORE(&m->state[2][g * WIDTH], c##g); \
    STORE(&m->state[3][g * WIDTH], d##g)
#define KEEP(g) const V sa##g = a##g, sb##g = b##g, sc##g = c##g, sd##g = d##g
#define ADD_KEPT(g)          \
    a##g = ADD(a##g, sa##g); \
    b##g = ADD(b##g, sb##g); \
    c##g = ADD(c##g, sc##g); \
    d##g = ADD(d##g, sd##g)

static void update_one(struct md5_lanes *m, const uint8_t *const *p, size_t blocks)
{
    LOAD_STATE(0);
    for (size_t at = 0; at < blocks * MD5_BLOCK; at += MD5_BLOCK) {
        V w0[16] KERNEL_SCRATCH;
        TRANSPOSE(w0, p, at);
        KEEP(0);
        MD5_STEPS(STEP1)
        ADD_KEPT(0);
    }
    STORE_STATE(0);
}

static void update_two(struct md5_lanes *m, const uint8_t *const *p, size_t blocks)
{
    LOAD_STATE(0);
    LOAD_STATE(1);
    for (size_t at = 0; at < blocks * MD5_BLOCK; at += MD5_BLOCK) {
        V w0[16] KERNEL_SCRATCH, w1[16] KERNEL_SCRATCH;
        TRANSPOSE(w0, p, at);
        TRANSPOSE(w1, p + WIDTH, at);
        KEEP(0);
        KEEP(1);
        MD5_STEPS(STEP2)
        ADD_KEPT(0);
        ADD_KEPT(1);
    }
    STORE_STATE(0);
    STORE_STATE(1);
}

void NAME(struct md5_lanes *m, const uint8_t *const *p, unsigned n, size_t blocks)
{
    const uint8_t *all[2 * WIDTH]; /* lanes without a stream follow the first one */
    for (unsigned l = 0; l < 2 * WIDTH; l++) {
        all[l] = p[l < n ? l : 0];
    }
    if (n == 1) {
        md5_update_scalar(m, p, n, blocks);
    } else if (n <= WIDTH) {
        update_one(m, all, blocks);
    } else {
        update_two(m, all, blocks);
    }
}
