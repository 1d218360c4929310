/* crc32.h - CRC-32 (IEEE 802.3, as in zlib, yEnc and PAR2): of bytes, of joined pieces, of zeros.
 *
 * Pure functions; any thread. The fastest kernel this CPU runs is chosen once, on first use; CRC32_KERNEL=name in
 * the environment overrides the choice. A CRC starts as 0 and is what zlib's crc32() returns.
 *
 * Joining needs no bytes: appending n bytes multiplies the CRC by x^(8n) in GF(2)[x]/P, so the CRC of a whole, of a
 * part or of a zero-padded block follows from those of its pieces in O(log n). Names differ from zlib's (crc32_join,
 * not crc32_combine) because both are linked into one program. */
#ifndef BASE_CRC32_H
#define BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of what `crc` covers, followed by these bytes. */
uint32_t crc32_update(uint32_t crc, const void *data, size_t len);

/* CRC(A B) from CRC(A), CRC(B) and the length of B. The same call takes a front off: with CRC(A) and CRC(A B) it
 * gives CRC(B). */
uint32_t crc32_join(uint32_t crc_a, uint32_t crc_b, uint64_t len_b);
/* CRC(A) from CRC(A B), CRC(B) and the length of B. */
uint32_t crc32_cut(uint32_t crc_ab, uint32_t crc_b, uint64_t len_b);
/* The CRC of what `crc` covers, followed by `len` zero bytes; and the way back. */
uint32_t crc32_zeros(uint32_t crc, uint64_t len);
uint32_t crc32_unzeros(uint32_t crc, uint64_t len);

/* The arithmetic behind it, for callers that join many pieces of one length: with p = crc32_power(len_b) once,
 * crc32_join(a, b, len_b) == crc32_multiply(a, p) ^ b. */
uint32_t crc32_power(uint64_t len); /* x^(8 len) */
uint32_t crc32_multiply(uint32_t a, uint32_t b);

/* The kernel in use: "scalar", "pclmul", ... */
const char *crc32_kernel_name(void);

#endif
