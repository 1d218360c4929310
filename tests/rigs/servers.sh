#!/usr/bin/env bash
# `weir get` against servers that nobody here wrote: Debian's inn2, filled by nyuu from npm, and the test server inside
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
weir=$build/src/cli/weir
inn=$work/inn

for i in 0 1 2; do
    head -c $((mb * 1000000 / 3 + i * 12345)) /dev/zero |
        openssl enc -aes-128-ctr -pass "pass:$i" -nosalt 2>/dev/null >"$work/data/$i.bin"
done

matrix() { # name, nzb, arguments of weir get...
    local name=$1 nzb=$2 c
    shift 2
    for c in 1 4 20 50; do
        rm -rf "$work/out"
        "$weir" get "$nzb" "$@" --connections "$c" --out "$work/out" --json >"$work/report" ||
            { echo "$name, $c connections: $(tail -n 1 "$work/report")"; exit 1; }
        for i in 0 1 2; do
            cmp "$work/data/$i.bin" "$(find "$work/out" -name "$i.bin")"
        done
        echo "ok: $name, $c connections, $(tail -n 1 "$work/report" | sed 's/.*"ms":\([0-9]*\).*/\1 ms/')"
    done
}

INN_MB=$((mb * 2 + 50)) "$here/inn.sh" "$inn" prepare
"$here/inn.sh" "$inn" start
trap '"$here/inn.sh" "$inn" stop' EXIT
. "$inn/env"
(cd "$work/data" && NYUU_DIR=${NYUU_DIR:-$work/nyuu} "$here/post.sh" "$inn" "$work/post.nzb" 0.bin 1.bin 2.bin)
matrix "inn2, plain" "$work/post.nzb" --server "$host:$plain" --user "$user" --pass "$pass"
matrix "inn2, TLS" "$work/post.nzb" --server "localhost:$tls" --tls --ca "$cert" --user "$user" --pass "$pass"

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
    echo '<?xml version="1.0"?><nzb xmlns="http://www.newzbin.com/DTD/2003/nzb">'
    for i in 0 1 2; do
        size=$(stat -c %s "$work/data/$i.bin")
        echo "<file poster=\"t\" date=\"1700000000\" subject=\"&quot;$i.bin&quot; yEnc (1/1)\"><groups><group>g</group></groups><segments>"
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
matrix "nzbget --nserv" "$work/nserv.nzb" --server "127.0.0.1:$nserv_port"
