/* write.c - the core's effects for the disk, and the disk's answers as events.
 *
 * Article data and journal records use slots that go round; what is rare (files, snapshots, NZBs) brings its own
 * memory, strings included. The disk does all of it in the order in which it was sent. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/name.h"
#include "engine/parts.h"

/* A message of any kind, and what it borrows. */
struct write_slot {
    union {
        struct disk_msg msg; /* first: a message is its slot */
        struct disk_write write;
        struct disk_journal journal;
        struct disk_file_msg file;
        struct disk_space space;
        struct disk_save save;
        struct disk_nzb nzb;
    };
    struct list node;
    uint32_t file_id; /* or the job's */
    struct err err;
    char *dir;
    char *name;
    void *bytes;       /* STORE: ours to free */
    struct load *load; /* LOAD: which it belongs to ... */
    uint32_t source;   /* ... and its place there */
};

/* All NZBs of a job, on their way from the disk. */
struct load {
    uint32_t job_id;
    uint32_t count, left;
    int code;
    char text[ERR_MSG_MAX];
    struct nzb *nzbs[];
};

static struct write_slot *slot_of(struct list *node)
{
    return LIST_ENTRY(node, struct write_slot, node);
}

/* Never NULL: there is no way on without telling the disk, and the queue on it is whole. */
static struct write_slot *take_slot(struct engine *e, enum disk_kind kind)
{
    struct list *node = list_pop_front(&e->spare_writes);
    struct write_slot *s = node != NULL ? slot_of(node) : mem_alloc(sizeof(*s));
    if (s == NULL) {
        IMPOSSIBLE("no memory for a message to the disk");
    }
    memset(s, 0, sizeof(*s));
    list_init(&s->node);
    s->msg.kind = kind;
    s->msg.err = &s->err;
    return s;
}

static void give_slot(struct engine *e, struct write_slot *s)
{
    mem_free(s->dir);
    mem_free(s->name);
    mem_free(s->bytes);
    list_push_front(&e->spare_writes, &s->node);
}

static void post(struct engine *e, struct write_slot *s)
{
    if (disk_post(e->disk, &s->msg) != 0) {
        IMPOSSIBLE("the disk ends after everybody else");
    }
}

static char *copy(const char *s)
{
    char *c = mem_strdup(s != NULL ? s : "");
    if (c == NULL) {
        IMPOSSIBLE("no memory for a name");
    }
    return c;
}

/* ---- out ---- */

static void send_file(struct engine *e, enum disk_kind kind, const struct coord_file *f)
{
    struct write_slot *s = take_slot(e, kind);
    char name[NAME_LEN_MAX + 1] = "";
    if (f->name != NULL) { /* from yEnc, the subject or a user: this is where it is made harmless */
        name_clean(NAME_FILE, f->name, strlen(f->name), name);
    }
    s->dir = copy(f->dir);
    s->name = copy(kind == DISK_MOVE ? f->name : name);
    s->file_id = f->file_id;
    s->file.job_id = f->job_id;
    s->file.file_id = f->file_id;
    s->file.dir = s->dir;
    s->file.name = s->name;
    s->file.size = f->size;
    s->file.has_data = f->has_data;
    post(e, s);
}

static void store_nzb(struct engine *e, uint32_t job_id, struct engine_text *text)
{
    PRE(text != NULL);
    struct write_slot *s = take_slot(e, DISK_NZB_STORE);
    const struct queue_job *j = queue_job(coord_queue(e->core), job_id);
    s->file_id = s->nzb.job_id = job_id;
    s->bytes = text;
    s->nzb.bytes = text->bytes;
    s->nzb.len = text->len;
    s->name = copy(j != NULL ? j->filename : NULL);
    s->nzb.filename = s->name;
    post(e, s);
}

static void load_nzbs(struct engine *e, uint32_t job_id)
{
    const struct queue_job *j = queue_job(coord_queue(e->core), job_id);
    PRE(j != NULL && j->source_count > 0);
    struct load *l = mem_zalloc(1, sizeof(*l) + j->source_count * sizeof(l->nzbs[0]));
    if (l == NULL) {
        IMPOSSIBLE("no memory to load NZBs");
    }
    l->job_id = job_id;
    l->count = l->left = j->source_count;
    for (uint32_t i = 0; i < j->source_count; i++) {
        struct write_slot *s = take_slot(e, DISK_NZB_LOAD);
        snprintf(s->nzb.stored, sizeof(s->nzb.stored), "%s", j->sources[i].stored);
        s->name = copy(j->filename);
        s->nzb.filename = s->name;
        s->load = l;
        s->source = i;
        post(e, s);
    }
}

