/* cmd_newsd.c - `weir newsd`: runs the news server until it is told to stop. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/fsx.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "newsd/newsd.h"

enum {
    OPT_DIR,
    OPT_NZB,
    OPT_PORT,
    OPT_BIND,
    OPT_TLS,
    OPT_CERT,
    OPT_KEY,
    OPT_CERT_OUT,
    OPT_USER,
    OPT_PASS,
    OPT_GROUP,
    OPT_ARTICLE_SIZE,
    OPT_CACHE,
    OPT_AGE,
    OPT_RTT,
    OPT_RATE,
    OPT_DROP_PCT,
    OPT_MISSING,
    OPT_SCRIPT,
    OPT_SEED,
    OPT_JSON,
};

enum { RULES_MAX = 32, RULE_MAX = 512, SCRIPT_MAX = 1 << 20 };

static const struct cli_option options[] = {
    [OPT_DIR] = {"dir", "DIR", "serve the files below each directory in DIR", 'd'},
    [OPT_NZB] = {"nzb", "OUTDIR", "write an NZB per directory of DIR there", 0},
    [OPT_PORT] = {"port", "P", "port to listen on; 0 takes a free one and says which (119)", 'p'},
    [OPT_BIND] = {"bind", "ADDR", "address to listen on (127.0.0.1)", 0},
    [OPT_TLS] = {"tls", NULL, "speak TLS; makes a certificate for localhost if none is given", 0},
    [OPT_CERT] = {"cert", "FILE", "certificate chain, PEM", 0},
    [OPT_KEY] = {"key", "FILE", "its key, PEM", 0},
    [OPT_CERT_OUT] = {"cert-out", "FILE", "write the certificate in use there, for clients", 0},
    [OPT_USER] = {"user", "U", "only this user may read and post", 0},
    [OPT_PASS] = {"pass", "P", "and this is the password", 0},
    [OPT_GROUP] = {"group", "NAME", "newsgroup of the articles (alt.binaries.test)", 0},
    [OPT_ARTICLE_SIZE] = {"article-size", "BYTES", "bytes of a file per article (700K)", 0},
    [OPT_CACHE] = {"cache", "BYTES", "memory for encoded articles (512M)", 0},
    [OPT_AGE] = {"age", "DAYS", "articles are so much older than their files", 0},
    [OPT_RTT] = {"rtt", "MS", "every reply leaves MS after its command came", 0},
    [OPT_RATE] = {"rate", "BYTES", "bytes per second of all connections together", 0},
    [OPT_DROP_PCT] = {"drop-pct", "PCT", "so many replies with an article break off in the middle",
                      0},
    [OPT_MISSING] = {"missing", "GLOB:PCT", "so many articles of matching files are not there", 0},
    [OPT_SCRIPT] = {"script", "FILE", "fault script; see docs/NEWSD.md", 0},
    [OPT_SEED] = {"seed", "N", "of everything left to chance (0)", 0},
    [OPT_JSON] = {"json", NULL, "say in JSON what is served and where", 0},
    {NULL, NULL, NULL, 0},
};

struct request {
    struct newsd_options o;
    bool json;
    char *script;
    char rules[RULES_MAX][RULE_MAX];
    const char *extra[RULES_MAX + 1];
    unsigned rules_len;
};

/* --drop-pct and --missing are rules of a script, too. */
static char *new_rule(struct request *q)
{
    char *rule = q->rules[q->rules_len];
    q->extra[q->rules_len++] = rule;
    return rule;
}

static bool add_missing(struct request *q, struct cli_args *a)
{
    const char *colon = strrchr(a->value, ':');
    unsigned pct = 0;
    char rest;
    if (colon == NULL || colon == a->value || sscanf(colon + 1, "%3u%c", &pct, &rest) != 1 ||
        pct > 100 || strpbrk(a->value, "\"\\\n") != NULL || strlen(a->value) > RULE_MAX / 2 ||
        q->rules_len == RULES_MAX) {
        cli_usage_error(a,
                        "--missing wants a pattern for file names and a percentage, as "
                        "'*.rar:5', not '%s'",
                        a->value);
        return false;
    }
    snprintf(new_rule(q), RULE_MAX, "article match=\"%.*s\" share=%u : status 430",
             (int)(colon - a->value), a->value, pct);
    return true;
}

static bool add_drops(struct request *q, struct cli_args *a)
{
    uint64_t pct;
    if (!cli_number(a, 0, 100, &pct)) {
        return false;
    }
    if (q->rules_len == RULES_MAX) {
        cli_usage_error(a, "too many options");
        return false;
    }
    snprintf(new_rule(q), RULE_MAX, "article pct=%u : reset after=50%%", (unsigned)pct);
    return true;
}

static bool read_script(struct request *q, struct cli_args *a)
{
    struct err e = {0};
    size_t len;
    mem_free(q->script);
    q->script = NULL;
    if (fsx_read_all(&fsx_kernel, AT_FDCWD, a->value, SCRIPT_MAX, &q->script, &len, &e) != 0) {
        cli_usage_error(a, "%s", e.msg);
        return false;
    }
    if (strlen(q->script) != len) {
        cli_usage_error(a, "%s: not a text", a->value);
        return false;
    }
    q->o.script = q->script;
    return true;
}

