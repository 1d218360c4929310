/* fuzz_par2.c - hostile packets, and verification by what they say, all in memory.
 *
 * The first byte chooses: 1 makes the MD5 of everything that looks like a packet right (else nearly no mutation would
 * get past it), 2 also makes descriptions fit their file ids and the main packet list them, 4 hashes recovery packets
 * at once, 8 verifies: every file that the set names exists, and holds the rest of the input. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "par2/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FD = 7, INPUT_MAX = 1 << 20 };

struct memory {
    const uint8_t *p;
    size_t n;
};

static ssize_t read_memory(void *arg, void *p, size_t n, uint64_t at)
{
    const struct memory *m = arg;
    if (at >= m->n) {
        return 0;
    }
    n = n < m->n - at ? n : (size_t)(m->n - at);
    memcpy(p, m->p + at, n);
    return (ssize_t)n;
}

static int f_open(void *arg, int dirfd, const char *name, int flags, mode_t mode)
{
    (void)arg, (void)dirfd, (void)mode;
    PRE((flags & O_ACCMODE) == O_RDONLY);
    return strstr(name, ".tmp") != NULL || name[0] == 'm' ? -ENOENT : FD;
}

static int f_close(void *arg, int fd)
{
    (void)arg;
    PRE(fd == FD);
    return 0;
}

static ssize_t f_pread(void *arg, int fd, void *p, size_t n, off_t at)
{
    (void)fd;
    return read_memory(arg, p, n, (uint64_t)at);
}

static int f_fstat(void *arg, int fd, struct stat *st)
{
    (void)fd;
    *st = (struct stat){.st_mode = S_IFREG, .st_size = (off_t)((struct memory *)arg)->n};
    return 0;
}

static const struct fsx_ops ops = {
    .openat = f_open, .open_beneath = f_open, .close = f_close, .pread = f_pread, .fstat = f_fstat};

static bool is_kind(const uint8_t *packet, const char *type, size_t n)
{
    return memcmp(packet + 56, type, n) == 0;
}

/* Makes what looks like packets true. */
static void repair_packets(uint8_t *p, size_t n, bool ids)
{
    uint8_t id[16] = {0};
    bool known = false;
    for (size_t at = 0; at + HEADER_SIZE <= n;) {
        uint8_t *k = memmem(p + at, n - at, "PAR2\0PKT", 8);
        if (k == NULL || n - (size_t)(k - p) < HEADER_SIZE) {
            break;
        }
        at = (size_t)(k - p);
        uint64_t len = par2_get64(k + 8);
        if (len < HEADER_SIZE || len > n - at) {
            at++;
            continue;
        }
        if (ids && is_kind(k, "FileDesc", 8) && len > HEADER_SIZE + 56) {
            size_t name = strnlen((char *)k + HEADER_SIZE + 56, (size_t)len - HEADER_SIZE - 56);
            md5_of(k + HEADER_SIZE + 32, 24 + name, id);
            memcpy(k + HEADER_SIZE, id, 16);
            known = true;
        } else if (ids && known && is_kind(k, "IFSC", 4) && len >= HEADER_SIZE + 16) {
            memcpy(k + HEADER_SIZE, id, 16);
        } else if (ids && known && is_kind(k, "Main", 4) && len >= HEADER_SIZE + 28) {
            memcpy(k + HEADER_SIZE + 12, id, 16);
        }
        md5_of(k + 32, (size_t)len - 32, k + 16);
        at += (size_t)len;
    }
}

static void ask(struct par2_set *s)
{
    struct par2_info info = par2_set_info(s);
    struct par2_range r[2] = {{0, info.block_size, 1}, {info.block_size, info.block_size, 0}};
    for (size_t i = 0; i < info.files && i < 4; i++) {
        struct par2_file f = par2_set_file(s, i);
        PRE(f.found <= f.blocks && f.blocks <= PAR2_BLOCKS_MAX);
    }
    if (info.files > 0) {
        par2_claim(s, 0, 2 * info.block_size, r, 2);
    }
    PRE(par2_status(s).blocks_found <= info.blocks);
}

static void verify(struct par2_set *s)
{
    struct par2_options o = {.threads = 1};
    struct par2_info info =
        par2_set_info(s); /* hashing large blocks finds nothing that small ones hide */
    if (info.files < 64 && info.block_size <= 1 << 14 && par2_verify(s, &o, NULL) == 0) {
        for (size_t i = 0; i < par2_set_info(s).files; i++) {
            PRE(par2_set_file(s, i).state != PAR2_UNKNOWN);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t copy[INPUT_MAX];
    if (size < 1 || size > INPUT_MAX) {
        return 0;
    }
    unsigned flags = data[0];
    struct memory m = {copy, size - 1};
    memcpy(copy, data + 1, size - 1);
    if (flags & 1) {
        repair_packets(copy, size - 1, flags & 2);
    }
    struct fsx fs = {&ops, &m};
    struct reader r = {read_memory, &m, m.n};
    struct par2_found found = {0};
    struct par2_catalog *c = par2_catalog_new(&fs);
    PRE(c != NULL);
    par2_packet_scan(c, &r, 0, flags & 4, &found, NULL);
    for (size_t i = 0; i < par2_catalog_sets(c) && i < 3; i++) {
        struct par2_set *s = NULL;
        struct err e = {0};
        if (par2_set_new(&s, c, i, 0, flags & 16 ? PAR2_NAMES_CLEANED : PAR2_NAMES_AS_WRITTEN,
                         &e) == 0) {
            ask(s);
            if (flags & 8) {
                c->volume_count = 0; /* recovery packets are not to be read: there is no volume */
                s->packets->recovery_count = 0;
                verify(s);
            }
            par2_set_free(s);
        } else {
            PRE(e.code < 0 && e.msg[0] != '\0');
        }
    }
    par2_catalog_free(c);
    return 0;
}
