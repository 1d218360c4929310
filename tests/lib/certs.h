/* certs.h - certificates for tests, made when they are needed: good, expired, for another host, by another authority. */
#ifndef TESTS_CERTS_H
#define TESTS_CERTS_H

struct certs_want {
    const char *names; /* "DNS:localhost,IP:127.0.0.1" */
    long from_s;       /* valid from .. until, in seconds from now */
    long until_s;
    const char *issuer; /* path prefix of the authority that signs; NULL: signs itself */
};

/* Writes PREFIX.crt and PREFIX.key; aborts when it cannot. */
void certs_make(const char *prefix, const struct certs_want *want);

#endif
