/* The layers lie on each other in the right order, from the right places, and nothing of it leaks a secret. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/redact.h"
#include "config/config.h"
#include "lib/dir.h"
#include "lib/fault.h"
#include "unity.h"

static struct dir home;
static char home_env[DIR_PATH_MAX + 8], conf_env[DIR_PATH_MAX + 64];

void setUp(void)
{
    dir_make(&home);
    snprintf(home_env, sizeof(home_env), "HOME=%s", home.path);
}

void tearDown(void)
{
    redact_forget();
    dir_remove(&home);
}

static const char *path_of(const char *name)
{
    static char path[DIR_PATH_MAX + 256];
    snprintf(path, sizeof(path), "%s/%s", home.path, name);
    return path;
}

static void write_file(const char *name, const char *text, mode_t mode)
{
    int fd = openat(home.fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    TEST_ASSERT_TRUE(fd >= 0);
    TEST_ASSERT_EQUAL_INT((int)strlen(text), (int)write(fd, text, strlen(text)));
    fchmod(fd, mode);
    close(fd);
}

static struct config *load(const struct config_input *in)
{
    struct config *c = NULL;
    struct err e = {.code = 0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, config_load(in, &c, &e), e.msg);
    return c;
}

static bool said(const struct config *c, const char *words)
{
    for (size_t i = 0; i < c->problems_count; i++) {
        char text[2048];
        config_problem_text(c, &c->problems[i], text, sizeof(text));
        if (strstr(text, words) != NULL) {
            return true;
        }
    }
    return false;
}

/* With no file at all everything has a sensible value and nothing is wrong. */
static void test_no_file(void)
{
    const char *env[] = {home_env, NULL};
    struct config *c = load(&(struct config_input){.env = env, .no_file = true});
    TEST_ASSERT_EQUAL_UINT64(0, c->problems_count);
    TEST_ASSERT_EQUAL_STRING("", c->file);
    TEST_ASSERT_EQUAL_STRING(path_of("downloads/dst"), c->dest_dir);
    TEST_ASSERT_EQUAL_STRING("127.0.0.1", c->control_ip);
    TEST_ASSERT_EQUAL_INT64(6789, c->control_port);
    TEST_ASSERT_FALSE(c->control_password_given);
    TEST_ASSERT_TRUE(c->unpack && c->par_repair && c->cert_check);
    TEST_ASSERT_EQUAL_UINT64(0, c->servers_count);
    TEST_ASSERT_EQUAL_INT(0, config_may_listen(c, NULL));
    config_free(c);
}

/* -o beats the environment, which beats the file, which beats the default; variables see the last word. */
static void test_layers(void)
{
    write_file("w.conf", "MainDir=/file\nParCheck=force\nDiskSpace=1\nKeepHistory=1\n", 0600);
    snprintf(conf_env, sizeof(conf_env), "WEIR_CONF=%s", path_of("w.conf"));
    const char *env[] = {home_env,
                         conf_env,
                         "WEIR_DISKSPACE=2",
                         "WEIR_KEEPHISTORY=2",
                         "WEIR_PARTHREADS=",
                         "PATH=x",
                         "WEIR_SERVER2_HOST=h",
                         "WEIR_NONSENSE=1",
                         "WEIR_MAIN_DIR=/x",
                         "WEIR_SERVER1_HOTS=h",
                         NULL};
    const char *options[] = {"keephistory=3", "MainDir=/o", "Nonsense", NULL};
    struct config *c = load(&(struct config_input){.env = env, .options = options});
    TEST_ASSERT_EQUAL_INT(CONFIG_PAR_FORCE, c->par_check);
    TEST_ASSERT_EQUAL_INT64(2, c->disk_space_mib);
    TEST_ASSERT_EQUAL_INT64(3, c->keep_history_days);
    TEST_ASSERT_EQUAL_INT64(0, c->par_threads);
    TEST_ASSERT_EQUAL_STRING("/o/dst", c->dest_dir);
    TEST_ASSERT_EQUAL_STRING(path_of("w.conf"), c->file);
    TEST_ASSERT_EQUAL_INT(CONFIG_FROM_FILE, config_find(c, "ParCheck")->from);
    TEST_ASSERT_EQUAL_UINT(2, config_find(c, "ParCheck")->line);
    TEST_ASSERT_EQUAL_INT(CONFIG_FROM_ENV, config_find(c, "DiskSpace")->from);
    TEST_ASSERT_EQUAL_INT(CONFIG_FROM_ARGS, config_find(c, "KeepHistory")->from);
    TEST_ASSERT_EQUAL_UINT64(1, c->servers_count);
    TEST_ASSERT_EQUAL_UINT(2, c->servers[0].id);
    TEST_ASSERT_TRUE(said(c, "there is no Server1"));
    TEST_ASSERT_TRUE(said(c, "environment: warning: WEIR_NONSENSE"));
    TEST_ASSERT_TRUE(
        said(c, "WEIR_MAIN_DIR: there is no option for this variable; did you mean WEIR_MAINDIR?"));
    TEST_ASSERT_TRUE(said(c, "did you mean WEIR_SERVER1_HOST?"));
    TEST_ASSERT_TRUE(said(c, "command line: error: -o wants Name=Value, not 'Nonsense'"));
    TEST_ASSERT_EQUAL_UINT64(5, c->problems_count);
    config_free(c);
}

