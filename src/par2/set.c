/* set.c - one set, checked: its files in the order of the main packet, their blocks, and the files on disk. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/name.h"
#include "par2/gf16.h"
#include "par2/internal.h"

/* ---- names ---- */

/* Copies `name` with '/' as the separator. Why it may not be written, or NULL. */
static const char *as_written(const char *name, char out[PAR2_PATH_MAX])
{
    size_t len = strlen(name);
    out[0] = '\0';
    if (len == 0) {
        return "the name is empty";
    }
    if (len >= PAR2_PATH_MAX) {
        return "the name is too long";
    }
    for (size_t i = 0; i <= len; i++) {
        out[i] = name[i] == '\\' ? '/' : name[i];
        if ((unsigned char)name[i] < ' ' && i < len) {
            return "the name has a control character";
        }
    }
    if (out[0] == '/') {
        return "the name is an absolute path";
    }
    for (const char *p = out; p != NULL; p = strchr(p, '/') != NULL ? strchr(p, '/') + 1 : NULL) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.')) {
            return "the name has an empty, '.' or '..' component";
        }
        if (n > FSX_NAME_MAX) {
            return "the name has a component over 255 bytes";
        }
    }
    return NULL;
}

static int name_file(struct file *f, enum par2_names names)
{
    char path[PAR2_PATH_MAX];
    const char *name = f->desc->unicode != NULL ? f->desc->unicode : f->desc->name;
    if (names == PAR2_NAMES_CLEANED) {
        f->unsafe =
            name_clean_path(name, strlen(name), path, sizeof(path)) ? NULL : "the name is too long";
    } else {
        f->unsafe = as_written(name, path);
    }
    f->path = mem_strdup(f->unsafe == NULL ? path : name);
    return f->path != NULL ? 0 : -ENOMEM;
}

static int by_path(const void *a, const void *b)
{
    const struct file *x = *(struct file *const *)a, *y = *(struct file *const *)b;
    int order = strcmp(x->path, y->path);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Two files of one name: the later one may not be written. */
static int refuse_twins(struct par2_set *s)
{
    struct file **sorted = mem_alloc(s->file_count * sizeof(*sorted));
    if (sorted == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < s->file_count; i++) {
        sorted[i] = &s->files[i];
    }
    if (s->file_count > 1) {
        qsort(sorted, s->file_count, sizeof(*sorted), by_path);
    }
    for (size_t i = 1; i < s->file_count; i++) {
        if (strcmp(sorted[i - 1]->path, sorted[i]->path) == 0 && sorted[i]->unsafe == NULL) {
            sorted[i]->unsafe = "another file of the set has the same name";
        }
    }
    mem_free(sorted);
    return 0;
}

/* ---- building ---- */

static int check_main(const struct packets *p, struct err *e)
{
    if (!p->has_main) {
        return err_set(e, ERR_NOT_FOUND, "Main packet not found");
    }
    if (p->block_size == 0 || p->block_size % 4 != 0 || p->block_size > UINT32_MAX) {
        return err_set(e, ERR_INVALID, "block size %" PRIu64 " is not possible", p->block_size);
    }
    return 0;
}

static int add_files(struct par2_set *s, enum par2_names names, struct err *e)
{
    const struct packets *p = s->packets;
    s->files = mem_zalloc(p->total, sizeof(*s->files));
    if (s->files == NULL) {
        return err_sys(e, -ENOMEM, "files");
    }
    size_t lacking = 0;
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < p->total; i++) {
        const struct desc *d = par2_catalog_find(s->catalog, p, p->ids + 16 * (size_t)i);
        if (d == NULL || !d->described) {
            lacking += i < p->recoverable;
            continue; /* one that is only listed does no harm */
        }
        uint64_t n = d->size / p->block_size + (d->size % p->block_size != 0);
        blocks += n < PAR2_BLOCKS_MAX + 1 ? n : PAR2_BLOCKS_MAX + 1;
        if (i < p->recoverable && blocks > PAR2_BLOCKS_MAX) {
            return err_set(e, ERR_LIMIT, "Too many source blocks in recovery set (at most %d)",
                           PAR2_BLOCKS_MAX);
        }
        if (blocks > PAR2_BLOCKS_MAX) {
            break; /* only listed, and beyond all bounds */
        }
        struct file *f = &s->files[s->file_count];
        *f = (struct file){
            .desc = d, .first = s->block_count, .blocks = (uint32_t)n, .target = NOWHERE};
        f->recoverable = i < p->recoverable;
        s->block_count += f->blocks;
        s->recoverable_blocks += f->recoverable ? f->blocks : 0;
        if (name_file(f, names) < 0) {
            return err_sys(e, -ENOMEM, "files");
        }
        s->file_count++;
    }
    if (lacking > 0) {
        return err_set(e, ERR_TRUNCATED, "the descriptions of %zu of %" PRIu32 " files are lacking",
                       lacking, p->recoverable);
    }
    return refuse_twins(s) == 0 ? 0 : err_sys(e, -ENOMEM, "files");
}

