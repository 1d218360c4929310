/* edit.h - everything a user does to a queue: one struct, one function, one result per id.
 *
 * The table QUEUE_EDIT_MAP is the whole list; its names are NZBGet's editqueue commands, so that the RPC layer looks a
 * command up and fills the struct. Each id of a batch is edited as a whole or not at all and gets its own result; a
 * batch over 10,000 jobs puts the orders right once, at the end.
 *
 * The queue changes at once. What an edit asks of others (drop leases, delete files, load a stored NZB) is in the
 * result's `todo`, in the order in which the ids were given. */
#ifndef QUEUE_EDIT_H
#define QUEUE_EDIT_H

#include "queue/queue.h"

/* X(id, NZBGet's name, what the ids are, what the text or number means) */
#define QUEUE_EDIT_MAP(X)                                                              \
    X(FILE_MOVE_OFFSET, "FileMoveOffset", FILE, "number: places down (negative: up)")  \
    X(FILE_MOVE_TOP, "FileMoveTop", FILE, "")                                          \
    X(FILE_MOVE_BOTTOM, "FileMoveBottom", FILE, "")                                    \
    X(FILE_PAUSE, "FilePause", FILE, "")                                               \
    X(FILE_RESUME, "FileResume", FILE, "")                                             \
    X(FILE_DELETE, "FileDelete", FILE, "")                                             \
    X(FILE_PAUSE_ALL_PARS, "FilePauseAllPars", FILE, "")                               \
    X(FILE_PAUSE_EXTRA_PARS, "FilePauseExtraPars", FILE, "")                           \
    X(FILE_REORDER, "FileReorder", FILE, "ids of one job in the wanted order")         \
    X(FILE_SPLIT, "FileSplit", FILE, "text: name of the new job")                      \
    X(GROUP_MOVE_OFFSET, "GroupMoveOffset", JOB, "number: places down (negative: up)") \
    X(GROUP_MOVE_TOP, "GroupMoveTop", JOB, "")                                         \
    X(GROUP_MOVE_BOTTOM, "GroupMoveBottom", JOB, "")                                   \
    X(GROUP_MOVE_BEFORE, "GroupMoveBefore", JOB, "number: id of the target job")       \
    X(GROUP_MOVE_AFTER, "GroupMoveAfter", JOB, "number: id of the target job")         \
    X(GROUP_PAUSE, "GroupPause", JOB, "")                                              \
    X(GROUP_RESUME, "GroupResume", JOB, "")                                            \
    X(GROUP_PAUSE_ALL_PARS, "GroupPauseAllPars", JOB, "")                              \
    X(GROUP_PAUSE_EXTRA_PARS, "GroupPauseExtraPars", JOB, "")                          \
    X(GROUP_DELETE, "GroupDelete", JOB, "to history; files deleted")                   \
    X(GROUP_PARK_DELETE, "GroupParkDelete", JOB, "to history; data kept, may return")  \
    X(GROUP_DUPE_DELETE, "GroupDupeDelete", JOB, "to history as a duplicate")          \
    X(GROUP_FINAL_DELETE, "GroupFinalDelete", JOB, "no history")                       \
    X(GROUP_SET_PRIORITY, "GroupSetPriority", JOB, "number")                           \
    X(GROUP_SET_CATEGORY, "GroupSetCategory", JOB, "text")                             \
    X(GROUP_APPLY_CATEGORY, "GroupApplyCategory", JOB, "text; caller sets parameters") \
    X(GROUP_SET_PARAMETER, "GroupSetParameter", JOB, "text: Name=Value")               \
    X(GROUP_MERGE, "GroupMerge", JOB, "the first id takes the files of the others")    \
    X(GROUP_SET_NAME, "GroupSetName", JOB, "text")                                     \
    X(GROUP_SET_DUPE_KEY, "GroupSetDupeKey", JOB, "text")                              \
    X(GROUP_SET_DUPE_SCORE, "GroupSetDupeScore", JOB, "number")                        \
    X(GROUP_SET_DUPE_MODE, "GroupSetDupeMode", JOB, "text: SCORE, ALL or FORCE")       \
    X(GROUP_SORT, "GroupSort", JOB, "text: name|size|left|age|category|priority[+-]")  \
    X(GROUP_SORT_FILES, "GroupSortFiles", JOB, "")                                     \
    X(POST_DELETE, "PostDelete", JOB, "cancel post-processing")                        \
    X(HISTORY_DELETE, "HistoryDelete", PAST, "hidden, kept for duplicates")            \
    X(HISTORY_FINAL_DELETE, "HistoryFinalDelete", PAST, "")                            \
    X(HISTORY_RETURN, "HistoryReturn", PAST, "back into the queue")                    \
    X(HISTORY_PROCESS, "HistoryProcess", PAST, "post-process again")                   \
    X(HISTORY_REDOWNLOAD, "HistoryRedownload", PAST, "from nothing")                   \
    X(HISTORY_RETRY_FAILED, "HistoryRetryFailed", PAST, "only failed articles")        \
    X(HISTORY_SET_PARAMETER, "HistorySetParameter", PAST, "text: Name=Value")          \
    X(HISTORY_SET_NAME, "HistorySetName", PAST, "text")                                \
    X(HISTORY_SET_CATEGORY, "HistorySetCategory", PAST, "text")                        \
    X(HISTORY_SET_DUPE_KEY, "HistorySetDupeKey", PAST, "text")                         \
    X(HISTORY_SET_DUPE_SCORE, "HistorySetDupeScore", PAST, "number")                   \
    X(HISTORY_SET_DUPE_MODE, "HistorySetDupeMode", PAST, "text")                       \
    X(HISTORY_SET_DUPE_BACKUP, "HistorySetDupeBackup", PAST, "number: 1 or 0")         \
    X(HISTORY_MARK_BAD, "HistoryMarkBad", PAST, "")                                    \
    X(HISTORY_MARK_GOOD, "HistoryMarkGood", PAST, "")                                  \
    X(HISTORY_MARK_SUCCESS, "HistoryMarkSuccess", PAST, "")

