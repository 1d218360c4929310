/* edit_files.c - files that leave a job: deleted, split off, merged into another. A file takes its articles, leases and
 * waits with it, because they are known by the file's id. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/name.h"
#include "queue/edit_ops.h"

static const char no_memory[] = "there is no memory for it";

/* Files come and go only while nothing but downloading concerns them. */
static bool may_change_files(const struct queue_job *j)
{
    return j->file_count > 0 && (j->life.state == QUEUE_CREATED || j->life.state == QUEUE_QUEUED ||
                                 j->life.state == QUEUE_DOWNLOADING);
}

/* Sources that none of the job's files come from are let go. */
static void drop_sources(struct queue_job *j)
{
    uint32_t kept = 0;
    for (uint32_t s = 0; s < j->source_count; s++) {
        bool used = false;
        for (uint32_t i = 0; i < j->file_count && !used; i++) {
            used = j->files[i]->nzb == j->sources[s].nzb;
        }
        if (used) {
            j->sources[kept++] = j->sources[s];
        } else {
            mem_free(j->sources[s].stored);
            nzb_unref(j->sources[s].nzb);
        }
    }
    j->source_count = kept;
}

/* After files left: places, lanes, totals. Never grows, so memory is never missing: an array that could not shrink
 * stays as it is. */
static void after_leaving(struct queue *q, struct queue_job *j)
{
    if (j->file_count > 0 && queue_job_files_changed(q, j) != 0) {
        for (unsigned lane = 0; lane <= q->server_count; lane++) {
            memset(j->ready[lane].words, 0, bitset_words(j->ready[lane].size) * sizeof(uint64_t));
        }
        for (uint32_t i = 0; i < j->file_count; i++) {
            j->files[i]->position = i;
        }
        for (uint32_t i = 0; i < j->file_count; i++) {
            queue_file_show(q, j->files[i]);
        }
    }
    drop_sources(j);
    queue_job_sum_posted(j);
    queue_changed(q, j);
}

/* ---- delete ---- */

static void delete_named(struct edit *x, struct queue_job *j)
{
    uint32_t kept = 0;
    bool waited = false;
    for (uint32_t i = 0; i < j->file_count; i++) {
        struct queue_file *f = j->files[i];
        if (f->mark != x->q->batch) {
            j->files[kept++] = f;
            continue;
        }
        waited = waited || f->waiting > 0;
        queue_tally_out(x->q, f);
        queue_file_free(x->q, f);
    }
    j->file_count = kept;
    after_leaving(x->q, j);
    if (waited) {
        queue_waits_purge(x->q);
    }
}

/* A job that loses its last file is deleted with it. */
void edit_delete_files(struct edit *x)
{
    struct queue *q = x->q;
    struct edit_thing t;
    for (uint32_t i = 0; i < x->edit->id_count; i++) {
        if (x->results[i].code == 0 && edit_find(x, i, &t) == 0) {
            if (!may_change_files(t.job)) {
                edit_fail(&x->results[i], ERR_CONFLICT, "the job is past downloading");
                t.file->mark = 0;
                continue;
            }
            x->results[i].todo = QUEUE_TODO_DROP_LEASES | QUEUE_TODO_DELETE_FILES;
            x->results[i].new_id = t.job->id; /* the file itself will be gone */
            t.job->mark = q->batch;
        }
    }
    for (uint32_t a = 0; a < q->active_count; a++) {
        struct queue_job *j = q->order[a];
        if (j->mark != q->batch) {
            continue;
        }
        j->mark = 0;
        uint32_t id = j->id;
        delete_named(x, j);
        uint32_t todo = j->file_count > 0 && j->wanted_left == 0 ? QUEUE_TODO_DOWNLOADED : 0;
        if (j->file_count == 0) {
            struct queue_edit_result r = {0};
            (void)edit_delete_job(x, (struct edit_thing){.job = j}, &r);
            todo = QUEUE_TODO_DELETE_FILES;
            a--; /* the next one moved up */
        }
        for (uint32_t i = 0; i < x->edit->id_count; i++) {
            x->results[i].todo |= x->results[i].new_id == id ? todo : 0;
        }
    }
    x->reorder = true;
}