/* The constants of the blocks are the powers of 2 whose exponent has no factor in common with 65535. */
static uint16_t next_log(uint16_t log)
{
    do {
        log++;
    } while (log % 3 == 0 || log % 5 == 0 || log % 17 == 0 || log % 257 == 0);
    return log;
}

static int add_blocks(struct par2_set *s)
{
    s->blocks = mem_zalloc(s->block_count, sizeof(*s->blocks));
    if (s->blocks == NULL) {
        return -ENOMEM;
    }
    uint16_t log = 0;
    for (size_t i = 0; i < s->file_count; i++) {
        const struct file *f = &s->files[i];
        bool known = f->desc->sums != NULL && f->desc->sum_count == f->blocks;
        for (uint32_t n = 0; n < f->blocks; n++) {
            log = f->recoverable ? next_log(log) : log;
            s->blocks[f->first + n] = (struct block){
                .file = (uint32_t)i,
                .source = NOWHERE,
                .log = log,
                .verifiable = known,
                .sums = known ? f->desc->sums + 20 * (size_t)n : NULL,
            };
        }
    }
    return 0;
}

int par2_set_new(struct par2_set **set, struct par2_catalog *c, size_t which, int dirfd,
                 enum par2_names names, struct err *e)
{
    PRE(which < c->set_count);
    gf16_init();
    struct par2_set *s = mem_zalloc(1, sizeof(*s));
    if (s == NULL) {
        return err_sys(e, -ENOMEM, "set");
    }
    s->catalog = c;
    s->packets = c->sets[which];
    s->dirfd = dirfd;
    int rv = check_main(s->packets, e);
    rv = rv < 0 ? rv : add_files(s, names, e);
    if (rv == 0 && (rv = add_blocks(s)) < 0) {
        err_sys(e, rv, "blocks");
    }
    if (rv < 0) {
        par2_set_free(s);
        return rv;
    }
    *set = s;
    return 0;
}

void par2_set_free(struct par2_set *s)
{
    if (s == NULL) {
        return;
    }
    for (size_t i = 0; i < s->file_count; i++) {
        mem_free(s->files[i].path);
    }
    for (size_t i = 0; i < s->source_count; i++) {
        mem_free(s->sources[i].path);
    }
    for (size_t i = 0; i < s->backup_count; i++) {
        mem_free(s->backups[i]);
    }
    mem_free(s->backups);
    mem_free(s->files);
    mem_free(s->blocks);
    mem_free(s->sources);
    mem_free(s);
}

/* ---- files on disk ---- */

