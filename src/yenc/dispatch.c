/* dispatch.c - the choice of the kernel, and the loop around it: the kernel takes the long stretches, the scalar
 * specification whatever is rare, near an end, or in the middle of something. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "yenc/kernel.h"

static const struct yenc_kernel kernels[] = {
#if defined(WEIR_SIMD) && defined(__x86_64__)
    {"vbmi2", CPU_AVX512VBMI2 | CPU_GFNI, yenc_decode_vbmi2, yenc_encode_ssse3},
    {"avx2", CPU_AVX2, yenc_decode_avx2, yenc_encode_ssse3},
    {"ssse3", CPU_SSSE3 | CPU_SSE41 | CPU_POPCNT, yenc_decode_ssse3, yenc_encode_ssse3},
#elif defined(WEIR_SIMD) && defined(__aarch64__)
    {"neon", CPU_NEON, yenc_decode_neon, yenc_encode_scalar},
#endif
    {"scalar", 0, NULL, yenc_encode_scalar},
    {NULL, 0, NULL, NULL},
};

const struct yenc_kernel *yenc_kernels(void)
{
    return kernels;
}

bool yenc_kernel_runs(const struct yenc_kernel *k)
{
    return (cpu_features() & k->needs) == k->needs;
}

static const struct yenc_kernel *choose(void)
{
    const char *wish = getenv("YENC_KERNEL");
    const struct yenc_kernel *best = NULL;
    for (const struct yenc_kernel *k = kernels; k->name != NULL; k++) {
        if (yenc_kernel_runs(k)) {
            if (wish != NULL && strcmp(wish, k->name) == 0) {
                return k;
            }
            best = best != NULL ? best : k;
        }
    }
    return best;
}

static const struct yenc_kernel *chosen(void)
{
    static _Atomic(const struct yenc_kernel *) cached;
    const struct yenc_kernel *k = atomic_load_explicit(&cached, memory_order_relaxed);
    if (k == NULL) {
        k = choose(); /* racing threads choose the same */
        atomic_store_explicit(&cached, k, memory_order_relaxed);
    }
    return k;
}

const char *yenc_kernel_name(void)
{
    return chosen()->name;
}

/* Bytes the specification takes before the kernel is tried again; all of them where fewer are left than a kernel
 * begins with. */
enum { STEP = 16, TAIL = 64 };

static bool kernel_may_start(enum yenc_state s)
{
    return s == YENC_AT_LINE || s == YENC_AT_LF || s == YENC_IN_LINE || s == YENC_AFTER_EQ;
}

enum yenc_stop yenc_decode_with(const struct yenc_kernel *k, struct yenc_raw *r)
{
    if (k->decode == NULL) {
        return yenc_decode_scalar(r, (size_t)(r->end - r->src));
    }
    while (r->src < r->end) {
        if (kernel_may_start(r->state)) {
            k->decode(r);
        }
        size_t left = (size_t)(r->end - r->src);
        enum yenc_stop stop = yenc_decode_scalar(r, left <= TAIL ? left : STEP);
        if (stop != YENC_MORE) {
            return stop;
        }
    }
    return YENC_MORE;
}

enum yenc_stop yenc_decode(struct yenc_raw *r)
{
    return yenc_decode_with(chosen(), r);
}

size_t yenc_encode(const uint8_t *src, size_t n, unsigned line, uint8_t *dst)
{
    return chosen()->encode(src, n, line, dst);
}
