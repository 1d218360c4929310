#include "lib/fault.h"

#include <stdatomic.h>

#include "base/mem.h"

static atomic_uint count;
static unsigned fail_at;

static int gate(size_t size, void *arg)
{
    (void)size;
    (void)arg;
    return atomic_fetch_add(&count, 1) + 1 != fail_at;
}

void fault_arm(unsigned k)
{
    fail_at = k;
    atomic_store(&count, 0);
    mem_set_gate(gate, NULL);
}

bool fault_fired(void)
{
    return fail_at != 0 && atomic_load(&count) >= fail_at;
}

unsigned fault_count(void)
{
    return atomic_load(&count);
}

void fault_disarm(void)
{
    mem_set_gate(NULL, NULL);
}
