/* script.c - reads fault scripts and chooses the rule that acts.
 *
 * A line is cut into words; blanks separate, "..." keeps blanks and knows the escapes \r \n \t \0 \\ \" \xHH, # begins
 * a comment. ':' and ',' at the end of a word are marks of their own: conditions before the colon, actions behind it.
 */
#include "newsd/script.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/mem.h"

enum { WORDS_MAX = 64, WORD_MAX = 2048, PIECES = 4096 };

static const struct newsd_place behind_all = {false, UINT64_MAX};

struct word {
    const char *key;   /* "part" of part=3; the word itself otherwise */
    const char *value; /* NULL: no '=' in it */
    size_t value_len;
    bool quoted; /* the word began with a quote: key is its text */
    size_t key_len;
};

struct line {
    const char *name;
    unsigned number;
    struct err *e;
    struct word words[WORDS_MAX];
    int count;
    int colon;             /* index of the first word behind ':' */
    bool comma[WORDS_MAX]; /* behind that word */
    char text[PIECES];     /* where the words are */
};

static int bad(struct line *l, const char *what, const char *word)
{
    return err_set(l->e, ERR_INVALID, "%s line %u: %s%s%s%s", l->name, l->number, what,
                   word != NULL ? " '" : "", word != NULL ? word : "", word != NULL ? "'" : "");
}

/* ---- words ---- */

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The character that an escape stands for; *p is behind the backslash, and then behind the escape. -1: none. */
static int escape(const char **p, const char *end)
{
    if (*p == end) {
        return -1;
    }
    char c = *(*p)++;
    switch (c) {
    case 'r':
        return '\r';
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case '0':
        return 0;
    case '\\':
    case '"':
        return c;
    case 'x':
        if (end - *p >= 2 && hex((*p)[0]) >= 0 && hex((*p)[1]) >= 0) {
            int v = hex((*p)[0]) * 16 + hex((*p)[1]);
            *p += 2;
            return v;
        }
        return -1;
    default:
        return -1;
    }
}

/* Copies a quoted text; *p is behind the first quote, and then behind the last. */
static int quoted(struct line *l, const char **p, const char *end, char **to)
{
    while (*p < end && **p != '"') {
        int c = (uint8_t) * (*p)++;
        if (c == '\\') {
            c = escape(p, end);
            if (c < 0) {
                return bad(l, "unknown escape in a quoted text", NULL);
            }
        }
        *(*to)++ = (char)c;
    }
    if (*p == end) {
        return bad(l, "a quote is not closed", NULL);
    }
    (*p)++;
    return 0;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* True at ':' or ',' that ends a word. */
static bool is_mark(const char *p, const char *end)
{
    return (*p == ':' || *p == ',') && (p + 1 == end || blank(p[1]));
}

static int read_word(struct line *l, const char **p, const char *end, char **to)
{
    struct word w = {.key = *to};
    w.quoted = **p == '"';
    while (*p < end && !blank(**p) && !is_mark(*p, end)) {
        if (**p == '"') {
            (*p)++;
            int rv = quoted(l, p, end, to);
            if (rv != 0) {
                return rv;
            }
        } else if (**p == '=' && w.value == NULL && !w.quoted) {
            w.key_len = (size_t)(*to - w.key);
            *(*to)++ = '\0';
            w.value = *to;
            (*p)++;
        } else {
            *(*to)++ = *(*p)++;
        }
    }
    if (w.value != NULL) {
        w.value_len = (size_t)(*to - w.value);
    } else {
        w.key_len = (size_t)(*to - w.key);
    }
    *(*to)++ = '\0';
    l->words[l->count++] = w;
    return 0;
}

static int split(struct line *l, const char *p, const char *end)
{
    char *to = l->text;
    if (end - p > PIECES / 2 - 1) {
        return bad(l, "too long a line", NULL);
    }
    while (p < end && *p != '#') {
        if (blank(*p)) {
            p++;
        } else if (is_mark(p, end)) {
            if (l->count == 0) {
                return bad(l, "nothing in front of a mark", NULL);
            }
            if (*p == ':' && l->colon == 0) {
                l->colon = l->count;
            } else {
                l->comma[l->count - 1] = true;
            }
            p++;
        } else if (l->count == WORDS_MAX) {
            return bad(l, "too many words", NULL);
        } else {
            int rv = read_word(l, &p, end, &to);
            if (rv != 0) {
                return rv;
            }
        }
    }
    return 0;
}

/* ---- values ---- */

/* Digits up to `stop`; false when there is anything else. */
static bool number(const char *s, const char *stop, uint64_t *out)
{
    if (s == stop) {
        return false;
    }
    for (*out = 0; s < stop; s++) {
        if (*s < '0' || *s > '9' || __builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, (uint64_t)(*s - '0'), out)) {
            return false;
        }
    }
    return true;
}

