/* article.c - a whole article body as a stream of bytes.
 *
 *   TEXT --=ybegin--> [PART --=ypart-->] DATA --"=y"--> CONTROL --=yend--> TAIL --dot line--> DONE
 *     |                                   ^---other---'                    ^
 *     '--begin 644 name--> UU --end--> ------------------------------------'
 *
 * In DATA the bytes go through yenc_decode() in slices small enough to be still in the cache when their CRC is taken.
 * In every other mode whole lines are collected, as much of each as a header line may need. A header that makes no
 * sense leads to TAIL with its verdict already given: the rest is read only to find the end. The dot line is looked
 * for in every mode. */
#include <string.h>

#include "base/check.h"
#include "base/crc32.h"
#include "yenc/kernel.h"

enum mode { TEXT, PART, DATA, CONTROL, UU, TAIL, DONE };
enum { SLICE = 32 * 1024, DROPPED = 512, UU_ROOM_STEP = 64 * 1024 };

static const char *const verdict_names[YENC_VERDICTS] = {
    [YENC_OPEN] = "open",
    [YENC_OK] = "ok",
    [YENC_NO_CRC] = "no-crc",
    [YENC_BAD_CRC] = "bad-crc",
    [YENC_BAD_SIZE] = "bad-size",
    [YENC_NO_END] = "no-end",
    [YENC_BAD_HEADER] = "bad-header",
    [YENC_NOT_YENC] = "not-yenc",
    [YENC_LIMIT] = "limit",
};

const char *yenc_verdict_name(enum yenc_verdict v)
{
    return verdict_names[v];
}

void yenc_article_init(struct yenc_article *a, bool lf_ends)
{
    /* The two large arrays need no clearing: what is valid in them is counted. */
    a->verdict = YENC_OPEN;
    a->format = YENC_FORMAT_NONE;
    a->why = NULL;
    memset((char *)&a->header + sizeof(a->header.name), 0,
           sizeof(a->header) - sizeof(a->header.name));
    a->header.name[0] = '\0';
    memset(&a->trailer, 0, sizeof(a->trailer));
    a->out = NULL;
    a->capacity = a->len = 0;
    a->decoded = a->raw = 0;
    a->crc = 0;
    a->uu_begin = a->uu_end = a->uu_waits = a->uu_gap = a->uu_torn = false;
    a->mode = TEXT;
    a->raw_state = YENC_AT_LINE;
    a->lf_ends = lf_ends;
    a->after_crlf = true;
    a->last_was_cr = false;
    a->line_len = a->kept = 0;
}
_Static_assert(offsetof(struct yenc_header, name) == 0, "yenc_article_init() clears what follows");

void yenc_article_room(struct yenc_article *a, uint8_t *out, size_t capacity)
{
    PRE(capacity >= a->len);
    a->out = out;
    a->capacity = capacity;
}

static uint64_t part_size(const struct yenc_article *a)
{
    return a->header.end - a->header.begin;
}

size_t yenc_article_wants(const struct yenc_article *a)
{
    if (a->format == YENC_FORMAT_UU) {
        return a->len + a->len / 2 + UU_ROOM_STEP; /* nothing is declared: grow as it comes */
    }
    return part_size(a) < YENC_RAW_MAX ? (size_t)part_size(a) : YENC_RAW_MAX;
}

/* ---- lines ---- */

/* Adds bytes to the line being collected, up to its LF. True when the line is complete. */
static bool collect(struct yenc_article *a, const uint8_t **src, const uint8_t *end)
{
    const uint8_t *lf = memchr(*src, '\n', (size_t)(end - *src));
    size_t n = (size_t)((lf != NULL ? lf : end) - *src);
    if (n > 0) {
        size_t keep = n < YENC_KEPT_MAX - a->kept ? n : YENC_KEPT_MAX - a->kept;
        memcpy(a->line + a->kept, *src, keep);
        a->kept += (uint32_t)keep;
        a->last_was_cr = (*src)[n - 1] == '\r';
        a->line_len = n < YENC_RAW_MAX ? a->line_len + (uint32_t)n : UINT32_MAX / 2;
    }
    *src += n + (lf != NULL);
    return lf != NULL;
}

