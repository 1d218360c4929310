/* kernel.h - what the SIMD files share. */
#ifndef PAR2_KERNEL_H
#define PAR2_KERNEL_H

/* For arrays of registers that are filled before they are read: the build clears all other automatic variables, and
 * in an inner loop that costs a third of the speed. */
#define KERNEL_SCRATCH __attribute__((uninitialized))

#endif