/* "3", "3-5", "3-" */
static bool range(const char *s, size_t len, struct newsd_range *r)
{
    const char *end = s + len;
    const char *dash = memchr(s, '-', len);
    if (!number(s, dash != NULL ? dash : end, &r->first)) {
        return false;
    }
    if (dash == NULL) {
        r->last = r->first;
        return true;
    }
    r->last = UINT64_MAX;
    return dash + 1 == end || (number(dash + 1, end, &r->last) && r->first <= r->last);
}

/* "1000", "50%", "all" */
static bool place(const char *s, size_t len, struct newsd_place *p)
{
    if (strcmp(s, "all") == 0) {
        *p = behind_all;
        return true;
    }
    p->percent = len > 0 && s[len - 1] == '%';
    return number(s, s + len - (p->percent ? 1 : 0), &p->value) && (!p->percent || p->value <= 100);
}

static bool small(const char *s, size_t len, uint64_t min, uint64_t max, unsigned *out)
{
    uint64_t v;
    if (!number(s, s + len, &v) || v < min || v > max) {
        return false;
    }
    *out = (unsigned)v;
    return true;
}

static int set_bytes(struct line *l, struct newsd_bytes *b, const char *p, size_t len)
{
    mem_free(b->p);
    b->p = mem_alloc(len);
    if (b->p == NULL) {
        return err_sys(l->e, UV_ENOMEM, "%s line %u", l->name, l->number);
    }
    memcpy(b->p, p, len);
    b->len = len;
    return 0;
}

static int set_text(struct line *l, char **to, const char *s)
{
    mem_free(*to);
    *to = mem_strdup(s);
    return *to != NULL ? 0 : err_sys(l->e, UV_ENOMEM, "%s line %u", l->name, l->number);
}

/* ---- conditions ---- */

static int condition(struct line *l, struct newsd_rule *r, const struct word *w)
{
    const char *v = w->value;
    size_t n = w->value_len;
    bool good = false;
    if (v == NULL || w->quoted) {
        return bad(l, "not a condition:", w->key);
    }
    if (strcmp(w->key, "conn") == 0) {
        good = range(v, n, &r->conn);
    } else if (strcmp(w->key, "nth") == 0) {
        good = range(v, n, &r->nth);
    } else if (strcmp(w->key, "hit") == 0) {
        good = r->phase == PHASE_ARTICLE && range(v, n, &r->hit);
    } else if (strcmp(w->key, "part") == 0) {
        good = r->phase == PHASE_ARTICLE && range(v, n, &r->part);
    } else if (strcmp(w->key, "times") == 0) {
        good = number(v, v + n, &r->times);
    } else if (strcmp(w->key, "pct") == 0) {
        good = small(v, n, 0, 100, &r->pct);
    } else if (strcmp(w->key, "share") == 0) {
        good = r->phase == PHASE_ARTICLE && small(v, n, 0, 100, &r->share);
    } else if (strcmp(w->key, "match") == 0) {
        good = r->phase == PHASE_ARTICLE && n > 0;
        int rv = set_text(l, &r->match, v);
        if (rv != 0) {
            return rv;
        }
    } else if (strcmp(w->key, "cmd") == 0) {
        good = r->phase >= PHASE_AUTH && n > 0;
        int rv = set_text(l, &r->cmd, v);
        if (rv != 0) {
            return rv;
        }
        for (char *p = r->cmd; *p != '\0'; p++) {
            *p = (char)toupper((uint8_t)*p);
        }
    } else {
        return bad(l, "unknown condition", w->key);
    }
    return good ? 0
                : bad(l, "that value, or that condition in this phase, makes no sense:", w->key);
}

/* ---- actions ---- */

