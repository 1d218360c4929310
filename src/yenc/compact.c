#include "yenc/compact.h"

#include <pthread.h>

uint8_t yenc_compact_table[YENC_COMPACT_ENTRIES][16] __attribute__((aligned(64)));

static void fill(void)
{
    for (unsigned m = 0; m < YENC_COMPACT_ENTRIES; m++) {
        unsigned n = 0;
        for (unsigned i = 0; i < 15; i++) {
            if (m >> i & 1) {
                yenc_compact_table[m][n++] = (uint8_t)i;
            }
        }
        while (n < 16) {
            yenc_compact_table[m][n++] =
                15; /* the last byte: kept, or overwritten by what follows */
        }
    }
}

void yenc_compact_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
}
