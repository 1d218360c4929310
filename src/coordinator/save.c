/* save.c - when the queue is saved, what waits for that, and how the program ends.
 *
 * A save is asked for at once when something was added, removed, completed or edited, and every COORD_SAVE_MS when
 * anything changed. One is under way at a time; what comes meanwhile goes into the next, so a hundred commands cost two
 * saves. An answer goes out when a save that has its change is on the disk, never before. A save that fails answers
 * those who waited for it with the reason, is tried again with growing pauses, and is shown in the status until one
 * succeeds; the queue stays dirty meanwhile.
 *
 * Shutdown: RUN -> DRAIN: nothing new is begun; leases and writes may end -> LAST_SAVE -> STOPPED. Deadlines end the
 * first two. A second request goes to LAST_SAVE at once, with a deadline of a second. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "coordinator/core.h"

#define S(id, next_) [PHASE_##id] = {.name = #id, .next = (next_)}
#define N(id)        SM_BIT(PHASE_##id)
static const struct sm_state phases[PHASES] = {
    S(RUN, N(DRAIN)),
    S(DRAIN, N(LAST_SAVE)),
    S(LAST_SAVE, N(STOPPED)),
    S(STOPPED, 0),
};
#undef S
#undef N
const struct sm_type coord_phase_type = {"coordinator", phases, PHASES, NULL};

/* ---- saving ---- */

void coord_save_soon(struct coord *c)
{
    c->save_wanted = true;
}

static void emit_deferred(struct coord *c, struct deferred *d)
{
    if (d->fx.type == COORD_FX_DELETE_FILES) {
        d->fx.file.dir = d->text;
    } else {
        d->fx.nzb.stored = d->text;
    }
    bool needed = d->fx.type == COORD_FX_FORGET_NZB && queue_nzb_in_use(c->q, d->text);
    if (!needed) {
        coord_emit(c, &d->fx);
    }
}

void coord_after_save(struct coord *c, const struct coord_effect *fx, const char *text)
{
    size_t len = strlen(text) + 1;
    struct deferred *d = mem_alloc(sizeof(*d) + len);
    if (d == NULL) { /* better a little too early than never */
        coord_emit(c, fx);
        return;
    }
    d->fx = *fx;
    memcpy(d->text, text, len);
    d->changes = c->q->changes;
    if (MUTANT(22)) { /* deletes what a crash would bring back */
        emit_deferred(c, d);
        mem_free(d);
        return;
    }
    list_push_back(&c->deferred, &d->node);
    coord_save_soon(c);
}

static void after_save(struct coord *c)
{
    while (!list_empty(&c->deferred)) {
        struct deferred *d = LIST_ENTRY(c->deferred.next, struct deferred, node);
        if (d->changes > c->q->saved_changes) {
            return;
        }
        list_remove(&d->node);
        emit_deferred(c, d);
        mem_free(d);
    }
}

void coord_save_due(struct coord *c)
{
    coord_volumes_tell(c);
    if (queue_dirty(c->q)) {
        c->save_wanted = true;
    }
    timer_set(&c->timers, &c->core_timers[CORE_SAVE], c->now.mono_ms + COORD_SAVE_MS);
}

void coord_save_maybe(struct coord *c)
{
    if (!c->save_wanted || c->save_under_way || c->phase.state == PHASE_STOPPED) {
        return;
    }
    if (c->now.mono_ms < c->save_retry_ms && c->phase.state != PHASE_LAST_SAVE) {
        timer_set(&c->timers, &c->core_timers[CORE_SAVE], c->save_retry_ms);
        return;
    }
    c->save_wanted = false;
    c->save_under_way = true;
    c->saving_changes = c->q->changes;
    coord_emit(c, &(struct coord_effect){.type = COORD_FX_SAVE, .changes = c->q->changes});
}

/* Answers everybody whose change is in what was just saved (or was not, when `code` says so). */
static void answer(struct coord *c, uint64_t changes, int code, const char *text)
{
    while (!list_empty(&c->unsaved)) {
        struct waiting *w = LIST_ENTRY(c->unsaved.next, struct waiting, node);
        if (w->changes > changes) {
            return;
        }
        coord_wait_end(c, w, code, text);
    }
}

