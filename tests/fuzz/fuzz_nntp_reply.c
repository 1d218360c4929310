/* The reply side of a session as a connection reads it: status lines and bodies in any pieces. Checks that every byte is
 * consumed exactly once, that pieces do not matter, and that nothing is read or written outside its place. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "nntp/proto.h"
#include "yenc/yenc.h"

enum { ROOM = 1 << 16 };

struct outcome {
    unsigned lines, bodies, bad;
    uint64_t hash;
};

static void mix(struct outcome *o, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        o->hash = (o->hash ^ ((const uint8_t *)p)[i]) * 1099511628211u;
    }
}

/* A body: gives room as a connection does. False: the limits are broken. */
static bool feed_body(struct yenc_article *a, uint8_t *out, const uint8_t *p, size_t n,
                      size_t *used, bool *done)
{
    enum yenc_feed rv = yenc_article_feed(a, p, n, used);
    if (rv == YENC_FEED_ROOM) {
        size_t want = yenc_article_wants(a);
        if (want > ROOM || want <= a->capacity) {
            return false; /* a connection would take a larger buffer, or give up */
        }
        yenc_article_room(a, out, ROOM);
    }
    *done = rv == YENC_FEED_DONE;
    return rv != YENC_FEED_LIMIT;
}

static struct outcome session(const uint8_t *data, size_t size, size_t piece)
{
    static struct nntp_reply reply;
    static struct yenc_article article;
    static uint8_t out[ROOM];
    struct outcome o = {.hash = 14695981039346656037u};
    bool in_body = false;
    nntp_reply_init(&reply);
    for (size_t at = 0; at < size;) {
        size_t n = size - at < piece ? size - at : piece, used = 0;
        uint8_t *copy = malloc(n); /* so that a read behind the piece is seen */
        memcpy(copy, data + at, n);
        bool go_on = true;
        if (in_body) {
            bool done = false;
            go_on = feed_body(&article, out, copy, n, &used, &done);
            if (done) {
                in_body = false;
                o.bodies++;
                mix(&o, out, article.out != NULL ? article.len : 0);
                mix(&o, &article.verdict, sizeof(article.verdict));
            }
        } else {
            enum nntp_reply_state state = nntp_reply_feed(&reply, copy, n, &used);
            go_on = state != NNTP_REPLY_FLOOD;
            if (state == NNTP_REPLY_LINE || state == NNTP_REPLY_BAD) {
                o.lines++;
                o.bad += state == NNTP_REPLY_BAD;
                mix(&o, reply.text, reply.text_len);
                PRE(strlen(reply.text) <= reply.text_len);
                size_t len;
                const char *id = nntp_reply_id(&reply, &len);
                PRE(id == NULL || (id >= reply.text && id + len < reply.text + reply.text_len));
                PRE(nntp_reply_trouble(&reply) < NNTP_TROUBLES);
                if (state == NNTP_REPLY_LINE && reply.code == 222) {
                    in_body = true;
                    yenc_article_init(&article, reply.bare_lf);
                }
            }
        }
        free(copy);
        PRE(used <= n);
        at += used;
        if (!go_on) {
            break;
        }
    }
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct outcome whole = session(data, size, size);
    struct outcome pieces = session(data, size, (size_t)data[0] % 97 + 1);
    PRE(whole.lines == pieces.lines && whole.bodies == pieces.bodies && whole.bad == pieces.bad &&
        whole.hash == pieces.hash);
    return 0;
}
