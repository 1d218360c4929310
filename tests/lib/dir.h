/* dir.h - a directory for one test: made empty, removed with everything in it. */
#ifndef TESTS_DIR_H
#define TESTS_DIR_H

enum { DIR_PATH_MAX = 512 };

struct dir {
    char path[DIR_PATH_MAX];
    int fd; /* opened for reading */
};

void dir_make(struct dir *d); /* below TMPDIR or /tmp; aborts when it cannot */
void dir_remove(struct dir *d);
int dir_count(const char *path); /* entries, without . and .. */
int dir_open_fds(void);          /* descriptors of this process, to see a leak */

#endif
