/* load_files.c - the files of a job out of what save_files.c wrote. Every number is checked against the NZB: the
 * checksum says that the text is what was written, not that the NZB is still the one it was written for. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "queue/b64.h"
#include "queue/pick.h"
#include "queue/saved.h"

static int corrupt(struct err *e, const struct queue_file *f, const char *what)
{
    return err_set(e, ERR_CORRUPT, "file %u: '%s' does not fit its NZB", f->id, what);
}

static uint64_t number(json_t *o, const char *key)
{
    json_int_t v = json_integer_value(json_object_get(o, key));
    return v > 0 ? (uint64_t)v : 0;
}

/* Decodes base64 that must be exactly `n` bytes. A key that is not there: zeros. */
static bool bytes(json_t *o, const char *key, void *out, size_t n)
{
    json_t *v = json_object_get(o, key);
    memset(out, 0, n);
    return v == NULL ||
           (json_is_string(v) && b64_decode(json_string_value(v), json_string_length(v), out, n));
}

/* Decodes as many items of `size` bytes as there are, at most `max`, into *out (mem_free() it; NULL when the key is not
 * there); *count is told. 0, ERR_CORRUPT, -ENOMEM. */
static int items(json_t *o, const char *key, size_t size, uint32_t max, void **out, uint32_t *count)
{
    json_t *v = json_object_get(o, key);
    *count = 0;
    *out = NULL;
    if (v == NULL) {
        return 0;
    }
    const char *text = json_string_value(v);
    size_t len = json_string_length(v), n = len / 4 * 3;
    if (text == NULL) {
        return ERR_CORRUPT;
    }
    n -= len > 0 && text[len - 1] == '=';
    n -= len > 1 && text[len - 2] == '=';
    if (n % size != 0 || n / size > max) {
        return ERR_CORRUPT;
    }
    *out = mem_alloc(n + 1);
    if (*out == NULL) {
        return -ENOMEM;
    }
    *count = (uint32_t)(n / size);
    return b64_decode(text, len, *out, n) ? 0 : ERR_CORRUPT;
}

/* ---- articles ---- */

static int take_states(struct queue_file *f, json_t *o, struct err *e)
{
    size_t n = (f->count + 7) / 8;
    uint8_t *done = mem_alloc(n), *failed = mem_alloc(n);
    bool all = number(o, "all") != 0;
    int rc = 0;
    if (done == NULL || failed == NULL) {
        rc = err_sys(e, -ENOMEM, "file");
    } else if (!bytes(o, "done", done, n) || !bytes(o, "failed", failed, n)) {
        rc = corrupt(e, f, "done");
    }
    for (uint32_t i = 0; i < f->count && rc == 0; i++) {
        bool is_done = all || (done[i / 8] >> (i % 8) & 1) != 0;
        bool is_failed = (failed[i / 8] >> (i % 8) & 1) != 0;
        if (is_done && is_failed) {
            rc = corrupt(e, f, "failed");
        } else if (is_done || is_failed) {
            queue_article_set_state(f, i, is_done ? QUEUE_DONE : QUEUE_FAILED);
        }
    }
    mem_free(done);
    mem_free(failed);
    return rc;
}

static int take_parts(struct queue_file *f, json_t *o, struct err *e)
{
    uint32_t crcs, odds = 0, at = 0;
    void *crc = NULL, *odd = NULL;
    uint64_t rule = number(o, "part");
    int rc = items(o, "crc", sizeof(uint32_t), f->count, &crc, &crcs);
    rc = rc == 0 ? items(o, "odd", sizeof(struct saved_odd), f->count, &odd, &odds) : rc;
    if (rc == 0 && (crcs != f->done || rule > UINT32_MAX)) {
        rc = ERR_CORRUPT;
    }
    for (uint32_t i = 0; i < f->count && rc == 0; i++) {
        if (f->state[i] == QUEUE_DONE) {
            uint32_t before = f->nzb->number[f->posted->first + i] - 1;
            f->part[i] =
                (struct queue_part){before * rule, (uint32_t)rule, ((const uint32_t *)crc)[at++]};
        }
    }
    for (uint32_t i = 0; i < odds && rc == 0; i++) {
        const struct saved_odd *part = (const struct saved_odd *)odd + i;
        if (part->index >= f->count) {
            rc = ERR_CORRUPT;
        } else {
            f->part[part->index].offset = part->offset;
            f->part[part->index].size = part->size;
        }
    }
    mem_free(crc);
    mem_free(odd);
    return rc == -ENOMEM ? err_sys(e, rc, "file") : rc != 0 ? corrupt(e, f, "crc") : 0;
}

static int take_tries(struct queue_file *f, json_t *o, struct err *e)
{
    uint32_t n;
    void *raw;
    int rc = items(o, "tries", 2 * sizeof(uint32_t), f->count, &raw, &n);
    const uint32_t *pair = raw;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        uint32_t index = pair[i * 2], tries = pair[i * 2 + 1];
        /* A fallback that the NZB does not have would point outside of it. */
        if (index >= f->count || tries > UINT16_MAX ||
            tries >> QUEUE_FALLBACK_SHIFT > queue_fallback_count(f, index)) {
            rc = ERR_CORRUPT;
        } else {
            f->tries[index] = (uint16_t)tries;
        }
    }
    mem_free(raw);
    return rc == -ENOMEM ? err_sys(e, rc, "file") : rc != 0 ? corrupt(e, f, "tries") : 0;
}

