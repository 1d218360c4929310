/* Any bytes as saved state. The first byte says as what: 0 the body of a snapshot, under a header that is right;
 * 1 a whole snapshot; else a journal beside a good snapshot. Loading must give a sound queue or a named error. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "lib/fsim.h"
#include "queue/saved.h"
#include "queue/state.h"

static const char nzb_text[] =
    "<nzb><file subject='\"a.rar\" yEnc (1/3)'><segments>"
    "<segment bytes='9' number='1'>a1@x.y</segment><segment bytes='9' number='2'>a2@x.y</segment>"
    "<segment bytes='9' number='2'>other@x.y</segment><segment bytes='9' "
    "number='3'>a3@x.y</segment>"
    "</segments></file><file subject='\"a.vol0+1.par2\" yEnc (1/1)'><segments>"
    "<segment bytes='9' number='1'>p1@x.y</segment></segments></file></nzb>";

/* A snapshot with one job, and its NZB beside it. */
static void save_good(const struct fsx *fs)
{
    char stored[QUEUE_STORED_NAME];
    struct nzb *n;
    struct queue_job *j;
    struct queue_snapshot s;
    struct queue *q = queue_new();
    POST(queue_nzb_store(fs, FSIM_ROOT, 1, "job.nzb", nzb_text, sizeof(nzb_text) - 1, stored,
                         NULL) == 0);
    POST(nzb_parse(nzb_text, sizeof(nzb_text) - 1, NULL, &n, NULL) == 0);
    const struct queue_add add = {.nzb = n, .stored_nzb = stored, .name = "job"};
    POST(queue_add(q, &add, &j, NULL) == 0);
    POST(queue_snapshot(q, &s) == 0);
    POST(queue_snapshot_write(fs, FSIM_ROOT, &s, NULL) == 0);
    queue_snapshot_free(&s);
    queue_free(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fsim *d = fsim_new(1);
    const struct fsx *fs = fsim_fs(d);
    struct queue *q = NULL;
    struct queue_load_report report;
    struct err e = {0};
    uint8_t as = size > 0 ? data[0] : 0;
    size -= size > 0;
    save_good(fs);
    char *bytes = mem_alloc(size + SAVED_HEADER + 1);
    POST(bytes != NULL);
    size_t head = as == 0 ? SAVED_HEADER : 0;
    memcpy(bytes + head, data + 1, size);
    if (as == 0) {
        char header[SAVED_HEADER + 1];
        saved_header(bytes + head, size, header);
        memcpy(bytes, header, SAVED_HEADER);
    }
    POST(fsx_replace(fs, FSIM_ROOT, as <= 1 ? SAVED_NAME : "queue.1.journal", NULL, bytes,
                     size + head, NULL) == 0);
    if (queue_load(fs, FSIM_ROOT, 5, NULL, NULL, &q, &report, &e) == 0) {
        queue_check(q);
        POST(ERGO(report.source == QUEUE_FROM_NZBS, q->active_count == 1));
        struct queue_snapshot s;
        POST(queue_snapshot(q, &s) == 0);
        queue_snapshot_free(&s);
    } else {
        POST(e.code != 0 && e.msg[0] != '\0');
    }
    queue_free(q);
    mem_free(bytes);
    fsim_free(d);
    return 0;
}
