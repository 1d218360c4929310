#include "store/import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "store/internal.h"

/*   pending ─► in_progress ─► completed
 *      │  ▲________│   └────► failed
 *      ▼   (crash)
 *   cancelled */
#define S(id, name_, next_) [STORE_TASK_##id] = {.name = (name_), .next = (next_)}
#define N(id)               SM_BIT(STORE_TASK_##id)
static const struct sm_state task_states[STORE_TASK_STATES] = {
    S(PENDING, "pending", N(IN_PROGRESS) | N(CANCELLED)),
    S(IN_PROGRESS, "in_progress", N(COMPLETED) | N(FAILED) | N(PENDING)),
    S(COMPLETED, "completed", 0),
    S(FAILED, "failed", 0),
    S(CANCELLED, "cancelled", 0),
};
#undef S
#undef N
const struct sm_type store_task_type = {"import", task_states, STORE_TASK_STATES, NULL};

static const char *const methods[] = {"hardlink", "reflink", "rename", "copy"};

const char *store_task_state_name(enum store_task_state state)
{
    PRE((int)state >= 0 && state < STORE_TASK_STATES);
    return task_states[state].name;
}

const char *store_method_name(enum store_method m)
{
    PRE((int)m >= 0 && m < STORE_METHODS);
    return methods[m];
}

static int task_state_parse(const char *name, enum store_task_state *state, struct err *e)
{
    for (int i = 0; i < STORE_TASK_STATES; i++) {
        if (strcmp(task_states[i].name, name) == 0) {
            *state = (enum store_task_state)i;
            return 0;
        }
    }
    return err_set(e, ERR_CORRUPT, "unknown import state '%.40s'", name);
}

int64_t store_import_backoff_ms(int64_t task, uint32_t attempt)
{
    enum { CAP_MS = 10 * 60 * 1000 };
    int64_t ms = attempt < 10 ? (int64_t)1000 << attempt : CAP_MS;
    ms = ms > CAP_MS ? CAP_MS : ms;
    /* splitmix64 of the task and attempt: spread, and the same whenever it is asked. */
    uint64_t z = ((uint64_t)task << 8 | attempt) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    int64_t spread = (int64_t)((z ^ (z >> 31)) % 401) - 200; /* -200..200 permille */
    ms += ms * spread / 1000;
    return ms > CAP_MS ? CAP_MS : ms;
}

/* ---- rows ---- */

struct task_at {
    uint32_t job;
    enum store_task_state state;
    uint32_t attempt;
    int64_t next_run_at;
    bool head;
};

static int task_at(struct store *s, int64_t task, struct task_at *at, struct err *e)
{
    sqlite3_stmt *st;
    int rv = db_first(&s->db, e,
                      "SELECT job, state, attempt, next_run_at, NOT EXISTS (SELECT 1 FROM"
                      " import_task n WHERE n.previous_task_id = t.id)"
                      " FROM import_task t WHERE id = ?1",
                      DB_ARGS(I(task)), &st);
    if (rv == 0) {
        return err_set(e, ERR_NOT_FOUND, "no import task %" PRId64, task);
    }
    if (rv == 1) {
        at->job = col_u32(st, 0);
        rv = task_state_parse(db_col_text(st, 1), &at->state, e);
        at->attempt = col_u32(st, 2);
        at->next_run_at = sqlite3_column_int64(st, 3);
        at->head = sqlite3_column_int64(st, 4) != 0;
        db_end(st);
    }
    return rv;
}

