/* packet.c - finds packets in a stream of bytes, and reads them.
 *
 * Packets begin with a magic and carry a length and an MD5 of all behind it. Anything may stand between them, and any
 * of it may be damaged. A packet counts when its MD5 is right; then the search goes on behind it, else behind its
 * magic. Hashing what turns out to be no packet is paid from a budget, so a file full of false headers that each claim
 * the rest of it costs a few times its size, not its square.
 *
 * Recovery packets are large, and most are never needed: one that has exactly the right length for its set is
 * remembered unproven and passed over. Whoever needs it compares the MD5 then (check.c); should it be wrong, the file
 * is gone through again with `eager`, as bytes lost inside it may have moved later packets. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "par2/internal.h"

enum {
    WINDOW = 1 << 17,
    NAME_MAX_BYTES = 1 << 16,
    FAILED_FREE = 64 << 20, /* wasted hashing that is allowed to any file, ... */
    FAILED_TIMES = 4,       /* ... beside so many times its size */
};

static const uint8_t magic[8] = {'P', 'A', 'R', '2', 0, 'P', 'K', 'T'};

uint32_t par2_get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t par2_get64(const uint8_t *p)
{
    return par2_get32(p) | (uint64_t)par2_get32(p + 4) << 32;
}

/* ---- packets of each kind; false: no room, or out of memory ---- */

static bool take_main(struct par2_catalog *c, struct packets *p, const uint8_t *body, size_t len)
{
    size_t ids = len >= 12 ? (len - 12) / 16 : 0;
    if (p->has_main || len < 12 || (len - 12) % 16 != 0 || ids > PAR2_FILES_MAX ||
        par2_get32(body + 8) > ids) {
        return true;
    }
    if (!par2_catalog_charge(c, len) || (p->ids = mem_alloc(len - 12)) == NULL) {
        return false;
    }
    memcpy(p->ids, body + 12, len - 12);
    p->block_size = par2_get64(body);
    p->recoverable = par2_get32(body + 8);
    p->total = (uint32_t)ids;
    p->has_main = true;
    return true;
}

/* The file id is the MD5 of what identifies the file: a description under another id is not about it. */
static bool id_matches(const uint8_t *body, size_t name_len, size_t padded_len)
{
    uint8_t id[16];
    size_t lengths[2] = {name_len, padded_len}; /* some hashed the padding too */
    for (unsigned i = 0; i < 2; i++) {
        struct md5 m;
        md5_init(&m);
        md5_update(&m, body + 32, 16 + 8 + lengths[i]);
        md5_final(&m, id);
        if (memcmp(id, body, 16) == 0) {
            return true;
        }
    }
    return false;
}

static bool take_description(struct par2_catalog *c, struct packets *p, const uint8_t *body,
                             size_t len)
{
    if (len <= 56 || len - 56 > NAME_MAX_BYTES) {
        return true;
    }
    size_t name_len = strnlen((const char *)body + 56, len - 56);
    if (!id_matches(body, name_len, len - 56)) {
        return true;
    }
    struct desc *d = par2_catalog_desc(c, p, body);
    if (d == NULL || d->described) {
        return d != NULL;
    }
    if (!par2_catalog_charge(c, name_len + 1) ||
        (d->name = mem_strndup((const char *)body + 56, name_len)) == NULL) {
        return false;
    }
    d->described = true;
    d->name_len = name_len;
    memcpy(d->md5, body + 16, 16);
    memcpy(d->md5_16k, body + 32, 16);
    d->size = par2_get64(body + 48);
    return true;
}

static bool take_sums(struct par2_catalog *c, struct packets *p, const uint8_t *body, size_t len)
{
    if (len < 16 || (len - 16) % 20 != 0 || (len - 16) / 20 > PAR2_BLOCKS_MAX) {
        return true;
    }
    struct desc *d = par2_catalog_desc(c, p, body);
    if (d == NULL || d->sums != NULL) {
        return d != NULL;
    }
    if (!par2_catalog_charge(c, len) || (d->sums = mem_alloc(len - 16)) == NULL) {
        return false;
    }
    memcpy(d->sums, body + 16, len - 16);
    d->sum_count = (uint32_t)((len - 16) / 20);
    return true;
}

