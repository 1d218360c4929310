/* command.c - commands: each gets exactly one reply, also when it is refused.
 *
 * Those that change the queue are answered when the change is durable (save.c); questions at once. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "coordinator/core.h"

/* ---- replies ---- */

void coord_reply(struct coord *c, uint64_t request, int code, const char *text)
{
    coord_emit(c, &(struct coord_effect){
                      .type = COORD_FX_REPLY,
                      .reply = {.request = request, .code = code, .text = text},
                  });
}

/* A place to wait; the caller has made sure that there is one. */
struct waiting *coord_wait(struct coord *c, uint64_t request, uint32_t job_id)
{
    struct waiting *w = LIST_ENTRY(list_pop_front(&c->free_waiting), struct waiting, node);
    w->request = request;
    w->job_id = job_id;
    w->existed = false;
    w->code = 0;
    w->count = 0;
    w->results = NULL;
    return w;
}

void coord_wait_end(struct coord *c, struct waiting *w, int code, const char *text)
{
    list_remove(&w->node);
    coord_emit(c, &(struct coord_effect){
                      .type = COORD_FX_REPLY,
                      .reply = {.request = w->request,
                                .code = code != 0 ? code : w->code,
                                .job_id = w->job_id,
                                .existed = w->existed,
                                .results = w->results,
                                .count = w->count,
                                .text = text},
                  });
    mem_free(w->results);
    w->results = NULL;
    list_push_back(&c->free_waiting, &w->node);
}

void coord_wait_saved(struct coord *c, struct waiting *w)
{
    list_remove(&w->node);
    list_push_back(&c->unsaved, &w->node);
    w->changes = c->q->changes;
    if (MUTANT(18) || !queue_dirty(c->q)) { /* answered before it is durable */
        coord_wait_end(c, w, 0, "");
        return;
    }
    coord_save_soon(c);
}

static void changed(struct coord *c, const struct coord_command *cmd)
{
    c->q->changes++; /* also when the queue itself was not touched: holds are in the snapshot */
    coord_wait_saved(c, coord_wait(c, cmd->request, 0));
}

/* ---- edits ---- */

struct before { /* what an edit may have changed */
    uint32_t job_id;
    uint32_t holds;
    int state;
};

static bool takes_away(enum queue_edit_op op)
{
    return op == QUEUE_EDIT_FILE_DELETE || op == QUEUE_EDIT_GROUP_DELETE ||
           op == QUEUE_EDIT_GROUP_PARK_DELETE || op == QUEUE_EDIT_GROUP_DUPE_DELETE ||
           op == QUEUE_EDIT_GROUP_FINAL_DELETE || op == QUEUE_EDIT_FILE_SPLIT ||
           op == QUEUE_EDIT_GROUP_MERGE;
}

/* Leases are dropped before the edit, so that the queue never takes away what is leased; a refused edit then costs a
 * few articles a second request. Timers stop, since a merge frees jobs. */
static void prepare(struct coord *c, const struct queue_edit *e, struct before *b)
{
    bool files = queue_edit_of(e->op) == QUEUE_EDIT_FILE;
    for (uint32_t i = 0; i < e->id_count; i++) {
        struct queue_file *f = files ? queue_file(c->q, e->ids[i]) : NULL;
        struct queue_job *j = f != NULL ? f->job : files ? NULL : queue_job(c->q, e->ids[i]);
        if (j == NULL) {
            continue;
        }
        b[i] = (struct before){j->id, j->holds, j->life.state};
        if (takes_away(e->op) && f != NULL) {
            coord_drop_file(c, f->id);
        } else if (takes_away(e->op)) {
            coord_drop_job(c, j->id);
        }
        timer_stop(&c->timers, &j->watch.timer);
    }
}

static void record_changes(struct coord *c, const struct queue_job *j, const struct before *b)
{
    if (j->life.state != b->state) {
        coord_record(c, &(struct coord_record){.type = COORD_REC_STATUS_CHANGED,
                                               .job_id = j->id,
                                               .row_version = j->row_version,
                                               .from = b->state,
                                               .to = j->life.state,
                                               .text = "by the user"});
    }
    for (unsigned h = 0; h < QUEUE_HOLDS; h++) {
        uint32_t bit = QUEUE_HOLD_BIT(h);
        if (((j->holds ^ b->holds) & bit) != 0) {
            bool on = (j->holds & bit) != 0;
            coord_record(
                c, &(struct coord_record){.type = on ? COORD_REC_HOLD_SET : COORD_REC_HOLD_CLEARED,
                                          .job_id = j->id,
                                          .row_version = j->row_version,
                                          .to = (int)h,
                                          .text = "by the user"});
        }
    }
}

