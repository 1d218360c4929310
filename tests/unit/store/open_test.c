/* Opening weir.db: first start, orderly and disorderly ends, every way in which the file can be bad. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unity.h>

#include "fixture.h"
#include "lib/rng.h"
#include "store/internal.h"

static struct world w;

void setUp(void)
{
    world_make(&w);
}

void tearDown(void)
{
    world_remove(&w);
}

static void path_of(const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", w.dir.path, name);
}

static bool exists(const char *name)
{
    return faccessat(w.dir.fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static off_t size_of(const char *name)
{
    struct stat st;
    return fstatat(w.dir.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_size : -1;
}

static void write_file(const char *name, const void *bytes, size_t n, off_t at, int flags)
{
    int fd = openat(w.dir.fd, name, O_WRONLY | O_CREAT | flags, 0600);
    TEST_ASSERT_GREATER_OR_EQUAL_INT(0, fd);
    TEST_ASSERT_EQUAL_INT64((int64_t)n, pwrite(fd, bytes, n, at));
    close(fd);
}

static void backup(void)
{
    bool done = false;
    while (!done) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, store_backup_step(w.s, 2, w.now, &done, &w.e), w.e.msg);
    }
}

/* A first start makes a database that only its owner can read, and says so. */
static void test_first_start(void)
{
    struct stat st;
    TEST_ASSERT_EQUAL_INT(STORE_NEW, w.report.how);
    TEST_ASSERT_FALSE(w.report.unclean);
    TEST_ASSERT_EQUAL_INT(0, fstatat(w.dir.fd, "weir.db", &st, 0));
    TEST_ASSERT_EQUAL_INT(0600, st.st_mode & 0777);
    TEST_ASSERT_EQUAL_INT(0, store_check(w.s, &w.e));
    TEST_ASSERT_FALSE(exists("weir.db.0.tmp"));
    world_close(&w);
    TEST_ASSERT_EQUAL_INT(1, dir_count(w.dir.path)); /* the log is folded in */
    TEST_ASSERT_EQUAL_INT(0, world_try_open(&w));
    TEST_ASSERT_EQUAL_INT(STORE_AS_LEFT, w.report.how);
}

/* A lifecycle without one of the states that the store knows is a mistake of the program, and refused. */
static void test_lifecycle_must_have_all_states(void)
{
    static const struct sm_state few[] = {{"created", 0}};
    static const struct sm_type type = {"job", few, 1, NULL};
    struct store_options o = {w.dir.path, &fsx_kernel, &type, w.now};
    struct store *s;
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, store_open(&s, &o, NULL, &w.e));
    TEST_ASSERT_EQUAL_STRING("the lifecycle 'job' has no state 'queued'", w.e.msg);
}

/* The numbers of a caller's table are its own: only the names count. */
static void test_lifecycle_in_another_order(void)
{
    enum {
        CANCELLED,
        CLEANED,
        FAILED,
        IMPORTED,
        COMPLETED,
        PROCESSING,
        DOWNLOADING,
        QUEUED,
        CREATED
    };
    static const struct sm_state states[] = {
        [CANCELLED] = {"cancelled", 0},
        [CLEANED] = {"cleaned", 0},
        [FAILED] = {"failed", 0},
        [IMPORTED] = {"imported", SM_BIT(CLEANED)},
        [COMPLETED] = {"completed", SM_BIT(IMPORTED)},
        [PROCESSING] = {"processing", SM_BIT(COMPLETED)},
        [DOWNLOADING] = {"downloading", SM_BIT(PROCESSING)},
        [QUEUED] = {"queued", SM_BIT(DOWNLOADING)},
        [CREATED] = {"created", SM_BIT(QUEUED)},
    };
    static const struct sm_type type = {"job", states, 9, NULL};
    world_close(&w);
    struct store_options o = {w.dir.path, &fsx_kernel, &type, w.now};
    TEST_ASSERT_EQUAL_INT(0, store_open(&w.s, &o, NULL, &w.e));
    add_job(&w, 1);
    TEST_ASSERT_EQUAL_INT(ERR_INVALID, try_move(&w, 1, STORE_CANCELLED)); /* not in this table */
    move(&w, 1, STORE_QUEUED);
}

/* A file of a newer Weir is refused with both numbers, and is not touched. */
static void test_newer_version_is_refused(void)
{
    world_close(&w);
    TEST_ASSERT_EQUAL_INT(0, world_sql(&w, "PRAGMA user_version = 99"));
    off_t size = size_of("weir.db");
    TEST_ASSERT_EQUAL_INT(ERR_VERSION, world_try_open(&w));
    TEST_ASSERT_NOT_NULL(strstr(w.e.msg, "newer Weir (format 99, known is 1)"));
    TEST_ASSERT_EQUAL_INT64(size, size_of("weir.db"));
    TEST_ASSERT_EQUAL_INT(0, world_sql(&w, "PRAGMA user_version = 1"));
    TEST_ASSERT_EQUAL_INT(0, world_try_open(&w));
}

