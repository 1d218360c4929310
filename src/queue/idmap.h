/* idmap.h - from a positive number to a pointer, in O(1).
 *
 * Open addressing with linear probing; at most half full; a removed entry is closed by moving its followers back, so
 * there are no tombstones and lookups stay short for ever. Ids are handed out one after another, so the low bits alone
 * spread them evenly. Owned by the queue's thread. */
#ifndef QUEUE_IDMAP_H
#define QUEUE_IDMAP_H

#include <stddef.h>
#include <stdint.h>

struct idmap;

struct idmap *idmap_new(void);
void idmap_free(struct idmap *m); /* NULL is fine; what it points to is not touched */
void *idmap_get(const struct idmap *m, uint32_t id);
/* Room for `more` further ids, so that as many idmap_put() cannot fail. -ENOMEM. */
int idmap_reserve(struct idmap *m, uint32_t more);
void idmap_put(struct idmap *m, uint32_t id,
               void *value); /* id not 0, not there yet, room reserved */
void idmap_remove(struct idmap *m, uint32_t id);
size_t idmap_heap_bytes(const struct idmap *m);

#endif
