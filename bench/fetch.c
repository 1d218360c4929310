/* fetch.c - the download engine without a coordinator: pools, buffers and the disk driven by the plainest loop, to
 * measure them and to check that what they write is right. One JSON line at the end.
 *
 *     bench_fetch FILE.nzb --host H --port P [--tls] [--ca FILE] [--user U --pass P] [--connections N] [--depth D]
 *                 [--workers W] [--rate BYTES] [--budget BYTES] --out DIR
 *
 * Files are named by their place in the NZB: DIR/0.bin, DIR/1.bin, ... With --out none, nothing is written. */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mailbox.h"
#include "base/mem.h"
#include "disk/disk.h"
#include "lib/nzbscan.h"
#include "nntp/pool.h"

enum { ITEMS_MAX = 50 * (NNTP_DEPTH_MAX + 1), WORKERS_MAX = 8 };

struct item { /* one article on its way; as many as the engine likes to have */
    struct nntp_fetch fetch;
    struct disk_msg write;
    struct disk_file
        *file;        /* known when it was asked for: its data goes to the disk without a detour */
    struct list node; /* in `idle`, or waiting for its file to be opened */
    unsigned worker;
};

struct file {
    struct disk_msg open;
    struct disk_file *handle;
    bool asked;
    struct list waiting; /* items with data */
};

struct bench {
    uv_loop_t loop;
    struct mbox results; /* of the pools */
    struct mbox written; /* of the disk */
    struct buf_pool bufs;
    struct nntp_rate rate;
    struct nntp_pool *pools[WORKERS_MAX];
    unsigned workers;
    unsigned given[WORKERS_MAX];
    unsigned credit[WORKERS_MAX];
    struct disk *disk;
    int dirfd; /* -1: nothing is written */
    struct nntp_server server;
    struct nntp_servers order[WORKERS_MAX];
    struct scan nzb;
    struct file *files;
    struct item *items;
    struct list idle;
    unsigned next, over; /* segments begun, and finished in any way */
    unsigned results_seen[NNTP_RESULTS];
    uint64_t bytes, wire_bytes;
    unsigned ups, downs;
    unsigned depth_most;
    char trouble[NNTP_TEXT_MAX];
    atomic_uint allocations;
    unsigned allocations_at_half;
    uint64_t quarter_ns, three_quarters_ns;       /* when so many articles were here */
    uint64_t quarter_bytes, three_quarters_bytes; /* and their bytes */
};

static int count_allocation(size_t size, void *arg)
{
    struct bench *b = arg;
    (void)size;
    atomic_fetch_add_explicit(&b->allocations, 1, memory_order_relaxed);
    return 1;
}

/* ---- asking ---- */

/* In batches: a pool is woken once for several articles, not for each. */
static void give_work(struct bench *b)
{
    for (unsigned w = 0; w < b->workers; w++) {
        if (b->given[w] > b->credit[w] - b->credit[w] / 4) {
            continue;
        }
        while (b->given[w] < b->credit[w] && b->next < b->nzb.count && !list_empty(&b->idle)) {
            struct item *i = LIST_ENTRY(list_pop_front(&b->idle), struct item, node);
            const struct scan_segment *s = &b->nzb.segments[b->next];
            struct nntp_fetch *f = &i->fetch;
            f->msg.kind = NNTP_MSG_FETCH;
            f->lease = b->next++;
            f->server = b->server.id;
            f->part = s->number;
            f->raw_bytes = s->bytes;
            snprintf(f->id, sizeof(f->id), "%s", s->id);
            i->worker = w;
            i->file = b->files[s->file].handle;
            b->given[w]++;
            PRE(nntp_pool_post(b->pools[w], &f->msg) == 0);
        }
    }
}

static void stop_all(struct bench *b);

static void item_over(struct bench *b, struct item *i)
{
    list_push_back(&b->idle, &i->node);
    b->over++;
    if (b->over == b->nzb.count / 2) {
        b->allocations_at_half = atomic_load(&b->allocations);
    }
    if (b->over == b->nzb.count / 4) {
        b->quarter_ns = uv_hrtime();
        b->quarter_bytes = b->wire_bytes;
    }
    if (b->over == b->nzb.count / 4 * 3) {
        b->three_quarters_ns = uv_hrtime();
        b->three_quarters_bytes = b->wire_bytes;
    }
    if (b->over == b->nzb.count) {
        stop_all(b);
    } else {
        give_work(b);
    }
}

