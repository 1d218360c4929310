/* engine.c - the thread that owns the core: messages in, one step each, effects out. */
#include "engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fsx.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/parts.h"

enum {
    VOUCH_MS = 5000,
    BUFFER_BYTES = 32 << 20,
    ASKS_MAX = 4096,
};

/* ---- one step ---- */

static void answer(struct engine *e, const struct coord_reply *r)
{
    struct engine_ask *a = (struct engine_ask *)(uintptr_t)r->request;
    (void)e;
    list_remove(&a->node);
    a->done(a, r);
}

/* What the core was handed and has no use for. */
static void discard(struct engine *e, uint64_t number)
{
    if (engine_text_of(number) != NULL) {
        mem_free(engine_text_of(number));
    } else if (number != 0) {
        buf_give(&e->bufs, (struct buf *)(uintptr_t)number);
    }
}

static void emit(void *arg, const struct coord_effect *fx)
{
    struct engine *e = arg;
    switch (fx->type) {
    case COORD_FX_FETCH:
    case COORD_FX_CANCEL:
    case COORD_FX_SERVER:
        fetch_effect(e, fx);
        break;
    case COORD_FX_DISCARD:
        discard(e, fx->data);
        break;
    case COORD_FX_RATE: /* the pools keep it among themselves (nntp/rate.h) */
        nntp_rate_set(&e->fetch.rate, fx->bytes);
        break;
    case COORD_FX_VOLUME: /* nobody keeps books yet */
        break;
    case COORD_FX_POST_START:
        verify_start(e, fx->job_id);
        break;
    case COORD_FX_POST_STOP:
        verify_stop(e, fx->job_id);
        break;
    case COORD_FX_RECORD:
        if (e->o.record != NULL) {
            e->o.record(e->o.arg, &fx->record);
        }
        break;
    case COORD_FX_REPLY:
        answer(e, &fx->reply);
        break;
    case COORD_FX_STOPPED:
        e->stopped = true;
        e->stop_code = fx->code;
        uv_sem_post(&e->stopped_sem);
        break;
    default:
        write_effect(e, fx);
    }
}

static void on_tick(uv_timer_t *t)
{
    struct engine *e = t->data;
    struct coord_event ev = {.type = COORD_EV_TICK};
    e->tick_at_ms = 0;
    engine_step(e, &ev);
}

static void arm_tick(struct engine *e, uint64_t now_ms)
{
    uint64_t at = coord_next_ms(e->core);
    if (at == e->tick_at_ms) {
        return;
    }
    e->tick_at_ms = at;
    uv_timer_start(&e->tick, on_tick, at > now_ms ? at - now_ms : 0, 0);
}

/* What an event brings with it, when there is nobody left to take it. */
static void drop(struct engine *e, const struct coord_event *ev)
{
    if (ev->type == COORD_EV_RESULT) {
        discard(e, ev->result.data);
    }
    for (uint32_t i = 0; ev->type == COORD_EV_NZB_LOADED && i < ev->nzb.nzb_count; i++) {
        nzb_unref(ev->nzb.nzbs[i]);
    }
}

void engine_step(struct engine *e, struct coord_event *ev)
{
    if (e->stopped) {
        drop(e, ev);
        return;
    }
    PRE(!e->in_step);
    ev->now = clock_now(e->o.clock);
    ev->read_bytes = engine_counters(e).bytes_in;
    e->in_step = true;
    coord_step(e->core, ev, &e->effects);
    e->in_step = false;
    if (e->save_wanted) {
        write_snapshot(e);
    }
    if (!e->stopped) {
        arm_tick(e, ev->now.mono_ms);
    }
}

struct engine_counters engine_counters(const struct engine *e)
{
    struct engine_counters sum = {0, 0};
    for (unsigned p = 0; p < e->fetch.pool_count; p++) {
        struct nntp_pool_counters c = nntp_pool_counters(e->fetch.pools[p]);
        sum.bytes_in += c.bytes_in;
        sum.connections += c.connections_up;
    }
    return sum;
}

/* ---- asks ---- */

static void refuse(struct engine_ask *a)
{
    const struct coord_reply r = {.code = ERR_STOPPED, .text = "the engine has stopped"};
    a->done(a, &r);
}

