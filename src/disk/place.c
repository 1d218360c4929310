/* place.c - see place.h. */
#include "disk/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/name.h"

void place_init(struct place *p, const struct fsx *fs, int root)
{
    *p = (struct place){.fs = fs, .root = root};
    list_init(&p->dirs);
    list_init(&p->used);
    list_init(&p->dirty);
    for (size_t i = 0; i < PLACE_CHAINS; i++) {
        list_init(&p->files[i]);
    }
}

/* ---- directories ---- */

static struct disk_dir *find_dir(struct place *p, uint32_t job_id)
{
    LIST_FOREACH (n, &p->dirs) {
        struct disk_dir *d = LIST_ENTRY(n, struct disk_dir, node);
        if (d->job_id == job_id) {
            return d;
        }
    }
    return NULL;
}

static void release_dir(struct place *p, struct disk_dir *d)
{
    if (--d->refs > 0) {
        return;
    }
    fsx_close(p->fs, d->fd, NULL);
    list_remove(&d->node);
    mem_free(d);
}

/* One more reference to the job's directory, made where it is missing. */
static int take_dir(struct place *p, uint32_t job_id, const char *path, struct disk_dir **out,
                    struct err *e)
{
    struct disk_dir *d = find_dir(p, job_id);
    if (d != NULL) {
        d->refs++;
        *out = d;
        return 0;
    }
    d = mem_zalloc(1, sizeof(*d));
    if (d == NULL) {
        return err_sys(e, -ENOMEM, "%s", path);
    }
    int fd = fsx_mkdirs(p->fs, p->root, path, 0777, e); /* the user's umask decides */
    if (fd < 0) {
        mem_free(d);
        return fd;
    }
    *d = (struct disk_dir){.job_id = job_id, .refs = 1, .fd = fd};
    list_push_back(&p->dirs, &d->node);
    *out = d;
    return 0;
}

/* ---- files ---- */

static struct list *chain(struct place *p, uint32_t file_id)
{
    return &p->files[file_id % PLACE_CHAINS];
}

struct disk_file *place_find(struct place *p, uint32_t file_id)
{
    LIST_FOREACH (n, chain(p, file_id)) {
        struct disk_file *f = LIST_ENTRY(n, struct disk_file, node);
        if (f->file_id == file_id) {
            return f;
        }
    }
    return NULL;
}

static void close_fd(struct place *p, struct disk_file *f)
{
    if (f->fd >= 0) {
        fsx_close(p->fs, f->fd, NULL);
        f->fd = -1;
        p->open_fds--;
        list_remove(&f->used);
    }
}

static void forget(struct place *p, struct disk_file *f)
{
    close_fd(p, f);
    list_remove(&f->node);
    list_remove(&f->dirty);
    release_dir(p, f->dir);
    mem_free(f);
}

static void set_fd(struct place *p, struct disk_file *f, int fd)
{
    f->fd = fd;
    p->open_fds++;
    list_push_back(&p->used, &f->used);
}

/* Room for one more descriptor. A file whose sync fails here is found out by the next write to it. */
static int make_room(struct place *p, struct err *e)
{
    while (p->open_fds >= DISK_FDS) {
        struct disk_file *oldest = LIST_ENTRY(p->used.next, struct disk_file, used);
        int rv = place_sync(p, oldest, e);
        if (rv != 0) {
            return rv;
        }
        close_fd(p, oldest);
    }
    return 0;
}

int place_fd(struct place *p, struct disk_file *f, struct err *e)
{
    if (f->fd >= 0) {
        list_remove(&f->used); /* now the most lately used */
        list_push_back(&p->used, &f->used);
        return f->fd;
    }
    int rv = make_room(p, e);
    if (rv != 0) {
        return rv;
    }
    int fd = fsx_open(p->fs, f->dir->fd, f->work, O_RDWR, 0, e);
    if (fd >= 0) {
        set_fd(p, f, fd);
    }
    return fd;
}

