/* disk.c - see disk.h: messages in, system calls in the same order, messages out; and the moment of the sync. */
#include "disk/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "disk/place.h"

enum {
    WRITE_BACK_BYTES = 8 << 20, /* written in a row in one file: the kernel is asked to begin */
};

struct disk {
    struct disk_options o;
    struct actor_type type;
    struct actor actor;
    struct place place;
    struct queue_journal journal;
    bool journal_open;
    uint64_t generation; /* of the journal that records go into */
    uint64_t dirty_bytes;
    uv_timer_t timer;       /* runs while something is kept back */
    unsigned char *records; /* encoded, waiting for their data to be synced */
    uint32_t *record_files; /* beside it: which file each is about */
    unsigned record_count;
    atomic_uint_fast64_t writes, bytes, syncs, saves;
};

static void count(atomic_uint_fast64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* ---- syncing ---- */

/* The data of this file is gone: its records are dropped, the file is removed, and the owner is told. */
static void lose(struct disk *d, struct disk_file *f, int code, const struct err *e)
{
    log_error("disk: %s; what was downloaded of file %u is lost and will be fetched again", e->msg,
              f->file_id);
    unsigned kept = 0;
    for (unsigned i = 0; i < d->record_count; i++) {
        if (d->record_files[i] != f->file_id) {
            d->record_files[kept] = d->record_files[i];
            memmove(d->records + (size_t)kept * QUEUE_JOURNAL_RECORD,
                    d->records + (size_t)i * QUEUE_JOURNAL_RECORD, QUEUE_JOURNAL_RECORD);
            kept++;
        }
    }
    d->record_count = kept;
    struct disk_lost *lost = mem_zalloc(1, sizeof(*lost));
    if (lost == NULL) {
        IMPOSSIBLE("no memory to say that data was lost"); /* going on would call lost bytes good */
    }
    lost->msg.kind = DISK_LOST;
    lost->msg.code = code;
    lost->file_id = f->file_id;
    place_drop(&d->place, f);
    d->o.deliver(d->o.arg, &lost->msg);
}

static void sync_data(struct disk *d)
{
    LIST_FOREACH_SAFE (n, &d->place.dirty) {
        struct disk_file *f = LIST_ENTRY(n, struct disk_file, dirty);
        struct err e;
        int rv = place_sync(&d->place, f, &e);
        count(&d->syncs, 1);
        if (rv != 0) {
            lose(d, f, rv, &e);
        }
    }
    d->dirty_bytes = 0;
}

/* Records whose data is synced go to the journal. If that fails they wait for the next time: until a snapshot has
 * them, the worst that can happen is that those articles are fetched again. */
static void write_records(struct disk *d)
{
    if (d->record_count == 0) {
        return;
    }
    struct err e;
    int rv = 0;
    if (!d->journal_open) {
        rv = queue_journal_open(&d->journal, d->o.fs, d->o.state, d->generation, &e);
        d->journal_open = rv == 0;
    }
    if (rv == 0) {
        rv = queue_journal_append(&d->journal, d->records,
                                  (size_t)d->record_count * QUEUE_JOURNAL_RECORD, &e);
        count(&d->syncs, 1);
        if (rv != 0) {
            queue_journal_close(&d->journal);
            d->journal_open = false;
        }
    }
    if (rv == 0) {
        d->record_count = 0;
        return;
    }
    log_warning("disk: the journal cannot be written: %s", e.msg);
    if (d->record_count == DISK_RECORDS) {
        d->record_count = 0;
    }
}

static void sync_all(struct disk *d)
{
    sync_data(d);
    write_records(d);
    uv_timer_stop(&d->timer);
}

static void on_timer(uv_timer_t *t)
{
    sync_all(t->data);
}

/* Something is kept back: within a second it will be on the disk. */
static void sync_soon(struct disk *d)
{
    if (d->dirty_bytes >= DISK_SYNC_BYTES || d->record_count == DISK_RECORDS) {
        sync_all(d);
    } else if (!uv_is_active((uv_handle_t *)&d->timer)) {
        uv_timer_start(&d->timer, on_timer, DISK_SYNC_MS, 0);
    }
}

/* ---- one message each ---- */

/* Begins write-back of what is complete, so that the sync later finds it done. Only a hint. */
static void write_back(struct disk *d, struct disk_file *f, uint64_t offset, uint64_t len)
{
    if (f->unsynced_bytes == 0 || f->unsynced_offset + f->unsynced_bytes != offset) {
        f->unsynced_offset = offset;
        f->unsynced_bytes = 0;
    }
    f->unsynced_bytes += len;
    if (f->unsynced_bytes >= WRITE_BACK_BYTES && d->o.fs == &fsx_kernel) {
        (void)sync_file_range(f->fd, (off_t)f->unsynced_offset, (off_t)f->unsynced_bytes,
                              SYNC_FILE_RANGE_WRITE);
        f->unsynced_bytes = 0;
    }
}

static int do_write(struct disk *d, struct disk_write *m)
{
    size_t len = m->buf->len;
    struct disk_file *f = place_find(&d->place, m->file_id);
    int rv;
    if (f == NULL) {
        rv = err_set(m->msg.err, ERR_NOT_FOUND, "file %u is not open", m->file_id);
    } else {
        rv = place_fd(&d->place, f, m->msg.err);
    }
    if (rv >= 0) {
        rv = fsx_pwrite_all(d->o.fs, f->fd, m->buf->data, len, m->offset, m->msg.err);
        if (list_empty(&f->dirty)) { /* also after an error: some of it may have been written */
            list_push_back(&d->place.dirty, &f->dirty);
        }
        d->dirty_bytes += len;
    }
    buf_give(d->o.bufs, m->buf);
    m->buf = NULL;
    if (rv == 0) {
        count(&d->writes, 1);
        count(&d->bytes, len);
        write_back(d, f, m->offset, len);
        sync_soon(d);
    }
    return rv;
}

static int do_close(struct disk *d, struct disk_file_msg *m)
{
    struct disk_file *f = place_find(&d->place, m->file_id);
    if (f == NULL) { /* opened before a restart, or never written to */
        m->has_data = true;
        int rv = place_open(&d->place, m, m->msg.err);
        if (rv == ERR_NOT_FOUND && place_was_finished(&d->place, m, m->made)) {
            return 0;
        }
        if (rv != 0) {
            return rv;
        }
        f = place_find(&d->place, m->file_id);
    }
    /* Everything, not this file alone: the records that go out with it name the data of others, too. */
    sync_all(d);
    f = place_find(&d->place, m->file_id);
    if (f == NULL) {
        return err_set(m->msg.err, -EIO, "%s: its data was lost in the sync", m->name);
    }
    return place_finish(&d->place, f, m->name, m->made, m->msg.err);
}

static int do_delete(struct disk *d, struct disk_file_msg *m)
{
    if (m->file_id == 0) {
        return place_remove_dir(&d->place, m->job_id, m->dir, m->msg.err);
    }
    struct disk_file *f = place_find(&d->place, m->file_id);
    if (f != NULL) {
        place_drop(&d->place, f);
    }
    return 0;
}

static int do_quarantine(struct disk *d, struct disk_file_msg *m)
{
    char to[64];
    snprintf(to, sizeof(to), ".quarantine/%u", m->job_id);
    return place_move_dir(&d->place, m->dir, to, m->made, m->msg.err);
}

static int do_space(struct disk *d, struct disk_space *m)
{
    struct statvfs st;
    if (fstatvfs(d->o.root, &st) != 0) {
        return err_sys(m->msg.err, -errno, "free space");
    }
    m->free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
    return 0;
}

static int do_journal(struct disk *d, const struct disk_journal *m)
{
    queue_journal_encode(&m->record, d->records + (size_t)d->record_count * QUEUE_JOURNAL_RECORD);
    d->record_files[d->record_count] = m->record.article.file_id;
    d->record_count++;
    sync_soon(d);
    return 0;
}

static int do_save(struct disk *d, struct disk_save *m)
{
    sync_all(d);
    int rv = queue_snapshot_write(d->o.fs, d->o.state, &m->snapshot, m->msg.err);
    count(&d->saves, rv == 0);
    if (d->journal_open) {
        queue_journal_close(&d->journal);
        d->journal_open = false;
    }
    /* Whatever became of the snapshot: its maker has begun to count for the next journal. */
    d->generation = m->snapshot.generation;
    if (rv == 0) {
        d->record_count = 0; /* it has them all */
    }
    return rv;
}

static int carry_out(struct disk *d, struct disk_msg *m)
{
    struct disk_nzb *nzb = (struct disk_nzb *)m;
    switch (m->kind) {
    case DISK_OPEN:
        return place_open(&d->place, (struct disk_file_msg *)m, m->err);
    case DISK_WRITE:
        return do_write(d, (struct disk_write *)m);
    case DISK_CLOSE:
        return do_close(d, (struct disk_file_msg *)m);
    case DISK_DELETE:
        return do_delete(d, (struct disk_file_msg *)m);
    case DISK_MOVE: {
        struct disk_file_msg *f = (struct disk_file_msg *)m;
        return place_move_dir(&d->place, f->dir, f->name, f->made, m->err);
    }
    case DISK_QUARANTINE:
        return do_quarantine(d, (struct disk_file_msg *)m);
    case DISK_SPACE:
        return do_space(d, (struct disk_space *)m);
    case DISK_JOURNAL:
        return do_journal(d, (struct disk_journal *)m);
    case DISK_SAVE:
        return do_save(d, (struct disk_save *)m);
    case DISK_NZB_STORE:
        return queue_nzb_store(d->o.fs, d->o.state, nzb->job_id, nzb->filename, nzb->bytes,
                               nzb->len, nzb->stored, m->err);
    case DISK_NZB_LOAD:
        return queue_nzb_load(d->o.fs, d->o.state, nzb->stored, nzb->filename, &nzb->nzb, m->err);
    case DISK_NZB_FORGET:
        return queue_nzb_forget(d->o.fs, d->o.state, nzb->stored, m->err);
    case DISK_LOST:
        break;
    }
    IMPOSSIBLE("a message the disk does not know");
}

/* ---- the actor ---- */

static void on_message(struct actor *a, void *msg)
{
    struct disk *d = a->self;
    struct disk_msg *m = msg;
    m->code = carry_out(d, m);
    d->o.deliver(d->o.arg, m);
}

static int start(struct actor *a, struct err *e)
{
    struct disk *d = a->self;
    int rv = uv_timer_init(&a->loop, &d->timer);
    d->timer.data = d;
    return rv == 0 ? 0 : err_sys(e, rv, "timer");
}

static void stop(struct actor *a)
{
    struct disk *d = a->self;
    sync_all(d);
    if (d->journal_open) {
        queue_journal_close(&d->journal);
    }
    place_close(&d->place);
    uv_close((uv_handle_t *)&d->timer, NULL);
}

struct disk *disk_start(const struct disk_options *o, struct err *e)
{
    static const struct actor_type base = {
        .name = "disk", .start = start, .recv = on_message, .stop = stop};
    struct disk *d = mem_zalloc(1, sizeof(*d));
    if (d == NULL) {
        err_sys(e, -ENOMEM, "disk");
        return NULL;
    }
    d->o = *o;
    d->generation = o->generation;
    d->type = base;
    d->type.inbox = o->inbox;
    d->records = mem_alloc((size_t)DISK_RECORDS * QUEUE_JOURNAL_RECORD);
    d->record_files = mem_alloc(DISK_RECORDS * sizeof(*d->record_files));
    if (d->records == NULL || d->record_files == NULL) {
        err_sys(e, -ENOMEM, "disk");
        goto err_after_alloc;
    }
    place_init(&d->place, o->fs, o->root);
    if (actor_start(&d->actor, &d->type, d, e) == 0) {
        return d;
    }
err_after_alloc:
    mem_free(d->record_files);
    mem_free(d->records);
    mem_free(d);
    return NULL;
}

int disk_post(struct disk *d, struct disk_msg *m)
{
    return actor_post(&d->actor, m);
}

void disk_stop(struct disk *d)
{
    actor_stop(&d->actor);
    actor_join(&d->actor);
}

void disk_free(struct disk *d)
{
    actor_free(&d->actor);
    mem_free(d->record_files);
    mem_free(d->records);
    mem_free(d);
}

struct disk_stats disk_stats(struct disk *d)
{
    return (struct disk_stats){
        .writes = atomic_load_explicit(&d->writes, memory_order_relaxed),
        .bytes = atomic_load_explicit(&d->bytes, memory_order_relaxed),
        .syncs = atomic_load_explicit(&d->syncs, memory_order_relaxed),
        .saves = atomic_load_explicit(&d->saves, memory_order_relaxed),
    };
}
