/* fsx over the simulated disk: every call failing in turn, and every power cut. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "base/check.h"
#include "base/fsx.h"
#include "base/mem.h"
#include "lib/fault.h"
#include "lib/fsim.h"
#include "lib/rng.h"

static uint64_t seed;
static unsigned rounds; /* of random cuts: FSX_CUTS overrides */

void setUp(void) {}
void tearDown(void) {}

enum { CONTENT_MAX = 8192 };

/* Generation g of the file: its number, then g-dependent bytes of a g-dependent length, a sum at the end. */
static size_t content(unsigned g, char *out)
{
    size_t len = 64 + (g * 1237) % (CONTENT_MAX - 64);
    struct rng r;
    rng_init(&r, g);
    memcpy(out, &g, sizeof(g));
    for (size_t i = sizeof(g); i < len; i++) {
        out[i] = (char)rng_next(&r);
    }
    return len;
}

/* Which complete generation `name` holds; 0: there is no such file; -1: something else. */
static int generation(const struct fsx *fs, const char *name)
{
    char *p, want[CONTENT_MAX];
    size_t len;
    int rv = fsx_read_all(fs, FSIM_ROOT, name, CONTENT_MAX, &p, &len, NULL);
    if (rv != 0) {
        return rv == -ENOENT ? 0 : -1;
    }
    unsigned g = 0;
    memcpy(&g, p, len < sizeof(g) ? len : sizeof(g));
    bool whole = g != 0 && g < 10000 && content(g, want) == len && memcmp(p, want, len) == 0;
    mem_free(p);
    return whole ? (int)g : -1;
}

static int save(const struct fsx *fs, unsigned g, const char *prev)
{
    char bytes[CONTENT_MAX];
    size_t len = content(g, bytes);
    return fsx_replace(fs, FSIM_ROOT, "q", prev, bytes, len, NULL);
}

enum variant { PLAIN, NO_LINKS, UNLINK_FIRST };

static const struct fsx_ops *sim_ops;
static struct fsx_ops variant_ops;

static int no_link(void *arg, int dirfd, const char *from, const char *to)
{
    (void)arg, (void)dirfd, (void)from, (void)to;
    return -EPERM;
}

static int unlink_first(void *arg, int from_dir, const char *from, int to_dir, const char *to)
{
    (void)sim_ops->unlinkat(arg, to_dir, to, 0);
    return sim_ops->renameat(arg, from_dir, from, to_dir, to);
}

/* The same disk, but hard links are unknown to it, or a rename deletes its target first. */
static struct fsx variant_of(const struct fsx *fs, enum variant v)
{
    sim_ops = fs->ops;
    variant_ops = *fs->ops;
    if (v == NO_LINKS) {
        variant_ops.linkat = no_link;
    } else if (v == UNLINK_FIRST) {
        variant_ops.renameat = unlink_first;
    }
    return (struct fsx){&variant_ops, fs->arg};
}

/* Whatever single call fails, in whatever way, the file is whole, old or new; what is reported is true; no
 * descriptor and no unfinished file is left; and the next save works and survives a power cut. */
static void one_fault(int code, const char *prev)
{
    for (unsigned k = 1;; k++) {
        struct fsim *d = fsim_new(seed + k);
        const struct fsx *fs = fsim_fs(d);
        TEST_ASSERT_EQUAL_INT(0, save(fs, 1, prev));
        TEST_ASSERT_EQUAL_INT(0, save(fs, 2, prev));
        fsim_fail_at(d, k, 1, code);
        int rv = save(fs, 3, prev);
        bool fired = fsim_fired(d);
        fsim_fail_at(d, 0, 0, 0);

        int g = generation(fs, "q");
        TEST_ASSERT_TRUE(g == 2 || g == 3);
        TEST_ASSERT_TRUE(rv != 0 || g == 3);
        TEST_ASSERT_TRUE(rv == 0 || rv == code);
        TEST_ASSERT_TRUE(code != FSIM_SHORT || rv == 0);
        TEST_ASSERT_EQUAL_UINT(0, fsim_open_fds(d));
        TEST_ASSERT_EQUAL_STRING(prev != NULL ? "q q.prev " : "q ", fsim_names(d));
        TEST_ASSERT_EQUAL_INT(0, save(fs, 4, prev));
        fsim_reboot(d);
        TEST_ASSERT_EQUAL_INT(4, generation(fs, "q"));
        if (prev != NULL) {
            TEST_ASSERT_EQUAL_INT(g, generation(fs, prev));
        }
        fsim_free(d);
        if (!fired) {
            TEST_ASSERT_GREATER_THAN_UINT(5, k); /* the fault walked over the whole save */
            return;
        }
    }
}

