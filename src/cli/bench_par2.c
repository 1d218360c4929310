/* bench_par2.c - `weir bench par2`: hashes and field arithmetic by kernel, and whole runs on a set made for it.
 *
 * Kernels take turns in one process; best and median of the rounds, and the ratio to scalar. Whole runs are processes
 * of their own, this binary and any par2 program given by path turn about, on copies of one set in TMPDIR; CPU seconds
 * (user + system, of the process) are what counts, as the wall belongs to the disk. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/crc32.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/bench.h"
#include "par2/gf16.h"
#include "par2/md5.h"

enum { ROUNDS_MAX = 99, PIECE = 16 << 10, FILES = 8 };

struct bench {
    struct cli_args *args;
    uint64_t rounds, size, blocks, threads;
    const char *other;
    bool json;
    struct jsonw j;
    char dir[256];
};

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), by_value);
    return v[n / 2];
}

static void report(struct bench *b, const char *what, const char *name, double value,
                   const char *unit, double ratio, const char *to)
{
    if (b->json) {
        jsonw_object(&b->j);
        jsonw_kstr(&b->j, "what", what);
        jsonw_kstr(&b->j, "subject", name);
        jsonw_kdouble(&b->j, unit, value, 3);
        jsonw_kdouble(&b->j, "ratio", ratio, 3);
        jsonw_kstr(&b->j, "to", to);
        jsonw_end(&b->j);
    } else {
        printf("%-18s %-10s %8.2f %-6s %8.3f x %s\n", what, name, value, unit, ratio, to);
        fflush(stdout);
    }
}

/* ---- kernels ---- */

static double time_md5(const struct md5_kernel *k, uint8_t *data)
{
    const uint8_t *p[MD5_LANES_MAX];
    struct md5_lanes m;
    md5_lanes_init(&m);
    for (unsigned l = 0; l < k->lanes; l++) {
        p[l] = data + l * (size_t)(PIECE + 192);
    }
    size_t done = 0;
    double from = cpu_now(), to;
    do {
        k->update(&m, p, k->lanes, PIECE / MD5_BLOCK);
        done += (size_t)k->lanes * PIECE;
        to = cpu_now();
    } while (to - from < 0.01);
    return (double)done / (to - from) / 1e9;
}

static double time_gf16(const struct gf16_kernel *k, uint8_t *acc, uint8_t *in,
                        const struct gf16_coef *coef, size_t outs)
{
    size_t done = 0;
    double from = cpu_now(), to;
    do {
        k->muladd(acc, in, coef, outs, k->batch, k->strip / k->unit);
        done += outs * k->batch * k->strip;
        to = cpu_now();
    } while (to - from < 0.01);
    return (double)done / (to - from) / 1e9;
}

static int bench_kernels(struct bench *b)
{
    enum { OUTS = 100, KERNELS = 16 };
    static double md5[KERNELS][ROUNDS_MAX], gf[KERNELS][ROUNDS_MAX];
    uint8_t *data = mem_aligned(64, 4 << 20), *acc = mem_aligned(64, OUTS * 4096);
    struct gf16_coef *coef = mem_alloc(OUTS * GF16_BATCH_MAX * sizeof(*coef));
    if (data == NULL || acc == NULL || coef == NULL) {
        return cli_failed(b->args, "out of memory");
    }
    gf16_init();
    memset(data, 0x5a, 4 << 20);
    memset(acc, 0, OUTS * 4096);
    for (size_t i = 0; i < OUTS * GF16_BATCH_MAX; i++) {
        coef[i] = gf16_coef((uint16_t)(i * 40503u));
    }
    for (uint64_t r = 0; r < b->rounds; r++) {
        for (size_t i = 0; md5_kernels[i].name != NULL; i++) {
            md5[i][r] =
                (md5_kernels[i].needs & ~cpu_features()) == 0 ? time_md5(&md5_kernels[i], data) : 0;
        }
        for (size_t i = 0; gf16_kernels[i] != NULL; i++) {
            bool runs = (gf16_kernels[i]->needs & ~cpu_features()) == 0;
            gf[i][r] = runs ? time_gf16(gf16_kernels[i], acc, data, coef, OUTS) : 0;
        }
    }
    size_t last_md5 = 0, last_gf = 0;
    while (md5_kernels[last_md5 + 1].name != NULL) {
        last_md5++;
    }
    while (gf16_kernels[last_gf + 1] != NULL) {
        last_gf++;
    }
    double scalar = median(md5[last_md5], b->rounds);
    for (size_t i = 0; i <= last_md5; i++) {
        double v = median(md5[i], b->rounds);
        if (v > 0) {
            report(b, "md5", md5_kernels[i].name, v, "GB/s", v / scalar, "scalar");
        }
    }
    scalar = median(gf[last_gf], b->rounds);
    for (size_t i = 0; i <= last_gf; i++) {
        double v = median(gf[i], b->rounds);
        if (v > 0) {
            report(b, "gf16 multiply-add", gf16_kernels[i]->name, v, "GB/s", v / scalar, "scalar");
        }
    }
    mem_free(data);
    mem_free(acc);
    mem_free(coef);
    return CLI_OK;
}

