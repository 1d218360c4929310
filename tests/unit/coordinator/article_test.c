/* Leases, results, and every row of the error table that an article can meet. */
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

static enum coord_server_state server(unsigned i)
{
    return coord_server_view(f.c, i).state;
}
static const struct queue_file *file_of(uint32_t job)
{
    return fix_job(&f, job)->files[0];
}

/* Each code has a name, a text and the category, scope and action of the design's table. */
static void test_the_table_is_the_designs(void)
{
    static const struct {
        enum coord_code code;
        enum coord_category category;
        enum coord_scope scope;
        enum coord_action action;
    } rows[] = {
        {COORD_DNS, COORD_TRANSIENT, COORD_SCOPE_SERVER, COORD_ACT_BACK_OFF},
        {COORD_CONNECT, COORD_TRANSIENT, COORD_SCOPE_SERVER, COORD_ACT_BACK_OFF},
        {COORD_TLS_IO, COORD_TRANSIENT, COORD_SCOPE_SERVER, COORD_ACT_BACK_OFF},
        {COORD_TIMEOUT, COORD_TRANSIENT, COORD_SCOPE_SERVER, COORD_ACT_BACK_OFF},
        {COORD_EOF, COORD_TRANSIENT, COORD_SCOPE_SERVER, COORD_ACT_BACK_OFF},
        {COORD_SERVICE, COORD_TRANSIENT, COORD_SCOPE_SERVER, COORD_ACT_BACK_OFF},
        {COORD_NOT_FOUND, COORD_PERMANENT, COORD_SCOPE_ARTICLE, COORD_ACT_NEXT_SERVER},
        {COORD_REMOVED, COORD_PERMANENT, COORD_SCOPE_ARTICLE, COORD_ACT_NEXT_SERVER},
        {COORD_LOGIN, COORD_PERMANENT, COORD_SCOPE_SERVER, COORD_ACT_DISABLE},
        {COORD_EXPIRED, COORD_PERMANENT, COORD_SCOPE_SERVER, COORD_ACT_DISABLE},
        {COORD_CERTIFICATE, COORD_PERMANENT, COORD_SCOPE_SERVER, COORD_ACT_DISABLE},
        {COORD_CIPHER, COORD_PERMANENT, COORD_SCOPE_SERVER, COORD_ACT_DISABLE},
        {COORD_TOO_MANY, COORD_TRANSIENT, COORD_SCOPE_SERVER, COORD_ACT_FEWER},
        {COORD_YENC_HEADER, COORD_PERMANENT, COORD_SCOPE_ARTICLE, COORD_ACT_KEEP_DAMAGED},
        {COORD_YENC_SIZE, COORD_PERMANENT, COORD_SCOPE_ARTICLE, COORD_ACT_KEEP_DAMAGED},
        {COORD_YENC_CRC, COORD_PERMANENT, COORD_SCOPE_ARTICLE, COORD_ACT_KEEP_DAMAGED},
        {COORD_DESYNC, COORD_PERMANENT, COORD_SCOPE_CONNECTION, COORD_ACT_CLOSE},
        {COORD_PAR_BLOCKS, COORD_TRANSIENT, COORD_SCOPE_JOB, COORD_ACT_FETCH_MORE},
        {COORD_PAR_FAILED, COORD_PERMANENT, COORD_SCOPE_JOB, COORD_ACT_FAIL_JOB},
        {COORD_UNPACK_CRC, COORD_TRANSIENT, COORD_SCOPE_JOB, COORD_ACT_REPAIR_ONCE},
        {COORD_UNPACK_VOLUME, COORD_TRANSIENT, COORD_SCOPE_JOB, COORD_ACT_REPAIR_ONCE},
        {COORD_PASSWORD, COORD_PERMANENT, COORD_SCOPE_JOB, COORD_ACT_ASK_PASSWORD},
        {COORD_UNSAFE_PATH, COORD_PERMANENT, COORD_SCOPE_JOB, COORD_ACT_QUARANTINE},
        {COORD_BOMB, COORD_PERMANENT, COORD_SCOPE_JOB, COORD_ACT_QUARANTINE},
        {COORD_UNWANTED, COORD_PERMANENT, COORD_SCOPE_JOB, COORD_ACT_QUARANTINE},
        {COORD_NO_SPACE, COORD_TRANSIENT, COORD_SCOPE_DISK, COORD_ACT_HOLD_DISK},
        {COORD_DISK_IO, COORD_PERMANENT, COORD_SCOPE_JOB, COORD_ACT_DISK_GRACE},
        {COORD_URL_BUSY, COORD_TRANSIENT, COORD_SCOPE_JOB, COORD_ACT_RETRY_URL},
        {COORD_URL_REFUSED, COORD_PERMANENT, COORD_SCOPE_JOB, COORD_ACT_FAIL_JOB},
        {COORD_NZB_INVALID, COORD_PERMANENT, COORD_SCOPE_JOB, COORD_ACT_FAIL_JOB},
        {COORD_NZB_EMPTY, COORD_PERMANENT, COORD_SCOPE_JOB, COORD_ACT_FAIL_JOB},
        {COORD_UNKNOWN, COORD_TRANSIENT, COORD_SCOPE_CONNECTION, COORD_ACT_CLOSE},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct coord_error *e = coord_error(rows[i].code);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].category, e->category, e->name);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].scope, e->scope, e->name);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].action, e->action, e->name);
    }
    TEST_ASSERT_EQUAL_PTR(coord_error(COORD_UNKNOWN), coord_error((enum coord_code)999));
}

