#include "base/buf.h"

#include "base/check.h"
#include "base/mem.h"

static unsigned class_of(size_t size)
{
    unsigned c = 0;
    while (((size_t)1 << (c + BUF_MIN_SHIFT)) < size) {
        c++;
    }
    return c;
}

static size_t class_bytes(unsigned c)
{
    return (size_t)1 << (c + BUF_MIN_SHIFT);
}

int buf_pool_init(struct buf_pool *p, size_t budget_bytes)
{
    PRE(budget_bytes >= class_bytes(0));
    *p = (struct buf_pool){.budget_bytes = budget_bytes};
    for (unsigned c = 0; c < BUF_CLASSES; c++) {
        list_init(&p->kept[c]);
    }
    list_init(&p->waiters);
    return uv_mutex_init(&p->lock);
}

static void destroy(struct buf *b)
{
    mem_free(b->data);
    mem_free(b);
}

static struct buf *create(size_t capacity)
{
    struct buf *b = mem_alloc(sizeof(*b));
    if (b == NULL) {
        return NULL;
    }
    b->data = mem_aligned(64, capacity);
    if (b->data == NULL) {
        mem_free(b);
        return NULL;
    }
    b->capacity = capacity;
    list_init(&b->node);
    return b;
}

/* Drops kept buffers, largest first, until `need` more bytes fit into the budget. */
static void drop_kept(struct buf_pool *p, size_t need)
{
    for (unsigned c = BUF_CLASSES; c-- > 0;) {
        while (p->lent_bytes + p->kept_bytes + need > p->budget_bytes && !list_empty(&p->kept[c])) {
            struct buf *b = LIST_ENTRY(list_pop_front(&p->kept[c]), struct buf, node);
            p->kept_bytes -= b->capacity;
            destroy(b);
        }
    }
}

void buf_pool_close(struct buf_pool *p)
{
    PRE(p->lent_bytes == 0 && list_empty(&p->waiters));
    drop_kept(p, p->budget_bytes);
    POST(p->kept_bytes == 0);
    uv_mutex_destroy(&p->lock);
}

size_t buf_pool_max(const struct buf_pool *p)
{
    unsigned c = BUF_CLASSES - 1;
    while (class_bytes(c) > p->budget_bytes) {
        c--;
    }
    return class_bytes(c);
}

static struct buf *take_locked(struct buf_pool *p, unsigned c)
{
    size_t bytes = class_bytes(c);
    struct list *node = list_pop_front(&p->kept[c]);
    if (node != NULL) {
        p->kept_bytes -= bytes;
        p->lent_bytes += bytes;
        return LIST_ENTRY(node, struct buf, node);
    }
    drop_kept(p, bytes);
    if (p->lent_bytes + p->kept_bytes + bytes > p->budget_bytes) {
        return NULL;
    }
    struct buf *b = create(bytes);
    if (b != NULL) {
        p->lent_bytes += bytes;
        if (p->lent_bytes + p->kept_bytes > p->peak_bytes) {
            p->peak_bytes = p->lent_bytes + p->kept_bytes;
        }
    }
    return b;
}

struct buf *buf_take(struct buf_pool *p, size_t size, struct buf_waiter *w)
{
    PRE(size <= buf_pool_max(p));
    uv_mutex_lock(&p->lock);
    struct buf *b = take_locked(p, class_of(size));
    if (b == NULL && w != NULL && list_empty(&w->node)) {
        list_push_back(&p->waiters, &w->node);
    }
    uv_mutex_unlock(&p->lock);
    if (b != NULL) {
        b->len = 0;
    }
    return b;
}

void buf_give(struct buf_pool *p, struct buf *b)
{
    uv_mutex_lock(&p->lock);
    /* Last in, first out: the pages most likely still in the cache are used next. */
    list_push_front(&p->kept[class_of(b->capacity)], &b->node);
    p->lent_bytes -= b->capacity;
    p->kept_bytes += b->capacity;
    size_t waiting = 0;
    LIST_FOREACH (n, &p->waiters) {
        waiting++;
    }
    /* Each that waits now is called once; one that fails again and waits anew is not part of this round. */
    while (waiting-- > 0 && !list_empty(&p->waiters)) {
        struct buf_waiter *w = LIST_ENTRY(list_pop_front(&p->waiters), struct buf_waiter, node);
        buf_waiter_cb cb = w->cb;
        void *arg = w->arg;
        uv_mutex_unlock(&p->lock);
        cb(arg);
        uv_mutex_lock(&p->lock);
    }
    uv_mutex_unlock(&p->lock);
}

void buf_waiter_init(struct buf_waiter *w, buf_waiter_cb cb, void *arg)
{
    list_init(&w->node);
    w->cb = cb;
    w->arg = arg;
}

void buf_wait_cancel(struct buf_pool *p, struct buf_waiter *w)
{
    uv_mutex_lock(&p->lock);
    list_remove(&w->node);
    uv_mutex_unlock(&p->lock);
}

struct buf_stats buf_pool_stats(struct buf_pool *p)
{
    uv_mutex_lock(&p->lock);
    struct buf_stats s = {p->budget_bytes, p->lent_bytes, p->kept_bytes, p->peak_bytes};
    uv_mutex_unlock(&p->lock);
    return s;
}
