#!/usr/bin/env bash
# The engine against servers that nobody here wrote: Debian's inn2, filled by nyuu from npm, and the test server inside
# Debian's nzbget. Every combination must write byte-identical files.
#   tests/rigs/servers.sh BUILD_DIR [WORK_DIR]
#
# Fetches packages (apt-get download) and nyuu (npm) into WORK_DIR; installs nothing. MB is the size of the post.
set -euo pipefail
build=$(realpath "${1:?usage: servers.sh BUILD_DIR [WORK_DIR]}")
work=$(realpath -m "${2:-$(mktemp -d)}")
here=$(realpath "$(dirname "$0")")
mb=${MB:-60}
mkdir -p "$work/data"
chmod 755 "$work"
fetch=$build/bench/bench_fetch
inn=$work/inn

for i in 0 1 2; do
    head -c $((mb * 1000000 / 3 + i * 12345)) /dev/zero |
        openssl enc -aes-128-ctr -pass "pass:$i" -nosalt 2>/dev/null >"$work/data/$i.bin"
done

check() { # name, nzb, further arguments of bench_fetch
    local name=$1 nzb=$2
    shift 2
    rm -rf "$work/out"
    "$fetch" "$nzb" "$@" --out "$work/out" >"$work/report" || { echo "$name: $(cat "$work/report")"; exit 1; }
    for i in 0 1 2; do
        cmp "$work/data/$i.bin" "$work/out/$i.bin"
    done
    echo "ok: $name ($(sed 's/.*"mb_per_s":\([0-9.]*\).*"depth":\([0-9]*\).*/\1 MB\/s, depth \2/' "$work/report"))"
}

matrix() { # name, nzb, arguments...
    local name=$1 nzb=$2 c d
    shift 2
    for c in 1 4 20 50; do
        for d in 1 0; do
            check "$name, $c connections, $([ $d = 1 ] && echo one by one || echo pipelined)" "$nzb" "$@" \
                --connections "$c" --depth "$d"
        done
    done
}

INN_MB=$((mb * 2 + 50)) "$here/inn.sh" "$inn" prepare
"$here/inn.sh" "$inn" start
trap '"$here/inn.sh" "$inn" stop' EXIT
. "$inn/env"
(cd "$work/data" && NYUU_DIR=${NYUU_DIR:-$work/nyuu} "$here/post.sh" "$inn" "$work/post.nzb" 0.bin 1.bin 2.bin)
matrix "inn2, plain" "$work/post.nzb" --host "$host" --port "$plain" --user "$user" --pass "$pass"
matrix "inn2, TLS" "$work/post.nzb" --host localhost --port "$tls" --tls --ca "$cert" --user "$user" --pass "$pass"

if [ ! -x "$work/nzbget/usr/bin/nzbget" ]; then
    mkdir -p "$work/nzbget"
    (cd "$work/nzbget" && apt-get download -qq nzbget && dpkg -x nzbget_*.deb .)
fi
nserv_port=$((plain + 10))
"$work/nzbget/usr/bin/nzbget" --nserv -d "$work/data" -i 3 -p "$nserv_port" -z 500000 -v 1 >"$work/nserv.log" 2>&1 &
nserv=$!
trap 'kill $nserv 2>/dev/null || true; "$here/inn.sh" "$inn" stop' EXIT
for _ in $(seq 50); do
    (exec 3<>"/dev/tcp/127.0.0.1/$nserv_port") 2>/dev/null && break
    sleep 0.1
done
# nserv makes its articles from what the id says: file?part=offset:size
{
    echo '<?xml version="1.0"?><nzb>'
    for i in 0 1 2; do
        size=$(stat -c %s "$work/data/$i.bin")
        echo "<file subject=\"$i\"><segments>"
        n=0
        for ((at = 0; at < size; at += 500000)); do
            n=$((n + 1))
            len=$((size - at < 500000 ? size - at : 500000))
            echo "<segment bytes=\"$len\" number=\"$n\">$i.bin?$n=$at:$len</segment>"
        done
        echo '</segments></file>'
    done
    echo '</nzb>'
} >"$work/nserv.nzb"
matrix "nzbget --nserv" "$work/nserv.nzb" --host 127.0.0.1 --port "$nserv_port"
