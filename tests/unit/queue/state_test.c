/* The queue on a disk that loses power, flips bits, fills up or is full of leftovers. QUEUE_FLIPS and QUEUE_CUTS make it
 * longer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "base/check.h"
#include "base/mem.h"
#include "lib/fault.h"
#include "lib/fsim.h"
#include "lib/rng.h"
#include "queue/edit.h"
#include "queue/pick.h"
#include "queue/saved.h"
#include "unit/queue/make.h"

/* Under a sanitizer each load takes five times as long; the campaign script runs ten times these numbers. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { FLIPS = 1500, CUT_SEEDS = 2, NOW = 1700000500 };
#else
enum { FLIPS = 10000, CUT_SEEDS = 10, NOW = 1700000500 };
#endif

static const char shape[] = "a.rar:5 a.r00:70 a.par2:1 a.vol0+1.par2:2";

void setUp(void) {}
void tearDown(void) {}

static unsigned long from_env(const char *name, unsigned long usual)
{
    const char *text = getenv(name);
    return text != NULL ? strtoul(text, NULL, 10) : usual;
}

/* ---- a disk with a queue on it ---- */

struct said {
    unsigned lines;
    char first[256];
};

static void hear(void *arg, const char *line)
{
    struct said *s = arg;
    if (s->lines++ == 0) {
        snprintf(s->first, sizeof(s->first), "%s", line);
    }
}

static struct queue_job *add_stored(struct queue *q, const struct fsx *fs, const char *name)
{
    size_t len;
    struct queue_job *j = NULL;
    char *text = make_nzb_text(name, shape, &len), stored[QUEUE_STORED_NAME];
    int rc = queue_nzb_store(fs, FSIM_ROOT, q->next_job_id, name, text, len, stored, NULL);
    mem_free(text);
    if (rc != 0) {
        return NULL;
    }
    const struct queue_param params[] = {
        {(char *)(uintptr_t) "drone", (char *)(uintptr_t) "0123"},
        {(char *)(uintptr_t) "*Unpack:", (char *)(uintptr_t) "yes"}};
    const struct queue_add add = {
        .nzb = make_nzb(name, shape),
        .stored_nzb = stored,
        .name = name,
        .filename = "dir/file.nzb",
        .category = "TV \"x\" \xc3\xa4",
        .dest_dir = "/some/where",
        .dupe_key = "key",
        .dupe_score = -7,
        .dupe_mode = QUEUE_DUPE_ALL,
        .params = params,
        .param_count = 2,
        .priority = -50,
        .now_at = NOW,
        .expires_at = NOW + 1000,
    };
    PRE(queue_add(q, &add, &j, NULL) == 0);
    PRE(queue_job_move(q, j, QUEUE_QUEUED, NOW, NULL) == 0);
    return j;
}

/* Settles one article; true when there was one. */
static bool settle(struct queue *q, struct queue_journal_record *r)
{
    struct queue_pick p;
    if (!queue_pick(q, 0, &p)) {
        return false;
    }
    struct queue_part part = {.offset = (uint64_t)p.index * 700,
                              .size = p.index == 4 ? 300 : 700,
                              .crc32 = p.index * 99 + 1};
    *r = (struct queue_journal_record){.article = queue_pick_ref(&p), .part = part};
    r->failed = p.index % 7 == 3;
    if (r->failed) {
        r->part = (struct queue_part){0};
        (void)queue_article_failed(q, r->article, NULL);
    } else {
        (void)queue_article_done(q, r->article, 0, &part, 1000);
    }
    return true;
}

static int save(struct queue *q, const struct fsx *fs)
{
    struct queue_snapshot s;
    PRE(queue_snapshot(q, &s) == 0);
    int rc = queue_snapshot_write(fs, FSIM_ROOT, &s, NULL);
    if (rc == 0) {
        queue_snapshot_saved(q, &s);
    }
    queue_snapshot_free(&s);
    return rc;
}

