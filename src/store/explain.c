#include "store/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store/internal.h"

/* ---- facts ---- */

static int read_errors(struct store *s, struct store_explain *x, struct err *e)
{
    sqlite3_stmt *st;
    /* With one max() SQLite takes the other columns from the row that has it: the last text. The + keeps it from going
     * through all errors of all jobs by the index of kinds. */
    int rv = db_first(&s->db, e,
                      "SELECT server, code, category, sum(count), at, text, max(seq) FROM event"
                      " WHERE job = ?1 AND +kind = 'error' GROUP BY server, code"
                      " ORDER BY 4 DESC, 7 DESC LIMIT ?2",
                      DB_ARGS(I(x->job.id), I(STORE_EXPLAIN_ERRORS)), &st);
    while (rv == 1) {
        struct store_error_sum *sum = &x->errors[x->error_count++];
        sum->server = (int32_t)sqlite3_column_int64(st, 0);
        sum->category = (enum store_category)category_parse(db_col_text(st, 2));
        sum->count = sqlite3_column_int64(st, 3);
        sum->last_at = sqlite3_column_int64(st, 4);
        if (store_mem_text(&x->mem, db_col_text(st, 1), &sum->code) != 0 ||
            store_mem_text(&x->mem, db_col_text(st, 5), &sum->text) != 0) {
            db_end(st);
            return err_sys(e, -ENOMEM, "database: read");
        }
        rv = db_next(&s->db, e, st);
    }
    return rv;
}

static int read_stage(struct store *s, struct store_explain *x, struct err *e)
{
    struct store_page page;
    int rv = store_stage_list(s, x->job.id, &page, e);
    if (rv != 0) {
        return rv;
    }
    const struct store_stage *rows = page.rows, *last = NULL;
    for (unsigned i = 0; i < page.count; i++) {
        last = last == NULL || rows[i].started_at >= last->started_at ? &rows[i] : last;
    }
    if (last != NULL) {
        x->has_stage = true;
        x->stage = *last;
        if (store_mem_text(&x->mem, last->name, &x->stage.name) != 0 ||
            store_mem_text(&x->mem, last->code, &x->stage.code) != 0 ||
            store_mem_text(&x->mem, last->text, &x->stage.text) != 0) {
            rv = err_sys(e, -ENOMEM, "database: read");
        }
    }
    store_page_free(&page);
    return rv;
}

/* ---- words ---- */

