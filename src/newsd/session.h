/* session.h - one connection to the server: command lines in, replies out, each when it is due.
 *
 * The server's thread only. Commands are carried out as they arrive and their replies queued; a reply is made (the
 * article encoded, the fault worked in) only when it is its turn to be sent, so that a deep pipeline holds no bodies.
 *
 *     session.c   bytes, lines, the queue, sending, time      command.c   what each command answers
 *     post.c      an article that comes in                    fault.c     what a rule makes of a reply */
#ifndef NEWSD_SESSION_H
#define NEWSD_SESSION_H

#include "base/list.h"
#include "net/listen.h"
#include "net/stream.h"
#include "newsd/newsd.h"
#include "newsd/script.h"
#include "newsd/store.h"

enum {
    LINE_MAX_BYTES = 2048, /* RFC 3977 3.1 says 512; long message-ids and passwords are met */
    REPLIES_MAX = 4096,    /* commands ahead of their replies; then we stop reading */
    SEGMENTS_MAX = 10,
    ENDLESS_BYTES = 128 * 512, /* what is repeated for ever: whole lines */
};

enum newsd_want { WANT_TEXT, WANT_HEAD, WANT_BODY, WANT_ARTICLE };

struct newsd_reply {
    struct list node;
    uint64_t due_ms;
    enum newsd_want want;          /* what follows the text */
    int32_t article;               /* of which article */
    const struct newsd_rule *rule; /* NULL: as it should be */
    bool last;                     /* close when it is sent */
    size_t text_len;
    char text[];
};

/* The reply that is being sent. */
struct newsd_sending {
    struct newsd_reply *reply; /* NULL: none */
    struct {
        const uint8_t *p;
        size_t len;
    } segments[SEGMENTS_MAX];
    unsigned count, at;
    size_t done;          /* of the segment `at` */
    uint64_t sent, total; /* bytes of the whole reply */
    bool endless;         /* the last segment is repeated */
    uint64_t mark;        /* where the rule wants something done */
    bool marked;          /* and it was */
    struct newsd_text lent;
    uint8_t *copy; /* an article that was changed */
};

struct newsd_post; /* post.c */

struct newsd_session {
    struct list node;
    struct newsd_server *server;
    struct net_stream stream;
    uv_timer_t timer; /* the next reply is due, or the next drop falls */
    unsigned handles; /* stream and timer, until both are closed */
    uint64_t number;  /* from 1 */
    struct list replies;
    unsigned replies_len;
    struct newsd_sending sending;
    uint64_t not_before_ms; /* a pause or drip */
    struct list rate_node;  /* waits for its turn under --rate */
    bool mute;              /* sends and obeys nothing any more */
    bool ended;             /* nothing may be written any more */
    bool authed, has_user;
    bool user_right;
    bool in_group;
    int32_t current; /* article, by number */
    struct newsd_post *post;
    size_t line_len;
    char line[LINE_MAX_BYTES];
};

struct newsd_counters {
    uint64_t connections, commands, unknown_commands, logins, login_failures, articles, missing,
        posted, bytes_out, faults;
    uint64_t open;
};

struct newsd_server {
    uv_loop_t *loop;
    struct net_loop nl;
    struct net_listen listen;
    struct net_tls tls_ctx;
    struct net_tls *tls; /* NULL: plain */
    struct newsd_catalog catalog;
    struct newsd_store store;
    struct newsd_script script;
    struct list sessions;
    char *user, *pass, *group;
    int dirfd;
    unsigned rtt_ms;
    uint64_t rate_bytes;
    int64_t rate_tokens;
    uint64_t rate_at_ns;
    uv_timer_t rate_timer;
    struct list rate_waiting;
    struct newsd_counters count;
    uint8_t *endless_line; /* no line end in it */
    uint8_t *endless_body; /* lines, none of them a dot */
};

/* ---- session.c ---- */

/* Takes the descriptor over, also on failure. */
void newsd_session_open(struct newsd_server *v, int fd);
void newsd_session_close(struct newsd_session *s);
/* Sends what is due. */
void newsd_session_pump(struct newsd_session *s);
/* Queues a reply. `text` is its lines; the article's text follows as `want` says. */
void newsd_session_reply(struct newsd_session *s, const struct newsd_rule *rule,
                         enum newsd_want want, int32_t article, const char *text, size_t len);
struct newsd_reply *newsd_session_last(struct newsd_session *s);

/* ---- command.c ---- */

/* `line` is without its line end and may be written to. */
void newsd_command_run(struct newsd_session *s, char *line);
void newsd_command_greet(struct newsd_session *s);
/* The article of a POST is here: the rule for its reply, and the reply when `id` is kept or `why` it is not. */
const struct newsd_rule *newsd_command_post_rule(struct newsd_session *s);
void newsd_command_posted(struct newsd_session *s, const struct newsd_rule *rule, const char *id,
                          const char *why);

/* ---- post.c ---- */

int newsd_post_begin(struct newsd_session *s);
/* Takes bytes of the article; how many were its own. Ends with newsd_command_posted(). */
size_t newsd_post_feed(struct newsd_session *s, const uint8_t *p, size_t n);
void newsd_post_free(struct newsd_post *p);

/* ---- fault.c ---- */

/* Makes s->sending out of a reply, with what its rule does to it. */
void newsd_sending_begin(struct newsd_session *s, struct newsd_reply *r);
void newsd_sending_end(struct newsd_session *s);

#endif