/* ---- a set: FILES files of random bytes, recovery blocks for a tenth ---- */

struct maker {
    uint64_t block_size, file_size;
    size_t blocks, per_file, recovery;
    uint8_t *data; /* all files, one behind the other, each in whole blocks */
    uint8_t ids[FILES][16], set_id[16];
    FILE *out;
};

static void put(uint8_t *p, uint64_t v, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        p[i] = (uint8_t)(v >> (8 * i));
    }
}

static void put_packet(struct maker *m, const char *type, const uint8_t *body, size_t n)
{
    uint8_t head[64] = "PAR2\0PKT";
    struct md5 h;
    put(head + 8, 64 + n, 8);
    memcpy(head + 32, m->set_id, 16);
    memcpy(head + 48, "PAR 2.0", 7);
    memcpy(head + 56, type, strlen(type));
    md5_init(&h);
    md5_update(&h, head + 32, 32);
    md5_update(&h, body, n);
    md5_final(&h, head + 16);
    fwrite(head, 1, sizeof(head), m->out);
    fwrite(body, 1, n, m->out);
}

static size_t description(const struct maker *m, unsigned file, uint8_t body[64])
{
    const uint8_t *p = m->data + file * m->file_size;
    memset(body, 0, 64);
    md5_of(p, m->file_size, body + 16);
    md5_of(p, m->file_size < 16384 ? m->file_size : 16384, body + 32);
    put(body + 48, m->file_size, 8);
    snprintf((char *)body + 56, 8, "f%u.bin", file);
    md5_of(body + 32, 24 + strlen((char *)body + 56), body);
    return 64;
}

/* Ids in the order that the main packet wants; file n is then the n-th of them. */
static int by_id(const void *a, const void *b)
{
    const uint8_t *x = a, *y = b;
    int i = 15;
    while (i > 0 && x[i] == y[i]) {
        i--;
    }
    return (int)x[i] - (int)y[i];
}

static void put_index(struct maker *m, uint8_t (*bodies)[64])
{
    uint8_t body[12 + 16 * FILES];
    put(body, m->block_size, 8);
    put(body + 8, FILES, 4);
    for (unsigned i = 0; i < FILES; i++) {
        memcpy(body + 12 + 16 * i, bodies[i], 16);
    }
    md5_of(body, sizeof(body), m->set_id);
    put_packet(m, "Main", body, sizeof(body));
    uint8_t *sums = mem_alloc(16 + 20 * m->per_file);
    for (unsigned i = 0; i < FILES && sums != NULL; i++) {
        unsigned file = (unsigned)(bodies[i][57] - '0');
        put_packet(m, "FileDesc", bodies[i], 64);
        memcpy(sums, bodies[i], 16);
        for (size_t k = 0; k < m->per_file; k++) {
            const uint8_t *p = m->data + file * m->file_size + k * m->block_size;
            md5_of(p, m->block_size, sums + 16 + 20 * k);
            put(sums + 32 + 20 * k, crc32_update(0, p, m->block_size), 4);
        }
        put_packet(m, "IFSC", sums, 16 + 20 * m->per_file);
    }
    mem_free(sums);
}

/* Recovery blocks e..e+n: the same kernels as repair, with plain powers as factors. */
static bool put_recovery(struct maker *m, uint8_t (*bodies)[64], size_t first, size_t n)
{
    const struct gf16_kernel *k = gf16_best();
    size_t units = m->block_size / k->unit;
    uint8_t *acc = mem_aligned(64, n * m->block_size), *in = mem_aligned(64, units * k->in_bytes);
    uint8_t *body = mem_alloc(4 + m->block_size);
    struct gf16_coef coef[64];
    if (acc == NULL || in == NULL || body == NULL) {
        return false;
    }
    memset(acc, 0, n * m->block_size);
    uint16_t log = 0;
    for (size_t i = 0; i < m->blocks; i++) {
        do {
            log++;
        } while (log % 3 == 0 || log % 5 == 0 || log % 17 == 0 || log % 257 == 0);
        unsigned file = (unsigned)(bodies[i / m->per_file][57] - '0');
        k->pack(in, k->in_bytes, m->data + file * m->file_size + i % m->per_file * m->block_size,
                units);
        for (size_t e = 0; e < n; e++) {
            coef[e] = gf16_coef(gf16_pow(gf16_exp[log], (uint32_t)(first + e)));
        }
        k->muladd(acc, in, coef, n, 1, units);
    }
    for (size_t e = 0; e < n; e++) {
        put(body, first + e, 4);
        k->unpack(body + 4, acc + e * k->unit, n * k->unit, units);
        put_packet(m, "RecvSlic", body, 4 + m->block_size);
    }
    mem_free(acc);
    mem_free(in);
    mem_free(body);
    return true;
}