static const int codes[] = {-EIO, -ENOSPC, -EROFS, -EACCES, -EMFILE, -EDQUOT, -EINTR, FSIM_SHORT};

static void test_any_single_call_may_fail(void)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        one_fault(codes[i], NULL);
        one_fault(codes[i], "q.prev");
    }
}

/* A disk that fails and stays so (full, read-only) leaves at most unfinished files, which the cleaning at the
 * next start removes; the old file is whole all the time and saving works again when the trouble is over. */
static void test_a_lasting_failure_leaves_the_old_file(void)
{
    for (unsigned k = 1;; k++) {
        struct fsim *d = fsim_new(seed + k);
        const struct fsx *fs = fsim_fs(d);
        TEST_ASSERT_EQUAL_INT(0, save(fs, 1, "q.prev"));
        TEST_ASSERT_EQUAL_INT(0, save(fs, 2, "q.prev"));
        fsim_fail_at(d, k, UINT_MAX, -EROFS);
        int rv = save(fs, 3, "q.prev");
        bool fired = fsim_fired(d);
        fsim_fail_at(d, 0, 0, 0);
        TEST_ASSERT_EQUAL_UINT(0, fsim_open_fds(d));
        TEST_ASSERT_TRUE(rv == -EROFS || !fired);
        TEST_ASSERT_GREATER_OR_EQUAL_INT(2, generation(fs, "q"));
        TEST_ASSERT_GREATER_OR_EQUAL_INT(1, generation(fs, "q.prev"));
        TEST_ASSERT_EQUAL_INT(0, fsx_remove_tmp(fs, FSIM_ROOT, "q", NULL));
        TEST_ASSERT_EQUAL_STRING("q q.prev ", fsim_names(d));
        TEST_ASSERT_EQUAL_INT(0, save(fs, 4, "q.prev"));
        TEST_ASSERT_EQUAL_INT(4, generation(fs, "q"));
        fsim_free(d);
        if (!fired) {
            return;
        }
    }
}

/* After a sync has failed, the bytes are gone although the next sync would say OK. Here the same descriptor
 * is asked again, as a naive program would do, to show that the simulated disk behaves like that: it is what
 * makes the "next save survives" line of one_fault() mean something. */
static void test_a_failed_sync_loses_the_bytes(void)
{
    struct fsim *d = fsim_new(seed);
    const struct fsx *fs = fsim_fs(d);
    int fd = fsx_open(fs, FSIM_ROOT, "f", O_WRONLY | O_CREAT, 0600, NULL);
    TEST_ASSERT_GREATER_OR_EQUAL_INT(0, fd);
    TEST_ASSERT_EQUAL_INT(0, fsx_sync_dir(fs, FSIM_ROOT, NULL));
    TEST_ASSERT_EQUAL_INT(0, fsx_pwrite_all(fs, fd, "hello", 5, 0, NULL));
    fsim_fail_at(d, 1, 1, -EIO);
    TEST_ASSERT_EQUAL_INT(-EIO, fsx_fdatasync(fs, fd, NULL));
    TEST_ASSERT_EQUAL_INT(0, fsx_fdatasync(fs, fd, NULL));
    fsim_reboot(d);
    char *p;
    size_t len;
    TEST_ASSERT_EQUAL_INT(0, fsx_read_all(fs, FSIM_ROOT, "f", 100, &p, &len, NULL));
    TEST_ASSERT_EQUAL_UINT64(0, len);
    mem_free(p);
    fsim_free(d);
}

struct cuts {
    unsigned bad;        /* reboots after which an acked save was gone or a file was torn */
    unsigned cut;        /* reboots in the middle of a save */
    unsigned no_current; /* reboots that left only the previous generation */
};

