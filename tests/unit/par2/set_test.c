/* Packets, hostile and honest; verification; the entrance for known CRCs. All on a filesystem in memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "base/crc32.h"
#include "base/mem.h"
#include "lib/fault.h"
#include "lib/fsim.h"
#include "lib/rng.h"
#include "make.h"
#include "par2/internal.h"

static struct make m;
static struct fsim *disk;
static const struct fsx *fs;
static struct par2_catalog *catalog;
static struct par2_set *set;
static struct par2_options options = {.threads = 1};
static struct err e;

void setUp(void)
{
    m = (struct make){.block_size = 64};
    disk = fsim_new(1);
    fs = fsim_fs(disk);
    catalog = par2_catalog_new(fs);
    set = NULL;
}

void tearDown(void)
{
    par2_set_free(set);
    par2_catalog_free(catalog);
    TEST_ASSERT_EQUAL(0, fsim_open_fds(disk));
    fsim_free(disk);
    make_free(&m);
}

/* Three files: 10, 5 and 1 blocks. */
static void three_files(void)
{
    make_add(&m, "big.bin", 600, 1);
    make_add(&m, "mid.bin", 320, 2);
    make_add(&m, "one.bin", 1, 3);
    make_set(&m);
    put_all(fs, FSIM_ROOT, &m);
}

static struct par2_found add_bytes(const char *name, struct bytes *b)
{
    struct par2_found found;
    put_file(fs, FSIM_ROOT, name, b->p, b->n);
    TEST_ASSERT_EQUAL(0, par2_catalog_add(catalog, FSIM_ROOT, name, &found, &e));
    bytes_free(b);
    return found;
}

static void with_volume(uint32_t first, uint32_t count)
{
    struct bytes b = {0};
    make_volume(&b, &m, first, count);
    add_bytes("x.vol.par2", &b);
    TEST_ASSERT_EQUAL_MESSAGE(
        0, par2_set_new(&set, catalog, 0, FSIM_ROOT, PAR2_NAMES_AS_WRITTEN, &e), e.msg);
}

static struct par2_status verify(void)
{
    TEST_ASSERT_EQUAL_MESSAGE(0, par2_verify(set, &options, &e), e.msg);
    return par2_status(set);
}

static size_t number_of(const char *name)
{
    for (size_t i = 0; i < par2_set_info(set).files; i++) {
        if (strcmp(par2_set_file(set, i).name, name) == 0) {
            return i;
        }
    }
    TEST_FAIL_MESSAGE(name);
    return 0;
}

static struct par2_file file_of(const char *name)
{
    return par2_set_file(set, number_of(name));
}

static const struct make_file *made(const char *name)
{
    for (size_t i = 0; i < m.count; i++) {
        if (strcmp(m.files[i].name, name) == 0) {
            return &m.files[i];
        }
    }
    TEST_FAIL_MESSAGE(name);
    return NULL;
}

/* A set says what it holds, and intact files are found complete without a look at recovery data. */
static void test_intact(void)
{
    three_files();
    with_volume(0, 3);
    struct par2_info info = par2_set_info(set);
    TEST_ASSERT_EQUAL(3, info.files);
    TEST_ASSERT_EQUAL(16, info.blocks);
    TEST_ASSERT_EQUAL_STRING("a test", info.creator);
    struct par2_status st = verify();
    TEST_ASSERT_TRUE(st.whole);
    TEST_ASSERT_EQUAL(3, st.recovery);
    TEST_ASSERT_EQUAL(UNPROVEN, set->packets->recovery[0].proof);
}

