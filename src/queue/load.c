/* load.c - the queue at start: from the newest good generation, with everything that was journalled since.
 *
 *     queue.json good?  ── yes ─────────────────────────────┐
 *         │ no: set aside, said                             │
 *     queue.json.prev good? ── yes ─────────────────────────┤
 *         │ no: set aside, said                             ▼
 *     stored NZBs? ── yes: jobs anew, paused, said      journals from its generation on,
 *         │ no                                          each up to its first bad record
 *     a new queue
 *
 * A file that cannot be read for other reasons than its content (EIO, no permission) ends the start with that error:
 * going on would overwrite what may be well. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "queue/saved.h"
#include "queue/store.h"

enum { SNAPSHOT_MAX_GB = 8 };

struct loader {
    const struct fsx *fs;
    int dirfd;
    int64_t now_at;
    queue_say_cb say;
    void *arg;
    struct queue *q;
    struct queue_load_report *report;
};

__attribute__((format(printf, 2, 3))) static void say(struct loader *l, const char *fmt, ...)
{
    char line[ERR_MSG_MAX + 256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (l->say != NULL) {
        l->say(l->arg, line);
    }
}

/* ---- one snapshot ---- */

/* The next line of the body as JSON; NULL: there is none, or it is none. */
static json_t *next_line(const char **at, const char *end)
{
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    if (newline == NULL) {
        return NULL;
    }
    json_t *line = json_loadb(*at, (size_t)(newline - *at), 0, NULL);
    *at = newline + 1;
    return line;
}

static int check_header(const char *bytes, size_t len, struct err *e)
{
    static const char start[] = "{\"weir\":\"queue\",\"version\":";
    char header[SAVED_HEADER + 1];
    if (len > sizeof(start) && memcmp(bytes, start, sizeof(start) - 1) == 0 &&
        strtoul(bytes + sizeof(start) - 1, NULL, 10) > QUEUE_STATE_VERSION) {
        return err_set(e, ERR_VERSION, "it was written by a newer version");
    }
    if (len < SAVED_HEADER) {
        return err_set(e, ERR_TRUNCATED, "it ends too early");
    }
    saved_header(bytes + SAVED_HEADER, len - SAVED_HEADER, header);
    if (memcmp(bytes, header, SAVED_HEADER) != 0) {
        return err_set(e, ERR_CORRUPT, "its checksum is wrong");
    }
    return 0;
}

static int take_head(struct loader *l, json_t *head, uint32_t *active, uint32_t *past,
                     struct err *e)
{
    struct queue *q = l->q;
    size_t i;
    json_t *id;
    json_int_t next_job = json_integer_value(json_object_get(head, "next_job_id"));
    json_int_t next_file = json_integer_value(json_object_get(head, "next_file_id"));
    json_int_t generation = json_integer_value(json_object_get(head, "generation"));
    json_int_t jobs[2] = {json_integer_value(json_object_get(head, "active")),
                          json_integer_value(json_object_get(head, "past"))};
    json_t *servers = json_object_get(head, "servers");
    if (next_job < 1 || next_job > INT32_MAX || next_file < 1 || next_file > INT32_MAX ||
        generation < 1 || jobs[0] < 0 || jobs[0] > INT32_MAX || jobs[1] < 0 ||
        jobs[1] > INT32_MAX || json_array_size(servers) > QUEUE_SERVERS_MAX) {
        return err_set(e, ERR_CORRUPT, "its head makes no sense");
    }
    q->next_job_id = (uint32_t)next_job;
    q->next_file_id = (uint32_t)next_file;
    q->generation = q->saved_generation = (uint64_t)generation;
    q->holds = (uint32_t)json_integer_value(json_object_get(head, "holds"));
    json_array_foreach(servers, i, id)
    {
        /* Known by number only, until they are configured. */
        q->servers[q->server_count++] =
            (struct queue_server){.id = (uint32_t)json_integer_value(id)};
    }
    *active = (uint32_t)jobs[0];
    *past = (uint32_t)jobs[1];
    return 0;
}

/* The job's NZBs, one reference each. On failure none is kept. */
static int load_sources(struct loader *l, const struct queue_job *j, struct nzb **nzbs,
                        struct err *e)
{
    for (uint32_t s = 0; s < j->source_count; s++) {
        int rc = queue_nzb_load(l->fs, l->dirfd, j->sources[s].stored, j->filename, &nzbs[s], e);
        if (rc != 0) {
            while (s > 0) {
                nzb_unref(nzbs[--s]);
            }
            return rc;
        }
    }
    return 0;
}