/* Takes the line end and a stuffed dot off. True when it was the dot line that ends the article. */
static bool finish_line(struct yenc_article *a)
{
    bool crlf = a->last_was_cr;
    if (crlf && a->kept == a->line_len) {
        a->kept--;
    }
    if (a->kept > 0 && a->line[0] == '.') {
        uint32_t content = a->line_len - crlf;
        if (content == 1 && ((crlf && a->after_crlf) || a->lf_ends)) {
            return true;
        }
        memmove(a->line, a->line + 1, --a->kept);
    }
    return false;
}

static void next_line(struct yenc_article *a)
{
    a->after_crlf = a->last_was_cr;
    a->last_was_cr = false;
    a->line_len = a->kept = 0;
}

static bool line_starts(const struct yenc_article *a, const char *word)
{
    size_t n = strlen(word);
    return a->kept >= n && memcmp(a->line, word, n) == 0;
}

/* "=yend", and then a blank or nothing. */
static bool line_is(const struct yenc_article *a, const char *keyword)
{
    size_t n = strlen(keyword);
    return line_starts(a, keyword) && (a->kept == n || a->line[n] == ' ' || a->line[n] == '\t');
}

/* ---- verdicts ---- */

static void bad_header(struct yenc_article *a, const char *why)
{
    a->verdict = YENC_BAD_HEADER;
    a->why = why;
    a->len = 0;
    a->crc = 0;
    a->mode = TAIL;
}

static void judge(struct yenc_article *a, enum yenc_verdict v, const char *why)
{
    a->verdict = v;
    a->why = why;
}

static void judge_crc(struct yenc_article *a)
{
    const struct yenc_trailer *t = &a->trailer;
    bool whole = part_size(a) == a->header.size;
    bool by_part = t->has_pcrc32 && (a->header.part > 0 || !t->has_crc32);
    if (t->bad_crc) {
        judge(a, YENC_BAD_CRC, "=yend: the CRC cannot be read");
    } else if (by_part ? t->pcrc32 == a->crc : t->has_crc32 && t->crc32 == a->crc) {
        judge(a, YENC_OK, NULL);
    } else if (by_part || (t->has_crc32 && whole)) {
        judge(a, YENC_BAD_CRC, "the CRC of the data differs");
    } else {
        /* crc32 of a part that is not the whole file is the file's, and says nothing here. */
        judge(a, YENC_NO_CRC, "=yend: no CRC of this part");
    }
}

static void judge_yenc(struct yenc_article *a)
{
    const struct yenc_trailer *t = &a->trailer;
    uint64_t size = part_size(a);
    if (a->decoded != size) {
        judge(a, YENC_BAD_SIZE,
              a->decoded < size ? "fewer bytes than declared" : "more bytes than declared");
        return;
    }
    judge_crc(a);
    if (t->has_size && t->size != size) {
        /* Posters are known to put the size of the file here: no harm if the part's CRC is right. */
        if (a->verdict != YENC_OK || a->header.part == 0 || t->size != a->header.size) {
            judge(a, YENC_BAD_SIZE, "=yend: another size than =ybegin or =ypart");
        }
    }
}

static void settle(struct yenc_article *a)
{
    if (a->verdict != YENC_OPEN) {
        return;
    }
    if (a->format == YENC_FORMAT_NONE) {
        judge(a, YENC_NOT_YENC, "no =ybegin line");
    } else if (a->format == YENC_FORMAT_UU && a->uu_torn) {
        judge(a, YENC_BAD_SIZE, "UUencode: a damaged line");
    } else if (a->format == YENC_FORMAT_UU) {
        judge(a, YENC_NO_CRC, "UUencode has no CRC");
    } else if (a->mode == PART) {
        bad_header(a, "=ypart: not there");
    } else {
        judge(a, YENC_NO_END, "no =yend line");
    }
}

/* ---- what a line means ---- */

