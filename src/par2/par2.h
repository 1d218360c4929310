/* par2.h - PAR 2.0: find out what is damaged, and make it whole.
 *
 * A library of its own: it knows files and folders, nothing of downloads. The way through it:
 *
 *     catalog   packets gathered from any files, of any number of sets      par2_catalog_add()
 *     set       one of them, checked: files, block hashes, recovery blocks  par2_set_new()
 *     verify    which blocks are where: by reading (par2_verify), or from
 *               CRCs that the caller has already (par2_claim), or both
 *     status    what is missing, what it takes                              par2_status()
 *     repair    new files written beside, proven, renamed into place        par2_repair()
 *
 * More recovery files may be added to the catalog at any time between those calls; nothing is verified twice for it.
 *
 * Calls block and use threads of their own (`threads` of the options, ended before the call returns); one call at a
 * time per catalog with its sets. Results do not depend on the number of threads. Paths are relative to the set's
 * directory and never leave it. Every number, name and size in a packet is taken as hostile; nothing is allocated
 * for a size that is only claimed. An error reading data counts as damage; other failures are returned.
 *
 * Until repair has proven every byte of a file, nothing but "NAME.N.tmp" files is written. A damaged file that gets
 * replaced stays as "NAME.1" (or .2, ...). A repair that was killed at any moment leaves everything that is needed
 * to repair again: unfinished files are found by the next verify and used. */
#ifndef PAR2_PAR2_H
#define PAR2_PAR2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/fsx.h"

enum {
    PAR2_BLOCKS_MAX = 32768,   /* source blocks of a set */
    PAR2_RECOVERY_MAX = 65535, /* recovery blocks: exponents 0..65534 */
    PAR2_FILES_MAX = 1 << 17,  /* files of a set, those without blocks included */
    PAR2_SETS_MAX = 256,       /* sets in one catalog; packets of further ones are passed over */
    PAR2_PATH_MAX = 4096,
};

/* ---- catalog ---- */

struct par2_catalog;

/* `fs` is borrowed until the catalog is freed. NULL: no memory. */
struct par2_catalog *par2_catalog_new(const struct fsx *fs);
void par2_catalog_free(struct par2_catalog *c);

struct par2_found {
    uint32_t packets;  /* valid ones that were new or known already */
    uint32_t recovery; /* recovery blocks among them, of all sets */
    uint32_t damaged;  /* places that began like a packet and were none */
    bool given_up;     /* too many of those; the rest of the file was not read */
};

/* Gathers the packets of a file (any file: packets are searched for). `path` is below `dirfd`, which must stay open
 * as long as the catalog; a file that was added already is not read again. `found` may be NULL. */
int par2_catalog_add(struct par2_catalog *c, int dirfd, const char *path, struct par2_found *found,
                     struct err *e);

size_t par2_catalog_sets(const struct par2_catalog *c); /* in the order in which they were met */
const uint8_t *par2_catalog_set_id(const struct par2_catalog *c, size_t set); /* 16 bytes */

/* Files that held recovery blocks of this set, in the order in which they were added. */
struct par2_volume {
    const char *path;
    uint32_t blocks; /* that no volume before it had */
};
size_t par2_catalog_volumes(const struct par2_catalog *c);
struct par2_volume par2_catalog_volume(const struct par2_catalog *c, size_t set, size_t n);

/* What the name of a volume promises: "x.vol012+34.par2" 12 and 34. False when it is no such name. */
bool par2_volume_name(const char *name, uint32_t *first, uint32_t *count);

/* ---- set ---- */

enum par2_names {
    PAR2_NAMES_AS_WRITTEN, /* exactly as in the set; a set with an unsafe name is refused by repair */
    PAR2_NAMES_CLEANED,    /* each component through the cleaner of base/name.h */
};

struct par2_set;

/* The set at that place in the catalog, for files below `dirfd` (borrowed). ERR_NOT_FOUND: there is no main packet;
 * ERR_TRUNCATED: other packets that it needs are lacking; ERR_LIMIT, ERR_INVALID: it makes no sense. */
int par2_set_new(struct par2_set **set, struct par2_catalog *c, size_t which, int dirfd,
                 enum par2_names names, struct err *e);
void par2_set_free(struct par2_set *s);