static bool write_file(const char *path, const uint8_t *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    bool ok = f != NULL && fwrite(p, 1, n, f) == n;
    return f != NULL && fclose(f) == 0 && ok;
}

static bool make_set(struct bench *b, struct maker *m)
{
    char path[512];
    uint8_t bodies[FILES][64];
    uint64_t seed = 88172645463325252u;
    m->per_file = (size_t)(b->blocks / FILES > 0 ? b->blocks / FILES : 1);
    m->blocks = m->per_file * FILES;
    m->block_size = (b->size / m->blocks + GF16_UNIT_MAX - 1) / GF16_UNIT_MAX * GF16_UNIT_MAX;
    m->file_size = m->per_file * m->block_size;
    m->recovery = m->blocks / 9 + 1;
    m->data = mem_alloc((size_t)(FILES * m->file_size));
    bool ok = m->data != NULL;
    for (size_t i = 0; ok && i < FILES * m->file_size; i += 8) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        memcpy(m->data + i, &seed, 8);
    }
    for (unsigned i = 0; ok && i < FILES; i++) {
        description(m, i, bodies[i]);
        snprintf(path, sizeof(path), "%s/f%u.bin", b->dir, i);
        ok = write_file(path, m->data + i * m->file_size, (size_t)m->file_size);
    }
    if (ok) {
        qsort(bodies, FILES, sizeof(bodies[0]), by_id);
        snprintf(path, sizeof(path), "%s/s.par2", b->dir);
        m->out = fopen(path, "wb");
        ok = m->out != NULL;
    }
    if (ok) {
        put_index(m, bodies);
        for (size_t e = 0; e < m->recovery && ok; e += 32) {
            ok = put_recovery(m, bodies, e, m->recovery - e < 32 ? m->recovery - e : 32);
        }
        ok = fclose(m->out) == 0 && ok;
    }
    return ok;
}

