/* disk.h - the one thread that writes article data: open, write at an offset, sync, close.
 *
 * An actor. Every message posted comes back through `deliver` (on the disk's thread, must not block) exactly once, in
 * the order of posting, with its answer in it. Files are the disk's own and known to others by pointer, from the OPEN
 * that made them to the CLOSE; only so many of them are really open at a time.
 *
 * What the answers mean:
 *   OPEN   code 0: the file exists and space for it is taken (where the filesystem can). ENOSPC is met here, not in
 *          the middle of a download.
 *   WRITE  code 0: the kernel has all bytes; they survive a power cut only after a later SYNC. The buffer goes back
 *          to its pool in any case. Another code: nothing of it counts as written; when there is room again, it may
 *          be fetched and written again.
 *   SYNC   code 0: everything written before is on the disk. Another code: everything written since the last good
 *          SYNC is lost, although a later sync would say OK. The file is of no use any more: CLOSE it and OPEN a
 *          `fresh` one. Until then WRITE and SYNC repeat the answer. */
#ifndef DISK_DISK_H
#define DISK_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fsx.h"

struct disk;
struct disk_file;

enum disk_kind { DISK_OPEN, DISK_WRITE, DISK_SYNC, DISK_CLOSE };
enum { DISK_TEXT_MAX = 200 };

struct disk_msg {
    enum disk_kind kind;
    uint64_t tag;           /* the sender's own */
    struct disk_file *file; /* from the answer to OPEN */

    /* OPEN */
    int dirfd; /* borrowed until the CLOSE is back */
    char name[FSX_NAME_MAX + 1];
    uint64_t size; /* to be preallocated; 0: not known */
    bool fresh;    /* a file of that name is removed first; else it is taken over, links excepted */

    /* WRITE */
    uint64_t at;
    struct buf *buf; /* given: its len bytes */

    /* The answer. */
    int code;
    char text[DISK_TEXT_MAX]; /* "name: no space left on device" */
};

struct disk_opts {
    const struct fsx *fs;
    struct buf_pool *bufs;
    unsigned messages; /* the most that will ever be posted and not yet have come back */
    unsigned open_max; /* descriptors held at a time */
    void (*deliver)(void *arg, struct disk_msg *msg);
    void *arg;
};

/* On failure nothing is held. */
int disk_start(struct disk **out, const struct disk_opts *opts, struct err *e);
/* Any thread. 0, or ERR_STOPPED: then the message is still the caller's. */
int disk_post(struct disk *d, struct disk_msg *msg);
/* Any thread. What was posted is still done and answered; files that were not closed are closed, unsynced. */
void disk_stop(struct disk *d);
void disk_join(struct disk *d);
/* After the join, when nobody posts any more. */
void disk_free(struct disk *d);

#endif
