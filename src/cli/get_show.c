/* get_show.c - see get_show.h. */
#include "cli/get_show.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "cli/cli.h"
#include "queue/health.h"

enum { PLAIN_MS = 5000, RATE_MS = 1000, BAR = 24 };

void get_view_take(struct get_view *v, struct coord *c, uint32_t job_id)
{
    const struct queue_job *j = queue_job(coord_queue(c), job_id);
    memset(v, 0, sizeof(*v));
    for (unsigned i = 0; i < coord_server_count(c); i++) {
        struct coord_server_view s = coord_server_view(c, i);
        v->servers_up += s.state == COORD_SERVER_UP || s.state == COORD_SERVER_PROBE;
        v->servers_disabled += s.state == COORD_SERVER_DISABLED;
        if (s.state != COORD_SERVER_UP && v->server_why[0] == '\0') {
            snprintf(v->server_why, sizeof(v->server_why), "server %u: %s", s.id, s.why);
        }
    }
    if (j == NULL) {
        return;
    }
    v->exists = true;
    v->state = (enum queue_state)j->life.state;
    snprintf(v->name, sizeof(v->name), "%s", j->name);
    snprintf(v->dest, sizeof(v->dest), "%s", j->dest_dir);
    snprintf(v->reason, sizeof(v->reason), "%s", j->reason);
    for (uint32_t i = 0; i < j->file_count; i++) {
        const struct queue_file *f = j->files[i];
        if (f->wanted) {
            v->total_bytes += f->left_bytes + f->done_bytes + f->failed_bytes;
            v->left_bytes += f->left_bytes;
            v->files++;
            v->files_left += !queue_file_ended(f);
        }
    }
    v->articles_failed = j->failed_articles;
    v->articles_waiting = j->waiting_articles;
    v->health = queue_job_health(j);
    v->critical = queue_job_critical(j);
    v->holds = queue_job_blocking(coord_queue(c), j);
}

void get_show_init(struct get_show *s)
{
    *s = (struct get_show){.shown_state = -1};
    s->terminal = isatty(STDERR_FILENO) != 0;
    s->begin_ms = clock_now(&clock_system).mono_ms;
}

static void clear_line(struct get_show *s)
{
    if (s->line_open) {
        fputs("\r\033[K", stderr);
        s->line_open = false;
    }
}

void get_show_note(struct get_show *s, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    clear_line(s);
    fprintf(stderr, "weir get: %s\n", text);
}

/* "12.3 MB" */
static const char *size_text(uint64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double v = (double)bytes;
    size_t u = 0;
    while (v >= 1000 && u + 1 < sizeof(units) / sizeof(units[0])) {
        v /= 1000;
        u++;
    }
    snprintf(out, size, u == 0 ? "%.0f %s" : "%.1f %s", v, units[u]);
    return out;
}

static void measure(struct get_show *s, uint64_t now, uint64_t bytes)
{
    s->bytes_in = bytes;
    if (s->rate_ms == 0) {
        s->rate_ms = now;
        s->rate_bytes = bytes;
    }
    if (now - s->rate_ms >= RATE_MS) {
        uint64_t fresh = (bytes - s->rate_bytes) * 1000 / (now - s->rate_ms);
        s->rate = s->rate == 0 ? fresh : (s->rate + fresh) / 2;
        s->rate_ms = now;
        s->rate_bytes = bytes;
    }
}

static const char *activity(const struct get_view *v)
{
    switch (v->state) {
    case QUEUE_DOWNLOADING:
        return "downloading";
    case QUEUE_PROCESSING:
        return "verifying";
    default:
        return queue_job_type.states[v->state].name;
    }
}

static void hold_words(uint32_t holds, char *out, size_t size)
{
    out[0] = '\0';
    for (int h = 0; h < QUEUE_HOLDS; h++) {
        if (holds & QUEUE_HOLD_BIT(h)) {
            size_t used = strlen(out);
            snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "",
                     queue_hold_name((enum queue_hold)h));
        }
    }
}

static unsigned percent(const struct get_view *v)
{
    return v->total_bytes > 0 ? (unsigned)(100 * (v->total_bytes - v->left_bytes) / v->total_bytes)
                              : 0;
}

static void show_json(struct get_show *s, const struct get_view *v, struct engine_counters n)
{
    struct jsonw j;
    jsonw_init_file(&j, stdout);
    jsonw_object(&j);
    jsonw_kstr(&j, "event", "progress");
    jsonw_kstr(&j, "state", queue_job_type.states[v->state].name);
    jsonw_kuint(&j, "total_bytes", v->total_bytes);
    jsonw_kuint(&j, "left_bytes", v->left_bytes);
    jsonw_kuint(&j, "rate", s->rate);
    jsonw_kuint(&j, "health_permille", v->health);
    jsonw_kuint(&j, "critical_permille", v->critical);
    jsonw_kuint(&j, "articles_failed", v->articles_failed);
    jsonw_kuint(&j, "connections", n.connections);
    jsonw_key(&j, "holds");
    jsonw_array(&j);
    for (int h = 0; h < QUEUE_HOLDS; h++) {
        if (v->holds & QUEUE_HOLD_BIT(h)) {
            jsonw_str(&j, queue_hold_name((enum queue_hold)h));
        }
    }
    jsonw_end(&j);
    jsonw_end(&j);
    jsonw_finish(&j);
    putchar('\n');
    fflush(stdout);
}

