/* The disk writes what it was asked to, in order, and what it calls durable is. */
#include "disk/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "lib/dir.h"
#include "unity.h"

static struct dir d;
static int root, state;
static struct buf_pool pool;
static struct disk *disk;
static struct err err;
static uv_sem_t back;           /* one post per message that came back */
static uint32_t lost_files[16]; /* told by DISK_LOST, in order */
static int lost_count;

/* The kernel's calls, with the chosen one failing from the chosen time on. */
static struct fsx_ops ops;
static struct fsx fs = {&ops, NULL};
static int fail_sync_code, fail_write_code, sync_calls;

static int bad_fdatasync(void *arg, int fd)
{
    sync_calls++;
    return fail_sync_code != 0 ? fail_sync_code : fsx_kernel.ops->fdatasync(arg, fd);
}

static ssize_t bad_pwrite(void *arg, int fd, const void *p, size_t n, off_t at)
{
    if (fail_write_code != 0) {
        return fail_write_code;
    }
    return fsx_kernel.ops->pwrite(arg, fd, p, n > 1000 ? n / 2 : n, at); /* short, as disks are */
}

static void deliver(void *arg, struct disk_msg *m)
{
    (void)arg;
    if (m->kind == DISK_LOST) {
        lost_files[lost_count++] = ((struct disk_lost *)m)->file_id;
        mem_free(m);
        return;
    }
    uv_sem_post(&back);
}

static void start(void)
{
    struct disk_options o = {.fs = &fs,
                             .root = root,
                             .state = state,
                             .generation = 1,
                             .bufs = &pool,
                             .clock = &clock_system,
                             .inbox = 64,
                             .deliver = deliver};
    disk = disk_start(&o, &err);
    TEST_ASSERT_NOT_NULL_MESSAGE(disk, err.msg);
}

static void stop(void)
{
    disk_stop(disk);
    disk_free(disk);
    disk = NULL;
}

void setUp(void)
{
    ops = *fsx_kernel.ops;
    ops.fdatasync = bad_fdatasync;
    ops.pwrite = bad_pwrite;
    fail_sync_code = fail_write_code = sync_calls = lost_count = 0;
    dir_make(&d);
    TEST_ASSERT_EQUAL_INT(0, mkdirat(d.fd, "root", 0700));
    TEST_ASSERT_EQUAL_INT(0, mkdirat(d.fd, "state", 0700));
    root = openat(d.fd, "root", O_RDONLY | O_DIRECTORY);
    state = openat(d.fd, "state", O_RDONLY | O_DIRECTORY);
    TEST_ASSERT_EQUAL_INT(0, buf_pool_init(&pool, 8 << 20));
    TEST_ASSERT_EQUAL_INT(0, uv_sem_init(&back, 0));
    err_clear(&err);
    start();
}

void tearDown(void)
{
    if (disk != NULL) {
        stop();
    }
    uv_sem_destroy(&back);
    buf_pool_close(&pool); /* aborts when a buffer did not come back */
    close(root);
    close(state);
    dir_remove(&d);
}

/* Asks and waits for the answer. */
static int ask(struct disk_msg *m, enum disk_kind kind)
{
    m->kind = kind;
    m->err = &err;
    m->code = 12345;
    TEST_ASSERT_EQUAL_INT(0, disk_post(disk, m));
    uv_sem_wait(&back);
    return m->code;
}

static struct disk_file_msg file_msg(uint32_t job, uint32_t file, const char *name, uint64_t size)
{
    static char dir[32];
    snprintf(dir, sizeof(dir), "cat/job%u", job);
    return (struct disk_file_msg){
        .job_id = job, .file_id = file, .dir = dir, .name = name, .size = size};
}

static int open_file(uint32_t job, uint32_t file, uint64_t size)
{
    struct disk_file_msg m = file_msg(job, file, "x", size);
    return ask(&m.msg, DISK_OPEN);
}

