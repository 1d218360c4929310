/* server.c - the thread, the listening socket, and the rate that all connections share. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/actor.h"
#include "base/check.h"
#include "base/mem.h"
#include "newsd/nzb.h"
#include "newsd/session.h"

enum { RATE_TICK_MS = 4 };

#define CACHE_USUAL ((size_t)512 << 20)
#define GROUP_USUAL "alt.binaries.test"
#define NS_PER_S    UINT64_C(1000000000)

struct newsd {
    struct actor actor;
    struct newsd_server server;
    char *bind;
    uint16_t port;
    struct newsd_found found; /* at the start */
};

/* ---- rate ---- */

/* What has come together since the last time, but never more than a few ticks' worth: a burst is no rate. */
static void on_rate(uv_timer_t *h)
{
    struct newsd_server *v = h->data;
    uint64_t now = uv_hrtime(), passed = now - v->rate_at_ns;
    passed = passed < NS_PER_S / 10 ? passed : NS_PER_S / 10;
    v->rate_at_ns = now;
    int64_t most = (int64_t)(v->rate_bytes / 20) + 1;
    v->rate_tokens += (int64_t)((double)v->rate_bytes * (double)passed / (double)NS_PER_S);
    v->rate_tokens = v->rate_tokens < most ? v->rate_tokens : most;
    struct list *node;
    while (v->rate_tokens > 0 && (node = list_pop_front(&v->rate_waiting)) != NULL) {
        newsd_session_pump(LIST_ENTRY(node, struct newsd_session, rate_node));
    }
}

/* ---- the thread ---- */

static void on_accept(struct net_listen *l, int fd, const char *peer)
{
    (void)peer;
    newsd_session_open(l->owner, fd);
}

static const struct net_listen_type listen_type = {.accept = on_accept};

static int start(struct actor *a, struct err *e)
{
    struct newsd *n = a->self;
    struct newsd_server *v = &n->server;
    v->loop = &a->loop;
    int rv = net_loop_init(&v->nl, v->loop);
    if (rv != 0) {
        return err_sys(e, rv, "loop");
    }
    rv = net_listen_open(&v->listen, v->loop, n->bind, n->port, &listen_type, v, e);
    if (rv != 0) {
        net_loop_close(&v->nl, NULL);
        return rv;
    }
    n->port = v->listen.port;
    uv_timer_init(v->loop, &v->rate_timer);
    v->rate_timer.data = v;
    if (v->rate_bytes > 0) {
        v->rate_at_ns = uv_hrtime();
        uv_timer_start(&v->rate_timer, on_rate, RATE_TICK_MS, RATE_TICK_MS);
    }
    return 0;
}

static void on_rate_closed(uv_handle_t *h)
{
    struct newsd_server *v = h->data;
    net_loop_close(&v->nl, NULL);
}

static void stop(struct actor *a)
{
    struct newsd *n = a->self;
    struct newsd_server *v = &n->server;
    net_listen_close(&v->listen);
    LIST_FOREACH_SAFE (node, &v->sessions) {
        newsd_session_close(LIST_ENTRY(node, struct newsd_session, node));
    }
    uv_close((uv_handle_t *)&v->rate_timer, on_rate_closed);
}

static void recv_nothing(struct actor *a, void *msg)
{
    (void)a;
    (void)msg;
    IMPOSSIBLE("nobody posts to newsd");
}

static const struct actor_type actor_type = {
    .name = "newsd", .inbox = 2, .start = start, .recv = recv_nothing, .stop = stop};

/* ---- before and after ---- */

static char *copy(const char *s)
{
    return s != NULL ? mem_strdup(s) : NULL;
}

static int open_files(struct newsd_server *v, const struct newsd_options *o, struct err *e)
{
    newsd_catalog_init(&v->catalog, o->article_bytes > 0 ? o->article_bytes : NEWSD_ARTICLE_USUAL);
    if (o->dir != NULL) {
        v->dirfd = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (v->dirfd < 0) {
            return err_sys(e, -errno, "%s", o->dir);
        }
        int rv = newsd_catalog_scan(&v->catalog, v->dirfd, (int64_t)o->age_days * 86400, e);
        if (rv != 0) {
            return err_wrap(e, rv, "%s", o->dir);
        }
    }
    if (o->nzb_dir != NULL) {
        int rv = newsd_nzb_write_all(&v->catalog, o->nzb_dir, v->group, e);
        if (rv != 0) {
            return rv;
        }
    }
    return newsd_store_init(&v->store, &v->catalog, v->dirfd, v->group,
                            o->cache_bytes > 0 ? o->cache_bytes : CACHE_USUAL, e);
}

static int write_certificate(SSL_CTX *ctx, const char *path, struct err *e)
{
    FILE *f = fopen(path, "we");
    if (f == NULL) {
        return err_sys(e, -errno, "%s", path);
    }
    int ok = PEM_write_X509(f, SSL_CTX_get0_certificate(ctx));
    ok = fclose(f) == 0 && ok;
    return ok ? 0 : err_set(e, UV_EIO, "%s: cannot be written", path);
}