/* ---- writing ---- */

static void write_item(struct bench *b, struct item *i, struct disk_file *file)
{
    i->write.kind = DISK_WRITE;
    i->write.file = file;
    i->write.at = i->fetch.header.begin;
    i->write.buf = i->fetch.buf;
    i->fetch.buf = NULL;
    PRE(disk_post(b->disk, &i->write) == 0);
}

static void take_data(struct bench *b, struct item *i)
{
    unsigned index = b->nzb.segments[i->fetch.lease].file;
    struct file *f = &b->files[index];
    if (b->dirfd < 0) {
        buf_give(&b->bufs, i->fetch.buf);
        i->fetch.buf = NULL;
        item_over(b, i);
    } else if (f->handle != NULL) {
        write_item(b, i, f->handle);
    } else {
        list_push_back(&f->waiting, &i->node);
        if (!f->asked) {
            f->asked = true;
            f->open = (struct disk_msg){.kind = DISK_OPEN,
                                        .tag = index,
                                        .dirfd = b->dirfd,
                                        .size = i->fetch.header.size,
                                        .fresh = true};
            snprintf(f->open.name, sizeof(f->open.name), "%u.bin", index);
            PRE(disk_post(b->disk, &f->open) == 0);
        }
    }
}

static void count_result(struct bench *b, struct item *i);

static void on_written(struct mbox *m, void *raw)
{
    struct bench *b = m->arg;
    struct disk_msg *msg = raw;
    if (msg->code != 0) {
        fprintf(stderr, "bench_fetch: %s\n", msg->text);
        exit(1);
    }
    if (msg->kind == DISK_OPEN) {
        struct file *f = &b->files[msg->tag];
        f->handle = msg->file;
        struct list *node;
        while ((node = list_pop_front(&f->waiting)) != NULL) {
            write_item(b, LIST_ENTRY(node, struct item, node), f->handle);
        }
    } else {
        struct item *i = LIST_ENTRY(msg, struct item, write);
        if (i->file != NULL) {
            count_result(b, i);
        }
        item_over(b, i);
    }
}

/* ---- results ---- */

static void on_event(struct bench *b, struct nntp_event *e)
{
    b->ups += e->kind == NNTP_CONN_UP;
    if (e->kind == NNTP_CONN_DOWN) {
        b->downs++;
        if (e->trouble != NNTP_TROUBLE_IDLE && e->trouble != NNTP_TROUBLE_STOPPED) {
            snprintf(b->trouble, sizeof(b->trouble), "%s", e->text);
        }
    }
    mem_free(e);
}

static void count_result(struct bench *b, struct item *i)
{
    struct nntp_fetch *f = &i->fetch;
    b->results_seen[f->result]++;
    b->wire_bytes += f->wire_bytes;
    b->given[i->worker]--;
    b->credit[i->worker] = f->credit;
    unsigned depth = f->credit / b->server.connections - 1;
    b->depth_most = depth > b->depth_most ? depth : b->depth_most;
    if (f->result == NNTP_FOUND) {
        b->bytes += f->header.end - f->header.begin;
    }
}

static void on_fetch(struct bench *b, struct item *i)
{
    struct nntp_fetch *f = &i->fetch;
    count_result(b, i);
    if (f->buf != NULL) {
        take_data(b, i);
        give_work(b);
        return;
    }
    if (f->text[0] != '\0') {
        snprintf(b->trouble, sizeof(b->trouble), "%s", f->text);
    }
    item_over(b, i);
}

static void on_result(struct mbox *m, void *raw)
{
    struct bench *b = m->arg;
    struct nntp_msg *msg = raw;
    if (msg->kind == NNTP_MSG_FETCH) {
        struct nntp_fetch *f = LIST_ENTRY(msg, struct nntp_fetch, msg);
        on_fetch(b, LIST_ENTRY(f, struct item, fetch));
    } else if (msg->kind == NNTP_MSG_EVENT) {
        on_event(b, LIST_ENTRY(msg, struct nntp_event, msg));
    }
}

static void deliver_result(void *arg, struct nntp_msg *msg)
{
    struct bench *b = arg;
    if (msg->kind == NNTP_MSG_FETCH) {
        struct nntp_fetch *f = LIST_ENTRY(msg, struct nntp_fetch, msg);
        struct item *i = LIST_ENTRY(f, struct item, fetch);
        if (f->result == NNTP_FOUND && i->file != NULL) {
            write_item(b, i, i->file);
            return;
        }
        i->file = NULL;
    }
    PRE(mbox_post(&b->results, msg) == 0);
}

