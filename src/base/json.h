/* json.h - a streaming JSON writer.
 *
 * Values go out as they are written, through a callback in pieces of a few KiB, so that a reply of any size needs
 * no tree and no large block. Strings may be any bytes: what is not valid UTF-8 becomes U+FFFD, so the output is
 * always valid JSON. Nesting is checked: a key outside an object or an unclosed array is a bug and aborts. The first
 * error of the callback sticks and ends all further output; json_finish() returns it. Parsing is jansson's work. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* 0, or a negative code that stops the writer. */
typedef int (*json_write_cb)(void *arg, const char *bytes, size_t len);

enum { JSON_DEPTH_MAX = 64, JSON_BUFFER = 4096 };

struct json {
    json_write_cb write;
    void *arg;
    int error;
    unsigned depth;
    uint8_t kind[JSON_DEPTH_MAX]; /* '{' or '[' per level */
    bool has_value[JSON_DEPTH_MAX];
    bool has_key; /* a key waits for its value */
    size_t used;
    char buffer[JSON_BUFFER];
};

void json_init(struct json *j, json_write_cb write, void *arg);
void json_init_file(struct json *j, FILE *f);
int json_finish(struct json *j); /* flushes; every bracket must be closed */

void json_object(struct json *j);
void json_array(struct json *j);
void json_end(struct json *j); /* closes the innermost object or array */
void json_key(struct json *j, const char *key);

void json_str(struct json *j, const char *s); /* NULL writes null */
void json_strn(struct json *j, const char *s, size_t len);
void json_int(struct json *j, int64_t v);
void json_uint(struct json *j, uint64_t v);
void json_double(struct json *j, double v, int decimals); /* not finite: null */
void json_bool(struct json *j, bool v);
void json_null(struct json *j);

/* "key": value in one call. */
void json_kstr(struct json *j, const char *key, const char *s);
void json_kint(struct json *j, const char *key, int64_t v);
void json_kuint(struct json *j, const char *key, uint64_t v);
void json_kbool(struct json *j, const char *key, bool v);
void json_kdouble(struct json *j, const char *key, double v, int decimals);

#endif
