/* bench_queue.c - `weir bench queue`: parsing, picking, editing, saving and loading queues of 1 k to 10 M articles.
 *
 * Times are CPU seconds of this thread, so that a busy neighbour costs little. NZBs are made here: 100 segments per file,
 * ids of 40 bytes, one NZB per million articles. A pick is measured three ways: in a fresh queue; with nine jobs of
 * ten held and nine files of ten paused; and with all articles but the last of each file tried on the server that asks. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/bench.h"
#include "queue/edit.h"
#include "queue/pick.h"
#include "queue/state.h"
#include "queue/text.h"

enum { PER_FILE = 100, PER_NZB = 1000 * 1000, SERVERS = 4, EDIT_JOBS = 10000, SAMPLES = 9 };
enum { OPT_ARTICLES, OPT_JSON };

struct row {
    uint64_t articles;
    uint32_t jobs;
    double parse_mb_s, key_ms, bytes_per_article;
    double pick_ns, pick_paused_ns, pick_tried_ns, done_ns;
    double snapshot_ms, snapshot_mb, reload_ms, servers_ms;
};

struct edit_row {
    const char *name;
    double median_us, worst_us;
};

struct bench {
    struct cli_args *args;
    uint64_t only; /* articles; 0: the usual four sizes */
    bool json, quiet;
    char dir[64];
    int dirfd;
    uint64_t seed;
    struct row rows[4];
    unsigned row_count;
    struct edit_row edits[8];
    unsigned edit_count;
};

/* ---- small things ---- */

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t next(struct bench *b)
{
    b->seed = b->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return b->seed >> 16;
}

static void progress(const struct bench *b, uint64_t articles, const char *what)
{
    if (!b->quiet) {
        fprintf(stderr, "\r%-60s\r%" PRIu64 " articles: %s", "", articles, what);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *v, unsigned n)
{
    qsort(v, n, sizeof(*v), by_value);
    return v[n / 2];
}

static size_t heap_in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* ---- making NZBs ---- */

static void put(struct text *t, const char *s)
{
    text_put(t, s, strlen(s));
}

static void make_nzb(struct bench *b, struct text *t, uint32_t articles, uint32_t per_file)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$";
    char line[256], id[41];
    uint32_t files = (articles + per_file - 1) / per_file;
    t->len = 0;
    put(t, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE nzb PUBLIC \"-//newzBin//DTD NZB "
           "1.1//EN\" \"http://www.newzbin.com/DTD/nzb/nzb-1.1.dtd\">\n"
           "<nzb xmlns=\"http://www.newzbin.com/DTD/2003/nzb\">\n");
    for (uint32_t f = 0; f < files; f++) {
        uint32_t n = articles - f * per_file < per_file ? articles - f * per_file : per_file;
        snprintf(line, sizeof(line),
                 "<file poster=\"poster &lt;p@example.com&gt;\" date=\"1700000000\" "
                 "subject=\"[%05u/%u] - &quot;some.show.s01.part%05u.rar&quot; yEnc (1/%u)\">\n"
                 "<groups>\n<group>alt.binaries.test</group>\n</groups>\n<segments>\n",
                 f + 1, files, f + 1, n);
        put(t, line);
        for (uint32_t s = 0; s < n; s++) {
            for (unsigned i = 0; i < 28; i++) {
                id[i] = letters[next(b) & 63];
            }
            memcpy(id + 28, "@example.net", 13);
            snprintf(line, sizeof(line), "<segment bytes=\"739067\" number=\"%u\">%s</segment>\n",
                     s + 1, id);
            put(t, line);
        }
        put(t, "</segments>\n</file>\n");
    }
    put(t, "</nzb>\n");
}

static int set_servers(struct queue *q)
{
    struct queue_server s[SERVERS];
    for (unsigned i = 0; i < SERVERS; i++) {
        s[i] = (struct queue_server){.id = i + 1, .level = (int)i / 2, .active = true};
    }
    return queue_set_servers(q, s, SERVERS, 1700000100, NULL);
}

