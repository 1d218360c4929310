/* utf8.h - what is one valid UTF-8 character. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length in bytes of the character at s (n bytes are there), 0 when it is not valid: overlong, a surrogate, above
 * U+10FFFF, cut off. */
size_t utf8_char_len(const char *s, size_t n);
/* The same, and the code point. */
size_t utf8_decode(const char *s, size_t n, uint32_t *cp);

#endif