static bool take_number(struct request *q, struct cli_args *a, int option)
{
    struct newsd_options *o = &q->o;
    uint64_t v = 0;
    bool good = false;
    switch (option) {
    case OPT_PORT:
        good = cli_number(a, 0, UINT16_MAX, &v);
        o->port = (uint16_t)v;
        break;
    case OPT_ARTICLE_SIZE:
        good = cli_size(a, 1, NEWSD_ARTICLE_MAX, &v);
        o->article_bytes = (size_t)v;
        break;
    case OPT_CACHE:
        good = cli_size(a, 1, UINT64_C(1) << 40, &v);
        o->cache_bytes = (size_t)v;
        break;
    case OPT_AGE:
        good = cli_number(a, 0, 20000, &v);
        o->age_days = (unsigned)v;
        break;
    case OPT_RTT:
        good = cli_number(a, 0, 60000, &v);
        o->rtt_ms = (unsigned)v;
        break;
    case OPT_RATE:
        good = cli_size(a, 1, UINT64_C(1) << 40, &v);
        o->rate_bytes = v;
        break;
    default:
        good = cli_number(a, 0, UINT64_MAX, &v);
        o->seed = v;
    }
    return good;
}

static bool take_option(struct request *q, struct cli_args *a, int option)
{
    struct newsd_options *o = &q->o;
    switch (option) {
    case OPT_DIR:
        o->dir = a->value;
        return true;
    case OPT_NZB:
        o->nzb_dir = a->value;
        return true;
    case OPT_BIND:
        o->bind = a->value;
        return true;
    case OPT_TLS:
        o->tls = true;
        return true;
    case OPT_CERT:
        o->cert_file = a->value;
        return true;
    case OPT_KEY:
        o->key_file = a->value;
        return true;
    case OPT_CERT_OUT:
        o->cert_out = a->value;
        return true;
    case OPT_USER:
        o->user = a->value;
        return true;
    case OPT_PASS:
        o->pass = a->value;
        return true;
    case OPT_GROUP:
        o->group = a->value;
        return true;
    case OPT_DROP_PCT:
        return add_drops(q, a);
    case OPT_MISSING:
        return add_missing(q, a);
    case OPT_SCRIPT:
        return read_script(q, a);
    case OPT_JSON:
        q->json = true;
        return true;
    default:
        return take_number(q, a, option);
    }
}

static int read_options(struct request *q, struct cli_args *a)
{
    for (int option; (option = cli_next(a)) != CLI_END;) {
        if (option == CLI_BAD) {
            return CLI_USAGE;
        }
        if (option == CLI_ARG) {
            return cli_usage_error(a, "'%s' is not an option", a->value);
        }
        if (!take_option(q, a, option)) {
            return CLI_USAGE;
        }
    }
    const struct newsd_options *o = &q->o;
    if ((o->cert_file == NULL) != (o->key_file == NULL)) {
        return cli_usage_error(a, "--cert and --key come together");
    }
    if (!o->tls && (o->cert_file != NULL || o->cert_out != NULL)) {
        return cli_usage_error(a, "certificates are for --tls");
    }
    if ((o->user == NULL) != (o->pass == NULL)) {
        return cli_usage_error(a, "--user and --pass come together");
    }
    if (o->nzb_dir != NULL && o->dir == NULL) {
        return cli_usage_error(a, "--nzb needs --dir: there is nothing to write of");
    }
    return CLI_OK;
}

static void say_ready(const struct request *q, const struct newsd *n)
{
    struct newsd_found f = newsd_found(n);
    const char *address = q->o.bind != NULL ? q->o.bind : "127.0.0.1";
    if (q->json) {
        struct jsonw j;
        jsonw_init_file(&j, stdout);
        jsonw_object(&j);
        jsonw_kstr(&j, "bind", address);
        jsonw_kuint(&j, "port", newsd_port(n));
        jsonw_kbool(&j, "tls", q->o.tls);
        jsonw_kuint(&j, "sets", f.sets);
        jsonw_kuint(&j, "files", f.files);
        jsonw_kuint(&j, "empty_files", f.empty_files);
        jsonw_kuint(&j, "articles", f.articles);
        jsonw_kuint(&j, "bytes", f.bytes);
        jsonw_end(&j);
        jsonw_finish(&j);
        fputc('\n', stdout);
    } else {
        printf("newsd: %s port %u%s: %zu articles of %zu files in %zu sets, %" PRIu64 " bytes\n",
               address, newsd_port(n), q->o.tls ? " (TLS)" : "", f.articles, f.files, f.sets,
               f.bytes);
        if (f.empty_files > 0) {
            printf("newsd: %zu empty files are left out\n", f.empty_files);
        }
    }
    fflush(stdout);
}

static int serve(struct request *q, struct cli_args *a)
{
    struct err e = {0};
    struct newsd *n;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL); /* before the thread starts: nobody else may get them */
    if (newsd_start(&n, &q->o, &e) != 0) {
        return cli_failed(a, "%s", e.msg);
    }
    say_ready(q, n);
    int signal;
    sigwait(&set, &signal);
    newsd_stop(n);
    return CLI_OK;
}

static int run(struct cli_args *a)
{
    struct request *q = mem_zalloc(1, sizeof(*q));
    if (q == NULL) {
        return cli_failed(a, "out of memory");
    }
    q->o.port = 119;
    q->o.extra = q->extra;
    int rv = read_options(q, a);
    if (rv == CLI_OK) {
        rv = serve(q, a);
    }
    mem_free(q->script);
    mem_free(q);
    return rv;
}

const struct cli_command cmd_newsd = {
    .name = "newsd",
    .summary = "a news server for tests, demo and benchmarks",
    .about =
        "Serves the files below each directory in DIR as yEnc articles and takes what is posted.\n"
        "Runs until it gets SIGINT or SIGTERM. A fault script makes it misbehave.\n",
    .example =
        "  weir newsd --dir posts --nzb nzbs --port 1119\n"
        "  weir newsd --dir posts --nzb nzbs --port 0 --tls --cert-out nzbs/newsd.pem --json\n"
        "  weir newsd --dir posts --port 1119 --missing '*.rar:3' --rtt 40\n",
    .options = options,
    .run = run,
};
