/* store.h - private: what loading needs of the stored NZBs beyond state.h. */
#ifndef QUEUE_STORE_H
#define QUEUE_STORE_H

#include "queue/state.h"

/* As queue_nzb_load; `found` (may be NULL) is told what the user called the NZB, "" unknown. */
int store_load(const struct fsx *fs, int dirfd, const char *name, const char *filename,
               struct nzb **out, char *found, size_t found_size, struct err *e);
/* Every name in nzb/; nothing when there is no such directory. */
int store_list(const struct fsx *fs, int dirfd, fsx_name_cb each, void *ctx, struct err *e);

#endif