/* ---- split ---- */

/* A job beside `from`, without files, that has what a user would expect it to have. */
static struct queue_job *sibling(struct edit *x, struct queue_job *from, const char *name)
{
    struct queue *q = x->q;
    struct queue_job *j = NULL;
    char clean[NAME_LEN_MAX + 1];
    name_clean(NAME_TITLE, name, strlen(name), clean);
    const struct queue_add add = {
        .name = clean,
        .filename = from->filename,
        .category = from->category,
        .params = from->params.at,
        .param_count = from->params.count,
        .priority = from->priority,
        .dupe_mode = from->dupe_mode,
        .now_at = x->edit->now_at,
    };
    if (queue_add(q, &add, &j, NULL) != 0) {
        return NULL;
    }
    for (uint32_t s = 0; s < from->source_count; s++) {
        if (queue_job_add_source(j, from->sources[s].nzb, from->sources[s].stored) != 0) {
            queue_job_remove(q, j);
            return NULL;
        }
    }
    j->life.state = from->life.state; /* it is a part of that job: no transition of its own */
    j->holds = from->holds;
    memcpy(j->hold_info, from->hold_info, sizeof(j->hold_info));
    /* Right behind the one it came from. */
    queue_order_remove(q, j);
    queue_order_insert(q, j, from->position + 1);
    return j;
}

static void move_named(struct edit *x, struct queue_job *from, struct queue_job *to)
{
    struct queue *q = x->q;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < from->file_count; i++) {
        struct queue_file *f = from->files[i];
        if (f->mark != q->batch) {
            from->files[kept++] = f;
            continue;
        }
        queue_tally_out(q, f);
        f->job = to;
        to->files[to->file_count++] = f;
        queue_tally_in(q, f);
    }
    from->file_count = kept;
}

void edit_split(struct edit *x)
{
    struct queue *q = x->q;
    struct queue_job *from = NULL, *to = NULL;
    struct edit_thing t;
    uint32_t named = 0;
    const char *why = NULL;
    for (uint32_t i = 0; i < x->edit->id_count; i++) {
        if (x->results[i].code != 0 || edit_find(x, i, &t) != 0) {
            continue;
        }
        from = from == NULL ? t.job : from;
        if (t.job != from) {
            edit_fail(&x->results[i], ERR_INVALID, "the files are of different jobs");
            t.file->mark = 0;
        }
    }
    for (uint32_t i = 0; from != NULL && i < from->file_count; i++) {
        named += from->files[i]->mark == q->batch;
    }
    if (from == NULL) {
        return;
    }
    if (!may_change_files(from)) {
        why = "the job is past downloading";
    } else if (x->text[0] == '\0') {
        why = "the new job needs a name";
    } else if (named == from->file_count) {
        why = "nothing would be left of the job";
    }
    struct queue_file **files = why == NULL ? mem_alloc(named * sizeof(*files)) : NULL;
    struct bitset *ready = NULL;
    bool ok = why == NULL && files != NULL &&
              queue_ready_alloc(&ready, q->server_count + 1, named) == 0 &&
              (to = sibling(x, from, x->text)) != NULL;
    if (!ok) {
        mem_free(files);
        mem_free(ready);
        for (uint32_t i = 0; i < x->edit->id_count; i++) {
            if (x->results[i].code == 0) {
                edit_fail(&x->results[i], why != NULL ? ERR_INVALID : -ENOMEM,
                          why != NULL ? why : no_memory);
            }
        }
        return;
    }
    to->files = files;
    to->ready = ready;
    (void)queue_job_ensure_stats(to, q->servers, q->server_count); /* else some are not counted */
    q->adding = true;                                              /* shown when both are whole */
    move_named(x, from, to);
    after_leaving(q, to);
    after_leaving(q, from);
    to->added_files = to->file_count;
    from->added_files -= from->added_files < to->file_count ? from->added_files : to->file_count;
    q->adding = false;
    x->reorder = true;
    for (uint32_t i = 0; i < x->edit->id_count; i++) {
        if (x->results[i].code == 0) {
            x->results[i].new_id = to->id;
            x->results[i].todo =
                QUEUE_TODO_MOVE_DIR | (from->wanted_left == 0 ? QUEUE_TODO_DOWNLOADED : 0);
        }
    }
}

