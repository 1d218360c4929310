/* fuzz_yenc_article.c - an article fed in pieces, with room given in pieces, ends as the one fed whole with all the
 * room it wants; it never takes a byte behind its dot line, and what it says of itself holds together. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "yenc/yenc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
    if (!ok) {
        abort();
    }
}

/* Feeds all of it in pieces of `step` bytes; room grows by `grow` each time it is asked for. */
static size_t feed(struct yenc_article *a, const uint8_t *src, size_t n, size_t step, size_t grow,
                   bool lf_ends)
{
    uint8_t *room = NULL;
    size_t at = 0, capacity = 0;
    yenc_article_init(a, lf_ends);
    /* A UUencoded line may be taken whole and then wait for room: it is asked for with nothing left to feed, too. */
    for (bool waits = false; at < n || waits;) {
        size_t used, piece = n - at < step ? n - at : step;
        enum yenc_feed f = yenc_article_feed(a, src + at, piece, &used);
        check(used <= piece && a->len <= a->capacity);
        at += used;
        waits = f == YENC_FEED_ROOM;
        if (f == YENC_FEED_DONE || f == YENC_FEED_LIMIT) {
            break;
        }
        if (f == YENC_FEED_ROOM) {
            check(yenc_article_wants(a) > a->len);
            capacity = a->len + grow;
            uint8_t *larger = malloc(capacity);
            check(larger != NULL);
            if (a->len > 0) {
                memcpy(larger, room, a->len);
            }
            free(room);
            room = larger;
            yenc_article_room(a, room, capacity);
        } else {
            check(used == piece);
        }
    }
    yenc_article_finish(a);
    check(a->verdict != YENC_OPEN);
    check((a->why == NULL) == (a->verdict == YENC_OK));
    check(a->crc == crc32_update(0, a->len > 0 ? room : src, a->len));
    check(a->raw == at);
    if (a->verdict == YENC_OK || (a->verdict == YENC_NO_CRC && a->format == YENC_FORMAT_YENC)) {
        check(a->len == a->header.end - a->header.begin && a->decoded == a->len);
        check(a->header.end <= a->header.size);
    }
    if (a->verdict == YENC_BAD_HEADER || a->verdict == YENC_NOT_YENC) {
        check(a->len == 0);
    }
    check(strlen(a->header.name) <= YENC_NAME_MAX);
    free(room);
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct yenc_article whole, pieces;
    if (size < 2) {
        return 0;
    }
    bool lf_ends = data[0] & 0x80;
    size_t step = (data[0] & 0x7f) + 1u, grow = data[1] + 64u;
    size_t used = feed(&whole, data + 2, size - 2, size, 1 << 20, lf_ends);
    check(feed(&pieces, data + 2, size - 2, step, grow, lf_ends) == used);
    check(whole.verdict == pieces.verdict && whole.crc == pieces.crc && whole.len == pieces.len);
    check(whole.decoded == pieces.decoded && whole.format == pieces.format);
    check(strcmp(whole.header.name, pieces.header.name) == 0);
    check(whole.header.begin == pieces.header.begin && whole.header.end == pieces.header.end);
    return 0;
}