/* Saves until the power goes at a random call, reboots, looks; again and again on the same disk. */
static struct cuts run_cuts(uint64_t run_seed, const char *prev, int planted, enum variant v)
{
    struct fsim *d = fsim_new(run_seed);
    struct fsx fs = variant_of(fsim_fs(d), v);
    struct rng r;
    rng_init(&r, ~run_seed);
    struct cuts c = {0};
    int acked = 0, tried = 0;
    for (int boot = 0; boot < 12; boot++) {
        fsim_ignore_syncs(d, planted);
        fsim_cut_at(d, 1 + (unsigned)rng_below(&r, 40));
        while (!fsim_fired(d)) {
            if (save(&fs, (unsigned)++tried, prev) == 0) {
                acked = tried;
            }
        }
        fsim_reboot(d);
        c.cut++;
        int now = generation(&fs, "q"), before = prev != NULL ? generation(&fs, prev) : 0;
        bool fine = now >= acked && now <= tried && before >= 0 && ERGO(now > 0, before <= now);
        if (prev != NULL && v == NO_LINKS && now == 0) { /* cut between the two renames */
            fine = before >= acked && before <= tried;
            c.no_current++;
        }
        c.bad += !fine;
        c.bad += fsx_remove_tmp(&fs, FSIM_ROOT, "q", NULL) != 0;
        const char *names = fsim_names(d);
        c.bad += strstr(names, ".tmp") != NULL;
        acked = now > before ? now : before; /* what a start would load is what counts from here */
        if (!fine) {
            break;
        }
    }
    fsim_free(d);
    return c;
}

static struct cuts many_cuts(const char *prev, int planted, enum variant v)
{
    struct cuts sum = {0};
    for (unsigned i = 0; i < rounds; i++) {
        struct cuts c = run_cuts(seed + i, prev, planted, v);
        if (c.bad > 0 && planted == 0 && v != UNLINK_FIRST) {
            printf("broken by TEST_SEED=%llu\n", (unsigned long long)(seed + i));
        }
        sum.bad += c.bad;
        sum.cut += c.cut;
        sum.no_current += c.no_current;
    }
    return sum;
}

/* No power cut, at whatever call and whatever the disk then forgets, loses an acknowledged save or shows a
 * torn one; with the previous generation kept, both files are whole. */
static void test_power_cuts_lose_nothing(void)
{
    TEST_ASSERT_EQUAL_UINT(0, many_cuts(NULL, 0, PLAIN).bad);
    struct cuts c = many_cuts("q.prev", 0, PLAIN);
    TEST_ASSERT_EQUAL_UINT(0, c.bad);
    TEST_ASSERT_EQUAL_UINT(rounds * 12, c.cut);
}

/* Without hard links one generation is there at every moment, and the moment with only the previous one is
 * really met. */
static void test_power_cuts_without_hard_links(void)
{
    struct cuts c = many_cuts("q.prev", 0, NO_LINKS);
    TEST_ASSERT_EQUAL_UINT(0, c.bad);
    TEST_ASSERT_GREATER_THAN_UINT(0, c.no_current);
}

/* The same runs notice a save that forgets either sync, or that deletes the old file before it renames the
 * new one: the rig is not blind. */
static void test_planted_bugs_are_noticed(void)
{
    TEST_ASSERT_GREATER_THAN_UINT(0, many_cuts(NULL, FSIM_FILE_SYNCS, PLAIN).bad);
    TEST_ASSERT_GREATER_THAN_UINT(0, many_cuts(NULL, FSIM_DIR_SYNCS, PLAIN).bad);
    TEST_ASSERT_GREATER_THAN_UINT(0, many_cuts("q.prev", FSIM_FILE_SYNCS, PLAIN).bad);
    TEST_ASSERT_GREATER_THAN_UINT(0, many_cuts(NULL, 0, UNLINK_FIRST).bad);
}

/* After a cut between the two renames of a save, the current and the previous name are one file. rename()
 * between them does nothing: the next save must not leave its link behind. */
static void test_two_names_of_one_file(void)
{
    struct fsim *d = fsim_new(seed);
    const struct fsx *fs = fsim_fs(d);
    TEST_ASSERT_EQUAL_INT(0, save(fs, 1, "q.prev"));
    TEST_ASSERT_EQUAL_INT(0, fs->ops->linkat(fs->arg, FSIM_ROOT, "q", "q.prev"));
    TEST_ASSERT_EQUAL_INT(0, save(fs, 2, "q.prev"));
    TEST_ASSERT_EQUAL_STRING("q q.prev ", fsim_names(d));
    TEST_ASSERT_EQUAL_INT(1, generation(fs, "q.prev"));
    fsim_free(d);
}

