/* Holds, pauses, quota, speed, disk guard, servers. */
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

static struct coord_server_view server(unsigned i)
{
    return coord_server_view(f.c, i);
}

/* ---- holds ---- */

/* Every hold of a job keeps it from being picked and says since when; clearing it lets it go on. Force passes exactly
 * GLOBAL, SCHEDULE and QUOTA. */
static void test_every_hold_of_a_job(void)
{
    for (int h = 0; h < QUEUE_HOLDS; h++) {
        fix_open(&f, 1);
        fix_op(&f, COORD_PAUSE, 0);
        uint32_t job = fix_add(&f, "a", "x.rar:2");
        queue_hold_set(f.q, fix_job(&f, job), (enum queue_hold)h, 5, 0);
        fix_op(&f, COORD_RESUME, 0);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, fix_lease(&f, 0), queue_hold_name((enum queue_hold)h));
        TEST_ASSERT_EQUAL(0, fix_edit(&f, QUEUE_EDIT_GROUP_SET_PRIORITY, job, QUEUE_FORCE, ""));
        bool passes = (QUEUE_FORCE_PASSES >> h & 1) != 0;
        TEST_ASSERT_EQUAL_MESSAGE(passes, fix_lease(&f, 0) != 0,
                                  queue_hold_name((enum queue_hold)h));
        queue_hold_clear(f.q, fix_job(&f, job), (enum queue_hold)h);
        fix_pass(&f, 1);
        TEST_ASSERT_NOT_EQUAL(0, fix_lease(&f, 0));
        fix_close(&f);
    }
    f.c = NULL;
}

/* The pause of everything stops ordinary jobs, not Force (trap 4), and ends by resume or by its time. */
static void test_global_pause_force_and_timed(void)
{
    fix_open(&f, 1);
    fix_op(&f, COORD_PAUSE, 0);
    TEST_ASSERT_TRUE(fix_all_held(&f, QUEUE_HOLD_GLOBAL));
    fix_add(&f, "a", "x.rar:1");
    TEST_ASSERT_EQUAL_UINT64(0, fix_lease(&f, 0));
    uint32_t force =
        fix_add_with(&f, "b", "y.rar:1", (struct queue_add){.priority = QUEUE_FORCE}, NULL);
    TEST_ASSERT_EQUAL_UINT32(force, fix_last(&f, COORD_FX_FETCH)->fx.fetch.job_id);
    fix_answer_all(&f, COORD_OK);
    fix_op(&f, COORD_PAUSE, 60);
    TEST_ASSERT_EQUAL_INT64(f.now.wall_ms / 1000 + 60, coord_status(f.c).pause_until_at);
    fix_pass(&f, 59999);
    TEST_ASSERT_EQUAL_UINT64(0, fix_lease(&f, 0));
    fix_pass(&f, 1);
    TEST_ASSERT_FALSE(fix_all_held(&f, QUEUE_HOLD_GLOBAL));
    TEST_ASSERT_NOT_EQUAL(0, fix_lease(&f, 0));
}

/* The schedule's hold, and its end by the schedule or by the user. */
static void test_schedule(void)
{
    fix_open(&f, 1);
    fix_op(&f, COORD_SCHEDULE, 1);
    fix_add(&f, "a", "x.rar:1");
    TEST_ASSERT_EQUAL_UINT64(0, fix_lease(&f, 0));
    fix_op(&f, COORD_SCHEDULE, 0);
    TEST_ASSERT_NOT_EQUAL(0, fix_lease(&f, 0));
    fix_op(&f, COORD_SCHEDULE, 1);
    fix_op(&f, COORD_RESUME, 0);
    TEST_ASSERT_FALSE(fix_all_held(&f, QUEUE_HOLD_SCHEDULE));
}