/* ---- merge ---- */

static int by_class(const void *a, const void *b)
{
    const struct queue_file *x = *(struct queue_file *const *)a,
                            *y = *(struct queue_file *const *)b;
    unsigned a_class = queue_fetch_class(x->kind), b_class = queue_fetch_class(y->kind);
    if (a_class != b_class) {
        return a_class < b_class ? -1 : 1;
    }
    return x->position < y->position ? -1 : 1;
}

/* All of `from` into `to`; `from` is then empty and removed. On -ENOMEM nothing changed. */
static int merge(struct queue *q, struct queue_job *to, struct queue_job *from)
{
    uint32_t count = to->file_count + from->file_count, sources = to->source_count;
    struct queue_file **files = mem_alloc(count * sizeof(*files));
    struct bitset *ready = NULL;
    int rc = files != NULL ? queue_ready_alloc(&ready, q->server_count + 1, count) : -ENOMEM;
    for (uint32_t s = 0; s < from->source_count && rc == 0; s++) {
        rc = queue_job_add_source(to, from->sources[s].nzb, from->sources[s].stored);
    }
    if (rc != 0) {
        while (to->source_count > sources) {
            mem_free(to->sources[--to->source_count].stored);
            nzb_unref(to->sources[to->source_count].nzb);
        }
        mem_free(files);
        mem_free(ready);
        return -ENOMEM;
    }
    memcpy(files, to->files, to->file_count * sizeof(*files));
    for (uint32_t i = 0; i < from->file_count; i++) {
        struct queue_file *f = from->files[i];
        queue_tally_out(q, f);
        f->job = to;
        f->position = to->file_count + i;
        queue_tally_in(q, f);
        files[to->file_count + i] = f;
    }
    mem_free(to->files);
    mem_free(to->ready);
    to->files = files;
    to->ready = ready;
    to->file_count = count;
    qsort(files, count, sizeof(*files), by_class);
    for (uint32_t i = 0; i < count; i++) {
        files[i]->position = i;
    }
    to->downloaded_bytes += from->downloaded_bytes;
    to->added_files += from->added_files;
    for (uint32_t s = 0; s < from->server_stat_count; s++) {
        const struct queue_server_stat *stat = &from->server_stats[s];
        queue_job_count(to, stat->server_id, stat->done, stat->failed);
    }
    from->file_count = 0;
    return 0;
}

void edit_merge(struct edit *x)
{
    struct queue *q = x->q;
    struct edit_thing t, target = {0};
    for (uint32_t i = 0; i < x->edit->id_count; i++) {
        struct queue_edit_result *r = &x->results[i];
        if (edit_find(x, i, &t) != 0) {
            continue;
        }
        if (!may_change_files(t.job)) {
            edit_fail(r, ERR_CONFLICT, "the job has no files or is past downloading");
        } else if (target.job == NULL && i == 0) {
            target = t;
        } else if (target.job == NULL) {
            edit_fail(r, ERR_INVALID, "the first job, which takes the files, is missing");
        } else if (t.job == target.job) {
            edit_fail(r, ERR_INVALID, "a job cannot be merged with itself");
        } else {
            q->adding = true; /* shown when whole */
            int rc = merge(q, target.job, t.job);
            if (rc != 0) {
                edit_fail(r, rc, no_memory);
            } else {
                queue_job_remove(q, t.job);
                after_leaving(q, target.job);
                memset(target.job->key, 0, sizeof(target.job->key)); /* no NZB is that any more */
                r->new_id = target.job->id;
                r->todo = QUEUE_TODO_MOVE_DIR;
            }
            q->adding = false;
            queue_order_rebuild(q);
        }
    }
}
