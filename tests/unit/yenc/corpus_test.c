/* The articles of tests/data/yenc (see make.py there): bytes, verdict, name, place in the file, and how much of the
 * input was theirs; whole, at every split, byte by byte, in place, and with room that comes late. */
#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "base/crc32.h"
#include "base/mem.h"
#include "lib/rng.h"
#include "yenc/yenc.h"

enum { FILE_MOST = 16384 };

struct row {
    char article[64], expected[64], verdict[16], lf[4];
    size_t used;
    unsigned part;
    unsigned long long begin, end;
    char name[YENC_NAME_MAX + 2];
};

static struct yenc_article art;
static uint8_t text[FILE_MOST], data[FILE_MOST], room[FILE_MOST];
static size_t text_len, data_len;

void setUp(void) {}
void tearDown(void) {}

static size_t read_file(const char *name, uint8_t *into)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/yenc/%s", TEST_DATA_DIR, name);
    FILE *f = fopen(path, "rb");
    TEST_ASSERT_NOT_NULL_MESSAGE(f, path);
    size_t n = fread(into, 1, FILE_MOST, f);
    TEST_ASSERT_TRUE_MESSAGE(n < FILE_MOST, path);
    fclose(f);
    return n;
}

static void check(const struct row *r, size_t used, const char *how)
{
    char where[160];
    snprintf(where, sizeof(where), "%s, %s (%s)", r->article, how,
             art.why != NULL ? art.why : "fine");
    TEST_ASSERT_EQUAL_STRING_MESSAGE(r->verdict, yenc_verdict_name(art.verdict), where);
    TEST_ASSERT_EQUAL_UINT64_MESSAGE(r->used, used, where);
    TEST_ASSERT_EQUAL_UINT64_MESSAGE(r->used, art.raw, where);
    TEST_ASSERT_EQUAL_UINT64_MESSAGE(data_len, art.len, where);
    TEST_ASSERT_TRUE_MESSAGE(art.len == 0 || memcmp(data, art.out, art.len) == 0, where);
    TEST_ASSERT_EQUAL_HEX32_MESSAGE(crc32_update(0, data, data_len), art.crc, where);
    if (strcmp(r->name, "*") != 0) {
        TEST_ASSERT_EQUAL_STRING_MESSAGE(r->name, art.header.name, where);
        TEST_ASSERT_EQUAL_UINT32_MESSAGE(r->part, art.header.part, where);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(r->begin, art.header.begin, where);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(r->end, art.header.end, where);
    }
}

/* Feeds `n` bytes; gives room when asked for it, as much as the article wants. */
static enum yenc_feed feed(const uint8_t *src, size_t n, size_t *at)
{
    enum yenc_feed f;
    size_t done = 0, used;
    do {
        f = yenc_article_feed(&art, src + done, n - done, &used);
        done += used;
        if (f == YENC_FEED_ROOM) {
            size_t wants = yenc_article_wants(&art);
            yenc_article_room(&art, room, wants < sizeof(room) ? wants : sizeof(room));
        }
    } while (f == YENC_FEED_ROOM);
    *at += done;
    return f;
}

static void in_two_pieces(const struct row *r, size_t split)
{
    size_t at = 0;
    yenc_article_init(&art, r->lf[0] == 'l');
    if (feed(text, split, &at) == YENC_FEED_MORE) {
        feed(text + split, text_len - split, &at);
    }
    yenc_article_finish(&art);
    char how[32];
    snprintf(how, sizeof(how), "split at %zu", split);
    check(r, at, how);
}

static void byte_by_byte(const struct row *r)
{
    size_t at = 0;
    yenc_article_init(&art, r->lf[0] == 'l');
    while (at < text_len && feed(text + at, 1, &at) == YENC_FEED_MORE) {
    }
    yenc_article_finish(&art);
    check(r, at, "byte by byte");
}

/* The room is the input itself, or one byte at a time. */
static void with_odd_room(const struct row *r)
{
    static uint8_t copy[FILE_MOST];
    size_t at = 0, used;
    memcpy(copy, text, text_len);
    yenc_article_init(&art, r->lf[0] == 'l');
    yenc_article_room(&art, copy, sizeof(copy));
    yenc_article_feed(&art, copy, text_len, &at);
    yenc_article_finish(&art);
    check(r, at, "in place");

    enum yenc_feed f = YENC_FEED_MORE;
    at = 0;
    yenc_article_init(&art, r->lf[0] == 'l');
    while (at < text_len && f != YENC_FEED_DONE) {
        f = yenc_article_feed(&art, text + at, text_len - at, &used);
        at += used;
        if (f == YENC_FEED_ROOM) {
            size_t step = art.format == YENC_FORMAT_UU ? 63 : 1;
            yenc_article_room(&art, room, art.len + step);
        }
    }
    yenc_article_finish(&art);
    check(r, at, "room byte by byte");
}

static bool parse_row(char *line, struct row *r)
{
    line[strcspn(line, "\n")] = '\0';
    int at = 0;
    int n =
        sscanf(line, "%63[^\t]\t%63[^\t]\t%15[^\t]\t%zu\t%3[^\t]\t%u\t%llu\t%llu\t%n", r->article,
               r->expected, r->verdict, &r->used, r->lf, &r->part, &r->begin, &r->end, &at);
    snprintf(r->name, sizeof(r->name), "%s", line + at);
    return n == 8;
}

static void test_corpus(void)
{
    FILE *index = fopen(TEST_DATA_DIR "/yenc/index.tsv", "r");
    TEST_ASSERT_NOT_NULL(index);
    char line[2048];
    int articles = 0;
    while (fgets(line, sizeof(line), index) != NULL) {
        struct row r;
        TEST_ASSERT_TRUE_MESSAGE(parse_row(line, &r), line);
        text_len = read_file(r.article, text);
        data_len = strcmp(r.expected, "-") != 0 ? read_file(r.expected, data) : 0;
        for (size_t split = 0; split <= text_len; split += text_len > 4000 ? 61 : 1) {
            in_two_pieces(&r, split);
        }
        byte_by_byte(&r);
        with_odd_room(&r);
        articles++;
    }
    fclose(index);
    printf("%d articles\n", articles);
    TEST_ASSERT_GREATER_OR_EQUAL(60, articles);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_corpus);
    return UNITY_END();
}
