#include "store/request.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/db.h"

enum {
    TICK_MS = 1000,
    PURGE_MS = 10 * 60 * 1000,
    PURGE_ROWS = 500,
    BACKUP_MS = 24 * 3600 * 1000,
    BACKUP_PAGES = 1024, /* 4 MiB a second */
};

static const struct {
    const char *name;
    bool changes;
} ops[] = {
#define X(id, changes_) {#id, changes_},
    STORE_OP_MAP(X)
#undef X
};

const char *store_op_name(enum store_op op)
{
    PRE((int)op >= 0 && op < STORE_OPS);
    return ops[op].name;
}

/* ---- requests ---- */

struct store_request *store_request_new(enum store_op op)
{
    PRE((int)op >= 0 && op < STORE_OPS);
    struct store_request *r = mem_zalloc(1, sizeof(*r));
    if (r != NULL) {
        r->op = op;
    }
    return r;
}

void *store_request_alloc(struct store_request *r, size_t size)
{
    return store_mem_alloc(&r->mem, size);
}

const char *store_request_text(struct store_request *r, const char *text)
{
    const char *copy;
    return store_mem_text(&r->mem, text, &copy) == 0 ? copy : NULL;
}

/* Frees what an answer holds. */
static void clear_out(struct store_request *r)
{
    switch (r->op) {
    case STORE_OP_JOB_GET:
    case STORE_OP_JOB_LIST:
    case STORE_OP_JOB_STUCK:
    case STORE_OP_EVENT_LIST:
    case STORE_OP_STAGE_LIST:
    case STORE_OP_IMPORT_CLAIM:
    case STORE_OP_IMPORT_GET:
    case STORE_OP_IMPORT_LIST:
    case STORE_OP_IMPORT_CHAIN:
    case STORE_OP_HISTORY_GET:
    case STORE_OP_HISTORY_LIST:
    case STORE_OP_VOLUME_DAYS:
    case STORE_OP_VOLUME_COUNTERS:
        store_page_free(&r->out.page);
        break;
    case STORE_OP_EXPLAIN:
        store_explain_free(&r->out.explain);
        break;
    default:
        memset(&r->out, 0, sizeof(r->out));
        break;
    }
}

void store_request_free(struct store_request *r)
{
    if (r != NULL) {
        clear_out(r);
        store_mem_free(r->mem);
        mem_free(r);
    }
}

static int run_job(struct store *s, struct store_request *r, struct clock_time now, struct err *e)
{
    switch (r->op) {
    case STORE_OP_JOB_ADD:
        return store_job_add(s, &r->in.job_add, now, &r->out.job_made, e);
    case STORE_OP_JOB_ADOPT:
        return store_job_adopt(s, &r->in.job_adopt, now, e);
    case STORE_OP_JOB_MOVE:
        return store_job_move(s, &r->in.job_move, now, &r->out.job_moved, e);
    case STORE_OP_JOB_EDIT:
        return store_job_edit(s, &r->in.job_edit, now, &r->out.row_version, e);
    case STORE_OP_JOB_PROGRESS:
        return store_job_progress(s, r->in.job_progress.job, &r->in.job_progress.facts, now, e);
    case STORE_OP_JOB_NOT_FOUND:
        return store_job_not_found(s, r->in.job_not_found.job, r->in.job_not_found.not_found, now,
                                   &r->out.number, e);
    case STORE_OP_JOB_HOLD:
        return store_job_hold(s, &r->in.job_hold, now, e);
    case STORE_OP_JOB_GET:
        return store_job_get(s, r->in.job, &r->out.page, e);
    case STORE_OP_JOB_LIST:
        return store_job_list(s, &r->in.job_list.filter, &r->in.job_list.range, &r->out.page, e);
    case STORE_OP_JOB_COUNTS:
        return store_job_counts(s, r->out.counts, e);
    case STORE_OP_JOB_STUCK:
        return store_job_stuck(s, r->in.job_stuck.server_up, now, &r->in.job_stuck.range,
                               &r->out.page, e);
    default:
        IMPOSSIBLE("not about jobs");
    }
}

