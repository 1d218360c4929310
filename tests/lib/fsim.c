#include "lib/fsim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/check.h"
#include "lib/rng.h"

enum { SECTOR = 512, NAMES = 256, FDS = 256, FD_BASE = FSIM_ROOT + 1, NAMES_TEXT = 1 << 16 };

struct bytes {
    char *p;
    size_t len;
};

/* A change of a file that no sync has covered yet. `data.p` NULL: only the size is set. */
struct change {
    struct change *next;
    size_t at;
    struct bytes data;
};

struct inode {
    struct inode *next; /* of all, for fsim_free */
    bool dir;
    int lock_fd;             /* who holds flock; 0: nobody */
    struct bytes seen, disk; /* a file's two states */
    struct change *changes, **changes_end;
    struct entry *seen_names, *disk_names; /* a directory's */
};

struct entry {
    struct entry *next;
    char name[NAMES];
    struct inode *node;
};

/* A change of names that no sync has covered yet; both halves of a rename in one. */
struct names_change {
    struct names_change *next;
    int n;
    struct {
        struct inode *dir;
        char name[NAMES];
        struct inode *node; /* NULL: the name goes */
    } set[2];
};

struct fsim {
    struct fsx fs;
    struct rng rng;
    struct inode *all, *root;
    struct names_change *names, **names_end;
    struct {
        struct inode *node;
        size_t at;
        int flags;
    } fds[FDS];
    unsigned calls, fail_at, fail_times, cut_at;
    int fail_code, ignored;
    char text[NAMES_TEXT];
};

/* The sim never sees the allocation faults of tests/lib/fault.h: it is the world, not the program. */
static void *must(void *p)
{
    PRE(p != NULL);
    return p;
}

static struct inode *new_inode(struct fsim *d, bool dir)
{
    struct inode *i = must(calloc(1, sizeof(*i)));
    i->dir = dir;
    i->changes_end = &i->changes;
    i->next = d->all;
    return d->all = i;
}

static void resize(struct bytes *b, size_t len)
{
    if (len > b->len) {
        b->p = must(realloc(b->p, len));
        memset(b->p + b->len, 0, len - b->len);
    }
    b->len = len;
}

static void put(struct bytes *b, size_t at, const char *p, size_t n)
{
    if (n > 0) {
        if (at + n > b->len) {
            resize(b, at + n);
        }
        memcpy(b->p + at, p, n);
    }
}

static void copy(struct bytes *to, const struct bytes *from)
{
    to->len = 0;
    put(to, 0, from->p, from->len);
}

static struct entry **find(struct entry **list, const char *name)
{
    while (*list != NULL && strcmp((*list)->name, name) != 0) {
        list = &(*list)->next;
    }
    return list;
}

static void set_name(struct entry **list, const char *name, struct inode *node)
{
    struct entry **at = find(list, name);
    if (node == NULL && *at != NULL) {
        struct entry *gone = *at;
        *at = gone->next;
        free(gone);
    } else if (node != NULL) {
        if (*at == NULL) {
            *at = must(calloc(1, sizeof(**at)));
            snprintf((*at)->name, NAMES, "%s", name);
        }
        (*at)->node = node;
    }
}

static void free_names(struct entry **list)
{
    while (*list != NULL) {
        set_name(list, (*list)->name, NULL);
    }
}

/* ---- what became of unsynced changes ---- */

static void drop_first_change(struct inode *i)
{
    struct change *c = i->changes;
    i->changes = c->next;
    if (i->changes == NULL) {
        i->changes_end = &i->changes;
    }
    free(c->data.p);
    free(c);
}

static void apply_change(struct inode *i, const struct change *c)
{
    if (c->data.p == NULL) {
        resize(&i->disk, c->at);
    } else {
        put(&i->disk, c->at, c->data.p, c->data.len);
    }
}

/* Sector by sector: written, or not. The size reaches as far as some sector did, or by itself. */
static void tear_change(struct fsim *d, struct inode *i, const struct change *c)
{
    for (size_t from = 0; from < c->data.len;) {
        size_t to = ((c->at + from) / SECTOR + 1) * SECTOR - c->at;
        to = to < c->data.len ? to : c->data.len;
        if (rng_below(&d->rng, 2) == 0) {
            put(&i->disk, c->at + from, c->data.p + from, to - from);
        }
        from = to;
    }
    if (c->at + c->data.len > i->disk.len && rng_below(&d->rng, 2) == 0) {
        resize(&i->disk, c->at + c->data.len);
    }
}

