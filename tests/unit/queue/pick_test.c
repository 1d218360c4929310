/* Which article a server gets next, and what becomes of it. */
#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "base/check.h"
#include "lib/fault.h"
#include "queue/edit.h"
#include "queue/pick.h"
#include "unit/queue/make.h"

enum { NOW = 1700000100 };

static struct queue *q;

void setUp(void)
{
    q = queue_new();
    make_servers(q, 1, 1);
}

void tearDown(void)
{
    queue_check(q);
    queue_free(q);
}

/* The next pick of the lane as "job/file/number", and leases it. */
static const char *picked(unsigned lane, struct queue_pick *p)
{
    static char text[256];
    if (!queue_pick(q, lane, p)) {
        return "nothing";
    }
    snprintf(text, sizeof(text), "%s/%s/%u", p->job->name, queue_file_name(p->file), p->index + 1);
    return text;
}

static void expect(unsigned lane, const char *what)
{
    struct queue_pick p;
    TEST_ASSERT_EQUAL_STRING(what, picked(lane, &p));
}

static void server(unsigned slot, struct queue_server s)
{
    struct queue_server all[QUEUE_SERVERS_MAX];
    memcpy(all, q->servers, sizeof(all));
    all[slot] = s;
    unsigned count = slot < q->server_count ? q->server_count : slot + 1;
    PRE(queue_set_servers(q, all, count, NOW, NULL) == 0);
}

/* PAR2 main first, then data in the order of the NZB, segments by number; volumes not at all. */
static void test_order_inside_a_job(void)
{
    (void)make_job(q, "j", "b.rar:2 a.rar:1 x.nfo:1 s.vol0+1.par2:1 s.par2:1");
    expect(0, "j/s.par2/1");
    expect(0, "j/b.rar/1");
    expect(0, "j/b.rar/2");
    expect(0, "j/a.rar/1");
    expect(0, "j/x.nfo/1");
    expect(0, "nothing");
}

/* Without a main file the smallest volume stands in for it; without data the volumes are what is wanted. */
static void test_volumes_without_a_main_file(void)
{
    (void)make_job(q, "j", "a.rar:1 s.vol1+2.par2:2 s.vol0+1.par2:1");
    expect(0, "j/a.rar/1");
    expect(0, "j/s.vol0+1.par2/1");
    expect(0, "nothing");
    (void)make_job(q, "k", "s.vol1+2.par2:1 s.vol0+1.par2:1");
    expect(0, "k/s.vol1+2.par2/1");
    expect(0, "k/s.vol0+1.par2/1");
    expect(0, "nothing");
}

/* Priority first, then the order of the queue. */
static void test_order_of_jobs(void)
{
    (void)make_job_priority(q, "low", "a.bin:1", QUEUE_LOW);
    (void)make_job_priority(q, "normal1", "a.bin:1", QUEUE_NORMAL);
    (void)make_job_priority(q, "force", "a.bin:1", QUEUE_FORCE);
    (void)make_job_priority(q, "normal2", "a.bin:1", QUEUE_NORMAL);
    (void)make_job_priority(q, "odd", "a.bin:1", 7);
    expect(0, "force/a.bin/1");
    expect(0, "odd/a.bin/1");
    expect(0, "normal1/a.bin/1");
    expect(0, "normal2/a.bin/1");
    expect(0, "low/a.bin/1");
    expect(0, "nothing");
}

/* A job that is not durable yet, held, or past downloading is passed over. */
static void test_held_jobs_are_passed_over(void)
{
    struct queue_job *j = NULL, *k = make_job(q, "k", "a.bin:9");
    const struct queue_add add = {.nzb = make_nzb("new", "a.bin:1"), .name = "new", .top = true};
    PRE(queue_add(q, &add, &j, NULL) == 0);
    expect(0, "k/a.bin/1");
    PRE(queue_job_move(q, j, QUEUE_QUEUED, NOW, NULL) == 0);
    for (int h = 0; h < QUEUE_HOLDS; h++) {
        queue_hold_set(q, j, (enum queue_hold)h, NOW, 0);
        struct queue_pick p;
        TEST_ASSERT_TRUE(queue_peek(q, 0, &p) && p.job == k);
        queue_hold_clear(q, j, (enum queue_hold)h);
        TEST_ASSERT_TRUE(queue_peek(q, 0, &p) && p.job == j);
    }
    PRE(queue_job_move(q, k, QUEUE_DOWNLOADING, NOW, NULL) == 0);
    PRE(queue_job_move(q, k, QUEUE_PROCESSING, NOW, NULL) == 0);
    expect(0, "new/a.bin/1");
    expect(0, "nothing");
}

