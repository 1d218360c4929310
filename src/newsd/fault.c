/* fault.c - a reply as segments of bytes, and what a rule makes of it. */
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "newsd/session.h"

static void add(struct newsd_sending *x, const void *p, size_t len)
{
    if (len > 0) {
        PRE(x->count < SEGMENTS_MAX);
        x->segments[x->count].p = p;
        x->segments[x->count++].len = len;
        x->total += len;
    }
}

/* ---- a changed body ---- */

/* First and last byte of the encoded data; false when this is not yEnc. */
static bool data_range(const uint8_t *p, size_t n, size_t *begin, size_t *end)
{
    const uint8_t *at = memmem(p, n, "=ypart ", 7);
    at = at != NULL ? at : memmem(p, n, "=ybegin ", 8);
    const uint8_t *eol = at != NULL ? memchr(at, '\n', n - (size_t)(at - p)) : NULL;
    if (eol == NULL) {
        return false;
    }
    *begin = (size_t)(eol - p) + 1;
    const uint8_t *tail = memmem(eol, n - (size_t)(eol - p), "\n=yend ", 7);
    *end = tail != NULL ? (size_t)(tail - p) : n;
    return *begin < *end;
}

static bool ordinary(uint8_t c)
{
    return c > '=' && c != 'y' && c < 0xff;
}

/* One byte in the middle becomes another one; the size stays right. */
static void damage(uint8_t *p, size_t n)
{
    size_t begin, end;
    if (!data_range(p, n, &begin, &end)) {
        return;
    }
    for (size_t i = begin + (end - begin) / 2; i < end; i++) {
        if (ordinary(p[i]) && ordinary((uint8_t)(p[i] + 1)) && p[i - 1] != '=') {
            p[i]++;
            return;
        }
    }
}

/* Every CRC that =yend names, since readers differ in which one they believe. */
static void bad_crc(uint8_t *p, size_t n)
{
    size_t begin, end;
    if (!data_range(p, n, &begin, &end)) {
        return;
    }
    for (size_t i = end; i + 7 < n; i++) {
        if (memcmp(p + i, "crc32=", 6) == 0) {
            p[i + 6] = p[i + 6] == '0' ? '1' : '0';
        }
    }
}

/* An escaped dot at the start of a line may as well be a doubled one, as long as there are two bytes for it. */
static void dots(uint8_t *p, size_t n)
{
    size_t begin, end;
    if (!data_range(p, n, &begin, &end)) {
        return;
    }
    for (size_t i = begin; i + 1 < end; i++) {
        if (p[i - 1] == '\n' && p[i] == '=' && p[i + 1] == 'n') {
            p[i] = p[i + 1] = '.';
        }
    }
}

/* Data lines end with LF alone. The last one keeps its CRLF, as do all others: the dot line stays one. */
static size_t bare_lf(uint8_t *p, size_t n)
{
    size_t begin, end;
    if (!data_range(p, n, &begin, &end)) {
        return n;
    }
    uint8_t *to = p + begin;
    for (size_t i = begin; i < n; i++) {
        bool crlf = p[i] == '\r' && i + 1 < end && p[i + 1] == '\n';
        if (!crlf || i + 2 >= end) {
            *to++ = p[i];
        }
    }
    return (size_t)(to - p);
}

/* Ends the text early, behind a whole line. */
static size_t truncate_text(uint8_t *p, size_t n, const struct newsd_place *place)
{
    size_t at = (size_t)newsd_script_place(place, n);
    at = at < n - 3 ? at : n - 3;
    while (at > 0 && p[at - 1] != '\n') {
        at--;
    }
    memcpy(p + at, ".\r\n", 3);
    return at + 3;
}

static size_t change(uint8_t *p, size_t n, const struct newsd_rule *r)
{
    if (r->content & FAULT_DAMAGE) {
        damage(p, n);
    }
    if (r->content & FAULT_BAD_CRC) {
        bad_crc(p, n);
    }
    if (r->content & FAULT_DOTS) {
        dots(p, n);
    }
    if (r->content & FAULT_BARE_LF) {
        n = bare_lf(p, n);
    }
    return r->content & FAULT_TRUNCATE ? truncate_text(p, n, &r->truncate_at) : n;
}

/* ---- the reply ---- */

static void wrong_id(char *text, size_t len)
{
    char *id = memchr(text, '<', len);
    if (id != NULL && id + 1 < text + len) {
        id[1] = id[1] == 'x' ? 'y' : 'x';
    }
}