/* The one way from one state to another: row and event. `about` gives the event its kind and words. */
int import_move(struct store *s, int64_t task, uint32_t job, enum store_task_state from,
                enum store_task_state to, const struct store_event *about, struct clock_time now,
                struct err *e)
{
    struct sm life;
    char text[STORE_NOTE_MAX + 1], code[STORE_NOTE_MAX + 1];
    sm_init(&life, &store_task_type, (int)from, (unsigned)task);
    sm_move(&life, (int)to); /* callers have asked: a wrong edge here is a bug */
    int rv =
        db_exec(&s->db, e,
                "UPDATE import_task SET state = ?2, attempt = ?3, next_run_at = 0,"
                " updated_at = ?4, progress_at = ?4,"
                " started_at = CASE WHEN ?2 = 'in_progress' THEN ?4 ELSE started_at END,"
                " ended_at = CASE WHEN ?2 IN ('completed','failed','cancelled') THEN ?4"
                "  ELSE 0 END, code = ?5, category = ?6, text = ?7 WHERE id = ?1",
                DB_ARGS(I(task), T(task_states[to].name), I(about->attempt), I(now.wall_ms),
                        T(text_note(about->code, code)), T(store_category_name(about->category)),
                        T(text_note(about->text, text))));
    if (rv == 0) {
        struct store_event ev = *about;
        ev.job = job;
        ev.task = task;
        ev.from = task_states[from].name;
        ev.to = task_states[to].name;
        rv = event_put(s, &ev, now, NULL, e);
    }
    return rv;
}

static int refuse(struct store *s, int64_t task, const struct task_at *at, int to, const char *why,
                  struct clock_time now, struct err *e)
{
    struct sm life;
    char words[256], code[STORE_CODE_MAX];
    sm_init(&life, &store_task_type, (int)at->state, (unsigned)task);
    sm_refusal(&life, to, words, sizeof(words));
    snprintf(code, sizeof(code), "%s>%s", task_states[at->state].name, task_states[to].name);
    if (why != NULL) {
        snprintf(words, sizeof(words), "import %" PRId64 ": %s", task, why);
    }
    return event_refused(s,
                         &(struct store_event){.kind = STORE_EV_ILLEGAL_TRANSITION,
                                               .job = at->job,
                                               .task = task,
                                               .code = code,
                                               .category = STORE_PERMANENT,
                                               .text = words},
                         now, ERR_INVALID, e);
}

/* ---- making ---- */

static int insert(struct store *s, uint32_t job, const struct store_task_new *t,
                  struct clock_time now, int64_t *made, struct err *e)
{
    *made = 0;
    if ((int)t->method < 0 || t->method >= STORE_METHODS || text_or_empty(t->source)[0] == '\0') {
        return err_set(e, ERR_INVALID, "job %" PRIu32 ": an import needs a source and a method",
                       job);
    }
    int rv = text_check("the source", t->source, e);
    rv = rv != 0 ? rv : text_check("the destination", t->dest, e);
    if (rv == 0) {
        rv = db_exec(&s->db, e,
                     "INSERT INTO import_task SELECT NULL,?1,NULL,'pending',?2,?3,?4,?5,?6,?7,0,0,"
                     "?8,?8,0,?8,0,'','','' WHERE NOT EXISTS (SELECT 1 FROM import_task"
                     " WHERE job = ?1 AND source = ?2 AND previous_task_id IS NULL)",
                     DB_ARGS(I(job), T(t->source), T(text_or_empty(t->dest)), T(methods[t->method]),
                             U(t->size_bytes), I(t->source_dev), I(t->source_ino), I(now.wall_ms)));
    }
    if (rv == 0 && db_changes(&s->db) > 0) {
        *made = db_last_id(&s->db);
        rv = event_put(s,
                       &(struct store_event){.kind = STORE_EV_IMPORT_SPAWNED,
                                             .job = job,
                                             .task = *made,
                                             .to = task_states[STORE_TASK_PENDING].name,
                                             .text = t->source},
                       now, NULL, e);
    }
    return rv;
}

static int spawn(struct store *s, uint32_t job, const struct store_task_new *tasks, unsigned count,
                 struct clock_time now, unsigned *made, struct err *e)
{
    struct job_at at;
    int rv = job_at(s, job, &at, e);
    if (rv == 0 && at.state != STORE_COMPLETED) {
        rv = err_set(e, ERR_INVALID, "job %" PRIu32 " is %s: only a completed job is imported", job,
                     store_state_name(at.state));
    }
    for (unsigned i = 0; rv == 0 && i < count; i++) {
        int64_t id;
        rv = insert(s, job, &tasks[i], now, &id, e);
        *made += id != 0;
    }
    return rv;
}

