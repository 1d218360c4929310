/* What users do to a queue, command by command; duplicates; health. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "base/check.h"
#include "base/mem.h"
#include "lib/fault.h"
#include "queue/dupe.h"
#include "queue/edit.h"
#include "queue/health.h"
#include "queue/pick.h"
#include "queue/words.h"
#include "unit/queue/make.h"

enum { NOW = 1700000100 };

static struct queue *q;
static struct queue_edit_result result[8];

void setUp(void)
{
    q = queue_new();
    make_servers(q, 1, 1);
}

void tearDown(void)
{
    queue_check(q);
    queue_free(q);
}

static uint32_t edit_many(enum queue_edit_op op, const uint32_t *ids, uint32_t n, int64_t number,
                          const char *text)
{
    const struct queue_edit e = {.op = op,
                                 .ids = ids,
                                 .id_count = n,
                                 .number = number,
                                 .text = text,
                                 .now_at = NOW,
                                 .dupe_check = true};
    return queue_edit(q, &e, result);
}

static int edit(enum queue_edit_op op, uint32_t id, int64_t number, const char *text)
{
    (void)edit_many(op, &id, 1, number, text);
    return result[0].code;
}

/* The queue as "a b c". */
static const char *order(void)
{
    static char text[256];
    text[0] = '\0';
    for (uint32_t i = 0; i < q->active_count; i++) {
        strcat(text, i > 0 ? " " : "");
        strcat(text, q->order[i]->name);
    }
    return text;
}

static const char *files(const struct queue_job *j)
{
    static char text[512];
    text[0] = '\0';
    for (uint32_t i = 0; i < j->file_count; i++) {
        strcat(text, i > 0 ? " " : "");
        strcat(text, queue_file_name(j->files[i]));
    }
    return text;
}

static void make_abcde(uint32_t id[5])
{
    for (int i = 0; i < 5; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        id[i] = make_job(q, name, "x.bin:2")->id;
    }
}

/* The table of commands is NZBGet's: every name is found, whatever its case, and nothing else is. */
static void test_commands_by_name(void)
{
    for (int op = 0; op < QUEUE_EDIT_OPS; op++) {
        TEST_ASSERT_EQUAL(op, queue_edit_find(queue_edit_name((enum queue_edit_op)op)));
    }
    TEST_ASSERT_EQUAL(QUEUE_EDIT_HISTORY_DELETE, queue_edit_find("historydelete"));
    TEST_ASSERT_EQUAL(-1, queue_edit_find("FileSetPriority"));
    TEST_ASSERT_EQUAL(51, QUEUE_EDIT_OPS);
}

/* Jobs move as a block that keeps its order, and stop at the ends. */
static void test_moving_jobs(void)
{
    uint32_t id[5];
    make_abcde(id);
    PRE(edit(QUEUE_EDIT_GROUP_MOVE_TOP, id[3], 0, "") == 0);
    TEST_ASSERT_EQUAL_STRING("d a b c e", order());
    PRE(edit(QUEUE_EDIT_GROUP_MOVE_BOTTOM, id[0], 0, "") == 0);
    TEST_ASSERT_EQUAL_STRING("d b c e a", order());
    PRE(edit(QUEUE_EDIT_GROUP_MOVE_OFFSET, id[2], -1, "") == 0);
    TEST_ASSERT_EQUAL_STRING("d c b e a", order());
    PRE(edit(QUEUE_EDIT_GROUP_MOVE_OFFSET, id[2], INT64_MAX, "") == 0);
    TEST_ASSERT_EQUAL_STRING("d b e a c", order());
    PRE(edit(QUEUE_EDIT_GROUP_MOVE_OFFSET, id[2], INT64_MIN, "") == 0);
    TEST_ASSERT_EQUAL_STRING("c d b e a", order());
    const uint32_t two[] = {id[0], id[3]};
    PRE(edit_many(QUEUE_EDIT_GROUP_MOVE_OFFSET, two, 2, -3, "") == 2);
    TEST_ASSERT_EQUAL_STRING("d a c b e", order());
    PRE(edit_many(QUEUE_EDIT_GROUP_MOVE_AFTER, two, 2, id[1], "") == 2);
    TEST_ASSERT_EQUAL_STRING("c b d a e", order());
    PRE(edit_many(QUEUE_EDIT_GROUP_MOVE_BEFORE, two, 2, id[2], "") == 2);
    TEST_ASSERT_EQUAL_STRING("d a c b e", order());
    PRE(edit(QUEUE_EDIT_GROUP_MOVE_BEFORE, id[0], id[0], "") == 0);
    TEST_ASSERT_EQUAL_STRING("d a c b e", order());
    TEST_ASSERT_EQUAL(ERR_INVALID, edit(QUEUE_EDIT_GROUP_MOVE_BEFORE, id[0], 999, ""));
    TEST_ASSERT_EQUAL(ERR_NOT_FOUND, edit(QUEUE_EDIT_GROUP_MOVE_TOP, 999, 0, ""));
    TEST_ASSERT_EQUAL_STRING("d a c b e", order());
}

