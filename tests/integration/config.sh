#!/usr/bin/env bash
# `weir config` as a user meets it.   config.sh WEIR DATA-DIR
set -euo pipefail
weir=$1 data=$2
fail() { echo "FAILED: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for v in "${!WEIR_@}"; do unset "$v"; done
export HOME=$work
unset XDG_CONFIG_HOME

# The sample is without a fault and is the defaults.
"$weir" config sample >"$work/sample.conf"
said=$("$weir" config sample | "$weir" config check -) || fail "the sample: $said"
[[ $said == *"0 errors, 0 warnings" ]] || fail "the sample: $said"
[ -z "$("$weir" config diff "$work/sample.conf")" ] || fail "the sample differs from the defaults"

# NZBGet's own file has no error; the file of -c, of WEIR_CONF and of the usual place are found.
"$weir" config check -c "$data/config/nzbget21.conf" >/dev/null || fail "NZBGet's file"
mkdir -p "$work/.config/weir"
echo 'DiskSpace=11' >"$work/.config/weir/weir.conf"
echo 'DiskSpace=22' >"$work/env.conf"
chmod 600 "$work/.config/weir/weir.conf" "$work/env.conf"
value() { "$weir" config show --json "$@" | python3 -c 'import json, sys; o, = json.load(sys.stdin)["options"]; print(o["value"], o["from"])'; }
[ "$(value DiskSpace)" = "11 file" ] || fail "the usual place: $(value DiskSpace)"
[ "$(WEIR_CONF=$work/env.conf value diskspace)" = "22 file" ] || fail "WEIR_CONF"
[ "$(WEIR_DISKSPACE=33 value DiskSpace)" = "33 environment" ] || fail "the environment"
[ "$(WEIR_DISKSPACE=33 value DiskSpace -o DiskSpace=44)" = "44 command line" ] || fail "-o"
[ "$(value DestDir -o MainDir=/m)" = "/m/dst default" ] || fail "variables"

# Every problem has its file and line, and the exit code says whether there is an error.
printf 'DestDri=/x\nParCheck=perhaps\nServer1.Host=h\nServer1.Username=u\nServer1.Password=t0p-s3cret\n' >"$work/bad.conf"
chmod 644 "$work/bad.conf"
rc=0; said=$("$weir" config check -c "$work/bad.conf") || rc=$?
[ $rc -eq 1 ] || fail "check of a bad file: exit code $rc"
for words in "bad.conf:1: warning: DestDri: no such option; did you mean DestDir?" \
    "bad.conf:2: error: ParCheck: 'perhaps': wants auto, always, force or manual" \
    "can read the passwords in this file; chmod o-rwx" "1 error, 2 warnings"; do
    [[ $said == *"$words"* ]] || fail "not said: $words in: $said"
done
"$weir" config check --json -c "$work/bad.conf" >"$work/check.json" && fail "check --json of a bad file succeeds"
python3 - "$work/check.json" <<'PYTHON' || fail "check --json: $(cat "$work/check.json")"
import json, sys
c = json.load(open(sys.argv[1]))
assert c["ok"] is False and c["errors"] == 1 and c["warnings"] == 2
assert {"level": "error", "from": "file", "line": 2, "option": "ParCheck",
        "text": "'perhaps': wants auto, always, force or manual"} in c["problems"]
PYTHON

# No command shows a password.
for args in "show" "show --json" "diff" "check" "check --json"; do
    # shellcheck disable=SC2086
    "$weir" config $args -c "$work/bad.conf" 2>&1 | grep -q 't0p-s3cret' && fail "config $args shows the password"
    WEIR_SERVER=nntps://u:t0p-s3cret@h "$weir" config $args 2>&1 | grep -q 't0p-s3cret' && fail "config $args shows the password of WEIR_SERVER"
done
said=$("$weir" config show Server1.Password -c "$work/bad.conf")
[[ $said == *'***'* ]] || fail "show Server1.Password: $said"

# Two files side by side, and what needs a restart.
said=$("$weir" config diff --json "$work/.config/weir/weir.conf" "$work/env.conf")
[ "$said" = '[{"name":"DiskSpace","before":"11","after":"22","restart":false}]' ] || fail "diff: $said"
said=$("$weir" config diff -c "$work/env.conf" -o ControlPort=1)
[[ $said == *"+ControlPort=1    # needs a restart"* ]] || fail "diff: $said"

# What cannot be done is said.
rc=0; said=$("$weir" config show DestDri 2>&1) || rc=$?
[ $rc -eq 1 ] && [[ $said == *"did you mean DestDir"* ]] || fail "show of a mistyped option: $said"
rc=0; said=$("$weir" config check -c "$work/none.conf" 2>&1) || rc=$?
[ $rc -eq 1 ] && [[ $said == *"none.conf"* ]] || fail "check of no file: $said"
rc=0; said=$("$weir" config check -o ControlIP=0.0.0.0 -o ControlPassword=tegbzn6789) || rc=$?
[ $rc -eq 1 ] && [[ $said == *"set a password of your own"* ]] || fail "an open door: $said"
echo "config: all well"
