#include "newsd/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/check.h"
#include "base/fsx.h"
#include "base/mem.h"
#include "newsd/nzb.h"
#include "yenc/yenc.h"

enum {
    HEAD_MAX = 4096,
    SLOTS_MIN = 16,
    NAME_POSTED_MAX = 255,
};
#define SPOOL_MAX (UINT64_C(1) << 36) /* address space only: pages come as articles are posted */

/* ---- one article out of a file ---- */

size_t newsd_article_text_max(const struct newsd_catalog *c)
{
    struct yenc_post p = {.name = "", .line = YENC_LINE_USUAL};
    return HEAD_MAX + NAME_POSTED_MAX + yenc_post_max(&p, c->article_bytes);
}

static size_t make_head(const struct newsd_file *f, const struct newsd_article *a,
                        const char *group, char *out)
{
    char subject[CATALOG_SUBJECT_MAX], date[64];
    newsd_catalog_subject(f, a->part, subject, sizeof(subject));
    time_t when = (time_t)f->date;
    struct tm tm = {0};
    gmtime_r(&when, &tm);
    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S +0000", &tm);
    int n = snprintf(out, HEAD_MAX,
                     "Path: newsd!not-for-mail\r\nFrom: " NEWSD_POSTER
                     "\r\nNewsgroups: %.512s\r\nSubject: %s\r\nDate: %s\r\nMessage-ID: <%s>\r\n",
                     group, subject, date, a->id);
    POST(n > 0 && n < HEAD_MAX);
    return (size_t)n;
}

size_t newsd_article_make(const struct newsd_catalog *c, int32_t article, const char *group,
                          const uint8_t *data, size_t n, uint8_t *out, size_t *head_len)
{
    const struct newsd_article *a = &c->articles[article];
    const struct newsd_file *f = newsd_catalog_file(c, article);
    struct yenc_post p = {
        .name = f->name,
        .size = f->size,
        .begin = newsd_catalog_part_at(c, a->part),
        .part = a->part,
        .total = f->parts,
        .line = YENC_LINE_USUAL,
    };
    size_t used = make_head(f, a, group, (char *)out);
    *head_len = used;
    memcpy(out + used, "\r\n", 2);
    used += 2;
    used += yenc_post_make(&p, data, n, out + used);
    memcpy(out + used, ".\r\n", 3);
    return used + 3;
}

/* ---- the store ---- */

static int map_cache(struct newsd_store *s, struct err *e)
{
    s->cache_fd = memfd_create("newsd", MFD_CLOEXEC);
    if (s->cache_fd < 0 || ftruncate(s->cache_fd, (off_t)s->cache_size) != 0) {
        return err_sys(e, -errno, "cache");
    }
    s->cache = mmap(NULL, s->cache_size, PROT_READ | PROT_WRITE, MAP_SHARED, s->cache_fd, 0);
    if (s->cache == MAP_FAILED) {
        s->cache = NULL;
        return err_sys(e, -errno, "cache");
    }
    return 0;
}

