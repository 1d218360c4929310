/* rng.h - random numbers for tests: one seed, one run. */
#ifndef TESTS_RNG_H
#define TESTS_RNG_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct rng {
    uint64_t state;
};

static inline void rng_init(struct rng *r, uint64_t seed)
{
    r->state = seed;
}

/* splitmix64: any seed is a good one, neighbouring seeds give unlike runs. */
static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
    return rng_next(r) % n;
}

/* TEST_SEED, else `usual`; printed, so that a failure can be run again. */
static inline uint64_t rng_seed(uint64_t usual)
{
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : usual;
    printf("TEST_SEED=%" PRIu64 "\n", seed);
    return seed;
}

#endif
