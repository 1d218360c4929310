/* file.c - a file and its articles: the arrays, the counters, who may take what. */
#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/name.h"
#include "queue/model.h"
#include "queue/pick.h"

_Static_assert(QUEUE_LANES_MAX <= 64, "lanes fit into job->shown");

static uint32_t words_of(uint32_t bits)
{
    return bits / 64 + (bits % 64 != 0);
}

/* The last word of a bit plane has bits only for articles that exist. */
static uint64_t word_mask(uint32_t count, uint32_t word)
{
    uint32_t left = count - word * 64;
    return left >= 64 ? UINT64_MAX : (UINT64_C(1) << left) - 1;
}

/* ---- memory: one block per file ----
 *
 *   parts | open bits | tried bits (2 planes per server) | lanes' words | lanes | tries | state */

struct queue_cells {
    struct queue_part part[1]; /* as many as there are articles; the rest follows */
};

size_t queue_cells_bytes(uint32_t count, unsigned servers)
{
    size_t words =
        words_of(count) * (size_t)(1 + 2 * servers) + bitset_words(count) * (size_t)(servers + 1);
    return count * sizeof(struct queue_part) + words * sizeof(uint64_t) +
           (servers + 1) * sizeof(struct bitset) + count * (sizeof(uint16_t) + sizeof(uint8_t));
}

struct queue_cells *queue_cells_new(uint32_t count, unsigned servers)
{
    return mem_zalloc(1, queue_cells_bytes(count, servers));
}

void queue_cells_free(struct queue_cells *c)
{
    mem_free(c);
}

/* Points the file's arrays into `c`. */
static void lay_out(struct queue_file *f, struct queue_cells *c, unsigned servers)
{
    size_t words = words_of(f->count);
    f->cells = c;
    f->part = c->part;
    f->open_bits = (uint64_t *)(void *)(f->part + f->count);
    f->tried_bits = f->open_bits + words;
    uint64_t *lane_words = f->tried_bits + words * 2 * servers;
    f->ready = (struct bitset *)(void *)(lane_words + bitset_words(f->count) * (servers + 1));
    for (unsigned lane = 0; lane <= servers; lane++) {
        bitset_init(&f->ready[lane], lane_words + bitset_words(f->count) * lane, f->count);
    }
    f->tries = (uint16_t *)(void *)(f->ready + servers + 1);
    f->state = (uint8_t *)(f->tries + f->count);
}

void queue_file_take_cells(struct queue_file *f, struct queue_cells *c, unsigned servers,
                           const int *from)
{
    struct queue_file old = *f;
    size_t words = words_of(f->count);
    lay_out(f, c, servers);
    memcpy(f->part, old.part, f->count * sizeof(*f->part));
    memcpy(f->open_bits, old.open_bits, words * sizeof(uint64_t));
    memcpy(f->tries, old.tries, f->count * sizeof(*f->tries));
    memcpy(f->state, old.state, f->count);
    for (unsigned s = 0; s < servers; s++) {
        if (from[s] >= 0) {
            memcpy(f->tried_bits + words * 2 * s, old.tried_bits + words * 2 * (size_t)from[s],
                   words * 2 * sizeof(uint64_t));
        }
    }
    queue_cells_free(old.cells);
}

struct queue_file *queue_file_new(struct queue *q, struct nzb *nzb, uint32_t index)
{
    struct queue_file *f = mem_zalloc(1, sizeof(*f));
    const struct nzb_file *posted = &nzb->files[index];
    struct queue_cells *c = queue_cells_new(posted->count, q->server_count);
    if (f == NULL || c == NULL) {
        mem_free(f);
        queue_cells_free(c);
        return NULL;
    }
    f->nzb = nzb_ref(nzb);
    f->posted = posted;
    f->count = f->open = posted->count;
    f->left_bytes = posted->bytes;
    f->failed_bytes = posted->bytes / posted->count * posted->missing;
    f->kind = posted->kind;
    f->blocks = posted->blocks;
    f->wanted = true;
    lay_out(f, c, q->server_count);
    for (uint32_t w = 0; w < words_of(f->count); w++) {
        f->open_bits[w] = word_mask(f->count, w);
    }
    return f;
}

