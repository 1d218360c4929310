#include "queue/nzb_build.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/name.h"

enum {
    CHUNK_BYTES = 32 << 10,
    HINT_MAX = 64 << 20, /* a size hint above this is a lie and says nothing */
};

_Static_assert((uint64_t)NZB_ARTICLES_MAX *(NZB_ID_MAX + 1) <= UINT32_MAX,
               "offsets of message-ids fit into 32 bits");

/* ---- memory ---- */

struct nzb_chunk {
    struct nzb_chunk *next;
    size_t used, size;
    char bytes[];
};

/* `len` bytes and a zero behind them, in the arena. NULL: no memory. */
static char *arena_text(struct nzb *n, const char *s, size_t len)
{
    struct nzb_chunk *c = n->arena;
    if (c == NULL || c->size - c->used < len + 1) {
        size_t size = len + 1 > CHUNK_BYTES / 4 ? len + 1 : CHUNK_BYTES;
        c = mem_alloc(sizeof(*c) + size);
        if (c == NULL) {
            return NULL;
        }
        *c = (struct nzb_chunk){.next = n->arena, .size = size};
        n->arena = c;
        n->heap_bytes += sizeof(*c) + size;
    }
    char *text = c->bytes + c->used;
    memcpy(text, s, len);
    text[len] = '\0';
    c->used += len + 1;
    return text;
}

/* The text of the file before, when it is the same: posters and groups repeat. */
static const char *arena_again(struct nzb *n, const char *before, struct nzb_text t)
{
    if (before != NULL && strncmp(before, t.at, t.len) == 0 && before[t.len] == '\0') {
        return before;
    }
    return arena_text(n, t.at, t.len);
}

/* `array` with room for one more element than `count`; it doubles. NULL: no memory, `array` is untouched. */
static void *with_room(void *array, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room) {
        return array;
    }
    uint32_t bigger = *room < 64 ? 64 : *room * 2;
    void *p = mem_realloc(array, bigger, size);
    if (p != NULL) {
        *room = bigger;
    }
    return p;
}

/* The article arrays grow together. */
static int make_article_room(struct nzb_build *b)
{
    struct nzb *n = b->n;
    uint32_t room = b->article_room, count = n->article_count;
    if (count < room) {
        return 0;
    }
    uint32_t **arrays[] = {&n->id_at, &n->bytes, &n->number};
    for (size_t i = 0; i < 3; i++) {
        room = b->article_room;
        uint32_t *bigger = with_room(*arrays[i], count, &room, sizeof(**arrays[i]));
        if (bigger == NULL) {
            return -ENOMEM;
        }
        *arrays[i] = bigger;
    }
    b->article_room = room;
    return 0;
}

static int add_id(struct nzb_build *b, const char *id, size_t len, uint32_t *at)
{
    struct nzb *n = b->n;
    if (b->ids_room - n->ids_bytes < len + 1) {
        size_t bigger = b->ids_room < 4096 ? 4096 : b->ids_room * 2;
        char *p = mem_realloc(n->ids, bigger, 1);
        if (p == NULL) {
            return -ENOMEM;
        }
        n->ids = p;
        b->ids_room = bigger;
    }
    *at = (uint32_t)n->ids_bytes;
    memcpy(n->ids + n->ids_bytes, id, len);
    n->ids[n->ids_bytes + len] = '\0';
    n->ids_bytes += len + 1;
    return 0;
}

int nzb_build_init(struct nzb_build *b)
{
    *b = (struct nzb_build){.n = mem_zalloc(1, sizeof(*b->n))};
    if (b->n == NULL) {
        return -ENOMEM;
    }
    b->n->refs = 1;
    b->n->title = b->n->password = b->n->category = b->n->tag = "";
    return 0;
}

void nzb_build_close(struct nzb_build *b)
{
    nzb_unref(b->n);
    b->n = NULL;
}

struct nzb *nzb_ref(struct nzb *n)
{
    n->refs++;
    return n;
}

void nzb_unref(struct nzb *n)
{
    if (n == NULL || --n->refs > 0) {
        return;
    }
    for (struct nzb_chunk *c = n->arena, *next; c != NULL; c = next) {
        next = c->next;
        mem_free(c);
    }
    mem_free(n->files);
    mem_free(n->id_at);
    mem_free(n->bytes);
    mem_free(n->number);
    mem_free(n->ids);
    mem_free(n->fallbacks);
    mem_free(n);
}

/* ---- small readers ---- */

void nzb_build_problem(struct nzb_build *b, unsigned long line, const char *fmt, ...)
{
    struct nzb *n = b->n;
    if (n->first_problem[0] != '\0') {
        return;
    }
    int used = snprintf(n->first_problem, sizeof(n->first_problem), "line %lu: ", line);
    va_list args;
    va_start(args, fmt);
    vsnprintf(n->first_problem + used, sizeof(n->first_problem) - (size_t)used, fmt, args);
    va_end(args);
    for (char *c = n->first_problem; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || (unsigned char)*c == 0x7f) {
            *c = '?';
        }
    }
}