struct action {
    const char *name;
    unsigned content;
    enum newsd_deliver deliver;
    const char *args; /* words that may follow: "at after bytes every ms code text" */
    unsigned phases;  /* where it can be done */
};

#define ALL     ((1u << PHASES) - 1)
#define STREAM  (ALL & ~(1u << PHASE_CONNECT))
#define ARTICLE (1u << PHASE_ARTICLE)

static const struct action actions[] = {
    {"status", FAULT_INSTEAD, 0, "text", STREAM},
    {"send", FAULT_INSTEAD, 0, "text", STREAM},
    {"before", 0, 0, "text", ALL},
    {"behind", 0, 0, "text", STREAM},
    {"drop", FAULT_DROP, 0, "", STREAM},
    {"double", FAULT_DOUBLE, 0, "", STREAM},
    {"wrong-id", FAULT_WRONG_ID, 0, "", ARTICLE},
    {"swap", FAULT_SWAP, 0, "", ARTICLE},
    {"damage", FAULT_DAMAGE, 0, "", ARTICLE},
    {"bad-crc", FAULT_BAD_CRC, 0, "", ARTICLE},
    {"truncate", FAULT_TRUNCATE, 0, "at", ARTICLE},
    {"dots", FAULT_DOTS, 0, "", ARTICLE},
    {"bare-lf", FAULT_BARE_LF, 0, "", ARTICLE},
    {"endless-line", FAULT_ENDLESS_LINE, 0, "at", STREAM},
    {"endless-body", FAULT_ENDLESS_BODY, 0, "at", STREAM},
    {"reset", 0, DELIVER_RESET, "after", ALL},
    {"close", 0, DELIVER_CLOSE, "after", ALL},
    {"cut", 0, DELIVER_CUT, "after", STREAM},
    {"half-close", 0, DELIVER_HALF_CLOSE, "after", STREAM},
    {"silence", 0, DELIVER_SILENCE, "after", ALL},
    {"alert", 0, DELIVER_ALERT, "after", ALL},
    {"pause", 0, DELIVER_PAUSE, "after ms", STREAM},
    {"drip", 0, DELIVER_DRIP, "after bytes every", STREAM},
    {"raw", 0, DELIVER_RAW, "after text", STREAM},
    {"key-update", 0, DELIVER_KEY_UPDATE, "after", STREAM},
};

struct parsing { /* of one rule */
    bool has_after;
    bool has_deliver;
};

static const char *default_text(unsigned code)
{
    switch (code) {
    case 400:
        return "service not available";
    case 420:
        return "no current article";
    case 423:
        return "no article with that number";
    case 430:
        return "no such article";
    case 480:
        return "authentication required";
    case 481:
        return "authentication failed";
    case 482:
        return "authentication commands out of sequence";
    case 502:
        return "access denied";
    default:
        return "as the script says";
    }
}

/* status CODE ["text"]: the words at i, and how many of them were used. */
static int status_line(struct line *l, struct newsd_rule *r, int i, int *used)
{
    uint64_t code;
    const struct word *w = &l->words[i];
    if (i >= l->count || l->comma[i - 1] || w->key_len != 3 || w->value != NULL ||
        !number(w->key, w->key + 3, &code)) {
        return bad(l, "status wants a code of three digits", NULL);
    }
    *used = 1;
    const char *text = default_text((unsigned)code);
    if (i + 1 < l->count && !l->comma[i] && l->words[i + 1].quoted) {
        text = l->words[i + 1].key;
        *used = 2;
    }
    char line[WORD_MAX];
    int n = snprintf(line, sizeof(line), "%s %s\r\n", w->key, text);
    if (n < 0 || (size_t)n >= sizeof(line)) {
        return bad(l, "too long a text", NULL);
    }
    return set_bytes(l, &r->instead, line, (size_t)n);
}

static int text_of(struct line *l, struct newsd_rule *r, const struct action *a, int i, int *used)
{
    if (strcmp(a->name, "status") == 0) {
        return status_line(l, r, i, used);
    }
    if (i >= l->count || l->comma[i - 1] || !l->words[i].quoted) {
        return bad(l, "a text in quotes must follow", a->name);
    }
    *used = 1;
    struct newsd_bytes *b = strcmp(a->name, "before") == 0   ? &r->before
                            : strcmp(a->name, "behind") == 0 ? &r->behind
                            : strcmp(a->name, "raw") == 0    ? &r->raw
                                                             : &r->instead;
    return set_bytes(l, b, l->words[i].key, l->words[i].key_len);
}

