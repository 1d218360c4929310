/* History, volumes, and what is old goes. */
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

/* Every field of an entry comes back as it was written, also after the database was closed. */
static void test_every_field_comes_back(void)
{
    static const struct store_pair params[] = {
        {"drone", "abc"}, {"*Unpack:Password", "p=\"x\""}, {"empty", ""}};
    static const struct store_pair scripts[] = {{"Mail", "SUCCESS"}};
    static const struct store_server_stat servers[] = {{1, 100, 3}, {2, 4000000000u, 0}};
    const struct store_history h = {.job = 5,
                                    .at = START_AT,
                                    .hidden = true,
                                    .kind = "NZB",
                                    .status = "SUCCESS/ALL",
                                    .name = "N",
                                    .filename = "f.nzb",
                                    .url = "u",
                                    .category = "Tv",
                                    .dest_dir = "/d",
                                    .final_dir = "/f",
                                    .dupe_key = "k",
                                    .dupe_mode = "SCORE",
                                    .dupe_score = -7,
                                    .par_status = "SUCCESS",
                                    .unpack_status = "NONE",
                                    .move_status = "FAILURE",
                                    .script_status = "NONE",
                                    .delete_status = "HEALTH",
                                    .mark_status = "GOOD",
                                    .url_status = "NONE",
                                    .dup_status = "DUPE",
                                    .size_bytes = UINT64_C(1) << 62,
                                    .downloaded_bytes = 12,
                                    .files = 1,
                                    .left_files = 2,
                                    .articles = 3,
                                    .articles_done = 4,
                                    .articles_failed = 5,
                                    .health_permille = 6,
                                    .critical_permille = 7,
                                    .download_sec = 8,
                                    .post_sec = 9,
                                    .par_sec = 10,
                                    .repair_sec = 11,
                                    .unpack_sec = 12,
                                    .messages = 13,
                                    .extra_par_blocks = 14,
                                    .min_post_at = 15,
                                    .max_post_at = 16,
                                    .retry_data = true,
                                    .params = params,
                                    .param_count = 3,
                                    .scripts = scripts,
                                    .script_count = 1,
                                    .servers = servers,
                                    .server_count = 2};
    TEST_ASSERT_EQUAL_INT(ERR_NOT_FOUND, store_history_put(w.s, &h, &w.e));
    add_job(&w, 5);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, store_history_put(w.s, &h, &w.e), w.e.msg);
    TEST_ASSERT_EQUAL_INT(0, store_history_put(w.s, &h, &w.e)); /* in place of the first */
    world_reopen(&w);
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_history_get(w.s, 5, &page, &w.e));
    const struct store_history *g = page.rows;
#define SAME_TEXT(f) TEST_ASSERT_EQUAL_STRING_MESSAGE(h.f, g->f, #f)
#define SAME(f)      TEST_ASSERT_EQUAL_UINT64_MESSAGE((uint64_t)h.f, (uint64_t)g->f, #f)
    SAME_TEXT(kind);
    SAME_TEXT(status);
    SAME_TEXT(name);
    SAME_TEXT(filename);
    SAME_TEXT(url);
    SAME_TEXT(category);
    SAME_TEXT(dest_dir);
    SAME_TEXT(final_dir);
    SAME_TEXT(dupe_key);
    SAME_TEXT(dupe_mode);
    SAME_TEXT(par_status);
    SAME_TEXT(unpack_status);
    SAME_TEXT(move_status);
    SAME_TEXT(script_status);
    SAME_TEXT(delete_status);
    SAME_TEXT(mark_status);
    SAME_TEXT(url_status);
    SAME_TEXT(dup_status);
    SAME(job);
    SAME(at);
    SAME(hidden);
    SAME(dupe_score);
    SAME(size_bytes);
    SAME(downloaded_bytes);
    SAME(files);
    SAME(left_files);
    SAME(articles);
    SAME(articles_done);
    SAME(articles_failed);
    SAME(health_permille);
    SAME(critical_permille);
    SAME(download_sec);
    SAME(post_sec);
    SAME(par_sec);
    SAME(repair_sec);
    SAME(unpack_sec);
    SAME(messages);
    SAME(extra_par_blocks);
    SAME(min_post_at);
    SAME(max_post_at);
    SAME(retry_data);
    SAME(param_count);
    SAME(script_count);
    SAME(server_count);
    for (int i = 0; i < 3; i++) {
        TEST_ASSERT_EQUAL_STRING(params[i].name, g->params[i].name);
        TEST_ASSERT_EQUAL_STRING(params[i].value, g->params[i].value);
    }
    TEST_ASSERT_EQUAL_STRING("SUCCESS", g->scripts[0].value);
    TEST_ASSERT_EQUAL_MEMORY(servers, g->servers, sizeof(servers));
    store_page_free(&page);
    TEST_ASSERT_EQUAL_INT(0, store_history_remove(w.s, 5, &w.e));
    TEST_ASSERT_EQUAL_INT(ERR_NOT_FOUND, store_history_remove(w.s, 5, &w.e));
    TEST_ASSERT_EQUAL_INT(ERR_NOT_FOUND, store_history_get(w.s, 5, &page, &w.e));
}