int store_import_spawn(struct store *s, uint32_t job, const struct store_task_new *tasks,
                       unsigned count, struct clock_time now, unsigned *made, struct err *e)
{
    unsigned own = 0;
    made = made != NULL ? made : &own;
    *made = 0;
    int rv = db_begin(&s->db, e);
    return rv != 0 ? rv : db_finish(&s->db, spawn(s, job, tasks, count, now, made, e), e);
}

/* ---- reading ---- */

#define TASK                                                                               \
    "SELECT t.*, NOT EXISTS (SELECT 1 FROM import_task n WHERE n.previous_task_id = t.id)" \
    " FROM import_task t "

static int task_read(struct store_mem **mem, sqlite3_stmt *st, void *row, void *arg, struct err *e)
{
    struct store_task *t = row;
    (void)arg;
    int rv = task_state_parse(db_col_text(st, 3), &t->state, e);
    int method = word_index(methods, STORE_METHODS, db_col_text(st, 6));
    if (rv == 0 && method < 0) {
        rv = err_set(e, ERR_CORRUPT, "unknown import method '%.40s'", db_col_text(st, 6));
    }
    if (rv != 0) {
        return rv;
    }
    t->method = (enum store_method)method;
    t->id = sqlite3_column_int64(st, 0);
    t->job = col_u32(st, 1);
    t->previous_id = sqlite3_column_int64(st, 2);
    t->size_bytes = col_u64(st, 7);
    t->source_dev = col_u64(st, 8);
    t->source_ino = col_u64(st, 9);
    t->attempt = col_u32(st, 10);
    int64_t *const times[] = {&t->next_run_at, &t->created_at,  &t->updated_at,
                              &t->started_at,  &t->progress_at, &t->ended_at};
    for (int i = 0; i < 6; i++) {
        *times[i] = sqlite3_column_int64(st, 11 + i);
    }
    t->category = (enum store_category)category_parse(db_col_text(st, 18));
    t->head = sqlite3_column_int64(st, 20) != 0;
    if (store_mem_text(mem, db_col_text(st, 4), &t->source) != 0 ||
        store_mem_text(mem, db_col_text(st, 5), &t->dest) != 0 ||
        store_mem_text(mem, db_col_text(st, 17), &t->code) != 0 ||
        store_mem_text(mem, db_col_text(st, 19), &t->text) != 0) {
        return err_sys(e, -ENOMEM, "database: read");
    }
    return 0;
}

static struct store_cursor task_cursor(const void *row)
{
    return (struct store_cursor){((const struct store_task *)row)->id, 0};
}

static const struct page_type task_page = {sizeof(struct store_task), task_read, task_cursor, NULL};

int store_import_get(struct store *s, int64_t task, struct store_page *page, struct err *e)
{
    return page_one(s, page, TASK "WHERE t.id = ?1", DB_ARGS(I(task)), &task_page, "import task",
                    task, e);
}

#define TASK_WHERE                                                                  \
    " AND (?2 = 0 OR job = ?2) AND (?3 = '' OR instr(?3, ',' || state || ',') > 0)" \
    " AND (?4 = 0 OR NOT EXISTS (SELECT 1 FROM import_task n WHERE n.previous_task_id = t.id))"

int store_import_list(struct store *s, const struct store_task_filter *f,
                      const struct store_range *range, struct store_page *page, struct err *e)
{
    static const char *const sql[2][2] = {
        {TASK "WHERE t.id > ?1" TASK_WHERE " ORDER BY t.id LIMIT ?5",
         TASK "WHERE t.id < ?1" TASK_WHERE " ORDER BY t.id DESC LIMIT ?5"},
        {TASK "WHERE t.job = ?2 AND t.id > ?1" TASK_WHERE " ORDER BY t.id LIMIT ?5",
         TASK "WHERE t.job = ?2 AND t.id < ?1" TASK_WHERE " ORDER BY t.id DESC LIMIT ?5"},
    };
    char words[100] = "";
    size_t used = 0;
    for (int i = 0; i < STORE_TASK_STATES; i++) {
        if ((f->states & SM_BIT(i)) != 0) {
            used += (size_t)snprintf(words + used, sizeof(words) - used, "%s%s,",
                                     used == 0 ? "," : "", task_states[i].name);
        }
    }
    unsigned limit = page_limit(range);
    int64_t after = range != NULL ? range->after.a : 0;
    if (f->newest_first && after == 0) {
        after = INT64_MAX;
    }
    return page_read(s, page, sql[f->job != 0][f->newest_first],
                     DB_ARGS(I(after), I(f->job), T(words), I(f->heads), I(limit + 1)), limit,
                     &task_page, e);
}