/* The pause and the schedule survive a restart; holds that belonged to the old life do not. */
static void test_holds_after_a_restart(void)
{
    fix_prepare(&f, 1);
    f.limits.disk_min_bytes = 1000;
    fix_start(&f);
    fix_op(&f, COORD_PAUSE, 0);
    fix_disk(&f, COORD_EV_SPACE, (struct coord_disk){.free_bytes = 1});
    TEST_ASSERT_TRUE(fix_all_held(&f, QUEUE_HOLD_DISK));
    fix_crash(&f);
    TEST_ASSERT_TRUE(fix_all_held(&f, QUEUE_HOLD_GLOBAL));
    TEST_ASSERT_FALSE(fix_all_held(&f, QUEUE_HOLD_DISK));
    TEST_ASSERT_EQUAL_HEX32(QUEUE_HOLD_BIT(QUEUE_HOLD_GLOBAL), f.q->holds);
}

/* A young post waits for the propagation delay, bounded also when its date is in the future. */
static void test_propagation(void)
{
    fix_prepare(&f, 1);
    f.now.wall_ms = INT64_C(1700000000000) - 50000; /* posted in 50 s */
    f.limits.propagation_sec = 100;
    fix_start(&f);
    uint32_t job = fix_add(&f, "a", "x.rar:1");
    TEST_ASSERT_TRUE(fix_held(&f, job, QUEUE_HOLD_PROPAGATION));
    fix_pass(&f, 99000);
    TEST_ASSERT_EQUAL_UINT64(0, fix_lease(&f, 0));
    fix_pass(&f, 1000);
    TEST_ASSERT_FALSE(fix_held(&f, job, QUEUE_HOLD_PROPAGATION));
    TEST_ASSERT_NOT_EQUAL(0, fix_lease(&f, 0));
}

/* PASSWORD: held in processing until the user gives one, then tried again. */
static void test_password(void)
{
    fix_open(&f, 1);
    uint32_t job = fix_add(&f, "a", "x.rar:1");
    fix_answer_all(&f, COORD_OK);
    fix_post(&f, job, COORD_PASSWORD, 0);
    TEST_ASSERT_TRUE(fix_held(&f, job, QUEUE_HOLD_PASSWORD));
    fix_forget(&f);
    fix_edit(&f, QUEUE_EDIT_GROUP_SET_PARAMETER, job, 0, "*Unpack:Password=x");
    TEST_ASSERT_FALSE(fix_held(&f, job, QUEUE_HOLD_PASSWORD));
    TEST_ASSERT_EQUAL_UINT(1, fix_count(&f, COORD_FX_POST_START));
}

/* The disk guard: below the least nothing is fetched; a sixteenth more brings it back (no flapping). */
static void test_disk_guard(void)
{
    fix_prepare(&f, 1);
    f.limits.disk_min_bytes = 16000;
    fix_start(&f);
    fix_disk(&f, COORD_EV_SPACE, (struct coord_disk){.free_bytes = 15999});
    fix_add_with(&f, "a", "x.rar:1", (struct queue_add){.priority = QUEUE_FORCE}, NULL);
    TEST_ASSERT_EQUAL_UINT64(0, fix_lease(&f, 0));
    fix_disk(&f, COORD_EV_SPACE, (struct coord_disk){.free_bytes = 16500});
    TEST_ASSERT_TRUE(fix_all_held(&f, QUEUE_HOLD_DISK));
    fix_disk(&f, COORD_EV_SPACE, (struct coord_disk){.free_bytes = 17000});
    TEST_ASSERT_FALSE(fix_all_held(&f, QUEUE_HOLD_DISK));
    TEST_ASSERT_NOT_EQUAL(0, fix_lease(&f, 0));
}

/* ---- quota and speed ---- */

