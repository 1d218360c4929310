/* edit.c - the table of commands, and the commands that concern one job or file at a time.
 *
 * A row of the table says what its ids are and which function does it: `one` is called for each id, `batch` once for all
 * of them (moves, sorts, merge, split, where the ids belong together). Orders that changed are rebuilt once, at the
 * end of the batch. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/name.h"
#include "queue/edit_ops.h"
#include "queue/words.h"

int edit_fail(struct queue_edit_result *r, int code, const char *why)
{
    r->code = code;
    r->why = why;
    return code;
}

/* ---- one job ---- */

static int set_text(struct edit *x, struct queue_job *j, char **field, const char *text,
                    struct queue_edit_result *r)
{
    return queue_job_set_text(x->q, j, field, text) == 0
               ? 0
               : edit_fail(r, -ENOMEM, "there is no memory for it");
}

static int pause_job(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    (void)r;
    queue_hold_set(x->q, t.job, QUEUE_HOLD_USER, x->edit->now_at, 0);
    return 0;
}

static void set_paused(struct queue *q, struct queue_file *f, bool paused, bool wanted)
{
    if (f->paused != paused || f->wanted != wanted) {
        queue_tally_out(q, f);
        f->paused = paused;
        f->wanted = wanted;
        queue_tally_in(q, f);
        queue_file_show(q, f);
    }
}

/* Also what the user paused file by file, and what the health check parked: it is the user who says go on. */
static int resume_job(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    (void)r;
    for (uint32_t i = 0; i < t.job->file_count; i++) {
        set_paused(x->q, t.job->files[i], false, t.job->files[i]->wanted);
    }
    queue_hold_clear(x->q, t.job, QUEUE_HOLD_USER);
    queue_hold_clear(x->q, t.job, QUEUE_HOLD_HEALTH);
    queue_changed(x->q, t.job);
    return 0;
}

/* Pauses PAR2 files. `only`: just those that this batch named; `spare`: keeps the one that tells what is in the set,
 * the main file or, without one, the smallest volume. */
static void pause_pars(struct edit *x, struct queue_job *j, bool only, bool spare)
{
    const struct queue_file *keep = NULL;
    for (uint32_t i = 0; i < j->file_count && spare; i++) {
        const struct queue_file *f = j->files[i];
        bool better = keep == NULL || (f->kind == NZB_PAR2_MAIN && keep->kind != NZB_PAR2_MAIN) ||
                      (f->kind == keep->kind && f->posted->bytes < keep->posted->bytes);
        keep = queue_file_is_par2(f) && better ? f : keep;
    }
    for (uint32_t i = 0; i < j->file_count; i++) {
        struct queue_file *f = j->files[i];
        bool main = spare && f->kind == NZB_PAR2_MAIN;
        if (queue_file_is_par2(f) && f != keep && !main && (!only || f->mark == x->q->batch)) {
            set_paused(x->q, f, true, f->wanted);
        }
    }
    queue_changed(x->q, j);
}

static int pause_all_pars(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    pause_pars(x, t.job, false, false);
    r->todo |= t.job->wanted_left == 0 ? QUEUE_TODO_DOWNLOADED : 0;
    return 0;
}

static int pause_extra_pars(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    pause_pars(x, t.job, false, true);
    r->todo |= t.job->wanted_left == 0 ? QUEUE_TODO_DOWNLOADED : 0;
    return 0;
}

static int set_priority(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    if (x->edit->number < INT32_MIN || x->edit->number > INT32_MAX) {
        return edit_fail(r, ERR_INVALID, "the priority is out of range");
    }
    t.job->priority = (int32_t)x->edit->number;
    x->reorder = true;
    queue_job_show(x->q, t.job); /* Force goes past holds that others do not */
    queue_changed(x->q, t.job);
    return 0;
}

static int set_category(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    r->todo |= QUEUE_TODO_MOVE_DIR;
    return set_text(x, t.job, &t.job->category, x->text, r);
}