int store_import_chain(struct store *s, int64_t task, struct store_page *page, struct err *e)
{
    static const struct page_type all = {sizeof(struct store_task), task_read, NULL, NULL};
    struct task_at at;
    *page = (struct store_page){0};
    int rv = task_at(s, task, &at, e);
    return rv != 0
               ? rv
               : page_read(
                     s, page,
                     "WITH RECURSIVE"
                     " back (id) AS (SELECT ?1 UNION SELECT p.previous_task_id FROM import_task p"
                     "  JOIN back ON p.id = back.id WHERE p.previous_task_id IS NOT NULL),"
                     " forth (id) AS (SELECT ?1 UNION SELECT n.id FROM import_task n"
                     "  JOIN forth ON n.previous_task_id = forth.id) " TASK
                     "WHERE t.id IN (SELECT id FROM back UNION SELECT id FROM forth)"
                     " ORDER BY t.id LIMIT ?2",
                     DB_ARGS(I(task), I(STORE_PAGE_MAX + 1)), STORE_PAGE_MAX, &all, e);
}

int store_import_counts(struct store *s, int64_t counts[STORE_TASK_STATES], struct err *e)
{
    memset(counts, 0, STORE_TASK_STATES * sizeof(counts[0]));
    sqlite3_stmt *st;
    int rv = db_first(&s->db, e, "SELECT state, count(*) FROM import_task GROUP BY state",
                      DB_NO_ARGS, &st);
    while (rv == 1) {
        enum store_task_state state;
        int bad = task_state_parse(db_col_text(st, 0), &state, e);
        if (bad != 0) {
            db_end(st);
            return bad;
        }
        counts[state] = sqlite3_column_int64(st, 1);
        rv = db_next(&s->db, e, st);
    }
    return rv;
}

/* ---- working ---- */

/* Due: never begun, or waiting and its time has come. A time further away than the longest wait cannot be meant: the
 * clock was set back. Holds are not looked at: they stop downloads, and whoever claims knows what else is paused. */
#define DUE                                                                  \
    "(t.state = 'pending' OR (t.state = 'in_progress' AND t.next_run_at > 0" \
    " AND (t.next_run_at <= ?1 OR t.next_run_at > ?1 + 660000)))"

static int begin(struct store *s, struct store_task *t, struct clock_time now, struct err *e)
{
    struct store_event about = {.kind = STORE_EV_CLAIMED, .attempt = t->attempt + 1};
    int rv = 0;
    if (t->state == STORE_TASK_PENDING) {
        rv = import_move(s, t->id, t->job, t->state, STORE_TASK_IN_PROGRESS, &about, now, e);
    } else { /* the next attempt: no transition */
        rv = db_exec(&s->db, e,
                     "UPDATE import_task SET attempt = ?2, next_run_at = 0, started_at = ?3,"
                     " progress_at = ?3, updated_at = ?3 WHERE id = ?1",
                     DB_ARGS(I(t->id), I(about.attempt), I(now.wall_ms)));
        if (rv == 0) {
            about.job = t->job;
            about.task = t->id;
            rv = event_put(s, &about, now, NULL, e);
        }
    }
    t->state = STORE_TASK_IN_PROGRESS;
    t->attempt = about.attempt;
    t->next_run_at = 0;
    t->started_at = t->progress_at = t->updated_at = now.wall_ms;
    return rv;
}

