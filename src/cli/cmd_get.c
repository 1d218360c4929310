/* cmd_get.c - `weir get`: download what an NZB names, and end.
 *
 * The main thread runs a small loop of its own: signals, and a timer that asks the engine how far it is. The queue of
 * the engine lives in DIR/.weir until all is done, so that the same command continues after Ctrl-C, kill or a power
 * cut. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "base/mem.h"
#include "base/name.h"
#include "base/redact.h"
#include "cli/commands.h"
#include "cli/conf.h"
#include "cli/get_servers.h"
#include "cli/get_show.h"
#include "engine/engine.h"
#include "queue/nzb.h"

enum {
    EXIT_INCOMPLETE = 3, /* it was fetched, and is not whole */
    EXIT_BAD_NZB = 4,
    EXIT_NO_SERVER = 5,
    EXIT_INTERRUPTED = 130,
    LOOK_MS = 250,
    GIVE_UP_MS = 60 * 1000, /* no server answers for so long */
};

enum {
    OPT_OUT,
    OPT_CONFIG,
    OPT_OPTION,
    OPT_SERVER,
    OPT_TLS,
    OPT_NO_VERIFY,
    OPT_CA,
    OPT_USER,
    OPT_PASS,
    OPT_CONNECTIONS,
    OPT_RATE,
    OPT_THREADS,
    OPT_LOG,
    OPT_JSON,
    OPT_QUIET,
};

static const struct cli_option options[] = {
    [OPT_OUT] = {"out", "DIR", "where it goes, into a directory of its own (default: here)", 'd'},
    [OPT_CONFIG] = CLI_CONF_FILE,
    [OPT_OPTION] = CLI_CONF_SET,
    [OPT_SERVER] = {"server", "HOST[:PORT]",
                    "news server; again: asked for what the ones before lack", 's'},
    [OPT_TLS] = {"tls", NULL, "this server speaks TLS (port 563; without: 119)", 0},
    [OPT_NO_VERIFY] = {"no-verify-tls", NULL, "do not check its certificate", 0},
    [OPT_CA] = {"ca", "FILE", "certificates to trust instead of the system's", 0},
    [OPT_USER] = {"user", "NAME", "login", 'u'},
    [OPT_PASS] = {"pass", "WORD", "its password; better: WEIR_PASS in the environment", 'p'},
    [OPT_CONNECTIONS] = {"connections", "N", "at a time, to this server (default: 8)", 'n'},
    [OPT_RATE] = {"rate", "BYTES", "at most so many per second (K, M, G may follow)", 'r'},
    [OPT_THREADS] = {"threads", "N", "for connections (default: by CPUs)", 't'},
    [OPT_LOG] = {"log", "FILE", "write a log of everything that happens", 0},
    [OPT_JSON] = {"json", NULL, "one JSON object per line: progress, then the result", 0},
    [OPT_QUIET] = {"quiet", NULL, "say only what went wrong", 'q'},
    {NULL, NULL, NULL, 0},
};

struct get {
    struct cli_args *args;
    const char *nzb_path;
    const char *out;
    const char *log;
    struct cli_conf conf;
    struct get_servers servers;
    uint64_t rate;
    uint64_t threads;
    struct get_show show;

    char *text; /* of the NZB */
    size_t text_len;
    struct nzb *nzb;
    char dest[NAME_LEN_MAX + 1];
    char state_dir[4096];

    struct engine *engine;
    uv_loop_t loop;
    struct mbox answers; /* struct engine_ask, done */
    uv_timer_t timer;
    uv_signal_t signals[2];
    bool looking; /* `look` is with the engine */
    struct engine_ask look;
    struct engine_ask add;
    struct coord_add add_args;
    uint32_t job_id; /* 0: not known yet */
    /* The engine's thread writes these; they are read when its answer is here. */
    uint32_t added_id;
    bool existed; /* it continues */
    int add_code;
    char add_text[200];
    struct engine_ask resume;
    struct queue_edit resume_args;
    struct get_view view;      /* what the last look saw */
    char stage[GET_STAGE_MAX]; /* the engine's thread: what post-processing said last */
    uint64_t dark_since_ms;    /* no server is up */
    bool ending;
    int exit_code;
};

/* ---- arguments ---- */

