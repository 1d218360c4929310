#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "store/internal.h"

/* ---- states ---- */

static const char *const states[] = {
#define X(id, name) name,
    STORE_STATE_MAP(X)
#undef X
};

#define ENDED "('cleaned','failed','cancelled')"

const char *store_state_name(enum store_state state)
{
    PRE((int)state >= 0 && state < STORE_STATES);
    return states[state];
}

int state_parse(const char *name, enum store_state *state, struct err *e)
{
    int at = word_index(states, STORE_STATES, name);
    if (at < 0) {
        return err_set(e, ERR_CORRUPT, "unknown job state '%.40s'", name);
    }
    *state = (enum store_state)at;
    return 0;
}

bool job_ended(const struct store *s, enum store_state state)
{
    return s->job_type->states[s->index[state]].next == 0;
}

int job_at(struct store *s, uint32_t job, struct job_at *at, struct err *e)
{
    sqlite3_stmt *st;
    int rv =
        db_first(&s->db, e, "SELECT state, row_version, attempt, progressed FROM job WHERE id = ?1",
                 DB_ARGS(I(job)), &st);
    if (rv == 0) {
        return err_set(e, ERR_NOT_FOUND, "no job %" PRIu32, job);
    }
    if (rv == 1) {
        rv = state_parse(db_col_text(st, 0), &at->state, e);
        at->row_version = col_u64(st, 1);
        at->attempt = col_u32(st, 2);
        at->progressed = sqlite3_column_int64(st, 3) != 0;
        db_end(st);
    }
    return rv;
}

/* Refuses a change of a job that has ended, or of another version than the caller saw. */
static int check_open(struct store *s, uint32_t job, uint64_t expect_version, struct job_at *at,
                      struct err *e)
{
    int rv = job_at(s, job, at, e);
    if (rv == 0 && expect_version != 0 && expect_version != at->row_version) {
        rv = err_set(e, ERR_CONFLICT,
                     "job %" PRIu32 " was changed in the meantime: version %" PRIu64
                     " was seen, it is %" PRIu64,
                     job, expect_version, at->row_version);
    }
    if (rv == 0 && job_ended(s, at->state)) {
        rv = err_set(e, ERR_INVALID, "job %" PRIu32 " has ended (%s) and does not change", job,
                     states[at->state]);
    }
    return rv;
}

/* ---- making ---- */

static int check_texts(const char *name, const char *category, const char *source, const char *path,
                       struct err *e)
{
    int rv = text_check("the name", name, e);
    rv = rv != 0 ? rv : text_check("the category", category, e);
    rv = rv != 0 ? rv : text_check("the source", source, e);
    return rv != 0 ? rv : text_check("the path", path, e);
}

static int find_existing(struct store *s, const struct store_job_new *j, struct clock_time now,
                         int64_t *found, struct err *e)
{
    *found = 0;
    int rv = 0;
    if (j->idem_key != NULL) {
        rv = db_number(&s->db, e, "SELECT job FROM idem WHERE key = ?1 AND at > ?2",
                       DB_ARGS(T(j->idem_key), I(now.wall_ms - STORE_IDEM_MS)), 0, found);
    }
    if (rv == 0 && *found == 0 && j->key != NULL && !j->forced) {
        rv = db_number(&s->db, e,
                       "SELECT id FROM job WHERE key = ?1 AND state IN"
                       " ('created','queued','downloading','processing') ORDER BY id LIMIT 1",
                       DB_ARGS(B(j->key, STORE_KEY_BYTES)), 0, found);
    }
    return rv;
}

