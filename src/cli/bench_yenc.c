/* bench_yenc.c - `weir bench yenc`: every kernel, turn about in one process, on data that is always fresh.
 *
 * A decoder that gets the same article again and again looks a quarter faster than it is, because the branch predictor
 * learns the article: so every sample decodes bytes not seen for the last 64 MiB. Each round gives each subject one
 * sample; medians over the rounds are printed, and ratios, which are what can be compared between machines. A short
 * probe of the core's width before and after each sample tells whether a neighbour (another thread of the core, another
 * guest) was in the way; such samples are left out as long as enough others remain. "hot" is data in the cache, as behind a TLS record just decrypted; "cold" is data in memory only. Cycles are those of the core
 * clock, which is measured in every round by a chain of operations that wait for each other. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#    include <immintrin.h>
#endif

#include "base/crc32.h"
#include "base/crc32_kernel.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/bench.h"
#include "yenc/kernel.h"

enum { POOL = 64 << 20, BATCH = 128 << 10, SUBJECTS_MAX = 32, ROUNDS_MAX = 20000 };
enum what { COPY, DECODE, DECODE_CRC, CRC, ENCODE, WHATS };
static const char *const what_names[WHATS] = {"memcpy", "decode", "decode+crc", "crc", "encode"};

/* The interface of rapidyenc, as its header documents it. */
struct reference {
    void *handle;
    int (*decode)(const void **src, void **dst, size_t n, int *state);
    uint32_t (*crc)(const void *p, size_t n, uint32_t crc);
    int decode_kernel, crc_kernel;
};

struct samples {
    double *ns;    /* per byte, one per round; sorted at the end */
    double *probe; /* ns, the longer of those around the sample */
    size_t n;
};

struct subject {
    enum what what;
    char name[40];
    const struct yenc_kernel *yenc;
    const struct crc32_kernel *crc;
    const struct reference *ref;
    struct samples hot, cold;
};

struct bench {
    uint64_t seconds, chunk, line;
    bool lf, json;
    const char *ref_path;
    struct reference ref;
    struct subject subjects[SUBJECTS_MAX];
    size_t n_subjects, rounds;
    double *ghz;
    uint8_t *raw, *pool, *src, *dst;
    size_t pool_len, at;
    double best_probe;
    size_t quiet_permille;
    bool out_of_memory;
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Each exclusive-or waits for the one before: one cycle each. (Chains of additions of a constant do not do: some CPUs
 * fold them.) */
static double core_ghz(void)
{
    enum { STEPS = 20000 };
    uint64_t x = 1, y = 0;
    __asm__ volatile("" : "+r"(y));
    double from = now_ns();
    for (int i = 0; i < STEPS; i += 4) {
        for (int k = 0; k < 4; k++) {
            x ^= y;
            __asm__ volatile("" : "+r"(x));
        }
    }
    return STEPS / (now_ns() - from);
}

/* Four chains side by side: what else runs on this core takes its share of them. */
static double probe_ns(void)
{
    enum { STEPS = 800 };
    uint64_t a = 1, b = 2, c = 3, d = 4, y = 0;
    __asm__ volatile("" : "+r"(y));
    double from = now_ns();
    for (int i = 0; i < STEPS; i++) {
        a ^= y, b ^= y, c ^= y, d ^= y;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
        a ^= y, b ^= y, c ^= y, d ^= y;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    }
    return now_ns() - from;
}

/* ---- subjects ---- */

static const char *ref_kernel_name(int k)
{
    static const struct {
        int value;
        const char *name;
    } names[] = {{0, "generic"},     {0x100, "sse2"},  {0x200, "ssse3"},  {0x381, "avx"},
                 {0x403, "avx2"},    {0x603, "vbmi2"}, {0x1000, "neon"},  {0x340, "pclmul"},
                 {0x440, "vpclmul"}, {8, "armcrc"},    {0x48, "armpmull"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].value == k) {
            return names[i].name;
        }
    }
    return "?";
}

