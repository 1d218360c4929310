#include "lib/certs.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#include "base/check.h"

static FILE *open_file(const char *prefix, const char *ending, const char *mode)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s%s", prefix, ending);
    FILE *f = fopen(path, mode);
    PRE(f != NULL);
    return f;
}

static void add_extension(X509 *cert, int nid, const char *value)
{
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    PRE(ext != NULL && X509_add_ext(cert, ext, -1));
    X509_EXTENSION_free(ext);
}

static void sign(X509 *cert, EVP_PKEY *own_key, const char *issuer)
{
    if (issuer == NULL) {
        X509_set_issuer_name(cert, X509_get_subject_name(cert));
        PRE(X509_sign(cert, own_key, EVP_sha256()));
        return;
    }
    FILE *f = open_file(issuer, ".crt", "r");
    X509 *ca = PEM_read_X509(f, NULL, NULL, NULL);
    fclose(f);
    f = open_file(issuer, ".key", "r");
    EVP_PKEY *ca_key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
    fclose(f);
    PRE(ca != NULL && ca_key != NULL);
    X509_set_issuer_name(cert, X509_get_subject_name(ca));
    PRE(X509_sign(cert, ca_key, EVP_sha256()));
    X509_free(ca);
    EVP_PKEY_free(ca_key);
}

void certs_make(const char *prefix, const struct certs_want *want)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    PRE(key != NULL && cert != NULL);
    X509_set_version(cert, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), want->issuer != NULL ? 2 : 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), want->from_s);
    X509_gmtime_adj(X509_getm_notAfter(cert), want->until_s);
    X509_set_pubkey(cert, key);
    const char *cn = want->issuer != NULL ? "leaf" : "root";
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)cn, -1, -1, 0);
    add_extension(cert, NID_basic_constraints, want->issuer != NULL ? "CA:FALSE" : "CA:TRUE");
    add_extension(cert, NID_subject_alt_name, want->names);
    sign(cert, key, want->issuer);
    FILE *f = open_file(prefix, ".crt", "w");
    PRE(PEM_write_X509(f, cert));
    fclose(f);
    f = open_file(prefix, ".key", "w");
    PRE(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL));
    fclose(f);
    X509_free(cert);
    EVP_PKEY_free(key);
}
