/* input.c - the layers above the defaults: the file, the environment, the command line. Each gives assignments; a later
 * one takes the place of an earlier one. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/private.h"

/* ---- assignments ---- */

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

static void trim(const char **s, size_t *len)
{
    while (*len > 0 && blank((*s)[0])) {
        (*s)++;
        (*len)--;
    }
    while (*len > 0 && blank((*s)[*len - 1])) {
        (*len)--;
    }
}

static bool read_only(const struct item *i)
{
    return i != NULL && i->e.option == NULL && i->e.from == CONFIG_FROM_DEFAULT;
}

static void say_unknown(struct build *b, const struct config_entry *e, const char *near)
{
    if (near[0] != '\0') {
        build_problem(b, CONFIG_WARNING, e, "no such option; did you mean %s?", near);
    } else {
        build_problem(b, CONFIG_WARNING, e, "no such option; it has no effect");
    }
}

/* An option of an older version. True: it goes on under today's name. */
static bool take_old(struct build *b, const struct config_entry *e, const struct config_name *n)
{
    if (n->option != NULL) {
        bool empty_task = n->group == CONFIG_TASK && e->raw[0] == '\0';
        if (!empty_task) {
            build_problem(b, CONFIG_NOTE, e, "is called %s now", n->name);
        }
        return !empty_task;
    }
    if (n->old->note != NULL && e->raw[0] != '\0') {
        build_problem(b, CONFIG_WARNING, e, "is no option any more: %s", n->old->note);
    } else {
        build_problem(b, CONFIG_NOTE, e, "is no option any more; it has no effect");
    }
    return false;
}

static bool has_control(const char *s)
{
    for (; *s != '\0'; s++) {
        if (((unsigned char)*s < ' ' && *s != '\t') || *s == 0x7f) {
            return true;
        }
    }
    return false;
}

static void assign(struct build *b, const char *name, size_t name_len, const char *value,
                   size_t value_len, enum config_from from, unsigned line)
{
    char near[CONFIG_NAME_MAX];
    struct config_name n;
    if (b->full_said) {
        return;
    }
    trim(&name, &name_len);
    bool known = config_resolve(name, name_len, &n, near);
    if (n.option == NULL || n.option->kind != CONFIG_SECRET) {
        trim(&value, &value_len);
    }
    struct config_entry e = {
        .name = arena_strn(&b->arena, name, name_len),
        .raw = arena_strn(&b->arena, value, value_len),
        .option = n.option,
        .group = n.group,
        .number = n.number,
        .from = from,
        .line = line,
        .unknown = !known,
    };
    if (has_control(e.name)) {
        build_problem(b, CONFIG_ERROR, &e, "no name of an option");
        return;
    }
    if (known && n.old != NULL && !take_old(b, &e, &n)) {
        return;
    }
    if (known && n.option != NULL) {
        e.name = arena_strn(&b->arena, n.name, strlen(n.name));
    }
    bool secret = n.option != NULL && n.option->kind == CONFIG_SECRET;
    if (has_control(e.raw) && !secret) {
        build_problem(b, CONFIG_ERROR, &e, "'%s': holds a control character",
                      build_shown(b, e.raw));
        return;
    }
    struct item *there = build_find(b, e.name);
    if (read_only(there)) {
        build_problem(b, CONFIG_WARNING, &e, "is made by Weir and cannot be set");
        return;
    }
    if (there == NULL) {
        there = build_add(b, &e);
        if (there != NULL && !known) {
            say_unknown(b, &e, near);
        }
        return;
    }
    if (from == CONFIG_FROM_FILE && there->e.from == CONFIG_FROM_FILE) {
        build_problem(b, CONFIG_WARNING, &e, "was set in line %u already; this line counts",
                      there->e.line);
    }
    there->e = e;
}

/* ---- the file ---- */

