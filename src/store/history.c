#include "store/history.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "store/internal.h"

/* ---- lists in one column ----
 *
 * Pairs are "name\0value\0name\0value\0"; servers are three little-endian 32-bit numbers each. */

static int pack_pairs(const struct store_pair *pairs, unsigned count, unsigned char **blob,
                      size_t *size, struct err *e)
{
    *size = 0;
    *blob = NULL;
    for (unsigned i = 0; i < count; i++) {
        int rv = text_check("a parameter", pairs[i].name, e);
        rv = rv != 0 ? rv : text_check("a parameter", pairs[i].value, e);
        if (rv != 0) {
            return rv;
        }
        *size += strlen(text_or_empty(pairs[i].name)) + strlen(text_or_empty(pairs[i].value)) + 2;
    }
    unsigned char *to = *blob = mem_alloc(*size);
    if (to == NULL) {
        return err_sys(e, -ENOMEM, "history");
    }
    for (unsigned i = 0; i < count; i++) {
        const char *texts[] = {text_or_empty(pairs[i].name), text_or_empty(pairs[i].value)};
        for (int k = 0; k < 2; k++) {
            size_t n = strlen(texts[k]) + 1;
            memcpy(to, texts[k], n);
            to += n;
        }
    }
    return 0;
}

static int unpack_pairs(struct store_mem **mem, const void *blob, size_t size,
                        const struct store_pair **pairs, unsigned *count)
{
    const void *copy;
    *count = 0;
    *pairs = NULL;
    if (size == 0) {
        return 0;
    }
    if (store_mem_blob(mem, blob, size, &copy) != 0) { /* has a zero behind it */
        return -ENOMEM;
    }
    const char *at = copy, *end = at + size;
    unsigned texts = 0;
    for (const char *p = at; p < end; p++) {
        texts += *p == '\0';
    }
    struct store_pair *out = store_mem_alloc(mem, (texts / 2 + 1) * sizeof(*out));
    if (out == NULL) {
        return -ENOMEM;
    }
    while (at < end && *count < texts / 2) {
        struct store_pair *p = &out[(*count)++];
        p->name = at;
        at += strlen(at) + 1;
        p->value = at;
        at += strlen(at) + 1;
    }
    *pairs = out;
    return 0;
}

static void put_u32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (unsigned char)(v >> (8 * i));
    }
}

static uint32_t get_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int pack_servers(const struct store_server_stat *stats, unsigned count, unsigned char **blob,
                        size_t *size, struct err *e)
{
    *size = (size_t)count * 12;
    *blob = mem_alloc(*size);
    if (*blob == NULL) {
        return err_sys(e, -ENOMEM, "history");
    }
    for (unsigned i = 0; i < count; i++) {
        put_u32(*blob + i * 12, stats[i].server);
        put_u32(*blob + i * 12 + 4, stats[i].done);
        put_u32(*blob + i * 12 + 8, stats[i].failed);
    }
    return 0;
}

static int unpack_servers(struct store_mem **mem, const unsigned char *blob, size_t size,
                          const struct store_server_stat **stats, unsigned *count)
{
    *count = (unsigned)(size / 12);
    *stats = NULL;
    if (*count == 0) {
        return 0;
    }
    struct store_server_stat *out = store_mem_alloc(mem, *count * sizeof(*out));
    if (out == NULL) {
        return -ENOMEM;
    }
    for (unsigned i = 0; i < *count; i++) {
        out[i] = (struct store_server_stat){get_u32(blob + i * 12), get_u32(blob + i * 12 + 4),
                                            get_u32(blob + i * 12 + 8)};
    }
    *stats = out;
    return 0;
}

/* ---- writing ---- */

