/* health.h - how much of a job is still good, and how much must be.
 *
 * Permille, 0..1000, in bytes of the NZB, as NZBGet's clients expect; and, once the PAR2 main file was read, exact in
 * PAR2 blocks. All O(1) from counters that pick.h keeps, but for queue_par2_known(). Articles that are not settled
 * yet count as good: a job starts at 1000 and only ever falls. */
#ifndef QUEUE_HEALTH_H
#define QUEUE_HEALTH_H

#include "queue/queue.h"

enum { QUEUE_CRITICAL_UNKNOWN = 850 };

/* 1000 * (total - failed) / total over the file's articles, gaps counted as failed. */
unsigned queue_file_health(const struct queue_file *f);
/* In bytes over what is neither PAR2 nor extra; 999 at most when anything failed. */
unsigned queue_job_health(const struct queue_job *j);
/* Below this, PAR2 cannot help: bytes of good PAR2 data against the rest. 1000 without PAR2 files. 850 when the
 * names do not tell which files are PAR2 (obfuscated post) and nothing was recognised yet. */
unsigned queue_job_critical(const struct queue_job *j);

enum queue_health_check { QUEUE_HEALTH_NONE, QUEUE_HEALTH_PARK, QUEUE_HEALTH_DELETE };
/* "Park", "Delete", "None"; also NZBGet's "Pause" (= Park) and "Dupe" (= Delete, wakes the standby). -1: unknown. */
int queue_health_check_find(const char *word);
/* What the check asks for now: NONE, or the given mode when the job is beyond repair. */
enum queue_health_check queue_health_verdict(const struct queue_job *j,
                                             enum queue_health_check mode);

/* ---- in blocks ---- */

/* The PAR2 main file was read: blocks have `slice` bytes and these files are in the set, with their true sizes. From
 * now on failures are counted in blocks. Walks the articles once. */
struct queue_par2_member {
    uint32_t file_id;
    uint64_t size;
};
int queue_par2_known(struct queue *q, struct queue_job *j, uint64_t slice,
                     const struct queue_par2_member *members, uint32_t count);

struct queue_blocks {
    bool known;
    uint32_t lost;      /* blocks that failed articles touch */
    uint32_t here;      /* recovery blocks in volumes that ended well */
    uint32_t wanted;    /* in volumes on their way */
    uint32_t available; /* in volumes not asked for yet */
};
struct queue_blocks queue_job_blocks(const struct queue_job *j);

#endif
