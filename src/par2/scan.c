/* scan.c - displaced data: blocks that stand in a file, but not where they belong.
 *
 * Only the gaps between blocks that were found are gone through. A window of one block's size moves over a gap byte by
 * byte; its CRC-32 is brought forward by one byte in, one byte out, and looked up among the missing blocks. Four
 * windows, a quarter of a stretch apart, move together: one alone would wait for its own last step. A hit is settled by
 * MD5. From there on the blocks that follow it in its file are expected to follow here too, and a CRC at the full speed
 * of the CPU tells whether they do; their MD5s are left for later, when all threads hash them in lanes.
 *
 * A file's last block is shorter than the window. It is found behind its predecessor, or at the very end of a file, where
 * the CRCs of all tails of interest follow from each other.
 *
 * Gaps are cut into pieces that threads take; each piece keeps its own list of what it found, and the lists are joined
 * in the order of the pieces: the result does not depend on who was first. False hits cost an MD5 of a block each. A
 * piece that meets more of them than chance explains is made of data that somebody composed; it is given up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/mem.h"
#include "par2/internal.h"

enum {
    STRETCH = 64 << 10, /* offsets that are gone through between two looks at the hits */
    CHAINS = 4,
    HITS_MAX = 2048,
    READ = 256 << 10,
    PIECE_MIN = 64 << 20, /* offsets of one piece, at least, if the gap has so many */
    PIECE_BLOCKS = 32,    /* and at least so many blocks */
    FALSE_HITS = 64,
    PADDING_FREE = 16 << 20, /* zeros hashed behind short blocks, beside 4 times the data */
};

/* ---- what the pieces find ---- */

struct find {
    uint32_t block;
    uint64_t offset;
    bool proven; /* by MD5 */
};

struct piece {
    uint32_t source;
    uint64_t from, to; /* offsets of windows */
    uint64_t limit;    /* end of the gap */
    bool tail;         /* the gap ends with the file: look for short blocks there */
    struct find *finds;
    size_t count, room;
};

struct scan {
    struct par2_set *set;
    struct work *work;
    const struct table *table;
    struct piece *pieces;
    size_t count, room;
    atomic_size_t next;
    uint32_t step[256];   /* a byte in */
    uint32_t leave[256];  /* a byte out, one block behind */
    uint32_t block_power; /* x^(8 block size) */
    struct find *shorts;  /* short blocks, by length: offset is the length */
    size_t short_count;
    size_t stretch, bulk; /* sizes of a scanner's buffers: no more than this set needs */
};

/* One thread's own. */
struct scanner {
    struct scan *scan;
    unsigned thread;
    const struct fsx *fs;
    struct piece *piece;
    int fd;
    uint8_t *in, *out, *bulk; /* scan->stretch twice, scan->bulk */
    uint8_t *found;           /* a bit per block: found in this piece or before */
    uint64_t waste;           /* bytes that may still be hashed in vain */
    struct {
        uint64_t offset;
        uint32_t crc;
    } hits[HITS_MAX];
    size_t hit_count;
    uint64_t dropped; /* the first hit there was no room for */
};

