/* Random edits, picks, results and restarts on a real queue and on the plain one of model.h, which must agree after
 * every step on what is picked and every few hundred on everything. QUEUE_STEPS makes it longer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "base/check.h"
#include "base/mem.h"
#include "lib/fsim.h"
#include "lib/rng.h"
#include "queue/edit.h"
#include "queue/health.h"
#include "queue/state.h"
#include "unit/queue/make.h"
#include "unit/queue/model.h"

enum { STEPS = 100000, COMPARE_EVERY = 250, RESTART_EVERY = 4000, LEASES = 64 };

struct lease {
    struct queue_ref article;
    unsigned lane;
};

struct world {
    struct rng rng;
    struct queue *q;
    struct model m;
    struct fsim *disk;
    struct lease lease[LEASES];
    unsigned lease_count;
    unsigned jobs_made;
    uint64_t now_ms;
};

static uint64_t roll(struct world *w, uint64_t n)
{
    return rng_below(&w->rng, n);
}

void setUp(void) {}
void tearDown(void) {}

/* ---- single actions ---- */

static void add_job(struct world *w)
{
    static const char *const shapes[] = {
        "a.rar:5 a.r00:3 a.par2:1 a.vol0+1.par2:2 a.vol1+2.par2:4",
        "one.bin:70",
        "x.mkv:9 x.nfo:1",
        "p.par2:1 p.vol0+1.par2:1 p.vol1+2.par2:2 p.dat:6",
        "s1.bin:1 s2.bin:1 s3.bin:1 s4.bin:1 s5.bin:1 s6.bin:1 s7.bin:1",
    };
    char name[32];
    size_t len;
    struct queue_job *j = NULL;
    if (w->m.job_count >= 24) {
        return;
    }
    snprintf(name, sizeof(name), "job%u", ++w->jobs_made);
    const char *shape = shapes[roll(w, 5)];
    char *text = make_nzb_text(name, shape, &len), stored[QUEUE_STORED_NAME];
    PRE(queue_nzb_store(fsim_fs(w->disk), FSIM_ROOT, w->jobs_made, name, text, len, stored, NULL) ==
        0);
    static const int32_t priorities[] = {-100, -50, 0, 0, 0, 50, 100, 900};
    const struct queue_add add = {
        .nzb = make_nzb(name, shape),
        .stored_nzb = stored,
        .name = name,
        .priority = priorities[roll(w, 8)],
        .top = roll(w, 3) == 0,
        .paused = roll(w, 5) == 0,
        .now_at = 1700000100,
    };
    PRE(queue_add(w->q, &add, &j, NULL) == 0);
    PRE(queue_job_move(w->q, j, QUEUE_QUEUED, 1700000100, NULL) == 0);
    model_add(&w->m, w->q, j);
    mem_free(text);
}

static struct model_article *article_of(struct world *w, struct queue_ref a)
{
    struct model_job *j;
    return &model_file(&w->m, a.file_id, &j)->article[a.index];
}

static void pick(struct world *w)
{
    unsigned lane = (unsigned)roll(w, w->m.server_count + 1);
    struct queue_pick p;
    uint32_t file_id = 0, index = 0;
    bool expected = model_pick(&w->m, lane, &file_id, &index);
    if (w->lease_count == LEASES) {
        TEST_ASSERT_EQUAL(expected, queue_peek(w->q, lane, &p));
        return;
    }
    TEST_ASSERT_EQUAL(expected, queue_pick(w->q, lane, &p));
    if (expected) {
        TEST_ASSERT_EQUAL_UINT32(file_id, p.file->id);
        TEST_ASSERT_EQUAL_UINT32(index, p.index);
        w->lease[w->lease_count++] = (struct lease){queue_pick_ref(&p), lane};
        article_of(w, queue_pick_ref(&p))->state = QUEUE_LEASED;
    }
}

static void mark_tried(struct world *w, struct model_article *a, unsigned lane, int how)
{
    const struct queue_server *s = w->m.server;
    a->tried[lane] = how;
    for (unsigned k = 0; k < w->m.server_count && how == QUEUE_NOT_THERE; k++) {
        if (s[lane].group > 0 && s[k].group == s[lane].group && a->tried[k] == QUEUE_UNTRIED) {
            a->tried[k] = QUEUE_NOT_THERE;
        }
    }
}

