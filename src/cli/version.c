#include <jansson.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <uv.h>
#include <zlib.h>

#include "base/cpu.h"
#include "base/crc32.h"
#include "base/jsonw.h"
#include "cli/cli.h"
#include "version.h"
#include "yenc/yenc.h"

int cli_version(bool json)
{
    char cpu[128];
    cpu_feature_names(cpu, sizeof(cpu));
    const struct {
        const char *name;
        const char *value;
    } rows[] = {
        {"cpu", cpu},
        {"yenc", yenc_kernel_name()},
        {"crc32", crc32_kernel_name()},
        {"libuv", uv_version_string()},
        {"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
        {"zlib", zlibVersion()},
        {"jansson", jansson_version_str()},
    };
    if (json) {
        struct jsonw j;
        jsonw_init_file(&j, stdout);
        jsonw_object(&j);
        jsonw_kstr(&j, "version", WEIR_VERSION);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            jsonw_kstr(&j, rows[i].name, rows[i].value);
        }
        jsonw_end(&j);
        jsonw_finish(&j);
        putchar('\n');
        return CLI_OK;
    }
    printf("weir %s\n", WEIR_VERSION);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        printf("  %-12s %s\n", rows[i].name, rows[i].value);
    }
    return CLI_OK;
}