/* A lease names job, file, segment, server and deadline; its answer is written, then the article is done. */
static void test_a_lease_ends_in_a_done_article(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:2");
    const struct coord_fetch *got = &fix_last(&f, COORD_FX_FETCH)->fx.fetch;
    TEST_ASSERT_EQUAL_UINT32(job, got->job_id);
    TEST_ASSERT_EQUAL_UINT32(1, got->server_id);
    TEST_ASSERT_EQUAL_UINT32(1, got->part_number);
    TEST_ASSERT_EQUAL_UINT64(f.now.mono_ms + COORD_LEASE_MS, got->deadline_ms);
    TEST_ASSERT_EQUAL(QUEUE_DOWNLOADING, fix_state(&f, job));
    fix_answer(&f, fix_lease(&f, 0), COORD_OK);
    TEST_ASSERT_EQUAL_UINT32(1, file_of(job)->done);
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_OPEN_FILE));
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_WRITE));
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_JOURNAL));
}

/* An answer to a lease that is gone is counted and dropped, its data given back; a second answer likewise. */
static void test_a_stale_answer_is_dropped(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:2");
    uint64_t lease = fix_lease(&f, 0);
    fix_answer(&f, lease, COORD_OK);
    fix_forget(&f);
    fix_answer_with(&f, (struct coord_result){.lease = lease, .code = COORD_OK, .data = 9});
    TEST_ASSERT_EQUAL_UINT64(1, coord_status(f.c).stale_results);
    TEST_ASSERT_EQUAL_UINT64(9, fix_last(&f, COORD_FX_DISCARD)->fx.data);
    TEST_ASSERT_EQUAL_UINT32(1, file_of(job)->done);
    TEST_ASSERT_EQUAL_UINT(0, fix_count(&f, COORD_FX_WRITE));
}

/* The result for a job that was removed meanwhile is legal and changes nothing. */
static void test_a_result_for_a_removed_job(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:2");
    uint64_t lease = fix_lease(&f, 0);
    TEST_ASSERT_EQUAL(0, fix_edit(&f, QUEUE_EDIT_GROUP_FINAL_DELETE, job, 0, ""));
    TEST_ASSERT_NULL(queue_job(f.q, job));
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_CANCEL));
    fix_answer_with(&f, (struct coord_result){.lease = lease, .code = COORD_OK, .data = 3});
    TEST_ASSERT_EQUAL_UINT64(1, coord_status(f.c).stale_results);
    TEST_ASSERT_EQUAL_UINT32(0, coord_status(f.c).leases);
}

