#include "base/utf8.h"

size_t utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    const unsigned char *u = (const unsigned char *)s;
    if (n == 0) {
        return 0;
    }
    if (u[0] < 0x80) {
        *cp = u[0];
        return 1;
    }
    /* 0xc0, 0xc1 and 0xf5..0xff never occur; the smallest value per length refuses overlong forms. */
    size_t len = u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : 2;
    if (u[0] < 0xc2 || u[0] > 0xf4 || n < len) {
        return 0;
    }
    uint32_t v = u[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((u[i] & 0xc0) != 0x80) {
            return 0;
        }
        v = v << 6 | (u[i] & 0x3fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (v < least[len] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff)) {
        return 0;
    }
    *cp = v;
    return len;
}

size_t utf8_char_len(const char *s, size_t n)
{
    uint32_t cp;
    return utf8_decode(s, n, &cp);
}
