/* user.c - a user who does anything at any time, and what was promised to them. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sim.h"

uint64_t user_command(struct sim *s, struct coord_command *cmd)
{
    uint64_t n = ++s->request_next;
    MUST(s, n < REQUESTS, "too many requests for one run");
    s->requests[n] =
        (struct request){.open = true, .op = cmd->op, .number = cmd->number, .life = s->restarts};
    if (cmd->op == COORD_EDIT) {
        s->requests[n].edit_op = (int)cmd->edit->op;
        s->requests[n].number = cmd->edit->number;
        s->requests[n].job_id = cmd->edit->id_count == 1 ? cmd->edit->ids[0] : 0;
    }
    if (cmd->op ==
        COORD_EDIT) { /* what the user does to names, keys or the history changes who stands by for whom */
        s->past_edited |= cmd->edit->op != QUEUE_EDIT_GROUP_PAUSE &&
                          cmd->edit->op != QUEUE_EDIT_GROUP_RESUME &&
                          cmd->edit->op != QUEUE_EDIT_GROUP_SET_PRIORITY &&
                          cmd->edit->op != QUEUE_EDIT_GROUP_SET_PARAMETER &&
                          queue_edit_of(cmd->edit->op) != QUEUE_EDIT_FILE;
    }
    cmd->request = n;
    struct coord_event ev = {.type = COORD_EV_COMMAND, .command = *cmd};
    sim_say(s, "user: %s %s (request %llu)", coord_op_name(cmd->op),
            cmd->op == COORD_EDIT ? queue_edit_name(cmd->edit->op) : "", (unsigned long long)n);
    sim_step(s, &ev);
    return n;
}

/* ---- adding ---- */

static void add(struct sim *s)
{
    unsigned post = (unsigned)rng_below(&s->r, s->post_count);
    const struct post *p = &s->posts[post];
    char key[16];
    snprintf(key, sizeof(key), "key%u", (unsigned)rng_below(&s->r, 4));
    struct coord_add a = {
        .job = {.filename = p->title,
                .name = p->title,
                .dest_dir = p->title,
                .priority = sim_chance(s, 150) ? QUEUE_FORCE : (int32_t)sim_pick(s, 0, 2) * 50,
                .dupe_mode = sim_chance(s, 150) ? QUEUE_DUPE_FORCE : QUEUE_DUPE_SCORE,
                .dupe_score = (int32_t)sim_pick(s, 0, 2),
                .top = sim_chance(s, 200),
                .paused = sim_chance(s, 50),
                .expires_at =
                    sim_chance(s, 30) ? sim_wall_ms(s) / 1000 + (int64_t)sim_pick(s, 1, 4000) : 0},
        .key = sim_chance(s, 150) ? key : NULL,
    };
    if (sim_chance(s, 150)) {
        char url[32];
        snprintf(url, sizeof(url), "http://x/%u", post);
        a.job.url = url;
        struct coord_command cmd = {.op = COORD_ADD, .add = &a};
        user_command(s, &cmd);
        return;
    }
    MUST(s, nzb_parse(p->text, p->len, p->title, &a.job.nzb, NULL) == 0,
         "the world's NZB does not parse");
    a.data = post + 1;
    struct coord_command cmd = {.op = COORD_ADD, .add = &a};
    user_command(s, &cmd);
}

void user_url(struct sim *s, uint64_t n)
{
    const struct queue_job *j = queue_job(coord_queue(s->c), (uint32_t)n);
    struct coord_event ev = {.type = COORD_EV_URL, .nzb = {.job_id = (uint32_t)n}};
    unsigned post = 0;
    if (j != NULL) {
        (void)sscanf(j->url, "http://x/%u", &post);
    }
    if (sim_chance(s, s->calm ? 0 : 300)) {
        static const enum coord_code codes[] = {COORD_URL_BUSY, COORD_URL_BUSY, COORD_URL_REFUSED,
                                                COORD_NZB_INVALID, COORD_NZB_EMPTY};
        ev.nzb.code = codes[rng_below(&s->r, 5)];
        ev.nzb.retry_after_s = (uint32_t)sim_pick(s, 0, 100);
    } else {
        MUST(s, nzb_parse(s->posts[post].text, s->posts[post].len, "u", &ev.nzb.nzb, NULL) == 0,
             "parse");
        ev.nzb.data = post + 1;
    }
    sim_say(s, "url of job %u: %s", (unsigned)n, coord_error(ev.nzb.code)->name);
    sim_step(s, &ev);
}