static void forget_nzb(struct engine *e, const char *stored)
{
    struct write_slot *s = take_slot(e, DISK_NZB_FORGET);
    snprintf(s->nzb.stored, sizeof(s->nzb.stored), "%s", stored);
    post(e, s);
}

void write_effect(struct engine *e, const struct coord_effect *fx)
{
    struct write_slot *s;
    switch (fx->type) {
    case COORD_FX_OPEN_FILE:
        send_file(e, DISK_OPEN, &fx->file);
        break;
    case COORD_FX_CLOSE_FILE:
        send_file(e, DISK_CLOSE, &fx->file);
        break;
    case COORD_FX_DELETE_FILES:
        send_file(e, DISK_DELETE, &fx->file);
        break;
    case COORD_FX_QUARANTINE:
        send_file(e, DISK_QUARANTINE, &fx->file);
        break;
    case COORD_FX_MOVE_DIR:
        send_file(e, DISK_MOVE, &fx->file);
        break;
    case COORD_FX_WRITE:
        s = take_slot(e, DISK_WRITE);
        s->write.lease = fx->write.lease;
        s->write.file_id = fx->write.file_id;
        s->write.offset = fx->write.offset;
        s->write.buf = (struct buf *)(uintptr_t)fx->write.data;
        post(e, s);
        break;
    case COORD_FX_JOURNAL:
        s = take_slot(e, DISK_JOURNAL);
        s->journal.record = fx->journal;
        post(e, s);
        break;
    case COORD_FX_CHECK_SPACE:
        post(e, take_slot(e, DISK_SPACE));
        break;
    case COORD_FX_SAVE: /* the queue as it is when the step returns */
        e->save_wanted = true;
        e->save_changes = fx->changes;
        break;
    case COORD_FX_STORE_NZB:
        store_nzb(e, fx->nzb.job_id, engine_text_of(fx->nzb.data));
        break;
    case COORD_FX_LOAD_NZB:
        load_nzbs(e, fx->nzb.job_id);
        break;
    case COORD_FX_FORGET_NZB:
        forget_nzb(e, fx->nzb.stored);
        break;
    default:
        IMPOSSIBLE("not an effect for the disk");
    }
}

void write_snapshot(struct engine *e)
{
    e->save_wanted = false;
    struct write_slot *s = take_slot(e, DISK_SAVE);
    int rv = queue_snapshot(coord_queue(e->core), &s->save.snapshot);
    if (rv == 0) {
        post(e, s);
        return;
    }
    give_slot(e, s);
    struct coord_event ev = {.type = COORD_EV_SAVED,
                             .saved = {.changes = e->save_changes,
                                       .code = COORD_DISK_IO,
                                       .text = "no memory for the snapshot"}};
    engine_step(e, &ev);
}

/* ---- in ---- */

static enum coord_code code_of(int code)
{
    switch (code) {
    case 0:
        return COORD_OK;
    case -ENOSPC:
    case -EDQUOT:
        return COORD_NO_SPACE;
    default:
        return COORD_DISK_IO;
    }
}

/* The name it really got is the one that verifying and users must know. */
static void keep_name(struct engine *e, const struct write_slot *s)
{
    struct queue *q = coord_queue(e->core);
    struct queue_file *f = queue_file(q, s->file_id);
    if (f != NULL && strcmp(queue_file_name(f), s->file.made) != 0 &&
        queue_file_identify(q, f, s->file.made, f->kind, f->blocks) != 0) {
        log_warning("no memory to remember that file %u is called %s", f->id, s->file.made);
    }
}

