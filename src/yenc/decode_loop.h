/* decode_loop.h - the body of every vector kernel, included once by each decode_<isa>.c behind its own primitives.
 *
 * Nearly every article has lines of 128 characters and CRLF (129 where the last one is escaped). Looking for the line
 * end where it is expected costs almost nothing; finding it anywhere costs a third of the time. So lines() takes whole
 * lines as long as they have that shape, and blocks() takes anything in blocks of 64, comes to a line start and hands
 * back. Gaps are always closed: whether a block has an escape in it is a coin toss, and a mispredicted branch is dearer
 * than a few shuffles. What is rare (a control line, a dot line) is left to the specification.
 *
 * In place (dst <= src): all loads of a block come before its stores, and no store reaches past what was taken.
 *
 * The including file defines BLOCK 64, INLINE, LIKELY, UNLIKELY and
 *   struct bytes                              64 bytes in registers
 *   struct bytes load_block(s)
 *   uint64_t eq_bits(b), nl_bits(b), dot_bits(b)   where '=' is; CR and LF; '.'
 *   bool any_newline(b, c)
 *   struct bytes unescape(b, eq, carry)       minus 42, and minus 64 behind each '=' and, with carry 1, for the first
 *   struct bytes unescape_first(b, eq, s)     the same for the block at s with carry 0; s[-1] may be read
 *   struct bytes unescape_inner(b, eq, carry, s)   the same for the block at s; s[-1] may be read and says the carry
 *   struct bytes unescape_bits(b, escaped)    the same from a mask
 *   uint8_t *put(p, b, keep)                  stores the bytes whose bit is 1, up to 64 bytes from p on; returns the end
 */
#include <string.h>

enum {
    LINE = 128,
    AHEAD = 2, /* bytes behind a block that are looked at */
    RETRY_FIRST =
        4 * BLOCK, /* after so many bytes of another shape, the usual one is tried again; */
    RETRY_LAST = 128 * BLOCK, /* each time in vain doubles it up to that */
    CRLF = 0x0a0d,
    EQ_Y = 0x793d,
};

/* What the two bytes before s were, and whether an escape is open: the state, as far as a kernel needs it. */
struct before {
    uint8_t prev2, prev;
    uint64_t escape;
};

enum outcome { GOES_ON, AT_LINE_START, STUCK };

INLINE unsigned load16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}

/* Whole lines from s, which is at a line start, as long as they have the usual shape. s[-1] can be read. */
INLINE const uint8_t *lines(const uint8_t *s, const uint8_t *end, uint8_t **dst)
{
    uint8_t *p = *dst;
    while (end - s >= 1 + LINE + 1 + 2) {
        const uint8_t *from = s;
        if (UNLIKELY(load16(s) == EQ_Y)) {
            break;
        }
        if (UNLIKELY(s[0] == '.')) {
            if (s[1] == '\r' || s[1] == '\n' || s[1] == '=') {
                break;
            }
            from++;
        }
        struct bytes a = load_block(from), b = load_block(from + BLOCK);
        uint64_t low = eq_bits(a), high = eq_bits(b);
        uint64_t doubled = (low & low << 1) | (high & (high << 1 | low >> 63));
        if (UNLIKELY(doubled != 0 || any_newline(a, b))) {
            break;
        }
        bool open = high >> 63 != 0; /* the escape's second half is the 129th character */
        unsigned at128 = load16(from + LINE);
        uint8_t extra = (uint8_t)at128;
        if (LIKELY(at128 == CRLF && !open)) {
            s = from + LINE + 2;
        } else if (load16(from + LINE + 1) == CRLF && extra != '\r' && extra != '\n' &&
                   (open || extra != '=')) {
            s = from + LINE + 1 + 2;
        } else {
            break;
        }
        a = unescape_first(a, low, from);
        b = unescape_inner(b, high, low >> 63, from + BLOCK);
        p = put(p, a, ~low);
        p = put(p, b, ~high);
        if (UNLIKELY(s == from + LINE + 1 + 2)) {
            *p++ = (uint8_t)(extra - (open ? 42 + 64 : 42));
        }
    }
    *dst = p;
    return s;
}

/* The starts of escapes among '=' bytes when some follow each other: the second of a pair is escaped. */
static uint64_t escape_starts(uint64_t eq, uint64_t carry)
{
    uint64_t starts = 0;
    for (uint64_t left = eq & ~carry; left != 0;) {
        uint64_t lowest = left & -left;
        starts |= lowest;
        left &= ~(lowest | lowest << 1);
    }
    return starts;
}

/* Decodes the first `limit` bytes of the block at s, or fewer: up to a line start that a control line, a dot line or
 * a stuffed dot may stand at (STUCK), or, if so wished, any line start. Returns how many it took. */