/* Each id of a batch has its own result: what fails leaves the others alone. */
static void test_batches_have_a_result_per_id(void)
{
    uint32_t id[5];
    make_abcde(id);
    const uint32_t ids[] = {id[1], 999, id[3]};
    const uint64_t seen[] = {0, 0, queue_job(q, id[3])->row_version + 1};
    const struct queue_edit e = {
        .op = QUEUE_EDIT_GROUP_PAUSE, .ids = ids, .id_count = 3, .seen = seen, .now_at = NOW};
    TEST_ASSERT_EQUAL_UINT32(1, queue_edit(q, &e, result));
    TEST_ASSERT_EQUAL(0, result[0].code);
    TEST_ASSERT_EQUAL(ERR_NOT_FOUND, result[1].code);
    TEST_ASSERT_EQUAL(ERR_CONFLICT, result[2].code);
    TEST_ASSERT_EQUAL_STRING("the job was changed in the meantime", result[2].why);
    TEST_ASSERT_EQUAL_UINT32(QUEUE_HOLD_BIT(QUEUE_HOLD_USER), queue_job(q, id[1])->holds);
    TEST_ASSERT_EQUAL_UINT32(0, queue_job(q, id[3])->holds);
}

/* Sorting: by every key, both ways, the other way when asked twice, and among the named only. */
static void test_sorting_jobs(void)
{
    const uint32_t b = make_job_priority(q, "Bravo", "x.bin:3", 0)->id;
    (void)make_job_priority(q, "alpha", "x.bin:1", 50);
    const uint32_t c = make_job_priority(q, "charlie", "x.bin:2", -50)->id;
    const uint32_t none = 0;
    (void)edit_many(QUEUE_EDIT_GROUP_SORT, &none, 0, 0, "name");
    TEST_ASSERT_EQUAL_STRING("alpha Bravo charlie", order());
    (void)edit_many(QUEUE_EDIT_GROUP_SORT, &none, 0, 0, "Name");
    TEST_ASSERT_EQUAL_STRING("charlie Bravo alpha", order());
    (void)edit_many(QUEUE_EDIT_GROUP_SORT, &none, 0, 0, "size+");
    TEST_ASSERT_EQUAL_STRING("alpha charlie Bravo", order());
    (void)edit_many(QUEUE_EDIT_GROUP_SORT, &none, 0, 0, "left-");
    TEST_ASSERT_EQUAL_STRING("Bravo charlie alpha", order());
    (void)edit_many(QUEUE_EDIT_GROUP_SORT, &none, 0, 0, "priority+");
    TEST_ASSERT_EQUAL_STRING("alpha Bravo charlie", order());
    PRE(edit(QUEUE_EDIT_GROUP_SET_CATEGORY, c, 0, "A") == 0);
    (void)edit_many(QUEUE_EDIT_GROUP_SORT, &none, 0, 0, "category-");
    TEST_ASSERT_EQUAL_STRING("charlie alpha Bravo", order());
    const uint32_t two[] = {b, c};
    PRE(edit_many(QUEUE_EDIT_GROUP_SORT, two, 2, 0, "name+") == 2);
    TEST_ASSERT_EQUAL_STRING("Bravo alpha charlie", order());
    TEST_ASSERT_EQUAL(ERR_INVALID, edit(QUEUE_EDIT_GROUP_SORT, b, 0, "colour"));
    TEST_ASSERT_EQUAL(0, edit(QUEUE_EDIT_GROUP_SORT, b, 0, "age"));
}

