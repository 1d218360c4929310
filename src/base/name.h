/* name.h - names that come from outside, made fit to be one component of a path.
 *
 * One cleaner for every source of names: the subject of a post, the name in a yEnc header, PAR2, an archive's
 * entries, a category, the name of a job given over RPC. Pure functions on bytes; any thread; no allocation.
 *
 * A cleaned name is 1 to 255 bytes of valid UTF-8 (bytes that are not are read as Windows-1252, as old posters wrote
 * them), and cleaning it again changes nothing. It has no separator nor what looks like one, no control character,
 * no mark that turns the direction of writing, nothing that a Windows share refuses, no blank at either end and no
 * dot at the end. It is no device name and no file of ours, and does not begin with a character that a tool or shell
 * may read as something else (. - ~ @). What is unfit becomes '_', so that the eye sees that something was there.
 *
 * Two names may be cleaned to one: whoever creates the file does it with fsx_create_unique(), which never takes over
 * what exists already, also where the file system folds case or composes accents. */
#ifndef BASE_NAME_H
#define BASE_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum { NAME_LEN_MAX = 255 }; /* bytes of one component, without the zero behind it */

enum name_kind {
    NAME_FILE, /* a file, perhaps with the poster's directories in front: what is behind the last separator counts */
    NAME_TITLE, /* words of a person, as "AC/DC": separators become '_' */
};

/* Writes the cleaned name to `out` (NAME_LEN_MAX + 1 bytes) and returns its length; "unnamed" when nothing is left. */
size_t name_clean(enum name_kind kind, const char *in, size_t len, char *out);

/* "dir/sub/file" out of PAR2 or an archive: each part cleaned, parts that say nothing ("", ".", "..", a drive)
 * dropped, so that the result stays below where it is put. False when it is longer than `size` allows or has more than
 * NAME_DEPTH_MAX parts; `out` is then "". */
enum { NAME_DEPTH_MAX = 32 };
bool name_clean_path(const char *in, size_t len, char *out, size_t size);

/* The n-th variant of a name: 1 is the name itself, 2 is "name (2).ext". `out` has NAME_LEN_MAX + 1 bytes; a
 * name that would not fit loses characters in front of its extension. */
void name_numbered(const char *name, unsigned n, char *out);

#endif