/* A minute without a byte ends a lease; news of bytes moves that minute. */
static void test_a_lease_expires_after_a_minute_of_silence(void)
{
    fix_open(&f, 1);
    fix_add(&f, "a", "x.rar:1");
    uint64_t lease = fix_lease(&f, 0);
    fix_pass(&f, COORD_LEASE_MS - 1000);
    struct coord_event ev = {.type = COORD_EV_PROGRESS, .lease = lease};
    fix_step(&f, &ev);
    fix_pass(&f, COORD_LEASE_MS - 1000);
    TEST_ASSERT_EQUAL_UINT64(lease, fix_lease(&f, 0));
    fix_forget(&f);
    fix_pass(&f, 1000);
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_CANCEL));
    TEST_ASSERT_EQUAL(COORD_SERVER_BACKOFF, server(0));
}

/* 430, 423, 420, 451: the next server is asked at once, this one never again; no attempt is charged. */
static void test_not_found_goes_to_the_next_server(void)
{
    static const enum coord_code codes[] = {COORD_NOT_FOUND, COORD_REMOVED};
    for (unsigned i = 0; i < 2; i++) {
        fix_prepare(&f, 2);
        f.servers[1].level = 1;
        fix_start(&f);
        uint32_t job = fix_add(&f, "a", "x.rar:1");
        fix_answer(&f, fix_lease(&f, 1), codes[i]);
        TEST_ASSERT_NOT_EQUAL(0, fix_lease(&f, 2));
        TEST_ASSERT_EQUAL_UINT(0, queue_attempts(file_of(job), 0));
        fix_answer(&f, fix_lease(&f, 2), codes[i]);
        TEST_ASSERT_EQUAL_UINT32(1, file_of(job)->failed);
        TEST_ASSERT_EQUAL(COORD_SERVER_UP, server(0));
        fix_close(&f);
    }
    f.c = NULL;
}

/* A young post that nobody has is asked for again after 60 s, 5, 15 and 45 min, then it has failed. */
static void test_not_found_grace_of_a_young_post(void)
{
    static const uint64_t at_s[] = {60, 300, 900, 2700};
    fix_prepare(&f, 1);
    f.now.wall_ms = INT64_C(1700000100000);
    fix_start(&f);
    uint32_t job = fix_add(&f, "a", "x.rar:1 y.rar:1");
    uint64_t began = f.now.mono_ms;
    fix_answer(&f, fix_lease(&f, 0), COORD_NOT_FOUND);
    fix_answer(&f, fix_lease(&f, 0), COORD_OK);
    for (unsigned i = 0; i < 4; i++) {
        fix_pass(&f, began + at_s[i] * 1000 - f.now.mono_ms - 1);
        TEST_ASSERT_EQUAL_UINT64(0, fix_lease(&f, 0));
        fix_pass(&f, 1);
        TEST_ASSERT_NOT_EQUAL(0, fix_lease(&f, 0));
        fix_answer(&f, fix_lease(&f, 0), COORD_NOT_FOUND);
    }
    TEST_ASSERT_EQUAL_UINT32(1, fix_job(&f, job)->failed_articles);
}

/* Found in time, the grace is forgotten. */
static void test_found_within_the_grace(void)
{
    fix_prepare(&f, 1);
    f.now.wall_ms = INT64_C(1700000100000);
    fix_start(&f);
    uint32_t job = fix_add(&f, "a", "x.rar:1");
    fix_answer(&f, fix_lease(&f, 0), COORD_NOT_FOUND);
    fix_pass(&f, 60000);
    fix_answer(&f, fix_lease(&f, 0), COORD_OK);
    TEST_ASSERT_EQUAL(QUEUE_PROCESSING, fix_state(&f, job));
}

/* For an old post 430 is final at once. */
static void test_not_found_is_final_for_an_old_post(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:2");
    fix_answer(&f, fix_lease(&f, 0), COORD_NOT_FOUND);
    TEST_ASSERT_EQUAL_UINT32(1, fix_job(&f, job)->failed_articles);
}

