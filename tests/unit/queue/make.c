#include "unit/queue/make.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "queue/pick.h"
#include "queue/text.h"

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    text_put(t, line, (size_t)n);
}

char *make_nzb_text(const char *tag, const char *files, size_t *len)
{
    struct text t = {0};
    char id[64];
    snprintf(id, sizeof(id), "%s", tag);
    for (char *c = id; *c != '\0'; c++) {
        *c = *c == ' ' ? '_' : *c; /* no blanks in message-ids */
    }
    say(&t, "<?xml version=\"1.0\"?>\n<nzb xmlns=\"http://www.newzbin.com/DTD/2003/nzb\">\n");
    while (*files != '\0') {
        char name[128];
        unsigned segments, bytes = 1000;
        int used = 0;
        PRE(sscanf(files, "%127[^:]:%u%n", name, &segments, &used) == 2);
        files += used;
        if (*files == ':') {
            PRE(sscanf(files, ":%u%n", &bytes, &used) == 1);
            files += used;
        }
        files += strspn(files, " ");
        say(&t,
            "<file poster=\"p\" date=\"1700000000\" subject=\"&quot;%s&quot; yEnc (1/%u)\">"
            "<groups><group>a.b.test</group></groups><segments>\n",
            name, segments);
        for (unsigned s = 1; s <= segments; s++) {
            say(&t, "<segment bytes=\"%u\" number=\"%u\">%s.%s.%u@test</segment>\n", bytes, s, id,
                name, s);
        }
        say(&t, "</segments></file>\n");
    }
    say(&t, "</nzb>\n");
    PRE(!t.failed);
    *len = t.len;
    return t.at;
}

struct nzb *make_nzb(const char *tag, const char *files)
{
    size_t len;
    char *text = make_nzb_text(tag, files, &len);
    struct nzb *n = NULL;
    struct err e = {0};
    if (nzb_parse(text, len, NULL, &n, &e) != 0) {
        fprintf(stderr, "make_nzb: %s\n", e.msg);
        abort();
    }
    mem_free(text);
    PRE(nzb_compute_key(n) == 0);
    return n;
}

struct queue_job *make_job_priority(struct queue *q, const char *name, const char *files,
                                    int32_t priority)
{
    struct queue_job *j = NULL;
    const struct queue_add add = {
        .nzb = make_nzb(name, files), .name = name, .priority = priority, .now_at = 1700000100};
    PRE(queue_add(q, &add, &j, NULL) == 0);
    PRE(queue_job_move(q, j, QUEUE_QUEUED, 1700000100, NULL) == 0);
    return j;
}

struct queue_job *make_job(struct queue *q, const char *name, const char *files)
{
    return make_job_priority(q, name, files, QUEUE_NORMAL);
}

void make_servers(struct queue *q, unsigned count, unsigned per_level)
{
    struct queue_server s[QUEUE_SERVERS_MAX] = {0};
    for (unsigned i = 0; i < count; i++) {
        s[i] = (struct queue_server){.id = i + 1, .level = (int)(i / per_level), .active = true};
    }
    PRE(queue_set_servers(q, s, count, 1700000100, NULL) == 0);
}
