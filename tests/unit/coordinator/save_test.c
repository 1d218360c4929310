/* Saving, durable answers, commands, shutdown. */
#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "fixture.h"

static struct fixture f;
void setUp(void) {}
void tearDown(void)
{
    if (f.c != NULL) {
        fix_close(&f);
    }
}

static void saved(enum coord_code code)
{
    struct coord_event ev = {.type = COORD_EV_SAVED,
                             .saved = {.changes = fix_last(&f, COORD_FX_SAVE)->fx.changes,
                                       .generation = ++f.q->generation,
                                       .code = code,
                                       .text = code != COORD_OK ? "no space left" : NULL}};
    fix_step(&f, &ev);
}

/* An add is answered when its NZB is stored and a save has it, not a step earlier. */
static void test_an_add_is_answered_when_it_is_durable(void)
{
    fix_open(&f, 1);
    f.no_disk = true;
    fix_forget(&f);
    TEST_ASSERT_EQUAL_UINT32(0, fix_add_with(&f, "a", "x.rar:1", (struct queue_add){0}, NULL));
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_STORE_NZB));
    TEST_ASSERT_EQUAL_UINT(0, fix_count(&f, COORD_FX_FETCH));
    struct coord_event ev = {.type = COORD_EV_NZB_STORED, .nzb = {.job_id = 1, .stored = "n"}};
    fix_step(&f, &ev);
    TEST_ASSERT_NULL(fix_reply(&f, f.requests));
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_SAVE));
    saved(COORD_OK);
    TEST_ASSERT_EQUAL_UINT32(1, fix_reply(&f, f.requests)->fx.reply.job_id);
}

/* Add, remove, complete and edits save at once; progress alone is saved after 30 s. */
static void test_save_triggers(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:3");
    fix_forget(&f);
    fix_answer(&f, fix_lease(&f, 0), COORD_OK);
    TEST_ASSERT_EQUAL_UINT(0, fix_count(&f, COORD_FX_SAVE));
    fix_pass(&f, COORD_SAVE_MS);
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_SAVE));
    fix_forget(&f);
    fix_pass(&f, COORD_SAVE_MS - 1000);
    TEST_ASSERT_EQUAL_UINT(0, fix_count(&f, COORD_FX_SAVE)); /* not dirty */
    fix_answer_all(&f, COORD_OK);
    TEST_ASSERT_EQUAL(QUEUE_PROCESSING, fix_state(&f, job));
    fix_forget(&f);
    fix_post(&f, job, COORD_OK, 0);
    TEST_ASSERT_TRUE(fix_count(&f, COORD_FX_SAVE) >= 1);
    fix_forget(&f);
    fix_edit(&f, QUEUE_EDIT_HISTORY_FINAL_DELETE, job, 0, "");
    TEST_ASSERT_TRUE(fix_count(&f, COORD_FX_SAVE) >= 1);
}

/* One save at a time: what comes meanwhile goes into the next, and its answer waits for that one. */
static void test_one_save_at_a_time(void)
{
    fix_open(&f, 1);
    f.no_disk = true;
    fix_forget(&f);
    uint64_t a = fix_op(&f, COORD_PAUSE, 0), b = fix_op(&f, COORD_RESUME, 0),
             d = fix_op(&f, COORD_PAUSE, 0);
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_SAVE));
    saved(COORD_OK);
    TEST_ASSERT_NOT_NULL(fix_reply(&f, a));
    TEST_ASSERT_NULL(fix_reply(&f, b));
    TEST_ASSERT_EQUAL_UINT(2, fix_count(&f, COORD_FX_SAVE));
    saved(COORD_OK);
    TEST_ASSERT_NOT_NULL(fix_reply(&f, b));
    TEST_ASSERT_NOT_NULL(fix_reply(&f, d));
}

/* A failed save: the queue stays dirty, those who waited get the reason, the status shows it, it is tried again. */
static void test_a_failed_save_is_visible(void)
{
    fix_open(&f, 1);
    f.no_disk = true;
    fix_forget(&f);
    uint64_t r = fix_op(&f, COORD_PAUSE, 0);
    saved(COORD_DISK_IO);
    TEST_ASSERT_EQUAL(ERR_FULL, fix_reply(&f, r)->fx.reply.code);
    TEST_ASSERT_EQUAL_STRING("no space left", fix_reply(&f, r)->text);
    TEST_ASSERT_TRUE(queue_dirty(f.q));
    TEST_ASSERT_TRUE(coord_status(f.c).save_failing);
    TEST_ASSERT_EQUAL_STRING("no space left", coord_status(f.c).save_error);
    TEST_ASSERT_EQUAL_UINT(1, fix_records(&f, COORD_REC_SAVE_FAILED));
    fix_pass(&f, 1000);
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_SAVE));
    fix_pass(&f, 2000);
    TEST_ASSERT_EQUAL_UINT(2, fix_count(&f, COORD_FX_SAVE));
    saved(COORD_OK);
    TEST_ASSERT_FALSE(queue_dirty(f.q));
    TEST_ASSERT_FALSE(coord_status(f.c).save_failing);
}

