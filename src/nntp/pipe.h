/* pipe.h - how many commands one connection should have under way, and whether its server can bear more than one.
 *
 * Pure; times are handed in. The depth follows from two numbers that are measured anyway: the shortest time from a
 * command to the first byte of its reply (an upper bound of the round trip), and the mean time between two complete
 * replies. While the line is not full, more depth makes that interval shorter, which asks for more depth, doubling it
 * about once per round trip; when it is full, the interval stays and so does the depth, at twice what the line holds.
 * On a short line that is 2: one arriving, one waiting at the server. */
#ifndef NNTP_PIPE_H
#define NNTP_PIPE_H

#include <stdbool.h>
#include <stdint.h>

/* One per connection. */
struct nntp_pipe {
    uint64_t trip_us;     /* shortest command to first byte; UINT64_MAX: not known */
    uint64_t interval_us; /* between complete replies, smoothed; 0: not known */
    uint64_t last_us;     /* when the last reply was complete */
};

/* One per server and pool: what its connections learned. */
struct nntp_pipe_memory {
    unsigned good; /* replies to pipelined commands, since the last strike */
    unsigned
        strikes; /* sessions in a row that broke with pipelined commands under way and none answered since */
    uint64_t strike_us;
    bool proven; /* pipelined commands were answered at least NNTP_PIPE_PROOF times */
    bool off;    /* it mishandles pipelining */
};

enum { NNTP_PIPE_PROOF = 8 };

void nntp_pipe_init(struct nntp_pipe *p);
void nntp_pipe_first_byte(struct nntp_pipe *p, uint64_t sent_us, uint64_t now_us);
void nntp_pipe_complete(struct nntp_pipe *p, uint64_t sent_us, uint64_t now_us);
/* From 1 (pipelining is off, or `max` is 1) to `max`. */
unsigned nntp_pipe_depth(const struct nntp_pipe *p, const struct nntp_pipe_memory *m, unsigned max);

void nntp_pipe_good(struct nntp_pipe_memory *m);
/* A session broke with pipelined commands under way. True: that was the last straw, pipelining is off now. Sessions
 * that break together (a server that restarts) count once. */
bool nntp_pipe_strike(struct nntp_pipe_memory *m, uint64_t now_us);

#endif