static bool samples_init(struct samples *s)
{
    s->ns = mem_zalloc(ROUNDS_MAX, sizeof(double));
    s->probe = mem_zalloc(ROUNDS_MAX, sizeof(double));
    return s->ns != NULL && s->probe != NULL;
}

static void samples_close(struct samples *s)
{
    mem_free(s->ns);
    mem_free(s->probe);
}

static struct subject *add(struct bench *b, enum what what, const char *name)
{
    if (b->n_subjects == SUBJECTS_MAX) {
        return NULL;
    }
    struct subject *s = &b->subjects[b->n_subjects];
    *s = (struct subject){.what = what};
    b->n_subjects++;
    snprintf(s->name, sizeof(s->name), "%s", name);
    bool good = samples_init(&s->hot);
    good = samples_init(&s->cold) && good;
    b->out_of_memory = b->out_of_memory || !good;
    return s;
}

/* The one that decoding would use: the best, or the one that CRC32_KERNEL names. */
static const struct crc32_kernel *chosen_crc(void)
{
    const struct crc32_kernel *k = crc32_kernels();
    while (strcmp(k->name, crc32_kernel_name()) != 0) {
        k++;
    }
    return k;
}

static void add_reference(struct bench *b, enum what what)
{
    struct subject *s = b->ref.handle != NULL ? add(b, what, "") : NULL;
    if (s != NULL) {
        s->ref = &b->ref;
        snprintf(s->name, sizeof(s->name), "ref %s%s%s",
                 what != CRC ? ref_kernel_name(b->ref.decode_kernel) : "",
                 what == DECODE_CRC ? "+" : "",
                 what != DECODE ? ref_kernel_name(b->ref.crc_kernel) : "");
    }
}

static void add_subjects(struct bench *b)
{
    add(b, COPY, "memcpy");
    for (int what = DECODE; what <= DECODE_CRC; what++) {
        add_reference(b, (enum what)what);
        for (const struct yenc_kernel *k = yenc_kernels(); k->name != NULL; k++) {
            struct subject *s = yenc_kernel_runs(k) ? add(b, (enum what)what, k->name) : NULL;
            if (s != NULL) {
                s->yenc = k;
                s->crc = chosen_crc();
            }
        }
    }
    add_reference(b, CRC);
    for (const struct crc32_kernel *k = crc32_kernels(); k->name != NULL; k++) {
        struct subject *s = crc32_kernel_runs(k) ? add(b, CRC, k->name) : NULL;
        if (s != NULL) {
            s->crc = k;
        }
    }
    size_t (*last)(const uint8_t *, size_t, unsigned, uint8_t *) = NULL;
    for (const struct yenc_kernel *k = yenc_kernels(); k->name != NULL; k++) {
        bool same = k->encode == last; /* kernels share encoders: the last name of each */
        struct subject *s = NULL;
        if (yenc_kernel_runs(k)) {
            s = same ? &b->subjects[b->n_subjects - 1] : add(b, ENCODE, k->name);
        }
        if (s != NULL) {
            snprintf(s->name, sizeof(s->name), "%s", k->name);
            s->yenc = k;
            last = k->encode;
        }
    }
}

static int load_reference(struct cli_args *a, struct bench *b)
{
    b->ref.handle = dlopen(b->ref_path, RTLD_NOW | RTLD_LOCAL);
    if (b->ref.handle == NULL) {
        return cli_failed(a, "%s", dlerror());
    }
    static const char *const names[] = {"rapidyenc_decode_init",        "rapidyenc_crc_init",
                                        "rapidyenc_decode_kernel",      "rapidyenc_crc_kernel",
                                        "rapidyenc_decode_incremental", "rapidyenc_crc"};
    void *found[6];
    for (size_t i = 0; i < 6; i++) {
        found[i] = dlsym(b->ref.handle, names[i]);
        if (found[i] == NULL) {
            return cli_failed(a, "%s: no %s", b->ref_path, names[i]);
        }
    }
    void (*init)(void);
    int (*kernel)(void);
    memcpy(&init, &found[0], sizeof(init));
    init();
    memcpy(&init, &found[1], sizeof(init));
    init();
    memcpy(&kernel, &found[2], sizeof(kernel));
    b->ref.decode_kernel = kernel();
    memcpy(&kernel, &found[3], sizeof(kernel));
    b->ref.crc_kernel = kernel();
    memcpy(&b->ref.decode, &found[4], sizeof(b->ref.decode));
    memcpy(&b->ref.crc, &found[5], sizeof(b->ref.crc));
    return CLI_OK;
}