/* Packets count wherever they stand: behind junk, repeated, in reverse, spread over files. */
static void test_scattered_packets(void)
{
    three_files();
    struct bytes a = {0}, b = {0};
    make_recovery(&a, &m, 5); /* before its main packet */
    make_sums(&a, &m, 2);
    make_sums(&a, &m, 0);
    make_packet(&a, &m, "Nonsense", "12345678", 8);
    add_bytes("first", &a);
    b.p = malloc(1000);
    b.n = 1000;
    memset(b.p, 'P', 1000);
    make_description(&b, &m, 1);
    make_sums(&b, &m, 1);
    make_description(&b, &m, 2);
    make_description(&b, &m, 2);
    make_main(&b, &m);
    make_description(&b, &m, 0);
    struct par2_found found = add_bytes("second", &b);
    TEST_ASSERT_EQUAL(6, found.packets);
    TEST_ASSERT_EQUAL(0, par2_set_new(&set, catalog, 0, FSIM_ROOT, PAR2_NAMES_AS_WRITTEN, &e));
    TEST_ASSERT_TRUE(verify().whole);
    TEST_ASSERT_EQUAL(1, par2_status(set).recovery);
}

/* Two sets in one place stay apart. */
static void test_two_sets(void)
{
    struct make other = {.block_size = 32};
    three_files();
    make_add(&other, "other.bin", 100, 9);
    make_set(&other);
    struct bytes b = {0};
    make_volume(&b, &m, 0, 1);
    make_volume(&b, &other, 0, 2);
    add_bytes("both.par2", &b);
    TEST_ASSERT_EQUAL(2, par2_catalog_sets(catalog));
    TEST_ASSERT_EQUAL_MEMORY(other.set_id, par2_catalog_set_id(catalog, 1), 16);
    TEST_ASSERT_EQUAL(0, par2_set_new(&set, catalog, 1, FSIM_ROOT, PAR2_NAMES_AS_WRITTEN, &e));
    TEST_ASSERT_EQUAL(32, par2_set_info(set).block_size);
    TEST_ASSERT_EQUAL(2, par2_catalog_volume(catalog, 1, 0).blocks);
    TEST_ASSERT_EQUAL(1, verify().missing);
    make_free(&other);
}

/* What lacks is named: no main packet, no description. */
static void test_lacking_packets(void)
{
    three_files();
    struct bytes b = {0};
    make_description(&b, &m, 0);
    add_bytes("a", &b);
    TEST_ASSERT_EQUAL(ERR_NOT_FOUND,
                      par2_set_new(&set, catalog, 0, FSIM_ROOT, PAR2_NAMES_AS_WRITTEN, &e));
    make_main(&b, &m);
    add_bytes("b", &b);
    TEST_ASSERT_EQUAL(ERR_TRUNCATED,
                      par2_set_new(&set, catalog, 0, FSIM_ROOT, PAR2_NAMES_AS_WRITTEN, &e));
    TEST_ASSERT_EQUAL_STRING("the descriptions of 2 of 3 files are lacking", e.msg);
}

/* A file without block hashes is still verified, as a whole. */
static void test_without_block_hashes(void)
{
    three_files();
    struct bytes b = {0};
    make_main(&b, &m);
    for (size_t i = 0; i < 3; i++) {
        make_description(&b, &m, i);
    }
    add_bytes("a", &b);
    TEST_ASSERT_EQUAL(0, par2_set_new(&set, catalog, 0, FSIM_ROOT, PAR2_NAMES_AS_WRITTEN, &e));
    TEST_ASSERT_TRUE(verify().whole);
    put_file(fs, FSIM_ROOT, "one.bin", "x", 1);
    par2_forget(set);
    TEST_ASSERT_EQUAL(1, verify().damaged);
}

/* A length that is too small, too large, odd or false, and a wrong MD5, make no packet; the next one is found. */
static void test_bad_headers(void)
{
    static const uint64_t lengths[] = {
        0, 4, 60, 63, 65, 66, UINT64_MAX, UINT64_MAX - 3, 1ull << 63, 1 << 20, 128};
    three_files();
    struct bytes all = {0};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t at = all.n;
        make_packet(&all, &m, "Creator", "abcd", 4);
        for (unsigned k = 0; k < 8; k++) {
            all.p[at + 8 + k] = (uint8_t)(lengths[i] >> (8 * k));
        }
    }
    size_t at = all.n;
    make_main(&all, &m);
    all.p[at + 16] ^= 1;
    make_packet(&all, &m, "Creator", "good", 4);
    struct par2_found found = add_bytes("bad", &all);
    TEST_ASSERT_EQUAL(1, found.packets);
    TEST_ASSERT_EQUAL(12, found.damaged);
}

