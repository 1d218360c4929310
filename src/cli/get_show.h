/* get_show.h - what `weir get` shows: a line that moves on a terminal, plain lines elsewhere, JSON when asked. */
#ifndef CLI_GET_SHOW_H
#define CLI_GET_SHOW_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

enum { GET_STAGE_MAX = 200 };

struct get_show {
    bool json;
    bool quiet;
    bool terminal;
    bool line_open; /* the moving line is on the screen */
    uint64_t shown_ms;
    int shown_state;
    uint64_t rate_ms; /* when `rate_bytes` were there */
    uint64_t rate_bytes;
    uint64_t rate; /* bytes per second, smoothed */
    uint64_t begin_ms;
    uint64_t bytes_in;
    uint64_t total_bytes; /* the most that was seen: a finished job tells no more */
};

/* A copy of what matters of one job, made on the engine's thread. */
struct get_view {
    bool exists;
    enum queue_state state;
    char name[256];
    char dest[256];
    char reason[256];
    char server_why[256];      /* of the first server that is not up */
    char stage[GET_STAGE_MAX]; /* what post-processing said last */
    uint32_t articles_waiting; /* asked again later: the post is young */
    uint64_t total_bytes;      /* wanted, as the NZB tells it */
    uint64_t left_bytes;
    uint32_t files, files_left;
    uint32_t articles_failed;
    unsigned health, critical; /* permille */
    uint32_t holds;
    unsigned servers_up, servers_disabled;
};
void get_view_take(struct get_view *v, struct coord *c, uint32_t job_id);

void get_show_init(struct get_show *s);
void get_show_note(struct get_show *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void get_show_progress(struct get_show *s, const struct get_view *v, struct engine_counters n);
void get_show_end(struct get_show *s, const struct get_view *v, int exit_code, const char *out);

#endif
