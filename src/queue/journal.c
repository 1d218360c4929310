/* journal.c - articles settled since a snapshot: fixed records, each with its own checksum.
 *
 *     header  "WEIRJNL1"  generation u64  zeros           crc32 u32     32 bytes
 *     record  file u32  index u32  size u32  crc u32  offset u64  kind u32  crc32 u32
 *
 * Numbers are little-endian; crc32 covers the 28 bytes in front of it. Reading stops at the first record that is not
 * whole: what follows was not acknowledged. Records are facts about single articles and do not depend on each other. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/crc32.h"
#include "base/mem.h"
#include "queue/saved.h"

enum { COVERED = QUEUE_JOURNAL_RECORD - 4, KIND_DONE = 1, KIND_FAILED = 2 };
static const char magic[8] = {'W', 'E', 'I', 'R', 'J', 'N', 'L', '1'};

struct record { /* as written */
    uint32_t file, index, size, crc;
    uint64_t offset;
    uint32_t kind, sum;
};
_Static_assert(sizeof(struct record) == QUEUE_JOURNAL_RECORD, "as written");

static uint32_t sum_of(const void *record)
{
    return crc32_update(0, record, COVERED);
}

void queue_journal_encode(const struct queue_journal_record *r, unsigned char *out)
{
    struct record raw = {
        .file = r->article.file_id,
        .index = r->article.index,
        .size = r->part.size,
        .crc = r->part.crc32,
        .offset = r->part.offset,
        .kind = r->failed ? KIND_FAILED : KIND_DONE,
    };
    raw.sum = sum_of(&raw);
    memcpy(out, &raw, sizeof(raw));
}

static void make_header(uint64_t generation, unsigned char *out)
{
    memset(out, 0, QUEUE_JOURNAL_RECORD);
    memcpy(out, magic, sizeof(magic));
    memcpy(out + 8, &generation, sizeof(generation));
    uint32_t sum = sum_of(out);
    memcpy(out + COVERED, &sum, sizeof(sum));
}

void saved_journal_name(uint64_t generation, char *out)
{
    snprintf(out, SAVED_JOURNAL_NAME, "queue.%" PRIu64 ".journal", generation);
}

bool saved_is_journal(const char *name, uint64_t *generation)
{
    char *end, again[SAVED_JOURNAL_NAME];
    if (strncmp(name, "queue.", 6) != 0 || name[6] < '0' || name[6] > '9') {
        return false;
    }
    *generation = strtoull(name + 6, &end, 10);
    saved_journal_name(*generation, again);
    return strcmp(name, again) == 0;
}

/* ---- writing ---- */

/* How much of the file is good: whole records behind a right header. 0: not even that. */
static uint64_t good_bytes(const unsigned char *bytes, size_t len, uint64_t generation)
{
    unsigned char header[QUEUE_JOURNAL_RECORD];
    make_header(generation, header);
    if (len < sizeof(header) || memcmp(bytes, header, sizeof(header)) != 0) {
        return 0;
    }
    uint64_t at = sizeof(header);
    while (len - at >= QUEUE_JOURNAL_RECORD) {
        uint32_t sum;
        memcpy(&sum, bytes + at + COVERED, sizeof(sum));
        if (sum != sum_of(bytes + at)) {
            break;
        }
        at += QUEUE_JOURNAL_RECORD;
    }
    return at;
}

int queue_journal_open(struct queue_journal *j, const struct fsx *fs, int dirfd,
                       uint64_t generation, struct err *e)
{
    char name[SAVED_JOURNAL_NAME], *bytes = NULL;
    size_t len = 0;
    saved_journal_name(generation, name);
    *j = (struct queue_journal){.fs = fs, .dirfd = dirfd, .fd = -1, .generation = generation};
    int rc = fsx_read_all(fs, dirfd, name, (size_t)1 << 31, &bytes, &len, NULL);
    if (rc != 0 && rc != -ENOENT) {
        return err_sys(e, rc, "%s", name);
    }
    j->end = rc == 0 ? good_bytes((unsigned char *)bytes, len, generation) : 0;
    mem_free(bytes);
    j->fd = fsx_open(fs, dirfd, name, O_RDWR | O_CREAT, 0600, e);
    if (j->fd < 0) {
        return j->fd;
    }
    if (len > j->end) { /* a torn tail would stand in front of what is appended */
        rc = fs->ops->ftruncate(fs->arg, j->fd, (off_t)j->end);
        if (rc < 0) {
            queue_journal_close(j);
            return err_sys(e, rc, "%s", name);
        }
    }
    if (j->end == 0) {
        unsigned char header[QUEUE_JOURNAL_RECORD];
        make_header(generation, header);
        rc = queue_journal_append(j, header, sizeof(header), e);
        rc = rc == 0 ? fsx_sync_dir(fs, dirfd, e) : rc;
        if (rc != 0) {
            queue_journal_close(j);
            return rc;
        }
    }
    return 0;
}

int queue_journal_append(struct queue_journal *j, const unsigned char *records, size_t len,
                         struct err *e)
{
    PRE(len % QUEUE_JOURNAL_RECORD == 0);
    int rc = fsx_pwrite_all(j->fs, j->fd, records, len, j->end, e);
    if (rc == 0) {
        rc = fsx_fdatasync(j->fs, j->fd, e);
    }
    if (rc == 0) {
        j->end += len;
    }
    return rc;
}

void queue_journal_close(struct queue_journal *j)
{
    if (j->fd >= 0) {
        (void)fsx_close(j->fs, j->fd, NULL); /* everything in it was synced */
        j->fd = -1;
    }
}

/* ---- reading ---- */

/* What the queue does not know any more, or knows already, is passed over. */
static bool apply(struct queue *q, const struct record *r)
{
    struct queue_file *f = queue_file(q, r->file);
    if (f == NULL || r->index >= f->count || f->state[r->index] == QUEUE_DONE ||
        f->state[r->index] == QUEUE_FAILED || (r->kind != KIND_DONE && r->kind != KIND_FAILED)) {
        return false;
    }
    f->part[r->index] = (struct queue_part){r->offset, r->size, r->crc};
    queue_article_change(q, f, r->index, r->kind == KIND_DONE ? QUEUE_DONE : QUEUE_FAILED);
    f->job->replayed++;
    return true;
}

int saved_replay(const struct fsx *fs, int dirfd, struct queue *q, uint64_t generation,
                 uint64_t *replayed, uint64_t *cut, struct err *e)
{
    char name[SAVED_JOURNAL_NAME], *bytes;
    size_t len;
    saved_journal_name(generation, name);
    int rc = fsx_read_all(fs, dirfd, name, (size_t)1 << 31, &bytes, &len, e);
    if (rc != 0) {
        return rc;
    }
    uint64_t good = good_bytes((unsigned char *)bytes, len, generation);
    for (uint64_t at = QUEUE_JOURNAL_RECORD; at < good; at += QUEUE_JOURNAL_RECORD) {
        struct record r;
        memcpy(&r, bytes + at, sizeof(r));
        *replayed += apply(q, &r);
    }
    *cut += len - good;
    mem_free(bytes);
    return 0;
}
