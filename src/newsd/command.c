/* command.c - what each command answers. RFC 3977, RFC 4643 (AUTHINFO), and XHITS and XSTATS of our own. */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "newsd/session.h"

/* A reply of any length. */
struct gather {
    char *p;
    size_t len, room;
    bool failed;
};

static int gather(void *arg, const char *p, size_t n)
{
    struct gather *g = arg;
    if (g->len + n > g->room) {
        size_t room = g->room > 0 ? g->room : 1024;
        while (room < g->len + n) {
            room *= 2;
        }
        char *moved = g->failed ? NULL : mem_realloc(g->p, room, 1);
        if (moved == NULL) {
            g->failed = true;
            return UV_ENOMEM;
        }
        g->p = moved;
        g->room = room;
    }
    memcpy(g->p + g->len, p, n);
    g->len += n;
    return 0;
}

static void gather_text(struct gather *g, const char *text)
{
    gather(g, text, strlen(text));
}

/* The rule that acts on this command, if any. */
static const struct newsd_rule *rule_for(struct newsd_session *s, enum newsd_phase phase,
                                         const char *cmd)
{
    struct newsd_occasion o = {.phase = phase, .conn = s->number, .cmd = cmd};
    return newsd_script_match(&s->server->script, &o);
}

static void answer_bytes(struct newsd_session *s, const char *cmd, const char *p, size_t n)
{
    newsd_session_reply(s, rule_for(s, PHASE_COMMAND, cmd), WANT_TEXT, CATALOG_NONE, p, n);
}

