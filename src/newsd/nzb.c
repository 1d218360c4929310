#include "newsd/nzb.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fsx.h"
#include "base/utf8.h"

/* Gathers text, so that a file is not written line by line. The first error sticks in the writer. */
struct out {
    struct fsx_writer w;
    struct err *e;
    size_t used;
    char text[32 * 1024];
};

static void flush(struct out *o)
{
    if (o->used > 0) {
        fsx_append(&o->w, o->text, o->used, o->e);
        o->used = 0;
    }
}

static void put(struct out *o, const char *p, size_t n)
{
    if (n > sizeof(o->text) - o->used) {
        flush(o);
    }
    memcpy(o->text + o->used, p, n); /* never more than a few bytes at a time: see the callers */
    o->used += n;
}

static void say(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct out *o, const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    put(o, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

/* Text and attribute values; what XML cannot hold becomes U+FFFD. */
static void escaped(struct out *o, const char *s)
{
    size_t left = strlen(s);
    while (left > 0) {
        size_t n = utf8_char_len(s, left);
        if (n == 0 || (uint8_t)*s < 0x20) {
            put(o, "\xef\xbf\xbd", 3);
            n = n == 0 ? 1 : n;
        } else if (*s == '&') {
            put(o, "&amp;", 5);
        } else if (*s == '<') {
            put(o, "&lt;", 4);
        } else if (*s == '>') {
            put(o, "&gt;", 4);
        } else if (*s == '"') {
            put(o, "&quot;", 6);
        } else {
            put(o, s, n);
        }
        s += n;
        left -= n;
    }
}

/* What a part will take on the wire, about: a quarter of 1/16 is escaped, and a line end follows 128 characters. The
 * exact figure would need the whole file encoded; readers take it for a hint. */
static uint64_t wire_bytes(size_t n)
{
    return (uint64_t)n + n / 32 + 200;
}

static void put_file(struct out *o, const struct newsd_catalog *c, const struct newsd_file *f,
                     const char *group)
{
    char subject[CATALOG_SUBJECT_MAX];
    newsd_catalog_subject(f, 1, subject, sizeof(subject));
    say(o, "  <file poster=\"");
    escaped(o, NEWSD_POSTER);
    say(o, "\" date=\"%" PRId64 "\" subject=\"", f->date);
    escaped(o, subject);
    say(o, "\">\n    <groups><group>");
    escaped(o, group);
    say(o, "</group></groups>\n    <segments>\n");
    for (uint32_t part = 1; part <= f->parts; part++) {
        say(o, "      <segment bytes=\"%" PRIu64 "\" number=\"%" PRIu32 "\">%s</segment>\n",
            wire_bytes(newsd_catalog_part_len(c, f, part)), part,
            c->articles[f->first + part - 1].id);
    }
    say(o, "    </segments>\n  </file>\n");
}

static int write_set(const struct newsd_catalog *c, const struct newsd_set *s, int dirfd,
                     const char *group, struct err *e)
{
    struct out o = {.e = e};
    char name[FSX_NAME_MAX + 1];
    int n = snprintf(name, sizeof(name), "%s.nzb", s->name);
    if ((size_t)n >= sizeof(name)) {
        return err_set(e, ERR_LIMIT, "%s: too long a name for an NZB", s->name);
    }
    int rv = fsx_begin(&o.w, &fsx_kernel, dirfd, name, e);
    if (rv != 0) {
        return rv;
    }
    say(&o, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<!DOCTYPE nzb PUBLIC \"-//newzBin//DTD NZB 1.1//EN\" "
            "\"http://www.newzbin.com/DTD/nzb/nzb-1.1.dtd\">\n"
            "<nzb xmlns=\"http://www.newzbin.com/DTD/2003/nzb\">\n");
    for (uint32_t i = 0; i < s->files; i++) {
        put_file(&o, c, &c->files[s->first_file + i], group);
    }
    say(&o, "</nzb>\n");
    flush(&o);
    return fsx_commit(&o.w, NULL, e);
}

int newsd_nzb_write_all(const struct newsd_catalog *c, const char *dir, const char *group,
                        struct err *e)
{
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        return err_sys(e, -errno, "%s", dir);
    }
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return err_sys(e, -errno, "%s", dir);
    }
    int rv = 0;
    for (size_t i = 0; rv == 0 && i < c->sets_len; i++) {
        if (c->sets[i].files > 0) {
            rv = write_set(c, &c->sets[i], fd, group, e);
        }
    }
    close(fd);
    return rv != 0 ? err_wrap(e, rv, "%s", dir) : 0;
}