static void entry(uint32_t id, int64_t at, const char *category, const char *status, bool hidden)
{
    char name[32], dupe[16];
    snprintf(name, sizeof(name), "Show.S01E%02u", id);
    snprintf(dupe, sizeof(dupe), "d%u", id % 3);
    move_to(&w, id, STORE_FAILED);
    struct store_history h = {.job = id,
                              .at = at,
                              .hidden = hidden,
                              .name = name,
                              .category = category,
                              .status = status,
                              .dupe_key = dupe};
    TEST_ASSERT_EQUAL_INT(0, store_history_put(w.s, &h, &w.e));
}

static unsigned walk(const struct store_history_filter *f, unsigned limit, uint32_t *ids)
{
    struct store_range range = {.limit = limit};
    unsigned n = 0;
    bool more = true;
    while (more) {
        struct store_page page;
        TEST_ASSERT_EQUAL_INT(0, store_history_list(w.s, f, &range, &page, &w.e));
        TEST_ASSERT_LESS_OR_EQUAL_UINT(limit, page.count);
        for (unsigned i = 0; i < page.count; i++) {
            ids[n++] = ((struct store_history *)page.rows)[i].job;
        }
        range.after = page.next;
        more = page.more;
        store_page_free(&page);
    }
    return n;
}

/* Newest first, also when many have the same time; each entry once; filters and counts agree. */
static void test_pages_and_filters(void)
{
    uint32_t ids[100];
    for (uint32_t id = 1; id <= 30; id++) {
        entry(id, START_AT + (id / 7) * 1000, id % 2 ? "tv" : "Tv",
              id % 5 ? "SUCCESS/ALL" : "FAILURE/PAR", id % 10 == 0);
    }
    struct store_history_filter f = {.with_hidden = true};
    for (unsigned limit = 1; limit <= 40; limit += 3) {
        TEST_ASSERT_EQUAL_UINT(30, walk(&f, limit, ids));
        for (uint32_t i = 0; i < 30; i++) {
            TEST_ASSERT_EQUAL_UINT32(30 - i, ids[i]);
        }
    }
    f.with_hidden = false;
    TEST_ASSERT_EQUAL_UINT(27, walk(&f, 4, ids));
    f.category = "tv"; /* exactly: case counts */
    TEST_ASSERT_EQUAL_UINT(15, walk(&f, 4, ids));
    f = (struct store_history_filter){.status = "FAILURE", .with_hidden = true};
    TEST_ASSERT_EQUAL_UINT(6, walk(&f, 4, ids));
    f = (struct store_history_filter){.name = "s01e2", .with_hidden = true};
    TEST_ASSERT_EQUAL_UINT(10, walk(&f, 4, ids));
    f = (struct store_history_filter){.dupe_key = "d1", .with_hidden = true};
    TEST_ASSERT_EQUAL_UINT(10, walk(&f, 4, ids));
    f = (struct store_history_filter){.name = "%' OR 1=1 --"};
    TEST_ASSERT_EQUAL_UINT(0, walk(&f, 4, ids));
    int64_t n;
    TEST_ASSERT_EQUAL_INT(0, store_history_count(w.s, false, &n, &w.e));
    TEST_ASSERT_EQUAL_INT64(27, n);
}

