#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unity.h>

#include "base/buf.h"
#include "lib/fault.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

static struct buf_pool pool;

void setUp(void)
{
    buf_pool_init(&pool, 4 * MIB);
}

void tearDown(void)
{
    buf_pool_close(&pool);
}

/* A buffer that came back is lent again: the steady state allocates nothing. */
static void test_steady_state_allocates_nothing(void)
{
    buf_give(&pool, buf_take(&pool, 700 * KIB, NULL));
    fault_arm(0);
    for (int i = 0; i < 1000; i++) {
        struct buf *b = buf_take(&pool, 700 * KIB + (size_t)i, NULL);
        TEST_ASSERT_NOT_NULL(b);
        TEST_ASSERT_EQUAL_UINT64(0, b->len);
        TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)b->data % 64);
        TEST_ASSERT_TRUE(b->capacity >= 700 * KIB + (size_t)i);
        b->len = 5;
        buf_give(&pool, b);
    }
    unsigned allocations = fault_count();
    fault_disarm();
    TEST_ASSERT_EQUAL_UINT(0, allocations);
}

/* The budget is never crossed; kept buffers of another size make room first. */
static void test_budget_holds(void)
{
    struct buf *small[4];
    for (int i = 0; i < 4; i++) {
        small[i] = buf_take(&pool, MIB, NULL);
        TEST_ASSERT_NOT_NULL(small[i]);
    }
    TEST_ASSERT_NULL(buf_take(&pool, 1, NULL));
    for (int i = 0; i < 4; i++) {
        buf_give(&pool, small[i]);
    }
    struct buf *big = buf_take(&pool, 4 * MIB, NULL); /* needs all four dropped */
    TEST_ASSERT_NOT_NULL(big);
    struct buf_stats s = buf_pool_stats(&pool);
    TEST_ASSERT_EQUAL_UINT64(4 * MIB, s.lent_bytes);
    TEST_ASSERT_EQUAL_UINT64(0, s.kept_bytes);
    TEST_ASSERT_EQUAL_UINT64(4 * MIB, s.peak_bytes);
    buf_give(&pool, big);
    TEST_ASSERT_EQUAL_UINT64(4 * MIB, buf_pool_max(&pool));
}

/* No memory is the same answer as no budget, and leaves the accounts right. */
static void test_failed_allocation(void)
{
    for (unsigned k = 1; k <= 2; k++) {
        fault_arm(k);
        TEST_ASSERT_NULL(buf_take(&pool, MIB, NULL));
        fault_disarm();
        TEST_ASSERT_EQUAL_UINT64(0, buf_pool_stats(&pool).lent_bytes);
    }
}

static void count_call(void *arg)
{
    ++*(int *)arg;
}

/* Whoever found nothing is called after the next give, once; a cancelled one is not. */
static void test_waiters_are_called_once(void)
{
    int first = 0, second = 0;
    struct buf_waiter a, b;
    buf_waiter_init(&a, count_call, &first);
    buf_waiter_init(&b, count_call, &second);
    struct buf *all = buf_take(&pool, 4 * MIB, &a);
    TEST_ASSERT_NOT_NULL(all);
    TEST_ASSERT_NULL(buf_take(&pool, 1, &a));
    TEST_ASSERT_NULL(buf_take(&pool, 1, &a)); /* waits already */
    TEST_ASSERT_NULL(buf_take(&pool, 1, &b));
    buf_wait_cancel(&pool, &b);
    buf_give(&pool, all);
    TEST_ASSERT_EQUAL_INT(1, first);
    TEST_ASSERT_EQUAL_INT(0, second);
    buf_give(&pool, buf_take(&pool, 1, NULL));
    TEST_ASSERT_EQUAL_INT(1, first);
}

enum { THREADS = 4, ROUNDS = 5000 };

static void set_flag(void *arg)
{
    atomic_store((atomic_int *)arg, 1);
}

/* Sleeps on the waiter alone: a missed call would hang the test. */
static void take_and_give(void *arg)
{
    unsigned seed = *(unsigned *)arg;
    atomic_int called;
    atomic_init(&called, 0);
    struct buf_waiter w;
    buf_waiter_init(&w, set_flag, &called);
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 1103515245 + 12345;
        size_t size = (seed >> 8) % (2 * MIB) + 1;
        struct buf *b;
        while ((b = buf_take(&pool, size, &w)) == NULL) {
            while (atomic_exchange(&called, 0) == 0) {
                sched_yield();
            }
        }
        b->data[0] = b->data[size - 1] = (uint8_t)i;
        buf_give(&pool, b);
    }
    buf_wait_cancel(&pool, &w);
}

/* Threads that together want more than there is all get their turn, and the peak stays within the budget. */
static void test_threads_share_the_budget(void)
{
    uv_thread_t threads[THREADS];
    unsigned seeds[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        seeds[i] = i + 1;
        uv_thread_create(&threads[i], take_and_give, &seeds[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        uv_thread_join(&threads[i]);
    }
    struct buf_stats s = buf_pool_stats(&pool);
    TEST_ASSERT_EQUAL_UINT64(0, s.lent_bytes);
    TEST_ASSERT_TRUE(s.peak_bytes <= 4 * MIB);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_steady_state_allocates_nothing);
    RUN_TEST(test_budget_holds);
    RUN_TEST(test_failed_allocation);
    RUN_TEST(test_waiters_are_called_once);
    RUN_TEST(test_threads_share_the_budget);
    return UNITY_END();
}