/* The quota stops within one article, counts what is under way, lets Force through, and opens with the day. */
static void test_daily_quota(void)
{
    fix_prepare(&f, 1);
    f.servers[0].connections = 8;
    f.limits.quota_day = 2500;
    fix_start(&f);
    fix_add(&f, "a", "x.rar:9");
    TEST_ASSERT_EQUAL_UINT(3, fix_leases(&f)); /* 1000 each: the third goes over by less than one */
    fix_answer_all(&f, COORD_OK);
    TEST_ASSERT_TRUE(fix_all_held(&f, QUEUE_HOLD_QUOTA));
    TEST_ASSERT_EQUAL_UINT64(3000, coord_status(f.c).day_bytes);
    fix_add_with(&f, "b", "y.rar:1", (struct queue_add){.priority = QUEUE_FORCE}, NULL);
    TEST_ASSERT_EQUAL_UINT(1, fix_leases(&f));
    fix_answer_all(&f, COORD_OK);
    f.now.wall_ms += 86400000;
    fix_pass(&f, 61000);
    TEST_ASSERT_FALSE(fix_all_held(&f, QUEUE_HOLD_QUOTA));
    TEST_ASSERT_EQUAL_UINT(3, fix_leases(&f));
}

/* The month begins on its start day; a clock that goes back begins nothing new. */
static void test_monthly_quota_and_start_day(void)
{
    fix_prepare(&f, 1);
    f.now.wall_ms = INT64_C(1709164800000); /* 2024-02-29 00:00 UTC */
    f.limits.quota_month = 1000;
    f.limits.quota_start_day = 30; /* in February: the last day */
    fix_start(&f);
    fix_add(&f, "a", "x.rar:9");
    fix_answer_all(&f, COORD_OK);
    TEST_ASSERT_TRUE(fix_all_held(&f, QUEUE_HOLD_QUOTA));
    f.now.wall_ms -= INT64_C(40) * 86400000;
    fix_pass(&f, 61000);
    TEST_ASSERT_TRUE(fix_all_held(&f, QUEUE_HOLD_QUOTA));
    f.now.wall_ms = INT64_C(1711670400000); /* 03-29 */
    f.c->month = 2024 * 12 + 2;
    fix_pass(&f, 61000);
    TEST_ASSERT_TRUE(fix_all_held(&f, QUEUE_HOLD_QUOTA));
    f.now.wall_ms = INT64_C(1711756800000); /* 03-30 */
    fix_pass(&f, 61000);
    TEST_ASSERT_FALSE(fix_all_held(&f, QUEUE_HOLD_QUOTA));
}

/* The limit is passed on, changed live, and bounds what is under way to five seconds' worth. */
static void test_speed_limit(void)
{
    fix_prepare(&f, 1);
    f.servers[0].connections = 20;
    f.limits.rate = 1000;
    fix_start(&f);
    TEST_ASSERT_EQUAL_UINT64(1000, fix_last(&f, COORD_FX_RATE)->fx.bytes);
    fix_add(&f, "a", "x.rar:30");
    TEST_ASSERT_EQUAL_UINT(5, fix_leases(&f));
    fix_op(&f, COORD_RATE, 0);
    TEST_ASSERT_EQUAL_UINT64(0, fix_last(&f, COORD_FX_RATE)->fx.bytes);
    TEST_ASSERT_EQUAL_UINT(20, fix_leases(&f));
}

/* ---- servers ---- */

/* Rest doubles: 2, 4, 8 ... up to 300 s, each time one probe; an answer of any kind brings the server back. */
static void test_backoff_and_single_probe(void)
{
    fix_prepare(&f, 1);
    f.servers[0].connections = 4;
    fix_start(&f);
    fix_add(&f, "a", "x.rar:20");
    fix_answer_all(&f, COORD_CONNECT);
    for (unsigned n = 1; n < 14; n++) {
        TEST_ASSERT_EQUAL(COORD_SERVER_BACKOFF, server(0).state);
        TEST_ASSERT_TRUE(fix_all_held(&f, QUEUE_HOLD_SERVERS_DOWN));
        uint64_t usual = (n < 9 ? UINT64_C(1) << n : 300) * 1000, left = server(0).retry_in_ms;
        TEST_ASSERT_TRUE(left >= (usual < 300000 ? usual : 300000) * 4 / 5 && left <= 300000 &&
                         left <= usual * 6 / 5);
        fix_pass(&f, left);
        TEST_ASSERT_EQUAL(COORD_SERVER_PROBE, server(0).state);
        TEST_ASSERT_EQUAL_UINT(1, fix_leases(&f));
        fix_answer_all(&f, COORD_CONNECT);
    }
    fix_pass(&f, 300000);
    fix_answer(&f, fix_lease(&f, 0), COORD_NOT_FOUND);
    TEST_ASSERT_EQUAL(COORD_SERVER_UP, server(0).state);
    TEST_ASSERT_FALSE(fix_all_held(&f, QUEUE_HOLD_SERVERS_DOWN));
    TEST_ASSERT_EQUAL_UINT(4, fix_leases(&f));
}