static int set_name(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    char clean[NAME_LEN_MAX + 1];
    if (x->text[0] == '\0') {
        return edit_fail(r, ERR_INVALID, "the name is empty");
    }
    name_clean(NAME_TITLE, x->text, strlen(x->text), clean);
    r->todo |= QUEUE_TODO_MOVE_DIR;
    return set_text(x, t.job, &t.job->name, clean, r);
}

static int set_parameter(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    const char *equals = strchr(x->text, '=');
    if (equals == NULL || equals == x->text) {
        return edit_fail(r, ERR_INVALID, "a parameter is Name=Value");
    }
    char *name = mem_strndup(x->text, (size_t)(equals - x->text));
    int rc = name != NULL ? queue_job_set_param(x->q, t.job, name, equals + 1) : -ENOMEM;
    mem_free(name);
    return rc == 0 ? 0 : edit_fail(r, rc, "there is no memory for it");
}

static int set_dupe_key(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    return set_text(x, t.job, &t.job->dupe_key, x->text, r);
}

static int set_dupe_score(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    if (x->edit->number < INT32_MIN || x->edit->number > INT32_MAX) {
        return edit_fail(r, ERR_INVALID, "the score is out of range");
    }
    t.job->dupe_score = (int32_t)x->edit->number;
    queue_changed(x->q, t.job);
    return 0;
}

static int set_dupe_mode(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    int mode = queue_word_find(&queue_dupe_mode_words, x->text);
    if (mode < 0) {
        return edit_fail(r, ERR_INVALID, "the mode is SCORE, ALL or FORCE");
    }
    t.job->dupe_mode = (uint8_t)mode;
    queue_changed(x->q, t.job);
    return 0;
}

static int stop_post(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    (void)x;
    if (t.job->life.state != QUEUE_PROCESSING) {
        return edit_fail(r, ERR_CONFLICT, "the job is not in post-processing");
    }
    r->todo |= QUEUE_TODO_STOP_POST;
    return 0;
}

/* ---- one file ---- */

static int pause_file(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    set_paused(x->q, t.file, true, t.file->wanted);
    queue_changed(x->q, t.job);
    r->todo |= t.job->wanted_left == 0 ? QUEUE_TODO_DOWNLOADED : 0;
    return 0;
}

/* Resuming a volume that nobody needs means: the user wants it. */
static int resume_file(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    (void)r;
    set_paused(x->q, t.file, false, true);
    queue_changed(x->q, t.job);
    return 0;
}

static int pause_named_pars(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    if (t.job->mark != x->q->batch) { /* once per job */
        t.job->mark = x->q->batch;
        pause_pars(x, t.job, true, x->edit->op == QUEUE_EDIT_FILE_PAUSE_EXTRA_PARS);
    }
    r->todo |= t.job->wanted_left == 0 ? QUEUE_TODO_DOWNLOADED : 0;
    return 0;
}

/* ---- the table ---- */

typedef int (*edit_one_cb)(struct edit *x, struct edit_thing t, struct queue_edit_result *r);
typedef void (*edit_batch_cb)(struct edit *x);