static int write_at(uint32_t file, uint64_t offset, int byte, size_t len)
{
    struct disk_write m = {.file_id = file, .offset = offset};
    m.buf = buf_take(&pool, len, NULL);
    TEST_ASSERT_NOT_NULL(m.buf);
    memset(m.buf->data, byte, len);
    m.buf->len = len;
    int code = ask(&m.msg, DISK_WRITE);
    TEST_ASSERT_NULL(m.buf);
    return code;
}

static int close_file(uint32_t job, uint32_t file, const char *name, char *made)
{
    struct disk_file_msg m = file_msg(job, file, name, 3000);
    int code = ask(&m.msg, DISK_CLOSE);
    memcpy(made, m.made, sizeof(m.made));
    return code;
}

static void assert_bytes(const char *path, const char *runs)
{
    int fd = openat(root, path, O_RDONLY);
    TEST_ASSERT_TRUE_MESSAGE(fd >= 0, path);
    for (; *runs != '\0'; runs++) { /* each letter stands for 3000 such bytes */
        char got[3000], want[3000];
        memset(want, *runs, sizeof(want));
        TEST_ASSERT_EQUAL_INT(sizeof(got), read(fd, got, sizeof(got)));
        TEST_ASSERT_EQUAL_MEMORY(want, got, sizeof(got));
    }
    char more;
    TEST_ASSERT_EQUAL_INT(0, read(fd, &more, 1));
    close(fd);
}

/* Parts in any order become the file, under its name only when it is closed, and whole although the kernel takes the
 * writes in pieces. */
static void test_parts_become_a_file(void)
{
    char made[FSX_NAME_MAX + 1];
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, open_file(1, 7, 9000), err.msg);
    struct stat st;
    TEST_ASSERT_EQUAL_INT(0, fstatat(root, "cat/job1/.7.part", &st, 0));
    TEST_ASSERT_EQUAL_INT(9000, st.st_size);
    TEST_ASSERT_EQUAL_INT(0, write_at(7, 6000, 'c', 3000));
    TEST_ASSERT_EQUAL_INT(0, write_at(7, 0, 'a', 3000));
    TEST_ASSERT_EQUAL_INT(0, write_at(7, 3000, 'b', 3000));
    TEST_ASSERT_EQUAL_INT(-1, faccessat(root, "cat/job1/movie.mkv", F_OK, 0));
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, close_file(1, 7, "movie.mkv", made), err.msg);
    TEST_ASSERT_EQUAL_STRING("movie.mkv", made);
    assert_bytes("cat/job1/movie.mkv", "abc");
    TEST_ASSERT_EQUAL_INT(-1, faccessat(root, "cat/job1/.7.part", F_OK, 0));
}

/* A name that is taken is not taken over, be it by a file or by a link that leads out. */
static void test_a_taken_name_gets_a_number(void)
{
    char made[FSX_NAME_MAX + 1];
    TEST_ASSERT_EQUAL_INT(0, open_file(1, 1, 0));
    TEST_ASSERT_EQUAL_INT(0, write_at(1, 0, 'a', 3000));
    TEST_ASSERT_EQUAL_INT(0, symlinkat("../../../state/victim", root, "cat/job1/x.bin"));
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, close_file(1, 1, "x.bin", made), err.msg);
    TEST_ASSERT_EQUAL_STRING("x (2).bin", made);
    assert_bytes("cat/job1/x (2).bin", "a");
    TEST_ASSERT_EQUAL_INT(-1, faccessat(state, "victim", F_OK, 0));
}