/* Parses, stores and adds one NZB; the best of a few parses counts for the small ones. */
static int add_one(struct bench *b, struct queue *q, const struct text *t, struct row *r,
                   double *parse_ns)
{
    char name[32], stored[QUEUE_STORED_NAME];
    struct nzb *nzb = NULL;
    struct queue_job *j;
    struct err e = {0};
    double best = 1e18;
    unsigned rounds = t->len < (1 << 20) ? SAMPLES : 1;
    for (unsigned i = 0; i < rounds; i++) {
        nzb_unref(nzb);
        nzb = NULL;
        double from = cpu_ns();
        if (nzb_parse(t->at, t->len, NULL, &nzb, &e) != 0) {
            return cli_failed(b->args, "%s", e.msg);
        }
        double took = cpu_ns() - from;
        best = took < best ? took : best;
    }
    *parse_ns += best;
    double from = cpu_ns();
    if (nzb_compute_key(nzb) != 0) {
        return cli_failed(b->args, "out of memory");
    }
    r->key_ms += (cpu_ns() - from) / 1e6;
    snprintf(name, sizeof(name), "job %u", r->jobs);
    const struct queue_add add = {.nzb = nzb, .stored_nzb = stored, .name = name};
    if (queue_nzb_store(&fsx_kernel, b->dirfd, ++r->jobs, name, t->at, t->len, stored, &e) != 0 ||
        queue_add(q, &add, &j, &e) != 0) {
        return cli_failed(b->args, "%s", e.msg);
    }
    return queue_job_move(q, j, QUEUE_QUEUED, 0, NULL);
}

/* ---- picking ---- */

/* Leases up to `n` articles and gives them back; ns per pick. */
static double time_picks(struct queue *q, struct queue_ref *taken, uint32_t n, double *return_ns)
{
    struct queue_pick p;
    uint32_t got = 0;
    double from = cpu_ns();
    while (got < n && queue_pick(q, 0, &p)) {
        taken[got++] = queue_pick_ref(&p);
    }
    double middle = cpu_ns();
    for (uint32_t i = 0; i < got; i++) {
        queue_article_return(q, taken[i]);
    }
    *return_ns = got > 0 ? (cpu_ns() - middle) / got : 0;
    return got > 0 ? (middle - from) / got : 0;
}

static double median_pick(struct queue *q, uint32_t n)
{
    struct queue_ref *taken = mem_alloc(n * sizeof(*taken));
    double samples[SAMPLES], ignored;
    for (unsigned i = 0; i < SAMPLES && taken != NULL; i++) {
        double sum = 0;
        unsigned rounds =
            n < 2000 ? 2000 / n + 1 : 1; /* few picks are repeated, or the clock counts */
        for (unsigned k = 0; k < rounds; k++) {
            sum += time_picks(q, taken, n, &ignored);
        }
        samples[i] = sum / rounds;
    }
    mem_free(taken);
    return taken != NULL ? median(samples, SAMPLES) : 0;
}

static void pause_most(struct queue *q, bool on)
{
    for (uint32_t i = 0; i < q->active_count; i++) {
        struct queue_job *j = q->order[i];
        uint32_t *ids = mem_alloc(j->file_count * sizeof(*ids)), n = 0;
        struct queue_edit_result *r = mem_alloc(j->file_count * sizeof(*r));
        for (uint32_t k = 0; k < j->file_count && ids != NULL; k++) {
            if (k % 10 != 9) {
                ids[n++] = j->files[k]->id;
            }
        }
        const struct queue_edit e = {
            .op = on ? QUEUE_EDIT_FILE_PAUSE : QUEUE_EDIT_FILE_RESUME, .ids = ids, .id_count = n};
        if (ids != NULL && r != NULL) {
            (void)queue_edit(q, &e, r);
        }
        mem_free(ids);
        mem_free(r);
        if (i % 10 != 9 && q->active_count > 1) {
            (on ? (void)queue_hold_set(q, j, QUEUE_HOLD_USER, 0, 0)
                : queue_hold_clear(q, j, QUEUE_HOLD_USER));
        }
    }
}

