/* encode_scalar.c - what encoding means, one byte at a time. */
#include "yenc/kernel.h"

/* NUL, LF, CR and '=' always; a dot only where it would need dot-stuffing; TAB and blank only at the edges of a
 * line, where some servers and newsreaders take them off. */
static bool critical(unsigned c, bool first, bool last)
{
    switch (c) {
    case 0:
    case '\n':
    case '\r':
    case '=':
        return true;
    case '.':
        return first;
    case '\t':
    case ' ':
        return first || last;
    default:
        return false;
    }
}

size_t yenc_encode_scalar(const uint8_t *src, size_t n, unsigned line, uint8_t *dst)
{
    uint8_t *p = dst;
    unsigned column = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)(src[i] + 42);
        bool last = column + 1 >= line || i + 1 == n;
        if (critical(c, column == 0, last)) {
            *p++ = '=';
            c = (uint8_t)(c + 64);
            column++;
        }
        *p++ = c;
        column++;
        if (column >= line || i + 1 == n) {
            *p++ = '\r';
            *p++ = '\n';
            column = 0;
        }
    }
    return (size_t)(p - dst);
}