/* A job that cannot be what it was is said, and kept: with nothing fetched, or as failed. */
static void break_job(struct loader *l, struct queue_job *j, const struct err *why)
{
    l->report->jobs_broken++;
    say(l, "job %u (%s) is lost: %s", j->id, j->name, why->msg);
    (void)queue_job_set_text(l->q, j, &j->reason, why->msg);
    (void)queue_job_move(l->q, j, QUEUE_JOB_FAILED, l->now_at, NULL);
    if (j->place == QUEUE_ACTIVE) {
        j->place = QUEUE_HISTORY;
        j->history_at = l->now_at;
    }
}

static int take_articles(struct loader *l, struct queue_job *j, json_t *files, struct err *e)
{
    struct nzb **nzbs = mem_zalloc(j->source_count + 1, sizeof(*nzbs));
    if (nzbs == NULL) {
        return err_sys(e, -ENOMEM, "job %u", j->id);
    }
    int rc = load_sources(l, j, nzbs, e);
    if (rc == 0) {
        bool same = true;
        for (uint32_t s = 0; s < j->source_count; s++) {
            same = same && nzbs[s]->layout == j->sources[s].layout;
        }
        if (same) {
            queue_job_zero_sums(j); /* a job that waits for its NZB was saved with its sums */
            rc = saved_take_files(l->q, j, nzbs, files, l->now_at, e);
        }
        if (rc == 0 && same) {
            queue_job_apply_reload(l->q, j); /* it was to come back in another way than it was */
            for (uint32_t s = 0; s < j->source_count; s++) {
                nzb_unref(nzbs[s]);
            }
        } else if (!same) {
            say(l, "job %u (%s): its stored NZB is not the one it was; it starts anew", j->id,
                j->name);
            j->reload = QUEUE_RELOAD_FRESH;
            rc = queue_job_reload(l->q, j, nzbs, e);
        }
        for (uint32_t s = 0; s < j->source_count && rc != 0; s++) {
            nzb_unref(nzbs[s]);
        }
    }
    mem_free(nzbs);
    return rc;
}

static bool keeps_articles(const struct queue_job *j)
{
    return j->place == QUEUE_ACTIVE && j->source_count > 0;
}

static int take_line(struct loader *l, json_t *line, const char *files_at, size_t files_len,
                     struct err *e)
{
    struct queue *q = l->q;
    struct queue_job *j = queue_job_alloc(q);
    int rc = j != NULL ? saved_take_job(j, line, e) : err_sys(e, -ENOMEM, "job");
    if (rc == 0 && queue_job(q, j->id) != NULL) {
        rc = err_set(e, ERR_CORRUPT, "job %u is there twice", j->id);
    }
    if (rc != 0) {
        queue_job_free(q, j);
        return rc;
    }
    if (keeps_articles(j)) {
        struct err why = {0};
        enum queue_place place = j->place;
        j->place = QUEUE_HISTORY; /* in no lane before it is in the order */
        json_t *files = json_loadb(files_at, files_len, 0, NULL);
        rc = files != NULL ? take_articles(l, j, files, &why)
                           : err_set(&why, ERR_CORRUPT, "its files are not JSON");
        json_decref(files);
        j->place = (uint8_t)place;
        if (rc == -ENOMEM) {
            queue_job_free(q, j);
            return err_sys(e, rc, "job");
        }
        if (rc != 0) {
            break_job(l, j, &why);
        }
    } else if (files_len > 2) { /* "[]": nothing to keep */
        j->shed = mem_strndup(files_at, files_len);
        if (j->shed == NULL) {
            queue_job_free(q, j);
            return err_sys(e, -ENOMEM, "job");
        }
    }
    if (queue_job_ensure_stats(j, q->servers, q->server_count) != 0) {
        queue_job_free(q, j);
        return err_sys(e, -ENOMEM, "job");
    }
    q->next_job_id = j->id >= q->next_job_id ? j->id + 1 : q->next_job_id;
    idmap_put(q->jobs, j->id, j);
    if (j->place == QUEUE_ACTIVE) {
        queue_order_insert(q, j, q->active_count);
    } else {
        queue_past_append(q, j);
    }
    return 0;
}

