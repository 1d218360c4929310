/* sm.h - state machines as tables.
 *
 *     IDLE -> DIAL -> READY      any -> CLOSED
 *     #define S(id, next_) [C_##id] = {.name = #id, .next = (next_)}
 *     static const struct sm_state states[C_NR] = {
 *         S(IDLE, SM_BIT(C_DIAL) | SM_BIT(C_CLOSED)), ... };
 *
 * The diagram stands above the table, the invariant beside it. sm_move() is the only way from one state to
 * another: an edge that is not in the table is a bug and aborts with both names; where a move comes from outside
 * (a command, a record) the caller asks sm_allows() first and refuses in words. sm_move() is also the one trace
 * point, so that a debug log reads as the diagram. At most 64 states. */
#ifndef BASE_SM_H
#define BASE_SM_H

#include <stdbool.h>
#include <stdint.h>

#define SM_BIT(state) (UINT64_C(1) << (state))

struct sm_state {
    const char *name;
    uint64_t next; /* SM_BIT of every state that may follow; 0: terminal */
};

struct sm;
typedef bool (*sm_invariant_cb)(const struct sm *m, int prev);

struct sm_type {
    const char *name; /* for messages: "conn", "job" */
    const struct sm_state *states;
    int count;
    sm_invariant_cb invariant; /* runs after init (prev == -1) and after every move; may be NULL */
};

struct sm {
    const struct sm_type *type;
    int state;
    unsigned id; /* which one, in traces: a job or connection number */
};

typedef void (*sm_trace_cb)(const struct sm *m, int prev, void *arg);

void sm_init(struct sm *m, const struct sm_type *type, int state, unsigned id);
bool sm_allows(const struct sm *m, int next);
void sm_move(struct sm *m, int next);
bool sm_terminal(const struct sm *m);
const char *sm_name(const struct sm *m);
/* "job 7: QUEUED may not become CLEANED", for refusals. */
void sm_refusal(const struct sm *m, int next, char *buf, unsigned size);
/* Process-wide, set before threads start; called on the thread that moves. */
void sm_set_trace(sm_trace_cb cb, void *arg);

#endif