/* Texts and numbers of a job; what is out of range or empty is refused. */
static void test_setting_values(void)
{
    struct queue_job *j = make_job(q, "j", "x.bin:1");
    uint64_t version = j->row_version;
    PRE(edit(QUEUE_EDIT_GROUP_SET_PRIORITY, j->id, 900, "") == 0);
    TEST_ASSERT_EQUAL_INT32(900, j->priority);
    TEST_ASSERT_TRUE(j->row_version > version);
    TEST_ASSERT_EQUAL(ERR_INVALID,
                      edit(QUEUE_EDIT_GROUP_SET_PRIORITY, j->id, INT64_C(1) << 40, ""));
    PRE(edit(QUEUE_EDIT_GROUP_SET_NAME, j->id, 0, "a/b: c") == 0);
    TEST_ASSERT_NULL(strchr(j->name, '/'));
    TEST_ASSERT_EQUAL_UINT32(QUEUE_TODO_MOVE_DIR, result[0].todo);
    TEST_ASSERT_EQUAL(ERR_INVALID, edit(QUEUE_EDIT_GROUP_SET_NAME, j->id, 0, ""));
    PRE(edit(QUEUE_EDIT_GROUP_APPLY_CATEGORY, j->id, 0, "TV") == 0);
    TEST_ASSERT_EQUAL_STRING("TV", j->category);
    PRE(edit(QUEUE_EDIT_GROUP_SET_PARAMETER, j->id, 0, "*Unpack:Password=a=b") == 0);
    PRE(edit(QUEUE_EDIT_GROUP_SET_PARAMETER, j->id, 0, "*unpack:password=c") == 0);
    TEST_ASSERT_EQUAL_STRING("c", queue_param_get(&j->params, "*UNPACK:PASSWORD"));
    TEST_ASSERT_EQUAL_UINT32(1, j->params.count);
    TEST_ASSERT_EQUAL(ERR_INVALID, edit(QUEUE_EDIT_GROUP_SET_PARAMETER, j->id, 0, "=x"));
    TEST_ASSERT_EQUAL(ERR_INVALID, edit(QUEUE_EDIT_GROUP_SET_PARAMETER, j->id, 0, "x"));
    PRE(edit(QUEUE_EDIT_GROUP_SET_DUPE_KEY, j->id, 0, "key") == 0);
    PRE(edit(QUEUE_EDIT_GROUP_SET_DUPE_SCORE, j->id, -5, "") == 0);
    PRE(edit(QUEUE_EDIT_GROUP_SET_DUPE_MODE, j->id, 0, "force") == 0);
    TEST_ASSERT_EQUAL(QUEUE_DUPE_FORCE, j->dupe_mode);
    TEST_ASSERT_EQUAL(ERR_INVALID, edit(QUEUE_EDIT_GROUP_SET_DUPE_MODE, j->id, 0, "maybe"));
    TEST_ASSERT_EQUAL(ERR_CONFLICT, edit(QUEUE_EDIT_POST_DELETE, j->id, 0, ""));
}

/* Files: moved, reordered, paused; the PAR2 pauses spare what tells about the set. */
static void test_files_of_a_job(void)
{
    struct queue_job *j =
        make_job(q, "j", "a.bin:1 b.bin:1 c.bin:1 s.par2:1 s.vol0+1.par2:1 s.vol1+2.par2:2");
    uint32_t id[6];
    for (int i = 0; i < 6; i++) {
        id[i] = j->files[i]->id;
    }
    TEST_ASSERT_EQUAL_STRING("s.par2 a.bin b.bin c.bin s.vol0+1.par2 s.vol1+2.par2", files(j));
    PRE(edit(QUEUE_EDIT_FILE_MOVE_TOP, id[3], 0, "") == 0);
    TEST_ASSERT_EQUAL_STRING("c.bin s.par2 a.bin b.bin s.vol0+1.par2 s.vol1+2.par2", files(j));
    PRE(edit(QUEUE_EDIT_FILE_MOVE_OFFSET, id[3], 2, "") == 0);
    PRE(edit(QUEUE_EDIT_FILE_MOVE_BOTTOM, id[0], 0, "") == 0);
    TEST_ASSERT_EQUAL_STRING("a.bin c.bin b.bin s.vol0+1.par2 s.vol1+2.par2 s.par2", files(j));
    const uint32_t wanted[] = {id[2], id[0], id[2]};
    PRE(edit_many(QUEUE_EDIT_FILE_REORDER, wanted, 3, 0, "") == 3);
    TEST_ASSERT_EQUAL_STRING("b.bin s.par2 a.bin c.bin s.vol0+1.par2 s.vol1+2.par2", files(j));
    PRE(edit(QUEUE_EDIT_GROUP_SORT_FILES, j->id, 0, "") == 0);
    TEST_ASSERT_EQUAL_STRING("s.par2 a.bin b.bin c.bin s.vol0+1.par2 s.vol1+2.par2", files(j));

    PRE(edit(QUEUE_EDIT_FILE_PAUSE, id[1], 0, "") == 0);
    TEST_ASSERT_EQUAL_UINT64(1000 + 3000, j->paused_bytes); /* and the volumes nobody wants yet */
    TEST_ASSERT_EQUAL_UINT32(4, j->wanted_left);            /* a paused data file is waited for */
    PRE(edit(QUEUE_EDIT_FILE_RESUME, id[4], 0, "") == 0);
    TEST_ASSERT_TRUE(queue_file(q, id[4])->wanted);
    PRE(edit(QUEUE_EDIT_GROUP_PAUSE_EXTRA_PARS, j->id, 0, "") == 0);
    TEST_ASSERT_TRUE(queue_file(q, id[4])->paused && queue_file(q, id[5])->paused);
    TEST_ASSERT_FALSE(queue_file(q, id[0])->paused);
    PRE(edit(QUEUE_EDIT_GROUP_PAUSE_ALL_PARS, j->id, 0, "") == 0);
    TEST_ASSERT_TRUE(queue_file(q, id[0])->paused);
    PRE(edit(QUEUE_EDIT_GROUP_RESUME, j->id, 0, "") == 0);
    TEST_ASSERT_FALSE(queue_file(q, id[0])->paused || queue_file(q, id[1])->paused);
    const uint32_t some[] = {id[1], id[4]};
    PRE(edit_many(QUEUE_EDIT_FILE_PAUSE_ALL_PARS, some, 2, 0, "") == 2);
    TEST_ASSERT_TRUE(queue_file(q, id[4])->paused && !queue_file(q, id[1])->paused);
    TEST_ASSERT_FALSE(queue_file(q, id[5])->paused);
}

