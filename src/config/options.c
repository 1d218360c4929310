/* options.c - the options that stand alone, section by section. The numbered ones are in options_groups.c. */
#include "config/config.h"

#define F(field) offsetof(struct config, field)

#define YESNO(name_, field_, preset_, flags_, help_, more_)                                       \
    {                                                                                             \
        .name = name_, .kind = CONFIG_YESNO, .preset = preset_, .field = field_, .flags = flags_, \
        .help = help_, .more = more_                                                              \
    }
#define NUMBER(name_, field_, preset_, min_, max_, unit_, flags_, help_, more_)                \
    {                                                                                          \
        .name = name_, .kind = CONFIG_NUMBER, .preset = preset_, .field = field_, .min = min_, \
        .max = max_, .unit = unit_, .flags = flags_, .help = help_, .more = more_              \
    }
#define WORD(name_, field_, preset_, words_, also_, flags_, help_, more_)                        \
    {                                                                                            \
        .name = name_, .kind = CONFIG_WORD, .preset = preset_, .field = field_, .words = words_, \
        .also = also_, .flags = flags_, .help = help_, .more = more_                             \
    }
#define OTHER(kind_, name_, field_, preset_, flags_, help_, more_)                         \
    {                                                                                      \
        .name = name_, .kind = kind_, .preset = preset_, .field = field_, .flags = flags_, \
        .help = help_, .more = more_                                                       \
    }
#define NONE CONFIG_NO_FIELD

static const struct config_option paths[] = {
    OTHER(
        CONFIG_PATH, "MainDir", F(main_dir), "~/downloads", CONFIG_RESTART | CONFIG_NOT_EMPTY,
        "The directory that the other ones stand in",
        "~/ at the beginning of a value is your home directory; ${MainDir} in a value is the value "
        "of the option of that name. A directory that does not begin with / is below MainDir."),
    OTHER(CONFIG_PATH, "DestDir", F(dest_dir), "${MainDir}/dst", CONFIG_NOT_EMPTY,
          "Where finished downloads arrive",
          "A category may have a place of its own; see Category1.DestDir and AppendCategoryDir."),
    OTHER(CONFIG_PATH, "InterDir", F(inter_dir), "${MainDir}/inter", 0,
          "Where downloads are put together before they are finished",
          "What stands in DestDir is then always complete. On the same file system as DestDir the "
          "last "
          "step is a rename, else a copy. Empty: everything happens in DestDir."),
    OTHER(CONFIG_PATH, "NzbDir", F(nzb_dir), "${MainDir}/nzb", CONFIG_NOT_EMPTY,
          "Folder that is watched for new NZB files",
          "Also gzipped ones and zip files with NZBs in them. A sub-folder with the name of a "
          "category "
          "gives that category. See NzbDirInterval."),
    OTHER(CONFIG_PATH, "QueueDir", F(queue_dir), "${MainDir}/queue",
          CONFIG_RESTART | CONFIG_NOT_EMPTY, "Where Weir keeps its queue, history and journal",
          "Only one daemon can use it at a time. Keep it on a local disk."),
    OTHER(CONFIG_PATH, "TempDir", F(temp_dir), "${MainDir}/tmp", CONFIG_RESTART | CONFIG_NOT_EMPTY,
          "For files that may be lost at any time", NULL),
    OTHER(CONFIG_PATH, "WebDir", F(web_dir), "", CONFIG_RESTART | CONFIG_FILE_ONLY,
          "Directory with the files of another web interface",
          "Empty: the one that comes with Weir."),
    OTHER(CONFIG_PATHS, "ScriptDir", F(script_dirs), "${MainDir}/scripts", CONFIG_FILE_ONLY,
          "Directories in which extensions are looked for", "Several are separated by commas."),
    OTHER(CONFIG_PATH, "LockFile", F(lock_file), "${MainDir}/weir.lock", CONFIG_RESTART,
          "File that holds the process number of the running daemon", NULL),
    OTHER(CONFIG_PATH, "LogFile", F(log_file), "${MainDir}/weir.log", CONFIG_RESTART,
          "The log file; see WriteLog", NULL),
    OTHER(CONFIG_PATH, "ConfigTemplate", NONE, "", CONFIG_NO_EFFECT,
          "The template of NZBGet's settings page", "Weir makes its own."),
    OTHER(CONFIG_PATHS, "RequiredDir", F(required_dirs), "", CONFIG_RESTART,
          "Directories that the daemon waits for before it starts",
          "For disks that are mounted late. Several are separated by commas."),
    OTHER(CONFIG_PATH, "CertStore", F(cert_store), "", 0,
          "File or directory with the certificates of trusted authorities",
          "Empty: those of the system."),
    {.name = NULL},
};

