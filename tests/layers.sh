#!/usr/bin/env bash
# Fails when a file of src/X includes a folder that X's row in LAYERS does not name, and proves on a
# planted file that it would.   layers.sh SRC LAYERS
set -euo pipefail

check() { # SRC LAYERS -> prints each offence
    local folder allowed file line target
    while IFS=: read -r folder allowed; do
        while IFS=: read -r file line target; do
            target=${target#*\"}
            target=${target%%/*}
            [[ " $allowed " == *" $target "* ]] || echo "$file:$line: src/$folder may not include $target/"
        done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"[a-z0-9_]+/' "$1/$folder" || true)
    done <"$2"
    # A folder that is not in the table is not checked, so it must not exist.
    for folder in "$1"/*/; do
        folder=$(basename "$folder")
        grep -q "^$folder:" "$2" || echo "src/$folder has no row in the table"
    done
}

offences=$(check "$1" "$2")
[ -z "$offences" ] || { echo "$offences"; exit 1; }

planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
mkdir "$planted/base" "$planted/yenc"
echo '#include "yenc/yenc.h"' >"$planted/base/bad.c"
printf 'base: base\nyenc: yenc base\n' >"$planted/table"
[ "$(check "$planted" "$planted/table")" = \
    "$planted/base/bad.c:1: src/base may not include yenc/" ] || { echo "the check is blind"; exit 1; }
echo "layers: $(wc -l <"$2") folders, every include points downwards"
