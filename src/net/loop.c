/* What the streams of one loop share: buffers, kicks, the meter. */
#include "base/check.h"
#include "base/mem.h"
#include "net/stream_private.h"

static void serve_kicked(struct net_loop *nl)
{
    struct list now;
    list_init(&now);
    while (!list_empty(&nl->kicked)) {
        list_push_back(&now, list_pop_front(&nl->kicked));
    }
    struct list *node;
    while ((node = list_pop_front(&now)) != NULL) {
        net_stream_turn(LIST_ENTRY(node, struct net_stream, kick_node));
    }
    if (list_empty(&nl->kicked)) {
        uv_idle_stop(&nl->idle); /* also when those who were kicked are closed by now */
    }
}

static void on_prepare(uv_prepare_t *h)
{
    struct net_loop *nl = h->data;
    if (uv_is_active((uv_handle_t *)&nl->idle)) {
        serve_kicked(nl);
    }
}

/* Only there to keep the loop from waiting. */
static void on_idle(uv_idle_t *h)
{
    (void)h;
}

void net_loop_kick(struct net_loop *nl, struct list *node)
{
    if (list_empty(node)) {
        list_push_back(&nl->kicked, node);
        uv_idle_start(&nl->idle, on_idle);
    }
}

int net_loop_init(struct net_loop *nl, uv_loop_t *loop)
{
    *nl = (struct net_loop){.loop = loop};
    list_init(&nl->kicked);
    nl->wire = mem_aligned(64, NET_WIRE_SIZE);
    nl->plain = mem_aligned(64, NET_RECORD_MAX);
    nl->bio = net_bio_method();
    if (nl->wire == NULL || nl->plain == NULL || nl->bio == NULL) {
        mem_free(nl->wire);
        mem_free(nl->plain);
        BIO_meth_free(nl->bio);
        return UV_ENOMEM;
    }
    uv_prepare_init(loop, &nl->prepare);
    uv_idle_init(loop, &nl->idle);
    nl->prepare.data = nl;
    nl->idle.data = nl;
    uv_prepare_start(&nl->prepare, on_prepare);
    uv_unref((uv_handle_t *)&nl->prepare); /* no reason of its own for the loop to go on */
    return 0;
}

static void on_closed(uv_handle_t *h)
{
    struct net_loop *nl = h->data;
    if (--nl->closing > 0) {
        return;
    }
    mem_free(nl->wire);
    mem_free(nl->plain);
    BIO_meth_free(nl->bio);
    if (nl->closed != NULL) {
        nl->closed(nl);
    }
}

void net_loop_close(struct net_loop *nl, void (*closed)(struct net_loop *nl))
{
    PRE(list_empty(&nl->kicked));
    nl->closed = closed;
    nl->closing = 2;
    uv_close((uv_handle_t *)&nl->prepare, on_closed);
    uv_close((uv_handle_t *)&nl->idle, on_closed);
}

void net_meter_init(struct net_meter *m)
{
    *m = (struct net_meter){0};
    list_init(&m->waiting);
}

void net_meter_refill(struct net_meter *m, bool limited, int64_t allow_bytes)
{
    m->limited = limited;
    m->allow_bytes = allow_bytes;
    if (limited && allow_bytes <= 0) {
        return;
    }
    struct list *node;
    while ((node = list_pop_front(&m->waiting)) != NULL) {
        net_stream_wake(LIST_ENTRY(node, struct net_stream, meter_node));
    }
}
