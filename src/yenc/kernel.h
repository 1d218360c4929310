/* kernel.h - private to src/yenc, its tests and its bench: the kernels one by one. */
#ifndef YENC_KERNEL_H
#define YENC_KERNEL_H

#include "yenc/yenc.h"

struct yenc_kernel {
    const char *name;
    unsigned needs; /* enum cpu_feature bits */
    /* Decodes a stretch from r->src on and may stop wherever it likes before r->end, leaving r->state true; called
     * only where r->state is AT_LINE, AT_LF, IN_LINE or AFTER_EQ, and leaves one of these. Never consumes a byte of a
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
size_t yenc_encode_scalar(const uint8_t *src, size_t n, unsigned line, uint8_t *dst);

/* UUencode (uu.c). A line is one without its line end. */
bool yenc_uu_begin(const char *line, size_t len, char name[YENC_NAME_MAX + 1]);
/* Bytes decoded into out (room for UU_LINE_BYTES), or -1 if this is no line of UUencode. */
enum { YENC_UU_LINE_BYTES = 63 };
int yenc_uu_line(const char *line, size_t len, uint8_t *out);

/* Copies a name as UTF-8 (header.c): bytes that are not valid are taken as Latin-1. */
void yenc_copy_name(char out[YENC_NAME_MAX + 1], const char *name, size_t len);

#endif
