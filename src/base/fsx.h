/* fsx.h - files that must survive: replace, preallocate, lock, open without leaving a directory.
 *
 * Every system call goes through `struct fsx_ops`, so that a test can fail, tear or lose any of them
 * (tests/lib/fsim.h). A `struct fsx` is passed in, never global; `fsx_kernel` is the real one. Functions may
 * be called from any thread and block: never call them on the coordinator. Names are single components and
 * directories are descriptors opened for reading, so nothing depends on a path or the working directory.
 *
 * Three rules hold everywhere: EINTR and short transfers are dealt with in here and nowhere else; a symbolic
 * link is never followed; and a sync that failed (also with EINTR, which may hide a lost write-back error) is
 * never repeated on the same descriptor: the kernel would answer OK although the data is gone. The caller
 * counts everything since the last good sync as lost and writes a new file. */
#ifndef BASE_FSX_H
#define BASE_FSX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/* Told each name of a directory, in no order, without "." and ".."; it may remove that one. Not 0: enough. */
typedef int (*fsx_name_cb)(void *ctx, const char *name);

/* Each returns what the system call does, with -errno instead of -1. */
struct fsx_ops {
    int (*openat)(void *arg, int dirfd, const char *name, int flags, mode_t mode);
    int (*open_beneath)(void *arg, int dirfd, const char *path, int flags, mode_t mode);
    int (*close)(void *arg, int fd);
    ssize_t (*write)(void *arg, int fd, const void *p, size_t n);
    ssize_t (*pwrite)(void *arg, int fd, const void *p, size_t n, off_t at);
    ssize_t (*pread)(void *arg, int fd, void *p, size_t n, off_t at);
    int (*fsync)(void *arg, int fd);
    int (*fdatasync)(void *arg, int fd);
    int (*fallocate)(void *arg, int fd, off_t size);
    int (*ftruncate)(void *arg, int fd, off_t size);
    int (*fstat)(void *arg, int fd, struct stat *st);
    int (*flock)(void *arg, int fd, int op);
    int (*mkdirat)(void *arg, int dirfd, const char *name, mode_t mode);
    int (*linkat)(void *arg, int dirfd, const char *from, const char *to);
    int (*renameat)(void *arg, int from_dir, const char *from, int to_dir, const char *to);
    int (*unlinkat)(void *arg, int dirfd, const char *name, int flags);
    int (*list)(void *arg, int dirfd, fsx_name_cb each,
                void *ctx); /* first non-zero answer ends it */
};

struct fsx {
    const struct fsx_ops *ops;
    void *arg; /* first argument of every op */
};

extern const struct fsx fsx_kernel;

enum {
    FSX_NAME_MAX = 255,  /* bytes of one component */
    FSX_TMP_SLOTS = 64,  /* unfinished files a name may have beside it */
    FSX_SUFFIX_MAX = 999 /* "name (999).ext" is the last try of fsx_create_unique */
};

/* ---- plain calls, with their errors said ---- */

/* openat with O_CLOEXEC|O_NOFOLLOW added. The descriptor, or an error. */
int fsx_open(const struct fsx *fs, int dirfd, const char *name, int flags, mode_t mode,
             struct err *e);
/* `fd` is gone afterwards, whatever is returned. */
int fsx_close(const struct fsx *fs, int fd, struct err *e);
/* All of it or an error; after an error any part may have been written. */
int fsx_pwrite_all(const struct fsx *fs, int fd, const void *p, size_t n, uint64_t at,
                   struct err *e);
/* Data and size are on the disk. */
int fsx_fdatasync(const struct fsx *fs, int fd, struct err *e);
/* Names created, renamed and removed in this directory are on the disk. A filesystem that cannot sync
 * directories at all (EINVAL: some network mounts) is taken at its word. */
int fsx_sync_dir(const struct fsx *fs, int dirfd, struct err *e);
/* Tells every name in the directory. What each() answers, if not 0, ends it and is returned. */
int fsx_list(const struct fsx *fs, int dirfd, fsx_name_cb each, void *ctx, struct err *e);
/* The name is gone, or was not there. Not synced. */
int fsx_remove(const struct fsx *fs, int dirfd, const char *name, struct err *e);
/* Space for `size` bytes is taken now, so that ENOSPC is met here and not in the middle of a download. Where
 * the filesystem cannot do that, the size is set (or, if even that is unknown to it, nothing happens). */
