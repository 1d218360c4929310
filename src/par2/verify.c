/* verify.c - which blocks are where.
 *
 * In this order, each step only for what the ones before left open:
 *   1. every file under its own name: its blocks at their places;
 *   2. files by the hash of their first 16 KiB: those under other names, swapped ones, and what an interrupted repair
 *      left ("NAME.N.tmp"): their blocks at their places;
 *   3. blocks with the content of one that was found;
 *   4. displaced data, byte by byte (scan.c);
 *   5. if blocks are missing: are the recovery blocks what they claim to be?
 * The block hashes decide: a file of the right length all of whose blocks are right is right, and hashing it as a
 * whole, which no CPU can do on many lanes, would say the same. Only a file whose block hashes are lacking from the set
 * is hashed as a whole. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/crc32.h"
#include "base/mem.h"
#include "par2/internal.h"

enum {
    HEAD = 16384,       /* bytes that the second hash of a description covers */
    LEFTOVER_SLOTS = 8, /* unfinished files of one name that are looked for */
    SAME_HEAD_MAX = 4,  /* files that begin alike which are tried for one that is not whole */
};

static bool file_verifiable(const struct par2_set *s, const struct file *f)
{
    return f->blocks == 0 || s->blocks[f->first].verifiable;
}

/* ---- lists of checks ---- */

struct checks {
    struct check *list;
    size_t count, room;
};

static bool add_check(struct checks *c, uint32_t block, uint32_t source, uint64_t offset)
{
    if (c->count == c->room) {
        size_t room = c->room == 0 ? 256 : 2 * c->room;
        struct check *more = mem_realloc(c->list, room, sizeof(*more));
        if (more == NULL) {
            return false;
        }
        c->list = more;
        c->room = room;
    }
    c->list[c->count++] =
        (struct check){.block = block, .source = source, .offset = offset, .copy_to = -1};
    return true;
}

static void locate(struct par2_set *s, uint32_t block, uint32_t source, uint64_t offset)
{
    s->blocks[block].source = source;
    s->blocks[block].offset = offset;
}

/* Blocks of file f at their places in `source`: all of them, or those not yet found. */
static bool add_aligned(const struct par2_set *s, struct checks *c, const struct file *f,
                        uint32_t source, bool all)
{
    for (uint32_t b = f->first; b < f->first + f->blocks; b++) {
        uint64_t end = block_position(s, b) + block_length(s, b);
        if ((all || s->blocks[b].source == NOWHERE) && end <= s->sources[source].size &&
            !add_check(c, b, source, block_position(s, b))) {
            return false;
        }
    }
    return true;
}

/* ---- 1: under their own names ---- */

/* All blocks of f are in `source`, because it is f. */
static void locate_all(struct par2_set *s, const struct file *f, uint32_t source)
{
    for (uint32_t b = f->first; b < f->first + f->blocks; b++) {
        locate(s, b, source, block_position(s, b));
    }
}

/* A file without block hashes is right as a whole or not at all. */
static void check_unverifiable(struct par2_set *s, const struct file *f, uint32_t source)
{
    uint8_t md5[16];
    if (s->sources[source].size == f->desc->size &&
        par2_check_whole(s, source, UINT64_MAX, md5) == 0 && memcmp(md5, f->desc->md5, 16) == 0) {
        locate_all(s, f, source);
    }
}

static int add_target(struct par2_set *s, struct file *f)
{
    if (f->target == NOWHERE && f->unsafe == NULL) {
        f->target = par2_source_append(s, f->path);
        if (f->target == NOWHERE) {
            return -ENOMEM;
        }
        s->sources[f->target].target_of = (uint32_t)(f - s->files);
        par2_source_look(s, f->target);
    }
    return 0;
}

static bool is_there(const struct par2_set *s, const struct file *f)
{
    return f->target != NOWHERE && s->sources[f->target].exists;
}

