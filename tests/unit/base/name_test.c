/* Names from outside become one harmless component, whatever they are. */
#include "base/name.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fsx.h"
#include "base/utf8.h"
#include "lib/dir.h"
#include "lib/rng.h"
#include "unity.h"

void setUp(void) {}
void tearDown(void) {}

#define S(text) text, sizeof(text) - 1

static const char long_a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/* What each hostile or odd name becomes as a file's name, as a title and as a path. */
static const struct {
    const char *in;
    size_t len;
    const char *file;
    const char *title;
    const char *path;
} vectors[] = {
    {S("plain.rar"), "plain.rar", "plain.rar", "plain.rar"},
    {S("two words.part01.rar"), "two words.part01.rar", "two words.part01.rar",
     "two words.part01.rar"},
    {S("../x"), "x", "_._x", "x"},
    {S("..\\x"), "x", "_._x", "x"},
    {S("/abs"), "abs", "_abs", "abs"},
    {S("//server/share/f"), "f", "__server_share_f", "server/share/f"},
    {S("C:\\x"), "x", "C__x", "x"},
    {S("C:x"), "C_x", "C_x", "C_x"},
    {S("a/../../b"), "b", "a_.._.._b", "a/b"},
    {S("dir/file"), "file", "dir_file", "dir/file"},
    {S("dir/"), "dir", "dir_", "dir"},
    {S("."), "unnamed", "unnamed", "unnamed"},
    {S(".."), "unnamed", "unnamed", "unnamed"},
    {S("a/.."), "unnamed", "a_", "a"},
    {S(""), "unnamed", "unnamed", "unnamed"},
    {S("..."), "unnamed", "unnamed", "unnamed"},
    {S("   "), "unnamed", "unnamed", "unnamed"},
    {S(" . . "), "unnamed", "unnamed", "unnamed"},
    {S("/"), "unnamed", "_", "unnamed"},
    {S("name."), "name", "name", "name"},
    {S("name "), "name", "name", "name"},
    {S(" name"), "name", "name", "name"},
    {S("name . ."), "name", "name", "name"},
    {S("\xc2\xa0name\xe3\x80\x80"), "name", "name", "name"},
    {S("~"), "_", "_", "_"},
    {S("~root"), "_root", "_root", "_root"},
    {S("-rf"), "_rf", "_rf", "_rf"},
    {S("--checkpoint-action=exec"), "_-checkpoint-action=exec", "_-checkpoint-action=exec",
     "_-checkpoint-action=exec"},
    {S("@file"), "_file", "_file", "_file"},
    {S(".bashrc"), "_bashrc", "_bashrc", "_bashrc"},
    {S("a\0b"), "a_b", "a_b", "a_b"},
    {S("a\nb"), "a_b", "a_b", "a_b"},
    {S("a\r\nX: y"), "a__X_ y", "a__X_ y", "a__X_ y"},
    {S("\x1b[31mred"), "_[31mred", "_[31mred", "_[31mred"},
    {S("del\x7f"), "del_", "del_", "del_"},
    {S("a\xc2\x85"
       "b"),
     "a_b", "a_b", "a_b"},
    {S("gpj.\xe2\x80\xae"
       "exe"),
     "gpj._exe", "gpj._exe", "gpj._exe"},
    {S("a\xe2\x81\xa6"
       "b\xe2\x81\xa9"),
     "a_b_", "a_b_", "a_b_"},
    {S("a\xe2\x88\x95"
       "b"),
     "a_b", "a_b", "a_b"},
    {S("a\xef\xbc\x8f"
       "b"),
     "a_b", "a_b", "a_b"},
    {S("\xef\xbb\xbf"
       "bom"),
     "_bom", "_bom", "_bom"},
    {S("caf\xc3\xa9"), "caf\xc3\xa9", "caf\xc3\xa9", "caf\xc3\xa9"},
    {S("cafe\xcc\x81"), "cafe\xcc\x81", "cafe\xcc\x81", "cafe\xcc\x81"},
    {S("caf\xe9.rar"), "caf\xc3\xa9.rar", "caf\xc3\xa9.rar", "caf\xc3\xa9.rar"},
    {S("\x80uro"), "\xe2\x82\xacuro", "\xe2\x82\xacuro", "\xe2\x82\xacuro"},
    {S("\x81x"), "_x", "_x", "_x"},
    {S("cut \xf0\x9f\x98"), "cut \xc3\xb0\xc5\xb8\xcb\x9c", "cut \xc3\xb0\xc5\xb8\xcb\x9c",
     "cut \xc3\xb0\xc5\xb8\xcb\x9c"},
    {S("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
    {S("\xc0\xaf"), "\xc3\x80\xc2\xaf", "\xc3\x80\xc2\xaf", "\xc3\x80\xc2\xaf"},
    {S("\xed\xa0\x80"), "\xc3\xad\xc2\xa0\xe2\x82\xac", "\xc3\xad\xc2\xa0\xe2\x82\xac",
     "\xc3\xad\xc2\xa0\xe2\x82\xac"},
    {S("\xef\xbf\xbe"), "_", "_", "_"},
    {S("CON"), "_CON", "_CON", "_CON"},
    {S("con.txt"), "_con.txt", "_con.txt", "_con.txt"},
    {S("Com1.nfo"), "_Com1.nfo", "_Com1.nfo", "_Com1.nfo"},
    {S("nul .x"), "_nul .x", "_nul .x", "_nul .x"},
    {S("console"), "console", "console", "console"},
    {S("queue.json"), "_queue.json", "_queue.json", "_queue.json"},
    {S("WEIR.DB-wal"), "_WEIR.DB-wal", "_WEIR.DB-wal", "_WEIR.DB-wal"},
    {S("a<b>c:d\"e|f?g*h"), "a_b_c_d_e_f_g_h", "a_b_c_d_e_f_g_h", "a_b_c_d_e_f_g_h"},
    {S("it's & 100% $HOME `id` ;#"), "it's & 100% $HOME `id` ;#", "it's & 100% $HOME `id` ;#",
     "it's & 100% $HOME `id` ;#"},
    {S("AC/DC"), "DC", "AC_DC", "AC/DC"},
};

enum { VECTORS = sizeof(vectors) / sizeof(vectors[0]) };

/* What name.h promises of every cleaned name. */
static void assert_clean(const char *name, size_t len)
{
    TEST_ASSERT_EQUAL_UINT(strlen(name), len);
    TEST_ASSERT_TRUE(len >= 1 && len <= NAME_LEN_MAX);
    TEST_ASSERT_NULL(strpbrk(name, "/\\<>:\"|?*\n\r\t\x1b\x7f"));
    TEST_ASSERT_NULL(strchr(".-~@ ", name[0]));
    TEST_ASSERT_NULL(strchr(". ", name[len - 1]));
    for (size_t i = 0, n; i < len; i += n) {
        n = utf8_char_len(name + i, len - i);
        TEST_ASSERT_TRUE_MESSAGE(n > 0, name);
    }
    char again[NAME_LEN_MAX + 1];
    for (int kind = NAME_FILE; kind <= NAME_TITLE; kind++) {
        name_clean((enum name_kind)kind, name, len, again);
        TEST_ASSERT_EQUAL_STRING(name, again);
    }
}

/* Every vector, by every kind of source, becomes just what is written beside it. */
static void test_vectors_become_what_is_written_beside_them(void)
{
    TEST_ASSERT_TRUE(VECTORS >= 40);
    for (size_t i = 0; i < VECTORS; i++) {
        char out[NAME_LEN_MAX + 1], path[4096];
        size_t len = name_clean(NAME_FILE, vectors[i].in, vectors[i].len, out);
        TEST_ASSERT_EQUAL_STRING(vectors[i].file, out);
        assert_clean(out, len);
        len = name_clean(NAME_TITLE, vectors[i].in, vectors[i].len, out);
        TEST_ASSERT_EQUAL_STRING(vectors[i].title, out);
        assert_clean(out, len);
        TEST_ASSERT_TRUE(name_clean_path(vectors[i].in, vectors[i].len, path, sizeof(path)));
        TEST_ASSERT_EQUAL_STRING(vectors[i].path, path);
    }
}

/* A name that is too long loses its middle, never its extension, and never half a character. */
static void test_long_names_keep_their_extension(void)
{
    char in[1024], out[NAME_LEN_MAX + 1];
    snprintf(in, sizeof(in), "%s.part01.rar", long_a);
    size_t len = name_clean(NAME_FILE, in, strlen(in), out);
    TEST_ASSERT_EQUAL_UINT(NAME_LEN_MAX, len);
    TEST_ASSERT_EQUAL_STRING(".part01.rar", out + len - strlen(".part01.rar"));
    static const char *const tails[] = {".vol03+04.par2", ".7z.001", ".tar.gz", ".mkv"};
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        snprintf(in, sizeof(in), "%s.part.1%s", long_a, tails[i]);
        len = name_clean(NAME_FILE, in, strlen(in), out);
        TEST_ASSERT_EQUAL_STRING(tails[i], out + len - strlen(tails[i]));
    }
    for (size_t shift = 0; shift < 4;
         shift++) { /* the cut falls on each byte of a character once */
        memset(in, 'x', shift);
        for (size_t i = 0; i < 100; i++) {
            memcpy(in + shift + 4 * i, "\xf0\x9f\x98\x80", 4);
        }
        len = name_clean(NAME_FILE, in, shift + 400, out);
        TEST_ASSERT_TRUE(len > NAME_LEN_MAX - 4);
        assert_clean(out, len);
    }
}

/* Cutting may bring out a reserved word or a blank end: the guards come after it. */
static void test_cut_does_not_bring_out_a_reserved_word(void)
{
    char in[400], out[NAME_LEN_MAX + 1];
    memset(in, ' ', sizeof(in));
    memcpy(in, "con", 3);
    memcpy(in + sizeof(in) - 20, "abcdefghijklmnopqrst", 20);
    size_t len = name_clean(NAME_FILE, in, sizeof(in), out);
    TEST_ASSERT_EQUAL_STRING("_con", out);
    assert_clean(out, len);
}

/* Variants of a name keep its extension, the volume's number with it, and its length in bounds. */
static void test_numbered_names(void)
{
    static const struct {
        const char *in;
        unsigned n;
        const char *out;
    } rows[] = {
        {"x.rar", 1, "x.rar"},
        {"x.rar", 2, "x (2).rar"},
        {"x.part01.rar", 3, "x (3).part01.rar"},
        {"x.vol003+004.PAR2", 2, "x (2).vol003+004.PAR2"},
        {"a.b.mkv", 2, "a.b (2).mkv"},
        {"noext", 999, "noext (999)"},
        {"_part1.rar", 2, "_part1 (2).rar"},
    };
    char out[NAME_LEN_MAX + 1];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        name_numbered(rows[i].in, rows[i].n, out);
        TEST_ASSERT_EQUAL_STRING(rows[i].out, out);
    }
    char full[NAME_LEN_MAX + 1];
    snprintf(full, sizeof(full), "%.*s.rar", NAME_LEN_MAX - 4, long_a);
    name_numbered(full, 12, out);
    TEST_ASSERT_EQUAL_UINT(NAME_LEN_MAX, strlen(out));
    TEST_ASSERT_EQUAL_STRING("a (12).rar", out + NAME_LEN_MAX - 10);
}

