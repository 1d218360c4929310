/* fixture.h - the core alone on a table: events in by hand, effects kept in a list, time a number.
 *
 * The disk answers by itself (stores, saves, writes, closes) unless told not to; servers and post-processing answer
 * when the test says so. */
#ifndef COORDINATOR_FIXTURE_H
#define COORDINATOR_FIXTURE_H

#include "coordinator/core.h"
#include "unit/queue/make.h"

enum { KEPT_FX = 4096 };

struct kept_fx {
    struct coord_effect fx;
    char text[96]; /* of a record, reply or server */
    char id[64];   /* message-id */
    struct coord_status status;
    struct queue_edit_result result;
};

struct fixture {
    struct coord *c;
    struct queue *q;
    struct clock_time now;
    struct coord_limits limits;
    struct coord_server servers[8];
    unsigned server_count;
    struct kept_fx fx[KEPT_FX];
    unsigned fx_count, fx_seen; /* seen: by the disk */
    uint64_t requests;
    enum coord_code save_code, store_code, write_code, close_code; /* what the disk answers */
    bool no_disk;                                                  /* it does not answer at all */
    bool in_disk;
    bool no_check; /* the test has put the job into a state by force */
};

/* Servers 1..n with one connection and one article each; change f->servers and f->limits between the two. */
void fix_prepare(struct fixture *f, unsigned servers);
void fix_start(struct fixture *f);
void fix_close(struct fixture *f);
/* Both in one. */
void fix_open(struct fixture *f, unsigned servers);
/* Ends the program without a word and starts it again with the same queue, as a crash does. */
void fix_crash(struct fixture *f);

void fix_step(struct fixture *f, struct coord_event *ev);
void fix_pass(struct fixture *f, uint64_t ms); /* with every tick that is due */
uint64_t fix_command(struct fixture *f, struct coord_command cmd);
uint64_t fix_op(struct fixture *f, enum coord_op op, int64_t number);
/* An add: job id, or 0 when it was refused or is not answered yet. `files` as make_nzb(). */
uint32_t fix_add(struct fixture *f, const char *name, const char *files);
uint32_t fix_add_with(struct fixture *f, const char *name, const char *files, struct queue_add job,
                      const char *key);
int fix_edit(struct fixture *f, enum queue_edit_op op, uint32_t id, int64_t number,
             const char *text);
struct queue_job *fix_job(struct fixture *f, uint32_t id);
enum queue_state fix_state(struct fixture *f, uint32_t id);
bool fix_held(struct fixture *f, uint32_t id, enum queue_hold hold);
bool fix_all_held(struct fixture *f, enum queue_hold hold);

/* The n-th lease (from 0) that is out and not answered: of any server, or of one. 0: none. */
uint64_t fix_lease(struct fixture *f, uint32_t server_id);
unsigned fix_leases(struct fixture *f); /* out now, cancelled ones not counted */
void fix_answer(struct fixture *f, uint64_t lease, enum coord_code code);
void fix_answer_with(struct fixture *f, struct coord_result r);
void fix_answer_all(struct fixture *f, enum coord_code code); /* until nothing is out */
void fix_post(struct fixture *f, uint32_t job_id, enum coord_code code, uint32_t blocks);
void fix_disk(struct fixture *f, enum coord_event_type type, struct coord_disk d);

void fix_forget(struct fixture *f);                                 /* the list is empty again */
unsigned fix_count(struct fixture *f, enum coord_effect_type type); /* since then */
const struct kept_fx *fix_last(struct fixture *f, enum coord_effect_type type); /* NULL: none */
unsigned fix_records(struct fixture *f, enum coord_record_type type);
const struct kept_fx *fix_reply(struct fixture *f, uint64_t request); /* NULL: not answered */

#endif
