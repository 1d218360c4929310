/* Events: append-only, numbered through, folded, paged; the timeline; explain. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "base/log.h"
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

static void errors(int32_t server, const char *code, int64_t count)
{
    TEST_ASSERT_EQUAL_INT(0, store_event_errors(w.s, 1, server, code, STORE_PERMANENT,
                                                "no such article", count, w.now, &w.e));
}

/* No event is changed or removed, whoever tries; a number is not used again after the newest are purged. */
static void test_events_are_append_only(void)
{
    move_to(&w, 1, STORE_CANCELLED);
    TEST_ASSERT_EQUAL_INT(SQLITE_CONSTRAINT, world_sql(&w, "UPDATE event SET text = 'x'"));
    TEST_ASSERT_EQUAL_INT(SQLITE_CONSTRAINT, world_sql(&w, "DELETE FROM event"));
    int64_t last = world_number(&w, "SELECT max(seq) FROM event");
    struct store_keep keep = {.event_days = 1};
    struct store_purged gone;
    world_wait(&w, 2 * (int64_t)DAY);
    TEST_ASSERT_EQUAL_INT(0, store_purge(w.s, &keep, 100, w.now, &gone, &w.e));
    TEST_ASSERT_EQUAL_INT64(3, gone.events);
    add_job(&w, 2);
    TEST_ASSERT_EQUAL_INT64(last + 1, last_event(&w, 2, STORE_EV_CREATED)->seq);
    TEST_ASSERT_EQUAL_INT(SQLITE_CONSTRAINT, world_sql(&w, "DELETE FROM event"));
}

