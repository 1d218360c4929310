#include <string.h>
#include <unity.h>

#include "base/timer.h"
#include "lib/rng.h"

void setUp(void) {}
void tearDown(void) {}

/* Timers come out by deadline, and in the order of setting where deadlines are equal. */
static void test_earliest_first_and_fair(void)
{
    struct timers t;
    timers_init(&t);
    TEST_ASSERT_EQUAL(0, timers_reserve(&t, 4));
    struct timer a = {0}, b = {0}, c = {0};
    TEST_ASSERT_EQUAL_UINT64(TIMER_NEVER, timers_next_ms(&t));
    timer_set(&t, &a, 20);
    timer_set(&t, &b, 10);
    timer_set(&t, &c, 20);
    TEST_ASSERT_EQUAL_UINT64(10, timers_next_ms(&t));
    TEST_ASSERT_NULL(timers_pop(&t, 9));
    TEST_ASSERT_EQUAL_PTR(&b, timers_pop(&t, 30));
    TEST_ASSERT_EQUAL_PTR(&a, timers_pop(&t, 30));
    TEST_ASSERT_EQUAL_PTR(&c, timers_pop(&t, 30));
    TEST_ASSERT_NULL(timers_pop(&t, 30));
    timer_set(&t, &a, TIMER_NEVER);
    TEST_ASSERT_FALSE(timer_is_set(&a));
    timers_free(&t);
}

/* Against a plain array: random setting, moving, stopping and popping always yields the earliest. */
static void test_random_against_a_plain_array(void)
{
    enum { N = 300 };
    static struct timer one[N];
    memset(one, 0, sizeof(one));
    struct rng r;
    rng_init(&r, rng_seed(5));
    struct timers t;
    timers_init(&t);
    TEST_ASSERT_EQUAL(0, timers_reserve(&t, N));
    uint64_t now = 0;
    for (int step = 0; step < 20000; step++) {
        struct timer *x = &one[rng_below(&r, N)];
        switch (rng_below(&r, 4)) {
        case 0:
        case 1:
            timer_set(&t, x, now + rng_below(&r, 50));
            break;
        case 2:
            timer_stop(&t, x);
            TEST_ASSERT_FALSE(timer_is_set(x));
            break;
        default:
            now += rng_below(&r, 3);
            for (struct timer *got; (got = timers_pop(&t, now)) != NULL;) {
                TEST_ASSERT_TRUE(got->due_ms <= now);
            }
        }
        uint64_t first = TIMER_NEVER;
        for (int i = 0; i < N; i++) {
            if (timer_is_set(&one[i]) && one[i].due_ms < first) {
                first = one[i].due_ms;
            }
        }
        TEST_ASSERT_EQUAL_UINT64(first, timers_next_ms(&t));
    }
    timers_free(&t);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_earliest_first_and_fair);
    RUN_TEST(test_random_against_a_plain_array);
    return UNITY_END();
}
