/* add.c - how a job comes into the queue.
 *
 *     NZB:  duplicate? -> CREATED -> its text is stored -> QUEUED -> saved -> answered
 *     URL:  CREATED -> saved -> answered;   fetched (with retries) -> stored -> QUEUED
 *
 * The same client key, or the same articles in an active job, give the job that is there already. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/core.h"

static bool waits_for_store(const struct coord *c, uint32_t job_id)
{
    LIST_FOREACH (node, &c->unstored) {
        if (LIST_ENTRY(node, struct waiting, node)->job_id == job_id) {
            return true;
        }
    }
    return false;
}

static void reply_existing(struct coord *c, uint64_t request, uint32_t job_id)
{
    struct waiting *w = coord_wait(c, request, job_id);
    w->existed = true;
    if (waits_for_store(c, job_id)) {
        list_push_back(&c->unstored, &w->node);
    } else {
        coord_wait_saved(c, w);
    }
}

/* ---- duplicates ---- */

static uint32_t same_content(struct coord *c, const struct coord_add *a)
{
    uint32_t other = 0;
    const struct queue_dupe_query ask = {.key = a->job.nzb->key,
                                         .name = a->job.name != NULL ? a->job.name : "",
                                         .dupe_key = a->job.dupe_key != NULL ? a->job.dupe_key : "",
                                         .score = a->job.dupe_score,
                                         .mode = a->job.dupe_mode};
    bool same = queue_dupe_check(c->q, &ask, &other) == QUEUE_DUPE_SAME;
    return same ? other : 0;
}

/* Standing by means going to history: leases of those that may have to are dropped first. */
static void drop_alike(struct coord *c, const struct queue_job *j)
{
    for (uint32_t i = 0; i < c->lease_room; i++) {
        struct lease *l = &c->leases[i];
        if (l->id == 0 || l->gone) {
            continue;
        }
        const struct queue_job *other = queue_file(c->q, l->article.file_id)->job;
        if (other != j && queue_dupe_alike(other->name, other->dupe_key, j->name, j->dupe_key)) {
            coord_drop_job(c, other->id);
        }
    }
}

static void judge(struct coord *c, struct queue_job *j)
{
    uint32_t other = 0, moved[64];
    const struct queue_dupe_query ask = {.key = j->key,
                                         .name = j->name,
                                         .dupe_key = j->dupe_key,
                                         .score = j->dupe_score,
                                         .mode = j->dupe_mode,
                                         .self = j->id};
    enum queue_dupe_verdict verdict = queue_dupe_check(c->q, &ask, &other);
    if (verdict == QUEUE_DUPE_TAKE || verdict == QUEUE_DUPE_SAME) {
        return;
    }
    if (verdict == QUEUE_DUPE_REPLACE) {
        drop_alike(c, j);
    }
    char text[64];
    snprintf(text, sizeof(text), "a duplicate of job %u", other);
    coord_record_job(c, COORD_REC_VERDICT, j, COORD_OK, text);
    uint32_t n = queue_dupe_apply(c->q, j, verdict, coord_now_at(c), moved, 64);
    for (uint32_t i = 0; i < n && i < 64; i++) {
        coord_forget(c, queue_job(c->q, moved[i]));
    }
    /* More than were told: their timers are found by walking, which only a queue full of one title costs. */
    for (uint32_t i = 0; n > 64 && i < c->q->past_count; i++) {
        coord_forget(c, c->q->past[i]);
    }
}

/* ---- adding ---- */

static const char *check(const struct coord_add *a)
{
    bool url = a->job.url != NULL && a->job.url[0] != '\0';
    if (a->job.nzb == NULL && !url) {
        return "neither an NZB nor a URL";
    }
    if (a->key != NULL && strlen(a->key) >= KEY_MAX) {
        return "the key is too long";
    }
    return NULL;
}

static int make(struct coord *c, const struct coord_add *a, struct queue_job **j, struct err *e)
{
    struct queue_add add = a->job;
    add.now_at = coord_now_at(c);
    if (coord_reserve_timers(c, 1) != 0) {
        return err_sys(e, -ENOMEM, "queue");
    }
    int rc = queue_add(c->q, &add, j, e);
    if (rc == 0 && a->key != NULL && a->key[0] != '\0' &&
        queue_job_set_param(c->q, *j, coord_key_param, a->key) != 0) {
        queue_job_remove(c->q, *j); /* it has taken the NZB */
        return err_sys(e, ERR_FULL, "queue");
    }
    return rc;
}

