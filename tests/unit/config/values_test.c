/* Every kind of value takes what it should, refuses the rest by name, and lands in its field. */
#include <stdio.h>
#include <string.h>

#include "base/redact.h"
#include "config/config.h"
#include "unity.h"

static const char *const env[] = {"HOME=/home/u", NULL};

void setUp(void) {}

void tearDown(void)
{
    redact_forget();
}

static struct config *load(const char *text)
{
    struct config_input in = {.file = "t.conf", .text = text, .text_len = strlen(text), .env = env};
    struct config *c = NULL;
    struct err e = {.code = 0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, config_load(&in, &c, &e), e.msg);
    return c;
}

static const char *all_problems(const struct config *c)
{
    static char out[16384];
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < c->problems_count && used < sizeof(out) - 2048; i++) {
        config_problem_text(c, &c->problems[i], out + used, sizeof(out) - used);
        used = strlen(out);
        out[used++] = '\n';
        out[used] = '\0';
    }
    return out;
}

static void good(const char *line, const char *name, const char *value)
{
    struct config *c = load(line);
    TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, c->errors_count, all_problems(c));
    const struct config_entry *e = config_find(c, name);
    TEST_ASSERT_NOT_NULL_MESSAGE(e, name);
    TEST_ASSERT_EQUAL_STRING_MESSAGE(value, e->value, line);
    config_free(c);
}

/* One error at line 1 that holds these words; the default counts instead. */
static void bad(const char *line, const char *says)
{
    struct config *c = load(line);
    const char *said = all_problems(c);
    TEST_ASSERT_EQUAL_UINT64_MESSAGE(1, c->errors_count, line);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(said, says), said);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(said, "t.conf:1: error: "), said);
    config_free(c);
}

