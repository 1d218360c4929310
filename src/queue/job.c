/* job.c - jobs: made, changed, moved through their life, put into history, freed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/name.h"
#include "queue/model.h"
#include "queue/pick.h"

/* ---- lifecycle ----
 *
 *   created ─► queued ─► downloading ◄─► processing ─► completed ─► imported ─► cleaned
 *                 ▲___________│ (recovery)                 │
 *   failed: from created, queued, downloading, processing  │
 *   cancelled: from the same and from completed ◄──────────┘  (only before any import began: the caller's duty)
 *
 * failed, cancelled and cleaned are terminal. */
#define S(id, name_, next_) [QUEUE_##id] = {.name = (name_), .next = (next_)}
#define N(id)               SM_BIT(QUEUE_##id)
static const struct sm_state job_states[QUEUE_STATES] = {
    S(CREATED, "created", N(QUEUED) | N(JOB_FAILED) | N(CANCELLED)),
    S(QUEUED, "queued", N(DOWNLOADING) | N(JOB_FAILED) | N(CANCELLED)),
    S(DOWNLOADING, "downloading", N(PROCESSING) | N(QUEUED) | N(JOB_FAILED) | N(CANCELLED)),
    S(PROCESSING, "processing", N(DOWNLOADING) | N(COMPLETED) | N(JOB_FAILED) | N(CANCELLED)),
    S(COMPLETED, "completed", N(IMPORTED) | N(CANCELLED)),
    S(IMPORTED, "imported", N(CLEANED)),
    S(CLEANED, "cleaned", 0),
    S(JOB_FAILED, "failed", 0),
    S(CANCELLED, "cancelled", 0),
};
#undef S
#undef N
const struct sm_type queue_job_type = {"job", job_states, QUEUE_STATES, NULL};

const char *queue_hold_name(enum queue_hold hold)
{
    static const char *const names[] = {
#define X(id, name) name,
        QUEUE_HOLD_MAP(X)
#undef X
    };
    return names[hold];
}

void queue_changed(struct queue *q, struct queue_job *j)
{
    q->changes++;
    j->row_version++;
}

/* ---- parameters and texts ---- */

static struct queue_param *find_param(const struct queue_params *p, const char *name)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (strcasecmp(p->at[i].name, name) == 0) {
            return &p->at[i];
        }
    }
    return NULL;
}

const char *queue_param_get(const struct queue_params *p, const char *name)
{
    const struct queue_param *found = find_param(p, name);
    return found != NULL ? found->value : NULL;
}

int queue_params_set(struct queue_params *p, const char *name, const char *value)
{
    struct queue_param *found = find_param(p, name);
    char *copy = mem_strdup(value);
    if (copy == NULL) {
        return -ENOMEM;
    }
    if (found != NULL) {
        mem_free(found->value);
        found->value = copy;
        return 0;
    }
    char *key = mem_strdup(name);
    struct queue_param *bigger = mem_realloc(p->at, p->count + 1, sizeof(*p->at));
    if (bigger != NULL) {
        p->at = bigger;
    }
    if (key == NULL || bigger == NULL) {
        mem_free(key);
        mem_free(copy);
        return -ENOMEM;
    }
    p->at[p->count++] = (struct queue_param){key, copy};
    return 0;
}

void queue_params_free(struct queue_params *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        mem_free(p->at[i].name);
        mem_free(p->at[i].value);
    }
    mem_free(p->at);
    *p = (struct queue_params){0};
}

int queue_job_set_param(struct queue *q, struct queue_job *j, const char *name, const char *value)
{
    int rc = queue_params_set(&j->params, name, value);
    if (rc == 0) {
        queue_changed(q, j);
    }
    return rc;
}

int queue_job_set_text(struct queue *q, struct queue_job *j, char **field, const char *text)
{
    char *copy = mem_strdup(text);
    if (copy == NULL) {
        return -ENOMEM;
    }
    mem_free(*field);
    *field = copy;
    queue_changed(q, j);
    return 0;
}

