/* edit_move.c - putting jobs, and the files of a job, into another order.
 *
 * A batch moves as a block that keeps its inner order. Each move says where the named things end up (`target`, by their
 * turn among the named); the others fill the free places in the order they had. One pass, whatever the batch. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "queue/edit_ops.h"

enum where { TO_TOP, TO_BOTTOM, BY_OFFSET, TO_PLACE };

struct move {
    enum where where;
    int64_t offset; /* BY_OFFSET: places down */
    uint32_t place; /* TO_PLACE: so many of the others come first */
};

/* Where the `turn`-th of `named` things (now at `position`) goes among `count`. */
static uint32_t target(const struct move *m, uint32_t position, uint32_t turn, uint32_t named,
                       uint32_t count)
{
    int64_t lowest = turn, highest = (int64_t)(count - named) + turn, to;
    switch (m->where) {
    case TO_TOP:
        return turn;
    case TO_BOTTOM:
        return (uint32_t)highest;
    case TO_PLACE:
        return m->place + turn;
    default:
        if (__builtin_add_overflow((int64_t)position, m->offset, &to)) {
            to = m->offset < 0 ? lowest : highest;
        }
        return (uint32_t)(to < lowest ? lowest : to > highest ? highest : to);
    }
}

/* Fills `to` from `from`; `named` tells which things move, by where they are now. */
static void arrange(void *const *from, void **to, uint32_t count, const struct move *m,
                    const bool *named)
{
    uint32_t movers = 0, turn = 0, free_at = 0;
    for (uint32_t i = 0; i < count; i++) {
        to[i] = NULL;
        movers += named[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        if (named[i]) {
            to[target(m, i, turn, movers, count)] = from[i];
            turn++;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!named[i]) {
            while (to[free_at] != NULL) {
                free_at++;
            }
            to[free_at] = from[i];
        }
    }
}

static struct move move_of(const struct queue_edit *e)
{
    switch (e->op) {
    case QUEUE_EDIT_FILE_MOVE_TOP:
    case QUEUE_EDIT_GROUP_MOVE_TOP:
        return (struct move){.where = TO_TOP};
    case QUEUE_EDIT_FILE_MOVE_BOTTOM:
    case QUEUE_EDIT_GROUP_MOVE_BOTTOM:
        return (struct move){.where = TO_BOTTOM};
    default:
        return (struct move){.where = BY_OFFSET, .offset = e->number};
    }
}

/* ---- jobs ---- */

static void fail_all(struct edit *x, int code, const char *why)
{
    for (uint32_t i = 0; i < x->edit->id_count; i++) {
        if (x->results[i].code == 0) {
            edit_fail(&x->results[i], code, why);
        }
    }
}

void edit_move_jobs(struct edit *x)
{
    struct queue *q = x->q;
    struct move m = move_of(x->edit);
    bool after = x->edit->op == QUEUE_EDIT_GROUP_MOVE_AFTER;
    const struct queue_job *goal = NULL;
    struct edit_thing t;
    if (after || x->edit->op == QUEUE_EDIT_GROUP_MOVE_BEFORE) {
        bool fits = x->edit->number > 0 && x->edit->number <= INT32_MAX;
        goal = fits ? queue_job(q, (uint32_t)x->edit->number) : NULL;
        if (goal == NULL || goal->place != QUEUE_ACTIVE) {
            fail_all(x, ERR_INVALID, "the target is not in the queue");
            return;
        }
    }
    bool *named = mem_zalloc(q->active_count + 1, sizeof(*named));
    if (named == NULL) {
        fail_all(x, -ENOMEM, "there is no memory for it");
        return;
    }
    for (uint32_t i = 0; i < x->edit->id_count; i++) {
        if (edit_find(x, i, &t) == 0 && t.job != goal) { /* next to itself: it is there already */
            named[t.job->position] = true;
            queue_changed(q, t.job);
        }
    }
    if (goal != NULL) {
        m = (struct move){.where = TO_PLACE};
        for (uint32_t i = 0; i < goal->position + after; i++) {
            m.place += !named[i];
        }
    }
    arrange((void *const *)q->order, (void **)q->spare, q->active_count, &m, named);
    struct queue_job **arranged = q->spare;
    q->spare = q->order;
    q->order = arranged;
    x->reorder = true;
    mem_free(named);
}

/* ---- files ---- */

/* The named files first, in the order in which they were named. */
static void reorder(struct edit *x, const struct queue_job *j, const bool *named, void **to)
{
    uint32_t at = 0;
    struct edit_thing t;
    for (uint32_t i = 0; i < x->edit->id_count; i++) {
        if (edit_find(x, i, &t) == 0 && t.job == j && t.file->mark == x->q->batch) {
            t.file->mark = 0; /* an id named twice counts once */
            to[at++] = t.file;
        }
    }
    for (uint32_t i = 0; i < j->file_count; i++) {
        if (!named[i]) {
            to[at++] = j->files[i];
        }
    }
}

/* New order, same files: the lanes keep their size, so nothing is allocated. */
static void show_files(struct queue *q, struct queue_job *j)
{
    for (unsigned lane = 0; lane <= q->server_count; lane++) {
        memset(j->ready[lane].words, 0, bitset_words(j->file_count) * sizeof(uint64_t));
    }
    for (uint32_t i = 0; i < j->file_count; i++) {
        j->files[i]->position = i;
    }
    for (uint32_t i = 0; i < j->file_count; i++) {
        queue_file_show(q, j->files[i]);
    }
    queue_changed(q, j);
}

void edit_move_files(struct edit *x)
{
    struct queue *q = x->q;
    struct move m = move_of(x->edit);
    struct edit_thing t;
    for (uint32_t i = 0; i < x->edit->id_count; i++) {
        if (x->results[i].code != 0 || edit_find(x, i, &t) != 0 || t.job->mark == q->batch) {
            continue;
        }
        struct queue_file **to = mem_alloc(t.job->file_count * sizeof(*to));
        bool *named = mem_zalloc(t.job->file_count, sizeof(*named));
        if (to == NULL || named == NULL) {
            mem_free(to);
            mem_free(named);
            edit_fail(&x->results[i], -ENOMEM, "there is no memory for it");
            continue;
        }
        t.job->mark = q->batch;
        for (uint32_t k = 0; k < t.job->file_count; k++) {
            named[k] = t.job->files[k]->mark == q->batch;
        }
        if (x->edit->op == QUEUE_EDIT_FILE_REORDER) {
            reorder(x, t.job, named, (void **)to);
        } else {
            arrange((void *const *)t.job->files, (void **)to, t.job->file_count, &m, named);
        }
        mem_free(named);
        mem_free(t.job->files);
        t.job->files = to;
        show_files(q, t.job);
    }
}

static int by_class_and_name(const void *a, const void *b)
{
    const struct queue_file *x = *(struct queue_file *const *)a,
                            *y = *(struct queue_file *const *)b;
    unsigned a_class = queue_fetch_class(x->kind), b_class = queue_fetch_class(y->kind);
    if (a_class != b_class) {
        return a_class < b_class ? -1 : 1;
    }
    int rc = strcasecmp(queue_file_name(x), queue_file_name(y));
    return rc != 0 ? rc : x->position < y->position ? -1 : 1;
}

int edit_sort_files(struct edit *x, struct edit_thing t, struct queue_edit_result *r)
{
    (void)r;
    if (t.job->file_count > 1) {
        qsort(t.job->files, t.job->file_count, sizeof(*t.job->files), by_class_and_name);
        show_files(x->q, t.job);
    }
    return 0;
}

/* ---- sorting jobs ---- */

enum sort_by { BY_NAME, BY_SIZE, BY_LEFT, BY_AGE, BY_CATEGORY, BY_PRIORITY };

struct sort_key {
    uint64_t number[3]; /* compared first; of texts the first 24 bytes, folded */
    const char *text;   /* then this, where not NULL and longer */
    uint32_t position;
    struct queue_job *job;
};

static void text_prefix(const char *s, uint64_t key[3])
{
    for (unsigned i = 0; i < 24; i++) {
        unsigned char c = (unsigned char)*s;
        key[i / 8] = key[i / 8] << 8 | (c >= 'A' && c <= 'Z' ? c + 32u : c);
        s += c != '\0';
    }
}

static struct sort_key key_of(struct queue_job *j, enum sort_by by)
{
    struct sort_key k = {.position = j->position, .job = j};
    switch (by) {
    case BY_NAME:
    case BY_CATEGORY:
        k.text = by == BY_NAME ? j->name : j->category;
        text_prefix(k.text, k.number);
        break;
    case BY_SIZE:
        k.number[0] = j->total_bytes;
        break;
    case BY_LEFT:
        k.number[0] = j->left_bytes - j->paused_bytes;
        break;
    case BY_AGE: /* the youngest first */
        k.number[0] = UINT64_MAX - (uint64_t)j->min_post_at;
        break;
    case BY_PRIORITY: /* the highest first */
        k.number[0] = (uint64_t)((int64_t)INT32_MAX - j->priority);
        break;
    }
    return k;
}

static int compare_values(const struct sort_key *x, const struct sort_key *y)
{
    for (unsigned i = 0; i < 3; i++) {
        if (x->number[i] != y->number[i]) {
            return x->number[i] < y->number[i] ? -1 : 1;
        }
    }
    return x->text != NULL ? strcasecmp(x->text, y->text) : 0;
}

static int sort_up(const void *a, const void *b)
{
    const struct sort_key *x = a, *y = b;
    int rc = compare_values(x, y);
    return rc != 0 ? rc : x->position < y->position ? -1 : 1;
}

static int sort_down(const void *a, const void *b)
{
    const struct sort_key *x = a, *y = b;
    int rc = compare_values(y, x);
    return rc != 0 ? rc : x->position < y->position ? -1 : 1;
}

/* "name", "size-", ...: what, and '+', '-' or 0 for "the other way than it is". */
static bool read_sort(const char *text, enum sort_by *by, char *sign)
{
    static const char *const words[] = {"name", "size", "left", "age", "category", "priority"};
    size_t n = strlen(text);
    *sign = n > 0 && (text[n - 1] == '+' || text[n - 1] == '-') ? text[n - 1] : '\0';
    n -= *sign != '\0';
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i]) == n && strncasecmp(words[i], text, n) == 0) {
            *by = (enum sort_by)i;
            return true;
        }
    }
    return false;
}

