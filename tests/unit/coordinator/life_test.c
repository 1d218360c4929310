/* A job's life: every state and edge, completion, PAR2 on demand, post-processing, recovery, TTL, identity. */
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

/* created -> queued -> downloading -> processing -> completed -> imported -> cleaned, each with its record. */
static void test_the_whole_way(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:2");
    TEST_ASSERT_EQUAL_UINT(1, fix_records(&f, COORD_REC_CREATED));
    TEST_ASSERT_EQUAL_UINT(1, fix_records(&f, COORD_REC_CLAIMED));
    fix_answer_all(&f, COORD_OK);
    TEST_ASSERT_EQUAL(QUEUE_PROCESSING, fix_state(&f, job));
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_POST_START));
    fix_post(&f, job, COORD_OK, 0);
    TEST_ASSERT_EQUAL(QUEUE_COMPLETED, fix_state(&f, job));
    TEST_ASSERT_EQUAL(QUEUE_HISTORY, fix_job(&f, job)->place);
    struct coord_event ev = {
        .type = COORD_EV_POST,
        .post = {.job_id = job, .kind = COORD_POST_MOVED, .to = QUEUE_IMPORTED}};
    fix_step(&f, &ev);
    ev.post.to = QUEUE_CLEANED;
    fix_step(&f, &ev);
    TEST_ASSERT_EQUAL(QUEUE_CLEANED, fix_state(&f, job));
    TEST_ASSERT_EQUAL_UINT(6, fix_records(&f, COORD_REC_STATUS_CHANGED));
}

/* An edge that is not in the table is refused, recorded, and changes nothing. For every pair of states. */
static void test_illegal_edges_are_refused_and_recorded(void)
{
    static const uint64_t next[QUEUE_STATES] = {
        [QUEUE_CREATED] = SM_BIT(QUEUE_QUEUED) | SM_BIT(QUEUE_JOB_FAILED) | SM_BIT(QUEUE_CANCELLED),
        [QUEUE_QUEUED] =
            SM_BIT(QUEUE_DOWNLOADING) | SM_BIT(QUEUE_JOB_FAILED) | SM_BIT(QUEUE_CANCELLED),
        [QUEUE_DOWNLOADING] = SM_BIT(QUEUE_PROCESSING) | SM_BIT(QUEUE_QUEUED) |
                              SM_BIT(QUEUE_JOB_FAILED) | SM_BIT(QUEUE_CANCELLED),
        [QUEUE_PROCESSING] = SM_BIT(QUEUE_DOWNLOADING) | SM_BIT(QUEUE_COMPLETED) |
                             SM_BIT(QUEUE_JOB_FAILED) | SM_BIT(QUEUE_CANCELLED),
        [QUEUE_COMPLETED] = SM_BIT(QUEUE_IMPORTED) | SM_BIT(QUEUE_CANCELLED),
        [QUEUE_IMPORTED] = SM_BIT(QUEUE_CLEANED),
    };
    fix_open(&f, 0);
    uint32_t id = fix_add(&f, "a", "x.rar:1");
    struct queue_job *j = fix_job(&f, id);
    unsigned refused = 0;
    for (int from = 0; from < QUEUE_STATES; from++) {
        for (int to = 0; to < QUEUE_STATES; to++) {
            sm_init(&j->life, &queue_job_type, from, id);
            uint64_t version = j->row_version, illegal = coord_status(f.c).illegal_moves;
            struct coord_event ev = {
                .type = COORD_EV_POST,
                .post = {.job_id = id, .kind = COORD_POST_MOVED, .to = (enum queue_state)to}};
            f.no_disk = f.no_check = true;
            fix_forget(&f);
            fix_step(&f, &ev);
            bool legal = (next[from] >> to & 1) != 0;
            TEST_ASSERT_EQUAL(legal ? to : from, j->life.state);
            TEST_ASSERT_EQUAL_UINT64(illegal + !legal, coord_status(f.c).illegal_moves);
            TEST_ASSERT_EQUAL_UINT(!legal, fix_records(&f, COORD_REC_ILLEGAL));
            TEST_ASSERT_EQUAL_UINT64(version + legal, j->row_version);
            refused += !legal;
        }
    }
    TEST_ASSERT_EQUAL_UINT(81 - 17, refused);
    sm_init(&j->life, &queue_job_type, QUEUE_QUEUED, id);
}

