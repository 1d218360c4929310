#!/usr/bin/env bash
# `weir get` against `weir newsd`: healthy, damaged, beyond repair, interrupted, refused.   get.sh WEIR
set -euo pipefail
weir=$1
fail() { echo "FAILED: $*" >&2; exit 1; }
work=$(mktemp -d)
cleanup() {
    [ -z "${newsd:-}" ] || kill "$newsd" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
cd "$work"

# A post as people make them: a file in many articles, its recovery files, a small one beside.
mkdir -p posts/show
head -c 24000000 /dev/urandom >posts/show/show.mkv
echo "what it is" >posts/show/show.nfo
(cd posts/show && par2 c -q -s200000 -r12 show.par2 show.mkv >/dev/null)

start() { # newsd's further options -> $port
    rm -f ready
    "$weir" newsd --dir posts --nzb nzbs --port 0 --article-size 100K --age 100 --json "$@" >ready 2>newsd.log &
    newsd=$!
    for _ in $(seq 100); do [ -s ready ] && break; sleep 0.1; done
    port=$(python3 -c 'import json; print(json.loads(open("ready").readline())["port"])')
}
stop() { kill "$newsd"; wait "$newsd" 2>/dev/null || true; newsd=; }
get() { # exit code wanted, further options of get
    local want=$1 rc=0
    shift
    timeout 120 "$weir" get nzbs/show.nzb -d out --json "$@" >events 2>errors || rc=$?
    [ $rc -eq "$want" ] || { cat errors; tail -n 2 events; fail "exit code $rc, not $want: $*"; }
}
end() { python3 -c 'import json, sys; print(json.loads(open("events").readlines()[-1])[sys.argv[1]])' "$1"; }
whole() { cmp posts/show/show.mkv out/show/show.mkv || fail "$1: other bytes"; [ ! -e out/.weir ] || fail "$1: state left"; }

# Healthy, plain and TLS with a login: complete, and no recovery volume was fetched.
start
get 0 --server "127.0.0.1:$port"
whole healthy
[ "$(end complete)" = True ] || fail "healthy: not complete"
ls out/show/*vol* 2>/dev/null && fail "healthy: volumes were fetched"
rm -rf out
stop
start --tls --cert-out ca.pem --user me --pass "c4n4ry-secret"
get 0 --server "127.0.0.1:$port" --tls --ca ca.pem --user me --pass "c4n4ry-secret" --log get.log -n 2
whole tls
grep -q c4n4ry get.log && fail "the password is in the log"
rm -rf out

# Refused: a certificate nobody vouches for, a wrong password. Said in words, and nothing is sent to the first.
get 5 --server "127.0.0.1:$port" --tls --user me --pass "c4n4ry-secret"
end reason | grep -qi certificate || fail "reason: $(end reason)"
get 5 --server "127.0.0.1:$port" --tls --ca ca.pem --user me --pass wrong
end reason | grep -qi 'login\|password\|481' || fail "reason: $(end reason)"
# The same download continues once the password is right.
get 0 --server "127.0.0.1:$port" --tls --ca ca.pem --user me --pass "c4n4ry-secret"
whole "after a refusal"
rm -rf out
stop

# Damaged: volumes are fetched as far as needed, and the file is repaired.
start --missing '*.mkv:4' --seed 7
get 0 --server "127.0.0.1:$port"
whole damaged
end stage | grep -q repaired || fail "damaged: $(end stage)"
rm -rf out
stop

# Beyond repair: said so, with numbers.
start --missing '*.mkv:40' --seed 7
get 3 --server "127.0.0.1:$port"
end reason | grep -q '[0-9]' || fail "beyond repair: $(end reason)"
rm -rf out
stop

# A second server has what the first lacks.
start --missing '*.mkv:40' --seed 7
first=$port first_pid=$newsd
start
get 0 --server "127.0.0.1:$first" --server "127.0.0.1:$port"
whole "fill server"
ls out/show/*vol* 2>/dev/null && fail "fill server: volumes were fetched"
rm -rf out
kill "$first_pid"
stop

# Killed in the middle, again and again: it continues, and ends with the same bytes.
start --rate 6M
for n in 1 2 3; do
    "$weir" get nzbs/show.nzb -d out --server "127.0.0.1:$port" -q 2>/dev/null &
    victim=$!
    sleep 1.2
    kill -9 "$victim"
    wait "$victim" 2>/dev/null || true
done
get 0 --server "127.0.0.1:$port"
whole "killed thrice"
python3 - <<'PY' || fail "killed: too much was fetched again"
import json
end = json.loads(open("events").readlines()[-1])
assert end["bytes_in"] < 24_000_000, end  # of 24.7 MB in all: the first three runs were not in vain
PY
rm -rf out
# SIGINT: says how to go on, exit code 130, and goes on.
"$weir" get nzbs/show.nzb -d out --server "127.0.0.1:$port" >/dev/null 2>errors &
victim=$!
sleep 1
kill -INT "$victim"
rc=0; wait "$victim" || rc=$?
[ $rc -eq 130 ] && grep -q 'continues later' errors || fail "SIGINT: $rc, $(cat errors)"
get 0 --server "127.0.0.1:$port"
whole "after SIGINT"
rm -rf out
stop

# What is wrong with the input is named.
echo '<nzb><file></nzb>' >bad.nzb
rc=0; said=$("$weir" get bad.nzb --server 127.0.0.1:1 2>&1) || rc=$?
[ $rc -eq 4 ] && [[ $said == *bad.nzb* ]] || fail "bad NZB: $rc, $said"
rc=0; said=$(env -u WEIR_SERVER HOME="$work" "$weir" get nzbs/show.nzb -c /dev/null 2>&1) || rc=$?
[ $rc -eq 5 ] && [[ $said == *--server* ]] || fail "no server: $rc, $said"
rc=0; said=$("$weir" get nzbs/show.nzb --server host:99999 2>&1) || rc=$?
[ $rc -eq 2 ] || fail "bad port: $rc, $said"
echo "get: all well"