/* Deleted files take their leases with them; the last one takes the job. */
static void test_deleting_files(void)
{
    struct queue_pick p;
    struct queue_job *j = make_job(q, "j", "a.bin:2 b.bin:2");
    uint32_t a = j->files[0]->id, b = j->files[1]->id;
    PRE(queue_pick(q, 0, &p));
    PRE(edit(QUEUE_EDIT_FILE_DELETE, a, 0, "") == 0);
    TEST_ASSERT_EQUAL_UINT32(QUEUE_TODO_DROP_LEASES | QUEUE_TODO_DELETE_FILES, result[0].todo);
    TEST_ASSERT_NULL(queue_file(q, a));
    TEST_ASSERT_EQUAL_UINT32(j->id, result[0].new_id);
    TEST_ASSERT_EQUAL_UINT32(0, j->leased_articles);
    TEST_ASSERT_EQUAL_UINT64(2000, j->total_bytes);
    PRE(edit(QUEUE_EDIT_FILE_DELETE, b, 0, "") == 0);
    TEST_ASSERT_EQUAL_UINT32(0, q->active_count);
    TEST_ASSERT_EQUAL(QUEUE_HISTORY, j->place);
    TEST_ASSERT_EQUAL(QUEUE_CANCELLED, j->life.state);
}

/* Split: the files become a job behind the old one, with its parameters; their leases live on. */
static void test_split(void)
{
    struct queue_pick p;
    struct queue_part part = {.size = 1};
    struct queue_job *j = make_job(q, "j", "a.bin:2 b.bin:2 c.bin:1");
    PRE(queue_job_set_param(q, j, "drone", "7") == 0);
    (void)make_job(q, "k", "x.bin:1");
    const uint32_t ids[] = {j->files[0]->id, j->files[2]->id, queue_job(q, 2)->files[0]->id};
    PRE(queue_pick(q, 0, &p));
    TEST_ASSERT_EQUAL_UINT32(2, edit_many(QUEUE_EDIT_FILE_SPLIT, ids, 3, 0, "half"));
    TEST_ASSERT_EQUAL(ERR_INVALID, result[2].code);
    TEST_ASSERT_EQUAL_STRING("j half k", order());
    struct queue_job *half = queue_job(q, result[0].new_id);
    TEST_ASSERT_EQUAL_STRING("a.bin c.bin", files(half));
    TEST_ASSERT_EQUAL_STRING("b.bin", files(j));
    TEST_ASSERT_EQUAL_STRING("7", queue_param_get(&half->params, "drone"));
    TEST_ASSERT_EQUAL_UINT32(1, half->leased_articles);
    (void)queue_article_done(q, queue_pick_ref(&p), 0, &part, 1);
    TEST_ASSERT_EQUAL_UINT32(1, half->done_articles);
    TEST_ASSERT_EQUAL(ERR_INVALID, edit(QUEUE_EDIT_FILE_SPLIT, j->files[0]->id, 0, "all of it"));
    TEST_ASSERT_EQUAL(ERR_INVALID, edit(QUEUE_EDIT_FILE_SPLIT, ids[0], 0, ""));
}

/* Merge: the first job has all files, in fetch order; the others are gone; leases live on. */
static void test_merge(void)
{
    struct queue_pick p;
    struct queue_job *j = make_job(q, "j", "a.bin:1 s.vol0+1.par2:1");
    struct queue_job *k = make_job_priority(q, "k", "b.bin:1 t.par2:1", 50);
    uint32_t gone = k->id;
    const uint32_t ids[] = {j->id, k->id, j->id};
    PRE(queue_pick(q, 0, &p));
    TEST_ASSERT_EQUAL_UINT32(2, edit_many(QUEUE_EDIT_GROUP_MERGE, ids, 3, 0, ""));
    TEST_ASSERT_EQUAL(ERR_INVALID, result[2].code);
    TEST_ASSERT_EQUAL_STRING("t.par2 a.bin b.bin s.vol0+1.par2", files(j));
    TEST_ASSERT_NULL(queue_job(q, gone));
    TEST_ASSERT_EQUAL_UINT32(2, j->source_count);
    TEST_ASSERT_EQUAL_UINT32(1, j->leased_articles);
    TEST_ASSERT_EQUAL_UINT64(4000, j->total_bytes);
    queue_article_return(q, queue_pick_ref(&p));
}

