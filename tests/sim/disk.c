/* disk.c - a disk that does one thing after another and forgets what was not synced. Article data is a table of
 * checksums; the queue's own files are real ones, on tests/lib/fsim. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

void disk_make(struct sim *s)
{
    s->fs = fsim_new(s->seed);
    s->disk_ms = (unsigned)(sim_chance(s, 200) ? sim_pick(s, 50, 2000) : sim_pick(s, 0, 20));
    if (sim_chance(s, 250)) {
        s->full_from_ms = s->now_ms + sim_pick(s, 0, 60000);
        s->full_until_ms = s->full_from_ms + sim_pick(s, 500, 300000);
    }
    if (sim_chance(s, 200)) {
        s->bad_from_ms = s->now_ms + sim_pick(s, 0, 60000);
        s->bad_until_ms = s->bad_from_ms + sim_pick(s, 500, 200000);
        s->bad_window = true;
    }
}

void disk_free(struct sim *s)
{
    disk_crash(s);
    for (unsigned i = 0; i < FILES; i++) {
        free(s->files[i].cells);
    }
    fsim_free(s->fs);
}

static enum coord_code fault(const struct sim *s)
{
    if (s->calm) {
        return COORD_OK;
    }
    if (s->now_ms >= s->full_from_ms && s->now_ms < s->full_until_ms) {
        return COORD_NO_SPACE;
    }
    return s->now_ms >= s->bad_from_ms && s->now_ms < s->bad_until_ms ? COORD_DISK_IO : COORD_OK;
}

/* ---- the line of operations ---- */

void disk_push(struct sim *s, const struct op *op)
{
    MUST(s, s->op_count < 1024, "the disk is asked for far too much");
    s->ops[(s->op_first + s->op_count++) % 1024] = *op;
    if (!s->disk_busy) {
        s->disk_busy = true;
        sim_later(s, rng_below(&s->r, s->disk_ms + 1), H_DISK, 0);
    }
}

static struct disk_file *file_of(struct sim *s, uint32_t id)
{
    MUST(s, id > 0 && id < FILES, "file id %u", id);
    return &s->files[id];
}

static void write_cell(struct sim *s, const struct op *op)
{
    struct disk_file *f = file_of(s, op->file_id);
    unsigned i = (unsigned)(op->offset / 1000);
    if (i >= f->room) {
        f->cells = realloc(f->cells, (i + 1) * sizeof(*f->cells));
        memset(f->cells + f->room, 0, (i + 1 - f->room) * sizeof(*f->cells));
        f->room = i + 1;
    }
    f->exists = true;
    f->cells[i] = (struct cell){.crc = op->crc, .size = op->size, .there = true};
}

const struct cell *disk_cell(const struct sim *s, uint32_t file_id, uint64_t offset)
{
    const struct disk_file *f = &s->files[file_id < FILES ? file_id : 0];
    unsigned i = (unsigned)(offset / 1000);
    return f->exists && i < f->room && f->cells[i].there ? &f->cells[i] : NULL;
}

static void sync_file(struct disk_file *f)
{
    for (unsigned i = 0; i < f->room; i++) {
        f->cells[i].synced = f->cells[i].there;
    }
}

static void remove_file(struct disk_file *f)
{
    free(f->cells);
    *f = (struct disk_file){.job_id = f->job_id};
}

/* Data first, then the records that name it. */
static void sync_all(struct sim *s)
{
    for (unsigned i = 0; i < FILES; i++) {
        sync_file(&s->files[i]);
    }
    unsigned char bytes[QUEUE_JOURNAL_RECORD];
    for (unsigned i = 0; i < s->kept_count && s->journal_open; i++) {
        queue_journal_encode(&s->kept[i], bytes);
        (void)queue_journal_append(&s->journal, bytes, sizeof(bytes), NULL);
    }
    s->kept_count = 0;
}

static void lose(struct sim *s, uint32_t file_id)
{
    struct disk_file *f = file_of(s, file_id);
    unsigned kept = 0;
    remove_file(f);
    for (unsigned i = 0; i < s->kept_count; i++) {
        if (s->kept[i].article.file_id != file_id) {
            s->kept[kept++] = s->kept[i];
        }
    }
    s->kept_count = kept;
    sim_say(s, "disk loses file %u", file_id);
    struct coord_event ev = {.type = COORD_EV_LOST, .disk = {.file_id = file_id}};
    sim_step(s, &ev);
}

