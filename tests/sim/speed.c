/* speed.c - the speed limit in simulation: the core's leases, the pools' limiter (nntp/rate.h), a virtual clock.
 *
 * Twenty connections that could go faster than any limit share what the limiter hands out. From 500 KB/s to 500 MB/s,
 * every window of 10 s must have what the limit allows, 3 % more or less; also after the limit was changed live. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/step.h"
#include "nntp/rate.h"

enum { ARTICLE = 750000, TICK_MS = 5, WINDOW_MS = 10000, OUT = 4096 };

struct flight {
    uint64_t lease, left, begins_ms;
};

struct speed {
    struct coord *c;
    struct nntp_rate rate;
    struct clock_time now;
    struct flight out[OUT];
    unsigned count, turn;
    uint64_t write, generation, save_changes;
    uint32_t close;
    bool save;
    uint64_t bytes;
};

static void emit(void *arg, const struct coord_effect *fx)
{
    struct speed *s = arg;
    switch (fx->type) {
    case COORD_FX_FETCH:
        if (s->count < OUT) {
            s->out[s->count++] = (struct flight){fx->fetch.lease, ARTICLE, s->now.mono_ms + 20};
        }
        break;
    case COORD_FX_RATE:
        nntp_rate_set(&s->rate, fx->bytes);
        break;
    case COORD_FX_WRITE:
        s->write = fx->write.lease;
        break;
    case COORD_FX_CLOSE_FILE:
        s->close = fx->file.file_id;
        break;
    case COORD_FX_SAVE:
        s->save = true;
        s->save_changes = fx->changes;
        break;
    default:
        break;
    }
}

static void step(struct speed *s, struct coord_event ev)
{
    struct coord_effects out = {emit, s};
    ev.now = s->now;
    ev.read_bytes = s->bytes;
    coord_step(s->c, &ev, &out);
    while (s->write != 0 || s->close != 0 || s->save) {
        struct coord_event disk = {.type = COORD_EV_SAVED, .now = s->now};
        if (s->write != 0) {
            disk.type = COORD_EV_WRITTEN;
            disk.disk = (struct coord_disk){.lease = s->write};
            s->write = 0;
        } else if (s->close != 0) {
            disk.type = COORD_EV_CLOSED;
            disk.disk = (struct coord_disk){.file_id = s->close};
            s->close = 0;
        } else {
            disk.saved =
                (struct coord_saved){.changes = s->save_changes, .generation = ++s->generation};
            s->save = false;
        }
        coord_step(s->c, &disk, &out);
    }
}

static struct nzb *big_nzb(unsigned articles)
{
    size_t room = articles * 80u + 1000, n = 0;
    char *text = malloc(room);
    n += (size_t)snprintf(
        text, room,
        "<nzb><file poster=\"p\" date=\"1600000000\" subject=\"&quot;x.rar&quot;\">"
        "<groups><group>a</group></groups><segments>");
    for (unsigned i = 1; i <= articles; i++) {
        n += (size_t)snprintf(text + n, room - n,
                              "<segment bytes=\"%d\" number=\"%u\">%u@s</segment>", ARTICLE, i, i);
    }
    n += (size_t)snprintf(text + n, room - n, "</segments></file></nzb>");
    struct nzb *nzb = NULL;
    if (nzb_parse(text, n, "x", &nzb, NULL) != 0) {
        abort();
    }
    free(text);
    return nzb;
}

/* Every reader in turn takes a slice, as sockets do, until the limiter has no more. */
static void read_some(struct speed *s)
{
    for (unsigned idle = 0; s->count > 0 && idle < s->count;) {
        struct flight *f = &s->out[s->turn++ % s->count];
        uint64_t want = f->left < 65536 ? f->left : 65536;
        uint64_t got = f->begins_ms <= s->now.mono_ms
                           ? nntp_rate_claim(&s->rate, s->now.mono_ms * 1000, want)
                           : 0;
        if (got == 0) {
            idle++;
            continue;
        }
        idle = 0;
        s->bytes += got;
        f->left -= got;
        if (f->left == 0) {
            struct coord_event ev = {
                .type = COORD_EV_RESULT,
                .result = {
                    .lease = f->lease, .data = 1, .wire_bytes = ARTICLE, .part = {0, ARTICLE, 1}}};
            *f = s->out[--s->count];
            step(s, ev);
        }
    }
    struct coord_event ev = {.type = COORD_EV_TICK};
    for (unsigned i = 0; i < s->count; i++) { /* throttled, but alive */
        if (s->now.mono_ms % 10000 == 0) {
            step(s, (struct coord_event){.type = COORD_EV_PROGRESS, .lease = s->out[i].lease});
        }
    }
    step(s, ev);
}

static int run(uint64_t rate, double *worst)
{
    static struct speed s;
    memset(&s, 0, sizeof(s));
    nntp_rate_init(&s.rate);
    s.now = (struct clock_time){1000000, INT64_C(1700000000000)};
    struct coord_server server = {.id = 1, .active = true, .connections = 20, .depth = 8};
    struct queue *q = queue_new();
    struct queue_job *j = NULL;
    const struct queue_add add = {.nzb = big_nzb((unsigned)(rate * 100 / ARTICLE) + 2000),
                                  .name = "x"};
    if (queue_add(q, &add, &j, NULL) != 0 || queue_job_move(q, j, QUEUE_QUEUED, 0, NULL) != 0) {
        abort();
    }
    struct coord_config config = {
        .limits = {.rate = rate, .quota_start_day = 1}, .servers = &server, .server_count = 1};
    s.c = coord_new(q, &config, s.now);
    step(&s, (struct coord_event){.type = COORD_EV_START});
    int bad = 0;
    *worst = 0;
    for (unsigned window = 0; window < 6; window++) {
        uint64_t limit = window < 4 ? rate : rate / 2;
        if (window == 4) { /* halved, live */
            step(&s, (struct coord_event){.type = COORD_EV_COMMAND,
                                          .command = {.op = COORD_RATE, .number = (int64_t)limit}});
        }
        uint64_t from = s.bytes;
        for (unsigned t = 0; t < WINDOW_MS / TICK_MS; t++) {
            s.now.mono_ms += TICK_MS;
            s.now.wall_ms += TICK_MS;
            read_some(&s);
        }
        double off = (double)(s.bytes - from) / ((double)limit * WINDOW_MS / 1000) * 100 - 100;
        *worst = (off < 0 ? -off : off) > *worst ? (off < 0 ? -off : off) : *worst;
        bad += off > 3 || off < -3;
    }
    coord_free(s.c);
    return bad;
}

int main(void)
{
    static const uint64_t rates[] = {500000, 2000000, 10000000, 50000000, 200000000, 500000000};
    int bad = 0;
    for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        double worst = 0;
        int windows = run(rates[i], &worst);
        printf("%9llu bytes/s: worst window %.2f %% off%s\n", (unsigned long long)rates[i], worst,
               windows > 0 ? "  TOO MUCH" : "");
        bad += windows;
    }
    return bad > 0;
}
