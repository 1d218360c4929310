/* disk.h - the one thread that writes: article data, the journal, snapshots, stored NZBs.
 *
 * An actor (base/actor.h). Whoever asks gives it a message; it does what was asked, in the order in which it was asked,
 * and gives the same struct back through `deliver` exactly once, on the disk's thread, with the answer filled in. So
 * nothing overtakes: what DISK_DELETE removes was written before, and when DISK_SAVE comes back, all that was written
 * in front of it is on the disk. Only `struct disk_lost` begins here.
 *
 * A file is written under a name of its own (".17.part": names from outside never begin with a dot) in its job's
 * directory below `root`, and gets its real one when it is closed. One pwrite per article, at its offset; the buffer
 * goes back to its pool at once.
 *
 * Durable means: data, then journal. Records of the journal are kept back until the data they name was synced, at most
 * DISK_SYNC_MS or DISK_SYNC_BYTES, and before every snapshot and close. Write-back is asked for early, so that a sync
 * finds little left to do. A sync that fails is never tried again on the same file: everything in it counts as lost, the
 * file is removed, the records that named it are dropped, and disk_lost says so. */
#ifndef DISK_DISK_H
#define DISK_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/actor.h"
#include "base/buf.h"
#include "base/fsx.h"
#include "queue/state.h"

enum {
    DISK_SYNC_MS = 1000,
    DISK_SYNC_BYTES = 64 << 20,
    DISK_FDS = 256,      /* files open at once; more are opened when they are needed */
    DISK_RECORDS = 4096, /* records kept back at most; then it syncs */
};

enum disk_kind {
    DISK_OPEN,       /* struct disk_file_msg: make it, or find it again, with its size taken */
    DISK_WRITE,      /* struct disk_write */
    DISK_CLOSE,      /* struct disk_file_msg: sync it and give it its name; `made` is told */
    DISK_DELETE,     /* struct disk_file_msg: file_id 0 and a dir: everything of the job */
    DISK_MOVE,       /* struct disk_file_msg: the job's directory is to be called `name` */
    DISK_QUARANTINE, /* struct disk_file_msg: the job's directory goes where nobody looks by accident */
    DISK_SPACE,      /* struct disk_space */
    DISK_JOURNAL,    /* struct disk_journal: comes back at once; durable a moment later */
    DISK_SAVE,       /* struct disk_save */
    DISK_NZB_STORE,  /* struct disk_nzb */
    DISK_NZB_LOAD,   /* struct disk_nzb */
    DISK_NZB_FORGET, /* struct disk_nzb */
    DISK_LOST,       /* struct disk_lost; from the disk only, freed with mem_free() */
};

struct disk_msg {
    enum disk_kind kind;
    int code;        /* answer: 0 or an error */
    struct err *err; /* the asker's own, or NULL: gets the sentence */
};

struct disk_file_msg {
    struct disk_msg msg;
    uint32_t job_id;
    uint32_t file_id;
    const char *dir;  /* relative to the root; borrowed until it comes back */
    const char *name; /* borrowed; cleaned (base/name.h) by the asker */
    uint64_t size;    /* OPEN: decoded; 0 unknown */
    bool has_data;    /* OPEN: parts were written before; ERR_NOT_FOUND when the file is gone */
    char made[FSX_NAME_MAX + 1]; /* CLOSE: the name it got, which may have " (2)" in it */
};

struct disk_write {
    struct disk_msg msg;
    uint64_t lease; /* the asker's */
    uint32_t file_id;
    uint64_t offset;
    struct buf *buf; /* taken; buf->len bytes */
};

struct disk_space {
    struct disk_msg msg;
    uint64_t free_bytes;
};

struct disk_journal {
    struct disk_msg msg;
    struct queue_journal_record record;
};

struct disk_save {
    struct disk_msg msg;
    struct queue_snapshot snapshot; /* borrowed until it comes back */
};

struct disk_nzb {
    struct disk_msg msg;
    uint32_t job_id;
    const void *bytes; /* STORE: its text, borrowed */
    size_t len;
    char stored[QUEUE_STORED_NAME]; /* STORE: answer. LOAD, FORGET: which */
    const char *filename;           /* what the user called it; borrowed, may be NULL */
    struct nzb *nzb;                /* LOAD: answer, given */
};

struct disk_lost {
    struct disk_msg msg;
    uint32_t file_id;
};

typedef void (*disk_deliver_cb)(void *arg, struct disk_msg *m);

struct disk_options {
    const struct fsx *fs;
    int root;            /* directory of all jobs; borrowed */
    int state;           /* directory of the queue's state; borrowed */
    uint64_t generation; /* the journal to begin with: that of the snapshot that was loaded */
    struct buf_pool *bufs;
    const struct clock *clock;
    size_t inbox; /* messages under way at most */
    disk_deliver_cb deliver;
    void *arg;
};

struct disk;

/* NULL: `e` says why. */
struct disk *disk_start(const struct disk_options *o, struct err *e);
/* Any thread. 0, or ERR_STOPPED: not taken. */
int disk_post(struct disk *d, struct disk_msg *m);
/* Does what is asked already, syncs everything, and ends; disk_free() after the last thread that could post. */
void disk_stop(struct disk *d);
void disk_free(struct disk *d);

struct disk_stats { /* grow only; any thread */
    uint64_t writes, bytes, syncs, saves;
};
struct disk_stats disk_stats(struct disk *d);

#endif
