/* The log tells what happened, in order, once, without secrets, and holds nobody up. */
#include "base/log.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/redact.h"
#include "lib/dir.h"
#include "unity.h"

static struct dir d;
static char path[DIR_PATH_MAX + 16];
static atomic_uint_fast64_t mono_ms; /* the writer's thread reads it, too */
static char *text;                   /* what the file holds */

static struct clock_time read_now(void *arg)
{
    (void)arg;
    return (struct clock_time){.mono_ms = mono_ms, .wall_ms = 1795000000123};
}
static const struct clock test_clock = {read_now, NULL};

void setUp(void)
{
    dir_make(&d);
    snprintf(path, sizeof(path), "%s/weir.log", d.path);
    mono_ms = 1000;
    text = NULL;
}

void tearDown(void)
{
    free(text);
    redact_forget();
    dir_remove(&d);
}

static void open_log(enum log_level level, bool json)
{
    struct log_options o = {.path = path, .json = json, .level = level, .clock = &test_clock};
    struct err e = {0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, log_open(&o, &e), e.msg);
}

static const char *read_log(void)
{
    FILE *f = fopen(path, "rb");
    TEST_ASSERT_NOT_NULL(f);
    free(text);
    text = calloc(1, 1 << 20);
    TEST_ASSERT_NOT_NULL(text);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    text[n] = '\0';
    fclose(f);
    return text;
}

static int count(const char *in, const char *what)
{
    int n = 0;
    for (const char *p = in; (p = strstr(p, what)) != NULL; p++) {
        n++;
    }
    return n;
}

/* A line tells when, how bad, which job and what; less urgent ones than asked for are left out; others cannot read
 * the file. */
static void test_lines_have_time_level_and_job(void)
{
    setenv("TZ", "UTC", 1);
    open_log(LOG_INFO, false);
    log_write(LOG_WARNING, 12, "article <%s> not found", "a@b");
    log_info("started");
    log_detail("not asked for");
    log_close();
    TEST_ASSERT_EQUAL_STRING("2026-11-18 11:06:40.123 WARNING [job 12] article <a@b> not found\n"
                             "2026-11-18 11:06:40.123 INFO started\n",
                             read_log());
    struct stat st;
    TEST_ASSERT_EQUAL_INT(0, stat(path, &st));
    TEST_ASSERT_EQUAL_HEX(0600, st.st_mode & 0777);
}

/* As JSON each line is one object, whatever bytes were logged. */
static void test_json_lines_are_json(void)
{
    open_log(LOG_DEBUG, true);
    log_write(LOG_ERROR, 7, "odd \"bytes\" \n \x1b \xff \xc3\xa9");
    log_close();
    json_error_t error;
    json_t *line = json_loads(read_log(), 0, &error);
    TEST_ASSERT_NOT_NULL_MESSAGE(line, error.text);
    TEST_ASSERT_EQUAL_STRING("ERROR", json_string_value(json_object_get(line, "level")));
    TEST_ASSERT_EQUAL_INT(7, json_integer_value(json_object_get(line, "job")));
    TEST_ASSERT_EQUAL_STRING("2026-11-18T11:06:40.123Z",
                             json_string_value(json_object_get(line, "time")));
    TEST_ASSERT_EQUAL_STRING("odd \"bytes\" \n \x1b \xef\xbf\xbd \xc3\xa9",
                             json_string_value(json_object_get(line, "text")));
    json_decref(line);
}

/* A name from outside can neither forge a second line nor drive a terminal. */
static void test_control_bytes_are_made_visible(void)
{
    open_log(LOG_DEBUG, false);
    log_info("a\r\n2026-01-01 ERROR forged \x1b[2J \x7f \xc2\x9b \xfe");
    log_close();
    const char *got = strstr(read_log(), "INFO ");
    TEST_ASSERT_EQUAL_STRING(
        "INFO a\\r\\n2026-01-01 ERROR forged \\x1b[2J \\x7f \\xc2\\x9b \\xfe\n", got);
}

/* A text over the limit is cut, and shows that it was. */
static void test_long_text_is_cut_visibly(void)
{
    char big[3 * LOG_LINE_MAX];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    open_log(LOG_DEBUG, false);
    log_info("%s", big);
    log_close();
    TEST_ASSERT_NOT_NULL(strstr(read_log(), "xxx...\n"));
    TEST_ASSERT_TRUE(strlen(text) < LOG_LINE_MAX + 100);
}

/* The same line again within a minute is counted, and the count is told when the minute is over, or at the end. */
static void test_repeats_are_counted_not_written(void)
{
    open_log(LOG_DEBUG, false);
    for (int i = 0; i < 1000; i++) {
        log_warning("server a: connection refused");
        log_write(LOG_WARNING, 3, "server a: connection refused");
    }
    log_info("something else");
    log_flush();
    TEST_ASSERT_EQUAL_INT(2, count(read_log(), "connection refused\n"));
    TEST_ASSERT_EQUAL_INT(1, count(text, "something else"));
    mono_ms += LOG_REPEAT_MS;
    log_flush();
    TEST_ASSERT_EQUAL_INT(2, count(read_log(), "connection refused (999 times more in 60 s)\n"));
    log_warning("server a: connection refused");
    log_warning("server a: connection refused");
    mono_ms += 5000;
    log_close();
    TEST_ASSERT_EQUAL_INT(3, count(read_log(), "connection refused\n"));
    TEST_ASSERT_EQUAL_INT(1, count(text, "(1 times more in 5 s)"));
}

