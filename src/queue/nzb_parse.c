/* nzb_parse.c - the text of an NZB, through zlib where it is gzip, through libxml2's push parser, into nzb_build.
 *
 * Hostile text is the normal case here. libxml2 is used as a tokenizer only: our own SAX handlers, no tree, no
 * network, no entity is ever declared (an entity or attribute-list declaration ends the parse at once), and libxml2's
 * own depth limit does not hold for custom handlers, so depth is counted here. A tag or text longer than
 * TOKEN_MAX ends the parse while it is still being collected. */
#include <errno.h>
#include <libxml/parser.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "queue/nzb_build.h"

enum {
    TOKEN_MAX = 1 << 20,   /* bytes between two events of the tokenizer */
    FEED_BYTES = 64 << 10, /* given to it at once */
};

enum capture { CAPTURE_NONE, CAPTURE_META, CAPTURE_GROUP, CAPTURE_SEGMENT };

/* Names of elements as libxml2 interns them: compared by pointer. */
struct words {
    const xmlChar *file, *group, *segment, *meta;
    const xmlChar *subject, *poster, *date, *bytes, *number, *type;
};

struct nzb_parser {
    struct nzb_build build;
    xmlParserCtxtPtr xml;
    struct words word;
    z_stream gzip;
    unsigned char *inflated; /* FEED_BYTES, when gzip */
    char *filename;
    char *text; /* of the element being captured; NZB_TEXT_MAX + 1 */
    size_t text_len;
    enum capture capture;
    /* Attributes of the element whose text is being captured. */
    char number[24], bytes[24], type[24];
    bool has_number, has_bytes;
    unsigned depth;
    bool root_seen;
    bool is_gzip, gzip_ended;
    unsigned char head[4]; /* the first bytes, to tell the format */
    size_t head_len;
    uint64_t fed;        /* bytes of text */
    uint64_t last_event; /* `fed` when the tokenizer last said something */
    struct err failed;   /* the first thing that ended the parse; code 0: none */
};

static unsigned long line_of(const struct nzb_parser *p)
{
    return p->xml->input != NULL ? (unsigned long)p->xml->input->line : 0;
}

/* Ends the parse from inside a handler. The first reason stays. */
static void stop(struct nzb_parser *p, int code)
{
    if (p->failed.code == 0) {
        p->failed.code = code;
    }
    xmlStopParser(p->xml);
}

__attribute__((format(printf, 3, 4))) static void fail(struct nzb_parser *p, int code,
                                                       const char *fmt, ...)
{
    if (p->failed.code == 0) {
        char text[ERR_MSG_MAX];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof(text), fmt, args);
        va_end(args);
        err_set(&p->failed, code, "line %lu: %s", line_of(p), text);
    }
    stop(p, code);
}

/* ---- handlers ---- */

static struct nzb_text attribute(const xmlChar **attributes, int count, const xmlChar *name)
{
    for (int i = 0; i < count; i++) {
        const xmlChar **a = attributes + (ptrdiff_t)i * 5; /* name, prefix, URI, value, end */
        if (a[0] == name) {
            return (struct nzb_text){(const char *)a[3], (size_t)(a[4] - a[3])};
        }
    }
    return (struct nzb_text){NULL, 0};
}

static bool keep_short(char *out, size_t size, struct nzb_text t)
{
    size_t n = t.len < size ? t.len : size - 1;
    if (t.at != NULL) {
        memcpy(out, t.at, n);
    }
    out[t.at != NULL ? n : 0] = '\0';
    return t.at != NULL;
}

static struct nzb_text short_text(const char *s, bool there)
{
    return (struct nzb_text){there ? s : NULL, strlen(s)};
}

static void capture(struct nzb_parser *p, enum capture what)
{
    p->capture = what;
    p->text_len = 0;
}

