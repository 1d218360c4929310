/* rebuild.c - computes missing blocks out of present ones and recovery blocks, and proves them.
 *
 * Missing block o is the sum of factor[o][i] * input[i] over all inputs. The sums of one round, a range of offsets in
 * the block that fits the memory limit, are kept as the kernel wants them. Every thread takes a part of the range and
 * goes through all inputs for it, a batch at a time: read a tile of each, pack it in strips, multiply and add. Threads
 * share nothing but what they only read, and each byte of a sum is computed by one of them in the same order always.
 * Then the outputs of the round are unpacked, hashed in lanes and written, each thread some of them. The hashes go on
 * from round to round; when the last round is done they must be those of the set. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/mem.h"
#include "par2/gf16.h"
#include "par2/internal.h"

enum {
    TILE = 32 << 10, /* bytes of one input that are read at a time */
    PART = 1 << 10,  /* threads' parts of a round are multiples of this, and of every strip */
    OUT_TILE = 16 << 10,
    HUGE = 2 << 20,
};

struct input {
    bool recovery;
    uint32_t index; /* of the block; or into set->packets->recovery */
};

struct rebuild {
    struct par2_set *set;
    struct work *work;
    const struct gf16_kernel *kernel;
    const struct md5_kernel *md5;
    const struct missing *outs;
    size_t m;
    struct input *inputs; /* present ones, then recovery ones from the last to the first */
    size_t present, count;
    struct solver *solver;
    uint8_t *acc;
    uint64_t from, len; /* this round */
    size_t padded;      /* len, in whole parts */
    unsigned parts;
    atomic_uint next_part;
    atomic_size_t next_group;
    struct md5_lanes *lanes; /* per group of outputs */
    bool *right;             /* per output */
};

/* ---- reading ---- */

struct part {
    struct rebuild *r;
    unsigned thread;
    uint64_t from;  /* offset in the block */
    size_t at, len; /* the same in the round's sums; a multiple of PART but at the end */
    uint8_t *tiles; /* batch * TILE */
    uint8_t *packed;
    struct gf16_coef *coef;
    uint16_t *state;
    struct {
        uint64_t key;
        int fd;
    } open[GF16_BATCH_MAX];
    unsigned opened;
};

static uint64_t input_key(const struct rebuild *r, const struct input *in)
{
    const struct par2_set *s = r->set;
    return in->recovery ? 1ull << 32 | s->packets->recovery[in->index].volume
                        : s->blocks[in->index].source;
}

static int open_input(const struct rebuild *r, uint64_t key)
{
    const struct par2_set *s = r->set;
    if (key >> 32) {
        const struct volume *v = &s->catalog->volumes[(uint32_t)key];
        return fsx_open_beneath(s->catalog->fs, v->dirfd, v->path, O_RDONLY, 0, NULL);
    }
    return par2_source_open(s, s->sources[(uint32_t)key].path, NULL);
}

/* Descriptors for the files of a batch; those that are no more used are closed. */
static int open_batch(struct part *p, const struct input *in, size_t n, int *fds)
{
    unsigned kept = 0;
    struct {
        uint64_t key;
        int fd;
    } now[GF16_BATCH_MAX];
    for (size_t i = 0; i < n; i++) {
        uint64_t key = input_key(p->r, &in[i]);
        fds[i] = -1;
        for (unsigned k = 0; k < kept && fds[i] < 0; k++) {
            fds[i] = now[k].key == key ? now[k].fd : -1;
        }
        if (fds[i] >= 0) {
            continue;
        }
        for (unsigned k = 0; k < p->opened && fds[i] < 0; k++) {
            if (p->open[k].key == key) {
                fds[i] = p->open[k].fd;
                p->open[k].fd = -1;
            }
        }
        fds[i] = fds[i] >= 0 ? fds[i] : open_input(p->r, key);
        now[kept].key = key;
        now[kept++].fd = fds[i];
    }
    int rv = 0;
    for (unsigned k = 0; k < p->opened; k++) {
        if (p->open[k].fd >= 0) {
            fsx_close(p->r->set->catalog->fs, p->open[k].fd, NULL);
        }
    }
    p->opened = kept;
    for (unsigned k = 0; k < kept; k++) {
        p->open[k].key = now[k].key;
        p->open[k].fd = now[k].fd;
        rv = now[k].fd < 0 ? now[k].fd : rv;
    }
    return rv;
}

