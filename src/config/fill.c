/* fill.c - from names and values to the fields of struct config, and what only the whole can tell: a server without a
 * host, a task without a time, a gap in the numbers. */
#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/name.h"
#include "config/private.h"

/* One value into one field; a wrong one is said and replaced by the default. */
static void store(struct build *b, struct item *item, const char *dir, void *base)
{
    const struct config_option *o = item->e.option;
    if (!item->broken) {
        const char *value = item->e.value;
        const char *wrong = value_store(&b->arena, o, value, dir, base, &item->e.value);
        if (wrong == NULL) {
            return;
        }
        build_problem(b, CONFIG_ERROR, &item->e, "'%s': %s",
                      o->kind == CONFIG_SECRET ? "***" : build_shown(b, value), wrong);
    }
    const char *preset = o->preset;
    bool path = o->kind == CONFIG_PATH || o->kind == CONFIG_PATHS;
    if (path && strncmp(preset, "~/", 2) == 0) {
        preset = arena_printf(&b->arena, "%s%s", b->home, preset + 1);
    } else if (path && strncmp(preset, "${MainDir}/", 11) == 0) {
        preset += 11; /* make_path() puts it below the main directory again */
    }
    if (value_store(&b->arena, o, preset, dir, base, &item->e.value) != NULL) {
        /* Only a path without a home directory or below a hopelessly long one: an error in any case. */
        if (o->field != CONFIG_NO_FIELD && o->kind == CONFIG_PATH) {
            *(const char **)((char *)base + o->field) = item->e.value = "/";
        }
    }
}

static bool host_is_fit(const char *host)
{
    return host[0] != '\0' && strpbrk(host, " \t/@\\,;?#") == NULL;
}

static void fill_globals(struct build *b)
{
    for (size_t i = 0; i < b->count; i++) {
        struct item *item = &b->items[i];
        if (item->e.option != NULL && item->e.group == CONFIG_GLOBAL) {
            store(b, item, b->c.main_dir, &b->c);
        }
    }
    struct config *c = &b->c;
    if (c->time_correction_min >= -24 && c->time_correction_min <= 24) {
        c->time_correction_min *= 60;
    }
    c->control_password_given = build_find(b, "ControlPassword")->e.from != CONFIG_FROM_DEFAULT;
    if (c->secure_control && (c->secure_cert[0] == '\0' || c->secure_key[0] == '\0')) {
        build_problem(b, CONFIG_ERROR, &build_find(b, "SecureControl")->e,
                      "needs SecureCert and SecureKey");
    }
    if (c->control_ip[0] != '/' && !host_is_fit(c->control_ip)) {
        build_problem(b, CONFIG_ERROR, &build_find(b, "ControlIP")->e,
                      "'%s': wants an address, or the path of a socket",
                      build_shown(b, c->control_ip));
    }
}

/* ---- numbered groups ---- */

/* Where the items of one ServerN begin and end: they stand together after sorting. */
struct run {
    struct item *first;
    size_t count;
    unsigned number;
};

static bool next_run(struct build *b, enum config_group group, struct run *r)
{
    size_t i = r->first != NULL ? (size_t)(r->first - b->items) + r->count : 0;
    while (i < b->count && (b->items[i].e.group != group || b->items[i].e.option == NULL)) {
        i++;
    }
    r->first = &b->items[i];
    for (r->count = 0; i + r->count < b->count; r->count++) {
        const struct config_entry *e = &r->first[r->count].e;
        if (e->group != group || e->number != r->first->e.number || e->option == NULL) {
            break;
        }
    }
    r->number = r->count > 0 ? r->first->e.number : 0;
    return r->count > 0;
}

static struct item *in_run(const struct run *r, const char *option)
{
    for (size_t i = 0; i < r->count; i++) {
        if (strcmp(r->first[i].e.option->name, option) == 0) {
            return &r->first[i];
        }
    }
    return NULL; /* only when there are too many options, which was said */
}

static bool given(const struct run *r, const char *option)
{
    const struct item *i = in_run(r, option);
    return i != NULL && i->e.from != CONFIG_FROM_DEFAULT;
}