/* ---- data ---- */

/* Random bytes, encoded with lines as wished: 0 for none, `lf` without CRs. */
static int make_pool(struct cli_args *a, struct bench *b)
{
    unsigned line = b->line > 0 ? (unsigned)b->line : YENC_LINE_MAX;
    b->raw = mem_alloc(POOL);
    b->pool = mem_alloc(yenc_encode_max(POOL, line));
    b->src = mem_aligned(4096, BATCH);
    b->dst = mem_aligned(4096, 2 * BATCH + 4096);
    b->ghz = mem_zalloc(ROUNDS_MAX, sizeof(double));
    if (b->raw == NULL || b->pool == NULL || b->src == NULL || b->dst == NULL || b->ghz == NULL) {
        return cli_failed(a, "out of memory");
    }
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < POOL; i += 8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        uint64_t v = x * 0x2545F4914F6CDD1Du;
        memcpy(b->raw + i, &v, 8);
    }
    size_t n = yenc_encode(b->raw, POOL, line, b->pool);
    if (b->lf || b->line == 0) {
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
            if (b->pool[i] != '\r' && (b->line > 0 || b->pool[i] != '\n')) {
                b->pool[kept++] = b->pool[i];
            }
        }
        n = kept;
    }
    b->pool_len = n;
    return CLI_OK;
}

static void flush(const uint8_t *p, size_t n)
{
#if defined(__x86_64__)
    for (size_t i = 0; i < n; i += 64) {
        _mm_clflush(p + i);
    }
    _mm_mfence();
#else
    (void)p, (void)n; /* the pool is larger than most caches */
#endif
}

/* ---- measuring ---- */

static volatile uint32_t sink;

/* One chunk; returns the bytes that count: encoded ones. */
static size_t run_chunk(const struct subject *s, const uint8_t *src, size_t n, unsigned line,
                        uint8_t *dst)
{
    size_t made = 0;
    switch (s->what) {
    case COPY:
        memcpy(dst, src, n);
        __asm__ volatile("" : : "r"(dst) : "memory");
        return n;
    case CRC:
        sink = s->ref != NULL ? s->ref->crc(src, n, 0) : s->crc->update(0, src, n);
        return n;
    case ENCODE:
        return s->yenc->encode(src, n, line, dst);
    default:
        break;
    }
    if (s->ref != NULL) {
        const void *from = src;
        void *to = dst;
        int state = 0;
        s->ref->decode(&from, &to, n, &state);
        made = (size_t)((uint8_t *)to - dst);
    } else {
        struct yenc_raw r = {src, src + n, dst, YENC_AT_LINE, false};
        yenc_decode_with(s->yenc, &r);
        made = (size_t)(r.dst - dst);
    }
    if (s->what == DECODE_CRC) {
        sink = s->ref != NULL ? s->ref->crc(dst, made, 0) : s->crc->update(0, dst, made);
    }
    return n;
}

