/* cmd_yenc.c - `weir yenc decode` and `weir yenc encode`: one article body to bytes, and bytes to one article body. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "yenc/yenc.h"

enum { CHUNK = 64 * 1024 };

/* ---- files: "-" or nothing is standard input and output ---- */

static FILE *open_input(struct cli_args *a, const char *name)
{
    if (name == NULL || strcmp(name, "-") == 0) {
        return stdin;
    }
    FILE *f = fopen(name, "rb");
    if (f == NULL) {
        cli_failed(a, "%s: %s", name, strerror(errno));
    }
    return f;
}

static void close_input(FILE *f)
{
    if (f != stdin) {
        fclose(f);
    }
}

static int write_output(struct cli_args *a, const char *name, const uint8_t *bytes, size_t n)
{
    bool named = name != NULL && strcmp(name, "-") != 0;
    FILE *f = named ? fopen(name, "wb") : stdout;
    if (f == NULL) {
        return cli_failed(a, "%s: %s", name, strerror(errno));
    }
    bool good = fwrite(bytes, 1, n, f) == n && fflush(f) == 0;
    int error = errno;
    if (named && fclose(f) != 0 && good) {
        good = false;
        error = errno;
    }
    return good ? CLI_OK : cli_failed(a, "%s: %s", named ? name : "output", strerror(error));
}

/* ---- decode ---- */

enum { DECODE_OUT, DECODE_JSON };

static const struct cli_option decode_options[] = {
    [DECODE_OUT] = {"output", "FILE", "write the bytes there (standard output)", 'o'},
    [DECODE_JSON] = {"json", NULL, "the verdict as JSON", 0},
    {NULL, NULL, NULL, 0},
};

static const char *format_name(enum yenc_format f)
{
    return f == YENC_FORMAT_YENC ? "yenc" : f == YENC_FORMAT_UU ? "uu" : "none";
}

static void print_verdict(const struct yenc_article *art, bool json)
{
    const struct yenc_header *h = &art->header;
    if (json) {
        struct jsonw j;
        jsonw_init_file(&j, stderr);
        jsonw_object(&j);
        jsonw_kstr(&j, "verdict", yenc_verdict_name(art->verdict));
        jsonw_kstr(&j, "why", art->why);
        jsonw_kstr(&j, "format", format_name(art->format));
        jsonw_kstr(&j, "name", h->name);
        jsonw_kuint(&j, "part", h->part);
        jsonw_kuint(&j, "total", h->total);
        jsonw_kuint(&j, "size", h->size);
        jsonw_kuint(&j, "begin", h->begin);
        jsonw_kuint(&j, "end", h->end);
        jsonw_kuint(&j, "bytes", art->len);
        jsonw_kuint(&j, "decoded", art->decoded);
        jsonw_kuint(&j, "consumed", art->raw);
        char crc[9];
        snprintf(crc, sizeof(crc), "%08" PRIx32, art->crc);
        jsonw_kstr(&j, "crc32", crc);
        jsonw_end(&j);
        jsonw_finish(&j);
        fputc('\n', stderr);
        return;
    }
    fprintf(stderr, "%s", yenc_verdict_name(art->verdict));
    if (art->why != NULL) {
        fprintf(stderr, ": %s", art->why);
    }
    if (art->format != YENC_FORMAT_NONE) {
        char name[256]; /* what a terminal must not see is left out */
        size_t n = 0;
        for (const char *p = h->name; *p != '\0' && n + 1 < sizeof(name); p++) {
            if ((unsigned char)*p >= ' ' && *p != 0x7f) {
                name[n++] = *p;
            }
        }
        name[n] = '\0';
        fprintf(stderr, "; '%s', part %" PRIu32 " of %" PRIu32, name, h->part, h->total);
        fprintf(stderr, ", bytes %" PRIu64 " to %" PRIu64 " of %" PRIu64, h->begin, h->end,
                h->size);
        fprintf(stderr, "; %zu bytes, crc32 %08" PRIx32, art->len, art->crc);
    }
    fputc('\n', stderr);
}