/* The named jobs (all without ids) are sorted among the places they have. */
void edit_sort_jobs(struct edit *x)
{
    struct queue *q = x->q;
    enum sort_by by;
    char sign;
    struct edit_thing t;
    uint32_t n = 0;
    if (!read_sort(x->text, &by, &sign)) {
        fail_all(x, ERR_INVALID, "sort by name, size, left, age, category or priority");
        return;
    }
    for (uint32_t i = 0; i < x->edit->id_count; i++) {
        if (edit_find(x, i, &t) == 0) {
            t.job->mark = q->batch;
        }
    }
    struct sort_key *keys = mem_alloc((q->active_count + 1) * sizeof(*keys));
    if (keys == NULL) {
        fail_all(x, -ENOMEM, "there is no memory for it");
        return;
    }
    bool sorted = true;
    for (uint32_t i = 0; i < q->active_count; i++) {
        if (x->edit->id_count == 0 || q->order[i]->mark == q->batch) {
            keys[n] = key_of(q->order[i], by);
            sorted = sorted && (n == 0 || compare_values(&keys[n - 1], &keys[n]) <= 0);
            n++;
        }
    }
    qsort(keys, n, sizeof(*keys), sign == '-' || (sign == '\0' && sorted) ? sort_down : sort_up);
    for (uint32_t i = 0, k = 0; i < q->active_count; i++) {
        if (x->edit->id_count == 0 || q->order[i]->mark == q->batch) {
            q->order[i] = keys[k++].job;
        }
    }
    mem_free(keys);
    q->changes++;
    x->reorder = true;
}
