#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "lib/fault.h"
#include "newsd/script.h"

static struct newsd_script script;
static struct err e;

void setUp(void)
{
    newsd_script_init(&script, 7);
    e = (struct err){0};
}

void tearDown(void)
{
    newsd_script_free(&script);
}

static const struct newsd_rule *one(const char *text)
{
    TEST_ASSERT_EQUAL_STRING_MESSAGE("", e.msg, e.msg);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, newsd_script_parse(&script, text, "test", &e), e.msg);
    return &script.rules[script.len - 1];
}

static struct newsd_occasion article(uint32_t part)
{
    return (struct newsd_occasion){.phase = PHASE_ARTICLE,
                                   .conn = 1,
                                   .cmd = "BODY",
                                   .id = "p1.abc@newsd",
                                   .path = "set/dir/name.part1.rar",
                                   .name = "name.part1.rar",
                                   .part = part,
                                   .hit = 1};
}

/* A rule says when, which and what; what it does not say has its usual value. */
static void test_parse_defaults(void)
{
    const struct newsd_rule *r = one("article : reset");
    TEST_ASSERT_EQUAL(PHASE_ARTICLE, r->phase);
    TEST_ASSERT_EQUAL(DELIVER_RESET, r->deliver);
    TEST_ASSERT_EQUAL_UINT64(0, newsd_script_place(&r->after, 5000));
    TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, r->times);
    TEST_ASSERT_EQUAL_UINT(100, r->pct);
    TEST_ASSERT_NULL(r->match);
    TEST_ASSERT_EQUAL_UINT(1, r->line);
}

/* What follows a replaced or changed reply happens when it is sent, unless the rule says where. */
static void test_parse_after(void)
{
    TEST_ASSERT_EQUAL_UINT64(900,
                             newsd_script_place(&one("greet : status 400, close")->after, 900));
    TEST_ASSERT_EQUAL_UINT64(
        3, newsd_script_place(&one("greet : status 400, close after=3")->after, 9));
    TEST_ASSERT_EQUAL_UINT64(0, newsd_script_place(&one("article : damage, drip")->after, 900));
    TEST_ASSERT_EQUAL_UINT64(900,
                             newsd_script_place(&one("article : reset after=all")->after, 900));
    TEST_ASSERT_EQUAL_UINT64(333,
                             newsd_script_place(&one("article : reset after=37%")->after, 900));
    TEST_ASSERT_EQUAL_UINT64(
        UINT64_MAX / 100 * 50 + 7,
        newsd_script_place(&one("article : reset after=50%")->after, UINT64_MAX));
}

/* Quoted texts hold every byte, marks and comment signs among them. */
static void test_parse_text(void)
{
    const struct newsd_rule *r = one(
        "article : send \"a\\0\\xfF:, #\\r\\n\\\"\\\\\", behind \"x\"   # a comment, with: marks");
    TEST_ASSERT_EQUAL_UINT64(11, r->instead.len);
    TEST_ASSERT_EQUAL_MEMORY("a\0\xff:, #\r\n\"\\", r->instead.p, 11);
    TEST_ASSERT_EQUAL_UINT64(1, r->behind.len);
    r = one("auth : status 481 \"no: never\", cut");
    TEST_ASSERT_EQUAL_MEMORY("481 no: never\r\n", r->instead.p, r->instead.len);
    TEST_ASSERT_EQUAL(DELIVER_CUT, r->deliver);
    r = one("auth : status 481");
    TEST_ASSERT_EQUAL_MEMORY("481 authentication failed\r\n", r->instead.p, r->instead.len);
}