/* A state directory without space holds the downloads too. */
static void test_a_full_state_directory_holds(void)
{
    fix_open(&f, 1);
    f.save_code = COORD_NO_SPACE;
    fix_op(&f, COORD_PAUSE, 0);
    TEST_ASSERT_TRUE(fix_all_held(&f, QUEUE_HOLD_DISK));
}

/* Files are deleted and stored NZBs forgotten only when the removal is durable. */
static void test_deletes_follow_the_save(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:1");
    f.no_disk = true;
    fix_forget(&f);
    fix_edit(&f, QUEUE_EDIT_GROUP_FINAL_DELETE, job, 0, "");
    TEST_ASSERT_EQUAL_UINT(0, fix_count(&f, COORD_FX_DELETE_FILES) +
                                  fix_count(&f, COORD_FX_FORGET_NZB));
    saved(COORD_OK);
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_DELETE_FILES));
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_FORGET_NZB));
}

/* Every command gets exactly one reply: known, unknown, wrong, stopped. */
static void test_every_command_is_answered(void)
{
    fix_open(&f, 1);
    for (int op = COORD_PAUSE; op <= COORD_OPS; op++) {
        struct coord_command cmd = {.op = (enum coord_op)op,
                                    .limits = &f.limits,
                                    .servers = f.servers,
                                    .count = f.server_count};
        if (op == COORD_SHUTDOWN) {
            continue;
        }
        uint64_t r = fix_command(&f, cmd);
        TEST_ASSERT_NOT_NULL_MESSAGE(fix_reply(&f, r), coord_op_name((enum coord_op)op));
    }
    const struct queue_edit bad = {.op = QUEUE_EDIT_OPS};
    uint64_t r = fix_command(&f, (struct coord_command){.op = COORD_EDIT, .edit = &bad});
    TEST_ASSERT_EQUAL(ERR_INVALID, fix_reply(&f, r)->fx.reply.code);
    const struct coord_add nothing = {.key = NULL};
    r = fix_command(&f, (struct coord_command){.op = COORD_ADD, .add = &nothing});
    TEST_ASSERT_EQUAL(ERR_INVALID, fix_reply(&f, r)->fx.reply.code);
    TEST_ASSERT_EQUAL(ERR_NOT_FOUND, fix_edit(&f, QUEUE_EDIT_GROUP_PAUSE, 99, 0, ""));
    fix_op(&f, COORD_SHUTDOWN, 0);
    r = fix_op(&f, COORD_PAUSE, 0);
    TEST_ASSERT_EQUAL(ERR_STOPPED, fix_reply(&f, r)->fx.reply.code);
    TEST_ASSERT_NOT_NULL(fix_reply(&f, fix_op(&f, COORD_STATUS, 0)));
}

/* A stale row_version is a conflict and changes nothing. */
static void test_stale_edit(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:1");
    uint64_t seen = fix_job(&f, job)->row_version - 1;
    const struct queue_edit e = {
        .op = QUEUE_EDIT_GROUP_PAUSE, .ids = &job, .id_count = 1, .seen = &seen};
    uint64_t r = fix_command(&f, (struct coord_command){.op = COORD_EDIT, .edit = &e});
    TEST_ASSERT_EQUAL(ERR_CONFLICT, fix_reply(&f, r)->fx.reply.code);
    TEST_ASSERT_FALSE(fix_held(&f, job, QUEUE_HOLD_USER));
}

/* A part that is on the disk does not change its job: split and merge are refused. */
static void test_split_and_merge_only_before_anything_is_written(void)
{
    fix_open(&f, 1);
    uint32_t a = fix_add(&f, "a", "x.rar:2 y.rar:2"), b = fix_add(&f, "b", "z.rar:2");
    fix_answer(&f, fix_lease(&f, 0), COORD_OK);
    TEST_ASSERT_EQUAL(ERR_CONFLICT,
                      fix_edit(&f, QUEUE_EDIT_FILE_SPLIT, fix_job(&f, a)->files[0]->id, 0, "n"));
    TEST_ASSERT_EQUAL(0, fix_edit(&f, QUEUE_EDIT_FILE_SPLIT, fix_job(&f, a)->files[1]->id, 0, "n"));
    uint32_t ids[2] = {b, a};
    const struct queue_edit e = {.op = QUEUE_EDIT_GROUP_MERGE, .ids = ids, .id_count = 2};
    uint64_t r = fix_command(&f, (struct coord_command){.op = COORD_EDIT, .edit = &e});
    TEST_ASSERT_EQUAL(ERR_CONFLICT, fix_reply(&f, r)->fx.reply.code);
}

