/* make.h - NZBs and queues for tests, made in one line. */
#ifndef TESTS_QUEUE_MAKE_H
#define TESTS_QUEUE_MAKE_H

#include <stddef.h>
#include <stdint.h>

#include "queue/queue.h"

/* An NZB with one file for each word of `files`: "name:segments[:bytes]", separated by blanks. Ids are made from
 * `tag`, the names and the numbers. Aborts when it does not parse. */
struct nzb *make_nzb(const char *tag, const char *files);
/* Its text, for tests that store it; mem_free() it. */
char *make_nzb_text(const char *tag, const char *files, size_t *len);

/* Adds a job of that name and makes it QUEUED. */
struct queue_job *make_job(struct queue *q, const char *name, const char *files);
struct queue_job *make_job_priority(struct queue *q, const char *name, const char *files,
                                    int32_t priority);

/* `count` servers, all firm and active, server s at level s / per_level, ids from 1. */
void make_servers(struct queue *q, unsigned count, unsigned per_level);

#endif
