/* Any bytes: a cleaned name is one harmless component, and cleaning it again changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(expr) ((expr) ? (void)0 : abort())

static void check(const char *name, size_t len)
{
    MUST(len >= 1 && len <= NAME_LEN_MAX && strlen(name) == len);
    MUST(strpbrk(name, "/\\<>:\"|?*\n\r\t\x1b\x7f") == NULL);
    MUST(strchr(".-~@ ", name[0]) == NULL && strchr(". ", name[len - 1]) == NULL);
    for (size_t i = 0, n; i < len; i += n) {
        n = utf8_char_len(name + i, len - i);
        MUST(n > 0);
    }
    char again[NAME_LEN_MAX + 1];
    MUST(name_clean(NAME_FILE, name, len, again) == len && strcmp(name, again) == 0);
    MUST(name_clean(NAME_TITLE, name, len, again) == len && strcmp(name, again) == 0);
    name_numbered(name, 999, again);
    MUST(strlen(again) <= NAME_LEN_MAX && strchr(again, '/') == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *in = (const char *)data;
    char out[NAME_LEN_MAX + 1], path[1024], again[1024];
    check(out, name_clean(NAME_FILE, in, size, out));
    check(out, name_clean(NAME_TITLE, in, size, out));
    if (name_clean_path(in, size, path, sizeof(path))) {
        MUST(path[0] != '\0' && path[0] != '/' && strstr(path, "//") == NULL);
        MUST(name_clean_path(path, strlen(path), again, sizeof(again)) && strcmp(path, again) == 0);
        for (char *part = strtok(path, "/"); part != NULL; part = strtok(NULL, "/")) {
            check(part, strlen(part));
        }
    } else {
        MUST(path[0] == '\0');
    }
    return 0;
}
