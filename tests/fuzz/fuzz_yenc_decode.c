/* fuzz_yenc_decode.c - every kernel gives what the specification gives: whole, split once, and in place. The first
 * three bytes choose the state, whether LF ends the article, and the split. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "yenc/kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct result {
    enum yenc_stop stop;
    enum yenc_state state;
    size_t used, made;
};

static struct result decode(const struct yenc_kernel *k, const uint8_t *src, size_t n, uint8_t *dst,
                            enum yenc_state state, bool lf_ends)
{
    struct yenc_raw r = {src, src + n, dst, state, lf_ends};
    enum yenc_stop stop = k != NULL ? yenc_decode_with(k, &r) : yenc_decode_scalar(&r, n);
    return (struct result){stop, r.state, (size_t)(r.src - src), (size_t)(r.dst - dst)};
}

static void expect(struct result want, struct result got, const uint8_t *a, const uint8_t *b)
{
    if (want.stop != got.stop || want.state != got.state || want.used != got.used ||
        want.made != got.made || memcmp(a, b, want.made) != 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) {
        return 0;
    }
    enum yenc_state state = (enum yenc_state)(data[0] % (YENC_LF_DOT + 1));
    bool lf_ends = (data[0] & 0x80) && state != YENC_AT_LF && state != YENC_LF_DOT;
    size_t n = size - 3, split = (data[1] | (size_t)data[2] << 8) % (n + 1);
    /* Blocks of exactly n bytes: one byte too many is seen. */
    uint8_t *src = malloc(n + 1), *want = malloc(n + 1), *made = malloc(n + 1);
    if (src == NULL || want == NULL || made == NULL) {
        abort();
    }
    src++, want++, made++;
    memcpy(src, data + 3, n);
    struct result whole = decode(NULL, src, n, want, state, lf_ends);
    for (const struct yenc_kernel *k = yenc_kernels(); k->name != NULL; k++) {
        if (!yenc_kernel_runs(k) || k->decode == NULL) {
            continue;
        }
        expect(whole, decode(k, src, n, made, state, lf_ends), want, made);
        struct result part = decode(k, src, split, made, state, lf_ends);
        if (part.stop == YENC_MORE) {
            struct result rest =
                decode(k, src + split, n - split, made + part.made, part.state, lf_ends);
            rest.used += part.used;
            rest.made += part.made;
            part = rest;
        }
        expect(whole, part, want, made);
        memcpy(made, src, n);
        expect(whole, decode(k, made, n, made, state, lf_ends), want, made);
    }
    free(src - 1);
    free(want - 1);
    free(made - 1);
    return 0;
}
