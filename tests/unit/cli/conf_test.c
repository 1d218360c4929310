/* A command gets a configuration that is right, or none and the reason on stderr. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/redact.h"
#include "cli/conf.h"
#include "lib/dir.h"
#include "unity.h"

static struct dir home;
static FILE *kept;
static int real_stderr;
static char said[4096];

void setUp(void)
{
    dir_make(&home);
    setenv("HOME", home.path, 1);
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("WEIR_CONF");
    kept = tmpfile();
    real_stderr = dup(STDERR_FILENO);
    fflush(stderr);
    dup2(fileno(kept), STDERR_FILENO);
}

static const char *read_stderr(void)
{
    fflush(stderr);
    rewind(kept);
    said[fread(said, 1, sizeof(said) - 1, kept)] = '\0';
    return said;
}

void tearDown(void)
{
    fflush(stderr);
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    fclose(kept);
    redact_forget();
    dir_remove(&home);
}

static struct cli_args args = {.path = "get"};

static void set(struct cli_conf *conf, const char *option)
{
    args.value = option;
    TEST_ASSERT_TRUE(cli_conf_set(conf, &args));
}

/* Options are taken in their order; warnings are said, and do not stop anybody. */
static void test_warnings_are_said(void)
{
    struct cli_conf conf = {.file = "/dev/null", .server = "nntps://u:geheim99@news.example"};
    struct config *c = NULL;
    set(&conf, "DiskSpace=1");
    set(&conf, "DiskSpace=2");
    set(&conf, "DestDri=/x");
    TEST_ASSERT_EQUAL_INT(CLI_OK, cli_conf_load(&args, &conf, &c));
    TEST_ASSERT_EQUAL_INT64(2, c->disk_space_mib);
    TEST_ASSERT_EQUAL_STRING("news.example", c->servers[0].host);
    TEST_ASSERT_EQUAL_STRING(
        "command line: warning: DestDri: no such option; did you mean DestDir?\n", read_stderr());
    config_free(c);
}

/* An error stops; the message says where to see them all. */
static void test_errors_stop(void)
{
    struct cli_conf conf = {.file = "/dev/null"};
    struct config *c = NULL;
    set(&conf, "ParCheck=perhaps");
    TEST_ASSERT_EQUAL_INT(CLI_FAILED, cli_conf_load(&args, &conf, &c));
    TEST_ASSERT_NULL(c);
    TEST_ASSERT_NOT_NULL(
        strstr(read_stderr(), "command line: error: ParCheck: 'perhaps': wants auto"));
    TEST_ASSERT_NOT_NULL(
        strstr(said, "weir get: the configuration has errors; 'weir config check'"));
}

/* A file that is not there stops, and so do more -o than anybody types. */
static void test_refusals(void)
{
    struct cli_conf conf = {.file = "/nowhere/weir.conf"};
    struct config *c = NULL;
    TEST_ASSERT_EQUAL_INT(CLI_FAILED, cli_conf_load(&args, &conf, &c));
    TEST_ASSERT_NOT_NULL(strstr(read_stderr(), "/nowhere/weir.conf"));
    for (int i = 0; i < CLI_CONF_OPTIONS; i++) {
        set(&conf, "DiskSpace=1");
    }
    TEST_ASSERT_FALSE(cli_conf_set(&conf, &args));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_warnings_are_said);
    RUN_TEST(test_errors_stop);
    RUN_TEST(test_refusals);
    return UNITY_END();
}
