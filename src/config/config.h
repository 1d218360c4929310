/* config.h - what the user wants: read from defaults, a file, the environment and the command line.
 *
 * The format and the names are those of nzbget.conf. config_load() gives one `struct config`, complete and never
 * changed afterwards: whoever needs something reads a field. A reload loads another one and asks config_diff() what
 * changed; the old one is freed when nobody uses it any more. All strings belong to it. What is wrong with the input is
 * a list of problems with file and line, not a failure: the wrong value is then replaced by the default, and the caller
 * decides (a start refuses errors, a reload keeps the old configuration). Secrets are told to base/redact.h on load and
 * wiped on free. Loading blocks on the disk; everything else is pure. Any thread. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "config/option.h"

struct config_list {
    const char *const *items;
    size_t count;
};

/* The order of each of these is that of the words in the table. */
enum config_par_check { CONFIG_PAR_AUTO, CONFIG_PAR_ALWAYS, CONFIG_PAR_FORCE, CONFIG_PAR_MANUAL };
enum config_par_scan {
    CONFIG_SCAN_LIMITED,
    CONFIG_SCAN_EXTENDED,
    CONFIG_SCAN_FULL,
    CONFIG_SCAN_DUPE
};
enum config_health_check {
    CONFIG_HEALTH_PARK,
    CONFIG_HEALTH_DELETE,
    CONFIG_HEALTH_PAUSE,
    CONFIG_HEALTH_NONE
};
enum config_post_strategy {
    CONFIG_POST_SEQUENTIAL,
    CONFIG_POST_BALANCED,
    CONFIG_POST_AGGRESSIVE,
    CONFIG_POST_ROCKET
};
enum config_file_naming { CONFIG_NAMING_AUTO, CONFIG_NAMING_ARTICLE, CONFIG_NAMING_NZB };
enum config_target {
    CONFIG_TARGET_SCREEN,
    CONFIG_TARGET_LOG,
    CONFIG_TARGET_BOTH,
    CONFIG_TARGET_NONE
};
enum config_write_log { CONFIG_LOG_NONE, CONFIG_LOG_APPEND, CONFIG_LOG_RESET, CONFIG_LOG_ROTATE };
enum config_cert { CONFIG_CERT_NONE, CONFIG_CERT_MINIMAL, CONFIG_CERT_STRICT };
enum config_ip { CONFIG_IP_AUTO, CONFIG_IP_V4, CONFIG_IP_V6 };
enum config_category_source { CONFIG_CATEGORY_NZB, CONFIG_CATEGORY_FEED, CONFIG_CATEGORY_AUTO };
enum config_command {
    CONFIG_TASK_PAUSE_DOWNLOAD,
    CONFIG_TASK_RESUME_DOWNLOAD,
    CONFIG_TASK_PAUSE_POST,
    CONFIG_TASK_RESUME_POST,
    CONFIG_TASK_PAUSE_SCAN,
    CONFIG_TASK_RESUME_SCAN,
    CONFIG_TASK_RATE,
    CONFIG_TASK_SCRIPT,
    CONFIG_TASK_PROCESS,
    CONFIG_TASK_ACTIVATE_SERVER,
    CONFIG_TASK_DEACTIVATE_SERVER,
    CONFIG_TASK_FETCH_FEED
};

struct config_server {
    unsigned id; /* the N of ServerN */
    bool active;
    const char *name; /* "" is shown as host:port by those who show it */
    int64_t level;
    bool optional;
    int64_t group; /* 0: alone */
    const char *host;
    int64_t port;
    const char *username; /* "": no login */
    const char *password;
    bool join_group;
    bool encryption;
    const char *cipher;
    int64_t connections;
    int64_t retention_days; /* 0: no limit */
    int cert_verification;  /* enum config_cert */
    int ip_version;         /* enum config_ip */
    const char *notes;
    int64_t pipelining; /* commands on their way per connection; 0: adapts itself, 1: none ahead */
    int64_t quota_mib;  /* of a block account; 0: none */
    const char *bind_address;
    const char *proxy; /* socks5://[user:password@]host:port, or "" */
};

struct config_category {
    unsigned id;
    const char *name;
    const char *dest_dir; /* absolute; made from DestDir and the name when it is not set */
    bool unpack;
    struct config_list extensions;
    struct config_list aliases; /* with * and ? */
};

