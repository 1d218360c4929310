#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "base/sm.h"

void setUp(void) {}
void tearDown(void)
{
    sm_set_trace(NULL, NULL);
}

/* RED -> GREEN -> RED     any -> BROKEN */
enum { L_RED, L_GREEN, L_BROKEN, L_NR };
#define S(id, next_) [L_##id] = {.name = #id, .next = (next_)}
static const struct sm_state states[L_NR] = {
    S(RED, SM_BIT(L_GREEN) | SM_BIT(L_BROKEN)),
    S(GREEN, SM_BIT(L_RED) | SM_BIT(L_BROKEN)),
    S(BROKEN, 0),
};

static bool sane = true;
static bool invariant(const struct sm *m, int prev)
{
    (void)prev;
    return m->state != L_GREEN || sane;
}

static const struct sm_type light = {"light", states, L_NR, invariant};

/* True when f() ends in abort(). */
static bool aborts(void (*f)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO);
        f();
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* Edges of the table are taken; the terminal state has none. */
static void test_moves_follow_the_table(void)
{
    struct sm m;
    sm_init(&m, &light, L_RED, 7);
    TEST_ASSERT_TRUE(sm_allows(&m, L_GREEN));
    TEST_ASSERT_FALSE(sm_allows(&m, L_RED));
    sm_move(&m, L_GREEN);
    TEST_ASSERT_EQUAL_STRING("GREEN", sm_name(&m));
    TEST_ASSERT_FALSE(sm_terminal(&m));
    sm_move(&m, L_BROKEN);
    TEST_ASSERT_TRUE(sm_terminal(&m));
    for (int s = -1; s <= L_NR; s++) {
        TEST_ASSERT_FALSE(sm_allows(&m, s));
    }
}

/* A refusal names the machine and both states, so that it can be shown as it is. */
static void test_refusal_names_both_states(void)
{
    struct sm m;
    char text[100];
    sm_init(&m, &light, L_BROKEN, 7);
    sm_refusal(&m, L_RED, text, sizeof(text));
    TEST_ASSERT_EQUAL_STRING("light 7: BROKEN may not become RED", text);
    sm_refusal(&m, 99, text, sizeof(text));
    TEST_ASSERT_EQUAL_STRING("light 7: BROKEN may not become an unknown state", text);
}

static void illegal_move(void)
{
    struct sm m;
    sm_init(&m, &light, L_RED, 1);
    sm_move(&m, L_RED);
}

static void broken_invariant(void)
{
    struct sm m;
    sm_init(&m, &light, L_RED, 1);
    sane = false;
    sm_move(&m, L_GREEN);
}

static void legal_move(void)
{
    struct sm m;
    sm_init(&m, &light, L_RED, 1);
    sm_move(&m, L_GREEN);
}

/* An edge that is not in the table, or a state whose invariant does not hold, ends the program. */
static void test_bugs_abort(void)
{
    TEST_ASSERT_TRUE(aborts(illegal_move));
    TEST_ASSERT_TRUE(aborts(broken_invariant));
    TEST_ASSERT_FALSE(aborts(legal_move));
}

static void count_move(const struct sm *m, int prev, void *arg)
{
    TEST_ASSERT_EQUAL_INT(L_RED, prev);
    TEST_ASSERT_EQUAL_INT(L_GREEN, m->state);
    ++*(int *)arg;
}

/* Every move passes the trace point. */
static void test_trace_sees_every_move(void)
{
    struct sm m;
    int moves = 0;
    sm_set_trace(count_move, &moves);
    sm_init(&m, &light, L_RED, 1);
    sm_move(&m, L_GREEN);
    TEST_ASSERT_EQUAL_INT(1, moves);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_moves_follow_the_table);
    RUN_TEST(test_refusal_names_both_states);
    RUN_TEST(test_bugs_abort);
    RUN_TEST(test_trace_sees_every_move);
    return UNITY_END();
}
