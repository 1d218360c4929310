#include "queue/words.h"

#include <strings.h>

#include "base/check.h"

#define WORDS(name, ...)                                    \
    static const char *const name##_list[] = {__VA_ARGS__}; \
    const struct queue_words name = {name##_list, sizeof(name##_list) / sizeof(name##_list[0])}

WORDS(queue_dupe_mode_words, "SCORE", "ALL", "FORCE");
WORDS(queue_delete_words, "NONE", "MANUAL", "HEALTH", "DUPE", "BAD", "GOOD", "COPY", "SCAN");
WORDS(queue_mark_words, "NONE", "BAD", "GOOD", "SUCCESS");
WORDS(queue_url_status_words, "NONE", "UNKNOWN", "SUCCESS", "FAILURE", "SCAN_SKIPPED",
      "SCAN_FAILURE");
WORDS(queue_par_status_words, "NONE", "FAILURE", "SUCCESS", "REPAIR_POSSIBLE", "MANUAL");
WORDS(queue_unpack_status_words, "NONE", "FAILURE", "SUCCESS", "SPACE", "PASSWORD");
WORDS(queue_step_status_words, "NONE", "FAILURE", "SUCCESS");
WORDS(queue_place_words, "active", "history", "hidden");
WORDS(queue_reload_words, "as-was", "retry-failed", "fresh");

int queue_word_find(const struct queue_words *words, const char *word)
{
    for (int i = 0; i < words->count; i++) {
        if (strcasecmp(words->word[i], word) == 0) {
            return i;
        }
    }
    return -1;
}

const char *queue_word(const struct queue_words *words, int value)
{
    PRE(value >= 0 && value < words->count);
    return words->word[value];
}