/* Steps of the schema run in order, each whole or not at all. */
static void test_migration_steps(void)
{
    static const struct schema_step steps[] = {
        {"CREATE TABLE a (x)"},
        {"INSERT INTO a VALUES (1); CREATE TABLE b (y)"},
        {"INSERT INTO a VALUES (2); INSERT INTO nowhere VALUES (1)"},
    };
    struct db db;
    char path[DIR_PATH_MAX + 16];
    int64_t n;
    write_file("m.db", "", 0, 0, 0);
    path_of("m.db", path, sizeof(path));
    TEST_ASSERT_EQUAL_INT(0, db_open(&db, path, DB_READ_WRITE, &w.e));
    TEST_ASSERT_EQUAL_INT(0, schema_upgrade(&db, steps, 0, 1, &w.e));
    TEST_ASSERT_TRUE(schema_upgrade(&db, steps, 1, 3, &w.e) != 0);
    TEST_ASSERT_NOT_NULL(strstr(w.e.msg, "schema 2 to 3"));
    TEST_ASSERT_EQUAL_INT(0, db_number(&db, &w.e, "PRAGMA user_version", DB_NO_ARGS, 0, &n));
    TEST_ASSERT_EQUAL_INT64(2, n);
    TEST_ASSERT_EQUAL_INT(0, db_number(&db, &w.e, "SELECT sum(x) FROM a", DB_NO_ARGS, 0, &n));
    TEST_ASSERT_EQUAL_INT64(1, n); /* nothing of the failed step */
    TEST_ASSERT_EQUAL_INT(0, db_close(&db, &w.e));
}

/* Two ways to be no file of ours: a link, a directory. Nothing is followed, nothing is moved. */
static void test_not_a_regular_file(void)
{
    world_close(&w);
    TEST_ASSERT_EQUAL_INT(0, renameat(w.dir.fd, "weir.db", w.dir.fd, "elsewhere"));
    TEST_ASSERT_EQUAL_INT(0, symlinkat("elsewhere", w.dir.fd, "weir.db"));
    TEST_ASSERT_TRUE(world_try_open(&w) != 0);
    TEST_ASSERT_EQUAL_INT(0, unlinkat(w.dir.fd, "weir.db", 0));
    TEST_ASSERT_EQUAL_INT(0, mkdirat(w.dir.fd, "weir.db", 0700));
    TEST_ASSERT_EQUAL_INT(ERR_UNSAFE, world_try_open(&w));
    TEST_ASSERT_EQUAL_INT(0, unlinkat(w.dir.fd, "weir.db", AT_REMOVEDIR));
    TEST_ASSERT_EQUAL_INT(0, renameat(w.dir.fd, "elsewhere", w.dir.fd, "weir.db"));
    TEST_ASSERT_EQUAL_INT(0, world_try_open(&w));
}

/* What is damaged so that nothing can be read of it: the previous generation is used, and everybody is told. */
static void test_bad_file_gives_way_to_the_previous_generation(void)
{
    static const struct {
        const char *why;
        const char *bytes;
        size_t n;
    } kinds[] = {
        {"empty", "", 0},
        {"text",
         "this is not a database at all, and longer than one header of a hundred bytes is:"
         " so much for that, it goes on for a while",
         120},
        {"short", "SQLite format 3", 15},
    };
    for (int i = 0; i < 3; i++) {
        add_job(&w, (uint32_t)(10 * i + 1));
        backup();
        add_job(&w, (uint32_t)(10 * i + 2)); /* after the copy: lost with the file */
        world_close(&w);
        write_file("weir.db", kinds[i].bytes, kinds[i].n, 0, O_TRUNC);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, world_try_open(&w), w.e.msg);
        TEST_ASSERT_EQUAL_INT(STORE_RESTORED, w.report.how);
        TEST_ASSERT_TRUE(exists(w.report.aside));
        TEST_ASSERT_EQUAL_INT64((int64_t)kinds[i].n, size_of(w.report.aside));
        TEST_ASSERT_TRUE(w.report.why[0] != '\0');
        TEST_ASSERT_EQUAL_INT(STORE_CREATED, state_of(&w, (uint32_t)(10 * i + 1)));
        TEST_ASSERT_EQUAL_INT64(i + 1, count_events(&w, 0, STORE_EV_RECOVERED));
        TEST_ASSERT_EQUAL_STRING("database_damaged", last_event(&w, 0, STORE_EV_RECOVERED)->code);
        TEST_ASSERT_EQUAL_INT(0, store_check(w.s, &w.e));
    }
}