/* UTF-16, little-endian, to UTF-8; what is no character becomes U+FFFD. NULL: no memory. */
static char *from_utf16(const uint8_t *p, size_t len)
{
    char *out = mem_alloc(len / 2 * 3 + 1), *to = out;
    for (size_t i = 0; out != NULL && i + 1 < len; i += 2) {
        uint32_t cp = (uint32_t)(p[i] | p[i + 1] << 8);
        if (cp == 0) {
            break;
        }
        if (cp >= 0xd800 && cp < 0xdc00 && i + 3 < len && (p[i + 3] & 0xfc) == 0xdc) {
            cp = 0x10000 + ((cp & 0x3ff) << 10) + ((uint32_t)(p[i + 2] | p[i + 3] << 8) & 0x3ff);
            i += 2;
        } else if (cp >= 0xd800 && cp < 0xe000) {
            cp = 0xfffd;
        }
        if (cp < 0x80) {
            *to++ = (char)cp;
        } else if (cp < 0x800) {
            *to++ = (char)(0xc0 | cp >> 6);
            *to++ = (char)(0x80 | (cp & 0x3f));
        } else if (cp < 0x10000) {
            *to++ = (char)(0xe0 | cp >> 12);
            *to++ = (char)(0x80 | (cp >> 6 & 0x3f));
            *to++ = (char)(0x80 | (cp & 0x3f));
        } else {
            *to++ = (char)(0xf0 | cp >> 18);
            *to++ = (char)(0x80 | (cp >> 12 & 0x3f));
            *to++ = (char)(0x80 | (cp >> 6 & 0x3f));
            *to++ = (char)(0x80 | (cp & 0x3f));
        }
    }
    if (out != NULL) {
        *to = '\0';
    }
    return out;
}

static bool take_unicode_name(struct par2_catalog *c, struct packets *p, const uint8_t *body,
                              size_t len)
{
    if (len <= 16 || len - 16 > 2 * NAME_MAX_BYTES) {
        return true;
    }
    struct desc *d = par2_catalog_desc(c, p, body);
    if (d == NULL || d->unicode != NULL) {
        return d != NULL;
    }
    return par2_catalog_charge(c, 2 * len) &&
           (d->unicode = from_utf16(body + 16, len - 16)) != NULL;
}

static bool take_text(struct par2_catalog *c, char **text, const uint8_t *body, size_t len,
                      bool utf16)
{
    if (*text != NULL || len > NAME_MAX_BYTES) {
        return true;
    }
    if (!par2_catalog_charge(c, 2 * len)) {
        return false;
    }
    *text = utf16 ? from_utf16(body, len) : mem_strndup((const char *)body, len);
    return *text != NULL;
}

/* ---- by type ---- */

enum kind {
    OTHER,
    MAIN,
    DESCRIPTION,
    SUMS,
    RECOVERY,
    CREATOR,
    UNICODE_NAME,
    COMMENT,
    UNICODE_COMMENT
};

static const struct {
    char type[17];
    uint64_t max; /* bytes of a packet of this kind */
} kinds[] = {
    [OTHER] = {"", UINT64_MAX},
    [MAIN] = {"PAR 2.0\0Main\0\0\0\0", HEADER_SIZE + 12 + 16 * (uint64_t)PAR2_FILES_MAX},
    [DESCRIPTION] = {"PAR 2.0\0FileDesc", HEADER_SIZE + 56 + NAME_MAX_BYTES},
    [SUMS] = {"PAR 2.0\0IFSC\0\0\0\0", HEADER_SIZE + 16 + 20 * (uint64_t)PAR2_BLOCKS_MAX},
    [RECOVERY] = {"PAR 2.0\0RecvSlic", RECOVERY_HEADER + (1ull << 32)},
    [CREATOR] = {"PAR 2.0\0Creator\0", HEADER_SIZE + NAME_MAX_BYTES},
    [UNICODE_NAME] = {"PAR 2.0\0UniFileN", HEADER_SIZE + 16 + 2 * NAME_MAX_BYTES},
    [COMMENT] = {"PAR 2.0\0CommASCI", HEADER_SIZE + NAME_MAX_BYTES},
    [UNICODE_COMMENT] = {"PAR 2.0\0CommUni\0", HEADER_SIZE + NAME_MAX_BYTES},
};