/* The user says go on: what a machine decided about this job is forgotten. */
static void resumed(struct coord *c, struct queue_job *j)
{
    j->watch.health_waived = true;
    j->watch.rung = 0;
    j->watch.io_failed_ms = 0;
    j->watch.stage_tries = j->watch.unpack_tries = j->watch.url_tries = 0;
    if ((j->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_POISON)) != 0) {
        j->attempt = 1;
    }
    coord_unhold(c, j, QUEUE_HOLD_POISON);
    coord_unhold(c, j, QUEUE_HOLD_BACKOFF);
    coord_unhold(c, j, QUEUE_HOLD_PASSWORD);
    queue_wake_job(c->q, j);
}

static void post_was_deleted(struct coord *c, struct queue_job *j)
{
    coord_forget(c, j);
    (void)queue_job_set_text(c->q, j, &j->reason, "post-processing was cancelled");
    (void)coord_move(c, j, QUEUE_CANCELLED, "post-processing was cancelled");
    coord_to_history(c, j);
}

static void after_job(struct coord *c, const struct queue_edit *e, struct queue_job *j)
{
    uint32_t id = j->id;
    if (j->place != QUEUE_ACTIVE) {
        coord_forget(c, j);
        return;
    }
    if (queue_edit_of(e->op) == QUEUE_EDIT_PAST) {
        coord_watch(c, j); /* it came back as it was, holds and all */
    } else {
        coord_job_timer(c, j);
    }
    if (e->op == QUEUE_EDIT_GROUP_RESUME) {
        resumed(c, j);
    } else if (e->op == QUEUE_EDIT_GROUP_SET_PARAMETER && e->text != NULL &&
               strncmp(e->text, "*Unpack:Password=", 17) == 0) {
        coord_unhold(c, j, QUEUE_HOLD_PASSWORD);
    } else if (e->op == QUEUE_EDIT_POST_DELETE) {
        post_was_deleted(c, j);
    }
    j = queue_job(c->q, id);
    if (j != NULL && j->place == QUEUE_ACTIVE) {
        coord_go_on(c, j);
    }
}

/* A job that was split off gets a directory of its own beside the other. */
static void name_directory(struct coord *c, const struct queue_job *from, uint32_t new_id)
{
    struct queue_job *j = queue_job(c->q, new_id);
    if (j == NULL || j->dest_dir[0] != '\0') {
        return;
    }
    const char *slash = strrchr(from->dest_dir, '/');
    int parent = slash != NULL ? (int)(slash - from->dest_dir) + 1 : 0;
    char dir[1024];
    snprintf(dir, sizeof(dir), "%.*s%s.#%u", parent, from->dest_dir, j->name, j->id);
    (void)queue_job_set_text(c->q, j, &j->dest_dir, dir);
}

static void follow(struct coord *c, const struct queue_edit *e, const struct queue_edit_result *r,
                   const struct before *b)
{
    bool files = queue_edit_of(e->op) == QUEUE_EDIT_FILE;
    uint32_t job_id = b->job_id;
    struct queue_job *j = queue_job(c->q, job_id);
    if (j != NULL && r->code == 0) {
        record_changes(c, j, b);
        if (e->op == QUEUE_EDIT_FILE_SPLIT) {
            name_directory(c, j, r->new_id);
        }
        if ((r->todo & QUEUE_TODO_DELETE_FILES) != 0) {
            const struct queue_file gone = {.id = r->id, .found_name = (char[]){""}};
            coord_delete_files(c, j, files && j->place == QUEUE_ACTIVE ? &gone : NULL);
        }
        if ((r->todo & QUEUE_TODO_MOVE_DIR) != 0) {
            coord_emit(c, &(struct coord_effect){
                              .type = COORD_FX_MOVE_DIR,
                              .file = {.job_id = j->id, .dir = j->dest_dir, .name = j->name}});
        }
    }
    if (j != NULL) {
        after_job(c, e, j);
    }
    if (r->code == 0 && r->new_id != 0 && r->new_id != job_id) {
        coord_came_back(c, r->new_id);
    } else if (r->code == 0 && (r->todo & QUEUE_TODO_LOAD_NZB) != 0) {
        coord_came_back(c, job_id);
    }
    j = queue_job(c->q, job_id);
    if (j != NULL && r->code == 0 && (r->todo & QUEUE_TODO_REMOVE) != 0) {
        coord_remove(c, j);
    }
}