/* Feeds the whole file; *out is the article's room, the caller frees it. */
static int decode_file(struct cli_args *a, FILE *in, struct yenc_article *art, uint8_t **out)
{
    uint8_t *chunk = mem_alloc(CHUNK);
    int rc = chunk != NULL ? CLI_OK : cli_failed(a, "out of memory");
    enum yenc_feed f = YENC_FEED_MORE;
    bool first = true;
    size_t n;
    while (rc == CLI_OK && f == YENC_FEED_MORE && (n = fread(chunk, 1, CHUNK, in)) > 0) {
        if (first) {
            /* A file whose first line ends with LF alone has lost its CRs; so has its dot line. */
            const uint8_t *lf = memchr(chunk, '\n', n);
            yenc_article_init(art, lf != NULL && (lf == chunk || lf[-1] != '\r'));
            first = false;
        }
        size_t at = 0, used;
        while ((f = yenc_article_feed(art, chunk + at, n - at, &used)) == YENC_FEED_ROOM) {
            at += used;
            size_t wants = yenc_article_wants(art);
            uint8_t *larger = mem_realloc(*out, wants, 1);
            if (larger == NULL) {
                rc = cli_failed(a, "out of memory");
                break;
            }
            *out = larger;
            yenc_article_room(art, larger, wants);
        }
    }
    if (rc == CLI_OK && ferror(in)) {
        rc = cli_failed(a, "reading: %s", strerror(errno));
    }
    mem_free(chunk);
    yenc_article_finish(art);
    return rc;
}

static int run_decode(struct cli_args *a)
{
    const char *input = NULL, *output = NULL;
    bool json = false;
    for (int got; (got = cli_next(a)) != CLI_END;) {
        switch (got) {
        case DECODE_OUT:
            output = a->value;
            break;
        case DECODE_JSON:
            json = true;
            break;
        case CLI_ARG:
            if (input != NULL) {
                return cli_usage_error(a, "one file at a time, not also '%s'", a->value);
            }
            input = a->value;
            break;
        default:
            return CLI_USAGE;
        }
    }
    FILE *in = open_input(a, input);
    struct yenc_article *art = mem_alloc(sizeof(*art));
    uint8_t *out = NULL;
    int rc = in == NULL ? CLI_FAILED : art == NULL ? cli_failed(a, "out of memory") : CLI_OK;
    if (rc == CLI_OK) {
        yenc_article_init(art, false);
        rc = decode_file(a, in, art, &out);
    }
    if (rc == CLI_OK && art->len > 0) {
        rc = write_output(a, output, out, art->len);
    }
    if (rc == CLI_OK) {
        print_verdict(art, json);
        rc = art->verdict == YENC_OK || art->verdict == YENC_NO_CRC ? CLI_OK : CLI_FAILED;
    }
    mem_free(out);
    mem_free(art);
    if (in != NULL) {
        close_input(in);
    }
    return rc;
}

static const struct cli_command decode = {
    .name = "decode",
    .summary = "decodes one article body",
    .args = "[FILE]",
    .about = "  Reads the body of one article as a news server sends it (dots stuffed, the dot "
             "line at its end or\n"
             "  not), writes the bytes of its part, and says on standard error what it found: ok, "
             "no-crc, bad-crc,\n"
             "  bad-size, no-end, bad-header, not-yenc or limit. UUencode is decoded too. What can "
             "be decoded of a\n"
             "  damaged article is written. Exit code 0 only for ok and no-crc.\n",
    .example = "  weir yenc decode article.txt > part.bin\n"
               "  weir yenc decode --json -o part.bin < article.txt\n",
    .options = decode_options,
    .run = run_decode,
};

/* ---- encode ---- */

enum { ENCODE_OUT, ENCODE_NAME, ENCODE_LINE, ENCODE_PART_SIZE, ENCODE_PART };
enum {
    PART_MOST = 8 * 1024 * 1024
}; /* stays below the limit of an article even if every byte is escaped */

static const struct cli_option encode_options[] = {
    [ENCODE_OUT] = {"output", "FILE", "write the article body there (standard output)", 'o'},
    [ENCODE_NAME] = {"name", "NAME", "name in the header (that of the file)", 'n'},
    [ENCODE_LINE] = {"line", "N", "characters per line, 64 to 997 (128)", 'l'},
    [ENCODE_PART_SIZE] = {"part-size", "BYTES", "a multipart post with parts of that size", 's'},
    [ENCODE_PART] = {"part", "N", "which part, from 1 (1)", 'p'},
    {NULL, NULL, NULL, 0},
};

struct encode {
    struct yenc_post post;
    const char *input, *output;
    uint64_t part_size; /* 0: single */
    uint8_t *data;      /* of the part */
    size_t len, room;
};

static bool keep(struct encode *e, const uint8_t *bytes, size_t n)
{
    if (e->len + n > e->room) {
        size_t room = (e->len + n) * 2;
        uint8_t *larger = mem_realloc(e->data, room, 1);
        if (larger == NULL) {
            return false;
        }
        e->data = larger;
        e->room = room;
    }
    memcpy(e->data + e->len, bytes, n);
    e->len += n;
    return true;
}

