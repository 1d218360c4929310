#!/usr/bin/env bash
# Posts files with nyuu (from npm) to the server of inn.sh and writes their NZB.
#   tests/rigs/post.sh INN_DIR OUT.nzb FILE...
#
# nyuu is looked for in $NYUU_DIR/node_modules; where it is not, it is installed there (npm). ARTICLE is the size of
# an article (default 700K).
set -euo pipefail
. "${1:?usage: post.sh INN_DIR OUT.nzb FILE...}/env"
out=${2:?usage: post.sh INN_DIR OUT.nzb FILE...}
shift 2
dir=${NYUU_DIR:-${TMPDIR:-/tmp}/weir-nyuu}
nyuu=$dir/node_modules/nyuu/bin/nyuu.js
if [ ! -f "$nyuu" ]; then
    mkdir -p "$dir"
    (cd "$dir" && npm install --silent nyuu)
fi
exec node "$nyuu" -h "$host" -P "$plain" -u "$user" -p "$pass" -n 4 -g alt.binaries.test \
    -f 'tester <tester@test.invalid>' -a "${ARTICLE:-700K}" -F -q -o "$out" -O "$@"
