/* place.h - where a job's files are: directories below the root, files under their working and final names.
 *
 * Private to src/disk; the disk's thread. Directories are held open while a file of theirs is; files stay known from
 * OPEN to CLOSE, but of their descriptors at most DISK_FDS are open: the one unused for longest is synced and closed
 * (synced, because an error of write-back is only told to those who had the file open). */
#ifndef DISK_PLACE_H
#define DISK_PLACE_H

#include "base/list.h"
#include "disk/disk.h"

struct disk_dir {
    struct list node;
    uint32_t job_id;
    unsigned refs; /* files */
    int fd;
};

struct disk_file {
    struct list node;  /* of its chain in the table */
    struct list used;  /* by last use; in no list while fd is -1 */
    struct list dirty; /* in no list: all of it is synced */
    struct disk_dir *dir;
    uint32_t file_id;
    int fd;                   /* -1: closed for the moment */
    uint64_t unsynced_bytes;  /* since write-back was last asked for */
    uint64_t unsynced_offset; /* where they begin, as far as they are in a row */
    char work[24];            /* ".17.part" */
};

enum { PLACE_CHAINS = 1024 };

struct place {
    const struct fsx *fs;
    int root;
    struct list dirs;
    struct list files[PLACE_CHAINS]; /* by file id */
    struct list used;                /* open descriptors, least lately used first */
    struct list dirty;
    unsigned open_fds;
};

void place_init(struct place *p, const struct fsx *fs, int root);
/* Closes everything; the caller has synced what matters. */
void place_close(struct place *p);

struct disk_file *place_find(struct place *p, uint32_t file_id);
/* Makes or finds the file, with its directory; again for a known one is fine. */
int place_open(struct place *p, const struct disk_file_msg *m, struct err *e);
/* Its descriptor, opened again where needed. */
int place_fd(struct place *p, struct disk_file *f, struct err *e);
/* Data and size are on the disk. On failure its descriptor is closed, since no later sync on it could be believed. */
int place_sync(struct place *p, struct disk_file *f, struct err *e);
/* Synced already: gets its name, durably, and is forgotten. */
int place_finish(struct place *p, struct disk_file *f, const char *name, char *made, struct err *e);
/* A crash came between giving a file its name and the snapshot that would have known: it is there already, under `name`
 * or a variant of it, with just that size. `made` is told. False: it is not. */
bool place_was_finished(struct place *p, const struct disk_file_msg *m, char *made);
/* Forgets the file and removes what it wrote. */
void place_drop(struct place *p, struct disk_file *f);

/* The whole directory of a job; its files are forgotten first. A directory that is not there is fine. */
int place_remove_dir(struct place *p, uint32_t job_id, const char *dir, struct err *e);
/* Renames it, to a name that is free (`made` is told its last part); open descriptors follow by themselves, so its
 * files go on being written. */
int place_move_dir(struct place *p, const char *dir, const char *name, char *made, struct err *e);

#endif