static const struct {
    edit_one_cb one;
    edit_batch_cb batch;
} functions[QUEUE_EDIT_OPS] = {
    [QUEUE_EDIT_FILE_MOVE_OFFSET] = {NULL, edit_move_files},
    [QUEUE_EDIT_FILE_MOVE_TOP] = {NULL, edit_move_files},
    [QUEUE_EDIT_FILE_MOVE_BOTTOM] = {NULL, edit_move_files},
    [QUEUE_EDIT_FILE_PAUSE] = {pause_file, NULL},
    [QUEUE_EDIT_FILE_RESUME] = {resume_file, NULL},
    [QUEUE_EDIT_FILE_DELETE] = {NULL, edit_delete_files},
    [QUEUE_EDIT_FILE_PAUSE_ALL_PARS] = {pause_named_pars, NULL},
    [QUEUE_EDIT_FILE_PAUSE_EXTRA_PARS] = {pause_named_pars, NULL},
    [QUEUE_EDIT_FILE_REORDER] = {NULL, edit_move_files},
    [QUEUE_EDIT_FILE_SPLIT] = {NULL, edit_split},
    [QUEUE_EDIT_GROUP_MOVE_OFFSET] = {NULL, edit_move_jobs},
    [QUEUE_EDIT_GROUP_MOVE_TOP] = {NULL, edit_move_jobs},
    [QUEUE_EDIT_GROUP_MOVE_BOTTOM] = {NULL, edit_move_jobs},
    [QUEUE_EDIT_GROUP_MOVE_BEFORE] = {NULL, edit_move_jobs},
    [QUEUE_EDIT_GROUP_MOVE_AFTER] = {NULL, edit_move_jobs},
    [QUEUE_EDIT_GROUP_PAUSE] = {pause_job, NULL},
    [QUEUE_EDIT_GROUP_RESUME] = {resume_job, NULL},
    [QUEUE_EDIT_GROUP_PAUSE_ALL_PARS] = {pause_all_pars, NULL},
    [QUEUE_EDIT_GROUP_PAUSE_EXTRA_PARS] = {pause_extra_pars, NULL},
    [QUEUE_EDIT_GROUP_DELETE] = {edit_delete_job, NULL},
    [QUEUE_EDIT_GROUP_PARK_DELETE] = {edit_delete_job, NULL},
    [QUEUE_EDIT_GROUP_DUPE_DELETE] = {edit_delete_job, NULL},
    [QUEUE_EDIT_GROUP_FINAL_DELETE] = {edit_delete_job, NULL},
    [QUEUE_EDIT_GROUP_SET_PRIORITY] = {set_priority, NULL},
    [QUEUE_EDIT_GROUP_SET_CATEGORY] = {set_category, NULL},
    [QUEUE_EDIT_GROUP_APPLY_CATEGORY] = {set_category, NULL},
    [QUEUE_EDIT_GROUP_SET_PARAMETER] = {set_parameter, NULL},
    [QUEUE_EDIT_GROUP_MERGE] = {NULL, edit_merge},
    [QUEUE_EDIT_GROUP_SET_NAME] = {set_name, NULL},
    [QUEUE_EDIT_GROUP_SET_DUPE_KEY] = {set_dupe_key, NULL},
    [QUEUE_EDIT_GROUP_SET_DUPE_SCORE] = {set_dupe_score, NULL},
    [QUEUE_EDIT_GROUP_SET_DUPE_MODE] = {set_dupe_mode, NULL},
    [QUEUE_EDIT_GROUP_SORT] = {NULL, edit_sort_jobs},
    [QUEUE_EDIT_GROUP_SORT_FILES] = {edit_sort_files, NULL},
    [QUEUE_EDIT_POST_DELETE] = {stop_post, NULL},
    [QUEUE_EDIT_HISTORY_DELETE] = {edit_delete_past, NULL},
    [QUEUE_EDIT_HISTORY_FINAL_DELETE] = {edit_delete_past, NULL},
    [QUEUE_EDIT_HISTORY_RETURN] = {edit_return_past, NULL},
    [QUEUE_EDIT_HISTORY_PROCESS] = {edit_return_past, NULL},
    [QUEUE_EDIT_HISTORY_REDOWNLOAD] = {edit_return_past, NULL},
    [QUEUE_EDIT_HISTORY_RETRY_FAILED] = {edit_return_past, NULL},
    [QUEUE_EDIT_HISTORY_SET_PARAMETER] = {set_parameter, NULL},
    [QUEUE_EDIT_HISTORY_SET_NAME] = {set_name, NULL},
    [QUEUE_EDIT_HISTORY_SET_CATEGORY] = {set_category, NULL},
    [QUEUE_EDIT_HISTORY_SET_DUPE_KEY] = {set_dupe_key, NULL},
    [QUEUE_EDIT_HISTORY_SET_DUPE_SCORE] = {set_dupe_score, NULL},
    [QUEUE_EDIT_HISTORY_SET_DUPE_MODE] = {set_dupe_mode, NULL},
    [QUEUE_EDIT_HISTORY_SET_DUPE_BACKUP] = {edit_set_backup, NULL},
    [QUEUE_EDIT_HISTORY_MARK_BAD] = {edit_mark_past, NULL},
    [QUEUE_EDIT_HISTORY_MARK_GOOD] = {edit_mark_past, NULL},
    [QUEUE_EDIT_HISTORY_MARK_SUCCESS] = {edit_mark_past, NULL},
};

