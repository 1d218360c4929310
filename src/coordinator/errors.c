#include "coordinator/errors.h"

static const struct coord_error table[COORD_CODES] = {
#define X(id, name_, category_, scope_, action_, text_) \
    [COORD_##id] = {.name = (name_),                    \
                    .text = (text_),                    \
                    .category = COORD_##category_,      \
                    .scope = COORD_SCOPE_##scope_,      \
                    .action = COORD_ACT_##action_},
    COORD_CODE_MAP(X)
#undef X
};

const struct coord_error *coord_error(enum coord_code code)
{
    return &table[(unsigned)code < COORD_CODES ? code : COORD_UNKNOWN];
}

const char *coord_category_name(enum coord_category c)
{
    static const char *const names[] = {"good", "transient", "permanent"};
    return names[c];
}

const char *coord_scope_name(enum coord_scope s)
{
    static const char *const names[] = {
        "none", "connection", "server", "article", "job", "filesystem", "stage",
    };
    return names[s];
}
