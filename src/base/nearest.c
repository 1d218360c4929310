/* nearest.c - see nearest.h. */
#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edit distance of two short words. */
static size_t distance(const char *a, const char *b)
{
    enum { MAX = 32 };
    size_t la = strlen(a), lb = strlen(b), row[MAX];
    if (la >= MAX || lb >= MAX) {
        return MAX;
    }
    for (size_t j = 0; j <= lb; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = diagonal + (same(a[i - 1], b[j - 1]) ? 0 : 1);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[lb];
}

const char *nearest(const char *word, const char *const *known)
{
    const char *best = NULL;
    size_t len = strlen(word), nearer_than = len / 2 < 3 ? len / 2 + 2 : 4;
    for (; *known != NULL; known++) {
        size_t other = strlen(*known), differ = len > other ? len - other : other - len;
        size_t d = differ < nearer_than ? distance(word, *known) : differ;
        if (d < nearer_than) {
            nearer_than = d;
            best = *known;
        }
    }
    return best;
}
