/* repair.c - new files beside the old ones, then one rename each.
 *
 *   A  Every file that has to be rebuilt gets a "NAME.N.tmp": the blocks that exist are copied into it, hashed on the
 *      way, and the missing ones are computed into it, hashed before they are written. Nothing else is touched; any
 *      failure up to here removes the unfinished files, and that is all.
 *   B  Complete files under wrong names are renamed. One that stands where another file of the set belongs goes to
 *      "NAME.N.tmp" of its own name first, so that cycles come apart.
 *   C  The rebuilt files are synced and renamed over what is there; what is there stays as "NAME.1".
 *
 * A kill, a full disk or a power cut in A leaves the old files. In B and C every file's data stands, at every moment,
 * under its right name, under a name where it was found before, or as "NAME.N.tmp", which the next verify looks at. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "par2/internal.h"

enum { BACKUPS_MAX = 9999 };

/* One file that is rebuilt. */
struct output {
    uint32_t file;
    int dirfd;
    bool own_dirfd;
    struct fsx_writer writer;
    bool begun;
};

struct repair {
    struct par2_set *set;
    const struct fsx *fs;
    struct work work;
    struct output *outputs;
    size_t count;
    struct err *e;
};

/* ---- places ---- */

/* "dir/sub/name": the directory, made if need be, and the name. */
static int open_dir(const struct repair *r, const char *path, const char **name, bool *own,
                    struct err *e)
{
    const char *slash = strrchr(path, '/');
    *name = slash != NULL ? slash + 1 : path;
    *own = slash != NULL;
    if (slash == NULL) {
        return r->set->dirfd;
    }
    char dir[PAR2_PATH_MAX];
    snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
    int fd = fsx_mkdirs(r->fs, r->set->dirfd, dir, 0777, e);
    return fd >= 0 ? fd : err_wrap(e, fd, "%s", path);
}

static bool name_exists(const struct repair *r, int dirfd, const char *name)
{
    int fd = fsx_open(r->fs, dirfd, name, O_RDONLY | O_NONBLOCK, 0, NULL);
    if (fd >= 0) {
        fsx_close(r->fs, fd, NULL);
    }
    return fd != -ENOENT;
}

/* A name for what is to be kept aside: "name.1" or the first number that is free. */
static int backup_name(const struct repair *r, int dirfd, const char *name,
                       char out[FSX_NAME_MAX + 1])
{
    for (int i = 1; i <= BACKUPS_MAX; i++) {
        if (snprintf(out, FSX_NAME_MAX + 1, "%s.%d", name, i) > FSX_NAME_MAX) {
            return -ENAMETOOLONG;
        }
        if (!name_exists(r, dirfd, out)) {
            return 0;
        }
    }
    return ERR_EXISTS;
}

