/* table.c - the blocks that are looked for, by CRC-32. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/mem.h"
#include "par2/internal.h"

enum { FILTER_SMALL = 1 << 16, FILTER_LARGE = 1 << 20, SMALL_MAX = 2048 };

struct wanted {
    const uint8_t *sums;
    uint32_t block;
};

static int by_sums(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    int order = memcmp(x->sums, y->sums, 16);
    return order != 0 ? order : (x->block > y->block) - (x->block < y->block);
}

/* Those not found, one of each content, in `list`. */
static size_t gather(const struct par2_set *s, struct wanted *list)
{
    size_t n = 0, kept = 0;
    for (uint32_t b = 0; b < s->block_count; b++) {
        if (s->blocks[b].source == NOWHERE && s->blocks[b].verifiable) {
            list[n++] = (struct wanted){s->blocks[b].sums, b};
        }
    }
    if (n > 1) {
        qsort(list, n, sizeof(*list), by_sums);
    }
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || memcmp(list[kept - 1].sums, list[i].sums, 16) != 0) {
            list[kept++] = list[i];
        }
    }
    return kept;
}

static void insert(struct table *t, uint32_t block, uint32_t crc)
{
    uint32_t *head = &t->heads[crc & t->mask];
    t->crcs[block] = crc;
    t->next[block] = *head;
    *head = block + 1;
    uint32_t bit = crc & t->filter_mask;
    t->filter[bit / 64] |= 1ull << bit % 64;
}

int par2_table_init(struct table *t, const struct par2_set *s)
{
    struct wanted *list = mem_alloc(((size_t)s->block_count + 1) * sizeof(*list));
    *t = (struct table){.entries = 0};
    if (list == NULL) {
        return -ENOMEM;
    }
    t->entries = gather(s, list);
    uint32_t size = 16;
    while (size < 2 * t->entries) {
        size *= 2;
    }
    uint32_t bits = t->entries <= SMALL_MAX ? FILTER_SMALL : FILTER_LARGE;
    t->mask = size - 1;
    t->filter_mask = bits - 1;
    t->heads = mem_zalloc(size, sizeof(uint32_t));
    t->next = mem_zalloc((size_t)s->block_count + 1, sizeof(uint32_t));
    t->crcs = mem_zalloc((size_t)s->block_count + 1, sizeof(uint32_t));
    t->filter = mem_zalloc(bits / 64, sizeof(uint64_t));
    int rv =
        t->heads == NULL || t->next == NULL || t->crcs == NULL || t->filter == NULL ? -ENOMEM : 0;
    uint32_t zeros = crc32_zeros(0, s->packets->block_size);
    for (size_t i = t->entries; i > 0 && rv == 0; i--) {
        insert(t, list[i - 1].block, par2_get32(list[i - 1].sums + 16) ^ zeros);
    }
    mem_free(list);
    return rv;
}

void par2_table_free(struct table *t)
{
    mem_free(t->heads);
    mem_free(t->next);
    mem_free(t->crcs);
    mem_free(t->filter);
}