/* Deletes: to history with the files, parked with them kept, as a duplicate, for good; and back again. */
static void test_deleting_and_returning(void)
{
    uint32_t id[5];
    struct queue_pick p;
    make_abcde(id);
    PRE(queue_pick(q, 0, &p));
    PRE(edit(QUEUE_EDIT_GROUP_PARK_DELETE, id[0], 0, "") == 0);
    TEST_ASSERT_EQUAL_UINT32(QUEUE_TODO_DROP_LEASES, result[0].todo);
    TEST_ASSERT_EQUAL(QUEUE_QUEUED, queue_job(q, id[0])->life.state);
    PRE(edit(QUEUE_EDIT_GROUP_DELETE, id[1], 0, "") == 0);
    TEST_ASSERT_EQUAL_UINT32(QUEUE_TODO_DROP_LEASES | QUEUE_TODO_DELETE_FILES, result[0].todo);
    TEST_ASSERT_EQUAL(QUEUE_CANCELLED, queue_job(q, id[1])->life.state);
    PRE(edit(QUEUE_EDIT_GROUP_DUPE_DELETE, id[2], 0, "") == 0);
    TEST_ASSERT_TRUE(queue_job(q, id[2])->dupe_backup);
    PRE(edit(QUEUE_EDIT_GROUP_FINAL_DELETE, id[3], 0, "") == 0);
    TEST_ASSERT_TRUE((result[0].todo & QUEUE_TODO_REMOVE) != 0);
    TEST_ASSERT_EQUAL(QUEUE_HIDDEN, queue_job(q, id[3])->place);
    queue_job_remove(q, queue_job(q, id[3]));
    TEST_ASSERT_EQUAL_STRING("e", order());

    /* Parked: the same job comes back, with what it had. */
    PRE(edit(QUEUE_EDIT_HISTORY_RETURN, id[0], 0, "") == 0);
    TEST_ASSERT_EQUAL_STRING("a e", order());
    TEST_ASSERT_EQUAL_UINT32(id[0], result[0].new_id);
    TEST_ASSERT_EQUAL_UINT32(0, queue_job(q, id[0])->holds);
    /* Ended: a successor is made, which needs the NZB; the old record is hidden and never changes its state. */
    PRE(edit(QUEUE_EDIT_HISTORY_REDOWNLOAD, id[1], 0, "") == 0);
    TEST_ASSERT_TRUE((result[0].todo & QUEUE_TODO_LOAD_NZB) != 0);
    struct queue_job *next = queue_job(q, result[0].new_id);
    TEST_ASSERT_EQUAL_UINT32(id[1], next->previous_id);
    TEST_ASSERT_EQUAL(QUEUE_HIDDEN, queue_job(q, id[1])->place);
    TEST_ASSERT_EQUAL(QUEUE_CANCELLED, queue_job(q, id[1])->life.state);
    struct nzb *nzb = make_nzb("b", "x.bin:2");
    PRE(queue_job_reload(q, next, &nzb, NULL) == 0);
    TEST_ASSERT_EQUAL_UINT32(1, next->file_count);
    TEST_ASSERT_EQUAL_STRING("b a e", order());
    TEST_ASSERT_EQUAL(ERR_NOT_FOUND, edit(QUEUE_EDIT_HISTORY_RETURN, next->id, 0, ""));
}

/* A retry of failed articles keeps what is good; a redownload keeps nothing; another NZB is not taken for the old. */
static void test_successors_adopt_what_is_good(void)
{
    struct queue_pick p;
    struct queue_part part = {.size = 700, .crc32 = 5};
    for (int fresh = 0; fresh < 2; fresh++) {
        struct queue_job *j = make_job(q, fresh ? "f" : "r", "x.bin:3");
        PRE(queue_pick(q, 0, &p));
        (void)queue_article_done(q, queue_pick_ref(&p), 0, &part, 1);
        PRE(queue_pick(q, 0, &p));
        (void)queue_article_failed(q, queue_pick_ref(&p), NULL);
        PRE(queue_job_move(q, j, QUEUE_JOB_FAILED, NOW, NULL) == 0);
        queue_job_place(q, j, QUEUE_HISTORY, false, NOW);
        PRE(edit(fresh ? QUEUE_EDIT_HISTORY_REDOWNLOAD : QUEUE_EDIT_HISTORY_RETRY_FAILED, j->id, 0,
                 "") == 0);
        struct queue_job *next = queue_job(q, result[0].new_id);
        struct nzb *wrong = make_nzb("other", "x.bin:3");
        if (!fresh) {
            TEST_ASSERT_EQUAL(ERR_CONFLICT, queue_job_reload(q, next, &wrong, NULL));
        }
        nzb_unref(wrong);
        struct nzb *nzb = make_nzb(fresh ? "f" : "r", "x.bin:3");
        PRE(queue_job_reload(q, next, &nzb, NULL) == 0);
        TEST_ASSERT_EQUAL_UINT32(fresh ? 0 : 1, next->done_articles);
        TEST_ASSERT_EQUAL_UINT32(0, next->failed_articles);
        TEST_ASSERT_EQUAL_UINT32(fresh ? 0 : 5, next->files[0]->part[0].crc32);
        queue_job_place(q, next, QUEUE_HISTORY, false, NOW);
    }
}