enum queue_edit_op {
#define X(id, name, of, what) QUEUE_EDIT_##id,
    QUEUE_EDIT_MAP(X)
#undef X
        QUEUE_EDIT_OPS,
};
enum queue_edit_of { QUEUE_EDIT_FILE, QUEUE_EDIT_JOB, QUEUE_EDIT_PAST };

/* By NZBGet's name, case ignored; -1: no such command. */
int queue_edit_find(const char *name);
const char *queue_edit_name(enum queue_edit_op op);
enum queue_edit_of queue_edit_of(enum queue_edit_op op);

struct queue_edit {
    enum queue_edit_op op;
    const char *text; /* NULL counts as "" */
    int64_t
        number; /* also read out of `text` when the RPC form has it there: the caller does that */
    const uint32_t *ids;
    uint32_t id_count;
    const uint64_t
        *seen; /* row_versions the client saw, per id (of the file's job); NULL or 0: any */
    int64_t now_at;
    bool dupe_check; /* option DupeCheck: HistoryDelete then hides instead of removing */
};

enum queue_todo { /* what the coordinator has to do for this id, besides saving */
                  QUEUE_TODO_NONE = 0,
                  QUEUE_TODO_DROP_LEASES =
                      1, /* of the job or file: results that arrive later are dropped */
                  QUEUE_TODO_DELETE_FILES = 2, /* of the job, or the one file, on disk */
                  QUEUE_TODO_REMOVE =
                      4, /* call queue_job_remove() when done: the job waits in history until then */
                  QUEUE_TODO_STOP_POST = 8,
                  QUEUE_TODO_START_POST = 16, /* HistoryProcess */
                  QUEUE_TODO_LOAD_NZB =
                      32, /* its articles were shed: read its sources, then queue_job_reload() */
                  QUEUE_TODO_MOVE_DIR =
                      64, /* name or category changed: the directory may have to follow */
                  QUEUE_TODO_DOWNLOADED =
                      128, /* the edit took away the last thing to wait for: as QUEUE_NEWS_JOB_ENDED */
};

struct queue_edit_result {
    uint32_t id;
    int code; /* 0; ERR_NOT_FOUND, ERR_CONFLICT (stale row_version, illegal state), ERR_INVALID, -ENOMEM */
    uint32_t todo; /* QUEUE_TODO_* */
    uint32_t
        new_id; /* split: the new job; redownload, retry: the successor; FileDelete: the file's job */
    const char *why; /* a sentence when code is not 0, else "" */
};

/* `results` has room for id_count entries (for GroupSort without ids: none). Returns how many ids were edited. A
 * number or text that is wrong for the command gives ERR_INVALID for every id. */
uint32_t queue_edit(struct queue *q, const struct queue_edit *edit,
                    struct queue_edit_result *results);

#endif
