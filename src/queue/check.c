/* check.c - what must be true of a queue, and what it weighs. Slow: for tests, the simulator and figures. */
#include <string.h>

#include "base/check.h"
#include "queue/model.h"
#include "queue/pick.h"

/* The rule of pick.h for one article and one lane, written the plain way. */
static bool may_take(const struct queue *q, const struct queue_file *f, uint32_t i, unsigned lane)
{
    uint32_t untried = 0; /* firm or up: still to be asked */
    for (unsigned s = 0; s < q->server_count; s++) {
        const struct queue_server *v = &q->servers[s];
        bool there = v->active && (f->in_retention >> s & 1) != 0 && !(v->optional && v->down);
        untried |= (uint32_t)(there && queue_tried_on(f, i, s) == QUEUE_UNTRIED) << s;
    }
    if (lane == q->server_count) {
        return untried == 0;
    }
    if ((untried >> lane & 1) == 0 || q->servers[lane].down) {
        return false;
    }
    for (unsigned s = 0; s < q->server_count; s++) {
        const struct queue_server *v = &q->servers[s];
        if ((untried >> s & 1) != 0 && v->level < q->servers[lane].level && !v->optional &&
            !v->down) {
            return false;
        }
    }
    return true;
}

static void check_tree(const struct bitset *b)
{
    uint32_t members = 0;
    for (uint32_t i = bitset_next(b, 0); i != BITSET_NONE; i = bitset_next(b, i + 1)) {
        members++;
    }
    uint32_t bits = 0;
    for (uint32_t w = 0; w < (b->size + 63) / 64; w++) {
        bits += (uint32_t)__builtin_popcountll(b->words[w]);
    }
    POST(members == bits && bitset_empty(b) == (bits == 0));
}

static void check_file(const struct queue *q, const struct queue_job *j, uint32_t position)
{
    struct queue_file *f = j->files[position];
    uint32_t counts[5] = {0};
    uint64_t bytes[3] = {0};
    POST(f->job == j && f->position == position && queue_file(q, f->id) == f);
    for (uint32_t i = 0; i < f->count; i++) {
        uint32_t hint = f->nzb->bytes[f->posted->first + i];
        POST(f->state[i] <= QUEUE_FAILED);
        counts[f->state[i]]++;
        bytes[f->state[i] == QUEUE_DONE ? 1 : f->state[i] == QUEUE_FAILED ? 2 : 0] += hint;
        bool open = f->state[i] == QUEUE_OPEN;
        POST(open == ((f->open_bits[i / 64] >> (i % 64) & 1) != 0));
        for (unsigned lane = 0; lane <= q->server_count; lane++) {
            POST(bitset_has(&f->ready[lane], i) == (open && may_take(q, f, i, lane)));
        }
    }
    POST(counts[0] == f->open && counts[1] == f->leased && counts[2] == f->waiting &&
         counts[3] == f->done && counts[4] == f->failed);
    POST(bytes[0] == f->left_bytes && bytes[1] == f->done_bytes);
    POST(bytes[2] + f->posted->bytes / f->posted->count * f->posted->missing == f->failed_bytes);
    POST(ERGO(f->closed, queue_file_ended(f)));
    for (unsigned lane = 0; lane <= q->server_count; lane++) {
        check_tree(&f->ready[lane]);
        bool shown = f->wanted && !f->paused && !bitset_empty(&f->ready[lane]);
        POST(bitset_has(&j->ready[lane], position) == shown);
    }
}

static void check_job(const struct queue *q, struct queue_job *j)
{
    POST(queue_job(q, j->id) == j && j->id < q->next_job_id);
    for (uint32_t i = 0; i < j->file_count; i++) {
        check_file(q, j, i);
    }
    if (j->file_count == 0) {
        return; /* a URL, or shed: the counters are what they were */
    }
    /* Sums from nothing, through the same door, on a copy. */
    struct queue_job sum = *j;
    struct queue scratch = {0};
    sum.left_bytes = sum.paused_bytes = sum.failed_bytes = sum.failed_par_bytes = 0;
    sum.par_bytes = sum.extra_bytes = sum.failed_extra_bytes = 0;
    sum.done_articles = sum.failed_articles = sum.leased_articles = sum.waiting_articles = 0;
    sum.left_files = sum.left_par_files = sum.wanted_left = sum.wanted_unclosed = 0;
    for (uint32_t i = 0; i < j->file_count; i++) {
        struct queue_file copy = *j->files[i];
        copy.job = &sum;
        queue_tally_in(&scratch, &copy);
    }
    POST(sum.left_bytes == j->left_bytes && sum.paused_bytes == j->paused_bytes);
    POST(sum.failed_bytes == j->failed_bytes && sum.failed_par_bytes == j->failed_par_bytes);
    POST(sum.par_bytes == j->par_bytes && sum.extra_bytes == j->extra_bytes);
    POST(sum.failed_extra_bytes == j->failed_extra_bytes);
    POST(sum.done_articles == j->done_articles && sum.failed_articles == j->failed_articles);
    POST(sum.leased_articles == j->leased_articles && sum.waiting_articles == j->waiting_articles);
    POST(sum.left_files == j->left_files && sum.left_par_files == j->left_par_files);
    POST(sum.wanted_left == j->wanted_left && sum.wanted_unclosed == j->wanted_unclosed);
}

