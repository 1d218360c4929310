/* The rules of "State Machines" (DOC-STATE), by its section numbers. docs/LIFECYCLE.md says which were changed. */
#include <string.h>
#include <unity.h>

#include "fixture.h"

static struct world w;

void setUp(void)
{
    world_make(&w);
}

void tearDown(void)
{
    world_remove(&w);
}

/* CLAIMED is an event, not a state: queued -> downloading is told as claimed; an expired job ends cancelled, with
 * ttl_expired as its code, and is found by its expiry. */
static void test_003_s1_claimed_and_expired(void)
{
    struct store_job_made made;
    struct store_job_new n = {.id = 1, .expires_at = START_AT + HOUR};
    TEST_ASSERT_EQUAL_INT(0, store_job_add(w.s, &n, w.now, &made, &w.e));
    move_to(&w, 2, STORE_DOWNLOADING);
    TEST_ASSERT_EQUAL_STRING("downloading", last_event(&w, 2, STORE_EV_CLAIMED)->to);
    world_wait(&w, HOUR + 1);
    struct store_job_filter f = {.expires_before = w.now.wall_ms, .states = SM_BIT(STORE_CREATED)};
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_job_list(w.s, &f, NULL, &page, &w.e));
    TEST_ASSERT_EQUAL_UINT(1, page.count);
    TEST_ASSERT_EQUAL_UINT32(1, ((struct store_job *)page.rows)[0].id);
    store_page_free(&page);
    struct store_move m = {.job = 1, .to = STORE_CANCELLED, .code = "ttl_expired"};
    TEST_ASSERT_EQUAL_INT(0, store_job_move(w.s, &m, w.now, NULL, &w.e));
    TEST_ASSERT_EQUAL_STRING("ttl_expired", last_event(&w, 1, STORE_EV_STATUS_CHANGED)->code);
}

/* Claiming writes the heartbeat in the same step; each life sign moves it; a silent job shows as stuck. */
static void test_003_s2_heartbeat(void)
{
    struct store_job j;
    struct store_facts facts = {.articles = 9};
    move_to(&w, 1, STORE_QUEUED);
    world_wait(&w, 1000);
    move(&w, 1, STORE_DOWNLOADING);
    get_job(&w, 1, &j);
    TEST_ASSERT_EQUAL_INT64(w.now.wall_ms, j.progress_at);
    world_wait(&w, 1000);
    TEST_ASSERT_EQUAL_INT(0, store_job_progress(w.s, 1, &facts, w.now, &w.e));
    get_job(&w, 1, &j);
    TEST_ASSERT_EQUAL_INT64(w.now.wall_ms, j.progress_at);
}

/* downloading -> queued counts an attempt; when three are used up it is refused, and the job is to be failed. */
static void test_003_s2_attempts(void)
{
    struct store_job j;
    move_to(&w, 1, STORE_DOWNLOADING);
    for (uint32_t attempt = 2; attempt <= STORE_JOB_ATTEMPTS; attempt++) {
        struct store_move m = {.job = 1,
                               .to = STORE_QUEUED,
                               .code = "ETIMEDOUT",
                               .category = STORE_TRANSIENT,
                               .next_run_at = w.now.wall_ms + 4000};
        TEST_ASSERT_EQUAL_INT(0, store_job_move(w.s, &m, w.now, NULL, &w.e));
        get_job(&w, 1, &j);
        TEST_ASSERT_EQUAL_UINT32(attempt, j.attempt);
        TEST_ASSERT_EQUAL_INT64(w.now.wall_ms + 4000, j.next_run_at);
        move(&w, 1, STORE_DOWNLOADING);
    }
    TEST_ASSERT_EQUAL_INT(ERR_LIMIT, try_move(&w, 1, STORE_QUEUED));
    TEST_ASSERT_EQUAL_INT(STORE_DOWNLOADING, state_of(&w, 1));
    TEST_ASSERT_EQUAL_INT64(1, count_events(&w, 1, STORE_EV_ILLEGAL_TRANSITION));
    move(&w, 1, STORE_FAILED);
}