/* The text of an added NZB is copied here, on the engine's thread, for the disk. */
static void run_command(struct engine *e, struct engine_ask *a)
{
    struct coord_event ev = {.type = COORD_EV_COMMAND, .command = a->command};
    struct coord_add add;
    if (a->command.op == COORD_ADD && a->len > 0) {
        struct engine_text *t = mem_alloc(sizeof(*t) + a->len);
        if (t == NULL) {
            const struct coord_reply r = {.code = -ENOMEM, .text = "no memory for the NZB"};
            nzb_unref(a->command.add->job.nzb);
            a->done(a, &r);
            return;
        }
        t->len = a->len;
        memcpy(t->bytes, a->bytes, a->len);
        add = *a->command.add;
        add.data = engine_text_number(t);
        ev.command.add = &add;
    }
    ev.command.request = (uint64_t)(uintptr_t)a;
    list_push_back(&e->waiting, &a->node);
    engine_step(e, &ev);
}

static void on_ask(struct actor *actor, void *msg)
{
    struct engine *e = actor->self;
    struct engine_ask *a = msg;
    if (e->stopped) {
        refuse(a);
    } else if (a->look != NULL) {
        a->look(a, e->core);
        a->done(a, NULL);
    } else {
        run_command(e, a);
    }
}

int engine_ask(struct engine *e, struct engine_ask *a)
{
    list_init(&a->node);
    return actor_post(&e->actor, a);
}

/* ---- start ---- */

static void on_pool_message(struct mbox *m, void *msg)
{
    fetch_message(m->arg, msg);
}

static void on_disk_message(struct mbox *m, void *msg)
{
    write_message(m->arg, msg);
}

static void from_disk(void *arg, struct disk_msg *m)
{
    struct engine *e = arg;
    int rv = mbox_post(&e->from_disk, m);
    POST(rv == 0);
}

static void on_vouch(uv_timer_t *t)
{
    struct engine *e = t->data;
    if (!e->stopped) {
        fetch_vouch(e);
        verify_vouch(e);
    }
}

static int start(struct actor *actor, struct err *err)
{
    struct engine *e = actor->self;
    int rv = uv_timer_init(&actor->loop, &e->tick);
    rv = rv != 0 ? rv : uv_timer_init(&actor->loop, &e->vouch);
    rv = rv != 0 ? rv : mbox_init(&e->from_pools, &actor->loop, INBOX, on_pool_message, e);
    e->mboxes_open += rv == 0;
    rv = rv != 0 ? rv : mbox_init(&e->from_disk, &actor->loop, INBOX, on_disk_message, e);
    e->mboxes_open += rv == 0;
    if (rv != 0) {
        IMPOSSIBLE("no memory to begin with"); /* before anything was touched */
    }
    e->tick.data = e->vouch.data = e;
    uv_timer_start(&e->vouch, on_vouch, VOUCH_MS, VOUCH_MS);
    struct disk_options disk = {
        .fs = &fsx_kernel,
        .root = e->root,
        .state = e->state,
        .generation = e->generation,
        .bufs = &e->bufs,
        .clock = e->o.clock,
        .inbox = INBOX,
        .deliver = from_disk,
        .arg = e,
    };
    e->disk = disk_start(&disk, err);
    if (e->disk == NULL) {
        IMPOSSIBLE("no thread for the disk");
    }
    rv = fetch_start(e, err);
    if (rv != 0) {
        IMPOSSIBLE("no threads for the connections");
    }
    struct coord_event ev = {.type = COORD_EV_START};
    engine_step(e, &ev);
    return 0;
}

static void on_mbox_closed(struct mbox *m)
{
    struct engine *e = m->arg;
    e->mboxes_open--;
}

static void stop(struct actor *actor)
{
    struct engine *e = actor->self;
    mbox_close(&e->from_pools, on_mbox_closed);
    mbox_close(&e->from_disk, on_mbox_closed);
    uv_close((uv_handle_t *)&e->tick, NULL);
    uv_close((uv_handle_t *)&e->vouch, NULL);
}

/* Makes the directory (with its parents) where it is missing, and opens it. The path is the user's own: links in it
 * are fine. */
static int open_dir(const char *path, mode_t mode, struct err *e)
{
    char *copy = mem_strdup(path);
    if (copy == NULL) {
        return err_sys(e, -ENOMEM, "%s", path);
    }
    for (char *p = copy + 1; *p != '\0'; p++) {
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(copy, 0777);
            *p = '/';
        }
    }
    (void)mkdir(copy, mode);
    mem_free(copy);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : err_sys(e, -errno, "%s", path);
}

static void say(void *arg, const char *line)
{
    struct engine *e = arg;
    log_warning("queue: %s", line);
    if (e->o.say != NULL) {
        e->o.say(e->o.arg, line);
    }
}