/* The user's own file is found before NZBGet's, and that one only when called as nzbget. */
static void test_places(void)
{
    const char *env[] = {home_env, NULL};
    if (access("/etc/weir.conf", F_OK) == 0) {
        TEST_IGNORE_MESSAGE("this machine has an /etc/weir.conf, which would be found first");
    }
    write_file(".nzbget", "DiskSpace=7\n", 0600);
    struct config *c = load(&(struct config_input){.env = env});
    TEST_ASSERT_EQUAL_INT64(250, c->disk_space_mib);
    config_free(c);
    c = load(&(struct config_input){.env = env, .nzbget_places = true});
    TEST_ASSERT_EQUAL_INT64(7, c->disk_space_mib);
    config_free(c);
    mkdir(path_of(".config"), 0700);
    mkdir(path_of(".config/weir"), 0700);
    write_file(".config/weir/weir.conf", "DiskSpace=8\n", 0600);
    c = load(&(struct config_input){.env = env, .nzbget_places = true});
    TEST_ASSERT_EQUAL_INT64(8, c->disk_space_mib);
    config_free(c);
    c = load(&(struct config_input){.env = env, .no_file = true});
    TEST_ASSERT_EQUAL_INT64(250, c->disk_space_mib);
    config_free(c);
    char xdg[DIR_PATH_MAX + 64];
    mkdir(path_of("weir"), 0700);
    write_file("weir/weir.conf", "DiskSpace=9\n", 0600);
    snprintf(xdg, sizeof(xdg), "XDG_CONFIG_HOME=%s", home.path);
    const char *env2[] = {home_env, xdg, NULL};
    c = load(&(struct config_input){.env = env2});
    TEST_ASSERT_EQUAL_INT64(9, c->disk_space_mib);
    config_free(c);
}

/* A file that was asked for and is not there, a directory, or something huge is a failure that names it. */
static void test_unreadable(void)
{
    struct config *c = NULL;
    struct err e = {.code = 0};
    TEST_ASSERT_EQUAL_INT(-ENOENT,
                          config_load(&(struct config_input){.file = path_of("no.conf")}, &c, &e));
    TEST_ASSERT_NOT_NULL(strstr(e.msg, "no.conf"));
    TEST_ASSERT_EQUAL_INT(-EISDIR, config_load(&(struct config_input){.file = home.path}, &c, &e));
    TEST_ASSERT_EQUAL_INT(ERR_LIMIT,
                          config_load(&(struct config_input){.file = "/dev/zero"}, &c, &e));
    TEST_ASSERT_NULL(c);
}

