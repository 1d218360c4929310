#include <errno.h>
#include <math.h>
#include <string.h>
#include <unity.h>

#include <jansson.h>

#include "base/jsonw.h"
#include "base/utf8.h"

static char out[1 << 20];
static size_t out_len;

void setUp(void)
{
    out_len = 0;
}
void tearDown(void) {}

static int collect(void *arg, const char *bytes, size_t len)
{
    (void)arg;
    TEST_ASSERT_TRUE(out_len + len < sizeof(out));
    memcpy(out + out_len, bytes, len);
    out_len += len;
    out[out_len] = '\0';
    return 0;
}

/* Every kind of value, nested, with commas where they belong. */
static void test_document(void)
{
    struct jsonw j;
    jsonw_init(&j, collect, NULL);
    jsonw_object(&j);
    jsonw_kstr(&j, "name", "a \"b\" \\ \n\x1b");
    jsonw_kint(&j, "min", INT64_MIN);
    jsonw_kuint(&j, "max", UINT64_MAX);
    jsonw_key(&j, "list");
    jsonw_array(&j);
    jsonw_bool(&j, true);
    jsonw_null(&j);
    jsonw_double(&j, 1.5, 2);
    jsonw_double(&j, NAN, 2);
    jsonw_object(&j);
    jsonw_end(&j);
    jsonw_end(&j);
    jsonw_kbool(&j, "last", false);
    jsonw_kstr(&j, "none", NULL);
    jsonw_end(&j);
    TEST_ASSERT_EQUAL_INT(0, jsonw_finish(&j));
    TEST_ASSERT_EQUAL_STRING(
        "{\"name\":\"a \\\"b\\\" \\\\ \\u000a\\u001b\",\"min\":-9223372036854775808,"
        "\"max\":18446744073709551615,\"list\":[true,null,1.50,null,{}],"
        "\"last\":false,\"none\":null}",
        out);
}

/* Any bytes give valid JSON: jansson, which is strict, reads back every random string. */
static void test_any_bytes_are_valid_json(void)
{
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        char bytes[24];
        size_t n = (seed >> 16) % sizeof(bytes);
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1103515245 + 12345;
            bytes[i] = (char)(seed >> 16);
        }
        seed = seed * 1103515245 + 12345;
        out_len = 0;
        struct jsonw j;
        jsonw_init(&j, collect, NULL);
        jsonw_array(&j);
        jsonw_strn(&j, bytes, n);
        jsonw_end(&j);
        jsonw_finish(&j);
        json_error_t error;
        json_t *parsed = json_loadb(out, out_len, JSON_ALLOW_NUL, &error);
        TEST_ASSERT_NOT_NULL_MESSAGE(parsed, error.text);
        json_decref(parsed);
    }
}

/* Text longer than the buffer arrives whole. */
static void test_long_text(void)
{
    static char text[100000];
    memset(text, 'x', sizeof(text) - 1);
    struct jsonw j;
    jsonw_init(&j, collect, NULL);
    jsonw_str(&j, text);
    TEST_ASSERT_EQUAL_INT(0, jsonw_finish(&j));
    TEST_ASSERT_EQUAL_UINT64(sizeof(text) + 1, out_len);
}

static int refuse(void *arg, const char *bytes, size_t len)
{
    (void)bytes;
    (void)len;
    ++*(int *)arg;
    return -EPIPE;
}

/* The first write error sticks, and the callback is not asked again. */
static void test_write_error_sticks(void)
{
    static char text[100000];
    memset(text, 'x', sizeof(text) - 1);
    int calls = 0;
    struct jsonw j;
    jsonw_init(&j, refuse, &calls);
    jsonw_str(&j, text);
    TEST_ASSERT_EQUAL_INT(-EPIPE, jsonw_finish(&j));
    TEST_ASSERT_EQUAL_INT(1, calls);
}

/* The edges of UTF-8: first and last of each length; overlong, surrogates, too large, cut off. */
static void test_utf8_edges(void)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {
        {"\x7f", 1},
        {"\xc2\x80", 2},
        {"\xdf\xbf", 2},
        {"\xe0\xa0\x80", 3},
        {"\xed\x9f\xbf", 3},
        {"\xee\x80\x80", 3},
        {"\xf0\x90\x80\x80", 4},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\x80", 0},
        {"\xc0\x80", 0},
        {"\xc1\xbf", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xed\xa0\x80", 0},
        {"\xed\xbf\xbf", 0},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xff", 0},
        {"\xc3", 0},
        {"\xe2\x82", 0},
        {"\xc3(", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        TEST_ASSERT_EQUAL_UINT64(rows[i].len, utf8_char_len(rows[i].bytes, strlen(rows[i].bytes)));
    }
    TEST_ASSERT_EQUAL_UINT64(0, utf8_char_len("", 0));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_document);
    RUN_TEST(test_any_bytes_are_valid_json);
    RUN_TEST(test_long_text);
    RUN_TEST(test_write_error_sticks);
    RUN_TEST(test_utf8_edges);
    return UNITY_END();
}
