#!/usr/bin/env bash
# The engine against the floor, turn about, on one server: CPU seconds (user + system) per GB of article bytes, best and
# median of N runs each, and the ratios.   bench/engine.sh BUILD_DIR INN_DIR FILE.nzb [N]
#
# INN_DIR is a server of tests/rigs/inn.sh that holds FILE.nzb. CONNECTIONS ("4 8 20"), OUT (where files are written).
set -euo pipefail
build=${1:?usage: engine.sh BUILD_DIR INN_DIR FILE.nzb [N]}
. "${2:?}/env"
nzb=${3:?}
n=${4:-5}
out=${OUT:-$(mktemp -d)}
value() { sed -n 's/.*"cpu_s_per_gb":\([0-9.]*\).*/\1/p'; }
summary() { sort -n | awk '{v[NR]=$1} END {printf "%.3f %.3f\n", v[1], v[int((NR+1)/2)]}'; }

for kind in plain tls; do
    for c in ${CONNECTIONS:-4 8 20}; do
        : >"$out/a" && : >"$out/b"
        args=(--host 127.0.0.1 --user "$user" --pass "$pass" --connections "$c")
        [ "$kind" = plain ] && args+=(--port "$plain") || args+=(--port "$tls" --tls)
        ca=()
        [ "$kind" = plain ] || ca=(--ca "$cert")
        for _ in $(seq "$n"); do
            "$build/bench/bench_fetch" "$nzb" "${args[@]}" "${ca[@]}" --out "$out/files" | value >>"$out/a"
            "$build/bench/bench_floor" "$nzb" "${args[@]}" --out "$out/files" | value >>"$out/b"
        done
        read -r a_best a_median < <(summary <"$out/a")
        read -r b_best b_median < <(summary <"$out/b")
        awk -v k="$kind" -v c="$c" -v a="$a_best" -v am="$a_median" -v b="$b_best" -v bm="$b_median" 'BEGIN {
            printf "{\"kind\":\"%s\",\"connections\":%d,\"engine_best\":%s,\"engine_median\":%s,\"floor_best\":%s,"\
                "\"floor_median\":%s,\"ratio_best\":%.2f,\"ratio_median\":%.2f}\n", k, c, a, am, b, bm, a/b, am/bm }'
    done
done
[ -n "${OUT:-}" ] || rm -rf "$out"