static void read_line(struct build *b, const char *s, size_t len, unsigned line)
{
    const struct config_entry at = {.name = "", .from = CONFIG_FROM_FILE, .line = line};
    if (len > 0 && s[len - 1] == '\r') {
        len--;
    }
    const char *p = s;
    size_t rest = len;
    trim(&p, &rest);
    if (rest == 0 || p[0] == '#') {
        return;
    }
    if (memchr(s, '\0', len) != NULL) {
        build_problem(b, CONFIG_ERROR, &at,
                      "there is a zero byte in this line; is this a text file?");
        return;
    }
    const char *equals = memchr(s, '=', len);
    if (equals == NULL || equals == p) {
        build_problem(b, CONFIG_ERROR, &at, "'%s' is neither Name=Value nor a comment with #",
                      build_shown(b, arena_strn(&b->arena, p, rest < 40 ? rest : 40)));
        return;
    }
    assign(b, s, (size_t)(equals - s), equals + 1, len - (size_t)(equals - s) - 1, CONFIG_FROM_FILE,
           line);
}

static void read_text(struct build *b, const char *text, size_t len)
{
    static const char mark[] = "\xef\xbb\xbf"; /* that some editors put in front */
    if (len >= 3 && memcmp(text, mark, 3) == 0) {
        text += 3;
        len -= 3;
    }
    unsigned line = 0;
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        size_t n = end != NULL ? (size_t)(end - text) : len;
        read_line(b, text, n, ++line);
        n += end != NULL;
        text += n;
        len -= n;
    }
}

/* All of `fd`. A configuration is small: one byte more than the limit is read to see that it is not. */
static int read_all(int fd, const char *name, char **bytes, size_t *len, struct err *e)
{
    char *p = mem_alloc(CONFIG_FILE_MAX + 1);
    if (p == NULL) {
        return err_sys(e, -ENOMEM, "%s", name);
    }
    for (*len = 0; *len <= CONFIG_FILE_MAX;) {
        ssize_t n = read(fd, p + *len, CONFIG_FILE_MAX + 1 - *len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            int code = -errno;
            mem_free(p);
            return err_sys(e, code, "%s", name);
        }
        if (n == 0) {
            *bytes = p;
            return 0;
        }
        *len += (size_t)n;
    }
    mem_free(p);
    return err_set(e, ERR_LIMIT, "%s: is larger than %d bytes; is this a configuration file?", name,
                   CONFIG_FILE_MAX);
}

static int read_fd(struct build *b, int fd, const char *name, struct err *e)
{
    struct stat st;
    char *bytes = NULL;
    size_t len = 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        b->file_mode = st.st_mode & 0777;
    }
    int rv = read_all(fd, name, &bytes, &len, e);
    if (rv != 0) {
        return rv;
    }
    read_text(b, bytes, len);
    explicit_bzero(bytes, len);
    mem_free(bytes);
    return 0;
}

static int read_named(struct build *b, const char *name, struct err *e)
{
    char resolved[PATH_MAX];
    if (strcmp(name, "-") == 0) {
        b->c.file = "-";
        return read_fd(b, STDIN_FILENO, "standard input", e);
    }
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_sys(e, -errno, "%s", name);
    }
    const char *full = realpath(name, resolved);
    full = full != NULL ? full : name;
    b->c.file = arena_strn(&b->arena, full, strlen(full));
    int rv = read_fd(b, fd, name, e);
    close(fd);
    return rv;
}

/* The first of the usual places that has a file. */
static int read_usual(struct build *b, struct err *e)
{
    static const char *const places[] = {
        "weir/weir.conf", /* below the user's configuration */
        "/etc/weir.conf",
        "~/.nzbget", /* from here on NZBGet's */
        "/etc/nzbget.conf",
        "/usr/etc/nzbget.conf",
        "/usr/local/etc/nzbget.conf",
        "/opt/etc/nzbget.conf",
        NULL,
    };
    const char *xdg = build_env(b, "XDG_CONFIG_HOME");
    for (size_t i = 0; places[i] != NULL && (i < 2 || b->in->nzbget_places); i++) {
        const char *path = places[i];
        if (i == 0 && xdg != NULL && xdg[0] == '/') {
            path = arena_printf(&b->arena, "%s/%s", xdg, path);
        } else if (path[0] != '/') {
            if (b->home[0] == '\0') {
                continue;
            }
            path = i == 0 ? arena_printf(&b->arena, "%s/.config/%s", b->home, path)
                          : arena_printf(&b->arena, "%s%s", b->home, path + 1);
        }
        int rv = read_named(b, path, e);
        if (rv == -ENOENT || rv == -ENOTDIR) {
            err_clear(e);
            continue;
        }
        if (rv == -EACCES) { /* the daemon's, and we are somebody else */
            build_problem(b, CONFIG_NOTE, NULL, "%s is not ours to read and was passed over", path);
            err_clear(e);
            continue;
        }
        return rv;
    }
    return 0;
}