static void sample(struct bench *b, const struct subject *s, bool cold, struct samples *to)
{
    if (b->at + BATCH > b->pool_len || b->at + BATCH > POOL) {
        b->at = b->rounds * 64 % 4096;
    }
    const uint8_t *base = s->what == ENCODE ? b->raw : b->pool, *fresh = base + b->at;
    b->at += BATCH;
    if (cold) {
        flush(fresh, BATCH);
        flush(b->dst, 2 * BATCH);
    } else {
        /* Code and tables are warm, too, but from other bytes than those that are measured. */
        run_chunk(s, base + POOL - b->at, BATCH / 4, YENC_LINE_USUAL, b->dst);
        memcpy(b->src, fresh, BATCH);
        fresh = b->src;
    }
    size_t bytes = 0, batch = strcmp(s->name, "scalar") == 0 ? BATCH / 8 : BATCH; /* no waiting */
    batch = batch > b->chunk ? batch : b->chunk;
    unsigned line = b->line > 0 ? (unsigned)b->line : YENC_LINE_MAX;
    double before = probe_ns(), from = now_ns();
    for (size_t i = 0; i + b->chunk <= batch; i += b->chunk) {
        uint8_t *dst = cold && s->what != ENCODE ? b->dst + i : b->dst;
        bytes += run_chunk(s, fresh + i, b->chunk, line, dst);
    }
    to->ns[to->n] = (now_ns() - from) / (double)bytes;
    double after = probe_ns();
    to->probe[to->n++] = before > after ? before : after;
    double shorter = before < after ? before : after;
    b->best_probe = b->best_probe == 0 || shorter < b->best_probe ? shorter : b->best_probe;
}

/* First all hot samples, then all cold ones: flushing would cool the next one's tables, too. */
static void measure(struct bench *b)
{
    double half = (double)b->seconds * 1e9 / 2, stop = now_ns() + half;
    for (; b->rounds < ROUNDS_MAX && (now_ns() < stop || b->rounds < 3); b->rounds++) {
        b->ghz[b->rounds] = core_ghz();
        for (size_t i = 0; i < b->n_subjects; i++) {
            sample(b, &b->subjects[i], false, &b->subjects[i].hot);
        }
    }
    stop = now_ns() + half;
    for (size_t round = 0; round < ROUNDS_MAX && (now_ns() < stop || round < 3); round++) {
        for (size_t i = 0; i < b->n_subjects; i++) {
            sample(b, &b->subjects[i], true, &b->subjects[i].cold);
        }
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static size_t count_quiet(const struct samples *s, double limit)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        n += s->probe[i] <= limit;
    }
    return n;
}

/* Keeps the quiet samples, and sorts. */
static void settle(struct samples *s, double limit)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->probe[i] <= limit) {
            s->ns[kept++] = s->ns[i];
        }
    }
    s->n = kept;
    qsort(s->ns, kept, sizeof(double), by_value);
}

/* A tenth of the samples, and five of each kind, must be quiet for the others to be left out. */
static void settle_all(struct bench *b)
{
    double limit = b->best_probe * 1.25;
    size_t quiet = 0, all = 0, fewest = SIZE_MAX;
    for (size_t i = 0; i < 2 * b->n_subjects; i++) {
        const struct subject *s = &b->subjects[i / 2];
        const struct samples *of = i % 2 ? &s->cold : &s->hot;
        size_t n = count_quiet(of, limit);
        quiet += n;
        all += of->n;
        fewest = n < fewest ? n : fewest;
    }
    b->quiet_permille = quiet * 1000 / all;
    if (b->quiet_permille < 100 || fewest < 5) {
        limit = 1e18;
    }
    for (size_t i = 0; i < b->n_subjects; i++) {
        settle(&b->subjects[i].hot, limit);
        settle(&b->subjects[i].cold, limit);
    }
    qsort(b->ghz, b->rounds, sizeof(double), by_value);
}

static double median(const struct samples *s)
{
    return s->ns[s->n / 2];
}

/* ---- the report ---- */

struct line {
    double hot_gbs, cold_gbs, best_gbs, cycles, by_scalar, by_ref, cold_by_ref;
};