void queue_check(const struct queue *q)
{
    uint64_t left = 0, forced = 0;
    for (uint32_t i = 0; i < q->active_count; i++) {
        struct queue_job *j = q->order[i];
        POST(j->place == QUEUE_ACTIVE && j->position == i && q->run[j->rank].job == j);
        check_job(q, j);
        left += j->left_bytes;
        forced += j->priority >= QUEUE_FORCE ? j->left_bytes : 0;
        if (i > 0) {
            const struct queue_job *a = q->run[i - 1].job, *b = q->run[i].job;
            POST(a->priority > b->priority ||
                 (a->priority == b->priority && a->position < b->position));
        }
        bool in_state = j->life.state == QUEUE_QUEUED || j->life.state == QUEUE_DOWNLOADING;
        uint32_t holds = j->priority >= QUEUE_FORCE ? j->holds & ~QUEUE_FORCE_PASSES : j->holds;
        for (unsigned lane = 0; lane <= q->server_count; lane++) {
            bool shown =
                in_state && holds == 0 && j->file_count > 0 && !bitset_empty(&j->ready[lane]);
            POST(bitset_has(&q->ready[lane], j->rank) == shown);
        }
    }
    POST(left == q->left_bytes && forced == q->forced_bytes);
    for (uint32_t i = 0; i < q->past_count; i++) {
        POST(q->past[i]->place != QUEUE_ACTIVE && q->past[i]->leased_articles == 0);
        check_job(q, q->past[i]);
    }
}

/* ---- weight ---- */

static size_t text_bytes(const char *s)
{
    return s != NULL ? strlen(s) + 1 : 0;
}

static size_t job_bytes(const struct queue *q, const struct queue_job *j)
{
    size_t n = sizeof(*j) + text_bytes(j->name) + text_bytes(j->filename) + text_bytes(j->url) +
               text_bytes(j->category) + text_bytes(j->dest_dir) + text_bytes(j->final_dir) +
               text_bytes(j->reason) + text_bytes(j->dupe_key) + text_bytes(j->shed);
    n += j->file_count * sizeof(struct queue_file *) +
         (q->server_count + 1) *
             (sizeof(struct bitset) + bitset_words(j->file_count) * sizeof(uint64_t));
    n += j->server_stat_count * sizeof(*j->server_stats) + j->source_count * sizeof(*j->sources);
    for (uint32_t i = 0; i < j->file_count; i++) {
        const struct queue_file *f = j->files[i];
        n += sizeof(*f) + queue_cells_bytes(f->count, q->server_count) + text_bytes(f->found_name);
    }
    for (uint32_t i = 0; i < j->source_count; i++) {
        const struct nzb *nzb = j->sources[i].nzb; /* shared ones count by halves, thirds, ... */
        n += nzb != NULL ? nzb->heap_bytes * (1 + j->file_count) / nzb->refs : 0;
    }
    return n;
}

size_t queue_heap_bytes(const struct queue *q)
{
    size_t n =
        sizeof(*q) + idmap_heap_bytes(q->jobs) + idmap_heap_bytes(q->files) + queue_waits_bytes(q);
    n += q->active_room * 3 * sizeof(struct queue_job *) +
         q->past_room * sizeof(struct queue_job *) +
         (q->server_count + 1) * bitset_words(q->active_room) * sizeof(uint64_t);
    for (uint32_t i = 0; i < q->active_count; i++) {
        n += job_bytes(q, q->order[i]);
    }
    for (uint32_t i = 0; i < q->past_count; i++) {
        n += job_bytes(q, q->past[i]);
    }
    return n;
}