static struct nzb_text trim(struct nzb_text t)
{
    while (t.len > 0 && (unsigned char)t.at[0] <= ' ') {
        t.at++;
        t.len--;
    }
    while (t.len > 0 && (unsigned char)t.at[t.len - 1] <= ' ') {
        t.len--;
    }
    return t;
}

/* Digits only, at most `max`; blanks around them are forgiven. */
static bool read_number(struct nzb_text t, uint64_t max, uint64_t *out)
{
    t = trim(t);
    uint64_t v = 0;
    if (t.len == 0 || t.len > 19) {
        return false;
    }
    for (size_t i = 0; i < t.len; i++) {
        if (t.at[i] < '0' || t.at[i] > '9') {
            return false;
        }
        v = v * 10 + (uint64_t)(t.at[i] - '0');
    }
    *out = v;
    return v <= max;
}

/* A message-id without <>: what may be sent to a server in a command line, and nothing else. */
static bool read_id(struct nzb_text *t)
{
    *t = trim(*t);
    if (t->len >= 2 && t->at[0] == '<' && t->at[t->len - 1] == '>') {
        t->at++;
        t->len -= 2;
    }
    if (t->len < NZB_ID_MIN || t->len > NZB_ID_MAX) {
        return false;
    }
    for (size_t i = 0; i < t->len; i++) {
        unsigned char c = (unsigned char)t->at[i];
        if (c < 0x21 || c > 0x7e || c == '<' || c == '>') {
            return false;
        }
    }
    return true;
}

/* ---- the parts of an NZB ---- */

int nzb_build_meta(struct nzb_build *b, struct nzb_text type, struct nzb_text value)
{
    struct nzb *n = b->n;
    const struct {
        const char *word;
        const char **field;
    } rows[] = {
        {"title", &n->title}, {"name", &n->title},        {"password", &n->password},
        {"tag", &n->tag},     {"category", &n->category},
    };
    value = trim(value);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strlen(rows[i].word) == type.len && strncasecmp(rows[i].word, type.at, type.len) == 0 &&
            **rows[i].field == '\0' && value.len > 0) { /* the first of a kind counts */
            *rows[i].field = arena_text(n, value.at, value.len);
            return *rows[i].field != NULL ? 0 : -ENOMEM;
        }
    }
    return 0;
}

int nzb_build_file(struct nzb_build *b, struct nzb_text subject, struct nzb_text poster,
                   struct nzb_text date, unsigned long line, struct err *e)
{
    struct nzb *n = b->n;
    if (b->in_file) { /* <file> inside <file>: the outer one ends here */
        int rc = nzb_build_file_end(b, line);
        if (rc != 0) {
            return rc;
        }
    }
    if (n->file_count >= NZB_FILES_MAX) {
        return err_set(e, ERR_LIMIT, "line %lu: more than %d files", line, NZB_FILES_MAX);
    }
    struct nzb_file *files = with_room(n->files, n->file_count, &b->file_room, sizeof(*n->files));
    if (files == NULL) {
        return -ENOMEM;
    }
    n->files = files;
    const struct nzb_text none = {"", 0};
    subject = subject.at != NULL ? trim(subject) : none;
    poster = poster.at != NULL ? trim(poster) : none;
    const char *last_poster = n->file_count > 0 ? n->files[n->file_count - 1].poster : NULL;
    b->file = (struct nzb_file){
        .subject = arena_text(n, subject.at, subject.len),
        .poster = arena_again(n, last_poster, poster),
        .groups = "",
        .first = n->article_count,
    };
    if (b->file.subject == NULL || b->file.poster == NULL) {
        return -ENOMEM;
    }
    uint64_t when;
    if (date.at != NULL && read_number(date, INT64_C(1) << 40, &when)) {
        b->file.date = (int64_t)when;
    } else if (date.at != NULL) {
        nzb_build_problem(b, line, "date '%.*s' is not a number", (int)(date.len & 31), date.at);
    }
    b->in_file = true;
    b->sorted = true;
    return 0;
}