static void end_lease(struct world *w)
{
    if (w->lease_count == 0) {
        return;
    }
    unsigned at = (unsigned)roll(w, w->lease_count);
    struct lease l = w->lease[at];
    w->lease[at] = w->lease[--w->lease_count];
    struct model_article *a = article_of(w, l.article);
    bool nobody = l.lane >= w->m.server_count;
    uint64_t what = nobody ? 6 + roll(w, 3) : roll(w, 6);
    struct queue_part part = {.offset = (uint64_t)l.article.index * 700, .size = 700, .crc32 = 77};
    switch (what) {
    case 0:
        queue_article_return(w->q, l.article);
        a->state = QUEUE_OPEN;
        break;
    case 1:
    case 2: {
        int how = QUEUE_NOT_THERE + (int)roll(w, 3);
        queue_article_tried(w->q, l.article, l.lane, (enum queue_tried)how);
        mark_tried(w, a, l.lane, how);
        a->state = QUEUE_OPEN;
        break;
    }
    case 3:
        a->wake_ms = w->now_ms + roll(w, 50);
        PRE(queue_article_wait(w->q, l.article, a->wake_ms) == 0);
        a->state = QUEUE_WAIT;
        a->attempts += a->attempts < QUEUE_ATTEMPTS_MAX;
        break;
    case 6:
        a->wake_ms = w->now_ms + roll(w, 50);
        PRE(queue_article_grace(w->q, l.article, a->wake_ms) == 0);
        a->state = QUEUE_WAIT;
        memset(a->tried, 0, sizeof(a->tried));
        break;
    case 7:
    case 8:
        (void)queue_article_failed(w->q, l.article, NULL);
        a->state = QUEUE_FAILED;
        break;
    default:
        part.crc32 = l.article.file_id * 31 + l.article.index;
        (void)queue_article_done(w->q, l.article, l.lane, &part, 1030);
        a->state = QUEUE_DONE;
    }
}

static void wake(struct world *w)
{
    w->now_ms += roll(w, 30);
    unsigned woken = 0;
    for (unsigned i = 0; i < w->m.job_count; i++) {
        for (unsigned k = 0; k < w->m.order[i]->file_count; k++) {
            struct model_file *f = w->m.order[i]->file[k];
            for (unsigned n = 0; n < f->count; n++) {
                if (f->article[n].state == QUEUE_WAIT && f->article[n].wake_ms <= w->now_ms) {
                    f->article[n].state = QUEUE_OPEN;
                    woken++;
                }
            }
        }
    }
    TEST_ASSERT_EQUAL_UINT(woken, queue_wake(w->q, w->now_ms, UINT32_MAX));
}

static void set_servers(struct world *w)
{
    struct queue_server s[MODEL_SERVERS] = {0};
    unsigned n = 1 + (unsigned)roll(w, MODEL_SERVERS);
    for (unsigned i = 0; i < n; i++) {
        s[i] = (struct queue_server){
            .id = i + 1,
            .level = (int)roll(w, 3),
            .group = (int)roll(w, 3),
            .optional = roll(w, 4) == 0,
            .active = roll(w, 8) != 0,
            .down = roll(w, 6) == 0,
        };
    }
    /* A lease names a lane: none may be out while lanes change meaning. */
    while (w->lease_count > 0) {
        struct queue_ref a = w->lease[--w->lease_count].article;
        queue_article_return(w->q, a);
        article_of(w, a)->state = QUEUE_OPEN;
    }
    PRE(queue_set_servers(w->q, s, n, 1700000100, NULL) == 0);
    for (unsigned i = 0; i < w->m.job_count;
         i++) { /* servers that went take what they tried with them */
        for (unsigned k = 0; k < w->m.order[i]->file_count; k++) {
            struct model_file *f = w->m.order[i]->file[k];
            for (unsigned a = 0; a < f->count; a++) {
                for (unsigned v = n; v < MODEL_SERVERS; v++) {
                    f->article[a].tried[v] = QUEUE_UNTRIED;
                }
            }
        }
    }
    memcpy(w->m.server, s, sizeof(s));
    w->m.server_count = n;
}

/* ---- edits ---- */

/* Up to `max` different active jobs. */
static unsigned some_jobs(struct world *w, uint32_t *ids, unsigned max)
{
    unsigned n = 0, want = 1 + (unsigned)roll(w, max);
    for (unsigned i = 0; i < w->m.job_count && n < want; i++) {
        if (roll(w, 3) == 0) {
            ids[n++] = w->m.order[i]->id;
        }
    }
    return n;
}

