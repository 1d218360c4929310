/* log.c - see log.h. Callers append to `front` under the lock; the writer thread takes the whole buffer by exchanging
 * it with `back` and writes that without the lock. So a caller waits at most for another caller's memcpy. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/check.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/redact.h"
#include "base/utf8.h"

enum {
    BUFFER = 256 * 1024,
    LINE_OUT_MAX = 6 * LOG_LINE_MAX + 128, /* JSON may need six bytes for one */
    REPEATS = 64,                          /* lines remembered to see repeats */
    REPEAT_TEXT = 200,                     /* how much of one is shown with its count */
};

struct repeat {
    uint64_t hash; /* of level, job and text; 0: unused */
    uint64_t since_ms;
    unsigned count; /* not written since then */
    enum log_level level;
    unsigned job;
    char text[REPEAT_TEXT];
};

/* One per process, as stderr is; see log.h for which calls come from where. */
static struct {
    bool open;
    uv_mutex_t lock;
    uv_cond_t wake;    /* for the writer: there is something, or the end */
    uv_cond_t written; /* for log_flush: `done` has grown */
    uv_thread_t thread;
    bool stop;
    char *front;
    char *back;
    size_t used;    /* of front */
    uint64_t asked; /* flushes wanted */
    uint64_t done;  /* flushes done */
    uint64_t lost;  /* lines that found no room */
    int fd;         /* -1: no file */
    int new_fd;     /* -1: none; else the writer goes over to it */
    int write_code; /* why the last write to the file failed; 0: it did not */
    char *path;
    struct log_options o;
    struct repeat repeats[REPEATS];
    unsigned next_repeat;
} g = {.fd = -1, .new_fd = -1};

const char *log_level_name(enum log_level level)
{
    static const char *const names[] = {"ERROR", "WARNING", "INFO", "DETAIL", "DEBUG"};
    PRE(level <= LOG_DEBUG);
    return names[level];
}

bool log_enabled(enum log_level level)
{
    return !g.open || level <= g.o.level;
}

/* ---- one line ---- */

struct line {
    char s[LINE_OUT_MAX];
    size_t len;
};

static int add_json(void *arg, const char *bytes, size_t n)
{
    struct line *l = arg;
    n = n < LINE_OUT_MAX - 1 - l->len ? n : LINE_OUT_MAX - 1 - l->len;
    memcpy(l->s + l->len, bytes, n);
    l->len += n;
    return 0;
}