static void enter_data(struct yenc_article *a)
{
    a->mode = DATA;
    a->raw_state = a->last_was_cr || a->lf_ends ? YENC_AT_LINE : YENC_AT_LF;
}

static void on_begin(struct yenc_article *a)
{
    a->format = YENC_FORMAT_YENC;
    a->len = 0; /* of what looked like UUencode before it */
    a->decoded = 0;
    a->crc = 0;
    const char *wrong = yenc_parse_begin(&a->header, a->line, a->kept);
    if (wrong != NULL) {
        bad_header(a, wrong);
    } else if (a->header.has_range) {
        enter_data(a);
    } else {
        a->mode = PART;
    }
}

static void on_part(struct yenc_article *a)
{
    const char *wrong = yenc_parse_part(&a->header, a->line, a->kept);
    if (wrong != NULL) {
        bad_header(a, wrong);
    } else {
        enter_data(a);
    }
}

static void on_text(struct yenc_article *a)
{
    uint8_t bytes[YENC_UU_LINE_BYTES];
    if (line_is(a, "=ybegin")) {
        on_begin(a);
    } else if (line_is(a, "=yend") || line_is(a, "=ypart")) {
        a->format = YENC_FORMAT_YENC;
        bad_header(a, "no =ybegin in front of =ypart or =yend");
    } else if (yenc_uu_begin(a->line, a->kept, a->header.name)) {
        a->mode = UU;
        a->format = YENC_FORMAT_UU;
        a->uu_begin = true;
    } else if (a->kept == 61 && a->line[0] == 'M' && yenc_uu_line(a->line, 61, bytes) == 45) {
        a->mode = UU; /* a later part of a post: no begin line */
        a->format = YENC_FORMAT_UU;
        a->uu_waits = true;
    }
}

/* There is room for one line in out. */
static void on_uu(struct yenc_article *a)
{
    if (line_is(a, "=ybegin")) {
        on_begin(a);
        return;
    }
    if (a->uu_begin && line_is(a, "end")) {
        a->uu_end = true;
        a->mode = TAIL;
        return;
    }
    uint8_t *to = a->out + a->len;
    int n = a->kept == a->line_len - a->last_was_cr ? yenc_uu_line(a->line, a->kept, to) : -1;
    if (n > 0) {
        a->uu_torn = a->uu_torn || a->uu_gap;
        a->crc = crc32_update(a->crc, to, (size_t)n);
        a->len += (size_t)n;
        a->decoded += (unsigned)n;
    } else if (n < 0 && a->len == 0) {
        a->mode = TEXT; /* "begin 644 ..." was a sentence */
        a->format = YENC_FORMAT_NONE;
        a->uu_begin = false;
        a->header.name[0] = '\0';
        on_text(a);
    } else if (n < 0 && a->kept > 0) {
        a->uu_gap = true; /* text behind the data is fine, data behind the text is not */
    }
}

static void on_control(struct yenc_article *a)
{
    if (line_is(a, "=yend")) {
        const char *wrong = yenc_parse_end(&a->trailer, a->line, a->kept);
        a->mode = TAIL;
        if (wrong != NULL) {
            bad_header(a, wrong);
        } else {
            judge_yenc(a);
        }
    } else if (line_is(a, "=ypart") && a->decoded == 0) {
        on_part(a);
    } else if (line_is(a, "=ypart") || line_is(a, "=ybegin")) {
        bad_header(a, "a second =ybegin or =ypart before =yend");
    } else {
        enter_data(a); /* a control line of a later version of the format */
    }
}

/* ---- feeding ---- */

