/* arena.c - memory that lives and dies with one configuration. It holds passwords, so it is wiped. */
#include <stdalign.h>
#include <stdarg.h>
#include <string.h>

#include "base/mem.h"
#include "config/private.h"

enum { BLOCK = 16384 };

struct arena_block {
    struct arena_block *next;
    size_t size;
    alignas(max_align_t) char bytes[];
};

static void *take(struct arena *a, size_t size)
{
    size_t need = 0;
    if (a->failed || __builtin_add_overflow(size, alignof(max_align_t) - 1, &need)) {
        a->failed = true;
        return NULL;
    }
    need &= ~(alignof(max_align_t) - 1);
    if (a->blocks == NULL || a->blocks->size - a->used < need) {
        size_t room = need > BLOCK ? need : BLOCK;
        struct arena_block *b = mem_zalloc(1, sizeof(*b) + room);
        if (b == NULL) {
            a->failed = true;
            return NULL;
        }
        b->next = a->blocks;
        b->size = room;
        a->blocks = b;
        a->used = 0;
    }
    void *p = a->blocks->bytes + a->used;
    a->used += need;
    return p;
}

void *arena_alloc(struct arena *a, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        a->failed = true;
        return NULL;
    }
    return take(a, total);
}

const char *arena_strn(struct arena *a, const char *s, size_t len)
{
    char *p = take(a, len + 1);
    if (p == NULL) {
        return "";
    }
    memcpy(p, s, len);
    p[len] = '\0';
    return p;
}

const char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *p = n >= 0 ? take(a, (size_t)n + 1) : NULL;
    if (p != NULL) {
        vsnprintf(p, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    return p != NULL ? p : "";
}

void arena_free(struct arena *a)
{
    while (a->blocks != NULL) {
        struct arena_block *b = a->blocks;
        a->blocks = b->next;
        explicit_bzero(b->bytes, b->size);
        mem_free(b);
    }
}
