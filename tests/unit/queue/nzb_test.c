/* What Weir makes of the NZBs in tests/data/nzb, and of NZBs that want to do harm. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unity.h>
#include <zlib.h>

#include "base/fsx.h"
#include "base/mem.h"
#include "lib/fault.h"
#include "queue/nzb.h"
#include "queue/text.h"

void setUp(void) {}
void tearDown(void) {}

static char *read_file(const char *name, size_t *len)
{
    char *bytes = NULL;
    struct err e = {0};
    int dir = open(TEST_DATA_DIR "/nzb", O_RDONLY | O_DIRECTORY);
    int rc = fsx_read_all(&fsx_kernel, dir, name, 1 << 20, &bytes, len, &e);
    TEST_ASSERT_EQUAL_MESSAGE(0, rc, e.msg);
    TEST_ASSERT_EQUAL(0, fsx_close(&fsx_kernel, dir, NULL));
    return bytes;
}

static struct nzb *load(const char *name)
{
    size_t len;
    char *bytes = read_file(name, &len);
    struct nzb *n = NULL;
    struct err e = {0};
    int rc = nzb_parse(bytes, len, name, &n, &e);
    TEST_ASSERT_EQUAL_MESSAGE(0, rc, e.msg);
    mem_free(bytes);
    return n;
}

/* ---- shapes ---- */

struct file_row {
    const char *name;
    enum nzb_kind kind;
    uint32_t articles, missing, blocks;
};

struct shape {
    const char *nzb;
    const char *title, *password, *category, *tag;
    struct file_row files[7]; /* ends with a row without a name */
};

#define SHOW_FILES                                                        \
    {                                                                     \
        {"some.show.s01e01.nfo", NZB_EXTRA, 1, 0, 0},                     \
            {"some.show.s01e01.part1.rar", NZB_DATA, 3, 0, 0},            \
            {"some.show.s01e01.part2.rar", NZB_DATA, 2, 0, 0},            \
            {"some.show.s01e01.par2", NZB_PAR2_MAIN, 1, 0, 0},            \
            {"some.show.s01e01.vol00+01.par2", NZB_PAR2_VOLUME, 1, 0, 1}, \
        {                                                                 \
            "some.show.s01e01.vol01+02.par2", NZB_PAR2_VOLUME, 2, 0, 2    \
        }                                                                 \
    }
#define HOLIDAY_FILES                                                                  \
    {                                                                                  \
        {"holiday video.mkv", NZB_DATA, 8, 0, 0}, {"holiday.nfo", NZB_EXTRA, 1, 0, 0}, \
            {"holiday.par2", NZB_PAR2_MAIN, 1, 0, 0},                                  \
        {                                                                              \
            "holiday.vol03+04.par2", NZB_PAR2_VOLUME, 2, 0, 4                          \
        }                                                                              \
    }