static int run_checks(struct par2_set *s, struct work *w, struct checks *c, enum par2_phase phase)
{
    par2_work_phase(w, phase, c->count * s->packets->block_size);
    int rv = par2_check_run(s, w, c->list, c->count);
    for (size_t i = 0; i < c->count && rv == 0; i++) {
        if (c->list[i].ok && s->blocks[c->list[i].block].source == NOWHERE) {
            locate(s, c->list[i].block, c->list[i].source, c->list[i].offset);
        }
    }
    return rv;
}

static int verify_targets(struct par2_set *s, struct work *w)
{
    struct checks c = {0};
    int rv = 0;
    for (size_t i = 0; i < s->file_count && rv == 0; i++) {
        struct file *f = &s->files[i];
        rv = add_target(s, f);
        if (rv < 0 || !is_there(s, f)) {
            continue;
        }
        if (!file_verifiable(s, f)) {
            check_unverifiable(s, f, f->target);
        } else if (!add_aligned(s, &c, f, f->target, false)) {
            rv = -ENOMEM;
        }
    }
    rv = rv == 0 ? run_checks(s, w, &c, PAR2_VERIFYING) : rv;
    mem_free(c.list);
    return rv;
}

/* ---- states ---- */

/* Are all blocks of f at their places in that source, and nothing behind them? */
static bool all_in(const struct par2_set *s, const struct file *f, uint32_t source)
{
    if (source == NOWHERE || !s->sources[source].exists ||
        s->sources[source].size != f->desc->size) {
        return false;
    }
    for (uint32_t b = f->first; b < f->first + f->blocks; b++) {
        if (s->blocks[b].source != source || s->blocks[b].offset != block_position(s, b)) {
            return false;
        }
    }
    return true;
}

static bool find_whole_files(struct par2_set *s)
{
    bool all = true;
    for (size_t i = 0; i < s->file_count; i++) {
        struct file *f = &s->files[i];
        f->state = all_in(s, f, f->target) ? PAR2_COMPLETE
                   : is_there(s, f)        ? PAR2_DAMAGED
                                           : PAR2_MISSING;
        all = all && f->state == PAR2_COMPLETE;
    }
    return all;
}

/* What is not complete may be complete under another name, unless that is already somebody's right file. */
static int find_renamed(struct par2_set *s)
{
    uint8_t *taken = mem_zalloc(s->source_count, 1);
    if (taken == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < s->file_count; i++) {
        if (s->files[i].state == PAR2_COMPLETE) {
            taken[s->files[i].target] = 1;
        }
    }
    for (size_t i = 0; i < s->file_count; i++) {
        struct file *f = &s->files[i];
        if (f->state == PAR2_COMPLETE || f->blocks == 0 || f->unsafe != NULL) {
            continue;
        }
        uint32_t from = s->blocks[f->first].source;
        if (all_in(s, f, from) && !taken[from]) {
            taken[from] = 1;
            f->state = PAR2_RENAMED;
            f->renamed_from = from;
        }
    }
    mem_free(taken);
    return 0;
}

/* ---- 2: under other names ---- */

static int by_path(const void *a, const void *b)
{
    const struct source *x = *(struct source *const *)a, *y = *(struct source *const *)b;
    int order = strcmp(x->path, y->path);
    if (order != 0) {
        return order;
    }
    bool tx = x->target_of != NOWHERE, ty = y->target_of != NOWHERE;
    return tx != ty ? (int)ty - (int)tx : (x > y) - (x < y);
}

/* A path that was named twice, or that is a file of the set anyway, is looked at once. */
static int drop_twins(struct par2_set *s)
{
    struct source **sorted = mem_alloc((s->source_count + 1) * sizeof(*sorted));
    if (sorted == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < s->source_count; i++) {
        sorted[i] = &s->sources[i];
    }
    if (s->source_count > 1) {
        qsort(sorted, s->source_count, sizeof(struct source *), by_path);
    }
    for (size_t i = 1; i < s->source_count; i++) {
        if (strcmp(sorted[i - 1]->path, sorted[i]->path) == 0 && sorted[i]->target_of == NOWHERE) {
            sorted[i]->exists = false;
        }
    }
    mem_free(sorted);
    return 0;
}

