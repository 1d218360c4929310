/* guard.h - memory whose last byte is the last one before a page that must not be touched, and whose first is the
 * first behind one if the size is whole pages. */
#ifndef TESTS_GUARD_H
#define TESTS_GUARD_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct guard {
    uint8_t *map;
    size_t map_size;
    uint8_t *end; /* the guard page behind */
};

static inline void guard_init(struct guard *g, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (size + page - 1) / page * page;
    g->map_size = room + 2 * page;
    g->map = mmap(NULL, g->map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g->map == MAP_FAILED || mprotect(g->map, page, PROT_NONE) != 0 ||
        mprotect(g->map + page + room, page, PROT_NONE) != 0) {
        abort();
    }
    g->end = g->map + page + room;
}

static inline void guard_close(struct guard *g)
{
    munmap(g->map, g->map_size);
}

#endif
