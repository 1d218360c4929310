/* coordinator.c - what one step of the core costs, with a small and with a large queue.
 *
 * Two cores in one process: 1,000 articles in 10 jobs, and 1,000,000 in 10,000. Both answer 50 connections, turn about.
 * Printed: the cost of a step (p50, p99, p99.9, most), of refilling 50 connections from nothing (a resume), and the
 * ratio of the two queues. One JSON line per queue. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coordinator/step.h"

enum { CONNECTIONS = 50, STEPS = 200000, REFILLS = 200 };

struct bench {
    struct coord *c;
    const char *name;
    uint64_t leases[4096];
    unsigned lease_count;
    uint64_t writes[64];
    uint32_t closes[64];
    unsigned write_count, close_count;
    uint64_t save_changes;
    bool save;
    struct clock_time now;
    uint64_t *ns;
    unsigned ns_count;
    uint64_t refill_ns[REFILLS];
    unsigned refills;
    uint64_t generation;
};

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void emit(void *arg, const struct coord_effect *fx)
{
    struct bench *b = arg;
    if (fx->type == COORD_FX_FETCH && b->lease_count < 4096) {
        b->leases[b->lease_count++] = fx->fetch.lease;
    } else if (fx->type == COORD_FX_WRITE && b->write_count < 64) {
        b->writes[b->write_count++] = fx->write.lease;
    } else if (fx->type == COORD_FX_CLOSE_FILE && b->close_count < 64) {
        b->closes[b->close_count++] = fx->file.file_id;
    } else if (fx->type == COORD_FX_SAVE) {
        b->save = true;
        b->save_changes = fx->changes;
    }
}

static uint64_t step(struct bench *b, struct coord_event *ev)
{
    struct coord_effects out = {emit, b};
    ev->now = b->now;
    uint64_t from = now_ns();
    coord_step(b->c, ev, &out);
    uint64_t ns = now_ns() - from;
    if (b->ns != NULL && b->ns_count < STEPS) {
        b->ns[b->ns_count++] = ns;
    }
    return ns;
}

static void disk(struct bench *b)
{
    while (b->write_count > 0) {
        struct coord_event ev = {.type = COORD_EV_WRITTEN,
                                 .disk = {.lease = b->writes[--b->write_count]}};
        step(b, &ev);
    }
    while (b->close_count > 0) {
        struct coord_event ev = {.type = COORD_EV_CLOSED,
                                 .disk = {.file_id = b->closes[--b->close_count]}};
        step(b, &ev);
    }
    if (b->save) {
        b->save = false;
        struct coord_event ev = {
            .type = COORD_EV_SAVED,
            .saved = {.changes = b->save_changes, .generation = ++b->generation}};
        step(b, &ev);
    }
}

/* One NZB with ten files of ten articles. */
static struct nzb *nzb_of(unsigned job)
{
    static char text[64 * 1024];
    size_t n = (size_t)snprintf(text, sizeof(text), "<nzb>");
    for (unsigned i = 0; i < 10; i++) {
        n += (size_t)snprintf(
            text + n, sizeof(text) - n,
            "<file poster=\"p\" date=\"1600000000\" subject=\"&quot;f%u.r%02u&quot; yEnc (1/10)\">"
            "<groups><group>a.b</group></groups><segments>",
            job, i);
        for (unsigned a = 1; a <= 10; a++) {
            n += (size_t)snprintf(
                text + n, sizeof(text) - n,
                "<segment bytes=\"750000\" number=\"%u\">%u.%u.%u@bench</segment>", a, job, i, a);
        }
        n += (size_t)snprintf(text + n, sizeof(text) - n, "</segments></file>");
    }
    n += (size_t)snprintf(text + n, sizeof(text) - n, "</nzb>");
    struct nzb *nzb = NULL;
    struct err e = {0};
    if (nzb_parse(text, n, "b", &nzb, &e) != 0) {
        fprintf(stderr, "bench: %s\n", e.msg);
        exit(1);
    }
    return nzb;
}

static void make(struct bench *b, const char *name, unsigned jobs)
{
    memset(b, 0, sizeof(*b));
    b->name = name;
    b->now = (struct clock_time){1000000, INT64_C(1700000000000)};
    struct queue *q = queue_new();
    struct coord_server servers[2] = {
        {.id = 1, .name = "a", .active = true, .connections = CONNECTIONS / 2, .depth = 1},
        {.id = 2,
         .name = "b",
         .active = true,
         .connections = CONNECTIONS / 2,
         .depth = 1,
         .level = 1},
    };
    servers[1].level = 0;
    queue_add_begin(q);
    for (unsigned i = 0; i < jobs; i++) {
        struct queue_job *j = NULL;
        char job[32];
        snprintf(job, sizeof(job), "job%u", i);
        const struct queue_add add = {.nzb = nzb_of(i), .name = job, .stored_nzb = "x"};
        if (queue_add(q, &add, &j, NULL) != 0 || queue_job_move(q, j, QUEUE_QUEUED, 0, NULL) != 0) {
            exit(1);
        }
    }
    queue_add_end(q);
    queue_set_global_holds(q, QUEUE_HOLD_BIT(QUEUE_HOLD_GLOBAL));
    struct coord_config config = {.limits = {.quota_start_day = 1, .post_slots = 1},
                                  .servers = servers,
                                  .server_count = 2,
                                  .seed = 1};
    b->c = coord_new(q, &config, b->now);
    struct coord_event ev = {.type = COORD_EV_START};
    step(b, &ev);
    disk(b);
}

