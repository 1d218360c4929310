#include "store/stage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "store/internal.h"

#define S(id, name_, next_) [STORE_STAGE_##id] = {.name = (name_), .next = (next_)}
#define N(id)               SM_BIT(STORE_STAGE_##id)
static const struct sm_state stage_states[STORE_STAGE_STATES] = {
    S(RUNNING, "running", N(DONE) | N(FAILED) | N(INTERRUPTED)),
    S(DONE, "done", N(RUNNING)),
    S(FAILED, "failed", N(RUNNING)),
    S(INTERRUPTED, "interrupted", N(RUNNING)),
};
#undef S
#undef N
static const struct sm_type stage_type = {"stage", stage_states, STORE_STAGE_STATES, NULL};

const char *store_stage_state_name(enum store_stage_state state)
{
    PRE((int)state >= 0 && state < STORE_STAGE_STATES);
    return stage_states[state].name;
}

struct stage_at {
    bool there;
    enum store_stage_state state;
    uint32_t run, attempt;
};

static int stage_at(struct store *s, uint32_t job, const char *name, struct stage_at *at,
                    struct err *e)
{
    *at = (struct stage_at){0};
    sqlite3_stmt *st;
    int rv =
        db_first(&s->db, e, "SELECT state, run, attempt FROM stage WHERE job = ?1 AND name = ?2",
                 DB_ARGS(I(job), T(name)), &st);
    if (rv != 1) {
        return rv;
    }
    int state = 0;
    while (state < STORE_STAGE_STATES &&
           strcmp(stage_states[state].name, db_col_text(st, 0)) != 0) {
        state++;
    }
    *at = (struct stage_at){true, (enum store_stage_state)state, col_u32(st, 1), col_u32(st, 2)};
    db_end(st);
    return state < STORE_STAGE_STATES ? 0 : err_set(e, ERR_CORRUPT, "unknown stage state");
}

static int refuse(struct store *s, uint32_t job, const char *name, const struct stage_at *at,
                  int to, int code, struct clock_time now, struct err *e)
{
    char words[256], edge[STORE_CODE_MAX];
    const char *from = at->there ? stage_states[at->state].name : "none";
    snprintf(edge, sizeof(edge), "%.20s:%s>%s", name, from, stage_states[to].name);
    if (code == ERR_LIMIT) {
        snprintf(words, sizeof(words), "job %" PRIu32 ": %.64s: all %d attempts are used up", job,
                 name, STORE_STAGE_ATTEMPTS);
    } else {
        snprintf(words, sizeof(words), "job %" PRIu32 ": %.64s: %s may not become %s", job, name,
                 from, stage_states[to].name);
    }
    return event_refused(s,
                         &(struct store_event){.kind = STORE_EV_ILLEGAL_TRANSITION,
                                               .job = job,
                                               .code = edge,
                                               .category = STORE_PERMANENT,
                                               .text = words},
                         now, code, e);
}

static int begin(struct store *s, uint32_t job, const char *name, const struct stage_at *at,
                 const struct stage_at *next, struct clock_time now, struct err *e)
{
    int rv =
        db_exec(&s->db, e,
                "INSERT INTO stage VALUES (?1, ?2, 'running',"
                " (SELECT count(*) FROM stage WHERE job = ?1), ?3, ?4, 0, ?5, ?5, 0, '', '', '')"
                " ON CONFLICT (job, name) DO UPDATE SET state = 'running', run = ?3, attempt = ?4,"
                " progress = 0, started_at = ?5, progress_at = ?5, ended_at = 0",
                DB_ARGS(I(job), T(name), I(next->run), I(next->attempt), I(now.wall_ms)));
    if (rv == 0) {
        rv =
            event_put(s,
                      &(struct store_event){.kind = STORE_EV_CLAIMED,
                                            .job = job,
                                            .stage = name,
                                            .from = at->there ? stage_states[at->state].name : NULL,
                                            .to = stage_states[STORE_STAGE_RUNNING].name,
                                            .attempt = next->attempt,
                                            .value = next->run},
                      now, NULL, e);
    }
    return rv == 0 ? job_alive(s, job, now, e) : rv;
}

int store_stage_begin(struct store *s, uint32_t job, const char *name, struct clock_time now,
                      uint32_t *attempt, struct err *e)
{
    struct job_at row;
    struct stage_at at, next = {true, STORE_STAGE_RUNNING, 1, 1};
    if (name == NULL || name[0] == '\0' || strnlen(name, 33) > 32) {
        return err_set(e, ERR_INVALID, "a stage has a name of 1 to 32 bytes");
    }
    int rv = job_at(s, job, &row, e);
    rv = rv != 0 ? rv : stage_at(s, job, name, &at, e);
    if (rv != 0) {
        return rv;
    }
    if (row.state != STORE_PROCESSING) {
        return err_set(e, ERR_INVALID, "job %" PRIu32 " is %s: only a processing job has stages",
                       job, store_state_name(row.state));
    }
    if (at.there) {
        struct sm m;
        sm_init(&m, &stage_type, (int)at.state, job);
        if (!sm_allows(&m, STORE_STAGE_RUNNING)) {
            return refuse(s, job, name, &at, STORE_STAGE_RUNNING, ERR_INVALID, now, e);
        }
        bool fresh = at.state == STORE_STAGE_DONE;
        next.run = at.run + fresh;
        next.attempt = fresh ? 1 : at.attempt + 1;
        if (next.attempt > STORE_STAGE_ATTEMPTS) {
            return refuse(s, job, name, &at, STORE_STAGE_RUNNING, ERR_LIMIT, now, e);
        }
    }
    rv = db_begin(&s->db, e);
    rv = rv != 0 ? rv : db_finish(&s->db, begin(s, job, name, &at, &next, now, e), e);
    if (rv == 0 && attempt != NULL) {
        *attempt = next.attempt;
    }
    return rv;
}