int store_import_claim(struct store *s, unsigned limit, struct clock_time now,
                       struct store_page *page, struct err *e)
{
    *page = (struct store_page){0};
    int rv = db_begin(&s->db, e);
    if (rv != 0) {
        return rv;
    }
    unsigned take = limit > STORE_PAGE_MAX ? STORE_PAGE_MAX : limit;
    rv = page_read(s, page,
                   TASK
                   "WHERE " DUE
                   " ORDER BY iif(t.next_run_at = 0, t.created_at, t.next_run_at), t.id LIMIT ?2",
                   DB_ARGS(I(now.wall_ms), I(take + 1)), take, &task_page, e);
    for (unsigned i = 0; rv == 0 && i < page->count; i++) {
        rv = begin(s, (struct store_task *)page->rows + i, now, e);
    }
    rv = db_finish(&s->db, rv, e);
    if (rv != 0) {
        store_page_free(page);
    }
    return rv;
}

int store_import_next(struct store *s, struct clock_time now, int64_t *at, struct err *e)
{
    int64_t due;
    int rv = db_number(&s->db, e, "SELECT 1 FROM import_task t WHERE " DUE " LIMIT 1",
                       DB_ARGS(I(now.wall_ms)), 0, &due);
    if (rv == 0 && due == 0) {
        rv = db_number(&s->db, e,
                       "SELECT min(t.next_run_at) FROM import_task t WHERE t.state = 'in_progress'"
                       " AND t.next_run_at > 0",
                       DB_NO_ARGS, -1, at);
    } else {
        *at = 0;
    }
    return rv;
}

/* The task that a worker says it has: ERR_CONFLICT when it is not that attempt any more. */
static int leased(struct store *s, int64_t task, uint32_t attempt, struct task_at *at,
                  struct err *e)
{
    int rv = task_at(s, task, at, e);
    if (rv == 0 && at->state == STORE_TASK_IN_PROGRESS &&
        (at->attempt != attempt || at->next_run_at != 0)) {
        rv = err_set(e, ERR_CONFLICT,
                     "import %" PRId64 ": attempt %" PRIu32 " is over, it is at %" PRIu32, task,
                     attempt, at->attempt);
    }
    return rv;
}

int store_import_progress(struct store *s, int64_t task, uint32_t attempt, struct clock_time now,
                          struct err *e)
{
    struct task_at at;
    int rv = leased(s, task, attempt, &at, e);
    if (rv == 0 && at.state != STORE_TASK_IN_PROGRESS) {
        rv = err_set(e, ERR_CONFLICT, "import %" PRId64 " is %s", task, task_states[at.state].name);
    }
    return rv != 0 ? rv
                   : db_exec(&s->db, e, "UPDATE import_task SET progress_at = ?2 WHERE id = ?1",
                             DB_ARGS(I(task), I(now.wall_ms)));
}

/* It failed for a passing reason: stays in progress, without a worker, until its time. */
static int schedule(struct store *s, const struct store_task_end *end, struct task_at *at,
                    struct clock_time now, struct store_task_ended *out, struct err *e)
{
    char text[STORE_NOTE_MAX + 1], code[STORE_NOTE_MAX + 1];
    out->next_run_at = now.wall_ms + store_import_backoff_ms(end->task, at->attempt);
    out->state = STORE_TASK_IN_PROGRESS;
    int rv = db_exec(&s->db, e,
                     "UPDATE import_task SET next_run_at = ?2, updated_at = ?3, progress_at = ?3,"
                     " code = ?4, category = 'transient', text = ?5 WHERE id = ?1",
                     DB_ARGS(I(end->task), I(out->next_run_at), I(now.wall_ms),
                             T(text_note(end->code, code)), T(text_note(end->text, text))));
    struct store_event ev = {.kind = STORE_EV_ERROR,
                             .job = at->job,
                             .task = end->task,
                             .code = end->code,
                             .category = STORE_TRANSIENT,
                             .attempt = at->attempt,
                             .text = end->text};
    if (rv == 0) {
        rv = event_put(s, &ev, now, NULL, e);
    }
    if (rv == 0) {
        ev = (struct store_event){.kind = STORE_EV_RETRY_SCHEDULED,
                                  .job = at->job,
                                  .task = end->task,
                                  .attempt = at->attempt + 1,
                                  .value = out->next_run_at};
        rv = event_put(s, &ev, now, NULL, e);
    }
    return rv;
}