/* After a restart the file is found again and goes on; if it is gone although parts were written, that is said. */
static void test_a_file_is_found_again(void)
{
    char made[FSX_NAME_MAX + 1];
    TEST_ASSERT_EQUAL_INT(0, open_file(1, 7, 6000));
    TEST_ASSERT_EQUAL_INT(0, write_at(7, 0, 'a', 3000));
    stop();
    start();
    struct disk_file_msg m = file_msg(1, 7, "x", 6000);
    m.has_data = true;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ask(&m.msg, DISK_OPEN), err.msg);
    TEST_ASSERT_EQUAL_INT(0, write_at(7, 3000, 'b', 3000));
    stop();
    start();
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, close_file(1, 7, "x", made), err.msg); /* without an OPEN */
    assert_bytes("cat/job1/x", "ab");
    m = file_msg(1, 8, "y", 10);
    m.has_data = true;
    TEST_ASSERT_EQUAL_INT(ERR_NOT_FOUND, ask(&m.msg, DISK_OPEN));
    TEST_ASSERT_NOT_NULL(strstr(err.msg, "is gone"));
    TEST_ASSERT_EQUAL_INT(ERR_NOT_FOUND, write_at(8, 0, 'x', 10));
}

/* Closed, and then a crash before anybody knew: closing it again finds it, and only a file of that very size. */
static void test_closing_twice_finds_the_file(void)
{
    char made[FSX_NAME_MAX + 1];
    TEST_ASSERT_EQUAL_INT(0, open_file(1, 6, 0));
    TEST_ASSERT_EQUAL_INT(0, write_at(6, 0, 'z', 200));
    TEST_ASSERT_EQUAL_INT(0, close_file(1, 6, "x.bin", made)); /* another of the same name */
    TEST_ASSERT_EQUAL_INT(0, open_file(1, 7, 0));
    TEST_ASSERT_EQUAL_INT(0, write_at(7, 0, 'a', 3000));
    TEST_ASSERT_EQUAL_INT(0, close_file(1, 7, "x.bin", made));
    TEST_ASSERT_EQUAL_STRING("x (2).bin", made);
    stop();
    start();
    made[0] = '\0';
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, close_file(1, 7, "x.bin", made), err.msg);
    TEST_ASSERT_EQUAL_STRING("x (2).bin", made);
    TEST_ASSERT_EQUAL_INT(ERR_NOT_FOUND, close_file(1, 9, "other.bin", made));
}

/* A write that fails is an answer, its buffer comes back, and the file goes on when there is room again. */
static void test_a_full_disk_is_an_answer(void)
{
    char made[FSX_NAME_MAX + 1];
    TEST_ASSERT_EQUAL_INT(0, open_file(1, 7, 0));
    fail_write_code = -ENOSPC;
    TEST_ASSERT_EQUAL_INT(-ENOSPC, write_at(7, 0, 'a', 3000));
    TEST_ASSERT_NOT_NULL(strstr(err.msg, "no space"));
    fail_write_code = 0;
    TEST_ASSERT_EQUAL_INT(0, write_at(7, 0, 'b', 3000));
    TEST_ASSERT_EQUAL_INT(0, close_file(1, 7, "x", made));
    assert_bytes("cat/job1/x", "b");
    struct disk_space s = {.free_bytes = 0};
    TEST_ASSERT_EQUAL_INT(0, ask(&s.msg, DISK_SPACE));
    TEST_ASSERT_TRUE(s.free_bytes > 0);
}

/* A sync that fails loses the file: its owner is told, its records never reach the journal, the bytes are removed, and
 * the same descriptor is not synced again. */
