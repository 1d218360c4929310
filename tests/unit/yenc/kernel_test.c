/* Every kernel this CPU runs against the specification: bytes, consumed input, state and stop are the same. */
#include <string.h>
#include <unity.h>

#include "base/mem.h"
#include "lib/guard.h"
#include "lib/rng.h"
#include "yenc/kernel.h"

enum { MOST = 20000, STATES = YENC_LF_DOT + 1 };

static struct rng rng;
static struct guard in, out, both;
static uint8_t expected[MOST];

void setUp(void)
{
    rng_init(&rng, rng_seed(2));
    guard_init(&in, MOST);
    guard_init(&out, MOST);
    guard_init(&both, 2 * MOST);
}

void tearDown(void)
{
    guard_close(&in);
    guard_close(&out);
    guard_close(&both);
}

#define EACH_KERNEL(k)                                                       \
    for (const struct yenc_kernel *k = yenc_kernels(); k->name != NULL; k++) \
        if (!yenc_kernel_runs(k) || k->decode == NULL) {                     \
        } else

struct result {
    enum yenc_stop stop;
    enum yenc_state state;
    size_t used, made;
};

static struct result decode(const struct yenc_kernel *k, const uint8_t *src, size_t n, uint8_t *dst,
                            enum yenc_state state, bool lf_ends)
{
    struct yenc_raw r = {src, src + n, dst, state, lf_ends};
    struct result x;
    x.stop = k != NULL ? yenc_decode_with(k, &r) : yenc_decode_scalar(&r, n);
    x.state = r.state;
    x.used = (size_t)(r.src - src);
    x.made = (size_t)(r.dst - dst);
    return x;
}

static void dump(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        printf("%02x%s", p[i], i % 32 == 31 ? "\n" : " ");
    }
    printf("\n");
}

static void compare(const char *kernel, const char *how, struct result want, struct result got,
                    const uint8_t *src, size_t n, const uint8_t *bytes, enum yenc_state state)
{
    if (want.stop == got.stop && want.state == got.state && want.used == got.used &&
        want.made == got.made && memcmp(expected, bytes, want.made) == 0) {
        return;
    }
    printf("%s %s: from state %d, %zu bytes:\n", kernel, how, (int)state, n);
    dump(src, n < 600 ? n : 600);
    printf("want stop %d state %d used %zu made %zu, got %d %d %zu %zu\n", (int)want.stop,
           (int)want.state, want.used, want.made, (int)got.stop, (int)got.state, got.used,
           got.made);
    TEST_FAIL_MESSAGE("a kernel differs from the specification");
}

/* One input through one kernel: between guard pages, in place, and in place with a distance. */
static void check(const struct yenc_kernel *k, const uint8_t *text, size_t n, enum yenc_state state,
                  bool lf_ends)
{
    lf_ends = lf_ends && state != YENC_AT_LF && state != YENC_LF_DOT; /* never together */
    struct result want = decode(NULL, text, n, expected, state, lf_ends);
    uint8_t *src = in.end - n, *dst = out.end - n;
    memcpy(src, text, n);
    compare(k->name, "apart", want, decode(k, src, n, dst, state, lf_ends), text, n, dst, state);
    memcpy(dst, text, n);
    compare(k->name, "in place", want, decode(k, dst, n, dst, state, lf_ends), text, n, dst, state);
    size_t gap = rng_below(&rng, 200);
    src = both.end - n;
    memcpy(src, text, n);
    compare(k->name, "moved down", want, decode(k, src, n, src - gap, state, lf_ends), text, n,
            src - gap, state);
}

/* Bytes of which many mean something. */
static void mean_bytes(uint8_t *p, size_t n)
{
    static const char bytes[] = "\r\n.=y\r\n=.";
    unsigned share = (unsigned)rng_below(&rng, 9);
    for (size_t i = 0; i < n; i++) {
        p[i] = rng_below(&rng, 8) < share ? (uint8_t)bytes[rng_below(&rng, 9)]
                                          : (uint8_t)rng_next(&rng);
    }
}