/* A pattern may be matched by the message-id, the path or the name; blanks in it need quotes. */
static void test_match_article(void)
{
    static const struct {
        const char *rule;
        bool acts;
    } rows[] = {
        {"article match=*.rar : drop", true},
        {"article match=p1.* : drop", true},
        {"article match=set/* : drop", true},
        {"article match=name.part?.rar : drop", true},
        {"article match=*.par2 : drop", false},
        {"article match=\"* *\" : drop", false},
        {"article part=2 : drop", true},
        {"article part=1 : drop", false},
        {"article part=2- : drop", true},
        {"article part=3-9 : drop", false},
        {"article hit=1 : drop", true},
        {"article hit=2 : drop", false},
        {"article cmd=body : drop", true},
        {"article cmd=STAT : drop", false},
        {"article conn=1 : drop", true},
        {"article conn=2- : drop", false},
        {"article times=0 : drop", false},
        {"article pct=0 : drop", false},
        {"article share=0 : drop", false},
        {"article nth=2 : drop", false},
        {"command : drop", false},
        {"greet : drop", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        newsd_script_free(&script);
        newsd_script_init(&script, 7);
        one(rows[i].rule);
        struct newsd_occasion o = article(2);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].acts, newsd_script_match(&script, &o) != NULL,
                                  rows[i].rule);
    }
}

/* nth counts the occasions that fit, times counts those on which the rule acted; the next rule gets the others. */
static void test_match_counts(void)
{
    one("article part=1 nth=2-4 times=2 : drop\narticle : double");
    unsigned acted = 0;
    for (int i = 0; i < 6; i++) {
        struct newsd_occasion other = article(2), this = article(1);
        TEST_ASSERT_EQUAL_UINT(FAULT_DOUBLE, newsd_script_match(&script, &other)->content);
        acted = acted << 1 | (newsd_script_match(&script, &this)->content == FAULT_DROP);
    }
    TEST_ASSERT_EQUAL_HEX(0x18, acted); /* 011000: the second and third */
}

/* A share is made of the same articles each time; a percentage is chance, and both come from the seed. */
static void test_match_chance(void)
{
    unsigned always = 0, never = 0, mixed = 0, acted = 0;
    one("article part=1 share=30 : drop\narticle part=2 pct=30 : drop");
    for (int i = 0; i < 1000; i++) {
        char id[32];
        snprintf(id, sizeof(id), "%d@x", i);
        unsigned hits = 0;
        for (int k = 0; k < 3; k++) {
            struct newsd_occasion o = article(1);
            o.id = id;
            hits += newsd_script_match(&script, &o) != NULL;
        }
        always += hits == 3;
        never += hits == 0;
        mixed += hits != 0 && hits != 3;
        struct newsd_occasion o = article(2);
        acted += newsd_script_match(&script, &o) != NULL;
    }
    TEST_ASSERT_EQUAL_UINT(0, mixed);
    TEST_ASSERT_UINT_WITHIN(60, 300, always);
    TEST_ASSERT_UINT_WITHIN(60, 700, never);
    TEST_ASSERT_UINT_WITHIN(60, 300, acted);
}

/* Memory that runs out while a script is read is an error, and nothing is lost. */
static void test_parse_without_memory(void)
{
    static const char text[] = "greet : status 400 \"x\", close\n"
                               "article match=a cmd=b : before \"1\", behind \"2\", raw \"3\"\n";
    for (unsigned k = 1;; k++) {
        newsd_script_free(&script);
        newsd_script_init(&script, 1);
        fault_arm(k);
        int rv = newsd_script_parse(&script, text, "test", &e);
        bool fired = fault_fired();
        fault_disarm();
        if (!fired) {
            TEST_ASSERT_EQUAL_INT(0, rv);
            TEST_ASSERT_GREATER_THAN_UINT(5, k);
            break;
        }
        TEST_ASSERT_NOT_EQUAL(0, rv);
        TEST_ASSERT_NOT_EQUAL(0, e.code);
        e = (struct err){0};
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_parse_defaults);
    RUN_TEST(test_parse_after);
    RUN_TEST(test_parse_text);
    RUN_TEST(test_match_article);
    RUN_TEST(test_match_counts);
    RUN_TEST(test_match_chance);
    RUN_TEST(test_parse_without_memory);
    return UNITY_END();
}
