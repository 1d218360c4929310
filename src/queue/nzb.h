/* nzb.h - one NZB as it was posted: read once, never changed afterwards.
 *
 * nzb_parse() turns the text of an NZB (plain or gzip) into a `struct nzb`: files, and per article a message-id, a
 * size hint and a number, in flat arrays and one arena. It runs on any thread (never on the coordinator's: a large
 * NZB takes seconds) and touches nothing but its arguments. The result is immutable and counted by references: a
 * job that was split shares its NZB with the new one. References are taken and dropped on one thread only, the
 * queue's owner; until an NZB is given to a queue, its maker is that owner.
 *
 * What a download makes of it (states, checksums, names found later) is in queue.h, not here. */
#ifndef QUEUE_NZB_H
#define QUEUE_NZB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Limits: crossing one is an error that names it and the line, never a crash. */
#define NZB_BYTES_MAX (UINT64_C(512) << 20) /* of text, after gunzip */
enum {
    NZB_ARTICLES_MAX = 12 * 1000 * 1000,
    NZB_FILES_MAX = 4 * 1000 * 1000,
    NZB_DEPTH_MAX = 32,
    NZB_ID_MIN = 3,          /* bytes of a message-id without <> */
    NZB_ID_MAX = 248,        /* RFC 3977: 250 with them */
    NZB_TEXT_MAX = 64 << 10, /* subject, poster, group, meta value */
    NZB_KEY_BYTES = 32,
};

enum nzb_kind {
    NZB_DATA,        /* what the user wants */
    NZB_PAR2_MAIN,   /* "x.par2": small, fetched first */
    NZB_PAR2_VOLUME, /* "x.vol03+04.par2": fetched on demand */
    NZB_EXTRA,       /* nfo, sfv, nzb, ...: fetched like data, never counted in health */
};
const char *nzb_kind_name(enum nzb_kind kind); /* "data", "par2", "par2-volume", "extra" */

struct nzb_file {
    const char *subject; /* as posted, UTF-8; "" when there was none */
    const char *poster;
    const char *groups; /* separated by one blank; "" when there were none */
    const char *name;   /* from the subject, fit to be one path component; never "" */
    int64_t date;       /* Unix seconds; 0 unknown */
    uint64_t bytes;     /* sum of the articles' size hints (encoded bytes) */
    uint32_t first;     /* its articles are first .. first + count - 1 of the NZB, by number */
    uint32_t count;     /* never 0 */
    uint32_t missing;   /* parts that the post has and the NZB does not name (gaps, "(1/50)") */
    uint32_t blocks;    /* PAR2 volume: recovery blocks by its name; 0 unknown */
    uint8_t kind;       /* enum nzb_kind */
    bool name_guessed;  /* no name in the subject: `name` was made up */
};

/* A second message-id for the same part (a repost): tried when the first is nowhere. */
struct nzb_fallback {
    uint32_t article; /* of the NZB; ascending, several may follow for one article */
    uint32_t id_at;
};

struct nzb {
    uint32_t refs;
    uint32_t file_count;
    uint32_t article_count;
    uint32_t fallback_count;
    struct nzb_file *files;
    /* Per article, all files after one another: */
    uint32_t *id_at;  /* where in `ids` the message-id begins, without <>, ends with a zero byte */
    uint32_t *bytes;  /* size hint; 0 when the NZB had none that made sense */
    uint32_t *number; /* of the part, ascending inside a file, from 1 */
    char *ids;
    struct nzb_fallback *fallbacks;
    uint64_t total_bytes;
    size_t ids_bytes;
    /* <head>: "" when absent */
    const char *title;
    const char *password; /* also from "{{password}}" in the file name */
    const char *category;
    const char *tag;
    /* Identity */
    uint8_t key[NZB_KEY_BYTES]; /* zeros until nzb_compute_key() */
    uint64_t layout; /* hash of ids in our order: saved progress fits only the same layout */
    /* What was left out, and said; the NZB is still usable. */
    uint32_t bad_segments;   /* no usable id or number */
    uint32_t duplicates;     /* same part, same id: dropped */
    uint32_t empty_files;    /* <file> without a usable segment: dropped */
    char first_problem[160]; /* "line 12: segment number 'x' is not a number"; "" when none */
    size_t heap_bytes;       /* everything this NZB holds, for the memory figures */
    struct nzb_chunk *arena;
};

/* Reads an NZB. `filename` (may be NULL) is what the user called it: "{{password}}" and the default title come from
 * there. On success `*out` has one reference. On failure nothing is left behind and `e` says what and in which line:
 *   ERR_INVALID    not XML, not an NZB, an entity declaration, two roots, trailing junk, no file, no article
 *   ERR_TRUNCATED  the text or the gzip stream ends too early
 *   ERR_LIMIT      one of the limits above (size also of what gunzip gives)
 *   -ENOMEM */
int nzb_parse(const void *bytes, size_t len, const char *filename, struct nzb **out, struct err *e);
/* The same in pieces, for a stream. After nzb_parser_new exactly one of _finish and _free. */
struct nzb_parser;
struct nzb_parser *nzb_parser_new(const char *filename);
int nzb_parser_feed(struct nzb_parser *p, const void *bytes, size_t len, struct err *e);
int nzb_parser_finish(struct nzb_parser *p, struct nzb **out, struct err *e);
void nzb_parser_free(struct nzb_parser *p);

/* Fills n->key: SHA-256("nzb1\n" + sorted unique message-ids, each + "\n"), fallback ids included. Once, by the thread
 * that parsed, when a job is added; a reloaded job has its key already. Sorts all ids: 0.2 s for a million. -ENOMEM. */
int nzb_compute_key(struct nzb *n);

struct nzb *nzb_ref(struct nzb *n);
void nzb_unref(struct nzb *n); /* NULL is fine */

/* ---- names ---- */

enum { NZB_NAME_MAX = 255 };

/* The file name in a subject, the way users expect it: the last quoted part that looks like one, else the word
 * before "yEnc (1/n)" or a "(1/n)", else the word with an extension. `out` (NZB_NAME_MAX + 1 bytes) is fit for a
 * path. false: there is none, `out` is "". `parts` (may be NULL) is told n of "(1/n)", 0 when absent. */
bool nzb_subject_name(const char *subject, char *out, uint32_t *parts);
/* What a file is by its name; `blocks` (may be NULL) is told the recovery blocks in "vol03+04", 0 unknown. */
enum nzb_kind nzb_name_kind(const char *name, uint32_t *blocks);
/* "Some.Show.{{secret}}.nzb" -> "Some.Show" and "secret" (also "name password=secret.nzb"). Each buffer has
 * NZB_NAME_MAX + 1 bytes; without a password `password` is "". */
void nzb_split_filename(const char *filename, char *title, char *password);

static inline const char *nzb_id(const struct nzb *n, uint32_t article)
{
    return n->ids + n->id_at[article];
}

#endif
