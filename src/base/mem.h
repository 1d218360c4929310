/* mem.h - the one door to the heap.
 *
 * Every allocation of Weir goes through here, so that a test can make the k-th one fail (tests/lib/fault.h)
 * and count those of a path that must make none. The hook is process-wide and set before threads start.
 * Memory from here is freed with mem_free(). Sizes are checked: count * size never wraps. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size); /* not cleared; NULL when there is none; size 0 is fine */
void *mem_zalloc(size_t count, size_t size);           /* cleared */
void *mem_realloc(void *p, size_t count, size_t size); /* on NULL, `p` is untouched */
void *mem_aligned(size_t align, size_t size);          /* align: a power of two */
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);
void mem_free(void *p);

/* Asked before each allocation; false makes it fail. NULL (the default) allows all. */
typedef int (*mem_gate_cb)(size_t size, void *arg);
void mem_set_gate(mem_gate_cb gate, void *arg);

#endif