/* The last article may fail: the file is closed, the job goes on (trap 2). */
static void test_a_job_ends_when_its_last_article_fails(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:2");
    fix_answer(&f, fix_lease(&f, 0), COORD_OK);
    fix_answer(&f, fix_lease(&f, 0), COORD_NOT_FOUND);
    TEST_ASSERT_EQUAL(QUEUE_PROCESSING, fix_state(&f, job));
}

/* PAR2 main first, then data; volumes only on demand, exactly as many as needed; completion does not wait for the
 * rest (trap 6). */
static void test_par_volumes_on_demand(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:2 x.vol0+1.par2:1 x.vol1+2.par2:2 x.par2:1");
    TEST_ASSERT_EQUAL_STRING("a.x.par2.1@test", fix_last(&f, COORD_FX_FETCH)->id);
    fix_answer_all(&f, COORD_OK);
    TEST_ASSERT_EQUAL(QUEUE_PROCESSING, fix_state(&f, job));
    fix_forget(&f);
    fix_post(&f, job, COORD_PAR_BLOCKS, 1);
    TEST_ASSERT_EQUAL(QUEUE_DOWNLOADING, fix_state(&f, job));
    TEST_ASSERT_EQUAL_UINT(1, fix_records(&f, COORD_REC_PAR_REQUESTED));
    fix_answer_all(&f, COORD_OK);
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_FETCH));
    TEST_ASSERT_EQUAL_STRING("a.x.vol0+1.par2.1@test", fix_last(&f, COORD_FX_FETCH)->id);
    TEST_ASSERT_EQUAL(QUEUE_PROCESSING, fix_state(&f, job));
    fix_post(&f, job, COORD_PAR_BLOCKS, 5); /* more than there are */
    TEST_ASSERT_EQUAL(QUEUE_JOB_FAILED, fix_state(&f, job));
    TEST_ASSERT_NOT_NULL(strstr(fix_job(&f, job)->reason, "5 recovery blocks are needed, 2 can"));
}

/* What post-processing can say, row by row. */
static void test_ends_of_post_processing(void)
{
    static const struct {
        enum coord_code code;
        unsigned times;
        enum queue_state state;
    } rows[] = {
        {COORD_PAR_FAILED, 1, QUEUE_JOB_FAILED},
        {COORD_UNPACK_CRC, 1, QUEUE_PROCESSING},
        {COORD_UNPACK_CRC, 2, QUEUE_JOB_FAILED},
        {COORD_UNPACK_VOLUME, 2, QUEUE_JOB_FAILED},
        {COORD_UNSAFE_PATH, 1, QUEUE_JOB_FAILED},
        {COORD_BOMB, 1, QUEUE_JOB_FAILED},
        {COORD_UNWANTED, 1, QUEUE_JOB_FAILED},
        {COORD_PASSWORD, 1, QUEUE_PROCESSING},
        {COORD_STAGE, 2, QUEUE_PROCESSING},
        {COORD_STAGE, COORD_STAGE_ATTEMPTS, QUEUE_JOB_FAILED},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fix_open(&f, 1);
        uint32_t job = fix_add(&f, "a", "x.rar:1");
        fix_answer_all(&f, COORD_OK);
        for (unsigned n = 0; n < rows[i].times; n++) {
            fix_post(&f, job, rows[i].code, 0);
            fix_pass(&f, 20000);
        }
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].state, fix_state(&f, job),
                                  coord_error(rows[i].code)->name);
        bool quarantined = coord_error(rows[i].code)->action == COORD_ACT_QUARANTINE;
        TEST_ASSERT_EQUAL_UINT(quarantined, fix_count(&f, COORD_FX_QUARANTINE));
        fix_close(&f);
    }
    f.c = NULL;
}