int fsx_preallocate(const struct fsx *fs, int fd, uint64_t size, struct err *e);
/* The whole file, with a zero byte behind it that is not counted; mem_free() it. ERR_LIMIT above `max` bytes,
 * ERR_INVALID when it is not a regular file, ERR_CONFLICT when it grows while being read. */
int fsx_read_all(const struct fsx *fs, int dirfd, const char *name, size_t max, char **bytes,
                 size_t *len, struct err *e);

/* ---- replacing a file ----
 *
 * "name.N.tmp" (O_EXCL, 0600, N the first free slot) -> write -> fsync -> close -> rename over `name` ->
 * fsync(dir). At every moment, also of a power cut, `name` is the complete old file or the complete new one.
 *
 * With `prev`, the file that is replaced stays under that name: link(name, tmp2), rename(tmp2, prev),
 * rename(tmp, name). Both renames replace whole files, so `name` and `prev` each hold a complete generation
 * at every moment, whichever of the renames reached the disk. Where hard links are unknown (FAT, some network
 * mounts) it is rename(name, prev), rename(tmp, name): a cut in between leaves only `prev`. A loader that
 * tries `name` and then `prev` always finds a complete generation.
 *
 * On failure the old file is untouched and the unfinished one is gone, but for a failure of the very last
 * step: then the new file is in place and only its survival of a power cut is unknown. In both cases: not
 * saved, try again. */
int fsx_replace(const struct fsx *fs, int dirfd, const char *name, const char *prev,
                const void *bytes, size_t len, struct err *e);

/* The same in pieces. After fsx_begin, exactly one of fsx_commit and fsx_abort; a failed fsx_append is
 * remembered, so that fsx_commit then fails too. `name` is copied. Nothing is buffered: append large pieces. */
struct fsx_writer {
    const struct fsx *fs;        /* borrowed until commit or abort */
    int dirfd;                   /* borrowed likewise */
    int fd;                      /* the unfinished file */
    struct err failed;           /* of an append; code 0: none */
    char name[FSX_NAME_MAX + 1]; /* what it will be called */
    char tmp[FSX_NAME_MAX + 1];  /* what it is called now */
};
int fsx_begin(struct fsx_writer *w, const struct fsx *fs, int dirfd, const char *name,
              struct err *e);
int fsx_append(struct fsx_writer *w, const void *p, size_t n, struct err *e);
int fsx_commit(struct fsx_writer *w, const char *prev, struct err *e);
void fsx_abort(struct fsx_writer *w);

/* Removes what a crash left of unfinished replacements of `name`. At start, under the lock: a slot that is
 * never cleared stays taken. */
int fsx_remove_tmp(const struct fsx *fs, int dirfd, const char *name, struct err *e);

/* A file that cannot be trusted gets out of the way: renamed to "name.corrupt-<stamp>", or with " (2)" and so
 * on when that is taken; nothing is overwritten. `aside` (FSX_NAME_MAX + 1 bytes) is told the name. */
int fsx_set_aside(const struct fsx *fs, int dirfd, const char *name, int64_t stamp, char *aside,
                  struct err *e);

/* ---- places ---- */

/* Takes the lock file `name` for this process and writes our pid into it. The descriptor: closing it, or
 * dying, lets go. ERR_LOCKED, naming the holder's pid, when somebody else has it. The file stays. */
int fsx_lock(const struct fsx *fs, int dirfd, const char *name, struct err *e);

/* Opens `path` ("dir/sub/file") below `dirfd`. ERR_UNSAFE for an absolute or empty path, a ".." in it, or a
 * symbolic link anywhere on the way, the last component included. */
int fsx_open_beneath(const struct fsx *fs, int dirfd, const char *path, int flags, mode_t mode,
                     struct err *e);
/* Makes every missing directory of `path` below `dirfd`, durably, and opens the last one. Same refusals. */
int fsx_mkdirs(const struct fsx *fs, int dirfd, const char *path, mode_t mode, struct err *e);

/* Creates a new file for output, read and write, that was not there before in any form (also not as a link).
 * When the name is taken: "name (2).ext", "name (3).ext" (see name_numbered), ERR_EXISTS after
 * FSX_SUFFIX_MAX. `made` (FSX_NAME_MAX + 1 bytes) is told the name. */
int fsx_create_unique(const struct fsx *fs, int dirfd, const char *name, mode_t mode, char *made,
                      struct err *e);

#endif
