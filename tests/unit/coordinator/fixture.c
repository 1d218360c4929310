#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "base/mem.h"

static void emit(void *arg, const struct coord_effect *fx)
{
    struct fixture *f = arg;
    TEST_ASSERT_TRUE_MESSAGE(f->fx_count < KEPT_FX, "too many effects");
    struct kept_fx *k = &f->fx[f->fx_count++];
    *k = (struct kept_fx){.fx = *fx};
    const char *text = fx->type == COORD_FX_RECORD   ? fx->record.text
                       : fx->type == COORD_FX_REPLY  ? fx->reply.text
                       : fx->type == COORD_FX_SERVER ? fx->server.why
                                                     : NULL;
    snprintf(k->text, sizeof(k->text), "%s", text != NULL ? text : "");
    if (fx->type == COORD_FX_FETCH) {
        snprintf(k->id, sizeof(k->id), "%s", fx->fetch.message_id);
    } else if (fx->type == COORD_FX_REPLY && fx->reply.status != NULL) {
        k->status = *fx->reply.status;
    } else if (fx->type == COORD_FX_REPLY && fx->reply.count > 0 && fx->reply.results != NULL) {
        k->result = fx->reply.results[0];
    }
}

/* ---- life ---- */

void fix_prepare(struct fixture *f, unsigned servers)
{
    memset(f, 0, sizeof(*f));
    f->now = (struct clock_time){1000000, INT64_C(1700864000000)}; /* the posts are ten days old */
    f->limits = (struct coord_limits){.young_sec = 86400, .quota_start_day = 1, .post_slots = 1};
    f->server_count = servers;
    for (unsigned i = 0; i < servers; i++) {
        f->servers[i] =
            (struct coord_server){.id = i + 1, .active = true, .connections = 1, .depth = 1};
        snprintf(f->servers[i].name, sizeof(f->servers[i].name), "news%u", i + 1);
    }
    f->q = queue_new();
    TEST_ASSERT_NOT_NULL(f->q);
}

void fix_start(struct fixture *f)
{
    struct coord_config config = {
        .limits = f->limits, .servers = f->servers, .server_count = f->server_count, .seed = 1};
    f->c = coord_new(f->q, &config, f->now);
    TEST_ASSERT_NOT_NULL(f->c);
    struct coord_event ev = {.type = COORD_EV_START};
    fix_step(f, &ev);
}

void fix_open(struct fixture *f, unsigned servers)
{
    fix_prepare(f, servers);
    fix_start(f);
}

void fix_close(struct fixture *f)
{
    coord_free(f->c);
    f->c = NULL;
}

/* As a reload would leave it: leases open again, notes gone. */
void fix_crash(struct fixture *f)
{
    struct queue *q = f->q;
    for (uint32_t i = 0; i < f->c->lease_room; i++) {
        struct lease *l = &f->c->leases[i];
        if (l->id != 0 && !l->gone) {
            queue_article_return(q, l->article);
        }
    }
    for (uint32_t i = 0; i < q->active_count; i++) {
        memset(&q->order[i]->watch, 0, sizeof(q->order[i]->watch));
        for (uint32_t k = 0; k < q->order[i]->file_count; k++) {
            q->order[i]->files[k]->opened = q->order[i]->files[k]->closing = false;
        }
    }
    f->c->q = NULL;
    coord_free(f->c);
    fix_forget(f);
    fix_start(f);
}

/* ---- steps ---- */

static void disk_one(struct fixture *f, const struct coord_effect *fx)
{
    struct coord_event ev = {.type = COORD_EV_TICK};
    switch (fx->type) {
    case COORD_FX_SAVE:
        ev.type = COORD_EV_SAVED;
        ev.saved = (struct coord_saved){
            .changes = fx->changes, .generation = ++f->q->generation, .code = f->save_code};
        break;
    case COORD_FX_STORE_NZB:
        ev.type = COORD_EV_NZB_STORED;
        ev.nzb = (struct coord_nzb){
            .job_id = fx->nzb.job_id, .code = f->store_code, .stored = "stored.nzb.gz"};
        break;
    case COORD_FX_WRITE:
        ev.type = COORD_EV_WRITTEN;
        ev.disk = (struct coord_disk){.lease = fx->write.lease, .code = f->write_code};
        break;
    case COORD_FX_CLOSE_FILE:
        ev.type = COORD_EV_CLOSED;
        ev.disk = (struct coord_disk){.file_id = fx->file.file_id, .code = f->close_code};
        break;
    default:
        return;
    }
    fix_step(f, &ev);
}