/* At most so many jobs are in post-processing at once; the next begins when one ends. */
static void test_post_processing_has_places(void)
{
    fix_open(&f, 1);
    uint32_t a = fix_add(&f, "a", "x.rar:1"), b = fix_add(&f, "b", "y.rar:1");
    fix_answer_all(&f, COORD_OK);
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_POST_START));
    fix_post(&f, a, COORD_OK, 0);
    TEST_ASSERT_EQUAL_UINT32(b, fix_last(&f, COORD_FX_POST_START)->fx.job_id);
}

/* After a crash: downloading -> queued with attempt + 1; the fourth time the job is POISON and not touched. */
static void test_recovery_and_poison(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:2");
    for (unsigned n = 1; n <= COORD_JOB_ATTEMPTS; n++) {
        TEST_ASSERT_EQUAL_UINT32(n, fix_job(&f, job)->attempt);
        TEST_ASSERT_FALSE(fix_held(&f, job, QUEUE_HOLD_POISON));
        fix_crash(&f);
        TEST_ASSERT_EQUAL_UINT(1, fix_records(&f, COORD_REC_RECOVERED));
    }
    TEST_ASSERT_TRUE(fix_held(&f, job, QUEUE_HOLD_POISON));
    TEST_ASSERT_EQUAL_UINT64(0, fix_lease(&f, 0));
    TEST_ASSERT_EQUAL(0, fix_edit(&f, QUEUE_EDIT_GROUP_RESUME, job, 0, ""));
    TEST_ASSERT_NOT_EQUAL(0, fix_lease(&f, 0));
    TEST_ASSERT_EQUAL_UINT32(1, fix_job(&f, job)->attempt);
}

/* A shutdown in order is no attempt. */
static void test_an_orderly_end_costs_no_attempt(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:2");
    fix_op(&f, COORD_SHUTDOWN, 0);
    fix_pass(&f, COORD_STOP_MS + COORD_QUICK_MS);
    TEST_ASSERT_TRUE(coord_stopped(f.c));
    TEST_ASSERT_EQUAL(QUEUE_QUEUED, fix_state(&f, job));
    fix_crash(&f);
    TEST_ASSERT_EQUAL_UINT32(1, fix_job(&f, job)->attempt);
}

/* A job with an expiry ends cancelled, ttl_expired, and its files go. */
static void test_ttl(void)
{
    fix_open(&f, 1);
    int64_t at = f.now.wall_ms / 1000 + 100;
    uint32_t job = fix_add_with(&f, "a", "x.rar:2", (struct queue_add){.expires_at = at}, NULL);
    fix_pass(&f, 99000);
    TEST_ASSERT_EQUAL(QUEUE_DOWNLOADING, fix_state(&f, job));
    fix_pass(&f, 2000);
    TEST_ASSERT_EQUAL(QUEUE_CANCELLED, fix_state(&f, job));
    TEST_ASSERT_EQUAL_STRING("ttl_expired", fix_job(&f, job)->reason);
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_DELETE_FILES));
}

/* The same articles give the same job; FORCE makes a second. */
static void test_same_content_is_the_same_job(void)
{
    fix_open(&f, 1);
    uint32_t a = fix_add(&f, "a", "x.rar:2");
    TEST_ASSERT_EQUAL_UINT32(a, fix_add(&f, "a", "x.rar:2"));
    TEST_ASSERT_TRUE(fix_reply(&f, f.requests)->fx.reply.existed);
    uint32_t b =
        fix_add_with(&f, "a", "x.rar:2", (struct queue_add){.dupe_mode = QUEUE_DUPE_FORCE}, NULL);
    TEST_ASSERT_NOT_EQUAL(a, b);
}

/* A client's key means the same job for 24 h, also after a restart; then a new one. */
static void test_idempotency_key(void)
{
    fix_open(&f, 1);
    uint32_t a = fix_add_with(&f, "a", "x.rar:2", (struct queue_add){0}, "k1");
    TEST_ASSERT_EQUAL_UINT32(a, fix_add_with(&f, "b", "y.rar:2", (struct queue_add){0}, "k1"));
    fix_crash(&f);
    TEST_ASSERT_EQUAL_UINT32(a, fix_add_with(&f, "c", "z.rar:2", (struct queue_add){0}, "k1"));
    f.now.wall_ms += (int64_t)COORD_KEY_SEC * 1000 + 1000;
    TEST_ASSERT_NOT_EQUAL(a, fix_add_with(&f, "d", "w.rar:2", (struct queue_add){0}, "k1"));
}

