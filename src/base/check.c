#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void check_failed(const char *kind, const char *expr, const char *file, int line,
                            const char *func)
{
    fprintf(stderr, "weir: %s failed: %s (%s:%d, %s)\n", kind, expr, file, line, func);
    fflush(stderr);
    abort();
}