/* "path.1" is remembered for whoever wants to remove it later. */
static int remember_backup(struct par2_set *s, const char *path, const char *name)
{
    char whole[PAR2_PATH_MAX + FSX_NAME_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(whole, sizeof(whole), "%.*s%s", slash != NULL ? (int)(slash + 1 - path) : 0, path,
             name);
    char **more = mem_realloc(s->backups, s->backup_count + 1, sizeof(*more));
    if (more == NULL) {
        return -ENOMEM;
    }
    s->backups = more;
    s->backups[s->backup_count] = mem_strdup(whole);
    return s->backups[s->backup_count] != NULL ? (s->backup_count++, 0) : -ENOMEM;
}

/* ---- A: unfinished files ---- */

static bool is_rebuilt(const struct par2_set *s, const struct file *f)
{
    if (f->state != PAR2_DAMAGED && f->state != PAR2_MISSING) {
        return false;
    }
    for (uint32_t b = f->first; b < f->first + f->blocks && !f->recoverable; b++) {
        if (s->blocks[b].source == NOWHERE) {
            return false; /* only listed: there is no way */
        }
    }
    return true;
}

static int begin_output(struct repair *r, struct output *o)
{
    const struct par2_set *s = r->set;
    const struct file *f = &s->files[o->file];
    const char *name;
    o->dirfd = open_dir(r, f->path, &name, &o->own_dirfd, r->e);
    if (o->dirfd < 0) {
        return o->dirfd;
    }
    int rv = fsx_begin(&o->writer, r->fs, o->dirfd, name, r->e);
    if (rv < 0) {
        return err_wrap(r->e, rv, "%s", f->path);
    }
    o->begun = true;
    if (r->fs->ops == fsx_kernel.ops) {
        struct stat st; /* as accessible as what it replaces */
        int fd = f->target != NOWHERE && s->sources[f->target].exists
                     ? par2_source_open(s, f->path, NULL)
                     : -1;
        mode_t mode = r->work.options->file_mode != 0 ? r->work.options->file_mode : 0644;
        if (fd >= 0 && fstat(fd, &st) == 0) {
            mode = st.st_mode & 0777;
        }
        if (fd >= 0) {
            fsx_close(r->fs, fd, NULL);
        }
        (void)!fchmod(o->writer.fd, mode); /* where modes are unknown there is nothing to lose */
    }
    rv = f->desc->size > 0 ? fsx_preallocate(r->fs, o->writer.fd, f->desc->size, r->e) : 0;
    return rv == 0 ? 0 : err_wrap(r->e, rv, "%s", f->path);
}

static int begin_outputs(struct repair *r)
{
    const struct par2_set *s = r->set;
    for (size_t i = 0; i < s->file_count; i++) {
        r->count += is_rebuilt(s, &s->files[i]);
    }
    r->outputs = mem_zalloc(r->count, sizeof(*r->outputs));
    if (r->outputs == NULL) {
        return err_sys(r->e, -ENOMEM, "repair");
    }
    int rv = 0;
    for (size_t i = 0, n = 0; i < s->file_count && rv == 0; i++) {
        if (is_rebuilt(s, &s->files[i])) {
            r->outputs[n].file = (uint32_t)i;
            r->outputs[n].dirfd = -1;
            rv = begin_output(r, &r->outputs[n++]);
        }
    }
    return rv;
}

/* Blocks that exist, to their places in the new files. */
static int copy_blocks(struct repair *r)
{
    struct par2_set *s = r->set;
    struct check *list = mem_alloc(((size_t)s->block_count + 1) * sizeof(*list));
    size_t n = 0;
    if (list == NULL) {
        return err_sys(r->e, -ENOMEM, "repair");
    }
    for (size_t i = 0; i < r->count; i++) {
        const struct file *f = &s->files[r->outputs[i].file];
        for (uint32_t b = f->first; b < f->first + f->blocks; b++) {
            if (s->blocks[b].source != NOWHERE) {
                int to = r->outputs[i].writer.fd;
                list[n++] = (struct check){s->blocks[b].offset, b, s->blocks[b].source, to, false};
            }
        }
    }
    par2_work_phase(&r->work, PAR2_COPYING, n * s->packets->block_size);
    int rv = par2_check_run(s, &r->work, list, n);
    if (rv < 0) {
        err_sys(r->e, rv, "copying blocks");
    }
    for (size_t i = 0; i < n && rv == 0; i++) {
        if (!list[i].ok) {
            rv = err_set(r->e, ERR_CORRUPT, "%s changed while it was used",
                         s->sources[list[i].source].path);
        }
    }
    mem_free(list);
    return rv;
}

/* Blocks that do not. */
static int compute_blocks(struct repair *r)
{
    struct par2_set *s = r->set;
    struct missing *outs = mem_alloc(((size_t)s->recoverable_blocks + 1) * sizeof(*outs));
    size_t m = 0;
    if (outs == NULL) {
        return err_sys(r->e, -ENOMEM, "repair");
    }
    for (size_t i = 0; i < r->count; i++) {
        const struct file *f = &s->files[r->outputs[i].file];
        for (uint32_t b = f->first; b < f->first + f->blocks && f->recoverable; b++) {
            if (s->blocks[b].source == NOWHERE) {
                outs[m++] = (struct missing){b, r->outputs[i].writer.fd};
            }
        }
    }
    int rv = m > 0 ? par2_rebuild_run(s, &r->work, outs, m) : 0;
    mem_free(outs);
    if (rv == ERR_CORRUPT) {
        return err_set(r->e, rv,
                       "what was computed is not what the set says; did files change meanwhile?");
    }
    return rv == 0 ? 0 : err_sys(r->e, rv, "computing blocks");
}

/* Files without block hashes are proven as a whole. */
static int prove_whole(struct repair *r)
{
    struct par2_set *s = r->set;
    for (size_t i = 0; i < r->count; i++) {
        const struct file *f = &s->files[r->outputs[i].file];
        char path[PAR2_PATH_MAX];
        uint8_t md5[16];
        if (f->blocks == 0 || s->blocks[f->first].verifiable) {
            continue;
        }
        const char *slash = strrchr(f->path, '/');
        snprintf(path, sizeof(path), "%.*s%s", slash != NULL ? (int)(slash + 1 - f->path) : 0,
                 f->path, r->outputs[i].writer.tmp);
        uint32_t n = par2_source_append(s, path);
        if (n == NOWHERE) {
            return err_sys(r->e, -ENOMEM, "%s", f->path);
        }
        par2_source_look(s, n);
        if (s->sources[n].size != f->desc->size || par2_check_whole(s, n, UINT64_MAX, md5) < 0 ||
            memcmp(md5, f->desc->md5, 16) != 0) {
            return err_set(r->e, ERR_CORRUPT, "%s: what was computed is not what the set says",
                           f->path);
        }
        s->sources[n].exists = false;
    }
    return 0;
}

/* ---- B: renames ---- */

/* What stands at `name` is kept aside, and stays there too where links are known. */
static int keep_aside(struct repair *r, const char *path, int dirfd, const char *name)
{
    char aside[FSX_NAME_MAX + 1];
    if (!name_exists(r, dirfd, name)) {
        return 0;
    }
    int rv = backup_name(r, dirfd, name, aside);
    if (rv == 0) {
        rv = r->fs->ops->linkat(r->fs->arg, dirfd, name, aside);
        if (rv < 0) {
            rv = r->fs->ops->renameat(r->fs->arg, dirfd, name, dirfd, aside);
        }
    }
    rv = rv == 0 ? remember_backup(r->set, path, aside) : rv;
    return rv == 0 ? 0 : err_sys(r->e, rv, "%s: keeping it aside", path);
}

static int rename_path(struct repair *r, const char *from, const char *to, bool keep)
{
    const char *from_name, *to_name;
    bool own_from = false, own_to = false;
    int from_dir = open_dir(r, from, &from_name, &own_from, r->e);
    int to_dir = from_dir >= 0 ? open_dir(r, to, &to_name, &own_to, r->e) : -1;
    int rv = from_dir < 0 ? from_dir : to_dir < 0 ? to_dir : 0;
    rv = rv == 0 && keep ? keep_aside(r, to, to_dir, to_name) : rv;
    if (rv == 0) {
        rv = r->fs->ops->renameat(r->fs->arg, from_dir, from_name, to_dir, to_name);
        rv = rv < 0 ? err_sys(r->e, rv, "%s: renaming to %s", from, to)
                    : fsx_sync_dir(r->fs, to_dir, r->e);
        rv = rv == 0 && own_from ? fsx_sync_dir(r->fs, from_dir, r->e) : rv;
    }
    if (own_from && from_dir >= 0) {
        fsx_close(r->fs, from_dir, NULL);
    }
    if (own_to && to_dir >= 0) {
        fsx_close(r->fs, to_dir, NULL);
    }
    return rv;
}

/* f's data stands where another file belongs: out of the way, to a name where it is found again. */
static int step_aside(struct repair *r, const struct file *f)
{
    struct source *from = &r->set->sources[f->renamed_from];
    for (int slot = 0; slot < FSX_TMP_SLOTS; slot++) {
        char path[PAR2_PATH_MAX];
        if (snprintf(path, sizeof(path), "%s.%d.tmp", f->path, slot) >= PAR2_PATH_MAX) {
            break;
        }
        int fd = par2_source_open(r->set, path, NULL);
        if (fd >= 0) {
            fsx_close(r->fs, fd, NULL);
            continue;
        }
        char *copy = mem_strdup(path);
        int rv = copy != NULL ? rename_path(r, from->path, path, false)
                              : err_sys(r->e, -ENOMEM, "%s", path);
        if (rv < 0) {
            mem_free(copy);
            return rv;
        }
        mem_free(from->path);
        from->path = copy;
        return 0;
    }
    return err_set(r->e, ERR_EXISTS, "%s: no free name for an unfinished file", f->path);
}

static int rename_files(struct repair *r)
{
    struct par2_set *s = r->set;
    int rv = 0;
    for (size_t i = 0; i < s->file_count && rv == 0; i++) {
        const struct file *f = &s->files[i];
        if (f->state == PAR2_RENAMED && s->sources[f->renamed_from].target_of != NOWHERE) {
            rv = step_aside(r, f);
        }
    }
    for (size_t i = 0; i < s->file_count && rv == 0; i++) {
        const struct file *f = &s->files[i];
        if (f->state == PAR2_RENAMED) {
            rv = rename_path(r, s->sources[f->renamed_from].path, f->path, true);
        }
    }
    return rv;
}

/* ---- C: into place ---- */

static int commit_output(struct repair *r, struct output *o)
{
    const struct file *f = &r->set->files[o->file];
    const char *prev = NULL;
    char aside[FSX_NAME_MAX + 1];
    int rv = 0;
    if (name_exists(r, o->dirfd, o->writer.name)) {
        rv = backup_name(r, o->dirfd, o->writer.name, aside);
        rv = rv == 0 ? remember_backup(r->set, f->path, aside) : rv;
        if (rv < 0) {
            return err_sys(r->e, rv, "%s: keeping it aside", f->path);
        }
        prev = aside;
    }
    o->begun = false;
    rv = fsx_commit(&o->writer, prev, r->e);
    return rv == 0 ? 0 : err_wrap(r->e, rv, "%s", f->path);
}

/* The set now knows: this file is whole, at its place. */
static int note_whole(struct par2_set *s, struct file *f)
{
    if (f->target == NOWHERE) {
        f->target = par2_source_append(s, f->path);
        if (f->target == NOWHERE) {
            return -ENOMEM;
        }
        s->sources[f->target].target_of = (uint32_t)(f - s->files);
    }
    if (f->state == PAR2_RENAMED) {
        s->sources[f->renamed_from].exists = false;
    }
    s->sources[f->target].exists = true;
    s->sources[f->target].size = f->desc->size;
    for (uint32_t b = f->first; b < f->first + f->blocks; b++) {
        s->blocks[b].source = f->target;
        s->blocks[b].offset = block_position(s, b);
    }
    f->state = PAR2_COMPLETE;
    return 0;
}

static void remove_leftovers(struct repair *r, const char *path)
{
    const char *name;
    bool own = false;
    int dirfd = open_dir(r, path, &name, &own, NULL);
    if (dirfd >= 0) {
        fsx_remove_tmp(r->fs, dirfd, name, NULL);
    }
    if (own && dirfd >= 0) {
        fsx_close(r->fs, dirfd, NULL);
    }
}

static int finish(struct repair *r)
{
    struct par2_set *s = r->set;
    int rv = rename_files(r);
    for (size_t i = 0; i < r->count && rv == 0; i++) {
        rv = commit_output(r, &r->outputs[i]);
    }
    for (size_t i = 0; i < r->count && rv == 0;
         i++) { /* what earlier, interrupted repairs left of them */
        fsx_remove_tmp(r->fs, r->outputs[i].dirfd, r->outputs[i].writer.name, NULL);
    }
    for (size_t i = 0; i < s->file_count && rv == 0; i++) {
        if (s->files[i].state == PAR2_RENAMED) {
            s->sources[s->files[i].renamed_from].exists = false;
            remove_leftovers(r, s->files[i].path);
        }
    }
    for (size_t i = 0; i < s->file_count && rv == 0; i++) {
        struct file *f = &s->files[i];
        if (f->state == PAR2_RENAMED || is_rebuilt(s, f)) {
            rv = note_whole(s, f);
        }
    }
    return rv;
}

/* ---- all of it ---- */

static int check_possible(const struct par2_set *s, struct err *e)
{
    struct par2_status st = par2_status(s);
    if (st.recovery_lacking > 0) {
        return err_set(e, ERR_FULL, "%" PRIu32 " more recovery blocks are needed",
                       st.recovery_lacking);
    }
    for (size_t i = 0; i < s->file_count; i++) {
        const struct file *f = &s->files[i];
        if (f->unsafe != NULL && f->recoverable) {
            return err_set(e, ERR_UNSAFE, "\"%s\" can not be written: %s", f->path, f->unsafe);
        }
        if (f->state == PAR2_COMPLETE || f->target == NOWHERE || s->sources[f->target].exists) {
            continue;
        }
        /* Not a file, yet something: a dangling link, a directory, a device. */
        int fd = par2_source_open(s, f->path, NULL);
        if (fd >= 0) {
            fsx_close(s->catalog->fs, fd, NULL);
        }
        bool linked = fd == -ENOENT && s->follow_links &&
                      faccessat(s->dirfd, f->path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        if (fd != -ENOENT || linked) {
            return err_set(e, ERR_UNSAFE,
                           "\"%s\" can not be written: something that is no file has its name",
                           f->path);
        }
    }
    return 0;
}

int par2_repair(struct par2_set *s, const struct par2_options *o, struct err *e)
{
    PRE(s->verified);
    struct repair r = {.set = s, .fs = s->catalog->fs, .e = e};
    par2_work_init(&r.work, o);
    int rv = check_possible(s, e);
    if (rv < 0 || par2_status(s).whole) {
        return rv;
    }
    rv = begin_outputs(&r);
    rv = rv == 0 ? copy_blocks(&r) : rv;
    rv = rv == 0 ? compute_blocks(&r) : rv;
    rv = rv == 0 ? prove_whole(&r) : rv;
    rv = rv == 0 ? finish(&r) : rv;
    for (size_t i = 0; i < r.count; i++) {
        if (r.outputs != NULL && r.outputs[i].begun) {
            fsx_abort(&r.outputs[i].writer);
        }
        if (r.outputs != NULL && r.outputs[i].own_dirfd && r.outputs[i].dirfd >= 0) {
            fsx_close(r.fs, r.outputs[i].dirfd, NULL);
        }
    }
    mem_free(r.outputs);
    return rv;
}