/* What an interrupted repair left of files that are not whole. */
static int add_leftovers(struct par2_set *s)
{
    for (size_t i = 0; i < s->file_count; i++) {
        const struct file *f = &s->files[i];
        for (int slot = 0; slot < LEFTOVER_SLOTS && f->state != PAR2_COMPLETE && f->unsafe == NULL;
             slot++) {
            char path[PAR2_PATH_MAX];
            if (snprintf(path, sizeof(path), "%s.%d.tmp", f->path, slot) >= PAR2_PATH_MAX) {
                break;
            }
            int fd = par2_source_open(s, path, NULL);
            if (fd < 0) {
                break;
            }
            fsx_close(s->catalog->fs, fd, NULL);
            uint32_t n = par2_source_append(s, path);
            if (n == NOWHERE) {
                return -ENOMEM;
            }
            s->sources[n].extra = s->sources[n].leftover = true;
        }
    }
    return 0;
}

static int look_at_extras(struct par2_set *s)
{
    int rv = add_leftovers(s);
    for (uint32_t i = 0; i < s->source_count && rv == 0; i++) {
        if (s->sources[i].extra && !s->sources[i].exists) {
            par2_source_look(s, i);
        }
    }
    return rv == 0 ? drop_twins(s) : rv;
}

static int by_head(const void *a, const void *b)
{
    const struct file *x = *(struct file *const *)a, *y = *(struct file *const *)b;
    int order = memcmp(x->desc->md5_16k, y->desc->md5_16k, 16);
    return order != 0 ? order : (x > y) - (x < y);
}

struct heads {
    struct file **files; /* that are not whole, by the hash of their head */
    size_t count;
};

static int heads_init(struct heads *h, const struct par2_set *s)
{
    h->count = 0;
    h->files = mem_alloc((s->file_count + 1) * sizeof(struct file *));
    if (h->files == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < s->file_count; i++) {
        if (s->files[i].state != PAR2_COMPLETE && s->files[i].blocks > 0) {
            h->files[h->count++] = &s->files[i];
        }
    }
    if (h->count > 1) {
        qsort(h->files, h->count, sizeof(struct file *), by_head);
    }
    return 0;
}

