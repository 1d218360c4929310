/* crc32.c - the choice of the kernel, and the arithmetic of joining.
 *
 * Bits are reflected: the highest bit of a word is the coefficient of x^0. */
#include "base/crc32.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/crc32_kernel.h"

enum { POLY = (int)0xEDB88320u };

static const struct crc32_kernel kernels[] = {
#if defined(WEIR_SIMD) && defined(__x86_64__)
    {"avx512", CPU_AVX512 | CPU_VPCLMUL | CPU_PCLMUL | CPU_SSE41, crc32_update_avx512},
    {"vpclmul", CPU_VPCLMUL | CPU_PCLMUL | CPU_SSE41, crc32_update_vpclmul},
    {"pclmul", CPU_PCLMUL | CPU_SSE41, crc32_update_pclmul},
#elif defined(WEIR_SIMD) && defined(__aarch64__)
    {"armv8", CPU_ARM_CRC, crc32_update_armv8},
#endif
    {"scalar", 0, crc32_update_scalar},
    {NULL, 0, NULL},
};

const struct crc32_kernel *crc32_kernels(void)
{
    return kernels;
}

bool crc32_kernel_runs(const struct crc32_kernel *k)
{
    return (cpu_features() & k->needs) == k->needs;
}

static const struct crc32_kernel *choose(void)
{
    const char *wish = getenv("CRC32_KERNEL");
    const struct crc32_kernel *best = NULL;
    for (const struct crc32_kernel *k = kernels; k->name != NULL; k++) {
        if (crc32_kernel_runs(k)) {
            if (wish != NULL && strcmp(wish, k->name) == 0) {
                return k;
            }
            best = best != NULL ? best : k;
        }
    }
    return best;
}

static const struct crc32_kernel *chosen(void)
{
    static _Atomic(const struct crc32_kernel *) cached;
    const struct crc32_kernel *k = atomic_load_explicit(&cached, memory_order_relaxed);
    if (k == NULL) {
        k = choose(); /* racing threads choose the same */
        atomic_store_explicit(&cached, k, memory_order_relaxed);
    }
    return k;
}

const char *crc32_kernel_name(void)
{
    return chosen()->name;
}

uint32_t crc32_update(uint32_t crc, const void *data, size_t len)
{
    return chosen()->update(crc, data, len);
}

uint32_t crc32_multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (; a != 0; a <<= 1) { /* from x^0 upwards: b is multiplied by x at each step */
        product ^= (a & 0x80000000u) ? b : 0;
        b = (b >> 1) ^ ((b & 1) ? (uint32_t)POLY : 0);
    }
    return product;
}

/* x^e. P is primitive, so x^(2^32 - 1) = 1 and any exponent may be reduced by that. */
static uint32_t power_of_x(uint64_t e)
{
    uint32_t result = 0x80000000u, square = 0x40000000u; /* 1 and x */
    for (; e != 0; e >>= 1) {
        if (e & 1) {
            result = crc32_multiply(result, square);
        }
        square = crc32_multiply(square, square);
    }
    return result;
}

static const uint64_t ORDER = 0xffffffffu;

static uint64_t bit_exponent(uint64_t len)
{
    return len % ORDER * 8 % ORDER;
}

uint32_t crc32_power(uint64_t len)
{
    return power_of_x(bit_exponent(len));
}

uint32_t crc32_join(uint32_t crc_a, uint32_t crc_b, uint64_t len_b)
{
    return crc32_multiply(crc_a, crc32_power(len_b)) ^ crc_b;
}

uint32_t crc32_cut(uint32_t crc_ab, uint32_t crc_b, uint64_t len_b)
{
    return crc32_multiply(crc_ab ^ crc_b, power_of_x(ORDER - bit_exponent(len_b)));
}

/* The register (the CRC before its final complement) of zeros is only multiplied. */
uint32_t crc32_zeros(uint32_t crc, uint64_t len)
{
    return ~crc32_multiply(~crc, crc32_power(len));
}

uint32_t crc32_unzeros(uint32_t crc, uint64_t len)
{
    return ~crc32_multiply(~crc, power_of_x(ORDER - bit_exponent(len)));
}