static int check_new(struct store *s, const struct store_job_new *j, struct err *e)
{
    if (j->id == 0 || j->id > INT_MAX) {
        return err_set(e, ERR_INVALID, "%" PRIu32 " is no job number", j->id);
    }
    if (j->idem_key != NULL &&
        (j->idem_key[0] == '\0' || strnlen(j->idem_key, STORE_IDEM_MAX + 1) > STORE_IDEM_MAX)) {
        return err_set(e, ERR_INVALID, "an idempotency key has 1 to %d bytes", STORE_IDEM_MAX);
    }
    int rv = check_texts(j->name, j->category, j->source, j->path, e);
    if (rv == 0 && j->previous_id != 0) {
        struct job_at before;
        rv = job_at(s, j->previous_id, &before, e);
        if (rv == 0 && !job_ended(s, before.state)) {
            rv = err_set(e, ERR_INVALID, "job %" PRIu32 " has not ended (%s): nothing to retry",
                         j->previous_id, states[before.state]);
        }
    }
    return rv;
}

static int insert(struct store *s, const struct store_job *j, bool forced, struct clock_time now,
                  struct err *e)
{
    bool held = ((j->holds | s->holds_on_all) & ~j->passes) != 0;
    int rv = db_exec(
        &s->db, e,
        "INSERT INTO job (id, state, row_version, attempt, previous_id, name, category, source,"
        " path, key, forced, holds, passes, held_since, held_ms, progressed, created_at,"
        " updated_at, last_transition_at, completed_at, progress_at, expires_at, next_run_at,"
        " first_not_found_at, code, error_category, reason)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,0,0,?15,?16,?16,?17,?16,?18,0,0,"
        " ?19,?20,?21)",
        DB_ARGS(I(j->id), T(states[j->state]), U(j->row_version), I(j->attempt), I(j->previous_id),
                T(text_or_empty(j->name)), T(text_or_empty(j->category)),
                T(text_or_empty(j->source)), T(text_or_empty(j->path)), B(j->key, STORE_KEY_BYTES),
                I(forced), I(j->holds), I(j->passes), I(held ? now.wall_ms : 0), I(j->created_at),
                I(now.wall_ms), I(j->completed_at), I(j->expires_at), T(text_or_empty(j->code)),
                T(store_category_name(j->category_of_error)), T(text_or_empty(j->reason))));
    return rv == ERR_EXISTS ? err_set(e, rv, "job %" PRIu32 " exists already", j->id) : rv;
}

static int add(struct store *s, const struct store_job_new *j, struct clock_time now,
               struct store_job_made *made, struct err *e)
{
    int64_t found;
    int rv = find_existing(s, j, now, &found, e);
    if (rv != 0) {
        return rv;
    }
    if (found == 0) {
        rv = check_new(s, j, e);
        if (rv == 0) {
            rv = insert(s,
                        &(struct store_job){.id = j->id,
                                            .state = STORE_CREATED,
                                            .row_version = 1,
                                            .attempt = 1,
                                            .previous_id = j->previous_id,
                                            .name = j->name,
                                            .category = j->category,
                                            .source = j->source,
                                            .path = j->path,
                                            .key = j->key,
                                            .passes = j->passes,
                                            .created_at = now.wall_ms,
                                            .expires_at = j->expires_at},
                        j->forced, now, e);
        }
        if (rv == 0) {
            rv = event_put(s,
                           &(struct store_event){.kind = STORE_EV_CREATED,
                                                 .job = j->id,
                                                 .to = states[STORE_CREATED],
                                                 .attempt = 1,
                                                 .value = j->previous_id,
                                                 .text = j->source},
                           now, NULL, e);
        }
    }
    *made = (struct store_job_made){found != 0 ? (uint32_t)found : j->id, found != 0};
    if (rv == 0 && j->idem_key != NULL) { /* a key that is known keeps its first time */
        rv = db_exec(
            &s->db, e,
            "INSERT INTO idem VALUES (?1, ?2, ?3) ON CONFLICT (key) DO UPDATE SET"
            " job = excluded.job, at = excluded.at WHERE at <= ?4",
            DB_ARGS(T(j->idem_key), I(made->id), I(now.wall_ms), I(now.wall_ms - STORE_IDEM_MS)));
    }
    return rv;
}