/* What is added and removed between two pages neither repeats nor hides what was there all the time. */
static void test_pages_are_stable(void)
{
    for (uint32_t id = 1; id <= 20; id++) {
        entry(id, START_AT + id, "tv", "SUCCESS/ALL", false);
    }
    struct store_history_filter f = {0};
    struct store_range range = {.limit = 5};
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_history_list(w.s, &f, &range, &page, &w.e));
    range.after = page.next; /* 20..16 were read */
    store_page_free(&page);
    entry(21, START_AT + 21, "tv", "SUCCESS/ALL", false);
    TEST_ASSERT_EQUAL_INT(0, store_history_remove(w.s, 16, &w.e)); /* the very one of the cursor */
    TEST_ASSERT_EQUAL_INT(0, store_history_remove(w.s, 14, &w.e));
    TEST_ASSERT_EQUAL_INT(0, store_history_list(w.s, &f, &range, &page, &w.e));
    const struct store_history *h = page.rows;
    TEST_ASSERT_EQUAL_UINT32(15, h[0].job);
    TEST_ASSERT_EQUAL_UINT32(13, h[1].job);
    store_page_free(&page);
}

/* KeepHistory, events and tasks have their own times; what belongs to a job that has not ended stays; the row goes last;
 * a call removes no more than it is allowed to. */
static void test_purge(void)
{
    struct store_purged gone;
    struct store_keep keep = {.history_days = 7, .event_days = 30, .task_days = 30};
    for (uint32_t id = 1; id <= 20; id++) {
        entry(id, START_AT, "tv", "FAILURE/PAR", false);
    }
    move_to(&w, 100, STORE_DOWNLOADING); /* goes on for two months */
    struct store_history h = {.job = 100, .at = START_AT};
    TEST_ASSERT_EQUAL_INT(0, store_history_put(w.s, &h, &w.e));
    world_wait(&w, 7 * (int64_t)DAY);
    TEST_ASSERT_EQUAL_INT(0, store_purge(w.s, &keep, 100, w.now, &gone, &w.e));
    TEST_ASSERT_EQUAL_INT64(0, gone.history);
    world_wait(&w, 1);
    TEST_ASSERT_EQUAL_INT(0, store_purge(w.s, &keep, 15, w.now, &gone, &w.e));
    TEST_ASSERT_EQUAL_INT64(15, gone.history);
    TEST_ASSERT_TRUE(gone.more);
    TEST_ASSERT_EQUAL_INT(0, store_purge(w.s, &keep, 15, w.now, &gone, &w.e));
    TEST_ASSERT_EQUAL_INT64(5, gone.history);
    TEST_ASSERT_EQUAL_INT64(0, gone.jobs + gone.events);
    TEST_ASSERT_FALSE(gone.more);
    world_wait(&w, 60 * (int64_t)DAY);
    int64_t events = 0, jobs = 0;
    do {
        TEST_ASSERT_EQUAL_INT(0, store_purge(w.s, &keep, 15, w.now, &gone, &w.e));
        TEST_ASSERT_LESS_OR_EQUAL_INT64(15, gone.events);
        events += gone.events;
        jobs += gone.jobs;
    } while (gone.more);
    TEST_ASSERT_EQUAL_INT64(60, events);
    TEST_ASSERT_EQUAL_INT64(20, jobs);
    TEST_ASSERT_EQUAL_INT(STORE_DOWNLOADING, state_of(&w, 100));
    TEST_ASSERT_EQUAL_INT64(1, count_events(&w, 100, STORE_EV_CREATED));
    keep = (struct store_keep){0}; /* for ever */
    TEST_ASSERT_EQUAL_INT(0, store_purge(w.s, &keep, 15, w.now, &gone, &w.e));
    TEST_ASSERT_EQUAL_INT64(0, gone.history + gone.events + gone.jobs + gone.tasks);
}

