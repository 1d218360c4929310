/* The rules of "Download/Import System Separation", by its design decisions (d1..d8), worker configuration, testing
 * checklist and open ends. docs/LIFECYCLE.md says which were changed. */
#include <sqlite3.h>
#include <stdio.h>
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

static int claim(struct store_task *t)
{
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_import_claim(w.s, 1, w.now, &page, &w.e));
    int n = (int)page.count;
    if (n > 0) {
        *t = *(struct store_task *)page.rows;
    }
    store_page_free(&page);
    return n;
}

static int end(int64_t task, uint32_t attempt, bool ok, enum store_category category,
               struct store_task_ended *out)
{
    struct store_task_end x = {
        .task = task, .attempt = attempt, .ok = ok, .code = "EIO", .category = category};
    err_clear(&w.e);
    return store_import_end(w.s, &x, w.now, out, &w.e);
}

/* A job is not imported by being downloaded: the import has rows and states of its own, and the job's state does not
 * move with them. */
static void test_001_d1_jobs_and_imports_are_apart(void)
{
    move_to(&w, 1, STORE_COMPLETED);
    spawn(&w, 1, 2);
    int64_t failed = import_one(&w, false, STORE_PERMANENT);
    TEST_ASSERT_EQUAL_INT(STORE_TASK_FAILED, get_task(&w, failed).state);
    TEST_ASSERT_EQUAL_INT(STORE_COMPLETED, state_of(&w, 1));
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, try_move(&w, 1, STORE_IMPORTED));
}

/* Ten files, ten tasks; two fail, eight do not; the two alone are done again. Asking twice makes no second set. */
static void test_001_d2_one_task_per_file(void)
{
    move_to(&w, 1, STORE_COMPLETED);
    struct store_task_new tasks[10];
    char source[10][16];
    unsigned made;
    for (int i = 0; i < 10; i++) {
        snprintf(source[i], sizeof(source[i]), "/e%02d.mkv", i);
        tasks[i] =
            (struct store_task_new){.source = source[i], .dest = "/lib", .method = STORE_COPY};
    }
    TEST_ASSERT_EQUAL_INT(0, store_import_spawn(w.s, 1, tasks, 10, w.now, &made, &w.e));
    TEST_ASSERT_EQUAL_UINT(10, made);
    TEST_ASSERT_EQUAL_INT(0, store_import_spawn(w.s, 1, tasks, 10, w.now, &made, &w.e));
    TEST_ASSERT_EQUAL_UINT(0, made);
    for (int i = 0; i < 10; i++) {
        import_one(&w, i >= 2, STORE_PERMANENT);
    }
    TEST_ASSERT_EQUAL_INT(STORE_PARTIAL_FAILURE, import_status(&w, 1));
    int64_t again;
    TEST_ASSERT_EQUAL_INT(0, store_import_again(w.s, 1, w.now, &again, &w.e));
    TEST_ASSERT_EQUAL_INT(0, store_import_again(w.s, 2, w.now, &again, &w.e));
    TEST_ASSERT_EQUAL_INT(STORE_IMPORTING, import_status(&w, 1));
    import_one(&w, true, STORE_NO_ERROR);
    import_one(&w, true, STORE_NO_ERROR);
    TEST_ASSERT_EQUAL_INT(STORE_FULLY_IMPORTED, import_status(&w, 1));
    move(&w, 1, STORE_IMPORTED);
}

/* Only a completed job is imported; a file without a source is refused, and then none of the others is made. */
static void test_001_d2_spawn_is_refused(void)
{
    struct store_task_new t[2] = {{.source = "/a", .method = STORE_COPY}, {.method = STORE_COPY}};
    unsigned made;
    move_to(&w, 1, STORE_PROCESSING);
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_import_spawn(w.s, 1, t, 1, w.now, &made, &w.e));
    TEST_ASSERT_EQUAL_INT(ERR_NOT_FOUND, store_import_spawn(w.s, 77, t, 1, w.now, &made, &w.e));
    move(&w, 1, STORE_COMPLETED);
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_import_spawn(w.s, 1, t, 2, w.now, &made, &w.e));
    TEST_ASSERT_EQUAL_INT(STORE_AWAITING_IMPORT, import_status(&w, 1));
    TEST_ASSERT_EQUAL_INT64(0, count_events(&w, 1, STORE_EV_IMPORT_SPAWNED));
}