static uint32_t edit(struct world *w, enum queue_edit_op op, const uint32_t *ids, unsigned n,
                     int64_t number, const char *text, struct queue_edit_result *r)
{
    const struct queue_edit e = {
        .op = op, .ids = ids, .id_count = n, .number = number, .text = text, .now_at = 1700000200};
    return queue_edit(w->q, &e, r);
}

static void drop_leases(struct world *w, uint32_t job_id)
{
    for (unsigned i = 0; i < w->lease_count;) {
        struct model_job *j;
        model_file(&w->m, w->lease[i].article.file_id, &j);
        if (j->id == job_id) {
            w->lease[i] = w->lease[--w->lease_count];
        } else {
            i++;
        }
    }
}

static void edit_order(struct world *w)
{
    static const enum queue_edit_op ops[] = {
        QUEUE_EDIT_GROUP_MOVE_OFFSET, QUEUE_EDIT_GROUP_MOVE_TOP, QUEUE_EDIT_GROUP_MOVE_BOTTOM,
        QUEUE_EDIT_GROUP_MOVE_BEFORE, QUEUE_EDIT_GROUP_MOVE_AFTER};
    uint32_t ids[8] = {0};
    struct queue_edit_result r[8];
    unsigned n = some_jobs(w, ids, 8);
    enum queue_edit_op op = ops[roll(w, 5)];
    if (n == 0) {
        return;
    }
    int64_t number = op == QUEUE_EDIT_GROUP_MOVE_OFFSET
                         ? (int64_t)roll(w, 13) - 6
                         : (int64_t)w->m.order[roll(w, w->m.job_count)]->id;
    TEST_ASSERT_EQUAL_UINT32(n, edit(w, op, ids, n, number, "", r));
    model_move(&w->m, ids, n, op, number);
}

static void edit_jobs(struct world *w)
{
    uint32_t ids[6] = {0};
    struct queue_edit_result r[6];
    unsigned n = some_jobs(w, ids, 6);
    uint64_t what = roll(w, 3);
    int32_t priority = (int32_t)((int64_t)roll(w, 5) * 50 - 100);
    priority = roll(w, 6) == 0 ? QUEUE_FORCE : priority;
    enum queue_edit_op op = what == 0   ? QUEUE_EDIT_GROUP_PAUSE
                            : what == 1 ? QUEUE_EDIT_GROUP_RESUME
                                        : QUEUE_EDIT_GROUP_SET_PRIORITY;
    TEST_ASSERT_EQUAL_UINT32(n, edit(w, op, ids, n, priority, "", r));
    for (unsigned i = 0; i < n; i++) {
        struct model_job *j = model_job(&w->m, ids[i]);
        j->held = what == 0 ? true : what == 1 ? false : j->held;
        j->priority = what == 2 ? priority : j->priority;
        for (unsigned k = 0; k < j->file_count && what == 1; k++) {
            j->file[k]->paused = false;
        }
    }
}

static void edit_files(struct world *w)
{
    static const enum queue_edit_op ops[] = {QUEUE_EDIT_FILE_MOVE_OFFSET, QUEUE_EDIT_FILE_MOVE_TOP,
                                             QUEUE_EDIT_FILE_MOVE_BOTTOM, QUEUE_EDIT_FILE_PAUSE,
                                             QUEUE_EDIT_FILE_RESUME};
    uint32_t ids[4] = {0};
    struct queue_edit_result r[4];
    unsigned n = 0;
    if (w->m.job_count == 0) {
        return;
    }
    struct model_job *j = w->m.order[roll(w, w->m.job_count)];
    for (unsigned k = 0; k < j->file_count && n < 4; k++) {
        if (roll(w, 2) == 0) {
            ids[n++] = j->file[k]->id;
        }
    }
    enum queue_edit_op op = ops[roll(w, 5)];
    int64_t by = (int64_t)roll(w, 7) - 3;
    TEST_ASSERT_EQUAL_UINT32(n, edit(w, op, ids, n, by, "", r));
    if (op == QUEUE_EDIT_FILE_PAUSE || op == QUEUE_EDIT_FILE_RESUME) {
        for (unsigned i = 0; i < n; i++) {
            struct model_job *of;
            struct model_file *f = model_file(&w->m, ids[i], &of);
            f->paused = op == QUEUE_EDIT_FILE_PAUSE;
            f->wanted = f->wanted || op == QUEUE_EDIT_FILE_RESUME;
        }
    } else {
        model_move_files(j, ids, n, op, by);
    }
}