static void on_start(void *arg, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri,
                     int ns_count, const xmlChar **ns, int count, int defaulted,
                     const xmlChar **attributes)
{
    (void)prefix, (void)uri, (void)ns_count, (void)ns, (void)defaulted;
    struct nzb_parser *p = arg;
    p->last_event = p->fed;
    if (p->failed.code != 0) {
        return;
    }
    if (++p->depth > NZB_DEPTH_MAX) {
        fail(p, ERR_LIMIT, "elements are nested more than %d deep", NZB_DEPTH_MAX);
        return;
    }
    for (int i = 0; i < count; i++) {
        if (attributes[i * 5 + 4] - attributes[i * 5 + 3] > NZB_TEXT_MAX) {
            fail(p, ERR_LIMIT, "attribute '%.40s' is longer than %d bytes",
                 (const char *)attributes[i * 5], NZB_TEXT_MAX);
            return;
        }
    }
    if (!p->root_seen) {
        p->root_seen = true;
        if (xmlStrcasecmp(name, BAD_CAST "nzb") != 0) {
            fail(p, ERR_INVALID, "this is <%.40s>, not an NZB", (const char *)name);
        }
    } else if (name == p->word.segment) {
        p->has_number =
            keep_short(p->number, sizeof(p->number), attribute(attributes, count, p->word.number));
        p->has_bytes =
            keep_short(p->bytes, sizeof(p->bytes), attribute(attributes, count, p->word.bytes));
        capture(p, CAPTURE_SEGMENT);
    } else if (name == p->word.file) {
        int rc = nzb_build_file(&p->build, attribute(attributes, count, p->word.subject),
                                attribute(attributes, count, p->word.poster),
                                attribute(attributes, count, p->word.date), line_of(p), &p->failed);
        if (rc != 0) {
            stop(p, rc);
        }
    } else if (name == p->word.group) {
        capture(p, CAPTURE_GROUP);
    } else if (name == p->word.meta) {
        keep_short(p->type, sizeof(p->type), attribute(attributes, count, p->word.type));
        capture(p, CAPTURE_META);
    }
}

static void on_text(void *arg, const xmlChar *text, int len)
{
    struct nzb_parser *p = arg;
    p->last_event = p->fed;
    if (p->capture == CAPTURE_NONE || p->failed.code != 0) {
        return;
    }
    if ((size_t)len > NZB_TEXT_MAX - p->text_len) {
        fail(p, ERR_LIMIT, "text is longer than %d bytes", NZB_TEXT_MAX);
        return;
    }
    memcpy(p->text + p->text_len, text, (size_t)len);
    p->text_len += (size_t)len;
}

static void on_end(void *arg, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
    (void)prefix, (void)uri;
    struct nzb_parser *p = arg;
    p->last_event = p->fed;
    p->depth--;
    if (p->failed.code != 0) {
        return;
    }
    struct nzb_text text = {p->text, p->text_len};
    int rc = 0;
    if (name == p->word.segment) {
        rc = nzb_build_segment(&p->build, short_text(p->number, p->has_number),
                               short_text(p->bytes, p->has_bytes), text, line_of(p), &p->failed);
    } else if (name == p->word.file) {
        rc = nzb_build_file_end(&p->build, line_of(p));
    } else if (name == p->word.group && p->capture == CAPTURE_GROUP) {
        rc = nzb_build_group(&p->build, text);
    } else if (name == p->word.meta && p->capture == CAPTURE_META) {
        rc = nzb_build_meta(&p->build, short_text(p->type, true), text);
    }
    p->capture = CAPTURE_NONE;
    if (rc != 0) {
        stop(p, rc);
    }
}

static void on_entity_decl(void *arg, const xmlChar *name, int type, const xmlChar *public_id,
                           const xmlChar *system_id, xmlChar *content)
{
    (void)type, (void)public_id, (void)system_id, (void)content;
    struct nzb_parser *p = arg;
    fail(p, ERR_INVALID, "entity '%.40s' is declared; an NZB may not do that", (const char *)name);
}

static void on_attribute_decl(void *arg, const xmlChar *element, const xmlChar *name, int type,
                              int def, const xmlChar *value, xmlEnumerationPtr tree)
{
    (void)type, (void)def, (void)value;
    struct nzb_parser *p = arg;
    xmlFreeEnumeration(tree);
    fail(p, ERR_INVALID, "attribute '%.40s' of <%.40s> is declared; an NZB may not do that",
         (const char *)name, (const char *)element);
}

/* "expected '>'\n" -> one line without the end. */
static void on_error(void *arg, xmlErrorPtr error)
{
    struct nzb_parser *p = arg;
    if (error->level != XML_ERR_FATAL || p->failed.code != 0) {
        return;
    }
    const char *text = error->message != NULL ? error->message : "not well-formed XML";
    err_set(&p->failed, error->code == XML_ERR_NO_MEMORY ? -ENOMEM : ERR_INVALID, "line %d: %.*s",
            error->line, (int)strcspn(text, "\n"), text);
}

/* ---- the stream ---- */