/* A file of ours is a plain file with one name: anything else was put there by somebody. */
static int check_ours(struct place *p, int fd, const char *work, struct err *e)
{
    struct stat st;
    int rv = p->fs->ops->fstat(p->fs->arg, fd, &st);
    if (rv != 0) {
        return err_sys(e, rv, "%s: fstat", work);
    }
    if (!S_ISREG(st.st_mode) ||
        st.st_nlink > 2) { /* 2: cut off between link and unlink, see finish */
        return err_set(e, ERR_UNSAFE, "%s: is not the file that was written here", work);
    }
    return 0;
}

int place_open(struct place *p, const struct disk_file_msg *m, struct err *e)
{
    struct disk_file *f = place_find(p, m->file_id);
    if (f == NULL) {
        f = mem_zalloc(1, sizeof(*f));
        if (f == NULL) {
            return err_sys(e, -ENOMEM, "%s", m->name);
        }
        int rv = take_dir(p, m->job_id, m->dir, &f->dir, e);
        if (rv != 0) {
            mem_free(f);
            return rv;
        }
        f->file_id = m->file_id;
        f->fd = -1;
        snprintf(f->work, sizeof(f->work), ".%u.part", m->file_id);
        list_init(&f->used);
        list_init(&f->dirty);
        list_push_back(chain(p, m->file_id), &f->node);
    }
    int rv = f->fd >= 0 ? 0 : make_room(p, e);
    if (rv == 0 && f->fd < 0) {
        int flags = O_RDWR | (m->has_data ? 0 : O_CREAT);
        int fd = fsx_open(p->fs, f->dir->fd, f->work, flags, 0666, e);
        if (fd >= 0) {
            set_fd(p, f, fd);
            rv = check_ours(p, fd, f->work, e);
        } else {
            rv = fd == -ENOENT ? err_set(e, ERR_NOT_FOUND, "%s: what was written of %s is gone",
                                         f->work, m->name)
                               : fd;
        }
    }
    if (rv == 0) {
        rv = fsx_preallocate(p->fs, f->fd, m->size, e);
    }
    if (rv != 0 && list_empty(&f->dirty)) {
        forget(p, f);
    }
    return rv;
}

int place_sync(struct place *p, struct disk_file *f, struct err *e)
{
    if (list_empty(&f->dirty)) {
        return 0;
    }
    int rv = f->fd >= 0 ? fsx_fdatasync(p->fs, f->fd, e)
                        : err_set(e, -EIO, "%s: closed before it was synced", f->work);
    if (rv == 0) {
        list_remove(&f->dirty);
        f->unsynced_bytes = 0;
    } else {
        close_fd(p, f);
    }
    return rv;
}

/* The work name becomes `to` only if nothing has that name. A link is the one call that never replaces. */
static int rename_new(struct place *p, const struct disk_file *f, const char *to, struct err *e)
{
    const struct fsx_ops *ops = p->fs->ops;
    int dirfd = f->dir->fd;
    int rv = ops->linkat(p->fs->arg, dirfd, f->work, to);
    if (rv == 0) {
        rv = ops->unlinkat(p->fs->arg, dirfd, f->work, 0);
        return rv == 0 ? 0 : err_sys(e, rv, "%s: unlink", f->work);
    }
    if (rv == -EEXIST) {
        return rv;
    }
    if (rv != -EPERM && rv != -EOPNOTSUPP && rv != -ENOSYS && rv != -EMLINK) {
        return err_sys(e, rv, "%s: link", to);
    }
    /* No hard links here (FAT, some shares): take the name first, then rename over what we took. */
    int fd = fsx_open(p->fs, dirfd, to, O_WRONLY | O_CREAT | O_EXCL, 0666, e);
    if (fd < 0) {
        return fd;
    }
    fsx_close(p->fs, fd, NULL);
    rv = ops->renameat(p->fs->arg, dirfd, f->work, dirfd, to);
    return rv == 0 ? 0 : err_sys(e, rv, "%s: rename", to);
}