static struct queue *load(const struct fsx *fs, struct queue_load_report *report, struct said *said)
{
    struct queue *q = NULL;
    struct err e = {0};
    *said = (struct said){0};
    int rc = queue_load(fs, FSIM_ROOT, NOW, hear, said, &q, report, &e);
    TEST_ASSERT_EQUAL_MESSAGE(0, rc, e.msg);
    queue_check(q);
    return q;
}

/* Two generations and a journal: the older snapshot has one job; the newer one two and 20 settled articles; the journal
 * 12 more. */
static struct fsim *usual_disk(void)
{
    struct fsim *d = fsim_new(1);
    const struct fsx *fs = fsim_fs(d);
    struct queue *q = queue_new();
    struct queue_journal journal;
    struct queue_journal_record r;
    make_servers(q, 2, 1);
    (void)add_stored(q, fs, "one");
    PRE(save(q, fs) == 0);
    (void)add_stored(q, fs, "two");
    for (int i = 0; i < 20; i++) {
        PRE(settle(q, &r));
    }
    PRE(save(q, fs) == 0);
    PRE(queue_journal_open(&journal, fs, FSIM_ROOT, q->generation, NULL) == 0);
    for (int i = 0; i < 12; i++) {
        unsigned char raw[QUEUE_JOURNAL_RECORD];
        PRE(settle(q, &r));
        queue_journal_encode(&r, raw);
        PRE(queue_journal_append(&journal, raw, sizeof(raw), NULL) == 0);
    }
    queue_journal_close(&journal);
    queue_free(q);
    return d;
}

static char *read_file(const struct fsx *fs, const char *name, size_t *len)
{
    char *bytes = NULL;
    PRE(fsx_read_all(fs, FSIM_ROOT, name, 1 << 24, &bytes, len, NULL) == 0);
    return bytes;
}

static void put_file(const struct fsx *fs, const char *name, const char *bytes, size_t len)
{
    PRE(fsx_replace(fs, FSIM_ROOT, name, NULL, bytes, len, NULL) == 0);
}

/* The usual disk, put back as it was after each damage: making it anew takes ten times as long. */
static const char *const state_files[] = {SAVED_NAME, SAVED_PREVIOUS, "queue.2.journal"};
struct spare_disk {
    struct fsim *d;
    char *bytes[3];
    size_t len[3];
};

static void spare_open(struct spare_disk *s)
{
    s->d = usual_disk();
    for (int i = 0; i < 3; i++) {
        s->bytes[i] = read_file(fsim_fs(s->d), state_files[i], &s->len[i]);
    }
}

static void spare_restore(struct spare_disk *s)
{
    for (int i = 0; i < 3; i++) {
        put_file(fsim_fs(s->d), state_files[i], s->bytes[i], s->len[i]);
    }
    PRE(fsx_remove(fsim_fs(s->d), FSIM_ROOT, "queue.json.corrupt-1700000500", NULL) == 0);
}

static void spare_close(struct spare_disk *s)
{
    for (int i = 0; i < 3; i++) {
        mem_free(s->bytes[i]);
    }
    fsim_free(s->d);
}

static uint32_t settled(const struct queue *q)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->active_count; i++) {
        n += q->order[i]->done_articles + q->order[i]->failed_articles;
    }
    return n;
}

/* ---- what is saved ---- */

/* The body of a snapshot without its first line, where the generation stands. */
static char *body_of(struct queue *q, size_t *len)
{
    struct queue_snapshot s;
    PRE(queue_snapshot(q, &s) == 0);
    char *line = memchr(s.bytes, '\n', s.len);
    *len = s.len - (size_t)(line - s.bytes);
    memmove(s.bytes, line, *len);
    return s.bytes;
}

