/* The rooms too small for a file of their own: mem, list, cpu, clock. */
#include <stdint.h>
#include <string.h>
#include <unity.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/list.h"
#include "base/mem.h"
#include "lib/fault.h"

void setUp(void) {}
void tearDown(void)
{
    fault_disarm();
}

/* A size that wraps is refused, not rounded to something small. */
static void test_mem_checks_sizes(void)
{
    TEST_ASSERT_NULL(mem_zalloc(SIZE_MAX / 2, 4));
    TEST_ASSERT_NULL(mem_realloc(NULL, SIZE_MAX / 2, 4));
    void *empty = mem_alloc(0);
    TEST_ASSERT_NOT_NULL(empty);
    mem_free(empty);
}

/* Exactly the k-th allocation fails, whichever function makes it. */
static void test_fault_hits_the_kth(void)
{
    fault_arm(3);
    void *a = mem_alloc(1), *b = mem_zalloc(1, 1);
    TEST_ASSERT_FALSE(fault_fired());
    TEST_ASSERT_NULL(mem_strdup("x"));
    TEST_ASSERT_TRUE(fault_fired());
    void *c = mem_aligned(64, 64);
    TEST_ASSERT_NOT_NULL(c);
    TEST_ASSERT_EQUAL_UINT(4, fault_count());
    mem_free(a);
    mem_free(b);
    mem_free(c);
}

/* strndup stops at the terminator and at the limit. */
static void test_mem_strndup(void)
{
    char *s = mem_strndup("weir", 2), *t = mem_strndup("weir", 99);
    TEST_ASSERT_EQUAL_STRING("we", s);
    TEST_ASSERT_EQUAL_STRING("weir", t);
    mem_free(s);
    mem_free(t);
}

struct item {
    int value;
    struct list node;
};

/* Order is kept, removal inside a safe walk works, and a second removal does no harm. */
static void test_list(void)
{
    struct list head;
    struct item items[4];
    list_init(&head);
    TEST_ASSERT_NULL(list_pop_front(&head));
    for (int i = 0; i < 4; i++) {
        items[i].value = i;
        list_push_back(&head, &items[i].node);
    }
    LIST_FOREACH_SAFE (n, &head) {
        struct item *it = LIST_ENTRY(n, struct item, node);
        if (it->value % 2 == 0) {
            list_remove(n);
            list_remove(n);
        }
    }
    list_push_front(&head, &items[2].node);
    int want[] = {2, 1, 3}, i = 0;
    LIST_FOREACH (n, &head) {
        TEST_ASSERT_EQUAL_INT(want[i++], LIST_ENTRY(n, struct item, node)->value);
    }
    TEST_ASSERT_EQUAL_INT(3, i);
}

/* The names say what the bits say; a short buffer cuts them. */
static void test_cpu_names_match_bits(void)
{
    char names[200], cut[4];
    cpu_feature_names(names, sizeof(names));
    TEST_ASSERT_EQUAL_INT((cpu_features() & CPU_AVX2) != 0, strstr(names, "avx2") != NULL);
    TEST_ASSERT_EQUAL_INT((cpu_features() & CPU_NEON) != 0, strstr(names, "neon") != NULL);
    cpu_feature_names(cut, sizeof(cut));
    TEST_ASSERT_EQUAL_STRING_LEN(names, cut, 3);
}

static struct clock_time fixed(void *arg)
{
    return *(struct clock_time *)arg;
}

/* A test's own clock says what the test wants; the system's does not go back. */
static void test_clock_is_a_value(void)
{
    struct clock_time t = {5, -7};
    struct clock c = {fixed, &t};
    TEST_ASSERT_EQUAL_UINT64(5, clock_now(&c).mono_ms);
    TEST_ASSERT_EQUAL_INT64(-7, clock_now(&c).wall_ms);
    struct clock_time before = clock_now(&clock_system), after = clock_now(&clock_system);
    TEST_ASSERT_TRUE(after.mono_ms >= before.mono_ms);
    TEST_ASSERT_TRUE(before.wall_ms > INT64_C(1600000000000));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_mem_checks_sizes);
    RUN_TEST(test_fault_hits_the_kth);
    RUN_TEST(test_mem_strndup);
    RUN_TEST(test_list);
    RUN_TEST(test_cpu_names_match_bits);
    RUN_TEST(test_clock_is_a_value);
    return UNITY_END();
}
