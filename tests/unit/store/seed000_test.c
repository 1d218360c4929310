/* The rules of "Download Jobs State Machine (v1)", by its section numbers. docs/LIFECYCLE.md says which were changed. */
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

static uint8_t key_of(char c)
{
    return (uint8_t)c;
}

static int add_with_key(uint32_t id, char c, bool forced, struct store_job_made *made)
{
    uint8_t key[STORE_KEY_BYTES];
    memset(key, key_of(c), sizeof(key));
    struct store_job_new j = {.id = id, .name = "n", .key = key, .forced = forced};
    return store_job_add(w.s, &j, w.now, made, &w.e);
}

/* Completed work ends in `cleaned`; failed, cancelled and cleaned are terminal: no state follows, no field changes. */
static void test_000_s2_terminal_states_never_change(void)
{
    static const enum store_state ends[] = {STORE_CLEANED, STORE_FAILED, STORE_CANCELLED};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t id = i + 1;
        move_to(&w, id, i == 0 ? STORE_CLEANED : STORE_QUEUED);
        if (i > 0) {
            move(&w, id, ends[i]);
        }
        struct store_job before, after;
        get_job(&w, id, &before);
        for (int to = 0; to < STORE_STATES; to++) {
            TEST_ASSERT_EQUAL_INT(ERR_INVALID, try_move(&w, id, (enum store_state)to));
        }
        struct store_job_edit edit = {
            .job = id, .name = "new", .expires_at = INT64_MIN, .passes = INT64_MIN};
        TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_job_edit(w.s, &edit, w.now, NULL, &w.e));
        struct store_hold hold = {.job = id, .bit = 1, .set = true};
        TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_job_hold(w.s, &hold, w.now, &w.e));
        struct store_facts facts = {.articles = 1};
        TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_job_progress(w.s, id, &facts, w.now, &w.e));
        get_job(&w, id, &after);
        TEST_ASSERT_EQUAL_MEMORY(&before, &after, sizeof(before));
    }
    /* Not even past the functions: the database itself refuses. */
    TEST_ASSERT_EQUAL_INT(SQLITE_CONSTRAINT,
                          world_sql(&w, "UPDATE job SET name = 'x' WHERE id = 1"));
}

/* Every pair of states: an edge of the table is taken, every other one is refused, changes nothing and is recorded. */
static void test_000_s3_every_edge_is_allowed_or_refused_and_recorded(void)
{
    uint32_t id = 0;
    for (int from = 0; from < STORE_STATES; from++) {
        for (int to = 0; to < STORE_STATES; to++) {
            id++;
            move_to(&w, id, (enum store_state)from);
            bool legal = (test_job_type->states[from].next & SM_BIT(to)) != 0;
            if (legal && to == STORE_IMPORTED) { /* needs what is to be imported */
                spawn(&w, id, 1);
                import_one(&w, true, STORE_NO_ERROR);
            }
            int rv = try_move(&w, id, (enum store_state)to);
            TEST_ASSERT_EQUAL_INT_MESSAGE(legal ? 0 : ERR_INVALID, rv, w.e.msg);
            TEST_ASSERT_EQUAL_INT(legal ? to : from, (int)state_of(&w, id));
            TEST_ASSERT_EQUAL_INT64(legal ? 0 : 1,
                                    count_events(&w, id, STORE_EV_ILLEGAL_TRANSITION));
        }
    }
}

/* queued -> completed is the jump that the document forbids by name. */
static void test_000_s3_no_jump_from_queued_to_completed(void)
{
    move_to(&w, 1, STORE_QUEUED);
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, try_move(&w, 1, STORE_COMPLETED));
    TEST_ASSERT_EQUAL_STRING("job 1: queued may not become completed", w.e.msg);
    TEST_ASSERT_EQUAL_STRING("queued>completed",
                             last_event(&w, 1, STORE_EV_ILLEGAL_TRANSITION)->code);
}

