/* nzb_key.c - the content identity of an NZB: the hash of its message-ids, in whatever order they were listed.
 *
 * The ids are sorted with a three-way radix quicksort (Bentley and Sedgewick 1997): each byte of an id is looked at
 * about once, also when a poster gives all ids the same long beginning. */
#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/mem.h"
#include "queue/nzb.h"

struct sorter {
    const char *ids;
    uint32_t *at; /* where each id begins */
};

static unsigned char byte_of(const struct sorter *s, uint32_t i, uint32_t depth)
{
    return (unsigned char)s->ids[s->at[i] + depth];
}

static void swap(struct sorter *s, uint32_t i, uint32_t j)
{
    uint32_t t = s->at[i];
    s->at[i] = s->at[j];
    s->at[j] = t;
}

/* Few: by comparison. */
static void insertion(struct sorter *s, uint32_t from, uint32_t to, uint32_t depth)
{
    for (uint32_t i = from + 1; i < to; i++) {
        uint32_t v = s->at[i], j = i;
        for (; j > from && strcmp(s->ids + s->at[j - 1] + depth, s->ids + v + depth) > 0; j--) {
            s->at[j] = s->at[j - 1];
        }
        s->at[j] = v;
    }
}

static unsigned char median(unsigned char a, unsigned char b, unsigned char c)
{
    if (a < b) {
        return b < c ? b : a < c ? c : a;
    }
    return a < c ? a : b < c ? c : b;
}

/* Sorts [from, to), whose ids agree in the first `depth` bytes. Recursion is as deep as an id is long times the
 * number of byte values at worst, 248 * 8 in practice; the largest part is done in the loop. */
static void sort(struct sorter *s, uint32_t from, uint32_t to, uint32_t depth)
{
    while (to - from > 16) {
        unsigned char pivot =
            median(byte_of(s, from, depth), byte_of(s, from + (to - from) / 2, depth),
                   byte_of(s, to - 1, depth));
        uint32_t less = from, i = from, more = to;
        while (i < more) {
            unsigned char c = byte_of(s, i, depth);
            if (c < pivot) {
                swap(s, less++, i++);
            } else if (c > pivot) {
                swap(s, i, --more);
            } else {
                i++;
            }
        }
        sort(s, from, less, depth);
        sort(s, more, to, depth);
        if (pivot == '\0') {
            return; /* the middle is one id, repeated */
        }
        from = less;
        to = more;
        depth++;
    }
    insertion(s, from, to, depth);
}

int nzb_compute_key(struct nzb *n)
{
    size_t count = (size_t)n->article_count + n->fallback_count;
    struct sorter s = {n->ids, mem_alloc(count * sizeof(*s.at))};
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    int rc = -ENOMEM;
    if (s.at == NULL || hash == NULL) {
        goto out;
    }
    memcpy(s.at, n->id_at, n->article_count * sizeof(*s.at));
    for (uint32_t i = 0; i < n->fallback_count; i++) {
        s.at[n->article_count + i] = n->fallbacks[i].id_at;
    }
    sort(&s, 0, (uint32_t)count, 0);
    if (EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1 ||
        EVP_DigestUpdate(hash, "nzb1\n", 5) != 1) {
        goto out;
    }
    char batch[16 << 10]; /* a call per id would cost more than the hash */
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const char *id = n->ids + s.at[i];
        if (i > 0 && strcmp(id, n->ids + s.at[i - 1]) == 0) {
            continue;
        }
        if (sizeof(batch) - used < NZB_ID_MAX + 1) {
            if (EVP_DigestUpdate(hash, batch, used) != 1) {
                goto out;
            }
            used = 0;
        }
        size_t len = strlen(id);
        memcpy(batch + used, id, len);
        batch[used + len] = '\n';
        used += len + 1;
    }
    if (EVP_DigestUpdate(hash, batch, used) != 1) {
        goto out;
    }
    rc = EVP_DigestFinal_ex(hash, n->key, NULL) == 1 ? 0 : -ENOMEM;
out:
    EVP_MD_CTX_free(hash);
    mem_free(s.at);
    return rc;
}