void queue_file_free(struct queue *q, struct queue_file *f)
{
    if (f == NULL) {
        return;
    }
    if (f->id != 0) {
        idmap_remove(q->files, f->id);
    }
    queue_damage_free(f);
    queue_cells_free(f->cells);
    nzb_unref(f->nzb);
    mem_free(f->found_name);
    mem_free(f);
}

/* ---- single articles ---- */

static uint32_t *counter(struct queue_file *f, enum queue_article_state state)
{
    uint32_t *const counters[] = {&f->open, &f->leased, &f->waiting, &f->done, &f->failed};
    return counters[state];
}

void queue_article_set_state(struct queue_file *f, uint32_t index, enum queue_article_state to)
{
    enum queue_article_state from = f->state[index];
    uint64_t bit = UINT64_C(1) << (index % 64), *open = &f->open_bits[index / 64];
    uint32_t hint = f->nzb->bytes[f->posted->first + index];
    bool settled = from == QUEUE_DONE || from == QUEUE_FAILED;
    bool settles = to == QUEUE_DONE || to == QUEUE_FAILED;
    *open = to == QUEUE_OPEN ? *open | bit : *open & ~bit;
    f->state[index] = (uint8_t)to;
    --*counter(f, from);
    ++*counter(f, to);
    uint64_t *out = !settled             ? &f->left_bytes
                    : from == QUEUE_DONE ? &f->done_bytes
                                         : &f->failed_bytes;
    uint64_t *in = !settles ? &f->left_bytes : to == QUEUE_DONE ? &f->done_bytes : &f->failed_bytes;
    *out -= hint;
    *in += hint;
}

static uint64_t *tried_word(const struct queue_file *f, unsigned server, unsigned plane,
                            uint32_t index)
{
    return f->tried_bits + (size_t)words_of(f->count) * (server * 2 + plane) + index / 64;
}

void queue_article_set_tried(struct queue_file *f, uint32_t index, unsigned server,
                             enum queue_tried how)
{
    uint64_t bit = UINT64_C(1) << (index % 64);
    for (unsigned plane = 0; plane < 2; plane++) {
        uint64_t *word = tried_word(f, server, plane, index);
        *word = ((unsigned)how >> plane & 1) != 0 ? *word | bit : *word & ~bit;
    }
}

enum queue_tried queue_tried_on(const struct queue_file *f, uint32_t index, unsigned server)
{
    unsigned how = 0;
    for (unsigned plane = 0; plane < 2; plane++) {
        how |= (unsigned)(*tried_word(f, server, plane, index) >> (index % 64) & 1) << plane;
    }
    return (enum queue_tried)how;
}

void queue_article_forget_tried(struct queue *q, struct queue_file *f, uint32_t index)
{
    for (unsigned s = 0; s < q->server_count; s++) {
        queue_article_set_tried(f, index, s, QUEUE_UNTRIED);
    }
}

/* ---- counters ---- */

/* Adds the file's share `k` times; k is 1 or, wrapping, -1. */
static void tally(struct queue *q, const struct queue_file *f, uint64_t k)
{
    struct queue_job *j = f->job;
    uint32_t k32 = (uint32_t)k, ended = queue_file_ended(f), awaited = queue_file_awaited(f);
    bool par2 = queue_file_is_par2(f);
    j->left_bytes += k * f->left_bytes;
    if (f->paused || !f->wanted) {
        j->paused_bytes += k * f->left_bytes;
    }
    j->failed_bytes += k * f->failed_bytes;
    if (par2) {
        j->failed_par_bytes += k * f->failed_bytes;
        j->par_bytes += k * f->posted->bytes;
        j->left_par_files += k32 * !ended;
    } else if (f->kind == NZB_EXTRA) {
        j->failed_extra_bytes += k * f->failed_bytes;
        j->extra_bytes += k * f->posted->bytes;
    }
    j->done_articles += k32 * f->done;
    j->failed_articles += k32 * (f->failed + f->posted->missing);
    j->leased_articles += k32 * f->leased;
    j->waiting_articles += k32 * f->waiting;
    j->left_files += k32 * !ended;
    j->wanted_left += k32 * (awaited && !ended);
    j->wanted_unclosed += k32 * (awaited && !f->closed);
    if (j->place == QUEUE_ACTIVE) {
        q->left_bytes += k * f->left_bytes;
        q->forced_bytes += j->priority >= QUEUE_FORCE ? k * f->left_bytes : 0;
    }
}

