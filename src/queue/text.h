/* text.h - bytes that grow at the end. The first failure to grow sticks and everything after it does nothing, so that
 * a writer checks once, at the end. */
#ifndef QUEUE_TEXT_H
#define QUEUE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *at; /* mem_free() it */
    size_t len, room;
    bool failed;
};

void text_put(struct text *t, const void *bytes, size_t n);
char *text_extend(struct text *t,
                  size_t n); /* `n` more bytes, to be written now; NULL: no memory */
int text_write_cb(void *text, const char *bytes, size_t len); /* for jsonw_init */

#endif
