/* tls.h - TLS contexts: what is agreed with a peer before any connection exists.
 *
 * A context belongs to one loop thread and is used by streams of that thread only, so that a client context can keep
 * the newest session of its server for resumption without a lock. It must outlive its streams. One client context is
 * for one server (host, port, settings): a session is never offered to anybody else, and never kept when the peer's
 * certificate was not accepted. TLS 1.2 is the oldest version spoken, in both directions. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "base/err.h"

struct net_tls {
    SSL_CTX *ctx;
    bool is_server;
    bool verify;          /* client: the certificate must be valid and be the host's */
    SSL_SESSION *session; /* client: the newest one, or NULL */
};

struct net_tls_client {
    bool no_verify;      /* any certificate will do; to be shown to the user as such */
    const char *ciphers; /* OpenSSL's cipher list, for TLS 1.3 suites too; NULL: our default */
    const char *ca_file; /* PEM file of trusted roots instead of the system's; NULL: the system's */
};

/* 0, or an error that names the option at fault. */
int net_tls_init_client(struct net_tls *t, const struct net_tls_client *opts, struct err *e);
/* PEM files; both NULL: a key and a self-signed certificate for "localhost" are made now. */
int net_tls_init_server(struct net_tls *t, const char *cert_file, const char *key_file,
                        struct err *e);
void net_tls_close(struct net_tls *t);

/* A connection's half, without a socket. `host` is the name the peer must prove (SNI and verification); an address is
 * checked against the certificate's addresses. NULL only on the server side. */
SSL *net_tls_new_ssl(struct net_tls *t, const char *host, struct err *e);

/* Says in words why an SSL call failed (`ret` is what it returned) and empties OpenSSL's error queue. ERR_CERT: the
 * peer is not who it should be; ERR_TLS: the two cannot agree or the stream is damaged; UV_EOF or UV_ECONNRESET: the
 * connection went away. */
int net_tls_error(const struct net_tls *t, SSL *ssl, int ret, int sys_code, struct err *e);

#endif