void queue_job_touch(struct queue *q, struct queue_job *j)
{
    queue_changed(q, j);
}

/* ---- making and freeing ---- */

/* Every text field of a job. */
static void text_fields(struct queue_job *j, char **fields[static 8])
{
    char **all[8] = {&j->name,     &j->filename,  &j->url,    &j->category,
                     &j->dest_dir, &j->final_dir, &j->reason, &j->dupe_key};
    memcpy(fields, all, sizeof(all));
}

struct queue_job *queue_job_alloc(struct queue *q)
{
    struct queue_job *j = mem_zalloc(1, sizeof(*j));
    char **fields[8];
    bool whole = j != NULL;
    if (j != NULL) {
        text_fields(j, fields);
        for (size_t i = 0; i < 8; i++) {
            *fields[i] = mem_strdup("");
            whole = whole && *fields[i] != NULL;
        }
    }
    if (!whole) {
        queue_job_free(q, j);
        return NULL;
    }
    j->row_version = 1;
    j->attempt = 1;
    sm_init(&j->life, &queue_job_type, QUEUE_CREATED, 0);
    return j;
}

void queue_job_free_files(struct queue *q, struct queue_job *j)
{
    for (uint32_t i = 0; i < j->file_count; i++) {
        queue_file_free(q, j->files[i]);
    }
    mem_free(j->files);
    mem_free(j->ready);
    j->files = NULL;
    j->ready = NULL;
    j->file_count = 0;
    for (uint32_t i = 0; i < j->source_count; i++) {
        nzb_unref(j->sources[i].nzb);
        j->sources[i].nzb = NULL;
    }
}

void queue_job_free(struct queue *q, struct queue_job *j)
{
    if (j == NULL) {
        return;
    }
    char **fields[8];
    text_fields(j, fields);
    queue_job_free_files(q, j);
    for (size_t i = 0; i < 8; i++) {
        mem_free(*fields[i]);
    }
    for (uint32_t i = 0; i < j->source_count; i++) {
        mem_free(j->sources[i].stored);
    }
    queue_params_free(&j->params);
    queue_params_free(&j->script_statuses);
    mem_free(j->sources);
    mem_free(j->server_stats);
    mem_free(j->shed);
    mem_free(j);
}

int queue_job_add_source(struct queue_job *j, struct nzb *nzb, const char *stored)
{
    char *name = mem_strdup(stored != NULL ? stored : "");
    struct queue_source *bigger = mem_realloc(j->sources, j->source_count + 1, sizeof(*bigger));
    if (bigger != NULL) {
        j->sources = bigger;
    }
    if (name == NULL || bigger == NULL) {
        mem_free(name);
        return -ENOMEM;
    }
    j->sources[j->source_count++] = (struct queue_source){.stored = name,
                                                          .layout = nzb != NULL ? nzb->layout : 0,
                                                          .nzb = nzb != NULL ? nzb_ref(nzb) : NULL};
    return 0;
}

static struct queue_server_stat *find_stat(struct queue_job *j, uint32_t server_id)
{
    for (uint32_t i = 0; i < j->server_stat_count; i++) {
        if (j->server_stats[i].server_id == server_id) {
            return &j->server_stats[i];
        }
    }
    return NULL;
}

int queue_job_ensure_stats(struct queue_job *j, const struct queue_server *servers, unsigned count)
{
    for (unsigned s = 0; s < count; s++) {
        if (find_stat(j, servers[s].id) == NULL) {
            struct queue_server_stat *bigger =
                mem_realloc(j->server_stats, j->server_stat_count + 1, sizeof(*bigger));
            if (bigger == NULL) {
                return -ENOMEM;
            }
            j->server_stats = bigger;
            bigger[j->server_stat_count++] = (struct queue_server_stat){.server_id = servers[s].id};
        }
    }
    return 0;
}

