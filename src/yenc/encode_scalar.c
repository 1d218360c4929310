/* encode_scalar.c - what encoding means, one byte at a time. */
#include "yenc/kernel.h"

size_t yenc_encode_scalar(const uint8_t *src, size_t n, unsigned line, uint8_t *dst)
{
    uint8_t *p = dst, *start = dst;
    for (size_t i = 0; i < n; i++) {
        p = yenc_encode_byte(p, src[i], p == start, p - start + 1 == line || i + 1 == n);
        if (p - start >= line || i + 1 == n) {
            *p++ = '\r';
            *p++ = '\n';
            start = p;
        }
    }
    return (size_t)(p - dst);
}
