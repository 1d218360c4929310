/* words.h - the words for the enums of queue.h: NZBGet's in replies and commands, ours in the saved form. */
#ifndef QUEUE_WORDS_H
#define QUEUE_WORDS_H

struct queue_words {
    const char *const *word;
    int count;
};

extern const struct queue_words queue_dupe_mode_words;     /* SCORE ALL FORCE */
extern const struct queue_words queue_delete_words;        /* NONE MANUAL HEALTH ... */
extern const struct queue_words queue_mark_words;          /* NONE BAD GOOD SUCCESS */
extern const struct queue_words queue_url_status_words;    /* NONE UNKNOWN SUCCESS ... */
extern const struct queue_words queue_par_status_words;    /* NONE FAILURE SUCCESS ... */
extern const struct queue_words queue_unpack_status_words; /* NONE FAILURE SUCCESS ... */
extern const struct queue_words queue_step_status_words;   /* NONE FAILURE SUCCESS */
extern const struct queue_words queue_place_words;         /* active history hidden */
extern const struct queue_words queue_reload_words;        /* as-was retry-failed fresh */

int queue_word_find(const struct queue_words *words, const char *word); /* case ignored; -1: none */
const char *queue_word(const struct queue_words *words, int value);

#endif