void queue_job_count(struct queue_job *j, uint32_t server_id, uint32_t done, uint32_t failed)
{
    struct queue_server_stat *stat = find_stat(j, server_id);
    if (stat != NULL) {
        stat->done += done;
        stat->failed += failed;
    }
}

/* ---- files of a job ---- */

int queue_job_files_changed(struct queue *q, struct queue_job *j)
{
    if (queue_ready_alloc(&j->ready, q->server_count + 1, j->file_count) != 0) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < j->file_count; i++) {
        j->files[i]->position = i;
        j->files[i]->job = j;
    }
    for (uint32_t i = 0; i < j->file_count; i++) {
        queue_file_show(q, j->files[i]);
    }
    return 0;
}

/* The files of `nzb`, all articles open, behind those the job has; PAR2 main, data, volumes. They get ids. */
int queue_job_build_files(struct queue *q, struct queue_job *j, struct nzb *nzb)
{
    if (nzb->file_count > INT32_MAX - q->next_file_id) {
        return ERR_FULL;
    }
    uint32_t before = j->file_count, count = before;
    struct queue_file **files =
        mem_realloc(j->files, (size_t)before + nzb->file_count, sizeof(*files));
    if (files == NULL) {
        return -ENOMEM;
    }
    j->files = files;
    if (idmap_reserve(q->files, nzb->file_count) != 0) {
        return -ENOMEM;
    }
    for (unsigned class = 0; class < 3; class ++) {
        for (uint32_t i = 0; i < nzb->file_count; i++) {
            if (queue_fetch_class(nzb->files[i].kind) != class) {
                continue;
            }
            struct queue_file *f = queue_file_new(q, nzb, i);
            if (f == NULL) {
                goto err_after_files;
            }
            files[count++] = f;
        }
    }
    for (uint32_t i = before; i < count; i++) {
        files[i]->job = j;
        files[i]->id = q->next_file_id++;
        idmap_put(q->files, files[i]->id, files[i]);
    }
    j->file_count = count;
    return 0;

err_after_files:
    while (count > before) {
        queue_file_free(q, files[--count]);
    }
    return -ENOMEM;
}

void queue_job_choose_wanted(struct queue *q, struct queue_job *j)
{
    (void)q;
    struct queue_file *smallest = NULL;
    bool has_main = false, has_data = false;
    for (uint32_t i = 0; i < j->file_count; i++) {
        struct queue_file *f = j->files[i];
        has_main = has_main || f->kind == NZB_PAR2_MAIN;
        has_data = has_data || !queue_file_is_par2(f);
        if (f->kind == NZB_PAR2_VOLUME &&
            (smallest == NULL || f->posted->bytes < smallest->posted->bytes)) {
            smallest = f;
        }
    }
    for (uint32_t i = 0; i < j->file_count; i++) {
        struct queue_file *f = j->files[i];
        /* Without a main file the smallest volume tells what is in the set; without data, they are the data. */
        f->wanted = f->kind != NZB_PAR2_VOLUME || !has_data || (!has_main && f == smallest);
    }
}

void queue_job_sum_posted(struct queue_job *j)
{
    j->total_bytes = 0;
    j->total_articles = 0;
    j->min_post_at = j->max_post_at = 0;
    for (uint32_t i = 0; i < j->file_count; i++) {
        const struct nzb_file *p = j->files[i]->posted;
        j->total_bytes += p->bytes;
        j->total_articles += p->count + p->missing;
        if (p->date > 0) {
            j->min_post_at =
                j->min_post_at == 0 || p->date < j->min_post_at ? p->date : j->min_post_at;
            j->max_post_at = p->date > j->max_post_at ? p->date : j->max_post_at;
        }
    }
}

