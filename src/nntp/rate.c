#include "nntp/rate.h"

void nntp_rate_init(struct nntp_rate *r)
{
    atomic_init(&r->bytes_per_s, 0);
    atomic_init(&r->paid_us, 0);
}

void nntp_rate_set(struct nntp_rate *r, uint64_t bytes_per_s)
{
    atomic_store_explicit(&r->bytes_per_s, bytes_per_s, memory_order_relaxed);
}

uint64_t nntp_rate_get(const struct nntp_rate *r)
{
    return atomic_load_explicit(&r->bytes_per_s, memory_order_relaxed);
}

uint64_t nntp_rate_claim(struct nntp_rate *r, uint64_t now_us, uint64_t want)
{
    uint64_t rate = nntp_rate_get(r);
    uint64_t paid = atomic_load_explicit(&r->paid_us, memory_order_relaxed);
    for (;;) {
        uint64_t from = paid;
        if (now_us > from && now_us - from > NNTP_RATE_BURST_MS * 1000) {
            from = now_us - NNTP_RATE_BURST_MS * 1000;
        }
        if (rate == 0 || now_us <= from) {
            return 0;
        }
        /* At most 100 ms of it, so nothing wraps below 184 TB/s. */
        uint64_t bytes = rate * (now_us - from) / 1000000;
        bytes = bytes < want ? bytes : want;
        if (bytes == 0) {
            return 0;
        }
        /* Only the time that these bytes cost is paid; rounding is left for the next claim. */
        uint64_t until = from + bytes * 1000000 / rate;
        if (atomic_compare_exchange_weak_explicit(&r->paid_us, &paid, until, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            return bytes;
        }
    }
}