/* name=value behind an action. */
static int argument(struct line *l, struct newsd_rule *r, struct parsing *p, const struct action *a,
                    const struct word *w)
{
    bool good = false;
    if (w->value == NULL || w->quoted || strstr(a->args, w->key) == NULL) {
        return bad(l, "this does not belong behind the action:", w->key);
    }
    if (strcmp(w->key, "after") == 0) {
        good = place(w->value, w->value_len, &r->after);
        p->has_after = true;
    } else if (strcmp(w->key, "at") == 0) {
        good = place(w->value, w->value_len,
                     a->content == FAULT_TRUNCATE ? &r->truncate_at : &r->endless_at);
    } else if (strcmp(w->key, "bytes") == 0) {
        good = small(w->value, w->value_len, 1, 1 << 20, &r->bytes);
    } else if (strcmp(w->key, "every") == 0 || strcmp(w->key, "ms") == 0) {
        good = small(w->value, w->value_len, 0, 86400000, &r->every_ms);
    }
    return good ? 0 : bad(l, "that value makes no sense:", w->key);
}

static const struct action *find_action(const char *name)
{
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (strcmp(actions[i].name, name) == 0) {
            return &actions[i];
        }
    }
    return NULL;
}

/* One action from word i on; *next is where the following one begins. */
static int read_action(struct line *l, struct newsd_rule *r, struct parsing *p, int i, int *next)
{
    const struct action *a =
        l->words[i].quoted || l->words[i].value != NULL ? NULL : find_action(l->words[i].key);
    if (a == NULL) {
        return bad(l, "unknown action", l->words[i].key);
    }
    if ((a->phases & (1u << r->phase)) == 0) {
        return bad(l, "this cannot be done in this phase:", a->name);
    }
    if (a->deliver != DELIVER_WHOLE) {
        if (p->has_deliver) {
            return bad(l, "only one action of a rule may say how to send; the second is", a->name);
        }
        p->has_deliver = true;
        r->deliver = a->deliver;
    }
    r->content |= a->content;
    int used = 0;
    if (strstr(a->args, "text") != NULL) {
        int rv = text_of(l, r, a, i + 1, &used);
        if (rv != 0) {
            return rv;
        }
    }
    int at = i + used;
    while (!l->comma[at] && at + 1 < l->count) {
        int rv = argument(l, r, p, a, &l->words[++at]);
        if (rv != 0) {
            return rv;
        }
    }
    *next = at + 1;
    return 0;
}

static int read_rule(struct line *l, struct newsd_rule *r)
{
    static const char *const names[PHASES] = {"connect", "greet", "auth", "article", "command"};
    int phase = 0;
    while (phase < PHASES && strcmp(names[phase], l->words[0].key) != 0) {
        phase++;
    }
    if (phase == PHASES || l->words[0].value != NULL || l->words[0].quoted) {
        return bad(l, "unknown phase", l->words[0].key);
    }
    r->phase = (enum newsd_phase)phase;
    r->line = l->number;
    if (l->colon == 0 || l->colon >= l->count) {
        return bad(l, "': ACTION' is missing", NULL);
    }
    int rv = 0;
    for (int i = 1; rv == 0 && i < l->colon; i++) {
        rv = condition(l, r, &l->words[i]);
    }
    struct parsing p = {0};
    for (int i = l->colon; rv == 0 && i < l->count;) {
        rv = read_action(l, r, &p, i, &i);
    }
    if (rv == 0 && !p.has_after && (r->content != 0 || r->deliver == DELIVER_RAW)) {
        r->after = behind_all; /* "status 400, close" means: when it is said */
    }
    if (r->deliver == DELIVER_DRIP && !p.has_after) {
        r->after = (struct newsd_place){0};
    }
    return rv;
}

static void free_rule(struct newsd_rule *r)
{
    mem_free(r->cmd);
    mem_free(r->match);
    mem_free(r->instead.p);
    mem_free(r->before.p);
    mem_free(r->behind.p);
    mem_free(r->raw.p);
}