static void add_article(struct newsd_session *s, struct newsd_reply *r)
{
    static const char failed[] = "403 the file cannot be read\r\n";
    struct newsd_server *v = s->server;
    struct newsd_sending *x = &s->sending;
    unsigned content = r->rule != NULL ? r->rule->content : 0;
    int32_t article = r->article;
    if (content & FAULT_SWAP) {
        article = (int32_t)(((size_t)article + 1) % v->catalog.articles_len);
    }
    if (newsd_store_get(&v->store, article, &x->lent) != 0) {
        x->lent = (struct newsd_text){.slot = CATALOG_NONE};
        add(x, failed, sizeof(failed) - 1);
        return;
    }
    const uint8_t *p = x->lent.p;
    size_t len = r->want == WANT_HEAD ? x->lent.head_len : x->lent.len;
    if (r->want == WANT_BODY) {
        p += x->lent.head_len + 2;
        len -= x->lent.head_len + 2;
    }
    add(x, r->text, r->text_len);
    if (content & (FAULT_DAMAGE | FAULT_BAD_CRC | FAULT_DOTS | FAULT_TRUNCATE | FAULT_BARE_LF) &&
        r->want != WANT_HEAD) {
        x->copy = mem_alloc(len);
        if (x->copy != NULL) {
            memcpy(x->copy, p, len);
            p = x->copy;
            len = change(x->copy, len, r->rule);
        }
    }
    add(x, p, len);
    if (r->want == WANT_HEAD) {
        add(x, ".\r\n", 3);
    }
}

/* What was built so far ends at the place, and the filler follows. */
static void make_endless(struct newsd_session *s, const struct newsd_rule *r)
{
    struct newsd_sending *x = &s->sending;
    uint64_t left = newsd_script_place(&r->endless_at, x->total);
    x->total = left;
    for (unsigned i = 0; i < x->count; i++) {
        if (x->segments[i].len >= left) {
            x->segments[i].len = (size_t)left;
            x->count = i + (left > 0 ? 1 : 0);
            break;
        }
        left -= x->segments[i].len;
    }
    x->segments[x->count].p =
        r->content & FAULT_ENDLESS_BODY ? s->server->endless_body : s->server->endless_line;
    x->segments[x->count++].len = ENDLESS_BYTES;
    x->endless = true;
}

static void add_reply(struct newsd_session *s, struct newsd_reply *r)
{
    struct newsd_sending *x = &s->sending;
    unsigned content = r->rule != NULL ? r->rule->content : 0;
    if (content & FAULT_INSTEAD) {
        add(x, r->rule->instead.p, r->rule->instead.len);
    } else if (!(content & FAULT_DROP)) {
        if (content & FAULT_WRONG_ID) {
            wrong_id(r->text, r->text_len);
        }
        if (r->want == WANT_TEXT) {
            add(x, r->text, r->text_len);
        } else {
            add_article(s, r);
        }
    }
    if (content & FAULT_DOUBLE) {
        for (unsigned i = 0, n = x->count; i < n; i++) {
            add(x, x->segments[i].p, x->segments[i].len);
        }
    }
}

void newsd_sending_begin(struct newsd_session *s, struct newsd_reply *r)
{
    struct newsd_sending *x = &s->sending;
    *x = (struct newsd_sending){.reply = r, .marked = true};
    x->lent.slot = CATALOG_NONE;
    const struct newsd_rule *rule = r->rule;
    if (rule != NULL) {
        add(x, rule->before.p, rule->before.len);
    }
    add_reply(s, r);
    if (rule == NULL) {
        return;
    }
    if (rule->content & (FAULT_ENDLESS_LINE | FAULT_ENDLESS_BODY)) {
        make_endless(s, rule);
    } else {
        add(x, rule->behind.p, rule->behind.len);
    }
    if (rule->deliver != DELIVER_WHOLE) {
        bool never = x->endless && rule->after.value == UINT64_MAX;
        x->mark = never ? UINT64_MAX : newsd_script_place(&rule->after, x->total);
        x->marked = false;
    }
}

void newsd_sending_end(struct newsd_session *s)
{
    struct newsd_sending *x = &s->sending;
    if (x->lent.p != NULL) {
        newsd_store_put(&s->server->store, &x->lent);
    }
    mem_free(x->copy);
    mem_free(x->reply);
    *x = (struct newsd_sending){.reply = NULL};
    x->lent.slot = CATALOG_NONE;
}
