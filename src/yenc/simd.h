/* simd.h - private: what the kernel files share. */
#ifndef YENC_SIMD_H
#define YENC_SIMD_H

#define INLINE      static inline __attribute__((always_inline))
#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum { BLOCK = 64 };

#endif
