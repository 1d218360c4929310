/* check.c - hashes of blocks where they are expected, many at once.
 *
 * Blocks of a set are hashed over the same length (short ones padded with zeros), so any of them, of any files, can
 * share the lanes of one MD5 kernel. A thread takes as many as the kernel has lanes, reads a piece of each, hashes
 * the pieces, and so on to the end. Pieces are small enough to stay in the second-level cache. Reading is by pread:
 * against a mapping it costs one copy, but an I/O error or a file that shrinks is a result and not a signal. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "par2/internal.h"

enum {
    PIECE = 16 << 10,     /* bytes of one lane at a time */
    STRIDE = PIECE + 192, /* not a power of two: lanes would share the sets of the cache */
    AHEAD = 1 << 20,      /* bytes of one lane that the kernel is told about */
    OPEN_MAX = 64,        /* files held open by one thread; more than lanes */
};

static const uint8_t zeros[PIECE];

struct lane {
    int fd; /* -1: nothing to read */
    uint64_t offset, len;
    uint64_t size; /* bytes that are hashed: `len`, then zeros */
    int copy_to;
    uint64_t copy_at;
    bool failed;
};

struct hasher {
    struct work *work;
    const struct fsx *fs;
    const struct md5_kernel *kernel;
    unsigned thread;
    uint8_t *buffer;
    struct {
        uint32_t key;
        int fd;
        uint64_t group; /* that used it last */
    } open[OPEN_MAX];
    unsigned open_count, open_next;
    uint64_t group;
};

/* For up to `lanes` blocks of up to `size` bytes. */
static bool hasher_init(struct hasher *h, struct work *w, const struct fsx *fs, unsigned thread,
                        size_t lanes, uint64_t size)
{
    *h = (struct hasher){.work = w, .fs = fs, .kernel = md5_best(), .thread = thread};
    h->buffer = mem_aligned(64, lanes * (size <= PIECE ? (size_t)size : STRIDE));
    if (h->buffer == NULL) {
        par2_work_fail(w, -ENOMEM);
    }
    return h->buffer != NULL;
}

static void hasher_close(struct hasher *h)
{
    for (unsigned i = 0; i < h->open_count; i++) {
        if (h->open[i].fd >= 0) {
            fsx_close(h->fs, h->open[i].fd, NULL);
        }
    }
    mem_free(h->buffer);
}

/* The descriptor of file `key`; opened by `open_it` if need be. -1: it can not be had. */
static int hasher_fd(struct hasher *h, uint32_t key, int (*open_it)(const void *arg, uint32_t key),
                     const void *arg)
{
    for (unsigned i = 0; i < h->open_count; i++) {
        if (h->open[i].key == key) {
            h->open[i].group = h->group;
            return h->open[i].fd;
        }
    }
    unsigned at = h->open_next++ % OPEN_MAX;
    while (at < h->open_count && h->open[at].group == h->group) { /* lanes are fewer than places */
        at = h->open_next++ % OPEN_MAX;
    }
    if (at < h->open_count && h->open[at].fd >= 0) {
        fsx_close(h->fs, h->open[at].fd, NULL);
    }
    h->open_count = at < h->open_count ? h->open_count : at + 1;
    h->open[at].key = key;
    h->open[at].group = h->group;
    h->open[at].fd = open_it(arg, key);
    return h->open[at].fd;
}