static const struct config_option security[] = {
    OTHER(
        CONFIG_TEXT, "ControlIP", F(control_ip), "127.0.0.1", CONFIG_RESTART | CONFIG_NOT_EMPTY,
        "Address on which web pages and RPC are served",
        "127.0.0.1: only programs on this machine can connect. 0.0.0.0: every machine that reaches "
        "this one; Weir then insists on a ControlPassword of your own. A path is a UNIX socket."),
    NUMBER("ControlPort", F(control_port), "6789", 1, 65535, NULL, CONFIG_RESTART,
           "Port of the web pages and RPC", NULL),
    OTHER(CONFIG_TEXT, "ControlUsername", F(control_username), "nzbget", 0,
          "User name for full access", "Empty: any name will do."),
    OTHER(CONFIG_SECRET, "ControlPassword", F(control_password), "", CONFIG_UNSET,
          "Password for full access",
          "When this option is not in the file, the daemon makes a password at its first start and "
          "keeps it in QueueDir, where the commands of Weir find it. When it is there with no "
          "value, no "
          "password is asked for, and only ControlIP=127.0.0.1 (or a socket) is accepted."),
    OTHER(CONFIG_TEXT, "RestrictedUsername", F(restricted_username), "", 0,
          "User name for access without the settings", "Empty: there is no such user."),
    OTHER(CONFIG_SECRET, "RestrictedPassword", F(restricted_password), "", 0,
          "Password of the restricted user", NULL),
    OTHER(CONFIG_TEXT, "AddUsername", F(add_username), "", 0,
          "User name for programs that may only add downloads", "Empty: there is no such user."),
    OTHER(CONFIG_SECRET, "AddPassword", F(add_password), "", 0,
          "Password of the user that may only add", NULL),
    YESNO("FormAuth", F(form_auth), "no", 0, "Log in on a web page instead of the browser's dialog",
          NULL),
    YESNO("SecureControl", F(secure_control), "no", CONFIG_RESTART, "Serve https as well",
          "Needs SecureCert and SecureKey."),
    NUMBER("SecurePort", F(secure_port), "6791", 1, 65535, NULL, CONFIG_RESTART, "Port of https",
           NULL),
    OTHER(CONFIG_PATH, "SecureCert", F(secure_cert), "", CONFIG_RESTART,
          "Certificate chain for https, as PEM", NULL),
    OTHER(CONFIG_PATH, "SecureKey", F(secure_key), "", CONFIG_RESTART,
          "Private key for https, as PEM", NULL),
    OTHER(CONFIG_LIST, "AuthorizedIP", F(authorized_ip), "", 0, "Addresses that need no password",
          "Separated by commas; * and ? stand for anything: 192.168.1.*, ::1."),
    YESNO("CertCheck", F(cert_check), "yes", 0, "Check the certificates of servers",
          "For news servers it is what a server does that has no CertVerification of its own. With "
          "no, "
          "somebody in the middle can read passwords and nobody will notice."),
    WORD("UpdateCheck", NONE, "none", "none stable testing", NULL, CONFIG_NO_EFFECT,
         "Look for new releases", "Weir never calls home; use your package manager."),
    OTHER(CONFIG_TEXT, "DaemonUsername", F(daemon_username), "root",
          CONFIG_RESTART | CONFIG_FILE_ONLY,
          "User that the daemon becomes when root starts it with -D", "root: it stays root."),
    {.name = "UMask",
     .kind = CONFIG_OCTAL,
     .preset = "1000",
     .field = F(umask),
     .min = 0,
     .max = 01000,
     .flags = CONFIG_RESTART,
     .help = "Rights that new files do not get (000-1000)",
     .more = "In octal, as in the shell's umask; 022 lets everybody read, 077 nobody. 1000: as the "
             "daemon was started with."},
    {.name = NULL},
};

