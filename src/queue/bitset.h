/* bitset.h - a set of small numbers that finds its next member in a few steps, however large it is.
 *
 * A tree of 64-way words: bit i of level 0 is member i, bit i of level k + 1 says whether word i of level k has any
 * bit. Four levels hold 16 million members, so set, clear and next touch at most that many words each. The memory is
 * the caller's (bitset_words() of it, zeroed), so that a file's sets lie in one block. */
#ifndef QUEUE_BITSET_H
#define QUEUE_BITSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BITSET_NONE UINT32_MAX

struct bitset {
    uint64_t *words; /* level 0 first */
    uint32_t size;   /* members are 0 .. size - 1 */
    uint32_t top;    /* the one word of the highest level: 0 when the set is empty */
};

size_t bitset_words(uint32_t size); /* uint64_t's that a set of this size needs, all levels */
void bitset_init(struct bitset *b, uint64_t *zeroed, uint32_t size);
void bitset_set(struct bitset *b, uint32_t i);
void bitset_clear(struct bitset *b, uint32_t i);
/* Replaces word `w` of level 0 and keeps the tree true. Bits at and above size must be 0. */
void bitset_put_word(struct bitset *b, uint32_t w, uint64_t bits);
uint32_t bitset_next(const struct bitset *b,
                     uint32_t from); /* the first member >= from, or BITSET_NONE */

static inline bool bitset_has(const struct bitset *b, uint32_t i)
{
    return (b->words[i / 64] >> (i % 64) & 1) != 0;
}
static inline bool bitset_empty(const struct bitset *b)
{
    return b->size == 0 || b->words[b->top] == 0;
}

#endif