/* The first file with that head; h->count: none. */
static size_t heads_find(const struct heads *h, const uint8_t md5[16])
{
    size_t low = 0, high = h->count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (memcmp(h->files[mid]->desc->md5_16k, md5, 16) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < h->count && memcmp(h->files[low]->desc->md5_16k, md5, 16) == 0 ? low : h->count;
}

/* Source `src` begins like some files: which of them is it? */
static bool add_likely(struct par2_set *s, struct checks *c, const struct heads *h, uint32_t src)
{
    uint8_t md5[16];
    if (par2_check_whole(s, src, HEAD, md5) < 0) {
        return true;
    }
    unsigned tried = 0;
    for (size_t i = heads_find(h, md5);
         i < h->count && memcmp(h->files[i]->desc->md5_16k, md5, 16) == 0; i++) {
        const struct file *f = h->files[i];
        bool whole = f->desc->size == s->sources[src].size;
        if (f->target == src || (!whole && tried++ >= SAME_HEAD_MAX)) {
            continue;
        }
        if (!file_verifiable(s, f)) {
            check_unverifiable(s, f, src);
        } else if (!add_aligned(s, c, f, src, whole)) {
            return false;
        }
        if (whole && ++tried > SAME_HEAD_MAX) {
            break;
        }
    }
    return true;
}

/* Checks come in runs of one file in one source. A run that found the whole file settles it, also for blocks that
 * were found elsewhere before. */
static void settle_runs(struct par2_set *s, const struct checks *c)
{
    for (size_t i = 0, end; i < c->count; i = end) {
        const struct file *f = &s->files[s->blocks[c->list[i].block].file];
        uint32_t source = c->list[i].source, good = 0;
        for (end = i; end < c->count && c->list[end].source == source &&
                      &s->files[s->blocks[c->list[end].block].file] == f;
             end++) {
            good += c->list[end].ok;
        }
        if (good == f->blocks && s->sources[source].size == f->desc->size &&
            !all_in(s, f, f->target)) {
            locate_all(s, f, source);
        }
    }
}

static int verify_renamed(struct par2_set *s, struct work *w)
{
    struct heads h = {.files = NULL};
    struct checks c = {0};
    int rv = look_at_extras(s);
    rv = rv == 0 ? heads_init(&h, s) : rv;
    if (rv < 0) {
        return rv;
    }
    for (uint32_t i = 0; i < s->source_count && rv == 0; i++) {
        const struct source *src = &s->sources[i];
        bool settled = src->target_of != NOWHERE && s->files[src->target_of].state == PAR2_COMPLETE;
        if (src->exists && !settled && !add_likely(s, &c, &h, i)) {
            rv = -ENOMEM;
        }
        if (rv == 0 && !par2_work_step(w, 0, 0)) {
            rv = ERR_STOPPED;
        }
    }
    rv = rv == 0 && c.count > 0 ? run_checks(s, w, &c, PAR2_VERIFYING) : rv;
    if (rv == 0) {
        settle_runs(s, &c);
    }
    mem_free(c.list);
    mem_free(h.files);
    return rv;
}

/* ---- 3: the same content elsewhere ---- */

struct content {
    const uint8_t *md5;
    uint32_t block;
    bool found;
};

/* Found ones first among equals. */
static int by_content(const void *a, const void *b)
{
    const struct content *x = a, *y = b;
    int order = memcmp(x->md5, y->md5, 16);
    if (order != 0) {
        return order;
    }
    return x->found != y->found ? (int)y->found - (int)x->found
                                : (x->block > y->block) - (x->block < y->block);
}

static int share_equal_blocks(struct par2_set *s)
{
    struct content *list = mem_alloc(((size_t)s->block_count + 1) * sizeof(*list));
    size_t n = 0;
    if (list == NULL) {
        return -ENOMEM;
    }
    for (uint32_t b = 0; b < s->block_count; b++) {
        if (s->blocks[b].verifiable) {
            list[n++] = (struct content){s->blocks[b].sums, b, s->blocks[b].source != NOWHERE};
        }
    }
    if (n > 1) {
        qsort(list, n, sizeof(*list), by_content);
    }
    for (size_t i = 1; i < n;
         i++) { /* each takes over from the one before: equal ones stand together */
        const struct block *from = &s->blocks[list[i - 1].block];
        if (!list[i].found && from->source != NOWHERE &&
            memcmp(list[i - 1].md5, list[i].md5, 16) == 0 &&
            block_length(s, list[i - 1].block) >= block_length(s, list[i].block)) {
            locate(s, list[i].block, from->source, from->offset);
        }
    }
    mem_free(list);
    return 0;
}

/* ---- all of it ---- */

static uint32_t missing_blocks(const struct par2_set *s)
{
    uint32_t n = 0;
    for (uint32_t b = 0; b < s->block_count; b++) {
        n += s->blocks[b].source == NOWHERE;
    }
    return n;
}

static int verify_displaced(struct par2_set *s, struct work *w)
{
    struct table t;
    int rv = par2_table_init(&t, s);
    if (rv == 0 && t.entries > 0) {
        rv = par2_scan_run(s, w, &t);
    }
    par2_table_free(&t);
    return rv == 0 ? share_equal_blocks(s) : rv;
}

int par2_verify(struct par2_set *s, const struct par2_options *o, struct err *e)
{
    struct work w;
    par2_work_init(&w, o);
    s->follow_links = o->follow_links;
    int rv = verify_targets(s, &w);
    bool whole = rv == 0 && find_whole_files(s);
    if (rv == 0 && !whole) {
        rv = verify_renamed(s, &w);
        rv = rv == 0 ? share_equal_blocks(s) : rv;
        if (rv == 0 && missing_blocks(s) > 0 && !o->rename_only) {
            rv = verify_displaced(s, &w);
        }
        find_whole_files(s);
        rv = rv == 0 ? find_renamed(s) : rv;
    }
    if (rv < 0) {
        return err_sys(e, rv, "verify");
    }
    s->verified = true;
    return par2_status(s).blocks_missing > 0 ? par2_check_recovery(s, &w, e) : 0;
}

void par2_forget(struct par2_set *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->source_count; i++) { /* what the caller named is looked at again */
        if (s->sources[i].extra && !s->sources[i].leftover) {
            s->sources[kept++] =
                (struct source){.path = s->sources[i].path, .extra = true, .target_of = NOWHERE};
        } else {
            mem_free(s->sources[i].path);
        }
    }
    s->source_count = kept;
    for (uint32_t b = 0; b < s->block_count; b++) {
        s->blocks[b].source = NOWHERE;
    }
    for (size_t i = 0; i < s->file_count; i++) {
        s->files[i].target = NOWHERE;
        s->files[i].state = PAR2_UNKNOWN;
    }
    s->verified = false;
}

