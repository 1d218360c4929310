#include "base/sm.h"

#include <stdio.h>

#include "base/check.h"

static sm_trace_cb trace_cb;
static void *trace_arg;

static bool in_range(const struct sm *m, int state)
{
    return state >= 0 && state < m->type->count;
}

static void check_invariant(const struct sm *m, int prev)
{
    if (m->type->invariant != NULL && !m->type->invariant(m, prev)) {
        fprintf(stderr, "weir: %s %u: invariant broken in %s (from %s)\n", m->type->name, m->id,
                sm_name(m), prev >= 0 ? m->type->states[prev].name : "the start");
        IMPOSSIBLE("state machine invariant");
    }
}

void sm_init(struct sm *m, const struct sm_type *type, int state, unsigned id)
{
    PRE(type->count > 0 && type->count <= 64);
    *m = (struct sm){.type = type, .state = state, .id = id};
    PRE(in_range(m, state));
    check_invariant(m, -1);
}

bool sm_allows(const struct sm *m, int next)
{
    return in_range(m, next) && (m->type->states[m->state].next & SM_BIT(next)) != 0;
}

void sm_refusal(const struct sm *m, int next, char *buf, unsigned size)
{
    snprintf(buf, size, "%s %u: %s may not become %s", m->type->name, m->id, sm_name(m),
             in_range(m, next) ? m->type->states[next].name : "an unknown state");
}

void sm_move(struct sm *m, int next)
{
    if (!sm_allows(m, next)) {
        char text[160];
        sm_refusal(m, next, text, sizeof(text));
        fprintf(stderr, "weir: %s\n", text);
        IMPOSSIBLE("state machine edge");
    }
    int prev = m->state;
    m->state = next;
    if (trace_cb != NULL) {
        trace_cb(m, prev, trace_arg);
    }
    check_invariant(m, prev);
}

bool sm_terminal(const struct sm *m)
{
    return m->type->states[m->state].next == 0;
}

const char *sm_name(const struct sm *m)
{
    return m->type->states[m->state].name;
}

void sm_set_trace(sm_trace_cb cb, void *arg)
{
    trace_cb = cb;
    trace_arg = arg;
}
