/* nzbscan.h - just enough of an NZB for a benchmark: files, segment numbers, message-ids. Trusts its input. */
#ifndef BENCH_NZBSCAN_H
#define BENCH_NZBSCAN_H

#include <stdint.h>

struct scan_segment {
    unsigned file;
    unsigned number;
    unsigned bytes;
    char *id;
};

struct scan {
    struct scan_segment *segments; /* in the order of the file */
    unsigned count;
    unsigned files;
    char *text;
};

/* Exits with a message when the file cannot be read. */
void scan_load(struct scan *s, const char *path);
void scan_free(struct scan *s);

#endif