/* The option for a message about the whole group: this one, or the first that somebody wrote. */
static const struct config_entry *about(const struct run *r, const char *option)
{
    const struct item *i = in_run(r, option);
    for (size_t k = 0; (i == NULL || i->e.from == CONFIG_FROM_DEFAULT) && k < r->count; k++) {
        i = r->first[k].e.from != CONFIG_FROM_DEFAULT ? &r->first[k] : i;
    }
    return i != NULL ? &i->e : &r->first->e;
}

static void set_value(const struct run *r, const char *option, const char *value)
{
    struct item *i = in_run(r, option);
    if (i != NULL) {
        i->e.value = value;
    }
}

/* The presets first: when there are too many options (which was said), some of these may have no item. */
static void store_run(struct build *b, const struct run *r, const char *dir, void *base)
{
    const struct config_option *o = config_group_options(r->first->e.group);
    for (const char *value; o->name != NULL; o++) {
        value_store(&b->arena, o, o->preset, dir, base, &value);
    }
    for (size_t i = 0; i < r->count; i++) {
        store(b, &r->first[i], dir, base);
    }
}

/* One struct per number, and a warning where the numbers have a gap: clients stop reading there. */
static void *make_array(struct build *b, enum config_group group, size_t size)
{
    struct run r = {.first = NULL};
    unsigned expected = 1;
    size_t count = 0;
    while (next_run(b, group, &r)) {
        if (r.number != expected && group != CONFIG_TASK) {
            build_problem(b, CONFIG_WARNING, about(&r, ""),
                          "there is no %s%u; some clients stop reading at such a gap",
                          config_group_name(group), expected);
        }
        expected = r.number + 1;
        count++;
    }
    return arena_alloc(&b->arena, count, size);
}

/* What follows from the other options when it was not said. */
static void derive_server(struct build *b, const struct run *r, struct config_server *s)
{
    if (!given(r, "Encryption") && s->port == 119) {
        s->encryption = false;
        set_value(r, "Encryption", "no");
    }
    if (!given(r, "Port") && !s->encryption) {
        s->port = 119;
        set_value(r, "Port", "119");
    }
    if (!given(r, "CertVerification") && !b->c.cert_check) {
        s->cert_verification = CONFIG_CERT_NONE;
        set_value(r, "CertVerification", "none");
    }
}

static bool check_server(struct build *b, const struct run *r, const struct config_server *s)
{
    struct in6_addr address;
    if (s->host[0] == '\0') {
        if (s->active) {
            build_problem(b, CONFIG_ERROR, about(r, "Host"),
                          "Server%u has no Host; set Server%u.Host, or Server%u.Active=no", s->id,
                          s->id, s->id);
        }
        return false;
    }
    if (!host_is_fit(s->host)) {
        build_problem(b, CONFIG_ERROR, about(r, "Host"), "'%s': wants a host name or an address",
                      build_shown(b, s->host));
        return false;
    }
    if (strcasecmp(s->host, "my.newsserver.com") == 0 && s->active) {
        build_problem(b, CONFIG_WARNING, about(r, "Host"),
                      "is the example of NZBGet's file; put your provider's server here");
    }
    if (s->username[0] == '\0' && s->password[0] != '\0') {
        build_problem(b, CONFIG_WARNING, about(r, "Password"),
                      "there is a password but no Server%u.Username", s->id);
    }
    if (s->encryption && s->cert_verification == CONFIG_CERT_NONE && s->active) {
        build_problem(b, CONFIG_WARNING, about(r, "CertVerification"),
                      "the certificate of Server%u is not checked; set Server%u.CertVerification="
                      "strict",
                      s->id, s->id);
    }
    if (s->proxy[0] != '\0' && strncmp(s->proxy, "socks5://", 9) != 0) {
        build_problem(b, CONFIG_ERROR, about(r, "Proxy"), "wants socks5://HOST:PORT");
    }
    if (s->bind_address[0] != '\0' && inet_pton(AF_INET, s->bind_address, &address) != 1 &&
        inet_pton(AF_INET6, s->bind_address, &address) != 1) {
        build_problem(b, CONFIG_ERROR, about(r, "BindAddress"), "'%s': wants a numeric address",
                      build_shown(b, s->bind_address));
    }
    return true;
}

