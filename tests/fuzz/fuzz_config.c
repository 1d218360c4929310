/* Any bytes as a configuration file: it loads, every string is there, problems hold no control bytes, and what it says
 * survives being written into a file and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/redact.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(expr) ((expr) ? (void)0 : abort())

static const char *const env[] = {"HOME=/h", NULL};

static struct config *load(const char *text, size_t len, const char *server)
{
    struct config_input in = {
        .file = "f", .text = text, .text_len = len, .env = env, .server = server};
    struct config *c = NULL;
    struct err e = {.code = 0};
    MUST(config_load(&in, &c, &e) == 0);
    return c;
}

static void check_problems(const struct config *c)
{
    size_t errors = 0;
    for (size_t i = 0; i < c->problems_count; i++) {
        char text[2048];
        config_problem_text(c, &c->problems[i], text, sizeof(text));
        for (const char *p = text; *p != '\0'; p++) {
            MUST((unsigned char)*p >= ' ');
        }
        errors += c->problems[i].level == CONFIG_ERROR;
    }
    MUST(errors == c->errors_count || c->problems_count == CONFIG_PROBLEMS_MAX);
}

static void check_entries(const struct config *c)
{
    for (size_t i = 0; i < c->entries_count; i++) {
        MUST(c->entries[i].name != NULL && c->entries[i].raw != NULL &&
             c->entries[i].value != NULL);
    }
    MUST(c->main_dir[0] == '/' && c->dest_dir[0] == '/' && c->queue_dir[0] == '/');
    for (size_t i = 0; i < c->servers_count; i++) {
        MUST(c->servers[i].host[0] != '\0' && c->servers[i].port >= 1 &&
             c->servers[i].port <= 65535);
    }
    for (size_t i = 0; i < c->categories_count; i++) {
        MUST(c->categories[i].name[0] != '\0' && c->categories[i].dest_dir[0] == '/');
    }
    for (size_t i = 0; i < c->tasks_count; i++) {
        MUST(c->tasks[i].times_count > 0 && c->tasks[i].weekdays != 0);
    }
}

/* Everything that was set, saved and loaded again, is the same. */
static void check_rewrite(const struct config *c, const char *text, size_t len)
{
    struct config_pair *pairs = mem_zalloc(c->entries_count, sizeof(*pairs));
    size_t n = 0;
    for (size_t i = 0; i < c->entries_count; i++) {
        if (c->entries[i].from == CONFIG_FROM_FILE) {
            pairs[n++] = (struct config_pair){c->entries[i].name, c->entries[i].raw};
        }
    }
    char *out = NULL;
    size_t out_len;
    struct err e = {.code = 0};
    if (config_rewrite(text, len, pairs, n, &out, &out_len, &e) == 0) {
        struct config *again = load(out, out_len, NULL);
        MUST(config_diff(c, again, NULL, NULL) == 0);
        config_free(again);
    }
    mem_free(out);
    mem_free(pairs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct config *c = load(text, size, NULL);
    check_problems(c);
    check_entries(c);
    check_rewrite(c, text, size);
    config_free(c);
    char *url = mem_strndup(text, size);
    c = load("", 0, url);
    check_problems(c);
    check_entries(c);
    config_free(c);
    mem_free(url);
    redact_forget();
    return 0;
}
