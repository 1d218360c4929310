#!/usr/bin/env bash
# `weir get` against the floor, turn about, on one server: CPU seconds (user + system) per GB of article bytes, best and
# median of N runs each, and the ratios.   bench/engine.sh BUILD_DIR INN_DIR FILE.nzb [N]
#
# INN_DIR is a server of tests/rigs/inn.sh that holds FILE.nzb. CONNECTIONS ("4 8 20"), OUT (where files are written).
set -euo pipefail
build=${1:?usage: engine.sh BUILD_DIR INN_DIR FILE.nzb [N]}
. "${2:?}/env"
nzb=${3:?}
n=${4:-5}
out=${OUT:-$(mktemp -d)}
summary() { sort -n | awk '{v[NR]=$1} END {printf "%.3f %.3f\n", v[1], v[int((NR+1)/2)]}'; }
TIMEFORMAT='%U %S'

for kind in plain tls; do
    for c in ${CONNECTIONS:-4 8 20}; do
        : >"$out/a" && : >"$out/b"
        port=$plain floor=() weir=()
        [ "$kind" = plain ] || { port=$tls; floor=(--tls); weir=(--tls --ca "$cert"); }
        for _ in $(seq "$n"); do
            "$build/bench/bench_floor" "$nzb" --port "$port" --user "$user" --pass "$pass" --connections "$c" \
                "${floor[@]}" --out "$out/floor" >"$out/report"
            sed 's/.*"cpu_s_per_gb":\([0-9.]*\).*/\1/' "$out/report" >>"$out/b"
            wire=$(sed 's/.*"wire_bytes":\([0-9]*\).*/\1/' "$out/report")
            rm -rf "$out/get"
            { time "$build/src/cli/weir" get "$nzb" --server "localhost:$port" "${weir[@]}" --user "$user" \
                --pass "$pass" --connections "$c" --out "$out/get" --quiet 2>"$out/err"; } 2>"$out/time" ||
                { cat "$out/err"; exit 1; }
            awk -v w="$wire" '{printf "%.3f\n", ($1 + $2) / (w / 1e9)}' "$out/time" >>"$out/a"
        done
        read -r a_best a_median < <(summary <"$out/a")
        read -r b_best b_median < <(summary <"$out/b")
        awk -v k="$kind" -v c="$c" -v a="$a_best" -v am="$a_median" -v b="$b_best" -v bm="$b_median" 'BEGIN {
            printf "{\"kind\":\"%s\",\"connections\":%d,\"weir_best\":%s,\"weir_median\":%s,\"floor_best\":%s,"\
                "\"floor_median\":%s,\"ratio_best\":%.2f,\"ratio_median\":%.2f}\n", k, c, a, am, b, bm, a/b, am/bm }'
    done
done
[ -n "${OUT:-}" ] || rm -rf "$out"