static void refuse(uint64_t block_size, uint64_t size, int code)
{
    struct make bad = {.block_size = block_size};
    make_add(&bad, "f", 1, 1);
    bad.files[0].size = 1;
    make_set(&bad);
    struct bytes b = {0};
    make_main(&b, &bad);
    uint8_t body[60] = {0};
    memcpy(body + 56, "f", 1);
    for (unsigned k = 0; k < 8; k++) {
        body[48 + k] = (uint8_t)(size >> (8 * k));
    }
    md5_of(body + 32, 25, body);
    memcpy(b.p + 64 + 12, body, 16);
    md5_of(b.p + 32, b.n - 32, b.p + 16);
    make_packet(&b, &bad, "FileDesc", body, 57);
    struct par2_catalog *c = par2_catalog_new(fs);
    put_file(fs, FSIM_ROOT, "hostile", b.p, b.n);
    TEST_ASSERT_EQUAL(0, par2_catalog_add(c, FSIM_ROOT, "hostile", NULL, &e));
    struct par2_set *s = NULL;
    TEST_ASSERT_EQUAL(code, par2_set_new(&s, c, 0, FSIM_ROOT, PAR2_NAMES_AS_WRITTEN, &e));
    par2_set_free(s);
    par2_catalog_free(c);
    bytes_free(&b);
    make_free(&bad);
}

/* Block sizes and block counts that make no sense are refused by name, and nothing is allocated for them. */
static void test_impossible_sizes(void)
{
    refuse(0, 1, ERR_INVALID);
    refuse(6, 1, ERR_INVALID);
    refuse(1ull << 33, 1, ERR_INVALID);
    refuse(1ull << 63, 1, ERR_INVALID);
    refuse(4, 4ull * 32768, 0);
    refuse(4, 4ull * 32768 + 1, ERR_LIMIT);
    refuse(4, UINT64_MAX, ERR_LIMIT);
    refuse(4, 1ull << 34, ERR_LIMIT); /* 2^32 blocks: a 32-bit count would be 0 */
    TEST_ASSERT_EQUAL_STRING("Too many source blocks in recovery set (at most 32768)", e.msg);
}

/* A file of false headers, each claiming all the rest, costs a few times its size and not its square. */
static void test_false_headers_are_bounded(void)
{
    enum { N = 20000 };
    three_files();
    struct bytes b = {.p = calloc(N, 64), .n = (size_t)N * 64};
    for (size_t i = 0; i < N; i++) {
        uint8_t *p = b.p + 64 * i;
        memcpy(p, "PAR2\0PKT", 8);
        uint64_t len = 64 * (N - i);
        for (unsigned k = 0; k < 8; k++) {
            p[8 + k] = (uint8_t)(len >> (8 * k));
        }
        memcpy(p + 32, m.set_id, 16);
    }
    struct par2_found found = add_bytes("bomb", &b);
    TEST_ASSERT_TRUE(found.given_up);
    TEST_ASSERT_LESS_THAN(200, found.damaged);
}