/* Every article but the last of each file has been asked for on server 1 in vain. */
static void try_most(struct queue *q)
{
    struct queue_pick p;
    uint32_t held_back = 0;
    while (queue_pick(q, 0, &p)) {
        if (p.index + 1 < p.file->count) {
            queue_article_tried(q, queue_pick_ref(&p), 0, QUEUE_NOT_THERE);
        } else {
            held_back++; /* stays leased for now, or it would be picked for ever */
        }
    }
    for (uint32_t i = 0; i < q->active_count && held_back > 0; i++) {
        struct queue_job *j = q->order[i];
        for (uint32_t k = 0; k < j->file_count; k++) {
            struct queue_file *f = j->files[k];
            if (f->state[f->count - 1] == QUEUE_LEASED) {
                queue_article_return(q, (struct queue_ref){f->id, f->count - 1});
            }
        }
    }
}

static void finish_half(struct bench *b, struct queue *q, uint64_t articles, struct row *r)
{
    struct queue_pick p;
    double from = cpu_ns(), picked = 0;
    uint64_t n = 0;
    for (; n < articles / 2 && queue_pick(q, 1, &p); n++) { /* a server that tried nothing yet */
        struct queue_part part = {
            .offset = (uint64_t)p.index * 716800, .size = 716800, .crc32 = (uint32_t)next(b)};
        (void)queue_article_done(q, queue_pick_ref(&p), 1, &part, 739067);
    }
    picked = cpu_ns() - from;
    r->done_ns = n > 0 ? picked / (double)n : 0;
}

/* ---- one size ---- */

static int save_and_load(struct bench *b, struct queue **q, struct row *r)
{
    struct queue_snapshot s;
    struct queue_load_report report;
    struct err e = {0};
    double samples[SAMPLES];
    for (unsigned i = 0; i < SAMPLES; i++) {
        double from = cpu_ns();
        if (queue_snapshot(*q, &s) != 0) {
            return cli_failed(b->args, "out of memory");
        }
        samples[i] = (cpu_ns() - from) / 1e6;
        if (i + 1 < SAMPLES) {
            queue_snapshot_free(&s);
        }
    }
    r->snapshot_ms = median(samples, SAMPLES);
    r->snapshot_mb = (double)s.len / 1e6;
    int rc = queue_snapshot_write(&fsx_kernel, b->dirfd, &s, &e);
    queue_snapshot_free(&s);
    if (rc != 0) {
        return cli_failed(b->args, "%s", e.msg);
    }
    queue_free(*q);
    *q = NULL;
    double from = cpu_ns();
    rc = queue_load(&fsx_kernel, b->dirfd, 1700000200, NULL, NULL, q, &report, &e);
    r->reload_ms = (cpu_ns() - from) / 1e6;
    if (rc != 0 || report.source != QUEUE_FROM_SNAPSHOT || report.jobs_broken > 0) {
        return cli_failed(b->args, "reload: %s", rc != 0 ? e.msg : "not what was saved");
    }
    return CLI_OK;
}