/* Passwords in a file that everybody can read are a warning; a file that everybody can write is an error. */
static void test_rights(void)
{
    static const struct {
        const char *text;
        mode_t mode;
        bool warns, refuses;
    } rows[] = {
        {"Server1.Host=h\nServer1.Username=u\nServer1.Password=s3cret\n", 0644, true, false},
        {"Server1.Host=h\nServer1.Username=u\nServer1.Password=s3cret\n", 0640, false, false},
        {"Server1.Host=h\nServer1.Username=u\nServer1.Password=pass\n", 0644, false, false},
        {"DiskSpace=1\n", 0644, false, false},
        {"DiskSpace=1\n", 0666, false, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_file("r.conf", rows[i].text, rows[i].mode);
        struct config *c = load(&(struct config_input){.file = path_of("r.conf")});
        TEST_ASSERT_EQUAL_INT(rows[i].warns, said(c, "can read the passwords"));
        TEST_ASSERT_EQUAL_UINT64(rows[i].refuses ? 1 : 0, c->errors_count);
        config_free(c);
    }
}

/* Secrets are known to the log once loaded; published ones are not, they would blank out half of it. */
static void test_secrets_are_redacted(void)
{
    static const char text[] = "Server1.Host=h\nServer1.Username=u\nServer1.Password=hunter22\n"
                               "ControlPassword=tegbzn6789\nMail:Password=letter-box\n"
                               "AddPaswort=mistyped1\n";
    char out[256];
    struct config *c = load(&(struct config_input){.text = text, .text_len = strlen(text)});
    redact("say hunter22 and letter-box and mistyped1 to tegbzn6789", false, out, sizeof(out));
    TEST_ASSERT_EQUAL_STRING("say *** and *** and *** to tegbzn6789", out);
    config_free(c);
}

/* A URL names the only server there is, from the environment or from the command line. */
static void test_server_url(void)
{
    static const char file[] = "Server1.Host=a\nServer1.Level=5\nServer2.Host=b\n";
    static const struct {
        const char *url, *host, *user, *password;
        int64_t port, connections;
        bool tls;
    } rows[] = {
        {"nntps://news.example", "news.example", "", "", 563, 8, true},
        {"nntp://news.example", "news.example", "", "", 119, 8, false},
        {"NNTPS://u:p%40ss:w%3a@h:443?connections=20", "h", "u", "p@ss:w:", 443, 20, true},
        {"nntps://u@x:y@h/", "h", "u@x", "y", 563, 8, true},
        {"nntp://[::1]:1119", "::1", "", "", 1119, 8, false},
        {"news.example:119", "news.example", "", "", 119, 8, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char variable[256];
        snprintf(variable, sizeof(variable), "WEIR_SERVER=%s", rows[i].url);
        const char *env[] = {home_env, variable, "WEIR_SERVER1_LEVEL=2", NULL};
        struct config *c =
            load(&(struct config_input){.text = file, .text_len = strlen(file), .env = env});
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, c->errors_count, rows[i].url);
        TEST_ASSERT_EQUAL_UINT64(1, c->servers_count);
        const struct config_server *s = &c->servers[0];
        TEST_ASSERT_EQUAL_STRING(rows[i].host, s->host);
        TEST_ASSERT_EQUAL_STRING(rows[i].user, s->username);
        TEST_ASSERT_EQUAL_STRING(rows[i].password, s->password);
        TEST_ASSERT_EQUAL_INT64(rows[i].port, s->port);
        TEST_ASSERT_EQUAL_INT64(rows[i].connections, s->connections);
        TEST_ASSERT_EQUAL_INT(rows[i].tls, s->encryption);
        TEST_ASSERT_EQUAL_INT64(2, s->level);
        config_free(c);
    }
    static const char *const wrong[] = {"http://h",     "nntps://",
                                        "nntps://h:0",  "nntps://h:port",
                                        "nntps://u:p@", "nntps://h?connections=x"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct config *c = load(&(struct config_input){.no_file = true, .server = wrong[i]});
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(1, c->errors_count, wrong[i]);
        config_free(c);
    }
}

/* Other machines are only let in with a password of one's own. */
static void test_may_listen(void)
{
    static const struct {
        const char *text;
        int rv;
    } rows[] = {
        {"ControlIP=127.0.0.1\nControlPassword=tegbzn6789\n", 0},
        {"ControlIP=0.0.0.0\nControlPassword=tegbzn6789\n", ERR_UNSAFE},
        {"ControlIP=0.0.0.0\nControlPassword=\n", ERR_UNSAFE},
        {"ControlIP=::\nControlPassword=\n", ERR_UNSAFE},
        {"ControlIP=/run/weir.sock\nControlPassword=\n", 0},
        {"ControlIP=0.0.0.0\nControlPassword=mine-alone\n", 0},
        {"ControlIP=0.0.0.0\n", 0}, /* the daemon makes one */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err e = {.code = 0};
        struct config *c =
            load(&(struct config_input){.text = rows[i].text, .text_len = strlen(rows[i].text)});
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].rv, config_may_listen(c, &e), rows[i].text);
        config_free(c);
    }
}