static size_t format_time(char *out, size_t size, int64_t wall_ms, bool utc)
{
    time_t s = (time_t)(wall_ms / 1000);
    struct tm tm;
    if (utc) {
        gmtime_r(&s, &tm);
    } else {
        localtime_r(&s, &tm);
    }
    size_t n = strftime(out, size, utc ? "%Y-%m-%dT%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &tm);
    return n +
           (size_t)snprintf(out + n, size - n, ".%03d%s", (int)(wall_ms % 1000), utc ? "Z" : "");
}

/* Control bytes and bytes that are no UTF-8 become \n, \x1b and so on: a name cannot forge a line or drive a
 * terminal. */
static void add_visible(struct line *l, const char *s)
{
    for (size_t len = strlen(s), i = 0; i < len && l->len < LINE_OUT_MAX - 8;) {
        size_t n = utf8_char_len(s + i, len - i);
        unsigned char c = (unsigned char)s[i];
        if (n > 1 && !(c == 0xc2 && (unsigned char)s[i + 1] < 0xa0)) {
            memcpy(l->s + l->len, s + i, n);
            l->len += n;
        } else if (n == 1 && c >= 0x20 && c != 0x7f) {
            l->s[l->len++] = (char)c;
        } else if (c == '\n' || c == '\r' || c == '\t') {
            l->s[l->len++] = '\\';
            l->s[l->len++] = c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
        } else {
            n = 1;
            l->len += (size_t)snprintf(l->s + l->len, 5, "\\x%02x", c);
        }
        i += n;
    }
}

static void make_line(struct line *l, bool json, int64_t wall_ms, enum log_level level,
                      unsigned job, const char *text)
{
    char when[40];
    format_time(when, sizeof(when), wall_ms, json);
    l->len = 0;
    if (json) {
        struct jsonw j;
        jsonw_init(&j, add_json, l);
        jsonw_object(&j);
        jsonw_kstr(&j, "time", when);
        jsonw_kstr(&j, "level", log_level_name(level));
        if (job != 0) {
            jsonw_kuint(&j, "job", job);
        }
        jsonw_kstr(&j, "text", text);
        jsonw_end(&j);
        jsonw_finish(&j);
    } else {
        l->len = (size_t)snprintf(l->s, sizeof(l->s), "%s %s ", when, log_level_name(level));
        if (job != 0) {
            l->len += (size_t)snprintf(l->s + l->len, sizeof(l->s) - l->len, "[job %u] ", job);
        }
        add_visible(l, text);
    }
    l->s[l->len++] = '\n';
}

/* ---- under the lock ---- */

static bool append(const struct line *l)
{
    if (BUFFER - g.used < l->len) {
        return false;
    }
    memcpy(g.front + g.used, l->s, l->len);
    g.used += l->len;
    return true;
}

static void enqueue(struct line *l, int64_t wall_ms, enum log_level level, unsigned job,
                    const char *text)
{
    if (g.lost > 0) {
        char said[64];
        snprintf(said, sizeof(said), "%ju log lines had no room and were dropped",
                 (uintmax_t)g.lost);
        make_line(l, g.o.json, wall_ms, LOG_WARNING, 0, said);
        g.lost = append(l) ? 0 : g.lost;
    }
    make_line(l, g.o.json, wall_ms, level, job, text);
    g.lost += g.lost > 0 || !append(l);
    uv_cond_signal(&g.wake);
}

static void end_repeat(struct repeat *r, struct line *l, struct clock_time now)
{
    if (r->count > 0) {
        char said[REPEAT_TEXT + 80];
        snprintf(said, sizeof(said), "%s (%u times more in %ju s)", r->text, r->count,
                 (uintmax_t)((now.mono_ms - r->since_ms) / 1000));
        enqueue(l, now.wall_ms, r->level, r->job, said);
    }
    r->hash = 0;
    r->count = 0;
}

/* Writes the counts whose time is over; how long until the next one is, 0 when none is waiting. */
static uint64_t end_repeats(struct line *l, struct clock_time now, bool all)
{
    uint64_t wait = 0;
    for (size_t i = 0; i < REPEATS; i++) {
        struct repeat *r = &g.repeats[i];
        if (r->hash == 0) {
            continue;
        }
        uint64_t age = now.mono_ms - r->since_ms;
        if (all || age >= LOG_REPEAT_MS) {
            end_repeat(r, l, now);
        } else if (r->count > 0 && (wait == 0 || LOG_REPEAT_MS - age < wait)) {
            wait = LOG_REPEAT_MS - age;
        }
    }
    return wait;
}

static uint64_t hash_line(enum log_level level, unsigned job, const char *text)
{
    uint64_t h = 0xcbf29ce484222325u ^ level; /* FNV-1a */
    h = (h ^ job) * 0x100000001b3u;
    for (; *text != '\0'; text++) {
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    }
    return h | 1;
}

/* True: the same was said a moment ago, and is now counted. */
static bool is_repeat(struct line *l, struct clock_time now, enum log_level level, unsigned job,
                      const char *text)
{
    uint64_t hash = hash_line(level, job, text);
    for (size_t i = 0; i < REPEATS; i++) {
        struct repeat *r = &g.repeats[i];
        if (r->hash != hash) {
            continue;
        }
        if (now.mono_ms - r->since_ms < LOG_REPEAT_MS) {
            if (r->count++ == 0) {
                uv_cond_signal(&g.wake); /* the writer has a count to wait for */
            }
            return true;
        }
        end_repeat(r, l, now);
        break;
    }
    struct repeat *r = &g.repeats[g.next_repeat++ % REPEATS];
    end_repeat(r, l, now);
    *r = (struct repeat){.hash = hash, .since_ms = now.mono_ms, .level = level, .job = job};
    snprintf(r->text, sizeof(r->text), "%s", text);
    return false;
}

/* ---- the writer's thread ---- */

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return put < 0 ? -errno : -EIO;
        }
        p += put;
        n -= (size_t)put;
    }
    return 0;
}

/* A log that cannot be written must not stop a download: it is said once it can be written again. */
static void write_out(const char *p, size_t n, struct line *l)
{
    if (g.o.to_stderr) {
        (void)write_all(STDERR_FILENO, p, n);
    }
    if (g.fd < 0 || n == 0) {
        return;
    }
    int before = g.write_code;
    if (before != 0) {
        char said[128];
        snprintf(said, sizeof(said), "log lines are missing here: %s", err_text(before));
        make_line(l, g.o.json, clock_now(g.o.clock).wall_ms, LOG_ERROR, 0, said);
        g.write_code = write_all(g.fd, l->s, l->len);
    }
    if (g.write_code == 0) {
        g.write_code = write_all(g.fd, p, n);
    }
}

static void writer(void *arg)
{
    struct line *l = arg;
    uv_mutex_lock(&g.lock);
    for (bool stop = false; !stop;) {
        uint64_t wait = end_repeats(l, clock_now(g.o.clock), g.stop);
        if (g.used == 0 && !g.stop && g.asked == g.done && g.new_fd < 0) {
            if (wait > 0) {
                uv_cond_timedwait(&g.wake, &g.lock, wait * 1000000);
            } else {
                uv_cond_wait(&g.wake, &g.lock);
            }
            continue;
        }
        char *full = g.front;
        size_t n = g.used;
        uint64_t asked = g.asked;
        int new_fd = g.new_fd;
        stop = g.stop;
        g.front = g.back;
        g.back = full;
        g.used = 0;
        g.new_fd = -1;
        uv_mutex_unlock(&g.lock);
        write_out(full, n, l);
        if (new_fd >= 0) {
            close(g.fd);
            g.fd = new_fd;
        }
        uv_mutex_lock(&g.lock);
        g.done = asked;
        uv_cond_broadcast(&g.written);
    }
    uv_mutex_unlock(&g.lock);
    mem_free(l);
}