static void deliver_written(void *arg, struct disk_msg *msg)
{
    struct bench *b = arg;
    PRE(mbox_post(&b->written, msg) == 0);
}

/* ---- life ---- */

static void on_box_closed(struct mbox *m)
{
    (void)m;
}

static void stop_all(struct bench *b)
{
    for (unsigned w = 0; w < b->workers; w++) {
        nntp_pool_stop(b->pools[w]);
        nntp_pool_join(b->pools[w]);
    }
    disk_stop(b->disk);
    disk_join(b->disk);
    mbox_close(&b->results, on_box_closed);
    mbox_close(&b->written, on_box_closed);
}

static void start(struct bench *b)
{
    struct err e = {0};
    uv_loop_init(&b->loop);
    PRE(mbox_init(&b->results, &b->loop, 4 * ITEMS_MAX, on_result, b) == 0);
    PRE(mbox_init(&b->written, &b->loop, 4 * ITEMS_MAX, on_written, b) == 0);
    b->files = mem_zalloc(b->nzb.files, sizeof(*b->files));
    for (unsigned i = 0; i < b->nzb.files; i++) {
        list_init(&b->files[i].waiting);
    }
    list_init(&b->idle);
    b->items = mem_zalloc(ITEMS_MAX, sizeof(*b->items));
    for (unsigned i = 0; i < ITEMS_MAX; i++) {
        list_push_back(&b->idle, &b->items[i].node);
    }
    struct disk_opts disk = {.fs = &fsx_kernel,
                             .bufs = &b->bufs,
                             .messages = 2 * ITEMS_MAX,
                             .open_max = 100,
                             .deliver = deliver_written,
                             .arg = b};
    PRE(disk_start(&b->disk, &disk, &e) == 0);
    unsigned connections = b->server.connections;
    for (unsigned w = 0; w < b->workers; w++) {
        struct nntp_pool_opts opts = {.index = w,
                                      .bufs = &b->bufs,
                                      .rate = &b->rate,
                                      .messages = ITEMS_MAX + 4,
                                      .connections = connections,
                                      .deliver = deliver_result,
                                      .arg = b};
        PRE(nntp_pool_start(&b->pools[w], &opts, &e) == 0);
        b->server.connections = (connections + w) / b->workers;
        b->credit[w] = 2 * b->server.connections;
        static struct nntp_server copies[WORKERS_MAX];
        copies[w] = b->server;
        b->order[w] =
            (struct nntp_servers){.msg.kind = NNTP_MSG_SERVERS, .list = &copies[w], .count = 1};
        PRE(nntp_pool_post(b->pools[w], &b->order[w].msg) == 0);
    }
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void report(struct bench *b, uint64_t began, const struct rusage *before)
{
    struct rusage now;
    getrusage(RUSAGE_SELF, &now);
    double wall = (double)(uv_hrtime() - began) / 1e9;
    double user = seconds(now.ru_utime) - seconds(before->ru_utime);
    double sys = seconds(now.ru_stime) - seconds(before->ru_stime);
    struct buf_stats bufs = buf_pool_stats(&b->bufs);
    printf(
        "{\"articles\":%u,\"found\":%u,\"damaged\":%u,\"missing\":%u,\"failed\":%u,\"bytes\":"
        "%" PRIu64 ",\"wire_bytes\":%" PRIu64
        ",\"wall_s\":%.3f,\"user_s\":%.3f,\"sys_s\":%.3f,\"cpu_s_per_gb\":%.3f,\"mb_per_s\":%.1f,"
        "\"peak_rss_kb\":%ld,\"buf_peak_kb\":%zu,\"ups\":%u,\"depth\":%u,"
        "\"allocations_2nd_half\":%u,\"steady_mb_per_s\":%.2f,\"trouble\":\"%s\"}\n",
        b->nzb.count, b->results_seen[NNTP_FOUND], b->results_seen[NNTP_DAMAGED],
        b->results_seen[NNTP_MISSING], b->results_seen[NNTP_FAILED], b->bytes, b->wire_bytes, wall,
        user, sys, (user + sys) / ((double)b->wire_bytes / 1e9), (double)b->wire_bytes / 1e6 / wall,
        now.ru_maxrss, bufs.peak_bytes / 1024, b->ups, b->depth_most,
        atomic_load(&b->allocations) - b->allocations_at_half,
        (double)(b->three_quarters_bytes - b->quarter_bytes) * 1e3 /
            (double)(b->three_quarters_ns - b->quarter_ns),
        b->trouble);
}

enum opt {
    O_HOST = 1,
    O_PORT,
    O_TLS,
    O_CA,
    O_USER,
    O_PASS,
    O_CONNS,
    O_DEPTH,
    O_WORKERS,
    O_RATE,
    O_BUDGET,
    O_OUT
};

static const struct option options[] = {{"host", 1, NULL, O_HOST},
                                        {"port", 1, NULL, O_PORT},
                                        {"tls", 0, NULL, O_TLS},
                                        {"ca", 1, NULL, O_CA},
                                        {"user", 1, NULL, O_USER},
                                        {"pass", 1, NULL, O_PASS},
                                        {"connections", 1, NULL, O_CONNS},
                                        {"depth", 1, NULL, O_DEPTH},
                                        {"workers", 1, NULL, O_WORKERS},
                                        {"rate", 1, NULL, O_RATE},
                                        {"budget", 1, NULL, O_BUDGET},
                                        {"out", 1, NULL, O_OUT},
                                        {0}};

static const char *parse(struct bench *b, int argc, char **argv, size_t *budget)
{
    const char *out = NULL;
    struct nntp_server *s = &b->server;
    int o;
    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (o) {
        case O_HOST:
            snprintf(s->host, sizeof(s->host), "%s", optarg);
            break;
        case O_PORT:
            s->port = (uint16_t)atoi(optarg);
            break;
        case O_TLS:
            s->tls = true;
            break;
        case O_CA:
            snprintf(s->ca_file, sizeof(s->ca_file), "%s", optarg);
            break;
        case O_USER:
            snprintf(s->user, sizeof(s->user), "%s", optarg);
            break;
        case O_PASS:
            snprintf(s->pass, sizeof(s->pass), "%s", optarg);
            break;
        case O_CONNS:
            s->connections = (unsigned)atoi(optarg);
            break;
        case O_DEPTH:
            s->depth = (unsigned)atoi(optarg);
            break;
        case O_WORKERS:
            b->workers = (unsigned)atoi(optarg);
            break;
        case O_RATE:
            nntp_rate_set(&b->rate, strtoull(optarg, NULL, 10));
            break;
        case O_BUDGET:
            *budget = strtoull(optarg, NULL, 10);
            break;
        case O_OUT:
            out = optarg;
            break;
        default:
            return NULL;
        }
    }
    return optind == argc - 1 && b->workers >= 1 && b->workers <= WORKERS_MAX ? out : NULL;
}