/* Exactly n bytes; false: not to be had. */
static bool read_exactly(const struct fsx *fs, int fd, uint8_t *p, size_t n, uint64_t at)
{
    while (n > 0) {
        ssize_t got = fs->ops->pread(fs->arg, fd, p, n, (off_t)at);
        if (got == -EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        p += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return true;
}

static void read_ahead(const struct hasher *h, const struct lane *l, uint64_t pos)
{
    if (h->fs->ops == fsx_kernel.ops && l->fd >= 0 && pos % AHEAD == 0 && pos < l->len) {
        uint64_t n = l->len - pos < AHEAD ? l->len - pos : AHEAD;
        posix_fadvise(l->fd, (off_t)(l->offset + pos), (off_t)n, POSIX_FADV_WILLNEED);
    }
}

/* Lane l's `want` bytes at `pos`, zeros behind its end. */
static const uint8_t *lane_bytes(struct hasher *h, struct lane *l, uint8_t *to, uint64_t pos,
                                 size_t want)
{
    if (pos >= l->len || l->failed) {
        return zeros;
    }
    size_t n = l->len - pos < want ? (size_t)(l->len - pos) : want;
    if (l->fd < 0 || !read_exactly(h->fs, l->fd, to, n, l->offset + pos)) {
        l->failed = true;
        return zeros;
    }
    memset(to + n, 0, want - n);
    if (l->copy_to >= 0) {
        int rv = fsx_pwrite_all(h->fs, l->copy_to, to, n, l->copy_at + pos, NULL);
        if (rv < 0) {
            par2_work_fail(h->work, rv);
        }
    }
    return to;
}

/* Small blocks that adjoin in one file are read at once: lanes[0..n) of `size` bytes each, one behind the other in
 * the buffer. How many were. */
static unsigned read_run(struct hasher *h, struct lane *lanes, unsigned n, uint8_t *to, size_t size)
{
    unsigned run = 1;
    while (run < n && lanes[run - 1].len == size && lanes[run].fd == lanes[0].fd &&
           lanes[run].size == size && lanes[run].copy_to < 0 &&
           lanes[run].offset == lanes[0].offset + run * size) {
        run++;
    }
    if (run == 1 || lanes[0].fd < 0 || lanes[0].copy_to >= 0 || lanes[0].size != size) {
        return 0;
    }
    size_t bytes = (run - 1) * size + (size_t)lanes[run - 1].len;
    if (!read_exactly(h->fs, lanes[0].fd, to, bytes, lanes[0].offset)) {
        return 0;
    }
    memset(to + bytes, 0, run * size - bytes);
    return run;
}

/* p[l]: the `want` bytes at `pos` of each lane. */
static void read_lanes(struct hasher *h, struct lane *lanes, unsigned n, uint64_t pos, size_t want,
                       const uint8_t **p)
{
    size_t step = lanes[0].size <= PIECE ? (size_t)lanes[0].size : STRIDE;
    for (unsigned l = 0; l < n;) {
        uint8_t *to = h->buffer + l * step;
        unsigned run =
            pos == 0 && lanes[0].size <= PIECE ? read_run(h, lanes + l, n - l, to, step) : 0;
        for (unsigned i = 0; i < run; i++) {
            p[l + i] = to + i * step;
        }
        if (run == 0) {
            read_ahead(h, &lanes[l], pos);
            p[l] = lane_bytes(h, &lanes[l], to, pos, want);
        }
        l += run > 0 ? run : 1;
    }
}

/* The MD5 of each lane's bytes, padded with zeros to its size; longer ones first. Lanes go in step; those that end drop
 * out at the back. False: stopped. */
static bool hash_lanes(struct hasher *h, struct lane *lanes, unsigned n, uint8_t (*out)[MD5_SIZE])
{
    const uint8_t *p[MD5_LANES_MAX] = {NULL};
    struct md5_lanes m;
    md5_lanes_init(&m);
    for (uint64_t pos = 0; n > 0;) {
        uint64_t left = lanes[n - 1].size - pos;
        size_t want = left < PIECE ? (size_t)left : PIECE;
        read_lanes(h, lanes, n, pos, want, p);
        size_t blocks = want / MD5_BLOCK;
        h->kernel->update(&m, p, n, blocks);
        unsigned ended = n;
        while (ended > 0 && lanes[ended - 1].size == pos + want) {
            ended--;
        }
        if (left <= PIECE && ended == 0) { /* the usual case: all at once */
            for (unsigned l = 0; l < n; l++) {
                p[l] += blocks * MD5_BLOCK;
            }
            md5_lanes_final(&m, h->kernel, p, n, pos + want, out);
            ended = 0;
        }
        for (unsigned l = ended; l < n && ended > 0; l++) {
            md5_lane_final(&m, l, p[l] + blocks * MD5_BLOCK, pos + want, out[l]);
        }
        if (!par2_work_step(h->work, h->thread, n * (uint64_t)want)) {
            return false;
        }
        /* Longer lanes go on behind the last whole block: what is left of it is read again. */
        pos += ended < n && ended > 0 ? blocks * MD5_BLOCK : want;
        n = ended;
    }
    return true;
}

/* ---- blocks ---- */

struct check_job {
    struct par2_set *set;
    struct work *work;
    struct check **checks;
    size_t count;
    size_t group; /* blocks that one thread takes at a time */
    atomic_size_t next;
};

static int open_source(const void *arg, uint32_t source)
{
    const struct par2_set *s = arg;
    return par2_source_open(s, s->sources[source].path, NULL);
}

/* A file of one block is hashed as what it is: the zeros behind a byte in a block of gigabytes would cost more than all
 * data, and a set may claim any number of those. */
static bool single(const struct par2_set *s, uint32_t block)
{
    const struct file *f = &s->files[s->blocks[block].file];
    return f->blocks == 1;
}

static uint64_t hashed_size(const struct par2_set *s, uint32_t block)
{
    return single(s, block) ? block_length(s, block) : s->packets->block_size;
}

static bool check_group(struct check_job *j, struct hasher *h, struct check **c, unsigned n)
{
    struct par2_set *s = j->set;
    struct lane lanes[MD5_LANES_MAX];
    uint8_t md5[MD5_LANES_MAX][MD5_SIZE];
    h->group++;
    for (unsigned l = 0; l < n; l++) {
        lanes[l] = (struct lane){.fd = hasher_fd(h, c[l]->source, open_source, s),
                                 .offset = c[l]->offset,
                                 .len = block_length(s, c[l]->block),
                                 .size = hashed_size(s, c[l]->block),
                                 .copy_to = c[l]->copy_to,
                                 .copy_at = block_position(s, c[l]->block)};
    }
    if (!hash_lanes(h, lanes, n, md5)) {
        return false;
    }
    for (unsigned l = 0; l < n; l++) {
        const struct block *b =
            &s->blocks[c[l]->block]; /* without hashes: proven with its whole file */
        const uint8_t *md5_right = single(s, c[l]->block) ? s->files[b->file].desc->md5 : b->sums;
        c[l]->ok =
            !lanes[l].failed && (md5_right == NULL || memcmp(md5[l], md5_right, MD5_SIZE) == 0);
    }
    return true;
}

static void check_thread(void *arg, unsigned thread)
{
    struct check_job *j = arg;
    struct hasher h;
    if (!hasher_init(&h, j->work, j->set->catalog->fs, thread, j->group,
                     j->set->packets->block_size)) {
        return;
    }
    for (;;) {
        size_t at = atomic_fetch_add(&j->next, j->group);
        if (at >= j->count) {
            break;
        }
        size_t n = j->count - at < j->group ? j->count - at : j->group;
        if (!check_group(j, &h, j->checks + at, (unsigned)n)) {
            break;
        }
    }
    hasher_close(&h);
}

/* As many lanes as the kernel has, but all threads get something. */
static size_t group_size(const struct work *w, size_t count)
{
    size_t share = (count + w->threads - 1) / w->threads, lanes = md5_best()->lanes;
    return share < lanes ? share : lanes;
}

/* Those of files of one block come last, the longest first: the lanes of a group should end together. */
struct order {
    struct check *check;
    uint64_t size;
};

static int by_size(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->size != y->size) {
        return x->size > y->size ? -1 : 1;
    }
    return (x->check > y->check) - (x->check < y->check);
}

static int sort_checks(const struct par2_set *s, struct check *checks, size_t count,
                       struct check **sorted)
{
    struct order *order = mem_alloc(count * sizeof(*order));
    if (order == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = (struct order){&checks[i], hashed_size(s, checks[i].block)};
    }
    qsort(order, count, sizeof(*order), by_size);
    for (size_t i = 0; i < count; i++) {
        sorted[i] = order[i].check;
    }
    mem_free(order);
    return 0;
}

int par2_check_run(struct par2_set *s, struct work *w, struct check *checks, size_t count)
{
    if (count == 0) {
        return 0;
    }
    struct check **sorted = mem_alloc(count * sizeof(*sorted));
    int rv = sorted != NULL ? sort_checks(s, checks, count, sorted) : -ENOMEM;
    if (rv == 0) {
        struct check_job j = {
            .set = s, .work = w, .checks = sorted, .count = count, .group = group_size(w, count)};
        rv = par2_work_run(w, par2_work_threads(w, (count + j.group - 1) / j.group), check_thread,
                           &j);
    }
    mem_free(sorted);
    return rv;
}

/* ---- recovery packets ---- */

struct recovery_job {
    struct par2_set *set;
    struct work *work;
    struct recovery **list;
    size_t count, group;
    atomic_size_t next;
};

static int open_volume(const void *arg, uint32_t volume)
{
    const struct par2_catalog *c = arg;
    return fsx_open_beneath(c->fs, c->volumes[volume].dirfd, c->volumes[volume].path, O_RDONLY, 0,
                            NULL);
}

static bool recovery_group(struct recovery_job *j, struct hasher *h, struct recovery **r,
                           unsigned n)
{
    struct lane lanes[MD5_LANES_MAX];
    uint8_t md5[MD5_LANES_MAX][MD5_SIZE], expected[MD5_SIZE];
    const uint64_t size =
        j->set->packets->block_size + RECOVERY_HEADER - 32; /* the MD5 begins behind itself */
    h->group++;
    for (unsigned l = 0; l < n; l++) {
        int fd = hasher_fd(h, r[l]->volume, open_volume, j->set->catalog);
        lanes[l] = (struct lane){
            .fd = fd, .offset = r[l]->offset + 32, .len = size, .size = size, .copy_to = -1};
    }
    if (!hash_lanes(h, lanes, n, md5)) {
        return false;
    }
    for (unsigned l = 0; l < n; l++) {
        bool ok = !lanes[l].failed &&
                  read_exactly(h->fs, lanes[l].fd, expected, 16, r[l]->offset + 16) &&
                  memcmp(md5[l], expected, MD5_SIZE) == 0;
        r[l]->proof = ok ? PROVEN : DISPROVEN;
    }
    return true;
}

static void recovery_thread(void *arg, unsigned thread)
{
    struct recovery_job *j = arg;
    struct hasher h;
    uint64_t size = j->set->packets->block_size + RECOVERY_HEADER;
    if (!hasher_init(&h, j->work, j->set->catalog->fs, thread, j->group, size)) {
        return;
    }
    for (;;) {
        size_t at = atomic_fetch_add(&j->next, j->group);
        size_t n = at < j->count ? j->count - at : 0;
        if (n == 0 ||
            !recovery_group(j, &h, j->list + at, (unsigned)(n < j->group ? n : j->group))) {
            break;
        }
    }
    hasher_close(&h);
}

/* One unproven candidate of each exponent that has no proven one. */
static size_t open_questions(struct packets *p, struct recovery **list)
{
    size_t n = 0;
    par2_recovery_sort(p); /* proven ones first in their group, then unproven */
    for (size_t i = 0; i < p->recovery_count; i = par2_recovery_group_end(p, i)) {
        if (p->recovery[i].proof == UNPROVEN) {
            list[n++] = &p->recovery[i];
        }
    }
    return n;
}

/* A packet that was passed over unhashed and is not what it seemed may hide others: go through its file again. */
static int rescan_disproven(struct par2_set *s, struct recovery **list, size_t count, struct err *e)
{
    struct par2_catalog *c = s->catalog;
    uint8_t *again = mem_zalloc(c->volume_count, 1);
    int rv = again != NULL ? 0 : err_sys(e, -ENOMEM, "recovery blocks");
    for (size_t i = 0; i < count && again != NULL; i++) {
        again[list[i]->volume] |= list[i]->proof == DISPROVEN;
    }
    s->packets->recovery_sorted = false; /* the proofs changed */
    for (size_t v = 0; v < c->volume_count && rv == 0 && again != NULL; v++) {
        if (again[v] && !c->volumes[v].rescanned) {
            c->volumes[v].rescanned = true;
            rv = par2_catalog_rescan(c, (uint32_t)v, e);
            rv = rv == -ENOMEM
                     ? rv
                     : 0; /* a volume that is gone meanwhile: its blocks are disproven anyway */
        }
    }
    mem_free(again);
    return rv;
}

int par2_check_recovery(struct par2_set *s, struct work *w, struct err *e)
{
    struct packets *p = s->packets;
    int rv = 0;
    par2_recovery_sort(p);
    while (rv == 0) {
        struct recovery **list = mem_alloc((p->recovery_count + 1) * sizeof(struct recovery *));
        if (list == NULL) {
            return err_sys(e, -ENOMEM, "recovery blocks");
        }
        size_t n = open_questions(p, list);
        if (n > 0) {
            par2_work_phase(w, PAR2_CHECKING_RECOVERY, n * p->block_size);
            struct recovery_job j = {
                .set = s, .work = w, .list = list, .count = n, .group = group_size(w, n)};
            rv = par2_work_run(w, par2_work_threads(w, (n + j.group - 1) / j.group),
                               recovery_thread, &j);
            rv = rv < 0 ? err_sys(e, rv, "recovery blocks") : rescan_disproven(s, list, n, e);
        }
        mem_free(list);
        if (n == 0) {
            break;
        }
    }
    return rv;
}

/* ---- whole files ---- */

int par2_check_whole(const struct par2_set *s, uint32_t source, uint64_t limit, uint8_t md5[16])
{
    const struct fsx *fs = s->catalog->fs;
    uint64_t size = s->sources[source].size < limit ? s->sources[source].size : limit;
    int fd = par2_source_open(s, s->sources[source].path, NULL);
    uint8_t *buffer = mem_alloc(16 * PIECE);
    struct md5 m;
    md5_init(&m);
    bool ok = fd >= 0 && buffer != NULL;
    for (uint64_t at = 0; ok && at < size;) {
        size_t n = size - at < 16 * PIECE ? (size_t)(size - at) : 16 * PIECE;
        ok = read_exactly(fs, fd, buffer, n, at);
        if (ok) {
            md5_update(&m, buffer, n);
        }
        at += n;
    }
    md5_final(&m, md5);
    if (fd >= 0) {
        fsx_close(fs, fd, NULL);
    }
    mem_free(buffer);
    return ok ? 0 : -EIO;
}