/* Force goes past GLOBAL, SCHEDULE and QUOTA, on the job and on everything; past nothing else. */
static void test_force_goes_past_some_holds(void)
{
    struct queue_job *f = make_job_priority(q, "force", "a.bin:40", QUEUE_FORCE);
    (void)make_job(q, "other", "a.bin:40");
    for (int h = 0; h < QUEUE_HOLDS; h++) {
        bool passes = (QUEUE_HOLD_BIT(h) & QUEUE_FORCE_PASSES) != 0;
        struct queue_pick p;
        queue_hold_set(q, f, (enum queue_hold)h, NOW, 0);
        TEST_ASSERT_TRUE(queue_peek(q, 0, &p) && (p.job == f) == passes);
        TEST_ASSERT_EQUAL(passes, queue_job_blocking(q, f) == 0);
        queue_hold_clear(q, f, (enum queue_hold)h);
        queue_set_global_holds(q, QUEUE_HOLD_BIT(h));
        TEST_ASSERT_EQUAL(passes, queue_peek(q, 0, &p));
        TEST_ASSERT_TRUE(!passes || p.job == f);
        queue_set_global_holds(q, 0);
    }
}

/* An article goes down the levels; inside a level any server may take it; who tried it does not get it again. */
static void test_levels(void)
{
    struct queue_pick p;
    make_servers(q, 3, 2); /* servers 0 and 1 at level 0, server 2 at level 1 */
    (void)make_job(q, "j", "a.bin:1");
    expect(2, "nothing");
    TEST_ASSERT_EQUAL_STRING("j/a.bin/1", picked(1, &p));
    queue_article_tried(q, queue_pick_ref(&p), 1, QUEUE_NOT_THERE);
    expect(1, "nothing");
    expect(2, "nothing");
    TEST_ASSERT_EQUAL_STRING("j/a.bin/1", picked(0, &p));
    queue_article_tried(q, queue_pick_ref(&p), 0, QUEUE_BAD_DATA);
    expect(0, "nothing");
    expect(QUEUE_NOBODY(q), "nothing");
    TEST_ASSERT_EQUAL_STRING("j/a.bin/1", picked(2, &p));
    queue_article_tried(q, queue_pick_ref(&p), 2, QUEUE_GAVE_UP);
    for (unsigned s = 0; s < 3; s++) {
        expect(s, "nothing");
    }
    TEST_ASSERT_EQUAL_STRING("j/a.bin/1", picked(QUEUE_NOBODY(q), &p));
    TEST_ASSERT_FALSE(queue_only_missing(q, p.file, 0));
    const struct queue_server_stat *stat = p.job->server_stats;
    TEST_ASSERT_EQUAL_UINT32(1, stat[0].failed);
    TEST_ASSERT_EQUAL_UINT32(1, stat[1].failed);
    TEST_ASSERT_EQUAL_UINT32(0, stat[2].failed); /* the line was bad, not the article */
}

/* "Not there" holds for every server of the group; damaged data only for the one that sent it. */
static void test_groups(void)
{
    struct queue_pick p;
    server(0, (struct queue_server){.id = 1, .group = 3, .active = true});
    server(1, (struct queue_server){.id = 2, .group = 3, .active = true});
    (void)make_job(q, "j", "a.bin:2");
    (void)picked(0, &p);
    queue_article_tried(q, queue_pick_ref(&p), 0, QUEUE_NOT_THERE);
    TEST_ASSERT_EQUAL_STRING("j/a.bin/1", picked(QUEUE_NOBODY(q), &p));
    (void)picked(0, &p);
    queue_article_tried(q, queue_pick_ref(&p), 0, QUEUE_BAD_DATA);
    expect(QUEUE_NOBODY(q), "nothing");
    expect(1, "j/a.bin/2");
}