void disk_sync(struct sim *s)
{
    uint32_t victim = 1 + (uint32_t)rng_below(&s->r, 24);
    s->sync_set = false;
    if (!s->calm && sim_chance(s, 40) && s->files[victim].exists && !s->files[victim].closed) {
        lose(s, victim); /* a sync failed: nothing in the file can be trusted */
        return;
    }
    sync_all(s);
}

/* ---- operations ---- */

static void switch_journal(struct sim *s, uint64_t generation)
{
    if (s->journal_open) {
        queue_journal_close(&s->journal);
    }
    s->journal_open =
        queue_journal_open(&s->journal, fsim_fs(s->fs), FSIM_ROOT, generation, NULL) == 0;
}

static void do_save(struct sim *s, struct op *op)
{
    struct coord_event ev = {
        .type = COORD_EV_SAVED,
        .saved = {.changes = op->changes, .generation = op->snapshot.generation, .code = fault(s)},
    };
    if (ev.saved.code == COORD_OK) {
        sync_all(s);
        bool fail = !s->calm && sim_chance(s, 30);
        if (fail) {
            fsim_fail_at(s->fs, 1 + (unsigned)rng_below(&s->r, 6), 1, -ENOSPC);
        }
        if (queue_snapshot_write(fsim_fs(s->fs), FSIM_ROOT, &op->snapshot, NULL) != 0) {
            MUST(s, fail, "a snapshot could not be written");
            ev.saved.code = COORD_NO_SPACE;
        }
        fsim_fail_at(s->fs, 0, 0, 0);
    }
    switch_journal(s, op->snapshot.generation);
    queue_snapshot_free(&op->snapshot);
    sim_say(s, "disk saved: %s", coord_error(ev.saved.code)->name);
    sim_step(s, &ev);
}

static void do_store(struct sim *s, const struct op *op)
{
    char name[QUEUE_STORED_NAME] = "";
    const struct post *p = &s->posts[op->post];
    struct coord_event ev = {.type = COORD_EV_NZB_STORED,
                             .nzb = {.job_id = op->job_id, .code = fault(s)}};
    if (ev.nzb.code == COORD_OK) {
        MUST(s,
             queue_nzb_store(fsim_fs(s->fs), FSIM_ROOT, op->job_id, p->title, p->text, p->len, name,
                             NULL) == 0,
             "an NZB could not be stored");
        ev.nzb.stored = name;
    }
    sim_say(s, "disk stored the NZB of job %u: %s", op->job_id, coord_error(ev.nzb.code)->name);
    sim_step(s, &ev);
}

static void do_load(struct sim *s, const struct op *op)
{
    const struct queue_job *j = queue_job(coord_queue(s->c), op->job_id);
    struct nzb *nzbs[16];
    struct coord_event ev = {.type = COORD_EV_NZB_LOADED,
                             .nzb = {.job_id = op->job_id, .nzbs = nzbs}};
    for (uint32_t i = 0; j != NULL && i < j->source_count && i < 16; i++) {
        if (queue_nzb_load(fsim_fs(s->fs), FSIM_ROOT, j->sources[i].stored, j->filename, &nzbs[i],
                           NULL) != 0) {
            ev.nzb.code = COORD_NZB_INVALID;
            break;
        }
        ev.nzb.nzb_count++;
    }
    sim_say(s, "disk loaded the NZB of job %u: %s", op->job_id, coord_error(ev.nzb.code)->name);
    sim_step(s, &ev);
}

static void do_close(struct sim *s, const struct op *op)
{
    struct disk_file *f = file_of(s, op->file_id);
    struct coord_event ev = {.type = COORD_EV_CLOSED,
                             .disk = {.file_id = op->file_id, .code = fault(s)}};
    if (ev.disk.code == COORD_OK && op->has_data && !f->exists) {
        ev.type = COORD_EV_LOST;
    } else if (ev.disk.code == COORD_OK) {
        sync_all(s);
        f->closed = true;
    }
    sim_say(s, "disk closed file %u: %s", op->file_id, coord_event_name(ev.type));
    sim_step(s, &ev);
}

static void do_write(struct sim *s, const struct op *op)
{
    struct coord_event ev = {.type = COORD_EV_WRITTEN,
                             .disk = {.lease = op->lease, .code = fault(s)}};
    if (!file_of(s, op->file_id)->open) {
        ev.disk.code = COORD_DISK_IO;
    } else if (ev.disk.code == COORD_OK) {
        write_cell(s, op);
    } else if (sim_chance(s, 500)) { /* half of it */
        struct op torn = *op;
        torn.crc ^= 0x5a5a;
        write_cell(s, &torn);
    }
    if (!s->sync_set) {
        s->sync_set = true;
        sim_later(s, 1000, H_SYNC, 0);
    }
    sim_say(s, "disk wrote %u bytes of file %u at %llu: %s", op->size, op->file_id,
            (unsigned long long)op->offset, coord_error(ev.disk.code)->name);
    sim_step(s, &ev);
}

