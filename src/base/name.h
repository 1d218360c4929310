/* name.h - names that come from outside, made fit to be one component of a path.
 *
 * Pure functions on bytes; any thread; no allocation. */
#ifndef BASE_NAME_H
#define BASE_NAME_H

#include <stddef.h>

enum { NAME_LEN_MAX = 255 }; /* bytes of one component, without the zero behind it */

/* The n-th variant of a name: 1 is the name itself, 2 is "name (2).ext". `out` has NAME_LEN_MAX + 1 bytes; a
 * name that would not fit loses characters in front of its extension. */
void name_numbered(const char *name, unsigned n, char *out);

#endif
