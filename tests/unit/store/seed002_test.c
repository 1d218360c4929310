/* The rules of "Download State Machine & Source Cleanup", by its headings. docs/LIFECYCLE.md says which were changed. */
#include <sqlite3.h>
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

/* The whole way, each step with its time, to `cleaned`; and the events alone tell the same. */
static void test_002_states_full_flow(void)
{
    static const char *const way[] = {"created",   "queued",   "downloading", "processing",
                                      "completed", "imported", "cleaned"};
    move_to(&w, 1, STORE_CLEANED);
    struct store_event_filter f = {.job = 1};
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_event_list(w.s, &f, NULL, &page, &w.e));
    const struct store_event *ev = page.rows;
    unsigned at = 0;
    for (unsigned i = 0; i < page.count; i++) {
        if (ev[i].task == 0 && ev[i].to[0] != '\0') {
            TEST_ASSERT_EQUAL_STRING(at == 0 ? "" : way[at - 1], ev[i].from);
            TEST_ASSERT_EQUAL_STRING(way[at++], ev[i].to);
        }
    }
    TEST_ASSERT_EQUAL_UINT(7, at);
    store_page_free(&page);
    TEST_ASSERT_EQUAL_INT64(1, count_events(&w, 1, STORE_EV_CLEANUP_DONE));
}

/* Changed rule: failed -> queued is not a transition; a retry is a new job that names the one it follows. */
static void test_002_transitions_retry_is_a_successor(void)
{
    struct store_job_made made;
    move_to(&w, 1, STORE_FAILED);
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, try_move(&w, 1, STORE_QUEUED));
    struct store_job_new retry = {.id = 2, .name = "again", .previous_id = 1};
    TEST_ASSERT_EQUAL_INT(0, store_job_add(w.s, &retry, w.now, &made, &w.e));
    struct store_job j;
    get_job(&w, 2, &j);
    TEST_ASSERT_EQUAL_UINT32(1, j.previous_id);
    retry = (struct store_job_new){.id = 3, .previous_id = 2}; /* 2 has not ended */
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_job_add(w.s, &retry, w.now, &made, &w.e));
    retry.previous_id = 99;
    TEST_ASSERT_EQUAL_INT(ERR_NOT_FOUND, store_job_add(w.s, &retry, w.now, &made, &w.e));
}

/* Changed rule: what is completed or imported does not become failed; a failed import or cleanup is said beside it. */
static void test_002_transitions_completed_does_not_fail(void)
{
    move_to(&w, 1, STORE_COMPLETED);
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, try_move(&w, 1, STORE_FAILED));
    move_to(&w, 2, STORE_IMPORTED);
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, try_move(&w, 2, STORE_FAILED));
}

/* last_transition_at is the time of the last transition and of nothing else. */
static void test_002_database_last_transition_at(void)
{
    struct store_job j;
    move_to(&w, 1, STORE_DOWNLOADING);
    world_wait(&w, 5000);
    struct store_facts facts = {.articles_done = 1};
    store_job_progress(w.s, 1, &facts, w.now, &w.e);
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, try_move(&w, 1, STORE_CLEANED));
    get_job(&w, 1, &j);
    TEST_ASSERT_EQUAL_INT64(START_AT, j.last_transition_at);
    TEST_ASSERT_EQUAL_INT64(START_AT + 5000, j.progress_at);
    move(&w, 1, STORE_PROCESSING);
    get_job(&w, 1, &j);
    TEST_ASSERT_EQUAL_INT64(START_AT + 5000, j.last_transition_at);
}

/* The database knows no other state, whoever writes to it. */
static void test_002_database_status_check(void)
{
    add_job(&w, 1);
    TEST_ASSERT_EQUAL_INT(SQLITE_CONSTRAINT, world_sql(&w, "UPDATE job SET state = 'lost'"));
}

/* Cleanup needs the import: an imported job with a file that is being imported again is not cleaned. A refusal is an
 * event, changes nothing, and the next try may succeed. */
