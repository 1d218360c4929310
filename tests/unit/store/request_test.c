/* The store behind its inbox: answers after the commit, changes together, bounded, nothing lost at the end. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <unity.h>
#include <uv.h>

#include "fixture.h"
#include "store/request.h"

static struct dir dir;
static struct store_actor *actor;
static struct store_report report;
static uv_sem_t answered;

void setUp(void)
{
    struct err e = {0};
    if (access("/dev/shm", W_OK) == 0) {
        setenv("TMPDIR", "/dev/shm", 0);
    }
    dir_make(&dir);
    uv_sem_init(&answered, 0);
    struct store_actor_options o = {
        .open = {.dir = dir.path, .fs = &fsx_kernel, .job_type = test_job_type},
        .clock = &clock_system,
        .keep = {7, 30, 30}};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, store_actor_start(&actor, &o, &report, &e), e.msg);
}

static void stop(void)
{
    struct err e = {0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, store_actor_stop(actor, &e), e.msg);
    store_actor_free(actor);
    actor = NULL;
}

void tearDown(void)
{
    if (actor != NULL) {
        stop();
    }
    uv_sem_destroy(&answered);
    dir_remove(&dir);
}

static void on_done(struct store_request *r)
{
    (void)r;
    uv_sem_post(&answered);
}

static void ask(struct store_request *r)
{
    r->done = on_done;
    TEST_ASSERT_EQUAL_INT(0, store_post(actor, r));
    uv_sem_wait(&answered);
}

static struct store_request *add(uint32_t id)
{
    struct store_request *r = store_request_new(STORE_OP_JOB_ADD);
    char name[32];
    snprintf(name, sizeof(name), "job %u", id);
    r->in.job_add = (struct store_job_new){.id = id, .name = store_request_text(r, name)};
    return r;
}

/* Every kind of request is answered through the inbox with what its function gives; refusals come back as refusals. */
static void test_every_request_is_answered(void)
{
    struct store_request *r = add(1);
    ask(r);
    TEST_ASSERT_EQUAL_INT(0, r->code);
    TEST_ASSERT_EQUAL_UINT32(1, r->out.job_made.id);
    store_request_free(r);
    static const enum store_state way[] = {STORE_QUEUED, STORE_DOWNLOADING, STORE_PROCESSING};
    for (int i = 0; i < 3; i++) {
        r = store_request_new(STORE_OP_JOB_MOVE);
        r->in.job_move = (struct store_move){.job = 1, .to = way[i]};
        ask(r);
        TEST_ASSERT_EQUAL_INT(0, r->code);
        TEST_ASSERT_EQUAL_UINT64((uint64_t)i + 2, r->out.job_moved.row_version);
        store_request_free(r);
    }
    for (int op = 0; op < STORE_OPS; op++) { /* with empty arguments: an answer, never a crash */
        r = store_request_new((enum store_op)op);
        ask(r);
        TEST_ASSERT_TRUE(r->code == 0 || r->err.msg[0] != '\0');
        store_request_free(r);
    }
    r = store_request_new(STORE_OP_JOB_MOVE);
    r->in.job_move = (struct store_move){.job = 1, .to = STORE_CLEANED};
    ask(r);
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, r->code);
    TEST_ASSERT_EQUAL_STRING("job 1: processing may not become cleaned", r->err.msg);
    store_request_free(r);
    r = store_request_new(STORE_OP_EXPLAIN);
    r->in.explain.job = 1;
    ask(r);
    TEST_ASSERT_EQUAL_STRING("processing", r->out.explain.cause);
    store_request_free(r);
    r = store_request_new(STORE_OP_EVENT_LIST);
    r->in.event_list.filter.job = 1;
    ask(r);
    TEST_ASSERT_EQUAL_UINT(5, r->out.page.count);
    store_request_free(r);
}

/* Answers are taken in order; a question sees what its sender changed before. */
enum { MANY = 2000, SENDERS = 4 };
static atomic_uint ok_count, seen_count;

static void count_done(struct store_request *r)
{
    if (r->op == STORE_OP_JOB_ADD) {
        atomic_fetch_add(&ok_count, r->code == 0);
    } else {
        atomic_fetch_add(&seen_count, r->code == 0);
    }
    store_request_free(r);
}

static void post(struct store_request *r)
{
    int rv;
    r->done = count_done;
    while ((rv = store_post(actor, r)) == ERR_FULL) {
        sched_yield(); /* not taken: still ours */
    }
    TEST_ASSERT_EQUAL_INT(0, rv);
}