static const struct shape shapes[] = {
    {"indexer.nzb", "Some Show S01E01", "open sesame", "TV > HD", "hd", SHOW_FILES},
    {"indexer.nzb.gz", "Some Show S01E01", "open sesame", "TV > HD", "hd", SHOW_FILES},
    {"two-members.nzb.gz", "Some Show S01E01", "open sesame", "TV > HD", "hd", SHOW_FILES},
    {"crlf-bom.nzb", "Some Show S01E01", "open sesame", "TV > HD", "hd", SHOW_FILES},
    {"utf16.nzb", "Some Show S01E01", "open sesame", "TV > HD", "hd", SHOW_FILES},
    {"plain.nzb",
     "plain",
     "",
     "",
     "",
     {{"m\xc3\xbcnchen.r00", NZB_DATA, 2, 0, 0}, {"m\xc3\xbcnchen.r01", NZB_DATA, 1, 0, 0}}},
    {"prefixed.nzb", "prefixed", "", "", "", {{"a.bin", NZB_DATA, 2, 0, 0}}},
    {"unquoted.nzb",
     "unquoted",
     "",
     "",
     "",
     {{"My Holiday Video.mkv", NZB_DATA, 2, 0, 0},
      {"some.show.r00", NZB_DATA, 1, 0, 0},
      {"here it is, file_three.part03.rar", NZB_DATA, 1, 0, 0}}},
    {"private.nzb",
     "private",
     "",
     "",
     "",
     {{"Some.Show.S01E02.1080p.mkv", NZB_DATA, 2, 0, 0},
      {"Some.Show.S01E02.nfo", NZB_EXTRA, 1, 0, 0}}},
    {"obfuscated.nzb",
     "obfuscated",
     "",
     "",
     "",
     {{"9f86d081884c7d659a2feaa0c55ad015", NZB_DATA, 2, 0, 0},
      {"a3f5c8", NZB_DATA, 1, 0, 0},
      {"file-0003", NZB_DATA, 1, 0, 0}}},
    {"segments.nzb", "segments", "", "", "", {{"odd.bin", NZB_DATA, 6, 2, 0}}},
    {"ids.nzb", "ids", "", "", "", {{"ids.bin", NZB_DATA, 5, 0, 0}}},
    {"Some.Thing.{{top secret}}.nzb",
     "Some.Thing",
     "top secret",
     "",
     "",
     {{"thing.7z.001", NZB_DATA, 1, 0, 0}}},
    {"comments.nzb", "comments", "", "", "", {{"c.bin", NZB_DATA, 1, 0, 0}}},
    {"nyuu-plain.nzb", "nyuu-plain", "", "", "", HOLIDAY_FILES},
    {"nyuu-comment.nzb", "nyuu-comment", "", "", "", HOLIDAY_FILES},
    {"nyuu-utf8.nzb", "nyuu-utf8", "", "", "", HOLIDAY_FILES},
    {"nyuu-gz.nzb.gz", "nyuu-gz", "", "", "", HOLIDAY_FILES},
    {"nyuu-meta.nzb", "Holiday 2026", "s3cr&t <x>", "Movies", "family", HOLIDAY_FILES},
    {"nyuu-obfuscated.nzb",
     "nyuu-obfuscated",
     "",
     "",
     "",
     {{"T2a7tNk6vXKnZPzYcU4upapv", NZB_DATA, 8, 0, 0},
      {"r9fHWkzlGlnlzDcVvDtYOuWA", NZB_DATA, 1, 0, 0},
      {"0W2AJmt4yPke9KCwhOZivu18", NZB_DATA, 1, 0, 0},
      {"LQsQbJF8SkNiTdzjEwXIaIYv", NZB_DATA, 2, 0, 0}}},
};

/* Every shape of NZB gives the files, names, kinds and password that a user would read out of it. */
static void test_shapes_give_files_and_names(void)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct shape *s = &shapes[i];
        struct nzb *n = load(s->nzb);
        uint32_t f = 0;
        TEST_ASSERT_EQUAL_STRING_MESSAGE(s->title, n->title, s->nzb);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(s->password, n->password, s->nzb);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(s->category, n->category, s->nzb);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(s->tag, n->tag, s->nzb);
        for (; s->files[f].name != NULL; f++) {
            TEST_ASSERT_TRUE_MESSAGE(f < n->file_count, s->nzb);
            const struct nzb_file *got = &n->files[f];
            TEST_ASSERT_EQUAL_STRING_MESSAGE(s->files[f].name, got->name, s->nzb);
            TEST_ASSERT_EQUAL_MESSAGE(s->files[f].kind, got->kind, got->name);
            TEST_ASSERT_EQUAL_UINT32_MESSAGE(s->files[f].articles, got->count, got->name);
            TEST_ASSERT_EQUAL_UINT32_MESSAGE(s->files[f].missing, got->missing, got->name);
            TEST_ASSERT_EQUAL_UINT32_MESSAGE(s->files[f].blocks, got->blocks, got->name);
        }
        TEST_ASSERT_EQUAL_UINT32_MESSAGE(f, n->file_count, s->nzb);
        nzb_unref(n);
    }
}