static int take_body(struct loader *l, const char *at, const char *end, struct err *e)
{
    uint32_t active = 0, past = 0; /* gcc at -O1 does not see that take_head() sets them */
    json_t *line = next_line(&at, end);
    int rc = line != NULL ? take_head(l, line, &active, &past, e)
                          : err_set(e, ERR_CORRUPT, "it has no head");
    json_decref(line);
    if (rc == 0 && (queue_order_reserve(l->q, active + past) != 0 ||
                    queue_past_reserve(l->q, active + past) != 0 ||
                    idmap_reserve(l->q->jobs, active + past) != 0)) {
        rc = err_sys(e, -ENOMEM, "queue");
    }
    for (uint32_t i = 0; rc == 0 && i < active + past; i++) {
        line = next_line(&at, end);
        const char *newline = line != NULL ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        rc = newline != NULL
                 ? take_line(l, line, at, (size_t)(newline - at), e)
                 : err_set(e, ERR_CORRUPT, "job %u of %u cannot be read", i + 1, active + past);
        at = newline != NULL ? newline + 1 : end;
        json_decref(line);
    }
    return rc;
}

/* 0; -ENOENT; a content error (ERR_*), then the file is no good; or an error of the system. */
static int load_snapshot(struct loader *l, const char *name, struct err *e)
{
    char *bytes;
    size_t len;
    int rc = fsx_read_all(l->fs, l->dirfd, name, (size_t)SNAPSHOT_MAX_GB << 30, &bytes, &len, e);
    if (rc != 0) {
        return rc;
    }
    rc = check_header(bytes, len, e);
    if (rc == 0) {
        l->q = queue_new();
        if (l->q == NULL) {
            rc = err_sys(e, -ENOMEM, "queue");
        } else {
            l->q->adding = true;
            rc = take_body(l, bytes + SAVED_HEADER, bytes + len, e);
            queue_add_end(l->q);
        }
    }
    mem_free(bytes);
    if (rc != 0) {
        queue_free(l->q);
        l->q = NULL;
    }
    return rc;
}

/* ---- journals ---- */

struct numbers {
    uint64_t *at;
    uint32_t count, room;
    uint64_t from;
};

static int add_number(struct numbers *n, uint64_t v)
{
    if (n->count == n->room) {
        uint32_t room = n->room < 16 ? 16 : n->room * 2;
        uint64_t *bigger = mem_realloc(n->at, room, sizeof(*bigger));
        if (bigger == NULL) {
            return -ENOMEM;
        }
        n->at = bigger;
        n->room = room;
    }
    n->at[n->count++] = v;
    return 0;
}