/* An optional server may take an article but does not keep the next level waiting, and is not waited for when down. */
static void test_optional_servers(void)
{
    struct queue_pick p;
    server(0, (struct queue_server){.id = 1, .optional = true, .active = true});
    server(1, (struct queue_server){.id = 2, .level = 1, .active = true});
    (void)make_job(q, "j", "a.bin:3");
    TEST_ASSERT_EQUAL_STRING("j/a.bin/1", picked(1, &p));
    queue_article_tried(q, queue_pick_ref(&p), 1, QUEUE_NOT_THERE);
    expect(QUEUE_NOBODY(q), "nothing");
    expect(0, "j/a.bin/1");
    TEST_ASSERT_EQUAL_STRING("j/a.bin/2", picked(1, &p));
    queue_article_tried(q, queue_pick_ref(&p), 1, QUEUE_NOT_THERE);
    server(0, (struct queue_server){.id = 1, .optional = true, .active = true, .down = true});
    expect(QUEUE_NOBODY(q), "j/a.bin/2");
}

/* Articles go past a server that is down, but are not given up before it was asked. */
static void test_servers_that_are_down(void)
{
    struct queue_pick p;
    make_servers(q, 2, 1);
    (void)make_job(q, "j", "a.bin:2");
    server(0, (struct queue_server){.id = 1, .active = true, .down = true});
    expect(0, "nothing");
    TEST_ASSERT_EQUAL_STRING("j/a.bin/1", picked(1, &p));
    queue_article_tried(q, queue_pick_ref(&p), 1, QUEUE_NOT_THERE);
    expect(QUEUE_NOBODY(q), "nothing");
    server(0, (struct queue_server){.id = 1, .active = true});
    expect(0, "j/a.bin/1");
    server(0, (struct queue_server){.id = 1, .active = false});
    expect(1, "j/a.bin/2");
}

/* When a server goes for good, articles that only it had left are nobody's. */
static void test_a_server_switched_off(void)
{
    struct queue_pick p;
    make_servers(q, 2, 1);
    (void)make_job(q, "j", "a.bin:1");
    (void)picked(0, &p);
    queue_article_tried(q, queue_pick_ref(&p), 0, QUEUE_NOT_THERE);
    server(1, (struct queue_server){.id = 2, .level = 1, .active = false});
    TEST_ASSERT_EQUAL_STRING("j/a.bin/1", picked(QUEUE_NOBODY(q), &p));
    TEST_ASSERT_TRUE(queue_only_missing(q, p.file, 0));
}

/* A server whose retention the post has left is not asked; what it would hold back goes to the next level. */
static void test_retention(void)
{
    server(0, (struct queue_server){.id = 1, .retention_days = 100, .active = true});
    server(1, (struct queue_server){.id = 2, .level = 1, .active = true});
    (void)make_job(q, "j", "a.bin:2"); /* posted 1700000000 */
    expect(0, "j/a.bin/1");
    PRE(queue_set_servers(q, q->servers, 2, 1700000000 + INT64_C(101) * 86400, NULL) == 0);
    expect(0, "nothing");
    expect(1, "j/a.bin/2");
}

/* What was tried stays with the server's number when the list of servers changes. */
static void test_servers_are_known_by_number(void)
{
    struct queue_pick p;
    make_servers(q, 2, 2);
    (void)make_job(q, "j", "a.bin:1");
    (void)picked(0, &p);
    queue_article_tried(q, queue_pick_ref(&p), 0, QUEUE_NOT_THERE);
    const struct queue_server other[] = {
        {.id = 9, .active = true}, {.id = 2, .active = true}, {.id = 1, .active = true}};
    PRE(queue_set_servers(q, other, 3, NOW, NULL) == 0);
    TEST_ASSERT_EQUAL(QUEUE_UNTRIED, queue_tried_on(p.file, 0, 0));
    TEST_ASSERT_EQUAL(QUEUE_UNTRIED, queue_tried_on(p.file, 0, 1));
    TEST_ASSERT_EQUAL(QUEUE_NOT_THERE, queue_tried_on(p.file, 0, 2));
    expect(2, "nothing");
    expect(1, "j/a.bin/1");
    TEST_ASSERT_EQUAL(ERR_LIMIT, queue_set_servers(q, other, QUEUE_SERVERS_MAX + 1, NOW, NULL));
}

