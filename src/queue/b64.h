/* b64.h - base64 (RFC 4648, with padding) for the bit maps and checksums inside the saved queue.
 *
 * Pure functions. The encoder writes 12 bits per table lookup: a snapshot of a million articles is mostly this. */
#ifndef QUEUE_B64_H
#define QUEUE_B64_H

#include <stdbool.h>
#include <stddef.h>

static inline size_t b64_encoded_len(size_t n)
{
    return (n + 2) / 3 * 4;
}
/* Writes b64_encoded_len(n) characters, no zero behind them. */
void b64_encode(const void *bytes, size_t n, char *out);
/* Exactly `n` bytes must be in the `len` characters; false: they are not, or something else is there. */
bool b64_decode(const char *text, size_t len, void *out, size_t n);

#endif
