/* make.h - makes PAR2 sets for tests, straight from the specification and without src/par2's own arithmetic for
 * regions: what repair computes is compared with something it did not compute. */
#ifndef TESTS_PAR2_MAKE_H
#define TESTS_PAR2_MAKE_H

#include <stddef.h>
#include <stdint.h>

#include "base/fsx.h"

enum { MAKE_FILES_MAX = 16 };

struct make_file {
    const char *name;
    uint8_t *data;
    size_t size;
    uint8_t id[16];
};

struct make {
    struct make_file files[MAKE_FILES_MAX]; /* after make_set(): in the order of their ids */
    size_t count;
    uint64_t block_size;
    uint8_t set_id[16];
};

struct bytes {
    uint8_t *p;
    size_t n;
};

/* `size` random bytes under that name. */
void make_add(struct make *m, const char *name, size_t size, uint64_t seed);
void make_set(struct make *m); /* ids and order; after the last make_add() */
void make_free(struct make *m);
void bytes_free(struct bytes *b);

/* Packets, appended to b. */
void make_packet(struct bytes *b, const struct make *m, const char *type, const void *body,
                 size_t n);
void make_main(struct bytes *b, const struct make *m);
void make_description(struct bytes *b, const struct make *m, size_t file);
void make_sums(struct bytes *b, const struct make *m, size_t file);
void make_recovery(struct bytes *b, const struct make *m, uint32_t exponent);
void make_index(struct bytes *b, const struct make *m); /* all but recovery */
void make_volume(struct bytes *b, const struct make *m, uint32_t first,
                 uint32_t count); /* with an index */

/* The file `name` in that directory: new bytes, and back. */
void put_file(const struct fsx *fs, int dirfd, const char *name, const void *p, size_t n);
struct bytes get_file(const struct fsx *fs, int dirfd,
                      const char *name);                             /* p NULL: there is none */
void put_all(const struct fsx *fs, int dirfd, const struct make *m); /* the data files */

#endif