/* Segments come out by number; of doubles the first counts, another id is kept for later, the same id is dropped; what
 * is no number or no id is left out and counted. */
static void test_segments_are_sorted_and_sorted_out(void)
{
    static const char *const ids[] = {"a@x.example", "b@x.example", "c@x.example",
                                      "d@x.example", "e@x.example", "f@x.example"};
    struct nzb *n = load("segments.nzb");
    for (uint32_t i = 0; i < 6; i++) {
        TEST_ASSERT_EQUAL_STRING(ids[i], nzb_id(n, i));
        TEST_ASSERT_EQUAL_UINT32(i + 1, n->number[i]);
        TEST_ASSERT_EQUAL_UINT32(i == 3 || i == 4 ? 0 : 500000, n->bytes[i]);
    }
    TEST_ASSERT_EQUAL_UINT32(1, n->fallback_count);
    TEST_ASSERT_EQUAL_UINT32(1, n->fallbacks[0].article);
    TEST_ASSERT_EQUAL_STRING("b2@x.example", n->ids + n->fallbacks[0].id_at);
    TEST_ASSERT_EQUAL_UINT32(1, n->duplicates);
    TEST_ASSERT_EQUAL_UINT32(12, n->bad_segments);
    TEST_ASSERT_EQUAL_UINT32(2, n->empty_files);
    TEST_ASSERT_NOT_NULL(strstr(n->first_problem, "line 14: segment number '0'"));
    nzb_unref(n);
}

/* Brackets, blanks, CDATA and character references around an id are not part of it. */
static void test_ids_are_taken_out_of_their_wrapping(void)
{
    static const char *const ids[] = {"one@x.example", "two@x.example", "three&more@x.example",
                                      "four&more@x.example", "five@x.example"};
    struct nzb *n = load("ids.nzb");
    for (uint32_t i = 0; i < 5; i++) {
        TEST_ASSERT_EQUAL_STRING(ids[i], nzb_id(n, i));
    }
    nzb_unref(n);
}

/* Poster, groups and date are there; a group that would be a command of its own is not. */
static void test_poster_groups_and_date(void)
{
    struct nzb *n = load("Some.Thing.{{top secret}}.nzb");
    TEST_ASSERT_EQUAL_STRING("alt.binaries.a alt.binaries.b", n->files[0].groups);
    TEST_ASSERT_EQUAL_INT64(0, n->files[0].date);
    nzb_unref(n);
    n = load("plain.nzb");
    TEST_ASSERT_EQUAL_STRING("J\xc3\xb6rg <j@example.de>", n->files[0].poster);
    TEST_ASSERT_EQUAL_INT64(1700000000, n->files[0].date);
    nzb_unref(n);
}

/* The content key is that of the ids, in whatever order and wrapping they come. */
static void test_content_key_ignores_order_and_wrapping(void)
{
    static const char *const same[] = {"indexer.nzb", "indexer.nzb.gz", "utf16.nzb",
                                       "crlf-bom.nzb"};
    uint8_t key[NZB_KEY_BYTES];
    for (size_t i = 0; i < 4; i++) {
        struct nzb *n = load(same[i]);
        TEST_ASSERT_EQUAL(0, nzb_compute_key(n));
        if (i == 0) {
            memcpy(key, n->key, sizeof(key));
        }
        TEST_ASSERT_EQUAL_MEMORY(key, n->key, sizeof(key));
        nzb_unref(n);
    }
    /* printf 'nzb1\nfive@x.example\nfour&more@x.example\none@x.example\nthree&more@x.example\ntwo@x.example\n' | sha256sum */
    struct nzb *n = load("ids.nzb");
    TEST_ASSERT_EQUAL(0, nzb_compute_key(n));
    TEST_ASSERT_EQUAL_HEX8(0x2f, n->key[0]);
    nzb_unref(n);
}