static bool read_at(const struct scanner *c, uint8_t *p, size_t n, uint64_t at)
{
    while (n > 0) {
        ssize_t got = c->fs->ops->pread(c->fs->arg, c->fd, p, n, (off_t)at);
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

static bool is_found(const struct scanner *c, uint32_t b)
{
    return c->found[b / 8] >> (b % 8) & 1;
}

static bool keep(struct scanner *c, uint32_t block, uint64_t offset, bool proven)
{
    struct piece *p = c->piece;
    if (p->count == p->room) {
        size_t room = p->room == 0 ? 64 : 2 * p->room;
        struct find *more = mem_realloc(p->finds, room, sizeof(*more));
        if (more == NULL) {
            par2_work_fail(c->scan->work, -ENOMEM);
            return false;
        }
        p->finds = more;
        p->room = room;
    }
    p->finds[p->count++] = (struct find){block, offset, proven};
    c->found[block / 8] |= (uint8_t)(1u << block % 8);
    return true;
}

/* ---- CRCs and MD5s of what is in the file ---- */

/* The CRC of n bytes at `at`, continuing `crc`; false: not to be read. */
static bool crc_of(struct scanner *c, uint64_t at, uint64_t n, uint32_t *crc)
{
    while (n > 0) {
        size_t k = n < c->scan->bulk ? (size_t)n : c->scan->bulk;
        if (!read_at(c, c->bulk, k, at) || !par2_work_step(c->scan->work, c->thread, 0)) {
            return false;
        }
        *crc = crc32_update(*crc, c->bulk, k);
        at += k;
        n -= k;
    }
    return true;
}

static bool md5_matches(struct scanner *c, uint64_t at, uint32_t block)
{
    struct par2_set *s = c->scan->set;
    struct md5 m;
    uint8_t md5[16];
    md5_init(&m);
    for (uint64_t done = 0, size = s->packets->block_size; done < size;) {
        size_t k = size - done < c->scan->bulk ? (size_t)(size - done) : c->scan->bulk;
        if (!read_at(c, c->bulk, k, at + done) || !par2_work_step(c->scan->work, c->thread, 0)) {
            return false;
        }
        md5_update(&m, c->bulk, k);
        done += k;
    }
    md5_final(&m, md5);
    return memcmp(md5, s->blocks[block].sums, 16) == 0;
}

/* Block b was found at `at`: as long as the next ones of its file follow it, keep them. Where they end. */
static uint64_t follow(struct scanner *c, uint32_t b, uint64_t at)
{
    struct par2_set *s = c->scan->set;
    const struct file *f = &s->files[s->blocks[b].file];
    at += s->packets->block_size;
    for (b++; b < f->first + f->blocks && s->blocks[b].source == NOWHERE && !is_found(c, b); b++) {
        uint32_t len = block_length(s, b), crc = 0;
        if (at + len > c->piece->limit || !crc_of(c, at, len, &crc)) {
            break;
        }
        crc = crc32_zeros(crc, s->packets->block_size - len);
        if (crc != par2_get32(s->blocks[b].sums + 16) || !keep(c, b, at, false)) {
            break;
        }
        at += len;
        par2_work_step(c->scan->work, c->thread, len);
    }
    return at;
}

/* ---- moving windows ---- */

/* Is this CRC one of those looked for, and not found yet? */
static uint32_t lookup(const struct scanner *c, uint32_t crc)
{
    const struct table *t = c->scan->table;
    for (uint32_t b = t->heads[crc & t->mask]; b != 0; b = t->next[b - 1]) {
        if (t->crcs[b - 1] == crc && !is_found(c, b - 1)) {
            return b;
        }
    }
    return 0;
}

static void note_hit(struct scanner *c, uint64_t offset, uint32_t crc)
{
    if (lookup(c, crc) == 0) {
        return;
    }
    if (c->hit_count < HITS_MAX) {
        c->hits[c->hit_count].offset = offset;
        c->hits[c->hit_count++].crc = crc;
    } else if (offset < c->dropped) {
        c->dropped = offset;
    }
}

/* The CRC, without start value and mask, of n bytes. */
static uint32_t linear(const uint8_t *p, size_t n)
{
    return crc32_update(0, p, n) ^ crc32_zeros(0, n);
}

/* Tests the windows at `at` .. at+n, n a multiple of CHAINS; `crc` is that of the first, and becomes that of the one
 * behind the last. in[] are the bytes that enter, out[] those that leave. */
static uint32_t roll(struct scanner *c, uint64_t at, size_t n, uint32_t crc)
{
    const struct scan *s = c->scan;
    const uint64_t *filter = s->table->filter;
    const uint32_t *step = s->step, *leave = s->leave, mask = s->table->filter_mask;
    const size_t q = n / CHAINS;
    const uint32_t quarter = crc32_power(q);
    uint32_t w[CHAINS] = {crc};
    for (unsigned k = 1; k < CHAINS; k++) { /* each starts where the one before will end */
        const uint8_t *in = c->in + (k - 1) * q, *out = c->out + (k - 1) * q;
        w[k] = crc32_multiply(w[k - 1], quarter) ^ crc32_multiply(linear(out, q), s->block_power) ^
               linear(in, q);
    }
    for (size_t i = 0; i < q; i++) {
        for (unsigned k = 0; k < CHAINS; k++) {
            uint32_t bit = w[k] & mask;
            if (__builtin_expect(filter[bit / 64] >> (bit % 64) & 1, 0)) {
                note_hit(c, at + k * q + i, w[k]);
            }
            const uint8_t in = c->in[k * q + i], out = c->out[k * q + i];
            w[k] = (w[k] >> 8) ^ step[(uint8_t)w[k] ^ in] ^ leave[out];
        }
    }
    return w[CHAINS - 1];
}

static int by_offset(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b; /* the offset stands first */
    return (*x > *y) - (*x < *y);
}

/* Goes through the hits of a stretch that ends at `end` (later ones are of the padding). Where to go on: `end`, or behind what was found. */
static uint64_t settle(struct scanner *c, uint64_t end)
{
    uint64_t next = 0;
    if (c->hit_count > 1) {
        qsort(c->hits, c->hit_count, sizeof(c->hits[0]), by_offset);
    }
    for (size_t i = 0; i < c->hit_count; i++) {
        uint64_t at = c->hits[i].offset;
        uint32_t b = at >= next && at < end ? lookup(c, c->hits[i].crc) : 0;
        if (b == 0) {
            continue;
        }
        uint64_t size = c->scan->set->packets->block_size;
        for (; b != 0; b = c->scan->table->next[b - 1]) { /* several contents may have one CRC */
            if (c->scan->table->crcs[b - 1] == c->hits[i].crc && !is_found(c, b - 1) &&
                c->waste >= size) {
                if (md5_matches(c, at, b - 1)) {
                    next = keep(c, b - 1, at, true) ? follow(c, b - 1, at) : end;
                    break;
                }
                c->waste -= size;
            }
        }
    }
    if (c->dropped < end) { /* the rest is gone through again */
        return next > c->dropped ? next : c->dropped;
    }
    return next > end ? next : end;
}

/* All windows at from..to. */
static void scan_windows(struct scanner *c, uint64_t from, uint64_t to)
{
    const uint64_t size = c->scan->set->packets->block_size;
    uint32_t crc = 0;
    bool fresh = true;
    while (from < to && c->waste >= size) {
        if (fresh) {
            crc = 0;
            if (!crc_of(c, from, size, &crc)) {
                return;
            }
            crc ^= crc32_zeros(0, size);
        }
        /* The last window has no byte to enter behind it: it is tested, but not moved. */
        size_t n = to - from < c->scan->stretch ? (size_t)(to - from) : c->scan->stretch;
        bool last = from + n + size > c->piece->limit;
        size_t readable = last ? n - 1 : n;
        size_t rounded = (n + CHAINS - 1) / CHAINS * CHAINS;
        memset(c->in + readable, 0, rounded - readable);
        memset(c->out + readable, 0, rounded - readable);
        if (!read_at(c, c->out, readable, from) || !read_at(c, c->in, readable, from + size) ||
            !par2_work_step(c->scan->work, c->thread, n)) {
            return;
        }
        c->hit_count = 0;
        c->dropped = UINT64_MAX;
        crc = roll(c, from, rounded, crc);
        uint64_t next = settle(c, from + n);
        fresh = next != from + rounded;
        from = next;
    }
}

/* Only near where blocks are expected: every block size, this far on both sides. */
static void scan_near(struct scanner *c, uint64_t leaway)
{
    const uint64_t size = c->scan->set->packets->block_size;
    const struct piece *p = c->piece;
    for (uint64_t at = p->from / size * size;; at += size) {
        uint64_t from = at > leaway ? at - leaway : 0, to = at + leaway + 1;
        from = from > p->from ? from : p->from;
        to = to < p->to ? to : p->to;
        if (from < to) {
            scan_windows(c, from, to);
        }
        if (at >= p->to + leaway) {
            break;
        }
    }
}

/* ---- short blocks at the end of the file ---- */

static void scan_tail(struct scanner *c)
{
    const struct scan *s = c->scan;
    const uint64_t size = s->set->packets->block_size, end = c->piece->limit;
    uint64_t begin = end; /* of the tail whose CRC this is */
    uint32_t crc = 0;
    uint64_t room = end - c->piece->from;
    for (size_t i = 0; i < s->short_count && s->shorts[i].offset <= room; i++) {
        uint64_t len = s->shorts[i].offset;
        uint32_t front = 0, b = s->shorts[i].block;
        if (!crc_of(c, end - len, begin - (end - len), &front)) {
            return;
        }
        crc = crc32_join(front, crc, end - begin);
        begin = end - len;
        if (!is_found(c, b) &&
            crc32_zeros(crc, size - len) == par2_get32(s->set->blocks[b].sums + 16)) {
            keep(c, b, begin, false);
        }
    }
}

/* ---- threads ---- */

static void scan_piece(struct scanner *c)
{
    const struct par2_set *s = c->scan->set;
    const struct par2_options *o = c->scan->work->options;
    struct piece *p = c->piece;
    c->waste = 4 * (p->limit - p->from) + FALSE_HITS * s->packets->block_size;
    for (uint32_t b = 0; b < s->block_count; b++) {
        bool there = s->blocks[b].source != NOWHERE;
        c->found[b / 8] = (uint8_t)((c->found[b / 8] & ~(1u << b % 8)) | (unsigned)there << b % 8);
    }
    c->fd = par2_source_open(s, s->sources[p->source].path, NULL);
    if (c->fd < 0) {
        return;
    }
    if (p->tail) {
        scan_tail(c);
    } else if (o->skip_data) {
        scan_near(c, o->skip_leaway);
    } else {
        scan_windows(c, p->from, p->to);
    }
    fsx_close(c->fs, c->fd, NULL);
}

static void scan_thread(void *arg, unsigned thread)
{
    struct scan *s = arg;
    struct scanner *c = mem_zalloc(1, sizeof(*c));
    uint8_t *buffers = mem_alloc(2 * s->stretch + s->bulk);
    uint8_t *found = mem_zalloc(s->set->block_count / 8 + 1, 1);
    if (c == NULL || buffers == NULL || found == NULL) {
        par2_work_fail(s->work, -ENOMEM);
    } else {
        *c = (struct scanner){
            .scan = s, .thread = thread, .fs = s->set->catalog->fs, .found = found};
        c->in = buffers;
        c->out = buffers + s->stretch;
        c->bulk = buffers + 2 * s->stretch;
        for (size_t i;
             (i = atomic_fetch_add(&s->next, 1)) < s->count && !atomic_load(&s->work->stop);) {
            c->piece = &s->pieces[i];
            scan_piece(c);
        }
    }
    mem_free(found);
    mem_free(buffers);
    mem_free(c);
}

/* ---- pieces ---- */

static bool add_piece(struct scan *s, struct piece p)
{
    if (s->count == s->room) {
        size_t room = s->room == 0 ? 64 : 2 * s->room;
        struct piece *more = mem_realloc(s->pieces, room, sizeof(*more));
        if (more == NULL) {
            return false;
        }
        s->pieces = more;
        s->room = room;
    }
    s->pieces[s->count++] = p;
    return true;
}

static bool add_gap(struct scan *s, uint32_t source, uint64_t from, uint64_t end)
{
    const uint64_t size = s->set->packets->block_size;
    struct piece p = {.source = source, .from = from, .limit = end};
    uint64_t piece = PIECE_BLOCKS * size > PIECE_MIN ? PIECE_BLOCKS * size : PIECE_MIN;
    uint64_t windows = end - from >= size ? end - from - size + 1 : 0;
    for (uint64_t done = 0; done < windows; done += piece) {
        p.from = from + done;
        p.to = from + (windows - done < piece ? windows : done + piece);
        if (!add_piece(s, p)) {
            return false;
        }
    }
    p = (struct piece){.source = source, .limit = end, .tail = true};
    p.from = end - from < size ? from : end - size;
    return end != s->set->sources[source].size || s->short_count == 0 || add_piece(s, p);
}

struct place {
    uint32_t source;
    uint64_t offset, len;
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->source != y->source) {
        return x->source < y->source ? -1 : 1;
    }
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* What is left of every file between the blocks that were found in it. */
static bool add_gaps(struct scan *s)
{
    struct par2_set *set = s->set;
    struct place *places = mem_alloc(((size_t)set->block_count + 1) * sizeof(*places));
    size_t n = 0, at = 0;
    if (places == NULL) {
        return false;
    }
    for (uint32_t b = 0; b < set->block_count; b++) {
        if (set->blocks[b].source != NOWHERE) {
            places[n++] =
                (struct place){set->blocks[b].source, set->blocks[b].offset, block_length(set, b)};
        }
    }
    if (n > 1) {
        qsort(places, n, sizeof(*places), by_place);
    }
    bool ok = true;
    for (uint32_t src = 0; src < set->source_count && ok; src++) {
        uint64_t from = 0, size = set->sources[src].size;
        bool whole = !set->sources[src].exists ||
                     (set->sources[src].target_of != NOWHERE &&
                      set->files[set->sources[src].target_of].state == PAR2_COMPLETE);
        for (; at < n && places[at].source == src; at++) {
            if (places[at].offset > from) {
                ok = ok && (whole || add_gap(s, src, from, places[at].offset));
            }
            uint64_t end = places[at].offset + places[at].len;
            from = end > from ? end : from;
        }
        if (ok && from < size && !whole) {
            ok = add_gap(s, src, from, size);
        }
    }
    mem_free(places);
    return ok;
}

static int by_length(const void *a, const void *b)
{
    const struct find *x = a, *y = b;
    if (x->offset != y->offset) {
        return x->offset < y->offset ? -1 : 1;
    }
    return (x->block > y->block) - (x->block < y->block);
}

static bool gather_shorts(struct scan *s)
{
    const struct par2_set *set = s->set;
    s->shorts = mem_alloc((set->file_count + 1) * sizeof(*s->shorts));
    for (size_t i = 0; i < set->file_count && s->shorts != NULL; i++) {
        const struct file *f = &set->files[i];
        uint32_t last = f->first + f->blocks - 1;
        if (f->blocks > 0 && set->blocks[last].source == NOWHERE && set->blocks[last].verifiable &&
            block_length(set, last) < set->packets->block_size) {
            s->shorts[s->short_count++] =
                (struct find){.block = last, .offset = block_length(set, last)};
        }
    }
    if (s->short_count > 1) {
        qsort(s->shorts, s->short_count, sizeof(*s->shorts), by_length);
    }
    return s->shorts != NULL;
}

static void make_tables(struct scan *s)
{
    s->block_power = crc32_power(s->set->packets->block_size);
    for (unsigned i = 0; i < 256; i++) {
        uint8_t byte = (uint8_t)i;
        s->step[i] = linear(&byte, 1);
        s->leave[i] = crc32_multiply(s->step[i], s->block_power);
    }
}

/* What the pieces found, hashed where that is still open, becomes the blocks' places. */
static int take_finds(struct scan *s)
{
    struct par2_set *set = s->set;
    size_t count = 0, n = 0;
    for (size_t i = 0; i < s->count; i++) {
        count += s->pieces[i].count;
    }
    struct check *checks = mem_alloc((count + 1) * sizeof(*checks));
    if (checks == NULL) {
        return -ENOMEM;
    }
    uint64_t padding = PADDING_FREE;
    for (size_t i = 0; i < set->source_count; i++) {
        padding += set->sources[i].exists ? 4 * set->sources[i].size : 0;
    }
    for (size_t i = 0; i < s->count; i++) {
        for (size_t k = 0; k < s->pieces[i].count; k++) {
            const struct find *f = &s->pieces[i].finds[k];
            struct block *b = &set->blocks[f->block];
            uint64_t zeros = set->packets->block_size - block_length(set, f->block);
            if (!f->proven && zeros > padding) {
                continue; /* a set may claim blocks of any size: they must not cost more than data does */
            }
            if (!f->proven) {
                padding -= zeros;
                checks[n++] = (struct check){f->offset, f->block, s->pieces[i].source, -1, false};
            } else if (b->source == NOWHERE) {
                b->source = s->pieces[i].source;
                b->offset = f->offset;
            }
        }
    }
    par2_work_phase(s->work, PAR2_SCANNING, n * set->packets->block_size);
    int rv = par2_check_run(set, s->work, checks, n);
    for (size_t i = 0; i < n && rv == 0; i++) {
        struct block *b = &set->blocks[checks[i].block];
        if (checks[i].ok && b->source == NOWHERE) {
            b->source = checks[i].source;
            b->offset = checks[i].offset;
        }
    }
    mem_free(checks);
    return rv;
}

int par2_scan_run(struct par2_set *set, struct work *w, const struct table *t)
{
    struct scan s = {.set = set, .work = w, .table = t, .stretch = CHAINS};
    s.bulk = set->packets->block_size < READ ? (size_t)set->packets->block_size : READ;
    make_tables(&s);
    int rv = gather_shorts(&s) && add_gaps(&s) ? 0 : -ENOMEM;
    uint64_t total = 0;
    for (size_t i = 0; i < s.count; i++) {
        uint64_t windows = s.pieces[i].tail ? 0 : s.pieces[i].to - s.pieces[i].from;
        total += windows;
        while (s.stretch < windows && s.stretch < STRETCH) {
            s.stretch *= 2;
        }
    }
    if (rv == 0 && s.count > 0) {
        par2_work_phase(w, PAR2_SCANNING, total);
        rv = par2_work_run(w, par2_work_threads(w, s.count), scan_thread, &s);
        rv = rv == 0 ? take_finds(&s) : rv;
    }
    for (size_t i = 0; i < s.count; i++) {
        mem_free(s.pieces[i].finds);
    }
    mem_free(s.pieces);
    mem_free(s.shorts);
    return rv;
}
