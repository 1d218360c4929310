/* queue_saver - lives with a queue for ever: adds, fetches, edits, saves; the program that powercut.sh cuts off.
 *
 *     queue_saver [--without file-sync|dir-sync] save DIR     prints what it has acknowledged, one line each time
 *     queue_saver [--without ...] check DIR < LAST-LINE       0: nothing of that is lost
 *
 * A line is "jobs N edits E articles A": N jobs were added, E edits made and A articles settled; what each of them was
 * follows from its number, so that the check needs nothing else. --without plants a bug, to show that the cut would
 * find it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fsx.h"
#include "queue/edit.h"
#include "queue/pick.h"
#include "queue/state.h"

enum { JOBS_MAX = 200, SEGMENTS = 40, PER_ROUND = 6 };

static bool lacks_file_sync, lacks_dir_sync;

static bool lacks(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISDIR(st.st_mode) ? lacks_dir_sync : lacks_file_sync);
}

static int partial_fsync(void *arg, int fd)
{
    return lacks(fd) ? 0 : fsx_kernel.ops->fsync(arg, fd);
}

static int partial_fdatasync(void *arg, int fd)
{
    return lacks(fd) ? 0 : fsx_kernel.ops->fdatasync(arg, fd);
}

static size_t make_text(char *out, size_t size, unsigned job)
{
    int n = snprintf(out, size, "<nzb><file subject='\"f%u.bin\" yEnc (1/%d)'><segments>", job,
                     SEGMENTS);
    for (int s = 1; s <= SEGMENTS; s++) {
        n += snprintf(out + n, size - (size_t)n,
                      "<segment bytes='700' number='%d'>%u.%d@x.y</segment>", s, job, s);
    }
    n += snprintf(out + n, size - (size_t)n, "</segments></file></nzb>");
    return (size_t)n;
}

static int add_job(struct queue *q, const struct fsx *fs, int dirfd, unsigned job, struct err *e)
{
    static char text[8192];
    char stored[QUEUE_STORED_NAME], name[32];
    struct nzb *nzb = NULL;
    struct queue_job *j;
    size_t len = make_text(text, sizeof(text), job);
    snprintf(name, sizeof(name), "job%u", job);
    int rc = queue_nzb_store(fs, dirfd, job, name, text, len, stored, e);
    rc = rc == 0 ? nzb_parse(text, len, NULL, &nzb, e) : rc;
    const struct queue_add add = {.nzb = nzb, .stored_nzb = stored, .name = name};
    rc = rc == 0 ? queue_add(q, &add, &j, e) : rc;
    return rc == 0 ? queue_job_move(q, j, QUEUE_QUEUED, 0, e) : rc;
}

static int save_queue(struct queue *q, const struct fsx *fs, int dirfd, struct err *e)
{
    struct queue_snapshot s;
    int rc = queue_snapshot(q, &s);
    if (rc == 0) {
        rc = queue_snapshot_write(fs, dirfd, &s, e);
        if (rc == 0) {
            queue_snapshot_saved(q, &s);
        }
        queue_snapshot_free(&s);
    }
    return rc;
}

/* Edit number n renames job n to "edited<n>". */
static int edit_job(struct queue *q, unsigned n)
{
    uint32_t id = n;
    char name[32];
    struct queue_edit_result r;
    snprintf(name, sizeof(name), "edited%u", n);
    const struct queue_edit e = {
        .op = QUEUE_EDIT_GROUP_SET_NAME, .text = name, .ids = &id, .id_count = 1};
    (void)queue_edit(q, &e, &r);
    return r.code;
}

struct place {
    const struct fsx *fs;
    int dirfd;
};

static int remove_one(void *ctx, const char *name)
{
    const struct place *p = ctx;
    (void)fsx_remove(p->fs, p->dirfd, name, NULL); /* nzb/ stays */
    return 0;
}

/* Every life begins with nothing: what an earlier one left would be taken for its own. */
static void begin(const struct fsx *fs, int dirfd)
{
    struct place p = {fs, dirfd};
    (void)fsx_list(fs, dirfd, remove_one, &p, NULL);
    int nzb = fsx_open(fs, dirfd, "nzb", O_RDONLY | O_DIRECTORY, 0, NULL);
    if (nzb >= 0) {
        p.dirfd = nzb;
        (void)fsx_list(fs, nzb, remove_one, &p, NULL);
        (void)fsx_kernel.ops->fsync(NULL, nzb);
        (void)fsx_close(fs, nzb, NULL);
    }
    (void)fsx_kernel.ops->fsync(NULL, dirfd);
}

