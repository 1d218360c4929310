#include "lib/dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"

void dir_make(struct dir *d)
{
    const char *tmp = getenv("TMPDIR");
    int n = snprintf(d->path, sizeof(d->path), "%s/weir-test.XXXXXX", tmp != NULL ? tmp : "/tmp");
    PRE(n > 0 && n < DIR_PATH_MAX && mkdtemp(d->path) != NULL);
    d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    PRE(d->fd >= 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

void dir_remove(struct dir *d)
{
    close(d->fd);
    nftw(d->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int dir_count(const char *path)
{
    DIR *all = opendir(path);
    PRE(all != NULL);
    int n = -2;
    while (readdir(all) != NULL) {
        n++;
    }
    closedir(all);
    return n;
}

int dir_open_fds(void)
{
    return dir_count("/proc/self/fd");
}
