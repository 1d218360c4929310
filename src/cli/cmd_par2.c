/* cmd_par2.c - weir par2 verify|repair: par2cmdline's options, words and exit codes around src/par2.
 *
 * What other programs read from par2's output ("Repair is required.", "Target: ... - damaged. Found 3 of 4 data
 * blocks.") is said in the same words. --json says all of it once, at the end. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "par2/par2.h"

enum par2_exit {
    P_OK = 0,
    P_POSSIBLE = 1,     /* repair is needed and possible */
    P_NOT_POSSIBLE = 2, /* too few recovery blocks */
    P_USAGE = 3,
    P_NO_DATA = 4, /* packets that are needed are lacking or make no sense */
    P_FAILED = 5,  /* repaired, and still wrong */
    P_IO = 6,
    P_LOGIC = 7,
    P_MEMORY = 8,
};

enum { SILENT, QUIET, NORMAL, NOISY, DEBUG };

struct list {
    char **items;
    size_t count;
};

struct run {
    struct cli_args *args;
    bool repair, json, purge, threads_given;
    int noise;
    char par[PATH_MAX];  /* the main PAR2 file */
    char base[PATH_MAX]; /* where the data is; "" beside the PAR2 file */
    struct list names;   /* further files */
    struct list pars;    /* PAR2 files that -p removes */
    struct par2_options options;
    uint64_t shown_permille;
    struct par2_catalog *catalog;
    struct par2_set *set;
    int par_dir, base_dir;
    char par_path[PATH_MAX], base_path[PATH_MAX]; /* real */
};

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
    (void)sig;
    interrupted = 1;
}

static bool add(struct list *l, const char *s)
{
    char **more = mem_realloc(l->items, l->count + 1, sizeof(*more));
    if (more == NULL) {
        return false;
    }
    l->items = more;
    l->items[l->count] = mem_strdup(s);
    return l->items[l->count++] != NULL;
}

static void list_free_all(struct list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        mem_free(l->items[i]);
    }
    mem_free(l->items);
}

