/* edit_past.c - into history, out of it, and what is done there.
 *
 * A job that was parked or stands by has not ended: it may come back itself. One that has ended (failed, cancelled,
 * completed, ...) never changes its state again: what returns is a successor, a new job with `previous_id`, which takes
 * over the articles and files that are good. */
#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "queue/dupe.h"
#include "queue/edit_ops.h"

static const char no_memory[] = "there is no memory for it";

static bool ended(const struct queue_job *j)
{
    return j->life.state >= QUEUE_COMPLETED;
}

int edit_delete_job(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    struct queue_job *j = t.job;
    enum queue_edit_op op = x->edit->op;
    bool park = op == QUEUE_EDIT_GROUP_PARK_DELETE, dupe = op == QUEUE_EDIT_GROUP_DUPE_DELETE;
    if (j->life.state == QUEUE_PROCESSING && (park || dupe)) {
        return edit_fail(r, ERR_CONFLICT, "the job is in post-processing");
    }
    if (park || dupe) {
        queue_hold_set(x->q, j, dupe ? QUEUE_HOLD_DUPE_STANDBY : QUEUE_HOLD_USER, x->edit->now_at,
                       0);
        j->dupe_backup = dupe;
    } else {
        r->todo |= QUEUE_TODO_DELETE_FILES;
        r->todo |= j->life.state == QUEUE_PROCESSING ? QUEUE_TODO_STOP_POST : 0;
        if (queue_job_move(x->q, j, QUEUE_CANCELLED, x->edit->now_at, NULL) != 0 && !ended(j)) {
            return edit_fail(r, ERR_CONFLICT, "the job cannot be cancelled now");
        }
    }
    r->todo |= QUEUE_TODO_DROP_LEASES;
    j->delete_status = dupe ? QUEUE_DELETE_DUPE : QUEUE_DELETE_MANUAL;
    bool final = op == QUEUE_EDIT_GROUP_FINAL_DELETE;
    r->todo |= final ? QUEUE_TODO_REMOVE : 0;
    queue_job_place(x->q, j, final ? QUEUE_HIDDEN : QUEUE_HISTORY, false, x->edit->now_at);
    return 0;
}

/* ---- history ---- */

int edit_delete_past(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    struct queue_job *j = t.job;
    bool hide =
        x->edit->op == QUEUE_EDIT_HISTORY_DELETE && x->edit->dupe_check && j->url[0] == '\0';
    bool good = j->life.state == QUEUE_COMPLETED || j->life.state == QUEUE_IMPORTED ||
                j->life.state == QUEUE_CLEANED;
    r->todo |= good ? 0 : QUEUE_TODO_DELETE_FILES;
    (void)queue_job_move(x->q, j, QUEUE_CANCELLED, x->edit->now_at, NULL); /* when it was parked */
    j->dupe_backup = false;
    if (hide) {
        queue_job_place(x->q, j, QUEUE_HIDDEN, false, x->edit->now_at);
    } else {
        r->todo |= QUEUE_TODO_REMOVE;
        queue_changed(x->q, j);
    }
    return 0;
}

/* The successor of an ended job: same name, parameters and NZBs. */
static struct queue_job *successor(struct edit *x, struct queue_job *old)
{
    struct queue_job *j = NULL;
    const struct queue_add add = {
        .name = old->name,
        .filename = old->filename,
        .url = old->source_count == 0 ? old->url : "",
        .category = old->category,
        .dest_dir = old->dest_dir,
        .dupe_key = old->dupe_key,
        .params = old->params.at,
        .param_count = old->params.count,
        .priority = old->priority,
        .dupe_score = old->dupe_score,
        .dupe_mode = old->dupe_mode,
        .top = true,
        .now_at = x->edit->now_at,
        .previous_id = old->id,
    };
    if (queue_add(x->q, &add, &j, NULL) != 0) {
        return NULL;
    }
    bool whole = queue_job_ensure_stats(j, x->q->servers, x->q->server_count) == 0;
    for (uint32_t s = 0; s < old->source_count && whole; s++) {
        whole = queue_job_add_source(j, NULL, old->sources[s].stored) == 0;
        if (whole) {
            j->sources[s].layout = old->sources[s].layout;
        }
    }
    if (!whole) {
        queue_job_remove(x->q, j);
        return NULL;
    }
    j->shed = old->shed; /* it has the files now: their ids are the names of what is on disk */
    old->shed = NULL;
    memcpy(j->key, old->key, sizeof(j->key));
    j->attempt = old->attempt + 1;
    j->added_files = old->added_files;
    return j;
}

