#include "base/cpu.h"

#include <stdatomic.h>
#include <stdio.h>

#if defined(__x86_64__)
#    include <cpuid.h>
#elif defined(__aarch64__)
#    include <asm/hwcap.h>
#    include <sys/auxv.h>
#endif

enum { DETECTED = 1 << 30 };

#if defined(__x86_64__)
static unsigned long long xcr0(void)
{
    unsigned lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return ((unsigned long long)hi << 32) | lo;
}

static unsigned detect(void)
{
    unsigned a, b, c, d, found = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) {
        return 0;
    }
    found |= (c & bit_SSSE3) ? CPU_SSSE3 : 0;
    found |= (c & bit_SSE4_1) ? CPU_SSE41 : 0;
    found |= (c & bit_PCLMUL) ? CPU_PCLMUL : 0;
    found |= (c & bit_POPCNT) ? CPU_POPCNT : 0;

    unsigned long long saved = (c & bit_OSXSAVE) ? xcr0() : 0;
    unsigned b7, c7, d7, cx;
    if ((saved & 0x6) != 0x6 || !(c & bit_AVX) || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7) ||
        !__get_cpuid(0x80000001, &a, &b, &cx, &d)) {
        return found;
    }
    const unsigned lzcnt = 1u << 5;
    if ((b7 & bit_AVX2) && (b7 & bit_BMI) && (b7 & bit_BMI2) && (cx & lzcnt)) {
        found |= CPU_AVX2;
        found |= (c7 & bit_VPCLMULQDQ) ? CPU_VPCLMUL : 0;
        found |= (c7 & bit_GFNI) ? CPU_GFNI : 0;
    }
    const unsigned base512 = bit_AVX512F | bit_AVX512BW | bit_AVX512VL;
    const unsigned vbmi = bit_AVX512VBMI | bit_AVX512VBMI2;
    if ((saved & 0xe6) == 0xe6 && (b7 & base512) == base512 && (c7 & vbmi) == vbmi) {
        found |= CPU_AVX512VBMI2;
    }
    if ((saved & 0xe6) == 0xe6 && (b7 & base512) == base512 && (b7 & bit_AVX512DQ)) {
        found |= CPU_AVX512;
    }
    return found;
}
#elif defined(__aarch64__)
static unsigned detect(void)
{
    unsigned long cap = getauxval(AT_HWCAP);
    unsigned found = 0;
    found |= (cap & HWCAP_ASIMD) ? CPU_NEON : 0;
    found |= (cap & HWCAP_CRC32) ? CPU_ARM_CRC : 0;
    found |= (cap & HWCAP_PMULL) ? CPU_ARM_PMULL : 0;
    return found;
}
#else
static unsigned detect(void)
{
    return 0;
}
#endif

unsigned cpu_features(void)
{
    static atomic_uint cached;
    unsigned f = atomic_load_explicit(&cached, memory_order_relaxed);
    if (f == 0) {
        f = detect() | DETECTED; /* racing threads find the same */
        atomic_store_explicit(&cached, f, memory_order_relaxed);
    }
    return f & ~(unsigned)DETECTED;
}

void cpu_feature_names(char *buf, size_t size)
{
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {
        {CPU_SSSE3, "ssse3"},     {CPU_SSE41, "sse4.1"},
        {CPU_PCLMUL, "pclmul"},   {CPU_POPCNT, "popcnt"},
        {CPU_AVX2, "avx2"},       {CPU_VPCLMUL, "vpclmul"},
        {CPU_NEON, "neon"},       {CPU_ARM_CRC, "crc"},
        {CPU_ARM_PMULL, "pmull"}, {CPU_AVX512VBMI2, "avx512vbmi2"},
        {CPU_AVX512, "avx512"},   {CPU_GFNI, "gfni"},
    };
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if ((cpu_features() & names[i].bit) && used < size) {
            int n = snprintf(buf + used, size - used, "%s%s", used > 0 ? " " : "", names[i].name);
            used += n > 0 ? (size_t)n : 0;
        }
    }
    if (used == 0) {
        snprintf(buf, size, "none");
    }
}