/* A move carries its trigger: code, category and reason are in the row and in the event. */
static void test_000_s4_a_move_carries_its_reason(void)
{
    move_to(&w, 1, STORE_DOWNLOADING);
    struct store_move m = {.job = 1,
                           .to = STORE_FAILED,
                           .code = "nzb_empty",
                           .category = STORE_PERMANENT,
                           .reason = "no articles in it"};
    TEST_ASSERT_EQUAL_INT(0, store_job_move(w.s, &m, w.now, NULL, &w.e));
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_job_get(w.s, 1, &page, &w.e));
    const struct store_job *j = page.rows;
    TEST_ASSERT_EQUAL_STRING("nzb_empty", j->code);
    TEST_ASSERT_EQUAL_STRING("no articles in it", j->reason);
    TEST_ASSERT_EQUAL_INT(STORE_PERMANENT, j->category_of_error);
    store_page_free(&page);
    const struct store_event *ev = last_event(&w, 1, STORE_EV_STATUS_CHANGED);
    TEST_ASSERT_EQUAL_STRING("downloading", ev->from);
    TEST_ASSERT_EQUAL_STRING("failed", ev->to);
    TEST_ASSERT_EQUAL_STRING("nzb_empty", ev->code);
}

/* The first "not found" sets the time and no state; later ones do not move it; found again clears it; after the grace
 * time the caller fails the job with the reason. */
static void test_000_s5_not_found_grace(void)
{
    int64_t first = 0;
    move_to(&w, 1, STORE_DOWNLOADING);
    TEST_ASSERT_EQUAL_INT(0, store_job_not_found(w.s, 1, true, w.now, &first, &w.e));
    TEST_ASSERT_EQUAL_INT64(START_AT, first);
    TEST_ASSERT_EQUAL_INT(STORE_DOWNLOADING, state_of(&w, 1));
    world_wait(&w, 30000);
    TEST_ASSERT_EQUAL_INT(0, store_job_not_found(w.s, 1, true, w.now, &first, &w.e));
    TEST_ASSERT_EQUAL_INT64(START_AT, first);
    TEST_ASSERT_EQUAL_INT64(1, count_events(&w, 1, STORE_EV_ERROR));
    TEST_ASSERT_EQUAL_INT(0, store_job_not_found(w.s, 1, false, w.now, &first, &w.e));
    TEST_ASSERT_EQUAL_INT64(0, first);
    TEST_ASSERT_EQUAL_INT(0, store_job_not_found(w.s, 1, true, w.now, &first, &w.e));
    TEST_ASSERT_EQUAL_INT64(START_AT + 30000, first);
    world_wait(&w, 60000);
    TEST_ASSERT_GREATER_OR_EQUAL_INT64(60000, w.now.wall_ms - first);
    struct store_move m = {.job = 1, .to = STORE_FAILED, .code = "missing_external_job"};
    TEST_ASSERT_EQUAL_INT(0, store_job_move(w.s, &m, w.now, NULL, &w.e));
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_job_not_found(w.s, 1, true, w.now, &first, &w.e));
}

/* One active job per content: the same again returns the one there is, until it is past downloading; Force makes a
 * second. */
static void test_000_s6_one_active_job_per_content(void)
{
    struct store_job_made made;
    TEST_ASSERT_EQUAL_INT(0, add_with_key(1, 'a', false, &made));
    TEST_ASSERT_EQUAL_INT(0, add_with_key(2, 'a', false, &made));
    TEST_ASSERT_TRUE(made.existed);
    TEST_ASSERT_EQUAL_UINT32(1, made.id);
    TEST_ASSERT_EQUAL_INT(0, add_with_key(3, 'b', false, &made));
    TEST_ASSERT_FALSE(made.existed);
    TEST_ASSERT_EQUAL_INT(0, add_with_key(4, 'a', true, &made));
    TEST_ASSERT_FALSE(made.existed);
    move(&w, 1, STORE_CANCELLED);
    move(&w, 4, STORE_CANCELLED);
    TEST_ASSERT_EQUAL_INT(0, add_with_key(5, 'a', false, &made));
    TEST_ASSERT_EQUAL_UINT32(5, made.id);
    TEST_ASSERT_FALSE(made.existed);
    int64_t counts[STORE_STATES];
    TEST_ASSERT_EQUAL_INT(0, store_job_counts(w.s, counts, &w.e));
    TEST_ASSERT_EQUAL_INT64(2, counts[STORE_CREATED]);
    TEST_ASSERT_EQUAL_INT64(2, counts[STORE_CANCELLED]);
}

