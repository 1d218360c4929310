/* fsx_saver - saves a numbered file with fsx_replace() for ever; the program that powercut.sh cuts off.
 *
 *     fsx_saver [--without file-sync|dir-sync] save DIR
 *     fsx_saver [--without ...] check DIR < LAST-LINE
 *
 * --without plants a bug, to show that the cut would find it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fsx.h"
#include "base/mem.h"

enum { SIZE = 20000 };

static bool lacks_file_sync, lacks_dir_sync;

static int partial_fsync(void *arg, int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && (S_ISDIR(st.st_mode) ? lacks_dir_sync : lacks_file_sync)) {
        return 0;
    }
    return fsx_kernel.ops->fsync(arg, fd);
}

static int save(const struct fsx *fs, int dirfd)
{
    static char bytes[SIZE];
    struct err e;
    for (unsigned generation = 1;; generation++) {
        memset(bytes, 'a' + (int)(generation % 26), sizeof(bytes));
        snprintf(bytes, sizeof(bytes), "%u", generation);
        if (fsx_replace(fs, dirfd, "state", "state.prev", bytes, sizeof(bytes), &e) != 0) {
            fprintf(stderr, "%s\n", e.msg); /* the power is gone */
            return 0;
        }
        printf("%u\n", generation);
        fflush(stdout);
    }
}

/* The generation that a whole file holds, 0 when it is not whole. */
static unsigned load(int dirfd, const char *name)
{
    char *bytes;
    size_t len;
    struct err e;
    if (fsx_read_all(&fsx_kernel, dirfd, name, SIZE, &bytes, &len, &e) != 0) {
        fprintf(stderr, "%s\n", e.msg);
        return 0;
    }
    unsigned generation = (unsigned)strtoul(bytes, NULL, 10);
    size_t i = len == SIZE ? strlen(bytes) + 1 : len;
    while (i < len && bytes[i] == (char)('a' + (int)(generation % 26))) {
        i++;
    }
    bool whole = len == SIZE && i == len;
    mem_free(bytes);
    return whole ? generation : 0;
}

static int check(int dirfd)
{
    char line[32] = "";
    unsigned acked = fgets(line, sizeof(line), stdin) != NULL ? (unsigned)atoi(line) : 0;
    unsigned found = load(dirfd, "state");
    unsigned before = load(dirfd, "state.prev");
    if (acked > 0 && (found < acked || (acked > 1 && (before == 0 || before < acked - 1)))) {
        fprintf(stderr, "acknowledged %u, found %u and before it %u\n", acked, found, before);
        return 1;
    }
    struct err e;
    return fsx_remove_tmp(&fsx_kernel, dirfd, "state", &e) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct fsx_ops ops = *fsx_kernel.ops;
    struct fsx fs = {&ops, NULL};
    ops.fsync = partial_fsync;
    if (argc > 2 && strcmp(argv[1], "--without") == 0) {
        lacks_file_sync = strcmp(argv[2], "file-sync") == 0;
        lacks_dir_sync = strcmp(argv[2], "dir-sync") == 0;
        argc -= 2;
        argv += 2;
    }
    int dirfd = argc == 3 ? open(argv[2], O_RDONLY | O_DIRECTORY) : -1;
    if (dirfd < 0) {
        fprintf(stderr, "usage: fsx_saver [--without file-sync|dir-sync] save|check DIR\n");
        return 2;
    }
    return strcmp(argv[1], "save") == 0 ? save(&fs, dirfd) : check(dirfd);
}