/* Files change their job only while nothing of them is on the disk, and NZBs only when they are stored: neither the
 * directory nor the stored text would follow. NULL: it may be. */
static const char *refusal(const struct coord *c, const struct queue_edit *e)
{
    for (uint32_t i = 0; i < e->id_count; i++) {
        const struct queue_file *f = NULL;
        const struct queue_job *j = NULL;
        bool begun = false;
        if (e->op == QUEUE_EDIT_FILE_SPLIT) {
            f = queue_file(c->q, e->ids[i]);
            j = f != NULL ? f->job : NULL;
            begun = f != NULL && (f->done > 0 || f->failed > 0 || f->opened);
        } else if (e->op == QUEUE_EDIT_GROUP_MERGE) {
            j = queue_job(c->q, e->ids[i]);
            for (uint32_t k = 0; i > 0 && j != NULL && k < j->file_count; k++) {
                f = j->files[k];
                begun = begun || f->done > 0 || f->failed > 0 || f->opened;
            }
        }
        if (j != NULL && j->life.state == QUEUE_CREATED) {
            return "its NZB is not stored yet";
        }
        if (begun) {
            return "a part of it is on the disk already";
        }
    }
    return NULL;
}

void coord_edit(struct coord *c, const struct coord_command *cmd)
{
    struct queue_edit e = *cmd->edit;
    if ((unsigned)e.op >= QUEUE_EDIT_OPS || (e.id_count > 0 && e.ids == NULL)) {
        coord_reply(c, cmd->request, ERR_INVALID, "no such edit");
        return;
    }
    const char *why = refusal(c, &e);
    if (why != NULL) {
        coord_reply(c, cmd->request, ERR_CONFLICT, why);
        return;
    }
    struct queue_edit_result *results = mem_zalloc(e.id_count + 1, sizeof(*results));
    struct before *b = mem_zalloc(e.id_count + 1, sizeof(*b));
    if (results == NULL || b == NULL || coord_reserve_timers(c, e.id_count) != 0) {
        mem_free(results);
        mem_free(b);
        coord_reply(c, cmd->request, -ENOMEM, "there is no memory for it");
        return;
    }
    e.now_at = coord_now_at(c);
    e.dupe_check = c->limits.dupe_check;
    prepare(c, &e, b);
    uint32_t edited = queue_edit(c->q, &e, results);
    for (uint32_t i = 0; i < e.id_count; i++) {
        follow(c, &e, &results[i], &b[i]);
    }
    mem_free(b);
    struct waiting *w = coord_wait(c, cmd->request, 0);
    w->results = results;
    w->count = e.id_count;
    w->code = e.id_count == 1 ? results[0].code : e.id_count > 0 && edited == 0 ? ERR_INVALID : 0;
    coord_wait_saved(c, w);
}

/* ---- questions ---- */

struct coord_status coord_status(const struct coord *c)
{
    struct coord_status s = {
        .rate_limit = c->limits.rate,
        .read_bytes = c->read_bytes,
        .left_bytes = c->q->left_bytes,
        .forced_bytes = c->q->forced_bytes,
        .day_bytes = c->day_bytes,
        .month_bytes = c->month_bytes,
        .free_bytes = c->free_bytes,
        .stale_results = c->stale_results,
        .illegal_moves = c->illegal_moves,
        .saves = c->saves,
        .failed_saves = c->failed_saves,
        .pause_until_at = c->pause_until_at,
        .holds = c->holds,
        .leases = c->lease_count,
        .jobs = c->q->active_count,
        .save_failing = c->save_failures > 0,
        .stopping = !coord_running(c),
    };
    for (unsigned i = 0; i < c->server_count; i++) {
        s.servers_up += c->servers[i]->life.state == COORD_SERVER_UP && c->servers[i]->conf.active;
    }
    memcpy(s.save_error, c->save_error, sizeof(s.save_error));
    return s;
}