int store_job_add(struct store *s, const struct store_job_new *j, struct clock_time now,
                  struct store_job_made *made, struct err *e)
{
    int rv = db_begin(&s->db, e);
    if (rv != 0) {
        return rv;
    }
    return db_finish(&s->db, add(s, j, now, made, e), e);
}

int store_job_adopt(struct store *s, const struct store_job *j, struct clock_time now,
                    struct err *e)
{
    if (j->id == 0 || j->id > INT_MAX || (int)j->state < 0 || j->state >= STORE_STATES) {
        return err_set(e, ERR_INVALID, "not a job that can be taken over");
    }
    int rv = check_texts(j->name, j->category, j->source, j->path, e);
    if (rv == 0) {
        rv = db_begin(&s->db, e);
    }
    if (rv != 0) {
        return rv;
    }
    struct store_job row = *j;
    row.row_version = row.row_version > 0 ? row.row_version : 1;
    row.attempt = row.attempt > 0 ? row.attempt : 1;
    /* Two active ones of the same content may come back: neither is refused now. */
    rv = insert(s, &row, true, now, e);
    if (rv == 0) {
        rv = event_put(s,
                       &(struct store_event){.kind = STORE_EV_RECOVERED,
                                             .job = j->id,
                                             .to = states[j->state],
                                             .attempt = row.attempt,
                                             .code = "row_lost",
                                             .text = "taken over from the queue"},
                       now, NULL, e);
    }
    return db_finish(&s->db, rv, e);
}

/* ---- moving ---- */

static enum store_kind kind_of(enum store_state from, enum store_state to)
{
    if (from == STORE_QUEUED && to == STORE_DOWNLOADING) {
        return STORE_EV_CLAIMED;
    }
    return to == STORE_CLEANED ? STORE_EV_CLEANUP_DONE : STORE_EV_STATUS_CHANGED;
}

int job_move_row(struct store *s, const struct store_move *m, const struct job_at *at,
                 enum store_kind kind, uint32_t attempt, struct clock_time now, int64_t *seq,
                 struct err *e)
{
    char reason[STORE_NOTE_MAX + 1], code[STORE_NOTE_MAX + 1];
    struct sm life;
    sm_init(&life, s->job_type, s->index[at->state], m->job);
    int rv = db_exec(
        &s->db, e,
        /* What went wrong stays readable until the job is through, or until something else does. */
        "UPDATE job SET state = ?2, row_version = row_version + 1, attempt = ?3, updated_at = ?4,"
        " last_transition_at = ?4, progress_at = ?4, progressed = 0, held_ms = 0,"
        " held_since = CASE WHEN held_since = 0 THEN 0 ELSE ?4 END,"
        " completed_at = CASE WHEN ?2 = 'completed' THEN ?4 ELSE completed_at END,"
        " next_run_at = ?5, path = coalesce(?9, path),"
        " code = coalesce(?6, CASE WHEN ?2 IN ('completed','imported','cleaned') THEN ''"
        "  ELSE code END),"
        " error_category = CASE WHEN ?6 IS NOT NULL THEN ?7"
        "  WHEN ?2 IN ('completed','imported','cleaned') THEN '' ELSE error_category END,"
        " reason = coalesce(?8, CASE WHEN ?2 IN ('completed','imported','cleaned') THEN ''"
        "  ELSE reason END)"
        " WHERE id = ?1",
        DB_ARGS(I(m->job), T(states[m->to]), I(attempt), I(now.wall_ms), I(m->next_run_at),
                T(m->code != NULL ? text_note(m->code, code) : NULL),
                T(store_category_name(m->category)),
                T(m->reason != NULL ? text_note(m->reason, reason) : NULL), T(m->path)));
    if (rv == 0) {
        rv = event_put(s,
                       &(struct store_event){.kind = kind,
                                             .job = m->job,
                                             .from = states[at->state],
                                             .to = states[m->to],
                                             .attempt = attempt,
                                             .code = m->code,
                                             .category = m->category,
                                             .value = m->next_run_at,
                                             .text = m->reason},
                       now, seq, e);
    }
    if (rv == 0) {
        sm_move(&life, s->index[m->to]);
    }
    return rv;
}