/* A returned lease costs nothing; a wait is charged and open again at its time, not before. */
static void test_returns_and_waits(void)
{
    struct queue_pick p;
    (void)make_job(q, "j", "a.bin:3");
    (void)picked(0, &p);
    queue_article_return(q, queue_pick_ref(&p));
    TEST_ASSERT_EQUAL_STRING("j/a.bin/1", picked(0, &p));
    TEST_ASSERT_EQUAL_UINT(0, queue_attempts(p.file, 0));
    PRE(queue_article_wait(q, queue_pick_ref(&p), 5000) == 0);
    TEST_ASSERT_EQUAL_UINT(1, queue_attempts(p.file, 0));
    TEST_ASSERT_EQUAL_STRING("j/a.bin/2", picked(0, &p));
    PRE(queue_article_wait(q, queue_pick_ref(&p), 4000) == 0);
    TEST_ASSERT_EQUAL_UINT64(4000, queue_next_wake_ms(q));
    TEST_ASSERT_EQUAL_UINT(0, queue_wake(q, 3999, 9));
    TEST_ASSERT_EQUAL_UINT(1, queue_wake(q, 4000, 9));
    expect(0, "j/a.bin/2");
    TEST_ASSERT_EQUAL_UINT(1, queue_wake(q, 9999, 9));
    TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, queue_next_wake_ms(q));
    expect(0, "j/a.bin/1");
    for (int i = 0; i < 100; i++) { /* the count stops, it does not wrap into its neighbours */
        PRE(queue_article_wait(q, (struct queue_ref){p.file->id, 1}, 1) == 0);
        queue_wake_job(q, NULL);
        expect(0, "j/a.bin/2");
    }
    TEST_ASSERT_EQUAL_UINT(QUEUE_ATTEMPTS_MAX, queue_attempts(p.file, 1));
    TEST_ASSERT_EQUAL_UINT(0, queue_grace(p.file, 1));
}

/* A young post that nobody has yet is asked for again everywhere, and the rounds are counted. */
static void test_grace(void)
{
    struct queue_pick p;
    (void)make_job(q, "j", "a.bin:1");
    for (unsigned round = 1; round <= 4; round++) {
        (void)picked(0, &p);
        queue_article_tried(q, queue_pick_ref(&p), 0, QUEUE_NOT_THERE);
        TEST_ASSERT_EQUAL_STRING("j/a.bin/1", picked(QUEUE_NOBODY(q), &p));
        TEST_ASSERT_TRUE(queue_only_missing(q, p.file, 0));
        PRE(queue_article_grace(q, queue_pick_ref(&p), round) == 0);
        TEST_ASSERT_EQUAL_UINT(round, queue_grace(p.file, 0));
        TEST_ASSERT_EQUAL_UINT(1, queue_wake(q, round, 1));
    }
    expect(0, "j/a.bin/1");
}

/* When an article is nowhere, its other message-ids are tried from the beginning, one after another. */
static void test_fallback_ids(void)
{
    static const char text[] = "<nzb><file subject='\"a.bin\" yEnc (1/2)'><segments>"
                               "<segment bytes='9' number='1'>first@x</segment><segment bytes='9' "
                               "number='2'>second@x</segment>"
                               "<segment bytes='9' number='1'>again@x</segment><segment bytes='9' "
                               "number='1'>third@x</segment>"
                               "</segments></file></nzb>";
    static const char *const ids[] = {"first@x", "again@x", "third@x"};
    struct nzb *nzb;
    struct queue_job *j;
    struct queue_pick p;
    PRE(nzb_parse(text, sizeof(text) - 1, NULL, &nzb, NULL) == 0);
    const struct queue_add add = {.nzb = nzb, .name = "j"};
    PRE(queue_add(q, &add, &j, NULL) == 0 && queue_job_move(q, j, QUEUE_QUEUED, NOW, NULL) == 0);
    for (int i = 0; i < 3; i++) {
        PRE(queue_pick(q, 0, &p));
        TEST_ASSERT_EQUAL_STRING(ids[i], p.message_id);
        queue_article_tried(q, queue_pick_ref(&p), 0, QUEUE_NOT_THERE);
        PRE(queue_pick(q, QUEUE_NOBODY(q), &p));
        TEST_ASSERT_EQUAL(i < 2, queue_article_fallback(q, queue_pick_ref(&p)));
    }
    (void)queue_article_failed(q, queue_pick_ref(&p), NULL);
    PRE(queue_pick(q, 0, &p));
    TEST_ASSERT_EQUAL_STRING("second@x", p.message_id);
    queue_article_tried(q, queue_pick_ref(&p), 0, QUEUE_NOT_THERE);
    PRE(queue_pick(q, QUEUE_NOBODY(q), &p));
    TEST_ASSERT_FALSE(queue_article_fallback(q, queue_pick_ref(&p)));
}

