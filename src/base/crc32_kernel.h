/* crc32_kernel.h - private to crc32*.c, their test and the bench: the kernels one by one. */
#ifndef BASE_CRC32_KERNEL_H
#define BASE_CRC32_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct crc32_kernel {
    const char *name;
    unsigned needs; /* enum cpu_feature bits */
    uint32_t (*update)(uint32_t crc, const uint8_t *p, size_t n);
};

/* Every kernel of this build, best first; ends with one without a name. */
const struct crc32_kernel *crc32_kernels(void);
bool crc32_kernel_runs(const struct crc32_kernel *k);

uint32_t crc32_update_scalar(uint32_t crc, const uint8_t *p, size_t n);
uint32_t crc32_update_pclmul(uint32_t crc, const uint8_t *p, size_t n);
uint32_t crc32_update_vpclmul(uint32_t crc, const uint8_t *p, size_t n);
uint32_t crc32_update_avx512(uint32_t crc, const uint8_t *p, size_t n);
uint32_t crc32_update_armv8(uint32_t crc, const uint8_t *p, size_t n);

#endif
