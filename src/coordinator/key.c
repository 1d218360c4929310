/* key.c - idempotency keys of clients: the same key within a day means the same job.
 *
 * A ring, since all keys live equally long, with a hash table of heads over it. A full ring forgets its oldest. Keys
 * survive a restart as a parameter of their job. */
#include <string.h>

#include "coordinator/core.h"

const char coord_key_param[] = "*Weir:Key";

/* FNV-1a */
static uint64_t hash_of(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s != '\0'; s++) {
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    }
    return h;
}

static void drop_first(struct coord *c)
{
    struct key *k = &c->keys[c->key_first];
    uint32_t *link = &c->key_bucket[k->hash % KEY_BUCKETS];
    while (*link != c->key_first + 1) {
        link = &c->keys[*link - 1].next;
    }
    *link = k->next;
    c->key_first = (c->key_first + 1) % KEYS_MAX;
    c->key_count--;
}

uint32_t coord_key_find(struct coord *c, const char *text)
{
    int64_t now = coord_now_at(c);
    uint64_t h = hash_of(text);
    for (uint32_t at = c->key_bucket[h % KEY_BUCKETS]; at != 0; at = c->keys[at - 1].next) {
        const struct key *k = &c->keys[at - 1];
        /* A clock that was set back keeps a key longer, but not for ever. */
        bool alive = now < k->until_at && now >= k->until_at - 2 * COORD_KEY_SEC;
        if (k->hash == h && alive && k->job_id != 0 && strcmp(k->text, text) == 0) {
            return k->job_id;
        }
    }
    return 0;
}

void coord_key_put(struct coord *c, const char *text, uint32_t job_id, int64_t until_at)
{
    if (strlen(text) >= KEY_MAX || until_at <= coord_now_at(c)) {
        return;
    }
    while (c->key_count > 0 &&
           (c->key_count == KEYS_MAX || c->keys[c->key_first].until_at <= coord_now_at(c))) {
        drop_first(c);
    }
    uint32_t at = (c->key_first + c->key_count++) % KEYS_MAX;
    struct key *k = &c->keys[at];
    *k = (struct key){.hash = hash_of(text), .until_at = until_at, .job_id = job_id};
    memcpy(k->text, text, strlen(text) + 1);
    uint32_t *bucket = &c->key_bucket[k->hash % KEY_BUCKETS];
    k->next = *bucket;
    *bucket = at + 1;
}

void coord_key_forget(struct coord *c, uint32_t job_id)
{
    for (uint32_t i = 0; i < c->key_count; i++) {
        struct key *k = &c->keys[(c->key_first + i) % KEYS_MAX];
        if (k->job_id == job_id) {
            k->job_id = 0;
        }
    }
}