int nzb_build_group(struct nzb_build *b, struct nzb_text group)
{
    group = trim(group);
    if (!b->in_file || group.len == 0) {
        return 0;
    }
    for (size_t i = 0; i < group.len; i++) {
        if ((unsigned char)group.at[i] <= ' ' || (unsigned char)group.at[i] == 0x7f) {
            return 0; /* would be a command of its own on the wire */
        }
    }
    struct nzb *n = b->n;
    size_t before = strlen(b->file.groups);
    if (before + group.len + 1 > NZB_TEXT_MAX) {
        return 0;
    }
    const char *last = n->file_count > 0 ? n->files[n->file_count - 1].groups : NULL;
    if (before == 0) {
        b->file.groups = arena_again(n, last, group);
        return b->file.groups != NULL ? 0 : -ENOMEM;
    }
    char *joined = mem_alloc(before + 1 + group.len);
    if (joined == NULL) {
        return -ENOMEM;
    }
    memcpy(joined, b->file.groups, before);
    joined[before] = ' ';
    memcpy(joined + before + 1, group.at, group.len);
    b->file.groups = arena_again(n, last, (struct nzb_text){joined, before + 1 + group.len});
    mem_free(joined);
    return b->file.groups != NULL ? 0 : -ENOMEM;
}

int nzb_build_segment(struct nzb_build *b, struct nzb_text number, struct nzb_text bytes,
                      struct nzb_text id, unsigned long line, struct err *e)
{
    struct nzb *n = b->n;
    uint64_t part, size = 0;
    if (!b->in_file) {
        n->bad_segments++;
        nzb_build_problem(b, line, "a segment outside of a file");
        return 0;
    }
    if (number.at == NULL || !read_number(number, NZB_ARTICLES_MAX, &part) || part == 0) {
        n->bad_segments++;
        nzb_build_problem(b, line, "segment number '%.*s' is not one of 1 to %d",
                          number.at != NULL ? (int)number.len : 0, number.at, NZB_ARTICLES_MAX);
        return 0;
    }
    if (!read_id(&id)) {
        n->bad_segments++;
        nzb_build_problem(b, line, "segment %llu has no valid message-id",
                          (unsigned long long)part);
        return 0;
    }
    if (bytes.at != NULL && !read_number(bytes, HINT_MAX, &size)) {
        size = 0;
        nzb_build_problem(b, line, "segment %llu: bytes '%.*s' is not a sensible size",
                          (unsigned long long)part, (int)bytes.len, bytes.at);
    }
    if (n->article_count >= NZB_ARTICLES_MAX) {
        return err_set(e, ERR_LIMIT, "line %lu: more than %d segments", line, NZB_ARTICLES_MAX);
    }
    uint32_t at;
    if (make_article_room(b) != 0 || add_id(b, id.at, id.len, &at) != 0) {
        return -ENOMEM;
    }
    uint32_t i = n->article_count++;
    n->id_at[i] = at;
    n->bytes[i] = (uint32_t)size;
    n->number[i] = (uint32_t)part;
    b->sorted = b->sorted && (i == b->file.first || n->number[i - 1] < part);
    return 0;
}

/* ---- the end of a file: sort, sort out doubles, count gaps, find the name ---- */

struct segment {
    uint32_t number, order, id_at, bytes;
};

static int by_number(const void *a, const void *b)
{
    const struct segment *x = a, *y = b;
    if (x->number != y->number) {
        return x->number < y->number ? -1 : 1;
    }
    return x->order < y->order ? -1 : 1;
}

static int add_fallback(struct nzb_build *b, uint32_t article, uint32_t id_at)
{
    struct nzb *n = b->n;
    struct nzb_fallback *bigger =
        with_room(n->fallbacks, n->fallback_count, &b->fallback_room, sizeof(*n->fallbacks));
    if (bigger == NULL) {
        return -ENOMEM;
    }
    n->fallbacks = bigger;
    n->fallbacks[n->fallback_count++] = (struct nzb_fallback){article, id_at};
    return 0;
}

/* The segment repeats the part kept last (article `kept`, whose other ids start at fallback `from`). */
static int add_double(struct nzb_build *b, uint32_t kept, uint32_t from, const struct segment *s)
{
    struct nzb *n = b->n;
    bool known = strcmp(n->ids + n->id_at[kept], n->ids + s->id_at) == 0;
    for (uint32_t i = from; i < n->fallback_count && !known; i++) {
        known = strcmp(n->ids + n->fallbacks[i].id_at, n->ids + s->id_at) == 0;
    }
    /* Beyond a handful nobody reposts honestly; the bound also keeps the comparison above short. */
    if (known || n->fallback_count - from >= 16) {
        n->duplicates++;
        return 0;
    }
    return add_fallback(b, kept, s->id_at);
}

static int sort_segments(struct nzb_build *b)
{
    struct nzb *n = b->n;
    uint32_t first = b->file.first, count = n->article_count - first;
    struct segment *s = mem_alloc((size_t)count * sizeof(*s));
    if (s == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        s[i] = (struct segment){n->number[first + i], i, n->id_at[first + i], n->bytes[first + i]};
    }
    qsort(s, count, sizeof(*s), by_number);
    uint32_t to = first, fallbacks_from = n->fallback_count;
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        if (to > first && n->number[to - 1] == s[i].number) {
            rc = add_double(b, to - 1, fallbacks_from, &s[i]);
            continue;
        }
        fallbacks_from = n->fallback_count;
        n->number[to] = s[i].number;
        n->id_at[to] = s[i].id_at;
        n->bytes[to] = s[i].bytes;
        to++;
    }
    n->article_count = to;
    mem_free(s);
    return rc;
}