/* DNS, connect, TLS, timeout, EOF, 400: the other server now, this one rests 2 s; the article pays nothing. */
static void test_transport_errors_back_the_server_off(void)
{
    static const enum coord_code codes[] = {COORD_DNS,     COORD_CONNECT, COORD_TLS_IO,
                                            COORD_TIMEOUT, COORD_EOF,     COORD_SERVICE};
    for (unsigned i = 0; i < 6; i++) {
        fix_prepare(&f, 2);
        f.servers[1].level = 1;
        fix_start(&f);
        uint32_t job = fix_add(&f, "a", "x.rar:1");
        fix_answer(&f, fix_lease(&f, 1), codes[i]);
        TEST_ASSERT_EQUAL(COORD_SERVER_BACKOFF, server(0));
        TEST_ASSERT_NOT_EQUAL(0, fix_lease(&f, 2));
        TEST_ASSERT_EQUAL_UINT(0, queue_attempts(file_of(job), 0));
        TEST_ASSERT_EQUAL(QUEUE_UNTRIED, queue_tried_on(file_of(job), 0, 0));
        fix_close(&f);
    }
    f.c = NULL;
}

/* An article on which a good server always breaks is charged, waits 2^n s, and after ten attempts this server is given
 * up for it: no hot loop, no endless one. */
static void test_an_article_that_breaks_its_server_is_given_up(void)
{
    fix_prepare(&f, 1);
    f.servers[0].connections = 2;
    fix_start(&f);
    uint32_t job = fix_add(&f, "a", "x.rar:1 y.rar:1");
    fix_answer(&f, fix_lease(&f, 0) + 0x10001, COORD_OK); /* y: the server works */
    unsigned asked = 0;
    while (fix_job(&f, job)->life.state == QUEUE_DOWNLOADING && asked < 40) {
        uint64_t lease = fix_lease(&f, 0);
        if (lease != 0) {
            asked++;
            fix_answer_with(
                &f, (struct coord_result){.lease = lease, .code = COORD_EOF, .began = true});
        } else {
            fix_pass(&f, 10000);
        }
    }
    TEST_ASSERT_EQUAL_UINT32(1, fix_job(&f, job)->failed_articles);
    TEST_ASSERT_TRUE(asked >= COORD_ARTICLE_ATTEMPTS &&
                     asked <= COORD_ARTICLE_ATTEMPTS + COORD_SERVER_BLAME + 1);
}

/* yEnc header, size, CRC: the damaged copy is written for PAR2, a better one replaces it, a worse one does not. */
static void test_damaged_copies_are_kept_and_others_asked(void)
{
    fix_prepare(&f, 3);
    f.servers[1].level = 1;
    f.servers[2].level = 2;
    fix_start(&f);
    uint32_t job = fix_add(&f, "a", "x.rar:1");
    struct coord_result r = {
        .lease = fix_lease(&f, 1), .code = COORD_YENC_CRC, .data = 1, .part = {0, 600, 1}};
    fix_answer_with(&f, r);
    TEST_ASSERT_EQUAL(QUEUE_BAD_DATA, queue_tried_on(file_of(job), 0, 0));
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_WRITE));
    r = (struct coord_result){
        .lease = fix_lease(&f, 2), .code = COORD_YENC_SIZE, .data = 2, .part = {0, 500, 1}};
    fix_answer_with(&f, r);
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_WRITE));
    TEST_ASSERT_EQUAL_UINT64(2, fix_last(&f, COORD_FX_DISCARD)->fx.data);
    r = (struct coord_result){
        .lease = fix_lease(&f, 3), .code = COORD_YENC_HEADER, .data = 3, .part = {0, 900, 5}};
    fix_answer_with(&f, r);
    TEST_ASSERT_EQUAL_UINT(2, fix_count(&f, COORD_FX_WRITE));
    TEST_ASSERT_EQUAL_UINT32(1, file_of(job)->failed);
    TEST_ASSERT_EQUAL_UINT32(900, file_of(job)->part[0].size);
}