/* What the table cannot say: 0, or a code with the words in `why`. */
static int check_circumstances(struct store *s, const struct store_move *m, const struct job_at *at,
                               char *why, size_t size, struct err *e)
{
    if (at->state == STORE_DOWNLOADING && m->to == STORE_QUEUED &&
        at->attempt >= STORE_JOB_ATTEMPTS) {
        snprintf(why, size, "job %" PRIu32 ": all %d attempts are used up", m->job,
                 STORE_JOB_ATTEMPTS);
        return ERR_LIMIT;
    }
    bool leaves = at->state == STORE_COMPLETED || at->state == STORE_IMPORTED;
    if (!leaves) {
        return 0;
    }
    struct store_import_summary sum;
    int rv = store_import_summary(s, m->job, &sum, e);
    if (rv != 0) {
        snprintf(why, size, "%s", e != NULL ? e->msg : "imports could not be read");
        return rv;
    }
    if (m->to == STORE_CANCELLED && sum.begun > 0) {
        snprintf(why, size, "job %" PRIu32 ": completed may not become cancelled: import has begun",
                 m->job);
        return ERR_INVALID;
    }
    if (m->to != STORE_CANCELLED && sum.status != STORE_FULLY_IMPORTED) {
        snprintf(why, size, "job %" PRIu32 ": %s may not become %s: imports are at %s", m->job,
                 states[at->state], states[m->to], store_import_status_name(sum.status));
        return ERR_INVALID;
    }
    return 0;
}

static int check_edge(struct store *s, const struct store_move *m, const struct job_at *at,
                      char *why, size_t size, struct err *e)
{
    struct sm life;
    sm_init(&life, s->job_type, s->index[at->state], m->job);
    if (!sm_allows(&life, s->index[m->to])) {
        sm_refusal(&life, s->index[m->to], why, (unsigned)size);
        return ERR_INVALID;
    }
    return check_circumstances(s, m, at, why, size, e);
}

static int move(struct store *s, const struct store_move *m, const struct job_at *at,
                struct clock_time now, struct store_moved *out, struct err *e)
{
    uint32_t attempt = at->attempt;
    if (at->state == STORE_DOWNLOADING && m->to == STORE_QUEUED) {
        attempt++;
    }
    int rv = 0;
    if (job_ended(s, m->to)) { /* its last errors come before its end */
        rv = event_flush_job(s, m->job, now, e);
    }
    if (rv == 0) {
        rv = job_move_row(s, m, at, kind_of(at->state, m->to), attempt, now, &out->seq, e);
    }
    if (rv == 0 && m->to == STORE_CANCELLED) {
        rv = import_cancel_all(s, m->job, now, &out->tasks_cancelled, e);
    }
    out->from = at->state;
    out->row_version = at->row_version + 1;
    return rv;
}

int store_job_move(struct store *s, const struct store_move *m, struct clock_time now,
                   struct store_moved *out, struct err *e)
{
    struct store_moved own;
    struct job_at at;
    char why[256] = "";
    out = out != NULL ? out : &own;
    *out = (struct store_moved){0};
    if ((int)m->to < 0 || m->to >= STORE_STATES) {
        return err_set(e, ERR_INVALID, "job %" PRIu32 ": no such state", m->job);
    }
    int rv = text_check("the path", m->path, e);
    rv = rv != 0 ? rv : db_begin(&s->db, e);
    if (rv != 0) {
        return rv;
    }
    rv = job_at(s, m->job, &at, e);
    if (rv == 0 && m->expect_version != 0 && m->expect_version != at.row_version) {
        rv = err_set(e, ERR_CONFLICT,
                     "job %" PRIu32 " was changed in the meantime: version %" PRIu64
                     " was seen, it is %" PRIu64,
                     m->job, m->expect_version, at.row_version);
    }
    bool refused = false;
    if (rv == 0) {
        rv = check_edge(s, m, &at, why, sizeof(why), e);
        refused = rv == ERR_INVALID || rv == ERR_LIMIT;
    }
    if (rv == 0) {
        rv = move(s, m, &at, now, out, e);
    }
    rv = db_finish(&s->db, rv, e);
    if (refused) {
        char code[STORE_CODE_MAX];
        snprintf(code, sizeof(code), "%s>%s", states[at.state], states[m->to]);
        return event_refused(s,
                             &(struct store_event){.kind = STORE_EV_ILLEGAL_TRANSITION,
                                                   .job = m->job,
                                                   .code = code,
                                                   .category = STORE_PERMANENT,
                                                   .text = why},
                             now, rv, e);
    }
    return rv;
}

