/* saved_job.c - a job as a line of JSON and back. One table says what is saved, so that writing and reading agree. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "queue/saved.h"
#include "queue/words.h"

enum type { U8, U32, I32, U64, I64, BOOL, TEXT, WORD };

struct field {
    const char *key;
    size_t at;
    enum type type;
    bool sum; /* follows from the files: saved only for a job that will have none in memory */
    const struct queue_words *words;
};

#define F(name, type_)                                              \
    {                                                               \
#        name, offsetof(struct queue_job, name), type_, false, NULL \
    }
#define SUM(name, type_)                                           \
    {                                                              \
#        name, offsetof(struct queue_job, name), type_, true, NULL \
    }
#define W(name, words_)                                                 \
    {                                                                   \
#        name, offsetof(struct queue_job, name), WORD, false, &(words_) \
    }
static const struct field fields[] = {
    F(id, U32),
    W(place, queue_place_words),
    F(row_version, U64),
    F(created_at, I64),
    F(moved_at, I64),
    F(history_at, I64),
    F(expires_at, I64),
    F(attempt, U32),
    F(previous_id, U32),
    F(priority, I32),
    F(name, TEXT),
    F(filename, TEXT),
    F(url, TEXT),
    F(category, TEXT),
    F(dest_dir, TEXT),
    F(final_dir, TEXT),
    F(reason, TEXT),
    F(dupe_key, TEXT),
    F(dupe_score, I32),
    W(dupe_mode, queue_dupe_mode_words),
    F(dupe_backup, BOOL),
    F(downloaded_bytes, U64),
    F(added_files, U32),
    W(par_status, queue_par_status_words),
    W(unpack_status, queue_unpack_status_words),
    W(move_status, queue_step_status_words),
    W(script_status, queue_step_status_words),
    W(delete_status, queue_delete_words),
    W(mark_status, queue_mark_words),
    W(url_status, queue_url_status_words),
    F(download_sec, U32),
    F(post_sec, U32),
    F(par_sec, U32),
    F(repair_sec, U32),
    F(unpack_sec, U32),
    F(message_count, U32),
    F(extra_par_blocks, U32),
    W(reload, queue_reload_words),
    SUM(total_bytes, U64),
    SUM(par_bytes, U64),
    SUM(extra_bytes, U64),
    SUM(left_bytes, U64),
    SUM(paused_bytes, U64),
    SUM(failed_bytes, U64),
    SUM(failed_par_bytes, U64),
    SUM(failed_extra_bytes, U64),
    SUM(total_articles, U32),
    SUM(done_articles, U32),
    SUM(failed_articles, U32),
    SUM(left_files, U32),
    SUM(left_par_files, U32),
    SUM(wanted_left, U32),
    SUM(wanted_unclosed, U32),
    SUM(min_post_at, I64),
    SUM(max_post_at, I64),
};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

/* ---- writing ---- */

/* What is 0 or "" goes without saying. */
static void put_field(struct jsonw *w, const struct queue_job *j, const struct field *f)
{
    const void *at = (const char *)j + f->at;
    int64_t v = 0;
    switch (f->type) {
    case U8:
    case WORD:
        v = *(const uint8_t *)at;
        break;
    case BOOL:
        v = *(const bool *)at;
        break;
    case U32:
        v = *(const uint32_t *)at;
        break;
    case I32:
        v = *(const int32_t *)at;
        break;
    case U64:
        v = (int64_t)(*(const uint64_t *)at & INT64_MAX);
        break;
    case I64:
        v = *(const int64_t *)at;
        break;
    case TEXT:
        if (**(char *const *)at != '\0') {
            jsonw_kstr(w, f->key, *(char *const *)at);
        }
        return;
    }
    if (v != 0 && f->type == WORD) {
        jsonw_kstr(w, f->key, queue_word(f->words, (int)v));
    } else if (v != 0 && f->type == BOOL) {
        jsonw_kbool(w, f->key, true);
    } else if (v != 0) {
        jsonw_kint(w, f->key, v);
    }
}