/* Encoded lines of one length, and then a few blows. */
static size_t lines(uint8_t *p, size_t data, unsigned line)
{
    uint8_t *raw = mem_alloc(data + 1), *text = mem_alloc(yenc_encode_max(data, line));
    for (size_t i = 0; i < data; i++) {
        raw[i] = (uint8_t)rng_next(&rng);
    }
    size_t n = yenc_encode_scalar(raw, data, line, text);
    memcpy(p, text, n);
    mem_free(raw);
    mem_free(text);
    return n;
}

static size_t strike(uint8_t *p, size_t n)
{
    static const char *const blows[] = {"=",         "==",      "\r",     "\n",     "\r\n",
                                        ".",         "\r\n.",   "\n.",    "\r\n..", "\r\n=y",
                                        "\r\n.=y",   "\r\n.\r", "=\r\n",  "=\n",    "\n=y",
                                        "\r\n.\r\n", "\n.\n",   "\r\r\n", "=\r\n.", "=="};
    for (uint64_t hits = rng_below(&rng, 4); hits > 0 && n > 16; hits--) {
        const char *blow = blows[rng_below(&rng, sizeof(blows) / sizeof(blows[0]))];
        size_t len = strlen(blow), at = rng_below(&rng, n - len);
        memcpy(p + at, blow, len);
    }
    return n;
}

/* All lengths from 0 to four blocks and one, from every state, with mean bytes. */
static void test_all_lengths(void)
{
    uint8_t text[4 * 64 + 1];
    EACH_KERNEL(k)
    {
        for (size_t n = 0; n <= sizeof(text); n++) {
            for (int state = 0; state < STATES; state++) {
                for (int i = 0; i < 6; i++) {
                    mean_bytes(text, n);
                    check(k, text, n, (enum yenc_state)state, i & 1);
                }
            }
        }
    }
}

/* All alignments of input and output in a cache line; all 256 byte values, escaped and not. */
static void test_all_alignments(void)
{
    uint8_t text[64 * 5 + 3], *src = mem_aligned(64, 1024), *dst = mem_aligned(64, 1024);
    EACH_KERNEL(k)
    {
        for (size_t from = 0; from < 64; from++) {
            for (size_t to = 0; to < 64; to++) {
                for (size_t i = 0; i < sizeof(text); i++) {
                    text[i] = (uint8_t)(i + from * 4 + to);
                }
                strike(text, sizeof(text));
                struct result want =
                    decode(NULL, text, sizeof(text), expected, YENC_AT_LINE, false);
                memcpy(src + from, text, sizeof(text));
                compare(k->name, "aligned", want,
                        decode(k, src + from, sizeof(text), dst + to, YENC_AT_LINE, false), text,
                        sizeof(text), dst + to, YENC_AT_LINE);
            }
        }
        for (int c = 0; c < 256; c++) {
            memset(text, c, sizeof(text));
            check(k, text, sizeof(text), YENC_IN_LINE, false);
            for (size_t i = 0; i < sizeof(text); i += 2) {
                text[i] = '=';
            }
            check(k, text, sizeof(text), YENC_IN_LINE, false);
            check(k, text, sizeof(text), YENC_AFTER_EQ, false);
        }
    }
    mem_free(src);
    mem_free(dst);
}

/* Articles with lines of every usual length, with CRLF, LF or no line ends at all, whole and damaged. */
static void test_line_shapes(void)
{
    static uint8_t text[MOST];
    static const unsigned widths[] = {64,  65,  100, 126, 127, 128, 129,
                                      130, 131, 200, 256, 508, 997};
    EACH_KERNEL(k)
    {
        for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
            for (int i = 0; i < 60; i++) {
                size_t n = lines(text, rng_below(&rng, 4000), widths[w]), kept = 0;
                for (size_t j = 0; j < n; j++) {
                    if (!((i % 3 >= 1 && text[j] == '\r') || (i % 3 == 2 && text[j] == '\n'))) {
                        text[kept++] = text[j];
                    }
                }
                check(k, text, kept, (enum yenc_state)rng_below(&rng, STATES), false);
                n = strike(text, kept);
                check(k, text, n, (enum yenc_state)rng_below(&rng, STATES), i & 1);
            }
        }
    }
}

