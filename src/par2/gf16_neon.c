/* gf16_neon.c - table look-ups on 16-byte registers. */
#if defined(__aarch64__)
#    include <arm_neon.h>

typedef uint8x16_t V;
#    define V                 V
#    define WIDTH             16
#    define KERNEL            gf16_kernel_neon
#    define KERNEL_NAME       "neon"
#    define NEEDS             CPU_NEON
#    define LOAD(p)           vld1q_u8(p)
#    define STORE(p, v)       vst1q_u8(p, v)
#    define LOADU(p)          vld1q_u8(p)
#    define STOREU(p, v)      vst1q_u8(p, v)
#    define TABLE(p)          vld1q_u8(p)
#    define SHUFFLE(t, i)     vqtbl1q_u8(t, i)
#    define XOR               veorq_u8
#    define AND               vandq_u8
#    define LOW4              vdupq_n_u8(15)
#    define HIGH_NIBBLES(x)   vshrq_n_u8(x, 4)
#    define PACK_LOW(a, b)    vuzp1q_u8(a, b)
#    define PACK_HIGH(a, b)   vuzp2q_u8(a, b)
#    define UNPACK_LOW(a, b)  vzip1q_u8(a, b)
#    define UNPACK_HIGH(a, b) vzip2q_u8(a, b)

#    include "par2/gf16_shuffle.h"
#else
typedef int gf16_neon_empty; /* not this CPU */
#endif
