/* Random sequences of operations against a model in plain arrays: the same answers, the same rows, and events that
 * lead to the state of every row. MODEL_ROUNDS and TEST_SEED make it longer or another one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "fixture.h"
#include "lib/rng.h"

enum { JOBS = 24, TASKS = 400, STEPS = 400 };

struct model_job {
    bool there;
    enum store_state state;
    uint64_t version;
    uint32_t attempt;
    bool progressed;
    uint32_t done;
    char key; /* 0: none */
};
struct model_task {
    bool there;
    uint32_t job;
    int64_t previous;
    enum store_task_state state;
    uint32_t attempt;
    int64_t next_run_at;
    bool head;
    unsigned source;
    int64_t created_at, waiting_since;
};

static struct world w;
static struct rng rng;
static struct model_job jobs[JOBS + 1];
static struct model_task tasks[TASKS + 1];
static int64_t task_count;

void setUp(void)
{
    world_make(&w);
    memset(jobs, 0, sizeof(jobs));
    memset(tasks, 0, sizeof(tasks));
    task_count = 0;
}

void tearDown(void)
{
    world_remove(&w);
}

static uint32_t any(uint32_t n)
{
    return (uint32_t)rng_below(&rng, n);
}

static bool active(enum store_state s)
{
    return s <= STORE_PROCESSING;
}

static bool ended(enum store_state s)
{
    return test_job_type->states[s].next == 0;
}

/* ---- what should happen ---- */

static enum store_import_status model_status(uint32_t job, int64_t *begun)
{
    int64_t n[STORE_TASK_STATES] = {0}, all = 0;
    *begun = 0;
    for (int64_t t = 1; t <= task_count; t++) {
        if (tasks[t].job == job) {
            *begun += tasks[t].attempt > 0;
            n[tasks[t].state] += tasks[t].head;
            all += tasks[t].head;
        }
    }
    enum store_state s = jobs[job].state;
    if (s != STORE_COMPLETED && s != STORE_IMPORTED && s != STORE_CLEANED) {
        return STORE_DOWNLOAD_PENDING;
    }
    if (all == 0) {
        return s == STORE_COMPLETED ? STORE_AWAITING_IMPORT : STORE_FULLY_IMPORTED;
    }
    if (n[STORE_TASK_PENDING] + n[STORE_TASK_IN_PROGRESS] > 0) {
        return STORE_IMPORTING;
    }
    return n[STORE_TASK_COMPLETED] == all ? STORE_FULLY_IMPORTED
           : n[STORE_TASK_COMPLETED] > 0  ? STORE_PARTIAL_FAILURE
                                          : STORE_IMPORT_FAILED;
}

static int model_move(uint32_t id, enum store_state to, uint64_t version)
{
    struct model_job *j = &jobs[id];
    int64_t begun;
    if (!j->there) {
        return ERR_NOT_FOUND;
    }
    if (version != 0 && version != j->version) {
        return ERR_CONFLICT;
    }
    if ((test_job_type->states[j->state].next & SM_BIT(to)) == 0) {
        return ERR_INVALID;
    }
    bool recover = j->state == STORE_DOWNLOADING && to == STORE_QUEUED;
    if (recover && j->attempt >= STORE_JOB_ATTEMPTS) {
        return ERR_LIMIT;
    }
    enum store_import_status status = model_status(id, &begun);
    if (j->state == STORE_COMPLETED || j->state == STORE_IMPORTED) {
        if (to == STORE_CANCELLED ? begun > 0 : status != STORE_FULLY_IMPORTED) {
            return ERR_INVALID;
        }
    }
    j->attempt += recover;
    j->state = to;
    j->version++;
    j->progressed = false;
    for (int64_t t = 1; to == STORE_CANCELLED && t <= task_count; t++) {
        if (tasks[t].job == id && tasks[t].state == STORE_TASK_PENDING) {
            tasks[t].state = STORE_TASK_CANCELLED;
        }
    }
    return 0;
}

/* ---- steps: do it to both ---- */

