/* uu.c - UUencode, for posts from before yEnc: "begin 644 name", lines of up to 45 bytes, a line for zero bytes,
 * "end". A line is its length as a character (32 + n) and then four characters for each three bytes. */
#include <string.h>

#include "yenc/kernel.h"

bool yenc_uu_begin(const char *line, size_t len, char name[YENC_NAME_MAX + 1])
{
    if (len < 6 || memcmp(line, "begin ", 6) != 0) {
        return false;
    }
    size_t digits = 0;
    while (6 + digits < len && line[6 + digits] >= '0' && line[6 + digits] <= '7') {
        digits++;
    }
    size_t at = 6 + digits;
    if (digits < 3 || digits > 4 || at + 1 >= len || line[at] != ' ') {
        return false;
    }
    while (len > at && (line[len - 1] == ' ' || line[len - 1] == '\t')) {
        len--;
    }
    at++;
    if (len <= at) {
        return false;
    }
    yenc_copy_name(name, line + at, len - at);
    return true;
}

/* '`' stands for a blank (0) in most encoders; -1: not a character of UUencode. */
static int value(char c)
{
    return c == '`' ? 0 : c >= ' ' && c < '`' ? c - ' ' : -1;
}

int yenc_uu_line(const char *line, size_t len, uint8_t *out)
{
    int bytes = len > 0 ? value(line[0]) : -1;
    if (bytes < 0) {
        return -1;
    }
    size_t groups = ((size_t)bytes + 2) / 3;
    /* Some encoders leave out what a last group does not need, or add a checksum character; some transports take
     * blanks off the end of a line, and a blank is zero. */
    if (len > 1 + groups * 4 + 1) {
        return -1;
    }
    int made = 0;
    for (size_t g = 0; g < groups; g++) {
        unsigned bits = 0;
        for (size_t i = 0; i < 4; i++) {
            size_t at = 1 + g * 4 + i;
            int v = at < len ? value(line[at]) : 0;
            if (v < 0) {
                return -1;
            }
            bits = bits << 6 | (unsigned)v;
        }
        for (int shift = 16; shift >= 0 && made < bytes; shift -= 8) {
            out[made++] = (uint8_t)(bits >> shift);
        }
    }
    return made;
}