/* Names that leave the directory, or are no names, are told and refused before anything is written. */
static void test_unsafe_names(void)
{
    static const char *const names[] = {"../x", "/etc/x", "a/../x", "a//b",
                                        "./a",  "..",     "a\nb",   "c:\\..\\x"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct make bad = {.block_size = 64};
        make_add(&bad, names[i], 100, 1);
        make_set(&bad);
        struct bytes b = {0};
        make_volume(&b, &bad, 0, 2);
        struct par2_catalog *c = par2_catalog_new(fs);
        put_file(fs, FSIM_ROOT, "v", b.p, b.n);
        struct par2_set *s = NULL;
        TEST_ASSERT_EQUAL(0, par2_catalog_add(c, FSIM_ROOT, "v", NULL, &e));
        TEST_ASSERT_EQUAL(0, par2_set_new(&s, c, 0, FSIM_ROOT, PAR2_NAMES_AS_WRITTEN, &e));
        TEST_ASSERT_NOT_NULL_MESSAGE(par2_set_file(s, 0).error, names[i]);
        TEST_ASSERT_EQUAL(0, par2_verify(s, &options, &e));
        TEST_ASSERT_EQUAL(ERR_UNSAFE, par2_repair(s, &options, &e));
        TEST_ASSERT_EQUAL_STRING("v ", fsim_names(disk));
        par2_set_free(s);
        par2_catalog_free(c);
        bytes_free(&b);
        make_free(&bad);
    }
}

/* Every allocation may fail: an error, nothing leaked, nothing written. */
static void test_out_of_memory(void)
{
    three_files();
    struct bytes b = {0};
    make_volume(&b, &m, 0, 3);
    put_file(fs, FSIM_ROOT, "v.par2", b.p, b.n);
    bytes_free(&b);
    put_file(fs, FSIM_ROOT, "mid.bin", "damaged", 7);
    unsigned k = 1;
    for (;; k++) {
        fault_arm(k);
        struct par2_catalog *c = par2_catalog_new(fs);
        struct par2_set *s = NULL;
        int rv = c != NULL ? par2_catalog_add(c, FSIM_ROOT, "v.par2", NULL, &e) : -ENOMEM;
        rv = rv == 0 && par2_catalog_sets(c) == 0 ? -ENOMEM : rv;
        rv = rv == 0 ? par2_set_new(&s, c, 0, FSIM_ROOT, PAR2_NAMES_AS_WRITTEN, &e) : rv;
        rv = rv == 0 ? par2_verify(s, &options, &e) : rv;
        bool fired = fault_fired();
        fault_disarm();
        TEST_ASSERT_TRUE(rv <= 0);
        par2_set_free(s);
        par2_catalog_free(c);
        TEST_ASSERT_EQUAL(0, fsim_open_fds(disk));
        if (!fired) {
            TEST_ASSERT_EQUAL(0, rv);
            break;
        }
    }
    TEST_ASSERT_GREATER_THAN(20, k);
}

/* A CRC of the whole file, however it is cut, proves it without reading a byte. */
static void test_claim_whole_file(void)
{
    three_files();
    with_volume(0, 1);
    const struct make_file *f = made("big.bin");
    struct par2_range r[600];
    for (size_t piece = 1; piece <= 600; piece += 37) {
        size_t n = 0;
        par2_forget(set);
        for (size_t at = 0; at < 600; at += piece, n++) {
            size_t len = 600 - at < piece ? 600 - at : piece;
            r[n] = (struct par2_range){at, len, crc32_update(0, f->data + at, len)};
        }
        TEST_ASSERT_EQUAL(10, par2_claim(set, number_of("big.bin"), 600, r, n));
    }
    put_file(fs, FSIM_ROOT, "big.bin", "it is not read", 14);
    r[0] = (struct par2_range){0, 600, crc32_update(0, f->data, 600)};
    par2_forget(set);
    TEST_ASSERT_EQUAL(10, par2_claim(set, number_of("big.bin"), 600, r, 1));
    TEST_ASSERT_TRUE(verify().whole);
}

/* Blocks between ranges that meet block borders are proven; a wrong CRC, a hole, and what only touches them prove
 * nothing. */
