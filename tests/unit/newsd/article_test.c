#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unity.h>

#include "base/mem.h"
#include "lib/dir.h"
#include "lib/fault.h"
#include "lib/rng.h"
#include "newsd/newsd.h"
#include "newsd/store.h"
#include "yenc/yenc.h"

enum { PART = 5000 };

static struct dir dir;
static struct newsd_catalog catalog;
static struct newsd_store store;
static uint8_t data[4 * PART + 1];

static void write_file(const char *name, const void *p, size_t n)
{
    int fd = openat(dir.fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    TEST_ASSERT_TRUE(fd >= 0 && write(fd, p, n) == (ssize_t)n);
    close(fd);
}

void setUp(void)
{
    struct rng r;
    rng_init(&r, 5);
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)rng_next(&r);
    }
    dir_make(&dir);
    TEST_ASSERT_EQUAL_INT(0, mkdirat(dir.fd, "set", 0700));
    write_file("set/a", data, sizeof(data));
    write_file("set/b", data, PART);
    newsd_catalog_init(&catalog, PART);
    struct err e = {0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, newsd_catalog_scan(&catalog, dir.fd, 0, &e), e.msg);
}

void tearDown(void)
{
    newsd_store_free(&store);
    newsd_catalog_free(&catalog);
    dir_remove(&dir);
}

static void open_store(size_t cache)
{
    struct err e = {0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, newsd_store_init(&store, &catalog, dir.fd, "a.b", cache, &e),
                                  e.msg);
}

/* The text is a head, an empty line, and a body that our decoder takes for exactly this part. */
static void check_text(const struct newsd_text *t, int32_t article)
{
    const struct newsd_article *a = &catalog.articles[article];
    const struct newsd_file *f = newsd_catalog_file(&catalog, article);
    static struct yenc_article y;
    static uint8_t out[2 * PART + 1000];
    size_t used;
    char id[100];
    snprintf(id, sizeof(id), "Message-ID: <%s>\r\n", a->id);
    TEST_ASSERT_NOT_NULL(memmem(t->p, t->head_len, id, strlen(id)));
    TEST_ASSERT_NULL(memmem(t->p, t->head_len, "\r\n\r\n", 4));
    TEST_ASSERT_EQUAL_MEMORY("\r\n\r\n=ybegin ", t->p + t->head_len - 2, 12);
    yenc_article_init(&y, false);
    yenc_article_room(&y, out, sizeof(out));
    size_t body = t->head_len + 2;
    TEST_ASSERT_EQUAL(YENC_FEED_DONE, yenc_article_feed(&y, t->p + body, t->len - body, &used));
    TEST_ASSERT_EQUAL_UINT64(t->len - body, used);
    TEST_ASSERT_EQUAL(YENC_OK, y.verdict);
    TEST_ASSERT_EQUAL_STRING(f->name, y.header.name);
    TEST_ASSERT_EQUAL_UINT32(a->part, y.header.part);
    TEST_ASSERT_EQUAL_UINT32(f->parts, y.header.total);
    TEST_ASSERT_EQUAL_UINT64(f->size, y.header.size);
    TEST_ASSERT_EQUAL_UINT64(newsd_catalog_part_at(&catalog, a->part), y.header.begin);
    TEST_ASSERT_EQUAL_UINT64(newsd_catalog_part_len(&catalog, f, a->part), y.len);
    TEST_ASSERT_EQUAL_MEMORY(data + y.header.begin, out, y.len);
}

/* Files are cut into parts that cover them, the last one being what is left. */
static void test_catalog_parts(void)
{
    TEST_ASSERT_EQUAL_UINT64(1, catalog.sets_len);
    TEST_ASSERT_EQUAL_UINT64(2, catalog.files_len);
    TEST_ASSERT_EQUAL_UINT32(5, catalog.files[0].parts);
    TEST_ASSERT_EQUAL_UINT32(1, catalog.files[1].parts);
    TEST_ASSERT_EQUAL_UINT64(1, newsd_catalog_part_len(&catalog, &catalog.files[0], 5));
    TEST_ASSERT_EQUAL_UINT64(6, catalog.articles_len);
    char subject[CATALOG_SUBJECT_MAX];
    newsd_catalog_subject(&catalog.files[1], 1, subject, sizeof(subject));
    TEST_ASSERT_EQUAL_STRING("[2/2] - \"b\" yEnc (1/1)", subject);
}

/* An id is found again, belongs to path, size and article size, and does not depend on anything else. */
static void test_catalog_ids(void)
{
    struct newsd_catalog again, other;
    struct err e = {0};
    newsd_catalog_init(&again, PART);
    newsd_catalog_init(&other, PART + 1);
    TEST_ASSERT_EQUAL_INT(0, newsd_catalog_scan(&again, dir.fd, 86400, &e));
    TEST_ASSERT_EQUAL_INT(0, newsd_catalog_scan(&other, dir.fd, 0, &e));
    for (size_t i = 0; i < catalog.articles_len; i++) {
        const char *id = catalog.articles[i].id;
        TEST_ASSERT_EQUAL_INT32(i, newsd_find(&catalog, id, strlen(id)));
        TEST_ASSERT_EQUAL_STRING(id, again.articles[i].id);
        TEST_ASSERT_EQUAL_INT32(CATALOG_NONE, newsd_find(&other, id, strlen(id)));
        TEST_ASSERT_EQUAL_INT32(CATALOG_NONE, newsd_find(&catalog, id, strlen(id) - 1));
    }
    newsd_catalog_free(&again);
    newsd_catalog_free(&other);
}