/* n bytes of an input's block from `from` on, zeros behind its end. */
static int read_input(const struct rebuild *r, const struct input *in, int fd, uint64_t from,
                      uint8_t *to, size_t n)
{
    const struct par2_set *s = r->set;
    const struct fsx *fs = s->catalog->fs;
    uint64_t base, size;
    if (in->recovery) {
        base = s->packets->recovery[in->index].offset + RECOVERY_HEADER;
        size = s->packets->block_size;
    } else {
        base = s->blocks[in->index].offset;
        size = block_length(s, in->index);
    }
    size_t there = from >= size ? 0 : size - from < n ? (size_t)(size - from) : n;
    memset(to + there, 0, n - there);
    for (size_t done = 0; done < there;) {
        ssize_t got =
            fs->ops->pread(fs->arg, fd, to + done, there - done, (off_t)(base + from + done));
        if (got <= 0 && got != -EINTR) {
            return got < 0 ? (int)got : ERR_CORRUPT; /* it was longer when it was verified */
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

/* ---- multiplying ---- */

/* The batch's share in bytes at..at+len of the part's sums. */
static int add_tile(struct part *p, const struct input *in, const int *fds, size_t n, size_t at,
                    size_t len)
{
    const struct rebuild *r = p->r;
    const struct gf16_kernel *k = r->kernel;
    size_t padded = (len + k->strip - 1) / k->strip * k->strip;
    for (size_t i = 0; i < n; i++) {
        int rv = read_input(r, &in[i], fds[i], p->from + at, p->tiles + i * TILE, len);
        if (rv < 0) {
            return rv;
        }
        memset(p->tiles + i * TILE + len, 0, padded - len);
    }
    for (size_t s = 0; s < padded; s += k->strip) {
        size_t units = k->strip / k->unit;
        for (size_t i = 0; i < n; i++) {
            k->pack(p->packed + i * k->in_bytes, n * k->in_bytes, p->tiles + i * TILE + s, units);
        }
        k->muladd(r->acc + (p->at + at + s) * r->m, p->packed, p->coef, r->m, n, units);
    }
    return 0;
}

static int batch_factors(struct part *p, size_t first, size_t n)
{
    const struct rebuild *r = p->r;
    uint16_t logs[GF16_BATCH_MAX];
    if (first >= r->present) {
        par2_solver_recovery(r->solver, p->state, r->count - 1 - first, n, p->coef);
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        logs[i] = r->set->blocks[r->inputs[first + i].index].log;
    }
    return par2_solver_present(r->solver, logs, n, p->coef);
}

static int add_inputs(struct part *p)
{
    struct rebuild *r = p->r;
    int fds[GF16_BATCH_MAX], rv = 0;
    par2_solver_start(r->solver, p->state);
    memset(r->acc + p->at * r->m, 0, (p->len + PART - 1) / PART * PART * r->m);
    for (size_t first = 0, n; first < r->count && rv == 0; first += n) {
        size_t end = first < r->present ? r->present : r->count; /* a batch is of one kind */
        n = end - first < r->kernel->batch ? end - first : r->kernel->batch;
        rv = open_batch(p, r->inputs + first, n, fds);
        rv = rv == 0 ? batch_factors(p, first, n) : rv;
        for (size_t at = 0; at < p->len && rv == 0; at += TILE) {
            size_t len = p->len - at < TILE ? p->len - at : TILE;
            rv = add_tile(p, r->inputs + first, fds, n, at, len);
            if (!par2_work_step(r->work, p->thread, n * len)) {
                return 0;
            }
        }
    }
    return rv;
}

static void part_thread(void *arg, unsigned thread)
{
    struct rebuild *r = arg;
    const struct gf16_kernel *k = r->kernel;
    struct part p = {.r = r, .thread = thread};
    p.tiles = mem_aligned(64, k->batch * (size_t)TILE);
    p.packed = mem_aligned(64, (size_t)k->batch * (k->strip / k->unit) * k->in_bytes);
    p.coef = mem_aligned(64, k->batch * r->m * sizeof(*p.coef));
    p.state = mem_alloc(r->m * sizeof(*p.state));
    if (p.tiles == NULL || p.packed == NULL || p.coef == NULL || p.state == NULL) {
        par2_work_fail(r->work, -ENOMEM);
    }
    size_t share = r->padded / PART / r->parts * PART;
    for (unsigned i;
         !atomic_load(&r->work->stop) && (i = atomic_fetch_add(&r->next_part, 1)) < r->parts;) {
        p.at = i * share;
        p.from = r->from + p.at;
        size_t end = i + 1 == r->parts ? (size_t)r->len : p.at + share;
        p.len = end - p.at;
        int rv = add_inputs(&p);
        if (rv < 0) {
            par2_work_fail(r->work, rv);
        }
    }
    for (unsigned i = 0; i < p.opened; i++) {
        if (p.open[i].fd >= 0) {
            fsx_close(r->set->catalog->fs, p.open[i].fd, NULL);
        }
    }
    mem_free(p.tiles);
    mem_free(p.packed);
    mem_free(p.coef);
    mem_free(p.state);
}

/* ---- outputs ---- */

/* Outputs first..first+n of the round: hash and write. */
static int finish_group(struct rebuild *r, size_t first, unsigned n, uint8_t *buffer)
{
    const struct gf16_kernel *k = r->kernel;
    const struct par2_set *s = r->set;
    struct md5_lanes *lanes = &r->lanes[first / r->md5->lanes];
    const uint8_t *p[MD5_LANES_MAX] = {NULL}, *rest[MD5_LANES_MAX] = {NULL};
    for (uint64_t at = 0; at < r->len; at += OUT_TILE) {
        size_t len = r->len - at < OUT_TILE ? (size_t)(r->len - at) : OUT_TILE;
        for (unsigned l = 0; l < n; l++) {
            uint32_t b = r->outs[first + l].block;
            uint8_t *to = buffer + l * (size_t)(OUT_TILE + 256);
            k->unpack(to, r->acc + at * r->m + (first + l) * k->unit, r->m * k->unit,
                      (len + k->unit - 1) / k->unit);
            p[l] = to;
            rest[l] = to + len / MD5_BLOCK * MD5_BLOCK;
            uint64_t size = block_length(s, b), pos = r->from + at;
            size_t there = pos >= size ? 0 : size - pos < len ? (size_t)(size - pos) : len;
            int rv = there == 0 ? 0
                                : fsx_pwrite_all(s->catalog->fs, r->outs[first + l].fd, to, there,
                                                 block_position(s, b) + pos, NULL);
            if (rv < 0) {
                return rv;
            }
        }
        r->md5->update(lanes, p, n, len / MD5_BLOCK);
    }
    if (r->from + r->len == s->packets->block_size) {
        uint8_t md5[MD5_LANES_MAX][MD5_SIZE];
        md5_lanes_final(lanes, r->md5, rest, n, s->packets->block_size, md5);
        for (unsigned l = 0; l < n; l++) {
            const struct block *b = &s->blocks[r->outs[first + l].block];
            r->right[first + l] = !b->verifiable || memcmp(md5[l], b->sums, MD5_SIZE) == 0;
        }
    }
    return 0;
}

static void finish_thread(void *arg, unsigned thread)
{
    struct rebuild *r = arg;
    uint8_t *buffer = mem_aligned(64, r->md5->lanes * (size_t)(OUT_TILE + 256));
    if (buffer == NULL) {
        par2_work_fail(r->work, -ENOMEM);
        return;
    }
    for (size_t at; (at = atomic_fetch_add(&r->next_group, r->md5->lanes)) < r->m &&
                    par2_work_step(r->work, thread, 0);) {
        size_t n = r->m - at < r->md5->lanes ? r->m - at : r->md5->lanes;
        int rv = finish_group(r, at, (unsigned)n, buffer);
        if (rv < 0) {
            par2_work_fail(r->work, rv);
        }
    }
    mem_free(buffer);
}

/* ---- rounds ---- */

/* Bytes of every block in one round. */
static uint64_t round_size(const struct rebuild *r)
{
    const struct par2_options *o = r->work->options;
    uint64_t memory = o->memory_bytes != 0 ? o->memory_bytes : 256ull << 20;
    uint64_t per_thread = r->kernel->batch * (TILE + r->m * sizeof(struct gf16_coef));
    uint64_t other = (12ull << 20) + r->work->threads * per_thread; /* and the program itself */
    uint64_t sums = memory > other ? memory - other : 0;
    uint64_t size = sums / r->m / PART * PART, block = r->set->packets->block_size;
    size = size < PART ? PART : size;
    return size < block ? size : block;
}

static int run_rounds(struct rebuild *r)
{
    const uint64_t block = r->set->packets->block_size, size = round_size(r);
    size_t bytes = (size_t)((size + PART - 1) / PART * PART) * r->m;
    r->acc = mem_aligned(HUGE, bytes);
    if (r->acc == NULL) {
        return -ENOMEM;
    }
    madvise(r->acc, bytes,
            MADV_HUGEPAGE); /* a wish: page faults of the first touch are most of its cost */
    par2_work_phase(r->work, PAR2_REPAIRING, block * r->count);
    int rv = 0;
    for (r->from = 0; r->from < block && rv == 0; r->from += r->len) {
        r->len = block - r->from < size ? block - r->from : size;
        r->padded = (size_t)((r->len + PART - 1) / PART * PART);
        r->parts = par2_work_threads(r->work, r->padded / PART);
        atomic_store(&r->next_part, 0);
        atomic_store(&r->next_group, 0);
        rv = par2_work_run(r->work, r->parts, part_thread, r);
        if (rv == 0) {
            rv = par2_work_run(
                r->work, par2_work_threads(r->work, (r->m + r->md5->lanes - 1) / r->md5->lanes),
                finish_thread, r);
        }
    }
    mem_free(r->acc);
    return rv;
}

/* Which recovery blocks, and all factors. */
static int prepare(struct rebuild *r)
{
    const struct par2_set *s = r->set;
    const struct packets *p = s->packets;
    uint16_t *logs = mem_alloc(r->m * sizeof(uint16_t));
    uint16_t *exponents = mem_alloc((p->recovery_count + 1) * sizeof(uint16_t));
    uint32_t *places = mem_alloc((p->recovery_count + 1) * sizeof(uint32_t));
    uint32_t *chosen = mem_alloc(r->m * sizeof(uint32_t));
    r->inputs = mem_alloc(((size_t)s->recoverable_blocks + 1) * sizeof(*r->inputs));
    int rv =
        logs == NULL || exponents == NULL || places == NULL || chosen == NULL || r->inputs == NULL
            ? -ENOMEM
            : 0;
    size_t there = 0;
    for (size_t i = 0; i < p->recovery_count && rv == 0; i = par2_recovery_group_end(p, i)) {
        if (p->recovery[i].proof == PROVEN) { /* the first of its group, if any */
            exponents[there] = p->recovery[i].exponent;
            places[there++] = (uint32_t)i;
        }
    }
    for (size_t o = 0; o < r->m && rv == 0; o++) {
        logs[o] = s->blocks[r->outs[o].block].log;
    }
    rv = rv == 0 && there < r->m ? ERR_FULL : rv;
    rv = rv == 0 ? par2_solver_new(&r->solver, logs, r->m, exponents, there, chosen) : rv;
    for (uint32_t b = 0; b < s->recoverable_blocks && rv == 0; b++) {
        if (s->blocks[b].source != NOWHERE) {
            r->inputs[r->present++] = (struct input){false, b};
        }
    }
    r->count = r->present;
    for (size_t k = r->m; k > 0 && rv == 0; k--) {
        r->inputs[r->count++] = (struct input){true, places[chosen[k - 1]]};
    }
    mem_free(logs);
    mem_free(exponents);
    mem_free(places);
    mem_free(chosen);
    return rv;
}

int par2_rebuild_run(struct par2_set *s, struct work *w, const struct missing *outs, size_t m)
{
    struct rebuild r = {
        .set = s, .work = w, .kernel = gf16_best(), .md5 = md5_best(), .outs = outs, .m = m};
    size_t groups = (m + r.md5->lanes - 1) / r.md5->lanes;
    r.lanes = mem_aligned(64, groups * sizeof(*r.lanes));
    r.right = mem_zalloc(m, sizeof(*r.right));
    int rv = r.lanes == NULL || r.right == NULL ? -ENOMEM : prepare(&r);
    for (size_t i = 0; i < groups && rv == 0; i++) {
        md5_lanes_init(&r.lanes[i]);
    }
    rv = rv == 0 ? run_rounds(&r) : rv;
    for (size_t o = 0; o < m && rv == 0; o++) {
        rv = r.right[o] ? 0 : ERR_CORRUPT;
    }
    par2_solver_free(r.solver);
    mem_free(r.inputs);
    mem_free(r.lanes);
    mem_free(r.right);
    return rv;
}
