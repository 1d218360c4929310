/* Any bytes as an NZB: no crash, and what is accepted is sound enough to be sent to a server and written to disk. */
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "queue/queue.h"

static void check_id(const char *id)
{
    size_t len = strlen(id);
    POST(len >= NZB_ID_MIN && len <= NZB_ID_MAX);
    for (size_t i = 0; i < len; i++) {
        POST(id[i] > 0x20 && id[i] < 0x7f && id[i] != '<' && id[i] != '>');
    }
}

static void check_file(const struct nzb *n, const struct nzb_file *f)
{
    POST(f->count > 0 && f->first + f->count <= n->article_count);
    POST(f->name[0] != '\0' && strlen(f->name) <= NZB_NAME_MAX && strchr(f->name, '/') == NULL);
    for (uint32_t i = 0; i < f->count; i++) {
        check_id(nzb_id(n, f->first + i));
        POST(n->number[f->first + i] >= 1);
        POST(i == 0 || n->number[f->first + i] > n->number[f->first + i - 1]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nzb *n = NULL;
    struct err e = {0};
    if (nzb_parse(data, size, "name {{password}}.nzb", &n, &e) != 0) {
        POST(e.code != 0 && e.msg[0] != '\0');
        return 0;
    }
    for (uint32_t i = 0; i < n->file_count; i++) {
        check_file(n, &n->files[i]);
    }
    for (uint32_t i = 0; i < n->fallback_count; i++) {
        POST(n->fallbacks[i].article < n->article_count);
        check_id(n->ids + n->fallbacks[i].id_at);
    }
    POST(nzb_compute_key(n) == 0);
    struct queue *q = queue_new();
    struct queue_job *j;
    const struct queue_add add = {.nzb = n, .now_at = 1};
    POST(q != NULL && queue_add(q, &add, &j, NULL) == 0);
    queue_check(q);
    queue_free(q);
    return 0;
}