static const struct config_option incoming[] = {
    YESNO("AppendCategoryDir", F(append_category_dir), "yes", 0,
          "Put each category into a directory of its name",
          "Below DestDir, for categories that have no DestDir of their own."),
    NUMBER("NzbDirInterval", F(nzb_dir_interval_s), "5", 0, 86400, "seconds", 0,
           "How often NzbDir is looked at", "0: never."),
    NUMBER("NzbDirFileAge", F(nzb_dir_file_age_s), "60", 0, 86400, "seconds", 0,
           "How long an NZB file must lie unchanged before it is taken",
           "So that a file which is still being copied is left alone."),
    YESNO(
        "DupeCheck", F(dupe_check), "yes", 0, "Recognise downloads that were there before",
        "By duplicate key, score and mode, as NZBGet does. The very same NZB is not added a second "
        "time in any case, unless its duplicate mode is Force."),
    {.name = NULL},
};

static const struct config_option queue[] = {
    YESNO("FlushQueue", NONE, "yes", CONFIG_NO_EFFECT, "Have the queue on the disk before going on",
          "Weir always does."),
    YESNO("ContinuePartial", NONE, "yes", CONFIG_NO_EFFECT,
          "Go on with half-finished files after a restart", "Weir always does."),
    NUMBER("PropagationDelay", F(propagation_delay_min), "0", 0, 100000, "minutes", 0,
           "How old a post must be before it is downloaded",
           "A fresh post may not have reached your server yet."),
    NUMBER("ArticleCache", F(article_cache_mib), "0", 0, 1 << 20, "megabytes", CONFIG_RESTART,
           "Memory for articles on their way to the disk",
           "When it is used up, reading from the servers waits. 0: Weir chooses."),
    YESNO("DirectWrite", NONE, "yes", CONFIG_NO_EFFECT,
          "Write articles straight to their place in the file", "Weir always does."),
    NUMBER("WriteBuffer", NONE, "0", INT32_MIN, INT32_MAX, "kilobytes", CONFIG_NO_EFFECT,
           "Memory per connection for writing", "Weir writes whole articles."),
    WORD(
        "FileNaming", F(file_naming), "auto", "auto article nzb", NULL, 0,
        "Where the names of files come from",
        "article: from the articles. nzb: from the subjects in the NZB. auto: whichever looks like "
        "a real name."),
    {.name = "RenameAfterUnpack",
     .kind = CONFIG_YESNO,
     .preset = "yes",
     .field = F(rename_after_unpack),
     .since = "24.6",
     .help = "Give files with meaningless names the name of the download"},
    {.name = "RenameIgnoreExt",
     .kind = CONFIG_LIST,
     .preset = ".zip, .7z, .rar, .par2",
     .field = F(rename_ignore_ext),
     .since = "24.6",
     .help = "Extensions that keep their meaningless names"},
    YESNO("ReorderFiles", F(reorder_files), "yes", 0,
          "Download the files of a post in the order that is best for checking and unpacking",
          NULL),
    WORD("PostStrategy", F(post_strategy), "balanced", "sequential balanced aggressive rocket",
         NULL, 0, "How many downloads are checked and unpacked at the same time",
         "sequential: one. balanced: one, but a quick one need not wait behind a repair. "
         "aggressive: "
         "up to three. rocket: up to six."),
    NUMBER("DiskSpace", F(disk_space_mib), "250", 0, INT32_MAX, "megabytes", 0,
           "Free space below which downloading stops",
           "Looked at for DestDir and InterDir; downloading goes on by itself when there is room "
           "again. "
           "0: it is not looked at."),
    YESNO("NzbCleanupDisk", F(nzb_cleanup_disk), "yes", 0,
          "Delete the NZB file when its download has left the queue", NULL),
    NUMBER("KeepHistory", F(keep_history_days), "30", 0, 100000, "days", 0,
           "How long finished downloads stay in the history",
           "0: they are not kept, and Sonarr and its relatives refuse to work."),
    NUMBER("FeedHistory", F(feed_history_days), "7", 0, 100000, "days", 0,
           "How long items that have left a feed are remembered", NULL),
    YESNO("SkipWrite", NONE, "no", CONFIG_NO_EFFECT, "Throw away what was downloaded",
          "To measure Weir use: weir bench."),
    YESNO("RawArticle", NONE, "no", CONFIG_NO_EFFECT, "Write articles undecoded", NULL),
    {.name = NULL},
};

