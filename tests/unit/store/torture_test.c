/* Every allocation of a whole life fails once: an error that is named, a database that is sound, nothing leaked.
 *
 * There are thousands; TORTURE_STEP says which ones a run tries (every so many; scripts/store-campaign tries all). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "fixture.h"
#include "lib/fault.h"

static struct dir dir;
static const struct clock_time now = {1000, START_AT};

void setUp(void)
{
    if (access("/dev/shm", W_OK) == 0) {
        setenv("TMPDIR", "/dev/shm", 0);
    }
    dir_make(&dir);
}

void tearDown(void)
{
    dir_remove(&dir);
}

static int lists(struct store *s, struct err *e)
{
    struct store_page page = {0};
    struct store_explain x = {0};
    struct store_job_filter jobs = {0};
    struct store_event_filter events = {.job = 1};
    struct store_history_filter past = {.with_hidden = true};
    int rv = store_job_list(s, &jobs, NULL, &page, e);
    store_page_free(&page);
    rv = rv != 0 ? rv : store_event_list(s, &events, NULL, &page, e);
    store_page_free(&page);
    rv = rv != 0 ? rv : store_history_list(s, &past, NULL, &page, e);
    store_page_free(&page);
    rv = rv != 0 ? rv : store_job_stuck(s, true, now, NULL, &page, e);
    store_page_free(&page);
    rv = rv != 0 ? rv : store_explain(s, 1, true, NULL, now, &x, e);
    store_explain_free(&x);
    return rv;
}

static int life(struct store *s, struct err *e)
{
    static const enum store_state way[] = {STORE_QUEUED, STORE_DOWNLOADING, STORE_PROCESSING,
                                           STORE_COMPLETED};
    static const struct store_pair pair = {"a", "b"};
    static const struct store_server_stat stat = {1, 2, 3};
    struct store_job_made made;
    struct store_job_new n = {.id = 1, .name = "n", .idem_key = "k"};
    struct store_task_new t = {.source = "/a", .dest = "/b", .method = STORE_COPY};
    struct store_history h = {.job = 1,
                              .name = "n",
                              .params = &pair,
                              .param_count = 1,
                              .servers = &stat,
                              .server_count = 1};
    int rv = store_job_add(s, &n, now, &made, e);
    for (int i = 0; rv == 0 && i < 4; i++) {
        struct store_move m = {.job = 1, .to = way[i]};
        rv = store_job_move(s, &m, now, NULL, e);
    }
    rv = rv != 0 ? rv : store_import_spawn(s, 1, &t, 1, now, NULL, e);
    struct store_page page = {0};
    rv = rv != 0 ? rv : store_import_claim(s, 1, now, &page, e);
    store_page_free(&page);
    struct store_task_end end = {.task = 1, .attempt = 1, .ok = true};
    rv = rv != 0 ? rv : store_import_end(s, &end, now, NULL, e);
    rv = rv != 0 ? rv : store_history_put(s, &h, e);
    return rv != 0 ? rv : lists(s, e);
}

static int scenario(struct err *e)
{
    struct store *s;
    struct store_options o = {dir.path, &fsx_kernel, test_job_type, now};
    int rv = store_open(&s, &o, NULL, e);
    if (rv != 0) {
        return rv;
    }
    rv = life(s, e);
    int closed = store_close(s, now, rv == 0 ? e : NULL);
    return rv != 0 ? rv : closed;
}

/* SQLite may get along without some allocations; then the run succeeds. Never: another error, or a file that does not
 * open afterwards as it was left. */
static void test_every_allocation_fails_once(void)
{
    const char *text_step = getenv("TORTURE_STEP");
    unsigned step = text_step != NULL ? (unsigned)atoi(text_step) : 127;
    unsigned failed = 0, k, tried = 0;
    int fds = dir_open_fds();
    for (k = 1;; k += step) {
        tried++;
        struct err e = {0};
        fault_arm(k);
        int rv = scenario(&e);
        bool fired = fault_fired();
        fault_disarm();
        if (rv != 0) {
            char text[700];
            snprintf(text, sizeof(text), "allocation %u: %d %s", k, rv, e.msg);
            TEST_ASSERT_EQUAL_INT_MESSAGE(-ENOMEM, rv, text);
            TEST_ASSERT_TRUE_MESSAGE(fired, text);
            failed++;
        }
        TEST_ASSERT_EQUAL_INT(fds, dir_open_fds());
        struct store *s;
        struct store_report report;
        struct store_options o = {dir.path, &fsx_kernel, test_job_type, now};
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, store_open(&s, &o, &report, &e), e.msg);
        TEST_ASSERT_TRUE(report.how == STORE_AS_LEFT || report.how == STORE_NEW);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, store_check(s, &e), e.msg);
        TEST_ASSERT_EQUAL_INT(0, store_close(s, now, &e));
        dir_remove(&dir);
        dir_make(&dir);
        if (!fired) {
            break;
        }
    }
    printf("%u of about %u allocations, %u ended in an error\n", tried - 1, k - 1, failed);
    TEST_ASSERT_GREATER_THAN_UINT((tried - 1) / 2, failed);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_every_allocation_fails_once);
    return UNITY_END();
}