/* The table of imports, pair by pair, as the document has it (and crash recovery's way back, which no verb takes). */
static void test_001_d3_import_table(void)
{
    static const uint64_t next[STORE_TASK_STATES] = {
        [STORE_TASK_PENDING] = SM_BIT(STORE_TASK_IN_PROGRESS) | SM_BIT(STORE_TASK_CANCELLED),
        [STORE_TASK_IN_PROGRESS] =
            SM_BIT(STORE_TASK_COMPLETED) | SM_BIT(STORE_TASK_FAILED) | SM_BIT(STORE_TASK_PENDING),
    };
    for (int i = 0; i < STORE_TASK_STATES; i++) {
        TEST_ASSERT_EQUAL_UINT64(next[i], store_task_type.states[i].next);
    }
}

/* What a state does not allow is refused, recorded and changes nothing: cancel and end in every state. */
static void test_001_d3_wrong_verbs_are_refused(void)
{
    struct store_task t = {0};
    struct store_task_ended out;
    move_to(&w, 1, STORE_COMPLETED);
    spawn(&w, 1, 3);
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, end(1, 0, true, 0, &out)); /* pending */
    TEST_ASSERT_EQUAL_STRING("import 1: pending may not become completed", w.e.msg);
    TEST_ASSERT_EQUAL_INT(1, claim(&t));
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_import_cancel(w.s, t.id, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT(0, end(t.id, t.attempt, true, 0, &out));
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, end(t.id, t.attempt, false, 0, &out)); /* completed */
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_import_cancel(w.s, t.id, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT(0, store_import_cancel(w.s, 2, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_import_cancel(w.s, 2, w.now, &w.e)); /* cancelled */
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_import_again(w.s, 2, w.now, NULL, &w.e));
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_import_again(w.s, 3, w.now, NULL, &w.e)); /* pending */
    TEST_ASSERT_EQUAL_INT(ERR_NOT_FOUND, store_import_cancel(w.s, 99, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT64(7, count_events(&w, 1, STORE_EV_ILLEGAL_TRANSITION));
    TEST_ASSERT_EQUAL_INT(SQLITE_CONSTRAINT,
                          world_sql(&w, "UPDATE import_task SET state = 'pending' WHERE id = 1"));
}

/* A transient error is tried again after a growing time, five times in all; a permanent one ends it at once; an error
 * of no known category counts as transient. */
static void test_001_d4_categories_decide(void)
{
    struct store_task t = {0};
    struct store_task_ended out;
    move_to(&w, 1, STORE_COMPLETED);
    spawn(&w, 1, 2);
    int64_t first = 0;
    for (uint32_t attempt = 1; attempt <= STORE_IMPORT_ATTEMPTS; attempt++) {
        TEST_ASSERT_EQUAL_INT(1, claim(&t));
        first = attempt == 1 ? t.id : first;
        TEST_ASSERT_EQUAL_INT64(first, t.id);
        TEST_ASSERT_EQUAL_UINT32(attempt, t.attempt);
        if (attempt == 1) { /* the other one, out of the way */
            struct store_task other = {0};
            TEST_ASSERT_EQUAL_INT(1, claim(&other));
            TEST_ASSERT_EQUAL_INT(0, end(other.id, 1, false, STORE_PERMANENT, &out));
            TEST_ASSERT_EQUAL_INT(STORE_TASK_FAILED, out.state);
        }
        TEST_ASSERT_EQUAL_INT(
            0, end(t.id, attempt, false, attempt % 2 ? STORE_TRANSIENT : STORE_NO_ERROR, &out));
        if (attempt < STORE_IMPORT_ATTEMPTS) {
            TEST_ASSERT_EQUAL_INT(STORE_TASK_IN_PROGRESS, out.state);
            TEST_ASSERT_EQUAL_INT64(w.now.wall_ms + store_import_backoff_ms(t.id, attempt),
                                    out.next_run_at);
            int64_t at;
            TEST_ASSERT_EQUAL_INT(0, claim(&t)); /* not yet */
            TEST_ASSERT_EQUAL_INT(0, store_import_next(w.s, w.now, &at, &w.e));
            TEST_ASSERT_EQUAL_INT64(out.next_run_at, at);
            world_wait(&w, out.next_run_at - w.now.wall_ms);
        }
    }
    TEST_ASSERT_EQUAL_INT(STORE_TASK_FAILED, out.state);
    TEST_ASSERT_EQUAL_INT(0, claim(&t));
    TEST_ASSERT_EQUAL_INT64(4, count_events(&w, 1, STORE_EV_RETRY_SCHEDULED));
    TEST_ASSERT_EQUAL_INT64(out.next_run_at, 0);
    TEST_ASSERT_EQUAL_INT(STORE_IMPORT_FAILED, import_status(&w, 1));
}

/* Every state change and error is an event of job, task or both, in order; the created event of a spawned task, which
 * the document missed, is there. */
static void test_001_d5_audit_trail(void)
{
    static const enum store_kind expected[] = {
        STORE_EV_CREATED,        STORE_EV_STATUS_CHANGED, STORE_EV_CLAIMED,
        STORE_EV_STATUS_CHANGED, STORE_EV_STATUS_CHANGED, STORE_EV_IMPORT_SPAWNED,
        STORE_EV_CLAIMED,        STORE_EV_ERROR,          STORE_EV_RETRY_SCHEDULED,
        STORE_EV_CLAIMED,        STORE_EV_STATUS_CHANGED, STORE_EV_REIMPORT_REQUESTED,
    };
    move_to(&w, 1, STORE_COMPLETED);
    spawn(&w, 1, 1);
    import_one(&w, false, STORE_TRANSIENT);
    world_wait(&w, MINUTE);
    int64_t task = import_one(&w, true, STORE_NO_ERROR);
    TEST_ASSERT_EQUAL_INT(0, store_import_again(w.s, task, w.now, NULL, &w.e));
    struct store_event_filter f = {.job = 1};
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_event_list(w.s, &f, NULL, &page, &w.e));
    TEST_ASSERT_EQUAL_UINT(sizeof(expected) / sizeof(expected[0]), page.count);
    const struct store_event *ev = page.rows;
    for (unsigned i = 0; i < page.count; i++) {
        TEST_ASSERT_EQUAL_STRING(store_kind_name(expected[i]), store_kind_name(ev[i].kind));
        TEST_ASSERT_TRUE(i == 0 || ev[i].seq > ev[i - 1].seq);
    }
    store_page_free(&page);
    f = (struct store_event_filter){.task = task};
    TEST_ASSERT_EQUAL_INT(0, store_event_list(w.s, &f, NULL, &page, &w.e));
    TEST_ASSERT_EQUAL_UINT(6, page.count);
    store_page_free(&page);
}