static int name_file(struct nzb_build *b)
{
    struct nzb_file *f = &b->file;
    char name[NZB_NAME_MAX + 1];
    uint32_t parts, highest = b->n->number[b->n->article_count - 1];
    f->name_guessed = !nzb_subject_name(f->subject, name, &parts);
    if (f->name_guessed) {
        snprintf(name, sizeof(name), "file-%04u", b->n->file_count + 1);
    }
    f->kind = (uint8_t)nzb_name_kind(name, &f->blocks);
    f->missing = (parts > highest ? parts : highest) - f->count;
    f->name = arena_text(b->n, name, strlen(name));
    return f->name != NULL ? 0 : -ENOMEM;
}

int nzb_build_file_end(struct nzb_build *b, unsigned long line)
{
    struct nzb *n = b->n;
    struct nzb_file *f = &b->file;
    if (!b->in_file) {
        return 0;
    }
    b->in_file = false;
    if (!b->sorted) {
        int rc = sort_segments(b);
        if (rc != 0) {
            return rc;
        }
    }
    f->count = n->article_count - f->first;
    if (f->count == 0) {
        n->empty_files++;
        nzb_build_problem(b, line, "a file without a usable segment");
        return 0;
    }
    for (uint32_t i = f->first; i < n->article_count; i++) {
        f->bytes += n->bytes[i];
    }
    if (name_file(b) != 0) {
        return -ENOMEM;
    }
    n->total_bytes += f->bytes;
    n->files[n->file_count++] = *f;
    return 0;
}

/* ---- the end ---- */

/* A cheap mixing hash, 8 bytes at a time: it has to notice another order of ids, not an enemy. */
static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

static uint64_t layout_of(const struct nzb *n)
{
    uint64_t h = mix(n->file_count, n->article_count);
    for (uint32_t i = 0; i < n->article_count; i++) {
        const char *id = nzb_id(n, i);
        size_t len = strlen(id);
        for (; len >= 8; id += 8, len -= 8) {
            uint64_t word;
            memcpy(&word, id, 8);
            h = mix(h, word);
        }
        uint64_t rest = 0;
        memcpy(&rest, id, len);
        h = mix(h, rest ^ (uint64_t)len << 56);
    }
    for (uint32_t i = 0; i < n->file_count; i++) {
        h = mix(h, n->files[i].count);
    }
    return h;
}

/* Gives back what doubling took too much; a shrink that fails keeps the larger block. */
static void *shrunk(struct nzb *n, void *array, uint64_t count, size_t size)
{
    n->heap_bytes += (size_t)count * size;
    void *p = count > 0 ? mem_realloc(array, (size_t)count, size) : NULL;
    return p != NULL ? p : array;
}

static int take_filename(struct nzb *n, const char *filename)
{
    char title[NZB_NAME_MAX + 1], password[NZB_NAME_MAX + 1];
    if (filename == NULL) {
        return 0;
    }
    nzb_split_filename(filename, title, password);
    if (n->password[0] == '\0' && password[0] != '\0') {
        n->password = arena_text(n, password, strlen(password));
    }
    if (n->title[0] == '\0') {
        n->title = arena_text(n, title, strlen(title));
    }
    return n->title != NULL && n->password != NULL ? 0 : -ENOMEM;
}

int nzb_build_finish(struct nzb_build *b, const char *filename, struct nzb **out, struct err *e)
{
    struct nzb *n = b->n;
    if (n->file_count == 0) {
        if (n->first_problem[0] != '\0') {
            return err_set(e, ERR_INVALID, "the NZB has no usable file (%s)", n->first_problem);
        }
        return err_set(e, ERR_INVALID, "the NZB has no file");
    }
    if (take_filename(n, filename) != 0) {
        return err_sys(e, -ENOMEM, "NZB");
    }
    n->layout = layout_of(n);
    n->heap_bytes += sizeof(*n);
    n->files = shrunk(n, n->files, n->file_count, sizeof(*n->files));
    n->id_at = shrunk(n, n->id_at, n->article_count, sizeof(*n->id_at));
    n->bytes = shrunk(n, n->bytes, n->article_count, sizeof(*n->bytes));
    n->number = shrunk(n, n->number, n->article_count, sizeof(*n->number));
    n->ids = shrunk(n, n->ids, n->ids_bytes, 1);
    n->fallbacks = shrunk(n, n->fallbacks, n->fallback_count, sizeof(*n->fallbacks));
    *out = n;
    b->n = NULL;
    return 0;
}
