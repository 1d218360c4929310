/* err.h - failures of the world: a code, and a message that gains context on its way up.
 *
 * Functions return 0 or a negative code. System and libuv codes (-errno, UV_E*) pass through unchanged; our
 * own start below them. A function that can say more than its code takes a `struct err *`, sets it where the
 * trouble is seen and wraps it on the way up, so that a user reads "queue.json: rename: no space left on
 * device". Answers we did not want (430, bad CRC) are not errors: they are data in the caller's own enum. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stddef.h>

/* name, code, text; err_name() and err_text() and their test walk this list. */
#define ERR_MAP(X)                                     \
    X(ERR_INVALID, -10001, "invalid value")            \
    X(ERR_LIMIT, -10002, "limit exceeded")             \
    X(ERR_CORRUPT, -10003, "data is corrupt")          \
    X(ERR_VERSION, -10004, "unknown format version")   \
    X(ERR_TRUNCATED, -10005, "data ends too early")    \
    X(ERR_CONFLICT, -10006, "changed in the meantime") \
    X(ERR_NOT_FOUND, -10007, "not found")              \
    X(ERR_EXISTS, -10008, "exists already")            \
    X(ERR_LOCKED, -10009, "in use by another process") \
    X(ERR_STOPPED, -10010, "stopped")                  \
    X(ERR_UNSAFE, -10011, "unsafe path")               \
    X(ERR_FULL, -10012, "no room")                     \
    X(ERR_USAGE, -10013, "wrong usage")                \
    X(ERR_TLS, -10020, "TLS failed")                   \
    X(ERR_CERT, -10021, "certificate refused")         \
    X(ERR_PROTOCOL, -10022, "protocol violated")

enum err_code {
#define X(name, code, text) name = (code),
    ERR_MAP(X)
#undef X
};

enum { ERR_MSG_MAX = 512 };

struct err {
    int code;              /* 0: no error */
    char msg[ERR_MSG_MAX]; /* always terminated; cut at the end when too long */
};

/* "ENOSPC", "ERR_CORRUPT"; "OK" for 0. */
const char *err_name(int code);
/* "no space left on device"; never NULL. */
const char *err_text(int code);

/* Sets code and message and returns the code, so that `return err_set(e, ...)` reads well. `e` may be
 * NULL: the caller wants only the code. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* As err_set, with ": " and the code's own text appended. */
int err_sys(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Puts "context: " in front of the message and returns `code`, the one that is on its way up. */
int err_wrap(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void err_clear(struct err *e);

#endif
