/* Any text is a fault script or an error that names a line; what was taken can be asked for a rule. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "newsd/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    struct newsd_script s;
    struct err e = {0};
    newsd_script_init(&s, 1);
    int rv = newsd_script_parse(&s, text, "script", &e);
    if (rv != 0 && strstr(e.msg, "line ") == NULL) {
        abort();
    }
    for (int phase = 0; phase < PHASES; phase++) {
        struct newsd_occasion o = {.phase = (enum newsd_phase)phase, .conn = 1, .cmd = "BODY"};
        o.id = "p1.x@newsd";
        o.path = "set/name.bin";
        o.name = "name.bin";
        o.part = 1;
        o.hit = 1;
        const struct newsd_rule *r = newsd_script_match(&s, &o);
        if (r != NULL && newsd_script_place(&r->after, 1000) > 1000) {
            abort();
        }
    }
    newsd_script_free(&s);
    mem_free(text);
    return 0;
}