static void fill_servers(struct build *b)
{
    struct config_server *all = make_array(b, CONFIG_SERVER, sizeof(*all));
    struct run r = {.first = NULL};
    while (all != NULL && next_run(b, CONFIG_SERVER, &r)) {
        struct config_server *s = &all[b->c.servers_count];
        store_run(b, &r, NULL, s);
        s->id = r.number;
        derive_server(b, &r, s);
        b->c.servers_count += check_server(b, &r, s);
    }
    b->c.servers = all;
}

static void derive_category(struct build *b, struct config_category *c)
{
    char sub[NAME_LEN_MAX * 2];
    if (c->dest_dir[0] != '\0') {
        return;
    }
    c->dest_dir = b->c.dest_dir;
    if (b->c.append_category_dir) {
        if (!name_clean_path(c->name, strlen(c->name), sub, sizeof(sub))) {
            name_clean(NAME_TITLE, c->name, strlen(c->name), sub);
        }
        c->dest_dir = arena_printf(&b->arena, "%s%s%s", b->c.dest_dir,
                                   strcmp(b->c.dest_dir, "/") == 0 ? "" : "/", sub);
    }
}

static void fill_categories(struct build *b)
{
    struct config_category *all = make_array(b, CONFIG_CATEGORY, sizeof(*all));
    struct run r = {.first = NULL};
    b->c.categories = all;
    while (all != NULL && next_run(b, CONFIG_CATEGORY, &r)) {
        struct config_category *c = &all[b->c.categories_count];
        store_run(b, &r, b->c.dest_dir, c);
        c->id = r.number;
        if (c->name[0] == '\0') {
            build_problem(b, CONFIG_ERROR, about(&r, "Name"), "Category%u has no Name", c->id);
            continue;
        }
        const struct config_category *twin = config_find_category(&b->c, c->name, false);
        if (twin != NULL) {
            build_problem(b, CONFIG_WARNING, about(&r, "Name"),
                          "Category%u has this name too; that one counts", twin->id);
        }
        derive_category(b, c);
        b->c.categories_count++;
    }
}

static void fill_feeds(struct build *b)
{
    struct config_feed *all = make_array(b, CONFIG_FEED, sizeof(*all));
    struct run r = {.first = NULL};
    b->c.feeds = all;
    while (all != NULL && next_run(b, CONFIG_FEED, &r)) {
        struct config_feed *f = &all[b->c.feeds_count];
        store_run(b, &r, NULL, f);
        f->id = r.number;
        bool web =
            strncasecmp(f->url, "http://", 7) == 0 || strncasecmp(f->url, "https://", 8) == 0;
        if (f->url[0] == '\0') {
            build_problem(b, CONFIG_WARNING, about(&r, "URL"), "Feed%u has no URL", f->id);
        } else if (!web) {
            build_problem(b, CONFIG_ERROR, about(&r, "URL"), "wants http:// or https://");
        }
        b->c.feeds_count += web;
    }
}

static bool check_task(struct build *b, const struct run *r, struct config_task *t)
{
    if (t->time_text[0] == '\0' || !given(r, "Command")) {
        build_problem(b, CONFIG_ERROR, about(r, "Time"), "Task%u needs a Time and a Command",
                      t->id);
        return false;
    }
    if (!value_times(&b->arena, t->time_text, t)) {
        build_problem(b, CONFIG_ERROR, about(r, "Time"),
                      "'%s': wants HH:MM, *:MM or *, several with commas",
                      build_shown(b, t->time_text));
        return false;
    }
    /* NZBGet reads an empty value as every day. */
    if (!value_weekdays(t->weekdays_text[0] != '\0' ? t->weekdays_text : "1-7", &t->weekdays)) {
        build_problem(b, CONFIG_ERROR, about(r, "WeekDays"),
                      "'%s': wants days from 1 (Monday) to 7 (Sunday): 1-5 or 6,7",
                      build_shown(b, t->weekdays_text));
        return false;
    }
    if (t->command == CONFIG_TASK_RATE &&
        (!value_number(t->param, 10, &t->rate_kib) || t->rate_kib < 0 || t->rate_kib > INT32_MAX)) {
        build_problem(b, CONFIG_ERROR, about(r, "Param"),
                      "'%s': DownloadRate wants a number from 0 to %d (kilobytes per second)",
                      build_shown(b, t->param), INT32_MAX);
        return false;
    }
    if (t->command >= CONFIG_TASK_SCRIPT && t->param[0] == '\0') {
        build_problem(b, CONFIG_ERROR, about(r, "Command"), "Task%u.Command needs a Param", t->id);
        return false;
    }
    return true;
}