/* Everything about a job and its articles comes back: saving what was loaded gives the same text again. */
static void test_everything_comes_back(void)
{
    struct fsim *d = fsim_new(1);
    const struct fsx *fs = fsim_fs(d);
    struct queue *q = queue_new();
    struct queue_pick p;
    struct queue_journal_record r;
    struct queue_load_report report;
    struct said said;
    size_t len, again;
    make_servers(q, 3, 1);
    struct queue_job *j = add_stored(q, fs, "first"), *parked = add_stored(q, fs, "parked");
    (void)add_stored(q, fs, "last");
    for (int i = 0; i < 40; i++) {
        PRE(settle(q, &r));
    }
    PRE(queue_pick(q, 0, &p));
    queue_article_tried(q, queue_pick_ref(&p), 0, QUEUE_BAD_DATA);
    PRE(queue_pick(q, 1, &p));
    PRE(queue_article_wait(q, queue_pick_ref(&p), 99) == 0);
    PRE(queue_file_identify(q, j->files[1], "true \"name\".rar", NZB_DATA, 0) == 0);
    queue_file_set_size(q, j->files[1], 123456789012);
    queue_hold_set(q, j, QUEUE_HOLD_BACKOFF, NOW, NOW + 60);
    j->par_status = QUEUE_PAR_REPAIR_POSSIBLE;
    j->download_sec = 77;
    const struct queue_edit park = {
        .op = QUEUE_EDIT_GROUP_PARK_DELETE, .ids = &parked->id, .id_count = 1, .now_at = NOW};
    struct queue_edit_result result;
    TEST_ASSERT_EQUAL_UINT32(1, queue_edit(q, &park, &result));
    queue_wake_job(q, NULL); /* a restart forgets waits: so that the texts can be compared */
    queue_set_global_holds(q, QUEUE_HOLD_BIT(QUEUE_HOLD_QUOTA));

    char *before = body_of(q, &len);
    PRE(save(q, fs) == 0);
    struct queue *back = load(fs, &report, &said);
    TEST_ASSERT_EQUAL_UINT(0, said.lines);
    TEST_ASSERT_EQUAL(QUEUE_FROM_SNAPSHOT, report.source);
    TEST_ASSERT_EQUAL_UINT32(q->next_job_id, back->next_job_id);
    TEST_ASSERT_EQUAL_UINT32(q->next_file_id, back->next_file_id);
    TEST_ASSERT_EQUAL_UINT32(q->holds, back->holds);
    PRE(queue_set_servers(back, q->servers, q->server_count, NOW, NULL) == 0);
    queue_check(back);
    char *after = body_of(back, &again);
    TEST_ASSERT_EQUAL_UINT64(len, again);
    TEST_ASSERT_EQUAL_MEMORY(before, after, len);
    TEST_ASSERT_TRUE(back->left_bytes == q->left_bytes && back->article_count == q->article_count);

    /* The parked job has no articles in memory, and gets them back through its NZB. */
    struct queue_job *shed = queue_job(back, parked->id);
    TEST_ASSERT_EQUAL_UINT32(0, shed->file_count);
    TEST_ASSERT_TRUE(shed->left_bytes == parked->left_bytes);
    struct nzb *nzb;
    PRE(queue_nzb_load(fs, FSIM_ROOT, shed->sources[0].stored, NULL, &nzb, NULL) == 0);
    PRE(queue_job_reload(back, shed, &nzb, NULL) == 0);
    TEST_ASSERT_EQUAL_UINT32(parked->file_count, shed->file_count);
    TEST_ASSERT_TRUE(shed->left_bytes == parked->left_bytes);
    queue_check(back);
    mem_free(before);
    mem_free(after);
    queue_free(q);
    queue_free(back);
    fsim_free(d);
}

