/* fsx on the real kernel: what fsim only claims to know. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fsx.h"
#include "base/mem.h"
#include "lib/dir.h"
#include "unity.h"

static struct dir d;
static struct err e;
static int fds;

void setUp(void)
{
    fds = dir_open_fds();
    dir_make(&d);
    err_clear(&e);
}

void tearDown(void)
{
    dir_remove(&d);
    TEST_ASSERT_EQUAL_INT(fds, dir_open_fds());
}

static void put(const char *name, const char *text)
{
    int fd = openat(d.fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    TEST_ASSERT_TRUE(fd >= 0);
    TEST_ASSERT_EQUAL_INT(strlen(text), write(fd, text, strlen(text)));
    close(fd);
}

static void assert_holds(int dirfd, const char *name, const char *text)
{
    char *bytes;
    size_t len;
    TEST_ASSERT_EQUAL_INT_MESSAGE(
        0, fsx_read_all(&fsx_kernel, dirfd, name, 1 << 20, &bytes, &len, &e), e.msg);
    TEST_ASSERT_EQUAL_STRING(text, bytes);
    mem_free(bytes);
}

/* A replaced file has the new content, private permissions, and the old one beside it under the name asked for. */
static void test_replace_keeps_the_previous_generation(void)
{
    TEST_ASSERT_EQUAL_INT(0, fsx_replace(&fsx_kernel, d.fd, "q", "q.prev", "one", 3, &e));
    TEST_ASSERT_EQUAL_INT(0, fsx_replace(&fsx_kernel, d.fd, "q", "q.prev", "two", 3, &e));
    TEST_ASSERT_EQUAL_INT(0, fsx_replace(&fsx_kernel, d.fd, "q", "q.prev", "three", 5, &e));
    assert_holds(d.fd, "q", "three");
    assert_holds(d.fd, "q.prev", "two");
    TEST_ASSERT_EQUAL_INT(2, dir_count(d.path));
    struct stat st;
    TEST_ASSERT_EQUAL_INT(0, fstatat(d.fd, "q", &st, 0));
    TEST_ASSERT_EQUAL_HEX(0600, st.st_mode & 07777);
}

/* A link in the file's place is replaced, never followed. */
static void test_replace_does_not_write_through_a_link(void)
{
    put("victim", "precious");
    TEST_ASSERT_EQUAL_INT(0, symlinkat("victim", d.fd, "q"));
    TEST_ASSERT_EQUAL_INT(0, fsx_replace(&fsx_kernel, d.fd, "q", NULL, "new", 3, &e));
    assert_holds(d.fd, "victim", "precious");
    assert_holds(d.fd, "q", "new");
}

/* On a full disk the old file stays whole, nothing unfinished stays behind, and the error says why; once there is
 * room the same save succeeds. */
static void test_a_full_disk_leaves_the_old_file(void)
{
    if (geteuid() != 0 || mount("tmpfs", d.path, "tmpfs", 0, "size=256k") != 0) {
        TEST_IGNORE_MESSAGE("mounting a small tmpfs needs root");
    }
    int dirfd = open(d.path, O_RDONLY | O_DIRECTORY);
    static char big[512 * 1024], fits[100 * 1024];
    memset(big, 'b', sizeof(big));
    memset(fits, 'f', sizeof(fits));
    int saved = fsx_replace(&fsx_kernel, dirfd, "q", "q.prev", "old", 3, &e);
    int full = fsx_replace(&fsx_kernel, dirfd, "q", "q.prev", big, sizeof(big), &e);
    char said[ERR_MSG_MAX];
    memcpy(said, e.msg, sizeof(said));
    int entries = dir_count(d.path);
    char *bytes = NULL;
    size_t len = 0;
    int read = fsx_read_all(&fsx_kernel, dirfd, "q", 1 << 20, &bytes, &len, &e);
    bool same = read == 0 && strcmp(bytes, "old") == 0;
    mem_free(bytes);
    int later = fsx_replace(&fsx_kernel, dirfd, "q", "q.prev", fits, sizeof(fits), &e);
    int room = fsx_open(&fsx_kernel, dirfd, "data", O_RDWR | O_CREAT, 0600, &e);
    int prealloc = fsx_preallocate(&fsx_kernel, room, 1 << 20, &e);
    close(room);
    close(dirfd);
    TEST_ASSERT_EQUAL_INT(0,
                          umount(d.path)); /* first: a failed assertion must not leave it mounted */
    TEST_ASSERT_EQUAL_INT(0, saved);
    TEST_ASSERT_EQUAL_INT(-ENOSPC, full);
    TEST_ASSERT_NOT_NULL(strstr(said, "no space left on device"));
    TEST_ASSERT_EQUAL_INT(1, entries);
    TEST_ASSERT_TRUE(same);
    TEST_ASSERT_EQUAL_INT(0, later);
    TEST_ASSERT_EQUAL_INT(-ENOSPC, prealloc);
}

