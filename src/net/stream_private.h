/* stream_private.h - between the files of src/net only. */
#ifndef NET_STREAM_PRIVATE_H
#define NET_STREAM_PRIVATE_H

#include "net/stream.h"

enum {
    NET_RECORD_MAX = 16 * 1024, /* plaintext of one TLS record */
    NET_OUT_HIGH = 128 * 1024,  /* encrypted bytes that wait: no more is encrypted above this */
    NET_OUT_MAX = 1024 * 1024,  /* and OpenSSL's own messages may not push it beyond this */
};

enum { ST_HANDSHAKE, ST_OPEN, ST_CLOSING, ST_CLOSED, ST_NR };

/* The turn of a kicked stream: it begins, sends, or goes on with what was left over. */
void net_stream_turn(struct net_stream *s);
/* The meter lets it read again. */
void net_stream_wake(struct net_stream *s);
void net_loop_kick(struct net_loop *nl, struct list *node);
BIO_METHOD *net_bio_method(void);

/* stream_io.c: the socket */
ssize_t net_io_recv(struct net_stream *s, uint8_t *p, size_t n);
/* Sends `out`; false when the socket is full or the stream failed. */
bool net_io_flush(struct net_stream *s, struct net_bytes *b);
/* Both buffers in one go (plain streams): what of p was taken. */
size_t net_io_send(struct net_stream *s, struct net_bytes *first, const uint8_t *p, size_t n);
int net_bytes_append(struct net_bytes *b, const void *p, size_t n, size_t max);
void net_bytes_free(struct net_bytes *b);
static inline size_t net_bytes_waiting(const struct net_bytes *b)
{
    return b->len - b->at;
}

#endif