int store_stage_progress(struct store *s, uint32_t job, const char *name, uint32_t permille,
                         struct clock_time now, struct err *e)
{
    int rv = db_begin(&s->db, e);
    if (rv != 0) {
        return rv;
    }
    rv = db_exec(&s->db, e,
                 "UPDATE stage SET progress = ?3, progress_at = ?4"
                 " WHERE job = ?1 AND name = ?2 AND state = 'running'",
                 DB_ARGS(I(job), T(name), I(permille > 1000 ? 1000 : permille), I(now.wall_ms)));
    if (rv == 0 && db_changes(&s->db) == 0) {
        rv = err_set(e, ERR_NOT_FOUND, "job %" PRIu32 ": stage %.64s is not running", job,
                     text_or_empty(name));
    }
    if (rv == 0) {
        rv = job_alive(s, job, now, e);
    }
    return db_finish(&s->db, rv, e);
}

static int end_stage(struct store *s, const struct store_stage_end *end, const struct stage_at *at,
                     struct clock_time now, struct err *e)
{
    char text[STORE_NOTE_MAX + 1], code[STORE_NOTE_MAX + 1];
    enum store_category category = end->ok                            ? STORE_NO_ERROR
                                   : end->category == STORE_PERMANENT ? STORE_PERMANENT
                                                                      : STORE_TRANSIENT;
    const char *to = stage_states[end->ok ? STORE_STAGE_DONE : STORE_STAGE_FAILED].name;
    int rv = db_exec(&s->db, e,
                     "UPDATE stage SET state = ?3, progress = CASE ?3 WHEN 'done' THEN 1000"
                     " ELSE progress END, progress_at = ?4, ended_at = ?4, code = ?5,"
                     " category = ?6, text = ?7 WHERE job = ?1 AND name = ?2",
                     DB_ARGS(I(end->job), T(end->name), T(to), I(now.wall_ms),
                             T(end->ok ? "" : text_note(end->code, code)),
                             T(store_category_name(category)), T(text_note(end->text, text))));
    if (rv == 0) {
        rv = event_put(s,
                       &(struct store_event){.kind = STORE_EV_STAGE,
                                             .job = end->job,
                                             .stage = end->name,
                                             .from = stage_states[at->state].name,
                                             .to = to,
                                             .code = end->ok ? NULL : end->code,
                                             .category = category,
                                             .attempt = at->attempt,
                                             .value = at->run,
                                             .text = end->text},
                       now, NULL, e);
    }
    return rv == 0 ? job_alive(s, end->job, now, e) : rv;
}

int store_stage_end(struct store *s, const struct store_stage_end *end, struct clock_time now,
                    bool *again, struct err *e)
{
    struct stage_at at;
    struct job_at row;
    int rv = job_at(s, end->job, &row, e);
    rv = rv != 0 ? rv : stage_at(s, end->job, end->name, &at, e);
    if (rv != 0) {
        return rv;
    }
    if (!at.there || at.state != STORE_STAGE_RUNNING || job_ended(s, row.state)) {
        return refuse(s, end->job, text_or_empty(end->name), &at,
                      end->ok ? STORE_STAGE_DONE : STORE_STAGE_FAILED, ERR_INVALID, now, e);
    }
    if (end->attempt != at.attempt) {
        return err_set(e, ERR_CONFLICT,
                       "job %" PRIu32 ": %.64s: attempt %" PRIu32 " is over, it is at %" PRIu32,
                       end->job, end->name, end->attempt, at.attempt);
    }
    rv = db_begin(&s->db, e);
    rv = rv != 0 ? rv : db_finish(&s->db, end_stage(s, end, &at, now, e), e);
    if (again != NULL) {
        *again = rv == 0 && !end->ok && end->category != STORE_PERMANENT &&
                 at.attempt < STORE_STAGE_ATTEMPTS;
    }
    return rv;
}

static int stage_read(struct store_mem **mem, sqlite3_stmt *st, void *row, void *arg, struct err *e)
{
    struct store_stage *t = row;
    (void)arg;
    int state = 0;
    while (state < STORE_STAGE_STATES &&
           strcmp(stage_states[state].name, db_col_text(st, 2)) != 0) {
        state++;
    }
    if (state == STORE_STAGE_STATES) {
        return err_set(e, ERR_CORRUPT, "unknown stage state");
    }
    t->job = col_u32(st, 0);
    t->state = (enum store_stage_state)state;
    t->run = col_u32(st, 4);
    t->attempt = col_u32(st, 5);
    t->progress_permille = col_u32(st, 6);
    t->started_at = sqlite3_column_int64(st, 7);
    t->progress_at = sqlite3_column_int64(st, 8);
    t->ended_at = sqlite3_column_int64(st, 9);
    t->category = (enum store_category)category_parse(db_col_text(st, 11));
    if (store_mem_text(mem, db_col_text(st, 1), &t->name) != 0 ||
        store_mem_text(mem, db_col_text(st, 10), &t->code) != 0 ||
        store_mem_text(mem, db_col_text(st, 12), &t->text) != 0) {
        return err_sys(e, -ENOMEM, "database: read");
    }
    return 0;
}

int store_stage_list(struct store *s, uint32_t job, struct store_page *page, struct err *e)
{
    static const struct page_type type = {sizeof(struct store_stage), stage_read, NULL, NULL};
    return page_read(s, page, "SELECT * FROM stage WHERE job = ?1 ORDER BY ord LIMIT ?2",
                     DB_ARGS(I(job), I(STORE_PAGE_MAX + 1)), STORE_PAGE_MAX, &type, e);
}
