/* regression_driver.c - runs a fuzz target over a corpus without libFuzzer, so that ctest replays every
 * input that ever broke it, in every build. Each corpus file is then mutated a fixed number of times from a
 * fixed seed (TEST_SEED overrides it).   usage: fuzz_X [DIR_OR_FILE...] */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 20, MUTATIONS = 300 };

static uint64_t seed = 1;
static size_t runs;

static uint64_t next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x2545F4914F6CDD1Dull;
}

/* Each run gets a heap block of exactly its size, so that a sanitizer sees one byte too many. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (exact == NULL) {
        abort();
    }
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    runs++;
}

static void run_mutations(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 16);
    for (int i = 0; copy != NULL && i < MUTATIONS; i++) {
        memcpy(copy, data, size);
        size_t len = size;
        for (uint64_t edits = next() % 4 + 1; edits > 0; edits--) {
            size_t at = len > 0 ? next() % len : 0;
            switch (next() % 4) {
            case 0:
                copy[at] = (uint8_t)next();
                break;
            case 1:
                len = at;
                break;
            case 2:
                memmove(copy + at, copy + at + (len > at), len - at - (len > at));
                len -= len > at;
                break;
            default:
                if (len < size + 16) {
                    memmove(copy + at + 1, copy + at, len - at);
                    copy[at] = (uint8_t) "\r\n.=y\0\xff/<"[next() % 9];
                    len++;
                }
            }
        }
        run(copy, len);
    }
    free(copy);
}

static void run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = malloc(INPUT_MAX);
    if (f == NULL || data == NULL) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    size_t size = fread(data, 1, INPUT_MAX, f);
    fclose(f);
    run(data, size);
    run_mutations(data, size);
    free(data);
}

static void run_path(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        fprintf(stderr, "no such corpus: %s\n", path);
        exit(1);
    }
    if (!S_ISDIR(st.st_mode)) {
        run_file(path);
        return;
    }
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char file[4096];
        snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            run_path(file);
        }
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    const char *text = getenv("TEST_SEED");
    seed = text != NULL ? strtoull(text, NULL, 10) | 1 : 1;
    run((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        run_path(argv[i]);
    }
    printf("%zu inputs, TEST_SEED=%llu\n", runs, text != NULL ? strtoull(text, NULL, 10) : 1ull);
    return 0;
}
