/* header.c - the lines =ybegin, =ypart and =yend: strict in numbers, lenient in what real posters do.
 *
 *   =ybegin part=1 total=9 line=128 size=6144000 name=any bytes up to the end of the line
 *   =ypart begin=1 end=716800
 *   =yend size=716800 part=1 pcrc32=DEADBEEF crc32=0badf00d
 *
 * Fields may come in any order but for name, which is the rest of the line. A field that is not known is passed over,
 * one that is known and given twice is an error, and so is a number with a sign, a blank, another base or too many
 * digits: no guess at what was meant. */
#include <string.h>

#include "base/utf8.h"
#include "yenc/kernel.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct span {
    const char *p;
    size_t len;
};

static struct span trim(struct span s)
{
    while (s.len > 0 && (is_blank(s.p[s.len - 1]) || s.p[s.len - 1] == '\r')) {
        s.len--;
    }
    while (s.len > 0 && is_blank(s.p[0])) {
        s.p++;
        s.len--;
    }
    return s;
}

static bool equals(struct span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.p, text, s.len) == 0;
}

static bool starts(struct span s, const char *text)
{
    return s.len >= strlen(text) && memcmp(s.p, text, strlen(text)) == 0;
}

static struct span skip(struct span s, size_t n)
{
    return (struct span){s.p + n, s.len - n};
}

/* Takes the next "key=value" off the line; a word without '=' is passed over. False at the end. A value may have
 * blanks in front of it ("crc32= 1234"). */
static bool next_field(struct span *rest, struct span *key, struct span *value)
{
    for (;;) {
        *rest = trim(*rest);
        size_t n = 0;
        while (n < rest->len && !is_blank(rest->p[n]) && rest->p[n] != '=') {
            n++;
        }
        if (n == rest->len) {
            return false;
        }
        *key = (struct span){rest->p, n};
        bool found = rest->p[n] == '=';
        *rest = skip(*rest, n + 1);
        if (found) {
            break;
        }
    }
    struct span r = trim(*rest);
    size_t n = 0;
    while (n < r.len && !is_blank(r.p[n])) {
        n++;
    }
    *value = (struct span){r.p, n};
    if (rest->len > 0 && is_blank(rest->p[0]) && memchr(r.p, '=', n) != NULL) {
        value->len = 0; /* an empty value, and then the next field */
        return true;
    }
    *rest = skip(r, n);
    return true;
}

static bool number(struct span s, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned char)s.p[i] - (unsigned)'0';
        if (digit > 9 || __builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, digit, &v)) {
            return false;
        }
    }
    *out = v;
    return s.len > 0 && v <= max;
}

static bool number32(struct span s, uint32_t *out)
{
    uint64_t v;
    if (!number(s, UINT32_MAX, &v)) {
        return false;
    }
    *out = (uint32_t)v;
    return true;
}

/* Hexadecimal, any case, zeros in front left off or not. Some posters print a 64-bit value (0000000012345678, or sign
 * extended): the last eight digits count. */
static bool crc_value(struct span s, uint32_t *out)
{
    uint32_t v = 0;
    s = starts(s, "0x") ? skip(s, 2) : s;
    for (size_t i = 0; i < s.len; i++) {
        unsigned c = (unsigned char)s.p[i];
        unsigned digit = c - (unsigned)'0';
        if (digit > 9) {
            digit = (c | 0x20u) - (unsigned)'a';
            if (digit > 5) {
                return false;
            }
            digit += 10;
        }
        v = v << 4 | digit;
    }
    *out = v;
    return s.len > 0;
}

void yenc_copy_name(char out[YENC_NAME_MAX + 1], const char *name, size_t len)
{
    bool latin1 = false;
    for (size_t i = 0, n; i < len && !latin1; i += n) {
        n = utf8_char_len(name + i, len - i);
        latin1 = n == 0;
    }
    size_t used = 0;
    for (size_t i = 0, n; i < len; i += n) {
        unsigned c = (unsigned char)name[i];
        n = latin1 ? 1 : utf8_char_len(name + i, len - i);
        if (used + (latin1 ? 2 : n) > YENC_NAME_MAX) {
            break;
        }
        if (latin1 && c >= 0x80) {
            out[used++] = (char)(0xC0 | c >> 6);
            out[used++] = (char)(0x80 | (c & 0x3f));
        } else if (c == 0) {
            out[used++] = '_'; /* the name is a C string from here on */
        } else {
            memcpy(out + used, name + i, n);
            used += n;
        }
    }
    out[used] = '\0';
}

/* A cut name may end inside a character; without its tail it is still the UTF-8 that it was. */
static struct span without_torn_tail(struct span s)
{
    for (size_t back = 1; back <= 3 && back <= s.len; back++) {
        unsigned c = (unsigned char)s.p[s.len - back];
        if (c >= 0xC0) {
            size_t want = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
            return want > back ? (struct span){s.p, s.len - back} : s;
        }
        if (c < 0x80) {
            break;
        }
    }
    return s;
}

/* Posters are known to leave out the line end in front of =ypart. */
static struct span cut_glued_part(struct span name, struct span *glued)
{
    static const char mark[] = "=ypart begin=";
    for (size_t i = 0; i + sizeof(mark) - 1 <= name.len; i++) {
        if (memcmp(name.p + i, mark, sizeof(mark) - 1) == 0) {
            *glued = skip(name, i);
            return (struct span){name.p, i};
        }
    }
    return name;
}

