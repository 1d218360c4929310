/* state.h - the queue on disk: snapshot, journal, stored NZBs. docs/STATE-FORMAT.md is the format.
 *
 *     queue.json            the last snapshot                     queue.json.prev   the one before
 *     queue.<n>.journal     articles settled since snapshot n     nzb/<id>.nzb.gz   the posted NZBs
 *
 * Saving is two halves. queue_snapshot() runs on the owner's thread: it turns the queue into bytes (about 10 ms for
 * a million articles) and starts the next journal number. queue_snapshot_write() does the rest on a thread that may
 * block: checksum, tmp, fsync, rename, fsync(dir). When it succeeded the owner calls queue_snapshot_saved(); when it
 * failed nothing was lost, the old journals are still there, and the queue stays dirty. Whoever writes it has synced the
 * data of every article that was done when it was made: a snapshot never promises bytes that are not on the disk.
 *
 * The journal is only about articles: everything else is in a snapshot before it is acknowledged. A record may be
 * appended only after the data it names was synced; queue_journal_append() syncs the journal itself.
 *
 * Loading never gives up silently and never starts empty: it takes the newest good snapshot, replays every journal
 * that belongs to it up to the first bad record, sets aside what it could not read, and says each of these things in
 * the report. With both snapshots bad it rebuilds the queue from the stored NZBs.
 *
 * Functions that take a `struct fsx` block; call them on the disk thread (or before the loop runs). */
#ifndef QUEUE_STATE_H
#define QUEUE_STATE_H

#include "base/fsx.h"
#include "queue/queue.h"

enum { QUEUE_STATE_VERSION = 1 };

/* ---- snapshot ---- */

struct queue_snapshot {
    char *bytes; /* the body; the header with its checksum is made when it is written */
    size_t len;
    uint64_t changes; /* what the queue had seen */
    uint64_t
        generation; /* its number; articles settled from now on belong into journal `generation` */
    uint64_t keep_from; /* journals before this one are of no use once it is written */
};
int queue_snapshot(struct queue *q, struct queue_snapshot *s);
void queue_snapshot_free(struct queue_snapshot *s);
int queue_snapshot_write(const struct fsx *fs, int dirfd, const struct queue_snapshot *s,
                         struct err *e);
void queue_snapshot_saved(struct queue *q, const struct queue_snapshot *s);
static inline bool queue_dirty(const struct queue *q)
{
    return q->changes != q->saved_changes;
}

/* ---- journal ---- */

struct queue_journal_record {
    struct queue_ref article;
    struct queue_part part;
    bool failed; /* else done */
};
/* Bytes of one record; `out` has QUEUE_JOURNAL_RECORD bytes. Any thread. */
enum { QUEUE_JOURNAL_RECORD = 32 };
void queue_journal_encode(const struct queue_journal_record *r, unsigned char *out);

struct queue_journal { /* one open journal file; the disk thread's */
    const struct fsx *fs;
    int dirfd;
    int fd;
    uint64_t generation;
    uint64_t end; /* bytes written and synced */
};
/* Opens or creates journal `generation` for appending behind its last good record. */
int queue_journal_open(struct queue_journal *j, const struct fsx *fs, int dirfd,
                       uint64_t generation, struct err *e);
/* Writes whole records and syncs them: on 0 they survive a power cut. After an error the journal must be closed and
 * a new snapshot taken. */
int queue_journal_append(struct queue_journal *j, const unsigned char *records, size_t len,
                         struct err *e);
void queue_journal_close(struct queue_journal *j);

/* ---- stored NZBs ---- */

enum { QUEUE_STORED_NAME = 80 };
/* Compresses and stores the text of an NZB, durably, under a name made from `id` (gzip text is kept as it is). `name`
 * (QUEUE_STORED_NAME bytes) is told it. `filename` is what the user called it: it is written into the gzip header, so
 * that a queue rebuilt from stored NZBs has names. */
int queue_nzb_store(const struct fsx *fs, int dirfd, uint32_t id, const char *filename,
                    const void *bytes, size_t len, char *name, struct err *e);
int queue_nzb_load(const struct fsx *fs, int dirfd, const char *name, const char *filename,
                   struct nzb **out, struct err *e);
/* Removes a stored NZB that no job names any more. */
int queue_nzb_forget(const struct fsx *fs, int dirfd, const char *name, struct err *e);

/* ---- loading ---- */

enum queue_loaded {
    QUEUE_FROM_NOTHING,  /* there was no state at all: a new queue */
    QUEUE_FROM_SNAPSHOT, /* queue.json */
    QUEUE_FROM_PREVIOUS, /* queue.json was bad or missing */
    QUEUE_FROM_NZBS,     /* both were: jobs rebuilt from what was posted, progress lost */
};
typedef void (*queue_say_cb)(void *arg, const char *line);
struct queue_load_report {
    enum queue_loaded source;
    uint64_t generation;  /* the journal to go on with */
    uint64_t replayed;    /* journal records applied */
    uint64_t journal_cut; /* bytes of journals that were not usable */
    uint32_t set_aside;   /* files renamed to name.corrupt-<time> */
    uint32_t jobs_broken; /* whose stored NZB is gone or changed: failed, with the reason */
};
/* Reads the state below `dirfd` into a new queue. `say` gets one sentence for each thing that was not as it should
 * be (and nothing when all is well). The daemon must hold its lock. After it, take a snapshot at once. */
int queue_load(const struct fsx *fs, int dirfd, int64_t now_at, queue_say_cb say, void *arg,
               struct queue **out, struct queue_load_report *report, struct err *e);

#endif
