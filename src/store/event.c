#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "store/internal.h"

static const char *const kinds[] = {
#define X(id, name) name,
    STORE_KIND_MAP(X)
#undef X
};
static const char *const categories[] = {"", "transient", "permanent"};

const char *store_kind_name(enum store_kind kind)
{
    PRE((int)kind >= 0 && kind < STORE_KINDS);
    return kinds[kind];
}

int store_kind_parse(const char *name)
{
    return word_index(kinds, STORE_KINDS, name);
}

const char *store_category_name(enum store_category c)
{
    PRE((int)c >= 0 && c <= STORE_PERMANENT);
    return categories[c];
}

int category_parse(const char *name)
{
    int c = word_index(categories, 3, name);
    return c < 0 ? STORE_TRANSIENT : c;
}

/* ---- writing ---- */

int event_put(struct store *s, const struct store_event *ev, struct clock_time now, int64_t *seq,
              struct err *e)
{
    char text[STORE_NOTE_MAX + 1], code[STORE_NOTE_MAX + 1];
    int rv = db_exec(
        &s->db, e, "INSERT INTO event VALUES (NULL,?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)",
        DB_ARGS(I(now.wall_ms), T(store_kind_name(ev->kind)), I(ev->job), I(ev->task),
                T(text_or_empty(ev->stage)), I(ev->server), T(text_or_empty(ev->from)),
                T(text_or_empty(ev->to)), T(text_note(ev->code, code)),
                T(store_category_name(ev->category)), I(ev->attempt),
                I(ev->count > 0 ? ev->count : 1), I(ev->value), T(text_note(ev->text, text))));
    if (rv == 0 && seq != NULL) {
        *seq = db_last_id(&s->db);
    }
    return rv;
}

int store_event_add(struct store *s, const struct store_event *ev, struct clock_time now,
                    int64_t *seq, struct err *e)
{
    static const uint32_t allowed =
        STORE_KIND_BIT(STORE_EV_ERROR) | STORE_KIND_BIT(STORE_EV_RETRY_SCHEDULED) |
        STORE_KIND_BIT(STORE_EV_HEALTH) | STORE_KIND_BIT(STORE_EV_PAR_REQUESTED) |
        STORE_KIND_BIT(STORE_EV_FILE_DONE) | STORE_KIND_BIT(STORE_EV_CLEANUP_REFUSED) |
        STORE_KIND_BIT(STORE_EV_STUCK) | STORE_KIND_BIT(STORE_EV_VERDICT);
    if ((int)ev->kind < 0 || ev->kind >= STORE_KINDS || (STORE_KIND_BIT(ev->kind) & allowed) == 0) {
        return err_set(e, ERR_INVALID, "an event of this kind is not told but made by its change");
    }
    if (ev->to != NULL && ev->to[0] != '\0') {
        return err_set(e, ERR_INVALID, "an event that is told changes no state");
    }
    return event_put(s, ev, now, seq, e);
}

/* ---- folding ---- */

static bool fold_is(const struct fold *f, const struct store_event *ev, const char *code)
{
    return f->job == ev->job && f->task == ev->task && f->server == ev->server &&
           f->kind == ev->kind && strncmp(f->code, code, sizeof(f->code) - 1) == 0;
}

static int fold_write(struct store *s, struct fold *f, int64_t count, struct clock_time now,
                      struct err *e)
{
    int rv = event_put(s,
                       &(struct store_event){.kind = f->kind,
                                             .job = f->job,
                                             .task = f->task,
                                             .server = f->server,
                                             .code = f->code,
                                             .category = f->category,
                                             .count = count,
                                             .text = f->text},
                       now, NULL, e);
    if (rv == 0) {
        f->waiting = 0;
        f->since_ms = now.mono_ms;
    }
    return rv;
}

/* Room for one more: the one that was written longest ago goes, its count first. */
static int fold_evict(struct store *s, struct clock_time now, struct err *e)
{
    unsigned oldest = 0;
    for (unsigned i = 1; i < s->fold_count; i++) {
        if (s->folds[i].since_ms < s->folds[oldest].since_ms) {
            oldest = i;
        }
    }
    struct fold *f = &s->folds[oldest];
    int rv = f->waiting > 0 ? fold_write(s, f, f->waiting, now, e) : 0;
    if (rv == 0) {
        *f = s->folds[--s->fold_count];
    }
    return rv;
}

