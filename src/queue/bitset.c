#include "queue/bitset.h"

#include "base/check.h"

static uint32_t words_of(uint32_t bits)
{
    return bits / 64 + (bits % 64 != 0);
}

size_t bitset_words(uint32_t size)
{
    size_t total = 0;
    uint32_t level = size;
    do {
        level = words_of(level);
        total += level;
    } while (level > 1);
    return total;
}

void bitset_init(struct bitset *b, uint64_t *zeroed, uint32_t size)
{
    b->words = zeroed;
    b->size = size;
    b->top = size > 0 ? (uint32_t)bitset_words(size) - 1 : 0;
}

void bitset_put_word(struct bitset *b, uint32_t w, uint64_t bits)
{
    uint64_t *level = b->words;
    uint32_t level_words = words_of(b->size);
    PRE(w < level_words);
    for (;;) {
        bool had = level[w] != 0;
        level[w] = bits;
        if (had == (bits != 0) || level_words == 1) {
            return; /* what the level above says of this word is still true */
        }
        level += level_words;
        level_words = words_of(level_words);
        uint64_t bit = UINT64_C(1) << (w % 64);
        w /= 64;
        bits = had ? level[w] & ~bit : level[w] | bit;
    }
}

void bitset_set(struct bitset *b, uint32_t i)
{
    PRE(i < b->size);
    bitset_put_word(b, i / 64, b->words[i / 64] | UINT64_C(1) << (i % 64));
}

void bitset_clear(struct bitset *b, uint32_t i)
{
    PRE(i < b->size);
    bitset_put_word(b, i / 64, b->words[i / 64] & ~(UINT64_C(1) << (i % 64)));
}

/* Where level k begins: all levels below it come first. */
static const uint64_t *level_at(const struct bitset *b, unsigned k, uint32_t *level_words)
{
    const uint64_t *level = b->words;
    uint32_t n = words_of(b->size);
    for (; k > 0; k--) {
        level += n;
        n = words_of(n);
    }
    *level_words = n;
    return level;
}

uint32_t bitset_next(const struct bitset *b, uint32_t from)
{
    if (from >= b->size) {
        return BITSET_NONE;
    }
    /* Upwards until a word has a bit at or behind `at`, then down again along the first bits. */
    uint64_t at = from;
    for (unsigned k = 0;; k++) {
        uint32_t n;
        const uint64_t *level = level_at(b, k, &n);
        if (at / 64 >= n) {
            return BITSET_NONE;
        }
        uint64_t rest = level[at / 64] & (UINT64_MAX << (at % 64));
        if (rest == 0 && n == 1) {
            return BITSET_NONE; /* there is no level above */
        }
        if (rest == 0) {
            at = at / 64 + 1;
            continue;
        }
        at = at / 64 * 64 + (unsigned)__builtin_ctzll(rest);
        while (k-- > 0) {
            level = level_at(b, k, &n);
            at = at * 64 + (unsigned)__builtin_ctzll(level[at]);
        }
        return (uint32_t)at;
    }
}