/* A journal brings back what was settled after the snapshot, also when it is read twice. */
static void test_journal_is_replayed(void)
{
    struct queue_load_report report;
    struct said said;
    struct fsim *d = usual_disk();
    for (int twice = 0; twice < 2; twice++) {
        struct queue *q = load(fsim_fs(d), &report, &said);
        TEST_ASSERT_EQUAL(QUEUE_FROM_SNAPSHOT, report.source);
        TEST_ASSERT_EQUAL_UINT32(32, settled(q));
        TEST_ASSERT_EQUAL_UINT(12, (unsigned)report.replayed);
        uint32_t by_job = 0; /* each job knows how far it got on */
        for (uint32_t i = 0; i < q->active_count; i++) {
            by_job += q->order[i]->replayed;
        }
        TEST_ASSERT_EQUAL_UINT32(12, by_job);
        TEST_ASSERT_EQUAL_UINT(0, said.lines);
        queue_free(q);
    }
    fsim_free(d);
}

/* ---- damage ---- */

/* A snapshot cut at any byte is noticed: the one before is loaded with both journals, which is said, and the bad file
 * stays beside it. */
static void test_snapshot_cut_at_every_byte(void)
{
    struct spare_disk s;
    spare_open(&s);
    for (size_t cut = 0; cut < s.len[0]; cut++) {
        struct queue_load_report report;
        struct said said;
        put_file(fsim_fs(s.d), SAVED_NAME, s.bytes[0], cut);
        struct queue *q = load(fsim_fs(s.d), &report, &said);
        TEST_ASSERT_EQUAL(QUEUE_FROM_PREVIOUS, report.source);
        TEST_ASSERT_EQUAL_UINT32(1, q->active_count);
        TEST_ASSERT_TRUE(said.lines >= 2 && report.set_aside == 1);
        TEST_ASSERT_NOT_NULL(strstr(fsim_names(s.d), "queue.json.corrupt-1700000500"));
        TEST_ASSERT_TRUE(report.replayed >
                         0); /* the newer journal is for the older snapshot, too */
        queue_free(q);
        spare_restore(&s);
    }
    spare_close(&s);
}

/* A journal cut at any byte gives every record in front of the cut and nothing else. */
static void test_journal_cut_at_every_byte(void)
{
    size_t len;
    struct fsim *d = usual_disk();
    char *bytes = read_file(fsim_fs(d), "queue.2.journal", &len);
    TEST_ASSERT_EQUAL_UINT64(13 * QUEUE_JOURNAL_RECORD, len);
    for (size_t cut = 0; cut < len; cut++) {
        struct queue_load_report report;
        struct said said;
        put_file(fsim_fs(d), "queue.2.journal", bytes, cut);
        struct queue *q = load(fsim_fs(d), &report, &said);
        size_t whole = cut < 2 * QUEUE_JOURNAL_RECORD ? 0 : cut / QUEUE_JOURNAL_RECORD - 1;
        TEST_ASSERT_EQUAL_UINT64(whole, (size_t)report.replayed);
        TEST_ASSERT_EQUAL_UINT32(20 + whole, settled(q));
        size_t good = cut < QUEUE_JOURNAL_RECORD ? 0 : (whole + 1) * QUEUE_JOURNAL_RECORD;
        TEST_ASSERT_EQUAL_UINT(cut != good, said.lines);
        queue_free(q);

        /* Opened again for writing, it goes on behind the last good record. */
        struct queue_journal j;
        unsigned char raw[QUEUE_JOURNAL_RECORD];
        struct queue_journal_record r = {.article = {1, 60}, .part = {42000, 700, 5}};
        queue_journal_encode(&r, raw);
        PRE(queue_journal_open(&j, fsim_fs(d), FSIM_ROOT, 2, NULL) == 0);
        PRE(queue_journal_append(&j, raw, sizeof(raw), NULL) == 0);
        queue_journal_close(&j);
        q = load(fsim_fs(d), &report, &said);
        TEST_ASSERT_EQUAL_UINT(0, said.lines);
        TEST_ASSERT_EQUAL_UINT64(whole, (size_t)report.replayed - (queue_file(q, 1)->count > 60));
        queue_free(q);
    }
    mem_free(bytes);
    fsim_free(d);
}

/* One flipped bit anywhere in a snapshot or journal is noticed, said, and costs at most one generation or the journal
 * from there on; never a crash, never an empty queue. */