static int put(struct store *s, const struct store_history *h, const unsigned char *blobs[3],
               const size_t sizes[3], struct err *e)
{
#define X(t) T(text_or_empty(h->t))
    return db_exec(
        &s->db, e,
        "INSERT OR REPLACE INTO history VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,"
        "?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25,?26,?27,?28,?29,?30,?31,?32,?33,?34,?35,?36,"
        "?37,?38,?39,?40,?41,?42,?43,?44)",
        DB_ARGS(I(h->job), I(h->at), I(h->hidden), X(kind), X(status), X(name), X(filename), X(url),
                X(category), X(dest_dir), X(final_dir), X(dupe_key), X(dupe_mode), I(h->dupe_score),
                X(par_status), X(unpack_status), X(move_status), X(script_status), X(delete_status),
                X(mark_status), X(url_status), X(dup_status), U(h->size_bytes),
                U(h->downloaded_bytes), I(h->files), I(h->left_files), I(h->articles),
                I(h->articles_done), I(h->articles_failed), I(h->health_permille),
                I(h->critical_permille), I(h->download_sec), I(h->post_sec), I(h->par_sec),
                I(h->repair_sec), I(h->unpack_sec), I(h->messages), I(h->extra_par_blocks),
                I(h->min_post_at), I(h->max_post_at), I(h->retry_data), B(blobs[0], sizes[0]),
                B(blobs[1], sizes[1]), B(blobs[2], sizes[2])));
#undef X
}

int store_history_put(struct store *s, const struct store_history *h, struct err *e)
{
    const char *const texts[] = {h->name,     h->filename,  h->url,     h->category,
                                 h->dest_dir, h->final_dir, h->dupe_key};
    int rv = 0;
    for (size_t i = 0; rv == 0 && i < sizeof(texts) / sizeof(texts[0]); i++) {
        rv = text_check("a text of a history entry", texts[i], e);
    }
    struct job_at at;
    rv = rv != 0 ? rv : job_at(s, h->job, &at, e);
    unsigned char *blobs[3] = {NULL, NULL, NULL};
    size_t sizes[3] = {0, 0, 0};
    rv = rv != 0 ? rv : pack_pairs(h->params, h->param_count, &blobs[0], &sizes[0], e);
    rv = rv != 0 ? rv : pack_pairs(h->scripts, h->script_count, &blobs[1], &sizes[1], e);
    rv = rv != 0 ? rv : pack_servers(h->servers, h->server_count, &blobs[2], &sizes[2], e);
    if (rv == 0) {
        rv = put(s, h, (const unsigned char *[]){blobs[0], blobs[1], blobs[2]}, sizes, e);
    }
    for (int i = 0; i < 3; i++) {
        mem_free(blobs[i]);
    }
    return rv;
}

int store_history_remove(struct store *s, uint32_t job, struct err *e)
{
    int rv = db_exec(&s->db, e, "DELETE FROM history WHERE job = ?1", DB_ARGS(I(job)));
    if (rv == 0 && db_changes(&s->db) == 0) {
        rv = err_set(e, ERR_NOT_FOUND, "no history entry %" PRIu32, job);
    }
    return rv;
}

/* ---- reading ---- */

static int read_texts(struct store_mem **mem, sqlite3_stmt *st, struct store_history *h)
{
    const char **const texts[] = {&h->kind,
                                  &h->status,
                                  &h->name,
                                  &h->filename,
                                  &h->url,
                                  &h->category,
                                  &h->dest_dir,
                                  &h->final_dir,
                                  &h->dupe_key,
                                  &h->dupe_mode,
                                  NULL,
                                  &h->par_status,
                                  &h->unpack_status,
                                  &h->move_status,
                                  &h->script_status,
                                  &h->delete_status,
                                  &h->mark_status,
                                  &h->url_status,
                                  &h->dup_status};
    int rv = 0;
    for (int i = 0; rv == 0 && i < (int)(sizeof(texts) / sizeof(texts[0])); i++) {
        if (texts[i] != NULL) {
            rv = store_mem_text(mem, db_col_text(st, 3 + i), texts[i]);
        }
    }
    return rv;
}

