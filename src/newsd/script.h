/* script.h - fault scripts: when the server misbehaves, and how.
 *
 * A script is text, a rule per line; docs/NEWSD.md has the reference:
 *
 *     article match=*.part02.rar part=3 times=1 : truncate at=50%, reset
 *     greet conn=2-5 : status 502 "too many connections", close
 *
 * The first rule whose conditions hold is the one that acts. Rules are parsed before the server's thread starts and
 * belong to it afterwards (they count). What a rule does to a reply is fault.h's matter. */
#ifndef NEWSD_SCRIPT_H
#define NEWSD_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum newsd_phase {
    PHASE_CONNECT, /* accepted; nothing is sent yet, TLS has not begun */
    PHASE_GREET,
    PHASE_AUTH,    /* AUTHINFO USER and PASS */
    PHASE_ARTICLE, /* ARTICLE, BODY, HEAD, STAT of an article that is there */
    PHASE_COMMAND, /* every command, these too */
    PHASES,
};

/* What the reply becomes. */
enum newsd_content {
    FAULT_INSTEAD = 1 << 0, /* `instead` is the whole reply */
    FAULT_DROP = 1 << 1,
    FAULT_DOUBLE = 1 << 2,
    FAULT_WRONG_ID = 1 << 3,
    FAULT_SWAP = 1 << 4,
    FAULT_DAMAGE = 1 << 5,
    FAULT_BAD_CRC = 1 << 6,
    FAULT_TRUNCATE = 1 << 7,
    FAULT_DOTS = 1 << 8,
    FAULT_ENDLESS_LINE = 1 << 9,
    FAULT_ENDLESS_BODY = 1 << 10,
    FAULT_BARE_LF = 1 << 11,
};

/* How it is sent. */
enum newsd_deliver {
    DELIVER_WHOLE,
    DELIVER_RESET,
    DELIVER_CLOSE,
    DELIVER_CUT, /* TLS: without close_notify */
    DELIVER_HALF_CLOSE,
    DELIVER_SILENCE,
    DELIVER_ALERT,
    DELIVER_LAST_END = DELIVER_ALERT, /* up to here nothing follows */
    DELIVER_PAUSE,
    DELIVER_DRIP,
    DELIVER_RAW,
    DELIVER_KEY_UPDATE,
};

struct newsd_bytes {
    uint8_t *p;
    size_t len;
};

/* So many bytes into the reply, or percent of it. */
struct newsd_place {
    bool percent;
    uint64_t value; /* UINT64_MAX: behind all of it */
};

struct newsd_range {
    uint64_t first, last;
};

struct newsd_rule {
    enum newsd_phase phase;
    unsigned line;
    /* conditions */
    struct newsd_range conn, nth, hit, part;
    uint64_t times; /* acts at most so often; UINT64_MAX: always */
    unsigned pct;   /* of the occasions, by chance */
    unsigned share; /* of the articles, always the same ones */
    char *cmd;      /* "BODY"; NULL: any */
    char *match;    /* glob; NULL: any */
    /* what it does */
    unsigned content;
    struct newsd_bytes instead, before, behind, raw;
    struct newsd_place truncate_at, endless_at;
    enum newsd_deliver deliver;
    struct newsd_place after;
    unsigned bytes, every_ms; /* drip; pause takes every_ms */
    /* so far */
    uint64_t matched, fired;
};

struct newsd_script {
    struct newsd_rule *rules;
    size_t len, room;
    uint64_t seed;
    uint64_t state; /* of the generator */
};

void newsd_script_init(struct newsd_script *s, uint64_t seed);
void newsd_script_free(struct newsd_script *s);
/* Adds the rules of `text`; `name` stands in front of messages. On failure some may have been added. */
int newsd_script_parse(struct newsd_script *s, const char *text, const char *name, struct err *e);

/* What is happening. */
struct newsd_occasion {
    enum newsd_phase phase;
    uint64_t conn;    /* from 1 */
    const char *cmd;  /* in capitals; NULL: none */
    const char *id;   /* PHASE_ARTICLE: message-id without brackets */
    const char *path; /* and the file's path, or NULL */
    const char *name;
    uint32_t part;
    uint64_t hit; /* how often it was asked for, this time included */
};
/* The rule that acts now, or NULL. Counts. */
const struct newsd_rule *newsd_script_match(struct newsd_script *s, const struct newsd_occasion *o);

/* Where a place is in a reply of `total` bytes. */
uint64_t newsd_script_place(const struct newsd_place *p, uint64_t total);

#endif