static const struct {
    const char *name;
    enum queue_edit_of of;
} commands[QUEUE_EDIT_OPS] = {
#define X(id, name_, of_, what) [QUEUE_EDIT_##id] = {name_, QUEUE_EDIT_##of_},
    QUEUE_EDIT_MAP(X)
#undef X
};

int queue_edit_find(const char *name)
{
    for (int op = 0; op < QUEUE_EDIT_OPS; op++) {
        if (strcasecmp(commands[op].name, name) == 0) {
            return op;
        }
    }
    return -1;
}

const char *queue_edit_name(enum queue_edit_op op)
{
    return commands[op].name;
}

enum queue_edit_of queue_edit_of(enum queue_edit_op op)
{
    return commands[op].of;
}

/* ---- finding what the ids name, and doing it ---- */

int edit_find(struct edit *x, uint32_t at, struct edit_thing *t)
{
    const struct queue_edit *e = x->edit;
    struct queue_edit_result *r = &x->results[at];
    enum queue_edit_of of = commands[e->op].of;
    *t = (struct edit_thing){0};
    if (of == QUEUE_EDIT_FILE) {
        t->file = queue_file(x->q, e->ids[at]);
        t->job = t->file != NULL ? t->file->job : NULL;
    } else {
        t->job = queue_job(x->q, e->ids[at]);
    }
    bool active = t->job != NULL && t->job->place == QUEUE_ACTIVE;
    if (t->job == NULL || active != (of != QUEUE_EDIT_PAST)) {
        static const char *const why[] = {"no such file in the queue", "no such job in the queue",
                                          "no such job in the history"};
        return edit_fail(r, ERR_NOT_FOUND, why[of]);
    }
    if (e->seen != NULL && e->seen[at] != 0 && e->seen[at] != t->job->row_version) {
        return edit_fail(r, ERR_CONFLICT, "the job was changed in the meantime");
    }
    return 0;
}

uint32_t queue_edit(struct queue *q, const struct queue_edit *edit,
                    struct queue_edit_result *results)
{
    struct edit x = {
        .q = q, .edit = edit, .results = results, .text = edit->text != NULL ? edit->text : ""};
    struct edit_thing t;
    uint32_t done = 0;
    q->batch++;
    for (uint32_t i = 0; i < edit->id_count; i++) {
        results[i] = (struct queue_edit_result){.id = edit->ids[i], .why = ""};
        if (commands[edit->op].of == QUEUE_EDIT_FILE && edit_find(&x, i, &t) == 0) {
            t.file->mark = q->batch;
        }
    }
    if (functions[edit->op].batch != NULL) {
        functions[edit->op].batch(&x);
    }
    for (uint32_t i = 0; i < edit->id_count; i++) {
        if (functions[edit->op].one != NULL && results[i].code == 0 && edit_find(&x, i, &t) == 0) {
            (void)functions[edit->op].one(&x, t, &results[i]);
        }
        done += results[i].code == 0;
    }
    if (x.reorder) {
        queue_order_rebuild(q);
    }
    return done;
}
