#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <uv.h>

#include "base/check.h"

/* AES-128 first: a tenth cheaper per byte than AES-256 on every CPU with AES instructions. */
#define SUITES_13 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define CIPHERS_12 \
    "ECDHE+AES128+AESGCM:ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:HIGH:!aNULL:!eNULL:!RC4:!3DES"

/* The oldest reason in OpenSSL's queue is the root of the trouble. */
static const char *reason(void)
{
    unsigned long code = ERR_peek_error();
    const char *text = code != 0 ? ERR_reason_error_string(code) : NULL;
    return text != NULL ? text : "unknown reason";
}

static int fail(struct err *e, int code, const char *what)
{
    err_set(e, code, "%s: %s", what, reason());
    ERR_clear_error();
    return code;
}

/* OpenSSL offers every new session here; 1 would keep the reference. */
static int on_new_session(SSL *ssl, SSL_SESSION *session)
{
    struct net_tls *t = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    if (t->verify && SSL_get_verify_result(ssl) != X509_V_OK) {
        return 0;
    }
    SSL_SESSION_free(t->session);
    t->session = session;
    return 1;
}

static int set_ciphers(SSL_CTX *ctx, const char *ciphers, struct err *e)
{
    if (ciphers == NULL || ciphers[0] == '\0') {
        SSL_CTX_set_ciphersuites(ctx, SUITES_13);
        SSL_CTX_set_cipher_list(ctx, CIPHERS_12);
        return 0;
    }
    /* One option for both lists, as users know it: names of TLS 1.3 are taken by one, all others by the other. */
    int old = SSL_CTX_set_cipher_list(ctx, ciphers);
    int new = SSL_CTX_set_ciphersuites(ctx, ciphers);
    ERR_clear_error();
    if (!old && !new) {
        return err_set(e, ERR_INVALID, "cipher list \"%s\": no known cipher in it", ciphers);
    }
    return 0;
}

static int new_ctx(struct net_tls *t, const SSL_METHOD *method, struct err *e)
{
    ERR_clear_error();
    t->ctx = SSL_CTX_new(method);
    if (t->ctx == NULL) {
        return fail(e, UV_ENOMEM, "TLS context");
    }
    SSL_CTX_set_app_data(t->ctx, t);
    SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(t->ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(t->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return 0;
}

int net_tls_init_client(struct net_tls *t, const struct net_tls_client *opts, struct err *e)
{
    *t = (struct net_tls){.verify = !opts->no_verify};
    int rv = new_ctx(t, TLS_client_method(), e);
    if (rv != 0) {
        return rv;
    }
    rv = set_ciphers(t->ctx, opts->ciphers, e);
    if (rv != 0) {
        goto err_after_ctx;
    }
    SSL_CTX_set_verify(t->ctx, t->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (opts->ca_file != NULL && opts->ca_file[0] != '\0') {
        if (!SSL_CTX_load_verify_file(t->ctx, opts->ca_file)) {
            rv = err_set(e, ERR_INVALID, "certificate store %s: %s", opts->ca_file, reason());
            goto err_after_ctx;
        }
    } else if (!SSL_CTX_set_default_verify_paths(t->ctx)) {
        rv = fail(e, ERR_TLS, "system certificate store");
        goto err_after_ctx;
    }
    SSL_CTX_set_session_cache_mode(t->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(t->ctx, on_new_session);
    return 0;

err_after_ctx:
    net_tls_close(t);
    return rv;
}

static int add_extension(X509 *cert, int nid, const char *value)
{
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    int ok = ext != NULL && X509_add_ext(cert, ext, -1);
    X509_EXTENSION_free(ext);
    return ok;
}

static int fill_certificate(X509 *cert, EVP_PKEY *key)
{
    unsigned char serial[8];
    if (RAND_bytes(serial, sizeof(serial)) != 1) {
        return 0;
    }
    serial[0] &= 0x7f;
    uint64_t number;
    memcpy(&number, serial, sizeof(number));
    X509_NAME *name = X509_get_subject_name(cert);
    return X509_set_version(cert, X509_VERSION_3) &&
           ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), number >> 1) &&
           X509_gmtime_adj(X509_getm_notBefore(cert), -86400L) != NULL &&
           X509_gmtime_adj(X509_getm_notAfter(cert), 10L * 365 * 86400) != NULL &&
           X509_set_pubkey(cert, key) &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost",
                                      -1, -1, 0) &&
           X509_set_issuer_name(cert, name) &&
           add_extension(cert, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1,IP:::1") &&
           add_extension(cert, NID_basic_constraints, "critical,CA:TRUE") &&
           X509_sign(cert, key, EVP_sha256());
}

static int use_self_made(SSL_CTX *ctx, struct err *e)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    int ok = key != NULL && cert != NULL && fill_certificate(cert, key) &&
             SSL_CTX_use_certificate(ctx, cert) && SSL_CTX_use_PrivateKey(ctx, key);
    X509_free(cert);
    EVP_PKEY_free(key);
    return ok ? 0 : fail(e, ERR_TLS, "self-made certificate");
}

static int use_files(SSL_CTX *ctx, const char *cert_file, const char *key_file, struct err *e)
{
    if (!SSL_CTX_use_certificate_chain_file(ctx, cert_file)) {
        err_set(e, ERR_INVALID, "certificate %s: %s", cert_file, reason());
    } else if (!SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM)) {
        err_set(e, ERR_INVALID, "key %s: %s", key_file, reason());
    } else if (!SSL_CTX_check_private_key(ctx)) {
        err_set(e, ERR_INVALID, "%s is not the key of %s", key_file, cert_file);
    } else {
        return 0;
    }
    ERR_clear_error();
    return ERR_INVALID;
}