static int load(struct engine *e, struct err *err)
{
    struct queue *q;
    struct queue_load_report report;
    struct clock_time now = clock_now(e->o.clock);
    int rv = queue_load(&fsx_kernel, e->state, now.wall_ms / 1000, say, e, &q, &report, err);
    if (rv != 0) {
        return err_wrap(err, rv, "%s", e->o.state_dir);
    }
    e->generation = report.generation;
    struct coord_server servers[ENGINE_SERVERS_MAX];
    for (unsigned i = 0; i < e->o.server_count; i++) {
        servers[i] = e->o.servers[i].policy;
    }
    struct coord_config config = {.limits = e->o.limits,
                                  .servers = servers,
                                  .server_count = e->o.server_count,
                                  .seed = now.mono_ms ^ (uint64_t)now.wall_ms};
    e->core = coord_new(q, &config, now);
    if (e->core == NULL) {
        queue_free(q);
        return err_sys(err, -ENOMEM, "%s", e->o.state_dir);
    }
    return 0;
}

int engine_start(struct engine **out, const struct engine_options *o, struct err *err)
{
    PRE(o->server_count <= ENGINE_SERVERS_MAX && o->workers <= ENGINE_WORKERS_MAX);
    struct engine *e = mem_zalloc(1, sizeof(*e));
    if (e == NULL) {
        return err_sys(err, -ENOMEM, "engine");
    }
    e->o = *o;
    if (e->o.workers == 0) {
        unsigned cpus = uv_available_parallelism();
        e->o.workers = cpus < 4 ? cpus : 4;
    }
    e->effects = (struct coord_effects){emit, e};
    list_init(&e->waiting);
    list_init(&e->spare_writes);
    list_init(&e->verifies);
    e->type = (struct actor_type){
        .name = "coordinator", .inbox = ASKS_MAX, .start = start, .recv = on_ask, .stop = stop};
    int rv = e->state = open_dir(o->state_dir, 0700, err);
    if (rv < 0) {
        goto err_after_alloc;
    }
    rv = e->root = open_dir(o->root_dir, 0777, err);
    if (rv < 0) {
        goto err_after_state;
    }
    rv = e->lock = fsx_lock(&fsx_kernel, e->state, "weir.lock", err);
    if (rv < 0) {
        err_wrap(err, rv, "%s", o->state_dir);
        goto err_after_root;
    }
    rv = load(e, err);
    if (rv != 0) {
        goto err_after_lock;
    }
    rv = buf_pool_init(&e->bufs, o->buffer_bytes != 0 ? o->buffer_bytes : BUFFER_BYTES);
    if (rv != 0) {
        err_sys(err, rv, "article buffers");
        goto err_after_load;
    }
    rv = uv_sem_init(&e->stopped_sem, 0);
    if (rv != 0) {
        err_sys(err, rv, "engine");
        goto err_after_bufs;
    }
    rv = actor_start(&e->actor, &e->type, e, err);
    if (rv == 0) {
        *out = e;
        return 0;
    }
    uv_sem_destroy(&e->stopped_sem);
err_after_bufs:
    buf_pool_close(&e->bufs);
err_after_load:
    coord_free(e->core);
err_after_lock:
    close(e->lock);
err_after_root:
    close(e->root);
err_after_state:
    close(e->state);
err_after_alloc:
    mem_free(e);
    return rv;
}

/* ---- stop ---- */

static void stop_done(struct engine_ask *a, const struct coord_reply *r)
{
    (void)a, (void)r;
}

void engine_stop(struct engine *e)
{
    unsigned n = atomic_fetch_add(&e->stops, 1);
    if (n < 2) {
        e->stop_asks[n] = (struct engine_ask){.command = {.op = COORD_SHUTDOWN}, .done = stop_done};
        (void)engine_ask(e, &e->stop_asks[n]); /* ERR_STOPPED: just what was wished */
    }
}

/* The others end while the engine's thread still takes their last messages; it is the last to go. */
int engine_join(struct engine *e)
{
    uv_sem_wait(&e->stopped_sem);
    fetch_stop(e);
    disk_stop(e->disk);
    actor_stop(&e->actor);
    actor_join(&e->actor);
    for (struct list *n; (n = list_pop_front(&e->waiting)) != NULL;) {
        refuse(LIST_ENTRY(n, struct engine_ask, node));
    }
    fetch_free(e);
    write_free(e);
    disk_free(e->disk);
    mbox_free(&e->from_pools);
    mbox_free(&e->from_disk);
    actor_free(&e->actor);
    uv_sem_destroy(&e->stopped_sem);
    coord_free(e->core);
    buf_pool_close(&e->bufs);
    close(e->lock);
    close(e->root);
    close(e->state);
    int code = e->stop_code;
    mem_free(e);
    return code;
}
