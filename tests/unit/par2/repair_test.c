/* Repair: random damage to random sets, every failing call, every moment of a power cut, and the equations alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "base/cpu.h"
#include "lib/dir.h"
#include "lib/fsim.h"
#include "lib/rng.h"
#include "make.h"
#include "par2/gf16.h"
#include "par2/internal.h"

static struct rng rng;
static struct err e;

void setUp(void)
{
    rng_init(&rng, rng_seed(7));
    gf16_init();
}

void tearDown(void) {}

/* ---- one world: a set, its files somewhere, its volumes ---- */

struct world {
    struct make m;
    const struct fsx *fs;
    int dirfd;
    struct par2_catalog *catalog;
    struct par2_set *set;
    struct par2_options options;
};

static void world_open(struct world *w)
{
    w->catalog = par2_catalog_new(w->fs);
    TEST_ASSERT_NOT_NULL(w->catalog);
    TEST_ASSERT_EQUAL_MESSAGE(0, par2_catalog_add(w->catalog, w->dirfd, "v.par2", NULL, &e), e.msg);
    TEST_ASSERT_EQUAL_MESSAGE(
        0, par2_set_new(&w->set, w->catalog, 0, w->dirfd, PAR2_NAMES_AS_WRITTEN, &e), e.msg);
}

static void world_close(struct world *w)
{
    par2_set_free(w->set);
    par2_catalog_free(w->catalog);
    w->set = NULL;
    w->catalog = NULL;
}

static bool is_whole(const struct world *w)
{
    bool whole = true;
    for (size_t i = 0; i < w->m.count; i++) {
        const struct make_file *f = &w->m.files[i];
        struct bytes b = get_file(w->fs, w->dirfd, f->name);
        whole = whole && b.p != NULL && b.n == f->size && memcmp(b.p, f->data, f->size) == 0;
        bytes_free(&b);
    }
    return whole;
}

static int repair_world(struct world *w)
{
    int rv = par2_verify(w->set, &w->options, &e);
    return rv == 0 ? par2_repair(w->set, &w->options, &e) : rv;
}

/* ---- random damage ---- */

static void damage_bytes(struct bytes *b)
{
    switch (rng_below(&rng, 5)) {
    case 0: /* bit rot */
        for (uint64_t n = 1 + rng_below(&rng, 4); n > 0 && b->n > 0; n--) {
            b->p[rng_below(&rng, b->n)] ^= (uint8_t)(1 + rng_below(&rng, 255));
        }
        break;
    case 1: /* truncation */
        b->n = rng_below(&rng, b->n + 1);
        break;
    case 2: { /* insertion */
        size_t at = rng_below(&rng, b->n + 1), n = 1 + rng_below(&rng, 90);
        b->p = realloc(b->p, b->n + n);
        memmove(b->p + at + n, b->p + at, b->n - at);
        memset(b->p + at, 'i', n);
        b->n += n;
        break;
    }
    case 3: { /* deletion */
        size_t at = rng_below(&rng, b->n + 1), n = rng_below(&rng, b->n - at + 1);
        n = n > 50 ? n % 50 : n;
        memmove(b->p + at, b->p + at + n, b->n - at - n);
        b->n -= n;
        break;
    }
    default: /* something in front */
        b->p = realloc(b->p, b->n + 7);
        memmove(b->p + 7, b->p, b->n);
        memcpy(b->p, "in fro\n", 7);
        b->n += 7;
    }
}

static void damage_file(struct world *w, size_t n)
{
    const char *name = w->m.files[n].name;
    struct bytes b = get_file(w->fs, w->dirfd, name);
    if (b.p == NULL) {
        return;
    }
    uint64_t kind = rng_below(&rng, 10);
    if (kind < 6) {
        damage_bytes(&b);
        put_file(w->fs, w->dirfd, name, b.p, b.n);
    } else if (kind < 8) {
        w->fs->ops->unlinkat(w->fs->arg, w->dirfd, name, 0);
    } else if (kind == 8) {
        TEST_ASSERT_EQUAL(0,
                          w->fs->ops->renameat(w->fs->arg, w->dirfd, name, w->dirfd, "other name"));
        TEST_ASSERT_EQUAL(0, par2_add_extra(w->set, "other name", &e));
    } else {
        size_t other = rng_below(&rng, w->m.count);
        struct bytes c = get_file(w->fs, w->dirfd, w->m.files[other].name);
        if (c.p != NULL) {
            put_file(w->fs, w->dirfd, name, c.p, c.n);
            put_file(w->fs, w->dirfd, w->m.files[other].name, b.p, b.n);
        }
        bytes_free(&c);
    }
    bytes_free(&b);
}

