/* Every MD5 and GF(2^16) kernel that this CPU runs, against the scalar code and against things nobody here wrote. */
#ifndef TEST_WITHOUT_OPENSSL /* a cross build has none: there the scalar code, tested here, is the reference */
#    include <openssl/evp.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unity.h>

#include "base/cpu.h"
#include "lib/rng.h"
#include "par2/gf16.h"
#include "par2/md5.h"

static struct rng rng;

void setUp(void)
{
    rng_init(&rng, rng_seed(1));
    gf16_init();
}

void tearDown(void) {}

static void fill(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = (uint8_t)rng_next(&rng);
    }
}

/* Bytes that end where a page begins that may not be touched. */
static uint8_t *guarded(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (n + page - 1) / page * page;
    uint8_t *p =
        mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT_TRUE(p != MAP_FAILED && mprotect(p + size, page, PROT_NONE) == 0);
    return p + size - n;
}

static void reference_md5(const void *p, size_t n, uint8_t out[16])
{
#ifdef TEST_WITHOUT_OPENSSL
    md5_of(p, n, out);
#else
    unsigned len = 0;
    TEST_ASSERT_EQUAL(1, EVP_Digest(p, n, out, &len, EVP_md5(), NULL));
#endif
}

/* The MD5 of one stream is that of OpenSSL for every length, however it is cut. */
static void test_md5_one_stream(void)
{
    uint8_t data[300], ours[16], theirs[16];
    fill(data, sizeof(data));
    for (size_t n = 0; n <= sizeof(data); n++) {
        reference_md5(data, n, theirs);
        size_t cut = n > 0 ? rng_below(&rng, n + 1) : 0;
        struct md5 m;
        md5_init(&m);
        md5_update(&m, data, cut);
        md5_update(&m, data + cut, n - cut);
        md5_final(&m, ours);
        TEST_ASSERT_EQUAL_MEMORY(theirs, ours, 16);
    }
}

static void check_lanes(const struct md5_kernel *k, unsigned n, size_t bytes)
{
    const uint8_t *p[MD5_LANES_MAX], *rest[MD5_LANES_MAX];
    uint8_t *data[MD5_LANES_MAX], ours[MD5_LANES_MAX][16], theirs[16];
    for (unsigned l = 0; l < n; l++) {
        data[l] = guarded(bytes);
        fill(data[l], bytes);
        p[l] = data[l];
        rest[l] = p[l] + bytes / MD5_BLOCK * MD5_BLOCK;
    }
    struct md5_lanes m;
    md5_lanes_init(&m);
    size_t blocks = bytes / MD5_BLOCK, first = blocks / 2;
    k->update(&m, p, n, first); /* in two goes: the state carries over */
    for (unsigned l = 0; l < n; l++) {
        p[l] += first * MD5_BLOCK;
    }
    k->update(&m, p, n, blocks - first);
    md5_lanes_final(&m, k, rest, n, bytes, ours);
    for (unsigned l = 0; l < n; l++) {
        reference_md5(data[l], bytes, theirs);
        TEST_ASSERT_EQUAL_MEMORY_MESSAGE(theirs, ours[l], 16, k->name);
        size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (bytes + page - 1) / page * page;
        munmap(data[l] + bytes - size, size + page);
    }
}

/* Every kernel hashes any number of streams, of every length around its block, as OpenSSL does. */
static void test_md5_lanes(void)
{
    for (const struct md5_kernel *k = md5_kernels; k->name != NULL; k++) {
        if ((k->needs & ~cpu_features()) != 0) {
            printf("%s: not run, this CPU lacks it\n", k->name);
            continue;
        }
        for (unsigned n = 1; n <= k->lanes; n++) {
            check_lanes(k, n, rng_below(&rng, 700));
        }
        for (size_t bytes = 0; bytes <= 260; bytes++) {
            check_lanes(k, bytes % 2 ? k->lanes : 1 + (unsigned)rng_below(&rng, k->lanes), bytes);
        }
    }
}