static void test_002_cleanup_refusal_blocks_nothing(void)
{
    move_to(&w, 1, STORE_IMPORTED);
    struct store_event refused = {.kind = STORE_EV_CLEANUP_REFUSED,
                                  .job = 1,
                                  .code = "not_in_library",
                                  .text = "the library does not show it yet"};
    int64_t seq = 0;
    TEST_ASSERT_EQUAL_INT(0, store_event_add(w.s, &refused, w.now, &seq, &w.e));
    TEST_ASSERT_GREATER_THAN_INT64(0, seq);
    TEST_ASSERT_EQUAL_INT(STORE_IMPORTED, state_of(&w, 1));
    move(&w, 1, STORE_CLEANED);
    TEST_ASSERT_EQUAL_STRING("cleaned", last_event(&w, 1, STORE_EV_CLEANUP_DONE)->to);
    /* Nobody can claim a cleanup that did not happen. */
    refused.kind = STORE_EV_CLEANUP_DONE;
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_event_add(w.s, &refused, w.now, &seq, &w.e));
}

static unsigned stuck(bool server_up, struct store_stuck *first)
{
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_job_stuck(w.s, server_up, w.now, NULL, &page, &w.e));
    unsigned n = page.count;
    if (n > 0) {
        *first = *(struct store_stuck *)page.rows;
    }
    store_page_free(&page);
    return n;
}

/* Each state's threshold: one millisecond before it nothing is stuck, at it the job is. */
static void test_002_stuck_thresholds(void)
{
    static const struct {
        enum store_state state;
        enum store_stuck_why why;
        int64_t after;
    } rules[] = {
        {STORE_CREATED, STORE_STUCK_CREATED, 10 * MINUTE},
        {STORE_QUEUED, STORE_STUCK_QUEUED, HOUR},
        {STORE_DOWNLOADING, STORE_STUCK_DOWNLOADING, DAY},
        {STORE_PROCESSING, STORE_STUCK_PROCESSING, 10 * MINUTE},
        {STORE_COMPLETED, STORE_STUCK_NO_TASKS, HOUR},
        {STORE_IMPORTED, STORE_STUCK_IMPORTED, DAY},
    };
    for (uint32_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        struct store_stuck s = {0};
        move_to(&w, i + 1, rules[i].state);
        world_wait(&w, rules[i].after - 1);
        TEST_ASSERT_EQUAL_UINT(0, stuck(false, &s)); /* no server up: silence is no fault */
        world_wait(&w, 1);
        TEST_ASSERT_EQUAL_UINT(1, stuck(false, &s));
        TEST_ASSERT_EQUAL_UINT32(i + 1, s.job);
        TEST_ASSERT_EQUAL_INT(rules[i].why, s.why);
        TEST_ASSERT_EQUAL_INT64(rules[i].after, s.for_ms);
        TEST_ASSERT_EQUAL_INT64(rules[i].after, store_stuck_after_ms(s.why));
        if (rules[i].state < STORE_COMPLETED) { /* out of the way */
            move(&w, i + 1, STORE_CANCELLED);
        } else if (rules[i].state == STORE_COMPLETED) {
            move(&w, i + 1, STORE_CANCELLED);
        } else {
            move(&w, i + 1, STORE_CLEANED);
        }
    }
}

/* Downloading without a byte for 15 minutes is stuck only while a server is up; a byte starts the time again. */
static void test_002_stuck_without_a_byte(void)
{
    struct store_stuck s = {0};
    struct store_facts facts = {.articles_done = 1};
    move_to(&w, 1, STORE_DOWNLOADING);
    world_wait(&w, 15 * MINUTE);
    TEST_ASSERT_EQUAL_UINT(0, stuck(false, &s));
    TEST_ASSERT_EQUAL_UINT(1, stuck(true, &s));
    TEST_ASSERT_EQUAL_INT(STORE_STUCK_NO_BYTE, s.why);
    store_job_progress(w.s, 1, &facts, w.now, &w.e);
    TEST_ASSERT_EQUAL_UINT(0, stuck(true, &s));
}