static int run_import(struct store *s, struct store_request *r, struct clock_time now,
                      struct err *e)
{
    switch (r->op) {
    case STORE_OP_IMPORT_SPAWN:
        return store_import_spawn(s, r->in.import_spawn.job, r->in.import_spawn.tasks,
                                  r->in.import_spawn.count, now, &r->out.made, e);
    case STORE_OP_IMPORT_CLAIM:
        return store_import_claim(s, r->in.import_claim.limit, now, &r->out.page, e);
    case STORE_OP_IMPORT_PROGRESS:
        return store_import_progress(s, r->in.import.task, r->in.import.attempt, now, e);
    case STORE_OP_IMPORT_END:
        return store_import_end(s, &r->in.import_end, now, &r->out.import_ended, e);
    case STORE_OP_IMPORT_CANCEL:
        return store_import_cancel(s, r->in.import.task, now, e);
    case STORE_OP_IMPORT_AGAIN:
        return store_import_again(s, r->in.import.task, now, &r->out.number, e);
    case STORE_OP_IMPORT_NEXT:
        return store_import_next(s, now, &r->out.number, e);
    case STORE_OP_IMPORT_GET:
        return store_import_get(s, r->in.import.task, &r->out.page, e);
    case STORE_OP_IMPORT_LIST:
        return store_import_list(s, &r->in.import_list.filter, &r->in.import_list.range,
                                 &r->out.page, e);
    case STORE_OP_IMPORT_CHAIN:
        return store_import_chain(s, r->in.import.task, &r->out.page, e);
    case STORE_OP_IMPORT_COUNTS:
        return store_import_counts(s, r->out.counts, e);
    case STORE_OP_IMPORT_SUMMARY:
        return store_import_summary(s, r->in.job, &r->out.import_summary, e);
    default:
        IMPOSSIBLE("not about imports");
    }
}

static int run_record(struct store *s, struct store_request *r, struct clock_time now,
                      struct err *e)
{
    switch (r->op) {
    case STORE_OP_EVENT_ADD:
        return store_event_add(s, &r->in.event_add, now, &r->out.number, e);
    case STORE_OP_EVENT_ERRORS:
        return store_event_errors(s, r->in.event_errors.job, r->in.event_errors.server,
                                  r->in.event_errors.code, r->in.event_errors.category,
                                  r->in.event_errors.text, r->in.event_errors.count, now, e);
    case STORE_OP_EVENT_LIST:
        return store_event_list(s, &r->in.event_list.filter, &r->in.event_list.range, &r->out.page,
                                e);
    case STORE_OP_STAGE_BEGIN:
        return store_stage_begin(s, r->in.stage.job, r->in.stage.name, now, &r->out.stage.attempt,
                                 e);
    case STORE_OP_STAGE_PROGRESS:
        return store_stage_progress(s, r->in.stage.job, r->in.stage.name, r->in.stage.permille, now,
                                    e);
    case STORE_OP_STAGE_END:
        return store_stage_end(s, &r->in.stage_end, now, &r->out.stage.again, e);
    case STORE_OP_STAGE_LIST:
        return store_stage_list(s, r->in.job, &r->out.page, e);
    case STORE_OP_HISTORY_PUT:
        return store_history_put(s, &r->in.history_put, e);
    case STORE_OP_HISTORY_REMOVE:
        return store_history_remove(s, r->in.job, e);
    case STORE_OP_HISTORY_GET:
        return store_history_get(s, r->in.job, &r->out.page, e);
    case STORE_OP_HISTORY_LIST:
        return store_history_list(s, &r->in.history_list.filter, &r->in.history_list.range,
                                  &r->out.page, e);
    case STORE_OP_HISTORY_COUNT:
        return store_history_count(s, r->in.with_hidden, &r->out.number, e);
    case STORE_OP_VOLUME_ADD:
        return store_volume_add(s, &r->in.volume_add, now, e);
    case STORE_OP_VOLUME_RESET:
        return store_volume_reset(s, r->in.volume_reset.server, r->in.volume_reset.custom, now, e);
    case STORE_OP_VOLUME_DAYS:
        return store_volume_days(s, r->in.volume_days.server, r->in.volume_days.from_day,
                                 &r->in.volume_days.range, &r->out.page, e);
    case STORE_OP_VOLUME_COUNTERS:
        return store_volume_counters(s, &r->out.page, e);
    case STORE_OP_EXPLAIN:
        return store_explain(s, r->in.explain.job, r->in.explain.server_up, r->in.explain.hold_name,
                             now, &r->out.explain, e);
    case STORE_OP_PURGE:
        return store_purge(s, &r->in.purge.keep, r->in.purge.rows, now, &r->out.purged, e);
    case STORE_OP_LAST_JOB_ID:
        return store_last_job_id(s, &r->out.job, e);
    default:
        IMPOSSIBLE("no such request");
    }
}