void fix_step(struct fixture *f, struct coord_event *ev)
{
    struct coord_effects out = {emit, f};
    ev->now = f->now;
    coord_step(f->c, ev, &out);
    if (!f->no_check) {
        coord_check(f->c);
        queue_check(f->q);
    }
    if (f->in_disk || f->no_disk) {
        return;
    }
    f->in_disk = true;
    while (f->fx_seen < f->fx_count && !f->no_disk) {
        struct coord_effect fx = f->fx[f->fx_seen++].fx;
        disk_one(f, &fx);
    }
    f->in_disk = false;
}

void fix_pass(struct fixture *f, uint64_t ms)
{
    uint64_t end = f->now.mono_ms + ms;
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t due = coord_next_ms(f->c);
        uint64_t at = due < end ? due : end;
        if (at > f->now.mono_ms) {
            f->now.wall_ms += (int64_t)(at - f->now.mono_ms);
            f->now.mono_ms = at;
        }
        struct coord_event ev = {.type = COORD_EV_TICK};
        fix_step(f, &ev);
        if (at >= end && coord_next_ms(f->c) > end) {
            return;
        }
        if (f->fx_count > KEPT_FX / 2 && f->fx_seen == f->fx_count) {
            fix_forget(f);
        }
    }
    TEST_FAIL_MESSAGE("the core does not come to rest");
}

/* ---- commands ---- */

uint64_t fix_command(struct fixture *f, struct coord_command cmd)
{
    cmd.request = ++f->requests;
    struct coord_event ev = {.type = COORD_EV_COMMAND, .command = cmd};
    fix_step(f, &ev);
    return cmd.request;
}

uint64_t fix_op(struct fixture *f, enum coord_op op, int64_t number)
{
    return fix_command(f, (struct coord_command){.op = op, .number = number});
}

uint32_t fix_add_with(struct fixture *f, const char *name, const char *files, struct queue_add job,
                      const char *key)
{
    struct coord_add a = {.job = job, .data = 1, .key = key};
    a.job.name = name;
    a.job.filename = name;
    a.job.dest_dir = name;
    a.job.nzb = files != NULL ? make_nzb(name, files) : NULL;
    a.data = files != NULL ? 1 : 0;
    const struct kept_fx *r =
        fix_reply(f, fix_command(f, (struct coord_command){.op = COORD_ADD, .add = &a}));
    return r != NULL && r->fx.reply.code == 0 ? r->fx.reply.job_id : 0;
}

uint32_t fix_add(struct fixture *f, const char *name, const char *files)
{
    uint32_t id = fix_add_with(f, name, files, (struct queue_add){0}, NULL);
    TEST_ASSERT_NOT_EQUAL(0, id);
    return id;
}

int fix_edit(struct fixture *f, enum queue_edit_op op, uint32_t id, int64_t number,
             const char *text)
{
    const struct queue_edit e = {
        .op = op, .ids = &id, .id_count = 1, .number = number, .text = text};
    const struct kept_fx *r =
        fix_reply(f, fix_command(f, (struct coord_command){.op = COORD_EDIT, .edit = &e}));
    return r != NULL ? r->fx.reply.code : 1;
}

struct queue_job *fix_job(struct fixture *f, uint32_t id)
{
    struct queue_job *j = queue_job(f->q, id);
    TEST_ASSERT_NOT_NULL(j);
    return j;
}