static const struct config_option connection[] = {
    NUMBER("ArticleRetries", F(article_retries), "3", 0, 99, NULL, 0,
           "How often an article is tried again after a failed connection",
           "An article that a server does not have is asked for at the next server at once; that "
           "is no "
           "retry."),
    NUMBER("ArticleInterval", F(article_interval_s), "10", 0, 86400, "seconds", 0,
           "How long to wait before trying an article again",
           "The first wait; further ones grow up to a minute."),
    NUMBER("ArticleTimeout", F(article_timeout_s), "60", 1, 3600, "seconds", 0,
           "How long a silent news server is waited for", NULL),
    {.name = "ArticleReadChunkSize",
     .kind = CONFIG_NUMBER,
     .preset = "4",
     .field = NONE,
     .min = 0,
     .max = INT32_MAX,
     .unit = "kilobytes",
     .flags = CONFIG_NO_EFFECT,
     .since = "23",
     .help = "How much is read from a connection at once",
     .more = "Weir adapts it by itself."},
    NUMBER("UrlRetries", F(url_retries), "3", 0, 99, NULL, 0,
           "How often an NZB is fetched again after a failure", NULL),
    NUMBER("UrlInterval", F(url_interval_s), "10", 0, 86400, "seconds", 0,
           "How long to wait before fetching an NZB again",
           "The first wait; further ones grow up to a quarter of an hour, or as the server says."),
    NUMBER("UrlTimeout", F(url_timeout_s), "60", 1, 3600, "seconds", 0,
           "How long a silent web server is waited for", NULL),
    NUMBER("RemoteTimeout", F(remote_timeout_s), "90", 1, 3600, "seconds", 0,
           "How long the commands of Weir wait for the daemon", NULL),
    NUMBER("DownloadRate", F(download_rate_kib), "0", 0, INT32_MAX, "kilobytes per second", 0,
           "Speed limit for all servers together", "0: none."),
    NUMBER("UrlConnections", F(url_connections), "4", 0, 999, NULL, 0,
           "How many NZBs are fetched at the same time", NULL),
    YESNO("UrlForce", F(url_force), "yes", 0,
          "Fetch NZBs and feeds also while downloads are paused", NULL),
    NUMBER("MonthlyQuota", F(monthly_quota_mib), "0", 0, INT32_MAX, "megabytes", 0,
           "How much may be downloaded in a month",
           "When it is reached, only downloads with priority Force go on. 0: no limit."),
    NUMBER("QuotaStartDay", F(quota_start_day), "1", 1, 31, NULL, 0,
           "Day on which the month of MonthlyQuota begins", NULL),
    NUMBER("DailyQuota", F(daily_quota_mib), "0", 0, INT32_MAX, "megabytes", 0,
           "How much may be downloaded in a day", "0: no limit."),
    {.name = NULL},
};

#define TARGETS "screen log both none"

static const struct config_option logging[] = {
    WORD(
        "WriteLog", F(write_log), "append", "none append reset rotate", NULL, CONFIG_RESTART,
        "What happens to the log file",
        "append: it grows. reset: every start begins a new one. rotate: every day has its own, see "
        "RotateLog."),
    NUMBER("RotateLog", F(rotate_log_days), "3", 1, 100000, "days", CONFIG_RESTART,
           "How many daily log files are kept", NULL),
    WORD("ErrorTarget", F(error_target), "both", TARGETS, NULL, 0, "Where errors are written",
         "screen: the terminal, or whatever collects the output of the daemon, and the list of "
         "messages "
         "that clients show."),
    WORD("WarningTarget", F(warning_target), "both", TARGETS, NULL, 0, "Where warnings are written",
         NULL),
    WORD("InfoTarget", F(info_target), "both", TARGETS, NULL, 0, "Where news are written", NULL),
    WORD("DetailTarget", F(detail_target), "log", TARGETS, NULL, 0, "Where details are written",
         NULL),
    WORD("DebugTarget", F(debug_target), "none", TARGETS, NULL, 0,
         "Where messages for developers are written", NULL),
    NUMBER("LogBuffer", F(log_buffer), "1000", 1, 100000, "messages", CONFIG_RESTART,
           "How many messages are kept for clients", NULL),
    YESNO("NzbLog", F(nzb_log), "yes", 0, "Keep the messages of each download with it", NULL),
    {.name = "SystemHealthCheck",
     .kind = CONFIG_YESNO,
     .preset = "no",
     .field = NONE,
     .flags = CONFIG_NO_EFFECT,
     .since = "26",
     .help = "Let NZBGet's web interface ask for a report on the settings",
     .more = "The report of Weir is: weir config check."},
    YESNO("CrashTrace", NONE, "yes", CONFIG_NO_EFFECT, "Write a trace when the program crashes",
          NULL),
    YESNO("CrashDump", NONE, "no", CONFIG_NO_EFFECT, "Write a core file when the program crashes",
          "That is for the system to say: ulimit -c, or LimitCORE= of systemd."),
    NUMBER("TimeCorrection", F(time_correction_min), "0", -1440, 1440, "hours or minutes", 0,
           "What is added to the local time before the scheduler looks at it",
           "From -24 to 24 it is hours, beyond that minutes."),
    {.name = NULL},
};