/* ---- holds ---- */

/* Time with a hold, own or on all, does not count as standing still. held_since is set while the job is held; here it
 * is brought up to date for one job (or all open ones, job 0) whose holds, or those on all, have changed. What was
 * measured from the last sign of life is moved on by the time that was held. */
static int reblock(struct store *s, uint32_t job, struct clock_time now, struct err *e)
{
    return db_exec(&s->db, e,
                   "UPDATE job SET"
                   " held_ms = held_ms + CASE WHEN held_since > 0 THEN max(0, ?2 - held_since)"
                   "  ELSE 0 END,"
                   " progress_at = CASE WHEN held_since > 0"
                   "  THEN ?2 - max(0, held_since - progress_at) ELSE progress_at END,"
                   " held_since = CASE WHEN held_since > 0 THEN 0 ELSE ?2 END"
                   " WHERE (?3 = 0 OR id = ?3) AND state NOT IN " ENDED
                   " AND (held_since > 0) <> (((holds | ?1) & ~passes) <> 0)",
                   DB_ARGS(I(s->holds_on_all), I(now.wall_ms), I(job)));
}

static int hold_event(struct store *s, const struct store_hold *h, struct clock_time now,
                      struct err *e)
{
    return event_put(
        s,
        &(struct store_event){.kind = h->set ? STORE_EV_HOLD_SET : STORE_EV_HOLD_CLEARED,
                              .job = h->job,
                              .code = h->name,
                              .value = h->until_at,
                              .text = h->text},
        now, NULL, e);
}

static int hold_one(struct store *s, const struct store_hold *h, struct clock_time now,
                    struct err *e)
{
    struct job_at at;
    int rv = check_open(s, h->job, 0, &at, e);
    if (rv == 0) {
        rv = db_exec(&s->db, e,
                     "UPDATE job SET holds = CASE ?3 WHEN 1 THEN holds | ?2 ELSE holds & ~?2 END,"
                     " row_version = row_version + 1, updated_at = ?4"
                     " WHERE id = ?1 AND (holds & ?2 <> 0) <> ?3",
                     DB_ARGS(I(h->job), I(h->bit), I(h->set), I(now.wall_ms)));
    }
    if (rv != 0 || db_changes(&s->db) == 0) {
        return rv;
    }
    rv = reblock(s, h->job, now, e);
    return rv == 0 ? hold_event(s, h, now, e) : rv;
}

static int hold_all(struct store *s, const struct store_hold *h, struct clock_time now,
                    struct err *e)
{
    uint32_t holds = h->set ? s->holds_on_all | h->bit : s->holds_on_all & ~h->bit;
    if (holds == s->holds_on_all) {
        return 0;
    }
    int rv = meta_set(&s->db, "holds", holds, e);
    s->holds_on_all = holds; /* taken back by the caller when this fails */
    if (rv == 0) {
        rv = reblock(s, 0, now, e);
    }
    return rv == 0 ? hold_event(s, h, now, e) : rv;
}