/* A value in any accepted spelling counts in its canonical one. */
static void test_good_values(void)
{
    static const char *const rows[][3] = {
        {"unpack=NO", "Unpack", "no"},
        {"Unpack=Enabled", "Unpack", "yes"},
        {"UNPACK=0", "Unpack", "no"},
        {"ParCheck=Force", "ParCheck", "force"},
        {"ParCheck=yes", "ParCheck", "always"},
        {"ParScan=auto", "ParScan", "extended"},
        {"HealthCheck=Dupe", "HealthCheck", "park"},
        {"OutputMode=log", "OutputMode", "loggable"},
        {"ControlPort=65535", "ControlPort", "65535"},
        {"  ControlPort \t=  80  ", "ControlPort", "80"},
        {"ControlPort=80\r", "ControlPort", "80"},
        {"\xef\xbb\xbf"
         "ControlPort=80",
         "ControlPort", "80"},
        {"EventInterval=-1", "EventInterval", "-1"},
        {"UMask=077", "UMask", "077"},
        {"ControlPassword= two  words ", "ControlPassword", " two  words "},
        {"ControlPassword=a=b#c", "ControlPassword", "a=b#c"},
        {"MainDir=~/usenet/", "MainDir", "/home/u/usenet"},
        {"MainDir=~/usenet", "DestDir", "/home/u/usenet/dst"},
        {"DestDir=films", "DestDir", "/home/u/downloads/films"},
        {"MainDir=/", "DestDir", "/dst"},
        {"LogFile=${destdir}/x.log", "LogFile", "/home/u/downloads/dst/x.log"},
        {"InterDir=", "InterDir", ""},
        {"DestDir=/a/${Nobody}", "DestDir", "/a/${Nobody}"},
        {"DestDir=/a/${", "DestDir", "/a/${"},
        {"DestDir=/a/${}b", "DestDir", "/a/${}b"},
        {"ServerPort=99", "ControlPort", "99"},
        {"$MAINDIR=/x", "MainDir", "/x"},
        {"Video:Quality=best", "Video:Quality", "best"},
        {"server12.joingroup=yes\nServer12.Host=h", "Server12.JoinGroup", "yes"},
        {"Server1.Host=h\nServer1.Port=119", "Server1.Encryption", "no"},
        {"Server1.Host=h\nServer1.Encryption=no", "Server1.Port", "119"},
        {"Server1.Host=h", "Server1.Port", "563"},
        {"CertCheck=no\nServer1.Host=h", "Server1.CertVerification", "none"},
        {"CertCheck=no\nServer1.Host=h\nServer1.CertVerification=Strict",
         "Server1.CertVerification", "strict"},
        {"Category1.PostScript=x.py\nCategory1.Name=a", "Category1.Extensions", "x.py"},
        {"Task1.Command=speed\nTask1.DownloadRate=5\nTask1.Time=1:00", "Task1.Param", "5"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        good(rows[i][0], rows[i][1], rows[i][2]);
    }
}

/* A wrong value is named with file, line, option and what is allowed. */
static void test_bad_values(void)
{
    static const char *const rows[][2] = {
        {"ParCheck=perhaps", "ParCheck: 'perhaps': wants auto, always, force or manual"},
        {"Unpack=maybe", "Unpack: 'maybe': wants yes or no"},
        {"Unpack=", "Unpack: '': wants yes or no"},
        {"ControlPort=0", "ControlPort: '0': wants a number from 1 to 65535"},
        {"ControlPort=65536", "from 1 to 65535"},
        {"ControlPort=99999999999999999999", "from 1 to 65535"},
        {"ControlPort=80x", "from 1 to 65535"},
        {"ControlPort=0x50", "from 1 to 65535"},
        {"ControlPort=-", "from 1 to 65535"},
        {"KeepHistory=-1", "wants a number from 0 to 100000 (days)"},
        {"UMask=778", "wants an octal number from 0 to 1000"},
        {"UMask=1001", "octal"},
        {"MainDir=", "MainDir: '': may not be empty"},
        {"MainDir=relative", "MainDir: 'relative': wants a path that begins with / or ~/"},
        {"MainDir=/a\x1b[31m", "'/a?[31m': holds a control character"},
        {"no equals sign", "'no equals sign' is neither Name=Value nor a comment"},
        {"=value", "neither Name=Value"},
        {"MainDir=${DestDir}", "lead back to itself"},
        {"Server1.Name=x", "Server1 has no Host; set Server1.Host, or Server1.Active=no"},
        {"Server1.Host=https://h", "wants a host name or an address"},
        {"Server1.Port=0\nServer1.Host=h", "Server1.Port: '0': wants a number from 1 to 65535"},
        {"Server1.Proxy=http://h\nServer1.Host=h", "Server1.Proxy: wants socks5://HOST:PORT"},
        {"Server1.BindAddress=eth0\nServer1.Host=h", "wants a numeric address"},
        {"Category1.DestDir=x", "Category1 has no Name"},
        {"Feed1.URL=ftp://x", "Feed1.URL: wants http:// or https://"},
        {"Task1.Time=10:00", "Task1 needs a Time and a Command"},
        {"Task1.Time=25:00\nTask1.Command=Pause", "'25:00': wants HH:MM, *:MM or *"},
        {"Task1.Time=1:60\nTask1.Command=Pause", "wants HH:MM"},
        {"Task1.Time=1\nTask1.Command=Pause", "wants HH:MM"},
        {"Task1.WeekDays=0-3\nTask1.Time=1:00\nTask1.Command=Pause", "wants days from 1"},
        {"Task1.WeekDays=5-2\nTask1.Time=1:00\nTask1.Command=Pause", "wants days from 1"},
        {"Task1.WeekDays=1-\nTask1.Time=1:00\nTask1.Command=Pause", "wants days from 1"},
        {"Task1.Command=Dance\nTask1.Time=1:00", "'Dance': wants PauseDownload, UnpauseDownload, "},
        {"Task1.Param=fast\nTask1.Time=1:00\nTask1.Command=Rate", "DownloadRate wants a number"},
        {"Task1.Command=Process\nTask1.Time=1:00", "Task1.Command needs a Param"},
        {"DestDir=/s/x\nScriptDir=/a,/s/", "DestDir: is in ScriptDir (/s)"},
        {"DestDir=/d/..a/../s", "DestDir: '/d/..a/../s': has .. in it"},
        {"InterDir=..", "has .. in it"},
        {"Category1.DestDir=/s\nCategory1.Name=a\nScriptDir=/s", "is in ScriptDir (/s)"},
        {"Dest\x01"
         "Dir=/x",
         "error: Dest?Dir: no name of an option"},
        {"DestDir=", "DestDir: '': may not be empty"},
        {"ControlIP=10.0.0.1, ::1", "wants an address, or the path of a socket"},
        {"SecureControl=yes", "needs SecureCert and SecureKey"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bad(rows[i][0], rows[i][1]);
    }
}

/* A mistyped name is a warning with the nearest known one, and is said once. */
static void test_unknown_names(void)
{
    static const char *const rows[][2] = {
        {"DestDri=/x", "t.conf:1: warning: DestDri: no such option; did you mean DestDir?"},
        {"Sever1.Host=h", "did you mean Server1.Host?"},
        {"Server1.Pasword=x\nServer1.Host=h", "did you mean Server1.Password?"},
        {"Server01.Host=h", "did you mean Server1.Host?"},
        {"Server0.Host=h", "did you mean Server1.Host?"},
        {"Server99999.Host=h", "no such option"},
        {"Server.Host=h", "did you mean Server1.Host?"},
        {"Utterly.Different=1", "Utterly.Different: no such option; it has no effect"},
        {"Qwertyuiop=1", "Qwertyuiop: no such option; it has no effect"},
        {"SaveQueue=yes", "note: SaveQueue: is no option any more; it has no effect"},
        {"PostProcess=/x.sh", "warning: PostProcess: is no option any more: use Extensions"},
        {"AppDir=/x", "warning: AppDir: is made by Weir and cannot be set"},
        {"DestDir=/d\nScriptDir=/d/s", "warning: DestDir: ScriptDir (/d/s) is in here"},
        {"Server1.Password=x\nServer1.Host=h", "there is a password but no Server1.Username"},
        {"Category1.Name=a\nCategory2.Name=A", "Category2.Name: Category1 has this name too"},
        {"Feed1.Name=a", "Feed1 has no URL"},
        {"Server1.Host=h\nServer3.Host=h", "Server3.Host: there is no Server2"},
        {"Category2.Name=a", "Category2.Name: there is no Category1"},
        {"CertCheck=no\nServer1.Host=h", "the certificate of Server1 is not checked"},
        {"Retries=5", "note: Retries: is called ArticleRetries now"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config *c = load(rows[i][0]);
        const char *said = all_problems(c);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, c->errors_count, said);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(said, rows[i][1]), said);
        config_free(c);
    }
    struct config *c = load("DestDri=/x\ndestdri=/y\n");
    TEST_ASSERT_EQUAL_UINT64(2, c->problems_count); /* unknown, and set twice */
    TEST_ASSERT_NOT_NULL(strstr(all_problems(c), "t.conf:2: warning: destdri: was set in line 1"));
    config_free(c);
}

/* A wrong directory leaves the default; a zero byte, or a value that grows beyond all measure, is an error. */
static void test_hostile_values(void)
{
    struct config *c = load("DestDir=\nMainDir=/m");
    TEST_ASSERT_EQUAL_STRING("/m/dst", c->dest_dir);
    config_free(c);
    static const char zero[] = "DiskSpace=1\nDisk\0Space=2\n";
    struct config_input in = {.file = "t.conf", .text = zero, .text_len = sizeof(zero) - 1};
    struct err e = {.code = 0};
    TEST_ASSERT_EQUAL_INT(0, config_load(&in, &c, &e));
    TEST_ASSERT_NOT_NULL(strstr(all_problems(c), "t.conf:2: error: there is a zero byte"));
    TEST_ASSERT_EQUAL_INT64(1, c->disk_space_mib);
    config_free(c);
    char text[8192];
    int n =
        snprintf(text, sizeof(text), "A:a=%01000d\nA:b=${A:a}${A:a}${A:a}\nA:c=${A:b}${A:b}\n", 7);
    TEST_ASSERT_TRUE(n > 0 && (size_t)n < sizeof(text));
    c = load(text);
    TEST_ASSERT_EQUAL_UINT64(1, c->errors_count);
    TEST_ASSERT_NOT_NULL(
        strstr(all_problems(c), "t.conf:3: error: A:c: is longer than 4095 bytes"));
    TEST_ASSERT_EQUAL_UINT64(3000, strlen(config_find(c, "A:b")->value));
    config_free(c);
    n = snprintf(text, sizeof(text), "ScriptDir=/%05000d\nMainDir=/m\n", 7);
    c = load(text);
    TEST_ASSERT_EQUAL_UINT64(1, c->errors_count);
    TEST_ASSERT_EQUAL_STRING("/m/scripts", c->script_dirs.items[0]);
    config_free(c);
}

/* The order of every enum is the order of its words. */
static void test_words_are_enums(void)
{
    struct config *c =
        load("ParCheck=manual\nParScan=dupe\nHealthCheck=none\nPostStrategy=rocket\n"
             "FileNaming=nzb\nErrorTarget=none\nWarningTarget=screen\nInfoTarget=log\n"
             "DetailTarget=both\nWriteLog=rotate\n"
             "Server1.Host=h\nServer1.CertVerification=minimal\n"
             "Server1.IpVersion=ipv6\n"
             "Feed1.URL=https://x\nFeed1.CategorySource=feedfile\n"
             "Task1.Time=*\nTask1.Command=FetchFeeds\nTask1.Param=1\n"
             "Task2.Time=*:30, 7:05\nTask2.Command=resume\nTask2.WeekDays=1-3, 7\n"
             "Task3.Time=00:00\nTask3.Command=rate\nTask3.Param=100\n");
    TEST_ASSERT_EQUAL_STRING("", all_problems(c));
    TEST_ASSERT_EQUAL_INT(CONFIG_PAR_MANUAL, c->par_check);
    TEST_ASSERT_EQUAL_INT(CONFIG_SCAN_DUPE, c->par_scan);
    TEST_ASSERT_EQUAL_INT(CONFIG_HEALTH_NONE, c->health_check);
    TEST_ASSERT_EQUAL_INT(CONFIG_POST_ROCKET, c->post_strategy);
    TEST_ASSERT_EQUAL_INT(CONFIG_NAMING_NZB, c->file_naming);
    TEST_ASSERT_EQUAL_INT(CONFIG_TARGET_NONE, c->error_target);
    TEST_ASSERT_EQUAL_INT(CONFIG_TARGET_SCREEN, c->warning_target);
    TEST_ASSERT_EQUAL_INT(CONFIG_TARGET_LOG, c->info_target);
    TEST_ASSERT_EQUAL_INT(CONFIG_TARGET_BOTH, c->detail_target);
    TEST_ASSERT_EQUAL_INT(CONFIG_LOG_ROTATE, c->write_log);
    TEST_ASSERT_EQUAL_INT(CONFIG_CERT_MINIMAL, c->servers[0].cert_verification);
    TEST_ASSERT_EQUAL_INT(CONFIG_IP_V6, c->servers[0].ip_version);
    TEST_ASSERT_EQUAL_INT(CONFIG_CATEGORY_FEED, c->feeds[0].category_source);
    TEST_ASSERT_EQUAL_UINT64(3, c->tasks_count);
    TEST_ASSERT_EQUAL_INT(CONFIG_TASK_FETCH_FEED, c->tasks[0].command);
    TEST_ASSERT_EQUAL_INT(CONFIG_AT_START, c->tasks[0].times[0].hour);
    TEST_ASSERT_EQUAL_INT(CONFIG_TASK_RESUME_DOWNLOAD, c->tasks[1].command);
    TEST_ASSERT_EQUAL_UINT64(2, c->tasks[1].times_count);
    TEST_ASSERT_EQUAL_INT(CONFIG_EVERY_HOUR, c->tasks[1].times[0].hour);
    TEST_ASSERT_EQUAL_INT(30, c->tasks[1].times[0].minute);
    TEST_ASSERT_EQUAL_INT(7, c->tasks[1].times[1].hour);
    TEST_ASSERT_EQUAL_INT(5, c->tasks[1].times[1].minute);
    TEST_ASSERT_EQUAL_HEX(0x47, c->tasks[1].weekdays);
    TEST_ASSERT_EQUAL_INT(CONFIG_TASK_RATE, c->tasks[2].command);
    TEST_ASSERT_EQUAL_INT64(100, c->tasks[2].rate_kib);
    config_free(c);
}

/* Lists are split at commas and semicolons, blanks around parts do not count, and paths in lists are absolute. */
static void test_lists(void)
{
    struct config *c = load("ExtCleanupDisk= .par2;.sfv,, *.nfo ,\nScriptDir=a, /b/;~/c\n"
                            "Category1.Name=TV\nCategory1.Aliases=tv*, series\n"
                            "Category2.Name=AC/DC: live\nCategory2.DestDir=\n"
                            "Category3.Name=Own\nCategory3.DestDir=own\n");
    TEST_ASSERT_EQUAL_UINT64(3, c->ext_cleanup_disk.count);
    TEST_ASSERT_EQUAL_STRING(".par2", c->ext_cleanup_disk.items[0]);
    TEST_ASSERT_EQUAL_STRING("*.nfo", c->ext_cleanup_disk.items[2]);
    TEST_ASSERT_EQUAL_UINT64(3, c->script_dirs.count);
    TEST_ASSERT_EQUAL_STRING("/home/u/downloads/a", c->script_dirs.items[0]);
    TEST_ASSERT_EQUAL_STRING("/b", c->script_dirs.items[1]);
    TEST_ASSERT_EQUAL_UINT64(0, c->required_dirs.count);
    TEST_ASSERT_EQUAL_STRING("TV", config_find_category(c, "tv", false)->name);
    TEST_ASSERT_NULL(config_find_category(c, "TV > HD", false));
    TEST_ASSERT_EQUAL_STRING("TV", config_find_category(c, "TV > HD", true)->name);
    TEST_ASSERT_NULL(config_find_category(c, "Books", true));
    TEST_ASSERT_EQUAL_STRING("/home/u/downloads/dst/TV", c->categories[0].dest_dir);
    TEST_ASSERT_EQUAL_STRING("/home/u/downloads/dst/AC/DC_ live", c->categories[1].dest_dir);
    TEST_ASSERT_EQUAL_STRING("/home/u/downloads/dst/own", c->categories[2].dest_dir);
    TEST_ASSERT_EQUAL_STRING("", config_find(c, "Category1.DestDir")->value);
    config_free(c);
}

/* Names carry over to variables, and tell whether their values are to be hidden. */
static void test_names(void)
{
    char out[64];
    config_variable("NZBOP_", "Server1.Host", out, sizeof(out));
    TEST_ASSERT_EQUAL_STRING("NZBOP_SERVER1_HOST", out);
    config_variable("NZBPO_", "Video Sort:Min-Size", out, sizeof(out));
    TEST_ASSERT_EQUAL_STRING("NZBPO_VIDEO_SORT_MIN_SIZE", out);
    TEST_ASSERT_TRUE(config_is_secret(NULL, "Server1.Pasword"));
    TEST_ASSERT_TRUE(config_is_secret(NULL, "Notify:ApiKey"));
    TEST_ASSERT_FALSE(config_is_secret(NULL, "Notify:Event"));
    static const char *const hidden[] = {
        "controlport", "Server3.Username", "AddPassword", "Email:To", "UMask", "Server1.Proxy"};
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        TEST_ASSERT_TRUE_MESSAGE(config_is_protected(hidden[i]), hidden[i]);
    }
    TEST_ASSERT_FALSE(config_is_protected("DestDir"));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_good_values);
    RUN_TEST(test_bad_values);
    RUN_TEST(test_unknown_names);
    RUN_TEST(test_hostile_values);
    RUN_TEST(test_words_are_enums);
    RUN_TEST(test_lists);
    RUN_TEST(test_names);
    return UNITY_END();
}
