/* catalog.c - what was gathered: sets, descriptions by file id, recovery blocks, the files they came from. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/mem.h"
#include "par2/internal.h"

struct par2_catalog *par2_catalog_new(const struct fsx *fs)
{
    struct par2_catalog *c = mem_zalloc(1, sizeof(*c));
    if (c != NULL) {
        c->fs = fs;
        if (getrandom(c->seed, sizeof(c->seed), GRND_NONBLOCK) != sizeof(c->seed)) {
            c->seed[0] = (uintptr_t)c; /* early at boot: an address is the next best thing */
        }
    }
    return c;
}

static void packets_free(struct packets *p)
{
    for (size_t i = 0; i < p->desc_count; i++) {
        mem_free(p->descs[i]->name);
        mem_free(p->descs[i]->unicode);
        mem_free(p->descs[i]->sums);
        mem_free(p->descs[i]);
    }
    mem_free(p->descs);
    mem_free(p->ids);
    mem_free(p->index);
    mem_free(p->recovery);
    mem_free(p->candidates);
    mem_free(p->creator);
    mem_free(p->comment);
}

void par2_catalog_free(struct par2_catalog *c)
{
    if (c == NULL) {
        return;
    }
    for (size_t i = 0; i < c->set_count; i++) {
        packets_free(c->sets[i]);
        mem_free(c->sets[i]);
    }
    for (size_t i = 0; i < c->volume_count; i++) {
        mem_free(c->volumes[i].path);
    }
    mem_free(c->sets);
    mem_free(c->volumes);
    mem_free(c);
}

bool par2_catalog_charge(struct par2_catalog *c, size_t bytes)
{
    if (bytes > CRITICAL_MAX - c->critical_bytes) {
        return false;
    }
    c->critical_bytes += bytes;
    return true;
}

/* Room for one more in an array that doubles; false: no memory. */
static bool grow(void **array, size_t count, size_t *room, size_t size)
{
    if (count < *room) {
        return true;
    }
    size_t more = *room == 0 ? 16 : 2 * *room;
    void *p = mem_realloc(*array, more, size);
    if (p != NULL) {
        *array = p;
        *room = more;
    }
    return p != NULL;
}

struct packets *par2_catalog_packets(struct par2_catalog *c, const uint8_t id[16])
{
    for (size_t i = 0; i < c->set_count; i++) { /* few, and the first is asked for most */
        if (memcmp(c->sets[i]->id, id, 16) == 0) {
            return c->sets[i];
        }
    }
    if (c->set_count == PAR2_SETS_MAX) {
        return NULL;
    }
    if (c->sets == NULL && (c->sets = mem_zalloc(PAR2_SETS_MAX, sizeof(*c->sets))) == NULL) {
        return NULL;
    }
    struct packets *p = mem_zalloc(1, sizeof(*p));
    if (p != NULL) {
        memcpy(p->id, id, 16);
        c->sets[c->set_count++] = p;
    }
    return p;
}

/* ---- descriptions by file id ---- */

static size_t hash_id(const struct par2_catalog *c, const uint8_t id[16])
{
    uint64_t a, b;
    memcpy(&a, id, 8);
    memcpy(&b, id + 8, 8);
    unsigned __int128 m =
        (unsigned __int128)(a ^ c->seed[0]) * (b ^ c->seed[1] ^ 0x9e3779b97f4a7c15u);
    return (size_t)((uint64_t)m ^ (uint64_t)(m >> 64));
}

/* Where that id is, or the free place where it belongs. */
static uint32_t *slot_of(const struct par2_catalog *c, const struct packets *p,
                         const uint8_t id[16])
{
    size_t i = hash_id(c, id) & (p->index_size - 1);
    while (p->index[i] != 0 && memcmp(p->descs[p->index[i] - 1]->id, id, 16) != 0) {
        i = (i + 1) & (p->index_size - 1);
    }
    return &p->index[i];
}

static bool grow_index(struct par2_catalog *c, struct packets *p)
{
    size_t size = p->index_size == 0 ? 64 : 2 * p->index_size;
    uint32_t *index = mem_zalloc(size, sizeof(*index));
    if (index == NULL) {
        return false;
    }
    mem_free(p->index);
    p->index = index;
    p->index_size = size;
    for (size_t i = 0; i < p->desc_count; i++) {
        *slot_of(c, p, p->descs[i]->id) = (uint32_t)i + 1;
    }
    return true;
}

