#include "make.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/crc32.h"
#include "base/mem.h"
#include "lib/rng.h"
#include "par2/md5.h"

static void put32(uint8_t *p, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++) {
        p[i] = (uint8_t)(v >> (8 * i));
    }
}

static void put64(uint8_t *p, uint64_t v)
{
    put32(p, (uint32_t)v);
    put32(p + 4, (uint32_t)(v >> 32));
}

static uint8_t *append(struct bytes *b, size_t n)
{
    b->p = realloc(b->p, b->n + n + 1);
    PRE(b->p != NULL);
    memset(b->p + b->n, 0, n);
    b->n += n;
    return b->p + b->n - n;
}

void bytes_free(struct bytes *b)
{
    free(b->p);
    *b = (struct bytes){NULL, 0};
}

void make_add(struct make *m, const char *name, size_t size, uint64_t seed)
{
    PRE(m->count < MAKE_FILES_MAX);
    struct make_file *f = &m->files[m->count++];
    struct rng r;
    rng_init(&r, seed);
    *f = (struct make_file){.name = name, .data = malloc(size + 1), .size = size};
    PRE(f->data != NULL);
    for (size_t i = 0; i < size; i++) {
        f->data[i] = (uint8_t)rng_next(&r);
    }
}

void make_free(struct make *m)
{
    for (size_t i = 0; i < m->count; i++) {
        free(m->files[i].data);
    }
}

static void head_md5(const struct make_file *f, uint8_t out[16])
{
    md5_of(f->data, f->size < 16384 ? f->size : 16384, out);
}

static void file_id(struct make_file *f)
{
    struct md5 h;
    uint8_t head[16], size[8];
    head_md5(f, head);
    put64(size, f->size);
    md5_init(&h);
    md5_update(&h, head, 16);
    md5_update(&h, size, 8);
    md5_update(&h, f->name, strlen(f->name));
    md5_final(&h, f->id);
}

/* The specification sorts ids as little-endian numbers. */
static int by_id(const void *a, const void *b)
{
    const struct make_file *x = a, *y = b;
    for (int i = 15; i >= 0; i--) {
        if (x->id[i] != y->id[i]) {
            return x->id[i] < y->id[i] ? -1 : 1;
        }
    }
    return 0;
}

static size_t main_body(const struct make *m, uint8_t *body)
{
    put64(body, m->block_size);
    put32(body + 8, (uint32_t)m->count);
    for (size_t i = 0; i < m->count; i++) {
        memcpy(body + 12 + 16 * i, m->files[i].id, 16);
    }
    return 12 + 16 * m->count;
}

void make_set(struct make *m)
{
    uint8_t body[12 + 16 * MAKE_FILES_MAX];
    for (size_t i = 0; i < m->count; i++) {
        file_id(&m->files[i]);
    }
    qsort(m->files, m->count, sizeof(m->files[0]), by_id);
    md5_of(body, main_body(m, body), m->set_id);
}

void make_packet(struct bytes *b, const struct make *m, const char *type, const void *body,
                 size_t n)
{
    size_t padded = (n + 3) / 4 * 4;
    uint8_t *p = append(b, 64 + padded);
    memcpy(p, "PAR2\0PKT", 8);
    put64(p + 8, 64 + padded);
    memcpy(p + 32, m->set_id, 16);
    memcpy(p + 48, "PAR 2.0", 7);
    memcpy(p + 56, type, strlen(type));
    memcpy(p + 64, body, n);
    md5_of(p + 32, 32 + padded, p + 16);
}

void make_main(struct bytes *b, const struct make *m)
{
    uint8_t body[12 + 16 * MAKE_FILES_MAX];
    make_packet(b, m, "Main", body, main_body(m, body));
}

void make_description(struct bytes *b, const struct make *m, size_t file)
{
    const struct make_file *f = &m->files[file];
    uint8_t body[56 + 1024] = {0};
    memcpy(body, f->id, 16);
    md5_of(f->data, f->size, body + 16);
    head_md5(f, body + 32);
    put64(body + 48, f->size);
    PRE(strlen(f->name) < 1024);
    memcpy(body + 56, f->name, strlen(f->name));
    make_packet(b, m, "FileDesc", body, 56 + strlen(f->name));
}

static size_t blocks_of(const struct make *m, const struct make_file *f)
{
    return (f->size + m->block_size - 1) / m->block_size;
}