int store_job_hold(struct store *s, const struct store_hold *h, struct clock_time now,
                   struct err *e)
{
    if (h->bit == 0 || (h->bit & (h->bit - 1)) != 0) {
        return err_set(e, ERR_INVALID, "exactly one hold at a time");
    }
    uint32_t before = s->holds_on_all;
    int rv = db_begin(&s->db, e);
    if (rv != 0) {
        return rv;
    }
    rv = db_finish(&s->db, h->job != 0 ? hold_one(s, h, now, e) : hold_all(s, h, now, e), e);
    if (rv != 0) {
        s->holds_on_all = before;
    }
    return rv;
}

/* ---- other changes ---- */

static int edit(struct store *s, const struct store_job_edit *c, struct clock_time now,
                uint64_t *row_version, struct err *e)
{
    struct job_at at;
    int rv = check_open(s, c->job, c->expect_version, &at, e);
    if (rv == 0) {
        rv = db_exec(&s->db, e,
                     "UPDATE job SET name = coalesce(?2, name), category = coalesce(?3, category),"
                     " path = coalesce(?4, path), key = coalesce(?5, key),"
                     " expires_at = CASE ?6 WHEN ?9 THEN expires_at ELSE ?6 END,"
                     " passes = CASE ?7 WHEN ?9 THEN passes ELSE ?7 END,"
                     " updated_at = ?8, row_version = row_version + 1 WHERE id = ?1",
                     DB_ARGS(I(c->job), T(c->name), T(c->category), T(c->path),
                             B(c->key, STORE_KEY_BYTES), I(c->expires_at), I(c->passes),
                             I(now.wall_ms), I(INT64_MIN)));
        rv = rv == ERR_EXISTS
                 ? err_set(e, rv, "job %" PRIu32 ": this content is queued already", c->job)
                 : rv;
    }
    if (rv == 0 && c->passes != INT64_MIN) {
        rv = reblock(s, c->job, now, e);
    }
    if (rv == 0) {
        char text[STORE_NOTE_MAX];
        snprintf(text, sizeof(text), "%s%.300s%s%.100s%s%.300s%s%s", c->name ? " name=" : "",
                 text_or_empty(c->name), c->category ? " category=" : "",
                 text_or_empty(c->category), c->path ? " path=" : "", text_or_empty(c->path),
                 c->expires_at != INT64_MIN ? " expiry" : "",
                 c->passes != INT64_MIN ? " priority" : "");
        rv = event_put(s,
                       &(struct store_event){
                           .kind = STORE_EV_EDITED, .job = c->job, .text = text + (text[0] == ' ')},
                       now, NULL, e);
    }
    if (rv == 0 && row_version != NULL) {
        *row_version = at.row_version + 1;
    }
    return rv;
}

int store_job_edit(struct store *s, const struct store_job_edit *c, struct clock_time now,
                   uint64_t *row_version, struct err *e)
{
    int rv = check_texts(c->name, c->category, NULL, c->path, e);
    rv = rv != 0 ? rv : db_begin(&s->db, e);
    return rv != 0 ? rv : db_finish(&s->db, edit(s, c, now, row_version, e), e);
}

int job_alive(struct store *s, uint32_t job, struct clock_time now, struct err *e)
{
    return db_exec(&s->db, e, "UPDATE job SET progress_at = ?2 WHERE id = ?1",
                   DB_ARGS(I(job), I(now.wall_ms)));
}

int store_job_progress(struct store *s, uint32_t job, const struct store_facts *f,
                       struct clock_time now, struct err *e)
{
    struct job_at at;
    int rv = check_open(s, job, 0, &at, e);
    if (rv != 0) {
        return rv;
    }
    return db_exec(
        &s->db, e,
        "UPDATE job SET progressed = progressed OR ?6 > articles_done, progress_at = ?2,"
        " total_bytes = ?3, left_bytes = ?4, articles = ?5, articles_done = ?6,"
        " articles_failed = ?7, health = ?8, critical = ?9, blocks = ?10, blocks_missing = ?11,"
        " blocks_spare = ?12, servers_asked = ?13 WHERE id = ?1",
        DB_ARGS(I(job), I(now.wall_ms), U(f->total_bytes), U(f->left_bytes), I(f->articles),
                I(f->articles_done), I(f->articles_failed), I(f->health_permille),
                I(f->critical_permille), I(f->blocks), I(f->blocks_missing), I(f->blocks_spare),
                I(f->servers_asked)));
}