/* The same nonce gives the same job for 24 hours, whatever else the request says; then it is free again. */
static void test_003_s3_idempotency_key(void)
{
    struct store_job_made made;
    struct store_job_new n = {.id = 1, .idem_key = "nonce-1"};
    TEST_ASSERT_EQUAL_INT(0, store_job_add(w.s, &n, w.now, &made, &w.e));
    TEST_ASSERT_FALSE(made.existed);
    move(&w, 1, STORE_CANCELLED); /* ended: the key still answers */
    n = (struct store_job_new){.id = 2, .idem_key = "nonce-1", .name = "other"};
    world_wait(&w, DAY - 1);
    world_reopen(&w);
    TEST_ASSERT_EQUAL_INT(0, store_job_add(w.s, &n, w.now, &made, &w.e));
    TEST_ASSERT_TRUE(made.existed);
    TEST_ASSERT_EQUAL_UINT32(1, made.id);
    world_wait(&w, 1);
    TEST_ASSERT_EQUAL_INT(0, store_job_add(w.s, &n, w.now, &made, &w.e));
    TEST_ASSERT_FALSE(made.existed);
    TEST_ASSERT_EQUAL_UINT32(2, made.id);
    n = (struct store_job_new){.id = 3, .idem_key = "nonce-1"};
    TEST_ASSERT_EQUAL_INT(0, store_job_add(w.s, &n, w.now, &made, &w.e));
    TEST_ASSERT_EQUAL_UINT32(2, made.id); /* the key now belongs to the new one */
    n.idem_key = "";
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_job_add(w.s, &n, w.now, &made, &w.e));
    /* A key of a request that the content answered is remembered as well. */
    uint8_t key[STORE_KEY_BYTES] = {1};
    n = (struct store_job_new){.id = 4, .key = key};
    TEST_ASSERT_EQUAL_INT(0, store_job_add(w.s, &n, w.now, &made, &w.e));
    n = (struct store_job_new){.id = 5, .key = key, .idem_key = "nonce-2"};
    TEST_ASSERT_EQUAL_INT(0, store_job_add(w.s, &n, w.now, &made, &w.e));
    TEST_ASSERT_EQUAL_UINT32(4, made.id);
    move(&w, 4, STORE_CANCELLED);
    TEST_ASSERT_EQUAL_INT(0, store_job_add(w.s, &n, w.now, &made, &w.e));
    TEST_ASSERT_EQUAL_UINT32(4, made.id);
}

/* Retryable and not: the stage that fails for a passing reason may run again, three times in all, the other not. */
static void test_003_s4_taxonomy_in_stages(void)
{
    uint32_t attempt = 0;
    bool again = false;
    move_to(&w, 1, STORE_DOWNLOADING);
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_stage_begin(w.s, 1, "verify", w.now, &attempt, &w.e));
    move(&w, 1, STORE_PROCESSING);
    for (uint32_t n = 1; n <= STORE_STAGE_ATTEMPTS; n++) {
        TEST_ASSERT_EQUAL_INT(0, store_stage_begin(w.s, 1, "unpack", w.now, &attempt, &w.e));
        TEST_ASSERT_EQUAL_UINT32(n, attempt);
        TEST_ASSERT_EQUAL_INT(ERR_INVALID,
                              store_stage_begin(w.s, 1, "unpack", w.now, &attempt, &w.e));
        struct store_stage_end end = {
            .job = 1, .name = "unpack", .attempt = n, .code = "crc", .category = STORE_TRANSIENT};
        TEST_ASSERT_EQUAL_INT(0, store_stage_end(w.s, &end, w.now, &again, &w.e));
        TEST_ASSERT_EQUAL_INT(n < STORE_STAGE_ATTEMPTS, again);
        TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_stage_end(w.s, &end, w.now, &again, &w.e));
    }
    TEST_ASSERT_EQUAL_INT(ERR_LIMIT, store_stage_begin(w.s, 1, "unpack", w.now, &attempt, &w.e));
    TEST_ASSERT_EQUAL_INT(0, store_stage_begin(w.s, 1, "repair", w.now, &attempt, &w.e));
    struct store_stage_end end = {
        .job = 1, .name = "repair", .attempt = 7, .category = STORE_PERMANENT};
    TEST_ASSERT_EQUAL_INT(ERR_CONFLICT, store_stage_end(w.s, &end, w.now, &again, &w.e));
    end.attempt = 1;
    TEST_ASSERT_EQUAL_INT(0, store_stage_end(w.s, &end, w.now, &again, &w.e));
    TEST_ASSERT_FALSE(again);
    /* What was done may be done again with a new budget: verify after more volumes came. */
    for (int run = 0; run < 5; run++) {
        TEST_ASSERT_EQUAL_INT(0, store_stage_begin(w.s, 1, "verify", w.now, &attempt, &w.e));
        TEST_ASSERT_EQUAL_UINT32(1, attempt);
        TEST_ASSERT_EQUAL_INT(0, store_stage_progress(w.s, 1, "verify", 500, w.now, &w.e));
        end = (struct store_stage_end){.job = 1, .name = "verify", .attempt = 1, .ok = true};
        TEST_ASSERT_EQUAL_INT(0, store_stage_end(w.s, &end, w.now, &again, &w.e));
    }
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_stage_list(w.s, 1, &page, &w.e));
    TEST_ASSERT_EQUAL_UINT(3, page.count);
    const struct store_stage *st = page.rows;
    TEST_ASSERT_EQUAL_STRING("unpack", st[0].name);
    TEST_ASSERT_EQUAL_INT(STORE_STAGE_FAILED, st[0].state);
    TEST_ASSERT_EQUAL_STRING("verify", st[2].name);
    TEST_ASSERT_EQUAL_UINT32(5, st[2].run);
    TEST_ASSERT_EQUAL_UINT32(1000, st[2].progress_permille);
    store_page_free(&page);
}

