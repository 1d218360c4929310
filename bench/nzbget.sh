#!/usr/bin/env bash
# `weir get` against Debian's NZBGet at its defaults, post-processing off, turn about on one server: CPU seconds (user +
# system) per GB of article bytes.   bench/nzbget.sh BUILD_DIR INN_DIR FILE.nzb NZBGET [N]
#
# INN_DIR is a server of tests/rigs/inn.sh that holds FILE.nzb; NZBGET the program to compare with. CONNECTIONS ("4 8 20").
set -euo pipefail
build=$(realpath "${1:?usage: nzbget.sh BUILD_DIR INN_DIR FILE.nzb NZBGET [N]}")
. "${2:?}/env"
nzb=$(realpath "${3:?}")
nzbget=$(realpath "${4:?}")
n=${5:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Of the articles as the NZB tells it: both sides are divided by the same number.
wire=$(grep -o 'bytes="[0-9]*"' "$nzb" | tr -dc '0-9\n' | awk '{s += $1} END {print s}')
TIMEFORMAT='%U %S'
median() { sort -n | awk '{v[NR]=$1} END {print v[int((NR+1)/2)]}'; }

run_nzbget() { # connections, port, tls
    local dir=$work/nzbget
    rm -rf "$dir"
    mkdir -p "$dir"/{nzb,queue,tmp,scripts,inter,dst}
    cp "$nzb" "$dir/nzb/post.nzb"
    local opts=(-o "MainDir=$dir" -o "DestDir=$dir/dst" -o "InterDir=$dir/inter" -o "NzbDir=$dir/nzb" -o "QueueDir=$dir/queue"
        -o "TempDir=$dir/tmp" -o "ScriptDir=$dir/scripts" -o "LockFile=$dir/lock" -o "LogFile=$dir/log" -o "WriteLog=append"
        -o "ControlIP=127.0.0.1" -o "ControlPort=16789" -o "ControlPassword=x" -o "NzbDirInterval=1" -o "NzbDirFileAge=0"
        -o "Unpack=no" -o "ParCheck=manual" -o "ParRename=no" -o "RarRename=no" -o "DirectRename=no" -o "DirectUnpack=no"
        -o "OutputMode=log" -o "WebDir=" -o "Server1.Active=yes" -o "Server1.Host=localhost" -o "Server1.Port=$2"
        -o "Server1.Username=$user" -o "Server1.Password=$pass" -o "Server1.Connections=$1" -o "Server1.Encryption=$3"
        -o "CertCheck=no" -o "HealthCheck=none")
    "$nzbget" -n "${opts[@]}" -s >"$dir/out" 2>&1 &
    local pid=$!
    until grep -qE 'Collection .* (added to history|completely downloaded|partially downloaded)|moved to history' "$dir/out" "$dir/log" 2>/dev/null; do
        kill -0 "$pid" 2>/dev/null || { cat "$dir/out" >&2; return 1; }
        sleep 0.05
    done
    read -r user_t sys_t < <(awk '{print $14, $15}' "/proc/$pid/stat")
    kill -KILL "$pid" # it may hang when asked to stop
    wait "$pid" 2>/dev/null || true
    [ "$(du -sb "$dir/dst" "$dir/inter" | awk '{s += $1} END {print s}')" -ge "$(du -sb "$work/get" | cut -f1)" ] ||
        { echo "nzbget did not fetch everything" >&2; return 1; }
    awk -v u="$user_t" -v s="$sys_t" -v w="$wire" -v h="$(getconf CLK_TCK)" 'BEGIN {printf "%.3f\n", (u + s) / h / (w / 1e9)}'
}

for kind in plain tls; do
    for c in ${CONNECTIONS:-4 8 20}; do
        : >"$work/a" && : >"$work/b"
        port=$plain enc=no args=()
        [ "$kind" = plain ] || { port=$tls enc=yes args=(--tls --ca "$cert"); }
        for _ in $(seq "$n"); do
            rm -rf "$work/get"
            { time "$build/src/cli/weir" get "$nzb" --server "localhost:$port" "${args[@]}" --user "$user" --pass "$pass" \
                --connections "$c" --out "$work/get" --quiet 2>"$work/err"; } 2>"$work/time" || { cat "$work/err"; exit 1; }
            awk -v w="$wire" '{printf "%.3f\n", ($1 + $2) / (w / 1e9)}' "$work/time" >>"$work/a"
            run_nzbget "$c" "$port" "$enc" >>"$work/b"
        done
        awk -v k="$kind" -v c="$c" -v a="$(median <"$work/a")" -v b="$(median <"$work/b")" 'BEGIN {
            printf "{\"kind\":\"%s\",\"connections\":%d,\"weir\":%s,\"nzbget\":%s,\"ratio\":%.2f}\n", k, c, a, b, a/b }'
    done
done