/* While one server is probed, its articles go to the others. */
static void test_a_probe_keeps_nobody_waiting(void)
{
    fix_prepare(&f, 2);
    f.servers[1].level = 1;
    fix_start(&f);
    fix_add(&f, "a", "x.rar:9");
    fix_answer(&f, fix_lease(&f, 1), COORD_CONNECT);
    fix_pass(&f, 3000);
    TEST_ASSERT_EQUAL(COORD_SERVER_PROBE, server(0).state);
    fix_answer(&f, fix_lease(&f, 2), COORD_OK);
    TEST_ASSERT_NOT_EQUAL(0, fix_lease(&f, 2));
}

/* 481, expired, certificate, cipher: disabled with the reason; the last one sets SERVERS_DOWN and fails nothing. */
static void test_permanent_errors_disable_a_server(void)
{
    static const enum coord_code codes[] = {COORD_LOGIN, COORD_EXPIRED, COORD_CERTIFICATE,
                                            COORD_CIPHER};
    for (unsigned i = 0; i < 4; i++) {
        fix_open(&f, 2);
        uint32_t job = fix_add(&f, "a", "x.rar:4");
        fix_answer(&f, fix_lease(&f, 1), codes[i]);
        TEST_ASSERT_EQUAL(COORD_SERVER_DISABLED, server(0).state);
        TEST_ASSERT_EQUAL_STRING(coord_error(codes[i])->text, server(0).why);
        TEST_ASSERT_FALSE(fix_all_held(&f, QUEUE_HOLD_SERVERS_DOWN));
        fix_answer(&f, fix_lease(&f, 2), codes[i]);
        TEST_ASSERT_TRUE(fix_all_held(&f, QUEUE_HOLD_SERVERS_DOWN));
        fix_pass(&f, 3600000);
        TEST_ASSERT_EQUAL_UINT32(0, fix_job(&f, job)->failed_articles);
        fix_op(&f, COORD_SERVER_RESET, 1);
        TEST_ASSERT_NOT_EQUAL(0, fix_lease(&f, 1));
        fix_close(&f);
    }
    f.c = NULL;
}

/* "Too many connections": one fewer for each refusal, one more after 10 min; with the last one the server rests. */
static void test_too_many_connections(void)
{
    fix_prepare(&f, 1);
    f.servers[0].connections = 3;
    fix_start(&f);
    fix_add(&f, "a", "x.rar:20");
    fix_answer(&f, fix_lease(&f, 0), COORD_TOO_MANY);
    fix_answer(&f, fix_lease(&f, 0), COORD_TOO_MANY);
    TEST_ASSERT_EQUAL_UINT8(1, server(0).connections);
    TEST_ASSERT_EQUAL_UINT(1, fix_leases(&f));
    uint64_t lease = fix_lease(&f, 0);
    for (unsigned i = 0; i < 20; i++) {
        fix_pass(&f, 30000 - (i == 19));
        struct coord_event ev = {.type = COORD_EV_PROGRESS, .lease = lease};
        fix_step(&f, &ev);
    }
    TEST_ASSERT_EQUAL_UINT8(1, server(0).connections);
    fix_pass(&f, 1);
    TEST_ASSERT_EQUAL_UINT8(2, server(0).connections);
    fix_answer(&f, fix_lease(&f, 0), COORD_TOO_MANY);
    fix_answer(&f, fix_lease(&f, 0), COORD_TOO_MANY);
    TEST_ASSERT_EQUAL(COORD_SERVER_BACKOFF, server(0).state);
}