/* The key of an add that was refused is forgotten with it. */
static void test_the_key_of_a_refused_add_is_free(void)
{
    fix_open(&f, 1);
    f.store_code = COORD_NO_SPACE;
    TEST_ASSERT_EQUAL_UINT32(0, fix_add_with(&f, "a", "x.rar:2", (struct queue_add){0}, "k"));
    TEST_ASSERT_EQUAL_UINT32(0, f.q->active_count);
    f.store_code = COORD_OK;
    uint32_t b = fix_add_with(&f, "a", "x.rar:2", (struct queue_add){0}, "k");
    TEST_ASSERT_EQUAL(QUEUE_QUEUED,
                      fix_state(&f, b) == QUEUE_DOWNLOADING ? QUEUE_QUEUED : fix_state(&f, b));
}

/* A failed job wakes its standby. */
static void test_failure_wakes_the_standby(void)
{
    fix_prepare(&f, 1);
    f.limits.dupe_check = true;
    fix_start(&f);
    uint32_t a = fix_add_with(&f, "same", "x.rar:1", (struct queue_add){.dupe_score = 5}, NULL);
    struct queue_add low = {.dupe_score = 1, .dupe_key = ""};
    uint32_t b = fix_add_with(&f, "same", "y.rar:1", low, NULL);
    TEST_ASSERT_EQUAL(QUEUE_HISTORY, fix_job(&f, b)->place);
    fix_answer(&f, fix_lease(&f, 0), COORD_OK);
    fix_post(&f, a, COORD_PAR_FAILED, 0);
    TEST_ASSERT_EQUAL(QUEUE_ACTIVE, fix_job(&f, b)->place);
}

/* A URL: busy is retried with backoff and Retry-After, refused and unreadable are final, ten tries at most. */
static void test_urls(void)
{
    static const struct {
        enum coord_code code;
        enum queue_state state;
    } rows[] = {{COORD_URL_BUSY, QUEUE_CREATED},
                {COORD_URL_REFUSED, QUEUE_JOB_FAILED},
                {COORD_NZB_INVALID, QUEUE_JOB_FAILED},
                {COORD_NZB_EMPTY, QUEUE_JOB_FAILED}};
    for (unsigned i = 0; i < 4; i++) {
        fix_open(&f, 1);
        uint32_t job = fix_add_with(&f, "u", NULL, (struct queue_add){.url = "http://x/"}, NULL);
        TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_FETCH_URL));
        struct coord_event ev = {.type = COORD_EV_URL,
                                 .nzb = {.job_id = job, .code = rows[i].code, .retry_after_s = 50}};
        fix_step(&f, &ev);
        TEST_ASSERT_EQUAL(rows[i].state, fix_state(&f, job));
        fix_close(&f);
    }
    fix_open(&f, 1);
    uint32_t job = fix_add_with(&f, "u", NULL, (struct queue_add){.url = "http://x/"}, NULL);
    for (unsigned n = 1; n <= COORD_URL_ATTEMPTS; n++) {
        TEST_ASSERT_EQUAL(QUEUE_CREATED, fix_state(&f, job));
        struct coord_event ev = {
            .type = COORD_EV_URL,
            .nzb = {.job_id = job, .code = COORD_URL_BUSY, .retry_after_s = 50}};
        fix_step(&f, &ev);
        if (n == 1) {
            TEST_ASSERT_TRUE(fix_held(&f, job, QUEUE_HOLD_BACKOFF));
            fix_pass(&f, 49000);
            TEST_ASSERT_TRUE(fix_held(&f, job, QUEUE_HOLD_BACKOFF));
        }
        fix_pass(&f, 1000000);
    }
    TEST_ASSERT_EQUAL(QUEUE_JOB_FAILED, fix_state(&f, job));
}