static int save(const struct fsx *fs, int dirfd)
{
    struct err e = {0};
    begin(fs, dirfd);
    struct queue *q = queue_new();
    const struct queue_server server = {.id = 1, .active = true};
    int rc = queue_set_servers(q, &server, 1, 0, &e);
    unsigned articles = 0;
    for (unsigned job = 1; job <= JOBS_MAX && rc == 0; job++) {
        rc = add_job(q, fs, dirfd, job, &e);
        rc = rc == 0 ? save_queue(q, fs, dirfd, &e) : rc;
        if (rc == 0) {
            printf("jobs %u edits %u articles %u\n", job, job - 1, articles);
            fflush(stdout);
            usleep(30 * 1000); /* nothing else is synced meanwhile: now a cut shows what was not */
            rc = edit_job(q, job);
        }
        rc = rc == 0 ? save_queue(q, fs, dirfd, &e) : rc;
        struct queue_journal journal = {.fd = -1};
        rc = rc == 0 ? queue_journal_open(&journal, fs, dirfd, q->generation, &e) : rc;
        for (int i = 0; i < PER_ROUND && rc == 0; i++) {
            struct queue_pick p;
            unsigned char raw[QUEUE_JOURNAL_RECORD];
            if (!queue_pick(q, 0, &p)) {
                break;
            }
            struct queue_journal_record r = {
                queue_pick_ref(&p), {p.index * 700u, 700, articles}, false};
            (void)queue_article_done(q, r.article, 0, &r.part, 700);
            queue_journal_encode(&r, raw);
            rc = queue_journal_append(&journal, raw, sizeof(raw), &e);
            if (rc == 0) {
                printf("jobs %u edits %u articles %u\n", job, job, ++articles);
                fflush(stdout);
            }
        }
        queue_journal_close(&journal);
    }
    fprintf(stderr, "%s\n", e.msg); /* the power is gone */
    queue_free(q);
    return 0;
}

/* ---- after the cut ---- */

static void hear(void *arg, const char *line)
{
    (void)arg;
    fprintf(stderr, "load: %s\n", line);
}

static int check_queue(const struct queue *q, unsigned jobs, unsigned edits, unsigned articles)
{
    unsigned lost = 0;
    for (unsigned id = 1; id <= jobs; id++) {
        const struct queue_job *j = queue_job(q, id);
        lost += j == NULL;
        lost += j != NULL && id <= edits && strncmp(j->name, "edited", 6) != 0;
    }
    for (unsigned a = 0; a < articles;
         a++) { /* they were fetched in order, a file after the other */
        const struct queue_file *f = queue_file(q, a / SEGMENTS + 1);
        lost +=
            f == NULL || f->state[a % SEGMENTS] != QUEUE_DONE || f->part[a % SEGMENTS].crc32 != a;
    }
    if (lost > 0) {
        fprintf(stderr, "%u of what was acknowledged (%u jobs, %u edits, %u articles) is lost\n",
                lost, jobs, edits, articles);
    }
    return lost > 0;
}

static int check(const struct fsx *fs, int dirfd)
{
    char line[96] = "";
    unsigned jobs = 0, edits = 0, articles = 0;
    struct queue *q;
    struct queue_load_report report;
    struct err e = {0};
    if (fgets(line, sizeof(line), stdin) != NULL &&
        sscanf(line, "jobs %u edits %u articles %u", &jobs, &edits, &articles) != 3) {
        jobs = edits = articles = 0; /* cut before the first whole line */
    }
    if (queue_load(fs, dirfd, 1, hear, NULL, &q, &report, &e) != 0) {
        fprintf(stderr, "load: %s\n", e.msg);
        return 1;
    }
    int rc = check_queue(q, jobs, edits, articles);
    if (report.source == QUEUE_FROM_PREVIOUS || report.source == QUEUE_FROM_NZBS) {
        fprintf(stderr, "a snapshot was damaged, which a cut may not do\n");
        rc = jobs > 0 ? 1 : rc;
    }
    queue_free(q);
    return rc;
}

int main(int argc, char **argv)
{
    struct fsx_ops ops = *fsx_kernel.ops;
    struct fsx fs = {&ops, NULL};
    ops.fsync = partial_fsync;
    ops.fdatasync = partial_fdatasync;
    if (argc > 2 && strcmp(argv[1], "--without") == 0) {
        lacks_file_sync = strcmp(argv[2], "file-sync") == 0;
        lacks_dir_sync = strcmp(argv[2], "dir-sync") == 0;
        argc -= 2;
        argv += 2;
    }
    int dirfd = argc == 3 ? open(argv[2], O_RDONLY | O_DIRECTORY) : -1;
    if (dirfd < 0) {
        fprintf(stderr, "usage: queue_saver [--without file-sync|dir-sync] save|check DIR\n");
        return 2;
    }
    return strcmp(argv[1], "save") == 0 ? save(&fs, dirfd) : check(&fs, dirfd);
}