static void take_name(struct yenc_header *h, struct span name)
{
    name = trim(name);
    if (name.len >= 2 && name.p[0] == '"' && name.p[name.len - 1] == '"') {
        name = (struct span){name.p + 1, name.len - 2};
    }
    yenc_copy_name(h->name, name.p, name.len);
}

/* Each known field once: a bit per field. */
static bool twice(unsigned *seen, unsigned bit)
{
    bool again = (*seen & bit) != 0;
    *seen |= bit;
    return again;
}

enum { SEEN_PART = 1, SEEN_TOTAL = 2, SEEN_LINE = 4, SEEN_SIZE = 8 };

static const char *begin_field(struct yenc_header *h, struct span key, struct span v,
                               unsigned *seen)
{
    if (equals(key, "size")) {
        if (twice(seen, SEEN_SIZE) || !number(v, INT64_MAX, &h->size) || h->size == 0) {
            return "=ybegin: bad size";
        }
    } else if (equals(key, "part")) {
        if (twice(seen, SEEN_PART) || !number32(v, &h->part) || h->part == 0) {
            return "=ybegin: bad part number";
        }
    } else if (equals(key, "total")) {
        if (twice(seen, SEEN_TOTAL) || !number32(v, &h->total)) {
            return "=ybegin: bad total";
        }
    } else if (equals(key, "line")) {
        if (twice(seen, SEEN_LINE) || !number32(v, &h->line)) {
            return "=ybegin: bad line length";
        }
    }
    return NULL;
}

const char *yenc_parse_begin(struct yenc_header *h, const char *line, size_t len)
{
    memset(h, 0, sizeof(*h));
    struct span rest = {line, len}, key, value, glued = {NULL, 0};
    if (!starts(rest, "=ybegin ") && !starts(rest, "=ybegin\t")) {
        return "=ybegin: not there";
    }
    rest = skip(rest, 8);
    if (len >= YENC_KEPT_MAX) {
        rest = without_torn_tail(rest);
    }
    unsigned seen = 0;
    while (next_field(&rest, &key, &value)) {
        if (equals(key, "name")) {
            /* The name is all of the line from its '=' on, which lies behind the key. */
            const char *from = key.p + key.len + 1;
            struct span name = {from, (size_t)(rest.p + rest.len - from)};
            take_name(h, cut_glued_part(name, &glued));
            break;
        }
        const char *wrong = begin_field(h, key, value, &seen);
        if (wrong != NULL) {
            return wrong;
        }
    }
    if (!(seen & SEEN_SIZE)) {
        return "=ybegin: no size";
    }
    if (h->total != 0 && h->part > h->total) {
        return "=ybegin: part number beyond total";
    }
    if (h->part <= 1 && h->total <= 1) {
        h->end = h->size; /* the whole file, unless =ypart says otherwise */
        h->has_range = true;
    }
    return glued.p != NULL ? yenc_parse_part(h, glued.p, glued.len) : NULL;
}

const char *yenc_parse_part(struct yenc_header *h, const char *line, size_t len)
{
    struct span rest = {line, len}, key, value;
    if (!starts(rest, "=ypart ") && !starts(rest, "=ypart\t")) {
        return "=ypart: not there";
    }
    rest = skip(rest, 7);
    uint64_t begin = 0, end = 0;
    while (next_field(&rest, &key, &value)) {
        bool is_begin = equals(key, "begin");
        uint64_t *field = is_begin ? &begin : equals(key, "end") ? &end : NULL;
        if (field != NULL && (*field != 0 || !number(value, INT64_MAX, field) || *field == 0)) {
            return is_begin ? "=ypart: bad begin" : "=ypart: bad end";
        }
    }
    if (begin == 0 || end == 0) {
        return "=ypart: no begin or no end";
    }
    if (begin > end) {
        return "=ypart: begin behind end";
    }
    if (end > h->size) {
        return "=ypart: end behind the size of the file";
    }
    h->begin = begin - 1;
    h->end = end;
    h->has_range = true;
    return NULL;
}

/* A CRC without a value is no CRC; one that cannot be read is a wrong one. */
static void end_crc(struct yenc_trailer *t, struct span v, uint32_t *crc, bool *has)
{
    if (v.len > 0 && !crc_value(v, crc)) {
        t->bad_crc = true;
    } else if (v.len > 0) {
        *has = true;
    }
}

const char *yenc_parse_end(struct yenc_trailer *t, const char *line, size_t len)
{
    memset(t, 0, sizeof(*t));
    struct span rest = {line, len}, key, value;
    if (!starts(rest, "=yend") || (len > 5 && !is_blank(line[5]))) {
        return "=yend: not there";
    }
    rest = skip(rest, 5);
    while (next_field(&rest, &key, &value)) {
        if (equals(key, "size")) {
            if (t->has_size || !number(value, INT64_MAX, &t->size)) {
                return "=yend: bad size";
            }
            t->has_size = true;
        } else if (equals(key, "pcrc32")) {
            end_crc(t, value, &t->pcrc32, &t->has_pcrc32);
        } else if (equals(key, "crc32")) {
            end_crc(t, value, &t->crc32, &t->has_crc32);
        }
    }
    return NULL;
}
