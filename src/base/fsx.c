/* fsx.c - plain calls, and the replacement of a file. The order of steps is in fsx.h; the reasons why each
 * is where it is stand beside it here. */
#include "base/fsx.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/name.h"

/* A call that was interrupted before it did anything is made again. Never used for close (the descriptor is
 * gone) nor for the syncs (see fsx.h). */
#define RETRY_EINTR(rv, call) \
    do {                      \
        (rv) = (call);        \
    } while ((rv) == -EINTR)

int fsx_open(const struct fsx *fs, int dirfd, const char *name, int flags, mode_t mode,
             struct err *e)
{
    int fd;
    RETRY_EINTR(fd, fs->ops->openat(fs->arg, dirfd, name, flags | O_CLOEXEC | O_NOFOLLOW, mode));
    return fd >= 0 ? fd : err_sys(e, fd, "%s: open", name);
}

int fsx_close(const struct fsx *fs, int fd, struct err *e)
{
    int rv = fs->ops->close(fs->arg, fd);
    return rv == 0 || rv == -EINTR ? 0 : err_sys(e, rv, "close");
}

/* at < 0: at the file's own position. */
static int write_all(const struct fsx *fs, int fd, const char *p, size_t n, off_t at, struct err *e)
{
    while (n > 0) {
        ssize_t put;
        if (at < 0) {
            RETRY_EINTR(put, fs->ops->write(fs->arg, fd, p, n));
        } else {
            RETRY_EINTR(put, fs->ops->pwrite(fs->arg, fd, p, n, at));
        }
        if (put <= 0) { /* 0 is not an answer to n > 0: without this a broken filesystem spins us */
            return err_sys(e, put < 0 ? (int)put : -EIO, "write");
        }
        p += put;
        n -= (size_t)put;
        at += at < 0 ? 0 : put;
    }
    return 0;
}

int fsx_pwrite_all(const struct fsx *fs, int fd, const void *p, size_t n, uint64_t at,
                   struct err *e)
{
    uint64_t end;
    if (__builtin_add_overflow(at, n, &end) || end > INT64_MAX) {
        return err_sys(e, -EFBIG, "write");
    }
    return write_all(fs, fd, p, n, (off_t)at, e);
}

static int sync_file(const struct fsx *fs, int fd, struct err *e)
{
    int rv = fs->ops->fsync(fs->arg, fd);
    return rv == 0 ? 0 : err_sys(e, rv, "fsync");
}

int fsx_fdatasync(const struct fsx *fs, int fd, struct err *e)
{
    int rv = fs->ops->fdatasync(fs->arg, fd);
    return rv == 0 ? 0 : err_sys(e, rv, "fdatasync");
}

int fsx_list(const struct fsx *fs, int dirfd, fsx_name_cb each, void *ctx, struct err *e)
{
    int rv = fs->ops->list(fs->arg, dirfd, each, ctx);
    return rv < 0 ? err_sys(e, rv, "list directory") : rv;
}

int fsx_remove(const struct fsx *fs, int dirfd, const char *name, struct err *e)
{
    int rv = fs->ops->unlinkat(fs->arg, dirfd, name, 0);
    return rv < 0 && rv != -ENOENT ? err_sys(e, rv, "remove %s", name) : 0;
}

int fsx_sync_dir(const struct fsx *fs, int dirfd, struct err *e)
{
    int rv = fs->ops->fsync(fs->arg, dirfd);
    return rv == 0 || rv == -EINVAL ? 0 : err_sys(e, rv, "fsync of the directory");
}

int fsx_preallocate(const struct fsx *fs, int fd, uint64_t size, struct err *e)
{
    if (size == 0) { /* fallocate calls that invalid */
        return 0;
    }
    if (size > INT64_MAX) {
        return err_sys(e, -EFBIG, "preallocate");
    }
    int rv;
    RETRY_EINTR(rv, fs->ops->fallocate(fs->arg, fd, (off_t)size));
    if (rv == -EOPNOTSUPP || rv == -ENOSYS) {
        RETRY_EINTR(rv, fs->ops->ftruncate(fs->arg, fd, (off_t)size));
        if (rv == -EOPNOTSUPP ||
            rv == -EPERM) { /* EPERM: POSIX for "cannot extend files this way" */
            return 0;
        }
    }
    return rv == 0 ? 0 : err_sys(e, rv, "preallocate %" PRIu64 " bytes", size);
}