static void test_claim_parts(void)
{
    three_files();
    with_volume(0, 1);
    const struct make_file *f = made("big.bin");
#define RANGE(a, b)                                               \
    {                                                             \
        (a), (b) - (a), crc32_update(0, f->data + (a), (b) - (a)) \
    }
    struct par2_range parts[] = {RANGE(0, 100), RANGE(100, 128), RANGE(128, 200), RANGE(256, 320),
                                 RANGE(330, 600)};
    size_t n = number_of("big.bin");
    TEST_ASSERT_EQUAL(3, par2_claim(set, n, 600, parts, 5)); /* 0, 1 and 4 */
    struct par2_range wrong[] = {RANGE(320, 384)};
    wrong[0].crc ^= 1;
    TEST_ASSERT_EQUAL(0, par2_claim(set, n, 600, wrong, 1));
    struct par2_range beyond[] = {{0, UINT64_MAX, 0}, {UINT64_MAX, 5, 0}};
    TEST_ASSERT_EQUAL(0, par2_claim(set, n, 600, beyond, 2));
    struct par2_range last[] = {RANGE(576, 600)};
    TEST_ASSERT_EQUAL(1, par2_claim(set, n, 600, last, 1));
    TEST_ASSERT_EQUAL(4, file_of("big.bin").found);
    TEST_ASSERT_TRUE(verify().whole);
}

/* The names of volumes tell what is in them. */
static void test_volume_names(void)
{
    uint32_t first, count;
    TEST_ASSERT_TRUE(par2_volume_name("a.vol012+34.PAR2", &first, &count));
    TEST_ASSERT_EQUAL(12, first);
    TEST_ASSERT_EQUAL(34, count);
    TEST_ASSERT_TRUE(par2_volume_name("a.vol1.vol07-15.par2", &first, &count));
    TEST_ASSERT_EQUAL(8, count);
    TEST_ASSERT_FALSE(par2_volume_name("a.par2", &first, &count));
    TEST_ASSERT_FALSE(par2_volume_name("a.vol1+.par2", &first, &count));
    TEST_ASSERT_FALSE(par2_volume_name("a.vol1+99999999999.par2", &first, &count));
    TEST_ASSERT_FALSE(par2_volume_name("a.vol9-3.par2", &first, &count));
    TEST_ASSERT_FALSE(par2_volume_name("a.vol1+2.par2.txt", &first, &count));
}

/* A recovery packet whose data is damaged does not count, and one hidden behind bytes that got lost is found. */
static void test_damaged_volume(void)
{
    three_files();
    struct bytes b = {0};
    make_index(&b, &m);
    size_t start = b.n, each = RECOVERY_HEADER + 64;
    for (uint32_t x = 0; x < 4; x++) {
        make_recovery(&b, &m, x);
    }
    memmove(b.p + start + 100, b.p + start + 110,
            b.n - start - 110); /* ten bytes of the first are lost */
    b.n -= 10;
    b.p[start + 2 * each - 10 + 80] ^= 1; /* and the third is wrong */
    add_bytes("v.par2", &b);
    put_file(fs, FSIM_ROOT, "one.bin", "", 0);
    TEST_ASSERT_EQUAL(0, par2_set_new(&set, catalog, 0, FSIM_ROOT, PAR2_NAMES_AS_WRITTEN, &e));
    struct par2_status st = verify();
    TEST_ASSERT_EQUAL(1, st.blocks_missing);
    TEST_ASSERT_EQUAL(2, st.recovery);
    TEST_ASSERT_EQUAL(0, st.recovery_lacking);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_intact);
    RUN_TEST(test_scattered_packets);
    RUN_TEST(test_two_sets);
    RUN_TEST(test_lacking_packets);
    RUN_TEST(test_without_block_hashes);
    RUN_TEST(test_bad_headers);
    RUN_TEST(test_impossible_sizes);
    RUN_TEST(test_false_headers_are_bounded);
    RUN_TEST(test_unsafe_names);
    RUN_TEST(test_out_of_memory);
    RUN_TEST(test_claim_whole_file);
    RUN_TEST(test_claim_parts);
    RUN_TEST(test_volume_names);
    RUN_TEST(test_damaged_volume);
    return UNITY_END();
}