/* Each of the six computed states is reached as the document says. */
static void test_001_d6_computed_status(void)
{
    struct store_task t = {0};
    add_job(&w, 1);
    TEST_ASSERT_EQUAL_INT(STORE_DOWNLOAD_PENDING, import_status(&w, 1));
    move(&w, 1, STORE_QUEUED);
    move(&w, 1, STORE_DOWNLOADING);
    move(&w, 1, STORE_PROCESSING);
    TEST_ASSERT_EQUAL_INT(STORE_DOWNLOAD_PENDING, import_status(&w, 1));
    move(&w, 1, STORE_COMPLETED);
    TEST_ASSERT_EQUAL_INT(STORE_AWAITING_IMPORT, import_status(&w, 1));
    spawn(&w, 1, 2);
    TEST_ASSERT_EQUAL_INT(STORE_IMPORTING, import_status(&w, 1));
    TEST_ASSERT_EQUAL_INT(1, claim(&t));
    TEST_ASSERT_EQUAL_INT(STORE_IMPORTING, import_status(&w, 1));
    TEST_ASSERT_EQUAL_INT(0, end(t.id, 1, false, STORE_PERMANENT, NULL));
    TEST_ASSERT_EQUAL_INT(STORE_IMPORTING, import_status(&w, 1));
    int64_t second = import_one(&w, false, STORE_PERMANENT);
    TEST_ASSERT_EQUAL_INT(STORE_IMPORT_FAILED, import_status(&w, 1));
    TEST_ASSERT_EQUAL_INT(0, store_import_again(w.s, second, w.now, NULL, &w.e));
    import_one(&w, true, STORE_NO_ERROR);
    TEST_ASSERT_EQUAL_INT(STORE_PARTIAL_FAILURE, import_status(&w, 1));
    TEST_ASSERT_EQUAL_INT(0, store_import_again(w.s, t.id, w.now, NULL, &w.e));
    import_one(&w, true, STORE_NO_ERROR);
    TEST_ASSERT_EQUAL_INT(STORE_FULLY_IMPORTED, import_status(&w, 1));
    TEST_ASSERT_EQUAL_STRING("partial_failure", store_import_status_name(STORE_PARTIAL_FAILURE));
}

