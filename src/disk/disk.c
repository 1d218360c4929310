#include "disk/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/actor.h"
#include "base/check.h"
#include "base/list.h"
#include "base/mem.h"

struct disk_file {
    struct list node;   /* in files */
    struct list recent; /* in open, when fd >= 0: last used at the back */
    int fd;             /* -1: closed to make room for another */
    int dirfd;
    bool dirty;      /* written since the last sync */
    struct err lost; /* a sync failed: what was written since the last good one is gone */
    char name[FSX_NAME_MAX + 1];
};

struct disk {
    struct actor actor;
    struct actor_type type;
    struct disk_opts opts;
    struct list files;
    struct list open;
    unsigned open_count;
};

/* ---- descriptors ---- */

static void sync_file(struct disk *d, struct disk_file *f)
{
    struct err e = {0};
    if (f->dirty && f->lost.code == 0 && fsx_fdatasync(d->opts.fs, f->fd, &e) != 0) {
        err_wrap(&e, e.code, "%s", f->name);
        f->lost = e; /* never again on this descriptor or another: the kernel would say OK */
    }
    f->dirty = false;
}

static void close_fd(struct disk *d, struct disk_file *f)
{
    if (f->fd >= 0) {
        struct err e = {0};
        if (fsx_close(d->opts.fs, f->fd, &e) != 0 && f->lost.code == 0) {
            err_wrap(&e, e.code, "%s",
                     f->name); /* some filesystems tell of a lost write only here */
            f->lost = e;
        }
        f->fd = -1;
        list_remove(&f->recent);
        d->open_count--;
    }
}

/* Makes room for one more. A dirty file is synced before it is let go, because a failed write-back must be heard of
 * through the descriptor that was there when it was written. */
static void make_room(struct disk *d)
{
    while (d->open_count >= d->opts.open_max) {
        struct disk_file *oldest = LIST_ENTRY(d->open.next, struct disk_file, recent);
        sync_file(d, oldest);
        close_fd(d, oldest);
    }
}

static int open_fd(struct disk *d, struct disk_file *f, int flags, struct err *e)
{
    make_room(d);
    int fd = fsx_open(d->opts.fs, f->dirfd, f->name, O_RDWR | flags, 0600, e);
    if (fd < 0) {
        return fd;
    }
    f->fd = fd;
    list_push_back(&d->open, &f->recent);
    d->open_count++;
    return 0;
}

/* The descriptor is there and the most recently used one. */
static int use(struct disk *d, struct disk_file *f, struct err *e)
{
    if (f->lost.code != 0) {
        return err_set(e, f->lost.code, "%s", f->lost.msg);
    }
    if (f->fd < 0) {
        return open_fd(d, f, 0, e);
    }
    list_remove(&f->recent);
    list_push_back(&d->open, &f->recent);
    return 0;
}

/* ---- messages ---- */

static void forget(struct disk *d, struct disk_file *f)
{
    close_fd(d, f);
    list_remove(&f->node);
    mem_free(f);
}

static int do_open(struct disk *d, struct disk_msg *m, struct err *e)
{
    struct disk_file *f = mem_zalloc(1, sizeof(*f));
    if (f == NULL) {
        return err_sys(e, UV_ENOMEM, "%s", m->name);
    }
    f->fd = -1;
    f->dirfd = m->dirfd;
    snprintf(f->name, sizeof(f->name), "%s", m->name);
    list_init(&f->recent);
    list_init(&f->node);
    list_push_back(&d->files, &f->node);
    int rv = 0;
    if (m->fresh) {
        rv = d->opts.fs->ops->unlinkat(d->opts.fs->arg, m->dirfd, m->name, 0);
        rv = rv == -ENOENT ? 0 : rv;
        if (rv != 0) {
            err_sys(e, rv, "%s: remove", m->name);
        }
    }
    if (rv == 0) {
        rv = open_fd(d, f, O_CREAT | (m->fresh ? O_EXCL : 0), e);
    }
    if (rv == 0 && m->size > 0) {
        rv = fsx_preallocate(d->opts.fs, f->fd, m->size, e);
    }
    if (rv != 0) {
        forget(d, f);
        return rv;
    }
    m->file = f;
    return 0;
}

static int do_write(struct disk *d, struct disk_msg *m, struct err *e)
{
    struct disk_file *f = m->file;
    int rv = use(d, f, e);
    if (rv == 0) {
        f->dirty = true;
        rv = fsx_pwrite_all(d->opts.fs, f->fd, m->buf->data, m->buf->len, m->at, e);
    }
    buf_give(d->opts.bufs, m->buf);
    m->buf = NULL;
    return rv;
}

static int do_sync(struct disk *d, struct disk_msg *m, struct err *e)
{
    struct disk_file *f = m->file;
    if (f->fd >= 0) {
        sync_file(d, f);
    } /* else it was synced when its descriptor was closed */
    return f->lost.code != 0 ? err_set(e, f->lost.code, "%s", f->lost.msg) : 0;
}

static void on_recv(struct actor *a, void *raw)
{
    struct disk *d = a->self;
    struct disk_msg *m = raw;
    struct err e = {0};
    switch (m->kind) {
    case DISK_OPEN:
        m->code = do_open(d, m, &e);
        break;
    case DISK_WRITE:
        m->code = do_write(d, m, &e);
        break;
    case DISK_SYNC:
        m->code = do_sync(d, m, &e);
        break;
    case DISK_CLOSE:
        m->code = 0;
        forget(d, m->file);
        m->file = NULL;
        break;
    }
    snprintf(m->text, sizeof(m->text), "%s", e.msg);
    d->opts.deliver(d->opts.arg, m);
}

/* ---- life ---- */

static void on_stop(struct actor *a)
{
    struct disk *d = a->self;
    while (!list_empty(&d->files)) {
        forget(d, LIST_ENTRY(d->files.next, struct disk_file, node));
    }
}

int disk_start(struct disk **out, const struct disk_opts *opts, struct err *e)
{
    PRE(opts->open_max > 0);
    struct disk *d = mem_zalloc(1, sizeof(*d));
    if (d == NULL) {
        return err_sys(e, UV_ENOMEM, "disk");
    }
    d->opts = *opts;
    list_init(&d->files);
    list_init(&d->open);
    d->type = (struct actor_type){
        .name = "disk", .inbox = opts->messages, .recv = on_recv, .stop = on_stop};
    int rv = actor_start(&d->actor, &d->type, d, e);
    if (rv != 0) {
        mem_free(d);
        return rv;
    }
    *out = d;
    return 0;
}

int disk_post(struct disk *d, struct disk_msg *msg)
{
    int rv = actor_post(&d->actor, msg);
    PRE(rv != ERR_FULL); /* more messages than the opener allowed for */
    return rv;
}

void disk_stop(struct disk *d)
{
    actor_stop(&d->actor);
}

void disk_join(struct disk *d)
{
    actor_join(&d->actor);
}

void disk_free(struct disk *d)
{
    actor_free(&d->actor);
    mem_free(d);
}