static int end_task(struct store *s, const struct store_task_end *end, struct task_at *at,
                    struct clock_time now, struct store_task_ended *out, struct err *e)
{
    bool again =
        !end->ok && end->category != STORE_PERMANENT && at->attempt < STORE_IMPORT_ATTEMPTS;
    if (again) {
        return schedule(s, end, at, now, out, e);
    }
    int rv = 0;
    if (end->dest != NULL) {
        rv = db_exec(&s->db, e, "UPDATE import_task SET dest = ?2 WHERE id = ?1",
                     DB_ARGS(I(end->task), T(end->dest)));
    }
    enum store_category category =
        end->category != STORE_NO_ERROR ? end->category : STORE_TRANSIENT;
    struct store_event about = {.kind = STORE_EV_STATUS_CHANGED,
                                .attempt = at->attempt,
                                .code = end->ok ? NULL : end->code,
                                .category = end->ok ? STORE_NO_ERROR : category,
                                .text = end->text};
    out->state = end->ok ? STORE_TASK_COMPLETED : STORE_TASK_FAILED;
    return rv != 0 ? rv : import_move(s, end->task, at->job, at->state, out->state, &about, now, e);
}

int store_import_end(struct store *s, const struct store_task_end *end, struct clock_time now,
                     struct store_task_ended *out, struct err *e)
{
    struct store_task_ended own;
    struct task_at at;
    out = out != NULL ? out : &own;
    *out = (struct store_task_ended){0};
    int rv = text_check("the destination", end->dest, e);
    rv = rv != 0 ? rv : leased(s, end->task, end->attempt, &at, e);
    if (rv != 0) {
        return rv;
    }
    out->job = at.job;
    if (at.state != STORE_TASK_IN_PROGRESS) {
        return refuse(s, end->task, &at, end->ok ? STORE_TASK_COMPLETED : STORE_TASK_FAILED, NULL,
                      now, e);
    }
    rv = db_begin(&s->db, e);
    return rv != 0 ? rv : db_finish(&s->db, end_task(s, end, &at, now, out, e), e);
}

/* ---- cancelling, doing it again ---- */

int store_import_cancel(struct store *s, int64_t task, struct clock_time now, struct err *e)
{
    struct task_at at;
    int rv = task_at(s, task, &at, e);
    if (rv != 0) {
        return rv;
    }
    if (at.state != STORE_TASK_PENDING) {
        return refuse(s, task, &at, STORE_TASK_CANCELLED, NULL, now, e);
    }
    struct store_event about = {
        .kind = STORE_EV_STATUS_CHANGED, .attempt = at.attempt, .code = "cancelled_by_user"};
    rv = db_begin(&s->db, e);
    return rv != 0 ? rv
                   : db_finish(&s->db,
                               import_move(s, task, at.job, at.state, STORE_TASK_CANCELLED, &about,
                                           now, e),
                               e);
}

int import_cancel_all(struct store *s, uint32_t job, struct clock_time now, unsigned *count,
                      struct err *e)
{
    int64_t task = 0;
    *count = 0;
    for (;;) { /* one at a time: each has its event */
        int rv = db_number(&s->db, e,
                           "SELECT min(id) FROM import_task WHERE job = ?1 AND state = 'pending'",
                           DB_ARGS(I(job)), 0, &task);
        if (rv != 0 || task == 0) {
            return rv;
        }
        struct store_event about = {.kind = STORE_EV_STATUS_CHANGED,
                                    .code = "job_cancelled",
                                    .text = "its job was cancelled"};
        struct task_at at;
        rv = task_at(s, task, &at, e);
        if (rv == 0) {
            about.attempt = at.attempt;
            rv =
                import_move(s, task, job, STORE_TASK_PENDING, STORE_TASK_CANCELLED, &about, now, e);
        }
        if (rv != 0) {
            return rv;
        }
        ++*count;
    }
}