static void do_delete(struct sim *s, const struct op *op)
{
    if (op->file_id != 0) {
        remove_file(file_of(s, op->file_id));
        return;
    }
    for (unsigned i = 0; i < FILES; i++) {
        if (s->files[i].job_id == op->job_id) {
            remove_file(&s->files[i]);
        }
    }
}

static void do_journal(struct sim *s, const struct op *op)
{
    MUST(s, s->kept_count < 4096, "too many records");
    s->kept[s->kept_count++] = op->record;
    if (!s->sync_set) {
        s->sync_set = true;
        sim_later(s, 1000, H_SYNC, 0);
    }
}

void disk_do(struct sim *s)
{
    struct op op = s->ops[s->op_first];
    s->op_first = (s->op_first + 1) % 1024;
    s->op_count--;
    s->disk_busy = s->op_count > 0;
    if (s->disk_busy) {
        sim_later(s, rng_below(&s->r, s->disk_ms + 1), H_DISK, 0);
    }
    struct coord_event ev = {.type = COORD_EV_SPACE};
    switch (op.kind) {
    case OP_OPEN:
        if (op.has_data && !file_of(s, op.file_id)->exists) {
            ev = (struct coord_event){.type = COORD_EV_LOST, .disk = {.file_id = op.file_id}};
            sim_say(s, "disk misses file %u", op.file_id);
            sim_step(s, &ev);
        }
        file_of(s, op.file_id)->job_id = op.job_id;
        file_of(s, op.file_id)->open = true;
        break;
    case OP_WRITE:
        do_write(s, &op);
        break;
    case OP_CLOSE:
        do_close(s, &op);
        break;
    case OP_DELETE:
        do_delete(s, &op);
        break;
    case OP_JOURNAL:
        do_journal(s, &op);
        break;
    case OP_SAVE:
        do_save(s, &op);
        break;
    case OP_STORE:
        do_store(s, &op);
        break;
    case OP_LOAD:
        do_load(s, &op);
        break;
    case OP_FORGET:
        (void)queue_nzb_forget(fsim_fs(s->fs), FSIM_ROOT, op.stored, NULL);
        break;
    case OP_SPACE:
        ev.disk.free_bytes =
            fault(s) == COORD_NO_SPACE ? (sim_chance(s, 800) ? 1000 : 1u << 30) : 1u << 30;
        sim_step(s, &ev);
        break;
    }
}

/* ---- the power goes ---- */

void disk_crash(struct sim *s)
{
    for (unsigned i = 0; i < s->op_count; i++) {
        struct op *op = &s->ops[(s->op_first + i) % 1024];
        if (op->kind != OP_SAVE) {
            continue;
        }
        if (i == 0 && s->running && sim_chance(s, 500)) { /* in the middle of it */
            sync_all(s);
            fsim_cut_at(s->fs, 1 + (unsigned)rng_below(&s->r, 16));
            (void)queue_snapshot_write(fsim_fs(s->fs), FSIM_ROOT, &op->snapshot, NULL);
        }
        queue_snapshot_free(&op->snapshot);
    }
    s->op_count = s->op_first = 0;
    s->disk_busy = s->sync_set = s->journal_open = false;
    s->kept_count = 0;
    for (unsigned i = 0; i < FILES; i++) {
        struct disk_file *f = &s->files[i];
        f->open = false;
        for (unsigned k = 0; k < f->room; k++) {
            struct cell *c = &f->cells[k];
            if (c->there && !c->synced) {
                c->there = c->synced = sim_chance(s, 500);
            }
        }
    }
    fsim_reboot(s->fs);
}

static void loader_says(void *arg, const char *line)
{
    sim_say(arg, "loader: %s", line);
}

struct queue *disk_load(struct sim *s)
{
    struct queue *q = NULL;
    struct queue_load_report report;
    struct err e = {0};
    int rc = queue_load(fsim_fs(s->fs), FSIM_ROOT, sim_wall_ms(s) / 1000, loader_says, s, &q,
                        &report, &e);
    MUST(s, rc == 0, "the queue cannot be loaded: %s", e.msg);
    sim_say(s, "loaded from %d, generation %llu, %llu records", report.source,
            (unsigned long long)report.generation, (unsigned long long)report.replayed);
    switch_journal(s, report.generation);
    return q;
}
