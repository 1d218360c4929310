#include "newsd/catalog.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/check.h"
#include "base/mem.h"

void newsd_catalog_init(struct newsd_catalog *c, size_t article_bytes)
{
    PRE(article_bytes > 0);
    *c = (struct newsd_catalog){.article_bytes = article_bytes};
}

void newsd_catalog_free(struct newsd_catalog *c)
{
    for (size_t i = 0; i < c->sets_len; i++) {
        mem_free(c->sets[i].name);
    }
    for (size_t i = 0; i < c->files_len; i++) {
        mem_free(c->files[i].path);
        mem_free(c->files[i].name);
    }
    for (size_t i = 0; i < c->articles_len; i++) {
        mem_free(c->articles[i].id);
    }
    mem_free(c->sets);
    mem_free(c->files);
    mem_free(c->articles);
    mem_free(c->index);
    *c = (struct newsd_catalog){0};
}

/* Room for one more element; the table may move. */
static int grow(void **table, size_t len, size_t *room, size_t size)
{
    if (len < *room) {
        return 0;
    }
    size_t more = *room > 0 ? *room * 2 : 64;
    void *moved = len < INT32_MAX / 2 ? mem_realloc(*table, more, size) : NULL;
    if (moved == NULL) {
        return UV_ENOMEM;
    }
    *table = moved;
    *room = more;
    return 0;
}

/* ---- by message-id ---- */

static size_t hash(const char *id, size_t len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < len; i++) {
        h = (h ^ (uint8_t)id[i]) * UINT64_C(0x100000001b3);
    }
    return (size_t)(h ^ (h >> 32));
}

/* Where the id is, or the free place where it belongs. */
static size_t probe(const struct newsd_catalog *c, const char *id, size_t len)
{
    size_t i = hash(id, len) & (c->index_room - 1);
    while (c->index[i] != CATALOG_NONE) {
        const char *there = c->articles[c->index[i]].id;
        if (strlen(there) == len && memcmp(there, id, len) == 0) {
            break;
        }
        i = (i + 1) & (c->index_room - 1);
    }
    return i;
}

static int grow_index(struct newsd_catalog *c)
{
    if (c->articles_len * 2 < c->index_room) {
        return 0;
    }
    size_t room = c->index_room > 0 ? c->index_room * 2 : 256;
    int32_t *fresh = mem_zalloc(room, sizeof(*fresh));
    if (fresh == NULL) {
        return UV_ENOMEM;
    }
    mem_free(c->index);
    c->index = fresh;
    c->index_room = room;
    for (size_t i = 0; i < room; i++) {
        fresh[i] = CATALOG_NONE;
    }
    for (size_t i = 0; i < c->articles_len; i++) {
        const char *id = c->articles[i].id;
        fresh[probe(c, id, strlen(id))] = (int32_t)i;
    }
    return 0;
}

int32_t newsd_find(const struct newsd_catalog *c, const char *id, size_t len)
{
    return c->index_room > 0 ? c->index[probe(c, id, len)] : CATALOG_NONE;
}

static int add_article(struct newsd_catalog *c, const char *id, size_t len, int32_t file,
                       uint32_t part)
{
    int rv = grow_index(c);
    if (rv == 0) {
        rv = grow((void **)&c->articles, c->articles_len, &c->articles_room, sizeof(*c->articles));
    }
    if (rv != 0) {
        return rv;
    }
    size_t place = probe(c, id, len);
    if (c->index[place] != CATALOG_NONE) {
        return ERR_EXISTS;
    }
    struct newsd_article a = {.id = mem_strndup(id, len), .file = file, .part = part};
    if (a.id == NULL) {
        return UV_ENOMEM;
    }
    a.slot = CATALOG_NONE;
    c->index[place] = (int32_t)c->articles_len;
    c->articles[c->articles_len++] = a;
    return 0;
}

int newsd_catalog_add_posted(struct newsd_catalog *c, const char *id, size_t id_len)
{
    int rv = add_article(c, id, id_len, CATALOG_NONE, 0);
    return rv != 0 ? rv : (int)c->articles_len - 1;
}

/* ---- files ---- */

int newsd_catalog_add_set(struct newsd_catalog *c, const char *name)
{
    int rv = grow((void **)&c->sets, c->sets_len, &c->sets_room, sizeof(*c->sets));
    if (rv != 0) {
        return rv;
    }
    struct newsd_set s = {.name = mem_strdup(name), .first_file = (uint32_t)c->files_len};
    if (s.name == NULL) {
        return UV_ENOMEM;
    }
    c->sets[c->sets_len++] = s;
    return 0;
}