int main(int argc, char **argv)
{
    static struct bench b;
    size_t budget = 48 << 20;
    nntp_server_init(&b.server);
    b.server.id = 1;
    b.workers = 1;
    nntp_rate_init(&b.rate);
    const char *out = parse(&b, argc, argv, &budget);
    if (out == NULL) {
        fprintf(stderr, "usage: see the top of bench/fetch.c\n");
        return 2;
    }
    scan_load(&b.nzb, argv[optind]);
    PRE(buf_pool_init(&b.bufs, budget) == 0);
    b.dirfd = -1;
    if (strcmp(out, "none") != 0) {
        mkdir(out, 0777);
        b.dirfd = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (b.dirfd < 0) {
            perror(out);
            return 1;
        }
    }
    mem_set_gate(count_allocation, &b);
    struct rusage before;
    getrusage(RUSAGE_SELF, &before);
    uint64_t began = uv_hrtime();
    start(&b);
    give_work(&b);
    uv_run(&b.loop, UV_RUN_DEFAULT);
    report(&b, began, &before);
    for (unsigned w = 0; w < b.workers; w++) {
        nntp_pool_free(b.pools[w]);
    }
    disk_free(b.disk);
    mbox_free(&b.results);
    mbox_free(&b.written);
    uv_loop_close(&b.loop);
    buf_pool_close(&b.bufs);
    mem_free(b.files);
    mem_free(b.items);
    scan_free(&b.nzb);
    return b.results_seen[NNTP_FOUND] == b.nzb.count ? 0 : 1;
}
