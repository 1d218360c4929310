/* jsonw.h - a streaming JSON writer.
 *
 * Values go out as they are written, through a callback in pieces of a few KiB, so that a reply of any size needs
 * no tree and no large block. Strings may be any bytes: what is not valid UTF-8 becomes U+FFFD, so the output is
 * always valid JSON. Nesting is checked: a key outside an object or an unclosed array is a bug and aborts. The first
 * error of the callback sticks and ends all further output; jsonw_finish() returns it. Parsing is jansson's work. */
#ifndef BASE_JSONW_H
#define BASE_JSONW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* 0, or a negative code that stops the writer. */
typedef int (*jsonw_write_cb)(void *arg, const char *bytes, size_t len);

enum { JSONW_DEPTH_MAX = 64, JSONW_BUFFER = 4096 };

struct jsonw {
    jsonw_write_cb write;
    void *arg;
    int error;
    unsigned depth;
    uint8_t kind[JSONW_DEPTH_MAX]; /* '{' or '[' per level */
    bool has_value[JSONW_DEPTH_MAX];
    bool has_key; /* a key waits for its value */
    size_t used;
    char buffer[JSONW_BUFFER];
};

void jsonw_init(struct jsonw *j, jsonw_write_cb write, void *arg);
void jsonw_init_file(struct jsonw *j, FILE *f);
int jsonw_finish(struct jsonw *j); /* flushes; every bracket must be closed */

void jsonw_object(struct jsonw *j);
void jsonw_array(struct jsonw *j);
void jsonw_end(struct jsonw *j); /* closes the innermost object or array */
void jsonw_key(struct jsonw *j, const char *key);

void jsonw_str(struct jsonw *j, const char *s); /* NULL writes null */
void jsonw_strn(struct jsonw *j, const char *s, size_t len);
void jsonw_int(struct jsonw *j, int64_t v);
void jsonw_uint(struct jsonw *j, uint64_t v);
void jsonw_double(struct jsonw *j, double v, int decimals); /* not finite: null */
void jsonw_bool(struct jsonw *j, bool v);
void jsonw_null(struct jsonw *j);
/* A value that is JSON text already: not looked at. */
void jsonw_raw(struct jsonw *j, const char *json, size_t len);

/* "key": value in one call. */
void jsonw_kstr(struct jsonw *j, const char *key, const char *s);
void jsonw_kint(struct jsonw *j, const char *key, int64_t v);
void jsonw_kuint(struct jsonw *j, const char *key, uint64_t v);
void jsonw_kbool(struct jsonw *j, const char *key, bool v);
void jsonw_kdouble(struct jsonw *j, const char *key, double v, int decimals);

#endif