void newsd_catalog_end_set(struct newsd_catalog *c)
{
    struct newsd_set *s = &c->sets[c->sets_len - 1];
    for (uint32_t i = 0; i < s->files; i++) {
        struct newsd_file *f = &c->files[s->first_file + i];
        f->number = i + 1;
        f->of = s->files;
    }
}

/* A line end in a name would end the header line that it stands in. */
static char *posted_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = mem_strdup(slash != NULL ? slash + 1 : path);
    for (char *p = name; p != NULL && *p != '\0'; p++) {
        if ((uint8_t)*p < 0x20 || *p == 0x7f) {
            *p = '_';
        }
    }
    return name;
}

/* 32 hexadecimal digits that stand for this file cut in this way. */
static int digest(const char *path, uint64_t size, size_t article_bytes, char out[33])
{
    char text[64];
    unsigned char sum[EVP_MAX_MD_SIZE];
    int n = snprintf(text, sizeof(text), "%" PRIu64 " %zu ", size, article_bytes);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    int ok = md != NULL && EVP_DigestInit_ex(md, EVP_sha256(), NULL) &&
             EVP_DigestUpdate(md, text, (size_t)n) && EVP_DigestUpdate(md, path, strlen(path)) &&
             EVP_DigestFinal_ex(md, sum, NULL);
    EVP_MD_CTX_free(md);
    for (int i = 0; ok && i < 16; i++) {
        snprintf(out + 2 * i, 3, "%02x", sum[i]);
    }
    return ok ? 0 : UV_ENOMEM;
}

static int add_parts(struct newsd_catalog *c, const struct newsd_file *f)
{
    char sum[33], id[CATALOG_ID_OURS];
    int rv = digest(f->path, f->size, c->article_bytes, sum);
    for (uint32_t part = 1; rv == 0 && part <= f->parts; part++) {
        int n = snprintf(id, sizeof(id), "p%" PRIu32 ".%s@newsd", part, sum);
        rv = add_article(c, id, (size_t)n, (int32_t)c->files_len, part);
    }
    return rv;
}

int newsd_catalog_add_file(struct newsd_catalog *c, const char *path, uint64_t size, int64_t date)
{
    PRE(c->sets_len > 0);
    if (size == 0) { /* no poster sends those, and the format has no part without bytes */
        c->empty_files++;
        return 0;
    }
    uint64_t parts = (size - 1) / c->article_bytes + 1;
    if (parts > INT32_MAX / 2) {
        return ERR_LIMIT;
    }
    int rv = grow((void **)&c->files, c->files_len, &c->files_room, sizeof(*c->files));
    if (rv != 0) {
        return rv;
    }
    struct newsd_file f = {.path = mem_strdup(path), .name = posted_name(path), .size = size};
    f.date = date;
    f.parts = (uint32_t)parts;
    f.first = (uint32_t)c->articles_len;
    rv = f.path != NULL && f.name != NULL ? add_parts(c, &f) : UV_ENOMEM;
    if (rv != 0) { /* articles without their file: the caller gives the catalog up */
        mem_free(f.path);
        mem_free(f.name);
        return rv;
    }
    c->files[c->files_len++] = f;
    c->sets[c->sets_len - 1].files++;
    c->bytes += size;
    return 0;
}

const struct newsd_file *newsd_catalog_file(const struct newsd_catalog *c, int32_t article)
{
    int32_t file = c->articles[article].file;
    return file != CATALOG_NONE ? &c->files[file] : NULL;
}

void newsd_catalog_subject(const struct newsd_file *f, uint32_t part, char *out, size_t size)
{
    snprintf(out, size, "[%" PRIu32 "/%" PRIu32 "] - \"%s\" yEnc (%" PRIu32 "/%" PRIu32 ")",
             f->number, f->of, f->name, part, f->parts);
}

uint64_t newsd_catalog_part_at(const struct newsd_catalog *c, uint32_t part)
{
    return (uint64_t)(part - 1) * c->article_bytes;
}

size_t newsd_catalog_part_len(const struct newsd_catalog *c, const struct newsd_file *f,
                              uint32_t part)
{
    uint64_t left = f->size - newsd_catalog_part_at(c, part);
    return left < c->article_bytes ? (size_t)left : c->article_bytes;
}