static int history_read(struct store_mem **mem, sqlite3_stmt *st, void *row, void *arg,
                        struct err *e)
{
    struct store_history *h = row;
    (void)arg;
    h->job = col_u32(st, 0);
    h->at = sqlite3_column_int64(st, 1);
    h->hidden = sqlite3_column_int64(st, 2) != 0;
    h->dupe_score = (int32_t)sqlite3_column_int64(st, 13);
    h->size_bytes = col_u64(st, 22);
    h->downloaded_bytes = col_u64(st, 23);
    uint32_t *const numbers[] = {
        &h->files,           &h->left_files,      &h->articles,          &h->articles_done,
        &h->articles_failed, &h->health_permille, &h->critical_permille, &h->download_sec,
        &h->post_sec,        &h->par_sec,         &h->repair_sec,        &h->unpack_sec,
        &h->messages,        &h->extra_par_blocks};
    for (int i = 0; i < 14; i++) {
        *numbers[i] = col_u32(st, 24 + i);
    }
    h->min_post_at = sqlite3_column_int64(st, 38);
    h->max_post_at = sqlite3_column_int64(st, 39);
    h->retry_data = sqlite3_column_int64(st, 40) != 0;
    /* The size is asked for after the bytes: reading them may convert them. */
    const void *params = sqlite3_column_blob(st, 41);
    size_t params_size = (size_t)sqlite3_column_bytes(st, 41);
    const void *scripts = sqlite3_column_blob(st, 42);
    size_t scripts_size = (size_t)sqlite3_column_bytes(st, 42);
    const void *servers = sqlite3_column_blob(st, 43);
    size_t servers_size = (size_t)sqlite3_column_bytes(st, 43);
    if (read_texts(mem, st, h) != 0 ||
        unpack_pairs(mem, params, params_size, &h->params, &h->param_count) != 0 ||
        unpack_pairs(mem, scripts, scripts_size, &h->scripts, &h->script_count) != 0 ||
        unpack_servers(mem, servers, servers_size, &h->servers, &h->server_count) != 0) {
        return err_sys(e, -ENOMEM, "database: read");
    }
    return 0;
}

static struct store_cursor history_cursor(const void *row)
{
    const struct store_history *h = row;
    return (struct store_cursor){h->at, h->job};
}

static const struct page_type history_page = {sizeof(struct store_history), history_read,
                                              history_cursor, NULL};

int store_history_get(struct store *s, uint32_t job, struct store_page *page, struct err *e)
{
    return page_one(s, page, "SELECT * FROM history WHERE job = ?1", DB_ARGS(I(job)), &history_page,
                    "history entry", job, e);
}

#define HISTORY_WHERE                                           \
    " AND (?3 OR hidden = 0) AND (?4 IS NULL OR category = ?4)" \
    " AND (?5 IS NULL OR substr(status, 1, length(?5)) = ?5)"   \
    " AND (?6 IS NULL OR instr(lower(name), lower(?6)) > 0)"    \
    " ORDER BY at DESC, job DESC LIMIT ?8"

int store_history_list(struct store *s, const struct store_history_filter *f,
                       const struct store_range *range, struct store_page *page, struct err *e)
{
    unsigned limit = page_limit(range);
    struct store_cursor c = range != NULL ? range->after : (struct store_cursor){0, 0};
    if (c.a == 0 && c.b == 0) {
        c = (struct store_cursor){INT64_MAX, INT64_MAX};
    }
    return page_read(s, page,
                     f->dupe_key != NULL ? "SELECT * FROM history WHERE dupe_key = ?7 AND dupe_key"
                                           " <> '' AND (at, job) < (?1, ?2)" HISTORY_WHERE
                                         : "SELECT * FROM history WHERE (at, job) < (?1, ?2) AND"
                                           " ?7 IS NULL" HISTORY_WHERE,
                     DB_ARGS(I(c.a), I(c.b), I(f->with_hidden), T(f->category), T(f->status),
                             T(f->name), T(f->dupe_key), I(limit + 1)),
                     limit, &history_page, e);
}

int store_history_count(struct store *s, bool with_hidden, int64_t *count, struct err *e)
{
    return db_number(&s->db, e, "SELECT count(*) FROM history WHERE ?1 OR hidden = 0",
                     DB_ARGS(I(with_hidden)), 0, count);
}
