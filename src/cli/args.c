/* args.c - walks a command's arguments by its option table: --name, --name=value, --name value, -x, -xvalue,
 * -x value, -xy, and "--" which ends the options. */
#include <stdarg.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/cli.h"

static void say(const struct cli_args *a, const char *fmt, va_list args)
    __attribute__((format(printf, 2, 0)));

static void say(const struct cli_args *a, const char *fmt, va_list args)
{
    fprintf(stderr, "weir%s%s: ", a->path[0] != '\0' ? " " : "", a->path);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
}

int cli_usage_error(const struct cli_args *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(a, fmt, args);
    va_end(args);
    fprintf(stderr, "Try: weir%s%s --help\n", a->path[0] != '\0' ? " " : "", a->path);
    return a->command != NULL && a->command->usage_exit != 0 ? a->command->usage_exit : CLI_USAGE;
}

int cli_failed(const struct cli_args *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(a, fmt, args);
    va_end(args);
    return CLI_FAILED;
}

static bool last(const struct cli_option *o)
{
    return o == NULL || (o->name == NULL && o->letter == 0);
}

static int unknown(const struct cli_args *a, const char *name)
{
    enum { MAX = 64 };
    const char *names[MAX];
    size_t n = 0;
    for (const struct cli_option *o = a->command->options; !last(o) && n < MAX - 1; o++) {
        if (o->name != NULL) {
            names[n++] = o->name;
        }
    }
    names[n] = NULL;
    const char *near = nearest(name, names);
    if (near != NULL) {
        cli_usage_error(a, "unknown option '--%s'; did you mean '--%s'?", name, near);
    } else {
        cli_usage_error(a, "unknown option '--%s'", name);
    }
    return CLI_BAD;
}

/* Takes the value from behind the option, or from the next word. */
static int with_value(struct cli_args *a, int i, const char *attached)
{
    const struct cli_option *o = &a->command->options[i];
    a->option = i;
    a->value = attached;
    if (o->value == NULL || attached != NULL) {
        return i;
    }
    if (a->at >= a->argc) {
        if (o->name != NULL) {
            cli_usage_error(a, "option '--%s' wants %s", o->name, o->value);
        } else {
            cli_usage_error(a, "option '-%c' wants %s", o->letter, o->value);
        }
        return CLI_BAD;
    }
    a->value = a->argv[a->at++];
    return i;
}

static int next_long(struct cli_args *a, const char *word)
{
    const char *equals = strchr(word, '=');
    size_t len = equals != NULL ? (size_t)(equals - word) : strlen(word);
    const struct cli_option *options = a->command->options;
    for (int i = 0; options != NULL && !last(&options[i]); i++) {
        const char *name = options[i].name;
        if (name == NULL || strlen(name) != len || strncmp(name, word, len) != 0) {
            continue;
        }
        if (equals != NULL && options[i].value == NULL) {
            cli_usage_error(a, "option '--%s' takes no value", name);
            return CLI_BAD;
        }
        return with_value(a, i, equals != NULL ? equals + 1 : NULL);
    }
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)(len < 63 ? len : 63), word);
    return unknown(a, name);
}

/* `word` points at the letter; what is behind it is its value or more letters. */
static int next_letter(struct cli_args *a, const char *word)
{
    const struct cli_option *options = a->command->options;
    for (int i = 0; options != NULL && !last(&options[i]); i++) {
        if (options[i].letter != word[0]) {
            continue;
        }
        if (options[i].value != NULL) {
            return with_value(a, i, word[1] != '\0' ? word + 1 : NULL);
        }
        a->more = word[1] != '\0' ? word + 1 : NULL;
        return with_value(a, i, NULL);
    }
    cli_usage_error(a, "unknown option '-%c'", word[0]);
    return CLI_BAD;
}

int cli_next(struct cli_args *a)
{
    if (a->more != NULL) {
        const char *word = a->more;
        a->more = NULL;
        return next_letter(a, word);
    }
    if (a->at >= a->argc) {
        return CLI_END;
    }
    const char *word = a->argv[a->at++];
    if (!a->plain && strcmp(word, "--") == 0) {
        a->plain = true;
        return cli_next(a);
    }
    if (a->plain || word[0] != '-' ||
        word[1] == '\0') { /* "-" alone is an argument: standard input */
        a->value = word;
        return CLI_ARG;
    }
    return word[1] == '-' ? next_long(a, word + 2) : next_letter(a, word + 1);
}

/* "--threads", "-t", or the argument itself when it was none. */
static void option_name(const struct cli_args *a, char *out, size_t size)
{
    const struct cli_option *o = &a->command->options[a->option];
    if (o->name != NULL) {
        snprintf(out, size, "--%s", o->name);
    } else {
        snprintf(out, size, "-%c", o->letter);
    }
}

/* Decimal digits only; the place behind them, or NULL when there are none or too many. */
static const char *digits(const char *s, uint64_t *out)
{
    const char *p = s;
    for (*out = 0; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, (uint64_t)(*p - '0'), out)) {
            return NULL;
        }
    }
    return p != s ? p : NULL;
}

bool cli_number(const struct cli_args *a, uint64_t min, uint64_t max, uint64_t *out)
{
    const char *end = digits(a->value, out);
    if (end != NULL && *end == '\0' && *out >= min && *out <= max) {
        return true;
    }
    char name[64];
    option_name(a, name, sizeof(name));
    cli_usage_error(a, "%s wants a number from %ju to %ju, not '%s'", name, (uintmax_t)min,
                    (uintmax_t)max, a->value);
    return false;
}

bool cli_size(const struct cli_args *a, uint64_t min, uint64_t max, uint64_t *out)
{
    static const char units[] = "KMGT";
    const char *end = digits(a->value, out);
    bool good = end != NULL;
    if (good && *end != '\0') {
        char unit = (char)(*end & ~0x20);
        const char *u = unit != '\0' ? strchr(units, unit) : NULL;
        good = u != NULL && end[1] == '\0' &&
               !__builtin_mul_overflow(*out, UINT64_C(1) << (10 * (u - units + 1)), out);
    }
    if (good && *out >= min && *out <= max) {
        return true;
    }
    char name[64];
    option_name(a, name, sizeof(name));
    cli_usage_error(a, "%s wants a size in bytes (K, M, G, T may follow) from %ju to %ju, not '%s'",
                    name, (uintmax_t)min, (uintmax_t)max, a->value);
    return false;
}
