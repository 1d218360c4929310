#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "disk/disk.h"
#include "lib/dir.h"
#include "lib/fsim.h"

enum { PIECE = 5000 };

static struct buf_pool bufs;
static struct dir dir;
static uv_sem_t back;
static struct disk_msg *answers[1000];
static unsigned answer_count;

static void on_deliver(void *arg, struct disk_msg *msg)
{
    (void)arg;
    answers[answer_count++] = msg;
    uv_sem_post(&back);
}

static struct disk *start(const struct fsx *fs, unsigned open_max)
{
    struct err e = {0};
    struct disk *d;
    struct disk_opts opts = {
        .fs = fs, .bufs = &bufs, .messages = 64, .open_max = open_max, .deliver = on_deliver};
    answer_count = 0;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, disk_start(&d, &opts, &e), e.msg);
    return d;
}

static void stop(struct disk *d)
{
    disk_stop(d);
    disk_join(d);
    disk_free(d);
}

static int ask(struct disk *d, struct disk_msg *m, enum disk_kind kind)
{
    m->kind = kind;
    TEST_ASSERT_EQUAL_INT(0, disk_post(d, m));
    uv_sem_wait(&back);
    return m->code;
}

static int open_file(struct disk *d, struct disk_msg *m, int dirfd, const char *name, uint64_t size)
{
    *m = (struct disk_msg){.dirfd = dirfd, .size = size};
    snprintf(m->name, sizeof(m->name), "%s", name);
    return ask(d, m, DISK_OPEN);
}

static int write_piece(struct disk *d, struct disk_msg *m, unsigned piece)
{
    m->buf = buf_take(&bufs, PIECE, NULL);
    TEST_ASSERT_NOT_NULL(m->buf);
    memset(m->buf->data, 'a' + (int)(piece % 26), PIECE);
    m->buf->len = PIECE;
    m->at = (uint64_t)piece * PIECE;
    return ask(d, m, DISK_WRITE);
}

static void check_file(const char *name, unsigned pieces)
{
    char got[PIECE];
    int fd = openat(dir.fd, name, O_RDONLY);
    TEST_ASSERT_GREATER_OR_EQUAL_INT(0, fd);
    for (unsigned i = 0; i < pieces; i++) {
        TEST_ASSERT_EQUAL_INT(PIECE, pread(fd, got, PIECE, (off_t)i * PIECE));
        for (unsigned k = 0; k < PIECE; k++) {
            TEST_ASSERT_EQUAL_INT('a' + (int)(i % 26), got[k]);
        }
    }
    close(fd);
}

void setUp(void)
{
    TEST_ASSERT_EQUAL_INT(0, buf_pool_init(&bufs, 1 << 20));
    uv_sem_init(&back, 0);
}

void tearDown(void)
{
    buf_pool_close(&bufs); /* aborts when a buffer is missing */
    uv_sem_destroy(&back);
}

/* Pieces written in any order, to more files than descriptors may be open, end up in their places; the files have
 * their whole size from the start; answers come in order and buffers go back. */
static void test_pieces_find_their_places(void)
{
    enum { FILES = 7, PIECES = 6 };
    struct disk *d = start(&fsx_kernel, 3);
    int fds = dir_open_fds();
    struct disk_msg files[FILES];
    char name[20];
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        TEST_ASSERT_EQUAL_INT(0, open_file(d, &files[i], dir.fd, name, PIECES * PIECE));
        struct stat st;
        TEST_ASSERT_EQUAL_INT(0, fstatat(dir.fd, name, &st, 0));
        TEST_ASSERT_EQUAL_INT(PIECES * PIECE, st.st_size);
    }
    for (unsigned k = PIECES; k-- > 0;) {
        for (unsigned i = 0; i < FILES; i++) {
            TEST_ASSERT_EQUAL_INT_MESSAGE(0, write_piece(d, &files[i], k), files[i].text);
            TEST_ASSERT_LESS_OR_EQUAL_INT(fds + 3, dir_open_fds());
        }
    }
    for (unsigned i = 0; i < FILES; i++) {
        TEST_ASSERT_EQUAL_INT(0, ask(d, &files[i], DISK_SYNC));
        TEST_ASSERT_EQUAL_INT(0, ask(d, &files[i], DISK_CLOSE));
        snprintf(name, sizeof(name), "f%u", i);
        check_file(name, PIECES);
    }
    TEST_ASSERT_EQUAL_INT(fds, dir_open_fds());
    stop(d);
}

