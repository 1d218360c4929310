/* pick.h - which article can this server take next, and what became of it.
 *
 * queue_pick() answers in a handful of word operations: first job of the run order that has something for the server,
 * first such file, first such article. Each of the three is a bitset per server (a "lane") that is kept up to date
 * when something changes; nothing is walked, so the cost does not depend on how many articles, files or jobs there
 * are, nor on how many of them are held, paused, unwanted, or tried here already.
 *
 * Who may take an open article: the servers of the lowest level that still has an untried firm (not optional) server,
 * and the untried optional ones passed on the way. "Untried" counts per article and server; a server outside its
 * retention for the file counts as tried. A server that is `down` is passed over: its level does not keep the article
 * waiting, but the article is not given up before it has been asked.
 *
 * An open article that every active server has tried is in the lane QUEUE_NOBODY(q): the coordinator drains it
 *     while (queue_pick(q, QUEUE_NOBODY(q), &p)) -> fallback id, grace wait, or failed
 * after every event. So "last server tried", "server disabled" and "resumed after that" are one path.
 *
 * A picked article is LEASED until exactly one of the queue_article_* calls below ends the lease. Leases themselves
 * (generation, deadline, server) are the coordinator's: it keeps them in a table of its own and drops results whose
 * lease is gone, so a call here always concerns a leased article. When a job is removed the coordinator drops its
 * leases first (queue_article_return).
 *
 * Nothing in here allocates, but for queue_set_servers() and queue_article_wait(). */
#ifndef QUEUE_PICK_H
#define QUEUE_PICK_H

#include "queue/queue.h"

/* Lanes are numbered as the servers are in the list given last; the one behind them is nobody's. */
#define QUEUE_NOBODY(q) ((q)->server_count)

/* The servers, all of them, in any order; again after every change of level, activity, `down` or retention, and once
 * a day (retention moves with `now_at`). What was tried is kept by server id. Costs about one word operation per
 * server and 64 articles, and a few cache misses per file: 3 ms for a million articles in 10,000 files. -ENOMEM or
 * ERR_LIMIT: nothing changed. */
int queue_set_servers(struct queue *q, const struct queue_server *servers, unsigned count,
                      int64_t now_at, struct err *e);

struct queue_pick {
    struct queue_job *job;
    struct queue_file *file;
    uint32_t index;
    const char *message_id; /* without <>; valid while the file is */
    uint32_t bytes;         /* size hint; 0 unknown */
};
static inline struct queue_ref queue_pick_ref(const struct queue_pick *p)
{
    return (struct queue_ref){p->file->id, p->index};
}

/* Leases the next article that `lane` may take; false when there is none. */
bool queue_pick(struct queue *q, unsigned lane, struct queue_pick *out);
/* The same without leasing it: is there anything, and of which job. */
bool queue_peek(const struct queue *q, unsigned lane, struct queue_pick *out);

/* ---- ends of a lease ---- */

/* What an ended article means for its file and job. */
enum queue_news {
    QUEUE_NEWS_FILE_ENDED = 1, /* its last article was settled: close it on disk */
    QUEUE_NEWS_JOB_ENDED = 2,  /* no wanted, unpaused file has anything left */
};

/* Uncharged: the connection died, the lease was cancelled. Open again, as before. */
void queue_article_return(struct queue *q, struct queue_ref a);
/* This server (its lane) could not; open again for others. NOT_THERE counts for the whole server group. */
void queue_article_tried(struct queue *q, struct queue_ref a, unsigned lane, enum queue_tried how);
/* Charged with an attempt (see queue_attempts) and open again at `at_ms`. */
int queue_article_wait(struct queue *q, struct queue_ref a, uint64_t at_ms);
/* From the NOBODY lane: asked again everywhere at `at_ms`: what was tried is forgotten and a grace round counted. */
int queue_article_grace(struct queue *q, struct queue_ref a, uint64_t at_ms);
/* From the NOBODY lane: goes on with the next message-id of the same part, untried everywhere; false when the NZB
 * has none (the article stays leased). */
bool queue_article_fallback(struct queue *q, struct queue_ref a);
/* Good, and in `part`. `wire_bytes` came over the network. `lane` gets the credit. Returns QUEUE_NEWS_* bits. */
unsigned queue_article_done(struct queue *q, struct queue_ref a, unsigned lane,
                            const struct queue_part *part, uint32_t wire_bytes);
/* Given up. `part` may tell which damaged bytes are on disk (else NULL): PAR2 may use their good blocks. */
unsigned queue_article_failed(struct queue *q, struct queue_ref a, const struct queue_part *part);

/* ---- questions ---- */

unsigned queue_attempts(const struct queue_file *f, uint32_t index); /* charged so far */
unsigned queue_grace(const struct queue_file *f, uint32_t index);    /* grace rounds so far */
enum queue_tried queue_tried_on(const struct queue_file *f, uint32_t index, unsigned lane);
/* Every server that tried it said "not there": grace applies; bad data never gets better by waiting. */
bool queue_only_missing(const struct queue *q, const struct queue_file *f, uint32_t index);

/* ---- waiting articles ---- */

/* When the next one is due; UINT64_MAX: none waits. */
uint64_t queue_next_wake_ms(const struct queue *q);
/* Opens what is due, at most `max` of them; returns how many. */
unsigned queue_wake(struct queue *q, uint64_t now_ms, unsigned max);
/* Opens all that wait in this job (all jobs: NULL), due or not: a server came back, the user said "now". */
void queue_wake_job(struct queue *q, struct queue_job *j);

#endif