/* The last article of a file ends it, done or failed; the last wanted file ends the job, though volumes are left. */
static void test_ends_of_files_and_jobs(void)
{
    struct queue_pick p;
    struct queue_part part = {.size = 700, .crc32 = 1};
    struct queue_job *j = make_job(q, "j", "a.bin:2 b.bin:1 s.par2:1 s.vol0+1.par2:1");
    TEST_ASSERT_EQUAL_UINT32(3, j->wanted_left);
    PRE(queue_pick(q, 0, &p));
    TEST_ASSERT_EQUAL_UINT(QUEUE_NEWS_FILE_ENDED,
                           queue_article_done(q, queue_pick_ref(&p), 0, &part, 1000));
    queue_file_close(q, p.file);
    PRE(queue_pick(q, 0, &p));
    TEST_ASSERT_EQUAL_UINT(0, queue_article_done(q, queue_pick_ref(&p), 0, &part, 1000));
    PRE(queue_pick(q, 0, &p));
    TEST_ASSERT_EQUAL_UINT(QUEUE_NEWS_FILE_ENDED,
                           queue_article_failed(q, queue_pick_ref(&p), NULL));
    PRE(queue_pick(q, 0, &p));
    TEST_ASSERT_EQUAL_UINT(QUEUE_NEWS_FILE_ENDED | QUEUE_NEWS_JOB_ENDED,
                           queue_article_done(q, queue_pick_ref(&p), 0, &part, 1000));
    TEST_ASSERT_EQUAL_UINT32(0, j->wanted_left);
    TEST_ASSERT_EQUAL_UINT32(2, j->wanted_unclosed);
    TEST_ASSERT_EQUAL_UINT32(1, j->left_files);
    TEST_ASSERT_EQUAL_UINT64(3000, j->downloaded_bytes);
    expect(0, "nothing");
}

/* Volumes are fetched when blocks are missing: those that cost the fewest bytes, and no more of them. */
static void test_volumes_on_demand(void)
{
    struct queue_job *j = make_job(q, "j",
                                   "a.bin:1 s.par2:1 s.vol0+1.par2:1:100 s.vol1+2.par2:1:190 "
                                   "s.vol3+4.par2:1:360 s.vol7+8.par2:1:700");
    TEST_ASSERT_EQUAL_UINT32(0, queue_want_blocks(q, j, 0));
    TEST_ASSERT_EQUAL_UINT32(3, queue_want_blocks(q, j, 3)); /* 1 + 2 for 290 beats 4 for 360 */
    TEST_ASSERT_TRUE(j->files[2]->wanted && j->files[3]->wanted);
    TEST_ASSERT_FALSE(j->files[4]->wanted || j->files[5]->wanted);
    TEST_ASSERT_EQUAL_UINT32(8, queue_want_blocks(q, j, 5)); /* 4 is too few, 4 + 8 too dear */
    TEST_ASSERT_TRUE(j->files[5]->wanted && !j->files[4]->wanted);
    TEST_ASSERT_EQUAL_UINT32(4, queue_want_blocks(q, j, 1000)); /* all that is left */
    TEST_ASSERT_EQUAL_UINT32(0, queue_want_blocks(q, j, 1));
}

/* A file that turns out to be a PAR2 volume is not fetched any more, unless it is here already. */
static void test_files_are_recognised_by_content(void)
{
    struct queue_pick p;
    struct queue_part part = {.size = 1};
    struct queue_job *j = make_job(q, "j", "9f86d0:2 a3f5c8:2 77aa11:2");
    PRE(queue_file_identify(q, j->files[1], "x.vol0+8.par2", NZB_PAR2_VOLUME, 8) == 0);
    TEST_ASSERT_EQUAL_STRING("x.vol0+8.par2", queue_file_name(j->files[1]));
    TEST_ASSERT_EQUAL_UINT64(2000, j->par_bytes);
    (void)picked(0, &p);
    (void)queue_article_done(q, queue_pick_ref(&p), 0, &part, 1);
    PRE(queue_file_identify(q, j->files[0], "../y.vol8+8.par2", NZB_PAR2_VOLUME, 8) == 0);
    TEST_ASSERT_EQUAL_STRING("y.vol8+8.par2", queue_file_name(j->files[0]));
    expect(0, "j/y.vol8+8.par2/2");
    expect(0, "j/77aa11/1");
}