static void sync_inode(struct inode *i)
{
    while (i->changes != NULL) {
        apply_change(i, i->changes);
        drop_first_change(i);
    }
}

static void lose_inode(struct inode *i)
{
    while (i->changes != NULL) {
        drop_first_change(i);
    }
}

static void apply_names(const struct names_change *c)
{
    for (int k = 0; k < c->n; k++) {
        set_name(&c->set[k].dir->disk_names, c->set[k].name, c->set[k].node);
    }
}

static bool touches(const struct names_change *c, const struct inode *dir)
{
    return c->set[0].dir == dir || (c->n == 2 && c->set[1].dir == dir);
}

/* Takes the changes of one directory (NULL: of all) off the list, applying those that `keep` says. */
static void settle_names(struct fsim *d, const struct inode *dir, bool (*keep)(struct fsim *))
{
    struct names_change **at = &d->names;
    while (*at != NULL) {
        struct names_change *c = *at;
        if (dir != NULL && !touches(c, dir)) {
            at = &c->next;
            continue;
        }
        if (keep(d)) {
            apply_names(c);
        }
        *at = c->next;
        free(c);
    }
    d->names_end = at;
}

static bool keep_all(struct fsim *d)
{
    (void)d;
    return true;
}

static bool keep_none(struct fsim *d)
{
    (void)d;
    return false;
}

static bool keep_some(struct fsim *d)
{
    return rng_below(&d->rng, 2) == 0;
}

static void cut_names(struct fsim *d)
{
    switch (rng_below(&d->rng, 4)) {
    case 0:
        settle_names(d, NULL, keep_all);
        break;
    case 1:
        settle_names(d, NULL, keep_none);
        break;
    case 2: /* a filesystem with a journal: a prefix */
        while (d->names != NULL && rng_below(&d->rng, 4) != 0) {
            struct names_change *c = d->names;
            apply_names(c);
            d->names = c->next;
            free(c);
        }
        if (d->names == NULL) {
            d->names_end = &d->names;
        }
        settle_names(d, NULL, keep_none);
        break;
    default:
        settle_names(d, NULL, keep_some);
    }
}

static void cut_inode(struct fsim *d, struct inode *i)
{
    uint64_t mood = rng_below(&d->rng, 4);
    while (i->changes != NULL) {
        uint64_t fate = mood == 0 ? 0 : mood == 1 ? 1 : rng_below(&d->rng, 3);
        if (fate == 0) {
            apply_change(i, i->changes);
        } else if (fate == 2) {
            tear_change(d, i, i->changes);
        }
        drop_first_change(i);
    }
}

void fsim_reboot(struct fsim *d)
{
    cut_names(d);
    for (struct inode *i = d->all; i != NULL; i = i->next) {
        cut_inode(d, i);
        copy(&i->seen, &i->disk);
        free_names(&i->seen_names);
        for (struct entry *e = i->disk_names; e != NULL; e = e->next) {
            set_name(&i->seen_names, e->name, e->node);
        }
        i->lock_fd = 0;
    }
    memset(d->fds, 0, sizeof(d->fds));
    d->ignored = 0;
    fsim_fail_at(d, 0, 0, 0);
}

/* ---- the calls ---- */

/* 0, an error to return at once, or FSIM_SHORT. */
static int enter(struct fsim *d)
{
    d->calls++;
    if (d->cut_at != 0 && d->calls >= d->cut_at) {
        return -EIO;
    }
    if (d->fail_at != 0 && d->calls >= d->fail_at && d->calls - d->fail_at < d->fail_times) {
        return d->fail_code;
    }
    return 0;
}

static struct inode *node_of(struct fsim *d, int fd)
{
    if (fd == FSIM_ROOT) {
        return d->root;
    }
    PRE(fd >= FD_BASE && fd < FD_BASE + FDS && d->fds[fd - FD_BASE].node != NULL);
    return d->fds[fd - FD_BASE].node;
}

static struct inode *dir_of(struct fsim *d, int fd)
{
    struct inode *i = node_of(d, fd);
    PRE(i->dir);
    return i;
}

static void change_names(struct fsim *d, struct names_change c)
{
    for (int k = 0; k < c.n; k++) {
        set_name(&c.set[k].dir->seen_names, c.set[k].name, c.set[k].node);
    }
    struct names_change *copy_of = must(malloc(sizeof(c)));
    *copy_of = c;
    copy_of->next = NULL;
    *d->names_end = copy_of;
    d->names_end = &copy_of->next;
}