static void save_failed(struct coord *c, const struct coord_saved *s)
{
    const char *text = s->text != NULL ? s->text : coord_error(s->code)->text;
    c->failed_saves++;
    c->save_failures++;
    c->save_wanted = true;
    c->save_retry_ms = c->now.mono_ms + coord_backoff_ms(c, c->save_failures, COORD_SAVE_RETRY_S);
    snprintf(c->save_error, sizeof(c->save_error), "%s", text);
    coord_record(c, &(struct coord_record){
                        .type = COORD_REC_SAVE_FAILED, .code = s->code, .text = c->save_error});
    if (coord_error(s->code)->action == COORD_ACT_HOLD_DISK) {
        coord_no_space(c);
    }
    if (MUTANT(16)) { /* dirty is cleared although nothing was saved */
        c->q->saved_changes = s->changes;
        answer(c, s->changes, 0, "");
        return;
    }
    answer(c, s->changes, ERR_FULL, c->save_error);
}

static void stop_now(struct coord *c, int code);

void coord_on_saved(struct coord *c, const struct coord_saved *s)
{
    if (!c->save_under_way || s->changes != c->saving_changes) {
        c->stale_results++;
        return;
    }
    c->save_under_way = false;
    if (s->code == COORD_OK) {
        const struct queue_snapshot done = {.changes = s->changes, .generation = s->generation};
        c->saves++;
        c->save_failures = 0;
        c->save_retry_ms = 0;
        c->save_error[0] = '\0';
        queue_snapshot_saved(c->q, &done);
        answer(c, s->changes, 0, "");
        coord_wake_saved(c);
        after_save(c);
    } else {
        save_failed(c, s);
    }
    if (c->phase.state == PHASE_LAST_SAVE) {
        if (s->code != COORD_OK && c->save_failures < 3 && !c->quick) {
            return; /* tried again by the epilogue */
        }
        if (s->code != COORD_OK || !c->save_wanted) {
            stop_now(c, s->code == COORD_OK ? 0 : ERR_FULL);
        }
    }
}

/* ---- the end ---- */

static void refuse_waiting(struct coord *c, struct list *of)
{
    while (!list_empty(of)) {
        coord_wait_end(c, LIST_ENTRY(of->next, struct waiting, node), ERR_STOPPED,
                       "the program ends before this is durable");
    }
}

static void stop_now(struct coord *c, int code)
{
    sm_move(&c->phase, PHASE_STOPPED);
    refuse_waiting(c, &c->unstored);
    refuse_waiting(c, &c->unsaved);
    coord_volumes_tell(c);
    coord_emit(c, &(struct coord_effect){.type = COORD_FX_STOPPED, .code = code});
}

/* What ends in order is no failed attempt: the count is put so that the next start finds it unchanged. */
static void put_to_rest(struct coord *c)
{
    for (uint32_t i = 0; i < c->q->active_count; i++) {
        struct queue_job *j = c->q->order[i];
        if (j->life.state == QUEUE_DOWNLOADING) {
            (void)coord_move(c, j, QUEUE_QUEUED, "the program ends");
            j->attempt--;
            queue_job_touch(c->q, j);
        } else if (j->life.state == QUEUE_PROCESSING) {
            coord_post_leave(c, j);
            j->attempt--;
            queue_job_touch(c->q, j);
        }
    }
}

static void last_save(struct coord *c)
{
    coord_forget_leases(c);
    put_to_rest(c);
    sm_move(&c->phase, PHASE_LAST_SAVE);
    c->save_wanted = true;
    c->save_retry_ms = 0;
    timer_set(&c->timers, &c->core_timers[CORE_STOP], c->now.mono_ms + COORD_QUICK_MS);
}

void coord_shutdown(struct coord *c)
{
    if (c->phase.state == PHASE_RUN) {
        sm_move(&c->phase, PHASE_DRAIN);
        timer_set(&c->timers, &c->core_timers[CORE_STOP], c->now.mono_ms + COORD_STOP_MS);
        return;
    }
    c->quick = true;
    if (c->phase.state == PHASE_DRAIN) {
        last_save(c);
    }
}

void coord_stop_check(struct coord *c)
{
    if (c->phase.state == PHASE_DRAIN && c->lease_count == 0 && list_empty(&c->unstored)) {
        last_save(c);
    }
}

void coord_stop_due(struct coord *c)
{
    if (c->phase.state == PHASE_DRAIN) {
        if (!MUTANT(17)) { /* waits for ever for what never ends */
            last_save(c);
        }
    } else if (c->phase.state == PHASE_LAST_SAVE) {
        stop_now(c, ERR_STOPPED); /* the disk did not answer in time */
    }
}
