/* save_files.c - the files of a job and the progress of their articles, as JSON. docs/STATE-FORMAT.md has the fields.
 *
 * What goes without saying is left out: a file nobody touched is its place in the NZB. Bit maps, checksums and the rare
 * part that is not where the rule puts it are base64 of little-endian numbers. */
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "queue/b64.h"
#include "queue/pick.h"
#include "queue/saved.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "numbers are saved as they lie in memory");
_Static_assert(sizeof(struct saved_odd) == 16, "as saved");

/* ---- small writers ---- */

/* With a comma in front, unless it is the first member. */
static void put_key(struct text *t, const char *key)
{
    bool first = t->len > 0 && t->at[t->len - 1] == '{';
    text_put(t, first ? "\"" : ",\"", first ? 1 : 2);
    text_put(t, key, strlen(key));
    text_put(t, "\":", 2);
}

static void put_number(struct text *t, const char *key, uint64_t v)
{
    char digits[20];
    size_t at = sizeof(digits);
    put_key(t, key);
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    text_put(t, digits + at, sizeof(digits) - at);
}

static void put_bytes(struct text *t, const char *key, const void *bytes, size_t n)
{
    put_key(t, key);
    text_put(t, "\"", 1);
    char *to = text_extend(t, b64_encoded_len(n));
    if (to != NULL) {
        b64_encode(bytes, n, to);
    }
    text_put(t, "\"", 1);
}

static void put_string(struct text *t, const char *key, const char *s)
{
    struct jsonw w;
    put_key(t, key);
    jsonw_init(&w, text_write_cb, t);
    jsonw_str(&w, s);
    jsonw_finish(&w);
}

/* ---- articles ---- */

/* The articles in `state` as bits. */
static void put_state_bits(const struct queue_file *f, enum queue_article_state state,
                           const char *key, uint8_t *scratch, struct text *t)
{
    size_t n = (f->count + 7) / 8;
    memset(scratch, 0, n);
    for (uint32_t i = 0; i < f->count; i++) {
        scratch[i / 8] |= (uint8_t)((f->state[i] == state) << (i % 8));
    }
    put_bytes(t, key, scratch, n);
}

/* The size most parts have: that of the first whose place agrees with it. 0: no rule. */
static uint32_t rule_of(const struct queue_file *f)
{
    const uint32_t *number = f->nzb->number + f->posted->first;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct queue_part *p = &f->part[i];
        uint32_t before = number[i] - 1;
        if (p->size > 0 && before > 0 && p->offset % before == 0 &&
            p->offset / before <= UINT32_MAX && p->offset / before >= p->size) {
            return (uint32_t)(p->offset / before); /* also the last, shorter part tells it */
        }
    }
    return f->part[0].size;
}

static void put_parts(const struct queue_file *f, uint8_t *scratch, struct text *t)
{
    const uint32_t *number = f->nzb->number + f->posted->first;
    uint32_t rule = rule_of(f), crcs = 0, odds = 0;
    uint32_t *crc = (uint32_t *)(void *)scratch;
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->state[i] == QUEUE_DONE) {
            crc[crcs++] = f->part[i].crc32;
        }
    }
    put_number(t, "part", rule);
    put_bytes(t, "crc", crc, crcs * sizeof(*crc));
    struct saved_odd *odd = (struct saved_odd *)(void *)scratch;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct queue_part *p = &f->part[i];
        uint64_t place = (uint64_t)(number[i] - 1) * rule;
        bool regular = f->state[i] == QUEUE_DONE && p->size == rule && p->offset == place;
        if (p->size > 0 && !regular) {
            odd[odds++] = (struct saved_odd){i, p->size, p->offset};
        }
    }
    if (odds > 0) {
        put_bytes(t, "odd", odd, odds * sizeof(*odd));
    }
}

/* Attempts, grace rounds and fallbacks of the few articles that have any: index and value, 32 bits each. */
static void put_tries(const struct queue_file *f, uint8_t *scratch, struct text *t)
{
    uint32_t *pair = (uint32_t *)(void *)scratch, n = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->tries[i] != 0) {
            pair[n * 2] = i;
            pair[n * 2 + 1] = f->tries[i];
            n++;
        }
    }
    if (n > 0) {
        put_bytes(t, "tries", pair, n * 2 * sizeof(*pair));
    }
}

static bool any(const uint64_t *words, size_t n)
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++) {
        all |= words[i];
    }
    return all != 0;
}

static void put_tried(const struct queue *q, const struct queue_file *f, struct text *t)
{
    size_t words = (f->count + 63) / 64;
    bool first = true;
    for (unsigned s = 0; s < q->server_count; s++) {
        const uint64_t *planes = f->tried_bits + words * 2 * s;
        if (!any(planes, words * 2)) {
            continue;
        }
        if (first) {
            put_key(t, "tried");
        }
        text_put(t, first ? "[{" : ",{", 2);
        first = false;
        put_number(t, "server", q->servers[s].id);
        put_bytes(t, "bits", planes, words * 2 * sizeof(*planes));
        text_put(t, "}", 1);
    }
    text_put(t, "]", first ? 0 : 1);
}

/* ---- files ---- */

static uint32_t source_of(const struct queue_job *j, const struct queue_file *f)
{
    uint32_t s = 0;
    while (s + 1 < j->source_count && j->sources[s].nzb != f->nzb) {
        s++;
    }
    return s;
}

static void put_file(const struct queue *q, const struct queue_job *j, const struct queue_file *f,
                     uint8_t *scratch, struct text *t)
{
    text_put(t, "{", 1);
    put_number(t, "of", (uint64_t)(f->posted - f->nzb->files));
    put_number(t, "id", f->id);
    uint32_t source = source_of(j, f);
    if (source > 0) {
        put_number(t, "source", source);
    }
    if (f->kind != f->posted->kind) {
        put_number(t, "kind", f->kind);
    }
    if (f->blocks != f->posted->blocks) {
        put_number(t, "blocks", f->blocks);
    }
    const struct {
        const char *key;
        bool on;
    } flags[] = {{"paused", f->paused},
                 {"wanted", f->wanted},
                 {"confirmed", f->name_confirmed},
                 {"closed", f->closed}};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (flags[i].on) {
            put_number(t, flags[i].key, 1);
        }
    }
    if (f->found_name != NULL) {
        put_string(t, "name", f->found_name);
    }
    if (f->size > 0) {
        put_number(t, "size", f->size);
    }
    if (f->done == f->count) {
        put_number(t, "all", 1);
    } else if (f->done > 0) {
        put_state_bits(f, QUEUE_DONE, "done", scratch, t);
    }
    if (f->failed > 0) {
        put_state_bits(f, QUEUE_FAILED, "failed", scratch, t);
    }
    if (f->done + f->failed > 0) {
        put_parts(f, scratch, t);
    }
    put_tries(f, scratch, t);
    put_tried(q, f, t);
    text_put(t, "}", 1);
}

void saved_put_files(const struct queue *q, const struct queue_job *j, struct text *t)
{
    uint32_t largest = 1;
    for (uint32_t i = 0; i < j->file_count; i++) {
        largest = j->files[i]->count > largest ? j->files[i]->count : largest;
    }
    uint8_t *scratch = mem_alloc((size_t)largest * sizeof(struct saved_odd));
    if (scratch == NULL) {
        t->failed = true;
        return;
    }
    text_put(t, "[", 1);
    for (uint32_t i = 0; i < j->file_count; i++) {
        text_put(t, ",", i > 0 ? 1 : 0);
        put_file(q, j, j->files[i], scratch, t);
    }
    text_put(t, "]", 1);
    mem_free(scratch);
}
