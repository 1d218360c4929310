#include "queue/b64.h"

#include <stdint.h>
#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Two letters for every 12 bits; made once per call, 8 KB that stay in the first cache. */
static void make_pairs(char (*pairs)[2])
{
    for (unsigned i = 0; i < 4096; i++) {
        pairs[i][0] = letters[i >> 6];
        pairs[i][1] = letters[i & 63];
    }
}

static void encode_tail(const unsigned char *p, size_t n, char *out)
{
    unsigned v = (unsigned)p[0] << 16 | (n > 1 ? (unsigned)p[1] << 8 : 0);
    out[0] = letters[v >> 18];
    out[1] = letters[v >> 12 & 63];
    out[2] = n > 1 ? letters[v >> 6 & 63] : '=';
    out[3] = '=';
}

void b64_encode(const void *bytes, size_t n, char *out)
{
    const unsigned char *p = bytes;
    if (n >= 4096) { /* else making the table costs more than it saves */
        char pairs[4096][2];
        make_pairs(pairs);
        for (; n >= 3; p += 3, n -= 3, out += 4) {
            unsigned v = (unsigned)p[0] << 16 | (unsigned)p[1] << 8 | p[2];
            memcpy(out, pairs[v >> 12], 2);
            memcpy(out + 2, pairs[v & 4095], 2);
        }
    }
    for (; n >= 3; p += 3, n -= 3, out += 4) {
        unsigned v = (unsigned)p[0] << 16 | (unsigned)p[1] << 8 | p[2];
        out[0] = letters[v >> 18];
        out[1] = letters[v >> 12 & 63];
        out[2] = letters[v >> 6 & 63];
        out[3] = letters[v & 63];
    }
    if (n > 0) {
        encode_tail(p, n, out);
    }
}

/* 0..63, or 64 for what is not a letter. */
static const uint8_t *values(void)
{
    /* clang-format off */
    static const uint8_t table[256] = {
#define BAD4 64, 64, 64, 64
#define BAD16 BAD4, BAD4, BAD4, BAD4
        BAD16, BAD16,
        BAD4, BAD4, 64, 64, 64, 62, 64, 64, 64, 63,
        52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 64, 64, BAD4,
        64, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
        15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 64, BAD4,
        64, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
        41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 64, BAD4,
        BAD16, BAD16, BAD16, BAD16, BAD16, BAD16, BAD16, BAD16,
#undef BAD16
#undef BAD4
    };
    /* clang-format on */
    return table;
}

bool b64_decode(const char *text, size_t len, void *out, size_t n)
{
    const uint8_t *value = values();
    const unsigned char *s = (const unsigned char *)text;
    unsigned char *to = out;
    if (len != b64_encoded_len(n)) {
        return false;
    }
    for (; n >= 3; n -= 3, s += 4, to += 3) {
        unsigned a = value[s[0]], b = value[s[1]], c = value[s[2]], d = value[s[3]];
        if (((a | b | c | d) & 64) != 0) {
            return false;
        }
        unsigned v = a << 18 | b << 12 | c << 6 | d;
        to[0] = (unsigned char)(v >> 16);
        to[1] = (unsigned char)(v >> 8);
        to[2] = (unsigned char)v;
    }
    if (n > 0) {
        unsigned a = value[s[0]], b = value[s[1]], c = n > 1 ? value[s[2]] : 0;
        unsigned v = a << 18 | b << 12 | c << 6;
        /* One text for one value: padding is there and the bits it hides are zero. */
        if (((a | b | c) & 64) != 0 || s[3] != '=' || (n == 1 && s[2] != '=') ||
            (v & (n == 1 ? 0xffffu : 0xffu)) != 0) {
            return false;
        }
        to[0] = (unsigned char)(v >> 16);
        if (n > 1) {
            to[1] = (unsigned char)(v >> 8);
        }
    }
    return true;
}
