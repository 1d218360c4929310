/* list.h - an intrusive, circular, doubly linked list.
 *
 * The head is a node of its own; an element embeds a node. Nothing is allocated, nothing is owned. A node that
 * is in no list points at itself, so list_remove() may be called twice. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *prev;
};

/* The struct of type `type` whose member `member` is the node `node`. */
#define LIST_ENTRY(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))
/* Walks `head`; the current node may not be removed in LIST_FOREACH, and may be in LIST_FOREACH_SAFE. */
#define LIST_FOREACH(node, head) \
    for (struct list *node = (head)->next; node != (head); node = node->next)
#define LIST_FOREACH_SAFE(node, head)                                                 \
    for (struct list *node = (head)->next, *next_##node = node->next; node != (head); \
         node = next_##node, next_##node = node->next)

static inline void list_init(struct list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline void list_insert_after(struct list *at, struct list *node)
{
    node->prev = at;
    node->next = at->next;
    at->next->prev = node;
    at->next = node;
}

static inline void list_push_back(struct list *head, struct list *node)
{
    list_insert_after(head->prev, node);
}

static inline void list_push_front(struct list *head, struct list *node)
{
    list_insert_after(head, node);
}

static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* Removes and returns the first node, or NULL. */
static inline struct list *list_pop_front(struct list *head)
{
    struct list *node = head->next;
    if (node == head) {
        return NULL;
    }
    list_remove(node);
    return node;
}

#endif