void queue_tally_out(struct queue *q, const struct queue_file *f)
{
    tally(q, f, UINT64_MAX);
}

void queue_tally_in(struct queue *q, const struct queue_file *f)
{
    tally(q, f, 1);
}

/* ---- lanes ---- */

uint32_t queue_in_retention(const struct queue *q, const struct queue_file *f, int64_t now_at)
{
    uint32_t mask = 0;
    int64_t age = f->posted->date > 0 && now_at > f->posted->date ? now_at - f->posted->date : 0;
    for (unsigned s = 0; s < q->server_count; s++) {
        int64_t limit = (int64_t)q->servers[s].retention_days * 86400;
        mask |= (uint32_t)(limit == 0 || age <= limit) << s;
    }
    return mask;
}

/* The rule of pick.h for 64 articles at once. */
static void refresh_word(struct queue *q, struct queue_file *f, uint32_t w)
{
    uint64_t open = f->open_bits[w], rest = open, untried_anywhere = 0;
    uint64_t ready[QUEUE_LANES_MAX];
    size_t words = words_of(f->count);
    for (unsigned lane = 0; lane <= q->server_count; lane++) {
        ready[lane] = 0;
    }
    for (unsigned l = 0; l < q->level_count && open != 0; l++) {
        uint64_t kept = 0; /* articles that this level still has to be asked for */
        for (uint32_t left = q->levels[l].all & f->in_retention; left != 0; left &= left - 1) {
            unsigned s = (unsigned)__builtin_ctz(left);
            const uint64_t *tried = f->tried_bits + words * 2 * s + w;
            uint64_t untried = open & ~(tried[0] | tried[words]);
            bool firm = (q->levels[l].firm >> s & 1) != 0, down = q->servers[s].down;
            untried_anywhere |= firm || !down ? untried : 0;
            ready[s] = down ? 0 : untried & rest;
            kept |= firm && !down ? untried : 0;
        }
        rest &= ~kept;
    }
    ready[q->server_count] = open & ~untried_anywhere;
    for (unsigned lane = 0; lane <= q->server_count; lane++) {
        if (f->ready[lane].words[w] != ready[lane]) {
            bitset_put_word(&f->ready[lane], w, ready[lane]);
        }
    }
}

void queue_file_refresh(struct queue *q, struct queue_file *f)
{
    for (uint32_t w = 0; w < words_of(f->count); w++) {
        refresh_word(q, f, w);
    }
}

void queue_file_refresh_one(struct queue *q, struct queue_file *f, uint32_t index)
{
    refresh_word(q, f, index / 64);
    queue_file_show(q, f);
}

static void put(struct bitset *b, uint32_t i, bool on)
{
    if (bitset_has(b, i) != on) {
        (on ? bitset_set : bitset_clear)(b, i);
    }
}

void queue_file_show(struct queue *q, struct queue_file *f)
{
    bool may = f->wanted && !f->paused;
    for (unsigned lane = 0; lane <= q->server_count; lane++) {
        put(&f->job->ready[lane], f->position, may && !bitset_empty(&f->ready[lane]));
    }
    queue_job_show(q, f->job);
}

/* The queue's own holds are not in the lanes: pick looks at them, so that a global pause costs nothing. */
static bool may_run(const struct queue_job *j)
{
    bool in_state = j->life.state == QUEUE_QUEUED || j->life.state == QUEUE_DOWNLOADING;
    uint32_t holds = j->priority >= QUEUE_FORCE ? j->holds & ~QUEUE_FORCE_PASSES : j->holds;
    return in_state && holds == 0;
}