/* A power cut may have come between link and unlink: then `to` is this very file already. */
static bool is_same(struct place *p, const struct disk_file *f, const char *to)
{
    struct stat a, b;
    int fd = fsx_open(p->fs, f->dir->fd, to, O_PATH, 0, NULL);
    bool same = fd >= 0 && p->fs->ops->fstat(p->fs->arg, fd, &a) == 0 &&
                p->fs->ops->fstat(p->fs->arg, f->fd, &b) == 0 && a.st_dev == b.st_dev &&
                a.st_ino == b.st_ino;
    if (fd >= 0) {
        fsx_close(p->fs, fd, NULL);
    }
    return same;
}

int place_finish(struct place *p, struct disk_file *f, const char *name, char *made, struct err *e)
{
    int rv = place_fd(p, f, e);
    if (rv < 0) {
        return rv;
    }
    rv = -EEXIST;
    for (unsigned n = 1; rv == -EEXIST && n <= FSX_SUFFIX_MAX; n++) {
        name_numbered(name, n, made);
        rv = rename_new(p, f, made, e);
        if (rv == -EEXIST && is_same(p, f, made)) {
            rv = p->fs->ops->unlinkat(p->fs->arg, f->dir->fd, f->work, 0);
        }
    }
    if (rv == 0) {
        rv = fsx_sync_dir(p->fs, f->dir->fd, e);
    }
    if (rv == 0) {
        forget(p, f);
    }
    return rv;
}

bool place_was_finished(struct place *p, const struct disk_file_msg *m, char *made)
{
    int dir = fsx_open_beneath(p->fs, p->root, m->dir, O_RDONLY | O_DIRECTORY, 0, NULL);
    if (dir < 0 || m->size == 0) {
        if (dir >= 0) {
            fsx_close(p->fs, dir, NULL);
        }
        return false;
    }
    bool found = false;
    for (unsigned n = 1; !found && n <= FSX_SUFFIX_MAX; n++) {
        name_numbered(m->name, n, made);
        int fd = fsx_open(p->fs, dir, made, O_PATH, 0, NULL);
        if (fd < 0) {
            break;
        }
        struct stat st;
        found = p->fs->ops->fstat(p->fs->arg, fd, &st) == 0 && S_ISREG(st.st_mode) &&
                (uint64_t)st.st_size == m->size;
        fsx_close(p->fs, fd, NULL);
    }
    fsx_close(p->fs, dir, NULL);
    return found;
}

void place_drop(struct place *p, struct disk_file *f)
{
    (void)p->fs->ops->unlinkat(p->fs->arg, f->dir->fd, f->work, 0); /* may be gone already */
    forget(p, f);
}

/* ---- whole jobs ---- */

static void forget_job(struct place *p, uint32_t job_id)
{
    for (size_t i = 0; i < PLACE_CHAINS; i++) {
        LIST_FOREACH_SAFE (n, &p->files[i]) {
            struct disk_file *f = LIST_ENTRY(n, struct disk_file, node);
            if (f->dir->job_id == job_id) {
                forget(p, f);
            }
        }
    }
}

/* Empties the directory `fd` (closed afterwards), never following a link. */
static int remove_tree(struct place *p, int fd, int depth, struct err *e)
{
    DIR *dir = depth > 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        int rv = depth > 0 ? -errno : -ELOOP;
        fsx_close(p->fs, fd, NULL);
        return err_sys(e, rv, "remove");
    }
    int rv = 0;
    for (struct dirent *entry; rv == 0 && (entry = readdir(dir)) != NULL;) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
            continue;
        }
        rv = p->fs->ops->unlinkat(p->fs->arg, fd, name, 0);
        if (rv == -EISDIR || rv == -EPERM) {
            int sub = fsx_open(p->fs, fd, name, O_RDONLY | O_DIRECTORY, 0, e);
            rv = sub < 0 ? sub : remove_tree(p, sub, depth - 1, e);
            if (rv == 0) {
                rv = p->fs->ops->unlinkat(p->fs->arg, fd, name, AT_REMOVEDIR);
            }
        }
        if (rv != 0) {
            err_sys(e, rv, "%s: remove", name);
        }
    }
    closedir(dir);
    return rv;
}