static int class_of(const struct model_file *f)
{
    return f->kind == NZB_PAR2_MAIN ? 0 : f->kind == NZB_PAR2_VOLUME ? 2 : 1;
}

static void merge(struct world *w)
{
    uint32_t ids[2] = {0};
    struct queue_edit_result r[2];
    if (w->m.job_count < 2) {
        return;
    }
    unsigned a = (unsigned)roll(w, w->m.job_count), b = (unsigned)roll(w, w->m.job_count);
    struct model_job *to = w->m.order[a], *from = w->m.order[b];
    if (a == b || to->file_count + from->file_count > 24) {
        return;
    }
    ids[0] = to->id;
    ids[1] = from->id;
    TEST_ASSERT_EQUAL_UINT32(2, edit(w, QUEUE_EDIT_GROUP_MERGE, ids, 2, 0, "", r));
    struct model_file *all[MODEL_FILES];
    unsigned n = 0;
    for (int class = 0; class < 3; class ++) {
        for (unsigned k = 0; k < to->file_count + from->file_count; k++) {
            struct model_file *f =
                k < to->file_count ? to->file[k] : from->file[k - to->file_count];
            if (class_of(f) == class) {
                all[n++] = f;
            }
        }
    }
    memcpy(to->file, all, n * sizeof(struct model_file *));
    to->file_count = n;
    from->file_count = 0;
    model_delete(&w->m, ids[1]);
}

static void split(struct world *w)
{
    uint32_t ids[3] = {0};
    struct queue_edit_result r[3];
    unsigned n = 0;
    if (w->m.job_count == 0 || w->m.job_count >= 24) {
        return;
    }
    struct model_job *j = w->m.order[roll(w, w->m.job_count)];
    for (unsigned k = 0; k < j->file_count && n < 3; k++) {
        if (roll(w, 2) == 0) {
            ids[n++] = j->file[k]->id;
        }
    }
    if (n == 0 || n == j->file_count) {
        TEST_ASSERT_EQUAL_UINT32(0, edit(w, QUEUE_EDIT_FILE_SPLIT, ids, n, 0, "part", r));
        return;
    }
    TEST_ASSERT_EQUAL_UINT32(n, edit(w, QUEUE_EDIT_FILE_SPLIT, ids, n, 0, "part", r));
    struct model_job *part = calloc(1, sizeof(*part));
    *part = (struct model_job){.id = r[0].new_id, .priority = j->priority, .held = j->held};
    strcpy(part->name, "part");
    unsigned kept = 0;
    for (unsigned k = 0; k < j->file_count; k++) {
        bool named = false;
        for (unsigned i = 0; i < n; i++) {
            named = named || ids[i] == j->file[k]->id;
        }
        if (named) {
            part->file[part->file_count++] = j->file[k];
        } else {
            j->file[kept++] = j->file[k];
        }
    }
    j->file_count = kept;
    unsigned at = 0;
    while (w->m.order[at] != j) {
        at++;
    }
    memmove(w->m.order + at + 2, w->m.order + at + 1,
            (w->m.job_count - at - 1) * sizeof(struct model_job *));
    w->m.order[at + 1] = part;
    w->m.job_count++;
}

static void delete_job(struct world *w)
{
    struct queue_edit_result r;
    if (w->m.job_count < 12) {
        return;
    }
    uint32_t id = w->m.order[roll(w, w->m.job_count)]->id;
    enum queue_edit_op op =
        roll(w, 2) == 0 ? QUEUE_EDIT_GROUP_DELETE : QUEUE_EDIT_GROUP_FINAL_DELETE;
    TEST_ASSERT_EQUAL_UINT32(1, edit(w, op, &id, 1, 0, "", &r));
    drop_leases(w, id);
    model_delete(&w->m, id);
    TEST_ASSERT_EQUAL(QUEUE_TODO_REMOVE, op == QUEUE_EDIT_GROUP_FINAL_DELETE
                                             ? r.todo & QUEUE_TODO_REMOVE
                                             : QUEUE_TODO_REMOVE);
    if ((r.todo & QUEUE_TODO_REMOVE) != 0 || roll(w, 2) == 0) {
        queue_job_remove(w->q, queue_job(w->q, id));
    }
}