static void run(struct store *s, struct store_request *r, struct clock_time now)
{
    err_clear(&r->err);
    if (r->op <= STORE_OP_JOB_STUCK) {
        r->code = run_job(s, r, now, &r->err);
    } else if (r->op >= STORE_OP_IMPORT_SPAWN && r->op <= STORE_OP_IMPORT_SUMMARY) {
        r->code = run_import(s, r, now, &r->err);
    } else {
        r->code = run_record(s, r, now, &r->err);
    }
}

/* ---- the actor ---- */

struct store_actor {
    struct actor actor;
    struct store_actor_options o;
    struct store *store;
    struct store_report *report;                  /* while starting */
    struct store_request *batch[STORE_BATCH_MAX]; /* received, not yet run */
    unsigned batch_count;
    uv_check_t after_inbox; /* runs the batch when the inbox is drained */
    uv_timer_t tick;
    uint64_t purged_ms;
    bool purge_more, copying;
    int close_code;
    struct err close_err;
};

static void answer(struct store_request *r)
{
    if (r->done != NULL) {
        r->done(r);
        return;
    }
    if (r->code != 0) {
        log_error("store: %s: %s", store_op_name(r->op), r->err.msg);
    }
    store_request_free(r);
}

static bool of_the_world(int code) /* and not a refusal */
{
    return code < 0 && code > ERR_INVALID;
}

/* Nothing of the transaction stayed: whoever was told 0, or only that it was given up, learns the cause. */
static void nothing_happened(struct store_request **rs, unsigned count, const struct err *commit)
{
    struct err cause = *commit;
    for (unsigned i = count; i-- > 0;) {
        if (of_the_world(rs[i]->code)) {
            cause = rs[i]->err; /* the first one in the end */
        }
    }
    for (unsigned i = 0; i < count; i++) {
        if (rs[i]->code == 0 || of_the_world(rs[i]->code)) {
            clear_out(rs[i]);
            rs[i]->code = cause.code;
            rs[i]->err = cause;
        }
    }
}

/* Runs changes from `at` on in one transaction and answers them; returns how many. */
static unsigned run_changes(struct store_actor *a, unsigned at, struct clock_time now)
{
    struct store_request **first = &a->batch[at];
    struct err e = {0};
    unsigned count = 0;
    int rv = store_batch_begin(a->store, &e);
    while (at + count < a->batch_count && ops[first[count]->op].changes) {
        if (rv == 0) {
            run(a->store, first[count], now);
        } else {
            first[count]->code = rv;
            first[count]->err = e;
        }
        count++;
    }
    if (rv == 0 && store_batch_end(a->store, &e) != 0) {
        nothing_happened(first, count, &e);
    }
    for (unsigned i = 0; i < count; i++) {
        answer(first[i]);
    }
    return count;
}

static void run_batch(struct store_actor *a)
{
    struct clock_time now = clock_now(a->o.clock);
    unsigned at = 0;
    while (at < a->batch_count) {
        if (ops[a->batch[at]->op].changes) {
            at += run_changes(a, at, now);
        } else {
            run(a->store, a->batch[at], now);
            answer(a->batch[at]);
            at++;
        }
    }
    a->batch_count = 0;
}