/* Fills a job without files from its NZB. `now_at` decides about retention. */
static int fill_job(struct queue *q, struct queue_job *j, struct nzb *nzb, const char *stored,
                    int64_t now_at)
{
    int rc = queue_job_build_files(q, j, nzb);
    if (rc != 0) {
        return rc;
    }
    if (queue_job_add_source(j, nzb, stored) != 0 ||
        queue_job_ensure_stats(j, q->servers, q->server_count) != 0) {
        return -ENOMEM;
    }
    if (nzb->password[0] != '\0' && queue_param_get(&j->params, "*Unpack:Password") == NULL &&
        queue_params_set(&j->params, "*Unpack:Password", nzb->password) != 0) {
        return -ENOMEM;
    }
    queue_job_choose_wanted(q, j);
    for (uint32_t i = 0; i < j->file_count; i++) {
        struct queue_file *f = j->files[i];
        f->in_retention = queue_in_retention(q, f, now_at);
        queue_file_refresh(q, f);
    }
    if (queue_job_files_changed(q, j) != 0) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < j->file_count; i++) {
        queue_tally_in(q, j->files[i]);
    }
    j->added_files = j->file_count;
    queue_job_sum_posted(j);
    memcpy(j->key, nzb->key, sizeof(j->key));
    return 0;
}

static int set_if(char **field, const char *text)
{
    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    char *copy = mem_strdup(text);
    if (copy == NULL) {
        return -ENOMEM;
    }
    mem_free(*field);
    *field = copy;
    return 0;
}

/* The name a user reads: the given one, else the NZB's title, else the file name without its ending. */
static int name_job(struct queue_job *j, const struct queue_add *add)
{
    char title[NZB_NAME_MAX + 1], password[NZB_NAME_MAX + 1];
    const char *name = add->name != NULL && add->name[0] != '\0' ? add->name : NULL;
    nzb_split_filename(add->filename != NULL ? add->filename : "", title, password);
    if (name == NULL && title[0] != '\0') {
        name = title;
    }
    if (name == NULL && add->nzb != NULL && add->nzb->title[0] != '\0') {
        name = add->nzb->title;
    }
    char clean[NAME_LEN_MAX + 1];
    name_clean(NAME_TITLE, name != NULL ? name : "", name != NULL ? strlen(name) : 0, clean);
    if (password[0] != '\0' && queue_params_set(&j->params, "*Unpack:Password", password) != 0) {
        return -ENOMEM;
    }
    return set_if(&j->name, clean);
}

static int fill_texts(struct queue_job *j, const struct queue_add *add)
{
    for (uint32_t i = 0; i < add->param_count; i++) {
        if (queue_params_set(&j->params, add->params[i].name, add->params[i].value) != 0) {
            return -ENOMEM;
        }
    }
    if (set_if(&j->filename, add->filename) != 0 || set_if(&j->url, add->url) != 0 ||
        set_if(&j->category, add->category) != 0 || set_if(&j->dest_dir, add->dest_dir) != 0 ||
        set_if(&j->dupe_key, add->dupe_key) != 0) {
        return -ENOMEM;
    }
    return 0;
}

void queue_add_begin(struct queue *q)
{
    q->adding = true;
}

void queue_add_end(struct queue *q)
{
    q->adding = false;
    queue_order_rebuild(q);
}