static void delete_file(struct world *w)
{
    struct queue_edit_result r;
    if (w->m.job_count < 2) {
        return;
    }
    struct model_job *j = w->m.order[roll(w, w->m.job_count)];
    if (j->file_count < 2) {
        return;
    }
    unsigned k = (unsigned)roll(w, j->file_count);
    struct model_file *f = j->file[k];
    TEST_ASSERT_EQUAL_UINT32(1, edit(w, QUEUE_EDIT_FILE_DELETE, &f->id, 1, 0, "", &r));
    for (unsigned i = 0; i < w->lease_count;) {
        if (w->lease[i].article.file_id == f->id) {
            w->lease[i] = w->lease[--w->lease_count];
        } else {
            i++;
        }
    }
    free(f);
    j->file_count--;
    memmove(j->file + k, j->file + k + 1, (j->file_count - k) * sizeof(*j->file));
}

static void pause_all(struct world *w)
{
    w->m.paused_all = !w->m.paused_all;
    queue_set_global_holds(w->q, w->m.paused_all ? QUEUE_HOLD_BIT(QUEUE_HOLD_GLOBAL) : 0);
}

/* ---- restarts ---- */

static void fail_if_said(void *arg, const char *line)
{
    (void)arg;
    TEST_FAIL_MESSAGE(line);
}

/* Saves, loads, and goes on with what was loaded. */
static void restart(struct world *w)
{
    struct queue_snapshot s;
    struct queue_load_report report;
    struct err e = {0};
    const struct fsx *fs = fsim_fs(w->disk);
    PRE(queue_snapshot(w->q, &s) == 0);
    PRE(queue_snapshot_write(fs, FSIM_ROOT, &s, &e) == 0);
    queue_snapshot_saved(w->q, &s);
    TEST_ASSERT_FALSE(queue_dirty(w->q));
    queue_snapshot_free(&s);
    queue_free(w->q);
    w->q = NULL;
    int rc = queue_load(fs, FSIM_ROOT, 1700000300, fail_if_said, NULL, &w->q, &report, &e);
    TEST_ASSERT_EQUAL_MESSAGE(0, rc, e.msg);
    TEST_ASSERT_EQUAL(QUEUE_FROM_SNAPSHOT, report.source);
    PRE(queue_set_servers(w->q, w->m.server, w->m.server_count, 1700000300, NULL) == 0);
    w->lease_count = 0;
    model_restart(&w->m);
}

static void compare(struct world *w)
{
    queue_check(w->q);
    model_compare(&w->m, w->q);
}

/* Whatever is done in whatever order, the queue picks what a walk over everything would pick, counts what a count
 * would give, and is the same after a restart. */
static void test_random_steps_agree_with_the_model(void)
{
    static void (*const actions[])(struct world *) = {
        add_job,   pick,       pick,        pick,       pick,      pick,       pick, pick,
        end_lease, end_lease,  end_lease,   end_lease,  end_lease, wake,       wake, merge,
        split,     delete_job, delete_file, edit_order, edit_jobs, edit_files, pick, pick,
        pick,      edit_order, set_servers, pause_all,  end_lease,
    };
    const char *text = getenv("QUEUE_STEPS");
    unsigned long steps = text != NULL ? strtoul(text, NULL, 10) : STEPS;
    struct world w = {.q = queue_new(), .now_ms = 1000};
    uint64_t seed = rng_seed(20240518);
    rng_init(&w.rng, seed);
    w.disk = fsim_new(seed);
    make_servers(w.q, 2, 1);
    w.m.server_count = 2;
    memcpy(w.m.server, w.q->servers, 2 * sizeof(struct queue_server));
    for (unsigned long i = 0; i < steps; i++) {
        actions[roll(&w, sizeof(actions) / sizeof(actions[0]))](&w);
        if (i % COMPARE_EVERY == 0) {
            compare(&w);
        }
        if (i % RESTART_EVERY == RESTART_EVERY - 1) {
            restart(&w);
            compare(&w);
        }
    }
    compare(&w);
    printf("%lu steps, %u jobs made\n", steps, w.jobs_made);
    model_free(&w.m);
    queue_free(w.q);
    fsim_free(w.disk);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_random_steps_agree_with_the_model);
    return UNITY_END();
}