/* ---- editing ---- */

static uint32_t some_job(struct sim *s, bool past)
{
    const struct queue *q = coord_queue(s->c);
    uint32_t n = past ? q->past_count : q->active_count;
    struct queue_job *const *list = past ? q->past : q->order;
    return n > 0 && !sim_chance(s, 30) ? list[rng_below(&s->r, n)]->id
                                       : (uint32_t)sim_pick(s, 0, 40);
}

static uint32_t some_file(struct sim *s)
{
    const struct queue_job *j = queue_job(coord_queue(s->c), some_job(s, false));
    return j != NULL && j->file_count > 0 ? j->files[rng_below(&s->r, j->file_count)]->id : 7;
}

static void edit_one(struct sim *s, enum queue_edit_op op, uint32_t id, int64_t number,
                     const char *text)
{
    uint32_t ids[3] = {id};
    const struct queue_edit e = {
        .op = op, .ids = ids, .id_count = 1, .number = number, .text = text};
    struct coord_command cmd = {.op = COORD_EDIT, .edit = &e};
    struct queue *q = coord_queue(s->c);
    const struct queue_file *f = queue_edit_of(op) == QUEUE_EDIT_FILE ? queue_file(q, id) : NULL;
    uint32_t job_id = f != NULL ? f->job->id : id;
    if (job_id < JOBS) {
        bool ends = strstr(queue_edit_name(op), "Delete") != NULL || op == QUEUE_EDIT_GROUP_MERGE;
        s->wants[job_id].vague |= ends;
        s->wants[job_id].priority_sure &= op != QUEUE_EDIT_GROUP_SET_PRIORITY;
        s->files_edited[job_id] = true;
    }
    user_command(s, &cmd);
}

static void edit_many(struct sim *s, enum queue_edit_op op)
{
    uint32_t ids[3];
    bool files = queue_edit_of(op) == QUEUE_EDIT_FILE;
    for (unsigned i = 0; i < 3; i++) {
        ids[i] = files ? some_file(s) : some_job(s, queue_edit_of(op) == QUEUE_EDIT_PAST);
        const struct queue_file *f = files ? queue_file(coord_queue(s->c), ids[i]) : NULL;
        uint32_t job_id = f != NULL ? f->job->id : ids[i];
        if (job_id < JOBS) {
            s->wants[job_id].vague = true;
            s->wants[job_id].priority_sure = false;
            s->files_edited[job_id] = true;
        }
    }
    const struct queue_edit e = {.op = op, .ids = ids, .id_count = 3, .number = 1, .text = "x"};
    struct coord_command cmd = {.op = COORD_EDIT, .edit = &e};
    user_command(s, &cmd);
}

static void edit(struct sim *s)
{
    enum queue_edit_op op = (enum queue_edit_op)rng_below(&s->r, QUEUE_EDIT_OPS);
    if (sim_chance(s, 300)) {
        static const enum queue_edit_op often[] = {QUEUE_EDIT_GROUP_PAUSE, QUEUE_EDIT_GROUP_RESUME,
                                                   QUEUE_EDIT_GROUP_SET_PRIORITY,
                                                   QUEUE_EDIT_GROUP_FINAL_DELETE};
        op = often[rng_below(&s->r, 4)];
    }
    if (sim_chance(s, 150)) {
        edit_many(s, op);
        return;
    }
    uint32_t id = queue_edit_of(op) == QUEUE_EDIT_FILE
                      ? some_file(s)
                      : some_job(s, queue_edit_of(op) == QUEUE_EDIT_PAST);
    bool force = sim_chance(s, 400);
    edit_one(s, op, id, force ? QUEUE_FORCE : (int64_t)sim_pick(s, 0, 100),
             sim_chance(s, 300) ? "p=v" : "name");
}

