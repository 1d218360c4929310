#!/usr/bin/env bash
# The .deb holds what a user needs, and what is in it runs.   package.sh BUILD-DIR
set -euo pipefail
fail() { echo "FAILED: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$1" && cpack -B "$work" >"$work/cpack.log" 2>&1) || { cat "$work/cpack.log"; fail "cpack"; }
deb=$(echo "$work"/weir_*.deb)
dpkg-deb -f "$deb" Depends | grep -q libuv1 || fail "depends: $(dpkg-deb -f "$deb" Depends)"
dpkg-deb -x "$deb" "$work/root"
for file in bin/weir share/man/man1/weir.1 share/bash-completion/completions/weir share/doc/weir/README.md share/doc/weir/weir.conf.sample; do
    [ -f "$work/root/usr/$file" ] || fail "no usr/$file in the package"
done
"$work/root/usr/bin/weir" --version | grep -q '^weir ' || fail "the packaged binary does not run"
echo "package: $(basename "$deb"), $(du -k "$deb" | cut -f1) KiB"