/* Single values obey the rules of a field with the polynomial of PAR2. */
static void test_gf16_values(void)
{
    TEST_ASSERT_EQUAL_HEX16(0x100b, gf16_mul(0x8000, 2)); /* x^16 = x^12 + x^3 + x + 1 */
    for (int i = 0; i < 20000; i++) {
        uint16_t a = (uint16_t)rng_next(&rng), b = (uint16_t)rng_next(&rng),
                 c = (uint16_t)rng_next(&rng);
        uint32_t slow = 0;
        for (unsigned bit = 0; bit < 16; bit++) {
            slow ^= (b >> bit & 1) ? (uint32_t)a << bit : 0;
        }
        for (unsigned bit = 31; bit >= 16; bit--) {
            slow ^= (slow >> bit & 1) ? (uint32_t)GF16_POLY << (bit - 16) : 0;
        }
        TEST_ASSERT_EQUAL_HEX16(slow, gf16_mul(a, b));
        TEST_ASSERT_EQUAL_HEX16(gf16_mul(a, b ^ c), gf16_mul(a, b) ^ gf16_mul(a, c));
        if (a != 0) {
            TEST_ASSERT_EQUAL_HEX16(1, gf16_mul(a, gf16_inv(a)));
            TEST_ASSERT_EQUAL_HEX16(gf16_mul(a, gf16_mul(a, a)), gf16_pow(a, 3));
        }
    }
}

enum { OUTS = 9, INS = 13, BYTES = 3 * GF16_UNIT_MAX };

/* sum[o] = coef[o][i] * data[i], through a kernel; two batches, so that sums are added to. */
static void product(const struct gf16_kernel *k, uint8_t (*sum)[BYTES], uint8_t (*data)[BYTES],
                    const struct gf16_coef *coef, size_t outs, size_t ins)
{
    size_t units = BYTES / k->unit;
    uint8_t *acc = aligned_alloc(64, outs * BYTES),
            *in = aligned_alloc(64, ins * units * k->in_bytes);
    TEST_ASSERT_TRUE(acc != NULL && in != NULL);
    memset(acc, 0, outs * BYTES);
    size_t first = ins / 2;
    for (size_t from = 0, n = first; from < ins; from += n, n = ins - first) {
        if (n > 0) {
            struct gf16_coef *part = malloc(outs * n * sizeof(*part));
            TEST_ASSERT_NOT_NULL(part);
            for (size_t o = 0; o < outs; o++) {
                memcpy(part + o * n, coef + o * ins + from, n * sizeof(*part));
            }
            for (size_t i = 0; i < n; i++) {
                k->pack(in + i * k->in_bytes, n * k->in_bytes, data[from + i], units);
            }
            k->muladd(acc, in, part, outs, n, units);
            free(part);
        }
        if (from + n >= ins) {
            break;
        }
    }
    for (size_t o = 0; o < outs; o++) {
        k->unpack(sum[o], acc + o * k->unit, outs * k->unit, units);
    }
    free(acc);
    free(in);
}

/* Every kernel's sums of products are those of the scalar one, for all shapes, zeros and ones among the factors. */
static void test_gf16_regions(void)
{
    static uint8_t data[INS][BYTES], want[OUTS][BYTES], got[OUTS][BYTES];
    static struct gf16_coef coef[OUTS * INS];
    for (int round = 0; round < 60; round++) {
        size_t outs = 1 + rng_below(&rng, OUTS), ins = 1 + rng_below(&rng, INS);
        fill(&data[0][0], sizeof(data));
        for (size_t i = 0; i < outs * ins; i++) {
            uint64_t kind = rng_below(&rng, 8);
            coef[i] = gf16_coef(kind < 2 ? (uint16_t)kind : (uint16_t)rng_next(&rng));
        }
        product(&gf16_kernel_scalar, want, data, coef, outs, ins);
        for (size_t n = 0; gf16_kernels[n] != NULL; n++) {
            const struct gf16_kernel *k = gf16_kernels[n];
            if ((k->needs & ~cpu_features()) == 0) {
                product(k, got, data, coef, outs, ins);
                TEST_ASSERT_EQUAL_MEMORY_MESSAGE(want, got, outs * BYTES, k->name);
            }
        }
    }
}

/* What a kernel packs and unpacks is what it was given, whatever the alignment of the data. */
static void test_gf16_pack(void)
{
    uint8_t from[BYTES + 64], to[BYTES + 64];
    fill(from, sizeof(from));
    for (size_t n = 0; gf16_kernels[n] != NULL; n++) {
        const struct gf16_kernel *k = gf16_kernels[n];
        for (size_t at = 0; at < 64 && (k->needs & ~cpu_features()) == 0; at++) {
            static uint8_t sum[1][BYTES], data[1][BYTES];
            memcpy(data[0], from + at, BYTES);
            struct gf16_coef one = gf16_coef(1);
            product(k, sum, data, &one, 1, 1);
            memcpy(to + at, sum[0], BYTES);
            TEST_ASSERT_EQUAL_MEMORY_MESSAGE(from + at, to + at, BYTES, k->name);
        }
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_md5_one_stream);
    RUN_TEST(test_md5_lanes);
    RUN_TEST(test_gf16_values);
    RUN_TEST(test_gf16_regions);
    RUN_TEST(test_gf16_pack);
    return UNITY_END();
}