/* A weir.db that is gone while its previous generation is there was not "never there". */
static void test_missing_file_is_restored(void)
{
    add_job(&w, 1);
    backup();
    world_close(&w);
    TEST_ASSERT_EQUAL_INT(0, unlinkat(w.dir.fd, "weir.db", 0));
    TEST_ASSERT_EQUAL_INT(0, world_try_open(&w));
    TEST_ASSERT_EQUAL_INT(STORE_RESTORED, w.report.how);
    TEST_ASSERT_EQUAL_STRING("it was gone", w.report.why);
    TEST_ASSERT_EQUAL_INT(STORE_CREATED, state_of(&w, 1));
}

/* The log of a file that is gone never meets the next file. */
static void test_orphan_log_is_set_aside(void)
{
    add_job(&w, 1);
    char command[4 * DIR_PATH_MAX];
    snprintf(command, sizeof(command), "cp %s/weir.db-wal %s/log", w.dir.path, w.dir.path);
    TEST_ASSERT_EQUAL_INT(0, system(command));
    world_close(&w);
    TEST_ASSERT_EQUAL_INT(0, unlinkat(w.dir.fd, "weir.db", 0));
    TEST_ASSERT_EQUAL_INT(0, renameat(w.dir.fd, "log", w.dir.fd, "weir.db-wal"));
    TEST_ASSERT_EQUAL_INT(0, world_try_open(&w));
    TEST_ASSERT_EQUAL_INT(STORE_NEW, w.report.how);
    char aside[64];
    snprintf(aside, sizeof(aside), "weir.db-wal.corrupt-%lld", (long long)(START_AT / 1000));
    TEST_ASSERT_TRUE(exists(aside));
    struct store_page page;
    TEST_ASSERT_EQUAL_INT(ERR_NOT_FOUND, store_job_get(w.s, 1, &page, &w.e));
}

/* Fills the database with enough to spread over many pages. */
static void fill(uint32_t jobs)
{
    TEST_ASSERT_EQUAL_INT(0, store_batch_begin(w.s, &w.e));
    for (uint32_t id = 1; id <= jobs; id++) {
        move_to(&w, id, STORE_FAILED);
        char name[300];
        memset(name, 'a' + (int)(id % 26), sizeof(name));
        name[sizeof(name) - 1] = '\0';
        struct store_history h = {.job = id, .at = START_AT + id, .name = name};
        TEST_ASSERT_EQUAL_INT(0, store_history_put(w.s, &h, &w.e));
    }
    TEST_ASSERT_EQUAL_INT(0, store_batch_end(w.s, &w.e));
}

/* Some pages are overwritten, there is no previous generation: what can be read is kept, before and behind the damage. */
static void test_salvage_without_previous_generation(void)
{
    fill(400);
    world_close(&w);
    char garbage[8192];
    memset(garbage, 0xa5, sizeof(garbage));
    off_t middle = size_of("weir.db") / 2 / 4096 * 4096;
    write_file("weir.db", garbage, sizeof(garbage), middle, 0);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, world_try_open(&w), w.e.msg);
    TEST_ASSERT_EQUAL_INT(STORE_SALVAGED, w.report.how);
    TEST_ASSERT_GREATER_THAN_INT64(400, w.report.salvaged_rows);
    int64_t left = 0;
    TEST_ASSERT_EQUAL_INT(0, store_history_count(w.s, true, &left, &w.e));
    printf("salvaged %lld rows; %lld of 400 history entries\n", (long long)w.report.salvaged_rows,
           (long long)left);
    TEST_ASSERT_EQUAL_INT(0, store_check(w.s, &w.e));
}

/* With a previous generation, what the damaged file had beyond it is added: newer rows win, older ones do not. */
static void test_salvage_adds_to_the_previous_generation(void)
{
    fill(300);
    move_to(&w, 1000, STORE_QUEUED);
    backup();
    move(&w, 1000, STORE_DOWNLOADING);
    add_job(&w, 1001);
    world_close(&w);
    char garbage[4096];
    memset(garbage, 0x5a, sizeof(garbage));
    off_t at = size_of("weir.db") * 3 / 4 / 4096 * 4096; /* in the middle of the history */
    write_file("weir.db", garbage, sizeof(garbage), at, 0);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, world_try_open(&w), w.e.msg);
    TEST_ASSERT_EQUAL_INT(STORE_RESTORED, w.report.how);
    int64_t left = 0;
    TEST_ASSERT_EQUAL_INT(0, store_history_count(w.s, true, &left, &w.e));
    TEST_ASSERT_EQUAL_INT64(300, left);
    TEST_ASSERT_EQUAL_INT(STORE_CREATED, state_of(&w, 1001));
    /* it was downloading when the file broke: counted as a crash */
    TEST_ASSERT_EQUAL_INT(STORE_QUEUED, state_of(&w, 1000));
    TEST_ASSERT_EQUAL_INT(0, store_check(w.s, &w.e));
}