static void add_name(struct fsim *d, struct inode *dir, const char *name, struct inode *node)
{
    struct names_change c = {.n = 1, .set = {{.dir = dir, .node = node}}};
    snprintf(c.set[0].name, NAMES, "%s", name);
    change_names(d, c);
}

static void change_file(struct inode *i, size_t at, const char *p, size_t n)
{
    struct change *c = must(calloc(1, sizeof(*c)));
    c->at = at;
    if (p != NULL) {
        put(&i->seen, at, p, n);
        put(&c->data, 0, p, n);
    } else {
        resize(&i->seen, at);
    }
    *i->changes_end = c;
    i->changes_end = &c->next;
}

static int new_fd(struct fsim *d, struct inode *i, int flags)
{
    for (int k = 0; k < FDS; k++) {
        if (d->fds[k].node == NULL) {
            d->fds[k].node = i;
            d->fds[k].at = 0;
            d->fds[k].flags = flags;
            return FD_BASE + k;
        }
    }
    return -EMFILE;
}

static int bad_name(const char *name)
{
    PRE(strchr(name, '/') == NULL && name[0] != '\0');
    return strlen(name) >= NAMES ? -ENAMETOOLONG : 0;
}

static int s_openat(void *arg, int dirfd, const char *name, int flags, mode_t mode)
{
    (void)mode;
    struct fsim *d = arg;
    struct inode *dir = dir_of(d, dirfd);
    int rv = enter(d);
    if (rv < 0 || (rv = bad_name(name)) < 0) {
        return rv;
    }
    struct entry *e = *find(&dir->seen_names, name);
    struct inode *i = strcmp(name, ".") == 0 ? dir : e != NULL ? e->node : NULL;
    if (i == NULL && !(flags & O_CREAT)) {
        return -ENOENT;
    }
    if (i != NULL && (flags & O_CREAT) && (flags & O_EXCL)) {
        return -EEXIST;
    }
    if (i != NULL && i->dir && (flags & O_ACCMODE) != O_RDONLY) {
        return -EISDIR;
    }
    if (i != NULL && !i->dir && (flags & O_DIRECTORY)) {
        return -ENOTDIR;
    }
    if (i == NULL) {
        i = new_inode(d, false);
        add_name(d, dir, name, i);
    }
    int fd = new_fd(d, i, flags);
    if (fd >= 0 && (flags & O_TRUNC)) {
        change_file(i, 0, NULL, 0);
    }
    return fd;
}

static int s_open_beneath(void *arg, int dirfd, const char *path, int flags, mode_t mode)
{
    (void)arg, (void)dirfd, (void)path, (void)flags, (void)mode;
    return -ENOSYS; /* an old kernel: fsx goes component by component */
}

static int s_close(void *arg, int fd)
{
    struct fsim *d = arg;
    struct inode *i = node_of(d, fd);
    PRE(fd != FSIM_ROOT);
    d->fds[fd - FD_BASE].node = NULL; /* also when it fails: Linux has let go of it by then */
    if (i->lock_fd == fd) {
        i->lock_fd = 0;
    }
    int rv = enter(d);
    return rv < 0 ? rv : 0;
}

static ssize_t write_at(struct fsim *d, int fd, const void *p, size_t n, size_t at)
{
    struct inode *i = node_of(d, fd);
    PRE(!i->dir && (d->fds[fd - FD_BASE].flags & O_ACCMODE) != O_RDONLY);
    int rv = enter(d);
    if (rv < 0) {
        return rv;
    }
    n = rv == FSIM_SHORT ? (n + 1) / 2 : n;
    if (n > 0) {
        change_file(i, at, p, n);
    }
    return (ssize_t)n;
}

static ssize_t s_write(void *arg, int fd, const void *p, size_t n)
{
    struct fsim *d = arg;
    size_t *at = &d->fds[fd - FD_BASE].at;
    if (d->fds[fd - FD_BASE].flags & O_APPEND) {
        *at = node_of(d, fd)->seen.len;
    }
    ssize_t put_n = write_at(d, fd, p, n, *at);
    *at += put_n > 0 ? (size_t)put_n : 0;
    return put_n;
}

static ssize_t s_pwrite(void *arg, int fd, const void *p, size_t n, off_t at)
{
    return write_at(arg, fd, p, n, (size_t)at);
}