static enum kind kind_of(const uint8_t *header)
{
    for (enum kind k = MAIN; k <= UNICODE_COMMENT; k++) {
        if (memcmp(header + 48, kinds[k].type, 16) == 0) {
            return k;
        }
    }
    return OTHER;
}

int par2_packet_take(struct par2_catalog *c, const uint8_t *packet, size_t len)
{
    struct packets *p = par2_catalog_packets(c, packet + 32);
    const uint8_t *body = packet + HEADER_SIZE;
    size_t n = len - HEADER_SIZE;
    bool ok = true;
    if (p == NULL) {
        return 0; /* more sets than we look at */
    }
    switch (kind_of(packet)) {
    case MAIN:
        ok = take_main(c, p, body, n);
        break;
    case DESCRIPTION:
        ok = take_description(c, p, body, n);
        break;
    case SUMS:
        ok = take_sums(c, p, body, n);
        break;
    case UNICODE_NAME:
        ok = take_unicode_name(c, p, body, n);
        break;
    case CREATOR:
        ok = take_text(c, &p->creator, body, n, false);
        break;
    case COMMENT:
        ok = take_text(c, &p->comment, body, n, false);
        break;
    case UNICODE_COMMENT:
        ok = take_text(c, &p->comment, body + (n >= 16 ? 16 : 0), n >= 16 ? n - 16 : 0, true);
        break;
    case RECOVERY:
    case OTHER:
        break;
    }
    return ok ? 0 : -ENOMEM;
}

/* ---- the search ---- */

struct search {
    struct par2_catalog *catalog;
    const struct reader *reader;
    uint32_t volume;
    bool eager;
    struct par2_found *found;
    uint64_t budget; /* bytes that may still be hashed in vain */
    uint64_t at;     /* of window[0] */
    size_t len;
    uint8_t *window;
    size_t room;     /* of the window: WINDOW, or the whole of a smaller file */
    uint8_t *packet; /* room for one packet, of packet_room bytes */
    size_t packet_room;
};

/* n <= s->room bytes at `at`, or NULL at the end or when they can not be read. */
static const uint8_t *look(struct search *s, uint64_t at, size_t n)
{
    if (at < s->at || at + n > s->at + s->len) {
        ssize_t got = s->reader->read(s->reader->arg, s->window, s->room, at);
        s->at = at;
        s->len = got > 0 ? (size_t)got : 0;
    }
    return n <= s->len - (at - s->at) && at + n <= s->at + s->len ? s->window + (at - s->at) : NULL;
}

/* The next magic at or behind `at`; UINT64_MAX: none. */
static uint64_t find_magic(struct search *s, uint64_t at)
{
    while (look(s, at, sizeof(magic)) != NULL) {
        const uint8_t *from = s->window + (at - s->at);
        size_t n = s->len - (size_t)(at - s->at);
        const uint8_t *hit = memmem(from, n, magic, sizeof(magic));
        if (hit != NULL) {
            return at + (uint64_t)(hit - from);
        }
        at += n - (sizeof(magic) - 1);
    }
    return UINT64_MAX;
}

/* Is the MD5 of the packet right? Reads it in pieces. */
static bool hash_stream(struct search *s, uint64_t at, uint64_t len, const uint8_t expected[16])
{
    struct md5 m;
    uint8_t got[16];
    md5_init(&m);
    for (uint64_t done = 32; done < len;) {
        size_t n = len - done < s->room ? (size_t)(len - done) : s->room;
        const uint8_t *p = look(s, at + done, n);
        if (p == NULL) {
            return false;
        }
        md5_update(&m, p, n);
        done += n;
    }
    md5_final(&m, got);
    return memcmp(got, expected, 16) == 0;
}