int queue_add(struct queue *q, const struct queue_add *add, struct queue_job **out, struct err *e)
{
    uint32_t jobs = q->active_count + q->past_count + 1;
    if (q->next_job_id >= INT32_MAX) {
        return err_set(e, ERR_FULL, "no job numbers are left");
    }
    /* Room in both places, so that a job can always go to history and come back. */
    if (idmap_reserve(q->jobs, 1) != 0 || queue_order_reserve(q, jobs) != 0 ||
        queue_past_reserve(q, jobs) != 0) {
        return err_sys(e, -ENOMEM, "queue");
    }
    struct queue_job *j = queue_job_alloc(q);
    if (j == NULL) {
        return err_sys(e, -ENOMEM, "queue");
    }
    j->place = QUEUE_HISTORY; /* not in the lanes before it is in the order */
    j->priority = add->priority;
    j->dupe_score = add->dupe_score;
    j->dupe_mode = add->dupe_mode;
    j->created_at = j->moved_at = add->now_at;
    j->expires_at = add->expires_at;
    j->previous_id = add->previous_id;
    int rc = fill_texts(j, add);
    if (rc == 0) {
        rc = name_job(j, add);
    }
    if (rc == 0 && add->nzb != NULL) {
        rc = fill_job(q, j, add->nzb, add->stored_nzb, add->now_at);
    }
    if (rc != 0) {
        queue_job_free(q, j);
        return err_sys(e, rc, "queue");
    }
    if (add->paused) {
        j->holds = QUEUE_HOLD_BIT(QUEUE_HOLD_USER);
        j->hold_info[QUEUE_HOLD_USER].since_at = add->now_at;
    }
    j->id = q->next_job_id++;
    j->life.id = j->id;
    j->place = QUEUE_ACTIVE;
    idmap_put(q->jobs, j->id, j);
    queue_order_insert(q, j, add->top ? 0 : q->active_count);
    if (!q->adding) {
        queue_order_rebuild(q);
    }
    nzb_unref(add->nzb); /* taken: the job's files and source have references of their own */
    q->changes++;
    *out = j;
    return 0;
}

int queue_job_attach(struct queue *q, struct queue_job *j, struct nzb *nzb, const char *stored_nzb,
                     struct err *e)
{
    PRE(j->file_count == 0 && j->source_count == 0);
    enum queue_place place = j->place;
    j->place = QUEUE_HISTORY; /* as in queue_add: shown when whole */
    int rc = fill_job(q, j, nzb, stored_nzb, j->created_at);
    if (rc != 0) {
        queue_job_free_files(q, j);
        while (j->source_count > 0) {
            mem_free(j->sources[--j->source_count].stored);
        }
        j->place = (uint8_t)place;
        return err_sys(e, rc, "queue");
    }
    j->place = (uint8_t)place;
    nzb_unref(nzb);
    queue_order_rebuild(q);
    queue_changed(q, j);
    return 0;
}

void queue_file_unlease(struct queue *q, struct queue_file *f)
{
    if (f->leased == 0) {
        return;
    }
    queue_tally_out(q, f);
    for (uint32_t i = 0; i < f->count && f->leased > 0; i++) {
        if (f->state[i] == QUEUE_LEASED) {
            queue_article_set_state(f, i, QUEUE_OPEN);
        }
    }
    queue_tally_in(q, f);
    queue_file_refresh(q, f);
    queue_file_show(q, f);
}

void queue_job_unlease(struct queue *q, struct queue_job *j)
{
    for (uint32_t i = 0; i < j->file_count; i++) {
        queue_file_unlease(q, j->files[i]);
    }
}

void queue_job_remove(struct queue *q, struct queue_job *j)
{
    if (j->place == QUEUE_ACTIVE) {
        queue_order_remove(q, j);
    } else {
        queue_past_remove(q, j);
    }
    bool waited = j->waiting_articles > 0;
    idmap_remove(q->jobs, j->id);
    queue_job_free(q, j);
    if (waited) {
        queue_waits_purge(q);
    }
    queue_order_rebuild(q);
    q->changes++;
}

/* ---- state, place, holds ---- */

int queue_job_move(struct queue *q, struct queue_job *j, enum queue_state to, int64_t now_at,
                   struct err *e)
{
    if (!sm_allows(&j->life, (int)to)) {
        char text[96];
        sm_refusal(&j->life, (int)to, text, sizeof(text));
        return err_set(e, ERR_CONFLICT, "%s", text);
    }
    if (j->life.state == QUEUE_DOWNLOADING && to == QUEUE_QUEUED) {
        j->attempt++;
    }
    sm_move(&j->life, (int)to);
    j->moved_at = now_at;
    queue_changed(q, j);
    queue_job_show(q, j);
    return 0;
}

