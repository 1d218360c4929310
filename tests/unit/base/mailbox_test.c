#include <sched.h>
#include <stdlib.h>
#include <unity.h>
#include <uv.h>

#include "base/err.h"
#include "base/mailbox.h"
#include "base/mem.h"
#include "lib/fault.h"

enum { PRODUCERS = 4 };

struct world {
    uv_loop_t loop;
    struct mbox box;
    uint64_t messages;        /* per producer */
    uint64_t next[PRODUCERS]; /* the number that each producer must send next */
    uint64_t received;
    uint64_t accepted[PRODUCERS]; /* written by the producer, read after its join */
    bool slow;
    bool closed;
};

void setUp(void) {}
void tearDown(void) {}

/* Under a sanitizer the same test runs with fewer rounds; WEIR_TEST_SCALE multiplies them for a campaign. */
static uint64_t scaled(uint64_t full)
{
    const char *text = getenv("WEIR_TEST_SCALE");
    uint64_t scale = text != NULL ? strtoull(text, NULL, 10) : 1;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    full /= 10;
#endif
    return full * scale;
}

/* A message is no memory but a number: producer in the upper half, sequence in the lower. */
static void *message(uint64_t producer, uint64_t n)
{
    return (void *)(uintptr_t)(producer << 48 | n);
}

static void on_closed(struct mbox *m)
{
    struct world *w = m->arg;
    w->closed = true;
}

static void on_recv(struct mbox *m, void *msg)
{
    struct world *w = m->arg;
    uint64_t v = (uint64_t)(uintptr_t)msg, producer = v >> 48, n = v & 0xffffffffffff;
    TEST_ASSERT_TRUE(producer < PRODUCERS);
    TEST_ASSERT_EQUAL_UINT64(w->next[producer], n);
    w->next[producer]++;
    w->received++;
    if (w->slow && w->received % 64 == 0) {
        sched_yield();
    }
    if (w->messages != 0 && w->received == PRODUCERS * w->messages) {
        mbox_close(m, on_closed);
    }
}

struct producer {
    struct world *w;
    uint64_t number;
    uv_thread_t thread;
};

static void produce(void *arg)
{
    struct producer *p = arg;
    struct world *w = p->w;
    for (uint64_t n = 0; w->messages == 0 || n < w->messages; n++) {
        int rv;
        while ((rv = mbox_post(&w->box, message(p->number, n))) == ERR_FULL) {
            sched_yield();
        }
        if (rv == ERR_STOPPED) {
            break;
        }
        TEST_ASSERT_EQUAL_INT(0, rv);
        w->accepted[p->number]++;
    }
}

static void on_stop_timer(uv_timer_t *t)
{
    struct world *w = t->data;
    uv_close((uv_handle_t *)t, NULL);
    mbox_close(&w->box, on_closed);
}

/* Runs PRODUCERS senders until each has sent `messages`, or (messages == 0) until a timer stops the box. */
static void run(struct world *w, size_t capacity, uint64_t messages, uint64_t stop_after_ms)
{
    uv_timer_t timer;
    uv_loop_init(&w->loop);
    w->messages = messages;
    if (messages == 0) {
        uv_timer_init(&w->loop, &timer);
        timer.data = w;
        uv_timer_start(&timer, on_stop_timer, stop_after_ms, 0);
    }
    TEST_ASSERT_EQUAL_INT(0, mbox_init(&w->box, &w->loop, capacity, on_recv, w));
    struct producer producers[PRODUCERS];
    for (uint64_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){.w = w, .number = i};
        uv_thread_create(&producers[i].thread, produce, &producers[i]);
    }
    uv_run(&w->loop, UV_RUN_DEFAULT);
    for (int i = 0; i < PRODUCERS; i++) {
        uv_thread_join(&producers[i].thread);
    }
    TEST_ASSERT_TRUE(w->closed);
    TEST_ASSERT_EQUAL_INT(0, uv_loop_close(&w->loop));
    uint64_t accepted = 0;
    for (int i = 0; i < PRODUCERS; i++) {
        accepted += w->accepted[i];
    }
    TEST_ASSERT_EQUAL_UINT64(accepted, w->received);
}

/* Four senders, a million messages each: all arrive, each sender's in its order. */
static void test_four_producers_keep_order_and_lose_nothing(void)
{
    static struct world w;
    run(&w, 4096, scaled(1000000), 0);
    mbox_free(&w.box);
    TEST_ASSERT_EQUAL_UINT64(PRODUCERS * scaled(1000000), w.received);
}

/* A ring of two slots with a slow receiver only pushes back: no drop, no deadlock. */
static void test_tiny_ring_is_backpressure(void)
{
    static struct world w;
    w.slow = true;
    run(&w, 2, scaled(20000), 0);
    mbox_free(&w.box);
}

/* A stop while senders still post: everything accepted before it is delivered, everything after is refused. */
static void test_stop_under_fire_loses_nothing(void)
{
    for (uint64_t round = 0; round < scaled(100); round++) {
        struct world w = {0};
        run(&w, 64, 0, round % 3);
        TEST_ASSERT_EQUAL_INT(ERR_STOPPED, mbox_post(&w.box, message(0, 0)));
        mbox_free(&w.box);
    }
}

