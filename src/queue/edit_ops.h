/* edit_ops.h - private to edit*.c: one batch while it is being carried out. */
#ifndef QUEUE_EDIT_OPS_H
#define QUEUE_EDIT_OPS_H

#include "queue/edit.h"
#include "queue/model.h"

struct edit {
    struct queue *q;
    const struct queue_edit *edit;
    struct queue_edit_result *results; /* one per id */
    const char *text;                  /* never NULL */
    bool reorder;                      /* job order or priority changed: rebuild at the end */
};

struct edit_thing { /* what an id names */
    struct queue_job *job;
    struct queue_file *file; /* NULL unless the command is about files */
};

/* The thing with the `at`-th id; else its result says why not. */
int edit_find(struct edit *x, uint32_t at, struct edit_thing *t);
int edit_fail(struct queue_edit_result *r, int code, const char *why);

/* edit_move.c */
void edit_move_jobs(struct edit *x);
void edit_move_files(struct edit *x);
void edit_sort_jobs(struct edit *x);
int edit_sort_files(struct edit *x, struct edit_thing t, struct queue_edit_result *r);
/* edit_files.c */
void edit_delete_files(struct edit *x);
void edit_split(struct edit *x);
void edit_merge(struct edit *x);
/* edit_past.c */
int edit_delete_job(struct edit *x, struct edit_thing t, struct queue_edit_result *r);
int edit_delete_past(struct edit *x, struct edit_thing t, struct queue_edit_result *r);
int edit_return_past(struct edit *x, struct edit_thing t, struct queue_edit_result *r);
int edit_set_backup(struct edit *x, struct edit_thing t, struct queue_edit_result *r);
int edit_mark_past(struct edit *x, struct edit_thing t, struct queue_edit_result *r);

#endif