INLINE unsigned block(const uint8_t *s, unsigned limit, bool stop_at_line, uint8_t **dst,
                      struct before *before, enum outcome *out)
{
    struct bytes b = load_block(s);
    uint64_t eq = eq_bits(b), nl = nl_bits(b), dot = dot_bits(b), carry = before->escape;
    if (LIKELY((eq & (eq << 1 | carry)) == 0)) {
        b = unescape(b, eq, carry);
    } else {
        eq = escape_starts(eq, carry);
        b = unescape_bits(b, eq << 1 | carry);
    }
    uint64_t drop = eq | (nl & ~(eq << 1 | carry));
    uint64_t first = (nl << 1 | (before->prev == '\n')) & ~nl; /* may begin a line */
    unsigned cut = limit;
    *out = GOES_ON;
    for (uint64_t special = first & (eq | dot); UNLIKELY(special != 0); special &= special - 1) {
        unsigned k = (unsigned)__builtin_ctzll(special);
        uint8_t last = k > 0 ? s[k - 1] : before->prev;
        if (k < limit && last == '\n' && (s[k] == '.' || s[k + 1] == 'y')) {
            cut = k;
            *out = STUCK;
            break;
        }
    }
    if (UNLIKELY(stop_at_line) && first != 0) {
        unsigned k = (unsigned)__builtin_ctzll(first);
        if (k < cut && (k > 0 ? s[k - 1] : before->prev) == '\n') {
            cut = k;
            *out = AT_LINE_START;
        }
    }
    if (UNLIKELY(cut == 0)) {
        return 0;
    }
    before->prev2 = cut > 1 ? s[cut - 2] : before->prev;
    before->prev = s[cut - 1];
    before->escape = eq >> (cut - 1) & 1;
    if (LIKELY(cut == BLOCK)) {
        *dst = put(*dst, b, ~drop);
    } else { /* in place, no byte behind the cut may be overwritten */
        uint8_t made[BLOCK], *p = put(made, b, ~(drop | ~0ull << cut));
        memcpy(*dst, made, (size_t)(p - made));
        *dst += p - made;
    }
    return cut;
}

/* Blocks of any shape, until fewer than a block are left, or a line starts and `retry` is passed, or something comes
 * that only the specification handles. */
INLINE enum outcome blocks(const uint8_t **src, const uint8_t *end, const uint8_t *retry,
                           uint8_t **dst, struct before *before)
{
    const uint8_t *s = *src;
    enum outcome out = GOES_ON;
    while (end - s >= BLOCK + AHEAD) {
        s += block(s, BLOCK, s >= retry, dst, before, &out);
        if (UNLIKELY(out != GOES_ON)) {
            if (out == AT_LINE_START || s[0] != '.' || s[1] == '\r' || s[1] == '\n' ||
                s[1] == '=') {
                break;
            }
            s++; /* a stuffed dot */
            before->prev2 = '\n';
            before->prev = '.';
            out = GOES_ON;
        }
    }
    *src = s;
    return out;
}

/* The last bytes, little more than a block: through a copy that is a whole one. A control line or a dot that may begin
 * in them is left. */
static void tail(const uint8_t **src, const uint8_t *end, uint8_t **dst, struct before *before)
{
    enum outcome out = GOES_ON;
    while (*src < end && out == GOES_ON) {
        uint8_t in[BLOCK + AHEAD], made[BLOCK], *p = made;
        unsigned n = end - *src < BLOCK ? (unsigned)(end - *src) : BLOCK;
        memset(in, 'y', sizeof(in)); /* so that a last '=' is taken for a control line */
        memcpy(in, *src, n);
        *src += block(in, n, false, &p, before, &out);
        memcpy(*dst, made, (size_t)(p - made));
        *dst += p - made;
    }
}

static enum yenc_state state_after(const struct yenc_raw *r, const struct before *b)
{
    if (b->escape) {
        return YENC_AFTER_EQ;
    }
    if (b->prev == '\r') {
        return YENC_AFTER_CR;
    }
    if (b->prev == '\n') {
        return b->prev2 == '\r' || r->lf_ends ? YENC_AT_LINE : YENC_AT_LF;
    }
    return YENC_IN_LINE;
}

INLINE void decode_loop(struct yenc_raw *r)
{
    const uint8_t *s = r->src, *retry = s;
    ptrdiff_t patience = RETRY_FIRST;
    uint8_t *p = r->dst;
    struct before before = {0, 0, r->state == YENC_AFTER_EQ};
    if (r->state == YENC_AT_LINE || r->state == YENC_AT_LF) {
        before.prev = '\n';
        before.prev2 = r->state == YENC_AT_LINE ? '\r' : 0;
    }
    enum outcome out;
    do {
        if (before.prev == '\n' && s == r->src) {
            retry = s + 1; /* the first line of all has no byte before it: as blocks */
        } else if (before.prev == '\n') {
            const uint8_t *from = s;
            s = lines(s, r->end, &p);
            if (s != from) {
                before.prev2 = '\r';
                patience = RETRY_FIRST;
            } else if (patience < RETRY_LAST) {
                patience *= 2;
            }
            retry = r->end - s > patience ? s + patience : r->end;
        }
        out = blocks(&s, r->end, retry, &p, &before);
    } while (out == AT_LINE_START);
    if (out == GOES_ON) {
        tail(&s, r->end, &p, &before);
    }
    r->state = state_after(r, &before);
    r->src = s;
    r->dst = p;
}