/* Wherever the input is split, and in pieces of one byte, the result is that of the whole. */
static void test_every_split(void)
{
    static uint8_t text[1200], made[1200];
    EACH_KERNEL(k)
    {
        for (int round = 0; round < 12; round++) {
            size_t n = lines(text, 300 + rng_below(&rng, 300), round % 2 ? 128 : 64);
            memcpy(text + n, "=yend size=1\r\n.\r\n", 17);
            n = strike(text, n + 17);
            struct result want = decode(NULL, text, n, expected, YENC_AT_LINE, false), got;
            for (size_t split = 0; split <= n; split++) {
                got = decode(k, text, split, made, YENC_AT_LINE, false);
                if (got.stop == YENC_MORE) {
                    struct result rest =
                        decode(k, text + split, n - split, made + got.made, got.state, false);
                    rest.used += got.used;
                    rest.made += got.made;
                    got = rest;
                }
                compare(k->name, "split", want, got, text, n, made, YENC_AT_LINE);
            }
            got = (struct result){YENC_MORE, YENC_AT_LINE, 0, 0};
            while (got.used < n && got.stop == YENC_MORE) {
                struct result one =
                    decode(k, text + got.used, 1, made + got.made, got.state, false);
                one.used += got.used;
                one.made += got.made;
                got = one;
            }
            compare(k->name, "byte by byte", want, got, text, n, made, YENC_AT_LINE);
        }
    }
}

/* Decodes through all control lines, as the data of one body, in two pieces. */
static struct result decode_body(const struct yenc_kernel *k, const uint8_t *src, size_t n,
                                 size_t split, uint8_t *dst)
{
    struct result all = {YENC_MORE, YENC_AT_LINE, 0, 0};
    while (all.used < n && all.stop != YENC_END) {
        size_t end = all.used < split ? split : n;
        struct result x =
            decode(k, src + all.used, end - all.used, dst + all.made, all.state, false);
        all = (struct result){x.stop, x.state, all.used + x.used, all.made + x.made};
    }
    return all;
}

/* The articles of tests/data/yenc, split everywhere (the few long ones at every 31st byte). */
static void test_corpus(void)
{
    static uint8_t text[MOST], made[MOST];
    FILE *index = fopen(TEST_DATA_DIR "/yenc/index.tsv", "r");
    TEST_ASSERT_NOT_NULL(index);
    char line[2048];
    while (fgets(line, sizeof(line), index) != NULL) {
        char path[512];
        snprintf(path, sizeof(path), "%s/yenc/%.*s", TEST_DATA_DIR, (int)strcspn(line, "\t"), line);
        FILE *f = fopen(path, "rb");
        TEST_ASSERT_NOT_NULL_MESSAGE(f, path);
        size_t n = fread(text, 1, MOST, f);
        fclose(f);
        struct result want = decode_body(NULL, text, n, 0, expected);
        EACH_KERNEL(k)
        {
            for (size_t split = 0; split <= n; split += n > 2000 ? 31 : 1) {
                compare(k->name, path, want, decode_body(k, text, n, split, made), text, n, made,
                        YENC_AT_LINE);
            }
        }
    }
    fclose(index);
}

/* Every encoder makes the same text, for all lengths and line lengths; no line begins with a dot; the text decodes to
 * the data. */