static int fold(struct store *s, const struct store_event *ev, int64_t count, struct clock_time now,
                struct err *e)
{
    const char *code = text_or_empty(ev->code);
    struct fold *f = NULL;
    for (unsigned i = 0; f == NULL && i < s->fold_count; i++) {
        f = fold_is(&s->folds[i], ev, code) ? &s->folds[i] : NULL;
    }
    bool fresh = f == NULL;
    if (fresh) {
        int rv = s->fold_count == STORE_FOLDS_MAX ? fold_evict(s, now, e) : 0;
        if (rv != 0) {
            return rv;
        }
        f = &s->folds[s->fold_count]; /* counted below, when its row is written */
        *f =
            (struct fold){.job = ev->job, .task = ev->task, .server = ev->server, .kind = ev->kind};
        snprintf(f->code, sizeof(f->code), "%s", code);
    }
    f->category = ev->category;
    snprintf(f->text, sizeof(f->text), "%s", text_or_empty(ev->text));
    if (!fresh && now.mono_ms - f->since_ms < STORE_FOLD_MS) {
        f->waiting += count;
        return 0;
    }
    int rv = fold_write(s, f, f->waiting + count, now, e);
    s->fold_count += rv == 0 && fresh ? 1 : 0;
    return rv;
}

int store_event_errors(struct store *s, uint32_t job, int32_t server, const char *code,
                       enum store_category category, const char *text, int64_t count,
                       struct clock_time now, struct err *e)
{
    if (count < 1) {
        return err_set(e, ERR_INVALID, "no errors to record");
    }
    return fold(s,
                &(struct store_event){.kind = STORE_EV_ERROR,
                                      .job = job,
                                      .server = server,
                                      .code = code,
                                      .category = category,
                                      .text = text},
                count, now, e);
}

int event_refused(struct store *s, const struct store_event *ev, struct clock_time now, int code,
                  struct err *e)
{
    struct err failed = {0};
    int rv = fold(s, ev, 1, now, &failed);
    err_set(e, code, "%s", ev->text);
    if (rv != 0) { /* refused all the same; that it could not be recorded is said, too */
        log_write(LOG_ERROR, ev->job, "refused: %s; not recorded: %s", ev->text, failed.msg);
    }
    return code;
}

static int flush(struct store *s, uint32_t job, bool all, struct clock_time now, struct err *e)
{
    for (unsigned i = 0; i < s->fold_count;) {
        struct fold *f = &s->folds[i];
        bool due = all || now.mono_ms - f->since_ms >= STORE_FOLD_MS;
        if (!due || (job != 0 && f->job != job)) {
            i++;
            continue;
        }
        bool wrote = f->waiting > 0;
        int rv = wrote ? fold_write(s, f, f->waiting, now, e) : 0;
        if (rv != 0) {
            return rv;
        }
        if (wrote && !all) { /* its ten seconds begin again */
            i++;
        } else {
            *f = s->folds[--s->fold_count];
        }
    }
    return 0;
}

int store_event_flush(struct store *s, bool all, struct clock_time now, struct err *e)
{
    return flush(s, 0, all, now, e);
}

int event_flush_job(struct store *s, uint32_t job, struct clock_time now, struct err *e)
{
    return flush(s, job, true, now, e);
}

/* ---- reading ---- */

static int event_read(struct store_mem **mem, sqlite3_stmt *st, void *row, void *arg, struct err *e)
{
    struct store_event *ev = row;
    (void)arg;
    int kind = store_kind_parse(db_col_text(st, 2));
    if (kind < 0) {
        return err_set(e, ERR_CORRUPT, "event %" PRId64 ": unknown kind '%.40s'",
                       (int64_t)sqlite3_column_int64(st, 0), db_col_text(st, 2));
    }
    ev->seq = sqlite3_column_int64(st, 0);
    ev->at = sqlite3_column_int64(st, 1);
    ev->kind = (enum store_kind)kind;
    ev->job = col_u32(st, 3);
    ev->task = sqlite3_column_int64(st, 4);
    ev->server = (int32_t)sqlite3_column_int64(st, 6);
    ev->category = (enum store_category)category_parse(db_col_text(st, 10));
    ev->attempt = col_u32(st, 11);
    ev->count = sqlite3_column_int64(st, 12);
    ev->value = sqlite3_column_int64(st, 13);
    if (store_mem_text(mem, db_col_text(st, 5), &ev->stage) != 0 ||
        store_mem_text(mem, db_col_text(st, 7), &ev->from) != 0 ||
        store_mem_text(mem, db_col_text(st, 8), &ev->to) != 0 ||
        store_mem_text(mem, db_col_text(st, 9), &ev->code) != 0 ||
        store_mem_text(mem, db_col_text(st, 14), &ev->text) != 0) {
        return err_sys(e, -ENOMEM, "database: read");
    }
    return 0;
}

static struct store_cursor event_cursor(const void *row)
{
    return (struct store_cursor){((const struct store_event *)row)->seq, 0};
}

/* ",created,claimed," for the instr() below; "" for any. */
static const char *kinds_text(uint32_t mask, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (int k = 0; mask != 0 && k < STORE_KINDS; k++) {
        if ((mask & STORE_KIND_BIT(k)) != 0) {
            used +=
                (size_t)snprintf(buf + used, size - used, "%s%s,", used == 0 ? "," : "", kinds[k]);
        }
    }
    return buf;
}

