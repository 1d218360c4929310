/* yenc.h - from the bytes of an NNTP article body to the bytes of a file part, and back.
 *
 * Three layers, each usable alone, none of which allocates, blocks or keeps anything outside the struct it is given;
 * one struct belongs to one thread at a time:
 *   yenc_decode()        data lines only: escapes, dot-unstuffing, where the data ends. Runs the SIMD kernels.
 *   yenc_parse_*()       the lines =ybegin, =ypart, =yend.
 *   yenc_article_feed()  a whole body in pieces of any size, up to and including its terminating dot line: text in
 *                        front, header lines, data (with its CRC), =yend, text behind; UUencode too. It says exactly
 *                        how many bytes were its own, so that the next pipelined reply starts at the right byte.
 * and the encoder. Everything that comes in is hostile; nothing is sized by what a header claims. What is decided
 * where the format leaves room is written in docs/YENC.md. */
#ifndef YENC_YENC_H
#define YENC_YENC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- data lines ------------------------------------------------------------------------------------------- */

/* What the last bytes were, as far as the next one depends on them. */
enum yenc_state {
    YENC_AT_LINE,  /* a CRLF, or the start of the body */
    YENC_AT_LF,    /* a bare LF: starts a line, but a dot line here does not end the article */
    YENC_IN_LINE,  /* anything else */
    YENC_AFTER_CR, /* a CR, also an escaped one */
    YENC_AFTER_EQ, /* '=': the next byte is escaped */
    YENC_LINE_EQ,  /* '=' that begins a line (behind a stripped dot, too): "=y" is a control line */
    YENC_LINE_DOT, /* '.' that begins a line behind CRLF; stripped */
    YENC_LINE_DOT_CR, /* and then CR */
    YENC_LF_DOT,      /* '.' that begins a line behind a bare LF; stripped */
};

enum yenc_stop {
    YENC_MORE,    /* all input is used up */
    YENC_CONTROL, /* "=y" at the start of a line; src is behind the y */
    YENC_END,     /* the terminating dot line; src is behind its LF */
};

struct yenc_raw {
    const uint8_t *src; /* moves as bytes are consumed */
    const uint8_t *end;
    uint8_t *dst; /* moves as bytes are produced */
    enum yenc_state state;
    bool
        lf_ends; /* LF "." LF ends the article as CRLF "." CRLF does: only for a peer that speaks LF throughout */
};

/* Decodes until the input is used up or the data ends. Writes only inside dst[0 .. end - src) as they are on entry:
 * room for as many bytes as there are input bytes is always enough, and bytes of that room behind the final dst may
 * be overwritten with anything. In place is fine: dst may be src or lie anywhere before it. */
enum yenc_stop yenc_decode(struct yenc_raw *r);

/* The kernel in use: "scalar", "avx2", ... YENC_KERNEL=name in the environment overrides the choice. */
const char *yenc_kernel_name(void);

/* ---- header lines ----------------------------------------------------------------------------------------- */

enum {
    YENC_NAME_MAX = 1020,            /* bytes kept of a name, as UTF-8 */
    YENC_KEPT_MAX = 2048,            /* bytes kept of a header line; the rest of it is dropped */
    YENC_TEXT_LINE_MAX = 64 * 1024,  /* a longer line outside of yEnc data breaks the limits */
    YENC_RAW_MAX = 16 * 1024 * 1024, /* and so does a longer body */
};

struct yenc_header {
    char name[YENC_NAME_MAX +
              1];   /* UTF-8, as posted: not yet fit for a path. "" when there is none */
    uint64_t size;  /* of the whole file */
    uint64_t begin; /* of this part in the file, from 0 */
    uint64_t end;   /* behind its last byte: end - begin bytes */
    uint32_t part;  /* 0: not a multipart post */
    uint32_t total; /* 0: not said */
    uint32_t line;  /* declared line length, 0: not said */
    bool has_range; /* begin and end are known */
};

struct yenc_trailer {
    uint64_t size; /* what =yend says of this part's size */
    uint32_t pcrc32, crc32;
    bool has_size, has_pcrc32, has_crc32;
    bool bad_crc; /* a CRC is there that cannot be read */
};

/* Each gets one line without its line end and returns NULL, or what is wrong with it in a few words. */
const char *yenc_parse_begin(struct yenc_header *h, const char *line, size_t len);
const char *yenc_parse_part(struct yenc_header *h, const char *line, size_t len);
const char *yenc_parse_end(struct yenc_trailer *t, const char *line, size_t len);

/* ---- whole article bodies --------------------------------------------------------------------------------- */