static void show_line(struct get_show *s, const struct get_view *v, struct engine_counters n)
{
    char rate[32], left[32], eta[32] = "", bar[BAR + 1], holds[128];
    unsigned filled = percent(v) * BAR / 100;
    memset(bar, '.', BAR);
    memset(bar, '#', filled);
    bar[BAR] = '\0';
    if (s->rate > 0 && v->left_bytes > 0) {
        uint64_t sec = v->left_bytes / s->rate;
        snprintf(eta, sizeof(eta), ", %u:%02u left", (unsigned)(sec / 60), (unsigned)(sec % 60));
    }
    hold_words(v->holds, holds, sizeof(holds));
    const char *open = s->terminal ? "\r\033[K" : "";
    const char *close = s->terminal ? "" : "\n";
    if (v->state == QUEUE_PROCESSING) {
        fprintf(stderr, "%s[%s] verifying and repairing%s", open, bar, close);
    } else if (holds[0] != '\0') {
        fprintf(stderr, "%s[%s] %3u%%  waiting (%s) %s%s", open, bar, percent(v), holds,
                v->server_why, close);
    } else if (v->articles_waiting > 0 && s->rate == 0) {
        fprintf(stderr, "%s[%s] %3u%%  %u articles are not there yet; asked again soon%s", open,
                bar, percent(v), v->articles_waiting, close);
    } else {
        fprintf(stderr, "%s[%s] %3u%%  %s/s%s  %s to go, health %u.%u%%, %u connections%s", open,
                bar, percent(v), size_text(s->rate, rate, sizeof(rate)), eta,
                size_text(v->left_bytes, left, sizeof(left)), v->health / 10, v->health % 10,
                n.connections, close);
    }
    s->line_open = s->terminal;
    fflush(stderr);
}

void get_show_progress(struct get_show *s, const struct get_view *v, struct engine_counters n)
{
    uint64_t now = clock_now(&clock_system).mono_ms;
    measure(s, now, n.bytes_in);
    s->total_bytes = v->total_bytes > s->total_bytes ? v->total_bytes : s->total_bytes;
    if (!v->exists) {
        return;
    }
    bool changed = (int)v->state != s->shown_state;
    if (s->json) {
        if (changed || now - s->shown_ms >= RATE_MS) {
            show_json(s, v, n);
            s->shown_ms = now;
        }
    } else if (!s->quiet) {
        if (changed && !s->terminal && s->shown_state < 0) {
            fprintf(stderr, "weir get: %s: %s\n", v->name, activity(v));
            s->shown_ms = now;
        } else if (s->terminal || now - s->shown_ms >= PLAIN_MS) {
            show_line(s, v, n);
            s->shown_ms = now;
        }
    }
    s->shown_state = (int)v->state;
}

void get_show_end(struct get_show *s, const struct get_view *v, int exit_code, const char *out)
{
    char size[32];
    uint64_t ms = clock_now(&clock_system).mono_ms - s->begin_ms;
    clear_line(s);
    if (s->json) {
        struct jsonw j;
        jsonw_init_file(&j, stdout);
        jsonw_object(&j);
        jsonw_kstr(&j, "event", "end");
        jsonw_kint(&j, "exit_code", exit_code);
        jsonw_kbool(&j, "complete", exit_code == CLI_OK);
        jsonw_kstr(&j, "name", v->name);
        jsonw_kstr(&j, "directory", v->dest);
        jsonw_kstr(&j, "stage", v->stage);
        jsonw_kstr(&j, "reason", v->reason);
        jsonw_kuint(&j, "bytes_in", s->bytes_in);
        jsonw_kuint(&j, "articles_failed", v->articles_failed);
        jsonw_kuint(&j, "health_permille", v->health);
        jsonw_kuint(&j, "ms", ms);
        jsonw_end(&j);
        jsonw_finish(&j);
        putchar('\n');
        return;
    }
    if (exit_code == CLI_OK && !s->quiet) {
        fprintf(stderr, "weir get: %s: complete (%s), %s in %u.%u s: %s/%s\n", v->name, v->stage,
                size_text(s->total_bytes, size, sizeof(size)), (unsigned)(ms / 1000),
                (unsigned)(ms / 100 % 10), out, v->dest);
    } else if (exit_code != CLI_OK && v->reason[0] != '\0') {
        fprintf(stderr, "weir get: %s: %s\n", v->name, v->reason);
    }
}