/* History: hidden for duplicates or removed; marks; values can be set there, too. */
static void test_history(void)
{
    struct queue_job *j = make_job(q, "j", "x.bin:1");
    PRE(edit(QUEUE_EDIT_GROUP_DELETE, j->id, 0, "") == 0);
    TEST_ASSERT_EQUAL(ERR_NOT_FOUND, edit(QUEUE_EDIT_GROUP_PAUSE, j->id, 0, ""));
    PRE(edit(QUEUE_EDIT_HISTORY_SET_NAME, j->id, 0, "other") == 0);
    PRE(edit(QUEUE_EDIT_HISTORY_SET_CATEGORY, j->id, 0, "c") == 0);
    PRE(edit(QUEUE_EDIT_HISTORY_SET_PARAMETER, j->id, 0, "a=b") == 0);
    PRE(edit(QUEUE_EDIT_HISTORY_SET_DUPE_BACKUP, j->id, 1, "") == 0);
    TEST_ASSERT_TRUE(j->dupe_backup);
    PRE(edit(QUEUE_EDIT_HISTORY_MARK_GOOD, j->id, 0, "") == 0);
    TEST_ASSERT_EQUAL_STRING("GOOD", queue_word(&queue_mark_words, j->mark_status));
    PRE(edit(QUEUE_EDIT_HISTORY_DELETE, j->id, 0, "") == 0);
    TEST_ASSERT_EQUAL(QUEUE_HIDDEN, j->place);
    PRE(edit(QUEUE_EDIT_HISTORY_FINAL_DELETE, j->id, 0, "") == 0);
    TEST_ASSERT_TRUE((result[0].todo & QUEUE_TODO_REMOVE) != 0);
}

/* Whatever allocation fails, an edit says so or was done, and the queue is sound. */
static void test_missing_memory_in_edits(void)
{
    for (unsigned k = 1;; k++) {
        struct queue_job *j = make_job(q, "j", "a.bin:2 b.bin:1 s.par2:1"),
                         *o = make_job(q, "o", "a.bin:1");
        const uint32_t both[] = {j->id, o->id}, file = j->files[1]->id;
        fault_arm(k);
        (void)edit_many(QUEUE_EDIT_FILE_SPLIT, &file, 1, 0, "part");
        (void)edit_many(QUEUE_EDIT_GROUP_MERGE, both, 2, 0, "");
        (void)edit_many(QUEUE_EDIT_GROUP_MOVE_TOP, both, 1, 0, "");
        (void)edit_many(QUEUE_EDIT_GROUP_SORT, both, 0, 0, "name");
        (void)edit_many(QUEUE_EDIT_GROUP_SET_NAME, both, 1, 0, "x");
        (void)edit_many(QUEUE_EDIT_GROUP_SET_PARAMETER, both, 1, 0, "n=v");
        (void)edit_many(QUEUE_EDIT_GROUP_DELETE, both, 1, 0, "");
        (void)edit_many(QUEUE_EDIT_HISTORY_RETRY_FAILED, both, 1, 0, "");
        bool fired = fault_fired();
        fault_disarm();
        queue_check(q);
        if (!fired) {
            break;
        }
    }
}

/* ---- duplicates ---- */

static enum queue_dupe_verdict ask(const char *name, const char *key, int32_t score, int mode,
                                   const uint8_t *content, uint32_t *other)
{
    const struct queue_dupe_query query = {
        .name = name, .dupe_key = key, .score = score, .mode = (uint8_t)mode, .key = content};
    return queue_dupe_check(q, &query, other);
}

static struct queue_job *scored(const char *name, const char *key, int32_t score)
{
    struct queue_job *j = make_job(q, name, "x.bin:1");
    PRE(edit(QUEUE_EDIT_GROUP_SET_DUPE_KEY, j->id, 0, key) == 0);
    PRE(edit(QUEUE_EDIT_GROUP_SET_DUPE_SCORE, j->id, score, "") == 0);
    return j;
}

static void finish(struct queue_job *j, enum queue_state last)
{
    static const enum queue_state way[] = {QUEUE_DOWNLOADING, QUEUE_PROCESSING};
    for (int i = 0; i < 2; i++) {
        PRE(queue_job_move(q, j, way[i], NOW, NULL) == 0);
    }
    PRE(queue_job_move(q, j, last, NOW, NULL) == 0);
    queue_job_place(q, j, QUEUE_HISTORY, false, NOW);
}