/* Shutdown: nothing new is begun, what is under way may end, then the last save, then it has stopped (trap 5). */
static void test_graceful_shutdown(void)
{
    fix_open(&f, 1);
    fix_add(&f, "a", "x.rar:9");
    fix_forget(&f);
    fix_op(&f, COORD_SHUTDOWN, 0);
    fix_answer(&f, fix_lease(&f, 0), COORD_OK);
    TEST_ASSERT_EQUAL_UINT(0, fix_count(&f, COORD_FX_FETCH));
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_WRITE));
    TEST_ASSERT_TRUE(coord_stopped(f.c));
    TEST_ASSERT_EQUAL(0, fix_last(&f, COORD_FX_STOPPED)->fx.code);
    TEST_ASSERT_FALSE(queue_dirty(f.q));
}

/* The shutdown has a deadline: what does not end is dropped, the queue saved. */
static void test_shutdown_deadline(void)
{
    fix_open(&f, 1);
    fix_add(&f, "a", "x.rar:9");
    fix_op(&f, COORD_SHUTDOWN, 0);
    fix_pass(&f, COORD_STOP_MS - 1);
    TEST_ASSERT_FALSE(coord_stopped(f.c));
    fix_pass(&f, 1);
    TEST_ASSERT_TRUE(coord_stopped(f.c));
    TEST_ASSERT_EQUAL(0, fix_last(&f, COORD_FX_STOPPED)->fx.code);
}

/* A second request is quick: no waiting for leases, a second for the save; a dead disk is said. */
static void test_second_shutdown_is_quick(void)
{
    fix_open(&f, 1);
    fix_add(&f, "a", "x.rar:9");
    f.no_disk = true;
    fix_forget(&f);
    fix_op(&f, COORD_SHUTDOWN, 0);
    uint64_t r = fix_op(&f, COORD_SHUTDOWN, 0);
    TEST_ASSERT_NOT_NULL(fix_reply(&f, r));
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_SAVE));
    fix_pass(&f, COORD_QUICK_MS - 1);
    TEST_ASSERT_FALSE(coord_stopped(f.c));
    fix_pass(&f, 1);
    TEST_ASSERT_EQUAL(ERR_STOPPED, fix_last(&f, COORD_FX_STOPPED)->fx.code);
}

/* Answers that wait for the disk are not forgotten when the program ends without it. */
static void test_waiting_answers_at_the_end(void)
{
    fix_open(&f, 1);
    f.no_disk = true;
    fix_forget(&f);
    uint64_t r = fix_op(&f, COORD_PAUSE, 0);
    TEST_ASSERT_EQUAL_UINT32(0, fix_add_with(&f, "a", "x.rar:1", (struct queue_add){0}, NULL));
    uint64_t add = f.requests;
    fix_op(&f, COORD_SHUTDOWN, 0);
    fix_pass(&f, COORD_STOP_MS + COORD_QUICK_MS);
    TEST_ASSERT_EQUAL(ERR_STOPPED, fix_reply(&f, r)->fx.reply.code);
    TEST_ASSERT_EQUAL(ERR_STOPPED, fix_reply(&f, add)->fx.reply.code);
}

/* ---- stuck ---- */

/* Each state's threshold counts only time in which nothing holds the job, and its ladder ends in POISON. */
static void test_stuck_ladder(void)
{
    fix_prepare(&f, 1);
    fix_start(&f);
    uint32_t job = fix_add(&f, "a", "x.rar:1");
    fix_answer_all(&f, COORD_OK);
    TEST_ASSERT_EQUAL(QUEUE_PROCESSING, fix_state(&f, job));
    fix_pass(&f, COORD_STUCK_PROCESSING_MS - 20000);
    TEST_ASSERT_EQUAL_UINT8(0, fix_job(&f, job)->watch.rung);
    struct coord_event ev = {.type = COORD_EV_POST,
                             .post = {.job_id = job, .kind = COORD_POST_PROGRESS}};
    fix_step(&f, &ev);
    fix_pass(&f, COORD_STUCK_PROCESSING_MS - 20000);
    TEST_ASSERT_EQUAL_UINT8(0, fix_job(&f, job)->watch.rung);
    for (unsigned rung = 1; rung <= 4; rung++) {
        fix_forget(&f);
        fix_pass(&f, rung == 1 ? 40000 : COORD_STUCK_PROCESSING_MS + COORD_SWEEP_MS);
        TEST_ASSERT_EQUAL_UINT8(rung, fix_job(&f, job)->watch.rung);
        TEST_ASSERT_EQUAL_UINT(1, fix_records(&f, COORD_REC_STUCK));
        TEST_ASSERT_EQUAL_UINT(rung == 3, fix_count(&f, COORD_FX_POST_START));
        TEST_ASSERT_EQUAL_UINT(rung >= 3, fix_count(&f, COORD_FX_POST_STOP));
    }
    TEST_ASSERT_TRUE(fix_held(&f, job, QUEUE_HOLD_POISON));
    uint64_t r = fix_op(&f, COORD_STUCK, 0);
    TEST_ASSERT_EQUAL_UINT32(1, fix_reply(&f, r)->fx.reply.count);
    fix_edit(&f, QUEUE_EDIT_GROUP_RESUME, job, 0, "");
    TEST_ASSERT_EQUAL_UINT8(0, fix_job(&f, job)->watch.rung);
}