enum yenc_verdict {
    YENC_OPEN,       /* not finished yet */
    YENC_OK,         /* size and CRC agree */
    YENC_NO_CRC,     /* size agrees, no CRC to check; UUencode ends here at best */
    YENC_BAD_CRC,    /* complete, but the CRC differs */
    YENC_BAD_SIZE,   /* more or fewer bytes than declared */
    YENC_NO_END,     /* no =yend: cut off */
    YENC_BAD_HEADER, /* a header line is missing or makes no sense; no data was kept */
    YENC_NOT_YENC,   /* neither yEnc nor UUencode */
    YENC_LIMIT,      /* too long a line or body: drop the connection, the end was not found */
    YENC_VERDICTS,
};
/* "ok", "no-crc", "bad-crc", "bad-size", "no-end", "bad-header", "not-yenc", "limit". */
const char *yenc_verdict_name(enum yenc_verdict v);

enum yenc_format { YENC_FORMAT_NONE, YENC_FORMAT_YENC, YENC_FORMAT_UU };

enum yenc_feed {
    YENC_FEED_MORE, /* all bytes are used up, the article goes on */
    YENC_FEED_DONE, /* the dot line was found; bytes behind `used` belong to the next reply. The verdict is final */
    YENC_FEED_ROOM, /* `out` is full: give more with yenc_article_room() and feed the rest, also if that is nothing */
    YENC_FEED_LIMIT /* verdict YENC_LIMIT; feed nothing more */
};

struct yenc_article {
    /* What came out; readable at any time, final after DONE or yenc_article_finish(). */
    enum yenc_verdict verdict;
    enum yenc_format format;
    const char *why;           /* in words, where the verdict is not OK; else NULL */
    struct yenc_header header; /* for UUencode: the name only */
    struct yenc_trailer trailer;
    uint8_t *out;     /* the caller's */
    size_t capacity;  /* of out */
    size_t len;       /* decoded bytes in out: never more than the part's declared size */
    uint64_t decoded; /* decoded bytes, with those beyond the declared size, which are dropped */
    uint64_t raw;     /* bytes consumed */
    uint32_t crc;     /* of out[0 .. len) */
    bool uu_begin, uu_end; /* UUencode: the begin and the end line were there */

    /* Private. */
    bool uu_waits;        /* the line is UUencode and waits for room */
    bool uu_gap, uu_torn; /* a line that is none; and data behind it */
    uint8_t mode;
    uint8_t raw_state;
    bool lf_ends;
    bool after_crlf;   /* the line being collected began behind CRLF */
    bool last_was_cr;  /* the last byte of the line being collected */
    uint32_t line_len; /* of the line being collected, also of what is not kept */
    uint32_t kept;
    char line[YENC_KEPT_MAX];
};

/* `lf_ends`: see struct yenc_raw; false for every NNTP server that ends its status lines with CRLF. With CRLF.CRLF
 * as the only end, a poster cannot smuggle a reply into the pipeline with bare LFs. */
void yenc_article_init(struct yenc_article *a, bool lf_ends);
/* Lends `out` until the article is done or other room is given; it may be given at once, or when feed asks for it
 * (then the header is known; yenc_article_wants() says how much). Moving to other room takes out[0 .. len) along:
 * the caller copies, or the block was grown in place. capacity must not be less than len. */
void yenc_article_room(struct yenc_article *a, uint8_t *out, size_t capacity);
/* Bytes that `out` should have for the whole part: what the header claims, at most YENC_RAW_MAX. */
size_t yenc_article_wants(const struct yenc_article *a);
/* Decodes n bytes, or up to the end of the article; *used says how many were consumed. Only out[0 .. capacity) is
 * written, and src may lie in it as long as it is not before out + len (decoding in place). */
enum yenc_feed yenc_article_feed(struct yenc_article *a, const uint8_t *src, size_t n,
                                 size_t *used);
/* The input ended without a dot line (a file, a lost connection): settles the verdict. */
void yenc_article_finish(struct yenc_article *a);

/* ---- encoding --------------------------------------------------------------------------------------------- */

enum { YENC_LINE_USUAL = 128, YENC_LINE_MIN = 64, YENC_LINE_MAX = 997 };

/* Room that yenc_encode() needs for n bytes. */
size_t yenc_encode_max(size_t n, unsigned line);
/* Encodes n bytes into lines of `line` characters (one more where the last is escaped), each with its CRLF, also the
 * last one. Dots that begin a line are escaped, so the text needs no dot-stuffing. Returns the bytes written. */
size_t yenc_encode(const uint8_t *src, size_t n, unsigned line, uint8_t *dst);

struct yenc_post {
    const char *name;
    uint64_t size;  /* of the file */
    uint64_t begin; /* of this part in the file, from 0 */
    uint32_t part;  /* from 1; 0: a single-part post */
    uint32_t total;
    unsigned line;
    bool has_file_crc;
    uint32_t file_crc; /* goes into the =yend of a multipart post if known */
};
size_t yenc_post_max(const struct yenc_post *p, size_t n);
/* Makes the whole body of one part: =ybegin, =ypart, data, =yend, without the terminating dot line. `dst` has
 * yenc_post_max() bytes. Returns the bytes written. */
size_t yenc_post_make(const struct yenc_post *p, const uint8_t *data, size_t n, uint8_t *dst);

#endif
