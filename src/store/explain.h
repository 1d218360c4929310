/* explain.h - why a job stands where it does: the facts, and two sentences made of them. */
#ifndef STORE_EXPLAIN_H
#define STORE_EXPLAIN_H

#include "store/event.h"
#include "store/import.h"
#include "store/job.h"
#include "store/stage.h"

enum { STORE_EXPLAIN_ERRORS = 8, STORE_EXPLAIN_TEXT = 400 };

struct store_error_sum { /* all errors of one code from one server */
    int32_t server;
    const char *code;
    enum store_category category;
    int64_t count;
    int64_t last_at;
    const char *text; /* of the last */
};

struct store_explain {
    struct store_job job;
    uint32_t everything_holds; /* holds on the whole queue that keep this job, too */
    struct store_import_summary import;
    bool has_stage;
    struct store_stage stage;                            /* the one that was begun last */
    struct store_error_sum errors[STORE_EXPLAIN_ERRORS]; /* most frequent first */
    unsigned error_count;
    enum store_stuck_why stuck;
    int64_t stuck_ms;
    char cause
        [STORE_EXPLAIN_TEXT]; /* "12 of 840 blocks missing on 2 servers; 9 recovery blocks available; 3 short" */
    char next[STORE_EXPLAIN_TEXT]; /* what would help; "" when nothing is needed */
    struct store_mem *mem;
};
/* ERR_NOT_FOUND. hold_name turns a bit into its name for the sentences; may be NULL. */
typedef const char *(*store_hold_name_cb)(unsigned bit_number);
int store_explain(struct store *s, uint32_t job, bool server_up, store_hold_name_cb hold_name,
                  struct clock_time now, struct store_explain *x, struct err *e);
void store_explain_free(struct store_explain *x);

#endif