struct words {
    char *text;
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void say(struct words *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(w->text + w->used, STORE_EXPLAIN_TEXT - w->used, fmt, args);
    va_end(args);
    if (n > 0) {
        w->used += (size_t)n;
        w->used = w->used < STORE_EXPLAIN_TEXT ? w->used : STORE_EXPLAIN_TEXT - 1;
    }
}

static const struct {
    const char *hold, *help;
} helps[] = {
    {"user", "resume it"},
    {"global", "resume downloads, or give it Force priority"},
    {"disk", "free disk space; it then goes on by itself"},
    {"quota", "it goes on when the quota period ends, or with Force priority"},
    {"schedule", "it goes on when the schedule allows it, or with Force priority"},
    {"propagation", "the post is young; it goes on by itself"},
    {"health", "resume it to fetch it in spite of its health"},
    {"password", "give it the password"},
    {"dupe_standby", "nothing: it is woken when the one it stands by for fails"},
    {"servers_down", "check the servers: none can be used at the moment"},
    {"backoff", "it goes on by itself"},
    {"poison", "look at its timeline; resume it to try once more"},
};

static void say_holds(const struct store_explain *x, store_hold_name_cb name, struct words *cause,
                      struct words *next)
{
    uint32_t holds = (x->job.holds | x->everything_holds) & ~x->job.passes;
    say(cause, "held:");
    for (unsigned bit = 0; bit < 32; bit++) {
        if ((holds >> bit & 1) == 0) {
            continue;
        }
        char number[16];
        snprintf(number, sizeof(number), "hold %u", bit);
        const char *text = name != NULL ? name(bit) : number;
        say(cause, "%s %s", cause->used > 5 ? "," : "", text);
        for (size_t i = 0; i < sizeof(helps) / sizeof(helps[0]); i++) {
            if (strcmp(helps[i].hold, text) == 0) {
                say(next, "%s%s", next->used > 0 ? "; " : "", helps[i].help);
            }
        }
    }
}

static void say_blocks(const struct store_facts *f, struct words *cause)
{
    say(cause, "%" PRIu32 " of %" PRIu32 " blocks missing", f->blocks_missing, f->blocks);
    if (f->servers_asked == 2) {
        say(cause, " on both servers");
    } else if (f->servers_asked > 0) {
        say(cause, f->servers_asked == 1 ? " on the only server" : " on all %" PRIu32 " servers",
            f->servers_asked);
    }
    say(cause, "; %" PRIu32 " recovery blocks available; ", f->blocks_spare);
    if (f->blocks_missing > f->blocks_spare) {
        say(cause, "%" PRIu32 " short", f->blocks_missing - f->blocks_spare);
    } else {
        say(cause, "enough to repair");
    }
}

static void say_error(const struct store_explain *x, struct words *cause)
{
    const struct store_error_sum *worst = &x->errors[0];
    say(cause, "%s%s", cause->used > 0 ? "; " : "", worst->code);
    if (worst->server != 0) {
        say(cause, " from server %" PRId32, worst->server);
    }
    if (worst->count > 1) {
        say(cause, ", %" PRId64 " times", worst->count);
    }
    say(cause, "%s%.200s", worst->text[0] != '\0' ? ": " : "", worst->text);
}

static void say_end(const struct store_explain *x, struct words *cause, struct words *next)
{
    const struct store_job *j = &x->job;
    if (j->state == STORE_CLEANED) {
        say(cause, "imported and cleaned up");
        return;
    }
    bool blocks = j->state == STORE_FAILED && j->facts.blocks > 0 &&
                  j->facts.blocks_missing > j->facts.blocks_spare;
    if (blocks) {
        say_blocks(&j->facts, cause);
    } else if (j->reason[0] != '\0' || j->code[0] != '\0') {
        say(cause, "%.80s%s%.250s", j->code, j->code[0] != '\0' && j->reason[0] != '\0' ? ": " : "",
            j->reason);
    } else if (x->error_count > 0) {
        say_error(x, cause);
    } else {
        say(cause, "%s; no cause was recorded", store_state_name(j->state));
    }
    if (j->state == STORE_FAILED) {
        if (blocks) {
            say(next, "retry it with another server: %" PRIu32 " more blocks are enough",
                j->facts.blocks_missing - j->facts.blocks_spare);
        } else {
            say(next, "retry it: what is good is not fetched again");
        }
    }
}

static void say_imports(const struct store_explain *x, struct words *cause, struct words *next)
{
    int64_t all = 0;
    for (int i = 0; i < STORE_TASK_STATES; i++) {
        all += x->import.heads[i];
    }
    say(cause, "%s: %" PRId64 " of %" PRId64 " files imported",
        store_import_status_name(x->import.status), x->import.heads[STORE_TASK_COMPLETED], all);
    int64_t failed = x->import.heads[STORE_TASK_FAILED];
    if (failed > 0) {
        say(cause, ", %" PRId64 " failed", failed);
        say(next, "import the failed files again");
    }
    if (x->import.status == STORE_FULLY_IMPORTED && x->job.state == STORE_IMPORTED) {
        say(cause, "; waits to be cleaned up");
    }
}

static void say_running(const struct store_explain *x, struct words *cause)
{
    const struct store_facts *f = &x->job.facts;
    say(cause, "%s", store_state_name(x->job.state));
    if (x->job.state == STORE_PROCESSING && x->has_stage) {
        say(cause, ": %s is %s, attempt %" PRIu32, x->stage.name,
            store_stage_state_name(x->stage.state), x->stage.attempt);
        if (x->stage.state == STORE_STAGE_RUNNING) {
            say(cause, ", %" PRIu32 ".%" PRIu32 " %%", x->stage.progress_permille / 10,
                x->stage.progress_permille % 10);
        }
        say(cause, "%s%.100s", x->stage.text[0] != '\0' ? ": " : "", x->stage.text);
    } else if (f->articles > 0) {
        say(cause, ": %" PRIu32 " of %" PRIu32 " articles", f->articles_done, f->articles);
        if (f->articles_failed > 0) {
            say(cause, ", %" PRIu32 " lost", f->articles_failed);
        }
    }
    if (f->blocks_missing > 0) {
        say(cause, "; ");
        say_blocks(f, cause);
    }
}

static void put_into_words(struct store_explain *x, store_hold_name_cb name, struct clock_time now)
{
    struct words cause = {x->cause, 0}, next = {x->next, 0};
    const struct store_job *j = &x->job;
    bool held = ((j->holds | x->everything_holds) & ~j->passes) != 0;
    switch (j->state) {
    case STORE_CLEANED:
    case STORE_FAILED:
    case STORE_CANCELLED:
        say_end(x, &cause, &next);
        return;
    case STORE_COMPLETED:
    case STORE_IMPORTED:
        say_imports(x, &cause, &next);
        break;
    default:
        if (held) {
            say_holds(x, name, &cause, &next);
        } else {
            say_running(x, &cause);
        }
        break;
    }
    if (j->next_run_at > now.wall_ms) {
        say(&cause, "; the next attempt is in %" PRId64 " s",
            (j->next_run_at - now.wall_ms + 999) / 1000);
    }
    if (x->error_count > 0 && !held) {
        say_error(x, &cause);
    }
    if (x->stuck != STORE_STUCK_NOT) {
        say(&cause, "; stuck: %s", store_stuck_words(x->stuck));
    }
}

/* ---- all of it ---- */

void store_explain_free(struct store_explain *x)
{
    store_mem_free(x->mem);
    *x = (struct store_explain){0};
}

int store_explain(struct store *s, uint32_t job, bool server_up, store_hold_name_cb hold_name,
                  struct clock_time now, struct store_explain *x, struct err *e)
{
    struct store_stuck stuck = {0};
    *x = (struct store_explain){0};
    int rv = job_get(s, &x->mem, job, &x->job, e);
    rv = rv != 0 ? rv : store_import_summary(s, job, &x->import, e);
    rv = rv != 0 ? rv : read_stage(s, x, e);
    rv = rv != 0 ? rv : read_errors(s, x, e);
    if (rv == 0 && !job_ended(s, x->job.state)) {
        x->everything_holds = s->holds_on_all;
        rv = job_stuck(s, job, server_up, now, &stuck, e);
    }
    if (rv != 0) {
        store_explain_free(x);
        return rv;
    }
    x->stuck = stuck.why;
    x->stuck_ms = stuck.why != STORE_STUCK_NOT ? stuck.for_ms : 0;
    put_into_words(x, hold_name, now);
    return 0;
}