static void test_a_failed_sync_loses_the_file(void)
{
    char made[FSX_NAME_MAX + 1];
    TEST_ASSERT_EQUAL_INT(0, open_file(1, 7, 0));
    TEST_ASSERT_EQUAL_INT(0, open_file(1, 8, 0));
    TEST_ASSERT_EQUAL_INT(0, write_at(7, 0, 'a', 3000));
    struct disk_journal j = {.record = {.article = {7, 0}, .part = {0, 3000, 1}}};
    TEST_ASSERT_EQUAL_INT(0, ask(&j.msg, DISK_JOURNAL));
    fail_sync_code = -EIO;
    TEST_ASSERT_EQUAL_INT(-EIO, close_file(1, 7, "x", made));
    fail_sync_code = 0;
    TEST_ASSERT_EQUAL_INT(1, lost_count);
    TEST_ASSERT_EQUAL_UINT32(7, lost_files[0]);
    TEST_ASSERT_EQUAL_INT(1, sync_calls);
    TEST_ASSERT_EQUAL_INT(-1, faccessat(root, "cat/job1/.7.part", F_OK, 0));
    TEST_ASSERT_EQUAL_INT(0, write_at(8, 0, 'b', 3000)); /* the others go on */
    j.record.article.file_id = 8;
    TEST_ASSERT_EQUAL_INT(0, ask(&j.msg, DISK_JOURNAL));
    stop();
    struct stat st;
    TEST_ASSERT_EQUAL_INT(0, fstatat(state, "queue.1.journal", &st, 0));
    unsigned char want[QUEUE_JOURNAL_RECORD], *got = malloc((size_t)st.st_size);
    TEST_ASSERT_NOT_NULL(got);
    int fd = openat(state, "queue.1.journal", O_RDONLY);
    TEST_ASSERT_EQUAL_INT(st.st_size, read(fd, got, (size_t)st.st_size));
    close(fd);
    queue_journal_encode(&j.record, want);
    TEST_ASSERT_EQUAL_MEMORY(want, got + st.st_size - QUEUE_JOURNAL_RECORD, QUEUE_JOURNAL_RECORD);
    j.record.article.file_id = 7;
    queue_journal_encode(&j.record, want);
    TEST_ASSERT_NULL(memmem(got, (size_t)st.st_size, want, QUEUE_JOURNAL_RECORD));
    free(got);
}

/* Closing one file writes out the records of all, so it syncs the data of all first. */
static void test_closing_syncs_what_the_records_name(void)
{
    char made[FSX_NAME_MAX + 1];
    TEST_ASSERT_EQUAL_INT(0, open_file(1, 7, 0));
    TEST_ASSERT_EQUAL_INT(0, open_file(1, 8, 0));
    TEST_ASSERT_EQUAL_INT(0, write_at(7, 0, 'a', 3000));
    struct disk_journal j = {.record = {.article = {7, 0}, .part = {0, 3000, 1}}};
    TEST_ASSERT_EQUAL_INT(0, ask(&j.msg, DISK_JOURNAL));
    TEST_ASSERT_EQUAL_INT(0, write_at(8, 0, 'b', 3000));
    TEST_ASSERT_EQUAL_INT(0, close_file(1, 8, "x", made));
    TEST_ASSERT_EQUAL_INT(0, faccessat(state, "queue.1.journal", F_OK, 0));
    TEST_ASSERT_EQUAL_INT(4, sync_calls); /* both files; the journal's head and its records */
}

/* More files than descriptors: all are written, none is mixed up, and the limit holds. */
static void test_more_files_than_descriptors(void)
{
    char made[FSX_NAME_MAX + 1], name[32], path[64];
    enum { FILES = DISK_FDS + 40 };
    int before = dir_open_fds();
    for (uint32_t i = 1; i <= FILES; i++) {
        TEST_ASSERT_EQUAL_INT(0, open_file(1, i, 0));
        TEST_ASSERT_EQUAL_INT(0, write_at(i, 0, 'a' + (int)(i % 20), 3000));
    }
    for (uint32_t i = 1; i <= FILES; i++) {
        TEST_ASSERT_EQUAL_INT(0, write_at(i, 3000, 'A' + (int)(i % 20), 3000));
        TEST_ASSERT_TRUE(dir_open_fds() <= before + DISK_FDS + 4);
    }
    for (uint32_t i = 1; i <= FILES; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, close_file(1, i, name, made), err.msg);
        snprintf(path, sizeof(path), "cat/job1/f%u", i);
        assert_bytes(path, (char[]){(char)('a' + (int)(i % 20)), (char)('A' + (int)(i % 20)), 0});
    }
    TEST_ASSERT_EQUAL_INT(before, dir_open_fds());
}

