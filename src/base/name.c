/* name.c - see name.h. */
#include "base/name.h"

#include <stdio.h>
#include <string.h>

enum { EXT_MAX = 16 }; /* a longer tail behind the last dot is no extension and may be cut */

/* Where the extension, with its dot, begins; `len` when there is none. */
static size_t ext_start(const char *s, size_t len)
{
    for (size_t i = len; i > 1 && len - i < EXT_MAX; i--) {
        if (s[i - 1] == '.') {
            return i - 1;
        }
    }
    return len;
}

/* The largest cut <= n that does not split a UTF-8 character. */
static size_t cut_at(const char *s, size_t n)
{
    while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80) {
        n--;
    }
    return n;
}

void name_numbered(const char *name, unsigned n, char *out)
{
    char suffix[16] = "";
    if (n > 1) {
        snprintf(suffix, sizeof(suffix), " (%u)", n);
    }
    size_t len = strlen(name);
    size_t ext = ext_start(name, len);
    size_t room = NAME_LEN_MAX - strlen(suffix) - (len - ext);
    size_t stem = ext <= room ? ext : cut_at(name, room);
    snprintf(out, NAME_LEN_MAX + 1, "%.*s%s%s", (int)stem, name, suffix, name + ext);
}