/* created 10 min, queued 1 h idle, downloading 15 min idle; a pause stops the clock; waiting in line is not stuck. */
static void test_stuck_thresholds(void)
{
    fix_open(&f, 1);
    uint32_t url = fix_add_with(&f, "u", NULL, (struct queue_add){.url = "http://x/"}, NULL);
    fix_pass(&f, COORD_STUCK_CREATED_MS + COORD_SWEEP_MS);
    TEST_ASSERT_EQUAL_UINT8(1, fix_job(&f, url)->watch.rung);
    fix_op(&f, COORD_PAUSE, 0);
    fix_pass(&f, 10 * COORD_STUCK_CREATED_MS);
    TEST_ASSERT_EQUAL_UINT8(1, fix_job(&f, url)->watch.rung);
    fix_close(&f);

    fix_open(&f, 1);
    uint32_t first = fix_add(&f, "a", "x.rar:1");
    uint32_t second = fix_add(&f, "b", "y.rar:1");
    for (unsigned i = 0; i < 200; i++) { /* two hours on one slow article */
        fix_pass(&f, 40000);
        struct coord_event ev = {.type = COORD_EV_PROGRESS, .lease = fix_lease(&f, 0)};
        fix_step(&f, &ev);
    }
    TEST_ASSERT_EQUAL(QUEUE_QUEUED, fix_state(&f, second));
    TEST_ASSERT_EQUAL_UINT8(0, fix_job(&f, second)->watch.rung);
    TEST_ASSERT_EQUAL_UINT8(0, fix_job(&f, first)->watch.rung);
}

/* Finished jobs that nobody imports are mentioned after an hour where imports are expected, and only there. */
static void test_stuck_completed(void)
{
    for (int imports = 0; imports < 2; imports++) {
        fix_prepare(&f, 1);
        f.limits.imports = imports != 0;
        fix_start(&f);
        uint32_t job = fix_add(&f, "a", "x.rar:1");
        fix_answer_all(&f, COORD_OK);
        fix_post(&f, job, COORD_OK, 0);
        fix_forget(&f);
        fix_pass(&f, COORD_STUCK_COMPLETED_MS + COORD_SWEEP_MS);
        TEST_ASSERT_EQUAL_UINT((unsigned)imports, fix_records(&f, COORD_REC_STUCK));
        fix_close(&f);
    }
    f.c = NULL;
}

/* One sweep looks at a hundred jobs at most and goes on from there. */
static void test_a_sweep_is_bounded(void)
{
    fix_open(&f, 0);
    for (unsigned i = 0; i < 250; i++) {
        char name[16];
        snprintf(name, sizeof(name), "j%u", i);
        fix_add(&f, name, "x.rar:1");
        fix_forget(&f);
    }
    uint32_t before = f.c->sweep_at;
    fix_pass(&f, COORD_SWEEP_MS);
    uint32_t moved = (f.c->sweep_at + 250 - before) % 250;
    TEST_ASSERT_EQUAL_UINT32(COORD_SWEEP_JOBS, moved);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_an_add_is_answered_when_it_is_durable);
    RUN_TEST(test_save_triggers);
    RUN_TEST(test_one_save_at_a_time);
    RUN_TEST(test_a_failed_save_is_visible);
    RUN_TEST(test_a_full_state_directory_holds);
    RUN_TEST(test_deletes_follow_the_save);
    RUN_TEST(test_every_command_is_answered);
    RUN_TEST(test_stale_edit);
    RUN_TEST(test_split_and_merge_only_before_anything_is_written);
    RUN_TEST(test_graceful_shutdown);
    RUN_TEST(test_shutdown_deadline);
    RUN_TEST(test_second_shutdown_is_quick);
    RUN_TEST(test_waiting_answers_at_the_end);
    RUN_TEST(test_stuck_ladder);
    RUN_TEST(test_stuck_thresholds);
    RUN_TEST(test_stuck_completed);
    RUN_TEST(test_a_sweep_is_bounded);
    return UNITY_END();
}