/* ---- everything else ---- */

static void pause_or_resume(struct sim *s)
{
    struct coord_command cmd = {.op = COORD_RESUME};
    if (sim_chance(s, 500)) {
        cmd = (struct coord_command){
            .op = COORD_PAUSE, .number = (int64_t)(sim_chance(s, 500) ? sim_pick(s, 1, 600) : 0)};
        s->paused_until_ms = cmd.number > 0 ? s->now_ms + (uint64_t)cmd.number * 1000 : UINT64_MAX;
    } else {
        s->paused_until_ms = 0;
        s->scheduled = false;
    }
    user_command(s, &cmd);
}

static void change_servers(struct sim *s)
{
    struct coord_server list[SERVERS];
    for (unsigned i = 0; i < s->server_count; i++) {
        struct fake_server *v = &s->servers[i];
        bool active = v->conf.active;
        v->conf.active = i == 0 || !sim_chance(s, 200);
        v->was_disabled |= active != v->conf.active || !v->conf.active;
        v->conf.level = (int)rng_below(&s->r, 3);
        list[i] = v->conf;
    }
    struct coord_command cmd = {.op = COORD_SERVERS, .servers = list, .count = s->server_count};
    user_command(s, &cmd);
}

static void other(struct sim *s)
{
    struct coord_command cmd = {.op = COORD_STATUS};
    switch (rng_below(&s->r, 7)) {
    case 0:
        cmd.op = COORD_STUCK;
        break;
    case 1:
        cmd.op = COORD_SCHEDULE;
        cmd.number = sim_chance(s, 500);
        s->scheduled = cmd.number != 0;
        break;
    case 2:
        cmd.op = COORD_RATE;
        cmd.number = sim_chance(s, 500) ? (int64_t)sim_pick(s, 500, 100000) : 0;
        break;
    case 3:
        cmd.op = COORD_SERVER_RESET;
        cmd.number = (int64_t)sim_pick(s, 0, s->server_count + 1);
        break;
    case 4:
        change_servers(s);
        return;
    case 5: /* a made-up report of an import: legal or not, the core must cope */
        s->moved_by_hand = true;
        struct coord_event ev = {
            .type = COORD_EV_POST,
            .post = {.job_id = some_job(s, sim_chance(s, 700)),
                     .kind = COORD_POST_MOVED,
                     .to = sim_chance(s, 500) ? QUEUE_IMPORTED : QUEUE_CLEANED}};
        sim_step(s, &ev);
        s->moved_by_hand = false;
        return;
    default:
        break;
    }
    user_command(s, &cmd);
}

void user_act(struct sim *s)
{
    uint64_t what = rng_below(&s->r, 1000);
    if (what < 350) {
        add(s);
    } else if (what < 750) {
        edit(s);
    } else if (what < 870) {
        pause_or_resume(s);
    } else if (what < 975) {
        other(s);
    } else {
        struct coord_command cmd = {.op = COORD_SHUTDOWN};
        s->stop_asked_ms = s->stop_asked_ms == 0 ? s->now_ms : s->stop_asked_ms;
        user_command(s, &cmd);
    }
}