/* ---- hostile text ---- */

static int parse(const char *text, size_t len, struct err *e)
{
    struct nzb *n = NULL;
    *e = (struct err){0};
    int rc = nzb_parse(text, len, NULL, &n, e);
    nzb_unref(n);
    return rc;
}

#define FILE_1                                                           \
    "<file subject='\"a.bin\" yEnc (1/1)'><segments><segment bytes='1' " \
    "number='1'>a@b.c</segment></segments></file>"

static const struct {
    const char *why, *text;
    int code;
    const char *says; /* part of the message */
} hostile[] = {
    {"X1 external entity",
     "<!DOCTYPE nzb [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><nzb>" FILE_1 "&x;</nzb>",
     ERR_INVALID, "line 1: entity 'x' is declared"},
    {"X1 parameter entity",
     "<!DOCTYPE nzb [<!ENTITY % p SYSTEM 'http://127.0.0.1/x'> %p;]><nzb>" FILE_1 "</nzb>",
     ERR_INVALID, "entity 'p' is declared"},
    {"X2 billion laughs in text",
     "<!DOCTYPE nzb [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>]><nzb>&b;</nzb>",
     ERR_INVALID, "entity 'a' is declared"},
    {"X2 billion laughs in an attribute",
     "<!DOCTYPE nzb [<!ENTITY a 'ha'>]><nzb><file subject='&a;&a;'/></nzb>", ERR_INVALID,
     "is declared"},
    {"X2 attribute defaults",
     "<!DOCTYPE nzb [<!ATTLIST file subject CDATA 'x'>]><nzb>" FILE_1 "</nzb>", ERR_INVALID,
     "attribute 'subject' of <file> is declared"},
    {"X6 no file", "<nzb></nzb>", ERR_INVALID, "has no file"},
    {"X6 file without segments", "<nzb><file subject='x'></file></nzb>", ERR_INVALID,
     "no usable file"},
    {"X6 only bad segments",
     "<nzb>\n<file subject='x'><segments><segment number='1'>a b</segment></segments></file></nzb>",
     ERR_INVALID, "line 2: segment 1 has no valid message-id"},
    {"X7 invalid UTF-8",
     "<nzb>"
     "<file subject='\xff\xfe'/></nzb>",
     ERR_INVALID, "line 1:"},
    {"X7 overlong", "<nzb><file subject='\xc0\xaf'/></nzb>", ERR_INVALID, "line 1:"},
    {"X7 unknown encoding", "<?xml version='1.0' encoding='x-nonsense'?><nzb>" FILE_1 "</nzb>",
     ERR_INVALID, "line 1:"},
    {"X8 truncated", "<nzb>\n" FILE_1, ERR_TRUNCATED, "line 2: the NZB ends too early"},
    {"X8 truncated in a tag", "<nzb>\n<file subj", ERR_TRUNCATED, "ends too early"},
    {"X8 two roots", "<nzb>" FILE_1 "</nzb><nzb>" FILE_1 "</nzb>", ERR_INVALID, "Extra content"},
    {"X8 trailing junk", "<nzb>" FILE_1 "</nzb> junk", ERR_INVALID, "Extra content"},
    {"X8 zip",
     "PK\x03\x04"
     "anything",
     ERR_INVALID, "zip archive"},
    {"not XML", "hello there", ERR_INVALID, "line 1:"},
    {"an indexer's error page", "<html><body>limit reached</body></html>", ERR_INVALID,
     "<html>, not an NZB"},
    {"an indexer's error", "<error code='201' description='x'/>", ERR_INVALID,
     "<error>, not an NZB"},
    {"empty", "", ERR_INVALID, "is empty"},
    {"too short", "<n", ERR_INVALID, "not an NZB"},
    {"crossed tags", "<nzb><file></nzb></file>", ERR_INVALID,
     "line 1: Opening and ending tag mismatch"},
};

