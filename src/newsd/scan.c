/* scan.c - finds the files to serve. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/fsx.h"
#include "base/mem.h"
#include "newsd/catalog.h"

enum { PATH_LEN_MAX = 4096, DEPTH_MAX = 32 };

struct walk {
    struct newsd_catalog *c;
    int64_t age_s;
    char path[PATH_LEN_MAX]; /* of what is looked at, below the directory */
    struct err *e;
};

/* The names in a directory, sorted, so that numbers in subjects are the same after a restart. */
struct names {
    char **at;
    size_t len, room;
};

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_free(struct names *n)
{
    for (size_t i = 0; i < n->len; i++) {
        mem_free(n->at[i]);
    }
    mem_free(n->at);
}

static int names_add(struct names *n, const char *name)
{
    if (n->len == n->room) {
        size_t room = n->room > 0 ? 2 * n->room : 32;
        char **moved = mem_realloc(n->at, room, sizeof(*moved));
        if (moved == NULL) {
            return UV_ENOMEM;
        }
        n->at = moved;
        n->room = room;
    }
    n->at[n->len] = mem_strdup(name);
    return n->at[n->len] != NULL ? (n->len++, 0) : UV_ENOMEM;
}

static int names_read(struct names *n, int fd)
{
    int own = dup(fd); /* closedir() takes it along */
    DIR *d = own >= 0 ? fdopendir(own) : NULL;
    if (d == NULL) {
        close(own);
        return UV_ENOMEM;
    }
    rewinddir(d);
    int rv = 0;
    struct dirent *entry;
    while (rv == 0 && (entry = readdir(d)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            rv = names_add(n, entry->d_name);
        }
    }
    closedir(d);
    if (n->len > 0) {
        qsort(n->at, n->len, sizeof(*n->at), compare);
    }
    return rv;
}

static int walk_dir(struct walk *w, int fd, unsigned depth);

/* One entry: a directory is gone into, a file is added, all else is passed over. At depth 0 only directories count:
 * each of them is a set. */
static int walk_entry(struct walk *w, int dirfd, const char *name, unsigned depth)
{
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return 0; /* gone again */
    }
    if (S_ISREG(st.st_mode) && depth > 0) {
        int rv = newsd_catalog_add_file(w->c, w->path, (uint64_t)st.st_size,
                                        (int64_t)st.st_mtime - w->age_s);
        return rv != 0 ? err_sys(w->e, rv, "%s", w->path) : 0;
    }
    if (!S_ISDIR(st.st_mode)) {
        return 0;
    }
    if (depth >= DEPTH_MAX) {
        return err_set(w->e, ERR_LIMIT, "%s: more than %d directories deep", w->path, DEPTH_MAX);
    }
    int rv = depth == 0 ? newsd_catalog_add_set(w->c, name) : 0;
    if (rv != 0) {
        return err_sys(w->e, rv, "%s", w->path);
    }
    int fd = fsx_open(&fsx_kernel, dirfd, name, O_RDONLY | O_DIRECTORY, 0, w->e);
    if (fd < 0) {
        return fd;
    }
    rv = walk_dir(w, fd, depth + 1);
    close(fd);
    if (rv == 0 && depth == 0) {
        newsd_catalog_end_set(w->c);
    }
    return rv;
}

static int walk_dir(struct walk *w, int fd, unsigned depth)
{
    struct names n = {0};
    int rv = names_read(&n, fd);
    if (rv != 0) {
        err_sys(w->e, rv, "%s", w->path);
    }
    size_t used = strlen(w->path);
    for (size_t i = 0; rv == 0 && i < n.len; i++) {
        int more =
            snprintf(w->path + used, sizeof(w->path) - used, "%s%s", used > 0 ? "/" : "", n.at[i]);
        if ((size_t)more >= sizeof(w->path) - used) {
            w->path[used] = '\0';
            rv = err_set(w->e, ERR_LIMIT, "%s: too long a path below it", w->path);
            break;
        }
        rv = walk_entry(w, fd, n.at[i], depth);
        w->path[used] = '\0';
    }
    names_free(&n);
    return rv;
}

int newsd_catalog_scan(struct newsd_catalog *c, int dirfd, int64_t age_s, struct err *e)
{
    struct walk w = {.c = c, .age_s = age_s, .e = e};
    return walk_dir(&w, dirfd, 0);
}