/* The path of an article allocates nothing. */
static void test_the_path_of_an_article_allocates_nothing(void)
{
    struct queue_pick p;
    struct queue_part part = {.size = 1};
    make_servers(q, 3, 1);
    (void)make_job(q, "j", "a.bin:200 b.bin:3");
    fault_arm(0);
    for (int i = 0; i < 100; i++) {
        PRE(queue_pick(q, 0, &p));
        queue_article_return(q, queue_pick_ref(&p));
        PRE(queue_pick(q, 0, &p));
        queue_article_tried(q, queue_pick_ref(&p), 0, QUEUE_NOT_THERE);
        PRE(queue_pick(q, 1, &p));
        (void)queue_article_done(q, queue_pick_ref(&p), 1, &part, 1);
        PRE(queue_pick(q, 0, &p));
        (void)queue_article_failed(q, queue_pick_ref(&p), NULL);
    }
    TEST_ASSERT_EQUAL_UINT(0, fault_count());
    fault_disarm();
}

/* The lifecycle has the edges of the design and no others; a refusal says so and changes nothing. */
static void test_lifecycle(void)
{
    static const char *const legal[] = {
        "created queued",         "created failed",         "created cancelled",
        "queued downloading",     "queued failed",          "queued cancelled",
        "downloading processing", "downloading queued",     "downloading failed",
        "downloading cancelled",  "processing downloading", "processing completed",
        "processing failed",      "processing cancelled",   "completed imported",
        "completed cancelled",    "imported cleaned",
    };
    struct queue_job *j = make_job(q, "j", "a.bin:1");
    for (int from = 0; from < QUEUE_STATES; from++) {
        for (int to = 0; to < QUEUE_STATES; to++) {
            char edge[64];
            bool expected = false;
            struct err e = {0};
            snprintf(edge, sizeof(edge), "%s %s", queue_job_type.states[from].name,
                     queue_job_type.states[to].name);
            for (size_t i = 0; i < sizeof(legal) / sizeof(legal[0]); i++) {
                expected = expected || strcmp(legal[i], edge) == 0;
            }
            j->life.state = from;
            uint64_t version = j->row_version;
            int rc = queue_job_move(q, j, (enum queue_state)to, NOW, &e);
            TEST_ASSERT_EQUAL_MESSAGE(expected ? 0 : ERR_CONFLICT, rc, edge);
            TEST_ASSERT_EQUAL(expected ? to : from, j->life.state);
            TEST_ASSERT_EQUAL_UINT64(version + expected, j->row_version);
            TEST_ASSERT_EQUAL(!expected, e.msg[0] != '\0');
        }
    }
    j->life.state = QUEUE_QUEUED;
    queue_job_touch(q, j);
    PRE(queue_job_move(q, j, QUEUE_DOWNLOADING, NOW, NULL) == 0);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_order_inside_a_job);
    RUN_TEST(test_volumes_without_a_main_file);
    RUN_TEST(test_order_of_jobs);
    RUN_TEST(test_held_jobs_are_passed_over);
    RUN_TEST(test_force_goes_past_some_holds);
    RUN_TEST(test_levels);
    RUN_TEST(test_groups);
    RUN_TEST(test_optional_servers);
    RUN_TEST(test_servers_that_are_down);
    RUN_TEST(test_a_server_switched_off);
    RUN_TEST(test_retention);
    RUN_TEST(test_servers_are_known_by_number);
    RUN_TEST(test_returns_and_waits);
    RUN_TEST(test_grace);
    RUN_TEST(test_fallback_ids);
    RUN_TEST(test_ends_of_files_and_jobs);
    RUN_TEST(test_volumes_on_demand);
    RUN_TEST(test_files_are_recognised_by_content);
    RUN_TEST(test_the_path_of_an_article_allocates_nothing);
    RUN_TEST(test_lifecycle);
    return UNITY_END();
}
