/* decode_scalar.c - what decoding means, one byte at a time. Every kernel is checked against this file; it is
 * written to be read and never optimised.
 *
 * Two grammars lie over each other. NNTP (RFC 3977, 3.1.1): lines end with CRLF, a dot that begins a line is taken
 * off, and a line of a dot alone ends the body. yEnc: '=' makes the next byte an escaped one (64 less), 42 is taken
 * off every byte, CR and LF that are not escaped mean nothing, and a line that begins with "=y" is a control line.
 * So an escaped CR is data and still the first half of a line end. Beyond both: a bare LF starts a line as well, so
 * that an article that lost its CRs decodes; only the end of the article insists on CRLF on both sides of its dot. */
#include "yenc/kernel.h"

static void put(struct yenc_raw *r, unsigned c)
{
    *r->dst++ = (uint8_t)c;
}

static enum yenc_state line_start(const struct yenc_raw *r)
{
    return r->lf_ends ? YENC_AT_LINE : YENC_AT_LF;
}

/* The state behind byte c where it has no meaning but its own. */
static enum yenc_state behind(const struct yenc_raw *r, uint8_t c)
{
    return c == '\r' ? YENC_AFTER_CR : c == '\n' ? line_start(r) : YENC_IN_LINE;
}

static enum yenc_state plain(struct yenc_raw *r, uint8_t c)
{
    if (c == '=') {
        return YENC_AFTER_EQ;
    }
    if (c != '\r' && c != '\n') {
        put(r, c - 42u);
    }
    return behind(r, c);
}

static enum yenc_state escaped(struct yenc_raw *r, uint8_t c)
{
    put(r, c - 42u - 64u);
    return behind(r, c);
}

enum yenc_stop yenc_decode_scalar(struct yenc_raw *r, size_t n)
{
    for (; n > 0 && r->src < r->end; n--) {
        uint8_t c = *r->src++;
        switch (r->state) {
        case YENC_AT_LINE:
        case YENC_AT_LF:
            if (c == '.') {
                r->state = r->state == YENC_AT_LINE ? YENC_LINE_DOT : YENC_LF_DOT;
            } else {
                r->state = c == '=' ? YENC_LINE_EQ : plain(r, c);
            }
            break;
        case YENC_IN_LINE:
            r->state = plain(r, c);
            break;
        case YENC_AFTER_CR:
            r->state = c == '\n' ? YENC_AT_LINE : plain(r, c);
            break;
        case YENC_AFTER_EQ:
            r->state = escaped(r, c);
            break;
        case YENC_LINE_EQ:
            if (c == 'y') {
                r->state = YENC_AT_LINE;
                return YENC_CONTROL;
            }
            r->state = escaped(r, c);
            break;
        case YENC_LINE_DOT:
        case YENC_LF_DOT:
            if (c == '\n' && r->lf_ends) {
                r->state = YENC_AT_LINE;
                return YENC_END;
            }
            if (c == '\r' && r->state == YENC_LINE_DOT) {
                r->state = YENC_LINE_DOT_CR;
            } else {
                r->state = c == '=' ? YENC_LINE_EQ : plain(r, c);
            }
            break;
        case YENC_LINE_DOT_CR:
            if (c == '\n') {
                r->state = YENC_AT_LINE;
                return YENC_END;
            }
            r->state = plain(r, c);
            break;
        }
    }
    return YENC_MORE;
}