/* The same content is one job: while active the same id, once good a copy; Force takes it again. */
static void test_same_content(void)
{
    uint32_t other;
    struct queue_job *j = make_job(q, "j", "x.bin:1");
    TEST_ASSERT_EQUAL(QUEUE_DUPE_SAME, ask("another name", "", 0, QUEUE_DUPE_ALL, j->key, &other));
    TEST_ASSERT_EQUAL_UINT32(j->id, other);
    TEST_ASSERT_EQUAL(QUEUE_DUPE_TAKE, ask("j", "", 0, QUEUE_DUPE_FORCE, j->key, &other));
    finish(j, QUEUE_COMPLETED);
    TEST_ASSERT_EQUAL(QUEUE_DUPE_COPY,
                      ask("another name", "", 0, QUEUE_DUPE_SCORE, j->key, &other));
    PRE(edit(QUEUE_EDIT_HISTORY_MARK_BAD, j->id, 0, "") == 0);
    TEST_ASSERT_EQUAL(QUEUE_DUPE_TAKE,
                      ask("another name", "", 0, QUEUE_DUPE_SCORE, j->key, &other));
}

/* By score: not better than what is good, stands by; better, the other one does; ALL and FORCE do not ask. */
static void test_dupe_scores(void)
{
    uint32_t other, moved[4];
    struct queue_job *low = scored("Show", "show-1", 10);
    TEST_ASSERT_EQUAL(QUEUE_DUPE_STANDBY, ask("x", "SHOW-1", 10, QUEUE_DUPE_SCORE, NULL, &other));
    TEST_ASSERT_EQUAL(QUEUE_DUPE_REPLACE, ask("x", "show-1", 11, QUEUE_DUPE_SCORE, NULL, &other));
    TEST_ASSERT_EQUAL(QUEUE_DUPE_TAKE, ask("x", "show-2", 11, QUEUE_DUPE_SCORE, NULL, &other));
    TEST_ASSERT_EQUAL(QUEUE_DUPE_STANDBY, ask("show", "", 5, QUEUE_DUPE_SCORE, NULL, &other));
    TEST_ASSERT_EQUAL(QUEUE_DUPE_TAKE, ask("x", "show-1", 5, QUEUE_DUPE_ALL, NULL, &other));

    struct queue_job *high = scored("Show better", "show-1", 20);
    TEST_ASSERT_EQUAL_UINT32(1, queue_dupe_apply(q, high, QUEUE_DUPE_REPLACE, NOW, moved, 4));
    TEST_ASSERT_EQUAL_UINT32(low->id, moved[0]);
    TEST_ASSERT_EQUAL(QUEUE_HISTORY, low->place);
    TEST_ASSERT_TRUE(low->dupe_backup &&
                     (low->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_DUPE_STANDBY)) != 0);
    struct queue_job *mid = scored("Show mid", "show-1", 15);
    TEST_ASSERT_EQUAL_UINT32(1, queue_dupe_apply(q, mid, QUEUE_DUPE_STANDBY, NOW, NULL, 0));

    /* The better one fails: the best that stands by comes back, then the next. */
    finish(high, QUEUE_JOB_FAILED);
    TEST_ASSERT_EQUAL_UINT32(mid->id, queue_dupe_wake(q, high, NOW));
    TEST_ASSERT_EQUAL_UINT32(0, mid->holds);
    TEST_ASSERT_EQUAL_UINT32(0, queue_dupe_wake(q, high, NOW)); /* one is on its way */
    finish(mid, QUEUE_COMPLETED);
    TEST_ASSERT_EQUAL_UINT32(0, queue_dupe_wake(q, high, NOW)); /* there is a good one */
    TEST_ASSERT_EQUAL(QUEUE_DUPE_NEEDLESS, ask("x", "show-1", 15, QUEUE_DUPE_SCORE, NULL, &other));
    TEST_ASSERT_EQUAL(QUEUE_DUPE_TAKE, ask("x", "show-1", 16, QUEUE_DUPE_SCORE, NULL, &other));
    PRE(edit(QUEUE_EDIT_HISTORY_MARK_BAD, mid->id, 0, "") == 0);
    TEST_ASSERT_EQUAL_UINT32(low->id, result[0].new_id);
    finish(low, QUEUE_COMPLETED);
    low->dupe_backup = true;
    PRE(edit(QUEUE_EDIT_HISTORY_MARK_GOOD, mid->id, 0, "") == 0);
    TEST_ASSERT_FALSE(low->dupe_backup);
    TEST_ASSERT_EQUAL(QUEUE_DUPE_NEEDLESS, ask("x", "show-1", 99, QUEUE_DUPE_SCORE, NULL, &other));
}

/* ---- health ---- */

static void fail_articles(unsigned n)
{
    struct queue_pick p;
    for (unsigned i = 0; i < n && queue_pick(q, 0, &p); i++) {
        (void)queue_article_failed(q, queue_pick_ref(&p), NULL);
    }
}

