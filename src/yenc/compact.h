/* compact.h - private: the shuffle table with which the SSSE3 and AVX2 kernels close the gaps of 16 bytes.
 *
 * Entry m moves the bytes whose bit in m is 1 to the front; only 15 bits count, because whether the last byte is
 * kept changes nothing in front of it. 512 KiB, of which a normal article uses some 130 entries. */
#ifndef YENC_COMPACT_H
#define YENC_COMPACT_H

#include <stdint.h>

enum { YENC_COMPACT_ENTRIES = 1 << 15 };
extern uint8_t yenc_compact_table[YENC_COMPACT_ENTRIES][16];
/* Fills it, once; any thread, before its first use. */
void yenc_compact_init(void);

#endif