static ssize_t s_pread(void *arg, int fd, void *p, size_t n, off_t at)
{
    struct fsim *d = arg;
    struct inode *i = node_of(d, fd);
    int rv = enter(d);
    if (rv < 0) {
        return rv;
    }
    size_t left = (size_t)at < i->seen.len ? i->seen.len - (size_t)at : 0;
    n = n < left ? n : left;
    n = rv == FSIM_SHORT ? (n + 1) / 2 : n;
    if (n > 0) {
        memcpy(p, i->seen.p + at, n);
    }
    return (ssize_t)n;
}

static int s_fsync(void *arg, int fd)
{
    struct fsim *d = arg;
    struct inode *i = node_of(d, fd);
    int rv = enter(d);
    if (rv < 0) {
        if (!i->dir && d->cut_at == 0) { /* after a cut it is the reboot that decides */
            lose_inode(i);
        }
        return rv;
    }
    if (d->ignored & (i->dir ? FSIM_DIR_SYNCS : FSIM_FILE_SYNCS)) {
        return 0;
    }
    if (i->dir) {
        settle_names(d, i, keep_all);
    } else {
        sync_inode(i);
    }
    return 0;
}

static int s_ftruncate(void *arg, int fd, off_t size)
{
    struct inode *i = node_of(arg, fd);
    int rv = enter(arg);
    if (rv >= 0) {
        change_file(i, (size_t)size, NULL, 0);
    }
    return rv < 0 ? rv : 0;
}

static int s_fallocate(void *arg, int fd, off_t size)
{
    struct inode *i = node_of(arg, fd);
    int rv = enter(arg);
    if (rv >= 0 && (size_t)size > i->seen.len) {
        change_file(i, (size_t)size, NULL, 0);
    }
    return rv < 0 ? rv : 0;
}

static int s_fstat(void *arg, int fd, struct stat *st)
{
    struct inode *i = node_of(arg, fd);
    int rv = enter(arg);
    *st = (struct stat){.st_mode = i->dir ? S_IFDIR | 0700 : S_IFREG | 0600,
                        .st_size = (off_t)i->seen.len};
    return rv < 0 ? rv : 0;
}

static int s_flock(void *arg, int fd, int op)
{
    struct inode *i = node_of(arg, fd);
    int rv = enter(arg);
    if (rv < 0) {
        return rv;
    }
    PRE(op == (LOCK_EX | LOCK_NB));
    if (i->lock_fd != 0 && i->lock_fd != fd) {
        return -EWOULDBLOCK;
    }
    i->lock_fd = fd;
    return 0;
}

static int s_mkdirat(void *arg, int dirfd, const char *name, mode_t mode)
{
    (void)mode;
    struct fsim *d = arg;
    struct inode *dir = dir_of(d, dirfd);
    int rv = enter(d);
    if (rv < 0 || (rv = bad_name(name)) < 0) {
        return rv;
    }
    if (*find(&dir->seen_names, name) != NULL) {
        return -EEXIST;
    }
    add_name(d, dir, name, new_inode(d, true));
    return 0;
}

static int s_linkat(void *arg, int dirfd, const char *from, const char *to)
{
    struct fsim *d = arg;
    struct inode *dir = dir_of(d, dirfd);
    int rv = enter(d);
    if (rv < 0 || (rv = bad_name(to)) < 0) {
        return rv;
    }
    struct entry *e = *find(&dir->seen_names, from);
    if (e == NULL || *find(&dir->seen_names, to) != NULL) {
        return e == NULL ? -ENOENT : -EEXIST;
    }
    add_name(d, dir, to, e->node);
    return 0;
}

static int s_renameat(void *arg, int from_dir, const char *from, int to_dir, const char *to)
{
    struct fsim *d = arg;
    struct inode *source = dir_of(d, from_dir), *target = dir_of(d, to_dir);
    int rv = enter(d);
    if (rv < 0 || (rv = bad_name(to)) < 0) {
        return rv;
    }
    struct entry *e = *find(&source->seen_names, from), *old = *find(&target->seen_names, to);
    if (e == NULL) {
        return -ENOENT;
    }
    if (old != NULL && old->node == e->node) {
        return 0; /* two links of one file: POSIX leaves both */
    }
    if (old != NULL && (old->node->dir || e->node->dir)) {
        return old->node->dir ? -EISDIR
                              : -ENOTDIR; /* replacing directories: nothing of ours does */
    }
    struct names_change c = {.n = 2, .set = {{.dir = source}, {.dir = target, .node = e->node}}};
    snprintf(c.set[0].name, NAMES, "%s", from);
    snprintf(c.set[1].name, NAMES, "%s", to);
    change_names(d, c);
    return 0;
}

