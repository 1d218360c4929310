/* verify.c - what happens when a job has all it wanted: PAR2 decides whether that is enough.
 *
 * The facts (names, and the CRC of every article that was written) are copied on the engine's thread; the work is done
 * on a worker of libuv's pool; its end is an event. Blocks are proven by the CRCs that are known from decoding, so a
 * healthy job is not read again. What is short is told to the core in blocks, which fetches the cheapest volumes and
 * calls again. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/parts.h"
#include "par2/par2.h"

struct verify_file {
    char *name;
    bool par2;
    uint64_t size;
    struct par2_range *ranges;
    size_t range_count;
};

struct verify {
    struct list node; /* of engine->verifies */
    uv_work_t work;
    struct engine *engine;
    uint32_t job_id;
    int dir; /* opened by the worker */
    char *dir_path;
    struct verify_file *files;
    size_t file_count;
    uint32_t failed_articles;
    bool dropped; /* the core does not want the answer any more */
    atomic_bool cancel;
    atomic_uint_fast64_t beats; /* grows while it gets on */
    uint64_t beats_seen;
    /* The answer. */
    enum coord_code code;
    uint32_t blocks;
    char text[200];
};

static void free_verify(struct verify *v)
{
    for (size_t i = 0; i < v->file_count; i++) {
        mem_free(v->files[i].name);
        mem_free(v->files[i].ranges);
    }
    mem_free(v->files);
    mem_free(v->dir_path);
    mem_free(v);
}

/* ---- on the worker ---- */

static bool on_progress(void *arg, const struct par2_progress *p)
{
    struct verify *v = arg;
    (void)p;
    atomic_fetch_add_explicit(&v->beats, 1, memory_order_relaxed);
    return atomic_load_explicit(&v->cancel, memory_order_relaxed);
}

static void conclude(struct verify *v, enum coord_code code, const char *text)
{
    v->code = code;
    snprintf(v->text, sizeof(v->text), "%s", text);
}

static const struct verify_file *find_file(const struct verify *v, const char *name)
{
    for (size_t i = 0; i < v->file_count; i++) {
        if (strcmp(v->files[i].name, name) == 0) {
            return &v->files[i];
        }
    }
    return NULL;
}

/* Damaged files that repair put aside have done their service. */
static void remove_backups(struct verify *v, const struct par2_set *set)
{
    for (size_t n = 0; par2_backup(set, n) != NULL; n++) {
        (void)unlinkat(v->dir, par2_backup(set, n), 0);
    }
}

/* One set: proven, repaired, or short of blocks. False: the answer is known and it is not good. */
static bool verify_set(struct verify *v, struct par2_catalog *catalog, size_t which)
{
    struct par2_set *set;
    struct err e;
    if (par2_set_new(&set, catalog, which, v->dir, PAR2_NAMES_CLEANED, &e) != 0) {
        conclude(v, COORD_PAR_FAILED, e.msg);
        return false;
    }
    struct par2_info info = par2_set_info(set);
    for (size_t n = 0; n < info.files; n++) {
        const struct verify_file *f = find_file(v, par2_set_file(set, n).name);
        if (f != NULL && f->range_count > 0) {
            par2_claim(set, n, f->size, f->ranges, f->range_count);
        }
    }
    struct par2_options o = {.progress = on_progress, .arg = v};
    bool good = false;
    int rv = par2_verify(set, &o, &e);
    struct par2_status st = par2_status(set);
    if (rv != 0) {
        conclude(v, COORD_STAGE, e.msg);
    } else if (st.recovery_lacking > 0) {
        v->blocks += st.recovery_lacking;
        snprintf(v->text, sizeof(v->text),
                 "%u of %u blocks are missing, %u recovery blocks are here, %u more are needed",
                 st.blocks_missing, info.blocks, st.recovery, st.recovery_lacking);
        v->code = COORD_PAR_BLOCKS;
    } else if (!st.whole && (rv = par2_repair(set, &o, &e)) != 0) {
        conclude(v, rv == ERR_STOPPED ? COORD_STAGE : COORD_PAR_FAILED, e.msg);
    } else {
        if (!st.whole) {
            remove_backups(v, set);
            snprintf(v->text, sizeof(v->text), "repaired: %u of %u blocks were missing",
                     st.blocks_missing, info.blocks);
        }
        good = true;
    }
    par2_set_free(set);
    return good;
}

static void verify_all(struct verify *v)
{
    struct par2_catalog *catalog = par2_catalog_new(&fsx_kernel);
    if (catalog == NULL) {
        conclude(v, COORD_STAGE, "no memory");
        return;
    }
    for (size_t i = 0; i < v->file_count; i++) {
        if (v->files[i].par2) {
            struct err e;
            if (par2_catalog_add(catalog, v->dir, v->files[i].name, NULL, &e) != 0) {
                log_write(LOG_WARNING, v->job_id, "PAR2: %s", e.msg);
            }
        }
    }
    size_t sets = par2_catalog_sets(catalog);
    bool good = true;
    for (size_t n = 0; n < sets; n++) {
        good = verify_set(v, catalog, n) && good;
    }
    if (good && sets == 0 && v->failed_articles > 0) {
        snprintf(v->text, sizeof(v->text),
                 "%u articles are missing or damaged, and there are no recovery files",
                 v->failed_articles);
        v->code = COORD_PAR_FAILED;
    }
    par2_catalog_free(catalog);
}