/* Cancelling a job cancels its pending tasks in the same transaction; once an import has begun it is refused. */
static void test_001_d7_cancel_cascade(void)
{
    move_to(&w, 1, STORE_COMPLETED);
    spawn(&w, 1, 3);
    struct store_move m = {.job = 1, .to = STORE_CANCELLED};
    struct store_moved out;
    TEST_ASSERT_EQUAL_INT(0, store_job_move(w.s, &m, w.now, &out, &w.e));
    TEST_ASSERT_EQUAL_UINT(3, out.tasks_cancelled);
    int64_t counts[STORE_TASK_STATES];
    TEST_ASSERT_EQUAL_INT(0, store_import_counts(w.s, counts, &w.e));
    TEST_ASSERT_EQUAL_INT64(3, counts[STORE_TASK_CANCELLED]);
    TEST_ASSERT_EQUAL_STRING("job_cancelled", last_event(&w, 1, STORE_EV_STATUS_CHANGED)->code);

    move_to(&w, 2, STORE_COMPLETED);
    spawn(&w, 2, 2);
    import_one(&w, false, STORE_PERMANENT);
    m.job = 2;
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_job_move(w.s, &m, w.now, &out, &w.e));
    TEST_ASSERT_EQUAL_INT(STORE_COMPLETED, state_of(&w, 2));
    TEST_ASSERT_EQUAL_INT64(1, count_events(&w, 2, STORE_EV_ILLEGAL_TRANSITION));
}

/* A reimport is a new task that names the one before; only the newest counts; the chain is told from any of its links;
 * an older link cannot be continued twice; after cleaning there is nothing to import from. */
static void test_001_d8_reimport_chain(void)
{
    move_to(&w, 1, STORE_COMPLETED);
    spawn(&w, 1, 1);
    int64_t a = import_one(&w, false, STORE_PERMANENT), b, c;
    TEST_ASSERT_EQUAL_INT(0, store_import_again(w.s, a, w.now, &b, &w.e));
    TEST_ASSERT_EQUAL_INT64(a, get_task(&w, b).previous_id);
    TEST_ASSERT_FALSE(get_task(&w, a).head);
    TEST_ASSERT_TRUE(get_task(&w, b).head);
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_import_again(w.s, a, w.now, &c, &w.e));
    import_one(&w, true, STORE_NO_ERROR);
    move(&w, 1, STORE_IMPORTED);
    TEST_ASSERT_EQUAL_INT(0,
                          store_import_again(w.s, b, w.now, &c, &w.e)); /* a completed one, too */
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, try_move(&w, 1, STORE_CLEANED)); /* not while it runs */
    for (int64_t from = a; from <= c; from += c - b) {
        struct store_page page;
        TEST_ASSERT_EQUAL_INT(0, store_import_chain(w.s, from, &page, &w.e));
        TEST_ASSERT_EQUAL_UINT(3, page.count);
        const struct store_task *t = page.rows;
        TEST_ASSERT_TRUE(t[0].id == a && t[1].id == b && t[2].id == c);
        store_page_free(&page);
    }
    struct store_page page;
    struct store_task_filter f = {.job = 1, .heads = true};
    TEST_ASSERT_EQUAL_INT(0, store_import_list(w.s, &f, NULL, &page, &w.e));
    TEST_ASSERT_EQUAL_UINT(1, page.count);
    store_page_free(&page);
    import_one(&w, true, STORE_NO_ERROR);
    move(&w, 1, STORE_CLEANED);
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_import_again(w.s, c, w.now, NULL, &w.e));
    TEST_ASSERT_NOT_NULL(strstr(w.e.msg, "the source is gone"));
}