static const struct subject *find(const struct bench *b, enum what what, bool ref)
{
    for (size_t i = 0; i < b->n_subjects; i++) {
        const struct subject *s = &b->subjects[i];
        if (s->what == what && (ref ? s->ref != NULL : strcmp(s->name, "scalar") == 0)) {
            return s;
        }
    }
    return NULL;
}

/* All samples are settled by now. */
static struct line line_of(const struct bench *b, const struct subject *s)
{
    const struct subject *scalar = find(b, s->what, false), *ref = find(b, s->what, true);
    double hot = median(&s->hot), cold = median(&s->cold);
    return (struct line){
        .hot_gbs = 1 / hot,
        .cold_gbs = 1 / cold,
        .best_gbs = 1 / s->hot.ns[0],
        .cycles = hot * b->ghz[b->rounds / 2],
        .by_scalar = scalar != NULL ? median(&scalar->hot) / hot : 0,
        .by_ref = ref != NULL ? median(&ref->hot) / hot : 0,
        .cold_by_ref = ref != NULL ? median(&ref->cold) / cold : 0,
    };
}

static void print_json(struct bench *b)
{
    struct jsonw j;
    jsonw_init_file(&j, stdout);
    jsonw_object(&j);
    jsonw_kuint(&j, "chunk_bytes", b->chunk);
    jsonw_kuint(&j, "line", b->line);
    jsonw_kbool(&j, "lf", b->lf);
    jsonw_kuint(&j, "rounds", b->rounds);
    jsonw_kuint(&j, "quiet_permille", b->quiet_permille);
    jsonw_kdouble(&j, "core_ghz", b->ghz[b->rounds / 2], 3);
    jsonw_kstr(&j, "ref", b->ref_path);
    jsonw_key(&j, "rows");
    jsonw_array(&j);
    for (size_t i = 0; i < b->n_subjects; i++) {
        struct line l = line_of(b, &b->subjects[i]);
        jsonw_object(&j);
        jsonw_kstr(&j, "what", what_names[b->subjects[i].what]);
        jsonw_kstr(&j, "kernel", b->subjects[i].name);
        jsonw_kdouble(&j, "hot_gbs", l.hot_gbs, 3);
        jsonw_kdouble(&j, "hot_best_gbs", l.best_gbs, 3);
        jsonw_kdouble(&j, "cycles_per_byte", l.cycles, 4);
        jsonw_kdouble(&j, "by_scalar", l.by_scalar, 3);
        jsonw_kdouble(&j, "by_ref", l.by_ref, 3);
        jsonw_kdouble(&j, "cold_gbs", l.cold_gbs, 3);
        jsonw_kdouble(&j, "cold_by_ref", l.cold_by_ref, 3);
        jsonw_end(&j);
    }
    jsonw_end(&j);
    jsonw_end(&j);
    jsonw_finish(&j);
    putchar('\n');
}

static void print_number(double v, int width, int decimals)
{
    if (v > 0) {
        printf("%*.*f", width, decimals, v);
    } else {
        printf("%*s", width, "-");
    }
}

static void print_table(struct bench *b)
{
    printf(
        "medians of %zu rounds (%zu %% of samples undisturbed%s), fresh data, core at %.2f GHz\n",
        b->rounds, b->quiet_permille / 10, b->quiet_permille < 100 ? ": too few, all count" : "",
        b->ghz[b->rounds / 2]);
    printf("chunks of %llu bytes, lines of %llu%s\n", (unsigned long long)b->chunk,
           (unsigned long long)b->line, b->lf ? " (LF)" : "");
    printf("%-11s %-18s %8s %9s %9s %7s | %8s %7s\n", "", "", "hot GB/s", "cycles/B", "x scalar",
           "x ref", "cold", "x ref");
    for (size_t i = 0; i < b->n_subjects; i++) {
        struct line l = line_of(b, &b->subjects[i]);
        printf("%-11s %-18s %8.2f %9.3f", what_names[b->subjects[i].what], b->subjects[i].name,
               l.hot_gbs, l.cycles);
        print_number(l.by_scalar, 10, 2);
        print_number(l.by_ref, 8, 2);
        printf(" | %8.2f", l.cold_gbs);
        print_number(l.cold_by_ref, 8, 2);
        putchar('\n');
    }
    if (b->ref_path == NULL) {
        puts("No reference: give the path of a rapidyenc shared library with --ref.");
    }
}