static void test_flipped_bits(void)
{
    struct rng rng;
    struct spare_disk s;
    unsigned long flips = from_env("QUEUE_FLIPS", FLIPS);
    rng_init(&rng, rng_seed(7));
    spare_open(&s);
    for (unsigned long i = 0; i < flips; i++) {
        struct queue_load_report report;
        struct said said;
        unsigned which = (unsigned)rng_below(&rng, 3);
        char *bytes = s.bytes[which], bit = (char)(1 << rng_below(&rng, 8));
        size_t at = rng_below(&rng, s.len[which]);
        bytes[at] = (char)(bytes[at] ^ bit);
        put_file(fsim_fs(s.d), state_files[which], bytes, s.len[which]);
        bytes[at] = (char)(bytes[at] ^ bit);
        struct queue *q = load(fsim_fs(s.d), &report, &said);
        TEST_ASSERT_TRUE(q->active_count >= 1);
        if (which == 0) {
            TEST_ASSERT_EQUAL(QUEUE_FROM_PREVIOUS, report.source);
            TEST_ASSERT_TRUE(said.lines >= 2 && report.set_aside == 1);
        } else {
            TEST_ASSERT_EQUAL(QUEUE_FROM_SNAPSHOT, report.source);
            TEST_ASSERT_EQUAL_UINT(which == 2, said.lines);
            uint32_t whole = which == 2 ? (uint32_t)(at / QUEUE_JOURNAL_RECORD) : 13;
            TEST_ASSERT_EQUAL_UINT32(20 + (whole > 0 ? whole - 1 : 0), settled(q));
        }
        queue_free(q);
        spare_restore(&s);
    }
    spare_close(&s);
}

/* With both generations bad the jobs are rebuilt from their NZBs: named, numbered and paused, and it is said. */
static void test_both_generations_bad(void)
{
    struct queue_load_report report;
    struct said said;
    struct fsim *d = usual_disk();
    put_file(fsim_fs(d), SAVED_NAME, "{}", 2);
    put_file(fsim_fs(d), SAVED_PREVIOUS, "", 0);
    struct queue *q = load(fsim_fs(d), &report, &said);
    TEST_ASSERT_EQUAL(QUEUE_FROM_NZBS, report.source);
    TEST_ASSERT_EQUAL_UINT32(2, q->active_count);
    TEST_ASSERT_EQUAL_STRING("one", q->order[0]->name);
    TEST_ASSERT_EQUAL_UINT32(1, q->order[0]->id);
    TEST_ASSERT_EQUAL_STRING("two", q->order[1]->name);
    TEST_ASSERT_EQUAL_UINT32(2, q->order[1]->id);
    TEST_ASSERT_EQUAL_UINT32(QUEUE_HOLD_BIT(QUEUE_HOLD_USER), q->order[0]->holds);
    TEST_ASSERT_EQUAL_UINT32(2, report.set_aside);
    TEST_ASSERT_TRUE(said.lines >= 3);
    /* The old journal is about other file numbers: it must not be taken for the new queue's. */
    TEST_ASSERT_EQUAL_UINT32(0, settled(q));
    PRE(save(q, fsim_fs(d)) == 0);
    queue_free(q);
    q = load(fsim_fs(d), &report, &said);
    TEST_ASSERT_EQUAL(QUEUE_FROM_SNAPSHOT, report.source);
    TEST_ASSERT_EQUAL_UINT32(0, settled(q));
    queue_free(q);
    fsim_free(d);
}

