/* record.c - what goes into the store: one row per event; article errors are folded.
 *
 * Errors of one job on one server with one code make at most one row in COORD_FOLD_MS: the first is written at once,
 * those that follow are counted and written when the time is over. */
#include "coordinator/core.h"

const char *coord_record_name(enum coord_record_type type)
{
    static const char *const names[COORD_RECORDS] = {
        "created",   "claimed",     "status_changed", "error",   "retry_scheduled",
        "recovered", "hold_set",    "hold_cleared",   "health",  "par_requested",
        "stage",     "file_done",   "stuck",          "verdict", "illegal_transition",
        "server",    "save_failed",
    };
    return (unsigned)type < COORD_RECORDS ? names[type] : "?";
}

const char *coord_effect_name(enum coord_effect_type type)
{
    static const char *const names[COORD_EFFECTS] = {
        "fetch",      "cancel",     "rate",         "server",     "open_file",  "write",
        "discard",    "close_file", "delete_files", "quarantine", "move_dir",   "check_space",
        "journal",    "save",       "store_nzb",    "load_nzb",   "forget_nzb", "fetch_url",
        "post_start", "post_stop",  "record",       "volume",     "reply",      "stopped",
    };
    return (unsigned)type < COORD_EFFECTS ? names[type] : "?";
}

void coord_record(struct coord *c, const struct coord_record *r)
{
    struct coord_effect fx = {.type = COORD_FX_RECORD, .record = *r};
    if (c->out == NULL) {
        return; /* being set up */
    }
    fx.record.seq = ++c->record_seq;
    fx.record.at = coord_now_at(c);
    fx.record.text = r->text != NULL ? r->text : "";
    coord_emit(c, &fx);
}

void coord_record_job(struct coord *c, enum coord_record_type type, const struct queue_job *j,
                      enum coord_code code, const char *text)
{
    coord_record(c, &(struct coord_record){.type = type,
                                           .job_id = j->id,
                                           .row_version = j->row_version,
                                           .code = code,
                                           .text = text});
}

static void write_fold(struct coord *c, struct fold *f)
{
    if (f->count > 0) {
        const struct queue_job *j = queue_job(c->q, f->job_id);
        coord_record(c, &(struct coord_record){.type = COORD_REC_ERROR,
                                               .job_id = f->job_id,
                                               .row_version = j != NULL ? j->row_version : 0,
                                               .server_id = f->server_id,
                                               .code = f->code,
                                               .count = f->count,
                                               .text = coord_error(f->code)->text});
    }
    f->count = 0;
    f->written_ms = c->now.mono_ms;
}

void coord_record_error(struct coord *c, const struct queue_job *j, uint32_t server_id,
                        enum coord_code code)
{
    struct fold *f = &c->folds[(j->id * 131 + server_id * 31 + (unsigned)code) % FOLDS];
    bool same = f->used && f->job_id == j->id && f->server_id == server_id && f->code == code;
    if (!same) {
        if (f->used) {
            write_fold(c, f);
        }
        *f = (struct fold){.job_id = j->id, .server_id = server_id, .code = code, .used = true};
    }
    f->count++;
    if (!same || c->now.mono_ms - f->written_ms >= COORD_FOLD_MS) {
        write_fold(c, f);
    } else if (!timer_is_set(&c->core_timers[CORE_FOLD])) {
        timer_set(&c->timers, &c->core_timers[CORE_FOLD], c->now.mono_ms + COORD_FOLD_MS);
    }
}

void coord_fold_due(struct coord *c)
{
    for (unsigned i = 0; i < FOLDS; i++) {
        struct fold *f = &c->folds[i];
        if (f->used && c->now.mono_ms - f->written_ms >= COORD_FOLD_MS) {
            write_fold(c, f);
            f->used = false;
        } else if (f->used) {
            timer_set(&c->timers, &c->core_timers[CORE_FOLD], c->now.mono_ms + COORD_FOLD_MS);
        }
    }
}
