/* nearest.h - which known word a mistyped one was probably meant to be. Pure; any thread. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/* The one of `known` (ends with NULL) that is nearest to `word`, or NULL when none is near. Letters of either case are
 * the same; words over 31 bytes are near to nothing. */
const char *nearest(const char *word, const char *const *known);

#endif