static void on_recv(struct actor *actor, void *msg)
{
    struct store_actor *a = actor->self;
    a->batch[a->batch_count++] = msg;
    if (a->batch_count == STORE_BATCH_MAX) {
        run_batch(a);
    }
}

static void on_after_inbox(uv_check_t *h)
{
    run_batch(h->data);
}

static void upkeep(struct store_actor *a, struct clock_time now)
{
    struct err e = {0};
    struct store_purged purged;
    if (a->purge_more || a->purged_ms == 0 || now.mono_ms - a->purged_ms >= PURGE_MS) {
        a->purged_ms = now.mono_ms > 0 ? now.mono_ms : 1;
        a->purge_more = false;
        if (store_purge(a->store, &a->o.keep, PURGE_ROWS, now, &purged, &e) == 0) {
            a->purge_more = purged.more;
        } else {
            log_error("store: purge: %s", e.msg);
        }
    }
    int64_t since = now.wall_ms - store_backup_at(a->store);
    if (a->copying || since >= BACKUP_MS || since < 0) {
        bool done;
        int rv = store_backup_step(a->store, BACKUP_PAGES, now, &done, &e);
        if (rv != 0) {
            log_error("store: %s", e.msg);
        }
        a->copying = rv == 0 && !done;
    }
}

static void on_tick(uv_timer_t *h)
{
    struct store_actor *a = h->data;
    struct clock_time now = clock_now(a->o.clock);
    struct err e = {0};
    if (store_event_flush(a->store, false, now, &e) != 0) {
        log_error("store: %s", e.msg);
    }
    if (!a->o.no_upkeep) {
        upkeep(a, now);
    }
}

static int on_start(struct actor *actor, struct err *e)
{
    struct store_actor *a = actor->self;
    struct store_options o = a->o.open;
    o.now = clock_now(a->o.clock);
    int rv = store_open(&a->store, &o, a->report, e);
    if (rv != 0) {
        return rv;
    }
    uv_check_init(&actor->loop, &a->after_inbox);
    a->after_inbox.data = a;
    uv_check_start(&a->after_inbox, on_after_inbox);
    uv_timer_init(&actor->loop, &a->tick);
    a->tick.data = a;
    uv_timer_start(&a->tick, on_tick, TICK_MS, TICK_MS);
    return 0;
}

static void on_stop(struct actor *actor)
{
    struct store_actor *a = actor->self;
    run_batch(a);
    a->close_code = store_close(a->store, clock_now(a->o.clock), &a->close_err);
    a->store = NULL;
    uv_close((uv_handle_t *)&a->after_inbox, NULL);
    uv_close((uv_handle_t *)&a->tick, NULL);
}

int store_actor_start(struct store_actor **out, const struct store_actor_options *o,
                      struct store_report *report, struct err *e)
{
    static const struct actor_type type = {
        .name = "store", .inbox = STORE_INBOX, .start = on_start, .recv = on_recv, .stop = on_stop};
    *out = NULL;
    struct store_actor *a = mem_zalloc(1, sizeof(*a));
    if (a == NULL) {
        return err_sys(e, -ENOMEM, "store");
    }
    a->o = *o;
    a->report = report;
    int rv = actor_start(&a->actor, &type, a, e);
    if (rv != 0) {
        mem_free(a);
        return rv;
    }
    *out = a;
    return 0;
}

int store_post(struct store_actor *a, struct store_request *r)
{
    return actor_post(&a->actor, r);
}

int store_actor_stop(struct store_actor *a, struct err *e)
{
    actor_stop(&a->actor);
    actor_join(&a->actor);
    return a->close_code != 0 ? err_set(e, a->close_code, "%s", a->close_err.msg) : 0;
}

void store_actor_free(struct store_actor *a)
{
    actor_free(&a->actor);
    mem_free(a);
}
