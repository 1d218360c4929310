#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "store/internal.h"

void store_cursor_print(const struct store_cursor *c, char text[STORE_CURSOR_TEXT])
{
    snprintf(text, STORE_CURSOR_TEXT, "%" PRId64 ".%" PRId64, c->a, c->b);
}

static bool parse_number(const char **at, int64_t *v)
{
    bool digit = **at >= '0' && **at <= '9';
    if (!digit && !(**at == '-' && (*at)[1] >= '0' && (*at)[1] <= '9')) {
        return false;
    }
    char *end;
    errno = 0;
    *v = strtoll(*at, &end, 10);
    *at = end;
    return errno == 0;
}

int store_cursor_parse(struct store_cursor *c, const char *text, struct err *e)
{
    const char *at = text;
    *c = (struct store_cursor){0};
    if (*text == '\0') {
        return 0;
    }
    if (!parse_number(&at, &c->a) || *at++ != '.' || !parse_number(&at, &c->b) || *at != '\0') {
        *c = (struct store_cursor){0};
        return err_set(e, ERR_INVALID, "not a cursor: '%.40s'", text);
    }
    return 0;
}

unsigned page_limit(const struct store_range *r)
{
    unsigned limit = r == NULL || r->limit == 0 ? STORE_PAGE_USUAL : r->limit;
    return limit > STORE_PAGE_MAX ? STORE_PAGE_MAX : limit;
}

void store_page_free(struct store_page *p)
{
    mem_free(p->rows);
    store_mem_free(p->mem);
    *p = (struct store_page){0};
}

/* Room for one row more. */
static void *page_grow(struct store_page *p, unsigned *room, size_t row_size)
{
    if (p->count == *room) {
        unsigned more = *room == 0 ? 16 : *room * 2;
        void *rows = mem_realloc(p->rows, more, row_size);
        if (rows == NULL) {
            return NULL;
        }
        p->rows = rows;
        *room = more;
    }
    void *row = (char *)p->rows + (size_t)p->count * row_size;
    memset(row, 0, row_size);
    return row;
}

int page_read(struct store *s, struct store_page *p, const char *sql, const struct db_arg *args,
              unsigned limit, const struct page_type *type, struct err *e)
{
    *p = (struct store_page){0};
    unsigned room = 0;
    sqlite3_stmt *st;
    int rv = db_first(&s->db, e, sql, args, &st);
    while (rv == 1) {
        if (p->count == limit) {
            p->more = true;
            db_end(st);
            rv = 0;
            break;
        }
        void *row = page_grow(p, &room, type->row_size);
        int bad = row == NULL ? err_sys(e, -ENOMEM, "database: read")
                              : type->read(&p->mem, st, row, type->arg, e);
        if (bad != 0) {
            db_end(st);
            rv = bad;
            break;
        }
        p->count++;
        rv = db_next(&s->db, e, st);
    }
    if (rv != 0) {
        store_page_free(p);
        return rv;
    }
    if (type->at != NULL && p->count > 0) {
        p->next = type->at((char *)p->rows + (size_t)(p->count - 1) * type->row_size);
    }
    return 0;
}

int page_one(struct store *s, struct store_page *p, const char *sql, const struct db_arg *args,
             const struct page_type *type, const char *what, int64_t id, struct err *e)
{
    int rv = page_read(s, p, sql, args, 1, type, e);
    if (rv == 0 && p->count == 0) {
        rv = err_set(e, ERR_NOT_FOUND, "no %s %" PRId64, what, id);
    }
    return rv;
}

int text_check(const char *what, const char *text, struct err *e)
{
    if (text != NULL && strnlen(text, STORE_TEXT_MAX + 1) > STORE_TEXT_MAX) {
        return err_set(e, ERR_LIMIT, "%s is longer than %d bytes", what, STORE_TEXT_MAX);
    }
    return 0;
}

const char *text_note(const char *text, char buf[STORE_NOTE_MAX + 1])
{
    if (text == NULL) {
        return "";
    }
    size_t len = strnlen(text, STORE_NOTE_MAX + 1);
    if (len <= STORE_NOTE_MAX) {
        return text;
    }
    size_t at = 0;
    while (at < STORE_NOTE_MAX) {
        size_t n = utf8_char_len(text + at, STORE_NOTE_MAX - at);
        if (n == 0) { /* cut off by the end, or no character at all */
            if (STORE_NOTE_MAX - at < 4) {
                break;
            }
            n = 1;
        }
        at += n;
    }
    memcpy(buf, text, at);
    buf[at] = '\0';
    return buf;
}

int word_index(const char *const *words, int count, const char *word)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) {
            return i;
        }
    }
    return -1;
}
