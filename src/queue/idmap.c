#include "queue/idmap.h"

#include <errno.h>

#include "base/check.h"
#include "base/mem.h"

struct slot {
    void *value;
    uint32_t id; /* 0: free */
};

struct idmap {
    struct slot *slots;
    uint32_t mask; /* slots - 1; a power of two of them */
    uint32_t count;
};

enum { FIRST_SLOTS = 64 };

struct idmap *idmap_new(void)
{
    struct idmap *m = mem_zalloc(1, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }
    m->slots = mem_zalloc(FIRST_SLOTS, sizeof(*m->slots));
    m->mask = FIRST_SLOTS - 1;
    if (m->slots == NULL) {
        mem_free(m);
        return NULL;
    }
    return m;
}

void idmap_free(struct idmap *m)
{
    if (m != NULL) {
        mem_free(m->slots);
        mem_free(m);
    }
}

/* The slot that has `id`, or the free one where it belongs. */
static uint32_t find(const struct idmap *m, uint32_t id)
{
    uint32_t i = id & m->mask;
    while (m->slots[i].id != 0 && m->slots[i].id != id) {
        i = (i + 1) & m->mask;
    }
    return i;
}

void *idmap_get(const struct idmap *m, uint32_t id)
{
    return id == 0 ? NULL : m->slots[find(m, id)].value;
}

int idmap_reserve(struct idmap *m, uint32_t more)
{
    uint64_t want = ((uint64_t)m->count + more) * 2, size = (uint64_t)m->mask + 1;
    if (size >= want) {
        return 0;
    }
    while (size < want) {
        size *= 2;
    }
    if (size > UINT32_C(1) << 31) {
        return -ENOMEM;
    }
    struct idmap bigger = {.mask = (uint32_t)(size - 1)};
    bigger.slots = mem_zalloc((size_t)size, sizeof(*bigger.slots));
    if (bigger.slots == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i <= m->mask; i++) {
        if (m->slots[i].id != 0) {
            idmap_put(&bigger, m->slots[i].id, m->slots[i].value);
        }
    }
    mem_free(m->slots);
    *m = bigger;
    return 0;
}

void idmap_put(struct idmap *m, uint32_t id, void *value)
{
    PRE(id != 0 && m->count <= m->mask / 2);
    uint32_t i = find(m, id);
    PRE(m->slots[i].id == 0);
    m->slots[i] = (struct slot){value, id};
    m->count++;
}

void idmap_remove(struct idmap *m, uint32_t id)
{
    uint32_t hole = find(m, id);
    PRE(id != 0 && m->slots[hole].id == id);
    m->count--;
    for (uint32_t i = (hole + 1) & m->mask; m->slots[i].id != 0; i = (i + 1) & m->mask) {
        /* An entry may fill the hole unless its own place lies between the hole and where it is. */
        uint32_t home = m->slots[i].id & m->mask;
        if (((i - home) & m->mask) >= ((i - hole) & m->mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole] = (struct slot){0};
}

size_t idmap_heap_bytes(const struct idmap *m)
{
    return sizeof(*m) + ((size_t)m->mask + 1) * sizeof(*m->slots);
}