static void sender(void *arg)
{
    uint32_t base = *(uint32_t *)arg;
    for (uint32_t i = 0; i < MANY / SENDERS; i++) {
        post(add(base + i));
        if (i % 16 == 0) {
            struct store_request *r = store_request_new(STORE_OP_JOB_GET);
            r->in.job = base + i;
            post(r);
        }
    }
}

static void test_many_senders(void)
{
    uv_thread_t threads[SENDERS];
    uint32_t bases[SENDERS];
    atomic_store(&ok_count, 0);
    atomic_store(&seen_count, 0);
    for (uint32_t i = 0; i < SENDERS; i++) {
        bases[i] = 1 + i * 100000;
        uv_thread_create(&threads[i], sender, &bases[i]);
    }
    for (int i = 0; i < SENDERS; i++) {
        uv_thread_join(&threads[i]);
    }
    stop(); /* what was taken is answered before it ends */
    TEST_ASSERT_EQUAL_UINT(MANY, atomic_load(&ok_count));
    TEST_ASSERT_EQUAL_UINT(SENDERS * ((MANY / SENDERS + 15) / 16), atomic_load(&seen_count));
}

/* In one batch a refused change does not take the others with it. */
static void test_refusal_in_a_batch(void)
{
    atomic_store(&ok_count, 0);
    for (uint32_t i = 0; i < 100; i++) {
        post(add(1 + i / 2)); /* every second one exists already */
    }
    stop();
    TEST_ASSERT_EQUAL_UINT(50, atomic_load(&ok_count));
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static atomic_uint failed_count;
static atomic_int failed_code;

static void note_failure(struct store_request *r)
{
    if (r->code != 0) {
        atomic_fetch_add(&failed_count, 1);
        atomic_store(&failed_code, r->code);
    } else {
        atomic_fetch_add(&ok_count, 1);
    }
    store_request_free(r);
}

/* When the disk takes no more, changes are answered with the error and did not happen; questions are still answered;
 * when there is room again, it goes on. What was answered with success is all there. */
static void test_no_room_on_the_disk(void)
{
    atomic_store(&ok_count, 0);
    atomic_store(&failed_count, 0);
    limit_files(600 * 1024); /* EFBIG, as a disk that is full: refused by write() */
    for (uint32_t i = 0; i < 2000; i++) {
        struct store_request *r = add(1 + i);
        r->done = note_failure;
        while (store_post(actor, r) == ERR_FULL) {
            sched_yield();
        }
    }
    struct store_request *r = store_request_new(STORE_OP_JOB_COUNTS);
    ask(r);
    unsigned ok = atomic_load(&ok_count), failed = atomic_load(&failed_count);
    printf("%u added, %u refused: %s\n", ok, failed, err_name(atomic_load(&failed_code)));
    TEST_ASSERT_EQUAL_UINT(2000, ok + failed);
    TEST_ASSERT_GREATER_THAN_UINT(0, failed);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r->code, r->err.msg);
    TEST_ASSERT_EQUAL_INT64(ok, r->out.counts[STORE_CREATED]);
    store_request_free(r);
    limit_files(RLIM_INFINITY);
    r = add(100000);
    ask(r);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r->code, r->err.msg);
    store_request_free(r);
}

/* A request that nobody waits for is done and freed. */
static void test_without_an_answer(void)
{
    TEST_ASSERT_EQUAL_INT(0, store_post(actor, add(1)));
    struct store_request *r = store_request_new(STORE_OP_JOB_GET);
    r->in.job = 1;
    ask(r);
    TEST_ASSERT_EQUAL_INT(0, r->code);
    store_request_free(r);
}

/* Where it cannot open its database the actor does not start, and says why. */
static void test_start_fails(void)
{
    struct store_actor *other;
    struct err e = {0};
    struct store_actor_options o = {
        .open = {.dir = "/nowhere/at/all", .fs = &fsx_kernel, .job_type = test_job_type},
        .clock = &clock_system};
    TEST_ASSERT_EQUAL_INT(-ENOENT, store_actor_start(&other, &o, NULL, &e));
    TEST_ASSERT_NOT_NULL(strstr(e.msg, "/nowhere/at/all"));
}

int main(void)
{
    signal(SIGXFSZ, SIG_IGN);
    UNITY_BEGIN();
    RUN_TEST(test_every_request_is_answered);
    RUN_TEST(test_many_senders);
    RUN_TEST(test_refusal_in_a_batch);
    RUN_TEST(test_no_room_on_the_disk);
    RUN_TEST(test_without_an_answer);
    RUN_TEST(test_start_fails);
    return UNITY_END();
}