enum queue_state fix_state(struct fixture *f, uint32_t id)
{
    return (enum queue_state)fix_job(f, id)->life.state;
}

bool fix_held(struct fixture *f, uint32_t id, enum queue_hold hold)
{
    return (fix_job(f, id)->holds & QUEUE_HOLD_BIT(hold)) != 0;
}

bool fix_all_held(struct fixture *f, enum queue_hold hold)
{
    return (coord_status(f->c).holds & QUEUE_HOLD_BIT(hold)) != 0;
}

/* ---- servers ---- */

uint64_t fix_lease(struct fixture *f, uint32_t server_id)
{
    uint64_t first = 0;
    struct coord_lease_view v;
    for (uint32_t i = 0; i < coord_lease_room(f->c); i++) {
        bool here = coord_lease_view(f->c, i, &v) && !v.writing && !v.gone;
        if (here && (server_id == 0 || v.server_id == server_id) && (first == 0 || v.id < first)) {
            first = v.id;
        }
    }
    return first;
}

unsigned fix_leases(struct fixture *f)
{
    unsigned n = 0;
    struct coord_lease_view v;
    for (uint32_t i = 0; i < coord_lease_room(f->c); i++) {
        n += coord_lease_view(f->c, i, &v) && !v.gone;
    }
    return n;
}

void fix_answer_with(struct fixture *f, struct coord_result r)
{
    struct coord_event ev = {.type = COORD_EV_RESULT, .result = r};
    fix_step(f, &ev);
}

void fix_answer(struct fixture *f, uint64_t lease, enum coord_code code)
{
    struct coord_result r = {.lease = lease, .code = code};
    const struct lease *l = coord_lease_find(f->c, lease);
    if (l != NULL && (code == COORD_OK || coord_error(code)->action == COORD_ACT_KEEP_DAMAGED)) {
        r.data = 1;
        r.wire_bytes = l->bytes;
        r.part = (struct queue_part){.offset = l->article.index * 1000u, .size = 1000, .crc32 = 7};
    }
    fix_answer_with(f, r);
}

void fix_answer_all(struct fixture *f, enum coord_code code)
{
    for (uint64_t lease; (lease = fix_lease(f, 0)) != 0;) {
        fix_answer(f, lease, code);
    }
}

void fix_post(struct fixture *f, uint32_t job_id, enum coord_code code, uint32_t blocks)
{
    struct coord_event ev = {
        .type = COORD_EV_POST,
        .post = {.job_id = job_id, .kind = COORD_POST_ENDED, .code = code, .blocks = blocks},
    };
    fix_step(f, &ev);
}

void fix_disk(struct fixture *f, enum coord_event_type type, struct coord_disk d)
{
    struct coord_event ev = {.type = type, .disk = d};
    fix_step(f, &ev);
}

/* ---- effects ---- */

void fix_forget(struct fixture *f)
{
    f->fx_count = f->fx_seen = 0;
}

unsigned fix_count(struct fixture *f, enum coord_effect_type type)
{
    unsigned n = 0;
    for (unsigned i = 0; i < f->fx_count; i++) {
        n += f->fx[i].fx.type == type;
    }
    return n;
}

const struct kept_fx *fix_last(struct fixture *f, enum coord_effect_type type)
{
    for (unsigned i = f->fx_count; i-- > 0;) {
        if (f->fx[i].fx.type == type) {
            return &f->fx[i];
        }
    }
    return NULL;
}

unsigned fix_records(struct fixture *f, enum coord_record_type type)
{
    unsigned n = 0;
    for (unsigned i = 0; i < f->fx_count; i++) {
        n += f->fx[i].fx.type == COORD_FX_RECORD && f->fx[i].fx.record.type == type;
    }
    return n;
}

const struct kept_fx *fix_reply(struct fixture *f, uint64_t request)
{
    for (unsigned i = 0; i < f->fx_count; i++) {
        if (f->fx[i].fx.type == COORD_FX_REPLY && f->fx[i].fx.reply.request == request) {
            return &f->fx[i];
        }
    }
    return NULL;
}
