#include "fixture.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "queue/queue.h"

/* One lifecycle, one table: the queue's. */
const struct sm_type *const test_job_type = &queue_job_type;
_Static_assert((int)STORE_CREATED == (int)QUEUE_CREATED &&
                   (int)STORE_FAILED == (int)QUEUE_JOB_FAILED &&
                   (int)STORE_CANCELLED == (int)QUEUE_CANCELLED &&
                   (int)STORE_STATES == (int)QUEUE_STATES,
               "the tests walk both in the same order");

int world_try_open(struct world *w)
{
    struct store_options o = {
        .dir = w->dir.path, .fs = &fsx_kernel, .job_type = test_job_type, .now = w->now};
    err_clear(&w->e);
    return store_open(&w->s, &o, &w->report, &w->e);
}

static void open_it(struct world *w)
{
    int rv = world_try_open(w);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, rv, w->e.msg);
}

void world_make(struct world *w)
{
    *w = (struct world){.now = {.mono_ms = 1000000, .wall_ms = START_AT}};
    if (access("/dev/shm", W_OK) == 0) { /* syncs are proven elsewhere: here they only take time */
        setenv("TMPDIR", "/dev/shm", 0);
    }
    dir_make(&w->dir);
    open_it(w);
}

void world_close(struct world *w)
{
    int rv = store_close(w->s, w->now, &w->e);
    w->s = NULL;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, rv, w->e.msg);
}

void world_remove(struct world *w)
{
    if (w->s != NULL) {
        world_close(w);
    }
    dir_remove(&w->dir);
}

void world_reopen(struct world *w)
{
    world_close(w);
    open_it(w);
}

/* The state of a process that was killed is that of its files: a copy of them is taken while the database is open. */
void world_crash(struct world *w)
{
    char command[4 * DIR_PATH_MAX + 64];
    struct dir copy;
    dir_make(&copy);
    snprintf(command, sizeof(command), "cp -a %s/. %s/", w->dir.path, copy.path);
    TEST_ASSERT_EQUAL_INT(0, system(command));
    world_close(w);
    dir_remove(&w->dir);
    w->dir = copy;
    open_it(w);
    TEST_ASSERT_TRUE(w->report.unclean);
}

void world_wait(struct world *w, int64_t ms)
{
    w->now.mono_ms += (uint64_t)ms;
    w->now.wall_ms += ms;
}

static sqlite3 *side_door(struct world *w)
{
    char path[DIR_PATH_MAX + 16];
    sqlite3 *h;
    snprintf(path, sizeof(path), "%s/weir.db", w->dir.path);
    TEST_ASSERT_EQUAL_INT(SQLITE_OK, sqlite3_open(path, &h));
    return h;
}

int64_t world_number(struct world *w, const char *sql)
{
    sqlite3 *h = side_door(w);
    sqlite3_stmt *st;
    TEST_ASSERT_EQUAL_INT_MESSAGE(SQLITE_OK, sqlite3_prepare_v2(h, sql, -1, &st, NULL),
                                  sqlite3_errmsg(h));
    TEST_ASSERT_EQUAL_INT(SQLITE_ROW, sqlite3_step(st));
    int64_t v = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(h);
    return v;
}

int world_sql(struct world *w, const char *sql)
{
    sqlite3 *h = side_door(w);
    int rc = sqlite3_exec(h, sql, NULL, NULL, NULL);
    sqlite3_close(h);
    return rc;
}

void add_job(struct world *w, uint32_t id)
{
    char name[32];
    struct store_job_made made;
    snprintf(name, sizeof(name), "job %u", id);
    struct store_job_new j = {.id = id, .name = name, .category = "tv", .source = "a.nzb"};
    int rv = store_job_add(w->s, &j, w->now, &made, &w->e);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, rv, w->e.msg);
    TEST_ASSERT_EQUAL_UINT32(id, made.id);
    TEST_ASSERT_FALSE(made.existed);
}

int try_move(struct world *w, uint32_t id, enum store_state to)
{
    struct store_move m = {.job = id, .to = to};
    err_clear(&w->e);
    return store_job_move(w->s, &m, w->now, NULL, &w->e);
}