static int add_rule(struct newsd_script *s, struct line *l)
{
    if (s->len == s->room) {
        size_t room = s->room > 0 ? 2 * s->room : 16;
        struct newsd_rule *moved = mem_realloc(s->rules, room, sizeof(*moved));
        if (moved == NULL) {
            return err_sys(l->e, UV_ENOMEM, "%s", l->name);
        }
        s->rules = moved;
        s->room = room;
    }
    static const struct newsd_range any = {0, UINT64_MAX};
    struct newsd_rule r = {.conn = any, .nth = any, .hit = any, .part = any, .times = UINT64_MAX};
    r.pct = r.share = 100;
    r.bytes = 1;
    r.every_ms = 1000;
    r.truncate_at = r.endless_at = (struct newsd_place){.percent = true, .value = 50};
    int rv = read_rule(l, &r);
    if (rv != 0) {
        free_rule(&r);
        return rv;
    }
    s->rules[s->len++] = r;
    return 0;
}

int newsd_script_parse(struct newsd_script *s, const char *text, const char *name, struct err *e)
{
    struct line *l = mem_alloc(sizeof(*l));
    if (l == NULL) {
        return err_sys(e, UV_ENOMEM, "%s", name);
    }
    int rv = 0;
    unsigned at = 1;
    for (const char *p = text; rv == 0 && *p != '\0'; at++) {
        const char *end = strchr(p, '\n');
        end = end != NULL ? end : p + strlen(p);
        *l = (struct line){.name = name, .number = at, .e = e};
        rv = split(l, p, end);
        if (rv == 0 && l->count > 0) {
            rv = add_rule(s, l);
        }
        p = *end == '\n' ? end + 1 : end;
    }
    mem_free(l);
    return rv;
}

/* ---- use ---- */

void newsd_script_init(struct newsd_script *s, uint64_t seed)
{
    *s = (struct newsd_script){.seed = seed, .state = seed};
}

void newsd_script_free(struct newsd_script *s)
{
    for (size_t i = 0; i < s->len; i++) {
        free_rule(&s->rules[i]);
    }
    mem_free(s->rules);
    *s = (struct newsd_script){0};
}

/* splitmix64 */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The same articles each time, others with another seed. */
static unsigned share_of(const struct newsd_script *s, const char *id)
{
    uint64_t h = mix(s->seed + 1);
    for (; *id != '\0'; id++) {
        h = mix(h ^ (uint8_t)*id);
    }
    return (unsigned)(h % 100);
}

static bool in(const struct newsd_range *r, uint64_t v)
{
    return v >= r->first && v <= r->last;
}

static bool globs(const char *pattern, const char *text)
{
    return text != NULL && fnmatch(pattern, text, 0) == 0;
}

static bool holds(const struct newsd_script *s, const struct newsd_rule *r,
                  const struct newsd_occasion *o)
{
    if (r->phase != o->phase || !in(&r->conn, o->conn)) {
        return false;
    }
    if (r->cmd != NULL && (o->cmd == NULL || strcmp(r->cmd, o->cmd) != 0)) {
        return false;
    }
    if (o->phase != PHASE_ARTICLE) {
        return true;
    }
    if (!in(&r->part, o->part) || !in(&r->hit, o->hit)) {
        return false;
    }
    if (r->match != NULL && !globs(r->match, o->id) && !globs(r->match, o->path) &&
        !globs(r->match, o->name)) {
        return false;
    }
    return share_of(s, o->id) < r->share;
}

const struct newsd_rule *newsd_script_match(struct newsd_script *s, const struct newsd_occasion *o)
{
    for (size_t i = 0; i < s->len; i++) {
        struct newsd_rule *r = &s->rules[i];
        if (!holds(s, r, o)) {
            continue;
        }
        r->matched++;
        s->state += UINT64_C(0x9e3779b97f4a7c15);
        if (in(&r->nth, r->matched) && r->fired < r->times && mix(s->state) % 100 < r->pct) {
            r->fired++;
            return r;
        }
    }
    return NULL;
}

uint64_t newsd_script_place(const struct newsd_place *p, uint64_t total)
{
    uint64_t at = p->percent ? total / 100 * p->value + total % 100 * p->value / 100 : p->value;
    return at < total ? at : total;
}
