/* The table as a file, NZBGet's own file, and a file with other values written into it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/redact.h"
#include "config/config.h"
#include "lib/fault.h"
#include "unity.h"

static const char *const env[] = {"HOME=/home/u", NULL};

void setUp(void) {}

void tearDown(void)
{
    redact_forget();
}

static struct config *load(const char *text, size_t len)
{
    struct config_input in = {.file = "t.conf", .text = text, .text_len = len, .env = env};
    struct config *c = NULL;
    struct err e = {.code = 0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, config_load(&in, &c, &e), e.msg);
    return c;
}

static void must_be_clean(const struct config *c)
{
    for (size_t i = 0; i < c->problems_count; i++) {
        char text[2048];
        config_problem_text(c, &c->problems[i], text, sizeof(text));
        TEST_FAIL_MESSAGE(text);
    }
}

static char *sample(size_t *len)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, len);
    TEST_ASSERT_EQUAL_INT(0, config_sample(f));
    fclose(f);
    return text;
}

/* The sample file is without a fault, sets every option that stands alone, and changes nothing. */
static void test_sample_is_the_defaults(void)
{
    size_t len;
    char *text = sample(&len);
    struct config *c = load(text, len), *defaults = load("", 0);
    must_be_clean(c);
    TEST_ASSERT_EQUAL_UINT64(0, config_diff(defaults, c, NULL, NULL));
    for (size_t i = 0; i < c->entries_count; i++) {
        const struct config_entry *e = &c->entries[i];
        if (e->option != NULL && !(e->option->flags & CONFIG_UNSET)) {
            TEST_ASSERT_EQUAL_INT_MESSAGE(CONFIG_FROM_FILE, e->from, e->name);
        }
    }
    config_free(c);
    config_free(defaults);
    free(text);
}

/* With the numbered options switched on as well, every row of the table takes its own default. */
static void test_sample_of_groups(void)
{
    size_t len, n = 0;
    char *text = sample(&len);
    char *live = mem_alloc(len + 256);
    for (const char *line = text; *line != '\0';) {
        size_t end = strcspn(line, "\n") + 1;
        bool off = line[0] == '#' && line[1] != ' ' && line[1] != '#' && line[1] != '\n';
        memcpy(live + n, line + off, end - off);
        n += end - off;
        line += end;
    }
    n += (size_t)sprintf(live + n, "Server1.Host=h\nCategory1.Name=c\nFeed1.URL=http://f\n"
                                   "Task1.Time=1:00\n");
    struct config *c = load(live, n);
    TEST_ASSERT_EQUAL_UINT64(0, c->errors_count);
    TEST_ASSERT_EQUAL_UINT64(4, c->problems_count); /* the four lines above come second */
    TEST_ASSERT_EQUAL_UINT64(1, c->servers_count);
    TEST_ASSERT_EQUAL_UINT64(1, c->categories_count);
    TEST_ASSERT_EQUAL_UINT64(1, c->feeds_count);
    TEST_ASSERT_EQUAL_UINT64(1, c->tasks_count);
    config_free(c);
    mem_free(live);
    free(text);
}

/* Every row has help and a default, no name is there twice, and no line of the sample is too wide. */
static void test_table_is_complete(void)
{
    size_t rows = 0, len;
    for (const struct config_section *s = config_sections; s->title != NULL; s++) {
        const struct config_option *o =
            s->group == CONFIG_GLOBAL ? s->options : config_group_options(s->group);
        for (; o->name != NULL; o++, rows++) {
            struct config_name n;
            char near[CONFIG_NAME_MAX], name[CONFIG_NAME_MAX];
            TEST_ASSERT_TRUE_MESSAGE(o->help != NULL && o->preset != NULL, o->name);
            TEST_ASSERT_TRUE_MESSAGE(o->help[strlen(o->help) - 1] != '.', o->name);
            TEST_ASSERT_TRUE_MESSAGE(
                (o->field == CONFIG_NO_FIELD) == ((o->flags & CONFIG_NO_EFFECT) != 0), o->name);
            snprintf(name, sizeof(name), "%s%s%s", config_group_name(s->group),
                     s->group != CONFIG_GLOBAL ? "1." : "", o->name);
            TEST_ASSERT_TRUE_MESSAGE(config_resolve(name, strlen(name), &n, near), name);
            TEST_ASSERT_EQUAL_PTR_MESSAGE(o, n.option,
                                          name); /* the first of that name is this one */
        }
    }
    TEST_ASSERT_TRUE(rows > 140);
    char *text = sample(&len);
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        TEST_ASSERT_TRUE_MESSAGE(line[0] != '#' || strcspn(line, "\n") <= 100, line);
    }
    free(text);
}