void queue_job_show(struct queue *q, struct queue_job *j)
{
    uint64_t shown = 0;
    bool may = j->file_count > 0 && may_run(j);
    for (unsigned lane = 0; lane <= q->server_count && may; lane++) {
        shown |= (uint64_t)!bitset_empty(&j->ready[lane]) << lane;
    }
    uint64_t changed = j->shown ^ shown;
    j->shown = shown;
    if (j->place != QUEUE_ACTIVE || q->adding) {
        return; /* not in the order, or not yet: queue_order_rebuild() shows it */
    }
    for (; changed != 0; changed &= changed - 1) {
        unsigned lane = (unsigned)__builtin_ctzll(changed);
        put(&q->ready[lane], j->rank, (shown >> lane & 1) != 0);
    }
}

void queue_article_change(struct queue *q, struct queue_file *f, uint32_t index,
                          enum queue_article_state to)
{
    queue_tally_out(q, f);
    queue_article_set_state(f, index, to);
    queue_tally_in(q, f);
    queue_file_refresh_one(q, f, index);
}

/* ---- facts that others find out ---- */

unsigned queue_fetch_class(uint8_t kind)
{
    return kind == NZB_PAR2_MAIN ? 0 : kind == NZB_PAR2_VOLUME ? 2 : 1;
}

/* The first fallback of the article, and how many it has. */
static uint32_t fallbacks_of(const struct queue_file *f, uint32_t index, uint32_t *count)
{
    const struct nzb *n = f->nzb;
    uint32_t article = f->posted->first + index, low = 0, high = n->fallback_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (n->fallbacks[middle].article < article) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *count = 0;
    while (low + *count < n->fallback_count && n->fallbacks[low + *count].article == article) {
        ++*count;
    }
    return low;
}

uint32_t queue_fallback_count(const struct queue_file *f, uint32_t index)
{
    uint32_t count;
    (void)fallbacks_of(f, index, &count);
    return count;
}

const char *queue_message_id(const struct queue_file *f, uint32_t index)
{
    uint32_t which = f->tries[index] >> QUEUE_FALLBACK_SHIFT, count;
    if (which == 0) {
        return nzb_id(f->nzb, f->posted->first + index);
    }
    return f->nzb->ids + f->nzb->fallbacks[fallbacks_of(f, index, &count) + which - 1].id_at;
}

int queue_file_identify(struct queue *q, struct queue_file *f, const char *name, enum nzb_kind kind,
                        uint32_t blocks)
{
    char clean[NAME_LEN_MAX + 1];
    char *copy = NULL;
    if (name != NULL) {
        name_clean(NAME_FILE, name, strlen(name), clean);
        copy = mem_strdup(clean);
        if (copy == NULL) {
            return -ENOMEM;
        }
    }
    queue_tally_out(q, f);
    if (copy != NULL) {
        mem_free(f->found_name);
        f->found_name = copy;
        f->name_confirmed = true;
    }
    if (kind == NZB_PAR2_VOLUME && f->kind != NZB_PAR2_VOLUME && f->done == 0) {
        f->wanted = false;
    } else if (kind != NZB_PAR2_VOLUME) {
        f->wanted = true;
    }
    f->kind = (uint8_t)kind;
    f->blocks = blocks;
    queue_tally_in(q, f);
    queue_file_show(q, f);
    queue_changed(q, f->job);
    return 0;
}

void queue_file_set_size(struct queue *q, struct queue_file *f, uint64_t size)
{
    f->size = size;
    q->changes++;
}

void queue_file_close(struct queue *q, struct queue_file *f)
{
    PRE(queue_file_ended(f));
    queue_tally_out(q, f);
    f->closed = true;
    queue_tally_in(q, f);
    queue_changed(q, f->job);
}

void queue_file_reset(struct queue *q, struct queue_file *f)
{
    PRE(f->leased == 0);
    queue_tally_out(q, f);
    for (uint32_t i = 0; i < f->count; i++) {
        queue_article_set_state(f, i, QUEUE_OPEN);
        queue_article_forget_tried(q, f, i);
        f->tries[i] = 0;
        f->part[i] = (struct queue_part){0};
    }
    f->closed = false;
    queue_damage_free(f);
    queue_tally_in(q, f);
    queue_file_refresh(q, f);
    queue_file_show(q, f);
    queue_waits_purge(q);
    queue_changed(q, f->job);
}
