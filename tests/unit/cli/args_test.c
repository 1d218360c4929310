/* Arguments are read by the table, and what is wrong with them is said. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "unity.h"

enum { OPT_OUT, OPT_THREADS, OPT_QUIET, OPT_VERBOSE, OPT_SIZE, OPT_BASE };

static const struct cli_option options[] = {
    [OPT_OUT] = {"out", "DIR", "where to", 'o'},
    [OPT_THREADS] = {"threads", "N", "how many", 't'},
    [OPT_QUIET] = {"quiet", NULL, "say less", 'q'},
    [OPT_VERBOSE] = {"verbose", NULL, "say more", 'v'},
    [OPT_SIZE] = {"size", "BYTES", "how much", 0},
    [OPT_BASE] = {NULL, "PATH", "a letter only", 'B'},
    {NULL, NULL, NULL, 0},
};
static const struct cli_command command = {.name = "test", .options = options};

static FILE *kept_stderr;
static char said[4096];
static int real_stderr;

void setUp(void)
{
    kept_stderr = tmpfile();
    real_stderr = dup(STDERR_FILENO);
    fflush(stderr);
    dup2(fileno(kept_stderr), STDERR_FILENO);
}

static const char *read_stderr(void)
{
    fflush(stderr);
    rewind(kept_stderr);
    size_t n = fread(said, 1, sizeof(said) - 1, kept_stderr);
    said[n] = '\0';
    return said;
}

void tearDown(void)
{
    fflush(stderr);
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    fclose(kept_stderr);
}

static struct cli_args args_of(const char *const *argv)
{
    struct cli_args a = {.command = &command, .path = "test", .argv = argv};
    while (argv[a.argc] != NULL) {
        a.argc++;
    }
    return a;
}

#define ARGS(...) args_of((const char *const[]){__VA_ARGS__, NULL})

/* Every spelling of an option and its value is understood, and arguments keep their order among them. */
static void test_all_spellings(void)
{
    struct cli_args a = ARGS("--out", "d1", "--out=d2", "-od3", "-o", "d4", "file", "-qv", "-qt4",
                             "-Bbase", "-B", "base2", "-", "--", "--out", "-q");
    static const struct {
        int got;
        const char *value;
    } want[] = {
        {OPT_OUT, "d1"},    {OPT_OUT, "d2"},    {OPT_OUT, "d3"},     {OPT_OUT, "d4"},
        {CLI_ARG, "file"},  {OPT_QUIET, NULL},  {OPT_VERBOSE, NULL}, {OPT_QUIET, NULL},
        {OPT_THREADS, "4"}, {OPT_BASE, "base"}, {OPT_BASE, "base2"}, {CLI_ARG, "-"},
        {CLI_ARG, "--out"}, {CLI_ARG, "-q"},
    };
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        TEST_ASSERT_EQUAL_INT(want[i].got, cli_next(&a));
        if (want[i].value != NULL) {
            TEST_ASSERT_EQUAL_STRING(want[i].value, a.value);
        }
    }
    TEST_ASSERT_EQUAL_INT(CLI_END, cli_next(&a));
    TEST_ASSERT_EQUAL_INT(CLI_END, cli_next(&a));
    TEST_ASSERT_EQUAL_STRING("", read_stderr());
}

/* A wrong option is named, with the nearest right one and where to read more. */
static void test_wrong_options_are_named(void)
{
    static const struct {
        const char *word;
        const char *said;
    } rows[] = {
        {"--thread", "unknown option '--thread'; did you mean '--threads'?"},
        {"--thraeds=4", "did you mean '--threads'?"},
        {"--frobnicate", "unknown option '--frobnicate'\n"},
        {"-x", "unknown option '-x'"},
        {"--quiet=1", "'--quiet' takes no value"},
        {"--out", "'--out' wants DIR"},
        {"-B", "'-B' wants PATH"},
        {"-t", "'--threads' wants N"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cli_args a = ARGS(rows[i].word);
        TEST_ASSERT_EQUAL_INT(CLI_BAD, cli_next(&a));
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(read_stderr(), rows[i].said), said);
        TEST_ASSERT_NOT_NULL(strstr(said, "weir test: "));
        TEST_ASSERT_NOT_NULL(strstr(said, "Try: weir test --help"));
    }
}

/* Numbers are decimal digits in a range, sizes may have a unit; anything else is refused with the option's name. */
static void test_numbers_and_sizes(void)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t value;
    } sizes[] = {
        {"0", true, 0},
        {"1k", true, 1024},
        {"3M", true, 3 << 20},
        {"2G", true, 2ull << 30},
        {"1T", true, 1ull << 40},
        {"", false, 0},
        {"k", false, 0},
        {"-1", false, 0},
        {"1KB", false, 0},
        {"1.5M", false, 0},
        {"0x10", false, 0},
        {" 1", false, 0},
        {"99999999999999999999", false, 0},
        {"17592186044416M", false, 0},
    };
    uint64_t v;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct cli_args a = ARGS("--size", sizes[i].text);
        TEST_ASSERT_EQUAL_INT(OPT_SIZE, cli_next(&a));
        TEST_ASSERT_EQUAL_INT_MESSAGE(sizes[i].good, cli_size(&a, 0, UINT64_MAX, &v),
                                      sizes[i].text);
        if (sizes[i].good) {
            TEST_ASSERT_EQUAL_UINT64(sizes[i].value, v);
        }
    }
    TEST_ASSERT_NOT_NULL(strstr(read_stderr(), "--size wants a size"));
    struct cli_args a = ARGS("-t", "65", "-t64");
    TEST_ASSERT_EQUAL_INT(OPT_THREADS, cli_next(&a));
    TEST_ASSERT_FALSE(cli_number(&a, 1, 64, &v));
    TEST_ASSERT_NOT_NULL(strstr(read_stderr(), "--threads wants a number from 1 to 64, not '65'"));
    TEST_ASSERT_EQUAL_INT(OPT_THREADS, cli_next(&a));
    TEST_ASSERT_TRUE(cli_number(&a, 1, 64, &v));
    TEST_ASSERT_EQUAL_UINT64(64, v);
}

/* Every row of the real table is complete: a summary, an example, a function or sub-commands, help for each option,
 * no letter or name twice. */
static void check_rows(const struct cli_command *const *table)
{
    for (; *table != NULL; table++) {
        const struct cli_command *c = *table;
        TEST_ASSERT_NOT_NULL_MESSAGE(c->summary, c->name);
        TEST_ASSERT_TRUE_MESSAGE((c->run != NULL) != (c->subs != NULL), c->name);
        if (c->subs != NULL) {
            check_rows(c->subs);
            continue;
        }
        TEST_ASSERT_NOT_NULL_MESSAGE(c->example, c->name);
        for (const struct cli_option *o = c->options; o != NULL && (o->name != NULL || o->letter);
             o++) {
            TEST_ASSERT_NOT_NULL_MESSAGE(o->help, c->name);
            for (const struct cli_option *p = c->options; p < o; p++) {
                TEST_ASSERT_TRUE_MESSAGE(p->letter == 0 || p->letter != o->letter, o->help);
                TEST_ASSERT_TRUE_MESSAGE(!p->name || !o->name || strcmp(p->name, o->name) != 0,
                                         o->help);
            }
        }
    }
}

static void test_the_table_is_complete(void)
{
    check_rows(cli_commands);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_all_spellings);
    RUN_TEST(test_wrong_options_are_named);
    RUN_TEST(test_numbers_and_sizes);
    RUN_TEST(test_the_table_is_complete);
    return UNITY_END();
}
