/* want.c - which PAR2 volumes to fetch for so many blocks: the fewest bytes.
 *
 * A knapsack, solved exactly while it is small: best[n] is the cheapest way to get at least n blocks. Sets have a dozen
 * volumes and repairs need tens of blocks, so this is thousands of steps; hostile sizes are bounded by STEPS_MAX, above
 * which the largest that fit are taken first. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "queue/model.h"

enum { STEPS_MAX = 1 << 22 };

struct volume {
    struct queue_file *file;
    uint32_t blocks;
};

/* Blocks a volume brings: by its name, else by its size and the slice (a packet is 68 bytes longer, yEnc about 3 %). */
static uint32_t blocks_of(const struct queue_job *j, const struct queue_file *f)
{
    if (f->blocks > 0 || j->par2_slice == 0) {
        return f->blocks > 0 ? f->blocks : 1;
    }
    uint64_t n = f->posted->bytes / 103 * 100 / (j->par2_slice + 68);
    return n > 65535 ? 65535 : n > 0 ? (uint32_t)n : 1;
}

static bool usable(const struct queue_file *f)
{
    return f->kind == NZB_PAR2_VOLUME && !f->wanted && !f->paused && f->failed == 0;
}

static int by_blocks_down(const void *a, const void *b)
{
    const struct volume *x = a, *y = b;
    return x->blocks != y->blocks ? (x->blocks > y->blocks ? -1 : 1)
                                  : (x->file->position < y->file->position ? -1 : 1);
}

/* Marks in `take` the cheapest volumes for `need` blocks; there are enough. False: no memory. */
static bool choose_exact(const struct volume *v, uint32_t count, uint32_t need, bool *take)
{
    uint64_t *best = mem_alloc((size_t)(need + 1) * sizeof(*best));
    uint8_t *used = mem_zalloc((size_t)count * (need + 1), 1);
    bool ok = best != NULL && used != NULL;
    if (ok) {
        best[0] = 0;
        memset(best + 1, 0xff, need * sizeof(*best));
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t n = need; n > 0; n--) {
                uint64_t rest = best[n > v[i].blocks ? n - v[i].blocks : 0];
                if (rest != UINT64_MAX && rest + v[i].file->posted->bytes < best[n]) {
                    best[n] = rest + v[i].file->posted->bytes;
                    used[(size_t)i * (need + 1) + n] = 1;
                }
            }
        }
        for (uint32_t i = count, n = need; i-- > 0 && n > 0;) {
            take[i] = used[(size_t)i * (need + 1) + n] != 0;
            n = !take[i] ? n : n > v[i].blocks ? n - v[i].blocks : 0;
        }
    }
    mem_free(best);
    mem_free(used);
    return ok;
}

/* Largest first while they fit, then the smallest that covers the rest. `v` is sorted by blocks, downwards. */
static void choose_greedy(const struct volume *v, uint32_t count, uint32_t need, bool *take)
{
    for (uint32_t i = 0; i < count && need > 0; i++) {
        if (v[i].blocks <= need) {
            take[i] = true;
            need -= v[i].blocks;
        }
    }
    for (uint32_t i = count; i-- > 0 && need > 0;) {
        if (!take[i]) {
            take[i] = true;
            need = v[i].blocks >= need ? 0 : need - v[i].blocks;
        }
    }
}

static void want(struct queue *q, struct queue_file *f)
{
    queue_tally_out(q, f);
    f->wanted = true;
    queue_tally_in(q, f);
    queue_file_show(q, f);
    queue_changed(q, f->job);
}

uint32_t queue_want_blocks(struct queue *q, struct queue_job *j, uint32_t blocks)
{
    uint32_t count = 0, have = 0, got = 0;
    struct volume *v = mem_alloc(j->file_count * sizeof(*v));
    bool *take = mem_zalloc(j->file_count, sizeof(*take));
    if (v == NULL || take == NULL || blocks == 0) {
        goto out;
    }
    for (uint32_t i = 0; i < j->file_count; i++) {
        if (usable(j->files[i])) {
            v[count] = (struct volume){j->files[i], blocks_of(j, j->files[i])};
            have += v[count++].blocks;
        }
    }
    qsort(v, count, sizeof(*v), by_blocks_down);
    uint32_t need = blocks < have ? blocks : have;
    if ((uint64_t)need * count > STEPS_MAX || !choose_exact(v, count, need, take)) {
        memset(take, 0, count);
        choose_greedy(v, count, need, take);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (take[i]) {
            got += v[i].blocks;
            want(q, v[i].file);
        }
    }
out:
    mem_free(v);
    mem_free(take);
    return got;
}
