/* check.h - statements about the program itself, kept on in release builds.
 *
 * A failed check is a bug in Weir, never bad input: it prints where and what, then aborts. A daemon that
 * restarts from a good snapshot is better than one that goes on with a broken queue. */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#include <stdbool.h>

/* Prints "kind failed: expr (file:line, func)" to stderr and aborts. */
_Noreturn void check_failed(const char *kind, const char *expr, const char *file, int line,
                            const char *func);

#define CHECK_(kind, expr)                   \
    (__builtin_expect(!!(expr), 1) ? (void)0 \
                                   : check_failed(kind, #expr, __FILE__, __LINE__, __func__))

#define PRE(expr)       CHECK_("precondition", expr)  /* what the caller owes us */
#define POST(expr)      CHECK_("postcondition", expr) /* what we owe the caller */
#define IMPOSSIBLE(why) check_failed("impossible", why, __FILE__, __LINE__, __func__)
#define ERGO(a, b)      (!(a) || (b)) /* a implies b */

#endif