void queue_job_place(struct queue *q, struct queue_job *j, enum queue_place place, bool top,
                     int64_t now_at)
{
    bool was_active = j->place == QUEUE_ACTIVE, active = place == QUEUE_ACTIVE;
    if (was_active && !active) {
        queue_job_unlease(q, j);
        if (j->waiting_articles > 0) {
            queue_wake_job(q, j);
        }
        queue_order_remove(q, j);
        queue_past_append(q, j);
        j->history_at = now_at;
    } else if (!was_active && active) {
        queue_past_remove(q, j);
        queue_order_insert(q, j, top ? 0 : q->active_count);
        j->history_at = 0;
    }
    j->place = (uint8_t)place;
    queue_order_rebuild(q);
    queue_changed(q, j);
}

void queue_hold_set(struct queue *q, struct queue_job *j, enum queue_hold hold, int64_t now_at,
                    int64_t until_at)
{
    if ((j->holds & QUEUE_HOLD_BIT(hold)) == 0) {
        j->hold_info[hold].since_at = now_at;
    }
    j->hold_info[hold].until_at = until_at;
    j->holds |= QUEUE_HOLD_BIT(hold);
    queue_changed(q, j);
    queue_job_show(q, j);
}

void queue_hold_clear(struct queue *q, struct queue_job *j, enum queue_hold hold)
{
    if ((j->holds & QUEUE_HOLD_BIT(hold)) != 0) {
        j->holds &= ~QUEUE_HOLD_BIT(hold);
        j->hold_info[hold] = (struct queue_hold_info){0};
        queue_changed(q, j);
        queue_job_show(q, j);
    }
}

void queue_set_global_holds(struct queue *q, uint32_t holds)
{
    if (q->holds != holds) {
        q->holds = holds;
        q->changes++;
    }
}

uint32_t queue_job_blocking(const struct queue *q, const struct queue_job *j)
{
    uint32_t all = q->holds | j->holds;
    return j->priority >= QUEUE_FORCE ? all & ~QUEUE_FORCE_PASSES : all;
}

bool queue_nzb_in_use(const struct queue *q, const char *stored)
{
    struct queue_job *const *lists[] = {q->order, q->past};
    const uint32_t counts[] = {q->active_count, q->past_count};
    for (size_t l = 0; l < 2; l++) {
        for (uint32_t i = 0; i < counts[l]; i++) {
            const struct queue_job *j = lists[l][i];
            for (uint32_t s = 0; s < j->source_count; s++) {
                if (strcmp(j->sources[s].stored, stored) == 0) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* ---- the queue itself ---- */

struct queue *queue_new(void)
{
    struct queue *q = mem_zalloc(1, sizeof(*q));
    if (q == NULL) {
        return NULL;
    }
    q->next_job_id = q->next_file_id = 1;
    q->jobs = idmap_new();
    q->files = idmap_new();
    if (q->jobs == NULL || q->files == NULL || queue_waits_new(q) != 0) {
        queue_free(q);
        return NULL;
    }
    return q;
}

void queue_free(struct queue *q)
{
    if (q == NULL) {
        return;
    }
    for (uint32_t i = 0; i < q->active_count; i++) {
        queue_job_free(q, q->order[i]);
    }
    for (uint32_t i = 0; i < q->past_count; i++) {
        queue_job_free(q, q->past[i]);
    }
    idmap_free(q->jobs);
    idmap_free(q->files);
    queue_waits_free(q);
    mem_free(q->order);
    mem_free(q->run);
    mem_free(q->spare);
    mem_free(q->run_spare);
    mem_free(q->past);
    mem_free(q->ready);
    mem_free(q);
}

struct queue_job *queue_job(const struct queue *q, uint32_t id)
{
    return idmap_get(q->jobs, id);
}

struct queue_file *queue_file(const struct queue *q, uint32_t id)
{
    return idmap_get(q->files, id);
}