/* An old name leads to an option of today, or nowhere; never to another old name. */
static void test_old_names(void)
{
    for (const struct config_old_name *o = config_old_names; o->name != NULL; o++) {
        struct config_name n;
        char name[CONFIG_NAME_MAX], near[CONFIG_NAME_MAX];
        snprintf(name, sizeof(name), "%s%s%s", config_group_name(o->group),
                 o->group != CONFIG_GLOBAL ? "7." : "", o->name);
        TEST_ASSERT_TRUE_MESSAGE(config_resolve(name, strlen(name), &n, near), name);
        TEST_ASSERT_EQUAL_PTR_MESSAGE(o, n.old, name);
        TEST_ASSERT_EQUAL_INT_MESSAGE(o->now != NULL, n.option != NULL, name);
    }
}

/* NZBGet's own file is read without an error, and says what it says there. */
static void test_nzbget_file(void)
{
    struct config_input in = {.file = TEST_DATA_DIR "/config/nzbget21.conf", .env = env};
    struct config *c = NULL;
    struct err e = {.code = 0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, config_load(&in, &c, &e), e.msg);
    TEST_ASSERT_EQUAL_UINT64(0, c->errors_count);
    for (size_t i = 0; i < c->entries_count; i++) {
        TEST_ASSERT_FALSE_MESSAGE(c->entries[i].unknown, c->entries[i].name);
    }
    TEST_ASSERT_EQUAL_UINT64(4, c->categories_count);
    TEST_ASSERT_EQUAL_STRING("/home/u/downloads/dst/Series", c->categories[1].dest_dir);
    TEST_ASSERT_EQUAL_UINT64(1, c->servers_count);
    TEST_ASSERT_EQUAL_STRING("my.newsserver.com", c->servers[0].host);
    TEST_ASSERT_FALSE(c->servers[0].encryption);
    TEST_ASSERT_EQUAL_INT64(4, c->servers[0].connections);
    TEST_ASSERT_EQUAL_INT(0, config_may_listen(c, &e));
    config_free(c);
}

static char *rewrite(const char *text, const struct config_pair *pairs, size_t count)
{
    char *out = NULL;
    size_t len;
    struct err e = {.code = 0};
    TEST_ASSERT_EQUAL_INT(0, config_rewrite(text, strlen(text), pairs, count, &out, &len, &e));
    TEST_ASSERT_EQUAL_UINT64(strlen(out), len);
    return out;
}

/* Saved values go to the lines of the old ones; comments stay, what was left out goes, what is new is added; masked
 * secrets and programs to run stay as the file has them. */
static void test_rewrite(void)
{
    static const char text[] = "# mine\n\n  DestDir =/old\r\n#DestDir=/commented\nunpack=yes\n"
                               "Server1.Password= pa55 \nUnrarCmd=/opt/unrar\nRetries=3\n"
                               "KeepHistory=1\nKeepHistory=2\nSome:Token=abc\nno equals sign";
    static const struct config_pair pairs[] = {
        {"destdir", "/new"},      {"Server1.Password", "***"}, {"UnrarCmd", "/opt/unrar"},
        {"SevenZipCmd", "7z"},    {"ArticleRetries", "9"},     {"KeepHistory", "30"},
        {"Some:Token", "***"},    {"Category1.Name", "TV"},    {"AddPassword", "new one"},
        {"AddPassword", "newer"},
    };
    char *out = rewrite(text, pairs, sizeof(pairs) / sizeof(pairs[0]));
    TEST_ASSERT_EQUAL_STRING("# mine\n\nDestDir=/new\n#DestDir=/commented\n"
                             "Server1.Password= pa55 \nUnrarCmd=/opt/unrar\nArticleRetries=9\n"
                             "KeepHistory=30\nSome:Token=abc\nno equals sign\n"
                             "SevenZipCmd=7z\nCategory1.Name=TV\nAddPassword=newer\n",
                             out);
    mem_free(out);
    for (unsigned k = 1;; k++) {
        struct err e = {.code = 0};
        size_t len;
        out = NULL;
        fault_arm(k);
        int rv = config_rewrite(text, strlen(text), pairs, 4, &out, &len, &e);
        bool fired = fault_fired();
        fault_disarm();
        TEST_ASSERT_EQUAL_INT(fired ? -ENOMEM : 0, rv);
        TEST_ASSERT_EQUAL_INT(fired, out == NULL);
        mem_free(out);
        redact_forget();
        if (!fired) {
            break;
        }
    }
    out = rewrite("", NULL, 0);
    TEST_ASSERT_EQUAL_STRING("", out);
    mem_free(out);
}

/* A client cannot name a program to run: not as a tool, not as a place of scripts, not as a scheduled process. It may
 * leave what is there, and remove a task. */
