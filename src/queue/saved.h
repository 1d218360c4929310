/* saved.h - private to the files that write and read the saved queue: names of things on disk, and the two halves that
 * turn a job's files into JSON and back. */
#ifndef QUEUE_SAVED_H
#define QUEUE_SAVED_H

#include <jansson.h>

#include "queue/model.h"
#include "queue/state.h"
#include "queue/text.h"

#define SAVED_NAME     "queue.json"
#define SAVED_PREVIOUS "queue.json.prev"
#define SAVED_NZB_DIR  "nzb"

enum {
    SAVED_HEADER = 126, /* bytes of the first line, see saved_header() */
    SAVED_JOURNAL_NAME = 48,
};

/* One regular part: what stands at `number` when all parts have this size. */
struct saved_odd { /* a part that is not as the rule says; 16 bytes as saved, little-endian */
    uint32_t index;
    uint32_t size;
    uint64_t offset;
};

/* save_files.c: "[{...},...]" */
void saved_put_files(const struct queue *q, const struct queue_job *j, struct text *t);
/* load_files.c: makes the job's files out of that; `nzbs` are its sources, in order. The job has none before. */
int saved_take_files(struct queue *q, struct queue_job *j, struct nzb *const *nzbs, json_t *files,
                     int64_t now_at, struct err *e);

/* saved_job.c: everything of a job but its files. */
void saved_put_job(const struct queue_job *j, struct text *t);
int saved_take_job(struct queue_job *j, json_t *line, struct err *e);

/* save.c: the whole first line with its newline, SAVED_HEADER bytes; `out` has one more. */
void saved_header(const char *body, size_t len, char *out);
/* journal.c: applies one journal's good records; how many bytes were not usable is added to *cut. */
int saved_replay(const struct fsx *fs, int dirfd, struct queue *q, uint64_t generation,
                 uint64_t *replayed, uint64_t *cut, struct err *e);
void saved_journal_name(uint64_t generation, char *out); /* SAVED_JOURNAL_NAME bytes */
bool saved_is_journal(const char *name, uint64_t *generation);

#endif
