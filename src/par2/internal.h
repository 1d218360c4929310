/* internal.h - the structures behind par2.h; only src/par2 and its tests include it.
 *
 * A `packets` is all that was said about one set id, in whatever order; a `par2_set` is that, checked and put in the
 * order of the main packet, plus what was found on disk. Sources are files on disk that may hold data; every block of
 * the set is located in at most one of them. */
#ifndef PAR2_INTERNAL_H
#define PAR2_INTERNAL_H

#include <stdatomic.h>

#include "par2/md5.h"
#include "par2/par2.h"

/* ---- catalog (catalog.c, packet.c) ---- */

enum {
    CRITICAL_MAX = 256 << 20, /* bytes of packets kept by one catalog, recovery data not counted */
    RECOVERY_KEPT_MAX = 1 << 20, /* recovery packets remembered by one catalog, copies included */
    CANDIDATES_MAX = 4,          /* copies of one recovery block that are remembered */
    HEADER_SIZE = 64,
    RECOVERY_HEADER = 68, /* a recovery packet's bytes in front of its data */
};

/* Where a volume's recovery block stands. The packet's MD5 is compared when it is needed, not when it is found. */
enum proof { UNPROVEN, PROVEN, DISPROVEN };
struct recovery {
    uint16_t exponent;
    uint8_t proof;
    uint32_t volume;
    uint64_t offset; /* of the packet */
    uint64_t size;   /* of its data */
};

/* What was said about one file id. */
struct desc {
    uint8_t id[16];
    bool described;
    uint8_t md5[16], md5_16k[16];
    uint64_t size;
    char *name; /* described: as written, terminated */
    size_t name_len;
    char *unicode; /* from a Unicode name packet, as UTF-8; or NULL */
    uint8_t *sums; /* 20 bytes per block: MD5, CRC-32; or NULL */
    uint32_t sum_count;
};

struct packets {
    uint8_t id[16];
    bool has_main;
    uint64_t block_size;
    uint32_t recoverable, total; /* files */
    uint8_t *ids;                /* 16 bytes each: recoverable ones first */
    struct desc **descs;         /* each stays where it is */
    size_t desc_count, desc_room;
    uint32_t *index; /* hash table of desc numbers + 1 */
    size_t index_size;
    struct recovery *
        recovery; /* as found; by exponent after par2_recovery_sort(), candidates for one side by side */
    size_t recovery_count, recovery_room;
    bool recovery_sorted;
    uint8_t *candidates; /* per exponent: how many */
    char *creator, *comment;
};

struct volume {
    int dirfd;
    char *path;
    uint64_t size;
    bool rescanned; /* gone through again, hashing all */
};

struct par2_catalog {
    const struct fsx *fs;
    struct packets **sets; /* of PAR2_SETS_MAX; a packets stays where it is */
    size_t set_count;
    struct volume *volumes;
    size_t volume_count, volume_room;
    size_t critical_bytes;
    size_t recovery_kept;
    uint64_t seed[2]; /* of the hash tables: not to be guessed by who writes packets */
};

/* Bytes to look for packets in; from a file, or from memory in tests. */
struct reader {
    /* n bytes at `at`, fewer only at the end; negative: -errno. */
    ssize_t (*read)(void *arg, void *p, size_t n, uint64_t at);
    void *arg;
    uint64_t size;
};

/* Goes through a reader as volume `volume`. With `eager`, recovery packets are hashed at once. */
int par2_packet_scan(struct par2_catalog *c, const struct reader *r, uint32_t volume, bool eager,
                     struct par2_found *found, struct err *e);
/* A whole packet that is no recovery packet, its MD5 right, goes where it belongs. */
int par2_packet_take(struct par2_catalog *c, const uint8_t *packet, size_t len);
struct packets *par2_catalog_packets(struct par2_catalog *c,
                                     const uint8_t id[16]); /* made if need be; NULL: no room */
int par2_catalog_add_recovery(struct par2_catalog *c, struct packets *p, const struct recovery *r);
/* The entry of that file id, made if need be; NULL: no room. */
struct desc *par2_catalog_desc(struct par2_catalog *c, struct packets *p, const uint8_t id[16]);
const struct desc *par2_catalog_find(const struct par2_catalog *c, const struct packets *p,
                                     const uint8_t id[16]);
bool par2_catalog_charge(struct par2_catalog *c, size_t bytes); /* false: CRITICAL_MAX is reached */
void par2_recovery_sort(struct packets *p);
/* One past the last candidate for the exponent of recovery[i]. */
size_t par2_recovery_group_end(const struct packets *p, size_t i);
/* Reads a volume again, hashing all, because a recovery packet in it was not what it seemed. */
int par2_catalog_rescan(struct par2_catalog *c, uint32_t volume, struct err *e);

uint32_t par2_get32(const uint8_t *p);
uint64_t par2_get64(const uint8_t *p);

/* ---- set (set.c) ---- */

enum { NOWHERE = UINT32_MAX };

struct block {
    uint32_t file;
    uint32_t source;     /* NOWHERE: not found */
    uint64_t offset;     /* in the source */
    uint16_t log;        /* of its constant in the recovery equations */
    bool verifiable;     /* its hashes are known */
    const uint8_t *sums; /* MD5, CRC-32 */
};

struct file {
    const struct desc *desc;
    char *path;         /* below the set's directory */
    const char *unsafe; /* why it must not be written */
    uint32_t first, blocks;
    uint32_t target; /* the source that bears its name, or NOWHERE */
    enum par2_state state;
    uint32_t renamed_from; /* PAR2_RENAMED: the source */
    bool recoverable;
};

