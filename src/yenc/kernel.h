/* kernel.h - private to src/yenc, its tests and its bench: the kernels one by one. */
#ifndef YENC_KERNEL_H
#define YENC_KERNEL_H

#include "yenc/yenc.h"

struct yenc_kernel {
    const char *name;
    unsigned needs; /* enum cpu_feature bits */
    /* Decodes a stretch from r->src on and may stop wherever it likes before r->end, leaving r->state true; called
     * only where r->state is AT_LINE, AT_LF, IN_LINE or AFTER_EQ, and leaves one of these or
     * AFTER_CR. Never consumes a byte of a
     * control line or of a dot line. NULL: the scalar specification does it all. */
    void (*decode)(struct yenc_raw *r);
    /* As yenc_encode(). */
    size_t (*encode)(const uint8_t *src, size_t n, unsigned line, uint8_t *dst);
};

/* Every kernel of this build, best first; ends with one without a name. */
const struct yenc_kernel *yenc_kernels(void);
bool yenc_kernel_runs(const struct yenc_kernel *k);
/* yenc_decode() with a given kernel. */
enum yenc_stop yenc_decode_with(const struct yenc_kernel *k, struct yenc_raw *r);

/* The specification: one byte at a time, at most n bytes. */
enum yenc_stop yenc_decode_scalar(struct yenc_raw *r, size_t n);
void yenc_decode_ssse3(struct yenc_raw *r);
void yenc_decode_avx2(struct yenc_raw *r);
void yenc_decode_vbmi2(struct yenc_raw *r);
void yenc_decode_neon(struct yenc_raw *r);
size_t yenc_encode_scalar(const uint8_t *src, size_t n, unsigned line, uint8_t *dst);
size_t yenc_encode_ssse3(const uint8_t *src, size_t n, unsigned line, uint8_t *dst);

/* One byte of data. NUL, LF, CR and '=' are always escaped; a dot only where it would need dot-stuffing; TAB and blank
 * only at the edges of a line, where some servers and newsreaders take them off. */
static inline uint8_t *yenc_encode_byte(uint8_t *p, uint8_t byte, bool first, bool last)
{
    uint8_t c = (uint8_t)(byte + 42);
    if (c == 0 || c == '\n' || c == '\r' || c == '=' || (c == '.' && first) ||
        ((c == '\t' || c == ' ') && (first || last))) {
        *p++ = '=';
        c = (uint8_t)(c + 64);
    }
    *p++ = c;
    return p;
}

/* UUencode (uu.c). A line is one without its line end. */
bool yenc_uu_begin(const char *line, size_t len, char name[YENC_NAME_MAX + 1]);
/* Bytes decoded into out (room for UU_LINE_BYTES), or -1 if this is no line of UUencode. */
enum { YENC_UU_LINE_BYTES = 63 };
int yenc_uu_line(const char *line, size_t len, uint8_t *out);

/* Copies a name as UTF-8 (header.c): bytes that are not valid are taken as Latin-1. */
void yenc_copy_name(char out[YENC_NAME_MAX + 1], const char *name, size_t len);

#endif