static int other_option(struct get *g, int option)
{
    switch (option) {
    case OPT_OUT:
        g->out = g->args->value;
        return CLI_OK;
    case OPT_CONFIG:
        g->conf.file = g->args->value;
        return CLI_OK;
    case OPT_OPTION:
        return cli_conf_set(&g->conf, g->args) ? CLI_OK : CLI_USAGE;
    case OPT_SERVER:
        return get_server_add(&g->servers, g->args);
    case OPT_TLS:
        return get_server_set(&g->servers, g->args, GET_SERVER_TLS);
    case OPT_NO_VERIFY:
        return get_server_set(&g->servers, g->args, GET_SERVER_NO_VERIFY);
    case OPT_CA:
        return get_server_set(&g->servers, g->args, GET_SERVER_CA);
    case OPT_USER:
        return get_server_set(&g->servers, g->args, GET_SERVER_USER);
    case OPT_PASS:
        return get_server_set(&g->servers, g->args, GET_SERVER_PASS);
    case OPT_CONNECTIONS:
        return get_server_set(&g->servers, g->args, GET_SERVER_CONNECTIONS);
    case OPT_RATE:
        return cli_size(g->args, 1024, UINT64_MAX / 2, &g->rate) ? CLI_OK : CLI_USAGE;
    case OPT_THREADS:
        return cli_number(g->args, 1, ENGINE_WORKERS_MAX, &g->threads) ? CLI_OK : CLI_USAGE;
    case OPT_LOG:
        g->log = g->args->value;
        return CLI_OK;
    case OPT_JSON:
        g->show.json = true;
        return CLI_OK;
    case OPT_QUIET:
        g->show.quiet = true;
        return CLI_OK;
    case CLI_ARG:
        if (g->nzb_path != NULL) {
            return cli_usage_error(g->args, "one NZB at a time");
        }
        g->nzb_path = g->args->value;
        return CLI_OK;
    default:
        return CLI_USAGE;
    }
}

static int parse(struct get *g)
{
    for (int option; (option = cli_next(g->args)) != CLI_END;) {
        int rv = other_option(g, option);
        if (rv != CLI_OK) {
            return rv;
        }
    }
    if (g->nzb_path == NULL) {
        return cli_usage_error(g->args, "which NZB? ('-' reads it from standard input)");
    }
    int rv = get_servers_complete(&g->servers, g->args, &g->conf);
    return rv == CLI_FAILED ? EXIT_NO_SERVER : rv;
}

/* ---- the NZB ---- */

static int read_all(struct get *g, FILE *f, struct err *e)
{
    size_t room = 0;
    for (;;) {
        if (g->text_len == room) {
            room = room > 0 ? 2 * room : 1 << 20;
            char *more = room <= 2 * NZB_BYTES_MAX ? mem_realloc(g->text, room, 1) : NULL;
            if (more == NULL) {
                return err_sys(e, ERR_LIMIT, "read");
            }
            g->text = more;
        }
        size_t n = fread(g->text + g->text_len, 1, room - g->text_len, f);
        if (n == 0) {
            return ferror(f) ? err_sys(e, -EIO, "read") : 0;
        }
        g->text_len += n;
    }
}

static int read_nzb(struct get *g)
{
    struct err e = {0};
    const char *slash = strrchr(g->nzb_path, '/');
    const char *name = slash != NULL ? slash + 1 : g->nzb_path;
    bool from_stdin = strcmp(g->nzb_path, "-") == 0;
    FILE *f = from_stdin ? stdin : fopen(g->nzb_path, "rb");
    int rv = f != NULL ? read_all(g, f, &e) : err_sys(&e, -errno, "open");
    if (f != NULL && !from_stdin) {
        fclose(f);
    }
    if (rv == 0) {
        rv = nzb_parse(g->text, g->text_len, from_stdin ? NULL : name, &g->nzb, &e);
    }
    if (rv == 0 && nzb_compute_key(g->nzb) != 0) {
        rv = err_sys(&e, -ENOMEM, "identity");
    }
    if (rv != 0) {
        cli_failed(g->args, "%s: %s", from_stdin ? "standard input" : g->nzb_path, e.msg);
        return EXIT_BAD_NZB;
    }
    if (g->nzb->first_problem[0] != '\0') {
        get_show_note(&g->show, "%s: %s", name, g->nzb->first_problem);
    }
    char title[NZB_NAME_MAX + 1], password[NZB_NAME_MAX + 1];
    nzb_split_filename(from_stdin ? "download.nzb" : name, title, password);
    const char *wanted = from_stdin && g->nzb->title[0] != '\0' ? g->nzb->title : title;
    name_clean(NAME_TITLE, wanted, strlen(wanted), g->dest);
    return CLI_OK;
}

/* ---- talking with the engine ---- */

static void post_answer(struct engine_ask *a, const struct coord_reply *r)
{
    struct get *g = a->arg;
    if (a == &g->add && r != NULL) {
        g->added_id = r->job_id;
        g->existed = r->existed;
        g->add_code = r->code;
        snprintf(g->add_text, sizeof(g->add_text), "%s", r->text != NULL ? r->text : "");
    }
    (void)mbox_post(&g->answers, a); /* refused only while ending: nobody looks at it any more */
}