const struct desc *par2_catalog_find(const struct par2_catalog *c, const struct packets *p,
                                     const uint8_t id[16])
{
    if (p->index_size == 0) {
        return NULL;
    }
    uint32_t n = *slot_of(c, p, id);
    return n != 0 ? p->descs[n - 1] : NULL;
}

struct desc *par2_catalog_desc(struct par2_catalog *c, struct packets *p, const uint8_t id[16])
{
    if (2 * (p->desc_count + 1) > p->index_size && !grow_index(c, p)) {
        return NULL;
    }
    uint32_t *slot = slot_of(c, p, id);
    if (*slot != 0) {
        return p->descs[*slot - 1];
    }
    if (!par2_catalog_charge(c, sizeof(struct desc)) ||
        !grow((void **)&p->descs, p->desc_count, &p->desc_room, sizeof(*p->descs))) {
        return NULL;
    }
    struct desc *d = mem_zalloc(1, sizeof(*d));
    if (d != NULL) {
        memcpy(d->id, id, 16);
        p->descs[p->desc_count++] = d;
        *slot = (uint32_t)p->desc_count;
    }
    return d;
}

/* ---- recovery blocks ---- */

int par2_catalog_add_recovery(struct par2_catalog *c, struct packets *p, const struct recovery *r)
{
    if (p->candidates == NULL && (p->candidates = mem_zalloc(PAR2_RECOVERY_MAX, 1)) == NULL) {
        return -ENOMEM;
    }
    if (p->candidates[r->exponent] >= CANDIDATES_MAX || c->recovery_kept >= RECOVERY_KEPT_MAX) {
        return 0;
    }
    if (!grow((void **)&p->recovery, p->recovery_count, &p->recovery_room, sizeof(*p->recovery))) {
        return -ENOMEM;
    }
    p->recovery[p->recovery_count++] = *r;
    p->candidates[r->exponent]++;
    c->recovery_kept++;
    p->recovery_sorted = false;
    return 0;
}

/* Copies of one block: proven ones first, disproven last, else by where they were found. The same place twice (read
 * again eagerly) becomes neighbours, the better proof first. */
static int by_exponent(const void *a, const void *b)
{
    static const int rank[] = {[PROVEN] = 0, [UNPROVEN] = 1, [DISPROVEN] = 2};
    const struct recovery *x = a, *y = b;
    if (x->exponent != y->exponent) {
        return x->exponent < y->exponent ? -1 : 1;
    }
    if (x->proof != y->proof) {
        return rank[x->proof] - rank[y->proof];
    }
    if (x->volume != y->volume) {
        return x->volume < y->volume ? -1 : 1;
    }
    return (x->offset > y->offset) - (x->offset < y->offset);
}

void par2_recovery_sort(struct packets *p)
{
    if (p->recovery_sorted) {
        return;
    }
    size_t kept = 0;
    for (size_t i = 0; i < p->recovery_count; i++) { /* those found before the main packet */
        if (!p->has_main || p->recovery[i].size == p->block_size) {
            p->recovery[kept++] = p->recovery[i];
        }
    }
    p->recovery_count = kept;
    if (kept > 0) {
        qsort(p->recovery, kept, sizeof(*p->recovery), by_exponent);
    }
    p->recovery_sorted = true;
}

size_t par2_recovery_group_end(const struct packets *p, size_t i)
{
    size_t end = i + 1;
    while (end < p->recovery_count && p->recovery[end].exponent == p->recovery[i].exponent) {
        end++;
    }
    return end;
}

/* ---- files ---- */

struct file_reader {
    const struct fsx *fs;
    int fd;
};