static int not_found(struct store *s, uint32_t job, bool yes, struct clock_time now,
                     int64_t *first_at, struct err *e)
{
    struct job_at at;
    int rv = check_open(s, job, 0, &at, e);
    if (rv == 0) {
        rv = db_exec(&s->db, e,
                     "UPDATE job SET first_not_found_at = CASE ?2 WHEN 1 THEN ?3 ELSE 0 END,"
                     " updated_at = ?3 WHERE id = ?1 AND (first_not_found_at > 0) <> ?2",
                     DB_ARGS(I(job), I(yes), I(now.wall_ms)));
    }
    if (rv == 0 && yes && db_changes(&s->db) > 0) {
        rv = event_put(s,
                       &(struct store_event){.kind = STORE_EV_ERROR,
                                             .job = job,
                                             .code = "not_found",
                                             .category = STORE_TRANSIENT,
                                             .text = "not there; asked again for a while"},
                       now, NULL, e);
    }
    return rv != 0 ? rv
                   : db_number(&s->db, e, "SELECT first_not_found_at FROM job WHERE id = ?1",
                               DB_ARGS(I(job)), 0, first_at);
}

int store_job_not_found(struct store *s, uint32_t job, bool yes, struct clock_time now,
                        int64_t *first_at, struct err *e)
{
    int rv = db_begin(&s->db, e);
    return rv != 0 ? rv : db_finish(&s->db, not_found(s, job, yes, now, first_at, e), e);
}

/* ---- asking ---- */

#define COLUMNS                                                                                   \
    "id, state, row_version, attempt, previous_id, name, category, source, path, key, holds,"     \
    " passes, created_at, updated_at, last_transition_at, completed_at, progress_at, expires_at," \
    " next_run_at, first_not_found_at, code, error_category, reason, total_bytes, left_bytes,"    \
    " articles, articles_done, articles_failed, health, critical, blocks, blocks_missing,"        \
    " blocks_spare, servers_asked"

static void read_facts(sqlite3_stmt *st, int at, struct store_facts *f)
{
    f->total_bytes = col_u64(st, at);
    f->left_bytes = col_u64(st, at + 1);
    uint32_t *const numbers[] = {&f->articles,        &f->articles_done,     &f->articles_failed,
                                 &f->health_permille, &f->critical_permille, &f->blocks,
                                 &f->blocks_missing,  &f->blocks_spare,      &f->servers_asked};
    for (int i = 0; i < 9; i++) {
        *numbers[i] = col_u32(st, at + 2 + i);
    }
}

static int job_read(struct store_mem **mem, sqlite3_stmt *st, void *row, void *arg, struct err *e)
{
    struct store_job *j = row;
    (void)arg;
    int rv = state_parse(db_col_text(st, 1), &j->state, e);
    if (rv != 0) {
        return rv;
    }
    j->id = col_u32(st, 0);
    j->row_version = col_u64(st, 2);
    j->attempt = col_u32(st, 3);
    j->previous_id = col_u32(st, 4);
    j->holds = col_u32(st, 10);
    j->passes = col_u32(st, 11);
    int64_t *const times[] = {&j->created_at,   &j->updated_at,        &j->last_transition_at,
                              &j->completed_at, &j->progress_at,       &j->expires_at,
                              &j->next_run_at,  &j->first_not_found_at};
    for (int i = 0; i < 8; i++) {
        *times[i] = sqlite3_column_int64(st, 12 + i);
    }
    j->category_of_error = (enum store_category)category_parse(db_col_text(st, 21));
    read_facts(st, 23, &j->facts);
    const void *key = sqlite3_column_blob(st, 9);
    if (store_mem_text(mem, db_col_text(st, 5), &j->name) != 0 ||
        store_mem_text(mem, db_col_text(st, 6), &j->category) != 0 ||
        store_mem_text(mem, db_col_text(st, 7), &j->source) != 0 ||
        store_mem_text(mem, db_col_text(st, 8), &j->path) != 0 ||
        store_mem_text(mem, db_col_text(st, 20), &j->code) != 0 ||
        store_mem_text(mem, db_col_text(st, 22), &j->reason) != 0 ||
        store_mem_blob(mem, key, key != NULL ? STORE_KEY_BYTES : 0, (const void **)&j->key) != 0) {
        return err_sys(e, -ENOMEM, "database: read");
    }
    return 0;
}

