/* log.h - one log for the process: levels, a job's tag, no secrets, no floods, never a wait.
 *
 * log_write() may be called from any thread, also before log_open() (then it goes to stderr as text). It formats,
 * takes secrets out (redact.h), makes control bytes visible, and hands the line to a writer thread through a bounded
 * buffer, so that a slow disk holds nobody up. When the buffer is full the line is dropped, and the next one that fits
 * says how many were. A line that says the same as one less than LOG_REPEAT_MS ago is only counted; the count is
 * written when that time is over.
 *
 * Lines are text:  2026-11-18 10:50:06.123 WARNING [job 12] article <a@b> not found on any server
 * or JSON:         {"time":"2026-11-18T09:50:06.123Z","level":"WARNING","job":12,"text":"..."} */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

/* The words of NZBGet's log, which clients show. */
enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DETAIL, LOG_DEBUG };

enum {
    LOG_LINE_MAX = 4096,   /* a longer text is cut, and shows it */
    LOG_REPEAT_MS = 60000, /* how long a line that says the same is only counted */
};

struct log_options {
    const char *path; /* appended to, made with 0600; NULL: no file. Copied */
    bool to_stderr;
    bool json;
    enum log_level level; /* the least urgent that is written */
    const struct clock *clock;
};

int log_open(const struct log_options *o, struct err *e);
/* Writes what waits, and what was only counted, and ends the writer thread. */
void log_close(void);
/* Opens the file by its name again (after it was rotated). On failure the old one stays in use. */
int log_reopen(struct err *e);
/* Everything logged so far has been handed to the kernel when this returns. */
void log_flush(void);

const char *log_level_name(enum log_level level);
bool log_enabled(enum log_level level); /* worth formatting? */

/* job 0: none. */
void log_write(enum log_level level, unsigned job, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define log_error(...)   log_write(LOG_ERROR, 0, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, 0, __VA_ARGS__)
#define log_info(...)    log_write(LOG_INFO, 0, __VA_ARGS__)
#define log_detail(...)  log_write(LOG_DETAIL, 0, __VA_ARGS__)
#define log_debug(...)   (log_enabled(LOG_DEBUG) ? log_write(LOG_DEBUG, 0, __VA_ARGS__) : (void)0)

#endif
