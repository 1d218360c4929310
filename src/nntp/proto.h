/* proto.h - the words of NNTP (RFC 3977, 4643) without a socket: status lines in, commands out.
 *
 * Pure; everything that comes in is hostile. Bodies are not read here: they go straight to yenc_article_feed(). */
#ifndef NNTP_PROTO_H
#define NNTP_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nntp/msg.h"

enum { NNTP_LINE_MAX = 4096 }; /* of a status line; a longer one is an attack or not NNTP */

/* Collects one status line at a time. */
struct nntp_reply {
    int code;         /* 100..599 */
    const char *text; /* behind the code and its blank; control bytes are replaced */
    size_t text_len;
    bool bare_lf; /* the line ended in LF alone: this peer speaks LF throughout */

    /* private */
    size_t len;
    char line[NNTP_LINE_MAX + 1];
};

enum nntp_reply_state {
    NNTP_REPLY_MORE,  /* all bytes are used up */
    NNTP_REPLY_LINE,  /* a status line; bytes behind *used are what follows it */
    NNTP_REPLY_BAD,   /* not a status line: no three digits */
    NNTP_REPLY_FLOOD, /* no end within NNTP_LINE_MAX */
};

void nntp_reply_init(struct nntp_reply *r);
/* After LINE the next call begins a new line. */
enum nntp_reply_state nntp_reply_feed(struct nntp_reply *r, const uint8_t *p, size_t n,
                                      size_t *used);
/* The message-id in a reply's text ("0 <a@b> body"), without brackets; NULL: none. */
const char *nntp_reply_id(const struct nntp_reply *r, size_t *len);

/* What a reply other than the one hoped for says about the session. */
enum nntp_trouble nntp_reply_trouble(const struct nntp_reply *r);
/* 420, 423, 430, 451: the article is not here. */
bool nntp_reply_missing(int code);

/* 3..248 printable ASCII bytes without '<' and '>': fit to be sent. */
bool nntp_id_valid(const char *id);
/* Fit to stand in a command line: no blank, no control byte, not empty. A login word may contain blanks. */
bool nntp_group_valid(const char *group);
bool nntp_word_valid(const char *word);

/* "BODY <id>\r\n" and so on; the length. */
enum { NNTP_COMMAND_MAX = 320 };
size_t nntp_command(char out[NNTP_COMMAND_MAX], const char *verb, const char *open, const char *arg,
                    const char *close);

#endif