/* Each hostile or broken NZB is refused with the error of its kind, which names what and where. */
static void test_hostile_text_has_a_named_error(void)
{
    struct err e;
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        int rc = parse(hostile[i].text, strlen(hostile[i].text), &e);
        TEST_ASSERT_EQUAL_MESSAGE(hostile[i].code, rc, hostile[i].why);
        if (strstr(e.msg, hostile[i].says) == NULL) {
            TEST_FAIL_MESSAGE(e.msg);
        }
    }
    TEST_ASSERT_EQUAL(ERR_INVALID, parse("<nzb>\0</nzb>", 12, &e)); /* X7 NUL */
}

static void repeat(struct text *t, const char *s, size_t times)
{
    for (size_t i = 0; i < times; i++) {
        text_put(t, s, strlen(s));
    }
}

/* X3: depth is limited by us, because libxml2's own limit does not hold for handlers like ours. */
static void test_deep_nesting_is_refused(void)
{
    struct text t = {0};
    struct err e;
    repeat(&t, "<nzb>", 1);
    repeat(&t, "<a>", 200000);
    TEST_ASSERT_EQUAL(ERR_LIMIT, parse(t.at, t.len, &e));
    TEST_ASSERT_NOT_NULL(strstr(e.msg, "nested more than 32 deep"));
    mem_free(t.at);
}

/* X4: a tag that never ends is refused while it is being collected. */
static void test_endless_attribute_is_refused(void)
{
    static const size_t sizes[] = {NZB_TEXT_MAX + 10, 2 << 20, 20 << 20};
    for (size_t i = 0; i < 3; i++) {
        struct text t = {0};
        struct err e;
        repeat(&t, "<nzb><file subject='", 1);
        char *fill = text_extend(&t, sizes[i]);
        memset(fill, 'x', sizes[i]);
        repeat(&t, "'></file></nzb>", 1);
        TEST_ASSERT_EQUAL(ERR_LIMIT, parse(t.at, t.len, &e));
        TEST_ASSERT_NOT_NULL(strstr(e.msg, "longer than"));
        mem_free(t.at);
    }
}

/* X8: a gzip bomb is stopped at the limit for NZB text, a cut stream is said to be cut. */
static void test_gzip_bombs_and_cut_streams_are_refused(void)
{
    struct text t = {0};
    struct err e;
    z_stream z = {0};
    char *zeros = mem_zalloc(1, 1 << 20);
    memset(zeros, ' ', 1 << 20);
    TEST_ASSERT_EQUAL(Z_OK, deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY));
    unsigned char out[1 << 16];
    for (int i = 0; i <= 514; i++) { /* white space, so that only the size is wrong */
        z.next_in = i == 0 ? (Bytef *)(uintptr_t) "<nzb>" : (Bytef *)zeros;
        z.avail_in = i == 0 ? 5 : 1 << 20;
        do {
            z.next_out = out;
            z.avail_out = sizeof(out);
            deflate(&z, i == 514 ? Z_FINISH : Z_NO_FLUSH);
            text_put(&t, out, sizeof(out) - z.avail_out);
        } while (z.avail_out == 0);
    }
    deflateEnd(&z);
    TEST_ASSERT_TRUE(t.len < 4 << 20);
    TEST_ASSERT_EQUAL(ERR_LIMIT, parse(t.at, t.len, &e));
    TEST_ASSERT_NOT_NULL(strstr(e.msg, "larger than 512 MiB"));
    mem_free(t.at);
    mem_free(zeros);

    size_t len;
    char *gz = read_file("indexer.nzb.gz", &len);
    for (size_t cut = 4; cut < len; cut += 7) {
        TEST_ASSERT_EQUAL(ERR_TRUNCATED, parse(gz, cut, &e));
    }
    gz[len / 2] ^= 0x55;
    int rc = parse(gz, len, &e);
    TEST_ASSERT_TRUE(rc == ERR_INVALID || rc == ERR_TRUNCATED);
    mem_free(gz);
}