/* A URL that works becomes a job with articles, durably stored first. */
static void test_a_url_becomes_a_job(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add_with(&f, "u", NULL, (struct queue_add){.url = "http://x/"}, NULL);
    struct coord_event ev = {.type = COORD_EV_URL,
                             .nzb = {.job_id = job, .nzb = make_nzb("u", "x.rar:2"), .data = 5}};
    fix_step(&f, &ev);
    TEST_ASSERT_EQUAL(QUEUE_DOWNLOADING, fix_state(&f, job));
    TEST_ASSERT_EQUAL_STRING("stored.nzb.gz", fix_job(&f, job)->sources[0].stored);
}

/* Health: Park holds, Delete removes, None goes on; the first failure of a job that PAR2 can mend does nothing (trap
 * 1); the user may resume a parked job. */
static void test_health_actions(void)
{
    for (unsigned mode = 0; mode < 3; mode++) {
        fix_prepare(&f, 1);
        f.limits.health_check = (uint8_t)mode;
        fix_start(&f);
        uint32_t ok = fix_add(&f, "p", "x.rar:9 x.par2:1 x.vol0+4.par2:4");
        fix_answer(&f, fix_lease(&f, 0), COORD_OK);
        fix_answer(&f, fix_lease(&f, 0), COORD_NOT_FOUND);
        TEST_ASSERT_EQUAL(QUEUE_DOWNLOADING, fix_state(&f, ok));
        TEST_ASSERT_FALSE(fix_held(&f, ok, QUEUE_HOLD_HEALTH));
        fix_answer_all(&f, COORD_OK);
        uint32_t bad = fix_add(&f, "q", "y.rar:9");
        fix_answer(&f, fix_lease(&f, 0), COORD_NOT_FOUND);
        TEST_ASSERT_EQUAL(mode == QUEUE_HEALTH_DELETE ? QUEUE_JOB_FAILED : QUEUE_DOWNLOADING,
                          fix_state(&f, bad));
        if (mode == QUEUE_HEALTH_PARK) {
            TEST_ASSERT_TRUE(fix_held(&f, bad, QUEUE_HOLD_HEALTH));
            fix_answer_all(&f, COORD_OK);
            fix_edit(&f, QUEUE_EDIT_GROUP_RESUME, bad, 0, "");
            fix_answer_all(&f, COORD_NOT_FOUND);
            TEST_ASSERT_FALSE(fix_held(&f, bad, QUEUE_HOLD_HEALTH));
        }
        TEST_ASSERT_EQUAL_UINT(mode == QUEUE_HEALTH_DELETE, fix_count(&f, COORD_FX_DELETE_FILES));
        fix_close(&f);
    }
    f.c = NULL;
}

/* A file asked for during post-processing brings the job back to downloading. */
static void test_a_file_wanted_late(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:1 x.par2:1 x.vol0+1.par2:1");
    fix_answer_all(&f, COORD_OK);
    TEST_ASSERT_EQUAL(QUEUE_PROCESSING, fix_state(&f, job));
    TEST_ASSERT_EQUAL(0,
                      fix_edit(&f, QUEUE_EDIT_FILE_RESUME, fix_job(&f, job)->files[2]->id, 0, ""));
    TEST_ASSERT_EQUAL(QUEUE_DOWNLOADING, fix_state(&f, job));
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_POST_STOP));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_the_whole_way);
    RUN_TEST(test_illegal_edges_are_refused_and_recorded);
    RUN_TEST(test_a_job_ends_when_its_last_article_fails);
    RUN_TEST(test_par_volumes_on_demand);
    RUN_TEST(test_ends_of_post_processing);
    RUN_TEST(test_post_processing_has_places);
    RUN_TEST(test_recovery_and_poison);
    RUN_TEST(test_an_orderly_end_costs_no_attempt);
    RUN_TEST(test_ttl);
    RUN_TEST(test_same_content_is_the_same_job);
    RUN_TEST(test_idempotency_key);
    RUN_TEST(test_the_key_of_a_refused_add_is_free);
    RUN_TEST(test_failure_wakes_the_standby);
    RUN_TEST(test_urls);
    RUN_TEST(test_a_url_becomes_a_job);
    RUN_TEST(test_health_actions);
    RUN_TEST(test_a_file_wanted_late);
    return UNITY_END();
}