/* Files, and volumes whose exponents are in a row or not. */
static void make_world(struct world *w, uint32_t recovery)
{
    static const char *const names[] = {"a.bin", "b.bin", "c.bin", "d.bin", "e.bin"};
    w->m = (struct make){.block_size = 4 * (1 + rng_below(&rng, 60))};
    size_t files = 1 + rng_below(&rng, 5);
    for (size_t i = 0; i < files; i++) {
        size_t size =
            rng_below(&rng, 8) == 0 ? rng_below(&rng, 2) : rng_below(&rng, 12 * w->m.block_size);
        make_add(&w->m, names[i], size, rng_next(&rng));
    }
    make_set(&w->m);
    struct bytes v = {0};
    make_index(&v, &w->m);
    uint32_t exponent = (uint32_t)rng_below(&rng, 3) * 1000;
    bool gaps = rng_below(&rng, 2);
    for (uint32_t i = 0; i < recovery; i++) {
        make_recovery(&v, &w->m, exponent);
        exponent += 1 + (gaps ? (uint32_t)rng_below(&rng, 3) : 0);
    }
    put_all(w->fs, w->dirfd, &w->m);
    put_file(w->fs, w->dirfd, "v.par2", v.p, v.n);
    bytes_free(&v);
}

/* Whatever happens to the files, the verdict is exact: with enough recovery blocks they become what they were, with one
 * too few nothing changes. */
static void test_random_damage(void)
{
    unsigned repaired = 0, refused = 0;
    for (int round = 0; round < 400; round++) {
        struct fsim *disk = fsim_new(rng_next(&rng));
        struct world w = {.fs = fsim_fs(disk), .dirfd = FSIM_ROOT, .options = {.threads = 1}};
        make_world(&w, (uint32_t)rng_below(&rng, 30));
        world_open(&w);
        for (uint64_t n = rng_below(&rng, 4); n > 0; n--) {
            damage_file(&w, rng_below(&rng, w.m.count));
        }
        w.options.memory_bytes =
            1 + rng_below(&rng, 2); /* as little as it can do with: many rounds */
        TEST_ASSERT_EQUAL_MESSAGE(0, par2_verify(w.set, &w.options, &e), e.msg);
        struct par2_status st = par2_status(w.set);
        TEST_ASSERT_EQUAL(st.whole, is_whole(&w));
        int rv = par2_repair(w.set, &w.options, &e);
        if (st.recovery_lacking > 0) {
            TEST_ASSERT_EQUAL(ERR_FULL, rv);
            refused++;
        } else {
            TEST_ASSERT_EQUAL_MESSAGE(0, rv, e.msg);
            TEST_ASSERT_TRUE(is_whole(&w));
            TEST_ASSERT_TRUE(par2_status(w.set).whole);
            TEST_ASSERT_NULL(strstr(fsim_names(disk), ".tmp"));
            repaired += !st.whole;
            par2_forget(w.set);
            TEST_ASSERT_EQUAL(0, par2_verify(w.set, &w.options, &e));
            TEST_ASSERT_TRUE(par2_status(w.set).whole);
        }
        world_close(&w);
        TEST_ASSERT_EQUAL(0, fsim_open_fds(disk));
        fsim_free(disk);
        make_free(&w.m);
    }
    TEST_ASSERT_GREATER_THAN(100, repaired);
    TEST_ASSERT_GREATER_THAN(10, refused);
}

/* ---- failures ---- */

/* Damage of all kinds: one file rotten, one missing, two swapped, one of no bytes gone. */
static void make_sick_world(struct world *w, const struct fsx *fs, int dirfd)
{
    *w = (struct world){
        .fs = fs, .dirfd = dirfd, .options = {.threads = 1}, .m = {.block_size = 64}};
    make_add(&w->m, "rotten", 400, 1);
    make_add(&w->m, "missing", 100, 2);
    make_add(&w->m, "swap1", 200, 3);
    make_add(&w->m, "swap2", 210, 4);
    make_add(&w->m, "empty", 0, 5);
    make_set(&w->m);
    struct bytes v = {0};
    make_volume(&v, &w->m, 0, 4);
    put_all(fs, dirfd, &w->m);
    put_file(fs, dirfd, "v.par2", v.p, v.n);
    bytes_free(&v);
    struct bytes a = get_file(fs, dirfd, "swap1"), b = get_file(fs, dirfd, "swap2"),
                 r = get_file(fs, dirfd, "rotten");
    put_file(fs, dirfd, "swap1", b.p, b.n);
    put_file(fs, dirfd, "swap2", a.p, a.n);
    r.p[70] ^= 1;
    put_file(fs, dirfd, "rotten", r.p, r.n);
    fs->ops->unlinkat(fs->arg, dirfd, "missing", 0);
    fs->ops->unlinkat(fs->arg, dirfd, "empty", 0);
    fs->ops->fsync(fs->arg, dirfd);
    bytes_free(&a);
    bytes_free(&b);
    bytes_free(&r);
}

