#include <jansson.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <uv.h>
#include <zlib.h>

#include "base/cpu.h"
#include "cli/cli.h"
#include "version.h"

int cli_version(bool json)
{
    char cpu[128];
    cpu_feature_names(cpu, sizeof(cpu));
    const struct {
        const char *name;
        const char *value;
    } rows[] = {
        {"cpu", cpu},
        {"libuv", uv_version_string()},
        {"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
        {"zlib", zlibVersion()},
        {"jansson", jansson_version_str()},
    };
    printf(json ? "{\"version\": \"%s\"" : "weir %s\n", WEIR_VERSION);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        printf(json ? ", \"%s\": \"%s\"" : "  %-12s %s\n", rows[i].name, rows[i].value);
    }
    fputs(json ? "}\n" : "", stdout);
    return CLI_OK;
}