/* The index itself keeps a second active one out, also past the functions. */
static void test_000_s6_the_database_enforces_it(void)
{
    struct store_job_made made;
    add_with_key(1, 'a', false, &made);
    add_with_key(2, 'b', false, &made);
    TEST_ASSERT_EQUAL_INT(
        SQLITE_CONSTRAINT,
        world_sql(&w, "UPDATE job SET key = (SELECT key FROM job WHERE id = 1) WHERE id = 2"));
}

/* Every required field is there and kept; completed_at is set by completing and by nothing else. */
static void test_000_s7_required_fields(void)
{
    uint8_t key[STORE_KEY_BYTES] = {7};
    struct store_job_made made;
    struct store_job_new n = {.id = 9,
                              .name = "Ünï",
                              .category = "tv",
                              .source = "http://x/y.nzb",
                              .path = "/d/9",
                              .key = key,
                              .expires_at = START_AT + DAY};
    TEST_ASSERT_EQUAL_INT(0, store_job_add(w.s, &n, w.now, &made, &w.e));
    world_reopen(&w);
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_job_get(w.s, 9, &page, &w.e));
    const struct store_job *j = page.rows;
    TEST_ASSERT_EQUAL_STRING("Ünï", j->name);
    TEST_ASSERT_EQUAL_STRING("http://x/y.nzb", j->source);
    TEST_ASSERT_EQUAL_STRING("/d/9", j->path);
    TEST_ASSERT_EQUAL_MEMORY(key, j->key, sizeof(key));
    TEST_ASSERT_EQUAL_INT64(START_AT, j->created_at);
    TEST_ASSERT_EQUAL_INT64(START_AT + DAY, j->expires_at);
    TEST_ASSERT_EQUAL_INT64(0, j->completed_at);
    TEST_ASSERT_EQUAL_INT64(0, j->first_not_found_at);
    store_page_free(&page);
    world_wait(&w, HOUR);
    move(&w, 9, STORE_QUEUED);
    move(&w, 9, STORE_DOWNLOADING);
    move(&w, 9, STORE_PROCESSING);
    move(&w, 9, STORE_COMPLETED);
    struct store_job after;
    get_job(&w, 9, &after);
    TEST_ASSERT_EQUAL_INT64(START_AT + HOUR, after.completed_at);
    TEST_ASSERT_EQUAL_INT64(START_AT + HOUR, after.last_transition_at);
    TEST_ASSERT_EQUAL_UINT64(5, after.row_version);
}

/* The sweep looks at 100 active jobs per call at most, goes on where it stopped, and passes over what has ended. */
static void test_000_s8_sweep_is_bounded(void)
{
    for (uint32_t id = 1; id <= 250; id++) {
        add_job(&w, id);
        if (id % 5 == 0) {
            move(&w, id, STORE_CANCELLED);
        }
    }
    world_wait(&w, 11 * MINUTE);
    struct store_range range = {.limit = 100};
    unsigned found = 0, calls = 0;
    bool more = true;
    while (more) {
        struct store_page page;
        TEST_ASSERT_EQUAL_INT(0, store_job_stuck(w.s, true, w.now, &range, &page, &w.e));
        TEST_ASSERT_LESS_OR_EQUAL_UINT(100, page.count);
        found += page.count;
        more = page.more;
        range.after = page.next;
        calls++;
        store_page_free(&page);
    }
    TEST_ASSERT_EQUAL_UINT(200, found);
    TEST_ASSERT_EQUAL_UINT(3, calls); /* two full ones, and one that finds nothing more */
}