/* ---- calls ---- */

static int open_file(const char *path, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
    return fd >= 0 ? fd : err_sys(e, -errno, "log: %s: open", path);
}

int log_open(const struct log_options *o, struct err *e)
{
    PRE(!g.open);
    int rv = UV_ENOMEM;
    g.o = *o;
    g.fd = -1;
    g.stop = false;
    g.used = 0;
    g.asked = g.done = g.lost = 0;
    g.write_code = 0;
    memset(g.repeats, 0, sizeof(g.repeats));
    g.front = mem_alloc(BUFFER);
    g.back = mem_alloc(BUFFER);
    struct line *l = mem_alloc(sizeof(*l));
    g.path = o->path != NULL ? mem_strdup(o->path) : NULL;
    if (g.front == NULL || g.back == NULL || l == NULL || (o->path != NULL && g.path == NULL)) {
        err_sys(e, rv, "log");
        goto err_after_alloc;
    }
    if (g.path != NULL) {
        rv = g.fd = open_file(g.path, e);
        if (rv < 0) {
            goto err_after_alloc;
        }
    }
    rv = uv_mutex_init(&g.lock);
    if (rv != 0) {
        goto err_after_open;
    }
    rv = uv_cond_init(&g.wake);
    if (rv != 0) {
        goto err_after_mutex;
    }
    rv = uv_cond_init(&g.written);
    if (rv != 0) {
        goto err_after_cond;
    }
    g.open = true; /* before the thread, which looks at nothing else of it */
    rv = uv_thread_create(&g.thread, writer, l);
    if (rv == 0) {
        return 0;
    }
    g.open = false;
    uv_cond_destroy(&g.written);
err_after_cond:
    uv_cond_destroy(&g.wake);
err_after_mutex:
    uv_mutex_destroy(&g.lock);
err_after_open:
    err_sys(e, rv, "log: start");
    if (g.fd >= 0) {
        close(g.fd);
        g.fd = -1;
    }
err_after_alloc:
    mem_free(g.path);
    mem_free(l);
    mem_free(g.back);
    mem_free(g.front);
    return rv;
}

void log_close(void)
{
    PRE(g.open);
    uv_mutex_lock(&g.lock);
    g.stop = true;
    uv_cond_signal(&g.wake);
    uv_mutex_unlock(&g.lock);
    uv_thread_join(&g.thread);
    g.open = false;
    uv_cond_destroy(&g.written);
    uv_cond_destroy(&g.wake);
    uv_mutex_destroy(&g.lock);
    if (g.fd >= 0) {
        close(g.fd);
    }
    if (g.new_fd >= 0) {
        close(g.new_fd);
    }
    g.fd = g.new_fd = -1;
    mem_free(g.path);
    mem_free(g.back);
    mem_free(g.front);
}

int log_reopen(struct err *e)
{
    PRE(g.open);
    if (g.path == NULL) {
        return 0;
    }
    int fd = open_file(g.path, e);
    if (fd < 0) {
        return fd;
    }
    uv_mutex_lock(&g.lock);
    if (g.new_fd >= 0) {
        close(g.new_fd);
    }
    g.new_fd = fd;
    uv_cond_signal(&g.wake);
    uv_mutex_unlock(&g.lock);
    return 0;
}

void log_flush(void)
{
    PRE(g.open);
    uv_mutex_lock(&g.lock);
    uint64_t mine = ++g.asked;
    uv_cond_signal(&g.wake);
    while (g.done < mine) {
        uv_cond_wait(&g.written, &g.lock);
    }
    uv_mutex_unlock(&g.lock);
}

void log_write(enum log_level level, unsigned job, const char *fmt, ...)
{
    if (!log_enabled(level)) {
        return;
    }
    char raw[LOG_LINE_MAX], text[LOG_LINE_MAX + 8];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(raw, sizeof(raw), fmt, args);
    va_end(args);
    bool cut = n >= (int)sizeof(raw);
    size_t len = redact(raw, cut, text, LOG_LINE_MAX);
    if (cut) {
        memcpy(text + len, "...", 4);
    }
    struct line l;
    if (!g.open) {
        make_line(&l, false, clock_now(&clock_system).wall_ms, level, job, text);
        (void)write_all(STDERR_FILENO, l.s, l.len);
        return;
    }
    struct clock_time now = clock_now(g.o.clock);
    uv_mutex_lock(&g.lock);
    if (!is_repeat(&l, now, level, job, text)) {
        enqueue(&l, now.wall_ms, level, job, text);
    }
    uv_mutex_unlock(&g.lock);
}