enum { OPT_REF, OPT_SECONDS, OPT_CHUNK, OPT_LINE, OPT_LF, OPT_JSON };

static const struct cli_option options[] = {
    [OPT_REF] = {"ref", "LIB.so", "a rapidyenc library to measure beside ours", 'r'},
    [OPT_SECONDS] = {"seconds", "N", "how long (4)", 't'},
    [OPT_CHUNK] = {"chunk", "BYTES", "bytes per call, 64 to 64K (16K, a TLS record)", 'c'},
    [OPT_LINE] = {"line", "N", "characters per line (128); 0: no line ends at all", 'l'},
    [OPT_LF] = {"lf", NULL, "lines end with LF alone", 0},
    [OPT_JSON] = {"json", NULL, "as JSON", 0},
    {NULL, NULL, NULL, 0},
};

static int parse(struct cli_args *a, struct bench *b)
{
    for (int got; (got = cli_next(a)) != CLI_END;) {
        bool good = true;
        switch (got) {
        case OPT_REF:
            b->ref_path = a->value;
            break;
        case OPT_SECONDS:
            good = cli_number(a, 1, 3600, &b->seconds);
            break;
        case OPT_CHUNK:
            good = cli_size(a, 64, 64 << 10, &b->chunk);
            break;
        case OPT_LINE:
            if (strcmp(a->value, "0") == 0) {
                b->line = 0;
            } else {
                good = cli_number(a, YENC_LINE_MIN, YENC_LINE_MAX, &b->line);
            }
            break;
        case OPT_LF:
            b->lf = true;
            break;
        case OPT_JSON:
            b->json = true;
            break;
        case CLI_ARG:
            return cli_usage_error(a, "no argument is expected, but '%s' is there", a->value);
        default:
            good = false;
        }
        if (!good) {
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

static int run(struct cli_args *a)
{
    struct bench b = {.seconds = 4, .chunk = 16 * 1024, .line = YENC_LINE_USUAL};
    int rc = parse(a, &b);
    if (rc == CLI_OK && b.ref_path != NULL) {
        rc = load_reference(a, &b);
    }
    if (rc == CLI_OK) {
        rc = make_pool(a, &b);
    }
    if (rc == CLI_OK) {
        if (isatty(STDERR_FILENO)) {
            fprintf(stderr, "measuring for %llu s ...\n", (unsigned long long)b.seconds);
        }
        add_subjects(&b);
        rc = b.out_of_memory ? cli_failed(a, "out of memory") : CLI_OK;
    }
    if (rc == CLI_OK) {
        measure(&b);
        settle_all(&b);
        (b.json ? print_json : print_table)(&b);
    }
    for (size_t i = 0; i < b.n_subjects; i++) {
        samples_close(&b.subjects[i].hot);
        samples_close(&b.subjects[i].cold);
    }
    mem_free(b.raw);
    mem_free(b.pool);
    mem_free(b.src);
    mem_free(b.dst);
    mem_free(b.ghz);
    return rc;
}

const struct cli_command bench_yenc = {
    .name = "yenc",
    .summary = "yEnc and CRC-32: every kernel, and a reference beside them",
    .about = "  Decodes fresh data with every kernel this CPU runs, turn about, and prints "
             "medians: encoded GB/s, core\n"
             "  cycles per byte, ratios to the scalar kernel and to the reference. memcpy is the "
             "limit.\n",
    .example = "  taskset -c 1 weir bench yenc --ref ./librapidyenc.so\n",
    .options = options,
    .run = run,
};