static const struct config_option display[] = {
    WORD("OutputMode", NONE, "curses", "loggable colored curses",
         "logable=loggable log=loggable color=colored ncurses=curses", CONFIG_NO_EFFECT,
         "How the daemon uses the terminal",
         "The daemon of Weir writes plain lines. For a live view use: weir status --watch."),
    YESNO("CursesNzbName", NONE, "yes", CONFIG_NO_EFFECT, "Detail of NZBGet's terminal display",
          NULL),
    YESNO("CursesGroup", NONE, "no", CONFIG_NO_EFFECT, "Detail of NZBGet's terminal display", NULL),
    YESNO("CursesTime", NONE, "no", CONFIG_NO_EFFECT, "Detail of NZBGet's terminal display", NULL),
    NUMBER("UpdateInterval", NONE, "200", 0, INT32_MAX, "milliseconds", CONFIG_NO_EFFECT,
           "How often NZBGet's terminal display is drawn", NULL),
    {.name = NULL},
};

static const struct config_option repair[] = {
    YESNO("CrcCheck", NONE, "yes", CONFIG_NO_EFFECT, "Check the sum that comes with every article",
          "Weir always does; it costs next to nothing there."),
    WORD("ParCheck", F(par_check), "auto", "auto always force manual", "yes=always no=auto", 0,
         "When a download is checked with its PAR2 files",
         "auto: when articles are missing or damaged, or unpacking failed. always: every time, "
         "with the "
         "smallest PAR2 file. force: every time, with all PAR2 files downloaded. manual: they are "
         "downloaded when needed, the rest is yours."),
    YESNO("ParRepair", F(par_repair), "yes", 0, "Repair what the check found damaged", NULL),
    WORD("ParScan", F(par_scan), "extended", "limited extended full dupe", "auto=extended", 0,
         "Where blocks are looked for when files are missing or damaged",
         "limited: in the files that belong to the set. extended: also in other files of the "
         "download, "
         "until there is enough. full: in all of them. dupe: also in earlier downloads of the same "
         "thing."),
    YESNO("ParQuick", F(par_quick), "yes", 0,
          "Check with the sums that were made while downloading",
          "Files that came through whole are then not read again."),
    NUMBER("ParBuffer", F(par_buffer_mib), "16", 1, 1 << 20, "megabytes", 0,
           "Memory that a repair may use", "More makes repairs of many blocks faster."),
    NUMBER("ParThreads", F(par_threads), "0", 0, 99, "threads", 0,
           "How many threads repair at the same time", "0: one per processor core."),
    OTHER(CONFIG_LIST, "ParIgnoreExt", F(par_ignore_ext), ".sfv, .nzb, .nfo", 0,
          "Files that need not be repaired when they alone are damaged",
          "Extensions, or names with * and ?, separated by commas."),
    YESNO("ParRename", F(par_rename), "yes", 0,
          "Take the right names of files out of the PAR2 files", NULL),
    YESNO("RarRename", F(rar_rename), "yes", 0,
          "Take the right names of archive volumes out of the archives",
          "For posts without PAR2 files."),
    YESNO("DirectRename", F(direct_rename), "no", 0, "Rename already while downloading", NULL),
    {.name = "HardLinking",
     .kind = CONFIG_YESNO,
     .preset = "no",
     .field = F(hard_linking),
     .since = "26",
     .help = "Deliver files by hard links and keep the originals in InterDir",
     .more = "Needs InterDir and DestDir on one file system."},
    {.name = "HardLinkingIgnoreExt",
     .kind = CONFIG_LIST,
     .preset = ".zip, .7z, .rar, *.7z.###, *.r##",
     .field = F(hard_linking_ignore_ext),
     .since = "26",
     .help = "Files that are not delivered by hard links"},
    WORD("HealthCheck", F(health_check), "park", "park delete pause none", "dupe=park", 0,
         "What to do with a download that can no longer be repaired",
         "park: stop, keep what is there, put it in the history, from where it can be taken up "
         "again. "
         "delete: stop and throw it away. pause: stop and leave it in the queue. none: go on."),
    NUMBER("ParTimeLimit", F(par_time_limit_min), "0", 0, 100000, "minutes", 0,
           "How long a repair may take",
           "What is expected to take longer is given up after five minutes. 0: no limit."),
    YESNO("ParPauseQueue", F(par_pause_queue), "no", 0, "Stop downloading during a check or repair",
          "For slow machines."),
    {.name = NULL},
};