int build_read_file(struct build *b, struct err *e)
{
    const struct config_input *in = b->in;
    if (in->text != NULL) {
        const char *name = in->file != NULL ? in->file : "";
        b->c.file = arena_strn(&b->arena, name, strlen(name));
        read_text(b, in->text, in->text_len);
        return 0;
    }
    if (in->no_file) {
        return 0;
    }
    const char *name = in->file != NULL ? in->file : build_env(b, "WEIR_CONF");
    return name != NULL ? read_named(b, name, e) : read_usual(b, e);
}

/* ---- a server as a URL: nntps://user:password@host:563?connections=8 ---- */

static int hex(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? (c | 0x20) - 'a' + 10
                                        : -1;
}

static const char *decoded(struct build *b, const char *s, size_t len)
{
    char *out = arena_alloc(&b->arena, len + 1, 1);
    size_t n = 0;
    for (size_t i = 0; out != NULL && i < len; i++) {
        if (s[i] == '%' && i + 2 < len && hex(s[i + 1]) >= 0 && hex(s[i + 2]) >= 0) {
            out[n++] = (char)(hex(s[i + 1]) << 4 | hex(s[i + 2]));
            i += 2;
        } else {
            out[n++] = s[i];
        }
    }
    return out != NULL ? out : "";
}

static void set_server(struct build *b, const char *option, const char *value,
                       enum config_from from)
{
    char name[CONFIG_NAME_MAX];
    int n = snprintf(name, sizeof(name), "Server1.%s", option);
    assign(b, name, (size_t)n, value, strlen(value), from, 0);
}

/* The servers of the layers below are no longer there. */
static void drop_servers(struct build *b)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->count; i++) {
        if (b->items[i].e.group != CONFIG_SERVER) {
            b->items[kept++] = b->items[i];
        }
    }
    b->count = kept;
}

static bool take_scheme(const char **url, bool *tls)
{
    static const struct {
        const char *scheme;
        bool tls;
    } schemes[] = {{"nntps://", true}, {"snews://", true}, {"nntp://", false}, {"news://", false}};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t len = strlen(schemes[i].scheme);
        if (strncasecmp(*url, schemes[i].scheme, len) == 0) {
            *url += len;
            *tls = schemes[i].tls;
            return true;
        }
    }
    *tls = true;
    return strstr(*url, "://") == NULL; /* host[:port] alone: over TLS */
}

static void read_server_url(struct build *b, const char *url, enum config_from from)
{
    const struct config_entry at = {.name = "Server1.Host", .from = from, .raw = "***"};
    bool tls;
    if (!take_scheme(&url, &tls)) {
        build_problem(b, CONFIG_ERROR, &at,
                      "wants nntps://USER:PASSWORD@HOST:PORT (or nntp:// without TLS)");
        return;
    }
    drop_servers(b);
    size_t len = strcspn(url, "/?#");
    const char *query = strchr(url + len, '?');
    const char *sign = memrchr(url, '@', len);
    if (sign != NULL) {
        size_t login = (size_t)(sign - url);
        const char *colon = memchr(url, ':', login);
        size_t user = colon != NULL ? (size_t)(colon - url) : login;
        set_server(b, "Username", decoded(b, url, user), from);
        set_server(b, "Password", colon != NULL ? decoded(b, colon + 1, login - user - 1) : "",
                   from);
        url += login + 1;
        len -= login + 1;
    }
    const char *bracket = len > 0 && url[0] == '[' ? memchr(url, ']', len) : NULL;
    const char *from_here = bracket != NULL ? bracket : url;
    const char *colon = memchr(from_here, ':', len - (size_t)(from_here - url));
    size_t host = colon != NULL ? (size_t)(colon - url) : len;
    set_server(b, "Host",
               bracket != NULL ? arena_strn(&b->arena, url + 1, (size_t)(bracket - url) - 1)
                               : arena_strn(&b->arena, url, host),
               from);
    set_server(b, "Encryption", tls ? "yes" : "no", from);
    if (colon != NULL) {
        set_server(b, "Port", arena_strn(&b->arena, colon + 1, len - host - 1), from);
    }
    if (query != NULL && strncasecmp(query, "?connections=", 13) == 0) {
        set_server(b, "Connections", query + 13, from);
    }
}