static ssize_t read_file(void *arg, void *p, size_t n, uint64_t at)
{
    const struct file_reader *f = arg;
    size_t done = 0;
    while (done < n && at + done <= INT64_MAX) {
        ssize_t got =
            f->fs->ops->pread(f->fs->arg, f->fd, (char *)p + done, n - done, (off_t)(at + done));
        if (got == -EINTR) {
            continue;
        }
        if (got <= 0) {
            break; /* an error here is an error at the next call, when nothing is read at all */
        }
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static int scan_volume(struct par2_catalog *c, uint32_t volume, bool eager,
                       struct par2_found *found, struct err *e)
{
    struct volume *v = &c->volumes[volume];
    int fd = fsx_open_beneath(c->fs, v->dirfd, v->path, O_RDONLY | O_NONBLOCK, 0, e);
    if (fd < 0) {
        return fd;
    }
    struct stat st;
    int rv = c->fs->ops->fstat(c->fs->arg, fd, &st);
    if (rv < 0) {
        err_sys(e, rv, "%s", v->path);
    } else if (!S_ISREG(st.st_mode)) {
        rv = err_set(e, ERR_INVALID, "%s: not a regular file", v->path);
    } else {
        v->size = (uint64_t)st.st_size;
        struct file_reader f = {c->fs, fd};
        struct reader r = {read_file, &f, v->size};
        rv = par2_packet_scan(c, &r, volume, eager, found, e);
        rv = rv < 0 ? err_wrap(e, rv, "%s", v->path) : 0;
    }
    fsx_close(c->fs, fd, NULL);
    return rv;
}

int par2_catalog_add(struct par2_catalog *c, int dirfd, const char *path, struct par2_found *found,
                     struct err *e)
{
    struct par2_found nothing;
    found = found != NULL ? found : &nothing;
    *found = (struct par2_found){0};
    for (size_t i = 0; i < c->volume_count; i++) {
        if (c->volumes[i].dirfd == dirfd && strcmp(c->volumes[i].path, path) == 0) {
            return 0;
        }
    }
    char *copy = mem_strdup(path);
    if (copy == NULL ||
        !grow((void **)&c->volumes, c->volume_count, &c->volume_room, sizeof(*c->volumes))) {
        mem_free(copy);
        return err_sys(e, -ENOMEM, "%s", path);
    }
    c->volumes[c->volume_count++] = (struct volume){.dirfd = dirfd, .path = copy};
    int rv = scan_volume(c, (uint32_t)c->volume_count - 1, false, found, e);
    if (rv < 0 && rv != -ENOMEM) { /* nothing was taken from it */
        c->volume_count--;
        mem_free(copy);
    }
    return rv;
}

int par2_catalog_rescan(struct par2_catalog *c, uint32_t volume, struct err *e)
{
    struct par2_found found = {0};
    return scan_volume(c, volume, true, &found, e);
}

/* ---- questions ---- */

size_t par2_catalog_sets(const struct par2_catalog *c)
{
    return c->set_count;
}

const uint8_t *par2_catalog_set_id(const struct par2_catalog *c, size_t set)
{
    PRE(set < c->set_count);
    return c->sets[set]->id;
}

size_t par2_catalog_volumes(const struct par2_catalog *c)
{
    return c->volume_count;
}

struct par2_volume par2_catalog_volume(const struct par2_catalog *c, size_t set, size_t n)
{
    PRE(set < c->set_count && n < c->volume_count);
    struct packets *p = c->sets[set];
    struct par2_volume v = {.path = c->volumes[n].path};
    par2_recovery_sort(p);
    for (size_t i = 0; i < p->recovery_count; i = par2_recovery_group_end(p, i)) {
        v.blocks += p->recovery[i].volume == n && p->recovery[i].proof != DISPROVEN;
    }
    return v;
}

static const char *digits(const char *s, uint32_t *value)
{
    uint64_t n = 0;
    const char *p = s;
    for (; isdigit((unsigned char)*p) && n <= PAR2_RECOVERY_MAX; p++) {
        n = 10 * n + (uint64_t)(*p - '0');
    }
    *value = (uint32_t)n;
    return p > s && n <= PAR2_RECOVERY_MAX ? p : NULL;
}

bool par2_volume_name(const char *name, uint32_t *first, uint32_t *count)
{
    size_t len = strlen(name);
    if (len < 5 || strcasecmp(name + len - 5, ".par2") != 0) {
        return false;
    }
    const char *vol = NULL;
    for (const char *p = name; (p = strcasestr(p, ".vol")) != NULL; p += 4) {
        vol = p + 4;
    }
    uint32_t last;
    const char *p = vol != NULL ? digits(vol, first) : NULL;
    if (p == NULL || (*p != '+' && *p != '-')) {
        return false;
    }
    char sign = *p;
    p = digits(p + 1, &last);
    if (p == NULL || strcasecmp(p, ".par2") != 0 || (sign == '-' && last < *first)) {
        return false;
    }
    *count = sign == '+' ? last : last - *first; /* "-" names the first that is no more in it */
    return true;
}