static int run_size(struct bench *b, uint64_t articles, struct row *r)
{
    struct text t = {0};
    struct queue *q = queue_new();
    double parse_ns = 0, text_bytes = 0;
    int rc = q != NULL && set_servers(q) == 0 ? CLI_OK : cli_failed(b->args, "out of memory");
    r->articles = articles;
    size_t heap_before = heap_in_use();
    for (uint64_t left = articles; left > 0 && rc == CLI_OK;) {
        uint32_t n = left < PER_NZB ? (uint32_t)left : PER_NZB;
        progress(b, articles, "parsing");
        make_nzb(b, &t, n, PER_FILE);
        text_bytes += (double)t.len;
        rc = t.failed ? cli_failed(b->args, "out of memory") : add_one(b, q, &t, r, &parse_ns);
        left -= n;
    }
    r->parse_mb_s = text_bytes / parse_ns * 1e3;
    mem_free(t.at);
    if (rc == CLI_OK) {
        r->bytes_per_article = (double)(heap_in_use() - heap_before) / (double)articles;
        uint32_t picks = articles / 20 < 20000 ? (uint32_t)articles / 20 : 20000;
        progress(b, articles, "picking");
        r->pick_ns = median_pick(q, picks);
        pause_most(q, true);
        r->pick_paused_ns = median_pick(q, picks);
        pause_most(q, false);
        progress(b, articles, "trying all on one server");
        try_most(q);
        uint32_t last_ones = (uint32_t)(articles / PER_FILE);
        r->pick_tried_ns = median_pick(q, last_ones < picks ? last_ones : picks);
        double from = cpu_ns();
        rc = set_servers(q) == 0 ? CLI_OK : cli_failed(b->args, "out of memory");
        r->servers_ms = (cpu_ns() - from) / 1e6;
        progress(b, articles, "finishing half");
        finish_half(b, q, articles, r);
        progress(b, articles, "saving and loading");
    }
    rc = rc == CLI_OK ? save_and_load(b, &q, r) : rc;
    queue_free(q);
    return rc;
}

/* ---- edits in a queue of 10,000 jobs ---- */

static struct queue *many_jobs(struct bench *b)
{
    struct queue *q = queue_new();
    struct text t = {0};
    if (q == NULL || set_servers(q) != 0) {
        queue_free(q);
        return NULL;
    }
    queue_add_begin(q);
    for (uint32_t i = 0; i < EDIT_JOBS; i++) {
        char name[48];
        struct nzb *nzb;
        struct queue_job *j;
        make_nzb(b, &t, 100, 20);
        snprintf(name, sizeof(name), "Some.Show.S%02uE%02u-%06" PRIu64, i / 100, i % 100,
                 next(b) % 1000000);
        if (t.failed || nzb_parse(t.at, t.len, NULL, &nzb, NULL) != 0) {
            break;
        }
        const struct queue_add add = {
            .nzb = nzb, .name = name, .priority = (int32_t)(next(b) % 5) * 50 - 100};
        if (queue_add(q, &add, &j, NULL) != 0) {
            nzb_unref(nzb);
            break;
        }
        (void)queue_job_move(q, j, QUEUE_QUEUED, 0, NULL);
    }
    queue_add_end(q);
    mem_free(t.at);
    return q;
}

static int run_edits(struct bench *b)
{
    static const struct {
        const char *name;
        enum queue_edit_op op;
        const char *text;
    } ops[] = {
        {"move to top", QUEUE_EDIT_GROUP_MOVE_TOP, ""},
        {"move 100 down", QUEUE_EDIT_GROUP_MOVE_OFFSET, ""},
        {"pause", QUEUE_EDIT_GROUP_PAUSE, ""},
        {"resume", QUEUE_EDIT_GROUP_RESUME, ""},
        {"set priority", QUEUE_EDIT_GROUP_SET_PRIORITY, ""},
        {"rename", QUEUE_EDIT_GROUP_SET_NAME, "another name"},
        {"delete", QUEUE_EDIT_GROUP_DELETE, ""},
        {"sort all by name", QUEUE_EDIT_GROUP_SORT, "name"},
    };
    enum { ROUNDS = 101 };
    progress(b, EDIT_JOBS * 100, "edits in 10,000 jobs");
    struct queue *q = many_jobs(b);
    if (q == NULL || q->active_count != EDIT_JOBS) {
        queue_free(q);
        return cli_failed(b->args, "out of memory");
    }
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        double us[ROUNDS];
        for (unsigned k = 0; k < ROUNDS; k++) {
            uint32_t id = q->order[next(b) % q->active_count]->id;
            struct queue_edit_result r;
            const struct queue_edit e = {.op = ops[i].op,
                                         .text = ops[i].text,
                                         .number = 100,
                                         .ids = &id,
                                         .id_count = ops[i].op == QUEUE_EDIT_GROUP_SORT ? 0 : 1};
            double from = cpu_ns();
            (void)queue_edit(q, &e, &r);
            us[k] = (cpu_ns() - from) / 1e3;
        }
        struct edit_row *row = &b->edits[b->edit_count++];
        row->name = ops[i].name;
        row->median_us = median(us, ROUNDS);
        row->worst_us = us[ROUNDS - 1];
    }
    queue_free(q);
    return CLI_OK;
}