/* Through links: the file that the path really means, by its own directory and name. */
static int open_linked(const struct par2_set *s, const char *path, struct err *e)
{
    int fd = openat(s->dirfd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 ? fd : err_sys(e, -errno, "%s", path);
}

int par2_source_open(const struct par2_set *s, const char *path, struct err *e)
{
    const struct fsx *fs = s->catalog->fs;
    int fd = fsx_open_beneath(fs, s->dirfd, path, O_RDONLY | O_NONBLOCK, 0, e);
    if (fd == ERR_UNSAFE && s->follow_links && fs->ops == fsx_kernel.ops) {
        return open_linked(s, path, e);
    }
    return fd;
}

uint32_t par2_source_append(struct par2_set *s, const char *path)
{
    if (s->source_count == s->source_room) {
        size_t room = s->source_room == 0 ? 64 : 2 * s->source_room;
        struct source *more = mem_realloc(s->sources, room, sizeof(*more));
        if (more == NULL) {
            return NOWHERE;
        }
        s->sources = more;
        s->source_room = room;
    }
    char *copy = mem_strdup(path);
    if (copy == NULL) {
        return NOWHERE;
    }
    s->sources[s->source_count] = (struct source){.path = copy, .target_of = NOWHERE};
    return (uint32_t)s->source_count++;
}

void par2_source_look(struct par2_set *s, uint32_t source)
{
    struct source *src = &s->sources[source];
    const struct fsx *fs = s->catalog->fs;
    struct stat st;
    src->exists = false;
    src->size = 0;
    int fd = par2_source_open(s, src->path, NULL);
    if (fd < 0) {
        return;
    }
    if (fs->ops->fstat(fs->arg, fd, &st) == 0 && S_ISREG(st.st_mode)) {
        src->exists = true;
        src->size = (uint64_t)st.st_size;
    }
    fsx_close(fs, fd, NULL);
}

int par2_add_extra(struct par2_set *s, const char *path, struct err *e)
{
    for (size_t i = 0; i < s->catalog->volume_count; i++) {
        if (s->catalog->volumes[i].dirfd == s->dirfd &&
            strcmp(s->catalog->volumes[i].path, path) == 0) {
            return 0; /* packets, not data */
        }
    }
    uint32_t n = par2_source_append(s, path);
    if (n == NOWHERE) {
        return err_sys(e, -ENOMEM, "%s", path);
    }
    s->sources[n].extra = true;
    return 0;
}

/* ---- questions ---- */

struct par2_info par2_set_info(const struct par2_set *s)
{
    struct par2_info i = {.files = s->file_count, .block_size = s->packets->block_size};
    i.blocks = s->recoverable_blocks;
    for (size_t n = 0; n < s->file_count; n++) {
        i.data_bytes += s->files[n].desc->size;
    }
    i.creator = s->packets->creator != NULL ? s->packets->creator : "";
    i.comment = s->packets->comment != NULL ? s->packets->comment : "";
    return i;
}

struct par2_file par2_set_file(const struct par2_set *s, size_t n)
{
    PRE(n < s->file_count);
    const struct file *f = &s->files[n];
    struct par2_file out = {.name = f->path,
                            .error = f->unsafe,
                            .size = f->desc->size,
                            .blocks = f->blocks,
                            .state = f->state,
                            .recoverable = f->recoverable,
                            .md5 = f->desc->md5};
    for (uint32_t b = f->first; b < f->first + f->blocks; b++) {
        out.found += s->blocks[b].source != NOWHERE;
    }
    out.found_as = f->state == PAR2_RENAMED ? s->sources[f->renamed_from].path : NULL;
    return out;
}

const char *par2_backup(const struct par2_set *s, size_t n)
{
    return n < s->backup_count ? s->backups[n] : NULL;
}

struct par2_status par2_status(const struct par2_set *s)
{
    struct par2_status st = {.whole = true};
    struct packets *p = s->packets;
    for (size_t n = 0; n < s->file_count; n++) {
        st.complete += s->files[n].state == PAR2_COMPLETE;
        st.renamed += s->files[n].state == PAR2_RENAMED;
        st.damaged += s->files[n].state == PAR2_DAMAGED;
        st.missing += s->files[n].state == PAR2_MISSING;
        st.whole = st.whole && (s->files[n].state == PAR2_COMPLETE || !s->files[n].recoverable);
    }
    for (uint32_t b = 0; b < s->recoverable_blocks; b++) {
        st.blocks_found += s->blocks[b].source != NOWHERE;
    }
    st.blocks_missing = s->recoverable_blocks - st.blocks_found;
    par2_recovery_sort(p);
    for (size_t i = 0; i < p->recovery_count; i = par2_recovery_group_end(p, i)) {
        st.recovery += p->recovery[i].proof != DISPROVEN;
    }
    st.recovery_lacking = st.blocks_missing > st.recovery ? st.blocks_missing - st.recovery : 0;
    return st;
}
