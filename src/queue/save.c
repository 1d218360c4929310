/* save.c - the whole queue as bytes, and those bytes on disk. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "queue/saved.h"

static void put_head(const struct queue *q, struct text *t)
{
    struct jsonw w;
    jsonw_init(&w, text_write_cb, t);
    jsonw_object(&w);
    jsonw_kuint(&w, "generation", q->generation);
    jsonw_kuint(&w, "next_job_id", q->next_job_id);
    jsonw_kuint(&w, "next_file_id", q->next_file_id);
    jsonw_kuint(&w, "holds", q->holds);
    jsonw_kuint(&w, "active", q->active_count);
    jsonw_kuint(&w, "past", q->past_count);
    jsonw_key(
        &w,
        "servers"); /* so that what was tried where has a place before the servers are configured */
    jsonw_array(&w);
    for (unsigned s = 0; s < q->server_count; s++) {
        jsonw_uint(&w, q->servers[s].id);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    jsonw_finish(&w);
    text_put(t, "\n", 1);
}

static void put_job(const struct queue *q, const struct queue_job *j, struct text *t)
{
    saved_put_job(j, t);
    text_put(t, "\n", 1);
    if (j->shed != NULL) {
        text_put(t, j->shed, strlen(j->shed));
    } else {
        saved_put_files(q, j, t);
    }
    text_put(t, "\n", 1);
}

int queue_snapshot(struct queue *q, struct queue_snapshot *s)
{
    struct text t = {0};
    q->generation++;
    put_head(q, &t);
    for (uint32_t i = 0; i < q->active_count; i++) {
        put_job(q, q->order[i], &t);
    }
    for (uint32_t i = 0; i < q->past_count; i++) {
        put_job(q, q->past[i], &t);
    }
    if (t.failed) {
        mem_free(t.at);
        q->generation--;
        return -ENOMEM;
    }
    *s = (struct queue_snapshot){
        .bytes = t.at,
        .len = t.len,
        .changes = q->changes,
        .generation = q->generation,
        .keep_from = q->saved_generation,
    };
    return 0;
}

void queue_snapshot_free(struct queue_snapshot *s)
{
    mem_free(s->bytes);
    s->bytes = NULL;
}

void queue_snapshot_saved(struct queue *q, const struct queue_snapshot *s)
{
    if (s->generation > q->saved_generation) {
        q->saved_generation = s->generation;
        q->saved_changes = s->changes;
    }
}

void saved_header(const char *body, size_t len, char *out)
{
    unsigned char sum[32];
    char hex[65];
    POST(EVP_Digest(body, len, sum, NULL, EVP_sha256(), NULL) == 1);
    for (size_t i = 0; i < sizeof(sum); i++) {
        snprintf(hex + i * 2, 3, "%02x", sum[i]);
    }
    int n = snprintf(out, SAVED_HEADER + 1,
                     "{\"weir\":\"queue\",\"version\":%d,\"bytes\":%12zu,\"sha256\":\"%s\"}\n",
                     QUEUE_STATE_VERSION, len, hex);
    POST(n == SAVED_HEADER);
}

/* ---- on disk ---- */

struct old_journals {
    const struct fsx *fs;
    int dirfd;
    uint64_t keep_from;
};

static int remove_old(void *ctx, const char *name)
{
    const struct old_journals *old = ctx;
    uint64_t generation;
    if (saved_is_journal(name, &generation) && generation < old->keep_from) {
        (void)fsx_remove(old->fs, old->dirfd, name, NULL); /* a leftover is skipped at load */
    }
    return 0;
}

int queue_snapshot_write(const struct fsx *fs, int dirfd, const struct queue_snapshot *s,
                         struct err *e)
{
    struct fsx_writer w;
    char header[SAVED_HEADER + 1];
    saved_header(s->bytes, s->len, header);
    int rc = fsx_begin(&w, fs, dirfd, SAVED_NAME, e);
    if (rc != 0) {
        return rc;
    }
    (void)fsx_append(&w, header, SAVED_HEADER, NULL); /* a failure is remembered for the commit */
    (void)fsx_append(&w, s->bytes, s->len, NULL);
    rc = fsx_commit(&w, SAVED_PREVIOUS, e);
    if (rc == 0) {
        struct old_journals old = {fs, dirfd, s->keep_from};
        (void)fsx_list(fs, dirfd, remove_old, &old, NULL);
    }
    return rc;
}
