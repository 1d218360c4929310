#!/usr/bin/env bash
# The binary as a user first meets it: help, version, mistakes, the generated man page and completion.   cli.sh WEIR
set -euo pipefail
weir=$1
fail() { echo "FAILED: $*" >&2; exit 1; }

"$weir" --help | grep -q '^usage: weir COMMAND' || fail "--help has no usage line"
"$weir" --version | head -n 1 | grep -Eq '^weir [0-9]+\.[0-9]+\.[0-9]+$' || fail "--version"
"$weir" --version --json | python3 -c 'import json, sys; v = json.load(sys.stdin); assert v["version"] and v["openssl"] and v["libuv"]'

rc=0; "$weir" >/dev/null 2>&1 || rc=$?
[ $rc -eq 2 ] || fail "no command: exit code $rc"
rc=0; said=$("$weir" hlep 2>&1) || rc=$?
[ $rc -eq 2 ] && [[ $said == *"did you mean 'help'?"* ]] || fail "a mistyped command: $rc, $said"
rc=0; said=$("$weir" help --mna 2>&1) || rc=$?
[ $rc -eq 2 ] && [[ $said == *"did you mean '--man'?"* ]] || fail "a mistyped option: $rc, $said"

# Every command of the table explains itself.
"$weir" --help | sed -n '/^commands:/,/^$/p' | awk 'NR > 1 && NF {print $1}' | while read -r command; do
    "$weir" "$command" --help | grep -q '^usage: weir '"$command" || fail "$command --help"
done

# The man page is roff that groff has no complaint about; the completion is bash that offers the commands.
complaints=$("$weir" help --man | groff -man -Tutf8 -ww -z 2>&1) || fail "groff: $complaints"
[ -z "$complaints" ] || fail "groff: $complaints"
offered=$(bash -c '
    eval "$("$1" help --completion)"
    COMP_WORDS=(weir he) COMP_CWORD=1
    _weir
    echo "${COMPREPLY[@]}"' bash "$weir")
[[ " $offered " == *" help "* ]] || fail "completion offers: $offered"
# A reader that goes away is an error that is said, not a death by signal.
rc=0; { "$weir" help --man || rc=$?; } | head -c 1 >/dev/null
[ $rc -lt 128 ] || fail "died of a closed pipe"
echo "cli: all well"