static void run(uv_work_t *w)
{
    struct verify *v = w->data;
    v->code = COORD_OK;
    struct err e;
    v->dir =
        fsx_open_beneath(&fsx_kernel, v->engine->root, v->dir_path, O_RDONLY | O_DIRECTORY, 0, &e);
    if (v->dir < 0) {
        conclude(v, v->dir == -ENOENT && v->file_count == 0 ? COORD_OK : COORD_DISK_IO, e.msg);
        return;
    }
    verify_all(v);
    close(v->dir);
}

/* ---- on the engine's thread ---- */

static void on_done(uv_work_t *w, int status)
{
    struct verify *v = w->data;
    struct engine *e = v->engine;
    (void)status;
    list_remove(&v->node);
    if (!v->dropped) {
        struct coord_event ev = {.type = COORD_EV_POST,
                                 .post = {.job_id = v->job_id,
                                          .kind = COORD_POST_ENDED,
                                          .code = v->code,
                                          .blocks = v->blocks,
                                          .text = v->text[0] != '\0' ? v->text : NULL}};
        engine_step(e, &ev);
    }
    free_verify(v);
}

/* Adjoining parts in the order of the articles; where one is missing the next range begins anew. */
static bool copy_file(struct verify_file *to, const struct queue_file *f)
{
    to->name = mem_strdup(queue_file_name(f));
    to->par2 = f->kind == NZB_PAR2_MAIN || f->kind == NZB_PAR2_VOLUME;
    to->ranges = mem_alloc((f->count + 1) * sizeof(*to->ranges));
    if (to->name == NULL || to->ranges == NULL) {
        return false;
    }
    uint64_t end = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct queue_part *p = &f->part[i];
        if (f->state[i] == QUEUE_DONE && p->size > 0 && p->offset >= end) {
            to->ranges[to->range_count++] =
                (struct par2_range){.offset = p->offset, .length = p->size, .crc = p->crc32};
            end = p->offset + p->size;
        }
    }
    to->size = f->size != 0 ? f->size : end;
    return true;
}

static struct verify *new_verify(struct engine *e, const struct queue_job *j)
{
    struct verify *v = mem_zalloc(1, sizeof(*v));
    if (v == NULL) {
        return NULL;
    }
    v->engine = e;
    v->job_id = j->id;
    v->work.data = v;
    list_init(&v->node);
    v->dir_path = mem_strdup(j->dest_dir);
    v->files = mem_zalloc(j->file_count + 1, sizeof(*v->files));
    bool good = v->dir_path != NULL && v->files != NULL;
    for (uint32_t i = 0; good && i < j->file_count; i++) {
        const struct queue_file *f = j->files[i];
        if (f->closed) {
            good = copy_file(&v->files[v->file_count++], f);
        }
        if (f->kind != NZB_PAR2_VOLUME && f->kind != NZB_EXTRA) {
            v->failed_articles += f->failed;
        }
    }
    if (!good) {
        free_verify(v);
        return NULL;
    }
    return v;
}

void verify_start(struct engine *e, uint32_t job_id)
{
    const struct queue_job *j = queue_job(coord_queue(e->core), job_id);
    PRE(j != NULL);
    struct verify *v = new_verify(e, j);
    if (v == NULL || uv_queue_work(&e->actor.loop, &v->work, run, on_done) != 0) {
        IMPOSSIBLE("no memory to verify with");
    }
    list_push_back(&e->verifies, &v->node);
}

void verify_stop(struct engine *e, uint32_t job_id)
{
    LIST_FOREACH (n, &e->verifies) {
        struct verify *v = LIST_ENTRY(n, struct verify, node);
        if (v->job_id == job_id && !v->dropped) {
            v->dropped = true;
            atomic_store_explicit(&v->cancel, true, memory_order_relaxed);
        }
    }
}

void verify_vouch(struct engine *e)
{
    LIST_FOREACH_SAFE (n, &e->verifies) {
        struct verify *v = LIST_ENTRY(n, struct verify, node);
        uint64_t beats = atomic_load_explicit(&v->beats, memory_order_relaxed);
        if (!v->dropped && beats != v->beats_seen) {
            v->beats_seen = beats;
            struct coord_event ev = {.type = COORD_EV_POST,
                                     .post = {.job_id = v->job_id, .kind = COORD_POST_PROGRESS}};
            engine_step(e, &ev);
        }
    }
}