/* Every combination of snapshot, previous one and leftover is loaded from the best that is there. */
static void test_leftovers_and_missing_files(void)
{
    for (unsigned c = 0; c < 8; c++) {
        struct queue_load_report report;
        struct said said;
        struct fsim *d = usual_disk();
        const struct fsx *fs = fsim_fs(d);
        bool current = (c & 1) != 0, previous = (c & 2) != 0;
        if (!current) {
            PRE(fsx_remove(fs, FSIM_ROOT, SAVED_NAME, NULL) == 0);
        }
        if (!previous) {
            PRE(fsx_remove(fs, FSIM_ROOT, SAVED_PREVIOUS, NULL) == 0);
        }
        if ((c & 4) != 0) {
            put_file(fs, "queue.json.1.tmp", "half a sna", 10);
        }
        struct queue *q = load(fs, &report, &said);
        TEST_ASSERT_EQUAL(current    ? QUEUE_FROM_SNAPSHOT
                          : previous ? QUEUE_FROM_PREVIOUS
                                     : QUEUE_FROM_NZBS,
                          report.source);
        TEST_ASSERT_EQUAL_UINT32(current || !previous ? 2 : 1, q->active_count);
        TEST_ASSERT_EQUAL(!current, said.lines > 0);
        TEST_ASSERT_NULL(strstr(fsim_names(d), ".tmp"));
        queue_free(q);
        fsim_free(d);
    }
    struct fsim *d = fsim_new(1);
    struct queue_load_report report;
    struct said said;
    struct queue *q = load(fsim_fs(d), &report, &said);
    TEST_ASSERT_EQUAL(QUEUE_FROM_NOTHING, report.source);
    TEST_ASSERT_EQUAL_UINT(0, said.lines);
    queue_free(q);
    fsim_free(d);
}

/* A snapshot of a newer version is kept, not misread and not overwritten. */
static void test_newer_version_is_kept(void)
{
    static const char newer[] =
        "{\"weir\":\"queue\",\"version\":2,\"bytes\":           0,\"sha256\":\"\"}\n";
    struct queue_load_report report;
    struct said said;
    struct fsim *d = usual_disk();
    put_file(fsim_fs(d), SAVED_NAME, newer, sizeof(newer) - 1);
    struct queue *q = load(fsim_fs(d), &report, &said);
    TEST_ASSERT_EQUAL(QUEUE_FROM_PREVIOUS, report.source);
    TEST_ASSERT_NOT_NULL(strstr(said.first, "newer version"));
    queue_free(q);
    fsim_free(d);
}

/* A job whose NZB is gone fails with the reason; the others are loaded. */
static void test_job_without_its_nzb(void)
{
    struct queue_load_report report;
    struct said said;
    struct fsim *d = usual_disk();
    PRE(queue_nzb_forget(fsim_fs(d), FSIM_ROOT, "1.nzb.gz", NULL) == 0);
    struct queue *q = load(fsim_fs(d), &report, &said);
    TEST_ASSERT_EQUAL_UINT32(1, q->active_count);
    TEST_ASSERT_EQUAL_UINT32(1, report.jobs_broken);
    const struct queue_job *j = queue_job(q, 1);
    TEST_ASSERT_EQUAL(QUEUE_HISTORY, j->place);
    TEST_ASSERT_EQUAL(QUEUE_JOB_FAILED, j->life.state);
    TEST_ASSERT_NOT_NULL(strstr(j->reason, "1.nzb.gz"));
    queue_free(q);
    fsim_free(d);
}

/* A disk that cannot be read ends the start with that error: nothing is set aside or overwritten. */
static void test_read_errors_end_the_start(void)
{
    for (unsigned k = 1; k < 200; k++) {
        struct fsim *d = usual_disk();
        struct queue *q = NULL;
        struct queue_load_report report;
        struct err e = {0};
        fsim_fail_at(d, k, 1000, -EIO);
        int rc = queue_load(fsim_fs(d), FSIM_ROOT, NOW, NULL, NULL, &q, &report, &e);
        bool fired = fsim_fired(d);
        fsim_fail_at(d, 0, 0, 0);
        TEST_ASSERT_NULL(strstr(fsim_names(d), "corrupt"));
        if (rc == 0) {
            queue_check(q);
        } else {
            TEST_ASSERT_EQUAL_MESSAGE(-EIO, rc, e.msg);
        }
        queue_free(q);
        fsim_free(d);
        if (!fired) {
            TEST_ASSERT_EQUAL(0, rc);
            return;
        }
    }
    TEST_FAIL_MESSAGE("the load never ended");
}