/* A path has a bounded depth and length; over either it is refused, not cut to something else. */
static void test_paths_over_the_limits_are_refused(void)
{
    char in[4 * NAME_DEPTH_MAX + 8], out[64];
    size_t n = 0;
    for (int i = 0; i < NAME_DEPTH_MAX + 1; i++) {
        n += (size_t)snprintf(in + n, sizeof(in) - n, "a/");
    }
    char big[4096];
    TEST_ASSERT_FALSE(name_clean_path(in, n, big, sizeof(big)));
    TEST_ASSERT_EQUAL_STRING("", big);
    TEST_ASSERT_TRUE(name_clean_path(in, n - 2, big, sizeof(big)));
    TEST_ASSERT_FALSE(name_clean_path(long_a, sizeof(long_a) - 1, out, sizeof(out)));
}

/* Random bytes: whatever comes in, what name.h promises holds. */
static void test_random_bytes_keep_the_promises(void)
{
    struct rng r;
    rng_init(&r, rng_seed(1));
    for (int i = 0; i < 200000; i++) {
        static const char spice[] = "/\\. -~@:\xe2\x80\xae\xf0\xc3\xa9\0";
        char in[700];
        size_t len = rng_below(&r, i % 16 == 0 ? sizeof(in) : 40);
        for (size_t k = 0; k < len; k++) {
            in[k] = rng_below(&r, 3) == 0 ? spice[rng_below(&r, sizeof(spice))]
                                          : (char)rng_below(&r, 256);
        }
        char out[NAME_LEN_MAX + 1];
        size_t n = name_clean(rng_below(&r, 2) == 0 ? NAME_FILE : NAME_TITLE, in, len, out);
        assert_clean(out, n);
    }
}