/* A ring that is full refuses and takes nothing; there is room again after delivery. */
static void test_full_ring_refuses(void)
{
    struct world w = {0};
    uv_loop_init(&w.loop);
    TEST_ASSERT_EQUAL_INT(0, mbox_init(&w.box, &w.loop, 3, on_recv, &w)); /* rounded up to 4 */
    for (uint64_t i = 0; i < 4; i++) {
        TEST_ASSERT_EQUAL_INT(0, mbox_post(&w.box, message(1, i)));
    }
    TEST_ASSERT_EQUAL_INT(ERR_FULL, mbox_post(&w.box, message(1, 4)));
    uv_run(&w.loop, UV_RUN_NOWAIT);
    TEST_ASSERT_EQUAL_UINT64(4, w.received);
    TEST_ASSERT_EQUAL_INT(0, mbox_post(&w.box, message(1, 4)));
    mbox_close(&w.box, on_closed);
    TEST_ASSERT_EQUAL_INT(ERR_STOPPED, mbox_post(&w.box, message(1, 5)));
    uv_run(&w.loop, UV_RUN_DEFAULT);
    TEST_ASSERT_EQUAL_UINT64(5, w.received);
    TEST_ASSERT_TRUE(w.closed);
    TEST_ASSERT_EQUAL_INT(0, uv_loop_close(&w.loop));
    mbox_free(&w.box);
}

/* Without memory, init says so and leaves the loop as it was. */
static void test_init_without_memory(void)
{
    struct world w = {0};
    uv_loop_init(&w.loop);
    fault_arm(1);
    TEST_ASSERT_EQUAL_INT(UV_ENOMEM, mbox_init(&w.box, &w.loop, 8, on_recv, &w));
    fault_disarm();
    TEST_ASSERT_EQUAL_INT(0, uv_loop_close(&w.loop));
}

/* The litmus: the loop sleeps before each message and there is no second one to wake it, so a single lost
 * wake-up hangs the run (the ctest timeout then fails it). Two loops throw one token to and fro. */
struct pong {
    uv_loop_t loop;
    struct mbox box;
    struct pong *other;
    uint64_t left;
    uint64_t got;
};

static void on_pong_closed(struct mbox *m)
{
    (void)m;
}

static void on_pong(struct mbox *m, void *msg)
{
    struct pong *p = m->arg;
    p->got++;
    p->left--;
    TEST_ASSERT_EQUAL_INT(0, mbox_post(&p->other->box, msg));
    if (p->left == 0) {
        mbox_close(&p->box, on_pong_closed);
    }
}

/* The last throw of the second player lands in a closed box, so it counts one more turn than the first. */
static void on_ping(struct mbox *m, void *msg)
{
    struct pong *p = m->arg;
    p->got++;
    p->left--;
    if (p->left == 0) {
        mbox_close(&p->box, on_pong_closed);
        return;
    }
    TEST_ASSERT_EQUAL_INT(0, mbox_post(&p->other->box, msg));
}

static void run_loop(void *arg)
{
    uv_run(arg, UV_RUN_DEFAULT);
}

static void test_no_wake_up_is_lost(void)
{
    static struct pong a, b;
    uint64_t rounds = scaled(30000);
    uv_loop_init(&a.loop);
    uv_loop_init(&b.loop);
    a.other = &b;
    b.other = &a;
    a.left = rounds + 1;
    b.left = rounds;
    TEST_ASSERT_EQUAL_INT(0, mbox_init(&a.box, &a.loop, 2, on_ping, &a));
    TEST_ASSERT_EQUAL_INT(0, mbox_init(&b.box, &b.loop, 2, on_pong, &b));
    TEST_ASSERT_EQUAL_INT(0, mbox_post(&a.box, &a));
    uv_thread_t thread;
    uv_thread_create(&thread, run_loop, &b.loop);
    uv_run(&a.loop, UV_RUN_DEFAULT);
    uv_thread_join(&thread);
    TEST_ASSERT_EQUAL_UINT64(rounds + 1, a.got);
    TEST_ASSERT_EQUAL_UINT64(rounds, b.got);
    TEST_ASSERT_EQUAL_INT(0, uv_loop_close(&a.loop));
    TEST_ASSERT_EQUAL_INT(0, uv_loop_close(&b.loop));
    mbox_free(&a.box);
    mbox_free(&b.box);
    printf("%llu wake-ups\n", (unsigned long long)(a.got + b.got));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_full_ring_refuses);
    RUN_TEST(test_init_without_memory);
    RUN_TEST(test_four_producers_keep_order_and_lose_nothing);
    RUN_TEST(test_tiny_ring_is_backpressure);
    RUN_TEST(test_stop_under_fire_loses_nothing);
    RUN_TEST(test_no_wake_up_is_lost);
    return UNITY_END();
}
