/* redact.h - takes secrets out of text before anybody sees it.
 *
 * Two ways, both always on. Shapes: what stands behind AUTHINFO PASS, an Authorization or Cookie header, a key whose
 * name ends in password, pass, passwd, pwd, apikey, token or secret, the userinfo of a URL, and {{password}} in the
 * name of an NZB. Words: every secret that the configuration holds is told to redact_add() and is found wherever it
 * stands, also in its percent-encoded form. A word under REDACT_WORD_MIN bytes is not: it would blank out half of every
 * line; the shapes still catch it where it is used.
 *
 * The logger calls this on every line; so must whatever else shows text that came from outside. Any thread. */
#ifndef BASE_REDACT_H
#define BASE_REDACT_H

#include <stdbool.h>
#include <stddef.h>

enum { REDACT_WORD_MIN = 4, REDACT_WORDS_MAX = 256 };

/* Remembers a secret until redact_forget(). 0, ERR_FULL, UV_ENOMEM; short and known ones are 0 and change nothing. */
int redact_add(const char *secret);
/* Wipes and frees all words. */
void redact_forget(void);

/* `in` with every secret replaced by "***", cut at `size`; returns the length. `cut` says that `in` is the beginning of
 * a longer text: a secret that is cut in two at its end is then taken out too. */
size_t redact(const char *in, bool cut, char *out, size_t size);

#endif