static void test_encoders_agree(void)
{
    static uint8_t data[3000], want[8000], got[8000];
    TEST_ASSERT_TRUE(yenc_encode_max(sizeof(data), YENC_LINE_MIN) <= sizeof(want));
    for (size_t n = 0; n < sizeof(data); n += n < 300 ? 1 : 97) {
        unsigned line = n % 3 == 0 ? 128 : 64 + (unsigned)rng_below(&rng, 934);
        mean_bytes(data, n);
        for (size_t i = 0; i < n; i++) {
            data[i] = (uint8_t)(data[i] - 42);
        }
        size_t len = yenc_encode_scalar(data, n, line, want);
        TEST_ASSERT_TRUE(len <= yenc_encode_max(n, line));
        for (size_t i = 0; i + 2 < len; i++) {
            TEST_ASSERT_FALSE(want[i] == '\n' && want[i + 1] == '.');
        }
        struct result back = decode(NULL, want, len, got, YENC_AT_LINE, false);
        TEST_ASSERT_EQUAL_UINT64(n, back.made);
        TEST_ASSERT_EQUAL_INT(0, memcmp(data, got, n));
        for (const struct yenc_kernel *k = yenc_kernels(); k->name != NULL; k++) {
            if (yenc_kernel_runs(k)) {
                memcpy(in.end - n, data, n);
                TEST_ASSERT_EQUAL_UINT64_MESSAGE(len, k->encode(in.end - n, n, line, got), k->name);
                TEST_ASSERT_EQUAL_INT_MESSAGE(0, memcmp(want, got, len), k->name);
            }
        }
    }
}

/* The specification itself, on what the format says by example. */
static void test_specification(void)
{
    static const struct {
        const char *text, *made;
        size_t used;
        enum yenc_stop stop;
        bool lf_ends;
    } rows[] = {
        {"k\x8b", "Aa", 2, YENC_MORE, false},
        {"=}=n", "\x13\x04", 4, YENC_MORE, false}, /* escaped '=' and '.' */
        {"..k\r\n.k",
         "\x04"
         "AA",
         7, YENC_MORE, false},                           /* stuffed; single, stripped */
        {"k\r\n=yend", "A", 5, YENC_CONTROL, false},     /* a control line */
        {"k\r\n.=yend", "A", 6, YENC_CONTROL, false},    /* behind a stripped dot */
        {"k=y", "A\x0f", 3, YENC_MORE, false},           /* not at the start of a line */
        {"k\r\n..=y", "A\x04\x0f", 7, YENC_MORE, false}, /* nor behind a stuffed dot */
        {"k\r\n.\r\nxyz", "A", 6, YENC_END, false},      /* the dot line, and what follows */
        {".\r\nxyz", "", 3, YENC_END, false},            /* an empty body */
        {"k=\r\n.\r\nx", "A\xa3", 7, YENC_END, false},   /* an escaped CR starts a CRLF */
        {"k\n=yend", "A", 4, YENC_CONTROL, false},       /* LF only */
        {"k\n.\nk", "AA", 5, YENC_MORE, false},          /* LF does not end the article */
        {"k\n.\r\nk", "AA", 6, YENC_MORE, false},        /* nor half of it */
        {"k\n.\nk", "A", 4, YENC_END, true},             /* except for a peer that has only LF */
        {"k\rk\nk", "AAA", 5, YENC_MORE, false},         /* lone CR and LF mean nothing */
        {"k==k",
         "A\xd3"
         "A",
         4, YENC_MORE, false}, /* an escaped '=' escapes nothing */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t made[64];
        struct result got = decode(NULL, (const uint8_t *)rows[i].text, strlen(rows[i].text), made,
                                   YENC_AT_LINE, rows[i].lf_ends);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].stop, got.stop, rows[i].text);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(rows[i].used, got.used, rows[i].text);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(strlen(rows[i].made), got.made, rows[i].text);
        TEST_ASSERT_EQUAL_INT(0, memcmp(rows[i].made, made, got.made));
    }
}

int main(void)
{
    for (const struct yenc_kernel *k = yenc_kernels(); k->name != NULL; k++) {
        printf("kernel %s: %s\n", k->name, yenc_kernel_runs(k) ? "runs" : "not on this CPU");
    }
    UNITY_BEGIN();
    RUN_TEST(test_specification);
    RUN_TEST(test_all_lengths);
    RUN_TEST(test_all_alignments);
    RUN_TEST(test_line_shapes);
    RUN_TEST(test_every_split);
    RUN_TEST(test_corpus);
    RUN_TEST(test_encoders_agree);
    return UNITY_END();
}
