/* fsim.h - a filesystem in memory that forgets: the fsx_ops for tests of power cuts and failing calls.
 *
 * It has two states. What programs see (writes, names) is changed at once; what the disk holds is changed only
 * by fsync/fdatasync of a file (its bytes and size) and by fsync of a directory (its names). fsim_reboot()
 * decides from the seed what became of the rest: each write since the last sync is kept, dropped, torn at
 * sectors, or leaves zeros; directory changes survive as a prefix or as any subset, each rename as a whole.
 * This is the weakest disk that POSIX allows, not the kindest one that ext4 happens to be.
 *
 * A sync that is made to fail loses the writes it should have saved and the next one says OK, as Linux does.
 *
 *     struct fsim *d = fsim_new(seed);
 *     for (k = 1; ; k++) { fsim_cut_at(d, k); run(fsim_fs(d), FSIM_ROOT); bool cut = fsim_fired(d);
 *                          fsim_reboot(d); check(fsim_fs(d)); if (!cut) break; }
 *
 * One thread. Names are single components; there are no symbolic links. Using a closed descriptor aborts. */
#ifndef TESTS_FSIM_H
#define TESTS_FSIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fsx.h"

struct fsim;

enum {
    FSIM_ROOT = 999,     /* the descriptor of the top directory: always open, also after a reboot */
    FSIM_SHORT = 1,      /* as a fault: the write or read does half of what was asked */
    FSIM_FILE_SYNCS = 1, /* for fsim_ignore_syncs */
    FSIM_DIR_SYNCS = 2,
};

struct fsim *fsim_new(uint64_t seed);
void fsim_free(struct fsim *d);
const struct fsx *fsim_fs(const struct fsim *d);

/* The k-th call from now on, and the `times` - 1 after it, fail with `code` (-errno or FSIM_SHORT). k 0: no
 * fault; only count. */
void fsim_fail_at(struct fsim *d, unsigned k, unsigned times, int code);
/* The power goes before the k-th call from now on: that one and all later ones fail and do nothing. */
void fsim_cut_at(struct fsim *d, unsigned k);
bool fsim_fired(const struct fsim *d); /* the fault or cut was reached */
unsigned
fsim_calls(const struct fsim *d); /* since the last fsim_fail_at, fsim_cut_at or fsim_reboot */

/* Plants a bug: these syncs do nothing and say OK. A test that does not notice is blind. */
void fsim_ignore_syncs(struct fsim *d, int which);

/* All descriptors are gone, faults and planted bugs stay off, and the disk is what survived. */
void fsim_reboot(struct fsim *d);

unsigned fsim_open_fds(const struct fsim *d); /* without FSIM_ROOT */
/* The names in the top directory, sorted, each followed by a space: "a.json b.tmp ". Valid until the next
 * call. */
const char *fsim_names(struct fsim *d);

#endif
