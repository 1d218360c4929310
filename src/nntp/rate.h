/* rate.h - one speed limit for all pools: time turns into bytes that may be read, and each byte is handed out once.
 *
 * Any thread. A pool that has readers waiting claims what time has earned since the last claim of any pool; so a pool
 * without work takes nothing away from the others, and the sum is the limit whatever their number. What nobody claims
 * for NNTP_RATE_BURST_MS is gone, so that a pause is not followed by a burst. */
#ifndef NNTP_RATE_H
#define NNTP_RATE_H

#include <stdatomic.h>
#include <stdint.h>

enum { NNTP_RATE_BURST_MS = 100 };

struct nntp_rate {
    atomic_uint_fast64_t bytes_per_s; /* 0: no limit */
    atomic_uint_fast64_t paid_us;     /* everything earned up to here is handed out */
};

void nntp_rate_init(struct nntp_rate *r);
void nntp_rate_set(struct nntp_rate *r, uint64_t bytes_per_s);
/* 0: no limit. */
uint64_t nntp_rate_get(const struct nntp_rate *r);
/* Bytes that may be read for the time until now; at most `want`. Not to be called without a limit. */
uint64_t nntp_rate_claim(struct nntp_rate *r, uint64_t now_us, uint64_t want);

#endif