/* Who saw an older version gets a conflict and changes nothing; who saw this one goes through. */
static void test_000_s8_row_version(void)
{
    move_to(&w, 1, STORE_QUEUED); /* version 2 */
    struct store_move m = {.job = 1, .to = STORE_DOWNLOADING, .expect_version = 1};
    TEST_ASSERT_EQUAL_INT(ERR_CONFLICT, store_job_move(w.s, &m, w.now, NULL, &w.e));
    TEST_ASSERT_NOT_NULL(strstr(w.e.msg, "changed in the meantime"));
    TEST_ASSERT_EQUAL_INT(STORE_QUEUED, state_of(&w, 1));
    TEST_ASSERT_EQUAL_INT64(0, count_events(&w, 1, STORE_EV_ILLEGAL_TRANSITION));
    m.expect_version = 2;
    struct store_moved out;
    TEST_ASSERT_EQUAL_INT(0, store_job_move(w.s, &m, w.now, &out, &w.e));
    TEST_ASSERT_EQUAL_UINT64(3, out.row_version);
    struct store_job_edit edit = {
        .job = 1, .expect_version = 2, .name = "x", .expires_at = INT64_MIN, .passes = INT64_MIN};
    TEST_ASSERT_EQUAL_INT(ERR_CONFLICT, store_job_edit(w.s, &edit, w.now, NULL, &w.e));
    edit.expect_version = 3;
    uint64_t version;
    TEST_ASSERT_EQUAL_INT(0, store_job_edit(w.s, &edit, w.now, &version, &w.e));
    TEST_ASSERT_EQUAL_UINT64(4, version);
    struct store_facts facts = {.articles = 10, .articles_done = 3};
    TEST_ASSERT_EQUAL_INT(0, store_job_progress(w.s, 1, &facts, w.now, &w.e));
    struct store_job j;
    get_job(&w, 1, &j);
    TEST_ASSERT_EQUAL_UINT64(4, j.row_version); /* progress is nobody's edit */
    TEST_ASSERT_EQUAL_UINT32(3, j.facts.articles_done);
}

/* Completing persists the path with the state, and leaves the source alone. */
static void test_000_s9_completion_keeps_path_and_source(void)
{
    move_to(&w, 1, STORE_PROCESSING);
    struct store_move m = {.job = 1, .to = STORE_COMPLETED, .path = "/final/1"};
    TEST_ASSERT_EQUAL_INT(0, store_job_move(w.s, &m, w.now, NULL, &w.e));
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_job_get(w.s, 1, &page, &w.e));
    TEST_ASSERT_EQUAL_STRING("/final/1", ((struct store_job *)page.rows)->path);
    TEST_ASSERT_EQUAL_STRING("a.nzb", ((struct store_job *)page.rows)->source);
    store_page_free(&page);
    TEST_ASSERT_EQUAL_INT(STORE_AWAITING_IMPORT, import_status(&w, 1));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_000_s2_terminal_states_never_change);
    RUN_TEST(test_000_s3_every_edge_is_allowed_or_refused_and_recorded);
    RUN_TEST(test_000_s3_no_jump_from_queued_to_completed);
    RUN_TEST(test_000_s4_a_move_carries_its_reason);
    RUN_TEST(test_000_s5_not_found_grace);
    RUN_TEST(test_000_s6_one_active_job_per_content);
    RUN_TEST(test_000_s6_the_database_enforces_it);
    RUN_TEST(test_000_s7_required_fields);
    RUN_TEST(test_000_s8_sweep_is_bounded);
    RUN_TEST(test_000_s8_row_version);
    RUN_TEST(test_000_s9_completion_keeps_path_and_source);
    return UNITY_END();
}