int newsd_store_init(struct newsd_store *s, struct newsd_catalog *c, int dirfd, const char *group,
                     size_t cache_bytes, struct err *e)
{
    *s = (struct newsd_store){.catalog = c, .group = group, .dirfd = dirfd};
    s->cache_fd = s->spool_fd = -1;
    list_init(&s->by_age);
    if (c->articles_len == 0) {
        return 0;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t usual = c->article_bytes + c->article_bytes / 32 + page;
    s->slots_len = cache_bytes / usual > SLOTS_MIN ? cache_bytes / usual : SLOTS_MIN;
    if (s->slots_len > c->articles_len) {
        s->slots_len = c->articles_len;
    }
    s->slot_size = (newsd_article_text_max(c) + page - 1) / page * page;
    s->slots = mem_zalloc(s->slots_len, sizeof(*s->slots));
    s->scratch = mem_aligned(64, c->article_bytes);
    if (s->slots == NULL || s->scratch == NULL ||
        __builtin_mul_overflow(s->slots_len, s->slot_size, &s->cache_size)) {
        newsd_store_free(s);
        return err_sys(e, UV_ENOMEM, "cache");
    }
    for (size_t i = 0; i < s->slots_len; i++) {
        s->slots[i].article = CATALOG_NONE;
        list_push_back(&s->by_age, &s->slots[i].node);
    }
    int rv = map_cache(s, e);
    if (rv != 0) {
        newsd_store_free(s);
    }
    return rv;
}

void newsd_store_free(struct newsd_store *s)
{
    if (s->cache != NULL) {
        munmap(s->cache, s->cache_size);
    }
    if (s->spool != NULL) {
        munmap(s->spool, SPOOL_MAX);
    }
    if (s->cache_fd >= 0) {
        close(s->cache_fd);
    }
    if (s->spool_fd >= 0) {
        close(s->spool_fd);
    }
    mem_free(s->slots);
    mem_free(s->scratch);
    *s = (struct newsd_store){.cache_fd = -1, .spool_fd = -1};
}

/* Reads the part into `scratch`; its length, or a negative code. */
static ssize_t read_part(struct newsd_store *s, int32_t article)
{
    const struct newsd_catalog *c = s->catalog;
    const struct newsd_file *f = newsd_catalog_file(c, article);
    uint32_t part = c->articles[article].part;
    int fd = fsx_open_beneath(&fsx_kernel, s->dirfd, f->path, O_RDONLY, 0, NULL);
    if (fd < 0) {
        return fd;
    }
    size_t n = newsd_catalog_part_len(c, f, part), done = 0;
    ssize_t got = 1;
    while (done < n && got > 0) {
        got =
            pread(fd, s->scratch + done, n - done, (off_t)(newsd_catalog_part_at(c, part) + done));
        done += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    return done == n ? (ssize_t)n : ERR_TRUNCATED;
}

/* The slot that was not needed longest and is not being sent from. */
static struct newsd_slot *take_slot(struct newsd_store *s)
{
    LIST_FOREACH (node, &s->by_age) {
        struct newsd_slot *slot = LIST_ENTRY(node, struct newsd_slot, node);
        if (slot->pins == 0) {
            if (slot->article != CATALOG_NONE) {
                s->catalog->articles[slot->article].slot = CATALOG_NONE;
                slot->article = CATALOG_NONE;
            }
            return slot;
        }
    }
    return NULL;
}

static void lend_slot(struct newsd_store *s, struct newsd_slot *slot, struct newsd_text *t)
{
    size_t i = (size_t)(slot - s->slots);
    slot->pins++;
    list_remove(&slot->node);
    list_push_back(&s->by_age, &slot->node);
    *t = (struct newsd_text){
        .p = s->cache + i * s->slot_size, .head_len = slot->head_len, .len = slot->len};
    t->slot = (int32_t)i;
}

static int encode(struct newsd_store *s, int32_t article, struct newsd_text *t)
{
    ssize_t n = read_part(s, article);
    if (n < 0) {
        return (int)n;
    }
    s->encoded++;
    struct newsd_slot *slot = take_slot(s);
    if (slot != NULL) {
        uint8_t *out = s->cache + (size_t)(slot - s->slots) * s->slot_size;
        slot->len = newsd_article_make(s->catalog, article, s->group, s->scratch, (size_t)n, out,
                                       &slot->head_len);
        slot->article = article;
        s->catalog->articles[article].slot = (int32_t)(slot - s->slots);
        lend_slot(s, slot, t);
        return 0;
    }
    uint8_t *out = mem_alloc(s->slot_size);
    if (out == NULL) {
        return UV_ENOMEM;
    }
    *t = (struct newsd_text){.p = out, .slot = CATALOG_NONE, .owned = out};
    t->len =
        newsd_article_make(s->catalog, article, s->group, s->scratch, (size_t)n, out, &t->head_len);
    return 0;
}

int newsd_store_get(struct newsd_store *s, int32_t article, struct newsd_text *t)
{
    const struct newsd_article *a = &s->catalog->articles[article];
    if (a->file == CATALOG_NONE) {
        *t = (struct newsd_text){.p = s->spool + a->at, .head_len = a->head_len, .len = a->len};
        t->slot = CATALOG_NONE;
        return 0;
    }
    if (a->slot != CATALOG_NONE) {
        lend_slot(s, &s->slots[a->slot], t);
        return 0;
    }
    return encode(s, article, t);
}

void newsd_store_put(struct newsd_store *s, struct newsd_text *t)
{
    if (t->slot != CATALOG_NONE) {
        s->slots[t->slot].pins--;
    }
    mem_free(t->owned);
    *t = (struct newsd_text){.slot = CATALOG_NONE};
}

/* ---- what is posted ---- */

static int open_spool(struct newsd_store *s, struct err *e)
{
    int fd = s->dirfd >= 0 ? openat(s->dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    if (fd < 0) { /* no directory, or one that cannot be written: memory then */
        fd = memfd_create("newsd-posted", MFD_CLOEXEC);
    }
    if (fd < 0) {
        return err_sys(e, -errno, "place for posted articles");
    }
    void *map = mmap(NULL, SPOOL_MAX, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (map == MAP_FAILED) {
        int rv = -errno;
        close(fd);
        return err_sys(e, rv, "place for posted articles");
    }
    s->spool_fd = fd;
    s->spool = map;
    return 0;
}

int newsd_store_add(struct newsd_store *s, const uint8_t *text, size_t len, uint64_t *at,
                    struct err *e)
{
    int rv = s->spool != NULL ? 0 : open_spool(s, e);
    if (rv != 0) {
        return rv;
    }
    if (len > SPOOL_MAX - s->spool_len) {
        return err_set(e, ERR_FULL, "no room for more articles");
    }
    rv = fsx_pwrite_all(&fsx_kernel, s->spool_fd, text, len, s->spool_len, e);
    if (rv == 0) {
        *at = s->spool_len;
        s->spool_len += len;
    }
    return rv;
}