static void on_file(struct engine *e, const struct write_slot *s)
{
    struct coord_event ev = {.disk = {.file_id = s->file_id, .code = code_of(s->msg.code)}};
    if (s->msg.code != 0) {
        log_warning("disk: %s", s->err.msg);
    }
    switch (s->msg.kind) {
    case DISK_OPEN:
        if (s->msg.code == ERR_NOT_FOUND) { /* somebody removed what was there */
            ev.type = COORD_EV_LOST;
            engine_step(e, &ev);
        } /* other failures: its writes will fail for the same reason, and say so */
        return;
    case DISK_CLOSE:
        if (s->msg.code == 0) {
            keep_name(e, s);
        }
        ev.type = s->msg.code == ERR_NOT_FOUND ? COORD_EV_LOST : COORD_EV_CLOSED;
        engine_step(e, &ev);
        return;
    default:
        return;
    }
}

static void on_save(struct engine *e, struct write_slot *s)
{
    if (s->msg.code == 0) {
        queue_snapshot_saved(coord_queue(e->core), &s->save.snapshot);
    }
    struct coord_event ev = {.type = COORD_EV_SAVED,
                             .saved = {.changes = s->save.snapshot.changes,
                                       .generation = s->save.snapshot.generation,
                                       .code = code_of(s->msg.code),
                                       .text = s->msg.code != 0 ? s->err.msg : NULL}};
    engine_step(e, &ev);
    queue_snapshot_free(&s->save.snapshot);
}

static void on_stored(struct engine *e, const struct write_slot *s)
{
    struct coord_event ev = {.type = COORD_EV_NZB_STORED,
                             .nzb = {.job_id = s->file_id,
                                     .code = code_of(s->msg.code),
                                     .stored = s->nzb.stored,
                                     .text = s->msg.code != 0 ? s->err.msg : NULL}};
    engine_step(e, &ev);
}

static void on_loaded(struct engine *e, const struct write_slot *s)
{
    struct load *l = s->load;
    l->nzbs[s->source] = s->nzb.nzb;
    if (s->msg.code != 0 && l->code == 0) {
        l->code = s->msg.code;
        memcpy(l->text, s->err.msg, sizeof(l->text));
    }
    if (--l->left > 0) {
        return;
    }
    for (uint32_t i = 0; l->code != 0 && i < l->count; i++) {
        nzb_unref(l->nzbs[i]);
    }
    struct coord_event ev = {.type = COORD_EV_NZB_LOADED,
                             .nzb = {.job_id = l->job_id,
                                     .code = l->code == 0 ? COORD_OK : COORD_NZB_INVALID,
                                     .nzbs = l->code == 0 ? l->nzbs : NULL,
                                     .nzb_count = l->code == 0 ? l->count : 0,
                                     .text = l->code != 0 ? l->text : NULL}};
    engine_step(e, &ev);
    mem_free(l);
}

void write_message(struct engine *e, struct disk_msg *m)
{
    if (m->kind == DISK_LOST) {
        struct coord_event ev = {
            .type = COORD_EV_LOST,
            .disk = {.file_id = ((struct disk_lost *)m)->file_id, .code = code_of(m->code)}};
        mem_free(m);
        engine_step(e, &ev);
        return;
    }
    struct write_slot *s = (struct write_slot *)m;
    struct coord_event ev;
    switch (m->kind) {
    case DISK_WRITE:
        ev = (struct coord_event){.type = COORD_EV_WRITTEN,
                                  .disk = {.lease = s->write.lease, .code = code_of(m->code)}};
        if (m->code != 0) {
            log_warning("disk: %s", s->err.msg);
        }
        engine_step(e, &ev);
        break;
    case DISK_SPACE:
        ev = (struct coord_event){
            .type = COORD_EV_SPACE,
            .disk = {.code = code_of(m->code), .free_bytes = s->space.free_bytes}};
        engine_step(e, &ev);
        break;
    case DISK_SAVE:
        on_save(e, s);
        break;
    case DISK_NZB_STORE:
        on_stored(e, s);
        break;
    case DISK_NZB_LOAD:
        on_loaded(e, s);
        break;
    case DISK_NZB_FORGET:
    case DISK_JOURNAL:
        break;
    default:
        on_file(e, s);
    }
    give_slot(e, s);
}

void write_free(struct engine *e)
{
    for (struct list *n; (n = list_pop_front(&e->spare_writes)) != NULL;) {
        mem_free(slot_of(n));
    }
}
