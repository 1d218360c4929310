/* peer.h - a scripted news server on loopback for tests: articles by number, and one misbehaviour at a chosen place.
 *
 * It runs on threads of its own with blocking sockets, as unlike our code as possible. Article k is "<k@peer>": part
 * k+1 of a file whose bytes are peer_byte(offset), PEER_PART bytes each. */
#ifndef TESTS_PEER_H
#define TESTS_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum { PEER_PART = 20000, PEER_ARTICLES = 64, PEER_CONNS = 256 };

/* Where in a session it happens. */
enum peer_place { PEER_CONNECT, PEER_AUTH, PEER_BEFORE_BODY, PEER_MID_BODY, PEER_PLACES };

/* What happens there. */
enum peer_fault {
    PEER_OK,
    PEER_RST,
    PEER_FIN,
    PEER_HALF_CLOSE, /* FIN, but goes on reading */
    PEER_SILENCE,    /* until the peer goes away */
    PEER_DRIP,       /* one byte now and then */
    PEER_NO_CRLF,    /* zeros without end, no line */
    PEER_ENDLESS,    /* a body without end */
    PEER_SAY,        /* plan.say, then goes on serving */
    PEER_SAY_CLOSE,  /* plan.say, then FIN */
    PEER_SWAP,       /* the body of another article, valid in itself */
    PEER_OTHER_ID,   /* 222 with another id and article */
    PEER_DOUBLE,     /* the reply twice */
    PEER_SKIP,       /* no reply to this command */
    PEER_BAD_CRC,
    PEER_ONE_AT_A_TIME, /* forgets what was sent behind a command: cannot be pipelined */
    PEER_BYTEWISE,      /* everything in single bytes */
    PEER_FAULTS
};

struct peer_plan {
    enum peer_fault fault;
    enum peer_place place;
    unsigned times;  /* in so many sessions or replies; 0: always */
    int article;     /* BODY faults: at this article only; -1: at the first that comes */
    const char *say; /* with its CRLF */
};

struct peer {
    struct peer_plan plan;
    const char *user, *pass; /* NULL: no login wanted */
    const char *cert;        /* prefix of .crt and .key: speaks TLS; NULL: plain */
    bool lack_all;           /* 430 for everything */
    bool lf_only;            /* ends its lines with LF */
    unsigned max_conns;      /* 502 above this; 0: any */
    uint16_t port;

    atomic_uint hits[PEER_ARTICLES]; /* BODY and STAT commands seen, per article */
    atomic_uint sessions;
    atomic_uint logins;  /* AUTHINFO PASS seen */
    atomic_uint strange; /* commands that no client of ours may send */
    atomic_uint open_now;
    atomic_uint most_open;
    atomic_uint fired;

    int listener;
    atomic_bool stop;
    void *ctx; /* SSL_CTX */
    uv_thread_t thread;
    uv_thread_t threads[PEER_CONNS];
    unsigned thread_count;
    atomic_int fds[PEER_CONNS];
};

uint8_t peer_byte(uint64_t offset);
/* Listens on 127.0.0.1; p->port tells where. Set the fields above before. */
void peer_start(struct peer *p);
void peer_stop(struct peer *p);
unsigned peer_hits(struct peer *p, unsigned article);

#endif