void move(struct world *w, uint32_t id, enum store_state to)
{
    int rv = try_move(w, id, to);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, rv, w->e.msg);
}

void move_to(struct world *w, uint32_t id, enum store_state to)
{
    static const enum store_state way[] = {STORE_QUEUED, STORE_DOWNLOADING, STORE_PROCESSING,
                                           STORE_COMPLETED};
    add_job(w, id);
    int steps = to == STORE_FAILED || to == STORE_CANCELLED ? 1 : 4;
    for (int i = 0; i < steps && state_of(w, id) != to; i++) {
        move(w, id, way[i]);
    }
    if (to == STORE_IMPORTED || to == STORE_CLEANED) {
        spawn(w, id, 1);
        import_one(w, true, STORE_NO_ERROR);
        move(w, id, STORE_IMPORTED);
    }
    if (state_of(w, id) != to) {
        move(w, id, to);
    }
}

void get_job(struct world *w, uint32_t id, struct store_job *j)
{
    struct store_page page;
    int rv = store_job_get(w->s, id, &page, &w->e);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, rv, w->e.msg);
    *j = *(struct store_job *)page.rows;
    j->name = j->category = j->source = j->path = j->code = j->reason = NULL;
    j->key = NULL;
    store_page_free(&page);
}

enum store_state state_of(struct world *w, uint32_t id)
{
    struct store_job j;
    get_job(w, id, &j);
    return j.state;
}

void spawn(struct world *w, uint32_t job, unsigned files)
{
    for (unsigned i = 0; i < files; i++) {
        char source[64];
        unsigned made;
        snprintf(source, sizeof(source), "/src/%u/%u", job, i);
        struct store_task_new t = {.source = source, .dest = "/lib", .method = STORE_HARDLINK};
        int rv = store_import_spawn(w->s, job, &t, 1, w->now, &made, &w->e);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, rv, w->e.msg);
        TEST_ASSERT_EQUAL_UINT(1, made);
    }
}

int64_t import_one(struct world *w, bool ok, enum store_category category)
{
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_import_claim(w->s, 1, w->now, &page, &w->e));
    TEST_ASSERT_EQUAL_UINT(1, page.count);
    struct store_task t = *(struct store_task *)page.rows;
    store_page_free(&page);
    struct store_task_end end = {.task = t.id,
                                 .attempt = t.attempt,
                                 .ok = ok,
                                 .code = ok ? NULL : "ENOSPC",
                                 .category = category};
    int rv = store_import_end(w->s, &end, w->now, NULL, &w->e);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, rv, w->e.msg);
    return t.id;
}

struct store_task get_task(struct world *w, int64_t id)
{
    struct store_page page;
    int rv = store_import_get(w->s, id, &page, &w->e);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, rv, w->e.msg);
    struct store_task t = *(struct store_task *)page.rows;
    t.source = t.dest = t.code = t.text = NULL;
    store_page_free(&page);
    return t;
}

enum store_import_status import_status(struct world *w, uint32_t job)
{
    struct store_import_summary sum;
    int rv = store_import_summary(w->s, job, &sum, &w->e);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, rv, w->e.msg);
    return sum.status;
}

int64_t count_events(struct world *w, uint32_t job, enum store_kind kind)
{
    struct store_event_filter f = {.job = job, .kinds = STORE_KIND_BIT(kind)};
    struct store_range range = {.limit = STORE_PAGE_MAX};
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_event_list(w->s, &f, &range, &page, &w->e));
    int64_t n = page.count;
    TEST_ASSERT_FALSE(page.more);
    store_page_free(&page);
    return n;
}

const struct store_event *last_event(struct world *w, uint32_t job, enum store_kind kind)
{
    static struct store_page page;
    struct store_event_filter f = {.job = job, .kinds = STORE_KIND_BIT(kind), .newest_first = true};
    struct store_range range = {.limit = 1};
    store_page_free(&page);
    TEST_ASSERT_EQUAL_INT(0, store_event_list(w->s, &f, &range, &page, &w->e));
    TEST_ASSERT_EQUAL_UINT_MESSAGE(1, page.count, store_kind_name(kind));
    return page.rows;
}