static void say(const struct run *r, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void say(const struct run *r, int level, const char *fmt, ...)
{
    if (r->noise < level || r->json) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
}

static int fail(const struct run *r, int code, const struct err *e)
{
    fflush(stdout);
    cli_failed(r->args, "%s", e->msg);
    return code;
}

static int exit_of(int code)
{
    switch (code) {
    case -ENOMEM:
        return P_MEMORY;
    case ERR_FULL:
        return P_NOT_POSSIBLE;
    case ERR_CORRUPT:
        return P_FAILED;
    case ERR_NOT_FOUND:
    case ERR_TRUNCATED:
    case ERR_LIMIT:
    case ERR_INVALID:
        return P_NO_DATA;
    default:
        return P_IO;
    }
}

/* ---- progress ---- */

static bool on_progress(void *arg, const struct par2_progress *p)
{
    static const char *const words[] = {
        [PAR2_VERIFYING] = "Verifying",
        [PAR2_SCANNING] = "Scanning",
        [PAR2_CHECKING_RECOVERY] = "Checking volumes",
        [PAR2_COPYING] = "Copying",
        [PAR2_REPAIRING] = "Repairing",
    };
    struct run *r = arg;
    uint64_t permille = p->total > 0 ? p->done * 1000 / p->total : 1000;
    permille = permille < 1000 ? permille : 1000;
    if (r->noise > QUIET && !r->json && isatty(STDERR_FILENO) && permille != r->shown_permille) {
        enum { WIDTH = 30 };
        char bar[WIDTH + 1];
        for (unsigned i = 0; i < WIDTH; i++) {
            bar[i] = i < permille * WIDTH / 1000 ? '#' : '.';
        }
        bar[WIDTH] = '\0';
        r->shown_permille = permille;
        fprintf(stderr, "\r%-17s [%s] %5.1f%%%s", words[p->phase], bar, (double)permille / 10,
                permille == 1000 ? "\r\033[K" : "");
    }
    return interrupted != 0;
}

/* ---- files ---- */

static bool is_par2(const char *name)
{
    size_t n = strlen(name);
    return n >= 5 && strcasecmp(name + n - 5, ".par2") == 0;
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The PAR2 file that a name means: itself, or the data file's own. */
static bool find_par(struct run *r, const char *name)
{
    if (is_par2(name) && exists(name)) {
        return snprintf(r->par, sizeof(r->par), "%s", name) < (int)sizeof(r->par);
    }
    static const char *const tails[] = {".par2", ".PAR2", ""};
    for (size_t i = 0; i < 3 && !is_par2(name); i++) {
        int n = snprintf(r->par, sizeof(r->par), "%s%s", name, tails[i]);
        if (n < (int)sizeof(r->par) && exists(r->par)) {
            return true;
        }
    }
    return false;
}

/* The directory of `path`, opened, its real path, and the name in it. */
static int open_dir_of(const char *path, char real[PATH_MAX], const char **name)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    *name = slash != NULL ? slash + 1 : path;
    snprintf(dir, sizeof(dir), "%.*s", slash != NULL ? (int)(slash + 1 - path) : 2,
             slash != NULL ? path : "./");
    if (realpath(dir, real) == NULL) {
        return -errno;
    }
    int fd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : -errno;
}

/* `path` as seen from the base directory; NULL: it is not below it. */
static const char *below_base(const struct run *r, const char *path, char out[PATH_MAX])
{
    char real[PATH_MAX];
    const char *name;
    int fd = open_dir_of(path, real, &name);
    if (fd < 0) {
        return NULL;
    }
    close(fd);
    size_t n = strlen(r->base_path);
    n -= n > 0 && r->base_path[n - 1] == '/'; /* the root */
    if (strncmp(real, r->base_path, n) != 0 || (real[n] != '/' && real[n] != '\0')) {
        return NULL;
    }
    const char *rest = real + n + (real[n] == '/');
    snprintf(out, PATH_MAX, "%s%s%s", rest, rest[0] != '\0' ? "/" : "", name);
    return out;
}

static int load(struct run *r, const char *name)
{
    struct par2_found found;
    struct err e = {0};
    int rv = par2_catalog_add(r->catalog, r->par_dir, name, &found, &e);
    if (rv < 0) {
        say(r, NORMAL, "Could not load \"%s\": %s\n", name, e.msg);
        return rv == -ENOMEM ? rv : 0;
    }
    say(r, QUIET, "Loading \"%s\".\n", name);
    if (found.packets == 0) {
        say(r, NORMAL, "No new packets found\n");
    } else {
        say(r, NORMAL, "Loaded %" PRIu32 " packets including %" PRIu32 " recovery blocks\n",
            found.packets, found.recovery);
    }
    if (found.damaged > 0) {
        say(r, NORMAL, "%" PRIu32 " packets are damaged%s\n", found.damaged,
            found.given_up ? "; gave up on this file" : "");
    }
    return 0;
}

/* "x.par2", "x.vol3+4.par2" -> "x": what the other files of the set begin with. */
static void stem_of(const char *name, char out[NAME_MAX + 1])
{
    snprintf(out, NAME_MAX + 1, "%s", name);
    if (is_par2(out)) {
        out[strlen(out) - 5] = '\0';
    }
    char *dot = strrchr(out, '.');
    if (dot != NULL && strncasecmp(dot, ".vol", 4) == 0 && isdigit((unsigned char)dot[4]) &&
        dot[4 + strspn(dot + 4, "0123456789+-")] == '\0') {
        *dot = '\0';
    }
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The main file, then "stem.*.par2" beside it. */
static int load_all(struct run *r, const char *name)
{
    char stem[NAME_MAX + 1];
    stem_of(name, stem);
    size_t n = strlen(stem);
    int rv = load(r, name);
    if (rv == 0 && !add(&r->pars, name)) {
        rv = -ENOMEM;
    }
    struct dirent **all = NULL;
    int count = rv == 0 ? scandir(r->par_path, &all, NULL, by_name) : 0;
    for (int i = 0; i < count; i++) {
        const char *other = all[i]->d_name;
        bool ours = is_par2(other) && strcmp(other, name) != 0 &&
                    (n == 0 || (strncmp(other, stem, n) == 0 && other[n] == '.'));
        if (ours && rv == 0) {
            rv = load(r, other);
            rv = rv == 0 && !add(&r->pars, other) ? -ENOMEM : rv;
        }
        free(all[i]);
    }
    free(all);
    return rv;
}

/* PAR2 files among the further names; they may be anywhere. */
static int load_named(struct run *r)
{
    int rv = 0;
    for (size_t i = 0; i < r->names.count && rv == 0; i++) {
        char real[PATH_MAX];
        const char *name;
        if (!is_par2(r->names.items[i])) {
            continue;
        }
        int fd = open_dir_of(r->names.items[i], real, &name);
        if (fd >= 0 && strcmp(real, r->par_path) == 0) {
            close(fd);
            rv = load(r, name);
        } else if (fd >= 0) { /* stays open as long as we run: the catalog reads from it */
            int own = r->par_dir;
            r->par_dir = fd;
            rv = load(r, name);
            r->par_dir = own;
        }
    }
    return rv;
}

static int add_extras(struct run *r, struct err *e)
{
    for (size_t i = 0; i < r->names.count; i++) {
        char below[PATH_MAX];
        const char *path = r->names.items[i];
        struct stat st;
        if (is_par2(path)) {
            continue;
        }
        if (stat(path, &st) != 0) {
            say(r, QUIET, "Ignoring non-existent source file: %s\n", path);
        } else if (!S_ISREG(st.st_mode)) {
            continue;
        } else if (below_base(r, path, below) == NULL) {
            say(r, QUIET, "Ignoring out of basepath source file: %s\n", path);
        } else {
            int rv = par2_add_extra(r->set, below, e);
            if (rv < 0) {
                return rv;
            }
        }
    }
    return 0;
}

/* ---- saying what was found ---- */

static void print_set(const struct run *r)
{
    struct par2_info i = par2_set_info(r->set);
    size_t recoverable = 0;
    for (size_t n = 0; n < i.files; n++) {
        recoverable += par2_set_file(r->set, n).recoverable;
    }
    say(r, NORMAL, "\nThere are %zu recoverable files and %zu other files.\n", recoverable,
        i.files - recoverable);
    say(r, NORMAL, "The block size used was %" PRIu64 " bytes.\n", i.block_size);
    say(r, NORMAL, "There are a total of %" PRIu32 " data blocks.\n", i.blocks);
    say(r, NORMAL, "The total size of the data files is %" PRIu64 " bytes.\n", i.data_bytes);
    if (i.creator[0] != '\0') {
        say(r, NOISY, "Created by: %s\n", i.creator);
    }
    if (i.comment[0] != '\0') {
        say(r, NOISY, "Comment: %s\n", i.comment);
    }
    say(r, NORMAL, "\nVerifying source files:\n\n");
}

static void print_files(const struct run *r)
{
    size_t files = par2_set_info(r->set).files;
    for (size_t n = 0; n < files; n++) {
        struct par2_file f = par2_set_file(r->set, n);
        if (f.error != NULL) {
            say(r, QUIET, "Target: \"%s\" - refused: %s.\n", f.name, f.error);
        } else if (f.state == PAR2_COMPLETE) {
            say(r, NORMAL, "Target: \"%s\" - found.\n", f.name);
        } else if (f.state == PAR2_RENAMED) {
            say(r, QUIET, "File: \"%s\" - is a match for \"%s\".\n", f.found_as, f.name);
        } else if (f.state == PAR2_DAMAGED) {
            say(r, QUIET,
                "Target: \"%s\" - damaged. Found %" PRIu32 " of %" PRIu32 " data blocks.\n", f.name,
                f.found, f.blocks);
        } else if (f.found > 0) {
            say(r, QUIET,
                "Target: \"%s\" - missing. Found %" PRIu32 " of %" PRIu32
                " data blocks elsewhere.\n",
                f.name, f.found, f.blocks);
        } else {
            say(r, QUIET, "Target: \"%s\" - missing.\n", f.name);
        }
    }
}

static void print_verdict(const struct run *r, struct par2_status st)
{
    uint32_t blocks = par2_set_info(r->set).blocks;
    if (st.whole) {
        say(r, QUIET, "\nAll files are correct, repair is not required.\n");
        return;
    }
    say(r, QUIET, "\nRepair is required.\n");
    if (st.renamed > 0) {
        say(r, NORMAL, "%zu file(s) have the wrong name.\n", st.renamed);
    }
    if (st.missing > 0) {
        say(r, NORMAL, "%zu file(s) are missing.\n", st.missing);
    }
    if (st.damaged > 0) {
        say(r, NORMAL, "%zu file(s) exist but are damaged.\n", st.damaged);
    }
    if (st.complete > 0) {
        say(r, NORMAL, "%zu file(s) are ok.\n", st.complete);
    }
    say(r, NORMAL, "You have %" PRIu32 " out of %" PRIu32 " data blocks available.\n",
        st.blocks_found, blocks);
    if (st.recovery > 0) {
        say(r, NORMAL, "You have %" PRIu32 " recovery blocks available.\n", st.recovery);
    }
    if (st.recovery_lacking > 0) {
        say(r, QUIET,
            "Repair is not possible.\nYou need %" PRIu32
            " more recovery blocks to be able to repair.\n",
            st.recovery_lacking);
        return;
    }
    say(r, QUIET, "Repair is possible.\n");
    if (st.recovery > st.blocks_missing) {
        say(r, NORMAL, "You have an excess of %" PRIu32 " recovery blocks.\n",
            st.recovery - st.blocks_missing);
    }
    if (st.blocks_missing > 0) {
        say(r, NORMAL, "%" PRIu32 " recovery blocks will be used to repair.\n", st.blocks_missing);
    } else if (st.recovery > 0) {
        say(r, NORMAL, "None of the recovery blocks will be used for the repair.\n");
    }
}

static void json_files(struct jsonw *j, const struct run *r)
{
    static const char *const words[] = {
        [PAR2_UNKNOWN] = "unknown", [PAR2_COMPLETE] = "complete", [PAR2_RENAMED] = "renamed",
        [PAR2_DAMAGED] = "damaged", [PAR2_MISSING] = "missing",
    };
    jsonw_key(j, "files");
    jsonw_array(j);
    for (size_t n = 0; n < par2_set_info(r->set).files; n++) {
        struct par2_file f = par2_set_file(r->set, n);
        jsonw_object(j);
        jsonw_kstr(j, "name", f.name);
        jsonw_kuint(j, "size", f.size);
        jsonw_kstr(j, "state", words[f.state]);
        jsonw_kuint(j, "blocks", f.blocks);
        jsonw_kuint(j, "blocks_found", f.found);
        if (f.found_as != NULL) {
            jsonw_kstr(j, "found_as", f.found_as);
        }
        if (f.error != NULL) {
            jsonw_kstr(j, "error", f.error);
        }
        jsonw_kbool(j, "recoverable", f.recoverable);
        jsonw_end(j);
    }
    jsonw_end(j);
}

/* The whole answer; `st` is what verifying found. */
static void print_json(const struct run *r, struct par2_status st, bool repaired, int code)
{
    struct jsonw j;
    struct par2_info i = par2_set_info(r->set);
    jsonw_init_file(&j, stdout);
    jsonw_object(&j);
    jsonw_kstr(&j, "set", r->par);
    jsonw_kuint(&j, "block_size", i.block_size);
    jsonw_kuint(&j, "blocks", i.blocks);
    jsonw_kuint(&j, "data_bytes", i.data_bytes);
    jsonw_kstr(&j, "creator", i.creator);
    jsonw_kstr(&j, "comment", i.comment);
    jsonw_kbool(&j, "whole", st.whole);
    jsonw_kbool(&j, "repaired", repaired);
    jsonw_kuint(&j, "blocks_found", st.blocks_found);
    jsonw_kuint(&j, "blocks_missing", st.blocks_missing);
    jsonw_kuint(&j, "recovery_blocks", st.recovery);
    jsonw_kuint(&j, "recovery_lacking", st.recovery_lacking);
    json_files(&j, r);
    jsonw_key(&j, "volumes");
    jsonw_array(&j);
    for (size_t n = 0; n < par2_catalog_volumes(r->catalog); n++) {
        struct par2_volume v = par2_catalog_volume(r->catalog, 0, n);
        jsonw_object(&j);
        jsonw_kstr(&j, "name", v.path);
        jsonw_kuint(&j, "recovery_blocks", v.blocks);
        jsonw_end(&j);
    }
    jsonw_end(&j);
    jsonw_key(&j, "backups");
    jsonw_array(&j);
    for (size_t n = 0; par2_backup(r->set, n) != NULL; n++) {
        jsonw_str(&j, par2_backup(r->set, n));
    }
    jsonw_end(&j);
    jsonw_kint(&j, "exit", code);
    jsonw_end(&j);
    jsonw_finish(&j);
    putchar('\n');
}

/* ---- the work ---- */

static void purge(const struct run *r)
{
    for (size_t n = 0; par2_backup(r->set, n) != NULL; n++) {
        say(r, QUIET, "Remove \"%s\".\n", par2_backup(r->set, n));
        unlinkat(r->base_dir, par2_backup(r->set, n), 0);
    }
    for (size_t i = 0; i < r->pars.count; i++) {
        say(r, QUIET, "Remove \"%s\".\n", r->pars.items[i]);
        unlinkat(r->par_dir, r->pars.items[i], 0);
    }
}

static int work(struct run *r)
{
    struct err e = {0};
    const char *name;
    r->par_dir = open_dir_of(r->par, r->par_path, &name);
    char base[PATH_MAX];
    snprintf(base, sizeof(base), "%s/", r->base[0] != '\0' ? r->base : r->par_path);
    const char *nothing;
    r->base_dir = open_dir_of(base, r->base_path, &nothing);
    if (r->par_dir < 0 || r->base_dir < 0) {
        err_sys(&e, r->par_dir < 0 ? r->par_dir : r->base_dir, "%s",
                r->par_dir < 0 ? r->par : base);
        return fail(r, P_IO, &e);
    }
    r->catalog = par2_catalog_new(&fsx_kernel);
    int rv = r->catalog != NULL ? load_all(r, name) : -ENOMEM;
    rv = rv == 0 ? load_named(r) : rv;
    if (rv < 0) {
        err_sys(&e, rv, "%s", r->par);
        return fail(r, P_MEMORY, &e);
    }
    if (par2_catalog_sets(r->catalog) == 0) {
        err_set(&e, ERR_NOT_FOUND, "%s: no PAR2 packets found", r->par);
        return fail(r, P_NO_DATA, &e);
    }
    rv = par2_set_new(&r->set, r->catalog, 0, r->base_dir, PAR2_NAMES_AS_WRITTEN, &e);
    rv = rv == 0 ? add_extras(r, &e) : rv;
    if (rv < 0) {
        return fail(r, exit_of(rv), &e);
    }
    print_set(r);
    fflush(stdout);
    rv = par2_verify(r->set, &r->options, &e);
    if (rv < 0) {
        return fail(r, exit_of(rv), &e);
    }
    struct par2_status st = par2_status(r->set);
    print_files(r);
    print_verdict(r, st);
    fflush(stdout);
    int code = st.whole ? P_OK : st.recovery_lacking > 0 ? P_NOT_POSSIBLE : P_POSSIBLE;
    bool repaired = false;
    if (r->repair && code == P_POSSIBLE) {
        rv = par2_repair(r->set, &r->options, &e);
        code = rv == 0 ? P_OK : fail(r, exit_of(rv), &e);
        repaired = rv == 0;
        say(r, QUIET, "%s", repaired ? "\nRepair complete.\n" : "");
    }
    if (r->json) {
        print_json(r, st, repaired, code);
    }
    if (r->purge && code == P_OK) {
        purge(r);
    }
    return code;
}

/* ---- the command line ---- */

enum {
    O_JSON,
    O_QUIET,
    O_VERBOSE,
    O_BASE,
    O_NAME,
    O_THREADS,
    O_FILES,
    O_MEMORY,
    O_PURGE,
    O_RENAME,
    O_SKIP,
    O_LEAWAY
};

static const struct cli_option options[] = {
    [O_JSON] = {"json", NULL, "print one JSON object", 0},
    [O_QUIET] = {"quiet", NULL, "say less; twice: nothing", 'q'},
    [O_VERBOSE] = {"verbose", NULL, "say more", 'v'},
    [O_BASE] = {"basepath", "DIR", "where the data files are (default: beside the PAR2 file)", 'B'},
    [O_NAME] = {"archive", "FILE", "the main PAR2 file", 'a'},
    [O_THREADS] = {"threads", "N", "threads (default: one per CPU)", 't'},
    [O_FILES] = {NULL, "N", "the same, where -t is not given", 'T'},
    [O_MEMORY] = {"memory", "MB",
                  "memory to use for repair (default: an eighth of all, at least 256)", 'm'},
    [O_PURGE] = {"purge", NULL, "remove backup and PAR2 files when all is well", 'p'},
    [O_RENAME] = {"rename-only", NULL, "only look for files under other names", 'O'},
    [O_SKIP] = {"skip-data", NULL, "look for displaced data only near where it should be", 'N'},
    [O_LEAWAY] = {"leaway", "N", "with -N: so many bytes on both sides (default 64)", 'S'},
    {NULL, NULL, NULL, 0},
};

static bool read_list(struct run *r, const char *path)
{
    FILE *f = path[0] != '\0' ? fopen(path, "r") : stdin;
    char line[PATH_MAX];
    bool ok = f != NULL;
    while (ok && fgets(line, sizeof(line), f) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        ok = line[strspn(line, " \t")] == '\0' || add(&r->names, line);
    }
    if (f != NULL && f != stdin) {
        fclose(f);
    }
    return ok;
}

static int argument(struct run *r, const char *value)
{
    if (value[0] == '@') {
        return read_list(r, value + 1)
                   ? 0
                   : (cli_usage_error(r->args, "%s can not be read", value + 1), P_USAGE);
    }
    if (r->par[0] != '\0') {
        return add(&r->names, value) ? 0 : P_MEMORY;
    }
    if (!find_par(r, value)) {
        r->par[0] = '\0';
        cli_usage_error(r->args, "there is no PAR2 file '%s'", value);
        return P_USAGE;
    }
    return 0;
}

static int option(struct run *r, int o)
{
    struct cli_args *a = r->args;
    uint64_t n = 0;
    switch (o) {
    case O_JSON:
        r->json = true;
        return 0;
    case O_QUIET:
    case O_VERBOSE:
        if ((o == O_QUIET && r->noise > NORMAL) || (o == O_VERBOSE && r->noise < NORMAL)) {
            cli_usage_error(a, "-q and -v exclude each other");
            return P_USAGE;
        }
        r->noise += o == O_QUIET ? -(r->noise > SILENT) : r->noise < DEBUG;
        return 0;
    case O_BASE:
        return snprintf(r->base, sizeof(r->base), "%s", a->value) < PATH_MAX ? 0 : P_USAGE;
    case O_NAME:
        return argument(r, a->value);
    case O_THREADS:
    case O_FILES:
        if (!cli_number(a, 1, 256, &n)) {
            return P_USAGE;
        }
        if (o == O_THREADS ||
            !r->threads_given) { /* all work is shared by the same threads: -t counts */
            r->options.threads = (unsigned)n;
        }
        r->threads_given = r->threads_given || o == O_THREADS;
        return 0;
    case O_MEMORY:
        if (!cli_number(a, 1, 1 << 24, &n)) {
            return P_USAGE;
        }
        r->options.memory_bytes = n << 20;
        return 0;
    case O_PURGE:
        r->purge = true;
        return 0;
    case O_RENAME:
        r->options.rename_only = true;
        return 0;
    case O_SKIP:
        r->options.skip_data = true;
        return 0;
    default:
        return cli_number(a, 1, UINT32_MAX, &r->options.skip_leaway) ? 0 : P_USAGE;
    }
}

static int parse(struct run *r)
{
    for (int o; (o = cli_next(r->args)) != CLI_END;) {
        int code = o == CLI_BAD   ? P_USAGE
                   : o == CLI_ARG ? argument(r, r->args->value)
                                  : option(r, o);
        if (code != 0) {
            return code;
        }
    }
    if (r->par[0] == '\0') {
        cli_usage_error(r->args, "which PAR2 file?");
        return P_USAGE;
    }
    if (r->options.skip_leaway != 0 && !r->options.skip_data) {
        cli_usage_error(r->args, "-S goes with -N only");
        return P_USAGE;
    }
    r->options.skip_leaway = r->options.skip_leaway != 0 ? r->options.skip_leaway : 64;
    if (r->options.memory_bytes == 0) {
        uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        r->options.memory_bytes = all / 8 > 256 << 20 ? all / 8 : 256 << 20;
    }
    return 0;
}

static int run_par2(struct cli_args *a, bool repair)
{
    struct run r = {.args = a, .repair = repair, .noise = NORMAL, .par_dir = -1, .base_dir = -1};
    struct rlimit files;
    r.options.progress = on_progress;
    r.options.arg = &r;
    r.options.follow_links = true;
    mode_t mask = umask(0);
    umask(mask);
    r.options.file_mode = 0666 & ~mask;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* a repair holds every file that it rebuilds */
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    int code = parse(&r);
    code = code == 0 ? work(&r) : code;
    par2_set_free(r.set);
    par2_catalog_free(r.catalog);
    list_free_all(&r.names);
    list_free_all(&r.pars);
    if (r.par_dir >= 0) {
        close(r.par_dir);
    }
    if (r.base_dir >= 0) {
        close(r.base_dir);
    }
    return code;
}

static int run_verify(struct cli_args *a)
{
    return run_par2(a, false);
}

static int run_repair(struct cli_args *a)
{
    return run_par2(a, true);
}

#define ABOUT                                                                                      \
    "FILE is a PAR2 file, or a data file that has one beside it; other volumes of the set are\n"   \
    "found by their names. Further files may be PAR2 volumes or hold data under any name; @LIST\n" \
    "names a file with such names. Exit codes are those of par2: 0 all is well, 1 repair is\n"     \
    "possible, 2 it is not, 3 wrong command line, 4 packets are lacking, 5 the result was "        \
    "wrong,\n"                                                                                     \
    "6 a file could not be read or written, 8 out of memory.\n"
#define ROW(id, word, what, fn)                                                             \
    static const struct cli_command id = {.name = word,                                     \
                                          .summary = what,                                  \
                                          .args = "FILE [FILE...]",                         \
                                          .about = ABOUT,                                   \
                                          .example = "  weir par2 " word " movie.par2 *\n", \
                                          .options = options,                               \
                                          .usage_exit = P_USAGE,                            \
                                          .run = fn}

ROW(par2_verify_row, "verify", "say what is damaged, missing or misnamed", run_verify);
ROW(par2_repair_row, "repair", "make damaged, missing and misnamed files whole", run_repair);
ROW(par2_v_row, "v", "short for verify", run_verify);
ROW(par2_r_row, "r", "short for repair", run_repair);

static const struct cli_command *const rows[] = {&par2_verify_row, &par2_repair_row, &par2_v_row,
                                                 &par2_r_row, NULL};

const struct cli_command cmd_par2 = {
    .name = "par2",
    .summary = "verify and repair files with PAR2 recovery data",
    .about = "Takes the options of par2cmdline; also works through links named par2, par2verify, "
             "par2repair.\n",
    .example = "  weir par2 verify movie.par2\n  weir par2 repair -t2 -m512 movie.par2 *\n",
    .subs = rows,
    .usage_exit = P_USAGE,
};