/* A "good" part that lies outside its file is not believed. */
static void test_an_insane_part_is_not_written_as_good(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:2");
    fix_answer_with(&f, (struct coord_result){.lease = fix_lease(&f, 0),
                                              .code = COORD_OK,
                                              .data = 1,
                                              .part = {UINT64_MAX - 5, 100, 1},
                                              .file_size = 2000});
    TEST_ASSERT_EQUAL_UINT(0, fix_count(&f, COORD_FX_WRITE));
    TEST_ASSERT_EQUAL_UINT32(1, fix_job(&f, job)->failed_articles);
}

/* Another article: this copy counts as bad here and nothing is written. */
static void test_a_wrong_article_is_not_written(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:2");
    fix_answer(&f, fix_lease(&f, 0), COORD_WRONG_ARTICLE);
    TEST_ASSERT_EQUAL_UINT(0, fix_count(&f, COORD_FX_WRITE));
    TEST_ASSERT_EQUAL(QUEUE_BAD_DATA, queue_tried_on(file_of(job), 0, 0));
}

/* Desync and nonsense cost the article an attempt and a pause; three in a row are the server's fault. */
static void test_desync_is_charged_and_bounded(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:5");
    for (unsigned i = 0; i < COORD_SERVER_BLAME; i++) {
        TEST_ASSERT_EQUAL(COORD_SERVER_UP, server(0));
        fix_answer(&f, fix_lease(&f, 0), i % 2 == 0 ? COORD_DESYNC : COORD_UNKNOWN);
    }
    TEST_ASSERT_EQUAL_UINT(1, queue_attempts(file_of(job), 0));
    TEST_ASSERT_EQUAL_UINT32(3, file_of(job)->waiting);
    TEST_ASSERT_EQUAL(COORD_SERVER_BACKOFF, server(0));
}

/* ENOSPC: DISK hold, the article is open again and uncharged; space brings it all back. */
static void test_no_space_holds_and_resumes_by_itself(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:2");
    f.write_code = COORD_NO_SPACE;
    fix_answer(&f, fix_lease(&f, 0), COORD_OK);
    TEST_ASSERT_TRUE(fix_all_held(&f, QUEUE_HOLD_DISK));
    TEST_ASSERT_EQUAL(QUEUE_OPEN, file_of(job)->state[0]);
    TEST_ASSERT_EQUAL_UINT(0, queue_attempts(file_of(job), 0));
    fix_answer(&f, fix_lease(&f, 0), COORD_OK); /* the one that was under way */
    TEST_ASSERT_EQUAL_UINT32(2, file_of(job)->open);
    TEST_ASSERT_EQUAL_UINT64(0, fix_lease(&f, 0));
    f.write_code = COORD_OK;
    fix_pass(&f, 3000);
    fix_disk(&f, COORD_EV_SPACE, (struct coord_disk){.free_bytes = 1 << 30});
    TEST_ASSERT_FALSE(fix_all_held(&f, QUEUE_HOLD_DISK));
    TEST_ASSERT_NOT_EQUAL(0, fix_lease(&f, 0));
}

/* EROFS, EIO, directory gone: tried for 60 s, other jobs go on, then failed missing_workdir. */
static void test_a_directory_that_cannot_be_written(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:2");
    f.write_code = COORD_DISK_IO;
    fix_answer(&f, fix_lease(&f, 0), COORD_OK);
    TEST_ASSERT_TRUE(fix_held(&f, job, QUEUE_HOLD_BACKOFF));
    TEST_ASSERT_EQUAL(QUEUE_DOWNLOADING, fix_state(&f, job));
    uint64_t began = f.now.mono_ms;
    while (fix_state(&f, job) == QUEUE_DOWNLOADING && f.now.mono_ms - began < 200000) {
        fix_pass(&f, 1000);
        if (fix_lease(&f, 0) != 0) {
            fix_answer(&f, fix_lease(&f, 0), COORD_OK);
        }
    }
    TEST_ASSERT_EQUAL(QUEUE_JOB_FAILED, fix_state(&f, job));
    TEST_ASSERT_TRUE(f.now.mono_ms - began >= COORD_DISK_GRACE_MS &&
                     f.now.mono_ms - began < 100000);
    TEST_ASSERT_EQUAL_STRING_LEN("missing_workdir", fix_job(&f, job)->reason, 15);
}