/* Reads a whole packet, whose bytes are there, to s->packet. 0, or -ENOMEM; *ok: its MD5 is right. */
static int hash_whole(struct search *s, uint64_t at, size_t len, bool *ok)
{
    *ok = false;
    if (len > s->packet_room) {
        mem_free(s->packet);
        s->packet = mem_alloc(len);
        s->packet_room = s->packet != NULL ? len : 0;
        if (s->packet == NULL) {
            return -ENOMEM;
        }
    }
    for (size_t done = 0; done < len;) {
        size_t n = len - done < s->room ? len - done : s->room;
        const uint8_t *p = look(s, at + done, n);
        if (p == NULL) {
            return 0;
        }
        memcpy(s->packet + done, p, n);
        done += n;
    }
    uint8_t md5[16];
    md5_of(s->packet + 32, len - 32, md5);
    *ok = memcmp(md5, s->packet + 16, 16) == 0;
    return 0;
}

static int recovery_packet(struct search *s, uint64_t at, const uint8_t header[HEADER_SIZE],
                           uint64_t len, bool *ok)
{
    uint8_t md5[16];
    memcpy(md5, header + 16, 16);
    struct packets *p = par2_catalog_packets(s->catalog, header + 32);
    const uint8_t *head = look(s, at, RECOVERY_HEADER);
    *ok = false;
    if (head == NULL || len < RECOVERY_HEADER) {
        return 0;
    }
    uint32_t exponent = par2_get32(head + HEADER_SIZE);
    struct recovery r = {
        .volume = s->volume, .offset = at, .size = len - RECOVERY_HEADER, .proof = UNPROVEN};
    r.exponent = (uint16_t)exponent;
    bool exact = p != NULL && p->has_main && r.size == p->block_size;
    if (s->eager || !exact) {
        if (!hash_stream(s, at, len, md5)) {
            return 0;
        }
        r.proof = PROVEN;
    }
    *ok = true;
    if (p == NULL || exponent >= PAR2_RECOVERY_MAX || (p->has_main && !exact)) {
        return 0;
    }
    s->found->recovery++;
    return par2_catalog_add_recovery(s->catalog, p, &r);
}

/* What begins with a magic at `at`. *next: where to go on. */
static int one_packet(struct search *s, uint64_t at, uint64_t *next)
{
    uint8_t header[HEADER_SIZE];
    const uint8_t *p = look(s, at, HEADER_SIZE);
    *next = at + sizeof(magic);
    if (p == NULL) {
        return 0;
    }
    memcpy(header, p, HEADER_SIZE);
    uint64_t len = par2_get64(header + 8);
    enum kind kind = kind_of(header);
    s->found->damaged++; /* until it is seen to be good */
    if (len < HEADER_SIZE || len % 4 != 0 || len > s->reader->size - at || len > kinds[kind].max) {
        return 0;
    }
    bool ok = false;
    int rv = 0;
    if (kind == RECOVERY) {
        rv = recovery_packet(s, at, header, len, &ok);
    } else if (kind == OTHER) {
        ok = hash_stream(s, at, len, header + 16);
    } else {
        rv = hash_whole(s, at, (size_t)len, &ok);
        if (rv == 0 && ok) {
            rv = par2_packet_take(s->catalog, s->packet, (size_t)len);
        }
    }
    if (ok) {
        s->found->damaged--;
        s->found->packets++;
        *next = at + len;
    } else if (len > s->budget) {
        s->found->given_up = true;
    } else {
        s->budget -= len;
    }
    return rv;
}

int par2_packet_scan(struct par2_catalog *c, const struct reader *r, uint32_t volume, bool eager,
                     struct par2_found *found, struct err *e)
{
    struct search s = {.catalog = c, .reader = r, .volume = volume, .eager = eager, .found = found};
    s.budget = r->size > UINT64_MAX / 8 ? UINT64_MAX : FAILED_FREE + FAILED_TIMES * r->size;
    s.room = r->size < WINDOW ? (size_t)r->size : WINDOW;
    s.window = mem_alloc(s.room);
    int rv = s.window != NULL ? 0 : -ENOMEM;
    for (uint64_t at = 0; rv == 0 && !found->given_up;) {
        at = find_magic(&s, at);
        if (at == UINT64_MAX) {
            break;
        }
        rv = one_packet(&s, at, &at);
    }
    mem_free(s.window);
    mem_free(s.packet);
    return rv == 0 ? 0 : err_sys(e, rv, "packets");
}