static void put_params(struct jsonw *w, const char *key, const struct queue_params *p)
{
    if (p->count == 0) {
        return;
    }
    jsonw_key(w, key);
    jsonw_array(w);
    for (uint32_t i = 0; i < p->count; i++) {
        jsonw_array(w);
        jsonw_str(w, p->at[i].name);
        jsonw_str(w, p->at[i].value);
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void put_hex(struct jsonw *w, const char *key, const uint8_t *bytes, size_t n)
{
    char hex[NZB_KEY_BYTES * 2 + 1];
    for (size_t i = 0; i < n; i++) {
        snprintf(hex + i * 2, 3, "%02x", bytes[i]);
    }
    jsonw_kstr(w, key, hex);
}

static void put_holds(struct jsonw *w, const struct queue_job *j)
{
    if (j->holds == 0) {
        return;
    }
    jsonw_key(w, "holds");
    jsonw_array(w);
    for (int h = 0; h < QUEUE_HOLDS; h++) {
        if ((j->holds & QUEUE_HOLD_BIT(h)) != 0) {
            jsonw_object(w);
            jsonw_kstr(w, "hold", queue_hold_name((enum queue_hold)h));
            jsonw_kint(w, "since", j->hold_info[h].since_at);
            jsonw_kint(w, "until", j->hold_info[h].until_at);
            jsonw_end(w);
        }
    }
    jsonw_end(w);
}

static void put_sources(struct jsonw *w, const struct queue_job *j)
{
    jsonw_key(w, "sources");
    jsonw_array(w);
    for (uint32_t i = 0; i < j->source_count; i++) {
        uint8_t layout[8];
        memcpy(layout, &j->sources[i].layout, sizeof(layout));
        jsonw_object(w);
        jsonw_kstr(w, "stored", j->sources[i].stored);
        put_hex(w, "layout", layout, sizeof(layout));
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void put_stats(struct jsonw *w, const struct queue_job *j)
{
    jsonw_key(w, "servers");
    jsonw_array(w);
    for (uint32_t i = 0; i < j->server_stat_count; i++) {
        const struct queue_server_stat *s = &j->server_stats[i];
        if (s->done > 0 || s->failed > 0) {
            jsonw_array(w);
            jsonw_uint(w, s->server_id);
            jsonw_uint(w, s->done);
            jsonw_uint(w, s->failed);
            jsonw_end(w);
        }
    }
    jsonw_end(w);
}

void saved_put_job(const struct queue_job *j, struct text *t)
{
    struct jsonw w;
    jsonw_init(&w, text_write_cb, t);
    jsonw_object(&w);
    for (size_t i = 0; i < FIELDS; i++) {
        if (!fields[i].sum || j->file_count == 0 || j->place != QUEUE_ACTIVE) {
            put_field(&w, j, &fields[i]);
        }
    }
    jsonw_kstr(&w, "state", sm_name(&j->life));
    put_hex(&w, "key", j->key, sizeof(j->key));
    put_holds(&w, j);
    put_params(&w, "params", &j->params);
    put_params(&w, "scripts", &j->script_statuses);
    put_sources(&w, j);
    put_stats(&w, j);
    jsonw_end(&w);
    jsonw_finish(&w);
}

/* ---- reading ---- */

static bool fits(enum type type, json_int_t v)
{
    switch (type) {
    case U8:
        return v >= 0 && v <= UINT8_MAX;
    case U32:
        return v >= 0 && v <= UINT32_MAX;
    case I32:
        return v >= INT32_MIN && v <= INT32_MAX;
    case U64:
        return v >= 0;
    default:
        return true;
    }
}

static int set_text(char **field, const char *text)
{
    char *copy = mem_strdup(text);
    if (copy == NULL) {
        return -ENOMEM;
    }
    mem_free(*field);
    *field = copy;
    return 0;
}

static int take_field(struct queue_job *j, json_t *value, const struct field *f, struct err *e)
{
    void *at = (char *)j + f->at;
    json_int_t v = json_integer_value(value);
    if (f->type == TEXT && json_is_string(value)) {
        return set_text(at, json_string_value(value));
    }
    if (f->type == WORD && json_is_string(value)) {
        v = queue_word_find(f->words, json_string_value(value));
        if (v >= 0) {
            *(uint8_t *)at = (uint8_t)v;
            return 0;
        }
    } else if (f->type == BOOL && json_is_boolean(value)) {
        *(bool *)at = json_is_true(value);
        return 0;
    } else if (f->type != TEXT && f->type != WORD && f->type != BOOL && json_is_integer(value) &&
               fits(f->type, v)) {
        switch (f->type) {
        case U8:
            *(uint8_t *)at = (uint8_t)v;
            break;
        case U32:
            *(uint32_t *)at = (uint32_t)v;
            break;
        case I32:
            *(int32_t *)at = (int32_t)v;
            break;
        case U64:
            *(uint64_t *)at = (uint64_t)v;
            break;
        default:
            *(int64_t *)at = v;
        }
        return 0;
    }
    return err_set(e, ERR_CORRUPT, "'%s' has a value that does not fit", f->key);
}

static bool take_hex(json_t *value, uint8_t *out, size_t n)
{
    const char *hex = json_string_value(value);
    if (hex == NULL || strlen(hex) != n * 2) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        if (strspn(hex + i * 2, "0123456789abcdef") < 2 || sscanf(hex + i * 2, "%2x", &byte) != 1) {
            return false;
        }
        out[i] = (uint8_t)byte;
    }
    return true;
}

static int take_params(struct queue_params *p, json_t *list)
{
    size_t i;
    json_t *pair;
    json_array_foreach(list, i, pair)
    {
        const char *name = json_string_value(json_array_get(pair, 0));
        const char *value = json_string_value(json_array_get(pair, 1));
        int rc = name != NULL && value != NULL ? queue_params_set(p, name, value) : ERR_CORRUPT;
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int take_holds(struct queue_job *j, json_t *list)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *word = json_string_value(json_object_get(item, "hold"));
        int hold = 0;
        while (hold < QUEUE_HOLDS &&
               (word == NULL || strcmp(queue_hold_name((enum queue_hold)hold), word) != 0)) {
            hold++;
        }
        if (hold == QUEUE_HOLDS) {
            return ERR_CORRUPT;
        }
        j->holds |= QUEUE_HOLD_BIT(hold);
        j->hold_info[hold].since_at = json_integer_value(json_object_get(item, "since"));
        j->hold_info[hold].until_at = json_integer_value(json_object_get(item, "until"));
    }
    return 0;
}

static int take_sources(struct queue_job *j, json_t *list)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *stored = json_string_value(json_object_get(item, "stored"));
        uint8_t layout[8];
        if (stored == NULL || !take_hex(json_object_get(item, "layout"), layout, sizeof(layout))) {
            return ERR_CORRUPT;
        }
        int rc = queue_job_add_source(j, NULL, stored);
        if (rc != 0) {
            return rc;
        }
        memcpy(&j->sources[j->source_count - 1].layout, layout, sizeof(layout));
    }
    return 0;
}

static int take_stats(struct queue_job *j, json_t *list)
{
    size_t i, n = json_array_size(list);
    json_t *row;
    if (n == 0) {
        return 0;
    }
    j->server_stats = mem_zalloc(n, sizeof(*j->server_stats));
    if (j->server_stats == NULL) {
        return -ENOMEM;
    }
    json_array_foreach(list, i, row)
    {
        j->server_stats[j->server_stat_count++] = (struct queue_server_stat){
            .server_id = (uint32_t)json_integer_value(json_array_get(row, 0)),
            .done = (uint32_t)json_integer_value(json_array_get(row, 1)),
            .failed = (uint32_t)json_integer_value(json_array_get(row, 2)),
        };
    }
    return 0;
}

static int take_state(struct queue_job *j, const char *word)
{
    for (int s = 0; s < QUEUE_STATES && word != NULL; s++) {
        if (strcmp(queue_job_type.states[s].name, word) == 0) {
            sm_init(&j->life, &queue_job_type, s, j->id);
            return 0;
        }
    }
    return ERR_CORRUPT;
}

int saved_take_job(struct queue_job *j, json_t *line, struct err *e)
{
    for (size_t i = 0; i < FIELDS; i++) {
        json_t *value = json_object_get(line, fields[i].key);
        int rc = value != NULL ? take_field(j, value, &fields[i], e) : 0;
        if (rc != 0) {
            return rc;
        }
    }
    int rc = take_state(j, json_string_value(json_object_get(line, "state")));
    if (rc == 0) {
        rc = take_hex(json_object_get(line, "key"), j->key, sizeof(j->key)) ? 0 : ERR_CORRUPT;
    }
    if (rc == 0) {
        rc = take_holds(j, json_object_get(line, "holds"));
    }
    if (rc == 0) {
        rc = take_params(&j->params, json_object_get(line, "params"));
    }
    if (rc == 0) {
        rc = take_params(&j->script_statuses, json_object_get(line, "scripts"));
    }
    if (rc == 0) {
        rc = take_sources(j, json_object_get(line, "sources"));
    }
    if (rc == 0) {
        rc = take_stats(j, json_object_get(line, "servers"));
    }
    if (rc == 0 && (j->id == 0 || j->id > INT32_MAX)) {
        rc = ERR_CORRUPT;
    }
    return rc == 0 ? 0 : err_sys(e, rc, "job %u", j->id);
}
