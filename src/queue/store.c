/* store.c - the posted NZBs, compressed, one file each in nzb/. Written once, never changed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/mem.h"
#include "queue/saved.h"
#include "queue/store.h"

enum { PIECE = 256 << 10, LEVEL = 3 /* three times as fast as 6, a tenth larger */ };

/* The directory, made where it is missing. */
static int open_dir(const struct fsx *fs, int dirfd, struct err *e)
{
    int fd = fsx_open(fs, dirfd, SAVED_NZB_DIR, O_RDONLY | O_DIRECTORY, 0, NULL);
    return fd >= 0 ? fd : fsx_mkdirs(fs, dirfd, SAVED_NZB_DIR, 0700, e);
}

static int put_compressed(struct fsx_writer *w, const char *filename, const void *bytes, size_t len,
                          struct err *e)
{
    z_stream z = {0};
    gz_header head = {.name = (Bytef *)(uintptr_t)filename, .os = 3};
    unsigned char *out = mem_alloc(PIECE);
    if (out == NULL ||
        deflateInit2(&z, LEVEL, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        mem_free(out);
        return err_sys(e, -ENOMEM, "gzip");
    }
    if (filename != NULL) {
        deflateSetHeader(&z, &head);
    }
    int rc = 0, zrc = Z_OK;
    const unsigned char *at = bytes;
    while (zrc != Z_STREAM_END && rc == 0) {
        if (z.avail_in == 0 && len > 0) {
            z.next_in = (Bytef *)(uintptr_t)at;
            z.avail_in = len < INT_MAX ? (uInt)len : INT_MAX;
            at += z.avail_in;
            len -= z.avail_in;
        }
        z.next_out = out;
        z.avail_out = PIECE;
        zrc = deflate(&z, len == 0 ? Z_FINISH : Z_NO_FLUSH);
        rc = fsx_append(w, out, PIECE - z.avail_out, e);
    }
    deflateEnd(&z);
    mem_free(out);
    return rc;
}

int queue_nzb_store(const struct fsx *fs, int dirfd, uint32_t id, const char *filename,
                    const void *bytes, size_t len, char *name, struct err *e)
{
    struct fsx_writer w;
    const unsigned char *head = bytes;
    bool is_gzip = len > 2 && head[0] == 0x1f && head[1] == 0x8b;
    snprintf(name, QUEUE_STORED_NAME, "%u.nzb.gz", id);
    int dir = open_dir(fs, dirfd, e);
    if (dir < 0) {
        return err_wrap(e, dir, SAVED_NZB_DIR);
    }
    int rc = fsx_begin(&w, fs, dir, name, e);
    if (rc == 0) {
        rc = is_gzip ? fsx_append(&w, bytes, len, e) : put_compressed(&w, filename, bytes, len, e);
        if (rc == 0) {
            rc = fsx_commit(&w, NULL, e);
        } else {
            fsx_abort(&w);
        }
    }
    (void)fsx_close(fs, dir, NULL);
    return rc;
}

/* The name that was written into the gzip header; "" when there is none. */
static void stored_filename(const void *bytes, size_t len, char *out, size_t size)
{
    z_stream z = {0};
    gz_header head = {.name = (Bytef *)out, .name_max = (uInt)size - 1};
    unsigned char nothing[1];
    out[0] = '\0';
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) {
        return;
    }
    inflateGetHeader(&z, &head);
    z.next_in = (Bytef *)(uintptr_t)bytes;
    z.avail_in = len < 4096 ? (uInt)len : 4096;
    z.next_out = nothing;
    z.avail_out = sizeof(nothing);
    (void)inflate(&z, Z_BLOCK);
    inflateEnd(&z);
    out[size - 1] = '\0';
    if (head.done != 1 || head.name == Z_NULL) {
        out[0] = '\0';
    }
}

int store_load(const struct fsx *fs, int dirfd, const char *name, const char *filename,
               struct nzb **out, char *found, size_t found_size, struct err *e)
{
    char *bytes;
    size_t len;
    if (strchr(name, '/') != NULL || name[0] == '\0' || name[0] == '.') {
        return err_set(e, ERR_UNSAFE, "'%s' is not the name of a stored NZB", name);
    }
    int dir = fsx_open(fs, dirfd, SAVED_NZB_DIR, O_RDONLY | O_DIRECTORY, 0, e);
    if (dir < 0) {
        return err_wrap(e, dir, "stored NZB %s", name);
    }
    int rc = fsx_read_all(fs, dir, name, (size_t)NZB_BYTES_MAX, &bytes, &len, e);
    (void)fsx_close(fs, dir, NULL);
    if (rc != 0) {
        return err_wrap(e, rc, "stored NZB");
    }
    if (found != NULL) {
        stored_filename(bytes, len, found, found_size);
        filename = found[0] != '\0' ? found : filename;
    }
    rc = nzb_parse(bytes, len, filename, out, e);
    mem_free(bytes);
    return rc == 0 ? 0 : err_wrap(e, rc, "stored NZB %s", name);
}

int queue_nzb_load(const struct fsx *fs, int dirfd, const char *name, const char *filename,
                   struct nzb **out, struct err *e)
{
    return store_load(fs, dirfd, name, filename, out, NULL, 0, e);
}

int queue_nzb_forget(const struct fsx *fs, int dirfd, const char *name, struct err *e)
{
    int dir = fsx_open(fs, dirfd, SAVED_NZB_DIR, O_RDONLY | O_DIRECTORY, 0, NULL);
    if (dir < 0) {
        return dir == -ENOENT ? 0 : err_sys(e, dir, SAVED_NZB_DIR);
    }
    int rc = fsx_remove(fs, dir, name, e);
    (void)fsx_close(fs, dir, NULL);
    return rc;
}

int store_list(const struct fsx *fs, int dirfd, fsx_name_cb each, void *ctx, struct err *e)
{
    int dir = fsx_open(fs, dirfd, SAVED_NZB_DIR, O_RDONLY | O_DIRECTORY, 0, NULL);
    if (dir < 0) {
        return dir == -ENOENT ? 0 : err_sys(e, dir, SAVED_NZB_DIR);
    }
    int rc = fsx_list(fs, dir, each, ctx, e);
    (void)fsx_close(fs, dir, NULL);
    return rc;
}