/* It is stored, or was before: from now on it may be picked. */
static void enter(struct coord *c, struct queue_job *j)
{
    if (j->life.state == QUEUE_CREATED && coord_move(c, j, QUEUE_QUEUED, "") == 0 &&
        j->place == QUEUE_ACTIVE) {
        coord_propagation(c, j);
        coord_go_on(c, j);
    }
}

static void add_new(struct coord *c, const struct coord_command *cmd)
{
    const struct coord_add *a = cmd->add;
    struct queue_job *j = NULL;
    struct err e = {0};
    int rc = make(c, a, &j, &e);
    if (rc != 0) {
        if (rc != ERR_FULL) {
            nzb_unref(a->job.nzb);
        }
        coord_discard(c, a->data);
        coord_reply(c, cmd->request, rc, e.msg);
        return;
    }
    coord_record_job(c, COORD_REC_CREATED, j, COORD_OK, j->name);
    coord_watch(c, j);
    if (a->key != NULL && a->key[0] != '\0') {
        coord_key_put(c, a->key, j->id, coord_now_at(c) + COORD_KEY_SEC);
    }
    if (c->limits.dupe_check && j->file_count > 0) {
        judge(c, j);
    }
    struct waiting *w = coord_wait(c, cmd->request, j->id);
    if (a->data != 0) {
        list_push_back(&c->unstored, &w->node);
        coord_emit(c, &(struct coord_effect){.type = COORD_FX_STORE_NZB,
                                             .nzb = {.job_id = j->id, .data = a->data}});
        return;
    }
    if (j->file_count > 0) {
        enter(c, j);
    } else {
        coord_go_on(c, j); /* the URL */
    }
    coord_wait_saved(c, w);
}

void coord_add(struct coord *c, const struct coord_command *cmd)
{
    const struct coord_add *a = cmd->add;
    const char *wrong = check(a);
    uint32_t existing = 0;
    if (wrong == NULL && a->key != NULL && a->key[0] != '\0') {
        existing = coord_key_find(c, a->key);
    }
    if (wrong == NULL && existing == 0 && a->job.nzb != NULL && !MUTANT(20)) {
        existing = same_content(c, a);
    }
    if (wrong == NULL && existing == 0) {
        add_new(c, cmd);
        return;
    }
    nzb_unref(a->job.nzb);
    coord_discard(c, a->data);
    if (wrong != NULL) {
        coord_reply(c, cmd->request, ERR_INVALID, wrong);
    } else {
        reply_existing(c, cmd->request, existing);
    }
}

/* ---- stored ---- */

/* Everybody who waits for this job's NZB: on to the save, or answered with what went wrong. */
static void stored_or_not(struct coord *c, uint32_t job_id, int code, const char *text)
{
    LIST_FOREACH_SAFE (node, &c->unstored) {
        struct waiting *w = LIST_ENTRY(node, struct waiting, node);
        if (w->job_id != job_id) {
            continue;
        }
        if (code == 0) {
            coord_wait_saved(c, w);
        } else {
            coord_wait_end(c, w, code, text);
        }
    }
}

static void url_later(struct coord *c, struct queue_job *j, enum coord_code code, const char *text,
                      uint32_t at_least_s);

/* A URL's NZB: it becomes part of the job only now that it is stored. */
static bool attach(struct coord *c, struct queue_job *j, const char *stored)
{
    struct err e = {0};
    struct nzb *nzb = j->watch.nzb;
    j->watch.nzb = NULL;
    if (queue_job_attach(c->q, j, nzb, stored, &e) != 0) {
        nzb_unref(nzb);
        url_later(c, j, COORD_URL_BUSY, e.msg, 0);
        return false;
    }
    j->url_status = QUEUE_URL_SUCCESS;
    if (c->limits.dupe_check) {
        judge(c, j);
    }
    return true;
}

void coord_on_nzb_stored(struct coord *c, const struct coord_nzb *n)
{
    struct queue_job *j = queue_job(c->q, n->job_id);
    const char *text = n->text != NULL ? n->text : coord_error(n->code)->text;
    if (j == NULL || (j->watch.nzb == NULL && j->source_count == 0)) {
        /* Removed meanwhile, or a URL that stands by and will be fetched again when it is its turn. */
        stored_or_not(c, n->job_id, ERR_NOT_FOUND, "the job was removed meanwhile");
        if (n->code == COORD_OK) {
            coord_emit(c, &(struct coord_effect){.type = COORD_FX_FORGET_NZB,
                                                 .nzb = {.stored = n->stored}});
        }
        return;
    }
    if (j->watch.nzb != NULL) {
        if (n->code != COORD_OK) {
            nzb_unref(j->watch.nzb);
            j->watch.nzb = NULL;
            url_later(c, j, n->code, text, 0);
        } else if (attach(c, j, n->stored)) {
            enter(c, j);
            coord_save_soon(c);
        }
        return;
    }
    if (coord_error(n->code)->action == COORD_ACT_HOLD_DISK) {
        coord_no_space(c);
    }
    if (n->code == COORD_OK) {
        (void)queue_job_set_text(c->q, j, &j->sources[0].stored, n->stored);
        enter(c, j);
    } else if (j->life.state == QUEUE_CREATED) { /* nothing was promised yet: it was never here */
        coord_key_forget(c, j->id);
        coord_remove(c, j);
    }
    stored_or_not(c, n->job_id, n->code == COORD_OK ? 0 : ERR_FULL, text);
    coord_save_soon(c);
}