/* ?1 after, ?2 job, ?3 task, ?4 kinds, ?5 limit. One text per index that is to be used. */
#define WHERE_KIND " AND (?4 = '' OR instr(?4, ',' || kind || ',') > 0)"
#define UP         "SELECT * FROM event WHERE seq > ?1"
#define DOWN       "SELECT * FROM event WHERE seq < ?1"
#define ANY        " AND ?2 = 0 AND ?3 = 0"
#define BY_JOB     " AND job = ?2 AND (?3 = 0 OR task = ?3)"
#define BY_TASK    " AND task = ?3 AND task > 0 AND ?2 = 0"
#define ONE_KIND   " AND kind = ?4 AND ?2 = 0 AND ?3 = 0"
#define ORDER_UP   " ORDER BY seq LIMIT ?5"
#define ORDER_DOWN " ORDER BY seq DESC LIMIT ?5"

int store_event_list(struct store *s, const struct store_event_filter *f,
                     const struct store_range *range, struct store_page *page, struct err *e)
{
    static const char *const sql[4][2] = {
        {UP ANY WHERE_KIND ORDER_UP, DOWN ANY WHERE_KIND ORDER_DOWN},
        {UP BY_JOB WHERE_KIND ORDER_UP, DOWN BY_JOB WHERE_KIND ORDER_DOWN},
        {UP BY_TASK WHERE_KIND ORDER_UP, DOWN BY_TASK WHERE_KIND ORDER_DOWN},
        {UP ONE_KIND ORDER_UP, DOWN ONE_KIND ORDER_DOWN},
    };
    static const struct page_type type = {sizeof(struct store_event), event_read, event_cursor,
                                          NULL};
    char words[512];
    *page = (struct store_page){0};
    if (f->kinds >= STORE_KIND_BIT(STORE_KINDS)) {
        return err_set(e, ERR_INVALID, "no such kind of event");
    }
    unsigned limit = page_limit(range);
    int64_t after = range != NULL ? range->after.a : 0;
    if (f->newest_first && after == 0) {
        after = INT64_MAX;
    }
    int by = f->job != 0 ? 1 : f->task != 0 ? 2 : 0;
    const char *kind = kinds_text(f->kinds, words, sizeof(words));
    if (by == 0 && f->kinds != 0 && (f->kinds & (f->kinds - 1)) == 0) { /* among a million others */
        by = 3;
        kind = kinds[__builtin_ctz(f->kinds)];
    }
    return page_read(s, page, sql[by][f->newest_first],
                     DB_ARGS(I(after), I(f->job), I(f->task), T(kind), I(limit + 1)), limit, &type,
                     e);
}

int store_event_count(struct store *s, uint32_t job, int64_t *count, struct err *e)
{
    return db_number(&s->db, e, "SELECT count(*) FROM event WHERE job = ?1", DB_ARGS(I(job)), 0,
                     count);
}

/* ---- words ---- */

static enum log_level level_of(const struct store_event *ev)
{
    switch (ev->kind) {
    case STORE_EV_ERROR:
        return ev->category == STORE_PERMANENT ? LOG_ERROR : LOG_WARNING;
    case STORE_EV_ILLEGAL_TRANSITION:
    case STORE_EV_STUCK:
    case STORE_EV_CLEANUP_REFUSED:
    case STORE_EV_RETRY_SCHEDULED:
    case STORE_EV_RECOVERED:
        return LOG_WARNING;
    case STORE_EV_STATUS_CHANGED:
        return strcmp(ev->to, "failed") == 0 ? LOG_ERROR : LOG_INFO;
    case STORE_EV_STAGE:
        return strcmp(ev->to, "failed") == 0 ? LOG_WARNING : LOG_INFO;
    case STORE_EV_CLAIMED:
    case STORE_EV_HEALTH:
        return LOG_DETAIL;
    default:
        return LOG_INFO;
    }
}

int store_event_words(const struct store_event *ev, char *text, size_t size)
{
    char who[64] = "", times[40] = "", server[40] = "";
    if (ev->task != 0) {
        snprintf(who, sizeof(who), "import %" PRId64 ": ", ev->task);
    } else if (ev->stage[0] != '\0') {
        snprintf(who, sizeof(who), "%.40s: ", ev->stage);
    }
    if (ev->count > 1) {
        snprintf(times, sizeof(times), " (%" PRId64 " times)", ev->count);
    }
    if (ev->server != 0) {
        snprintf(server, sizeof(server), " on server %" PRId32, ev->server);
    }
    char what[160];
    if (ev->to[0] != '\0' && ev->from[0] != '\0') {
        snprintf(what, sizeof(what), "%.40s -> %.40s", ev->from, ev->to);
    } else {
        snprintf(what, sizeof(what), "%s", kinds[ev->kind]);
        for (char *c = what; *c != '\0'; c++) {
            *c = *c == '_' ? ' ' : *c;
        }
    }
    snprintf(text, size, "%s%s%s%s%s%s%s%s", who, what, ev->code[0] != '\0' ? " " : "", ev->code,
             server, times, ev->text[0] != '\0' ? ": " : "", ev->text);
    return (int)level_of(ev);
}