/* 2^attempt seconds within 20 %, never above ten minutes, and not the same for all tasks. */
static void test_001_worker_backoff(void)
{
    bool differ = false;
    for (int64_t task = 1; task < 200; task++) {
        for (uint32_t attempt = 1; attempt < 40; attempt++) {
            int64_t ms = store_import_backoff_ms(task, attempt);
            int64_t base = attempt < 10 ? (int64_t)1000 << attempt : 600000;
            base = base > 600000 ? 600000 : base;
            TEST_ASSERT_GREATER_OR_EQUAL_INT64(base * 8 / 10, ms);
            TEST_ASSERT_LESS_OR_EQUAL_INT64(base * 12 / 10, ms);
            TEST_ASSERT_LESS_OR_EQUAL_INT64(600000, ms);
            differ = differ || ms != store_import_backoff_ms(task + 1, attempt);
        }
    }
    TEST_ASSERT_TRUE(differ);
}

/* A claim takes each task once, up to the limit, oldest first; the lease of an attempt that is over is worth nothing. */
static void test_001_worker_claim_is_atomic(void)
{
    struct store_page page;
    move_to(&w, 1, STORE_COMPLETED);
    spawn(&w, 1, 5);
    TEST_ASSERT_EQUAL_INT(0, store_import_claim(w.s, 3, w.now, &page, &w.e));
    TEST_ASSERT_EQUAL_UINT(3, page.count);
    TEST_ASSERT_TRUE(page.more);
    const struct store_task *t = page.rows;
    for (int64_t i = 0; i < 3; i++) {
        TEST_ASSERT_EQUAL_INT64(i + 1, t[i].id);
        TEST_ASSERT_EQUAL_INT(STORE_TASK_IN_PROGRESS, t[i].state);
    }
    store_page_free(&page);
    TEST_ASSERT_EQUAL_INT(0, store_import_claim(w.s, 10, w.now, &page, &w.e));
    TEST_ASSERT_EQUAL_UINT(2, page.count);
    store_page_free(&page);
    TEST_ASSERT_EQUAL_INT(0, end(1, 1, false, STORE_TRANSIENT, NULL));
    TEST_ASSERT_EQUAL_INT(ERR_CONFLICT, end(1, 1, true, 0, NULL)); /* waits: no worker has it */
    world_wait(&w, MINUTE);
    struct store_task again = {0};
    TEST_ASSERT_EQUAL_INT(1, claim(&again));
    TEST_ASSERT_EQUAL_INT(ERR_CONFLICT,
                          end(1, 1, true, 0, NULL)); /* the first attempt comes late */
    TEST_ASSERT_EQUAL_INT(ERR_CONFLICT, store_import_progress(w.s, 1, 1, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT(0, store_import_progress(w.s, 1, 2, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT(0, end(1, 2, true, 0, NULL));
}

/* A clock that is set back a year does not keep a task waiting for a year. */
static void test_001_worker_survives_the_clock(void)
{
    struct store_task t = {0};
    move_to(&w, 1, STORE_COMPLETED);
    spawn(&w, 1, 1);
    import_one(&w, false, STORE_TRANSIENT);
    TEST_ASSERT_EQUAL_INT(0, claim(&t));
    w.now.wall_ms -= 365 * (int64_t)DAY;
    TEST_ASSERT_EQUAL_INT(1, claim(&t));
}

/* Lists are paged and filtered, counts agree with them: jobs, tasks and their states (the document's third open end). */
static void test_001_issue3_lists_are_paged(void)
{
    for (uint32_t id = 1; id <= 25; id++) {
        move_to(&w, id, id % 5 == 0 ? STORE_COMPLETED : STORE_QUEUED);
        if (id % 5 == 0) {
            spawn(&w, id, 4);
        }
    }
    struct store_job_filter f = {.states = SM_BIT(STORE_QUEUED)};
    struct store_range range = {.limit = 7};
    unsigned seen = 0;
    uint32_t last = 0;
    bool more = true;
    while (more) {
        struct store_page page;
        TEST_ASSERT_EQUAL_INT(0, store_job_list(w.s, &f, &range, &page, &w.e));
        for (unsigned i = 0; i < page.count; i++) {
            uint32_t id = ((struct store_job *)page.rows)[i].id;
            TEST_ASSERT_GREATER_THAN_UINT32(last, id);
            TEST_ASSERT_TRUE(id % 5 != 0);
            last = id;
        }
        seen += page.count;
        if (seen == 7) { /* what goes and comes meanwhile neither repeats nor hides the others */
            move(&w, 1, STORE_CANCELLED);
            add_job(&w, 100);
        }
        more = page.more;
        range.after = page.next;
        store_page_free(&page);
    }
    TEST_ASSERT_EQUAL_UINT(20, seen);
    struct store_task_filter tf = {.states = SM_BIT(STORE_TASK_PENDING), .newest_first = true};
    struct store_page page;
    range = (struct store_range){.limit = 15};
    TEST_ASSERT_EQUAL_INT(0, store_import_list(w.s, &tf, &range, &page, &w.e));
    TEST_ASSERT_EQUAL_UINT(15, page.count);
    TEST_ASSERT_EQUAL_INT64(20, ((struct store_task *)page.rows)[0].id);
    range.after = page.next;
    store_page_free(&page);
    TEST_ASSERT_EQUAL_INT(0, store_import_list(w.s, &tf, &range, &page, &w.e));
    TEST_ASSERT_EQUAL_UINT(5, page.count);
    TEST_ASSERT_FALSE(page.more);
    store_page_free(&page);
}

/* Old tasks go by retention (the document's future work): whole chains of jobs that have ended, and nothing else. */
static void test_001_future_task_retention(void)
{
    struct store_keep keep = {.task_days = 7};
    struct store_purged gone;
    move_to(&w, 1, STORE_CLEANED);
    move_to(&w, 2, STORE_COMPLETED);
    spawn(&w, 2, 2);
    import_one(&w, false, STORE_PERMANENT);
    import_one(&w, false, STORE_PERMANENT);
    world_wait(&w, 8 * (int64_t)DAY);
    move_to(&w, 3, STORE_CLEANED);
    int64_t counts[STORE_TASK_STATES];
    TEST_ASSERT_EQUAL_INT(0, store_purge(w.s, &keep, 100, w.now, &gone, &w.e));
    TEST_ASSERT_EQUAL_INT64(1, gone.tasks);
    TEST_ASSERT_EQUAL_INT(0, store_import_counts(w.s, counts, &w.e));
    TEST_ASSERT_EQUAL_INT64(3, counts[0] + counts[1] + counts[2] + counts[3] + counts[4]);
    TEST_ASSERT_EQUAL_INT(STORE_FULLY_IMPORTED, import_status(&w, 1)); /* still known */
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_001_d1_jobs_and_imports_are_apart);
    RUN_TEST(test_001_d2_one_task_per_file);
    RUN_TEST(test_001_d2_spawn_is_refused);
    RUN_TEST(test_001_d3_import_table);
    RUN_TEST(test_001_d3_wrong_verbs_are_refused);
    RUN_TEST(test_001_d4_categories_decide);
    RUN_TEST(test_001_d5_audit_trail);
    RUN_TEST(test_001_d6_computed_status);
    RUN_TEST(test_001_d7_cancel_cascade);
    RUN_TEST(test_001_d8_reimport_chain);
    RUN_TEST(test_001_worker_backoff);
    RUN_TEST(test_001_worker_claim_is_atomic);
    RUN_TEST(test_001_worker_survives_the_clock);
    RUN_TEST(test_001_issue3_lists_are_paged);
    RUN_TEST(test_001_future_task_retention);
    return UNITY_END();
}
