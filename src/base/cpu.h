/* cpu.h - one probe of what this CPU and its kernel can run.
 *
 * Detected once, on first use; the answer never changes. AVX features count only when the operating system
 * saves their registers (OSXSAVE and XCR0), so that a dispatcher need not think about it. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stddef.h>

enum cpu_feature {
    CPU_SSSE3 = 1 << 0,
    CPU_SSE41 = 1 << 1,
    CPU_PCLMUL = 1 << 2,
    CPU_POPCNT = 1 << 3,
    CPU_AVX2 = 1 << 4, /* with BMI1, BMI2 and LZCNT, which every AVX2 CPU we support has */
    CPU_VPCLMUL = 1 << 5,
    CPU_AVX512VBMI2 = 1 << 6, /* with F, BW, VL, VBMI */
    CPU_NEON = 1 << 7,
    CPU_ARM_CRC = 1 << 8,
    CPU_ARM_PMULL = 1 << 9,
    CPU_AVX512 = 1 << 10, /* F, BW, VL, DQ, and the registers saved */
    CPU_GFNI = 1 << 11,   /* of any width that the other bits allow */
};

unsigned cpu_features(void);
/* Writes "ssse3 sse4.1 pclmul popcnt avx2 vpclmul", or "none". */
void cpu_feature_names(char *buf, size_t size);

#endif