/* Deleting a job removes its directory and what is in it, links without what they point to, and nothing else. */
static void test_deleting_a_job(void)
{
    TEST_ASSERT_EQUAL_INT(0, open_file(1, 1, 0));
    TEST_ASSERT_EQUAL_INT(0, open_file(2, 2, 0));
    TEST_ASSERT_EQUAL_INT(0, write_at(1, 0, 'a', 100));
    TEST_ASSERT_EQUAL_INT(0, mkdirat(root, "cat/job1/sub", 0700));
    TEST_ASSERT_EQUAL_INT(0, symlinkat("../../../state", root, "cat/job1/sub/out"));
    close(openat(state, "precious", O_CREAT | O_WRONLY, 0600));
    struct disk_file_msg m = file_msg(1, 0, "", 0);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ask(&m.msg, DISK_DELETE), err.msg);
    TEST_ASSERT_EQUAL_INT(-1, faccessat(root, "cat/job1", F_OK, 0));
    TEST_ASSERT_EQUAL_INT(0, faccessat(root, "cat/job2/.2.part", F_OK, 0));
    TEST_ASSERT_EQUAL_INT(0, faccessat(state, "precious", F_OK, 0));
    TEST_ASSERT_EQUAL_INT(0, ask(&m.msg, DISK_DELETE)); /* again: nothing to do */
    m.dir = "../state";
    TEST_ASSERT_EQUAL_INT(ERR_UNSAFE, ask(&m.msg, DISK_DELETE));
    TEST_ASSERT_EQUAL_INT(ERR_NOT_FOUND, write_at(1, 0, 'a', 100));
    TEST_ASSERT_EQUAL_INT(0, write_at(2, 0, 'b', 100));
    m = file_msg(2, 2, "", 0);
    TEST_ASSERT_EQUAL_INT(0, ask(&m.msg, DISK_DELETE));
    TEST_ASSERT_EQUAL_INT(-1, faccessat(root, "cat/job2/.2.part", F_OK, 0));
}

/* A job that is renamed while it downloads goes on in its new place; a taken place gets a number. */
static void test_moving_a_job(void)
{
    char made[FSX_NAME_MAX + 1];
    TEST_ASSERT_EQUAL_INT(0, open_file(1, 1, 0));
    TEST_ASSERT_EQUAL_INT(0, write_at(1, 0, 'a', 3000));
    struct disk_file_msg m = file_msg(1, 0, "other/new name", 0);
    TEST_ASSERT_EQUAL_INT(0, mkdirat(root, "other", 0700));
    TEST_ASSERT_EQUAL_INT(0, mkdirat(root, "other/new name", 0700));
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ask(&m.msg, DISK_MOVE), err.msg);
    TEST_ASSERT_EQUAL_STRING("new name (2)", m.made);
    TEST_ASSERT_EQUAL_INT(0, write_at(1, 3000, 'b', 3000));
    TEST_ASSERT_EQUAL_INT(0, close_file(1, 1, "x", made));
    assert_bytes("other/new name (2)/x", "ab");
    struct disk_file_msg q = {.job_id = 1, .dir = "other/new name (2)", .name = ""};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ask(&q.msg, DISK_QUARANTINE), err.msg);
    assert_bytes(".quarantine/1/x", "ab");
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_parts_become_a_file);
    RUN_TEST(test_a_taken_name_gets_a_number);
    RUN_TEST(test_a_file_is_found_again);
    RUN_TEST(test_closing_twice_finds_the_file);
    RUN_TEST(test_a_full_disk_is_an_answer);
    RUN_TEST(test_a_failed_sync_loses_the_file);
    RUN_TEST(test_closing_syncs_what_the_records_name);
    RUN_TEST(test_more_files_than_descriptors);
    RUN_TEST(test_deleting_a_job);
    RUN_TEST(test_moving_a_job);
    return UNITY_END();
}
