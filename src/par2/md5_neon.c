/* md5_neon.c - 2 x 4 streams. */
#if defined(__aarch64__)
#    include <arm_neon.h>
#    include <stddef.h>
#    include <stdint.h>

#    include "par2/kernel.h"

typedef uint32x4_t V;
#    define V           V
#    define WIDTH       4
#    define NAME        md5_update_neon
#    define ADD         vaddq_u32
#    define SET1(x)     vdupq_n_u32(x)
#    define ROTL(x, n)  vsriq_n_u32(vshlq_n_u32((x), (n)), (x), 32 - (n))
#    define F(x, y, z)  vbslq_u32(x, y, z)
#    define G(x, y, z)  vbslq_u32(z, x, y)
#    define H(x, y, z)  veorq_u32(x, veorq_u32(y, z))
#    define I(x, y, z)  veorq_u32(y, vornq_u32(x, z))
#    define LOAD(p)     vld1q_u32(p)
#    define STORE(p, v) vst1q_u32(p, v)

static inline void transpose(V *w, const uint8_t *const *p, size_t at)
{
    for (unsigned q = 0; q < 4; q++) {
        V r[4] KERNEL_SCRATCH;
        for (unsigned l = 0; l < 4; l++) {
            r[l] = vreinterpretq_u32_u8(vld1q_u8(p[l] + at + 16 * q));
        }
        const uint32x4x2_t s = vtrnq_u32(r[0], r[1]), t = vtrnq_u32(r[2], r[3]);
        w[4 * q] = vcombine_u32(vget_low_u32(s.val[0]), vget_low_u32(t.val[0]));
        w[4 * q + 1] = vcombine_u32(vget_low_u32(s.val[1]), vget_low_u32(t.val[1]));
        w[4 * q + 2] = vcombine_u32(vget_high_u32(s.val[0]), vget_high_u32(t.val[0]));
        w[4 * q + 3] = vcombine_u32(vget_high_u32(s.val[1]), vget_high_u32(t.val[1]));
    }
}
#    define TRANSPOSE transpose

#    include "par2/md5_lanes.h"
#else
typedef int md5_neon_empty; /* not this CPU */
#endif