/* Stopping does everything that was posted before, in order, and closes what was left open. */
static void test_stop_loses_nothing(void)
{
    int fds = dir_open_fds();
    struct disk *d = start(&fsx_kernel, 4);
    struct disk_msg file;
    TEST_ASSERT_EQUAL_INT(0, open_file(d, &file, dir.fd, "stop", 0));
    struct disk_msg msgs[20];
    for (unsigned i = 0; i < 20; i++) {
        msgs[i] = file;
        msgs[i].kind = DISK_WRITE;
        msgs[i].at = i * PIECE;
        msgs[i].buf = buf_take(&bufs, PIECE, NULL);
        memset(msgs[i].buf->data, 'a' + (int)i, PIECE);
        msgs[i].buf->len = PIECE;
        TEST_ASSERT_EQUAL_INT(0, disk_post(d, &msgs[i]));
    }
    stop(d);
    TEST_ASSERT_EQUAL_UINT(21, answer_count);
    for (unsigned i = 0; i < 20; i++) {
        TEST_ASSERT_EQUAL_PTR(&msgs[i], answers[i + 1]);
        TEST_ASSERT_EQUAL_INT(0, msgs[i].code);
    }
    check_file("stop", 20);
    TEST_ASSERT_EQUAL_INT(fds, dir_open_fds());
    for (unsigned i = 0; i < 20; i++) {
        uv_sem_wait(&back);
    }
}

/* Whatever call fails, with whatever error, is answered with that error and the file's name; short writes are no
 * error; after a failed sync the file stays lost, and a fresh one can be written in its place. */
static void test_failing_calls_are_said(void)
{
    static const int codes[] = {-ENOSPC, -EIO, -EDQUOT, -EROFS, FSIM_SHORT};
    for (unsigned c = 0; c < 5; c++) {
        for (unsigned k = 1;; k++) {
            struct fsim *sim = fsim_new(k);
            struct disk *d = start(fsim_fs(sim), 2);
            fsim_fail_at(sim, k, 1, codes[c]);
            struct disk_msg m;
            int rv = open_file(d, &m, FSIM_ROOT, "data", 3 * PIECE);
            bool opened = rv == 0, lost = false;
            for (unsigned i = 0; i < 3 && opened; i++) {
                int code = write_piece(d, &m, i);
                rv = rv != 0 ? rv : code;
            }
            if (opened) {
                int code = ask(d, &m, DISK_SYNC);
                lost = code != 0;
                TEST_ASSERT_EQUAL_INT(code, ask(d, &m, DISK_SYNC)); /* never OK on a second try */
                rv = rv != 0 ? rv : code;
            }
            bool fired = fsim_fired(sim);
            if (rv != 0) {
                TEST_ASSERT_EQUAL_INT(codes[c], rv);
            }
            if (lost) {
                TEST_ASSERT_NOT_NULL(strstr(m.text, "data"));
                TEST_ASSERT_EQUAL_INT(codes[c], write_piece(d, &m, 0));
            }
            if (opened) {
                TEST_ASSERT_EQUAL_INT(0, ask(d, &m, DISK_CLOSE));
            }
            m.fresh = true;
            TEST_ASSERT_EQUAL_INT_MESSAGE(0, ask(d, &m, DISK_OPEN), m.text);
            TEST_ASSERT_EQUAL_INT(0, write_piece(d, &m, 0));
            TEST_ASSERT_EQUAL_INT(0, ask(d, &m, DISK_SYNC));
            stop(d);
            TEST_ASSERT_EQUAL_UINT(0, fsim_open_fds(sim));
            fsim_free(sim);
            if (!fired) {
                break;
            }
        }
    }
}

/* A link in the place of the file is not followed. */
static void test_links_are_not_followed(void)
{
    TEST_ASSERT_EQUAL_INT(0, symlinkat("/tmp/weir-never", dir.fd, "link"));
    struct disk *d = start(&fsx_kernel, 2);
    struct disk_msg m;
    TEST_ASSERT_TRUE(0 != open_file(d, &m, dir.fd, "link", 10));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(m.text, "link"), m.text);
    m.fresh = true;
    TEST_ASSERT_EQUAL_INT(0, ask(d, &m, DISK_OPEN));
    stop(d);
    TEST_ASSERT_TRUE(0 != access("/tmp/weir-never", F_OK));
}

int main(void)
{
    dir_make(&dir);
    UNITY_BEGIN();
    RUN_TEST(test_pieces_find_their_places);
    RUN_TEST(test_stop_loses_nothing);
    RUN_TEST(test_failing_calls_are_said);
    RUN_TEST(test_links_are_not_followed);
    int rv = UNITY_END();
    dir_remove(&dir);
    return rv;
}