/* An import that a worker has and that shows no sign of life; one that waits for its next attempt is not stuck. */
static void test_002_stuck_import(void)
{
    struct store_stuck s = {0};
    struct store_page page;
    move_to(&w, 1, STORE_COMPLETED);
    spawn(&w, 1, 1);
    TEST_ASSERT_EQUAL_INT(0, store_import_claim(w.s, 1, w.now, &page, &w.e));
    store_page_free(&page);
    world_wait(&w, 15 * MINUTE - 1);
    TEST_ASSERT_EQUAL_UINT(0, stuck(true, &s));
    world_wait(&w, 1);
    TEST_ASSERT_EQUAL_UINT(1, stuck(true, &s));
    TEST_ASSERT_EQUAL_INT(STORE_STUCK_IMPORT, s.why);
    TEST_ASSERT_EQUAL_INT64(1, s.task);
    TEST_ASSERT_EQUAL_INT(0, store_import_progress(w.s, 1, 1, w.now, &w.e));
    TEST_ASSERT_EQUAL_UINT(0, stuck(true, &s));
    struct store_task_end end = {.task = 1, .attempt = 1, .category = STORE_TRANSIENT};
    TEST_ASSERT_EQUAL_INT(0, store_import_end(w.s, &end, w.now, NULL, &w.e));
    world_wait(&w, DAY);
    TEST_ASSERT_EQUAL_UINT(0, stuck(true, &s));
}

static void hold(uint32_t job, uint32_t bit, bool set)
{
    struct store_hold h = {.job = job, .bit = bit, .set = set, .name = "user"};
    TEST_ASSERT_EQUAL_INT(0, store_job_hold(w.s, &h, w.now, &w.e));
}

/* Only time without a hold counts, whether the job's own or one on all, also where both overlap; a job that goes past
 * a hold is not excused by it. */
static void test_002_stuck_counts_no_held_time(void)
{
    enum { USER = 1, GLOBAL = 2 };
    struct store_stuck s = {0};
    move_to(&w, 1, STORE_QUEUED);
    world_wait(&w, 30 * MINUTE);
    hold(1, USER, true);
    world_wait(&w, 5 * HOUR);
    hold(0, GLOBAL, true);
    world_wait(&w, 5 * HOUR);
    hold(1, USER, false); /* still held by GLOBAL */
    world_wait(&w, 5 * HOUR);
    TEST_ASSERT_EQUAL_UINT(0, stuck(true, &s));
    world_reopen(&w); /* nothing of this is only in memory */
    hold(0, GLOBAL, false);
    world_wait(&w, 30 * MINUTE - 1);
    TEST_ASSERT_EQUAL_UINT(0, stuck(true, &s));
    world_wait(&w, 1);
    TEST_ASSERT_EQUAL_UINT(1, stuck(true, &s));
    TEST_ASSERT_EQUAL_INT64(HOUR, s.for_ms);
    TEST_ASSERT_EQUAL_INT64(1, count_events(&w, 1, STORE_EV_HOLD_SET));
    hold(1, USER, false); /* nothing to clear, nothing to tell */
    TEST_ASSERT_EQUAL_INT64(1, count_events(&w, 1, STORE_EV_HOLD_CLEARED));
    move(&w, 1, STORE_CANCELLED);

    struct store_job_made made;
    struct store_job_new forced = {.id = 2, .passes = GLOBAL};
    hold(0, GLOBAL, true);
    TEST_ASSERT_EQUAL_INT(0, store_job_add(w.s, &forced, w.now, &made, &w.e));
    add_job(&w, 3);
    world_wait(&w, 10 * MINUTE);
    TEST_ASSERT_EQUAL_UINT(1, stuck(true, &s));
    TEST_ASSERT_EQUAL_UINT32(2, s.job);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_002_states_full_flow);
    RUN_TEST(test_002_transitions_retry_is_a_successor);
    RUN_TEST(test_002_transitions_completed_does_not_fail);
    RUN_TEST(test_002_database_last_transition_at);
    RUN_TEST(test_002_database_status_check);
    RUN_TEST(test_002_cleanup_refusal_blocks_nothing);
    RUN_TEST(test_002_stuck_thresholds);
    RUN_TEST(test_002_stuck_without_a_byte);
    RUN_TEST(test_002_stuck_import);
    RUN_TEST(test_002_stuck_counts_no_held_time);
    return UNITY_END();
}