/* One byte in so many blocks, spread evenly, is wrong. */
static bool damage(struct bench *b, const struct maker *m, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t block = i * m->blocks / count;
        char path[512];
        snprintf(path, sizeof(path), "%s/f%zu.bin", b->dir, block / m->per_file);
        int fd = open(path, O_WRONLY);
        uint8_t wrong = (uint8_t)~m->data[block * m->block_size];
        bool ok =
            fd >= 0 && pwrite(fd, &wrong, 1, (off_t)(block % m->per_file * m->block_size)) == 1;
        if (fd >= 0) {
            close(fd);
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* Repair kept the damaged files as f0.bin.1: they go back. */
static void restore(struct bench *b)
{
    for (unsigned i = 0; i < FILES; i++) {
        char path[512], aside[520];
        snprintf(path, sizeof(path), "%s/f%u.bin", b->dir, i);
        snprintf(aside, sizeof(aside), "%s.1", path);
        rename(aside, path); /* only where there is one */
    }
}

/* CPU seconds of one run; negative: it did not exit as expected. */
static double run(struct bench *b, const char *program, bool ours, const char *op, int expected)
{
    char threads[16], set[512];
    snprintf(threads, sizeof(threads), "-t%u", (unsigned)b->threads);
    snprintf(set, sizeof(set), "%s/s.par2", b->dir);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (ours) {
            execl(program, "weir", "par2", op, threads, "-q", "-q", set, (char *)NULL);
        } else {
            execl(program, "par2", op, threads, "-q", "-q", set, (char *)NULL);
        }
        _exit(127);
    }
    int status = 0;
    struct rusage u;
    if (pid < 0 || wait4(pid, &status, 0, &u) < 0 || !WIFEXITED(status) ||
        WEXITSTATUS(status) != expected) {
        return -1;
    }
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static int turn_about(struct bench *b, const char *what, const char *op, int expected, bool repair)
{
    double ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
    for (uint64_t r = 0; r < b->rounds; r++) {
        ours[r] = run(b, "/proc/self/exe", true, op, expected);
        if (repair) {
            restore(b);
        }
        theirs[r] = b->other != NULL ? run(b, b->other, false, op, expected) : 0;
        if (repair) {
            restore(b);
        }
        if (ours[r] < 0 || theirs[r] < 0) {
            return cli_failed(b->args, "%s: %s did not exit with %d", what,
                              ours[r] < 0 ? "weir" : b->other, expected);
        }
    }
    double a = median(ours, b->rounds), o = median(theirs, b->rounds);
    report(b, what, "weir", a, "cpu s", o > 0 ? a / o : 1, o > 0 ? b->other : "itself");
    if (o > 0) {
        report(b, what, "other", o, "cpu s", 1, b->other);
    }
    return CLI_OK;
}

static int bench_set(struct bench *b)
{
    struct maker m = {.block_size = 0};
    const char *tmp = getenv("TMPDIR");
    snprintf(b->dir, sizeof(b->dir), "%s/weir-bench.XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(b->dir) == NULL) {
        return cli_failed(b->args, "%s: %s", b->dir, strerror(errno));
    }
    int rv =
        make_set(b, &m) ? CLI_OK : cli_failed(b->args, "%s: the set could not be written", b->dir);
    rv = rv == CLI_OK ? turn_about(b, "verify", "v", 0, false) : rv;
    static const unsigned percents[] = {1, 5, 10};
    for (size_t i = 0; i < 3 && rv == CLI_OK; i++) {
        char what[32];
        snprintf(what, sizeof(what), "repair %u%%", percents[i]);
        size_t count = m.blocks * percents[i] / 100;
        for (unsigned f = 0; f < FILES && rv == CLI_OK;
             f++) { /* whole again, then this much damage */
            char path[512];
            snprintf(path, sizeof(path), "%s/f%u.bin", b->dir, f);
            rv = write_file(path, m.data + f * m.file_size, (size_t)m.file_size) ? CLI_OK
                                                                                 : CLI_FAILED;
        }
        rv = rv == CLI_OK && damage(b, &m, count > 0 ? count : 1) ? CLI_OK : CLI_FAILED;
        rv = rv == CLI_OK ? turn_about(b, what, "r", 0, true) : rv;
    }
    for (unsigned i = 0; i <= FILES; i++) {
        char path[512];
        snprintf(path, sizeof(path), i < FILES ? "%s/f%u.bin" : "%s/s.par2", b->dir, i);
        unlink(path);
    }
    rmdir(b->dir);
    mem_free(m.data);
    return rv;
}

/* ---- the command line ---- */

enum { O_JSON, O_ROUNDS, O_SIZE, O_BLOCKS, O_THREADS, O_PAR2 };

static const struct cli_option options[] = {
    [O_JSON] = {"json", NULL, "print one JSON object", 0},
    [O_ROUNDS] = {"rounds", "N", "samples of each (default 5)", 0},
    [O_SIZE] = {"size", "SIZE", "data of the set for whole runs (default 256M; 0: none)", 0},
    [O_BLOCKS] = {"blocks", "N", "blocks in it (default 1000)", 0},
    [O_THREADS] = {"threads", "N", "threads of a run (default 1)", 't'},
    [O_PAR2] = {"par2", "PROGRAM", "another par2 to run turn about", 0},
    {NULL, NULL, NULL, 0},
};

static int run_bench(struct cli_args *a)
{
    struct bench b = {.args = a, .rounds = 5, .size = 256 << 20, .blocks = 1000, .threads = 1};
    for (int o; (o = cli_next(a)) != CLI_END;) {
        bool ok = true;
        switch (o) {
        case O_JSON:
            b.json = true;
            break;
        case O_ROUNDS:
            ok = cli_number(a, 1, ROUNDS_MAX, &b.rounds);
            break;
        case O_SIZE:
            ok = cli_size(a, 0, 1ull << 36, &b.size);
            break;
        case O_BLOCKS:
            ok = cli_number(a, FILES, 32768, &b.blocks);
            break;
        case O_THREADS:
            ok = cli_number(a, 1, 256, &b.threads);
            break;
        case O_PAR2:
            b.other = a->value;
            break;
        default:
            return o == CLI_ARG ? cli_usage_error(a, "what is '%s'?", a->value) : CLI_USAGE;
        }
        if (!ok) {
            return CLI_USAGE;
        }
    }
    if (b.json) {
        jsonw_init_file(&b.j, stdout);
        jsonw_object(&b.j);
        jsonw_key(&b.j, "results");
        jsonw_array(&b.j);
    }
    int rv = bench_kernels(&b);
    if (b.size > 0 && rv == CLI_OK) {
        rv = bench_set(&b);
    }
    if (b.json) {
        jsonw_end(&b.j);
        jsonw_end(&b.j);
        jsonw_finish(&b.j);
        putchar('\n');
    }
    return rv;
}

const struct cli_command bench_par2 = {
    .name = "par2",
    .summary = "hash and field kernels, verify and repair",
    .about = "Kernels in GB/s per core and against scalar; then verify and repair of a set made in "
             "TMPDIR, in CPU\n"
             "seconds, turn about with another par2 program if one is named.\n",
    .example = "  weir bench par2 --par2 /usr/bin/par2 --size 1G --blocks 2000\n",
    .options = options,
    .run = run_bench,
};
