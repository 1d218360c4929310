/* store.c - how long the pages take that clients ask for, with a long history and many events.
 *
 *     bench_store [HISTORY] [EVENTS] [ROUNDS]       20000 entries and 1000000 events unless told
 *
 * One JSON line per question: median and worst of ROUNDS (201), in microseconds of wall and CPU time, cursors at random
 * places; then commits: one change each, and in batches through the same functions that the actor uses. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "queue/queue.h"
#include "store/event.h"
#include "store/explain.h"
#include "store/history.h"
#include "store/job.h"
#include "store/store.h"

static struct store *s;
static struct err e;
static struct clock_time now = {1000, INT64_C(1800000000000)};
static uint32_t jobs;
static int64_t events;
static uint64_t random_state = 1;

static uint64_t any(uint64_t n)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % n;
}

static void must(int rv)
{
    if (rv != 0) {
        fprintf(stderr, "bench_store: %s\n", e.msg);
        exit(1);
    }
}

static double seconds(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- filling ---- */

static void fill_job(uint32_t id)
{
    static const struct store_pair params[] = {{"drone", "0123456789abcdef0123456789abcdef"},
                                               {"*Unpack:", "yes"}};
    static const struct store_server_stat servers[] = {{1, 900, 3}, {2, 40, 0}};
    char name[64];
    struct store_job_made made;
    snprintf(name, sizeof(name), "Some.Show.S%02uE%02u.1080p.WEB.h264-GRP", id % 40, id % 23);
    struct store_job_new n = {.id = id, .name = name, .category = "tv", .source = "a.nzb"};
    must(store_job_add(s, &n, now, &made, &e));
    struct store_move m = {.job = id, .to = STORE_QUEUED};
    must(store_job_move(s, &m, now, NULL, &e));
    if (id % 100 != 0) { /* one in a hundred is still there */
        m.to = STORE_FAILED;
        must(store_job_move(s, &m, now, NULL, &e));
    }
    struct store_history h = {.job = id,
                              .at = now.wall_ms,
                              .kind = "NZB",
                              .status = id % 9 ? "SUCCESS/ALL" : "FAILURE/PAR",
                              .name = name,
                              .category = id % 4 ? "tv" : "movies",
                              .dest_dir = "/srv/downloads/dst/tv/Some.Show",
                              .par_status = "SUCCESS",
                              .unpack_status = "SUCCESS",
                              .size_bytes = 1 << 30,
                              .params = params,
                              .param_count = 2,
                              .servers = servers,
                              .server_count = 2};
    must(store_history_put(s, &h, &e));
}

static void fill(void)
{
    int64_t per_job = events / jobs - 3;
    for (uint32_t id = 1; id <= jobs; id++) {
        if (id % 200 == 1) {
            must(store_batch_begin(s, &e));
        }
        fill_job(id);
        for (int64_t i = 0; i < per_job; i++) {
            struct store_event ev = {.kind = i % 10 ? STORE_EV_FILE_DONE : STORE_EV_ERROR,
                                     .job = id,
                                     .code = "430",
                                     .server = (int32_t)(i % 3),
                                     .text = "some.file.part042.rar"};
            must(store_event_add(s, &ev, now, NULL, &e));
        }
        now.wall_ms += 60000;
        now.mono_ms += 60000;
        if (id % 200 == 0 || id == jobs) {
            must(store_batch_end(s, &e));
        }
    }
}

/* ---- questions ---- */

static void drop(struct store_page *p)
{
    store_page_free(p);
}

static void history_first(void)
{
    struct store_page p;
    struct store_history_filter f = {0};
    must(store_history_list(s, &f, NULL, &p, &e));
    drop(&p);
}

static void history_any(void)
{
    struct store_page p;
    struct store_history_filter f = {0};
    struct store_range r = {{INT64_C(1800000000000) + (int64_t)any(jobs) * 60000, 1}, 100};
    must(store_history_list(s, &f, &r, &p, &e));
    drop(&p);
}

static void history_rare(void)
{
    struct store_page p;
    struct store_history_filter f = {.name = "no such name"};
    must(store_history_list(s, &f, NULL, &p, &e));
    drop(&p);
}

static void history_all(void)
{
    struct store_history_filter f = {0};
    struct store_range r = {.limit = STORE_PAGE_MAX};
    bool more = true;
    while (more) {
        struct store_page p;
        must(store_history_list(s, &f, &r, &p, &e));
        more = p.more;
        r.after = p.next;
        drop(&p);
    }
}

static void timeline(void)
{
    struct store_page p;
    struct store_event_filter f = {.job = 1 + (uint32_t)any(jobs)};
    must(store_event_list(s, &f, NULL, &p, &e));
    drop(&p);
}

static void events_any(void)
{
    struct store_page p;
    struct store_event_filter f = {.newest_first = true};
    struct store_range r = {{1 + (int64_t)any((uint64_t)events), 0}, 100};
    must(store_event_list(s, &f, &r, &p, &e));
    drop(&p);
}

static void events_rare(void)
{
    struct store_page p;
    struct store_event_filter f = {.kinds = STORE_KIND_BIT(STORE_EV_STUCK)};
    must(store_event_list(s, &f, NULL, &p, &e));
    drop(&p);
}

