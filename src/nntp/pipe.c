#include "nntp/pipe.h"

enum {
    STRIKES_UNPROVEN = 2, /* a server that never answered a pipelined command */
    STRIKES_PROVEN = 4,
    TOGETHER_US = 1000000,
};

void nntp_pipe_init(struct nntp_pipe *p)
{
    *p = (struct nntp_pipe){.trip_us = UINT64_MAX};
}

void nntp_pipe_first_byte(struct nntp_pipe *p, uint64_t sent_us, uint64_t now_us)
{
    uint64_t trip = now_us > sent_us ? now_us - sent_us : 1;
    if (trip < p->trip_us) {
        p->trip_us = trip;
    }
}

void nntp_pipe_complete(struct nntp_pipe *p, uint64_t sent_us, uint64_t now_us)
{
    /* Time in which nothing was asked does not count. */
    uint64_t since = p->last_us > sent_us ? p->last_us : sent_us;
    uint64_t interval = now_us > since ? now_us - since : 1;
    p->last_us = now_us;
    p->interval_us = p->interval_us == 0 ? interval : (p->interval_us + interval + 1) / 2;
}

unsigned nntp_pipe_depth(const struct nntp_pipe *p, const struct nntp_pipe_memory *m, unsigned max)
{
    if (m->off || max <= 1) {
        return 1;
    }
    if (!m->proven || p->interval_us == 0 || p->trip_us == UINT64_MAX) {
        return 2;
    }
    uint64_t depth = 1 + (2 * p->trip_us + p->interval_us - 1) / p->interval_us;
    return depth < 2 ? 2 : depth > max ? max : (unsigned)depth;
}

void nntp_pipe_good(struct nntp_pipe_memory *m)
{
    if (m->good < NNTP_PIPE_PROOF) {
        m->good++;
    } else {
        m->proven = true;
        m->strikes = 0;
    }
}

bool nntp_pipe_strike(struct nntp_pipe_memory *m, uint64_t now_us)
{
    if (m->off || (m->strikes > 0 && now_us - m->strike_us < TOGETHER_US)) {
        return false;
    }
    m->strike_us = now_us;
    m->good = 0;
    m->strikes++;
    m->off = m->strikes >= (m->proven ? STRIKES_PROVEN : STRIKES_UNPROVEN);
    return m->off;
}
