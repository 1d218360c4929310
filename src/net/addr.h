/* addr.h - socket addresses as values and in words. Pure; any thread. */
#ifndef NET_ADDR_H
#define NET_ADDR_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

union net_addr {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* From a numeric address, without brackets; 0 or ERR_INVALID. */
int net_addr_parse(union net_addr *a, const char *text, uint16_t port);
socklen_t net_addr_len(const union net_addr *a);
uint16_t net_addr_port(const union net_addr *a);
void net_addr_set_port(union net_addr *a, uint16_t port);
/* "127.0.0.1:119", "[::1]:119". */
void net_addr_text(const union net_addr *a, char *buf, size_t size);

#endif