/* The directory that holds the last part of `path`, and that part. */
static int open_parent(struct place *p, const char *path, const char **last, struct err *e)
{
    const char *slash = strrchr(path, '/');
    *last = slash != NULL ? slash + 1 : path;
    if (slash == NULL) {
        return fsx_open(p->fs, p->root, ".", O_RDONLY | O_DIRECTORY, 0, e);
    }
    char *parent = mem_strndup(path, (size_t)(slash - path));
    if (parent == NULL) {
        return err_sys(e, -ENOMEM, "%s", path);
    }
    int fd = fsx_open_beneath(p->fs, p->root, parent, O_RDONLY | O_DIRECTORY, 0, e);
    mem_free(parent);
    return fd;
}

int place_remove_dir(struct place *p, uint32_t job_id, const char *dir, struct err *e)
{
    enum { DEPTH = 64 };
    forget_job(p, job_id);
    int fd = fsx_open_beneath(p->fs, p->root, dir, O_RDONLY | O_DIRECTORY, 0, e);
    if (fd == -ENOENT) {
        return 0;
    }
    int rv = fd < 0 ? fd : remove_tree(p, fd, DEPTH, e);
    if (rv != 0) {
        return err_wrap(e, rv, "%s", dir);
    }
    const char *last;
    int parent = open_parent(p, dir, &last, e);
    if (parent < 0) {
        return parent;
    }
    rv = p->fs->ops->unlinkat(p->fs->arg, parent, last, AT_REMOVEDIR);
    if (rv != 0) {
        err_sys(e, rv, "%s: remove", dir);
    } else {
        rv = fsx_sync_dir(p->fs, parent, e);
    }
    fsx_close(p->fs, parent, NULL);
    return rv;
}

int place_move_dir(struct place *p, const char *dir, const char *name, char *made, struct err *e)
{
    const char *last, *new_last;
    int from = open_parent(p, dir, &last, e);
    if (from < 0) {
        return from;
    }
    const char *slash = strrchr(name, '/');
    int to = -1;
    if (slash != NULL) {
        char *parent = mem_strndup(name, (size_t)(slash - name));
        to = parent != NULL ? fsx_mkdirs(p->fs, p->root, parent, 0777, e)
                            : err_sys(e, -ENOMEM, "%s", name);
        mem_free(parent);
        new_last = slash + 1;
    } else {
        to = fsx_open(p->fs, p->root, ".", O_RDONLY | O_DIRECTORY, 0, e);
        new_last = name;
    }
    int rv = to < 0 ? to : -EEXIST;
    for (unsigned n = 1; rv == -EEXIST && n <= FSX_SUFFIX_MAX; n++) {
        name_numbered(new_last, n, made);
        rv = p->fs->ops->mkdirat(p->fs->arg, to, made, 0777); /* taken: nobody else gets it now */
        if (rv == 0) {
            rv = p->fs->ops->renameat(p->fs->arg, from, last, to, made);
        }
    }
    if (rv == 0) {
        rv = fsx_sync_dir(p->fs, to, e);
    } else {
        err_sys(e, rv, "%s: rename to %s", dir, name);
    }
    if (to >= 0) {
        fsx_close(p->fs, to, NULL);
    }
    fsx_close(p->fs, from, NULL);
    return rv;
}

void place_close(struct place *p)
{
    for (size_t i = 0; i < PLACE_CHAINS; i++) {
        LIST_FOREACH_SAFE (n, &p->files[i]) {
            forget(p, LIST_ENTRY(n, struct disk_file, node));
        }
    }
    POST(list_empty(&p->dirs) && p->open_fds == 0);
}