/* The first error is written at once; a million more within ten seconds are one row with their number. */
static void test_errors_fold(void)
{
    move_to(&w, 1, STORE_DOWNLOADING);
    errors(1, "430", 1);
    TEST_ASSERT_EQUAL_INT64(1, count_events(&w, 1, STORE_EV_ERROR));
    for (int i = 0; i < 1000; i++) {
        errors(1, "430", 1000);
        world_wait(&w, 9);
    }
    TEST_ASSERT_EQUAL_INT64(1, count_events(&w, 1, STORE_EV_ERROR));
    errors(2, "430", 5); /* another server, another code: rows of their own */
    errors(1, "crc", 7);
    TEST_ASSERT_EQUAL_INT64(3, count_events(&w, 1, STORE_EV_ERROR));
    TEST_ASSERT_EQUAL_INT(0, store_event_flush(w.s, false, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT64(3, count_events(&w, 1, STORE_EV_ERROR)); /* not due */
    world_wait(&w, 1000);
    TEST_ASSERT_EQUAL_INT(0, store_event_flush(w.s, false, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT64(4, count_events(&w, 1, STORE_EV_ERROR));
    TEST_ASSERT_EQUAL_INT64(1000000, last_event(&w, 1, STORE_EV_ERROR)->count);
    TEST_ASSERT_EQUAL_INT(
        ERR_INVALID, store_event_errors(w.s, 1, 1, "430", STORE_PERMANENT, "", 0, w.now, &w.e));
}

/* At most one row per ten seconds and (job, server, code), whatever comes when; and the sum is right in the end. */
static void test_fold_is_one_row_per_ten_seconds(void)
{
    move_to(&w, 1, STORE_DOWNLOADING);
    int64_t sent = 0;
    for (int i = 0; i < 600; i++) { /* a minute */
        errors(1, "430", 1);
        sent++;
        world_wait(&w, 100);
        store_event_flush(w.s, false, w.now, &w.e);
    }
    move(&w, 1, STORE_FAILED); /* what waits is written before the end of the job */
    struct store_event_filter f = {.job = 1};
    struct store_range range = {.limit = 1000};
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_event_list(w.s, &f, &range, &page, &w.e));
    const struct store_event *ev = page.rows;
    int64_t sum = 0, last_at = 0;
    unsigned rows = 0;
    for (unsigned i = 0; i < page.count; i++) {
        if (ev[i].kind == STORE_EV_ERROR) {
            TEST_ASSERT_TRUE(rows == 0 || i == page.count - 2 ||
                             ev[i].at - last_at >= STORE_FOLD_MS);
            last_at = ev[i].at;
            sum += ev[i].count;
            rows++;
        }
    }
    TEST_ASSERT_EQUAL_INT64(sent, sum);
    TEST_ASSERT_LESS_OR_EQUAL_UINT(8, rows);
    TEST_ASSERT_EQUAL_STRING("failed", ev[page.count - 1].to);
    store_page_free(&page);
}

/* More different errors than there is room for: nothing is lost, nothing grows. */
static void test_fold_table_is_bounded(void)
{
    move_to(&w, 1, STORE_DOWNLOADING);
    TEST_ASSERT_EQUAL_INT(0, store_batch_begin(w.s, &w.e));
    for (int i = 0; i < 3 * STORE_FOLDS_MAX; i++) {
        char code[16];
        snprintf(code, sizeof(code), "c%d", i);
        errors(1, code, 1);
        errors(1, code, 10);
    }
    TEST_ASSERT_EQUAL_INT(0, store_event_flush(w.s, true, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT(0, store_batch_end(w.s, &w.e));
    TEST_ASSERT_EQUAL_INT64(33 * STORE_FOLDS_MAX,
                            world_number(&w, "SELECT sum(count) FROM event WHERE kind = 'error'"));
}

/* A wrong command that is repeated a thousand times is recorded, but not a thousand times. */
static void test_refusals_fold(void)
{
    move_to(&w, 1, STORE_QUEUED);
    for (int i = 0; i < 1000; i++) {
        TEST_ASSERT_EQUAL_INT(ERR_INVALID, try_move(&w, 1, STORE_CLEANED));
    }
    TEST_ASSERT_EQUAL_INT64(1, count_events(&w, 1, STORE_EV_ILLEGAL_TRANSITION));
    world_reopen(&w); /* closing writes what waits */
    TEST_ASSERT_EQUAL_INT64(2, count_events(&w, 1, STORE_EV_ILLEGAL_TRANSITION));
    TEST_ASSERT_EQUAL_INT64(999, last_event(&w, 1, STORE_EV_ILLEGAL_TRANSITION)->count);
}

/* Only what changes nothing can be told from outside. */
static void test_told_events_cannot_lie(void)
{
    add_job(&w, 1);
    for (int kind = 0; kind < STORE_KINDS; kind++) {
        struct store_event ev = {.kind = (enum store_kind)kind, .job = 1, .to = "cleaned"};
        TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_event_add(w.s, &ev, w.now, NULL, &w.e));
        TEST_ASSERT_EQUAL_INT(kind, store_kind_parse(store_kind_name((enum store_kind)kind)));
    }
    struct store_event ok = {.kind = STORE_EV_HEALTH, .job = 1, .value = 987};
    TEST_ASSERT_EQUAL_INT(0, store_event_add(w.s, &ok, w.now, NULL, &w.e));
    TEST_ASSERT_EQUAL_INT64(987, last_event(&w, 1, STORE_EV_HEALTH)->value);
    TEST_ASSERT_EQUAL_INT(-1, store_kind_parse("nonsense"));
}

/* A text that is too long is cut between characters. */
static void test_long_texts_are_cut(void)
{
    static char text[3 * STORE_NOTE_MAX + 4];
    for (size_t i = 0; i < STORE_NOTE_MAX; i++) {
        memcpy(text + 3 * i, "\xe2\x82\xac", 3);
    }
    add_job(&w, 1);
    struct store_event ev = {.kind = STORE_EV_VERDICT, .job = 1, .text = text};
    TEST_ASSERT_EQUAL_INT(0, store_event_add(w.s, &ev, w.now, NULL, &w.e));
    TEST_ASSERT_EQUAL_UINT(STORE_NOTE_MAX / 3 * 3,
                           strlen(last_event(&w, 1, STORE_EV_VERDICT)->text));
    static char name[STORE_TEXT_MAX + 2];
    memset(name, 'n', STORE_TEXT_MAX + 1);
    struct store_job_made made;
    struct store_job_new n = {.id = 2, .name = name};
    TEST_ASSERT_EQUAL_INT(ERR_LIMIT, store_job_add(w.s, &n, w.now, &made, &w.e));
}

/* The timeline merges job, stages and imports by number, forwards and backwards, in pages that fit together. */
static void test_timeline_in_pages(void)
{
    uint32_t attempt;
    move_to(&w, 1, STORE_PROCESSING);
    add_job(&w, 2);
    store_stage_begin(w.s, 1, "verify", w.now, &attempt, &w.e);
    struct store_stage_end end = {.job = 1, .name = "verify", .attempt = 1, .ok = true};
    store_stage_end(w.s, &end, w.now, NULL, &w.e);
    move(&w, 2, STORE_QUEUED);
    move(&w, 1, STORE_COMPLETED);
    spawn(&w, 1, 3);
    for (int i = 0; i < 3; i++) {
        import_one(&w, true, STORE_NO_ERROR);
    }
    int64_t seqs[64] = {0};
    unsigned n = 0;
    for (int back = 0; back < 2; back++) {
        struct store_event_filter f = {.job = 1, .newest_first = back};
        struct store_range range = {.limit = 4};
        unsigned at = back ? n : 0;
        bool more = true;
        while (more) {
            struct store_page page;
            TEST_ASSERT_EQUAL_INT(0, store_event_list(w.s, &f, &range, &page, &w.e));
            for (unsigned i = 0; i < page.count; i++) {
                const struct store_event *ev = (struct store_event *)page.rows + i;
                TEST_ASSERT_EQUAL_UINT32(1, ev->job);
                if (back) {
                    TEST_ASSERT_EQUAL_INT64(seqs[--at], ev->seq);
                } else {
                    seqs[at++] = ev->seq;
                }
            }
            char text[STORE_CURSOR_TEXT]; /* as a client would carry it */
            store_cursor_print(&page.next, text);
            TEST_ASSERT_EQUAL_INT(0, store_cursor_parse(&range.after, text, &w.e));
            more = page.more;
            store_page_free(&page);
        }
        n = back ? n : at;
        TEST_ASSERT_EQUAL_UINT(back ? 0 : 16, at);
    }
    int64_t count;
    TEST_ASSERT_EQUAL_INT(0, store_event_count(w.s, 1, &count, &w.e));
    TEST_ASSERT_EQUAL_INT64(16, count);
}

/* One kind, several kinds, a kind that is not there, over all jobs and of one, both ways. */
static void test_filter_by_kind(void)
{
    for (uint32_t id = 1; id <= 5; id++) {
        move_to(&w, id, STORE_CANCELLED);
    }
    static const struct {
        uint32_t job, kinds;
        unsigned count;
    } asks[] = {
        {0, STORE_KIND_BIT(STORE_EV_CREATED), 5},
        {3, STORE_KIND_BIT(STORE_EV_CREATED), 1},
        {0, STORE_KIND_BIT(STORE_EV_CREATED) | STORE_KIND_BIT(STORE_EV_STATUS_CHANGED), 15},
        {0, STORE_KIND_BIT(STORE_EV_STUCK), 0},
        {0, 0, 15},
    };
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        for (int back = 0; back < 2; back++) {
            struct store_event_filter f = {
                .job = asks[i].job, .kinds = asks[i].kinds, .newest_first = back};
            struct store_page page;
            TEST_ASSERT_EQUAL_INT(0, store_event_list(w.s, &f, NULL, &page, &w.e));
            TEST_ASSERT_EQUAL_UINT(asks[i].count, page.count);
            store_page_free(&page);
        }
    }
    struct store_event_filter wrong = {.kinds = UINT32_C(1) << 31};
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_event_list(w.s, &wrong, NULL, &page, &w.e));
}

/* What is not a cursor is refused. */
static void test_cursor_text(void)
{
    static const char *const bad[] = {
        "x", "1", "1.", ".1", "1.2.3", "1.2 ", " 1.2", "--1.2", "99999999999999999999.1", "1,2"};
    struct store_cursor c;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(ERR_INVALID, store_cursor_parse(&c, bad[i], &w.e), bad[i]);
    }
    TEST_ASSERT_EQUAL_INT(0, store_cursor_parse(&c, "", &w.e));
    TEST_ASSERT_EQUAL_INT(0, store_cursor_parse(&c, "-5.9223372036854775807", &w.e));
    TEST_ASSERT_TRUE(c.a == -5 && c.b == INT64_MAX);
}

/* Events read as log lines: what, where, how often, how urgent. */
static void test_words(void)
{
    char text[200];
    move_to(&w, 1, STORE_DOWNLOADING);
    errors(2, "430", 1);
    errors(2, "430", 41);
    store_event_flush(w.s, true, w.now, &w.e);
    int level = store_event_words(last_event(&w, 1, STORE_EV_ERROR), text, sizeof(text));
    TEST_ASSERT_EQUAL_STRING("error 430 on server 2 (41 times): no such article", text);
    TEST_ASSERT_EQUAL_INT(LOG_ERROR, level);
    level = store_event_words(last_event(&w, 1, STORE_EV_CLAIMED), text, sizeof(text));
    TEST_ASSERT_EQUAL_STRING("queued -> downloading", text);
    TEST_ASSERT_EQUAL_INT(LOG_DETAIL, level);
}

static const char *hold_name(unsigned bit)
{
    return bit == 2 ? "disk" : bit == 7 ? "password" : "user";
}

static void explain(const char *cause, const char *next)
{
    struct store_explain x;
    TEST_ASSERT_EQUAL_INT(0, store_explain(w.s, 1, true, hold_name, w.now, &x, &w.e));
    TEST_ASSERT_EQUAL_STRING(cause, x.cause);
    TEST_ASSERT_EQUAL_STRING(next, x.next);
    store_explain_free(&x);
}

/* Explain says the cause with its numbers, and what would help, in every state. */
static void test_explain(void)
{
    struct store_explain x;
    TEST_ASSERT_EQUAL_INT(ERR_NOT_FOUND, store_explain(w.s, 1, true, NULL, w.now, &x, &w.e));
    move_to(&w, 1, STORE_DOWNLOADING);
    struct store_facts facts = {.articles = 900, .articles_done = 300};
    store_job_progress(w.s, 1, &facts, w.now, &w.e);
    explain("downloading: 300 of 900 articles", "");
    struct store_hold h = {.job = 1, .bit = 1 << 2, .set = true, .name = "disk"};
    store_job_hold(w.s, &h, w.now, &w.e);
    explain("held: disk", "free disk space; it then goes on by itself");
    h.set = false;
    store_job_hold(w.s, &h, w.now, &w.e);
    move(&w, 1, STORE_PROCESSING);
    facts = (struct store_facts){.articles = 900,
                                 .articles_done = 888,
                                 .articles_failed = 12,
                                 .blocks = 840,
                                 .blocks_missing = 12,
                                 .blocks_spare = 20,
                                 .servers_asked = 2};
    store_job_progress(w.s, 1, &facts, w.now, &w.e);
    uint32_t attempt;
    store_stage_begin(w.s, 1, "repair", w.now, &attempt, &w.e);
    store_stage_progress(w.s, 1, "repair", 455, w.now, &w.e);
    explain("processing: repair is running, attempt 1, 45.5 %; 12 of 840 blocks missing on both "
            "servers; 20 recovery blocks available; enough to repair",
            "");
    facts.blocks_spare = 9;
    store_job_progress(w.s, 1, &facts, w.now, &w.e);
    move(&w, 1, STORE_FAILED);
    explain("12 of 840 blocks missing on both servers; 9 recovery blocks available; 3 short",
            "retry it with another server: 3 more blocks are enough");
}

/* The same for imports, errors and jobs that stand still. */
static void test_explain_imports_and_errors(void)
{
    move_to(&w, 1, STORE_COMPLETED);
    explain("awaiting_import: 0 of 0 files imported", "");
    spawn(&w, 1, 3);
    import_one(&w, true, STORE_NO_ERROR);
    import_one(&w, false, STORE_PERMANENT);
    import_one(&w, true, STORE_NO_ERROR);
    explain("partial_failure: 2 of 3 files imported, 1 failed", "import the failed files again");
    struct store_explain x;
    move_to(&w, 2, STORE_DOWNLOADING);
    for (int i = 0; i < 12; i++) {
        char code[8];
        snprintf(code, sizeof(code), "e%d", i);
        TEST_ASSERT_EQUAL_INT(
            0, store_event_errors(w.s, 2, i % 3, code, STORE_TRANSIENT, "t", i + 1, w.now, &w.e));
    }
    world_wait(&w, 20 * MINUTE);
    TEST_ASSERT_EQUAL_INT(0, store_explain(w.s, 2, true, NULL, w.now, &x, &w.e));
    TEST_ASSERT_EQUAL_UINT(STORE_EXPLAIN_ERRORS, x.error_count);
    TEST_ASSERT_EQUAL_STRING("e11", x.errors[0].code);
    TEST_ASSERT_EQUAL_INT64(12, x.errors[0].count);
    TEST_ASSERT_EQUAL_INT(STORE_STUCK_NO_BYTE, x.stuck);
    TEST_ASSERT_EQUAL_STRING(
        "downloading; e11 from server 2, 12 times: t; stuck: got no byte for 15 "
        "min while a server is up",
        x.cause);
    store_explain_free(&x);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_events_are_append_only);
    RUN_TEST(test_errors_fold);
    RUN_TEST(test_fold_is_one_row_per_ten_seconds);
    RUN_TEST(test_fold_table_is_bounded);
    RUN_TEST(test_refusals_fold);
    RUN_TEST(test_told_events_cannot_lie);
    RUN_TEST(test_long_texts_are_cut);
    RUN_TEST(test_timeline_in_pages);
    RUN_TEST(test_filter_by_kind);
    RUN_TEST(test_cursor_text);
    RUN_TEST(test_words);
    RUN_TEST(test_explain);
    RUN_TEST(test_explain_imports_and_errors);
    return UNITY_END();
}
