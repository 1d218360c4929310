#include "nntp/proto.h"

#include <string.h>
#include <strings.h>

#include "base/check.h"

void nntp_reply_init(struct nntp_reply *r)
{
    r->code = 0;
    r->text = "";
    r->text_len = 0;
    r->bare_lf = false;
    r->len = 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The line is complete, without its LF. */
static enum nntp_reply_state parse_line(struct nntp_reply *r)
{
    r->bare_lf = r->len == 0 || r->line[r->len - 1] != '\r';
    if (!r->bare_lf) {
        r->len--;
    }
    size_t n = r->len;
    char *l = r->line;
    l[n] = '\0';
    r->len = 0;
    for (size_t i = 0; i < n; i++) { /* it will be logged */
        if ((unsigned char)l[i] < 0x20 || l[i] == 0x7f) {
            l[i] = '?';
        }
    }
    if (n < 3 || !is_digit(l[0]) || !is_digit(l[1]) || !is_digit(l[2]) || l[0] < '1' ||
        l[0] > '5' || (n > 3 && l[3] != ' ' && l[3] != ',')) { /* "222, 0 <id>": nzbget's nserv */
        r->code = 0;
        r->text = l;
        r->text_len = n;
        return NNTP_REPLY_BAD;
    }
    r->code = (l[0] - '0') * 100 + (l[1] - '0') * 10 + (l[2] - '0');
    size_t skip = n > 4 && l[3] == ',' && l[4] == ' ' ? 5 : n > 3 ? 4 : 3;
    r->text = l + skip;
    r->text_len = n - skip;
    return NNTP_REPLY_LINE;
}

enum nntp_reply_state nntp_reply_feed(struct nntp_reply *r, const uint8_t *p, size_t n,
                                      size_t *used)
{
    const uint8_t *lf = n > 0 ? memchr(p, '\n', n) : NULL;
    size_t take = lf != NULL ? (size_t)(lf - p) : n;
    if (take > NNTP_LINE_MAX - r->len) {
        *used = 0;
        return NNTP_REPLY_FLOOD;
    }
    if (take > 0) {
        memcpy(r->line + r->len, p, take);
        r->len += take;
    }
    if (lf == NULL) {
        *used = n;
        return NNTP_REPLY_MORE;
    }
    *used = take + 1;
    return parse_line(r);
}

const char *nntp_reply_id(const struct nntp_reply *r, size_t *len)
{
    const char *open = memchr(r->text, '<', r->text_len);
    if (open == NULL) {
        return NULL;
    }
    const char *close = memchr(open, '>', r->text_len - (size_t)(open - r->text));
    if (close == NULL) {
        return NULL;
    }
    *len = (size_t)(close - open) - 1;
    return open + 1;
}

/* Servers tell of their connection limit under several codes; the words are what they have in common. */
static bool says_limit(const char *text)
{
    static const char *const words[] = {"too many",          "connection limit", "max connections",
                                        "maximum number",    "connections",      "simultaneous",
                                        "already connected", "sessions"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasestr(text, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

enum nntp_trouble nntp_reply_trouble(const struct nntp_reply *r)
{
    switch (r->code) {
    case 400: /* service not available or no longer available */
    case 502: /* permission denied, and the usual answer to one connection too many */
        if (says_limit(r->text)) {
            return NNTP_TROUBLE_LIMIT;
        }
        return r->code == 502 ? NNTP_TROUBLE_LOGIN : NNTP_TROUBLE_GOODBYE;
    case 480: /* login needed */
    case 483: /* encryption needed */
        return NNTP_TROUBLE_LOGIN;
    case 481: /* login rejected */
    case 482:
    case 452:
        return says_limit(r->text) ? NNTP_TROUBLE_LIMIT : NNTP_TROUBLE_LOGIN;
    default:
        return NNTP_TROUBLE_PROTOCOL;
    }
}

bool nntp_reply_missing(int code)
{
    return code == 430 || code == 423 || code == 420 || code == 451;
}

bool nntp_id_valid(const char *id)
{
    size_t n = 0;
    for (; id[n] != '\0'; n++) {
        if (n >= NNTP_ID_MAX || id[n] < 0x21 || id[n] > 0x7e || id[n] == '<' || id[n] == '>') {
            return false;
        }
    }
    return n >= 3;
}

bool nntp_group_valid(const char *group)
{
    for (const char *c = group; *c != '\0'; c++) {
        if ((unsigned char)*c <= 0x20 || *c == 0x7f) {
            return false;
        }
    }
    return group[0] != '\0' && strlen(group) <= NNTP_GROUP_MAX;
}

bool nntp_word_valid(const char *word)
{
    for (const char *c = word; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            return false;
        }
    }
    return word[0] != '\0' && strlen(word) <= NNTP_WORD_MAX;
}

static char *add(char *at, const char *text)
{
    size_t n = strlen(text);
    memcpy(at, text, n);
    return at + n;
}

size_t nntp_command(char out[NNTP_COMMAND_MAX], const char *verb, const char *open, const char *arg,
                    const char *close)
{
    PRE(strlen(verb) + strlen(open) + strlen(arg) + strlen(close) + 2 <= NNTP_COMMAND_MAX);
    char *at = add(add(add(add(out, verb), open), arg), close);
    return (size_t)(add(at, "\r\n") - out);
}