/* A reload tells what changed, and what of it waits for a restart. */
struct changes {
    char text[1024];
};

static void note_change(void *arg, const struct config_change *change)
{
    struct changes *n = arg;
    size_t used = strlen(n->text);
    snprintf(n->text + used, sizeof(n->text) - used, "%s:%s>%s%s ",
             change->after != NULL ? change->after->name : change->before->name,
             change->before != NULL ? change->before->value : "-",
             change->after != NULL ? change->after->value : "-", change->restart ? "!" : "");
}

static void test_diff(void)
{
    static const char before[] = "DownloadRate=10\nServer1.Host=a\nCategory1.Name=TV\nX:y=1\n"
                                 "ControlPort=6789\nUnpack=YES\n";
    static const char after[] = "downloadrate=20\nServer1.Host=b\nServer2.Host=c\nX:y=2\n"
                                "ControlPort=6790\nUnpack=true\nControlPassword=\nNonsense=1\n";
    struct config *a = load(&(struct config_input){.text = before, .text_len = strlen(before)});
    struct config *b = load(&(struct config_input){.text = after, .text_len = strlen(after)});
    struct changes n = {.text = ""};
    TEST_ASSERT_EQUAL_UINT64(7, config_diff(a, b, note_change, &n));
    TEST_ASSERT_EQUAL_STRING("Server1.Host:a>b Server2.Host:->c ControlPort:6789>6790! "
                             "ControlPassword:> DownloadRate:10>20 X:y:1>2 Category1.Name:TV>- ",
                             n.text);
    TEST_ASSERT_EQUAL_UINT64(0, config_diff(b, b, NULL, NULL));
    config_free(a);
    config_free(b);
}

/* Every allocation may fail: the answer is an error and nothing is lost. */
static void test_out_of_memory(void)
{
    static const char text[] = "MainDir=/x\nServer1.Host=${MainDir}\nCategory1.Name=a\nBad\nX:y=1\n"
                               "Task1.Time=1:00\nTask1.Command=Pause\nServer1.Password=geheim1\n";
    for (unsigned k = 1;; k++) {
        struct config *c = NULL;
        struct err e = {.code = 0};
        fault_arm(k);
        int rv =
            config_load(&(struct config_input){.text = text, .text_len = strlen(text)}, &c, &e);
        bool fired = fault_fired();
        fault_disarm();
        TEST_ASSERT_EQUAL_INT(fired ? -ENOMEM : 0, rv);
        redact_forget();
        if (!fired) {
            config_free(c);
            TEST_ASSERT_TRUE(k > 5);
            break;
        }
        TEST_ASSERT_NULL(c);
    }
}

/* A file of ten thousand options is read up to the limit and says so. */
static void test_too_many(void)
{
    char *text = mem_alloc(400000);
    size_t n = 0;
    for (int i = 1; i <= 9999; i++) {
        n += (size_t)snprintf(text + n, 400000 - n, "Server%d.Host=h\n", i);
    }
    struct config *c = load(&(struct config_input){.text = text, .text_len = n});
    TEST_ASSERT_TRUE(c->errors_count >= 1);
    TEST_ASSERT_TRUE(said(c, "there are more than 4096 options"));
    config_free(c);
    mem_free(text);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_no_file);
    RUN_TEST(test_layers);
    RUN_TEST(test_places);
    RUN_TEST(test_unreadable);
    RUN_TEST(test_rights);
    RUN_TEST(test_secrets_are_redacted);
    RUN_TEST(test_server_url);
    RUN_TEST(test_may_listen);
    RUN_TEST(test_diff);
    RUN_TEST(test_out_of_memory);
    RUN_TEST(test_too_many);
    return UNITY_END();
}
