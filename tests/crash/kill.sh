#!/usr/bin/env bash
# Kills a program that saves, in the middle of it, and looks at what is left.   kill.sh KILLS PROGRAM [OPTION...]
# PROGRAM is called as by powercut.sh: save DIR, and check DIR with the last acknowledged line on stdin.
set -euo pipefail
kills=$1
shift
program=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/dir"
total=0
for ((round = 1; round <= kills; round++)); do
    : >"$work/acks"
    "${program[@]}" save "$work/dir" >"$work/acks" 2>"$work/errors" &
    saver=$!
    sleep "0.$((RANDOM % 30 + 3))"
    kill -9 "$saver"
    wait "$saver" 2>/dev/null || true
    # a line may have been cut off in the middle
    last=$(sed -n '$!{h;d};${x;p}' "$work/acks")
    if ! echo "$last" | "${program[@]}" check "$work/dir" 2>"$work/check"; then
        echo "kill $round of $kills: acknowledged: '$last'" >&2
        cat "$work/check" "$work/errors" >&2
        exit 1
    fi
    total=$((total + $(wc -l <"$work/acks")))
done
[ "$total" -gt 0 ] || { echo "nothing was saved at all" >&2; exit 1; }
echo "$kills kills, $total acknowledged saves, none lost"