/* On the engine's thread, as look_at() is. */
static void on_record(void *arg, const struct coord_record *r)
{
    struct get *g = arg;
    log_write(LOG_DETAIL, r->job_id, "%s %s %s", coord_record_name(r->type),
              r->code != COORD_OK ? coord_error(r->code)->name : "", r->text);
    if (r->type == COORD_REC_STAGE && r->code == COORD_OK) {
        snprintf(g->stage, sizeof(g->stage), "%s", r->text);
    }
}

static void look_at(struct engine_ask *a, struct coord *c)
{
    struct get *g = a->arg;
    get_view_take(&g->view, c, g->job_id);
    memcpy(g->view.stage, g->stage, sizeof(g->view.stage));
}

static void begin_end(struct get *g)
{
    if (!g->ending) {
        g->ending = true;
        uv_timer_stop(&g->timer);
        for (size_t i = 0; i < 2; i++) {
            uv_signal_stop(&g->signals[i]);
        }
        uv_stop(&g->loop);
    }
}

static void finish(struct get *g, int exit_code)
{
    g->exit_code = exit_code;
    begin_end(g);
}

/* Every server refuses us, or none has answered for a minute: going on by itself makes no sense for a script. */
static bool servers_hopeless(struct get *g)
{
    if (g->view.servers_up > 0) {
        g->dark_since_ms = 0;
        return false;
    }
    uint64_t now = clock_now(&clock_system).mono_ms;
    g->dark_since_ms = g->dark_since_ms != 0 ? g->dark_since_ms : now;
    return g->view.servers_disabled == g->servers.count || now - g->dark_since_ms >= GIVE_UP_MS;
}

static void on_looked(struct get *g)
{
    struct get_view *v = &g->view;
    get_show_progress(&g->show, v, engine_counters(g->engine));
    if (!v->exists) {
        snprintf(v->reason, sizeof(v->reason), "the job is gone");
        finish(g, CLI_FAILED);
    } else if (v->state == QUEUE_COMPLETED || v->state == QUEUE_IMPORTED ||
               v->state == QUEUE_CLEANED) {
        finish(g, CLI_OK);
    } else if (v->state == QUEUE_JOB_FAILED || v->state == QUEUE_CANCELLED) {
        finish(g, EXIT_INCOMPLETE);
    } else if (v->state != QUEUE_PROCESSING && servers_hopeless(g)) {
        memcpy(v->reason, v->server_why, sizeof(v->reason));
        finish(g, EXIT_NO_SERVER);
    }
}

/* Asked for again by name: whatever held it back the last time (a pause, too many crashes) is overruled. */
static void ask_to_resume(struct get *g)
{
    g->resume_args = (struct queue_edit){.op = QUEUE_EDIT_GROUP_RESUME,
                                         .ids = &g->job_id,
                                         .id_count = 1,
                                         .now_at = clock_now(&clock_system).wall_ms / 1000};
    g->resume = (struct engine_ask){
        .command = {.op = COORD_EDIT, .edit = &g->resume_args}, .done = post_answer, .arg = g};
    (void)engine_ask(g->engine, &g->resume);
}

static void on_answer(struct mbox *m, void *msg)
{
    struct get *g = m->arg;
    if (g->ending) {
        return;
    }
    if (msg == &g->add) {
        g->job_id = g->added_id;
        if (g->add_code != 0) {
            cli_failed(g->args, "%s", g->add_text);
            finish(g, CLI_FAILED);
        } else if (g->existed) {
            ask_to_resume(g);
        }
        return;
    }
    if (msg == &g->resume) {
        return;
    }
    g->looking = false;
    on_looked(g);
}

static void on_timer(uv_timer_t *t)
{
    struct get *g = t->data;
    if (g->job_id == 0 || g->looking) {
        return;
    }
    g->look = (struct engine_ask){.look = look_at, .done = post_answer, .arg = g};
    g->looking = engine_ask(g->engine, &g->look) == 0;
}

static void on_signal(uv_signal_t *s, int number)
{
    struct get *g = s->data;
    (void)number;
    get_show_note(&g->show, "stopping; the same command continues later");
    finish(g, EXIT_INTERRUPTED);
}

/* ---- run ---- */

static int start_engine(struct get *g)
{
    struct engine_options o = {
        .state_dir = g->state_dir,
        .root_dir = g->out,
        .servers = g->servers.list,
        .server_count = g->servers.count,
        .limits = {.rate = g->rate, .quota_start_day = 1, .young_sec = 6 * 3600, .post_slots = 1},
        .workers = (unsigned)g->threads,
        .clock = &clock_system,
        .record = on_record,
        .arg = g,
    };
    struct err e = {0};
    int rv = engine_start(&g->engine, &o, &e);
    return rv == 0 ? CLI_OK : cli_failed(g->args, "%s", e.msg);
}

