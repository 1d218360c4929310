/* shed.c - past jobs without their articles, and how they get them back. */
#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "queue/pick.h"
#include "queue/saved.h"

/* Everything that tally sums up. */
void queue_job_zero_sums(struct queue_job *j)
{
    j->left_bytes = j->paused_bytes = j->par_bytes = j->extra_bytes = 0;
    j->failed_bytes = j->failed_par_bytes = j->failed_extra_bytes = 0;
    j->done_articles = j->failed_articles = j->leased_articles = j->waiting_articles = 0;
    j->left_files = j->left_par_files = j->wanted_left = j->wanted_unclosed = 0;
}

int queue_job_shed(struct queue *q, struct queue_job *j)
{
    struct text t = {0};
    PRE(j->place != QUEUE_ACTIVE);
    if (j->file_count == 0) {
        return 0;
    }
    saved_put_files(q, j, &t);
    text_put(&t, "", 1);
    if (t.failed) {
        mem_free(t.at);
        return -ENOMEM;
    }
    char *exact = mem_realloc(t.at, t.len, 1);
    mem_free(j->shed);
    j->shed = exact != NULL ? exact : t.at;
    bool waited = j->waiting_articles > 0;
    j->waiting_articles = 0;
    queue_job_free_files(q, j);
    if (waited) {
        queue_waits_purge(q);
    }
    return 0;
}

void queue_job_forget_progress(struct queue *q, struct queue_job *j)
{
    PRE(j->place != QUEUE_ACTIVE);
    if (queue_job_shed(q, j) != 0) {
        for (uint32_t i = 0; i < j->file_count; i++) {
            queue_file_reset(q, j->files[i]);
        }
    }
    mem_free(j->shed);
    j->shed = NULL;
    queue_changed(q, j);
}

/* All files of all its NZBs, nothing fetched. */
static int build_fresh(struct queue *q, struct queue_job *j, struct nzb *const *nzbs,
                       int64_t now_at)
{
    int rc = 0;
    for (uint32_t s = 0; s < j->source_count && rc == 0; s++) {
        rc = queue_job_build_files(q, j, nzbs[s]);
    }
    for (uint32_t i = 0; i < j->file_count && rc == 0; i++) {
        j->files[i]->in_retention = queue_in_retention(q, j->files[i], now_at);
        queue_file_refresh(q, j->files[i]);
    }
    queue_job_choose_wanted(q, j);
    rc = rc == 0 ? queue_job_files_changed(q, j) : rc;
    if (rc != 0) {
        queue_job_free_files(q, j);
        return rc;
    }
    for (uint32_t i = 0; i < j->file_count; i++) {
        queue_tally_in(q, j->files[i]);
    }
    for (uint32_t s = 0; s < j->source_count; s++) {
        j->sources[s].nzb = nzb_ref(nzbs[s]);
        j->sources[s].layout = nzbs[s]->layout;
    }
    j->added_files = j->file_count;
    queue_job_sum_posted(j);
    return 0;
}

static void retry_failed(struct queue *q, struct queue_file *f)
{
    if (f->failed == 0) {
        return;
    }
    queue_tally_out(q, f);
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->state[i] == QUEUE_FAILED) {
            queue_article_set_state(f, i, QUEUE_OPEN);
            queue_article_forget_tried(q, f, i);
            f->tries[i] = 0;
            f->part[i] = (struct queue_part){0};
        }
    }
    f->closed = false;
    queue_tally_in(q, f);
    queue_file_refresh(q, f);
    queue_file_show(q, f);
}

void queue_job_apply_reload(struct queue *q, struct queue_job *j)
{
    for (uint32_t i = 0; i < j->file_count; i++) {
        if (j->reload == QUEUE_RELOAD_FRESH) {
            queue_file_reset(q, j->files[i]);
        } else if (j->reload == QUEUE_RELOAD_RETRY_FAILED) {
            retry_failed(q, j->files[i]);
        }
    }
    j->reload = QUEUE_RELOAD_AS_WAS;
}

static int take_shed(struct queue *q, struct queue_job *j, struct nzb *const *nzbs, struct err *e)
{
    json_t *files = json_loads(j->shed, 0, NULL);
    int rc = files != NULL ? saved_take_files(q, j, nzbs, files, j->created_at, e)
                           : err_set(e, ERR_CORRUPT, "job %u: its progress", j->id);
    json_decref(files);
    return rc;
}

int queue_job_reload(struct queue *q, struct queue_job *j, struct nzb *const *nzbs, struct err *e)
{
    PRE(j->file_count == 0 && j->source_count > 0);
    bool same = j->shed != NULL;
    for (uint32_t s = 0; s < j->source_count; s++) {
        same = same && nzbs[s]->layout == j->sources[s].layout;
    }
    if (!same && j->reload != QUEUE_RELOAD_FRESH) {
        return err_set(e, ERR_CONFLICT, "job %u: its NZB is not the one it was", j->id);
    }
    struct queue_job before = *j;
    queue_job_zero_sums(j);
    int rc = same ? take_shed(q, j, nzbs, e) : build_fresh(q, j, nzbs, j->created_at);
    if (rc != 0) {
        before.files = j->files;
        before.ready = j->ready;
        *j = before;
        return err_wrap(e, rc, "job %u", j->id);
    }
    queue_job_apply_reload(q, j);
    for (uint32_t s = 0; s < j->source_count; s++) {
        nzb_unref(nzbs[s]);
    }
    mem_free(j->shed);
    j->shed = NULL;
    queue_order_rebuild(q);
    queue_changed(q, j);
    return 0;
}
