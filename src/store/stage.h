/* stage.h - the post-processing steps of a job, each with its attempts.
 *
 *   (none) -> running -> done | failed | interrupted (crash)
 *   failed, interrupted -> running   the next attempt, while the budget lasts
 *   done -> running                  another run with a new budget (verify again after more volumes came) */
#ifndef STORE_STAGE_H
#define STORE_STAGE_H

#include "store/store.h"

enum store_stage_state {
    STORE_STAGE_RUNNING,
    STORE_STAGE_DONE,
    STORE_STAGE_FAILED,
    STORE_STAGE_INTERRUPTED,
    STORE_STAGE_STATES,
};
const char *store_stage_state_name(enum store_stage_state state);

struct store_stage {
    uint32_t job;
    const char *name; /* "verify" */
    enum store_stage_state state;
    uint32_t run;     /* from 1 */
    uint32_t attempt; /* in this run, from 1 */
    uint32_t progress_permille;
    int64_t started_at, progress_at, ended_at;
    const char *code;
    enum store_category category;
    const char *text;
};

/* The attempt that begins. The job must be processing. ERR_INVALID when it runs already, ERR_LIMIT when
 * STORE_STAGE_ATTEMPTS are used up; both are recorded. */
int store_stage_begin(struct store *s, uint32_t job, const char *name, struct clock_time now,
                      uint32_t *attempt, struct err *e);
/* A life sign of the step is one of the job. */
int store_stage_progress(struct store *s, uint32_t job, const char *name, uint32_t permille,
                         struct clock_time now, struct err *e);
struct store_stage_end {
    uint32_t job;
    const char *name;
    uint32_t attempt; /* the one that ends: an older one is ERR_CONFLICT */
    bool ok;
    const char *code;
    enum store_category category;
    const char *text; /* also for success: "12 blocks repaired" */
};
/* *again: the step failed for a passing reason and has attempts left. */
int store_stage_end(struct store *s, const struct store_stage_end *end, struct clock_time now,
                    bool *again, struct err *e);
/* Rows: struct store_stage, in the order in which they first began. */
int store_stage_list(struct store *s, uint32_t job, struct store_page *page, struct err *e);

#endif