/* ENOSPC or EIO at any call of a save leaves the snapshot that was there, and the queue stays dirty. */
static void test_failed_saves_change_nothing(void)
{
    static const int codes[] = {-ENOSPC, -EIO, -EROFS, -EDQUOT, FSIM_SHORT};
    for (size_t c = 0; c < 5; c++) {
        for (unsigned k = 1; k < 60; k++) {
            struct queue_load_report report;
            struct said said;
            struct fsim *d = usual_disk();
            struct queue *q = load(fsim_fs(d), &report, &said);
            fsim_fail_at(d, k, codes[c] == FSIM_SHORT ? 1 : 1000, codes[c]);
            int rc = save(q, fsim_fs(d));
            bool fired = fsim_fired(d);
            fsim_fail_at(d, 0, 0, 0);
            TEST_ASSERT_EQUAL(rc != 0, queue_dirty(q));
            queue_free(q);
            q = load(fsim_fs(d), &report, &said);
            TEST_ASSERT_EQUAL_UINT32(2, q->active_count);
            TEST_ASSERT_EQUAL_UINT32(32, settled(q));
            queue_free(q);
            fsim_free(d);
            if (!fired) {
                break;
            }
        }
    }
}

/* ---- power cuts ---- */

struct acked { /* what was acknowledged before the power went */
    uint32_t jobs;
    uint32_t paused; /* of the first job: 1 once its pause was acknowledged */
    struct queue_ref article[64];
    uint32_t articles;
};

/* A short life: add, save, pause, fetch with journal, save, add, fetch. Ends at the first call that fails. */
static void live(struct fsim *d, struct acked *a)
{
    const struct fsx *fs = fsim_fs(d);
    struct queue *q = queue_new();
    struct queue_journal journal = {.fd = -1};
    bool up = true;
    make_servers(q, 1, 1);
    for (int round = 0; round < 3 && up; round++) {
        char name[16];
        snprintf(name, sizeof(name), "job%d", round);
        up = add_stored(q, fs, name) != NULL && save(q, fs) == 0;
        a->jobs += up;
        if (up && round == 1) {
            uint32_t id = q->order[0]->id;
            struct queue_edit_result r;
            const struct queue_edit e = {
                .op = QUEUE_EDIT_GROUP_PAUSE, .ids = &id, .id_count = 1, .now_at = NOW};
            PRE(queue_edit(q, &e, &r) == 1);
            up = save(q, fs) == 0;
            a->paused = up;
        }
        queue_journal_close(&journal);
        up = up && queue_journal_open(&journal, fs, FSIM_ROOT, q->generation, NULL) == 0;
        for (int i = 0; i < 4 && up; i++) {
            struct queue_journal_record r;
            unsigned char raw[QUEUE_JOURNAL_RECORD];
            PRE(settle(q, &r));
            queue_journal_encode(&r, raw);
            up = queue_journal_append(&journal, raw, sizeof(raw), NULL) == 0;
            if (up) {
                a->article[a->articles++] = r.article;
            }
        }
    }
    queue_journal_close(&journal);
    queue_free(q);
}

/* How many acknowledged things a queue has lost. */
static uint32_t lost(const struct queue *q, const struct acked *a)
{
    uint32_t n = 0;
    for (uint32_t id = 1; id <= a->jobs; id++) {
        n += queue_job(q, id) == NULL;
    }
    if (a->paused != 0 && queue_job(q, 1) != NULL) {
        n += (queue_job(q, 1)->holds & QUEUE_HOLD_BIT(QUEUE_HOLD_USER)) == 0;
    }
    for (uint32_t i = 0; i < a->articles; i++) {
        const struct queue_file *f = queue_file(q, a->article[i].file_id);
        n += f == NULL || (f->state[a->article[i].index] != QUEUE_DONE &&
                           f->state[a->article[i].index] != QUEUE_FAILED);
    }
    return n;
}

