/* fixture.h - a store in a directory of its own, with a clock that stands still until it is told to go. */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include "lib/dir.h"
#include "store/event.h"
#include "store/explain.h"
#include "store/history.h"
#include "store/import.h"
#include "store/job.h"
#include "store/stage.h"
#include "store/store.h"
#include "store/volume.h"

enum { MINUTE = 60000, HOUR = 60 * MINUTE, DAY = 24 * HOUR };
#define START_AT INT64_C(1800000000000)

struct world {
    struct dir dir;
    struct store *s;
    struct clock_time now;
    struct store_report report; /* of the last opening */
    struct err e;
};

extern const struct sm_type *const test_job_type;

void world_make(struct world *w);
void world_remove(struct world *w);
int world_try_open(struct world *w);
void world_close(struct world *w);
void world_reopen(struct world *w); /* closes in order */
/* As after kill -9: the database is left as it is, and opened again. */
void world_crash(struct world *w);
void world_wait(struct world *w, int64_t ms);
/* One value from the database through another connection. */
int64_t world_number(struct world *w, const char *sql);
int world_sql(struct world *w, const char *sql); /* SQLite's code */

/* Each asserts success. */
void add_job(struct world *w, uint32_t id);
int try_move(struct world *w, uint32_t id, enum store_state to);
void move(struct world *w, uint32_t id, enum store_state to);
void move_to(struct world *w, uint32_t id, enum store_state to); /* from created, the usual way */
void get_job(struct world *w, uint32_t id, struct store_job *j); /* texts are gone afterwards */
enum store_state state_of(struct world *w, uint32_t id);
void spawn(struct world *w, uint32_t job, unsigned files); /* "/src/<job>/<n>" */
/* Claims one task and ends it. Returns its id. */
int64_t import_one(struct world *w, bool ok, enum store_category category);
struct store_task get_task(struct world *w, int64_t id); /* texts are gone afterwards */
enum store_import_status import_status(struct world *w, uint32_t job);
int64_t count_events(struct world *w, uint32_t job, enum store_kind kind);
/* The newest event of a job and kind; texts stay until the next call. */
const struct store_event *last_event(struct world *w, uint32_t job, enum store_kind kind);

#endif
