#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static mem_gate_cb gate_cb;
static void *gate_arg;

static int allowed(size_t size)
{
    return gate_cb == NULL || gate_cb(size, gate_arg);
}

void mem_set_gate(mem_gate_cb gate, void *arg)
{
    gate_cb = gate;
    gate_arg = arg;
}

void *mem_alloc(size_t size)
{
    return allowed(size) ? malloc(size > 0 ? size : 1) : NULL;
}

void *mem_zalloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || !allowed(bytes)) {
        return NULL;
    }
    return calloc(1, bytes > 0 ? bytes : 1);
}

void *mem_realloc(void *p, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || !allowed(bytes)) {
        return NULL;
    }
    return realloc(p, bytes > 0 ? bytes : 1);
}

void *mem_aligned(size_t align, size_t size)
{
    void *p = NULL;
    if (!allowed(size) || posix_memalign(&p, align, size > 0 ? size : 1) != 0) {
        return NULL;
    }
    return p;
}

char *mem_strndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = mem_alloc(len + 1);
    if (copy != NULL) {
        memcpy(copy, s, len);
        copy[len] = '\0';
    }
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

void mem_free(void *p)
{
    free(p);
}