/* Names that clean to one and the same, and twins by case, get files of their own: nothing is taken over, and
 * nothing appears outside the directory. */
static void test_equal_names_get_different_files(void)
{
    struct dir d;
    dir_make(&d);
    TEST_ASSERT_EQUAL_INT(0, mkdirat(d.fd, "job", 0700));
    int dirfd = openat(d.fd, "job", O_RDONLY | O_DIRECTORY);
    /* A link that leads out stands there already under a name that will be asked for. */
    TEST_ASSERT_EQUAL_INT(0, symlinkat("../outside", dirfd, "x"));
    int made_files = 0;
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < VECTORS; i++) {
            char out[NAME_LEN_MAX + 1], made[FSX_NAME_MAX + 1];
            name_clean(NAME_FILE, vectors[i].in, vectors[i].len, out);
            struct err e;
            int fd = fsx_create_unique(&fsx_kernel, dirfd, out, 0600, made, &e);
            TEST_ASSERT_TRUE_MESSAGE(fd >= 0, e.msg);
            struct stat st;
            TEST_ASSERT_EQUAL_INT(0, fstat(fd, &st));
            TEST_ASSERT_EQUAL_INT(1, st.st_nlink);
            TEST_ASSERT_EQUAL_INT(0, st.st_size);
            TEST_ASSERT_EQUAL_INT(1, write(fd, "x", 1));
            close(fd);
            made_files++;
        }
    }
    char inside[DIR_PATH_MAX + 8];
    snprintf(inside, sizeof(inside), "%s/job", d.path);
    TEST_ASSERT_EQUAL_INT(made_files + 1, dir_count(inside)); /* and the link */
    TEST_ASSERT_EQUAL_INT(1, dir_count(d.path));              /* nothing beside "job" */
    close(dirfd);
    dir_remove(&d);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_vectors_become_what_is_written_beside_them);
    RUN_TEST(test_long_names_keep_their_extension);
    RUN_TEST(test_cut_does_not_bring_out_a_reserved_word);
    RUN_TEST(test_numbered_names);
    RUN_TEST(test_paths_over_the_limits_are_refused);
    RUN_TEST(test_random_bytes_keep_the_promises);
    RUN_TEST(test_equal_names_get_different_files);
    return UNITY_END();
}