void coord_on_nzb_loaded(struct coord *c, const struct coord_nzb *n)
{
    struct queue_job *j = queue_job(c->q, n->job_id);
    struct err e = {0};
    int rc = ERR_NOT_FOUND;
    bool wanted = j != NULL && j->place == QUEUE_ACTIVE && j->file_count == 0;
    if (wanted && n->code == COORD_OK && n->nzb_count == j->source_count) {
        rc = queue_job_reload(c->q, j, n->nzbs, &e);
        if (rc ==
            ERR_CONFLICT) { /* another text under the same name: nothing of the progress fits */
            j->reload = QUEUE_RELOAD_FRESH;
            rc = queue_job_reload(c->q, j, n->nzbs, &e);
        }
    }
    for (uint32_t i = 0; rc != 0 && n->nzbs != NULL && i < n->nzb_count; i++) {
        nzb_unref(n->nzbs[i]);
    }
    if (!wanted) {
        return;
    }
    if (rc != 0) {
        coord_fail(c, j, COORD_NZB_INVALID,
                   n->text != NULL ? n->text : "its NZB cannot be read back");
        return;
    }
    enter(c, j);
    if (queue_job(c->q, n->job_id) != NULL) {
        coord_go_on(c, j);
    }
    coord_save_soon(c);
}

/* ---- URLs ---- */

void coord_fetch_url(struct coord *c, struct queue_job *j)
{
    if (j->watch.fetching || j->watch.nzb != NULL) {
        return;
    }
    j->watch.fetching = true;
    coord_emit(c, &(struct coord_effect){.type = COORD_FX_FETCH_URL,
                                         .nzb = {.job_id = j->id, .url = j->url}});
}

static void url_later(struct coord *c, struct queue_job *j, enum coord_code code, const char *text,
                      uint32_t at_least_s)
{
    j->url_status = QUEUE_URL_UNKNOWN;
    if (++j->watch.url_tries >= COORD_URL_ATTEMPTS) {
        j->url_status = QUEUE_URL_FAILURE;
        coord_fail(c, j, code, text);
        return;
    }
    uint64_t wait = coord_backoff_ms(c, j->watch.url_tries, COORD_URL_BACKOFF_S);
    uint64_t asked = (uint64_t)(at_least_s < 3600 ? at_least_s : 3600) * 1000;
    coord_record_job(c, COORD_REC_RETRY_SCHEDULED, j, code, text);
    coord_hold(c, j, QUEUE_HOLD_BACKOFF, wait > asked ? wait : asked, text);
}

void coord_on_url(struct coord *c, const struct coord_nzb *n)
{
    struct queue_job *j = queue_job(c->q, n->job_id);
    const char *text = n->text != NULL ? n->text : coord_error(n->code)->text;
    bool wanted = j != NULL && j->place == QUEUE_ACTIVE && j->life.state == QUEUE_CREATED &&
                  j->file_count == 0 && j->watch.nzb == NULL && j->watch.fetching;
    if (!wanted) {
        nzb_unref(n->nzb);
        coord_discard(c, n->data);
        return;
    }
    j->watch.fetching = false;
    if (n->code == COORD_OK && n->nzb != NULL) {
        j->watch.nzb = n->nzb;
        coord_emit(c, &(struct coord_effect){.type = COORD_FX_STORE_NZB,
                                             .nzb = {.job_id = j->id, .data = n->data}});
        return;
    }
    nzb_unref(n->nzb);
    coord_discard(c, n->data);
    if (coord_error(n->code)->category == COORD_PERMANENT) {
        j->url_status = QUEUE_URL_FAILURE;
        coord_fail(c, j, n->code, text);
    } else {
        url_later(c, j, COORD_URL_BUSY, text, n->retry_after_s);
    }
}