/* After the file was moved away, log_reopen() goes on in a new one, and the old keeps what it had. */
static void test_reopen_follows_a_rotated_file(void)
{
    char old[DIR_PATH_MAX + 32];
    snprintf(old, sizeof(old), "%s.1", path);
    open_log(LOG_DEBUG, false);
    log_info("before");
    log_flush();
    TEST_ASSERT_EQUAL_INT(0, rename(path, old));
    TEST_ASSERT_EQUAL_INT(0, log_reopen(NULL));
    log_flush();
    log_info("after");
    log_close();
    TEST_ASSERT_EQUAL_INT(1, count(read_log(), "after"));
    TEST_ASSERT_EQUAL_INT(0, count(text, "before"));
}

/* A file that cannot be opened is an error that names it, and nothing is left behind. */
static void test_open_says_what_it_cannot_open(void)
{
    struct log_options o = {.path = "/proc/no/such.log", .level = LOG_INFO, .clock = &test_clock};
    struct err e = {0};
    int fds = dir_open_fds();
    TEST_ASSERT_LESS_THAN_INT(0, log_open(&o, &e));
    TEST_ASSERT_NOT_NULL(strstr(e.msg, "/proc/no/such.log"));
    TEST_ASSERT_EQUAL_INT(fds, dir_open_fds());
}

static struct {
    int fd;
    char *got;
    size_t n;
} drain;

static void drain_all(void *arg)
{
    (void)arg;
    for (ssize_t r; (r = read(drain.fd, drain.got + drain.n, 65536)) > 0;) {
        drain.n += (size_t)r;
    }
}

/* When the file takes nothing, callers are not held up: lines are dropped, and their number is told. */
static void test_a_stuck_file_holds_nobody_up(void)
{
    int ends[2];
    TEST_ASSERT_EQUAL_INT(0, pipe(ends));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
    open_log(LOG_DEBUG, false);
    close(ends[1]);
    enum { LINES = 20000 };
    for (int i = 0; i < LINES; i++) { /* nobody reads the pipe yet: this returns all the same */
        log_info("line %d, made longer so that the buffers are full before the end of this loop",
                 i);
    }
    drain.fd = ends[0];
    drain.n = 0;
    drain.got = calloc(1, 4 << 20);
    TEST_ASSERT_NOT_NULL(drain.got);
    uv_thread_t reader;
    TEST_ASSERT_EQUAL_INT(0, uv_thread_create(&reader, drain_all, NULL));
    log_flush();
    log_info("goodbye");
    log_close();
    uv_thread_join(&reader);
    close(ends[0]);
    int dropped = 0;
    for (const char *said = drain.got; (said = strstr(said, "WARNING ")) != NULL; said++) {
        int n = 0;
        TEST_ASSERT_EQUAL_INT(1, sscanf(said, "WARNING %d log lines had no room", &n));
        dropped += n;
    }
    TEST_ASSERT_TRUE(dropped > 0);
    TEST_ASSERT_EQUAL_INT(LINES, count(drain.got, " INFO line ") + dropped);
    TEST_ASSERT_EQUAL_INT(1, count(drain.got, "goodbye"));
    free(drain.got);
}

static void shout(void *arg)
{
    for (int i = 0; i < 500; i++) {
        log_info("thread %d line %d", *(int *)arg, i);
    }
}

/* Lines of several threads are whole, and each thread's are in order. */
static void test_threads_do_not_mix_lines(void)
{
    open_log(LOG_DEBUG, false);
    uv_thread_t threads[4];
    int ids[4];
    for (int i = 0; i < 4; i++) {
        ids[i] = i;
        TEST_ASSERT_EQUAL_INT(0, uv_thread_create(&threads[i], shout, &ids[i]));
    }
    for (int i = 0; i < 4; i++) {
        uv_thread_join(&threads[i]);
    }
    log_close();
    int next[4] = {0};
    for (char *line = strtok((char *)(uintptr_t)read_log(), "\n"); line;
         line = strtok(NULL, "\n")) {
        int id, n;
        TEST_ASSERT_EQUAL_INT(2, sscanf(line, "%*s %*s INFO thread %d line %d", &id, &n));
        TEST_ASSERT_EQUAL_INT(next[id]++, n);
    }
    TEST_ASSERT_EQUAL_INT(2000, next[0] + next[1] + next[2] + next[3]);
}

