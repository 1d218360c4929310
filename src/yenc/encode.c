/* encode.c - whole article bodies: header lines around encoded data. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/crc32.h"
#include "yenc/kernel.h"

enum { HEADERS_MAX = 512 }; /* all header lines without the name */

size_t yenc_encode_max(size_t n, unsigned line)
{
    PRE(line >= YENC_LINE_MIN && line <= YENC_LINE_MAX);
    /* All escaped, a line end for each line, and room for a kernel's whole-vector stores. */
    return 2 * n + 2 * (2 * n / line + 1) + 128;
}

size_t yenc_post_max(const struct yenc_post *p, size_t n)
{
    return HEADERS_MAX + strlen(p->name) + yenc_encode_max(n, p->line);
}

size_t yenc_post_make(const struct yenc_post *p, const uint8_t *data, size_t n, uint8_t *dst)
{
    char *out = (char *)dst;
    size_t room = yenc_post_max(p, n), used = 0;
    uint32_t crc = crc32_update(0, data, n);
#define ADD(...) used += (size_t)snprintf(out + used, room - used, __VA_ARGS__)
    ADD("=ybegin ");
    if (p->part > 0) {
        ADD("part=%" PRIu32 " total=%" PRIu32 " ", p->part, p->total);
    }
    ADD("line=%u size=%" PRIu64 " name=%s\r\n", p->line, p->size, p->name);
    if (p->part > 0) {
        ADD("=ypart begin=%" PRIu64 " end=%" PRIu64 "\r\n", p->begin + 1, p->begin + n);
    }
    used += yenc_encode(data, n, p->line, dst + used);
    ADD("=yend size=%zu", n);
    if (p->part > 0) {
        ADD(" part=%" PRIu32 " pcrc32=%08" PRIx32, p->part, crc);
        if (p->has_file_crc) {
            ADD(" crc32=%08" PRIx32, p->file_crc);
        }
    } else {
        ADD(" crc32=%08" PRIx32, crc);
    }
    ADD("\r\n");
#undef ADD
    return used;
}
