/* mailbox.c - the mailbox against a bounded queue with a mutex and two condition variables.
 *
 * P senders push N messages each to one receiver through 1024 slots; both queues run in turn (A B A B) in one
 * process, and each line gives the medians of wall and CPU time per message and their ratio. A sender that finds
 * the ring full yields and tries again; at the condition variable it sleeps.
 *     bench_mailbox [MESSAGES] [ROUNDS] */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <uv.h>

#include "base/err.h"
#include "base/mailbox.h"

enum { SLOTS = 1024, PRODUCERS_MAX = 8, ROUNDS_MAX = 101 };

struct plain_queue {
    uv_mutex_t lock;
    uv_cond_t not_empty;
    uv_cond_t not_full;
    void *slots[SLOTS];
    size_t head;
    size_t count;
};

static struct plain_queue plain;
static struct mbox box;
static uint64_t messages, expected, received;

static void plain_push(void *msg)
{
    uv_mutex_lock(&plain.lock);
    while (plain.count == SLOTS) {
        uv_cond_wait(&plain.not_full, &plain.lock);
    }
    plain.slots[(plain.head + plain.count++) % SLOTS] = msg;
    uv_cond_signal(&plain.not_empty);
    uv_mutex_unlock(&plain.lock);
}

static void *plain_pop(void)
{
    uv_mutex_lock(&plain.lock);
    while (plain.count == 0) {
        uv_cond_wait(&plain.not_empty, &plain.lock);
    }
    void *msg = plain.slots[plain.head];
    plain.head = (plain.head + 1) % SLOTS;
    plain.count--;
    uv_cond_signal(&plain.not_full);
    uv_mutex_unlock(&plain.lock);
    return msg;
}

static void send_plain(void *arg)
{
    for (uint64_t i = 0; i < messages; i++) {
        plain_push(arg);
    }
}

static void send_mailbox(void *arg)
{
    for (uint64_t i = 0; i < messages; i++) {
        while (mbox_post(&box, arg) == ERR_FULL) {
            sched_yield();
        }
    }
}

static void on_closed(struct mbox *m)
{
    (void)m;
}

static void on_recv(struct mbox *m, void *msg)
{
    (void)msg;
    if (++received == expected) {
        mbox_close(m, on_closed);
    }
}

static double seconds(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

struct sample {
    double wall_ns; /* per message */
    double cpu_ns;
};

static struct sample run(int producers, bool mailbox)
{
    static int token;
    uv_thread_t threads[PRODUCERS_MAX];
    uv_loop_t loop;
    expected = messages * (uint64_t)producers;
    received = 0;
    if (mailbox &&
        (uv_loop_init(&loop) != 0 || mbox_init(&box, &loop, SLOTS, on_recv, NULL) != 0)) {
        abort();
    }
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < producers; i++) {
        uv_thread_create(&threads[i], mailbox ? send_mailbox : send_plain, &token);
    }
    if (mailbox) {
        uv_run(&loop, UV_RUN_DEFAULT);
    } else {
        while (received < expected) {
            received += plain_pop() == &token;
        }
    }
    wall = seconds(CLOCK_MONOTONIC) - wall;
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    for (int i = 0; i < producers; i++) {
        uv_thread_join(&threads[i]);
    }
    if (mailbox) {
        uv_loop_close(&loop);
        mbox_free(&box);
    }
    return (struct sample){wall / (double)expected * 1e9, cpu / (double)expected * 1e9};
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), by_value);
    return v[n / 2];
}

int main(int argc, char **argv)
{
    messages = argc > 1 ? strtoull(argv[1], NULL, 10) : 200000;
    int rounds = argc > 2 ? atoi(argv[2]) : 9;
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    uv_mutex_init(&plain.lock);
    uv_cond_init(&plain.not_empty);
    uv_cond_init(&plain.not_full);
    for (int producers = 1; producers <= PRODUCERS_MAX; producers *= 2) {
        double wall[2][ROUNDS_MAX], cpu[2][ROUNDS_MAX];
        for (int r = -1; r < rounds; r++) { /* round -1 warms up */
            for (int which = 0; which < 2; which++) {
                struct sample s = run(producers, which == 0);
                if (r >= 0) {
                    wall[which][r] = s.wall_ns;
                    cpu[which][r] = s.cpu_ns;
                }
            }
        }
        double mw = median(wall[0], rounds), pw = median(wall[1], rounds);
        double mc = median(cpu[0], rounds), pc = median(cpu[1], rounds);
        printf("{\"bench\":\"mailbox\",\"producers\":%d,\"messages\":%" PRIu64 ",\"rounds\":%d,"
               "\"mailbox_wall_ns\":%.1f,\"mutex_wall_ns\":%.1f,\"wall_ratio\":%.2f,"
               "\"mailbox_cpu_ns\":%.1f,\"mutex_cpu_ns\":%.1f,\"cpu_ratio\":%.2f}\n",
               producers, messages, rounds, mw, pw, pw / mw, mc, pc, pc / mc);
        fflush(stdout);
    }
    return 0;
}