/* ---- proof without reading ---- */

static uint32_t expected_crc(const struct par2_set *s, uint32_t b)
{
    uint32_t crc = par2_get32(s->blocks[b].sums + 16);
    return crc32_unzeros(crc, s->packets->block_size - block_length(s, b));
}

/* Blocks first..end of f, whose bytes on disk have that CRC together. */
static uint32_t claim_run(struct par2_set *s, const struct file *f, uint32_t first, uint32_t end,
                          uint32_t crc)
{
    uint32_t expected = 0, proven = 0;
    for (uint32_t b = first; b < end; b++) {
        expected = crc32_join(expected, expected_crc(s, b), block_length(s, b));
    }
    for (uint32_t b = first; b < end && expected == crc; b++) {
        proven += s->blocks[b].source == NOWHERE;
        locate(s, b, f->target, block_position(s, b));
    }
    return proven;
}

uint32_t par2_claim(struct par2_set *s, size_t n, uint64_t size, const struct par2_range *ranges,
                    size_t count)
{
    PRE(n < s->file_count);
    struct file *f = &s->files[n];
    const uint64_t block_size = s->packets->block_size;
    if (!file_verifiable(s, f) || f->unsafe != NULL || add_target(s, f) < 0) {
        return 0;
    }
    s->sources[f->target].exists = true;
    s->sources[f->target].size = size;
    uint32_t proven = 0, crc = 0;
    uint64_t start = UINT64_MAX,
             at = 0; /* of the run; UINT64_MAX: none began at a block's border */
    for (size_t i = 0; i < count; i++) {
        const struct par2_range *r = &ranges[i];
        if (start == UINT64_MAX || r->offset != at) {
            start = r->offset % block_size == 0 ? r->offset : UINT64_MAX;
            crc = 0;
        }
        if (__builtin_add_overflow(r->offset, r->length, &at) || at > f->desc->size) {
            break;
        }
        crc = crc32_join(crc, r->crc, r->length);
        if (start != UINT64_MAX && at > start && (at % block_size == 0 || at == f->desc->size)) {
            uint32_t end = (uint32_t)((at + block_size - 1) / block_size);
            proven +=
                claim_run(s, f, f->first + (uint32_t)(start / block_size), f->first + end, crc);
            start = at % block_size == 0 ? at : UINT64_MAX;
            crc = 0;
        }
    }
    return proven;
}