/* Leftovers of crashes are neither content nor in the way; when all slots are taken it is said, and cleaning
 * helps. */
static void test_leftovers_are_passed_by(void)
{
    struct fsim *d = fsim_new(seed);
    const struct fsx *fs = fsim_fs(d);
    struct fsx_writer w;
    for (int i = 0; i < FSX_TMP_SLOTS - 1; i++) { /* each killed before its commit */
        TEST_ASSERT_EQUAL_INT(0, fsx_begin(&w, fs, FSIM_ROOT, "q", NULL));
        TEST_ASSERT_EQUAL_INT(0, fsx_close(fs, w.fd, NULL));
    }
    TEST_ASSERT_EQUAL_INT(0, generation(fs, "q"));
    TEST_ASSERT_EQUAL_INT(0, save(fs, 1, NULL));
    TEST_ASSERT_EQUAL_INT(1, generation(fs, "q"));
    TEST_ASSERT_EQUAL_INT(0, fsx_begin(&w, fs, FSIM_ROOT, "q", NULL));
    TEST_ASSERT_EQUAL_INT(0, fsx_close(fs, w.fd, NULL));
    TEST_ASSERT_EQUAL_INT(-EEXIST, save(fs, 2, NULL));
    TEST_ASSERT_EQUAL_INT(0, fsx_remove_tmp(fs, FSIM_ROOT, "q", NULL));
    TEST_ASSERT_EQUAL_STRING("q ", fsim_names(d));
    TEST_ASSERT_EQUAL_INT(0, save(fs, 2, NULL));
    fsim_free(d);
}

/* In pieces: what was appended arrives in order; an abort leaves nothing; a failed piece fails the commit. */
static void test_writing_in_pieces(void)
{
    struct fsim *d = fsim_new(seed);
    const struct fsx *fs = fsim_fs(d);
    struct fsx_writer w;
    struct err e;
    TEST_ASSERT_EQUAL_INT(0, fsx_begin(&w, fs, FSIM_ROOT, "s", NULL));
    TEST_ASSERT_EQUAL_INT(0, fsx_append(&w, "one ", 4, NULL));
    TEST_ASSERT_EQUAL_INT(0, fsx_append(&w, "two", 3, NULL));
    TEST_ASSERT_EQUAL_INT(0, fsx_commit(&w, NULL, NULL));
    char *p;
    size_t len;
    TEST_ASSERT_EQUAL_INT(0, fsx_read_all(fs, FSIM_ROOT, "s", 100, &p, &len, NULL));
    TEST_ASSERT_EQUAL_STRING("one two", p);
    mem_free(p);

    TEST_ASSERT_EQUAL_INT(0, fsx_begin(&w, fs, FSIM_ROOT, "s", NULL));
    fsx_abort(&w);
    TEST_ASSERT_EQUAL_INT(0, fsx_begin(&w, fs, FSIM_ROOT, "s", NULL));
    fsim_fail_at(d, 1, 1, -ENOSPC);
    TEST_ASSERT_EQUAL_INT(-ENOSPC, fsx_append(&w, "lost", 4, NULL));
    TEST_ASSERT_EQUAL_INT(-ENOSPC, fsx_append(&w, "not written", 11, NULL));
    TEST_ASSERT_EQUAL_INT(-ENOSPC, fsx_commit(&w, NULL, &e));
    TEST_ASSERT_EQUAL_STRING("s: write: no space left on device", e.msg);
    TEST_ASSERT_EQUAL_STRING("s ", fsim_names(d));
    TEST_ASSERT_EQUAL_UINT(0, fsim_open_fds(d));
    fsim_free(d);
}

