#include "base/jsonw.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/utf8.h"

static void flush(struct jsonw *j)
{
    if (j->error == 0 && j->used > 0) {
        j->error = j->write(j->arg, j->buffer, j->used);
    }
    j->used = 0;
}

static void put(struct jsonw *j, const char *bytes, size_t len)
{
    while (len > 0) {
        if (j->used == sizeof(j->buffer)) {
            flush(j);
        }
        size_t n = sizeof(j->buffer) - j->used;
        n = n < len ? n : len;
        memcpy(j->buffer + j->used, bytes, n);
        j->used += n;
        bytes += n;
        len -= n;
    }
}

static void put_str(struct jsonw *j, const char *s)
{
    put(j, s, strlen(s));
}

/* What stands before a value: nothing behind a key, else a comma where one is due. */
static void before_value(struct jsonw *j)
{
    if (j->depth == 0) {
        return;
    }
    unsigned top = j->depth - 1;
    if (j->kind[top] == '{') {
        PRE(j->has_key);
        j->has_key = false;
        return;
    }
    if (j->has_value[top]) {
        put(j, ",", 1);
    }
    j->has_value[top] = true;
}

static void open(struct jsonw *j, char kind)
{
    before_value(j);
    PRE(j->depth < JSONW_DEPTH_MAX);
    j->kind[j->depth] = (uint8_t)kind;
    j->has_value[j->depth] = false;
    j->depth++;
    put(j, &kind, 1);
}

void jsonw_init(struct jsonw *j, jsonw_write_cb write, void *arg)
{
    j->write = write;
    j->arg = arg;
    j->error = 0;
    j->depth = 0;
    j->has_key = false;
    j->used = 0;
}

static int write_file(void *arg, const char *bytes, size_t len)
{
    return fwrite(bytes, 1, len, arg) == len ? 0 : -EIO;
}

void jsonw_init_file(struct jsonw *j, FILE *f)
{
    jsonw_init(j, write_file, f);
}

int jsonw_finish(struct jsonw *j)
{
    PRE(j->depth == 0);
    flush(j);
    return j->error;
}

void jsonw_object(struct jsonw *j)
{
    open(j, '{');
}

void jsonw_array(struct jsonw *j)
{
    open(j, '[');
}

void jsonw_end(struct jsonw *j)
{
    PRE(j->depth > 0 && !j->has_key);
    j->depth--;
    put(j, j->kind[j->depth] == '{' ? "}" : "]", 1);
}

static void quoted(struct jsonw *j, const char *s, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    put(j, "\"", 1);
    size_t run = 0; /* start of the bytes that go out as they are */
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)s[i];
        size_t n = 1;
        char escape[8];
        size_t escape_len = 0;
        if (c == '"' || c == '\\') {
            escape[0] = '\\';
            escape[1] = (char)c;
            escape_len = 2;
        } else if (c < 0x20 || c == 0x7f) {
            memcpy(escape, "\\u00", 4);
            escape[4] = hex[c >> 4];
            escape[5] = hex[c & 15];
            escape_len = 6;
        } else if (c >= 0x80) {
            n = utf8_char_len(s + i, len - i);
            if (n == 0) {
                memcpy(escape, "\xef\xbf\xbd", 3); /* U+FFFD */
                escape_len = 3;
                n = 1;
            }
        }
        if (escape_len > 0) {
            put(j, s + run, i - run);
            put(j, escape, escape_len);
            run = i + n;
        }
        i += n;
    }
    put(j, s + run, len - run);
    put(j, "\"", 1);
}

void jsonw_key(struct jsonw *j, const char *key)
{
    PRE(j->depth > 0 && j->kind[j->depth - 1] == '{' && !j->has_key);
    if (j->has_value[j->depth - 1]) {
        put(j, ",", 1);
    }
    j->has_value[j->depth - 1] = true;
    quoted(j, key, strlen(key));
    put(j, ":", 1);
    j->has_key = true;
}

void jsonw_strn(struct jsonw *j, const char *s, size_t len)
{
    before_value(j);
    quoted(j, s, len);
}

void jsonw_raw(struct jsonw *j, const char *json, size_t len)
{
    before_value(j);
    put(j, json, len);
}

void jsonw_str(struct jsonw *j, const char *s)
{
    if (s == NULL) {
        jsonw_null(j);
    } else {
        jsonw_strn(j, s, strlen(s));
    }
}

void jsonw_int(struct jsonw *j, int64_t v)
{
    char text[24];
    before_value(j);
    snprintf(text, sizeof(text), "%" PRId64, v);
    put_str(j, text);
}

void jsonw_uint(struct jsonw *j, uint64_t v)
{
    char text[24];
    before_value(j);
    snprintf(text, sizeof(text), "%" PRIu64, v);
    put_str(j, text);
}

void jsonw_double(struct jsonw *j, double v, int decimals)
{
    char text[400];
    if (!isfinite(v)) {
        jsonw_null(j);
        return;
    }
    before_value(j);
    snprintf(text, sizeof(text), "%.*f", decimals, v);
    put_str(j, text);
}

void jsonw_bool(struct jsonw *j, bool v)
{
    before_value(j);
    put_str(j, v ? "true" : "false");
}

void jsonw_null(struct jsonw *j)
{
    before_value(j);
    put_str(j, "null");
}

void jsonw_kstr(struct jsonw *j, const char *key, const char *s)
{
    jsonw_key(j, key);
    jsonw_str(j, s);
}

void jsonw_kint(struct jsonw *j, const char *key, int64_t v)
{
    jsonw_key(j, key);
    jsonw_int(j, v);
}

void jsonw_kuint(struct jsonw *j, const char *key, uint64_t v)
{
    jsonw_key(j, key);
    jsonw_uint(j, v);
}

void jsonw_kbool(struct jsonw *j, const char *key, bool v)
{
    jsonw_key(j, key);
    jsonw_bool(j, v);
}

void jsonw_kdouble(struct jsonw *j, const char *key, double v, int decimals)
{
    jsonw_key(j, key);
    jsonw_double(j, v, decimals);
}
