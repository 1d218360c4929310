/* model.h - a queue that is easy to believe: plain structs, every question answered by walking. What the real one is
 * compared with. */
#ifndef TESTS_QUEUE_MODEL_H
#define TESTS_QUEUE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/edit.h"
#include "queue/pick.h"

enum { MODEL_JOBS = 64, MODEL_FILES = 96, MODEL_ARTICLES = 80, MODEL_SERVERS = 4 };

struct model_article {
    int state;
    int tried[MODEL_SERVERS];
    unsigned attempts;
    uint64_t wake_ms;
};

struct model_file {
    uint32_t id;
    int kind;
    bool paused, wanted;
    unsigned count;
    uint64_t bytes; /* of each article */
    struct model_article article[MODEL_ARTICLES];
};

struct model_job {
    uint32_t id;
    int32_t priority;
    bool held;
    char name[64];
    unsigned file_count;
    struct model_file *file[MODEL_FILES]; /* in fetch order */
};

struct model {
    struct model_job *order[MODEL_JOBS]; /* in queue order */
    unsigned job_count;
    bool paused_all;
    unsigned server_count;
    struct queue_server server[MODEL_SERVERS];
};

void model_free(struct model *m);
/* Takes over a job that was just added to the real queue, at its place there. */
void model_add(struct model *m, const struct queue *q, const struct queue_job *j);
struct model_job *model_job(struct model *m, uint32_t id);
struct model_file *model_file(struct model *m, uint32_t id, struct model_job **job);

/* What the next pick of a lane must be, by walking everything. */
bool model_pick(struct model *m, unsigned lane, uint32_t *file_id, uint32_t *index);

/* Moves as a user would do them one by one with the finger on the list. */
void model_move(struct model *m, const uint32_t *ids, unsigned n, enum queue_edit_op op,
                int64_t number);
void model_move_files(struct model_job *j, const uint32_t *ids, unsigned n, enum queue_edit_op op,
                      int64_t number);
void model_delete(struct model *m, uint32_t id);

/* What a restart forgets: leases and waits are open again. */
void model_restart(struct model *m);
/* Aborts at the first difference. */
void model_compare(struct model *m, const struct queue *q);

#endif