/* A secret logged at debug level, by whatever path, is in no output. */
static void test_a_canary_secret_never_appears(void)
{
    static const char canary[] = "C4n\"ry s&cret/%+";
    static const char *const shapes[] = {
        "%s",
        "> AUTHINFO PASS %s",
        "sent: authinfo pass %s\r\n",
        "Authorization: Basic %s",
        "authorization:%s",
        "Cookie: session=%s; other=%s",
        "GET /api?apikey=%s&mode=queue",
        "url http://user:%s@host:6789/jsonrpc failed",
        "url https://%s@host/ failed",
        "Server1.Password=%s",
        "ControlPassword = %s",
        "{\"password\": \"%s\", \"x\": 1}",
        "{'token':'%s'}",
        "nzb My.Show{{%s}}.nzb added",
        "unpack: trying %s: wrong password",
        "prefix%ssuffix",
    };
    TEST_ASSERT_EQUAL_INT(0, redact_add(canary));
    for (int json = 0; json <= 1; json++) {
        open_log(LOG_DEBUG, json != 0);
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
            char line[256], *out = line;
            for (const char *p = shapes[i]; *p != '\0'; p++) { /* a format may not be a variable */
                if (p[0] == '%' && p[1] == 's') {
                    out += sprintf(out, "%s", canary);
                    p++;
                } else {
                    *out++ = *p;
                }
            }
            *out = '\0';
            log_debug("%s", line);
            log_write(LOG_DEBUG, 5, "%s", line);
        }
        for (size_t pad = LOG_LINE_MAX - sizeof(canary) - 2; pad < LOG_LINE_MAX + 1; pad++) {
            log_debug("%*s%s", (int)pad, "", canary); /* the cut goes through the secret */
        }
        log_debug("encoded: C4n%%22ry%%20s%%26cret%%2F%%25%%2B");
        log_close();
        read_log();
        TEST_ASSERT_EQUAL_INT(0, count(text, "C4n"));
        TEST_ASSERT_EQUAL_INT(0, count(text, "cret"));
        TEST_ASSERT_TRUE(count(text, "***") >= 30);
        TEST_ASSERT_EQUAL_INT(0, unlink(path));
    }
}

/* Secrets that nobody registered are taken out by the shape they stand in; what is around them stays readable. */
static void test_shapes_are_redacted(void)
{
    static const struct {
        const char *in;
        const char *out;
    } rows[] = {
        {"AUTHINFO USER bob", "AUTHINFO USER bob"},
        {"AUTHINFO PASS hun ter2", "AUTHINFO PASS ***"},
        {"http://u:p@h:1/x?apikey=K&o=json", "http://u:***@h:1/x?apikey=***&o=json"},
        {"http://h/a@b", "http://h/a@b"},
        {"https://token@h/", "https://***@h/"},
        {"password: \"a \\\" b\", next", "password: \"***\", next"},
        {"passwords are asked for", "passwords are asked for"},
        {"password=", "password="},
        {"Name{{pw}}.nzb", "Name{{***}}.nzb"},
        {"Name{{}}.nzb {{open", "Name{{}}.nzb {{open"},
        {"X-Api-Key: abc\r\nHost: h", "X-Api-Key: ***\r\nHost: h"},
        {"Set-Cookie: sid=1", "Set-Cookie: ***"},
        {"nothing here", "nothing here"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char out[256];
        size_t n = redact(rows[i].in, false, out, sizeof(out));
        TEST_ASSERT_EQUAL_STRING(rows[i].out, out);
        TEST_ASSERT_EQUAL_UINT(strlen(out), n);
    }
    char small[8];
    TEST_ASSERT_EQUAL_UINT(7, redact("password=12345", false, small, sizeof(small)));
    TEST_ASSERT_EQUAL_STRING("passwor", small);
}

/* Short words are not registered; of two words that begin alike the longer is taken out whole. */
static void test_words_are_matched_longest_first(void)
{
    char out[64];
    TEST_ASSERT_EQUAL_INT(0, redact_add("abc"));
    TEST_ASSERT_EQUAL_INT(0, redact_add("secret"));
    TEST_ASSERT_EQUAL_INT(0, redact_add("secretive"));
    TEST_ASSERT_EQUAL_INT(0, redact_add("secret"));
    redact("abc secretive secret secre", false, out, sizeof(out));
    TEST_ASSERT_EQUAL_STRING("abc *** *** secre", out);
    redact("abc secre", true, out, sizeof(out));
    TEST_ASSERT_EQUAL_STRING("abc ***", out);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_lines_have_time_level_and_job);
    RUN_TEST(test_json_lines_are_json);
    RUN_TEST(test_control_bytes_are_made_visible);
    RUN_TEST(test_long_text_is_cut_visibly);
    RUN_TEST(test_repeats_are_counted_not_written);
    RUN_TEST(test_reopen_follows_a_rotated_file);
    RUN_TEST(test_open_says_what_it_cannot_open);
    RUN_TEST(test_a_stuck_file_holds_nobody_up);
    RUN_TEST(test_threads_do_not_mix_lines);
    RUN_TEST(test_a_canary_secret_never_appears);
    RUN_TEST(test_shapes_are_redacted);
    RUN_TEST(test_words_are_matched_longest_first);
    return UNITY_END();
}