/* Bytes add up per server and day, in the sum over all, and in the counters; a reset takes what it says. */
static void test_volumes(void)
{
    struct store_volume v = {.server = 1, .day = 20000, .bytes = 100, .articles_done = 3};
    TEST_ASSERT_EQUAL_INT(0, store_volume_add(w.s, &v, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT(0, store_volume_add(w.s, &v, w.now, &w.e));
    v = (struct store_volume){.server = 2, .day = 20000, .bytes = 50, .articles_failed = 2};
    TEST_ASSERT_EQUAL_INT(0, store_volume_add(w.s, &v, w.now, &w.e));
    v = (struct store_volume){.server = 1, .day = 20003, .bytes = UINT64_MAX};
    TEST_ASSERT_EQUAL_INT(0,
                          store_volume_add(w.s, &v, w.now, &w.e)); /* stays at the largest number */
    v.server = 0;
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_volume_add(w.s, &v, w.now, &w.e));
    struct store_page page;
    struct store_range range = {.limit = 1};
    TEST_ASSERT_EQUAL_INT(0, store_volume_days(w.s, 0, 0, &range, &page, &w.e));
    const struct store_volume *d = page.rows;
    TEST_ASSERT_EQUAL_UINT64(250, d->bytes);
    TEST_ASSERT_EQUAL_UINT64(6, d->articles_done);
    TEST_ASSERT_EQUAL_UINT64(2, d->articles_failed);
    TEST_ASSERT_TRUE(page.more);
    range.after = page.next;
    store_page_free(&page);
    TEST_ASSERT_EQUAL_INT(0, store_volume_days(w.s, 0, 0, &range, &page, &w.e));
    TEST_ASSERT_EQUAL_UINT32(20003, ((struct store_volume *)page.rows)->day);
    store_page_free(&page);
    world_wait(&w, 5000);
    TEST_ASSERT_EQUAL_INT(0, store_volume_reset(w.s, 2, true, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT(ERR_NOT_FOUND, store_volume_reset(w.s, 9, true, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT(0, store_volume_reset(w.s, 1, false, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT(0, store_volume_counters(w.s, &page, &w.e));
    TEST_ASSERT_EQUAL_UINT(3, page.count);
    const struct store_counter *c = page.rows;
    TEST_ASSERT_EQUAL_UINT64(INT64_MAX, c[0].total_bytes); /* the sum stays */
    TEST_ASSERT_EQUAL_UINT32(20000, c[0].first_day);
    TEST_ASSERT_EQUAL_UINT64(0, c[1].total_bytes);
    TEST_ASSERT_EQUAL_INT64(START_AT + 5000, c[1].reset_at);
    TEST_ASSERT_EQUAL_UINT32(0, c[1].first_day);
    TEST_ASSERT_EQUAL_UINT64(50, c[2].total_bytes);
    TEST_ASSERT_EQUAL_UINT64(0, c[2].custom_bytes);
    TEST_ASSERT_EQUAL_INT64(START_AT + 5000, c[2].custom_at);
    store_page_free(&page);
    TEST_ASSERT_EQUAL_INT(0, store_volume_reset(w.s, -1, false, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT(0, store_volume_days(w.s, 0, 0, NULL, &page, &w.e));
    TEST_ASSERT_EQUAL_UINT(0, page.count);
    store_page_free(&page);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_every_field_comes_back);
    RUN_TEST(test_pages_and_filters);
    RUN_TEST(test_pages_are_stable);
    RUN_TEST(test_purge);
    RUN_TEST(test_volumes);
    return UNITY_END();
}
