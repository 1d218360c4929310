/* model.h - what the files of this folder share about the queue's inside; nobody else includes it.
 *
 * Two rules keep the many counters and the lanes true:
 *
 * 1. Counters of a job are sums over its files. Whoever changes anything countable of a file does it between
 *    queue_tally_out() and queue_tally_in(): the file's whole share is taken out, then put in again. There is no other
 *    place where they change.
 * 2. A lane bit is set where the thing is made ready or stops being so, always upwards: articles (queue_file_refresh),
 *    then the file in its job, then the job in the queue (queue_file_show, queue_job_show). */
#ifndef QUEUE_MODEL_H
#define QUEUE_MODEL_H

#include "queue/idmap.h"
#include "queue/queue.h"

/* ---- file.c ---- */

/* A file of the NZB with all articles open; not in any job yet. NULL: no memory. */
struct queue_file *queue_file_new(struct queue *q, struct nzb *nzb, uint32_t index);
void queue_file_free(struct queue *q, struct queue_file *f);
/* New memory for `servers` lanes, with what was tried carried over: from[s] is where server s was, or -1. The old
 * memory is left alone; queue_file_take_cells() puts the new one in. */
struct queue_cells;
struct queue_cells *queue_cells_new(uint32_t count, unsigned servers);
void queue_cells_free(struct queue_cells *c);
size_t queue_cells_bytes(uint32_t count, unsigned servers);
void queue_file_take_cells(struct queue_file *f, struct queue_cells *c, unsigned servers,
                           const int *from);

/* tries[i]: attempts in bits 0-5, grace rounds in 6-8, number of the fallback id in 9-15. */
enum { QUEUE_GRACE_SHIFT = 6, QUEUE_FALLBACK_SHIFT = 9 };
_Static_assert(QUEUE_ATTEMPTS_MAX < 1 << QUEUE_GRACE_SHIFT, "attempts fit");
_Static_assert(QUEUE_GRACE_MAX < 1 << (QUEUE_FALLBACK_SHIFT - QUEUE_GRACE_SHIFT),
               "grace rounds fit");
_Static_assert(QUEUE_FALLBACK_MAX < 1 << (16 - QUEUE_FALLBACK_SHIFT), "fallbacks fit");
uint32_t queue_fallback_count(const struct queue_file *f, uint32_t index);

/* One bit of article state or trial, without counters or lanes. */
void queue_article_set_state(struct queue_file *f, uint32_t index, enum queue_article_state to);
void queue_article_set_tried(struct queue_file *f, uint32_t index, unsigned server,
                             enum queue_tried how);
void queue_article_forget_tried(struct queue *q, struct queue_file *f, uint32_t index);
/* The state with everything that follows from it: counters out, state, counters in, lanes. */
void queue_article_change(struct queue *q, struct queue_file *f, uint32_t index,
                          enum queue_article_state to);
/* Order of kinds inside a job: PAR2 main 0, data and extra 1, volumes 2. */
unsigned queue_fetch_class(uint8_t kind);

void queue_tally_out(struct queue *q, const struct queue_file *f);
void queue_tally_in(struct queue *q, const struct queue_file *f);

/* Which servers' age limit the file has not passed. */
uint32_t queue_in_retention(const struct queue *q, const struct queue_file *f, int64_t now_at);
void queue_file_refresh(struct queue *q, struct queue_file *f); /* every article */
void queue_file_refresh_one(struct queue *q, struct queue_file *f,
                            uint32_t index); /* and its file and job */
void queue_file_show(struct queue *q, struct queue_file *f);
void queue_job_show(struct queue *q, struct queue_job *j);

/* ---- order.c ---- */

int queue_order_reserve(struct queue *q, uint32_t jobs); /* room for so many active jobs */
int queue_ready_alloc(struct bitset **ready, unsigned lanes, uint32_t size);
/* After any change of order, priority or membership: positions, run order, ranks, lanes, sums. O(jobs). */
void queue_order_rebuild(struct queue *q);
void queue_order_insert(struct queue *q, struct queue_job *j, uint32_t at);
void queue_order_remove(struct queue *q, struct queue_job *j);
int queue_past_reserve(struct queue *q, uint32_t jobs);
void queue_past_append(struct queue *q, struct queue_job *j);
void queue_past_remove(struct queue *q, struct queue_job *j);

/* ---- job.c ---- */

void queue_changed(struct queue *q, struct queue_job *j); /* row_version and changes */
struct queue_job *queue_job_alloc(struct queue *q);       /* empty, texts "", no id */
void queue_job_free(struct queue *q, struct queue_job *j);
void queue_job_free_files(struct queue *q, struct queue_job *j);
int queue_job_add_source(struct queue_job *j, struct nzb *nzb, const char *stored);
/* Positions and lanes after the file list changed. -ENOMEM only when it grew. */
int queue_job_files_changed(struct queue *q, struct queue_job *j);
int queue_job_build_files(struct queue *q, struct queue_job *j, struct nzb *nzb);
/* Which PAR2 files are wanted from the start. */
void queue_job_choose_wanted(struct queue *q, struct queue_job *j);
void queue_job_sum_posted(struct queue_job *j); /* totals that depend on the list of files only */
/* Room for the statistics of these servers, so that counting needs no memory. */
int queue_job_ensure_stats(struct queue_job *j, const struct queue_server *servers, unsigned count);
void queue_job_count(struct queue_job *j, uint32_t server_id, uint32_t done, uint32_t failed);
/* Leased articles are open again; the caller forgets its leases. */
void queue_job_unlease(struct queue *q, struct queue_job *j);
void queue_file_unlease(struct queue *q, struct queue_file *f);
int queue_params_set(struct queue_params *p, const char *name, const char *value);
void queue_params_free(struct queue_params *p);

/* ---- shed.c ---- */

void queue_job_zero_sums(struct queue_job *j); /* before its files are put in again */
void queue_job_apply_reload(struct queue *q, struct queue_job *j); /* what job->reload says */

/* ---- wait.c ---- */

int queue_waits_new(struct queue *q);
void queue_waits_free(struct queue *q);
/* Forgets entries whose file is gone or whose article no longer waits. */
void queue_waits_purge(struct queue *q);
size_t queue_waits_bytes(const struct queue *q);

/* ---- health.c ---- */

void queue_damage_failed(struct queue_file *f, uint32_t index);
void queue_damage_free(struct queue_file *f);

#endif