static int take_tried(struct queue *q, struct queue_file *f, json_t *o, struct err *e)
{
    size_t i, words = (f->count + 63) / 64;
    json_t *item;
    uint64_t last = f->count % 64 != 0 ? (UINT64_C(1) << (f->count % 64)) - 1 : UINT64_MAX;
    json_array_foreach(json_object_get(o, "tried"), i, item)
    {
        uint64_t id = number(item, "server");
        for (unsigned s = 0; s < q->server_count; s++) {
            uint64_t *planes = f->tried_bits + words * 2 * s;
            if (q->servers[s].id != id) {
                continue;
            }
            if (!bytes(item, "bits", planes, words * 2 * sizeof(*planes))) {
                return corrupt(e, f, "tried");
            }
            planes[words - 1] &= last;
            planes[words * 2 - 1] &= last;
        }
    }
    return 0;
}

/* ---- files ---- */

static int take_flags(struct queue_file *f, json_t *o, struct err *e)
{
    uint64_t kind = json_object_get(o, "kind") != NULL ? number(o, "kind") : f->kind;
    uint64_t blocks = json_object_get(o, "blocks") != NULL ? number(o, "blocks") : f->blocks;
    const char *name = json_string_value(json_object_get(o, "name"));
    if (kind > NZB_EXTRA || blocks > UINT32_MAX) {
        return corrupt(e, f, "kind");
    }
    f->kind = (uint8_t)kind;
    f->blocks = (uint32_t)blocks;
    f->paused = number(o, "paused") != 0;
    f->wanted = number(o, "wanted") != 0;
    f->name_confirmed = number(o, "confirmed") != 0;
    f->closed = number(o, "closed") != 0 && queue_file_ended(f);
    f->size = number(o, "size");
    if (name != NULL) {
        f->found_name = mem_strdup(name);
        return f->found_name != NULL ? 0 : err_sys(e, -ENOMEM, "file");
    }
    return 0;
}

static int take_file(struct queue *q, struct queue_job *j, struct nzb *const *nzbs, json_t *o,
                     struct queue_file **out, struct err *e)
{
    uint64_t of = number(o, "of"), source = number(o, "source"), id = number(o, "id");
    if (source >= j->source_count || of >= nzbs[source]->file_count || id == 0 || id > INT32_MAX) {
        return err_set(e, ERR_CORRUPT, "job %u: a file is not in its NZB", j->id);
    }
    struct queue_file *f = queue_file_new(q, nzbs[source], (uint32_t)of);
    if (f == NULL) {
        return err_sys(e, -ENOMEM, "file");
    }
    *out = f;
    f->job = j;
    if (queue_file(q, (uint32_t)id) != NULL) {
        return err_set(e, ERR_CORRUPT, "job %u: file %llu is there twice", j->id,
                       (unsigned long long)id);
    }
    f->id = (uint32_t)id;
    idmap_put(q->files, f->id, f);
    q->next_file_id = f->id >= q->next_file_id ? f->id + 1 : q->next_file_id;
    int rc = take_states(f, o, e);
    rc = rc == 0 ? take_flags(f, o, e) : rc;
    rc = rc == 0 ? take_parts(f, o, e) : rc;
    rc = rc == 0 ? take_tries(f, o, e) : rc;
    return rc == 0 ? take_tried(q, f, o, e) : rc;
}

int saved_take_files(struct queue *q, struct queue_job *j, struct nzb *const *nzbs, json_t *files,
                     int64_t now_at, struct err *e)
{
    size_t i, n = json_array_size(files);
    json_t *o;
    int rc = 0;
    j->files = mem_zalloc(n, sizeof(*j->files));
    if (j->files == NULL || n > NZB_FILES_MAX || idmap_reserve(q->files, (uint32_t)n) != 0) {
        return err_sys(e, -ENOMEM, "files");
    }
    json_array_foreach(files, i, o)
    {
        struct queue_file *f = NULL;
        rc = take_file(q, j, nzbs, o, &f, e);
        if (f != NULL) {
            j->files[j->file_count++] = f;
        }
        if (rc != 0) {
            queue_job_free_files(q, j);
            return rc;
        }
        f->in_retention = queue_in_retention(q, f, now_at);
        queue_file_refresh(q, f);
    }
    if (n > 0 && queue_job_files_changed(q, j) != 0) {
        queue_job_free_files(q, j);
        return err_sys(e, -ENOMEM, "files");
    }
    for (uint32_t k = 0; k < j->file_count; k++) {
        queue_tally_in(q, j->files[k]);
    }
    for (uint32_t s = 0; s < j->source_count; s++) {
        j->sources[s].nzb = nzb_ref(nzbs[s]);
    }
    queue_job_sum_posted(j);
    return 0;
}