/* Up to n bytes from the start; fewer only at the end of the file. */
static int read_full(const struct fsx *fs, int fd, char *p, size_t n, size_t *got, struct err *e)
{
    *got = 0;
    while (*got < n) {
        ssize_t r;
        RETRY_EINTR(r, fs->ops->pread(fs->arg, fd, p + *got, n - *got, (off_t)*got));
        if (r < 0) {
            return err_sys(e, (int)r, "read");
        }
        if (r == 0) {
            break;
        }
        *got += (size_t)r;
    }
    return 0;
}

int fsx_read_all(const struct fsx *fs, int dirfd, const char *name, size_t max, char **bytes,
                 size_t *len, struct err *e)
{
    PRE(max < SIZE_MAX);
    /* O_NONBLOCK: opening a pipe that somebody put in the file's place must not wait for a writer. */
    int fd = fsx_open(fs, dirfd, name, O_RDONLY | O_NONBLOCK, 0, e);
    if (fd < 0) {
        return fd;
    }
    char *p = NULL;
    struct stat st;
    int rv = fs->ops->fstat(fs->arg, fd, &st);
    if (rv != 0) {
        rv = err_sys(e, rv, "%s: fstat", name);
        goto err_after_open;
    }
    if (!S_ISREG(st.st_mode)) {
        rv = err_set(e, ERR_INVALID, "%s: not a regular file", name);
        goto err_after_open;
    }
    if ((uint64_t)st.st_size > max) {
        rv = err_set(e, ERR_LIMIT, "%s: %jd bytes, more than the %zu allowed", name,
                     (intmax_t)st.st_size, max);
        goto err_after_open;
    }
    size_t size = (size_t)st.st_size;
    p = mem_alloc(size + 1); /* the spare byte shows whether it grew, and then ends the string */
    if (p == NULL) {
        rv = err_sys(e, -ENOMEM, "%s", name);
        goto err_after_open;
    }
    rv = read_full(fs, fd, p, size + 1, len, e);
    if (rv != 0) {
        err_wrap(e, rv, "%s", name);
        goto err_after_alloc;
    }
    if (*len > size) {
        rv = err_sys(e, ERR_CONFLICT, "%s: read", name);
        goto err_after_alloc;
    }
    fsx_close(fs, fd, NULL); /* nothing was written: nothing can be lost here */
    p[*len] = '\0';
    *bytes = p;
    return 0;

err_after_alloc:
    mem_free(p);
err_after_open:
    fsx_close(fs, fd, NULL);
    return rv;
}

/* "name.N.tmp"; false when that is too long to be a name. */
static bool tmp_name(char *out, const char *name, int slot)
{
    return snprintf(out, FSX_NAME_MAX + 1, "%s.%d.tmp", name, slot) <= FSX_NAME_MAX;
}

int fsx_begin(struct fsx_writer *w, const struct fsx *fs, int dirfd, const char *name,
              struct err *e)
{
    *w = (struct fsx_writer){.fs = fs, .dirfd = dirfd, .fd = -EEXIST};
    if (!tmp_name(w->tmp, name, FSX_TMP_SLOTS - 1)) {
        return err_sys(e, -ENAMETOOLONG, "%s", name);
    }
    memcpy(w->name, name, strlen(name) + 1);
    for (int slot = 0; w->fd == -EEXIST && slot < FSX_TMP_SLOTS; slot++) {
        tmp_name(w->tmp, name, slot);
        w->fd = fsx_open(fs, dirfd, w->tmp, O_WRONLY | O_CREAT | O_EXCL, 0600, e);
    }
    return w->fd >= 0 ? 0 : err_wrap(e, w->fd, "%s", name);
}

int fsx_append(struct fsx_writer *w, const void *p, size_t n, struct err *e)
{
    if (w->failed.code == 0) {
        write_all(w->fs, w->fd, p, n, -1, &w->failed);
    }
    if (w->failed.code != 0) {
        return err_set(e, w->failed.code, "%s: %s", w->name, w->failed.msg);
    }
    return 0;
}

static void remove_file(const struct fsx *fs, int dirfd, const char *name)
{
    (void)fs->ops->unlinkat(fs->arg, dirfd, name,
                            0); /* a leftover is harmless, see fsx_remove_tmp */
}

void fsx_abort(struct fsx_writer *w)
{
    fsx_close(w->fs, w->fd, NULL);
    remove_file(w->fs, w->dirfd, w->tmp);
}

/* The link is made under a free slot's name and renamed, because link() itself cannot replace: unlinking
 * `prev` first would leave a moment without it. */
