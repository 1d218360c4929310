#!/usr/bin/env bash
# Fills a small disk under a program and makes room again.   full.sh PROGRAM
# PROGRAM full DIR   writes below DIR until it is full, must then say so, removes DIR/ballast, and must go on
# PROGRAM check DIR  afterwards
# Needs root; exits 77 with the reason where it cannot mount.
set -euo pipefail
skip() { echo "SKIPPED: $1" >&2; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "a small disk needs root"
work=$(mktemp -d)
mkdir "$work/mnt"
trap 'umount "$work/mnt" 2>/dev/null || true; rm -rf "$work"' EXIT
mount -t tmpfs -o size=5m tmpfs "$work/mnt" 2>"$work/why" || skip "no tmpfs: $(cat "$work/why")"
head -c 1500000 /dev/zero >"$work/mnt/ballast"
"$@" full "$work/mnt" >"$work/acks"
echo "" | "$@" check "$work/mnt"