/* Reads all of the input for its size and CRC, and keeps the bytes of the part. */
static int read_part(struct cli_args *a, struct encode *e, FILE *in)
{
    uint64_t first = e->post.begin, end = e->part_size > 0 ? first + e->part_size : PART_MOST + 1;
    uint8_t chunk[4096];
    size_t n;
    while ((n = fread(chunk, 1, sizeof(chunk), in)) > 0) {
        uint64_t at = e->post.size;
        e->post.file_crc = crc32_update(e->post.file_crc, chunk, n);
        e->post.size += n;
        uint64_t from = at > first ? at : first, to = at + n < end ? at + n : end;
        if (from < to && !keep(e, chunk + (from - at), (size_t)(to - from))) {
            return cli_failed(a, "out of memory");
        }
    }
    if (ferror(in)) {
        return cli_failed(a, "reading: %s", strerror(errno));
    }
    if (e->len > PART_MOST) {
        return cli_failed(a, "more than %d bytes do not fit into one article; use --part-size",
                          PART_MOST);
    }
    if (e->len == 0) {
        return cli_failed(a, e->post.size == 0 ? "nothing to encode" : "there is no such part");
    }
    return CLI_OK;
}

static int encode_file(struct cli_args *a, struct encode *e)
{
    FILE *in = open_input(a, e->input);
    if (in == NULL) {
        return CLI_FAILED;
    }
    int rc = read_part(a, e, in);
    close_input(in);
    if (rc != CLI_OK) {
        return rc;
    }
    if (e->part_size > 0) {
        uint64_t total = (e->post.size + e->part_size - 1) / e->part_size;
        if (total > UINT32_MAX) {
            return cli_failed(a, "too many parts");
        }
        e->post.total = (uint32_t)total;
    }
    uint8_t *body = mem_alloc(yenc_post_max(&e->post, e->len));
    if (body == NULL) {
        return cli_failed(a, "out of memory");
    }
    rc = write_output(a, e->output, body, yenc_post_make(&e->post, e->data, e->len, body));
    mem_free(body);
    return rc;
}

static int parse_encode(struct cli_args *a, struct encode *e)
{
    uint64_t n, part = 0;
    for (int got; (got = cli_next(a)) != CLI_END;) {
        switch (got) {
        case ENCODE_OUT:
            e->output = a->value;
            break;
        case ENCODE_NAME:
            e->post.name = a->value;
            break;
        case ENCODE_LINE:
            if (!cli_number(a, YENC_LINE_MIN, YENC_LINE_MAX, &n)) {
                return CLI_USAGE;
            }
            e->post.line = (unsigned)n;
            break;
        case ENCODE_PART_SIZE:
            if (!cli_size(a, 1, PART_MOST, &e->part_size)) {
                return CLI_USAGE;
            }
            break;
        case ENCODE_PART:
            if (!cli_number(a, 1, INT32_MAX, &part)) {
                return CLI_USAGE;
            }
            break;
        case CLI_ARG:
            if (e->input != NULL) {
                return cli_usage_error(a, "one file at a time, not also '%s'", a->value);
            }
            e->input = a->value;
            break;
        default:
            return CLI_USAGE;
        }
    }
    if (part > 0 && e->part_size == 0) {
        return cli_usage_error(a, "--part wants --part-size");
    }
    if (e->part_size > 0) {
        e->post.part = part > 0 ? (uint32_t)part : 1;
        e->post.begin = (e->post.part - 1) * e->part_size;
        e->post.has_file_crc = true;
    }
    if (e->post.name == NULL) {
        const char *slash = e->input != NULL ? strrchr(e->input, '/') : NULL;
        e->post.name = slash != NULL ? slash + 1 : e->input != NULL ? e->input : "stdin";
    }
    if (strpbrk(e->post.name, "\r\n") != NULL) {
        return cli_usage_error(a, "a name cannot have a line end in it");
    }
    return CLI_OK;
}

static int run_encode(struct cli_args *a)
{
    struct encode e = {.post = {.line = YENC_LINE_USUAL}};
    int rc = parse_encode(a, &e);
    if (rc == CLI_OK) {
        rc = encode_file(a, &e);
    }
    mem_free(e.data);
    return rc;
}

static const struct cli_command encode = {
    .name = "encode",
    .summary = "makes one article body",
    .args = "[FILE]",
    .about = "  Writes the body of one article: header lines, data, trailer; not the dot line. "
             "Dots that begin a line\n"
             "  are escaped, so the text can go to a server as it is.\n",
    .example = "  weir yenc encode film.avi --part-size 700K --part 3 > article.txt\n",
    .options = encode_options,
    .run = run_encode,
};

static const struct cli_command *const subs[] = {&decode, &encode, NULL};

const struct cli_command cmd_yenc = {
    .name = "yenc",
    .summary = "decodes and makes article bodies",
    .subs = subs,
};