/* A write that the disk takes in halves and interrupts arrives whole and at its offset. */
static void test_short_and_interrupted_writes(void)
{
    for (int code = -EINTR; code != 0; code = code == -EINTR ? FSIM_SHORT : 0) {
        struct fsim *d = fsim_new(seed);
        const struct fsx *fs = fsim_fs(d);
        int fd = fsx_open(fs, FSIM_ROOT, "f", O_RDWR | O_CREAT, 0600, NULL);
        fsim_fail_at(d, 1, 3, code);
        TEST_ASSERT_EQUAL_INT(0, fsx_pwrite_all(fs, fd, "0123456789", 10, 3, NULL));
        TEST_ASSERT_EQUAL_INT(0, fsx_close(fs, fd, NULL));
        fsim_fail_at(d, 3, 3, code);
        char *p;
        size_t len;
        TEST_ASSERT_EQUAL_INT(0, fsx_read_all(fs, FSIM_ROOT, "f", 100, &p, &len, NULL));
        TEST_ASSERT_EQUAL_UINT64(13, len);
        TEST_ASSERT_EQUAL_MEMORY("\0\0\0"
                                 "0123456789",
                                 p, 14);
        mem_free(p);
        fsim_free(d);
    }
}

static ssize_t write_nothing(void *arg, int fd, const void *p, size_t n, off_t at)
{
    (void)arg, (void)fd, (void)p, (void)n, (void)at;
    return 0;
}

/* A filesystem that writes nothing and calls it success ends in an error, not in a loop; an offset that
 * wraps is refused. */
static void test_impossible_writes(void)
{
    struct fsx_ops ops = *fsx_kernel.ops;
    ops.pwrite = write_nothing;
    struct fsx fs = {&ops, NULL};
    TEST_ASSERT_EQUAL_INT(-EIO, fsx_pwrite_all(&fs, 7, "x", 1, 0, NULL));
    TEST_ASSERT_EQUAL_INT(-EFBIG, fsx_pwrite_all(&fs, 7, "x", 1, UINT64_MAX, NULL));
    TEST_ASSERT_EQUAL_INT(-EFBIG, fsx_pwrite_all(&fs, 7, "x", 1, INT64_MAX, NULL));
    TEST_ASSERT_EQUAL_INT(-EFBIG, fsx_preallocate(&fs, 7, UINT64_MAX, NULL));
}

static int answers[2]; /* of fallocate and ftruncate */

static int answer_fallocate(void *arg, int fd, off_t size)
{
    (void)arg, (void)fd, (void)size;
    return answers[0];
}

static int answer_ftruncate(void *arg, int fd, off_t size)
{
    (void)arg, (void)fd, (void)size;
    return answers[1];
}

/* Preallocation: no space is no space; a filesystem that cannot do it is no reason to stop. */
static void test_preallocation_answers(void)
{
    static const int table[][3] = {
        {0, -EIO, 0},        {-ENOSPC, 0, -ENOSPC},         {-EOPNOTSUPP, 0, 0},
        {-ENOSYS, 0, 0},     {-EOPNOTSUPP, -EPERM, 0},      {-EOPNOTSUPP, -EOPNOTSUPP, 0},
        {-EFBIG, 0, -EFBIG}, {-EOPNOTSUPP, -EFBIG, -EFBIG}, {-EDQUOT, 0, -EDQUOT},
    };
    struct fsx_ops ops = *fsx_kernel.ops;
    ops.fallocate = answer_fallocate;
    ops.ftruncate = answer_ftruncate;
    struct fsx fs = {&ops, NULL};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        answers[0] = table[i][0];
        answers[1] = table[i][1];
        TEST_ASSERT_EQUAL_INT(table[i][2], fsx_preallocate(&fs, 7, 1000, NULL));
    }
    answers[0] = -EINVAL; /* what the kernel says to length 0 */
    TEST_ASSERT_EQUAL_INT(0, fsx_preallocate(&fs, 7, 0, NULL));
}

/* A bad file set aside is never written over an earlier one, at whatever call it fails it is still there
 * under one of the two names, and a power cut does not lose it either. */