/* ---- the environment and the command line ---- */

/* "SERVER1_HOST" names the option whose variable it is. NULL: none; then `near` is the nearest variable or "". */
static const char *option_of_variable(struct build *b, const char *variable, size_t len, char *near,
                                      size_t near_size)
{
    char name[CONFIG_NAME_MAX], guess[CONFIG_NAME_MAX];
    struct config_name n;
    near[0] = '\0';
    if (len >= sizeof(name)) {
        return NULL;
    }
    memcpy(name, variable, len);
    name[len] = '\0';
    char *line = strchr(name, '_');
    if (line != NULL) {
        *line = '.';
    }
    if (config_resolve(name, len, &n, guess)) {
        return arena_strn(&b->arena, n.name, strlen(n.name));
    }
    if (line != NULL && guess[0] == '\0') { /* MAIN_DIR for MAINDIR */
        memmove(line, line + 1, strlen(line));
        if (config_resolve(name, strlen(name), &n, guess)) {
            snprintf(guess, sizeof(guess), "%s", n.name);
        }
    }
    if (guess[0] != '\0') {
        config_variable("WEIR_", guess, near, near_size);
    }
    return NULL;
}

static void read_variable(struct build *b, const char *variable, const char *equals)
{
    char near[CONFIG_NAME_MAX + 8];
    size_t len = (size_t)(equals - variable);
    const char *name = option_of_variable(b, variable + 5, len - 5, near, sizeof(near));
    if (name != NULL) {
        assign(b, name, strlen(name), equals + 1, strlen(equals + 1), CONFIG_FROM_ENV, 0);
        return;
    }
    const struct config_entry at = {.name = arena_strn(&b->arena, variable, len),
                                    .from = CONFIG_FROM_ENV};
    build_problem(b, CONFIG_WARNING, &at, "there is no option for this variable%s%s%s",
                  near[0] != '\0' ? "; did you mean " : "", near, near[0] != '\0' ? "?" : "");
}

/* WEIR_TEST_... belongs to the tests. */
void build_read_env(struct build *b)
{
    static const char prefix[] = "WEIR_";
    const char *server = build_env(b, "WEIR_SERVER");
    if (server != NULL && b->in->server == NULL) {
        read_server_url(b, server, CONFIG_FROM_ENV);
    }
    for (const char *const *v = b->in->env; v != NULL && *v != NULL; v++) {
        const char *equals = strchr(*v, '=');
        if (strncmp(*v, prefix, 5) != 0 || equals == NULL || equals[1] == '\0' ||
            strncmp(*v, "WEIR_CONF=", 10) == 0 || strncmp(*v, "WEIR_SERVER=", 12) == 0 ||
            strncmp(*v, "WEIR_TEST_", 10) == 0) {
            continue;
        }
        read_variable(b, *v, equals);
    }
}

void build_read_options(struct build *b)
{
    if (b->in->server != NULL) {
        read_server_url(b, b->in->server, CONFIG_FROM_ARGS);
    }
    for (const char *const *o = b->in->options; o != NULL && *o != NULL; o++) {
        const char *equals = strchr(*o, '=');
        if (equals == NULL || equals == *o) {
            const struct config_entry at = {.name = "", .from = CONFIG_FROM_ARGS};
            build_problem(b, CONFIG_ERROR, &at, "-o wants Name=Value, not '%s'",
                          build_shown(b, *o));
            continue;
        }
        assign(b, *o, (size_t)(equals - *o), equals + 1, strlen(equals + 1), CONFIG_FROM_ARGS, 0);
    }
}