static void reply_status(struct coord *c, uint64_t request)
{
    struct coord_status s = coord_status(c);
    coord_emit(c, &(struct coord_effect){
                      .type = COORD_FX_REPLY,
                      .reply = {.request = request, .status = &s, .text = ""},
                  });
}

/* A question of the user, not of the loop: it may look at every job. */
static void reply_stuck(struct coord *c, uint64_t request)
{
    uint32_t count = 0, total = c->q->active_count + c->q->past_count;
    uint32_t *ids = mem_alloc((total + 1) * sizeof(*ids));
    for (uint32_t i = 0; ids != NULL && i < total; i++) {
        const struct queue_job *j =
            i < c->q->active_count ? c->q->order[i] : c->q->past[i - c->q->active_count];
        if (j->watch.rung > 0 || (j->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_POISON)) != 0) {
            ids[count++] = j->id;
        }
    }
    coord_emit(c, &(struct coord_effect){
                      .type = COORD_FX_REPLY,
                      .reply = {.request = request,
                                .code = ids != NULL ? 0 : -ENOMEM,
                                .ids = ids,
                                .count = count,
                                .text = ""},
                  });
    mem_free(ids);
}

/* ---- all of them ---- */

static void set_servers(struct coord *c, const struct coord_command *cmd)
{
    struct err e = {0};
    int rc = coord_servers_set(c, cmd->servers, cmd->count, &e);
    coord_reply(c, cmd->request, rc, rc != 0 ? e.msg : "");
}

/* Changes something, and needs a place to wait. */
static void change(struct coord *c, const struct coord_command *cmd)
{
    int rc = 0;
    switch (cmd->op) {
    case COORD_ADD:
        coord_add(c, cmd);
        return;
    case COORD_EDIT:
        coord_edit(c, cmd);
        return;
    case COORD_PAUSE:
        coord_pause(c, cmd->number);
        break;
    case COORD_RESUME:
        coord_resume(c);
        break;
    case COORD_SCHEDULE:
        coord_set_hold(c, QUEUE_HOLD_SCHEDULE, cmd->number != 0, "by the schedule");
        break;
    case COORD_RATE:
        rc = cmd->number < 0 ? ERR_INVALID : 0;
        if (rc == 0) {
            coord_rate_set(c, (uint64_t)cmd->number);
        }
        coord_reply(c, cmd->request, rc, rc != 0 ? "the rate is negative" : "");
        return;
    case COORD_LIMITS:
        coord_limits_set(c, cmd->limits);
        coord_reply(c, cmd->request, 0, "");
        return;
    case COORD_SERVERS:
        set_servers(c, cmd);
        return;
    case COORD_SERVER_RESET:
        rc = coord_server_reset(c, (uint32_t)cmd->number);
        coord_reply(c, cmd->request, rc, rc != 0 ? "no such server" : "");
        return;
    default:
        coord_reply(c, cmd->request, ERR_INVALID, "no such command");
        return;
    }
    changed(c, cmd);
}

static void refuse(struct coord *c, const struct coord_command *cmd, int code, const char *text)
{
    if (cmd->op == COORD_ADD) {
        nzb_unref(cmd->add->job.nzb);
        coord_discard(c, cmd->add->data);
    }
    coord_reply(c, cmd->request, code, text);
}

void coord_on_command(struct coord *c, const struct coord_command *cmd)
{
    if (cmd->op == COORD_STATUS) {
        reply_status(c, cmd->request);
    } else if (cmd->op == COORD_STUCK) {
        reply_stuck(c, cmd->request);
    } else if (cmd->op == COORD_SHUTDOWN) {
        if (c->phase.state != PHASE_STOPPED) {
            coord_shutdown(c);
        }
        coord_reply(c, cmd->request, 0, "");
    } else if (!coord_running(c)) {
        if (!MUTANT(19)) { /* a command without an answer */
            refuse(c, cmd, ERR_STOPPED, "the program is ending");
        }
    } else if (list_empty(&c->free_waiting)) {
        refuse(c, cmd, ERR_FULL, "too many commands wait for the disk");
    } else {
        change(c, cmd);
    }
}