static void intern_words(struct nzb_parser *p)
{
    const struct {
        const xmlChar **at;
        const char *word;
    } rows[] = {
        {&p->word.file, "file"}, {&p->word.group, "group"},     {&p->word.segment, "segment"},
        {&p->word.meta, "meta"}, {&p->word.subject, "subject"}, {&p->word.poster, "poster"},
        {&p->word.date, "date"}, {&p->word.bytes, "bytes"},     {&p->word.number, "number"},
        {&p->word.type, "type"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        *rows[i].at = xmlDictLookup(p->xml->dict, BAD_CAST rows[i].word, -1);
    }
}

struct nzb_parser *nzb_parser_new(const char *filename)
{
    /* The same function for both kinds of text: libxml2 then does not guess which one it is. */
    xmlSAXHandler sax = {
        .initialized = XML_SAX2_MAGIC,
        .startElementNs = on_start,
        .endElementNs = on_end,
        .characters = on_text,
        .cdataBlock = on_text,
        .ignorableWhitespace = on_text,
        .entityDecl = on_entity_decl,
        .attributeDecl = on_attribute_decl,
        .serror = on_error,
    };
    struct nzb_parser *p = mem_zalloc(1, sizeof(*p));
    if (p == NULL) {
        return NULL;
    }
    p->text = mem_alloc(NZB_TEXT_MAX + 1);
    p->filename = filename != NULL ? mem_strdup(filename) : NULL;
    if (p->text == NULL || (filename != NULL && p->filename == NULL) ||
        nzb_build_init(&p->build) != 0) {
        nzb_parser_free(p);
        return NULL;
    }
    p->xml = xmlCreatePushParserCtxt(&sax, p, NULL, 0, NULL);
    if (p->xml == NULL) {
        nzb_parser_free(p);
        return NULL;
    }
    xmlCtxtUseOptions(p->xml, XML_PARSE_NONET);
    intern_words(p);
    return p;
}

void nzb_parser_free(struct nzb_parser *p)
{
    if (p == NULL) {
        return;
    }
    if (p->xml != NULL) {
        xmlFreeDoc(p->xml->myDoc);
        xmlFreeParserCtxt(p->xml);
    }
    if (p->inflated != NULL) {
        inflateEnd(&p->gzip);
    }
    nzb_build_close(&p->build);
    mem_free(p->inflated);
    mem_free(p->filename);
    mem_free(p->text);
    mem_free(p);
}

static int give_up(const struct nzb_parser *p, struct err *e)
{
    if (p->failed.msg[0] == '\0') {
        return err_sys(e, p->failed.code, "NZB");
    }
    return err_set(e, p->failed.code, "%s", p->failed.msg);
}

static void ignore_error(void *arg, xmlErrorPtr error)
{
    (void)arg, (void)error;
}

/* libxml2 prints what it cannot tell a handler (errors of iconv): not in this thread, not now. */
static int parse_chunk(struct nzb_parser *p, const void *bytes, size_t n, int last)
{
    xmlStructuredErrorFunc before = xmlStructuredError;
    void *context = xmlStructuredErrorContext;
    xmlSetStructuredErrorFunc(NULL, ignore_error);
    int rc = xmlParseChunk(p->xml, bytes, (int)n, last);
    xmlSetStructuredErrorFunc(context, before);
    return rc;
}

static int feed_text(struct nzb_parser *p, const unsigned char *bytes, size_t len)
{
    while (len > 0 && p->failed.code == 0) {
        size_t n = len < FEED_BYTES ? len : FEED_BYTES;
        p->fed += n;
        if (p->fed > NZB_BYTES_MAX) {
            return err_set(&p->failed, ERR_LIMIT, "the NZB is larger than %llu MiB",
                           (unsigned long long)(NZB_BYTES_MAX >> 20));
        }
        int rc = parse_chunk(p, bytes, n, 0);
        if (rc != 0 && p->failed.code == 0 && !p->xml->wellFormed) {
            err_set(&p->failed, ERR_INVALID, "line %lu: not well-formed XML", line_of(p));
        }
        if (p->failed.code == 0 && p->fed - p->last_event > TOKEN_MAX) {
            err_set(&p->failed, ERR_LIMIT, "line %lu: a tag or text is longer than %d bytes",
                    line_of(p), TOKEN_MAX);
        }
        bytes += n;
        len -= n;
    }
    return p->failed.code;
}

static int feed_gzip(struct nzb_parser *p, const unsigned char *bytes, size_t len)
{
    while (len > 0 && p->failed.code == 0) {
        if (p->gzip_ended) { /* another member, as `cat a.gz b.gz` makes */
            inflateReset(&p->gzip);
            p->gzip_ended = false;
        }
        size_t n = len < INT_MAX ? len : INT_MAX;
        p->gzip.next_in = (Bytef *)(uintptr_t)bytes;
        p->gzip.avail_in = (uInt)n;
        do {
            p->gzip.next_out = p->inflated;
            p->gzip.avail_out = FEED_BYTES;
            int rc = inflate(&p->gzip, Z_NO_FLUSH);
            if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
                return err_set(&p->failed, ERR_INVALID, "gzip: %s",
                               p->gzip.msg != NULL ? p->gzip.msg : "the stream is damaged");
            }
            p->gzip_ended = rc == Z_STREAM_END;
            if (feed_text(p, p->inflated, FEED_BYTES - p->gzip.avail_out) != 0) {
                return p->failed.code;
            }
        } while (!p->gzip_ended && (p->gzip.avail_in > 0 || p->gzip.avail_out == 0));
        bytes += n - p->gzip.avail_in;
        len -= n - p->gzip.avail_in;
    }
    return p->failed.code;
}