static enum yenc_feed feed_line(struct yenc_article *a, const uint8_t **src, const uint8_t *end)
{
    if (a->mode == UU && a->capacity - a->len < YENC_UU_LINE_BYTES) {
        return YENC_FEED_ROOM;
    }
    if (a->uu_waits) {
        a->uu_waits = false;
        on_uu(a);
        next_line(a);
        return YENC_FEED_MORE;
    }
    bool complete = collect(a, src, end);
    if (a->line_len > YENC_TEXT_LINE_MAX) {
        judge(a, YENC_LIMIT, "a line of more than 64 KiB");
        return YENC_FEED_LIMIT;
    }
    if (!complete) {
        return YENC_FEED_MORE;
    }
    if (finish_line(a)) {
        settle(a);
        a->mode = DONE;
        return YENC_FEED_DONE;
    }
    switch (a->mode) {
    case TEXT:
        on_text(a);
        break;
    case PART:
        if (a->kept > 0) {
            on_part(a);
        }
        break;
    case CONTROL:
        on_control(a);
        break;
    case UU:
        on_uu(a);
        break;
    default:
        break; /* TAIL */
    }
    if (!a->uu_waits) {
        next_line(a);
    }
    return YENC_FEED_MORE;
}

/* Decodes one slice: into out, or, once all that was declared is there, into the void. Without room, one byte at a time
 * goes as long as nothing comes out, so that room is asked for only when the =ypart line, too, is known. */
static enum yenc_feed feed_data(struct yenc_article *a, const uint8_t **src, const uint8_t *end)
{
    uint8_t dropped[DROPPED];
    size_t n = (size_t)(end - *src), room = a->capacity - a->len;
    uint64_t left = part_size(a) - a->len;
    bool keeps = left > 0 && room > 0;
    uint64_t most = left == 0 ? DROPPED : room == 0 ? 1 : left < room ? left : room;
    most = most < SLICE ? most : SLICE;
    n = n < most ? n : (size_t)most;

    uint8_t *to = keeps ? a->out + a->len : dropped;
    struct yenc_raw r = {*src, *src + n, to, a->raw_state, a->lf_ends};
    enum yenc_stop stop = yenc_decode(&r);
    size_t made = (size_t)(r.dst - to);
    if (left > 0 && room == 0 && made > 0) {
        return YENC_FEED_ROOM; /* the byte is decoded again */
    }
    *src = r.src;
    a->raw_state = (uint8_t)r.state;
    a->decoded += made;
    if (keeps) {
        a->crc = crc32_update(a->crc, to, made);
        a->len += made;
    }
    if (stop == YENC_END) {
        settle(a);
        a->mode = DONE;
        return YENC_FEED_DONE;
    }
    if (stop == YENC_CONTROL) {
        a->mode = CONTROL;
        memcpy(a->line, "=y", 2);
        a->line_len = a->kept = 2;
        a->last_was_cr = false;
    }
    return YENC_FEED_MORE;
}

enum yenc_feed yenc_article_feed(struct yenc_article *a, const uint8_t *src, size_t n, size_t *used)
{
    PRE(a->mode != DONE && a->verdict != YENC_LIMIT);
    uint64_t allowed = YENC_RAW_MAX - a->raw;
    const uint8_t *p = src, *end = src + (n < allowed ? n : (size_t)allowed);
    enum yenc_feed f = YENC_FEED_MORE;
    while ((p < end || a->uu_waits) && f == YENC_FEED_MORE) {
        f = a->mode == DATA ? feed_data(a, &p, end) : feed_line(a, &p, end);
    }
    *used = (size_t)(p - src);
    a->raw += *used;
    if (f == YENC_FEED_MORE && n > allowed) {
        judge(a, YENC_LIMIT, "an article of more than 16 MiB");
        return YENC_FEED_LIMIT;
    }
    return f;
}

void yenc_article_finish(struct yenc_article *a)
{
    if (a->mode == DONE || a->verdict == YENC_LIMIT) {
        return;
    }
    /* A last line without its line end still counts. */
    if (a->mode != DATA && a->line_len > 0) {
        const uint8_t lf = '\n', *src = &lf;
        enum yenc_feed f = feed_line(a, &src, src + 1);
        if (f == YENC_FEED_MORE && src == &lf) {
            f = feed_line(a, &src, src + 1); /* the first was one that had waited for room */
        }
        a->uu_torn = a->uu_torn || f == YENC_FEED_ROOM;
    }
    settle(a);
    a->mode = DONE;
}