/* An NZB cut anywhere gives an error, never half a job; fed byte by byte it gives what it gives in one piece. */
static void test_every_cut_is_refused_and_every_split_is_the_same(void)
{
    size_t len;
    struct err e;
    char *bytes = read_file("indexer.nzb", &len);
    for (size_t cut = 0; cut < len - 8; cut++) { /* the last bytes: "</nzb>\n" and the one before */
        TEST_ASSERT_NOT_EQUAL(0, parse(bytes, cut, &e));
    }
    struct nzb_parser *p = nzb_parser_new("indexer.nzb");
    for (size_t i = 0; i < len; i++) {
        TEST_ASSERT_EQUAL(0, nzb_parser_feed(p, bytes + i, 1, &e));
    }
    struct nzb *n, *whole = load("indexer.nzb");
    TEST_ASSERT_EQUAL(0, nzb_parser_finish(p, &n, &e));
    TEST_ASSERT_TRUE(n->layout == whole->layout);
    nzb_unref(n);
    nzb_unref(whole);
    mem_free(bytes);
}

/* Whatever allocation fails, the parser says so and leaves nothing behind (ASan looks). */
static void test_missing_memory_is_an_error(void)
{
    size_t len;
    char *bytes = read_file("segments.nzb", &len);
    for (unsigned k = 1;; k++) {
        struct nzb *n = NULL;
        fault_arm(k);
        int rc = nzb_parse(bytes, len, "x {{p}}.nzb", &n, NULL);
        bool fired = fault_fired();
        fault_disarm();
        TEST_ASSERT_TRUE(rc == (fired && n == NULL ? rc : 0));
        nzb_unref(n);
        if (!fired) {
            TEST_ASSERT_EQUAL(0, rc);
            TEST_ASSERT_TRUE(k > 5);
            break;
        }
    }
    mem_free(bytes);
}

/* ---- names ---- */

static const struct {
    const char *subject, *name;
    uint32_t parts;
} subjects[] = {
    {"Some Show [01/27] - \"some.show.r00\" yEnc (1/50)", "some.show.r00", 50},
    {"\"a.rar\" - \"real name.part1.rar\" yEnc (2/9)", "real name.part1.rar", 9},
    {"\"title without ending\" \"x.rar\" (1/3)", "x.rar", 3},
    {"\"x.rar\" \"title without ending\" (1/3)", "x.rar", 3},
    {"x.rar (1/3)", "x.rar", 3},
    {"[1/9] some.file.name.mkv yEnc (001/120)", "some.file.name.mkv", 120},
    {"Great post - the file.7z.001 - 1.2 GB - yEnc (1/7)", "the file.7z.001", 7},
    {"&quot;twice.rar&quot; yEnc (1/2)", "twice.rar", 2},
    {"\"..\\..\\evil.exe\" yEnc (1/1)", "evil.exe", 1},
    {"\"/etc/passwd\" yEnc (1/1)", "passwd", 1},
    {"(1/5) d41d8cd98f00b204e9800998ecf8427e", "d41d8cd98f00b204e9800998ecf8427e", 0},
    {"d41d8cd98f00b204e9800998ecf8427e (1/5)", "d41d8cd98f00b204e9800998ecf8427e", 5},
    {"[PRiVATE]-[x]-[dir/sub/file name.mkv]-[01/10] - \"\" yEnc 12345 (1/99)", "file name.mkv", 99},
    {"\"unbalanced.rar yEnc (1/4)", "unbalanced.rar", 4},
    {"yEnc (1/4)", "", 4},
    {"", "", 0},
    {"- - -", "", 0},
    {"[1/3] yEnc (1/4)", "", 4},
    {"\"a.rar\" yEnc (1/99999999999)", "a.rar", 0},
    {"\xe6\x97\xa5\xe6\x9c\xac.mkv (1/2)", "\xe6\x97\xa5\xe6\x9c\xac.mkv", 2},
};