/* The first bytes tell gzip from text; a zip archive gets an answer of its own. */
static int begin_format(struct nzb_parser *p)
{
    static const unsigned char zip[4] = {'P', 'K', 3, 4};
    if (memcmp(p->head, zip, sizeof(zip)) == 0) {
        return err_set(&p->failed, ERR_INVALID, "this is a zip archive, not an NZB");
    }
    p->is_gzip = p->head[0] == 0x1f && p->head[1] == 0x8b;
    if (!p->is_gzip) {
        return feed_text(p, p->head, sizeof(p->head));
    }
    p->inflated = mem_alloc(FEED_BYTES);
    if (p->inflated == NULL || inflateInit2(&p->gzip, 16 + MAX_WBITS) != Z_OK) {
        mem_free(p->inflated);
        p->inflated = NULL;
        return err_sys(&p->failed, -ENOMEM, "gzip");
    }
    return feed_gzip(p, p->head, sizeof(p->head));
}

int nzb_parser_feed(struct nzb_parser *p, const void *bytes, size_t len, struct err *e)
{
    const unsigned char *at = bytes;
    while (p->failed.code == 0 && len > 0 && p->head_len < sizeof(p->head)) {
        p->head[p->head_len++] = *at++;
        len--;
        if (p->head_len == sizeof(p->head)) {
            begin_format(p);
        }
    }
    if (p->failed.code == 0 && len > 0) {
        (void)(p->is_gzip ? feed_gzip(p, at, len) : feed_text(p, at, len));
    }
    return p->failed.code != 0 ? give_up(p, e) : 0;
}

/* Everything was fed: is it whole? */
static void check_end(struct nzb_parser *p)
{
    if (p->head_len < sizeof(p->head)) {
        err_set(&p->failed, ERR_INVALID, p->head_len == 0 ? "the NZB is empty" : "not an NZB");
        return;
    }
    if (p->is_gzip && !p->gzip_ended) {
        err_set(&p->failed, ERR_TRUNCATED, "the gzip stream ends too early");
        return;
    }
    unsigned long line = line_of(p);
    parse_chunk(p, NULL, 0, 1);
    if (!p->root_seen || p->depth > 0) {
        err_set(&p->failed, ERR_TRUNCATED, "line %lu: the NZB ends too early", line);
    } else if (p->failed.code == 0 && !p->xml->wellFormed) {
        err_set(&p->failed, ERR_INVALID, "line %lu: not well-formed XML", line);
    }
}

int nzb_parser_finish(struct nzb_parser *p, struct nzb **out, struct err *e)
{
    if (p->failed.code == 0) {
        check_end(p);
    }
    int rc = p->failed.code != 0 ? give_up(p, e) : nzb_build_finish(&p->build, p->filename, out, e);
    nzb_parser_free(p);
    return rc;
}

int nzb_parse(const void *bytes, size_t len, const char *filename, struct nzb **out, struct err *e)
{
    struct nzb_parser *p = nzb_parser_new(filename);
    if (p == NULL) {
        return err_sys(e, -ENOMEM, "NZB");
    }
    int rc = nzb_parser_feed(p, bytes, len, e);
    if (rc != 0) {
        nzb_parser_free(p);
        return rc;
    }
    return nzb_parser_finish(p, out, e);
}