static const struct config_option unpack[] = {
    YESNO("Unpack", F(unpack), "yes", 0, "Unpack archives", NULL),
    YESNO("DirectUnpack", F(direct_unpack), "no", 0, "Unpack already while downloading", NULL),
    {.name = "UseTempUnpackDir",
     .kind = CONFIG_YESNO,
     .preset = "yes",
     .field = NONE,
     .flags = CONFIG_NO_EFFECT,
     .since = "26",
     .help = "Unpack into a directory aside and move the result",
     .more = "Weir always does, so that half-unpacked files are never seen."},
    YESNO("UnpackPauseQueue", F(unpack_pause_queue), "no", 0, "Stop downloading while unpacking",
          "For slow disks."),
    YESNO("UnpackCleanupDisk", F(unpack_cleanup_disk), "yes", 0,
          "Delete archives that were unpacked", NULL),
    OTHER(CONFIG_TEXT, "UnrarCmd", F(unrar_cmd), "unrar", CONFIG_FILE_ONLY,
          "The unrar program, perhaps with options",
          "Used for what Weir cannot unpack by itself: encrypted RAR archives. Empty: never."),
    OTHER(CONFIG_TEXT, "SevenZipCmd", F(seven_zip_cmd), "7z", CONFIG_FILE_ONLY,
          "The 7-Zip program, perhaps with options", "As UnrarCmd, for the formats it knows."),
    OTHER(CONFIG_LIST, "ExtCleanupDisk", F(ext_cleanup_disk), ".par2, .sfv", 0,
          "Files that are deleted after everything went well",
          "Extensions, or names with * and ?, separated by commas."),
    OTHER(CONFIG_LIST, "UnpackIgnoreExt", F(unpack_ignore_ext), ".cbr", 0,
          "Archives that are not unpacked",
          "Extensions or names as in ExtCleanupDisk; for formats that are archives inside."),
    OTHER(CONFIG_PATH, "UnpackPassFile", F(unpack_pass_file), "", CONFIG_FILE_ONLY,
          "File with passwords to try on archives, one per line",
          "A password that comes with the NZB is tried first."),
    {.name = NULL},
};

static const struct config_option scripts[] = {
    OTHER(CONFIG_LIST, "Extensions", F(extensions), "", 0,
          "Extensions from ScriptDir that are in use",
          "Names separated by commas. A category or feed may have its own list instead."),
    OTHER(CONFIG_LIST, "ScriptOrder", F(script_order), "", 0, "The order in which extensions run",
          "Those that are not named here come after, by name."),
    YESNO("ScriptPauseQueue", F(script_pause_queue), "no", 0,
          "Stop downloading while an extension runs", NULL),
    OTHER(CONFIG_LIST, "ShellOverride", F(shell_override), "", CONFIG_FILE_ONLY,
          "Interpreters for extensions, by extension of the file",
          "Such as .py=/usr/bin/python3, separated by commas."),
    NUMBER("EventInterval", F(event_interval_s), "0", -1, 86400, "seconds", 0,
           "How often an extension is told of every single downloaded file",
           "0: each time. -1: never."),
    {.name = NULL},
};

const struct config_section config_sections[] = {
    {"PATHS", CONFIG_GLOBAL, paths},
    {"NEWS-SERVERS", CONFIG_SERVER, NULL},
    {"SECURITY", CONFIG_GLOBAL, security},
    {"CATEGORIES", CONFIG_CATEGORY, NULL},
    {"RSS FEEDS", CONFIG_FEED, NULL},
    {"INCOMING NZBS", CONFIG_GLOBAL, incoming},
    {"DOWNLOAD QUEUE", CONFIG_GLOBAL, queue},
    {"CONNECTION", CONFIG_GLOBAL, connection},
    {"LOGGING", CONFIG_GLOBAL, logging},
    {"DISPLAY (TERMINAL)", CONFIG_GLOBAL, display},
    {"SCHEDULER", CONFIG_TASK, NULL},
    {"CHECK AND REPAIR", CONFIG_GLOBAL, repair},
    {"UNPACK", CONFIG_GLOBAL, unpack},
    {"EXTENSION SCRIPTS", CONFIG_GLOBAL, scripts},
    {NULL, CONFIG_GLOBAL, NULL},
};