static void step_add(void)
{
    uint32_t id = 1 + any(JOBS);
    char key = (char)('a' + any(4));
    bool keyed = any(2), forced = any(4) == 0;
    uint8_t bytes[STORE_KEY_BYTES];
    memset(bytes, key, sizeof(bytes));
    struct store_job_new n = {.id = id, .key = keyed ? bytes : NULL, .forced = forced};
    uint32_t existing = 0;
    for (uint32_t i = JOBS; keyed && !forced && i >= 1; i--) {
        if (jobs[i].there && jobs[i].key == key && active(jobs[i].state)) {
            existing = i;
        }
    }
    struct store_job_made made = {0};
    int rv = store_job_add(w.s, &n, w.now, &made, &w.e);
    if (existing != 0) {
        TEST_ASSERT_EQUAL_INT(0, rv);
        TEST_ASSERT_EQUAL_UINT32(existing, made.id);
        TEST_ASSERT_TRUE(made.existed);
    } else if (jobs[id].there) {
        TEST_ASSERT_EQUAL_INT(ERR_EXISTS, rv);
    } else {
        TEST_ASSERT_EQUAL_INT(0, rv);
        jobs[id] =
            (struct model_job){.there = true, .version = 1, .attempt = 1, .key = keyed ? key : 0};
    }
}

static void step_move(void)
{
    uint32_t id = 1 + any(JOBS);
    enum store_state to = (enum store_state)any(STORE_STATES);
    /* mostly forwards, or nothing would ever get far */
    if (jobs[id].there && any(3) != 0 && jobs[id].state < STORE_CLEANED) {
        to = (enum store_state)(jobs[id].state + 1);
    }
    struct store_move m = {.job = id, .to = to, .expect_version = any(4) == 0 ? 1 + any(6) : 0};
    int expected = model_move(id, to, m.expect_version);
    int rv = store_job_move(w.s, &m, w.now, NULL, &w.e);
    TEST_ASSERT_EQUAL_INT_MESSAGE(expected, rv, w.e.msg);
}

static void step_progress(void)
{
    uint32_t id = 1 + any(JOBS);
    struct store_facts f = {.articles_done = jobs[id].done + any(2)};
    int rv = store_job_progress(w.s, id, &f, w.now, &w.e);
    int expected = !jobs[id].there ? ERR_NOT_FOUND : ended(jobs[id].state) ? ERR_INVALID : 0;
    TEST_ASSERT_EQUAL_INT(expected, rv);
    if (rv == 0) {
        jobs[id].progressed = jobs[id].progressed || f.articles_done > jobs[id].done;
        jobs[id].done = f.articles_done;
    }
}

static void step_spawn(void)
{
    uint32_t id = 1 + any(JOBS);
    for (uint32_t i = 1; i <= JOBS; i++) { /* rather one that can */
        id = jobs[i].state == STORE_COMPLETED && any(2) == 0 ? i : id;
    }
    unsigned source = any(4);
    char text[16];
    snprintf(text, sizeof(text), "/s%u", source);
    struct store_task_new n = {.source = text, .method = STORE_COPY};
    if (task_count == TASKS) {
        return;
    }
    unsigned made;
    int rv = store_import_spawn(w.s, id, &n, 1, w.now, &made, &w.e);
    int expected = !jobs[id].there                     ? ERR_NOT_FOUND
                   : jobs[id].state != STORE_COMPLETED ? ERR_INVALID
                                                       : 0;
    TEST_ASSERT_EQUAL_INT(expected, rv);
    bool known = false;
    for (int64_t t = 1; t <= task_count; t++) {
        known =
            known || (tasks[t].job == id && tasks[t].source == source && tasks[t].previous == 0);
    }
    TEST_ASSERT_EQUAL_UINT(rv == 0 && !known, made);
    if (made > 0) {
        tasks[++task_count] = (struct model_task){.there = true,
                                                  .job = id,
                                                  .head = true,
                                                  .source = source,
                                                  .created_at = w.now.wall_ms,
                                                  .waiting_since = w.now.wall_ms};
    }
}

static void step_claim(void)
{
    unsigned limit = 1 + any(3);
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(0, store_import_claim(w.s, limit, w.now, &page, &w.e));
    const struct store_task *row = page.rows;
    unsigned n = 0;
    for (; n < limit; n++) {
        int64_t best = 0;
        for (int64_t t = 1; t <= task_count; t++) {
            struct model_task *m = &tasks[t];
            bool due = m->state == STORE_TASK_PENDING ||
                       (m->state == STORE_TASK_IN_PROGRESS && m->next_run_at > 0 &&
                        m->next_run_at <= w.now.wall_ms);
            if (due && (best == 0 || m->waiting_since < tasks[best].waiting_since)) {
                best = t;
            }
        }
        if (best == 0) {
            break;
        }
        TEST_ASSERT_GREATER_THAN_UINT(n, page.count);
        TEST_ASSERT_EQUAL_INT64(best, row[n].id);
        tasks[best].state = STORE_TASK_IN_PROGRESS;
        tasks[best].attempt++;
        tasks[best].next_run_at = 0;
        TEST_ASSERT_EQUAL_UINT32(tasks[best].attempt, row[n].attempt);
    }
    TEST_ASSERT_EQUAL_UINT(n, page.count);
    store_page_free(&page);
}