static void ask_to_add(struct get *g)
{
    g->add_args = (struct coord_add){
        .job = {.nzb = g->nzb,
                .filename = g->nzb_path,
                .dest_dir = g->dest,
                .now_at = clock_now(&clock_system).wall_ms / 1000},
    };
    g->nzb = NULL; /* taken */
    g->add = (struct engine_ask){
        .command = {.op = COORD_ADD, .add = &g->add_args},
        .bytes = g->text,
        .len = g->text_len,
        .done = post_answer,
        .arg = g,
    };
    (void)engine_ask(g->engine, &g->add);
}

static void on_answers_closed(struct mbox *m)
{
    (void)m;
}

static int run_loop(struct get *g)
{
    static const int numbers[2] = {SIGINT, SIGTERM};
    uv_loop_init(&g->loop);
    if (mbox_init(&g->answers, &g->loop, 16, on_answer, g) != 0) {
        uv_loop_close(&g->loop);
        return cli_failed(g->args, "no memory");
    }
    uv_timer_init(&g->loop, &g->timer);
    g->timer.data = g;
    uv_timer_start(&g->timer, on_timer, 20, LOOK_MS);
    for (size_t i = 0; i < 2; i++) {
        uv_signal_init(&g->loop, &g->signals[i]);
        g->signals[i].data = g;
        uv_signal_start(&g->signals[i], on_signal, numbers[i]);
    }
    ask_to_add(g);
    uv_run(&g->loop, UV_RUN_DEFAULT);
    engine_stop(g->engine);
    int saved = engine_join(g->engine); /* every ask has had its answer when this returns */
    mbox_close(&g->answers, on_answers_closed);
    uv_close((uv_handle_t *)&g->timer, NULL);
    for (size_t i = 0; i < 2; i++) {
        uv_close((uv_handle_t *)&g->signals[i], NULL);
    }
    uv_run(&g->loop, UV_RUN_DEFAULT);
    mbox_free(&g->answers);
    uv_loop_close(&g->loop);
    if (saved != 0 && g->exit_code != CLI_OK) {
        get_show_note(&g->show, "the last progress could not be saved: %s", err_text(saved));
    }
    return g->exit_code;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static int run(struct cli_args *a)
{
    struct get g = {.args = a, .out = "."};
    get_show_init(&g.show);
    int rv = parse(&g);
    if (rv == CLI_OK) {
        rv = read_nzb(&g);
    }
    if (rv != CLI_OK) {
        nzb_unref(g.nzb);
        mem_free(g.text);
        return rv;
    }
    snprintf(g.state_dir, sizeof(g.state_dir), "%s/.weir", g.out);
    struct err e = {0};
    struct log_options log = {.path = g.log,
                              .level = g.log != NULL ? LOG_DETAIL : LOG_ERROR,
                              .to_stderr = g.log == NULL,
                              .clock = &clock_system};
    if (log_open(&log, &e) != 0) {
        rv = cli_failed(a, "%s", e.msg);
    } else {
        rv = start_engine(&g);
        if (rv == CLI_OK) {
            rv = run_loop(&g);
            get_show_end(&g.show, &g.view, rv, g.out);
            if (rv == CLI_OK || rv == EXIT_INCOMPLETE) { /* nothing is left to continue */
                nftw(g.state_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
            }
        }
        log_close();
    }
    nzb_unref(g.nzb);
    mem_free(g.text);
    redact_forget();
    return rv;
}

const struct cli_command cmd_get = {
    .name = "get",
    .summary = "download what an NZB names, repair it, and end",
    .args = "FILE.nzb",
    .about =
        "Fetches the articles that the NZB names (gzip is fine, '-' is standard input), writes "
        "the\n"
        "files to DIR/NAME, verifies them with PAR2 and repairs what is damaged; recovery volumes "
        "are\n"
        "fetched only as far as they are needed. Interrupted, the same command continues: what is "
        "done\n"
        "is remembered in DIR/.weir until the end.\n"
        "\n"
        "--tls, --user, --pass, --connections and the like belong to the --server in front of "
        "them.\n"
        "\n"
        "exit status: 0 complete (repaired where that was needed), 1 failed, 2 wrong usage,\n"
        "3 not complete and not repairable, 4 the NZB cannot be read, 5 no server can be used,\n"
        "130 interrupted; 1, 5 and 130 can be continued.\n",
    .example = "  weir get file.nzb --server news.example.org --tls --user me --out downloads\n"
               "  weir get file.nzb -s localhost:1119 -n 4 --json\n",
    .options = options,
    .run = run,
};
