/* fsx_open.c - places: one process per directory, nothing outside a directory, new files that are new. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fsx.h"
#include "base/name.h"

int fsx_lock(const struct fsx *fs, int dirfd, const char *name, struct err *e)
{
    int fd = fsx_open(fs, dirfd, name, O_RDWR | O_CREAT, 0600, e);
    if (fd < 0) {
        return fd;
    }
    char text[24] = "";
    int rv = fs->ops->flock(fs->arg, fd, LOCK_EX | LOCK_NB);
    if (rv == -EWOULDBLOCK) {
        /* The holder writes its pid just after it has the lock, so we may look too early. */
        (void)fs->ops->pread(fs->arg, fd, text, sizeof(text) - 1, 0);
        long pid = strtol(text, NULL, 10);
        rv = pid > 0 ? err_set(e, ERR_LOCKED, "%s: in use by process %ld", name, pid)
                     : err_sys(e, ERR_LOCKED, "%s", name);
        goto err_after_open;
    }
    if (rv != 0) {
        err_sys(e, rv, "%s: lock", name);
        goto err_after_open;
    }
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    rv = fs->ops->ftruncate(fs->arg, fd, 0);
    if (rv != 0) {
        err_sys(e, rv, "%s: truncate", name);
        goto err_after_open;
    }
    rv = fsx_pwrite_all(fs, fd, text, (size_t)n, 0, e);
    if (rv != 0) {
        err_wrap(e, rv, "%s", name);
        goto err_after_open;
    }
    return fd;

err_after_open:
    fsx_close(fs, fd, NULL);
    return rv;
}

/* The next component of *path into `part`; its length, 0 at the end, or an error. "." and "//" say nothing. */
static int next_part(const char **path, char *part, struct err *e)
{
    for (;;) {
        *path += strspn(*path, "/");
        size_t n = strcspn(*path, "/");
        if (n > FSX_NAME_MAX) {
            return err_sys(e, -ENAMETOOLONG, "%.32s...", *path);
        }
        memcpy(part, *path, n);
        part[n] = '\0';
        *path += n;
        if (strcmp(part, "..") == 0) {
            return err_set(e, ERR_UNSAFE, "\"..\" in a path");
        }
        if (strcmp(part, ".") != 0) {
            return (int)n;
        }
    }
}

/* What both ways of opening refuse, in the same words, before either is tried. */
static int check_path(const char *path, struct err *e)
{
    if (path[0] == '/' || path[0] == '\0') {
        return err_set(e, ERR_UNSAFE, "\"%s\": not a relative path", path);
    }
    char part[FSX_NAME_MAX + 1];
    int rv, parts = 0;
    while ((rv = next_part(&path, part, e)) > 0) {
        parts++;
    }
    return rv == 0 && parts == 0 ? err_set(e, ERR_UNSAFE, "a path without a name") : rv;
}

/* One directory down from *dir, which is closed unless it is the caller's own. */
static int step_into(const struct fsx *fs, int top, int *dir, const char *part, struct err *e)
{
    /* O_PATH without O_DIRECTORY opens a link itself, so that it can be told from a plain file. */
    int look = fsx_open(fs, *dir, part, O_PATH, 0, e);
    if (look < 0) {
        return look;
    }
    struct stat st;
    int rv = fs->ops->fstat(fs->arg, look, &st);
    if (rv != 0) {
        err_sys(e, rv, "%s: fstat", part);
    } else if (S_ISLNK(st.st_mode)) {
        rv = err_set(e, ERR_UNSAFE, "%s: is a symbolic link", part);
    } else if (!S_ISDIR(st.st_mode)) {
        rv = err_sys(e, -ENOTDIR, "%s", part);
    }
    int down = rv;
    if (rv == 0) { /* "." of what was looked at: it cannot have been exchanged in between */
        down = fsx_open(fs, look, ".", O_RDONLY | O_DIRECTORY, 0, e);
    }
    fsx_close(fs, look, NULL);
    if (down < 0) {
        return down;
    }
    if (*dir != top) {
        fsx_close(fs, *dir, NULL);
    }
    *dir = down;
    return 0;
}

static int open_by_steps(const struct fsx *fs, int top, const char *path, int flags, mode_t mode,
                         struct err *e)
{
    char part[FSX_NAME_MAX + 1], following[FSX_NAME_MAX + 1];
    int dir = top;
    int rv = next_part(&path, part, e);
    while (rv > 0 && (rv = next_part(&path, following, e)) > 0) {
        rv = step_into(fs, top, &dir, part, e);
        if (rv < 0) {
            break;
        }
        memcpy(part, following, sizeof(part));
        rv = 1;
    }
    if (rv == 0) {
        rv = fsx_open(fs, dir, part, flags, mode, e);
    }
    if (dir != top) {
        fsx_close(fs, dir, NULL);
    }
    return rv;
}

int fsx_open_beneath(const struct fsx *fs, int dirfd, const char *path, int flags, mode_t mode,
                     struct err *e)
{
    int fd = check_path(path, e);
    if (fd != 0) {
        return fd;
    }
    do {
        fd = fs->ops->open_beneath(fs->arg, dirfd, path, flags | O_CLOEXEC | O_NOFOLLOW, mode);
    } while (fd == -EINTR || fd == -EAGAIN); /* EAGAIN: something was renamed meanwhile */
    /* EPERM: also what a seccomp filter older than openat2 answers. If it was meant, we hear it again. */
    if (fd == -ENOSYS || fd == -EPERM) {
        fd = open_by_steps(fs, dirfd, path, flags, mode, e);
    } else if (fd < 0) {
        err_sys(e, fd, "%s: open", path);
    }
    if (fd == -ELOOP || fd == -EXDEV) {
        return err_set(e, ERR_UNSAFE, "%s: leads through a symbolic link", path);
    }
    return fd;
}

int fsx_mkdirs(const struct fsx *fs, int dirfd, const char *path, mode_t mode, struct err *e)
{
    int rv = check_path(path, e);
    if (rv != 0) {
        return rv;
    }
    char part[FSX_NAME_MAX + 1];
    int dir = dirfd;
    while ((rv = next_part(&path, part, e)) > 0) {
        rv = fs->ops->mkdirat(fs->arg, dir, part, mode);
        if (rv == 0) {
            rv = fsx_sync_dir(fs, dir, e);
        } else if (rv == -EEXIST) {
            rv = 0;
        } else {
            err_sys(e, rv, "%s: mkdir", part);
        }
        if (rv == 0) {
            rv = step_into(fs, dirfd, &dir, part, e);
        }
        if (rv != 0) {
            if (dir != dirfd) {
                fsx_close(fs, dir, NULL);
            }
            return rv;
        }
    }
    return dir;
}

int fsx_create_unique(const struct fsx *fs, int dirfd, const char *name, mode_t mode, char *made,
                      struct err *e)
{
    for (unsigned n = 1; n <= FSX_SUFFIX_MAX; n++) {
        name_numbered(name, n, made);
        int fd = fsx_open(fs, dirfd, made, O_RDWR | O_CREAT | O_EXCL, mode, e);
        if (fd != -EEXIST) {
            return fd;
        }
    }
    return err_set(e, ERR_EXISTS, "%s: taken, and so are %d variants of it", name,
                   FSX_SUFFIX_MAX - 1);
}
