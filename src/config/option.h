/* option.h - the table of options: every name Weir knows, what it may be, what it is by itself, and what it means.
 *
 * Names, value words and sections are those of NZBGet, so that its files and its clients fit. A row says where its
 * value goes in `struct config` (config.h); checking, the sample file, `weir config`, the RPC methods about
 * configuration and its web form are all made from these rows, so they cannot disagree. Constant; any thread. */
#ifndef CONFIG_OPTION_H
#define CONFIG_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum config_kind {
    CONFIG_YESNO,  /* bool; also true/false, on/off, 1/0, enable(d)/disable(d) */
    CONFIG_NUMBER, /* int64_t from min to max, in `unit` */
    CONFIG_OCTAL,  /* int64_t, written in octal */
    CONFIG_WORD,   /* int: the index in `words` */
    CONFIG_TEXT,   /* const char * */
    CONFIG_SECRET, /* const char *; never shown; blanks at its ends belong to it */
    CONFIG_PATH,   /* const char *, made absolute */
    CONFIG_LIST,   /* struct config_list: parts between commas or semicolons */
    CONFIG_PATHS,  /* struct config_list, each made absolute */
};

enum config_flag {
    CONFIG_RESTART =
        1, /* a change counts from the next start on; without it, from the next reload */
    CONFIG_NO_EFFECT =
        2, /* known, checked and shown to clients, but nothing in Weir depends on it */
    CONFIG_FILE_ONLY =
        4, /* never taken from RPC: it names a program to run or a place to run one from */
    CONFIG_NOT_EMPTY = 8,
    CONFIG_UNSET =
        16, /* to set it to its default is not the same as not to set it: a comment in the sample */
};

enum config_group {
    CONFIG_GLOBAL,
    CONFIG_SERVER,
    CONFIG_CATEGORY,
    CONFIG_FEED,
    CONFIG_TASK,
    CONFIG_GROUPS
};

#define CONFIG_NO_FIELD SIZE_MAX

struct config_option {
    const char *name; /* "DestDir"; in a numbered group what follows the dot: "Host" */
    enum config_kind kind;
    const char *preset; /* its value when nobody sets it; may hold ${Name} */
    size_t field;       /* offset in struct config, or in the group's struct; or CONFIG_NO_FIELD */
    unsigned flags;
    int64_t min, max;
    const char *unit;  /* of a number, for people: "seconds" */
    const char *words; /* "auto always force manual" */
    const char *also;  /* other spellings: "yes=always no=auto" */
    const char *since; /* the NZBGet version that brought it; "Weir": ours; NULL: 21 or before */
    const char *help;  /* one line without the full stop */
    const char *
        more; /* longer help, or NULL; blank-separated, wrapped when printed; \n begins a new paragraph */
};

struct config_section {
    const char *title;
    enum config_group group;
    const struct config_option *options; /* ends with a row without a name */
};

/* In the order of the sample file; ends with a section without a title. */
extern const struct config_section config_sections[];

/* "Server", "Category", "Feed", "Task"; "" for CONFIG_GLOBAL. */
const char *config_group_name(enum config_group group);
/* The rows of a numbered group. */
const struct config_option *config_group_options(enum config_group group);

/* A name that some version of NZBGet knew. */
struct config_old_name {
    enum config_group group;
    const char *name;
    const char *now;  /* what it is called today; NULL: it has no meaning any more */
    const char *note; /* what to use instead, or NULL */
};
extern const struct config_old_name config_old_names[]; /* ends with a row without a name */

enum { CONFIG_NAME_MAX = 128, CONFIG_NUMBER_MAX = 9999 };

/* What a name says: the canonical spelling, and the row (NULL for an extension's "Name:option"). */
struct config_name {
    char name[CONFIG_NAME_MAX];
    const struct config_option *option;
    enum config_group group;
    unsigned number;                   /* of a numbered group, from 1 */
    const struct config_old_name *old; /* it was found under an old name */
};

/* False: unknown; then `near` (CONFIG_NAME_MAX bytes) is the nearest known name or "". */
bool config_resolve(const char *name, size_t len, struct config_name *out, char *near);

/* Is the value of this option (also of an extension, also misspelled) to be hidden from eyes and logs? */
bool config_is_secret(const struct config_option *o, const char *name);
/* What the restricted user of the RPC may not read: login, network and extension options. */
bool config_is_protected(const char *name);
/* "auto, always, force or manual"; "a number from 0 to 99 (seconds)"; `out` is always terminated. */
void config_allowed(const struct config_option *o, char *out, size_t size);
/* "WEIR_SERVER1_HOST" or "NZBOP_SERVER1_HOST": capitals, every other character a line. */
void config_variable(const char *prefix, const char *name, char *out, size_t size);

#endif
