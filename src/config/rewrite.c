/* rewrite.c - other values into a configuration file, as RPC's saveconfig asks, without losing a comment. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "config/config.h"

struct text {
    char *p;
    size_t len, room;
    bool failed;
};

static void put(struct text *t, const char *s, size_t n)
{
    if (t->failed || n == 0) {
        return;
    }
    if (t->room - t->len < n) {
        size_t room = 2 * (t->len + n) + 1024;
        char *p = mem_realloc(t->p, room, 1);
        if (p == NULL) {
            t->failed = true;
            return;
        }
        t->p = p;
        t->room = room;
    }
    memcpy(t->p + t->len, s, n);
    t->len += n;
}

static void put_option(struct text *t, const char *name, const char *value)
{
    put(t, name, strlen(name));
    put(t, "=", 1);
    put(t, value, strlen(value));
    put(t, "\n", 1);
}

/* What a line sets: the canonical name, or "" when it sets nothing. */
static void name_of_line(const char *s, size_t len, struct config_name *n)
{
    char near[CONFIG_NAME_MAX];
    const char *equals = memchr(s, '=', len);
    *n = (struct config_name){.option = NULL};
    while (len > 0 && (*s == ' ' || *s == '\t')) {
        s++;
        len--;
    }
    if (equals == NULL || equals <= s || *s == '#') {
        return;
    }
    size_t end = (size_t)(equals - s);
    while (end > 0 && (s[end - 1] == ' ' || s[end - 1] == '\t')) {
        end--;
    }
    config_resolve(s, end, n, near); /* an unknown one keeps its spelling */
}

/* The last pair of that name: as in the file, the last one counts. */
static const struct config_pair *find_pair(const struct config_pair *pairs, size_t count,
                                           const char *name)
{
    while (count-- > 0) {
        struct config_name n;
        char near[CONFIG_NAME_MAX];
        config_resolve(pairs[count].name, strlen(pairs[count].name), &n, near);
        if (strcasecmp(n.name, name) == 0) {
            return &pairs[count];
        }
    }
    return NULL;
}

static bool file_only(const struct config_name *n)
{
    return n->option != NULL && (n->option->flags & CONFIG_FILE_ONLY);
}

/* A masked secret stays what it was. */
static bool masked(const struct config_name *n, const struct config_pair *p)
{
    return strcmp(p->value, "***") == 0 && config_is_secret(n->option, n->name);
}

static int check_pair(const struct config_pair *p, struct err *e)
{
    size_t len = strlen(p->name);
    if (len == 0 || len >= CONFIG_NAME_MAX || strpbrk(p->name, "=\r\n#") != NULL ||
        strpbrk(p->value, "\r\n") != NULL) {
        return err_set(e, ERR_INVALID, "an option that no line of a file can hold");
    }
    return 0;
}

/* ---- may a client do this? What counts is compared, not what is written: variables lead anywhere. ---- */

static bool task_was_there(const struct config *before, const struct config_task *t)
{
    for (size_t i = 0; i < before->tasks_count; i++) {
        const struct config_task *b = &before->tasks[i];
        if (b->id == t->id && b->command == t->command && strcmp(b->param, t->param) == 0) {
            return true;
        }
    }
    return false;
}

static int compare(const struct config *before, const struct config *after, struct err *e)
{
    for (size_t i = 0; i < after->entries_count; i++) {
        const struct config_entry *now = &after->entries[i];
        if (now->option == NULL || !(now->option->flags & CONFIG_FILE_ONLY)) {
            continue;
        }
        const struct config_entry *then = config_find(before, now->name);
        const char *old = then != NULL ? then->value : now->option->preset;
        if (strcmp(old, now->value) != 0) {
            return err_set(e, ERR_UNSAFE, "%s=%s: this can only be changed in the file itself",
                           now->name, now->value);
        }
    }
    for (size_t i = 0; i < after->tasks_count; i++) {
        const struct config_task *t = &after->tasks[i];
        if (t->command == CONFIG_TASK_PROCESS && !task_was_there(before, t)) {
            return err_set(e, ERR_UNSAFE,
                           "Task%u.Command=Process: this can only be changed in the file itself",
                           t->id);
        }
    }
    return 0;
}

static int check_programs(const char *before, size_t before_len, const char *after,
                          size_t after_len, struct err *e)
{
    struct config_input in = {.text = before, .text_len = before_len};
    struct config *a, *b;
    int rv = config_load(&in, &a, e);
    if (rv != 0) {
        return rv;
    }
    in.text = after;
    in.text_len = after_len;
    rv = config_load(&in, &b, e);
    if (rv == 0) {
        rv = compare(a, b, e);
        config_free(b);
    }
    config_free(a);
    return rv;
}

/* The lines of the old file. done[i]: pair i has its line. */
static void rewrite_lines(struct text *t, const char *text, size_t len,
                          const struct config_pair *pairs, size_t count, bool *done)
{
    while (len > 0) {
        const char *newline = memchr(text, '\n', len);
        size_t n = newline != NULL ? (size_t)(newline - text) : len;
        size_t line = n > 0 && text[n - 1] == '\r' ? n - 1 : n;
        struct config_name name;
        name_of_line(text, line, &name);
        const struct config_pair *p =
            name.name[0] != '\0' ? find_pair(pairs, count, name.name) : NULL;
        if (name.name[0] == '\0' || (p == NULL && file_only(&name)) ||
            (p != NULL && masked(&name, p))) {
            put(t, text, line);
            put(t, "\n", 1);
        } else if (p != NULL && !done[p - pairs]) {
            put_option(t, name.name, p->value);
        }
        if (p != NULL) {
            done[p - pairs] = true;
        }
        n += newline != NULL;
        text += n;
        len -= n;
    }
}

int config_rewrite(const char *text, size_t len, const struct config_pair *pairs, size_t count,
                   char **out, size_t *out_len, struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        int rv = check_pair(&pairs[i], e);
        if (rv != 0) {
            return rv;
        }
    }
    struct text t = {.p = NULL};
    bool *done = mem_zalloc(count + 1, sizeof(*done));
    if (done == NULL) {
        return err_sys(e, -ENOMEM, "configuration");
    }
    rewrite_lines(&t, text, len, pairs, count, done);
    for (size_t i = 0; i < count; i++) {
        struct config_name n;
        char near[CONFIG_NAME_MAX];
        config_resolve(pairs[i].name, strlen(pairs[i].name), &n, near);
        bool last = find_pair(pairs, count, n.name) == &pairs[i];
        if (!done[i] && last && !masked(&n, &pairs[i])) {
            put_option(&t, n.name, pairs[i].value);
        }
    }
    put(&t, "", 1); /* a zero behind it that is not counted */
    mem_free(done);
    int rv = t.failed ? err_sys(e, -ENOMEM, "configuration")
                      : check_programs(text, len, t.p, t.len - 1, e);
    if (rv != 0) {
        mem_free(t.p);
        return rv;
    }
    *out = t.p;
    *out_len = t.len - 1;
    return 0;
}