/* Back as it was: it had not ended. */
static int return_itself(struct edit *x, struct queue_job *j, struct queue_edit_result *r)
{
    j->delete_status = QUEUE_DELETE_NONE;
    j->dupe_backup = false;
    queue_hold_clear(x->q, j, QUEUE_HOLD_USER);
    queue_hold_clear(x->q, j, QUEUE_HOLD_HEALTH);
    queue_hold_clear(x->q, j, QUEUE_HOLD_DUPE_STANDBY);
    queue_job_place(x->q, j, QUEUE_ACTIVE, true, x->edit->now_at);
    r->new_id = j->id;
    r->todo |= j->file_count == 0 && j->source_count > 0 ? QUEUE_TODO_LOAD_NZB : 0;
    r->todo |= j->file_count > 0 && j->wanted_left == 0 ? QUEUE_TODO_DOWNLOADED : 0;
    return 0;
}

int edit_return_past(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    struct queue_job *old = t.job;
    enum queue_edit_op op = x->edit->op;
    if (!ended(old) && op == QUEUE_EDIT_HISTORY_RETURN) {
        return return_itself(x, old, r);
    }
    if (old->source_count == 0 && old->url[0] == '\0') {
        return edit_fail(r, ERR_CONFLICT, "its NZB is not stored any more");
    }
    if (!ended(old)) { /* a parked one that is to start anew: it ends here */
        (void)queue_job_move(x->q, old, QUEUE_CANCELLED, x->edit->now_at, NULL);
    }
    if (old->file_count > 0 && queue_job_shed(x->q, old) != 0) {
        return edit_fail(r, -ENOMEM, no_memory);
    }
    struct queue_job *j = successor(x, old);
    if (j == NULL) {
        return edit_fail(r, -ENOMEM, no_memory);
    }
    j->reload = op == QUEUE_EDIT_HISTORY_REDOWNLOAD     ? QUEUE_RELOAD_FRESH
                : op == QUEUE_EDIT_HISTORY_RETRY_FAILED ? QUEUE_RELOAD_RETRY_FAILED
                                                        : QUEUE_RELOAD_AS_WAS;
    r->new_id = j->id;
    r->todo |= j->source_count > 0 ? QUEUE_TODO_LOAD_NZB : 0;
    r->todo |= op == QUEUE_EDIT_HISTORY_PROCESS ? QUEUE_TODO_START_POST : 0;
    r->todo |= op == QUEUE_EDIT_HISTORY_REDOWNLOAD ? QUEUE_TODO_DELETE_FILES : 0;
    queue_job_place(x->q, old, QUEUE_HIDDEN, false, x->edit->now_at);
    return 0;
}

int edit_set_backup(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    struct queue_job *j = t.job;
    if (j->delete_status != QUEUE_DELETE_DUPE && j->delete_status != QUEUE_DELETE_MANUAL) {
        return edit_fail(r, ERR_CONFLICT, "only deleted jobs and duplicates can stand by");
    }
    j->dupe_backup = x->edit->number != 0;
    queue_changed(x->q, j);
    return 0;
}

int edit_mark_past(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    struct queue_job *j = t.job;
    j->mark_status = x->edit->op == QUEUE_EDIT_HISTORY_MARK_BAD    ? QUEUE_MARK_BAD
                     : x->edit->op == QUEUE_EDIT_HISTORY_MARK_GOOD ? QUEUE_MARK_GOOD
                                                                   : QUEUE_MARK_SUCCESS;
    queue_changed(x->q, j);
    if (j->mark_status == QUEUE_MARK_GOOD) {
        (void)queue_dupe_settle(x->q, j);
    } else if (j->mark_status == QUEUE_MARK_BAD) {
        r->new_id = queue_dupe_wake(x->q, j, x->edit->now_at);
        const struct queue_job *woken = queue_job(x->q, r->new_id);
        bool shed = woken != NULL && woken->file_count == 0 && woken->source_count > 0;
        r->todo |= shed ? QUEUE_TODO_LOAD_NZB : 0;
    }
    return 0;
}
