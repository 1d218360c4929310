#include <sched.h>
#include <string.h>
#include <unity.h>

#include "base/actor.h"
#include "base/mem.h"

void setUp(void) {}
void tearDown(void) {}

struct counter {
    struct actor actor;
    struct actor *next; /* whom each message is passed on to, or NULL */
    uv_timer_t timer;
    uint64_t received;
    bool started;
    bool stopped;
};

static int counter_start(struct actor *a, struct err *err)
{
    struct counter *c = a->self;
    (void)err;
    uv_timer_init(&a->loop, &c->timer);
    c->started = true;
    return 0;
}

static void counter_recv(struct actor *a, void *msg)
{
    struct counter *c = a->self;
    c->received++;
    if (c->next != NULL) {
        int rv;
        while ((rv = actor_post(c->next, msg)) == ERR_FULL) {
            sched_yield();
        }
        TEST_ASSERT_EQUAL_INT(0, rv); /* the receiver is stopped after us */
        return;
    }
    mem_free(msg);
}

static void counter_stop(struct actor *a)
{
    struct counter *c = a->self;
    c->stopped = true;
    uv_close((uv_handle_t *)&c->timer, NULL);
}

static const struct actor_type counter_type = {.name = "counter",
                                               .inbox = 16,
                                               .start = counter_start,
                                               .recv = counter_recv,
                                               .stop = counter_stop};

static void feed(void *arg)
{
    struct counter *c = arg;
    for (;;) {
        void *msg = mem_alloc(8);
        int rv;
        while ((rv = actor_post(&c->actor, msg)) == ERR_FULL) {
            sched_yield();
        }
        if (rv == ERR_STOPPED) {
            mem_free(msg); /* refused: still ours */
            return;
        }
    }
}

/* Two actors in a row are stopped in order while a sender goes on: what the first one accepted reaches the
 * second, the refused message stays the sender's, and nothing leaks. */
static void test_stop_in_order_loses_nothing(void)
{
    for (int round = 0; round < 50; round++) {
        struct counter first = {0}, second = {0};
        struct err err = {0};
        TEST_ASSERT_EQUAL_INT(0, actor_start(&second.actor, &counter_type, &second, &err));
        first.next = &second.actor;
        TEST_ASSERT_EQUAL_INT(0, actor_start(&first.actor, &counter_type, &first, &err));
        TEST_ASSERT_TRUE(first.started);
        uv_thread_t thread;
        uv_thread_create(&thread, feed, &first);
        uv_sleep((unsigned)round % 4);
        actor_stop(&first.actor);
        actor_stop(&first.actor); /* twice is once */
        actor_join(&first.actor);
        actor_stop(&second.actor);
        actor_join(&second.actor);
        uv_thread_join(&thread);
        TEST_ASSERT_TRUE(first.stopped && second.stopped);
        TEST_ASSERT_EQUAL_UINT64(first.received, second.received);
        TEST_ASSERT_EQUAL_INT(ERR_STOPPED, actor_post(&first.actor, NULL));
        actor_free(&first.actor);
        actor_free(&second.actor);
    }
}

static int failing_start(struct actor *a, struct err *err)
{
    (void)a;
    return err_set(err, ERR_INVALID, "no such thing");
}

/* An actor that cannot start says why, under its name, and leaves no thread or handle behind. */
static void test_failed_start_is_clean(void)
{
    static const struct actor_type type = {
        .name = "broken", .inbox = 4, .start = failing_start, .recv = counter_recv};
    struct counter c = {0};
    struct err err = {0};
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, actor_start(&c.actor, &type, &c, &err));
    TEST_ASSERT_EQUAL_STRING("broken: no such thing", err.msg);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_stop_in_order_loses_nothing);
    RUN_TEST(test_failed_start_is_clean);
    return UNITY_END();
}