/* Block `n` of f, padded. */
static void block(const struct make *m, const struct make_file *f, size_t n, uint8_t *out)
{
    size_t at = n * m->block_size, left = f->size - at;
    memset(out, 0, m->block_size);
    memcpy(out, f->data + at, left < m->block_size ? left : m->block_size);
}

void make_sums(struct bytes *b, const struct make *m, size_t file)
{
    const struct make_file *f = &m->files[file];
    size_t n = blocks_of(m, f);
    uint8_t *body = calloc(1, 16 + 20 * n + 1), *one = malloc(m->block_size);
    PRE(body != NULL && one != NULL);
    memcpy(body, f->id, 16);
    for (size_t i = 0; i < n; i++) {
        block(m, f, i, one);
        md5_of(one, m->block_size, body + 16 + 20 * i);
        put32(body + 16 + 20 * i + 16, crc32_update(0, one, m->block_size));
    }
    make_packet(b, m, "IFSC", body, 16 + 20 * n);
    free(body);
    free(one);
}

/* The field by hand: shift, and subtract the polynomial. */
static uint16_t times(uint16_t a, uint16_t b)
{
    uint32_t r = 0, x = a;
    for (; b != 0; b >>= 1) {
        r ^= (b & 1) ? x : 0;
        x = (x << 1) ^ (x & 0x8000 ? 0x1100b : 0);
    }
    return (uint16_t)r;
}

static uint16_t power(uint16_t a, uint32_t n)
{
    uint16_t r = 1;
    for (; n != 0; n >>= 1, a = times(a, a)) {
        r = (n & 1) ? times(r, a) : r;
    }
    return r;
}

void make_recovery(struct bytes *b, const struct make *m, uint32_t exponent)
{
    uint8_t *body = calloc(1, 4 + m->block_size), *one = malloc(m->block_size);
    PRE(body != NULL && one != NULL);
    put32(body, exponent);
    uint32_t log = 0;
    for (size_t i = 0; i < m->count; i++) {
        for (size_t n = 0; n < blocks_of(m, &m->files[i]); n++) {
            do {
                log++;
            } while (log % 3 == 0 || log % 5 == 0 || log % 17 == 0 || log % 257 == 0);
            uint16_t factor = power(power(2, log), exponent);
            block(m, &m->files[i], n, one);
            for (size_t k = 0; k < m->block_size; k += 2) {
                uint16_t v = times(factor, (uint16_t)(one[k] | one[k + 1] << 8));
                body[4 + k] ^= (uint8_t)v;
                body[5 + k] ^= (uint8_t)(v >> 8);
            }
        }
    }
    make_packet(b, m, "RecvSlic", body, 4 + m->block_size);
    free(body);
    free(one);
}

void make_index(struct bytes *b, const struct make *m)
{
    make_main(b, m);
    for (size_t i = 0; i < m->count; i++) {
        make_description(b, m, i);
        make_sums(b, m, i);
    }
    make_packet(b, m, "Creator", "a test", 6);
}

void make_volume(struct bytes *b, const struct make *m, uint32_t first, uint32_t count)
{
    make_index(b, m);
    for (uint32_t e = first; e < first + count; e++) {
        make_recovery(b, m, e);
    }
}

void put_file(const struct fsx *fs, int dirfd, const char *name, const void *p, size_t n)
{
    fs->ops->unlinkat(fs->arg, dirfd, name, 0);
    int fd = fsx_open(fs, dirfd, name, O_WRONLY | O_CREAT, 0600, NULL);
    PRE(fd >= 0);
    PRE(n == 0 || fsx_pwrite_all(fs, fd, p, n, 0, NULL) == 0);
    PRE(fs->ops->fsync(fs->arg, fd) == 0);
    PRE(fsx_close(fs, fd, NULL) == 0);
    PRE(fs->ops->fsync(fs->arg, dirfd) == 0);
}

struct bytes get_file(const struct fsx *fs, int dirfd, const char *name)
{
    struct bytes b = {NULL, 0};
    char *p = NULL;
    if (fsx_read_all(fs, dirfd, name, 1 << 26, &p, &b.n, NULL) == 0) {
        b.p = (uint8_t *)p; /* mem_free() is free() */
    }
    return b;
}

void put_all(const struct fsx *fs, int dirfd, const struct make *m)
{
    for (size_t i = 0; i < m->count; i++) {
        put_file(fs, dirfd, m->files[i].name, m->files[i].data, m->files[i].size);
    }
}