/* Health starts at 1000 and falls with what failed, in bytes of data; helpers and PAR2 do not count. */
static void test_health(void)
{
    struct queue_job *j = make_job(q, "j", "a.bin:8 x.nfo:1 s.vol0+1.par2:1:1500 s.par2:1:500");
    TEST_ASSERT_EQUAL_UINT(1000, queue_job_health(j));
    /* par 2000 of 10000 (nfo left out): 1000 * (10000 - 4000) / (10000 - 2000) */
    TEST_ASSERT_EQUAL_UINT(750, queue_job_critical(j));
    fail_articles(1); /* the PAR2 main file */
    TEST_ASSERT_EQUAL_UINT(1000, queue_job_health(j));
    TEST_ASSERT_EQUAL_UINT(823, queue_job_critical(j));
    fail_articles(1);
    TEST_ASSERT_EQUAL_UINT(875, queue_job_health(j));
    TEST_ASSERT_EQUAL_UINT(875, queue_file_health(j->files[1]));
    TEST_ASSERT_EQUAL(QUEUE_HEALTH_NONE, queue_health_verdict(j, QUEUE_HEALTH_PARK));
    fail_articles(1);
    TEST_ASSERT_EQUAL_UINT(750, queue_job_health(j));
    TEST_ASSERT_EQUAL(QUEUE_HEALTH_PARK, queue_health_verdict(j, QUEUE_HEALTH_PARK));
    TEST_ASSERT_EQUAL(QUEUE_HEALTH_DELETE, queue_health_verdict(j, QUEUE_HEALTH_DELETE));
    TEST_ASSERT_EQUAL(QUEUE_HEALTH_NONE, queue_health_verdict(j, QUEUE_HEALTH_NONE));
}

/* Without PAR2 everything is critical; where names say nothing, it is not known yet. */
static void test_critical_health_without_par2(void)
{
    TEST_ASSERT_EQUAL_UINT(1000, queue_job_critical(make_job(q, "j", "a.bin:8")));
    TEST_ASSERT_EQUAL_UINT(QUEUE_CRITICAL_UNKNOWN,
                           queue_job_critical(make_job(q, "k", "9f86d0:8 a3f5c8:2")));
    TEST_ASSERT_EQUAL_UINT(
        0, queue_job_critical(make_job(q, "l", "a.bin:1:100 s.vol0+9.par2:1:9000")));
    TEST_ASSERT_EQUAL(QUEUE_HEALTH_PARK, queue_health_check_find("Pause"));
    TEST_ASSERT_EQUAL(QUEUE_HEALTH_DELETE, queue_health_check_find("dupe"));
    TEST_ASSERT_EQUAL(-1, queue_health_check_find("maybe"));
}

/* Once the PAR2 set is known, damage is counted in blocks: each block once, whatever number of articles touch it. */
static void test_health_in_blocks(void)
{
    struct queue_pick p;
    struct queue_part part = {.size = 700};
    struct queue_job *j = make_job(q, "j", "a.bin:10 s.par2:1 s.vol0+2.par2:1:2000");
    const struct queue_par2_member set = {j->files[1]->id, 7000};
    PRE(queue_pick(q, 0, &p));
    (void)queue_article_done(q, queue_pick_ref(&p), 0, &part, 1); /* the main file */
    PRE(queue_pick(q, 0, &p));
    (void)queue_article_done(q, queue_pick_ref(&p), 0, &part, 1); /* part 1: parts are 700 bytes */
    fail_articles(1); /* part 2, before the set is known: 700..1399 */
    PRE(queue_par2_known(q, j, 1000, &set, 1) == 0);
    TEST_ASSERT_EQUAL_UINT32(2, queue_job_blocks(j).lost); /* blocks 0 and 1 */
    fail_articles(1); /* part 3: 1400..2099: block 1 again, and 2 */
    TEST_ASSERT_EQUAL_UINT32(3, queue_job_blocks(j).lost);
    struct queue_blocks b = queue_job_blocks(j);
    TEST_ASSERT_TRUE(b.known && b.available == 2 && b.wanted == 0 && b.here == 0);
    TEST_ASSERT_EQUAL(QUEUE_HEALTH_PARK, queue_health_verdict(j, QUEUE_HEALTH_PARK));
    TEST_ASSERT_EQUAL_UINT32(2, queue_want_blocks(q, j, 1));
    TEST_ASSERT_EQUAL_UINT32(2, queue_job_blocks(j).wanted);
    TEST_ASSERT_EQUAL(ERR_INVALID, queue_par2_known(q, j, 0, &set, 1));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_commands_by_name);
    RUN_TEST(test_moving_jobs);
    RUN_TEST(test_batches_have_a_result_per_id);
    RUN_TEST(test_sorting_jobs);
    RUN_TEST(test_setting_values);
    RUN_TEST(test_files_of_a_job);
    RUN_TEST(test_deleting_files);
    RUN_TEST(test_split);
    RUN_TEST(test_merge);
    RUN_TEST(test_deleting_and_returning);
    RUN_TEST(test_successors_adopt_what_is_good);
    RUN_TEST(test_history);
    RUN_TEST(test_missing_memory_in_edits);
    RUN_TEST(test_same_content);
    RUN_TEST(test_dupe_scores);
    RUN_TEST(test_health);
    RUN_TEST(test_critical_health_without_par2);
    RUN_TEST(test_health_in_blocks);
    return UNITY_END();
}
