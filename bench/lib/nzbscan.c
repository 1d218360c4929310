#include "lib/nzbscan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *load(const char *path)
{
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        perror(path);
        exit(1);
    }
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *text = malloc((size_t)size + 1);
    if (text == NULL || fread(text, 1, (size_t)size, f) != (size_t)size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    text[size] = '\0';
    fclose(f);
    return text;
}

static unsigned attribute(const char *tag, const char *name)
{
    const char *at = strstr(tag, name);
    return at != NULL ? (unsigned)strtoul(at + strlen(name) + 2, NULL, 10) : 0;
}

/* "&lt;" and its like do not occur in the ids that posters make; "&amp;" may. */
static void unescape(char *id)
{
    char *amp;
    while ((amp = strstr(id, "&amp;")) != NULL) {
        memmove(amp + 1, amp + 5, strlen(amp + 5) + 1);
    }
}

void scan_load(struct scan *s, const char *path)
{
    memset(s, 0, sizeof(*s));
    s->text = load(path);
    unsigned room = 0;
    for (char *at = s->text; (at = strchr(at, '<')) != NULL; at++) {
        if (strncmp(at, "<file ", 6) == 0) {
            s->files++;
        }
        if (strncmp(at, "<segment ", 9) != 0) {
            continue;
        }
        char *open = strchr(at, '>'), *close = open != NULL ? strchr(open, '<') : NULL;
        if (close == NULL) {
            break;
        }
        if (s->count == room) {
            room = room != 0 ? room * 2 : 1024;
            s->segments = realloc(s->segments, room * sizeof(*s->segments));
        }
        *open = '\0';
        s->segments[s->count++] = (struct scan_segment){.file = s->files - 1,
                                                        .number = attribute(at, "number"),
                                                        .bytes = attribute(at, "bytes"),
                                                        .id = open + 1};
        *close = '\0';
        unescape(open + 1);
        at = close;
    }
}

void scan_free(struct scan *s)
{
    free(s->segments);
    free(s->text);
}