static void fill_tasks(struct build *b)
{
    struct config_task *all = make_array(b, CONFIG_TASK, sizeof(*all));
    struct run r = {.first = NULL};
    while (all != NULL && next_run(b, CONFIG_TASK, &r)) {
        struct config_task *t = &all[b->c.tasks_count];
        store_run(b, &r, NULL, t);
        t->id = r.number;
        b->c.tasks_count += check_task(b, &r, t);
    }
    b->c.tasks = all;
}

/* Is `path` the directory `dir` or something in it? */
static bool within(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    return dir[0] != '\0' && strncmp(path, dir, len) == 0 &&
           (path[len] == '/' || path[len] == '\0' || dir[len - 1] == '/');
}

/* What was downloaded must not become a program. */
static void check_script_dir(struct build *b, const struct config_entry *e, const char *dir)
{
    const char *up = strstr(dir, "/..");
    while (up != NULL && up[3] != '/' && up[3] != '\0') {
        up = strstr(up + 1, "/..");
    }
    if (up != NULL) {
        build_problem(b, CONFIG_ERROR, e, "'%s': has .. in it; write where that leads",
                      build_shown(b, dir));
    }
    for (size_t i = 0; i < b->c.script_dirs.count; i++) {
        const char *scripts = b->c.script_dirs.items[i];
        if (within(dir, scripts)) {
            build_problem(b, CONFIG_ERROR, e,
                          "is in ScriptDir (%s); what arrives there could be run as an extension",
                          build_shown(b, scripts));
        } else if (within(scripts, dir)) {
            build_problem(b, CONFIG_WARNING, e,
                          "ScriptDir (%s) is in here; a download could put an extension there",
                          build_shown(b, scripts));
        }
    }
}

static void check_dirs(struct build *b)
{
    static const char *const names[] = {"DestDir", "InterDir", "TempDir", "NzbDir"};
    const char *const dirs[] = {b->c.dest_dir, b->c.inter_dir, b->c.temp_dir, b->c.nzb_dir};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (dirs[i][0] != '\0') {
            check_script_dir(b, &build_find(b, names[i])->e, dirs[i]);
        }
    }
    struct run r = {.first = NULL};
    while (next_run(b, CONFIG_CATEGORY, &r)) {
        struct item *dir = in_run(&r, "DestDir");
        if (dir != NULL && dir->e.value[0] != '\0') {
            check_script_dir(b, &dir->e, dir->e.value);
        }
    }
}

/* One line for all options that were set to something and will not do it. */
static void note_without_effect(struct build *b)
{
    char names[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < b->count; i++) {
        const struct config_entry *e = &b->items[i].e;
        if (e->option != NULL && (e->option->flags & CONFIG_NO_EFFECT) &&
            strcmp(e->value, e->option->preset) != 0 && used < sizeof(names)) {
            int n =
                snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? ", " : "", e->name);
            used += n > 0 ? (size_t)n : 0;
        }
    }
    if (used > 0) {
        build_problem(b, CONFIG_NOTE, NULL, "these options have no effect in Weir: %s", names);
    }
}

void build_fill(struct build *b)
{
    fill_globals(b);
    fill_servers(b);
    fill_categories(b);
    fill_feeds(b);
    fill_tasks(b);
    check_dirs(b);
    note_without_effect(b);
}

int config_may_listen(const struct config *c, struct err *e)
{
    const char *ip = c->control_ip;
    bool local = ip[0] == '/' || strcasecmp(ip, "localhost") == 0 || strcmp(ip, "::1") == 0 ||
                 strncmp(ip, "127.", 4) == 0;
    bool empty = c->control_password_given && c->control_password[0] == '\0';
    if (local || (!empty && !build_published(c->control_password))) {
        return 0;
    }
    return err_set(
        e, ERR_UNSAFE,
        "ControlIP=%s lets other machines in, but ControlPassword is %s; set a password of "
        "your own, or ControlIP=127.0.0.1",
        ip, empty ? "empty" : "one that everybody knows");
}