/* ---- output ---- */

static void print_table(const struct bench *b)
{
    printf("%10s %5s %9s %8s %9s | %7s %8s %8s %8s | %9s %9s %9s %9s\n", "articles", "jobs",
           "parse", "key", "memory", "pick", "paused", "tried", "done", "servers", "snapshot",
           "size", "reload");
    printf("%10s %5s %9s %8s %9s | %7s %8s %8s %8s | %9s %9s %9s %9s\n", "", "", "MB/s", "ms",
           "B/article", "ns", "ns", "ns", "ns", "ms", "ms", "MB", "ms");
    for (unsigned i = 0; i < b->row_count; i++) {
        const struct row *r = &b->rows[i];
        printf("%10" PRIu64 " %5u %9.0f %8.1f %9.1f | %7.0f %8.0f %8.0f %8.0f | %9.2f %9.2f %9.2f "
               "%9.0f\n",
               r->articles, r->jobs, r->parse_mb_s, r->key_ms, r->bytes_per_article, r->pick_ns,
               r->pick_paused_ns, r->pick_tried_ns, r->done_ns, r->servers_ms, r->snapshot_ms,
               r->snapshot_mb, r->reload_ms);
    }
    printf("\none edit in a queue of %d jobs, microseconds (median, worst of 101)\n", EDIT_JOBS);
    for (unsigned i = 0; i < b->edit_count; i++) {
        printf("  %-18s %8.1f %8.1f\n", b->edits[i].name, b->edits[i].median_us,
               b->edits[i].worst_us);
    }
}

static void print_json(const struct bench *b)
{
    struct jsonw j;
    jsonw_init_file(&j, stdout);
    jsonw_object(&j);
    jsonw_key(&j, "sizes");
    jsonw_array(&j);
    for (unsigned i = 0; i < b->row_count; i++) {
        const struct row *r = &b->rows[i];
        jsonw_object(&j);
        jsonw_kuint(&j, "articles", r->articles);
        jsonw_kuint(&j, "jobs", r->jobs);
        jsonw_kdouble(&j, "parse_mb_per_s", r->parse_mb_s, 1);
        jsonw_kdouble(&j, "key_ms", r->key_ms, 2);
        jsonw_kdouble(&j, "bytes_per_article", r->bytes_per_article, 2);
        jsonw_kdouble(&j, "pick_ns", r->pick_ns, 1);
        jsonw_kdouble(&j, "pick_mostly_paused_ns", r->pick_paused_ns, 1);
        jsonw_kdouble(&j, "pick_mostly_tried_ns", r->pick_tried_ns, 1);
        jsonw_kdouble(&j, "pick_and_done_ns", r->done_ns, 1);
        jsonw_kdouble(&j, "set_servers_ms", r->servers_ms, 3);
        jsonw_kdouble(&j, "snapshot_ms", r->snapshot_ms, 3);
        jsonw_kdouble(&j, "snapshot_mb", r->snapshot_mb, 3);
        jsonw_kdouble(&j, "reload_ms", r->reload_ms, 1);
        jsonw_end(&j);
    }
    jsonw_end(&j);
    jsonw_key(&j, "edits");
    jsonw_array(&j);
    for (unsigned i = 0; i < b->edit_count; i++) {
        jsonw_object(&j);
        jsonw_kstr(&j, "edit", b->edits[i].name);
        jsonw_kint(&j, "jobs", EDIT_JOBS);
        jsonw_kdouble(&j, "median_us", b->edits[i].median_us, 1);
        jsonw_kdouble(&j, "worst_us", b->edits[i].worst_us, 1);
        jsonw_end(&j);
    }
    jsonw_end(&j);
    jsonw_end(&j);
    jsonw_finish(&j);
    putchar('\n');
}