/* Runs every cut of one seed; the number of acknowledged things that were lost. */
static uint32_t cut_everywhere(uint64_t seed, int ignore)
{
    uint32_t all = 0;
    for (unsigned k = 1;; k++) {
        struct fsim *d = fsim_new(seed + k);
        struct acked a = {0};
        fsim_ignore_syncs(d, ignore);
        fsim_cut_at(d, k);
        live(d, &a);
        bool cut = fsim_fired(d);
        fsim_reboot(d);
        struct queue *q = NULL;
        struct queue_load_report report;
        struct err e = {0};
        int rc = queue_load(fsim_fs(d), FSIM_ROOT, NOW, NULL, NULL, &q, &report, &e);
        if (rc != 0) {
            TEST_ASSERT_TRUE_MESSAGE(ignore != 0, e.msg);
            all++;
        } else {
            queue_check(q);
            all += lost(q, &a);
        }
        queue_free(q);
        fsim_free(d);
        if (!cut) {
            return all;
        }
    }
}

/* Whenever the power goes, nothing that was acknowledged is lost. */
static void test_power_cuts_lose_nothing_acknowledged(void)
{
    unsigned long seeds = from_env("QUEUE_CUTS", CUT_SEEDS);
    uint64_t seed = rng_seed(1000);
    for (unsigned long s = 0; s < seeds; s++) {
        TEST_ASSERT_EQUAL_UINT32(0, cut_everywhere(seed + s * 7919, 0));
    }
}

/* The test above would notice a sync that is not made. */
static void test_power_cuts_would_notice_missing_syncs(void)
{
    uint32_t files = 0, dirs = 0;
    for (uint64_t s = 0; s < 6; s++) {
        files += cut_everywhere(500 + s, FSIM_FILE_SYNCS);
        dirs += cut_everywhere(500 + s, FSIM_DIR_SYNCS);
    }
    TEST_ASSERT_TRUE(files > 0);
    TEST_ASSERT_TRUE(dirs > 0);
}

/* Whatever allocation fails while loading, the start ends with that error and leaves the files alone. */
static void test_missing_memory_while_loading(void)
{
    for (unsigned k = 1;; k++) {
        struct fsim *d = usual_disk();
        struct queue *q = NULL;
        struct queue_load_report report;
        fault_arm(k);
        int rc = queue_load(fsim_fs(d), FSIM_ROOT, NOW, NULL, NULL, &q, &report, NULL);
        bool fired = fault_fired();
        fault_disarm();
        if (rc == 0) {
            queue_check(q);
            TEST_ASSERT_EQUAL_UINT32(2, q->active_count);
        } else {
            TEST_ASSERT_EQUAL(-ENOMEM, rc);
        }
        TEST_ASSERT_NULL(strstr(fsim_names(d), "corrupt"));
        queue_free(q);
        fsim_free(d);
        if (!fired) {
            break;
        }
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_everything_comes_back);
    RUN_TEST(test_journal_is_replayed);
    RUN_TEST(test_snapshot_cut_at_every_byte);
    RUN_TEST(test_journal_cut_at_every_byte);
    RUN_TEST(test_flipped_bits);
    RUN_TEST(test_both_generations_bad);
    RUN_TEST(test_leftovers_and_missing_files);
    RUN_TEST(test_newer_version_is_kept);
    RUN_TEST(test_job_without_its_nzb);
    RUN_TEST(test_read_errors_end_the_start);
    RUN_TEST(test_failed_saves_change_nothing);
    RUN_TEST(test_power_cuts_lose_nothing_acknowledged);
    RUN_TEST(test_power_cuts_would_notice_missing_syncs);
    RUN_TEST(test_missing_memory_while_loading);
    return UNITY_END();
}