static int s_unlinkat(void *arg, int dirfd, const char *name, int flags)
{
    struct fsim *d = arg;
    struct inode *dir = dir_of(d, dirfd);
    int rv = enter(d);
    if (rv < 0) {
        return rv;
    }
    struct entry *e = *find(&dir->seen_names, name);
    if (e == NULL) {
        return -ENOENT;
    }
    if (e->node->dir != !!(flags & AT_REMOVEDIR)) {
        return e->node->dir ? -EISDIR : -ENOTDIR;
    }
    if (e->node->dir && e->node->seen_names != NULL) {
        return -ENOTEMPTY;
    }
    add_name(d, dir, name, NULL);
    return 0;
}

static int s_list(void *arg, int dirfd, fsx_name_cb each, void *ctx)
{
    struct fsim *d = arg;
    struct inode *dir = dir_of(d, dirfd);
    int rv = enter(d);
    for (struct entry *e = dir->seen_names, *next; e != NULL && rv == 0; e = next) {
        next = e->next; /* each() may remove the one it is told */
        rv = each(ctx, e->name);
    }
    return rv;
}

static const struct fsx_ops sim_ops = {
    .openat = s_openat,
    .open_beneath = s_open_beneath,
    .close = s_close,
    .write = s_write,
    .pwrite = s_pwrite,
    .pread = s_pread,
    .fsync = s_fsync,
    .fdatasync = s_fsync,
    .fallocate = s_fallocate,
    .ftruncate = s_ftruncate,
    .fstat = s_fstat,
    .flock = s_flock,
    .mkdirat = s_mkdirat,
    .linkat = s_linkat,
    .renameat = s_renameat,
    .unlinkat = s_unlinkat,
    .list = s_list,
};

/* ---- the test's side ---- */

struct fsim *fsim_new(uint64_t seed)
{
    struct fsim *d = must(calloc(1, sizeof(*d)));
    d->fs = (struct fsx){&sim_ops, d};
    rng_init(&d->rng, seed);
    d->names_end = &d->names;
    d->root = new_inode(d, true);
    return d;
}

void fsim_free(struct fsim *d)
{
    settle_names(d, NULL, keep_none);
    while (d->all != NULL) {
        struct inode *i = d->all;
        d->all = i->next;
        lose_inode(i);
        free_names(&i->seen_names);
        free_names(&i->disk_names);
        free(i->seen.p);
        free(i->disk.p);
        free(i);
    }
    free(d);
}

const struct fsx *fsim_fs(const struct fsim *d)
{
    return &d->fs;
}

void fsim_fail_at(struct fsim *d, unsigned k, unsigned times, int code)
{
    d->calls = d->cut_at = 0;
    d->fail_at = k;
    d->fail_times = times;
    d->fail_code = code;
}

void fsim_cut_at(struct fsim *d, unsigned k)
{
    fsim_fail_at(d, 0, 0, 0);
    d->cut_at = k;
}

bool fsim_fired(const struct fsim *d)
{
    unsigned k = d->cut_at != 0 ? d->cut_at : d->fail_at;
    return k != 0 && d->calls >= k;
}

unsigned fsim_calls(const struct fsim *d)
{
    return d->calls;
}

void fsim_ignore_syncs(struct fsim *d, int which)
{
    d->ignored = which;
}

unsigned fsim_open_fds(const struct fsim *d)
{
    unsigned n = 0;
    for (int k = 0; k < FDS; k++) {
        n += d->fds[k].node != NULL;
    }
    return n;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct entry *const *)a)->name, (*(const struct entry *const *)b)->name);
}

const char *fsim_names(struct fsim *d)
{
    struct entry *list[1024];
    size_t n = 0, used = 0;
    for (struct entry *e = d->root->seen_names; e != NULL; e = e->next) {
        PRE(n < sizeof(list) / sizeof(list[0]));
        list[n++] = e;
    }
    qsort(list, n, sizeof(list[0]), by_name);
    d->text[0] = '\0';
    for (size_t k = 0; k < n; k++) {
        used += (size_t)snprintf(d->text + used, sizeof(d->text) - used, "%s ", list[k]->name);
        PRE(used < sizeof(d->text));
    }
    return d->text;
}