/* After a crash: downloading -> queued with an attempt more; without getting anywhere, failed after the third; a job
 * that got articles starts its count again. After an orderly end nothing is set back. */
static void test_003_s5_recovery_of_jobs(void)
{
    struct store_job j;
    move_to(&w, 1, STORE_DOWNLOADING);
    world_reopen(&w);
    TEST_ASSERT_FALSE(w.report.unclean);
    TEST_ASSERT_EQUAL_INT(STORE_DOWNLOADING, state_of(&w, 1));
    for (uint32_t attempt = 2; attempt <= STORE_JOB_ATTEMPTS; attempt++) {
        world_crash(&w);
        TEST_ASSERT_EQUAL_UINT(1, w.report.jobs_recovered);
        get_job(&w, 1, &j);
        TEST_ASSERT_EQUAL_INT(STORE_QUEUED, j.state);
        TEST_ASSERT_EQUAL_UINT32(attempt, j.attempt);
        move(&w, 1, STORE_DOWNLOADING);
    }
    struct store_facts facts = {.articles_done = 1};
    store_job_progress(w.s, 1, &facts, w.now, &w.e);
    world_crash(&w);
    get_job(&w, 1, &j);
    TEST_ASSERT_EQUAL_UINT32(1, j.attempt);
    for (int i = 0; i < 3; i++) {
        move(&w, 1, STORE_DOWNLOADING);
        world_crash(&w);
    }
    TEST_ASSERT_EQUAL_UINT(1, w.report.jobs_failed);
    TEST_ASSERT_EQUAL_INT(STORE_FAILED, state_of(&w, 1));
    const struct store_event *ev = last_event(&w, 1, STORE_EV_RECOVERED);
    TEST_ASSERT_EQUAL_STRING("attempts_exhausted", ev->code);
}

/* After a crash: a stage that ran is interrupted, its attempt spent, its job still processing. */
static void test_003_s5_recovery_of_stages(void)
{
    uint32_t attempt;
    move_to(&w, 1, STORE_PROCESSING);
    for (uint32_t n = 1; n <= STORE_STAGE_ATTEMPTS; n++) {
        TEST_ASSERT_EQUAL_INT(0, store_stage_begin(w.s, 1, "repair", w.now, &attempt, &w.e));
        TEST_ASSERT_EQUAL_UINT32(n, attempt);
        world_crash(&w);
        TEST_ASSERT_EQUAL_UINT(1, w.report.stages_recovered);
        TEST_ASSERT_EQUAL_INT(STORE_PROCESSING, state_of(&w, 1));
    }
    TEST_ASSERT_EQUAL_INT(ERR_LIMIT, store_stage_begin(w.s, 1, "repair", w.now, &attempt, &w.e));
}

/* After a crash: an import that a worker had is pending again; one that waited goes on waiting; one that was at its
 * last attempt is failed. */
static void test_003_s5_recovery_of_imports(void)
{
    struct store_page page;
    move_to(&w, 1, STORE_COMPLETED);
    spawn(&w, 1, 2);
    int64_t waiting = import_one(&w, false, STORE_TRANSIENT);
    int64_t next = get_task(&w, waiting).next_run_at;
    TEST_ASSERT_EQUAL_INT(0, store_import_claim(w.s, 1, w.now, &page, &w.e));
    int64_t had = ((struct store_task *)page.rows)->id;
    store_page_free(&page);
    world_crash(&w);
    TEST_ASSERT_EQUAL_UINT(1, w.report.tasks_recovered);
    TEST_ASSERT_EQUAL_INT(STORE_TASK_PENDING, get_task(&w, had).state);
    TEST_ASSERT_EQUAL_INT(STORE_TASK_IN_PROGRESS, get_task(&w, waiting).state);
    TEST_ASSERT_EQUAL_INT64(next, get_task(&w, waiting).next_run_at);
    for (uint32_t attempt = 2; attempt <= STORE_IMPORT_ATTEMPTS; attempt++) {
        TEST_ASSERT_EQUAL_INT(0, store_import_claim(w.s, 1, w.now, &page, &w.e));
        TEST_ASSERT_EQUAL_INT64(had, ((struct store_task *)page.rows)->id);
        store_page_free(&page);
        world_crash(&w);
    }
    TEST_ASSERT_EQUAL_UINT(1, w.report.tasks_failed);
    TEST_ASSERT_EQUAL_INT(STORE_TASK_FAILED, get_task(&w, had).state);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_003_s1_claimed_and_expired);
    RUN_TEST(test_003_s2_heartbeat);
    RUN_TEST(test_003_s2_attempts);
    RUN_TEST(test_003_s3_idempotency_key);
    RUN_TEST(test_003_s4_taxonomy_in_stages);
    RUN_TEST(test_003_s5_recovery_of_jobs);
    RUN_TEST(test_003_s5_recovery_of_stages);
    RUN_TEST(test_003_s5_recovery_of_imports);
    return UNITY_END();
}