struct config_feed {
    unsigned id;
    const char *name;
    const char *url;
    const char *filter;
    int64_t interval_min;
    bool backlog;
    bool pause_nzb;
    const char *category;
    int category_source; /* enum config_category_source */
    int64_t priority;
    struct config_list extensions;
};

enum { CONFIG_AT_START = -1, CONFIG_EVERY_HOUR = -2 };

struct config_time {
    int hour; /* 0-23, CONFIG_EVERY_HOUR, or CONFIG_AT_START */
    int minute;
};

struct config_task {
    unsigned id;
    const char *time_text;
    const char *weekdays_text;
    const struct config_time *times;
    size_t times_count;
    unsigned weekdays; /* bit 0: Monday ... bit 6: Sunday */
    int command;       /* enum config_command */
    const char *param;
    int64_t rate_kib; /* of CONFIG_TASK_RATE */
};

enum config_from { CONFIG_FROM_DEFAULT, CONFIG_FROM_FILE, CONFIG_FROM_ENV, CONFIG_FROM_ARGS };

/* One option as it was given and as it counts. */
struct config_entry {
    const char *name;  /* canonical; as it was written when it is unknown */
    const char *raw;   /* as written */
    const char *value; /* variables replaced, words in their canonical spelling */
    const struct config_option
        *option; /* NULL: of an extension, one of the read-only four, or unknown */
    enum config_group group;
    unsigned number;
    enum config_from from;
    unsigned line; /* in the file */
    bool unknown;
};

enum config_level { CONFIG_ERROR, CONFIG_WARNING, CONFIG_NOTE };

struct config_problem {
    enum config_level level;
    enum config_from from;
    unsigned line;    /* 0: not about a line of the file */
    const char *name; /* the option, or "" */
    const char *text; /* holds no secret */
};

struct config {
    /* paths */
    const char *main_dir;
    const char *dest_dir;
    const char *inter_dir; /* "": downloads go to dest_dir at once */
    const char *nzb_dir;
    const char *queue_dir;
    const char *temp_dir;
    const char *web_dir; /* "": the web pages that Weir brings along */
    struct config_list script_dirs;
    const char *lock_file;
    const char *log_file;
    struct config_list required_dirs;
    const char *cert_store; /* "": the system's */
    /* security */
    const char *control_ip; /* an address, or the path of a socket */
    int64_t control_port;
    const char *control_username;
    const char *control_password;
    bool
        control_password_given; /* somebody set it, perhaps to nothing; else the daemon makes one */
    const char *restricted_username;
    const char *restricted_password;
    const char *add_username;
    const char *add_password;
    bool form_auth;
    bool secure_control;
    int64_t secure_port;
    const char *secure_cert;
    const char *secure_key;
    struct config_list authorized_ip;
    bool cert_check;
    const char *daemon_username;
    int64_t umask; /* 01000: as it is */
    /* incoming */
    bool append_category_dir;
    int64_t nzb_dir_interval_s; /* 0: the folder is not watched */
    int64_t nzb_dir_file_age_s;
    bool dupe_check;
    /* queue */
    int64_t propagation_delay_min;
    int64_t article_cache_mib; /* 0: chosen by Weir */
    int file_naming;           /* enum config_file_naming */
    bool reorder_files;
    int post_strategy; /* enum config_post_strategy */
    int64_t disk_space_mib;
    bool nzb_cleanup_disk;
    int64_t keep_history_days;
    int64_t feed_history_days;
    /* connection */
    int64_t article_retries;
    int64_t article_interval_s;
    int64_t article_timeout_s;
    int64_t url_retries;
    int64_t url_interval_s;
    int64_t url_timeout_s;
    int64_t remote_timeout_s;
    int64_t download_rate_kib; /* 0: no limit */
    int64_t url_connections;
    bool url_force;
    int64_t monthly_quota_mib;
    int64_t quota_start_day;
    int64_t daily_quota_mib;
    /* log */
    int write_log; /* enum config_write_log */
    int64_t rotate_log_days;
    int error_target; /* enum config_target, and the next four */
    int warning_target;
    int info_target;
    int detail_target;
    int debug_target;
    int64_t log_buffer;
    bool nzb_log;
    int64_t time_correction_min;
    /* check and repair */
    int par_check; /* enum config_par_check */
    bool par_repair;
    int par_scan; /* enum config_par_scan */
    bool par_quick;
    int64_t par_buffer_mib;
    int64_t par_threads; /* 0: as many as the machine has */
    struct config_list par_ignore_ext;
    bool par_rename;
    bool rar_rename;
    bool direct_rename;
    bool hard_linking;
    struct config_list hard_linking_ignore_ext;
    int health_check; /* enum config_health_check */
    int64_t par_time_limit_min;
    bool par_pause_queue;
    /* unpack */
    bool unpack;
    bool direct_unpack;
    bool unpack_pause_queue;
    bool unpack_cleanup_disk;
    const char *unrar_cmd;
    const char *seven_zip_cmd;
    struct config_list ext_cleanup_disk;
    struct config_list unpack_ignore_ext;
    const char *unpack_pass_file;
    bool rename_after_unpack;
    struct config_list rename_ignore_ext;
    /* extensions */
    struct config_list extensions;
    struct config_list script_order;
    bool script_pause_queue;
    struct config_list shell_override;
    int64_t event_interval_s;

