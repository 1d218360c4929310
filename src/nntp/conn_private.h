/* conn_private.h - between conn.c and conn_body.c only. */
#ifndef NNTP_CONN_PRIVATE_H
#define NNTP_CONN_PRIVATE_H

#include "nntp/conn.h"

enum asked { ASKED_USER, ASKED_PASS, ASKED_MODE, ASKED_GROUP, ASKED_BODY, ASKED_STAT };

static inline struct nntp_fetch *nntp_conn_head(const struct nntp_conn *c)
{
    return LIST_ENTRY(c->fetches.next, struct nntp_fetch, node);
}

/* Writes a command and remembers what its reply will be. False: the connection died of it. */
bool nntp_conn_ask(struct nntp_conn *c, enum asked what, const char *command, size_t len);
void nntp_conn_die(struct nntp_conn *c, enum nntp_trouble trouble, int code, const char *text);
/* With the last reply as the reason. */
void nntp_conn_die_reply(struct nntp_conn *c, enum nntp_trouble trouble);
/* An answer is awaited from now on: sets the clocks. */
void nntp_conn_watch(struct nntp_conn *c);

/* conn_body.c: a status line arrived that answers such a question */
void nntp_conn_on_group(struct nntp_conn *c);
void nntp_conn_on_body(struct nntp_conn *c);
void nntp_conn_on_stat(struct nntp_conn *c);
void nntp_conn_feed_body(struct nntp_conn *c, const uint8_t *p, size_t n, size_t *used);

#endif
