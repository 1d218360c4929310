#include "queue/text.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"

char *text_extend(struct text *t, size_t n)
{
    if (t->room - t->len < n && !t->failed) {
        size_t room = t->room < 4096 ? 4096 : t->room;
        while (room - t->len < n && room < (size_t)1 << 62) {
            room *= 2;
        }
        char *bigger = mem_realloc(t->at, room, 1);
        t->failed = bigger == NULL;
        if (bigger != NULL) {
            t->at = bigger;
            t->room = room;
        }
    }
    if (t->failed) {
        return NULL;
    }
    t->len += n;
    return t->at + t->len - n;
}

void text_put(struct text *t, const void *bytes, size_t n)
{
    char *to = text_extend(t, n);
    if (to != NULL) {
        memcpy(to, bytes, n);
    }
}

int text_write_cb(void *text, const char *bytes, size_t len)
{
    struct text *t = text;
    text_put(t, bytes, len);
    return t->failed ? -ENOMEM : 0;
}
