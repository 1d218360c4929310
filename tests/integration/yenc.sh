#!/usr/bin/env bash
# `weir yenc` and `weir bench yenc` as a user calls them: the corpus, a round trip, mistakes.   yenc.sh WEIR DATA
set -euo pipefail
weir=$1 data=$2/yenc
fail() { echo "FAILED: $*" >&2; exit 1; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Every article of the corpus: its bytes and its verdict; the exit code says whether they can be trusted.
n=0
while IFS=$'\t' read -r article expected verdict _; do
    rc=0
    "$weir" yenc decode "$data/$article" >"$tmp/out" 2>"$tmp/err" || rc=$?
    said=$(head -n 1 "$tmp/err")
    [[ ${said%%[:;]*} == "$verdict" ]] || fail "$article: $said instead of $verdict"
    case $verdict in ok | no-crc) want=0 ;; *) want=1 ;; esac
    [ $rc -eq $want ] || fail "$article: exit code $rc"
    if [ "$expected" = - ]; then
        [ ! -s "$tmp/out" ] || fail "$article: bytes where there should be none"
    else
        cmp "$tmp/out" "$data/$expected" || fail "$article: other bytes"
    fi
    n=$((n + 1))
done <"$data/index.tsv"
[ $n -ge 60 ] || fail "only $n articles"

# What is encoded comes back, part by part, from a file and through pipes.
head -c 100000 /dev/urandom >"$tmp/file 1.bin"
for line in 64 128 997; do
    "$weir" yenc encode --line $line "$tmp/file 1.bin" | "$weir" yenc decode 2>"$tmp/err" | cmp - "$tmp/file 1.bin" ||
        fail "round trip with lines of $line"
    grep -q "^ok; 'file 1.bin', part 0 of 0, bytes 0 to 100000 of 100000" "$tmp/err" || fail "$(cat "$tmp/err")"
done
: >"$tmp/joined"
for part in 1 2 3 4; do
    "$weir" yenc encode -s 30000 -p $part -o "$tmp/article" "$tmp/file 1.bin"
    "$weir" yenc decode --json -o "$tmp/part" "$tmp/article" 2>"$tmp/json"
    cat "$tmp/part" >>"$tmp/joined"
    python3 - "$tmp/json" $part <<'PY'
import json, sys
v, part = json.load(open(sys.argv[1])), int(sys.argv[2])
assert v["verdict"] == "ok" and v["part"] == part and v["total"] == 4 and v["size"] == 100000, v
assert v["begin"] == (part - 1) * 30000 and v["end"] == min(part * 30000, 100000) and v["name"] == "file 1.bin", v
PY
done
cmp "$tmp/joined" "$tmp/file 1.bin" || fail "the parts are not the file"

# Kernels by name give the same.
for kernel in scalar ssse3 avx2 vbmi2 neon; do
    YENC_KERNEL=$kernel "$weir" yenc decode "$data/weir-single.art" 2>/dev/null | cmp - "$data/long.bin" || fail "kernel $kernel"
done
YENC_KERNEL=scalar CRC32_KERNEL=scalar "$weir" --version | grep -Eq '^ +(yenc|crc32) +scalar$' || fail "the kernel's name in --version"

expect_error() { # CODE TEXT ARG...
    local code=$1 text=$2 rc=0
    shift 2
    "$weir" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || rc=$?
    [ $rc -eq "$code" ] && grep -q -- "$text" "$tmp/err" || fail "$*: $rc, $(cat "$tmp/err")"
}
expect_error 1 "No such file" yenc decode "$tmp/none"
expect_error 1 "nothing to encode" yenc encode
expect_error 1 "no such part" yenc encode -s 30000 -p 5 "$tmp/file 1.bin"
expect_error 1 "not-yenc" yenc decode
expect_error 2 "64 to 997" yenc encode --line 20 "$tmp/file 1.bin"
expect_error 2 "wants --part-size" yenc encode --part 2 "$tmp/file 1.bin"
expect_error 2 "one file" yenc decode a b
expect_error 1 "cannot open" bench yenc --ref "$tmp/none.so"
[ ! -e /dev/full ] || { rc=0; "$weir" yenc decode "$data/single.art" >/dev/full 2>"$tmp/err" || rc=$?
    [ $rc -eq 1 ] && grep -q "No space" "$tmp/err" || fail "a full disk: $rc"; }

"$weir" bench yenc --seconds 1 --json >"$tmp/bench"
python3 - "$tmp/bench" <<'PY'
import json, sys
b = json.load(open(sys.argv[1]))
rows = {(r["what"], r["kernel"]): r for r in b["rows"]}
assert ("decode", "scalar") in rows and ("decode+crc", "scalar") in rows and ("crc", "scalar") in rows, rows.keys()
assert all(r["hot_gbs"] > 0 and r["cold_gbs"] > 0 for r in b["rows"]), b
PY
echo "yenc: $n articles, all well"