/* The power goes before any call of a repair: afterwards every byte that was needed is still there, and the next run
 * makes all files whole. */
static void test_power_cut_at_every_call(void)
{
    unsigned cuts = 0;
    for (unsigned k = 1;; k++) {
        struct fsim *disk = fsim_new(k);
        struct world w;
        make_sick_world(&w, fsim_fs(disk), FSIM_ROOT);
        world_open(&w);
        fsim_cut_at(disk, k);
        repair_world(&w);
        bool cut = fsim_fired(disk);
        world_close(&w);
        fsim_reboot(disk);
        world_open(&w);
        TEST_ASSERT_EQUAL_MESSAGE(0, repair_world(&w), e.msg);
        TEST_ASSERT_TRUE(is_whole(&w));
        world_close(&w);
        fsim_free(disk);
        make_free(&w.m);
        cuts += cut;
        if (!cut) {
            break;
        }
    }
    printf("%u cuts\n", cuts);
    TEST_ASSERT_GREATER_THAN(100, cuts);
}

/* Any call fails: the repair fails or copes, no unfinished file stays behind, and the next run succeeds. */
static void fail_every_call(int code, unsigned times)
{
    for (unsigned k = 1;; k++) {
        struct fsim *disk = fsim_new(k);
        struct world w;
        make_sick_world(&w, fsim_fs(disk), FSIM_ROOT);
        world_open(&w);
        fsim_fail_at(disk, k, times, code);
        int rv = repair_world(&w);
        bool fired = fsim_fired(disk);
        world_close(&w);
        fsim_fail_at(disk, 0, 0, 0);
        TEST_ASSERT_TRUE(rv != 0 || is_whole(&w));
        TEST_ASSERT_EQUAL(0, fsim_open_fds(disk));
        world_open(&w);
        TEST_ASSERT_EQUAL_MESSAGE(0, repair_world(&w), e.msg);
        TEST_ASSERT_TRUE(is_whole(&w));
        world_close(&w);
        fsim_free(disk);
        make_free(&w.m);
        if (!fired) {
            break;
        }
    }
}

static void test_no_space_at_every_call(void)
{
    fail_every_call(-ENOSPC, 1);
}

static void test_io_error_at_every_call(void)
{
    fail_every_call(-EIO, 1);
}

static void test_short_transfer_at_every_call(void)
{
    fail_every_call(FSIM_SHORT, 3);
}

/* Stopped from the progress callback at any time: files are as before, unfinished ones gone. */
static unsigned stop_after;
static bool stop_now(void *arg, const struct par2_progress *p)
{
    (void)arg;
    TEST_ASSERT_TRUE(p->done <= p->total);
    return stop_after > 0 && --stop_after == 0;
}

static void test_stopped(void)
{
    bool stopped = true;
    for (unsigned k = 1; stopped; k++) {
        struct fsim *disk = fsim_new(k);
        struct world w;
        make_sick_world(&w, fsim_fs(disk), FSIM_ROOT);
        world_open(&w);
        w.options.progress = stop_now;
        stop_after = k;
        int rv = repair_world(&w);
        stopped = rv == ERR_STOPPED;
        TEST_ASSERT_TRUE(rv == 0 || stopped);
        TEST_ASSERT_NULL(strstr(fsim_names(disk), ".tmp"));
        world_close(&w);
        fsim_free(disk);
        make_free(&w.m);
    }
}

/* ---- threads, on a real directory ---- */

static void test_threads(void)
{
    struct dir d;
    dir_make(&d);
    for (unsigned threads = 1; threads <= 4; threads += 3) {
        struct world w = {.fs = &fsx_kernel,
                          .dirfd = d.fd,
                          .options = {.threads = threads},
                          .m = {.block_size = 4096}};
        make_add(&w.m, "big", 300000, 1);
        make_add(&w.m, "small", 5000, 2);
        make_set(&w.m);
        struct bytes v = {0};
        make_volume(&v, &w.m, 0, 12);
        put_all(w.fs, d.fd, &w.m);
        put_file(w.fs, d.fd, "v.par2", v.p, v.n);
        bytes_free(&v);
        world_open(&w);
        struct bytes b = get_file(w.fs, d.fd, "big");
        memmove(b.p + 100000, b.p + 100010, b.n - 100010);
        memset(b.p + 200000, 0, 9000);
        put_file(w.fs, d.fd, "big", b.p, b.n - 10);
        bytes_free(&b);
        put_file(w.fs, d.fd, "small", "", 0);
        TEST_ASSERT_EQUAL_MESSAGE(0, repair_world(&w), e.msg);
        TEST_ASSERT_TRUE(is_whole(&w));
        TEST_ASSERT_EQUAL_STRING(threads == 1 ? "small.1" : "small.2", par2_backup(w.set, 1));
        world_close(&w);
        make_free(&w.m);
    }
    dir_remove(&d);
}