static struct store_cursor job_cursor(const void *row)
{
    return (struct store_cursor){((const struct store_job *)row)->id, 0};
}

static const struct page_type job_page = {sizeof(struct store_job), job_read, job_cursor, NULL};
static const char get_sql[] = "SELECT " COLUMNS " FROM job WHERE id = ?1";

int store_job_get(struct store *s, uint32_t job, struct store_page *page, struct err *e)
{
    return page_one(s, page, get_sql, DB_ARGS(I(job)), &job_page, "job", job, e);
}

int job_get(struct store *s, struct store_mem **mem, uint32_t job, struct store_job *row,
            struct err *e)
{
    sqlite3_stmt *st;
    int rv = db_first(&s->db, e, get_sql, DB_ARGS(I(job)), &st);
    if (rv == 0) {
        return err_set(e, ERR_NOT_FOUND, "no job %" PRIu32, job);
    }
    if (rv == 1) {
        rv = job_read(mem, st, row, NULL, e);
        db_end(st);
    }
    return rv;
}

/* ",queued,downloading," or "". */
static const char *states_text(uint32_t mask, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < STORE_STATES; i++) {
        if ((mask & SM_BIT(i)) != 0) {
            used +=
                (size_t)snprintf(buf + used, size - used, "%s%s,", used == 0 ? "," : "", states[i]);
        }
    }
    return buf;
}

#define JOB_WHERE                                                                            \
    " AND (?2 = '' OR instr(?2, ',' || state || ',') > 0) AND (?3 IS NULL OR category = ?3)" \
    " AND (?4 IS NULL OR instr(lower(name), lower(?4)) > 0)"                                 \
    " AND (?5 = 0 OR (expires_at > 0 AND expires_at < ?5))"

int store_job_list(struct store *s, const struct store_job_filter *f,
                   const struct store_range *range, struct store_page *page, struct err *e)
{
    static const char up[] =
        "SELECT " COLUMNS " FROM job WHERE id > ?1" JOB_WHERE " ORDER BY id LIMIT ?6";
    static const char down[] =
        "SELECT " COLUMNS " FROM job WHERE id < ?1" JOB_WHERE " ORDER BY id DESC LIMIT ?6";
    char words[160];
    unsigned limit = page_limit(range);
    int64_t after = range != NULL ? range->after.a : 0;
    if (f->newest_first && after == 0) {
        after = INT64_MAX;
    }
    return page_read(s, page, f->newest_first ? down : up,
                     DB_ARGS(I(after), T(states_text(f->states, words, sizeof(words))),
                             T(f->category), T(f->name), I(f->expires_before), I(limit + 1)),
                     limit, &job_page, e);
}

int store_job_counts(struct store *s, int64_t counts[STORE_STATES], struct err *e)
{
    memset(counts, 0, STORE_STATES * sizeof(counts[0]));
    sqlite3_stmt *st;
    int rv = db_first(&s->db, e, "SELECT state, count(*) FROM job GROUP BY state", DB_NO_ARGS, &st);
    while (rv == 1) {
        enum store_state state;
        int bad = state_parse(db_col_text(st, 0), &state, e);
        if (bad != 0) {
            db_end(st);
            return bad;
        }
        counts[state] = sqlite3_column_int64(st, 1);
        rv = db_next(&s->db, e, st);
    }
    return rv;
}
