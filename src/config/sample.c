/* sample.c - the table as a file: what packages install, and the template from which NZBGet's web pages make their
 * forms. They read the first sentence of a comment as the title, the words in brackets at its end as the choices, and
 * "### TITLE ###" as a section. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "config/config.h"

enum { WIDTH = 78 };

/* One paragraph as comment lines. */
static void wrap(FILE *f, const char *text, size_t len)
{
    size_t column = 0;
    for (size_t i = 0; i < len;) {
        size_t word = 0;
        while (i + word < len && text[i + word] != ' ') {
            word++;
        }
        if (column == 0 || column + 1 + word > WIDTH) {
            fputs(column > 0 ? "\n# " : "# ", f);
            column = 2;
        } else {
            fputc(' ', f);
            column++;
        }
        fwrite(text + i, 1, word, f);
        column += word;
        for (i += word; i < len && text[i] == ' ';) {
            i++;
        }
    }
    fputc('\n', f);
}

static void paragraphs(FILE *f, const char *text)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        fputs("#\n", f);
        wrap(f, text, len);
        text += len + (text[len] == '\n');
    }
}

/* "Port of https (1-65535)." */
static void headline(FILE *f, const struct config_option *o)
{
    char line[1024];
    size_t n = (size_t)snprintf(line, sizeof(line), "%s", o->help);
    if (o->kind == CONFIG_YESNO) {
        snprintf(line + n, sizeof(line) - n, " (yes, no)");
    } else if (o->kind == CONFIG_NUMBER && o->max < INT32_MAX) {
        snprintf(line + n, sizeof(line) - n, " (%jd-%jd%s%s)", (intmax_t)o->min, (intmax_t)o->max,
                 o->unit != NULL ? " " : "", o->unit != NULL ? o->unit : "");
    } else if (o->kind == CONFIG_NUMBER && o->unit != NULL) {
        snprintf(line + n, sizeof(line) - n, " (%s)", o->unit);
    } else if (o->kind == CONFIG_WORD) {
        n += (size_t)snprintf(line + n, sizeof(line) - n, " (");
        for (const char *w = o->words; *w != '\0' && n < sizeof(line) - 4; w++) {
            line[n++] = *w == ' ' ? ',' : *w;
            if (*w == ' ') {
                line[n++] = ' ';
            }
        }
        snprintf(line + n, sizeof(line) - n, ")");
    }
    n = strlen(line);
    snprintf(line + n, sizeof(line) - n, ".");
    wrap(f, line, strlen(line));
}

static void option(FILE *f, const struct config_option *o, const char *prefix)
{
    fputc('\n', f);
    headline(f, o);
    if (o->more != NULL) {
        paragraphs(f, o->more);
    }
    if (o->flags & CONFIG_NO_EFFECT) {
        paragraphs(f, "Has no effect in Weir; it is here because NZBGet's files have it.");
    } else if (o->since != NULL && strcmp(o->since, "Weir") == 0) {
        paragraphs(f, "Only Weir has this option.");
    }
    if (o->flags & CONFIG_RESTART) {
        paragraphs(f, "A change counts from the next start on.");
    }
    fprintf(f, "%s%s%s=%s\n", prefix[0] != '\0' || (o->flags & CONFIG_UNSET) ? "#" : "", prefix,
            o->name, o->preset);
}

int config_sample(FILE *f)
{
    fputs(
        "# Configuration of Weir. It has the format and the option names of nzbget.conf.\n"
        "#\n"
        "# Every line is Name=Value. A line that begins with # is a comment; the options that are\n"
        "# comments here show what counts when they are not set. Keep this file readable for its\n"
        "# user only when passwords are in it (chmod 600), and look at it with: weir config "
        "check\n",
        f);
    for (const struct config_section *s = config_sections; s->title != NULL; s++) {
        const struct config_option *rows =
            s->group == CONFIG_GLOBAL ? s->options : config_group_options(s->group);
        char prefix[32] = "";
        if (s->group != CONFIG_GLOBAL) {
            snprintf(prefix, sizeof(prefix), "%s1.", config_group_name(s->group));
        }
        fprintf(f, "\n\n%.*s\n### %-70s ###\n", WIDTH,
                "##############################################################################",
                s->title);
        for (; rows->name != NULL; rows++) {
            option(f, rows, prefix);
        }
    }
    return ferror(f) ? -EIO : 0;
}
