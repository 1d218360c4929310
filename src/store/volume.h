/* volume.h - bytes and articles per server and day, and the counters that clients may reset.
 *
 * Server 0 is the sum of all and has rows of its own, so that it stays when a server goes. Days are since 1970, in the
 * caller's time zone. */
#ifndef STORE_VOLUME_H
#define STORE_VOLUME_H

#include "store/store.h"

struct store_volume {
    uint32_t server;
    uint32_t day;
    uint64_t bytes;
    uint64_t articles_done, articles_failed;
};
/* Adds to the server's day, to the sum's, and to both counters. `server` > 0. */
int store_volume_add(struct store *s, const struct store_volume *add, struct clock_time now,
                     struct err *e);
/* Rows: struct store_volume of one server from `from_day` on, by day; days without traffic have none. */
int store_volume_days(struct store *s, uint32_t server, uint32_t from_day,
                      const struct store_range *range, struct store_page *page, struct err *e);

struct store_counter {
    uint32_t server;
    uint64_t total_bytes;
    uint64_t custom_bytes; /* since custom_at */
    int64_t custom_at, reset_at, data_at;
    uint32_t first_day; /* of its rows; 0: there are none */
};
/* Rows: struct store_counter, by server. */
int store_volume_counters(struct store *s, struct store_page *page, struct err *e);
/* server -1: all. custom: only the counter since; else everything, days included. ERR_NOT_FOUND: no such server. */
int store_volume_reset(struct store *s, int32_t server, bool custom, struct clock_time now,
                       struct err *e);

#endif