/* Many ids are all found, also after the table has grown, and a second article with a known id is refused. */
static void test_catalog_grows(void)
{
    char id[32];
    for (int i = 0; i < 5000; i++) {
        int n = snprintf(id, sizeof(id), "%d@x", i);
        TEST_ASSERT_EQUAL_INT(6 + i, newsd_catalog_add_posted(&catalog, id, (size_t)n));
    }
    TEST_ASSERT_EQUAL_INT(ERR_EXISTS, newsd_catalog_add_posted(&catalog, "77@x", 4));
    for (int i = 0; i < 5000; i++) {
        int n = snprintf(id, sizeof(id), "%d@x", i);
        TEST_ASSERT_EQUAL_INT32(6 + i, newsd_find(&catalog, id, (size_t)n));
    }
}

/* Each article is a whole text that decodes to its part of the file, and is encoded once. */
static void test_store_articles(void)
{
    open_store(1 << 20);
    for (int round = 0; round < 2; round++) {
        for (int32_t i = 0; i < 6; i++) {
            struct newsd_text t;
            TEST_ASSERT_EQUAL_INT(0, newsd_store_get(&store, i, &t));
            check_text(&t, i);
            newsd_store_put(&store, &t);
        }
    }
    TEST_ASSERT_EQUAL_UINT64(6, store.encoded);
}

/* With fewer slots than articles the oldest makes room, texts that are lent stay as they are, and when all slots are
 * lent an article is made for one use. */
static void test_store_evicts(void)
{
    for (int32_t i = 0; i < 30; i++) {
        char path[32];
        snprintf(path, sizeof(path), "set/c%d", i);
        write_file(path, data, PART);
        TEST_ASSERT_EQUAL_INT(0, newsd_catalog_add_file(&catalog, path, PART, 0));
    }
    open_store(1);
    TEST_ASSERT_EQUAL_UINT64(16, store.slots_len);
    struct newsd_text held[20];
    for (int32_t i = 0; i < 20; i++) {
        TEST_ASSERT_EQUAL_INT(0, newsd_store_get(&store, i, &held[i]));
        TEST_ASSERT_EQUAL(i >= 16, held[i].owned != NULL);
    }
    for (int32_t i = 0; i < 20; i++) {
        check_text(&held[i], i);
        newsd_store_put(&store, &held[i]);
    }
    for (int32_t i = 0; i < 36; i++) {
        struct newsd_text t;
        TEST_ASSERT_EQUAL_INT(0, newsd_store_get(&store, i, &t));
        check_text(&t, i);
        newsd_store_put(&store, &t);
    }
    int32_t last = 35;
    TEST_ASSERT_NOT_EQUAL(CATALOG_NONE, catalog.articles[last].slot);
    TEST_ASSERT_EQUAL_INT32(CATALOG_NONE, catalog.articles[0].slot);
}

/* A file that has shrunk or gone is an error, not an article with other bytes. */
static void test_store_changed_file(void)
{
    open_store(1 << 20);
    struct newsd_text t;
    write_file("set/a", data, 100);
    TEST_ASSERT_EQUAL_INT(ERR_TRUNCATED, newsd_store_get(&store, 0, &t));
    TEST_ASSERT_EQUAL_INT(0, unlinkat(dir.fd, "set/a", 0));
    TEST_ASSERT_LESS_THAN_INT(0, newsd_store_get(&store, 0, &t));
    TEST_ASSERT_EQUAL_INT(0, symlinkat("b", dir.fd, "set/a"));
    TEST_ASSERT_LESS_THAN_INT(0, newsd_store_get(&store, 0, &t));
}

/* The server starts or fails with a reason at every allocation that can fail, and leaves nothing open. */
static void test_start_without_memory(void)
{
    char nzb[600];
    snprintf(nzb, sizeof(nzb), "%s/nzb", dir.path);
    struct newsd_options o = {.dir = dir.path, .nzb_dir = nzb, .script = "greet : status 400"};
    struct newsd *n;
    struct err e = {0};
    TEST_ASSERT_EQUAL_INT(0, newsd_start(&n, &o, &e)); /* whatever is opened once and for all */
    newsd_stop(n);
    int fds = dir_open_fds();
    for (unsigned k = 1;; k++) {
        fault_arm(k);
        int rv = newsd_start(&n, &o, &e);
        bool fired = fault_fired();
        fault_disarm();
        if (rv == 0) {
            newsd_stop(n);
        } else {
            TEST_ASSERT_NOT_EQUAL(0, e.code);
        }
        TEST_ASSERT_EQUAL_INT(fds, dir_open_fds());
        if (!fired) {
            TEST_ASSERT_EQUAL_INT(0, rv);
            break;
        }
        TEST_ASSERT_NOT_EQUAL(0, rv);
        e = (struct err){0};
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_catalog_parts);
    RUN_TEST(test_catalog_ids);
    RUN_TEST(test_catalog_grows);
    RUN_TEST(test_store_articles);
    RUN_TEST(test_store_evicts);
    RUN_TEST(test_store_changed_file);
    RUN_TEST(test_start_without_memory);
    return UNITY_END();
}
