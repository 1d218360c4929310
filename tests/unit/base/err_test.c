#include <errno.h>
#include <string.h>
#include <unity.h>
#include <uv.h>

#include "base/err.h"

void setUp(void) {}
void tearDown(void) {}

/* Every code of the map has its own name and text, and none collides with a system code. */
static void test_map_names_are_complete(void)
{
#define X(name, code, text)                          \
    TEST_ASSERT_EQUAL_STRING(#name, err_name(name)); \
    TEST_ASSERT_EQUAL_STRING(text, err_text(name));  \
    TEST_ASSERT_LESS_THAN_INT(-4096, name);
    ERR_MAP(X)
#undef X
}

/* Codes of libuv and of the kernel pass through with their usual names; unknown ones are said to be so. */
static void test_foreign_codes_are_named(void)
{
    TEST_ASSERT_EQUAL_STRING("ENOSPC", err_name(-ENOSPC));
    TEST_ASSERT_EQUAL_STRING("EOF", err_name(UV_EOF));
    TEST_ASSERT_EQUAL_STRING("EDQUOT", err_name(-EDQUOT)); /* libuv does not know it */
    TEST_ASSERT_EQUAL_STRING("OK", err_name(0));
    TEST_ASSERT_EQUAL_STRING("UNKNOWN", err_name(-123456));
    TEST_ASSERT_EQUAL_STRING("unknown error", err_text(-123456));
}

/* A message gains context on its way up and keeps its code. */
static void test_wrapping_reads_from_the_outside_in(void)
{
    struct err e;
    TEST_ASSERT_EQUAL_INT(-ENOSPC, err_sys(&e, -ENOSPC, "rename"));
    TEST_ASSERT_EQUAL_INT(-ENOSPC, err_wrap(&e, -ENOSPC, "snapshot %d", 7));
    TEST_ASSERT_EQUAL_INT(-ENOSPC, e.code);
    TEST_ASSERT_EQUAL_STRING("snapshot 7: rename: no space left on device", e.msg);
    err_clear(&e);
    TEST_ASSERT_EQUAL_INT(0, e.code);
}

/* A caller that wants only the code passes NULL. */
static void test_null_is_allowed(void)
{
    TEST_ASSERT_EQUAL_INT(ERR_LIMIT, err_set(NULL, ERR_LIMIT, "x"));
    TEST_ASSERT_EQUAL_INT(ERR_LIMIT, err_wrap(NULL, ERR_LIMIT, "x"));
}

/* A message that is too long is cut and stays terminated. */
static void test_long_messages_are_cut(void)
{
    struct err e;
    char big[2 * ERR_MSG_MAX];
    memset(big, 'a', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    err_sys(&e, -EIO, "%s", big);
    TEST_ASSERT_EQUAL_UINT64(ERR_MSG_MAX - 1, strlen(e.msg));
    err_wrap(&e, -EIO, "ctx");
    TEST_ASSERT_EQUAL_UINT64(ERR_MSG_MAX - 1, strlen(e.msg));
    TEST_ASSERT_EQUAL_STRING_LEN("ctx: aaa", e.msg, 8);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_map_names_are_complete);
    RUN_TEST(test_foreign_codes_are_named);
    RUN_TEST(test_wrapping_reads_from_the_outside_in);
    RUN_TEST(test_null_is_allowed);
    RUN_TEST(test_long_messages_are_cut);
    return UNITY_END();
}