enum par2_state {
    PAR2_UNKNOWN, /* not verified yet */
    PAR2_COMPLETE,
    PAR2_RENAMED, /* all of it is there, as `found_as` */
    PAR2_DAMAGED,
    PAR2_MISSING, /* no such file; blocks of it may have been found elsewhere */
};

struct par2_file {
    const char *name;  /* below the set's directory */
    const char *error; /* why it can not be written under that name; NULL: it can */
    uint64_t size;
    uint32_t blocks;
    uint32_t found; /* of them */
    enum par2_state state;
    const char *found_as; /* PAR2_RENAMED: what it is called now */
    bool recoverable;     /* false: only listed in the set, without recovery data */
    const uint8_t *md5;   /* 16 bytes, of the whole file */
};

struct par2_info {
    size_t files;
    uint64_t block_size;
    uint32_t blocks; /* of all recoverable files */
    uint64_t data_bytes;
    const char *creator; /* the program that made the set; "" when unknown */
    const char *comment; /* "" when there is none */
};
struct par2_info par2_set_info(const struct par2_set *s);
struct par2_file par2_set_file(const struct par2_set *s, size_t n);

/* ---- verify ---- */

enum par2_phase {
    PAR2_VERIFYING,
    PAR2_SCANNING,
    PAR2_CHECKING_RECOVERY,
    PAR2_COPYING,
    PAR2_REPAIRING
};

struct par2_progress {
    enum par2_phase phase;
    uint64_t done; /* bytes, or what the phase counts */
    uint64_t total;
};

struct par2_options {
    unsigned threads; /* 0: as many as there are CPUs */
    uint64_t
        memory_bytes; /* for repair; 0: 256 MiB. Less than needed for one strip of every missing block: a bit more */
    bool rename_only;     /* look for files under other names only, not for displaced data */
    bool skip_data;       /* look for displaced data only near where it should be ... */
    uint64_t skip_leaway; /* ... this far on both sides */
    bool follow_links;    /* data may be read through symbolic links */
    unsigned file_mode;   /* of files that repair makes anew; 0: 0644. Others keep theirs */
    /* Called now and then on the calling thread; true: stop, and the call returns ERR_STOPPED. May be NULL. */
    bool (*progress)(void *arg, const struct par2_progress *p);
    void *arg;
};

/* A further file that may hold data of the set, under whatever name; relative to the set's directory. */
int par2_add_extra(struct par2_set *s, const char *path, struct err *e);

/* Pieces of a file whose CRC-32 the caller knows to be that of what is on disk. */
struct par2_range {
    uint64_t offset;
    uint64_t length;
    uint32_t crc;
};
/* Proves blocks of file `n` without reading: wherever a run of adjoining ranges begins and ends at block borders, the
 * joined CRCs of the ranges are compared with those of the blocks. Ranges in order, not overlapping; `size` is the
 * file's size on disk. Returns how many blocks were newly proven. par2_verify() then does not read those. */
uint32_t par2_claim(struct par2_set *s, size_t n, uint64_t size, const struct par2_range *ranges,
                    size_t count);

/* Finds every block there is: at its place, under other names, displaced. Blocks known already are not read again. */
int par2_verify(struct par2_set *s, const struct par2_options *o, struct err *e);
/* Forgets what was found: files changed since. */
void par2_forget(struct par2_set *s);

struct par2_status {
    size_t complete, renamed, damaged, missing; /* files */
    uint32_t blocks_found;
    uint32_t blocks_missing;   /* of recoverable files: so many recovery blocks it takes */
    uint32_t recovery;         /* there are so many */
    uint32_t recovery_lacking; /* so many more are needed; 0: repair is possible */
    bool whole;                /* every recoverable file is complete */
};
/* After a verify that found damage, recovery blocks have been proven; else they are counted as claimed. */
struct par2_status par2_status(const struct par2_set *s);

/* ---- repair ---- */

/* Makes all files whole, after par2_verify(). ERR_FULL: too few recovery blocks; ERR_UNSAFE: a file may not be written
 * under its name; ERR_CORRUPT: what was computed does not have the right hash (files changed meanwhile). On failure
 * files that were not yet finished are as before. */
int par2_repair(struct par2_set *s, const struct par2_options *o, struct err *e);

/* The n-th damaged file that repair kept aside, or NULL. Relative to the set's directory. */
const char *par2_backup(const struct par2_set *s, size_t n);

#endif