int net_tls_init_server(struct net_tls *t, const char *cert_file, const char *key_file,
                        struct err *e)
{
    PRE((cert_file == NULL) == (key_file == NULL));
    *t = (struct net_tls){.is_server = true};
    int rv = new_ctx(t, TLS_server_method(), e);
    if (rv != 0) {
        return rv;
    }
    static const unsigned char session_ctx[] = "weir";
    SSL_CTX_set_session_id_context(t->ctx, session_ctx, sizeof(session_ctx) - 1);
    rv = set_ciphers(t->ctx, NULL, e);
    if (rv == 0) {
        rv = cert_file != NULL ? use_files(t->ctx, cert_file, key_file, e)
                               : use_self_made(t->ctx, e);
    }
    if (rv != 0) {
        net_tls_close(t);
    }
    return rv;
}

void net_tls_close(struct net_tls *t)
{
    SSL_SESSION_free(t->session);
    SSL_CTX_free(t->ctx);
    *t = (struct net_tls){0};
}

static bool is_address(const char *host)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static int set_host(SSL *ssl, const char *host)
{
    if (is_address(host)) { /* RFC 6066: no addresses in SNI */
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
    }
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
}

SSL *net_tls_new_ssl(struct net_tls *t, const char *host, struct err *e)
{
    PRE(t->is_server == (host == NULL));
    ERR_clear_error();
    SSL *ssl = SSL_new(t->ctx);
    if (ssl == NULL) {
        fail(e, UV_ENOMEM, "TLS connection");
        return NULL;
    }
    if (t->is_server) {
        SSL_set_accept_state(ssl);
        return ssl;
    }
    SSL_set_connect_state(ssl);
    if (!set_host(ssl, host)) {
        err_set(e, ERR_INVALID, "\"%s\" is not a host name", host);
        ERR_clear_error();
        SSL_free(ssl);
        return NULL;
    }
    if (t->session != NULL) {
        SSL_set_session(ssl, t->session);
    }
    return ssl;
}

static int words(const struct net_tls *t, SSL *ssl, struct err *e)
{
    unsigned long code = ERR_peek_error();
    int why = ERR_GET_REASON(code);
    long verdict = SSL_get_verify_result(ssl);
    if (!t->is_server && t->verify && verdict != X509_V_OK) {
        return err_set(e, ERR_CERT, "certificate refused: %s",
                       X509_verify_cert_error_string(verdict));
    }
    if (why == SSL_R_WRONG_VERSION_NUMBER || why == SSL_R_HTTP_REQUEST) {
        return err_set(e, ERR_TLS, "the peer does not speak TLS on this port");
    }
    if (why == SSL_R_UNSUPPORTED_PROTOCOL || why == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION ||
        why == SSL_R_NO_PROTOCOLS_AVAILABLE) {
        return err_set(e, ERR_TLS, "no common TLS version (1.2 or newer is needed)");
    }
    if (why == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE || why == SSL_R_NO_SHARED_CIPHER) {
        return err_set(e, ERR_TLS, "no common cipher");
    }
    return err_set(e, ERR_TLS, "TLS: %s", reason());
}

int net_tls_error(const struct net_tls *t, SSL *ssl, int ret, int sys_code, struct err *e)
{
    int rv;
    int kind = SSL_get_error(ssl, ret);
    if (kind == SSL_ERROR_SYSCALL && sys_code != 0) {
        rv = err_sys(e, sys_code, "TLS");
    } else if (kind == SSL_ERROR_SYSCALL) {
        rv = err_set(e, UV_EOF, "closed by the peer");
    } else {
        rv = words(t, ssl, e);
    }
    ERR_clear_error();
    return rv;
}