/* Pause: everything comes back. Resume: all 50 places are filled in one step. */
static void refill(struct bench *b)
{
    struct coord_event ev = {.type = COORD_EV_COMMAND,
                             .command = {.op = COORD_PAUSE, .request = 1}};
    step(b, &ev);
    while (b->lease_count > 0) {
        ev = (struct coord_event){
            .type = COORD_EV_RESULT,
            .result = {.lease = b->leases[--b->lease_count], .code = COORD_NOT_FOUND}};
        step(b, &ev);
    }
    disk(b);
    ev = (struct coord_event){.type = COORD_EV_COMMAND,
                              .command = {.op = COORD_RESUME, .request = 2}};
    b->refill_ns[b->refills++] = step(b, &ev);
    if (b->lease_count != CONNECTIONS) {
        fprintf(stderr, "bench: %u leases instead of %d\n", b->lease_count, CONNECTIONS);
    }
    disk(b);
}

/* One article arrives, is written, and another one is asked for; now and then nothing but time passes. */
static void article(struct bench *b, unsigned n)
{
    if (b->lease_count == 0) {
        return;
    }
    unsigned i = n % b->lease_count;
    uint64_t lease = b->leases[i];
    b->leases[i] = b->leases[--b->lease_count];
    b->now.mono_ms += n % 4 == 0;
    struct coord_event ev = {.type = COORD_EV_RESULT,
                             .result = {.lease = lease,
                                        .code = COORD_OK,
                                        .data = 1,
                                        .wire_bytes = 750000,
                                        .part = {(uint64_t)n % 10 * 750000, 740000, 1}}};
    step(b, &ev);
    disk(b);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static double us(const uint64_t *sorted, unsigned count, double share)
{
    return count > 0 ? (double)sorted[(unsigned)((double)(count - 1) * share)] / 1000 : 0;
}

static double report(struct bench *b, double *refill_us)
{
    qsort(b->ns, b->ns_count, sizeof(*b->ns), by_value);
    qsort(b->refill_ns, b->refills, sizeof(*b->refill_ns), by_value);
    *refill_us = us(b->refill_ns, b->refills, 0.5);
    printf("{\"bench\":\"coordinator\",\"queue\":\"%s\",\"articles\":%" PRIu64
           ",\"steps\":%u,\"step_us\":{\"p50\":%.2f,\"p99\":%.2f,\"p99.9\":%.2f,\"max\":%.2f},"
           "\"refill50_us\":{\"p50\":%.1f,\"max\":%.1f}}\n",
           b->name, coord_queue(b->c)->article_count, b->ns_count, us(b->ns, b->ns_count, 0.5),
           us(b->ns, b->ns_count, 0.99), us(b->ns, b->ns_count, 0.999), us(b->ns, b->ns_count, 1),
           *refill_us, us(b->refill_ns, b->refills, 1));
    return us(b->ns, b->ns_count, 0.5);
}

int main(void)
{
    static struct bench big, small;
    make(&big, "10k jobs", 10000);
    make(&small, "10 jobs", 10);
    struct bench *both[2] = {&small, &big};
    for (unsigned r = 0; r < 8; r++) {
        refill(both[0]);
        refill(both[1]);
    }
    for (unsigned k = 0; k < 2; k++) {
        both[k]->refills = 0;
        both[k]->ns = malloc(STEPS * sizeof(uint64_t));
    }
    /* The small queue has but a thousand articles: as many for each. */
    for (unsigned n = 0; n < 400; n++) {
        article(both[0], n);
        article(both[1], n);
    }
    unsigned few[2] = {small.ns_count, big.ns_count};
    (void)few;
    for (unsigned r = 0; r < 4; r++) {
        refill(both[0]);
        refill(both[1]);
    }
    for (unsigned n = 0; big.ns_count < STEPS; n++) { /* the large one alone, for its rare steps */
        article(&big, n);
    }
    double refill_small = 0, refill_big = 0;
    double a = report(&small, &refill_small), b = report(&big, &refill_big);
    printf("{\"bench\":\"coordinator\",\"ratio_step_p50\":%.2f,\"ratio_refill50\":%.2f}\n", b / a,
           refill_big / refill_small);
    coord_free(small.c);
    coord_free(big.c);
    free(small.ns);
    free(big.ns);
    return 0;
}