/* The second process that wants the lock is told who has it; when the first dies, it is free. */
static void test_one_process_holds_the_lock(void)
{
    int to_child[2], to_parent[2];
    TEST_ASSERT_EQUAL_INT(0, pipe(to_child));
    TEST_ASSERT_EQUAL_INT(0, pipe(to_parent));
    pid_t child = fork();
    if (child == 0) {
        char c = fsx_lock(&fsx_kernel, d.fd, "lock", &e) >= 0 ? 'y' : 'n';
        if (write(to_parent[1], &c, 1) == 1 && read(to_child[0], &c, 1) == 1) {
            _exit(0);
        }
        _exit(1);
    }
    char c = 0;
    TEST_ASSERT_EQUAL_INT(1, read(to_parent[0], &c, 1));
    TEST_ASSERT_EQUAL_INT('y', c);
    TEST_ASSERT_EQUAL_INT(ERR_LOCKED, fsx_lock(&fsx_kernel, d.fd, "lock", &e));
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", (int)child);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(e.msg, pid), e.msg);
    TEST_ASSERT_EQUAL_INT(1, write(to_child[1], "x", 1));
    int status;
    waitpid(child, &status, 0);
    int fd = fsx_lock(&fsx_kernel, d.fd, "lock", &e);
    TEST_ASSERT_TRUE_MESSAGE(fd >= 0, e.msg);
    close(fd);
    for (int i = 0; i < 2; i++) {
        close(to_child[i]);
        close(to_parent[i]);
    }
}

/* The same refusals when the kernel has openat2 and when it has not. */
static int no_openat2(void *arg, int dirfd, const char *path, int flags, mode_t mode)
{
    (void)arg, (void)dirfd, (void)path, (void)flags, (void)mode;
    return -ENOSYS;
}

/* Nothing above the directory is reached: not by "..", not absolutely, not through a link anywhere on the way. */
static void test_open_beneath_stays_beneath(void)
{
    struct fsx_ops old = *fsx_kernel.ops;
    old.open_beneath = no_openat2;
    const struct fsx both[] = {fsx_kernel, {&old, NULL}};
    TEST_ASSERT_EQUAL_INT(0, mkdirat(d.fd, "in", 0700));
    TEST_ASSERT_EQUAL_INT(0, mkdirat(d.fd, "in/sub", 0700));
    put("in/sub/file", "x");
    put("outside", "secret");
    TEST_ASSERT_EQUAL_INT(0, symlinkat("..", d.fd, "in/up"));
    TEST_ASSERT_EQUAL_INT(0, symlinkat("sub", d.fd, "in/side"));
    TEST_ASSERT_EQUAL_INT(0, symlinkat("../outside", d.fd, "in/link"));
    int in = openat(d.fd, "in", O_RDONLY | O_DIRECTORY);
    static const char *const unsafe[] = {
        "../outside",  "/etc/passwd", "sub/../../outside", "up/outside", "side/file", "link", "",
        "sub/../file", "..",
    };
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++) {
            int fd = fsx_open_beneath(&both[k], in, unsafe[i], O_RDONLY, 0, &e);
            TEST_ASSERT_EQUAL_INT_MESSAGE(ERR_UNSAFE, fd, unsafe[i]);
            TEST_ASSERT_NOT_EQUAL('\0', e.msg[0]);
        }
        int fd = fsx_open_beneath(&both[k], in, "sub/file", O_RDONLY, 0, &e);
        TEST_ASSERT_TRUE_MESSAGE(fd >= 0, e.msg);
        close(fd);
        TEST_ASSERT_EQUAL_INT(-ENOENT, fsx_open_beneath(&both[k], in, "sub/no", O_RDONLY, 0, &e));
        fd = fsx_mkdirs(&both[k], in, "a/b/c", 0700, &e);
        TEST_ASSERT_TRUE_MESSAGE(fd >= 0, e.msg);
        close(fd);
        TEST_ASSERT_EQUAL_INT(ERR_UNSAFE, fsx_mkdirs(&both[k], in, "up/x", 0700, &e));
        TEST_ASSERT_EQUAL_INT(ERR_UNSAFE, fsx_mkdirs(&both[k], in, "../x", 0700, &e));
    }
    TEST_ASSERT_EQUAL_INT(-1, faccessat(d.fd, "x", F_OK, 0));
    close(in);
}

/* What is set aside gets a name that tells when, and a second one does not cover the first. */
static void test_set_aside(void)
{
    char aside[FSX_NAME_MAX + 1], second[FSX_NAME_MAX + 1];
    put("q", "bad");
    TEST_ASSERT_EQUAL_INT(0, fsx_set_aside(&fsx_kernel, d.fd, "q", 1795000000, aside, &e));
    TEST_ASSERT_EQUAL_STRING("q.corrupt-1795000000", aside);
    put("q", "worse");
    TEST_ASSERT_EQUAL_INT(0, fsx_set_aside(&fsx_kernel, d.fd, "q", 1795000000, second, &e));
    assert_holds(d.fd, aside, "bad");
    assert_holds(d.fd, second, "worse");
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_replace_keeps_the_previous_generation);
    RUN_TEST(test_replace_does_not_write_through_a_link);
    RUN_TEST(test_a_full_disk_leaves_the_old_file);
    RUN_TEST(test_one_process_holds_the_lock);
    RUN_TEST(test_open_beneath_stays_beneath);
    RUN_TEST(test_set_aside);
    return UNITY_END();
}