static void answer(struct newsd_session *s, const char *cmd, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void answer(struct newsd_session *s, const char *cmd, const char *fmt, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof(line) - 2, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof(line) - 2 ? (size_t)n : sizeof(line) - 3;
    memcpy(line + len, "\r\n", 2);
    answer_bytes(s, cmd, line, len + 2);
}

static void answer_gathered(struct newsd_session *s, const char *cmd, struct gather *g)
{
    if (g->failed) {
        answer(s, cmd, "403 out of memory");
    } else {
        answer_bytes(s, cmd, g->p, g->len);
    }
    mem_free(g->p);
}

void newsd_command_greet(struct newsd_session *s)
{
    static const char text[] = "200 weir newsd ready, posting allowed\r\n";
    newsd_session_reply(s, rule_for(s, PHASE_GREET, NULL), WANT_TEXT, CATALOG_NONE, text,
                        sizeof(text) - 1);
}

/* ---- about the server ---- */

static void do_capabilities(struct newsd_session *s, const char *cmd, char *args)
{
    (void)args;
    struct gather g = {0};
    gather_text(&g, "101 capabilities\r\nVERSION 2\r\nIMPLEMENTATION weir newsd\r\nREADER\r\n"
                    "POST\r\nLIST ACTIVE\r\n");
    if (!s->authed) {
        gather_text(&g, "AUTHINFO USER\r\n");
    }
    gather_text(&g, ".\r\n");
    answer_gathered(s, cmd, &g);
}

static void do_mode(struct newsd_session *s, const char *cmd, char *args)
{
    if (strcasecmp(args, "READER") == 0) {
        answer(s, cmd, "200 posting allowed");
    } else {
        answer(s, cmd, "501 unknown mode");
    }
}

static void do_date(struct newsd_session *s, const char *cmd, char *args)
{
    (void)args;
    time_t now = time(NULL);
    struct tm tm;
    char text[32];
    gmtime_r(&now, &tm);
    strftime(text, sizeof(text), "%Y%m%d%H%M%S", &tm);
    answer(s, cmd, "111 %s", text);
}

static void do_help(struct newsd_session *s, const char *cmd, char *args);

static void do_quit(struct newsd_session *s, const char *cmd, char *args)
{
    (void)args;
    answer(s, cmd, "205 bye");
    if (!s->ended) { /* else there was no memory for the reply */
        newsd_session_last(s)->last = true;
    }
}

static void do_authinfo(struct newsd_session *s, const char *cmd, char *args)
{
    struct newsd_server *v = s->server;
    (void)cmd;
    char *value = args + strcspn(args, " \t");
    value += strspn(value, " \t");
    bool is_user = strncasecmp(args, "USER ", 5) == 0, is_pass = strncasecmp(args, "PASS ", 5) == 0;
    const char *text = "501 AUTHINFO USER or PASS\r\n";
    bool right = false;
    if (s->authed && v->user != NULL) {
        text = "502 already logged in\r\n"; /* RFC 4643 2.2 */
    } else if (is_user) {
        s->has_user = true;
        s->user_right = v->user == NULL || strcmp(value, v->user) == 0;
        text = "381 password required\r\n";
    } else if (is_pass && !s->has_user) {
        text = "482 AUTHINFO USER comes first\r\n";
    } else if (is_pass) {
        right = s->user_right && (v->user == NULL || strcmp(value, v->pass) == 0);
        text = right ? "281 welcome\r\n" : "481 wrong name or password\r\n";
        s->has_user = false;
    }
    const char *word = is_user ? "USER" : is_pass ? "PASS" : "AUTHINFO";
    const struct newsd_rule *rule = rule_for(s, PHASE_AUTH, word);
    if (is_pass && strncmp(text + 1, "81", 2) == 0) {
        bool in = right && (rule == NULL || !(rule->content & (FAULT_INSTEAD | FAULT_DROP)));
        s->authed |= in;
        v->count.logins += in;
        v->count.login_failures += !in;
    }
    newsd_session_reply(s, rule, WANT_TEXT, CATALOG_NONE, text, strlen(text));
}

static void do_list(struct newsd_session *s, const char *cmd, char *args)
{
    struct newsd_server *v = s->server;
    char text[1024];
    size_t n = v->catalog.articles_len;
    if (args[0] == '\0' || strncasecmp(args, "ACTIVE", 6) == 0) {
        snprintf(text, sizeof(text), "215 groups\r\n%.512s %zu %d y\r\n.\r\n", v->group, n,
                 n > 0 ? 1 : 0);
        answer_bytes(s, cmd, text, strlen(text));
    } else {
        answer(s, cmd, "503 not kept");
    }
}

/* Any name will do: which groups a test or a poster uses is its own affair. */
static void do_group(struct newsd_session *s, const char *cmd, char *args)
{
    size_t n = s->server->catalog.articles_len;
    if (args[0] == '\0' || strpbrk(args, " \t") != NULL) {
        answer(s, cmd, "501 GROUP name");
        return;
    }
    s->in_group = true;
    s->current = n > 0 ? 0 : CATALOG_NONE;
    answer(s, cmd, "211 %zu %d %zu %s", n, n > 0 ? 1 : 0, n, args);
}

/* ---- articles ---- */

/* The article that the arguments name; CATALOG_NONE when it was answered already. */
static int32_t find_article(struct newsd_session *s, const char *cmd, char *args, bool *by_id)
{
    const struct newsd_catalog *c = &s->server->catalog;
    size_t len = strlen(args);
    *by_id = args[0] == '<';
    if (*by_id) {
        int32_t found =
            args[len - 1] == '>' && len > 2 ? newsd_find(c, args + 1, len - 2) : CATALOG_NONE;
        if (found == CATALOG_NONE) {
            s->server->count.missing++;
            answer(s, cmd, "430 no such article");
        }
        return found;
    }
    if (!s->in_group) {
        answer(s, cmd, "412 no group selected");
        return CATALOG_NONE;
    }
    if (args[0] == '\0') {
        if (s->current == CATALOG_NONE) {
            answer(s, cmd, "420 no current article");
        }
        return s->current;
    }
    char *end;
    unsigned long long number = strspn(args, "0123456789") == len ? strtoull(args, &end, 10) : 0;
    if (number < 1 || number > c->articles_len) {
        answer(s, cmd, "423 no article with that number");
        return CATALOG_NONE;
    }
    s->current = (int32_t)(number - 1);
    return s->current;
}

static const struct newsd_rule *article_rule(struct newsd_session *s, const char *cmd, int32_t i)
{
    struct newsd_server *v = s->server;
    const struct newsd_article *a = &v->catalog.articles[i];
    const struct newsd_file *f = newsd_catalog_file(&v->catalog, i);
    struct newsd_occasion o = {.phase = PHASE_ARTICLE, .conn = s->number, .cmd = cmd, .id = a->id};
    o.path = f != NULL ? f->path : NULL;
    o.name = f != NULL ? f->name : NULL;
    o.part = a->part;
    o.hit = (uint64_t)a->hits + a->checks;
    const struct newsd_rule *rule = newsd_script_match(&v->script, &o);
    return rule != NULL ? rule : rule_for(s, PHASE_COMMAND, cmd);
}

static void give_article(struct newsd_session *s, const char *cmd, char *args, int code,
                         enum newsd_want want)
{
    static const char *const words[] = {"exists", "head follows", "body follows",
                                        "article follows"};
    bool by_id;
    int32_t i = find_article(s, cmd, args, &by_id);
    if (i == CATALOG_NONE) {
        return;
    }
    struct newsd_article *a = &s->server->catalog.articles[i];
    if (want >= WANT_BODY) {
        a->hits++;
    } else {
        a->checks++;
    }
    s->server->count.articles++;
    char line[CATALOG_ID_MAX + 64];
    int n = snprintf(line, sizeof(line), "%d %d <%s> %s\r\n", code, by_id ? 0 : i + 1, a->id,
                     words[want]);
    newsd_session_reply(s, article_rule(s, cmd, i), want, i, line, (size_t)n);
}

static void do_stat(struct newsd_session *s, const char *cmd, char *args)
{
    give_article(s, cmd, args, 223, WANT_TEXT);
}

static void do_head(struct newsd_session *s, const char *cmd, char *args)
{
    give_article(s, cmd, args, 221, WANT_HEAD);
}

static void do_body(struct newsd_session *s, const char *cmd, char *args)
{
    give_article(s, cmd, args, 222, WANT_BODY);
}

static void do_article(struct newsd_session *s, const char *cmd, char *args)
{
    give_article(s, cmd, args, 220, WANT_ARTICLE);
}

static void do_post(struct newsd_session *s, const char *cmd, char *args)
{
    static const char text[] = "340 send the article, end with a dot\r\n";
    (void)args;
    const struct newsd_rule *rule = rule_for(s, PHASE_COMMAND, cmd);
    newsd_session_reply(s, rule, WANT_TEXT, CATALOG_NONE, text, sizeof(text) - 1);
    bool refused = rule != NULL && (rule->content & (FAULT_INSTEAD | FAULT_DROP));
    if (!refused && newsd_post_begin(s) != 0) {
        newsd_session_close(s);
    }
}

const struct newsd_rule *newsd_command_post_rule(struct newsd_session *s)
{
    return rule_for(s, PHASE_COMMAND, "POSTED");
}

void newsd_command_posted(struct newsd_session *s, const struct newsd_rule *rule, const char *id,
                          const char *why)
{
    char line[CATALOG_ID_MAX + 64];
    int n = why == NULL ? snprintf(line, sizeof(line), "240 <%s> received\r\n", id)
                        : snprintf(line, sizeof(line), "441 %s\r\n", why);
    newsd_session_reply(s, rule, WANT_TEXT, CATALOG_NONE, line, (size_t)n);
}

/* ---- for tests ---- */

/* "id hits checks" of every article that was asked for, or of the one that is named. */
static void do_xhits(struct newsd_session *s, const char *cmd, char *args)
{
    const struct newsd_catalog *c = &s->server->catalog;
    char line[CATALOG_ID_MAX + 64];
    size_t len = strlen(args);
    if (len > 2 && args[0] == '<' && args[len - 1] == '>') {
        int32_t i = newsd_find(c, args + 1, len - 2);
        if (i == CATALOG_NONE) {
            answer(s, cmd, "430 no such article");
        } else {
            answer(s, cmd, "291 %" PRIu32 " %" PRIu32, c->articles[i].hits, c->articles[i].checks);
        }
        return;
    }
    struct gather g = {0};
    gather_text(&g, "290 id, how often asked for, how often checked\r\n");
    for (size_t i = 0; i < c->articles_len; i++) {
        const struct newsd_article *a = &c->articles[i];
        if (a->hits + a->checks > 0) {
            snprintf(line, sizeof(line), "<%s> %" PRIu32 " %" PRIu32 "\r\n", a->id, a->hits,
                     a->checks);
            gather_text(&g, line);
        }
    }
    gather_text(&g, ".\r\n");
    answer_gathered(s, cmd, &g);
}

static void do_xstats(struct newsd_session *s, const char *cmd, char *args)
{
    (void)args;
    const struct newsd_server *v = s->server;
    const struct newsd_counters *n = &v->count;
    struct gather g = {0};
    struct jsonw j;
    uint64_t bytes = n->bytes_out;
    LIST_FOREACH (node, &v->sessions) {
        bytes += LIST_ENTRY(node, struct newsd_session, node)->stream.bytes_out;
    }
    gather_text(&g, "290 counters\r\n");
    jsonw_init(&j, gather, &g);
    jsonw_object(&j);
    jsonw_kuint(&j, "connections", n->connections);
    jsonw_kuint(&j, "open", n->open);
    jsonw_kuint(&j, "commands", n->commands);
    jsonw_kuint(&j, "unknown_commands", n->unknown_commands);
    jsonw_kuint(&j, "logins", n->logins);
    jsonw_kuint(&j, "login_failures", n->login_failures);
    jsonw_kuint(&j, "articles", n->articles);
    jsonw_kuint(&j, "missing", n->missing);
    jsonw_kuint(&j, "posted", n->posted);
    jsonw_kuint(&j, "encoded", v->store.encoded);
    jsonw_kuint(&j, "faults", n->faults);
    jsonw_kuint(&j, "bytes_out", bytes);
    jsonw_end(&j);
    jsonw_finish(&j);
    gather_text(&g, "\r\n.\r\n");
    answer_gathered(s, cmd, &g);
}

/* ---- the table ---- */

struct command {
    const char *name;
    void (*run)(struct newsd_session *s, const char *cmd, char *args);
    bool open; /* to those who have not logged in, too */
};

static const struct command commands[] = {
    {"ARTICLE", do_article, false}, {"AUTHINFO", do_authinfo, true},
    {"BODY", do_body, false},       {"CAPABILITIES", do_capabilities, true},
    {"DATE", do_date, false},       {"GROUP", do_group, false},
    {"HEAD", do_head, false},       {"HELP", do_help, true},
    {"LIST", do_list, false},       {"MODE", do_mode, true},
    {"POST", do_post, false},       {"QUIT", do_quit, true},
    {"STAT", do_stat, false},       {"XHITS", do_xhits, true},
    {"XSTATS", do_xstats, true},
};

static void do_help(struct newsd_session *s, const char *cmd, char *args)
{
    (void)args;
    struct gather g = {0};
    gather_text(&g, "100 commands\r\n");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        gather_text(&g, commands[i].name);
        gather_text(&g, "\r\n");
    }
    gather_text(&g, ".\r\n");
    answer_gathered(s, cmd, &g);
}

void newsd_command_run(struct newsd_session *s, char *line)
{
    s->server->count.commands++;
    line += strspn(line, " \t");
    size_t n = strcspn(line, " \t");
    char *args = line + n + strspn(line + n, " \t");
    line[n] = '\0';
    size_t end = strlen(args);
    while (end > 0 && (args[end - 1] == ' ' || args[end - 1] == '\t')) {
        args[--end] = '\0';
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const struct command *c = &commands[i];
        if (strcasecmp(line, c->name) != 0) {
            continue;
        }
        if (!c->open && !s->authed) {
            answer(s, c->name, "480 authentication required");
        } else {
            c->run(s, c->name, args);
        }
        return;
    }
    s->server->count.unknown_commands++;
    answer(s, "?", "500 unknown command");
}