struct source {
    char *path;
    uint64_t size;
    bool exists;
    bool leftover;      /* of an interrupted repair of ours */
    bool extra;         /* named by the caller, or leftover */
    uint32_t target_of; /* the file that has this name, or NOWHERE */
};

struct par2_set {
    struct par2_catalog *catalog;
    struct packets *packets;
    int dirfd;
    bool follow_links;
    struct file *files;
    size_t file_count;
    struct block *blocks;
    uint32_t
        block_count; /* blocks of files that are only listed come behind the recoverable ones */
    uint32_t recoverable_blocks;
    struct source *sources;
    size_t source_count, source_room;
    char **backups;
    size_t backup_count;
    bool verified;
};

static inline uint32_t block_length(const struct par2_set *s, uint32_t b)
{
    const struct file *f = &s->files[s->blocks[b].file];
    uint64_t at = (uint64_t)(b - f->first) * s->packets->block_size, left = f->desc->size - at;
    return (uint32_t)(left < s->packets->block_size ? left : s->packets->block_size);
}
static inline uint64_t block_position(const struct par2_set *s, uint32_t b)
{
    return (uint64_t)(b - s->files[s->blocks[b].file].first) * s->packets->block_size;
}

/* Opens for reading; the descriptor or an error. */
int par2_source_open(const struct par2_set *s, const char *path, struct err *e);
uint32_t par2_source_append(struct par2_set *s,
                            const char *path);              /* its number; NOWHERE: no memory */
void par2_source_look(struct par2_set *s, uint32_t source); /* sets size and exists */

/* ---- work shared by threads (work.c) ---- */

/* One call of par2.h at work. */
struct work {
    const struct par2_options *options;
    unsigned threads;
    enum par2_phase phase;
    atomic_uint_fast64_t done;
    uint64_t total;
    atomic_bool stop;
    atomic_int error; /* the first, of any thread */
    uint64_t last_ms; /* progress was told */
};
void par2_work_init(struct work *w, const struct par2_options *o);
void par2_work_phase(struct work *w, enum par2_phase phase, uint64_t total);
/* Runs fn(arg, 0..threads-1), number 0 on this thread. Fewer when threads can not be had. The first error, or
 * ERR_STOPPED. */
int par2_work_run(struct work *w, unsigned threads, void (*fn)(void *arg, unsigned thread),
                  void *arg);
/* Counts bytes done; on thread 0 also tells progress. False: stop. */
bool par2_work_step(struct work *w, unsigned thread, uint64_t bytes);
void par2_work_fail(struct work *w, int code);
unsigned par2_work_threads(const struct work *w,
                           uint64_t pieces); /* no more threads than pieces, at least one */

/* ---- hashing of blocks (check.c) ---- */

/* Is block `block` what stands at `offset` of `source`? */
struct check {
    uint64_t offset;
    uint32_t block;
    uint32_t source;
    int copy_to; /* what is read is also written to this descriptor, at the block's own place; -1: not */
    bool ok;
};
/* Answers all, several side by side in SIMD lanes; bytes behind the block's own length count as zeros. Blocks that
 * can not be read are not ok; a failed write is an error. */
int par2_check_run(struct par2_set *s, struct work *w, struct check *checks, size_t count);
/* The MD5 of recovery packets that are not proven yet. */
int par2_check_recovery(struct par2_set *s, struct work *w, struct err *e);
/* The MD5 of a whole file, or of its first `limit` bytes. */
int par2_check_whole(const struct par2_set *s, uint32_t source, uint64_t limit, uint8_t md5[16]);

/* ---- displaced data (scan.c, table.c) ---- */

/* Blocks that are still to be found, by CRC-32; of identical ones the first. The CRCs are those without start value
 * and end mask: they are linear, and a window of zeros has 0. */
struct table {
    uint32_t *heads; /* block + 1, by the CRC's low bits */
    uint32_t *next;  /* per block: the next with the same low bits, + 1 */
    uint32_t *crcs;  /* per block */
    uint32_t mask;
    uint64_t
        *filter; /* one bit per CRC modulo filter_bits: most positions need no more than this */
    uint32_t filter_mask;
    size_t entries;
};
int par2_table_init(struct table *t, const struct par2_set *s);
void par2_table_free(struct table *t);

int par2_scan_run(struct par2_set *s, struct work *w, const struct table *t);

/* ---- repair (rebuild.c, repair.c) ---- */

struct missing {
    uint32_t block;
    int fd; /* where it is to be written, at the block's own place */
};
/* Computes, writes and proves all missing blocks of recoverable files, in their order. ERR_CORRUPT: the result is not what
 * the set says. Blocks whose hashes the set lacks are not proven by it. */
int par2_rebuild_run(struct par2_set *s, struct work *w, const struct missing *outs, size_t m);

/* ---- equations (solve.c) ---- */

struct gf16_coef;
struct solver;
/* For unknown blocks (their logs) and recovery exponents, ascending, at least as many; chosen[] gets the indices of
 * those it takes. ERR_FULL: no solution in them. */
int par2_solver_new(struct solver **out, const uint16_t *missing_logs, size_t missing,
                    const uint16_t *exponents, size_t exponent_count, uint32_t *chosen);
void par2_solver_free(struct solver *v);
/* coef[o*n + i]: the factor of present block i (its log) in unknown block o. */
int par2_solver_present(const struct solver *v, const uint16_t *logs, size_t n,
                        struct gf16_coef *coef);
/* The same for the chosen recovery blocks, from the last to the first: calls count down through them. `state` is the
 * caller's, one per thread, `missing` values, set by par2_solver_start(). */
void par2_solver_start(const struct solver *v, uint16_t *state);
void par2_solver_recovery(const struct solver *v, uint16_t *state, size_t last, size_t n,
                          struct gf16_coef *coef);

#endif
