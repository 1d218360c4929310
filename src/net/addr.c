#include "net/addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

int net_addr_parse(union net_addr *a, const char *text, uint16_t port)
{
    memset(a, 0, sizeof(*a));
    if (inet_pton(AF_INET, text, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
    } else if (inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1) {
        a->v6.sin6_family = AF_INET6;
    } else {
        return ERR_INVALID;
    }
    net_addr_set_port(a, port);
    return 0;
}

socklen_t net_addr_len(const union net_addr *a)
{
    return a->any.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
}

uint16_t net_addr_port(const union net_addr *a)
{
    return ntohs(a->any.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port);
}

void net_addr_set_port(union net_addr *a, uint16_t port)
{
    if (a->any.sa_family == AF_INET6) {
        a->v6.sin6_port = htons(port);
    } else {
        a->v4.sin_port = htons(port);
    }
}

void net_addr_text(const union net_addr *a, char *buf, size_t size)
{
    char ip[INET6_ADDRSTRLEN] = "?";
    if (a->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a->v6.sin6_addr, ip, sizeof(ip));
        snprintf(buf, size, "[%s]:%u", ip, net_addr_port(a));
    } else {
        inet_ntop(AF_INET, &a->v4.sin_addr, ip, sizeof(ip));
        snprintf(buf, size, "%s:%u", ip, net_addr_port(a));
    }
}