static int note_journal(void *ctx, const char *name)
{
    struct numbers *n = ctx;
    uint64_t generation;
    return saved_is_journal(name, &generation) && generation >= n->from ? add_number(n, generation)
                                                                        : 0;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int replay_all(struct loader *l, struct err *e)
{
    struct numbers n = {.from = l->q->generation};
    int rc = fsx_list(l->fs, l->dirfd, note_journal, &n, e);
    if (n.count > 0) {
        qsort(n.at, n.count, sizeof(*n.at), by_value);
    }
    for (uint32_t i = 0; i < n.count && rc == 0; i++) {
        uint64_t cut = 0;
        rc = saved_replay(l->fs, l->dirfd, l->q, n.at[i], &l->report->replayed, &cut, e);
        if (rc == 0 && cut > 0) {
            l->report->journal_cut += cut;
            say(l, "journal %llu: the last %llu bytes are not whole and are left out",
                (unsigned long long)n.at[i], (unsigned long long)cut);
        }
        l->q->generation = n.at[i] > l->q->generation ? n.at[i] : l->q->generation;
    }
    mem_free(n.at);
    return rc;
}

/* ---- from what was posted ---- */

static int note_stored(void *ctx, const char *name)
{
    char *end;
    unsigned long id = strtoul(name, &end, 10);
    bool ours = end != name && strcmp(end, ".nzb.gz") == 0 && id > 0 && id < INT32_MAX;
    return ours ? add_number(ctx, id) : 0;
}

static void rebuild_one(struct loader *l, uint32_t id)
{
    char name[QUEUE_STORED_NAME], filename[NZB_NAME_MAX + 1];
    struct nzb *nzb;
    struct err why = {0};
    struct queue_job *j;
    snprintf(name, sizeof(name), "%u.nzb.gz", id);
    int rc = store_load(l->fs, l->dirfd, name, NULL, &nzb, filename, sizeof(filename), &why);
    if (rc == 0) {
        rc = nzb_compute_key(nzb);
        const struct queue_add add = {
            .nzb = nzb,
            .stored_nzb = name,
            .filename = filename,
            .paused = true,
            .now_at = l->now_at,
        };
        l->q->next_job_id = id;
        rc = rc == 0 ? queue_add(l->q, &add, &j, &why) : err_sys(&why, rc, "job");
        if (rc != 0) {
            nzb_unref(nzb);
        }
    }
    if (rc != 0) {
        l->report->jobs_broken++;
        say(l, "job %u cannot be rebuilt: %s", id, why.msg);
        return;
    }
    (void)queue_job_set_text(l->q, j, &j->reason,
                             "rebuilt from its stored NZB; what was fetched before is not known");
    (void)queue_job_move(l->q, j, QUEUE_QUEUED, l->now_at, NULL);
}

static int rebuild(struct loader *l, bool had_state, struct err *e)
{
    struct numbers n = {0};
    int rc = store_list(l->fs, l->dirfd, note_stored, &n, e);
    l->q = rc == 0 ? queue_new() : NULL;
    if (l->q == NULL) {
        mem_free(n.at);
        return rc != 0 ? rc : err_sys(e, -ENOMEM, "queue");
    }
    if (n.count > 0) {
        qsort(n.at, n.count, sizeof(*n.at), by_value);
        say(l,
            "no snapshot of the queue can be used; %u jobs are rebuilt from their stored NZBs, "
            "paused",
            n.count);
    } else if (had_state) {
        say(l,
            "no snapshot of the queue can be used and there are no stored NZBs: the queue is new");
    }
    queue_add_begin(l->q);
    for (uint32_t i = 0; i < n.count; i++) {
        rebuild_one(l, (uint32_t)n.at[i]);
    }
    queue_add_end(l->q);
    l->report->source = n.count > 0 || had_state ? QUEUE_FROM_NZBS : QUEUE_FROM_NOTHING;
    /* Journals of the lost generations speak of file numbers that mean something else now. */
    struct numbers journals = {0};
    rc = fsx_list(l->fs, l->dirfd, note_journal, &journals, e);
    for (uint32_t i = 0; i < journals.count; i++) {
        l->q->generation =
            journals.at[i] >= l->q->generation ? journals.at[i] + 1 : l->q->generation;
    }
    l->q->saved_generation = l->q->generation;
    mem_free(journals.at);
    mem_free(n.at);
    return rc;
}

/* ---- all of it ---- */

static bool content_error(int rc)
{
    return rc == ERR_CORRUPT || rc == ERR_TRUNCATED || rc == ERR_VERSION || rc == ERR_INVALID ||
           rc == ERR_LIMIT;
}

/* Tries one generation. *usable: it was loaded. Not 0: the start ends here. */
static int try_snapshot(struct loader *l, const char *name, bool *usable, bool *was_there,
                        struct err *e)
{
    char aside[FSX_NAME_MAX + 1];
    struct err why = {0};
    int rc = load_snapshot(l, name, &why);
    *usable = rc == 0;
    *was_there = *was_there || rc != -ENOENT;
    if (rc == 0 || rc == -ENOENT) {
        return 0;
    }
    if (!content_error(rc)) {
        return err_set(e, rc, "%s: %s", name, why.msg);
    }
    rc = fsx_set_aside(l->fs, l->dirfd, name, l->now_at, aside, e);
    if (rc != 0) {
        return err_wrap(e, rc, "%s", name);
    }
    l->report->set_aside++;
    say(l, "%s cannot be used: %s. It is kept as %s", name, why.msg, aside);
    return 0;
}

int queue_load(const struct fsx *fs, int dirfd, int64_t now_at, queue_say_cb say_cb, void *arg,
               struct queue **out, struct queue_load_report *report, struct err *e)
{
    struct loader l = {fs, dirfd, now_at, say_cb, arg, NULL, report};
    bool usable = false, had_state = false;
    *report = (struct queue_load_report){0};
    int rc = fsx_remove_tmp(fs, dirfd, SAVED_NAME, e);
    if (rc == 0) {
        rc = try_snapshot(&l, SAVED_NAME, &usable, &had_state, e);
        report->source = QUEUE_FROM_SNAPSHOT;
    }
    if (rc == 0 && !usable) {
        bool current_was_there = had_state;
        rc = try_snapshot(&l, SAVED_PREVIOUS, &usable, &had_state, e);
        report->source = QUEUE_FROM_PREVIOUS;
        if (usable) {
            say(&l, "%s %s: going on from the generation before it", SAVED_NAME,
                current_was_there ? "is damaged" : "is missing");
        }
    }
    if (rc == 0) {
        rc = usable ? replay_all(&l, e) : rebuild(&l, had_state, e);
    }
    if (rc != 0) {
        queue_free(l.q);
        return err_wrap(e, rc, "queue");
    }
    report->generation = l.q->generation;
    l.q->changes++; /* what was replayed or repaired is not in a snapshot yet */
    *out = l.q;
    return 0;
}