static void jobs_any(void)
{
    struct store_page p;
    struct store_job_filter f = {0};
    struct store_range r = {{(int64_t)any(jobs), 0}, 100};
    must(store_job_list(s, &f, &r, &p, &e));
    drop(&p);
}

static void jobs_open(void)
{
    struct store_page p;
    struct store_job_filter f = {.states = SM_BIT(STORE_QUEUED)};
    must(store_job_list(s, &f, NULL, &p, &e));
    drop(&p);
}

static void counts(void)
{
    int64_t n[STORE_STATES];
    must(store_job_counts(s, n, &e));
}

static void stuck(void)
{
    struct store_page p;
    must(store_job_stuck(s, true, now, NULL, &p, &e));
    drop(&p);
}

static void explain(void)
{
    struct store_explain x;
    must(store_explain(s, 1 + (uint32_t)any(jobs), true, NULL, now, &x, &e));
    store_explain_free(&x);
}

static void purge_nothing(void)
{
    struct store_keep keep = {10000, 10000, 10000};
    must(store_purge(s, &keep, 500, now, NULL, &e));
}

static uint32_t next_job;

static void commit_one(void)
{
    struct store_event ev = {.kind = STORE_EV_HEALTH, .job = 1, .value = 999};
    must(store_event_add(s, &ev, now, NULL, &e));
}

static void commit_64(void)
{
    must(store_batch_begin(s, &e));
    for (int i = 0; i < 64; i++) {
        struct store_job_made made;
        struct store_job_new n = {.id = ++next_job, .name = "n"};
        must(store_job_add(s, &n, now, &made, &e));
    }
    must(store_batch_end(s, &e));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, void (*question)(void), int rounds)
{
    static double wall[2001], cpu[2001];
    question(); /* warm */
    for (int i = 0; i < rounds; i++) {
        double w = seconds(CLOCK_MONOTONIC), c = seconds(CLOCK_PROCESS_CPUTIME_ID);
        question();
        wall[i] = (seconds(CLOCK_MONOTONIC) - w) * 1e6;
        cpu[i] = (seconds(CLOCK_PROCESS_CPUTIME_ID) - c) * 1e6;
    }
    qsort(wall, (size_t)rounds, sizeof(double), by_value);
    qsort(cpu, (size_t)rounds, sizeof(double), by_value);
    printf("{\"bench\":\"store\",\"case\":\"%s\",\"rounds\":%d,\"wall_us_median\":%.1f,"
           "\"wall_us_worst\":%.1f,\"cpu_us_median\":%.1f}\n",
           name, rounds, wall[rounds / 2], wall[rounds - 1], cpu[rounds / 2]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    jobs = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 20000;
    events = argc > 2 ? strtoll(argv[2], NULL, 10) : 1000000;
    int rounds = argc > 3 ? atoi(argv[3]) : 201;
    rounds = rounds < 1 ? 1 : rounds > 2000 ? 2000 : rounds;
    const char *base = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    char dir[512], path[600], command[600];
    snprintf(dir, sizeof(dir), "%s/bench_store.XXXXXX", base);
    if (jobs < 1 || mkdtemp(dir) == NULL) {
        fprintf(stderr, "bench_store: no directory\n");
        return 1;
    }
    struct store_options o = {dir, &fsx_kernel, &queue_job_type, now};
    must(store_open(&s, &o, NULL, &e));
    double t = seconds(CLOCK_MONOTONIC);
    fill();
    double filled = seconds(CLOCK_MONOTONIC) - t;
    must(store_close(s, now, &e));
    snprintf(path, sizeof(path), "%s/weir.db", dir);
    struct stat st = {0};
    stat(path, &st);
    t = seconds(CLOCK_MONOTONIC);
    must(store_open(&s, &o, NULL, &e));
    printf("{\"bench\":\"store\",\"case\":\"setup\",\"history\":%" PRIu32 ",\"events\":%" PRId64
           ",\"file_bytes\":%lld,\"fill_s\":%.1f,\"open_with_check_s\":%.2f}\n",
           jobs, events, (long long)st.st_size, filled, seconds(CLOCK_MONOTONIC) - t);
    next_job = jobs;
    measure("history first page of 100", history_first, rounds);
    measure("history page of 100 anywhere", history_any, rounds);
    measure("history search without a hit", history_rare, rounds);
    measure("history all in pages of 1000", history_all, rounds / 10 + 1);
    measure("timeline of a job", timeline, rounds);
    measure("events page of 100 anywhere", events_any, rounds);
    measure("events of a kind that is not there", events_rare, rounds);
    measure("jobs page of 100 anywhere", jobs_any, rounds);
    measure("jobs queued, first 100", jobs_open, rounds);
    measure("jobs by state, counted", counts, rounds);
    measure("stuck, 100 jobs", stuck, rounds);
    measure("explain", explain, rounds);
    measure("purge with nothing old", purge_nothing, rounds / 10 + 1);
    measure("commit of one change", commit_one, rounds);
    measure("commit of 64 new jobs", commit_64, rounds);
    bool done = false;
    t = seconds(CLOCK_MONOTONIC);
    while (!done) {
        must(store_backup_step(s, 1024, now, &done, &e));
    }
    printf("{\"bench\":\"store\",\"case\":\"previous generation\",\"seconds\":%.2f}\n",
           seconds(CLOCK_MONOTONIC) - t);
    must(store_close(s, now, &e));
    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    return system(command) == 0 ? 0 : 1;
}