static void test_rewrite_refuses_programs(void)
{
    static const char text[] = "UnrarCmd= /opt/unrar\nTask1.Time=1:00\nTask1.Command=process\n"
                               "Task1.Param=/bin/true\nTask2.Time=2:00\nTask2.Command=Pause\n";
    static const struct {
        struct config_pair pairs[2];
        int rv;
    } rows[] = {
        {{{"UnrarCmd", "/opt/unrar"}, {"Task1.Time", "3:00"}}, 0},
        {{{"UnrarCmd", "/tmp/evil"}, {"Unpack", "yes"}}, ERR_UNSAFE},
        {{{"Unpack", "yes"}, {"sevenzipcmd", "evil"}}, ERR_UNSAFE},
        {{{"ScriptDir", "/tmp"}, {"Unpack", "yes"}}, ERR_UNSAFE},
        {{{"Task1.Command", "process"}, {"Task1.Param", "/bin/true"}}, 0},
        {{{"Task3.Command", "Process"}, {"Task3.Time", "*"}}, 0}, /* without a program neither */
        {{{"Task2.Command", "Rate"}, {"Task2.Param", "100"}}, 0},
        {{{"Task2.Command", "${X:y}"}, {"X:y", "Process"}}, 0}, /* without a time it is no task */
        {{{"MainDir", "/tmp"}, {"Unpack", "yes"}}, ERR_UNSAFE}, /* takes ScriptDir with it */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *out = NULL;
        size_t len;
        struct err e = {.code = 0};
        TEST_ASSERT_EQUAL_INT_MESSAGE(
            rows[i].rv, config_rewrite(text, strlen(text), rows[i].pairs, 2, &out, &len, &e),
            rows[i].pairs[1].value);
        TEST_ASSERT_TRUE(out == NULL || strstr(out, "evil") == NULL);
        TEST_ASSERT_TRUE(out == NULL || strstr(out, "/opt/unrar\n") != NULL);
        mem_free(out);
    }
}

/* The same for tasks, which need more than two options; a variable is no way around it. */
static void test_rewrite_refuses_processes(void)
{
    static const char text[] = "Task1.Time=1:00\nTask1.Command=process\nTask1.Param=/bin/true\n";
    static const struct {
        struct config_pair pairs[4];
        int rv;
    } rows[] = {
        {{{"Task1.Time", "2:00"},
          {"Task1.Command", "Process"},
          {"Task1.Param", "/bin/true"},
          {"X:y", ""}},
         0},
        {{{"Task1.Time", "1:00"},
          {"Task1.Command", "process"},
          {"Task1.Param", "/bin/evil"},
          {"X:y", ""}},
         ERR_UNSAFE},
        {{{"Task1.Time", "1:00"},
          {"Task1.Command", "process"},
          {"Task1.Process", "/bin/evil"},
          {"X:y", ""}},
         ERR_UNSAFE},
        {{{"Task2.Time", "1:00"},
          {"Task2.Command", " PROCESS "},
          {"Task2.Param", "/bin/true"},
          {"X:y", ""}},
         ERR_UNSAFE},
        {{{"Task2.Time", "1:00"},
          {"Task2.Command", "${X:y}"},
          {"Task2.Param", "evil"},
          {"X:y", "Process"}},
         ERR_UNSAFE},
        {{{"Task1.Time", "1:00"}, {"Task1.Command", "Pause"}, {"Task1.Param", ""}, {"X:y", ""}}, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *out = NULL;
        size_t len;
        struct err e = {.code = 0};
        TEST_ASSERT_EQUAL_INT(rows[i].rv,
                              config_rewrite(text, strlen(text), rows[i].pairs, 4, &out, &len, &e));
        mem_free(out);
    }
}

/* No value can bring in a line of its own. */
static void test_rewrite_refuses_lines(void)
{
    static const struct config_pair wrong[] = {{"DestDir", "/x\nUnrarCmd=evil"},
                                               {"DestDir", "/x\rUnrarCmd=evil"},
                                               {"DestDir=/x\nUnrarCmd", "evil"},
                                               {"", "x"},
                                               {"#DestDir", "x"}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char *out = NULL;
        size_t len;
        struct err e = {.code = 0};
        TEST_ASSERT_EQUAL_INT(ERR_INVALID, config_rewrite("", 0, &wrong[i], 1, &out, &len, &e));
        TEST_ASSERT_NULL(out);
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_sample_is_the_defaults);
    RUN_TEST(test_sample_of_groups);
    RUN_TEST(test_table_is_complete);
    RUN_TEST(test_old_names);
    RUN_TEST(test_nzbget_file);
    RUN_TEST(test_rewrite);
    RUN_TEST(test_rewrite_refuses_programs);
    RUN_TEST(test_rewrite_refuses_processes);
    RUN_TEST(test_rewrite_refuses_lines);
    return UNITY_END();
}