    /* numbered groups, by number; the numbers may have gaps */
    const struct config_server *servers;
    size_t servers_count;
    const struct config_category *categories;
    size_t categories_count;
    const struct config_feed *feeds;
    size_t feeds_count;
    const struct config_task *tasks;
    size_t tasks_count;

    /* everything, in the order of the sample file, then extensions, then unknown ones */
    const char *file; /* absolute where it could be made so; "": none was used */
    const struct config_entry *entries;
    size_t entries_count;
    const struct config_problem *problems; /* in the order of their lines */
    size_t problems_count;
    size_t errors_count;
};

enum {
    CONFIG_FILE_MAX = 1 << 20, /* bytes */
    CONFIG_ENTRIES_MAX = 4096,
    CONFIG_PROBLEMS_MAX = 200, /* more are only counted */
};

struct config_input {
    const char *file;   /* -c FILE; "-" is standard input; NULL: the usual places */
    bool no_file;       /* look for none */
    bool nzbget_places; /* called as nzbget: its places after ours */
    const char *text;   /* instead of reading `file`, which is then only its name */
    size_t text_len;
    const char *const
        *env; /* "NAME=value"..., ends with NULL; NULL: none, and HOME by the user's entry */
    const char *const *options; /* -o Name=Value..., ends with NULL; NULL: none */
    const char *server; /* a URL (--server): the only server there is. NULL: see WEIR_SERVER */
};

/* 0 and *out, perhaps with problems in it; or a failure: the file cannot be read, or memory. */
int config_load(const struct config_input *in, struct config **out, struct err *e);
void config_free(struct config *c);

/* "FILE:12: error: ParCheck=perhaps: ..." without a newline. */
void config_problem_text(const struct config *c, const struct config_problem *p, char *out,
                         size_t size);
const char *config_from_name(enum config_from from);
const char *config_level_name(enum config_level level);

/* NULL when there is none of that name; the case of letters does not matter. */
const struct config_entry *config_find(const struct config *c, const char *name);
/* By its name, else by one of its aliases (when asked to); NULL: no such category. */
const struct config_category *config_find_category(const struct config *c, const char *name,
                                                   bool aliases);

/* May the daemon listen as this configuration says? A published or empty password on an address that other machines
 * reach is ERR_UNSAFE, with what to do about it. */
int config_may_listen(const struct config *c, struct err *e);

struct config_change {
    const struct config_entry *before; /* NULL: new */
    const struct config_entry *after;  /* NULL: gone */
    bool restart;                      /* it counts from the next start on */
};
/* What counts differently in `b`, in its order, then what is gone; `visit` may be NULL. Returns how many. */
typedef void (*config_change_cb)(void *arg, const struct config_change *change);
size_t config_diff(const struct config *a, const struct config *b, config_change_cb visit,
                   void *arg);

/* The sample file: every option with its help and its default; also the template of RPC's configtemplates. 0 or the
 * error of the stream. */
int config_sample(FILE *f);

/* A configuration file with other values in it: lines keep their place and comments, options that `pairs` does not hold
 * are removed, new ones are added at the end. A secret given as "***" keeps what the file has. *out is mem_free()d by the
 * caller. ERR_INVALID: a name or value that no line can hold. ERR_UNSAFE: another program would
 * be run (CONFIG_FILE_ONLY, or a task whose command is Process), be it by way of a variable. `e` names the option. */
struct config_pair {
    const char *name;
    const char *value;
};
int config_rewrite(const char *text, size_t len, const struct config_pair *pairs, size_t count,
                   char **out, size_t *out_len, struct err *e);

#endif