/* ---- the command ---- */

static int remove_name(void *ctx, const char *name)
{
    return unlinkat(*(int *)ctx, name, 0) != 0 && errno != EISDIR ? -errno : 0;
}

/* Everything that was stored for the last size. */
static void clean(struct bench *b)
{
    int nzb = openat(b->dirfd, "nzb", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (nzb >= 0) {
        (void)fsx_list(&fsx_kernel, nzb, remove_name, &nzb, NULL);
        close(nzb);
        unlinkat(b->dirfd, "nzb", AT_REMOVEDIR);
    }
    (void)fsx_list(&fsx_kernel, b->dirfd, remove_name, &b->dirfd, NULL);
}

static int run_all(struct bench *b)
{
    static const uint64_t usual[] = {1000, 100 * 1000, 1000 * 1000, 10 * 1000 * 1000};
    int rc = CLI_OK;
    for (size_t i = 0; i < (b->only > 0 ? 1 : 4) && rc == CLI_OK; i++) {
        rc = run_size(b, b->only > 0 ? b->only : usual[i], &b->rows[b->row_count++]);
        clean(b);
    }
    rc = rc == CLI_OK ? run_edits(b) : rc;
    if (!b->quiet) {
        fprintf(stderr, "\r%-60s\r", "");
    }
    return rc;
}

static int run(struct cli_args *a)
{
    struct bench b = {.args = a, .quiet = !isatty(STDERR_FILENO), .seed = 1};
    const char *tmp = getenv("TMPDIR");
    int option;
    while ((option = cli_next(a)) != CLI_END) {
        if (option == CLI_BAD ||
            (option == OPT_ARTICLES && !cli_number(a, 1000, 100 * 1000 * 1000, &b.only))) {
            return CLI_USAGE;
        }
        if (option == CLI_ARG) {
            return cli_usage_error(a, "'%s' is too much", a->value);
        }
        b.json = b.json || option == OPT_JSON;
    }
    snprintf(b.dir, sizeof(b.dir), "%.40s/weir-bench-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(b.dir) == NULL || (b.dirfd = open(b.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        return cli_failed(a, "%s: %s", b.dir, strerror(errno));
    }
    int rc = run_all(&b);
    clean(&b);
    close(b.dirfd);
    rmdir(b.dir);
    if (rc == CLI_OK) {
        (b.json ? print_json : print_table)(&b);
    }
    return rc;
}

static const struct cli_option options[] = {
    [OPT_ARTICLES] = {"articles", "N", "only this size (1000, 100000, 1000000 and 10000000)", 'n'},
    [OPT_JSON] = {"json", NULL, "as JSON", 0},
    {NULL, NULL, NULL, 0},
};

const struct cli_command bench_queue = {
    .name = "queue",
    .summary = "parsing, picking, editing, saving and loading a queue",
    .about =
        "Makes NZBs of 1 thousand to 10 million articles and measures, in CPU time: parsing and "
        "the content key,\n"
        "memory per article, one pick (in a fresh queue, with most of it paused, with most of it "
        "tried on the\n"
        "server), one article from pick to done, a change of servers, a snapshot, loading it "
        "again, and one edit\n"
        "in a queue of 10,000 jobs. Needs 2 GB of memory for 10 million, and room in TMPDIR.\n",
    .example = "weir bench queue\nweir bench queue --articles 1000000 --json\n",
    .options = options,
    .run = run,
};
