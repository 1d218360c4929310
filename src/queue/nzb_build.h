/* nzb_build.h - puts an NZB together, file by file; private to the parser.
 *
 * The parser feeds it what stands in the text; here numbers are checked, segments sorted, doubles sorted out, names
 * found. What is wrong with one segment is counted and noted (first_problem), never fatal. */
#ifndef QUEUE_NZB_BUILD_H
#define QUEUE_NZB_BUILD_H

#include "queue/nzb.h"

struct nzb_build {
    struct nzb *n;
    uint32_t file_room, article_room, fallback_room;
    size_t ids_room;
    struct nzb_file file; /* the one being read; strings in the arena */
    bool in_file;
    bool sorted; /* its numbers came in ascending order */
};

/* A piece of text of the document, not terminated. */
struct nzb_text {
    const char *at;
    size_t len;
};

int nzb_build_init(struct nzb_build *b); /* -ENOMEM */
void nzb_build_close(struct nzb_build *b);

/* The first one is kept in first_problem. */
void nzb_build_problem(struct nzb_build *b, unsigned long line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Each: 0, -ENOMEM, or ERR_LIMIT with the reason in `e`. A NULL text: the attribute was not there. */
int nzb_build_meta(struct nzb_build *b, struct nzb_text type, struct nzb_text value);
int nzb_build_file(struct nzb_build *b, struct nzb_text subject, struct nzb_text poster,
                   struct nzb_text date, unsigned long line, struct err *e);
int nzb_build_group(struct nzb_build *b, struct nzb_text group);
int nzb_build_segment(struct nzb_build *b, struct nzb_text number, struct nzb_text bytes,
                      struct nzb_text id, unsigned long line, struct err *e);
int nzb_build_file_end(struct nzb_build *b, unsigned long line);
/* Takes the NZB out; `filename` may be NULL. ERR_INVALID when there is nothing in it. */
int nzb_build_finish(struct nzb_build *b, const char *filename, struct nzb **out, struct err *e);

#endif