static int link_over(const struct fsx_writer *w, const char *prev)
{
    const struct fsx *fs = w->fs;
    char tmp[FSX_NAME_MAX + 1];
    int rv = -EEXIST;
    for (int slot = 0; rv == -EEXIST && slot < FSX_TMP_SLOTS; slot++) {
        tmp_name(tmp, w->name, slot);
        rv = fs->ops->linkat(fs->arg, w->dirfd, w->name, tmp);
    }
    if (rv != 0) {
        return rv;
    }
    rv = fs->ops->renameat(fs->arg, w->dirfd, tmp, w->dirfd, prev);
    /* Also after success: rename() between two links of one file does nothing and leaves both, and that is
     * what we meet after a cut between the two renames of an earlier save. */
    remove_file(fs, w->dirfd, tmp);
    return rv;
}

static int keep_previous(const struct fsx_writer *w, const char *prev, struct err *e)
{
    int rv = link_over(w, prev);
    if (rv == -EPERM || rv == -EOPNOTSUPP || rv == -ENOSYS || rv == -EMLINK) {
        rv = w->fs->ops->renameat(w->fs->arg, w->dirfd, w->name, w->dirfd, prev);
    }
    /* ENOENT: there is nothing to keep yet. */
    return rv == 0 || rv == -ENOENT ? 0 : err_sys(e, rv, "keep as %s", prev);
}

int fsx_commit(struct fsx_writer *w, const char *prev, struct err *e)
{
    const struct fsx *fs = w->fs;
    int rv = fsx_append(w, NULL, 0, e); /* says again what failed before */
    if (rv != 0) {
        fsx_abort(w);
        return rv;
    }
    rv = sync_file(fs, w->fd,
                   e); /* before the rename, or the name could survive without the bytes */
    if (rv != 0) {
        fsx_abort(w);
        return err_wrap(e, rv, "%s", w->name);
    }
    rv = fsx_close(fs, w->fd, e); /* network mounts say only here that they are full */
    if (rv == 0 && prev != NULL) {
        rv = keep_previous(w, prev, e);
    }
    if (rv == 0) {
        rv = fs->ops->renameat(fs->arg, w->dirfd, w->tmp, w->dirfd, w->name);
        if (rv != 0) {
            err_sys(e, rv, "rename");
        }
    }
    if (rv != 0) {
        remove_file(fs, w->dirfd, w->tmp);
        return err_wrap(e, rv, "%s", w->name);
    }
    rv = fsx_sync_dir(fs, w->dirfd, e); /* or a power cut brings the old file back */
    return rv == 0 ? 0 : err_wrap(e, rv, "%s", w->name);
}

int fsx_replace(const struct fsx *fs, int dirfd, const char *name, const char *prev,
                const void *bytes, size_t len, struct err *e)
{
    struct fsx_writer w;
    int rv = fsx_begin(&w, fs, dirfd, name, e);
    if (rv == 0) {
        fsx_append(&w, bytes, len, NULL);
        rv = fsx_commit(&w, prev, e);
    }
    return rv;
}

int fsx_remove_tmp(const struct fsx *fs, int dirfd, const char *name, struct err *e)
{
    for (int slot = 0; slot < FSX_TMP_SLOTS; slot++) {
        char tmp[FSX_NAME_MAX + 1];
        int rv = tmp_name(tmp, name, slot) ? fs->ops->unlinkat(fs->arg, dirfd, tmp, 0) : 0;
        if (rv != 0 && rv != -ENOENT) {
            return err_sys(e, rv, "%s: remove", tmp);
        }
    }
    return 0;
}

int fsx_set_aside(const struct fsx *fs, int dirfd, const char *name, int64_t stamp, char *aside,
                  struct err *e)
{
    char want[FSX_NAME_MAX + 1];
    if (snprintf(want, sizeof(want), "%s.corrupt-%" PRId64, name, stamp) > FSX_NAME_MAX) {
        return err_sys(e, -ENAMETOOLONG, "%s: set aside", name);
    }
    /* rename() overwrites, so it gets an empty file of our own to overwrite. */
    int fd = fsx_create_unique(fs, dirfd, want, 0600, aside, e);
    if (fd < 0) {
        return err_wrap(e, fd, "%s: set aside", name);
    }
    fsx_close(fs, fd, NULL);
    int rv = fs->ops->renameat(fs->arg, dirfd, name, dirfd, aside);
    if (rv != 0) {
        remove_file(fs, dirfd, aside);
        return err_sys(e, rv, "%s: set aside as %s", name, aside);
    }
    rv = fsx_sync_dir(fs, dirfd, e);
    return rv == 0 ? 0 : err_wrap(e, rv, "%s: set aside", name);
}