/* Cut off at many places, on page boundaries and off them: always a working database, never silence about the loss. */
static void test_truncated_anywhere(void)
{
    fill(60);
    backup();
    world_close(&w);
    struct dir keep = w.dir, work;
    off_t size = size_of("weir.db");
    TEST_ASSERT_GREATER_THAN_INT64(20 * 4096, size);
    for (off_t at = 0; at < size; at += 2 * 4096 + 777) {
        char command[4 * DIR_PATH_MAX];
        dir_make(&work);
        snprintf(command, sizeof(command), "cp %s/weir.db %s/weir.db.prev %s/", keep.path,
                 keep.path, work.path);
        TEST_ASSERT_EQUAL_INT(0, system(command));
        w.dir = work;
        char path[DIR_PATH_MAX + 16];
        path_of("weir.db", path, sizeof(path));
        TEST_ASSERT_EQUAL_INT(0, truncate(path, at));
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, world_try_open(&w), w.e.msg);
        TEST_ASSERT_EQUAL_INT(STORE_RESTORED, w.report.how);
        int64_t left = 0;
        TEST_ASSERT_EQUAL_INT(0, store_history_count(w.s, true, &left, &w.e));
        TEST_ASSERT_EQUAL_INT64(60, left);
        world_close(&w);
        dir_remove(&work);
    }
    w.dir = keep;
}

/* Random bytes over random pages: opening ends in a database that passes its check, or in an error that is said. */
static void test_random_damage(void)
{
    struct rng rng;
    rng_init(&rng, rng_seed(20261118));
    fill(60);
    backup();
    world_close(&w);
    struct dir keep = w.dir, work;
    off_t size = size_of("weir.db");
    unsigned noticed = 0;
    for (int round = 0; round < 25; round++) {
        char command[4 * DIR_PATH_MAX];
        dir_make(&work);
        snprintf(command, sizeof(command), "cp %s/weir.db %s/weir.db.prev %s/", keep.path,
                 keep.path, work.path);
        TEST_ASSERT_EQUAL_INT(0, system(command));
        w.dir = work;
        unsigned char bytes[64];
        for (size_t i = 0; i < sizeof(bytes); i++) {
            bytes[i] = (unsigned char)rng_next(&rng);
        }
        size_t n = 1 + (size_t)rng_below(&rng, sizeof(bytes));
        write_file("weir.db", bytes, n, (off_t)rng_below(&rng, (uint64_t)size - n), 0);
        int rv = world_try_open(&w);
        if (rv == 0) {
            noticed += w.report.how != STORE_AS_LEFT;
            struct store_page page;
            struct store_job_filter f = {0};
            rv = store_job_list(w.s, &f, NULL, &page, &w.e);
            TEST_ASSERT_TRUE(rv == 0 || w.e.msg[0] != '\0');
            store_page_free(&page);
            store_close(w.s, w.now, NULL);
            w.s = NULL;
        } else {
            TEST_ASSERT_TRUE(w.e.msg[0] != '\0');
        }
        dir_remove(&work);
    }
    printf("%u of 25 damaged files were noticed at opening\n", noticed);
    w.dir = keep;
}

/* Both generations bad: what is readable of the newer one, said loudly, and both are kept. */
static void test_both_generations_bad(void)
{
    fill(50);
    backup();
    world_close(&w);
    write_file("weir.db", "x", 1, 0, O_TRUNC);
    write_file("weir.db.prev", "y", 1, 0, O_TRUNC);
    TEST_ASSERT_EQUAL_INT(0, world_try_open(&w));
    TEST_ASSERT_EQUAL_INT(STORE_SALVAGED, w.report.how);
    TEST_ASSERT_TRUE(exists(w.report.aside));
    TEST_ASSERT_EQUAL_INT64(1, count_events(&w, 0, STORE_EV_RECOVERED));
    /* The queue still has its jobs: they are taken over as they are. */
    struct store_job j = {.id = 7, .state = STORE_DOWNLOADING, .name = "from the queue"};
    TEST_ASSERT_EQUAL_INT(0, store_job_adopt(w.s, &j, w.now, &w.e));
    TEST_ASSERT_EQUAL_INT(STORE_DOWNLOADING, state_of(&w, 7));
    TEST_ASSERT_EQUAL_INT(ERR_EXISTS, store_job_adopt(w.s, &j, w.now, &w.e));
    TEST_ASSERT_EQUAL_STRING("downloading", last_event(&w, 7, STORE_EV_RECOVERED)->to);
}

