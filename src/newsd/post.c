/* post.c - an article that a poster sends us: collected up to its dot line, kept as it came.
 *
 * Nothing is changed but for a Message-ID that we make when there is none: the text is served again byte for byte. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "newsd/session.h"

enum { FRONT = 80 }; /* room for a Message-ID line in front */

struct newsd_post {
    uint8_t *p; /* the article begins at p + FRONT */
    size_t len; /* of the article */
    size_t room;
    bool too_long;
    unsigned end_state; /* how much of CRLF . CRLF was seen; the article's start counts as CRLF */
};

int newsd_post_begin(struct newsd_session *s)
{
    s->post = mem_zalloc(1, sizeof(*s->post));
    if (s->post == NULL) {
        return UV_ENOMEM;
    }
    s->post->end_state = 2;
    return 0;
}

void newsd_post_free(struct newsd_post *p)
{
    if (p != NULL) {
        mem_free(p->p);
        mem_free(p);
    }
}

/* Bytes up to and including the dot line, if it ends in here. */
static size_t until_end(struct newsd_post *post, const uint8_t *p, size_t n, bool *found)
{
    static const char end[] = "\r\n.\r\n";
    unsigned state = post->end_state;
    size_t i = 0;
    while (i < n && state < 5) {
        if (state == 0) { /* the long stretches */
            const uint8_t *cr = memchr(p + i, '\r', n - i);
            if (cr == NULL) {
                i = n;
                break;
            }
            i = (size_t)(cr - p);
        }
        uint8_t c = p[i++];
        state = c == (uint8_t)end[state] ? state + 1 : c == '\r' ? 1 : 0;
    }
    post->end_state = state;
    *found = state == 5;
    return i;
}

static void keep(struct newsd_post *post, const uint8_t *p, size_t n)
{
    if (post->too_long || n > NEWSD_POST_MAX - post->len) {
        post->too_long = true;
        return;
    }
    if (FRONT + post->len + n > post->room) {
        size_t room = post->room > 0 ? post->room : 1 << 20;
        while (room < FRONT + post->len + n) {
            room *= 2;
        }
        uint8_t *moved = mem_realloc(post->p, room, 1);
        if (moved == NULL) {
            post->too_long = true;
            return;
        }
        post->p = moved;
        post->room = room;
    }
    memcpy(post->p + FRONT + post->len, p, n);
    post->len += n;
}

/* Length of the header lines, without the empty line; 0: there is no empty line. */
static size_t head_length(const uint8_t *p, size_t n)
{
    const uint8_t *at = memmem(p, n, "\r\n\r\n", 4);
    return at != NULL ? (size_t)(at - p) + 2 : 0;
}

/* The value of "Message-ID: <...>", without brackets. */
static bool find_id(const char *head, size_t n, char *id)
{
    static const char name[] = "message-id:";
    for (const char *p = head, *end = head + n; p < end;) {
        const char *eol = memchr(p, '\r', (size_t)(end - p));
        eol = eol != NULL ? eol : end;
        size_t len = (size_t)(eol - p);
        if (len > sizeof(name) - 1 && strncasecmp(p, name, sizeof(name) - 1) == 0) {
            const char *open = memchr(p, '<', len);
            const char *close = open != NULL ? memchr(open, '>', (size_t)(eol - open)) : NULL;
            if (close == NULL || close == open + 1 || close - open >= CATALOG_ID_MAX - 1) {
                return false;
            }
            snprintf(id, CATALOG_ID_MAX, "%.*s", (int)(close - open - 1), open + 1);
            return true;
        }
        p = eol + (end - eol >= 2 ? 2 : end - eol);
    }
    id[0] = '\0';
    return true;
}

/* Stores it; NULL, or why not. */
static const char *store(struct newsd_session *s, char *id)
{
    struct newsd_post *post = s->post;
    struct newsd_server *v = s->server;
    if (post->too_long) {
        return "too long";
    }
    uint8_t *text = post->p + FRONT;
    size_t len = post->len, head = head_length(text, len);
    if (head == 0) {
        return "no empty line behind the header";
    }
    if (!find_id((char *)text, head, id)) {
        return "bad Message-ID";
    }
    if (id[0] == '\0') {
        char line[FRONT];
        snprintf(id, CATALOG_ID_MAX, "post%" PRIu64 ".%" PRIu64 "@newsd", v->count.posted,
                 s->number);
        int n = snprintf(line, sizeof(line), "Message-ID: <%s>\r\n", id);
        memcpy(text - n, line, (size_t)n);
        text -= n;
        len += (size_t)n;
        head += (size_t)n;
    }
    if (newsd_find(&v->catalog, id, strlen(id)) != CATALOG_NONE) {
        return "duplicate Message-ID";
    }
    uint64_t at;
    if (newsd_store_add(&v->store, text, len, &at, NULL) != 0) {
        return "no room";
    }
    int place = newsd_catalog_add_posted(&v->catalog, id, strlen(id));
    if (place < 0) {
        return "no room";
    }
    struct newsd_article *a = &v->catalog.articles[place];
    a->at = at;
    a->len = len;
    a->head_len = (uint32_t)head;
    v->count.posted++;
    return NULL;
}

size_t newsd_post_feed(struct newsd_session *s, const uint8_t *p, size_t n)
{
    bool found;
    size_t used = until_end(s->post, p, n, &found);
    keep(s->post, p, used);
    if (found) {
        char id[CATALOG_ID_MAX] = "";
        const struct newsd_rule *rule = newsd_command_post_rule(s);
        bool refused = rule != NULL && (rule->content & FAULT_INSTEAD);
        const char *why = refused ? "refused" : store(s, id);
        newsd_post_free(s->post);
        s->post = NULL;
        newsd_command_posted(s, rule, id, why);
    }
    return used;
}