/* ---- the equations ---- */

/* Unknowns and knowns of one value each: do the factors give the unknowns back? */
static int solve_values(size_t blocks, size_t missing, const uint16_t *exponents, size_t count)
{
    enum { MAX = 300 };
    static uint16_t logs[MAX], values[MAX];
    static struct gf16_coef coef[MAX * GF16_BATCH_MAX];
    uint16_t log = 0, state[MAX], got[MAX] = {0};
    uint32_t chosen[MAX];
    TEST_ASSERT_TRUE(blocks <= MAX && count <= MAX);
    for (size_t i = 0; i < blocks; i++) {
        do {
            log++;
        } while (log % 3 == 0 || log % 5 == 0 || log % 17 == 0 || log % 257 == 0);
        logs[i] = log;
        values[i] = (uint16_t)rng_next(&rng);
    }
    for (size_t i = 0; i < missing; i++) { /* any of them are missing: shuffle those to the front */
        size_t k = i + rng_below(&rng, blocks - i);
        uint16_t t = logs[i], u = values[i];
        logs[i] = logs[k], values[i] = values[k];
        logs[k] = t, values[k] = u;
    }
    struct solver *v = NULL;
    int rv = par2_solver_new(&v, logs, missing, exponents, count, chosen);
    if (rv < 0) {
        return rv;
    }
    for (size_t at = missing, n; at < blocks; at += n) {
        n = blocks - at < 48 ? blocks - at : 48;
        TEST_ASSERT_EQUAL(0, par2_solver_present(v, logs + at, n, coef));
        for (size_t o = 0; o < missing; o++) {
            for (size_t i = 0; i < n; i++) {
                got[o] ^= gf16_mul((uint16_t)coef[o * n + i].value, values[at + i]);
            }
        }
    }
    par2_solver_start(v, state);
    for (size_t left = missing, n; left > 0; left -= n) {
        n = left < 7 ? left : 7;
        par2_solver_recovery(v, state, left - 1, n, coef);
        for (size_t i = 0; i < n; i++) {
            uint16_t sum = 0;
            for (size_t b = 0; b < blocks; b++) {
                sum ^= gf16_mul(gf16_pow(gf16_exp[logs[b]], exponents[chosen[left - 1 - i]]),
                                values[b]);
            }
            for (size_t o = 0; o < missing; o++) {
                got[o] ^= gf16_mul((uint16_t)coef[o * n + i].value, sum);
            }
        }
    }
    TEST_ASSERT_EQUAL_HEX16_ARRAY(values, got, missing);
    par2_solver_free(v);
    return 0;
}

/* Exponents in a row and any others give the missing values back, up to all blocks missing. */
static void test_solver(void)
{
    uint16_t exponents[300];
    for (int round = 0; round < 60; round++) {
        size_t blocks = 1 + rng_below(&rng, 150), missing = 1 + rng_below(&rng, blocks);
        uint16_t at = (uint16_t)rng_below(&rng, 60000);
        for (size_t i = 0; i < missing; i++) {
            exponents[i] = (uint16_t)(at + i);
        }
        TEST_ASSERT_EQUAL(0, solve_values(blocks, missing, exponents, missing));
        for (size_t i = 0; i < missing; i++) {
            exponents[i] = at;
            at = (uint16_t)(at + 1 + rng_below(&rng, 5));
        }
        TEST_ASSERT_EQUAL(0, solve_values(blocks, missing, exponents, missing));
    }
}

/* Exponents that are equal modulo 65535 say the same; a spare one takes the place, and without one there is no way. */
static void test_solver_dependent_equations(void)
{
    /* x^0 and x^65535 are 1 for every x: such a pair is dependent. (65535 is never in a set; the solver does not care.) */
    uint16_t pair[] = {0, 4, 65535}, more[] = {0, 4, 65535, 9};
    TEST_ASSERT_EQUAL(ERR_FULL, solve_values(20, 3, pair, 3));
    uint16_t spare[] = {0, 65535, 4, 9};
    TEST_ASSERT_EQUAL(0, solve_values(20, 3, spare, 4));
    TEST_ASSERT_EQUAL(0, solve_values(20, 3, more, 4));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_solver);
    RUN_TEST(test_solver_dependent_equations);
    RUN_TEST(test_random_damage);
    RUN_TEST(test_power_cut_at_every_call);
    RUN_TEST(test_no_space_at_every_call);
    RUN_TEST(test_io_error_at_every_call);
    RUN_TEST(test_short_transfer_at_every_call);
    RUN_TEST(test_stopped);
    RUN_TEST(test_threads);
    return UNITY_END();
}
