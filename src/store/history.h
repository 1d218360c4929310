/* history.h - what clients see of a finished job: NZBGet's history entry, one per job.
 *
 * Words of closed lists ("SUCCESS", "NONE") are kept as words; which there are is the caller's business. */
#ifndef STORE_HISTORY_H
#define STORE_HISTORY_H

#include "store/store.h"

struct store_pair {
    const char *name, *value;
};
struct store_server_stat {
    uint32_t server, done, failed;
};

struct store_history {
    uint32_t job;       /* NZBID */
    int64_t at;         /* HistoryTime; the list is ordered by it, newest first */
    bool hidden;        /* Kind=DUP: only known to the duplicate check */
    const char *kind;   /* NZB or URL */
    const char *status; /* "SUCCESS/ALL" */
    const char *name, *filename, *url, *category, *dest_dir, *final_dir;
    const char *dupe_key, *dupe_mode;
    int32_t dupe_score;
    const char *par_status, *unpack_status, *move_status, *script_status;
    const char *delete_status, *mark_status, *url_status, *dup_status;
    uint64_t size_bytes, downloaded_bytes;
    uint32_t files, left_files;
    uint32_t articles, articles_done, articles_failed;
    uint32_t health_permille, critical_permille;
    uint32_t download_sec, post_sec, par_sec, repair_sec, unpack_sec;
    uint32_t messages, extra_par_blocks;
    int64_t min_post_at, max_post_at;
    bool retry_data;
    const struct store_pair *params;
    unsigned param_count;
    const struct store_pair *scripts; /* ScriptStatuses */
    unsigned script_count;
    const struct store_server_stat *servers;
    unsigned server_count;
};

/* Writes the entry of a job that has a row, in place of an older one. */
int store_history_put(struct store *s, const struct store_history *h, struct err *e);
/* ERR_NOT_FOUND when there is none. Events and the job row stay until they are old. */
int store_history_remove(struct store *s, uint32_t job, struct err *e);
int store_history_get(struct store *s, uint32_t job, struct store_page *page, struct err *e);

struct store_history_filter {
    bool with_hidden;
    const char *category; /* exactly; NULL: any */
    const char *status;   /* what it begins with: "FAILURE" or "FAILURE/PAR"; NULL: any */
    const char *name;     /* part of it, without regard to ASCII case; NULL: any */
    const char *dupe_key; /* exactly; NULL: any */
};
/* Rows: struct store_history, newest first. */
int store_history_list(struct store *s, const struct store_history_filter *f,
                       const struct store_range *range, struct store_page *page, struct err *e);
int store_history_count(struct store *s, bool with_hidden, int64_t *count, struct err *e);

#endif