static int open_tls(struct newsd_server *v, const struct newsd_options *o, struct err *e)
{
    if (!o->tls) {
        return 0;
    }
    int rv = net_tls_init_server(&v->tls_ctx, o->cert_file, o->key_file, e);
    if (rv == 0) {
        v->tls = &v->tls_ctx;
        /* Our order, which begins with the cheapest cipher: what a client likes better must not cost the server. */
        SSL_CTX_set_options(v->tls->ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
        rv = o->cert_out != NULL ? write_certificate(v->tls->ctx, o->cert_out, e) : 0;
    }
    return rv;
}

static int read_script(struct newsd_server *v, const struct newsd_options *o, struct err *e)
{
    newsd_script_init(&v->script, o->seed);
    int rv = o->script != NULL ? newsd_script_parse(&v->script, o->script, "fault script", e) : 0;
    for (const char *const *x = o->extra; rv == 0 && x != NULL && *x != NULL; x++) {
        rv = newsd_script_parse(&v->script, *x, "fault rule", e);
    }
    return rv;
}

static int make_endless(struct newsd_server *v, struct err *e)
{
    v->endless_line = mem_alloc(ENDLESS_BYTES);
    v->endless_body = mem_alloc(ENDLESS_BYTES);
    if (v->endless_line == NULL || v->endless_body == NULL) {
        return err_sys(e, UV_ENOMEM, "newsd");
    }
    memset(v->endless_line, '0', ENDLESS_BYTES);
    memset(v->endless_body, '0', ENDLESS_BYTES);
    for (size_t i = 126; i < ENDLESS_BYTES; i += 128) {
        memcpy(v->endless_body + i, "\r\n", 2);
    }
    return 0;
}

/* Everything but the thread. */
static int prepare(struct newsd *n, const struct newsd_options *o, struct err *e)
{
    struct newsd_server *v = &n->server;
    v->dirfd = -1;
    v->store.cache_fd = v->store.spool_fd = -1;
    list_init(&v->sessions);
    list_init(&v->rate_waiting);
    v->rtt_ms = o->rtt_ms;
    v->rate_bytes = o->rate_bytes;
    n->port = o->port;
    n->bind = copy(o->bind != NULL ? o->bind : "127.0.0.1");
    v->group = copy(o->group != NULL ? o->group : GROUP_USUAL);
    v->user = copy(o->user);
    v->pass = copy(o->pass != NULL ? o->pass : "");
    if (n->bind == NULL || v->group == NULL || v->pass == NULL ||
        (v->user == NULL && o->user != NULL)) {
        return err_sys(e, UV_ENOMEM, "newsd");
    }
    int rv = make_endless(v, e);
    if (rv == 0) {
        rv = read_script(v, o, e);
    }
    if (rv == 0) {
        rv = open_tls(v, o, e);
    }
    if (rv == 0) {
        rv = open_files(v, o, e);
    }
    const struct newsd_catalog *c = &v->catalog;
    n->found = (struct newsd_found){.sets = c->sets_len, .files = c->files_len, .bytes = c->bytes};
    n->found.articles = c->articles_len;
    n->found.empty_files = c->empty_files;
    return rv;
}

static void free_all(struct newsd *n)
{
    struct newsd_server *v = &n->server;
    newsd_store_free(&v->store);
    newsd_catalog_free(&v->catalog);
    newsd_script_free(&v->script);
    if (v->tls != NULL) {
        net_tls_close(v->tls);
    }
    if (v->dirfd >= 0) {
        close(v->dirfd);
    }
    mem_free(v->endless_line);
    mem_free(v->endless_body);
    mem_free(v->user);
    mem_free(v->pass);
    mem_free(v->group);
    mem_free(n->bind);
    mem_free(n);
}

int newsd_start(struct newsd **out, const struct newsd_options *o, struct err *e)
{
    PRE((o->cert_file == NULL) == (o->key_file == NULL));
    struct newsd *n = mem_aligned(64, sizeof(*n)); /* the actor's mailbox wants whole cache lines */
    if (n == NULL) {
        return err_sys(e, UV_ENOMEM, "newsd");
    }
    memset(n, 0, sizeof(*n));
    int rv = prepare(n, o, e);
    if (rv == 0) {
        rv = actor_start(&n->actor, &actor_type, n, e);
    }
    if (rv != 0) {
        free_all(n);
        return rv;
    }
    *out = n;
    return 0;
}

uint16_t newsd_port(const struct newsd *n)
{
    return n->port;
}

struct newsd_found newsd_found(const struct newsd *n)
{
    return n->found;
}

void newsd_stop(struct newsd *n)
{
    actor_stop(&n->actor);
    actor_join(&n->actor);
    actor_free(&n->actor);
    free_all(n);
}