static int again(struct store *s, int64_t task, uint32_t job, struct clock_time now, int64_t *made,
                 struct err *e)
{
    int rv =
        db_exec(&s->db, e,
                "INSERT INTO import_task SELECT NULL, job, id, 'pending', source, dest, method,"
                " size_bytes, source_dev, source_ino, 0, 0, ?2, ?2, 0, ?2, 0, '', '', ''"
                " FROM import_task WHERE id = ?1",
                DB_ARGS(I(task), I(now.wall_ms)));
    *made = db_last_id(&s->db);
    return rv != 0 ? rv
                   : event_put(s,
                               &(struct store_event){.kind = STORE_EV_REIMPORT_REQUESTED,
                                                     .job = job,
                                                     .task = *made,
                                                     .to = task_states[STORE_TASK_PENDING].name,
                                                     .value = task},
                               now, NULL, e);
}

int store_import_again(struct store *s, int64_t task, struct clock_time now, int64_t *made,
                       struct err *e)
{
    struct task_at at;
    struct job_at job;
    char why[120] = "";
    int64_t own;
    made = made != NULL ? made : &own;
    *made = 0;
    int rv = task_at(s, task, &at, e);
    rv = rv != 0 ? rv : job_at(s, at.job, &job, e);
    if (rv != 0) {
        return rv;
    }
    if (at.state != STORE_TASK_COMPLETED && at.state != STORE_TASK_FAILED) {
        snprintf(why, sizeof(why), "is %s: only what completed or failed is imported again",
                 task_states[at.state].name);
    } else if (!at.head) {
        snprintf(why, sizeof(why), "was imported again already");
    } else if (job.state != STORE_COMPLETED && job.state != STORE_IMPORTED) {
        snprintf(why, sizeof(why), "its job is %s: the source is gone",
                 store_state_name(job.state));
    }
    if (why[0] != '\0') {
        return refuse(s, task, &at, STORE_TASK_PENDING, why, now, e);
    }
    rv = db_begin(&s->db, e);
    return rv != 0 ? rv : db_finish(&s->db, again(s, task, at.job, now, made, e), e);
}

/* ---- adding up ---- */

const char *store_import_status_name(enum store_import_status status)
{
    static const char *const names[] = {"download_pending", "awaiting_import", "importing",
                                        "fully_imported",   "partial_failure", "import_failed"};
    PRE((int)status >= 0 && status <= STORE_IMPORT_FAILED);
    return names[status];
}

static enum store_import_status add_up(enum store_state job, const int64_t heads[])
{
    if (job != STORE_COMPLETED && job != STORE_IMPORTED && job != STORE_CLEANED) {
        return STORE_DOWNLOAD_PENDING;
    }
    int64_t open = heads[STORE_TASK_PENDING] + heads[STORE_TASK_IN_PROGRESS];
    int64_t lost = heads[STORE_TASK_FAILED] + heads[STORE_TASK_CANCELLED];
    int64_t good = heads[STORE_TASK_COMPLETED];
    if (open + lost + good == 0) { /* the tasks of an imported job may have been purged */
        return job == STORE_COMPLETED ? STORE_AWAITING_IMPORT : STORE_FULLY_IMPORTED;
    }
    if (open > 0) {
        return STORE_IMPORTING;
    }
    return lost == 0  ? STORE_FULLY_IMPORTED
           : good > 0 ? STORE_PARTIAL_FAILURE
                      : STORE_IMPORT_FAILED;
}

int store_import_summary(struct store *s, uint32_t job, struct store_import_summary *out,
                         struct err *e)
{
    struct job_at at;
    *out = (struct store_import_summary){0};
    int rv = job_at(s, job, &at, e);
    if (rv != 0) {
        return rv;
    }
    sqlite3_stmt *st;
    rv = db_first(&s->db, e,
                  "SELECT state, sum(NOT EXISTS (SELECT 1 FROM import_task n"
                  "  WHERE n.previous_task_id = t.id)), sum(attempt > 0)"
                  " FROM import_task t WHERE job = ?1 GROUP BY state",
                  DB_ARGS(I(job)), &st);
    while (rv == 1) {
        enum store_task_state state;
        int bad = task_state_parse(db_col_text(st, 0), &state, e);
        if (bad != 0) {
            db_end(st);
            return bad;
        }
        out->heads[state] = sqlite3_column_int64(st, 1);
        out->begun += sqlite3_column_int64(st, 2);
        rv = db_next(&s->db, e, st);
    }
    out->status = add_up(at.state, out->heads);
    return rv;
}