static void step_end(void)
{
    int64_t t = 1 + any((uint32_t)task_count + 1);
    for (int64_t i = 1; i <= task_count; i++) {
        t = tasks[i].state == STORE_TASK_IN_PROGRESS && tasks[i].next_run_at == 0 && any(2) ? i : t;
    }
    struct model_task *m = &tasks[t];
    bool there = t <= task_count;
    struct store_task_end end = {.task = t,
                                 .attempt = there ? m->attempt + (any(8) == 0) : 0,
                                 .ok = any(2),
                                 .category = (enum store_category)any(3)};
    struct store_task_ended out;
    int rv = store_import_end(w.s, &end, w.now, &out, &w.e);
    if (!there) {
        TEST_ASSERT_EQUAL_INT(ERR_NOT_FOUND, rv);
    } else if (m->state != STORE_TASK_IN_PROGRESS) {
        TEST_ASSERT_EQUAL_INT(ERR_INVALID, rv);
    } else if (end.attempt != m->attempt || m->next_run_at != 0) {
        TEST_ASSERT_EQUAL_INT(ERR_CONFLICT, rv);
    } else {
        TEST_ASSERT_EQUAL_INT(0, rv);
        if (end.ok) {
            m->state = STORE_TASK_COMPLETED;
        } else if (end.category == STORE_PERMANENT || m->attempt >= STORE_IMPORT_ATTEMPTS) {
            m->state = STORE_TASK_FAILED;
        } else {
            m->next_run_at = w.now.wall_ms + store_import_backoff_ms(t, m->attempt);
            m->waiting_since = m->next_run_at;
        }
        TEST_ASSERT_EQUAL_INT(m->state, out.state);
    }
}

static void step_cancel_or_again(void)
{
    int64_t t = 1 + any((uint32_t)task_count + 1);
    struct model_task *m = &tasks[t];
    bool there = t <= task_count;
    if (any(3) == 0) {
        int expected = !there ? ERR_NOT_FOUND : m->state != STORE_TASK_PENDING ? ERR_INVALID : 0;
        TEST_ASSERT_EQUAL_INT(expected, store_import_cancel(w.s, t, w.now, &w.e));
        if (expected == 0) {
            m->state = STORE_TASK_CANCELLED;
        }
        return;
    }
    if (task_count == TASKS) {
        return;
    }
    int expected = ERR_NOT_FOUND;
    if (there) {
        enum store_state job = jobs[m->job].state;
        bool can = (m->state == STORE_TASK_COMPLETED || m->state == STORE_TASK_FAILED) && m->head &&
                   (job == STORE_COMPLETED || job == STORE_IMPORTED);
        expected = can ? 0 : ERR_INVALID;
    }
    int64_t made;
    TEST_ASSERT_EQUAL_INT(expected, store_import_again(w.s, t, w.now, &made, &w.e));
    if (expected == 0) {
        TEST_ASSERT_EQUAL_INT64(task_count + 1, made);
        m->head = false;
        tasks[++task_count] = (struct model_task){.there = true,
                                                  .job = m->job,
                                                  .previous = t,
                                                  .head = true,
                                                  .source = m->source,
                                                  .created_at = w.now.wall_ms,
                                                  .waiting_since = w.now.wall_ms};
    }
}

static void step_crash(void)
{
    if (any(2) == 0) {
        world_reopen(&w);
        return;
    }
    world_crash(&w);
    for (uint32_t i = 1; i <= JOBS; i++) {
        struct model_job *j = &jobs[i];
        if (j->there && j->state == STORE_DOWNLOADING) {
            bool give_up = !j->progressed && j->attempt >= STORE_JOB_ATTEMPTS;
            j->state = give_up ? STORE_FAILED : STORE_QUEUED;
            j->attempt = give_up ? j->attempt : j->progressed ? 1 : j->attempt + 1;
            j->version++;
            j->progressed = false;
        }
    }
    for (int64_t t = 1; t <= task_count; t++) {
        struct model_task *m = &tasks[t];
        if (m->state == STORE_TASK_IN_PROGRESS && m->next_run_at == 0) {
            m->state = m->attempt >= STORE_IMPORT_ATTEMPTS ? STORE_TASK_FAILED : STORE_TASK_PENDING;
            m->waiting_since = m->created_at;
        }
    }
}