/* The name in a subject is the one a reader would point at, as one harmless path component. */
static void test_subjects(void)
{
    char name[NZB_NAME_MAX + 1];
    uint32_t parts;
    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
        bool found = nzb_subject_name(subjects[i].subject, name, &parts);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(subjects[i].name, name, subjects[i].subject);
        TEST_ASSERT_EQUAL(subjects[i].name[0] != '\0', found);
        TEST_ASSERT_EQUAL_UINT32_MESSAGE(subjects[i].parts, parts, subjects[i].subject);
    }
}

/* PAR2 files are known by their names, with the blocks a volume brings; small helpers do not count for health. */
static void test_kinds(void)
{
    static const struct {
        const char *name;
        enum nzb_kind kind;
        uint32_t blocks;
    } rows[] = {
        {"x.par2", NZB_PAR2_MAIN, 0},
        {"x.PAR2", NZB_PAR2_MAIN, 0},
        {"x.vol0+1.par2", NZB_PAR2_VOLUME, 1},
        {"x.vol127+128.PAR2", NZB_PAR2_VOLUME, 128},
        {"x.vol00-03.par2", NZB_PAR2_VOLUME, 0},
        {"x.vol0_1.par2", NZB_PAR2_VOLUME, 0},
        {"x.vol1+99999999999.par2", NZB_PAR2_VOLUME, 0},
        {"volume.par2", NZB_PAR2_MAIN, 0},
        {".par2", NZB_DATA, 0},
        {"x.par2.rar", NZB_DATA, 0},
        {"x.rar", NZB_DATA, 0},
        {"x.nfo", NZB_EXTRA, 0},
        {"x.SFV", NZB_EXTRA, 0},
        {"nfo", NZB_DATA, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t blocks;
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].kind, nzb_name_kind(rows[i].name, &blocks), rows[i].name);
        TEST_ASSERT_EQUAL_UINT32_MESSAGE(rows[i].blocks, blocks, rows[i].name);
    }
}

/* The password in the name of an NZB is found, and is not part of the title. */
static void test_passwords_in_file_names(void)
{
    static const struct {
        const char *filename, *title, *password;
    } rows[] = {
        {"Some.Show.{{secret}}.nzb", "Some.Show", "secret"},
        {"Some Show {{a}b}}.nzb.gz", "Some Show", "a}b"},
        {"Some Show {{end}}}.nzb", "Some Show", "end}"},
        {"name password=pass word.nzb", "name", "pass word"},
        {"/some/dir/B7.nzb", "B7", ""},
        {"C:\\dir\\B7.NZB", "B7", ""},
        {"no ending", "no ending", ""},
        {"{{only}}.nzb", "", "only"},
        {"open {{ only.nzb", "open {{ only", ""},
        {"", "", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char title[NZB_NAME_MAX + 1], password[NZB_NAME_MAX + 1];
        nzb_split_filename(rows[i].filename, title, password);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(rows[i].title, title, rows[i].filename);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(rows[i].password, password, rows[i].filename);
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_shapes_give_files_and_names);
    RUN_TEST(test_segments_are_sorted_and_sorted_out);
    RUN_TEST(test_ids_are_taken_out_of_their_wrapping);
    RUN_TEST(test_poster_groups_and_date);
    RUN_TEST(test_content_key_ignores_order_and_wrapping);
    RUN_TEST(test_hostile_text_has_a_named_error);
    RUN_TEST(test_deep_nesting_is_refused);
    RUN_TEST(test_endless_attribute_is_refused);
    RUN_TEST(test_gzip_bombs_and_cut_streams_are_refused);
    RUN_TEST(test_every_cut_is_refused_and_every_split_is_the_same);
    RUN_TEST(test_missing_memory_is_an_error);
    RUN_TEST(test_subjects);
    RUN_TEST(test_kinds);
    RUN_TEST(test_passwords_in_file_names);
    return UNITY_END();
}
