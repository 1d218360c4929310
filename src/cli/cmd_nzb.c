/* cmd_nzb.c - `weir nzb show`: what is in an NZB, as Weir reads it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "queue/nzb.h"

enum { OPT_JSON };

/* Feeds the file (or standard input) to the parser as it is read. */
static int parse_stream(struct cli_args *a, FILE *f, const char *name, struct nzb **out)
{
    enum { CHUNK = 64 << 10 };
    const char *slash = strrchr(name, '/');
    struct nzb_parser *p = nzb_parser_new(strcmp(name, "-") == 0 ? NULL
                                          : slash != NULL        ? slash + 1
                                                                 : name);
    char *chunk = mem_alloc(CHUNK);
    struct err e = {0};
    if (p == NULL || chunk == NULL) {
        nzb_parser_free(p);
        mem_free(chunk);
        return cli_failed(a, "out of memory");
    }
    int rc = 0;
    size_t n;
    while (rc == 0 && (n = fread(chunk, 1, CHUNK, f)) > 0) {
        rc = nzb_parser_feed(p, chunk, n, &e);
    }
    mem_free(chunk);
    if (rc == 0 && ferror(f)) {
        rc = err_sys(&e, -errno, "read");
    }
    if (rc != 0) {
        nzb_parser_free(p);
    } else {
        rc = nzb_parser_finish(p, out, &e);
    }
    return rc == 0 ? CLI_OK : cli_failed(a, "%s: %s", name, e.msg);
}

/* ---- output ---- */

static void print_json(const struct nzb *n)
{
    struct jsonw j;
    char key[NZB_KEY_BYTES * 2 + 1];
    for (size_t i = 0; i < NZB_KEY_BYTES; i++) {
        snprintf(key + i * 2, 3, "%02x", n->key[i]);
    }
    jsonw_init_file(&j, stdout);
    jsonw_object(&j);
    jsonw_kstr(&j, "title", n->title);
    jsonw_kstr(&j, "password", n->password);
    jsonw_kstr(&j, "category", n->category);
    jsonw_kstr(&j, "tag", n->tag);
    jsonw_kstr(&j, "key", key);
    jsonw_kuint(&j, "bytes", n->total_bytes);
    jsonw_kuint(&j, "articles", n->article_count);
    jsonw_kuint(&j, "bad_segments", n->bad_segments);
    jsonw_kuint(&j, "duplicates", n->duplicates);
    jsonw_kuint(&j, "fallbacks", n->fallback_count);
    jsonw_kuint(&j, "empty_files", n->empty_files);
    jsonw_kstr(&j, "first_problem", n->first_problem);
    jsonw_key(&j, "files");
    jsonw_array(&j);
    for (uint32_t i = 0; i < n->file_count; i++) {
        const struct nzb_file *f = &n->files[i];
        jsonw_object(&j);
        jsonw_kstr(&j, "name", f->name);
        jsonw_kbool(&j, "name_guessed", f->name_guessed);
        jsonw_kstr(&j, "kind", nzb_kind_name((enum nzb_kind)f->kind));
        jsonw_kuint(&j, "blocks", f->blocks);
        jsonw_kuint(&j, "bytes", f->bytes);
        jsonw_kuint(&j, "articles", f->count);
        jsonw_kuint(&j, "missing", f->missing);
        jsonw_kint(&j, "date", f->date);
        jsonw_kstr(&j, "poster", f->poster);
        jsonw_kstr(&j, "groups", f->groups);
        jsonw_kstr(&j, "subject", f->subject);
        jsonw_end(&j);
    }
    jsonw_end(&j);
    jsonw_end(&j);
    jsonw_finish(&j);
    putchar('\n');
}

/* Text from outside may hold what moves the cursor: that is left out. */
static void print_text(const char *label, const char *s)
{
    if (s[0] == '\0') {
        return;
    }
    printf("%-10s", label);
    for (; *s != '\0'; s++) {
        if ((unsigned char)*s >= ' ' && *s != 0x7f) {
            putchar(*s);
        }
    }
    putchar('\n');
}

static void print_table(const struct nzb *n)
{
    print_text("title", n->title);
    print_text("password", n->password);
    print_text("category", n->category);
    print_text("tag", n->tag);
    printf("%-10s%u files, %u articles, %.1f MB\n\n", "holds", n->file_count, n->article_count,
           (double)n->total_bytes / 1e6);
    printf("%-12s %10s %8s %8s %7s  %s\n", "kind", "KB", "articles", "missing", "blocks", "name");
    for (uint32_t i = 0; i < n->file_count; i++) {
        const struct nzb_file *f = &n->files[i];
        printf("%-12s %10.1f %8u %8u %7u  %s%s\n", nzb_kind_name((enum nzb_kind)f->kind),
               (double)f->bytes / 1e3, f->count, f->missing, f->blocks, f->name,
               f->name_guessed ? " (made up)" : "");
    }
    if (n->first_problem[0] != '\0') {
        printf("\nnot as it should be: %s\n", n->first_problem);
    }
    if (n->bad_segments + n->duplicates + n->fallback_count + n->empty_files > 0) {
        printf("left out: %u bad segments, %u repeated, %u empty files; second ids: %u\n",
               n->bad_segments, n->duplicates, n->empty_files, n->fallback_count);
    }
}

static int show(struct cli_args *a)
{
    const char *name = NULL;
    bool json = false;
    int option;
    while ((option = cli_next(a)) != CLI_END) {
        if (option == CLI_BAD) {
            return CLI_USAGE;
        }
        if (option == CLI_ARG && name != NULL) {
            return cli_usage_error(a, "'%s': one file at a time", a->value);
        }
        name = option == CLI_ARG ? a->value : name;
        json = json || option == OPT_JSON;
    }
    if (name == NULL) {
        return cli_usage_error(a, "which NZB?");
    }
    FILE *f = strcmp(name, "-") == 0 ? stdin : fopen(name, "rb");
    if (f == NULL) {
        return cli_failed(a, "%s: %s", name, strerror(errno));
    }
    struct nzb *n = NULL;
    int rc = parse_stream(a, f, name, &n);
    if (f != stdin) {
        fclose(f);
    }
    if (rc == CLI_OK && nzb_compute_key(n) != 0) {
        rc = cli_failed(a, "out of memory");
    }
    if (rc == CLI_OK) {
        (json ? print_json : print_table)(n);
    }
    nzb_unref(n);
    return rc;
}

static const struct cli_option options[] = {
    [OPT_JSON] = {"json", NULL, "as JSON", 0},
    {NULL, NULL, NULL, 0},
};

static const struct cli_command nzb_show = {
    .name = "show",
    .summary = "what is in an NZB: files, names, kinds, sizes, password",
    .args = "FILE",
    .about = "Reads an NZB (also gzip; '-' is standard input) the way the queue does and shows "
             "what came of it.\n"
             "Exits with 1 and says what and in which line when it cannot be used.\n",
    .example = "weir nzb show 'Some.Show.{{secret}}.nzb'\n",
    .options = options,
    .run = show,
};

static const struct cli_command *const subs[] = {&nzb_show, NULL};

const struct cli_command cmd_nzb = {
    .name = "nzb",
    .summary = "looks into NZB files",
    .subs = subs,
};
