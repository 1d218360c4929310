#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/check.h"

static const struct {
    int code;
    const char *name;
    const char *text;
} errors[] = {
#define X(name, code, text) {(code), #name, (text)},
    ERR_MAP(X)
#undef X
};

const char *err_name(int code)
{
    if (code == 0) {
        return "OK";
    }
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].code == code) {
            return errors[i].name;
        }
    }
    /* uv_err_name() leaks for codes it does not know, so only known ones reach it. */
    switch (code) {
#define X(name, text) \
    case UV_##name:   \
        return #name;
        UV_ERRNO_MAP(X)
#undef X
    default:
        break;
    }
    const char *name = strerrorname_np(-code);
    return name != NULL ? name : "UNKNOWN";
}

const char *err_text(int code)
{
    if (code == 0) {
        return "no error";
    }
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].code == code) {
            return errors[i].text;
        }
    }
    switch (code) {
#define X(name, text) \
    case UV_##name:   \
        return text;
        UV_ERRNO_MAP(X)
#undef X
    default:
        break;
    }
    const char *text = strerrordesc_np(-code);
    return text != NULL ? text : "unknown error";
}

__attribute__((format(printf, 2, 0))) static void format(struct err *e, const char *fmt,
                                                         va_list args)
{
    vsnprintf(e->msg, sizeof(e->msg), fmt, args);
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
    PRE(code != 0);
    if (e != NULL) {
        va_list args;
        va_start(args, fmt);
        e->code = code;
        format(e, fmt, args);
        va_end(args);
    }
    return code;
}

int err_sys(struct err *e, int code, const char *fmt, ...)
{
    PRE(code != 0);
    if (e != NULL) {
        va_list args;
        va_start(args, fmt);
        e->code = code;
        format(e, fmt, args);
        va_end(args);
        size_t used = strlen(e->msg);
        snprintf(e->msg + used, sizeof(e->msg) - used, ": %s", err_text(code));
    }
    return code;
}

int err_wrap(struct err *e, int code, const char *fmt, ...)
{
    PRE(code != 0);
    if (e == NULL) {
        return code;
    }
    char inner[ERR_MSG_MAX];
    memcpy(inner, e->msg, sizeof(inner));
    va_list args;
    va_start(args, fmt);
    format(e, fmt, args);
    va_end(args);
    size_t used = strlen(e->msg);
    snprintf(e->msg + used, sizeof(e->msg) - used, ": %s", inner);
    e->code = code;
    return code;
}

void err_clear(struct err *e)
{
    if (e != NULL) {
        e->code = 0;
        e->msg[0] = '\0';
    }
}