static void test_set_aside_keeps_everything(void)
{
    for (int cut = 0; cut < 2; cut++) {
        for (unsigned k = 1;; k++) {
            struct fsim *d = fsim_new(seed + k);
            const struct fsx *fs = fsim_fs(d);
            char aside[FSX_NAME_MAX + 1];
            TEST_ASSERT_EQUAL_INT(0, save(fs, 1, NULL));
            TEST_ASSERT_EQUAL_INT(0, fsx_set_aside(fs, FSIM_ROOT, "q", 1700000000, aside, NULL));
            TEST_ASSERT_EQUAL_STRING("q.corrupt-1700000000", aside);
            TEST_ASSERT_EQUAL_INT(0, save(fs, 2, NULL));
            if (cut) {
                fsim_cut_at(d, k);
            } else {
                fsim_fail_at(d, k, 1, -EIO);
            }
            int rv = fsx_set_aside(fs, FSIM_ROOT, "q", 1700000000, aside, NULL);
            bool fired = fsim_fired(d);
            if (cut) {
                fsim_reboot(d);
            }
            fsim_fail_at(d, 0, 0, 0);
            TEST_ASSERT_EQUAL_UINT(0, fsim_open_fds(d));
            TEST_ASSERT_EQUAL_INT(1, generation(fs, "q.corrupt-1700000000"));
            bool there = generation(fs, "q") == 2;
            bool moved = generation(fs, "q.corrupt-1700000000 (2)") == 2;
            TEST_ASSERT_TRUE(there != moved);
            TEST_ASSERT_TRUE(rv != 0 || moved);
            fsim_free(d);
            if (!fired) {
                break;
            }
        }
    }
}

/* Directories made are there after a power cut, whatever their depth; a fault anywhere leaks nothing. */
static void test_mkdirs_is_durable(void)
{
    for (unsigned k = 0;; k++) {
        struct fsim *d = fsim_new(seed + k);
        const struct fsx *fs = fsim_fs(d);
        fsim_fail_at(d, k, 1, -EIO);
        int fd = fsx_mkdirs(fs, FSIM_ROOT, "a/./b//c", 0700, NULL);
        bool fired = fsim_fired(d);
        fsim_fail_at(d, 0, 0, 0);
        if (fd >= 0) {
            TEST_ASSERT_EQUAL_INT(0, fsx_close(fs, fd, NULL));
            fsim_reboot(d);
            fd = fsx_open_beneath(fs, FSIM_ROOT, "a/b/c", O_RDONLY | O_DIRECTORY, 0, NULL);
            TEST_ASSERT_GREATER_OR_EQUAL_INT(0, fd);
            TEST_ASSERT_EQUAL_INT(0, fsx_close(fs, fd, NULL));
        } else {
            TEST_ASSERT_EQUAL_INT(-EIO, fd);
        }
        TEST_ASSERT_EQUAL_UINT(0, fsim_open_fds(d));
        fsim_free(d);
        if (k > 0 && !fired) {
            break;
        }
    }
}

/* Reading fails cleanly when memory or any call does. */
static void test_reading_fails_cleanly(void)
{
    struct fsim *d = fsim_new(seed);
    const struct fsx *fs = fsim_fs(d);
    char *p;
    size_t len;
    TEST_ASSERT_EQUAL_INT(0, save(fs, 1, NULL));
    fault_arm(1);
    TEST_ASSERT_EQUAL_INT(-ENOMEM, fsx_read_all(fs, FSIM_ROOT, "q", 10000, &p, &len, NULL));
    fault_disarm();
    for (unsigned k = 1; k <= 3; k++) { /* open, fstat, pread; the close does not matter */
        fsim_fail_at(d, k, 1, -EIO);
        TEST_ASSERT_EQUAL_INT(-EIO, fsx_read_all(fs, FSIM_ROOT, "q", 10000, &p, &len, NULL));
        TEST_ASSERT_EQUAL_UINT(0, fsim_open_fds(d));
    }
    fsim_free(d);
}

int main(void)
{
    const char *text = getenv("FSX_CUTS");
    rounds = text != NULL ? (unsigned)strtoul(text, NULL, 10) : 300;
    seed = rng_seed(1);
    UNITY_BEGIN();
    RUN_TEST(test_any_single_call_may_fail);
    RUN_TEST(test_a_lasting_failure_leaves_the_old_file);
    RUN_TEST(test_a_failed_sync_loses_the_bytes);
    RUN_TEST(test_power_cuts_lose_nothing);
    RUN_TEST(test_power_cuts_without_hard_links);
    RUN_TEST(test_planted_bugs_are_noticed);
    RUN_TEST(test_two_names_of_one_file);
    RUN_TEST(test_leftovers_are_passed_by);
    RUN_TEST(test_writing_in_pieces);
    RUN_TEST(test_short_and_interrupted_writes);
    RUN_TEST(test_impossible_writes);
    RUN_TEST(test_preallocation_answers);
    RUN_TEST(test_set_aside_keeps_everything);
    RUN_TEST(test_mkdirs_is_durable);
    RUN_TEST(test_reading_fails_cleanly);
    return UNITY_END();
}
