/* diff.c - what counts differently in another configuration. */
#include <string.h>

#include "config/config.h"

/* Of no interest: made by Weir itself, unknown, or the default of a numbered group that only one side has. */
static bool counts(const struct config_entry *e)
{
    return !e->unknown && (e->option != NULL || e->from != CONFIG_FROM_DEFAULT);
}

static bool said(const struct config_entry *e)
{
    return counts(e) && e->from != CONFIG_FROM_DEFAULT;
}

static bool differ(const struct config_entry *before, const struct config_entry *after)
{
    if (strcmp(before->value, after->value) != 0) {
        return true;
    }
    bool matters = after->option != NULL && (after->option->flags & CONFIG_UNSET);
    return matters && (before->from == CONFIG_FROM_DEFAULT) != (after->from == CONFIG_FROM_DEFAULT);
}

static size_t visit_change(config_change_cb visit, void *arg, const struct config_entry *before,
                           const struct config_entry *after)
{
    const struct config_option *o = after != NULL ? after->option : before->option;
    struct config_change change = {
        .before = before,
        .after = after,
        .restart = o != NULL && (o->flags & CONFIG_RESTART),
    };
    if (visit != NULL) {
        visit(arg, &change);
    }
    return 1;
}

size_t config_diff(const struct config *a, const struct config *b, config_change_cb visit,
                   void *arg)
{
    size_t n = 0;
    for (size_t i = 0; i < b->entries_count; i++) {
        const struct config_entry *after = &b->entries[i];
        const struct config_entry *before = config_find(a, after->name);
        before = before != NULL && counts(before) ? before : NULL;
        if (before != NULL ? counts(after) && differ(before, after) : said(after)) {
            n += visit_change(visit, arg, before, after);
        }
    }
    for (size_t i = 0; i < a->entries_count; i++) {
        const struct config_entry *before = &a->entries[i];
        const struct config_entry *after = config_find(b, before->name);
        if (said(before) && (after == NULL || !counts(after))) {
            n += visit_change(visit, arg, before, NULL);
        }
    }
    return n;
}