/* From now on nothing goes wrong any more, and the user wants everything. */
void user_calm(struct sim *s)
{
    struct queue *q = coord_queue(s->c);
    struct coord_command cmd = {.op = COORD_RESUME};
    struct coord_limits limits = s->limits;
    s->paused_until_ms = 0;
    s->scheduled = false;
    user_command(s, &cmd);
    limits.quota_day = limits.quota_month = 0;
    limits.health_check = QUEUE_HEALTH_NONE;
    s->limits = limits;
    cmd = (struct coord_command){.op = COORD_LIMITS, .limits = &limits};
    user_command(s, &cmd);
    for (unsigned i = 0; i < s->server_count; i++) {
        cmd = (struct coord_command){.op = COORD_SERVER_RESET, .number = i + 1};
        user_command(s, &cmd);
    }
    uint32_t ids[JOBS], count = 0;
    /* Only those that wait for the user: the others must get on by themselves. */
    const uint32_t waits_for_user =
        QUEUE_HOLD_BIT(QUEUE_HOLD_USER) | QUEUE_HOLD_BIT(QUEUE_HOLD_HEALTH) |
        QUEUE_HOLD_BIT(QUEUE_HOLD_PASSWORD) | QUEUE_HOLD_BIT(QUEUE_HOLD_POISON);
    for (uint32_t i = 0; i < q->active_count && count < JOBS; i++) {
        const struct queue_job *j = q->order[i];
        bool paused = (j->holds & waits_for_user) != 0;
        for (uint32_t k = 0; k < j->file_count; k++) {
            paused = paused || j->files[k]->paused;
        }
        if (paused) {
            ids[count++] = j->id;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        edit_one(s, QUEUE_EDIT_GROUP_RESUME, ids[i], 0, "");
        edit_one(s, QUEUE_EDIT_GROUP_SET_PARAMETER, ids[i], 0, "*Unpack:Password=secret");
        if (ids[i] < JOBS) {
            s->password_given[ids[i]] = true;
        }
    }
}

/* ---- promises ---- */

static void edited(struct sim *s, const struct request *q, const struct coord_reply *r)
{
    bool ok = r->code == 0 && r->count == 1 && r->results[0].code == 0;
    if (q->job_id == 0 || q->job_id >= JOBS ||
        queue_edit_of((enum queue_edit_op)q->edit_op) == QUEUE_EDIT_FILE) {
        return;
    }
    struct want *w = &s->wants[q->job_id];
    if (ok && (q->edit_op == QUEUE_EDIT_GROUP_FINAL_DELETE ||
               q->edit_op == QUEUE_EDIT_HISTORY_FINAL_DELETE)) {
        w->removed = true;
    }
    if (ok && q->edit_op == QUEUE_EDIT_GROUP_SET_PRIORITY) {
        bool last = true; /* no other change is under way */
        for (uint64_t i = 1; i <= s->request_next; i++) {
            last = last && !(s->requests[i].open && s->requests[i].op == COORD_EDIT);
        }
        w->priority_sure = last;
        w->priority = (int32_t)q->number;
    }
}

/* One active job per content, unless FORCE made a second. */
static void check_twins(struct sim *s, uint32_t job_id)
{
    static const uint8_t none[NZB_KEY_BYTES];
    const struct queue *q = coord_queue(s->c);
    const struct queue_job *j = queue_job(q, job_id);
    if (j == NULL || s->past_edited || j->dupe_mode == QUEUE_DUPE_FORCE ||
        j->place != QUEUE_ACTIVE || j->url[0] != '\0' || memcmp(j->key, none, sizeof(none)) == 0) {
        return;
    }
    for (uint32_t i = 0; i < q->active_count; i++) {
        const struct queue_job *o = q->order[i];
        bool twin = o != j && o->dupe_mode != QUEUE_DUPE_FORCE && o->url[0] == '\0' &&
                    memcmp(o->key, j->key, sizeof(j->key)) == 0;
        MUST(s, !twin, "jobs %u and %u have the same articles", o->id, j->id);
    }
}

void user_reply(struct sim *s, const struct coord_reply *r)
{
    MUST(s, r->request > 0 && r->request <= s->request_next, "an answer to nobody");
    struct request *q = &s->requests[r->request];
    MUST(s, q->open, "a second answer to request %llu", (unsigned long long)r->request);
    q->open = false;
    q->answered = true;
    sim_say(s, "     answer to %llu: %d job %u %s", (unsigned long long)r->request, r->code,
            r->job_id, r->text != NULL ? r->text : "");
    if (q->op == COORD_ADD && r->code == 0) {
        check_twins(s, r->job_id);
        MUST(s, r->job_id > 0, "an add is acknowledged without a job");
        if (r->job_id < JOBS && !r->existed) {
            s->wants[r->job_id].added = true;
        }
    }
    if (q->op == COORD_EDIT) {
        edited(s, q, r);
    }
}

void user_crashed(struct sim *s)
{
    for (uint64_t i = 1; i <= s->request_next; i++) {
        s->requests[i].open = false;
    }
}