/* A block account stops when its volume is used up, counting what is under way. */
static void test_block_account(void)
{
    fix_prepare(&f, 1);
    f.servers[0].connections = 9;
    f.servers[0].volume_limit = 5000;
    f.servers[0].volume_used = 3500;
    fix_start(&f);
    fix_add(&f, "a", "x.rar:9");
    TEST_ASSERT_EQUAL_UINT(2, fix_leases(&f));
    fix_answer_all(&f, COORD_OK);
    TEST_ASSERT_EQUAL(COORD_SERVER_DISABLED, server(0).state);
    TEST_ASSERT_EQUAL_STRING("the volume of this account is used up", server(0).why);
}

/* Credit is connections times depth until the pools say what they want; more than 32 per connection is not given. */
static void test_pipelining_credit(void)
{
    fix_prepare(&f, 1);
    f.servers[0].connections = 2;
    f.servers[0].depth = 3;
    fix_start(&f);
    fix_add(&f, "a", "x.rar:200");
    TEST_ASSERT_EQUAL_UINT(6, fix_leases(&f));
    struct coord_event ev = {.type = COORD_EV_CREDIT, .server = {.id = 1, .credit = 10}};
    fix_step(&f, &ev);
    TEST_ASSERT_EQUAL_UINT(10, fix_leases(&f));
    ev.server.credit = 1000;
    fix_step(&f, &ev);
    TEST_ASSERT_EQUAL_UINT(64, fix_leases(&f));
}

/* Levels, optional, groups, retention: who is asked for what. */
static void test_levels_groups_and_retention(void)
{
    fix_prepare(&f, 3);
    f.servers[1].group = f.servers[2].group = 1;
    f.servers[1].level = f.servers[2].level = 1;
    f.servers[0].retention_days = 5; /* the post is ten days old */
    fix_start(&f);
    uint32_t job = fix_add(&f, "a", "x.rar:1");
    TEST_ASSERT_EQUAL_UINT64(0, fix_lease(&f, 1));
    fix_answer(&f, fix_lease(&f, 0), COORD_NOT_FOUND); /* one of the group answers for both */
    TEST_ASSERT_EQUAL_UINT32(1, fix_job(&f, job)->failed_articles);
}

/* Another list of servers: leases are dropped, articles go on with the new ones, a bad list changes nothing. */
static void test_another_list_of_servers(void)
{
    fix_open(&f, 1);
    fix_add(&f, "a", "x.rar:2");
    struct coord_server list[2] = {f.servers[0], f.servers[0]};
    uint64_t r =
        fix_command(&f, (struct coord_command){.op = COORD_SERVERS, .servers = list, .count = 2});
    TEST_ASSERT_EQUAL(ERR_INVALID, fix_reply(&f, r)->fx.reply.code);
    list[1].id = 2;
    r = fix_command(&f,
                    (struct coord_command){.op = COORD_SERVERS, .servers = &list[1], .count = 1});
    TEST_ASSERT_EQUAL(0, fix_reply(&f, r)->fx.reply.code);
    TEST_ASSERT_NOT_EQUAL(0, fix_lease(&f, 2));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_every_hold_of_a_job);
    RUN_TEST(test_global_pause_force_and_timed);
    RUN_TEST(test_schedule);
    RUN_TEST(test_holds_after_a_restart);
    RUN_TEST(test_propagation);
    RUN_TEST(test_password);
    RUN_TEST(test_disk_guard);
    RUN_TEST(test_daily_quota);
    RUN_TEST(test_monthly_quota_and_start_day);
    RUN_TEST(test_speed_limit);
    RUN_TEST(test_backoff_and_single_probe);
    RUN_TEST(test_a_probe_keeps_nobody_waiting);
    RUN_TEST(test_permanent_errors_disable_a_server);
    RUN_TEST(test_too_many_connections);
    RUN_TEST(test_block_account);
    RUN_TEST(test_pipelining_credit);
    RUN_TEST(test_levels_groups_and_retention);
    RUN_TEST(test_another_list_of_servers);
    return UNITY_END();
}