/* A copy that is made while others write is whole, stands alone, and an unfinished one is never mistaken for it. */
static void test_backup_while_writing(void)
{
    bool done = false;
    fill(100);
    for (int i = 0; !done; i++) {
        TEST_ASSERT_EQUAL_INT(0, store_backup_step(w.s, 3, w.now, &done, &w.e));
        if (i < 5) {
            add_job(&w, (uint32_t)(1000 + i));
        }
        TEST_ASSERT_TRUE(done == exists("weir.db.prev"));
    }
    TEST_ASSERT_EQUAL_INT64(w.now.wall_ms, store_backup_at(w.s));
    TEST_ASSERT_EQUAL_INT(0,
                          store_backup_step(w.s, 1, w.now, &done, &w.e)); /* the next one begins */
    world_close(&w);
    TEST_ASSERT_FALSE(exists("weir.db.prev-wal"));
    TEST_ASSERT_EQUAL_INT(0, unlinkat(w.dir.fd, "weir.db", 0));
    TEST_ASSERT_EQUAL_INT(0, world_try_open(&w));
    for (uint32_t i = 0; i < 5; i++) {
        TEST_ASSERT_EQUAL_INT(STORE_CREATED, state_of(&w, 1000 + i));
    }
    TEST_ASSERT_EQUAL_INT(0, store_check(w.s, &w.e));
}

/* In a batch a refused change is undone alone; and all of it is there or nothing. */
static void test_batch(void)
{
    TEST_ASSERT_EQUAL_INT(0, store_batch_begin(w.s, &w.e));
    add_job(&w, 1);
    struct store_job_made made;
    struct store_job_new same = {.id = 1};
    TEST_ASSERT_EQUAL_INT(ERR_EXISTS, store_job_add(w.s, &same, w.now, &made, &w.e));
    add_job(&w, 2);
    TEST_ASSERT_EQUAL_INT64(0, world_number(&w, "SELECT count(*) FROM job"));
    TEST_ASSERT_EQUAL_INT(0, store_batch_end(w.s, &w.e));
    TEST_ASSERT_EQUAL_INT64(2, world_number(&w, "SELECT count(*) FROM job"));
    TEST_ASSERT_EQUAL_INT64(2, world_number(&w, "SELECT count(*) FROM event"));
}

/* Numbers of jobs are not given out again when the newest rows are gone. */
static void test_last_job_id_survives_a_purge(void)
{
    uint32_t last = 1;
    TEST_ASSERT_EQUAL_INT(0, store_last_job_id(w.s, &last, &w.e));
    TEST_ASSERT_EQUAL_UINT32(0, last);
    move_to(&w, 41, STORE_CANCELLED);
    struct store_keep keep = {1, 1, 1};
    struct store_purged gone;
    world_wait(&w, 2 * (int64_t)DAY);
    TEST_ASSERT_EQUAL_INT(0, store_purge(w.s, &keep, 100, w.now, &gone, &w.e));
    TEST_ASSERT_EQUAL_INT64(1, gone.jobs);
    TEST_ASSERT_EQUAL_INT(0, store_last_job_id(w.s, &last, &w.e));
    TEST_ASSERT_EQUAL_UINT32(41, last);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_first_start);
    RUN_TEST(test_lifecycle_must_have_all_states);
    RUN_TEST(test_lifecycle_in_another_order);
    RUN_TEST(test_newer_version_is_refused);
    RUN_TEST(test_migration_steps);
    RUN_TEST(test_not_a_regular_file);
    RUN_TEST(test_bad_file_gives_way_to_the_previous_generation);
    RUN_TEST(test_missing_file_is_restored);
    RUN_TEST(test_orphan_log_is_set_aside);
    RUN_TEST(test_salvage_without_previous_generation);
    RUN_TEST(test_salvage_adds_to_the_previous_generation);
    RUN_TEST(test_truncated_anywhere);
    RUN_TEST(test_random_damage);
    RUN_TEST(test_both_generations_bad);
    RUN_TEST(test_backup_while_writing);
    RUN_TEST(test_batch);
    RUN_TEST(test_last_job_id_survives_a_purge);
    return UNITY_END();
}