/* What the disk lost is fetched again, but only when a save says so: after a crash the hole would look like data. */
static void test_a_lost_file_waits_for_a_save(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:3");
    fix_answer(&f, fix_lease(&f, 0), COORD_OK);
    uint64_t lease = fix_lease(&f, 0);
    f.no_disk = true;
    fix_forget(&f);
    fix_disk(&f, COORD_EV_LOST, (struct coord_disk){.file_id = file_of(job)->id});
    TEST_ASSERT_EQUAL_UINT32(0, file_of(job)->done);
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_SAVE));
    fix_answer(&f, lease, COORD_CANCELLED);
    TEST_ASSERT_EQUAL_UINT(0, fix_count(&f, COORD_FX_FETCH));
    f.no_disk = false;
    fix_pass(&f, 1);
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_FETCH));
}

/* Backoff is 2^n s, a fifth more or less, and not above its cap. */
static void test_backoff_doubles_with_jitter_and_cap(void)
{
    fix_open(&f, 1);
    for (unsigned n = 1; n < 12; n++) {
        for (unsigned i = 0; i < 50; i++) {
            uint64_t ms = coord_backoff_ms(f.c, n, 60),
                     usual = (n < 6 ? UINT64_C(1) << n : 60) * 1000;
            TEST_ASSERT_TRUE(ms >= usual * 4 / 5 && ms <= usual * 6 / 5 && ms <= 60000);
        }
    }
}

/* Errors of one job, server and code make one row in ten seconds, with their number. */
static void test_article_errors_are_folded(void)
{
    fix_open(&f, 1);
    fix_add(&f, "a", "x.rar:50");
    fix_forget(&f);
    for (unsigned i = 0; i < 40; i++) {
        fix_answer(&f, fix_lease(&f, 1), COORD_NOT_FOUND);
    }
    TEST_ASSERT_EQUAL_UINT(2, fix_records(&f, COORD_REC_ERROR)); /* of the server, and "given up" */
    fix_pass(&f, COORD_FOLD_MS);
    TEST_ASSERT_EQUAL_UINT(4, fix_records(&f, COORD_REC_ERROR));
    TEST_ASSERT_EQUAL_UINT64(39, fix_last(&f, COORD_FX_RECORD)->fx.record.count);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_the_table_is_the_designs);
    RUN_TEST(test_a_lease_ends_in_a_done_article);
    RUN_TEST(test_a_stale_answer_is_dropped);
    RUN_TEST(test_a_result_for_a_removed_job);
    RUN_TEST(test_a_lease_expires_after_a_minute_of_silence);
    RUN_TEST(test_not_found_goes_to_the_next_server);
    RUN_TEST(test_not_found_grace_of_a_young_post);
    RUN_TEST(test_found_within_the_grace);
    RUN_TEST(test_not_found_is_final_for_an_old_post);
    RUN_TEST(test_transport_errors_back_the_server_off);
    RUN_TEST(test_an_article_that_breaks_its_server_is_given_up);
    RUN_TEST(test_damaged_copies_are_kept_and_others_asked);
    RUN_TEST(test_an_insane_part_is_not_written_as_good);
    RUN_TEST(test_a_wrong_article_is_not_written);
    RUN_TEST(test_desync_is_charged_and_bounded);
    RUN_TEST(test_no_space_holds_and_resumes_by_itself);
    RUN_TEST(test_a_directory_that_cannot_be_written);
    RUN_TEST(test_a_lost_file_waits_for_a_save);
    RUN_TEST(test_backoff_doubles_with_jitter_and_cap);
    RUN_TEST(test_article_errors_are_folded);
    return UNITY_END();
}
