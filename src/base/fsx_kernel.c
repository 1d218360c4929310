/* fsx_kernel.c - the ops of fsx.h that call the kernel. No policy here: one call each, -errno on failure. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fsx.h"

static int result(int rv)
{
    return rv < 0 ? -errno : rv;
}

static ssize_t result_n(ssize_t rv)
{
    return rv < 0 ? -errno : rv;
}

static int k_openat(void *arg, int dirfd, const char *name, int flags, mode_t mode)
{
    (void)arg;
    return result(openat(dirfd, name, flags, mode));
}

static int k_open_beneath(void *arg, int dirfd, const char *path, int flags, mode_t mode)
{
    (void)arg;
    struct open_how how = {
        .flags = (unsigned)flags,
        .mode = (flags & O_CREAT) ? mode : 0, /* the kernel refuses a mode that has no use */
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };
    return result((int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how)));
}

static int k_close(void *arg, int fd)
{
    (void)arg;
    return result(close(fd));
}

static ssize_t k_write(void *arg, int fd, const void *p, size_t n)
{
    (void)arg;
    return result_n(write(fd, p, n));
}

static ssize_t k_pwrite(void *arg, int fd, const void *p, size_t n, off_t at)
{
    (void)arg;
    return result_n(pwrite(fd, p, n, at));
}

static ssize_t k_pread(void *arg, int fd, void *p, size_t n, off_t at)
{
    (void)arg;
    return result_n(pread(fd, p, n, at));
}

static int k_fsync(void *arg, int fd)
{
    (void)arg;
    return result(fsync(fd));
}

static int k_fdatasync(void *arg, int fd)
{
    (void)arg;
    return result(fdatasync(fd));
}

static int k_fallocate(void *arg, int fd, off_t size)
{
    (void)arg;
    return result(
        fallocate(fd, 0, 0, size)); /* posix_fallocate would write zeros where unsupported */
}

static int k_ftruncate(void *arg, int fd, off_t size)
{
    (void)arg;
    return result(ftruncate(fd, size));
}

static int k_fstat(void *arg, int fd, struct stat *st)
{
    (void)arg;
    return result(fstat(fd, st));
}

static int k_flock(void *arg, int fd, int op)
{
    (void)arg;
    return result(flock(fd, op));
}

static int k_mkdirat(void *arg, int dirfd, const char *name, mode_t mode)
{
    (void)arg;
    return result(mkdirat(dirfd, name, mode));
}

static int k_linkat(void *arg, int dirfd, const char *from, const char *to)
{
    (void)arg;
    return result(linkat(dirfd, from, dirfd, to, 0));
}

static int k_renameat(void *arg, int from_dir, const char *from, int to_dir, const char *to)
{
    (void)arg;
    return result(renameat(from_dir, from, to_dir, to));
}

static int k_unlinkat(void *arg, int dirfd, const char *name, int flags)
{
    (void)arg;
    return result(unlinkat(dirfd, name, flags));
}

/* A descriptor of its own: the caller's position in the directory is not ours to move. */
static int k_list(void *arg, int dirfd, fsx_name_cb each, void *ctx)
{
    (void)arg;
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rv = 0;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (d == NULL) {
        rv = -errno;
        if (fd >= 0) {
            close(fd);
        }
        return rv;
    }
    for (errno = 0; rv == 0;) {
        const struct dirent *entry = readdir(d);
        if (entry == NULL) {
            rv = -errno;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            rv = each(ctx, entry->d_name);
            errno = 0;
        }
    }
    closedir(d);
    return rv;
}

static const struct fsx_ops kernel_ops = {
    .openat = k_openat,
    .open_beneath = k_open_beneath,
    .close = k_close,
    .write = k_write,
    .pwrite = k_pwrite,
    .pread = k_pread,
    .fsync = k_fsync,
    .fdatasync = k_fdatasync,
    .fallocate = k_fallocate,
    .ftruncate = k_ftruncate,
    .fstat = k_fstat,
    .flock = k_flock,
    .mkdirat = k_mkdirat,
    .linkat = k_linkat,
    .renameat = k_renameat,
    .unlinkat = k_unlinkat,
    .list = k_list,
};

const struct fsx fsx_kernel = {&kernel_ops, NULL};