/* ---- the same in the end? ---- */

static void compare(void)
{
    int64_t counts[STORE_STATES], expected[STORE_STATES] = {0};
    for (uint32_t i = 1; i <= JOBS; i++) {
        if (!jobs[i].there) {
            continue;
        }
        struct store_job j;
        int64_t begun;
        get_job(&w, i, &j);
        TEST_ASSERT_EQUAL_INT(jobs[i].state, j.state);
        TEST_ASSERT_EQUAL_UINT64(jobs[i].version, j.row_version);
        TEST_ASSERT_EQUAL_UINT32(jobs[i].attempt, j.attempt);
        TEST_ASSERT_EQUAL_INT(model_status(i, &begun), import_status(&w, i));
        expected[j.state]++;
    }
    TEST_ASSERT_EQUAL_INT(0, store_job_counts(w.s, counts, &w.e));
    TEST_ASSERT_EQUAL_INT64_ARRAY(expected, counts, STORE_STATES);
    for (int64_t t = 1; t <= task_count; t++) {
        struct store_task row = get_task(&w, t);
        TEST_ASSERT_EQUAL_INT(tasks[t].state, row.state);
        TEST_ASSERT_EQUAL_UINT32(tasks[t].attempt, row.attempt);
        TEST_ASSERT_EQUAL_INT64(tasks[t].previous, row.previous_id);
        TEST_ASSERT_EQUAL_INT(tasks[t].head, row.head);
        TEST_ASSERT_EQUAL_INT64(tasks[t].next_run_at, row.next_run_at);
    }
}

/* Following the events from the first on: every `from` is where the last `to` led, and the end is the row. */
static void follow_events(void)
{
    char job_state[JOBS + 1][16] = {{0}}, task_state[TASKS + 1][16] = {{0}};
    struct store_event_filter f = {0};
    struct store_range range = {.limit = 1000};
    bool more = true;
    int64_t seq = 0;
    while (more) {
        struct store_page page;
        TEST_ASSERT_EQUAL_INT(0, store_event_list(w.s, &f, &range, &page, &w.e));
        for (unsigned i = 0; i < page.count; i++) {
            const struct store_event *ev = (struct store_event *)page.rows + i;
            TEST_ASSERT_GREATER_THAN_INT64(seq, ev->seq);
            seq = ev->seq;
            if (ev->to[0] != '\0') {
                char *at = ev->task != 0 ? task_state[ev->task] : job_state[ev->job];
                TEST_ASSERT_EQUAL_STRING(at, ev->from);
                snprintf(at, 16, "%s", ev->to);
            }
        }
        more = page.more;
        range.after = page.next;
        store_page_free(&page);
    }
    for (uint32_t i = 1; i <= JOBS; i++) {
        TEST_ASSERT_EQUAL_STRING(jobs[i].there ? store_state_name(jobs[i].state) : "",
                                 job_state[i]);
    }
    for (int64_t t = 1; t <= task_count; t++) {
        TEST_ASSERT_EQUAL_STRING(store_task_state_name(tasks[t].state), task_state[t]);
    }
}

static void test_random_operations(void)
{
    static void (*const steps[])(void) = {
        step_add,   step_add,   step_move, step_move,     step_move,
        step_move,  step_move,  step_move, step_progress, step_spawn,
        step_spawn, step_claim, step_end,  step_end,      step_cancel_or_again};
    for (int i = 0; i < STEPS; i++) {
        if (any(60) == 0) {
            step_crash();
            compare();
        } else {
            steps[any(sizeof(steps) / sizeof(steps[0]))]();
        }
        world_wait(&w, any(5000));
    }
    compare();
    follow_events();
    TEST_ASSERT_EQUAL_INT(0, store_check(w.s, &w.e));
}

int main(void)
{
    const char *rounds = getenv("MODEL_ROUNDS");
    uint64_t seed = rng_seed(20261118);
    UNITY_BEGIN();
    for (int i = 0; i < (rounds != NULL ? atoi(rounds) : 8); i++) {
        rng_init(&rng, seed + (uint64_t)i);
        RUN_TEST(test_random_operations);
    }
    return UNITY_END();
}
