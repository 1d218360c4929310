#!/usr/bin/env bash
# Cuts the power under a program that saves, and looks at what is left.   powercut.sh CUTS PROGRAM [OPTION...]
#
# The disk is an ext4 image on a loop device; the cut is ext4's own shutdown, which forgets what was not flushed.
# noauto_da_alloc matters: the usual mount option hides a missing fsync in front of a rename.
#   PROGRAM OPTION... save DIR     saves below DIR for ever and prints one line per acknowledged save
#   PROGRAM OPTION... check DIR    gets the last such line on stdin; 0: DIR holds that save or a later one, whole
# Needs root and loop devices; exits 77 with the reason where it cannot have them.
set -euo pipefail
cuts=$1
shift
program=("$@")

skip() { echo "SKIPPED: $1" >&2; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "cutting the power of a loop device needs root"
# In a mount namespace of our own: a copy of our mount in somebody else's would keep the dead file system alive.
if [ -z "${POWERCUT_ALONE:-}" ]; then
    POWERCUT_ALONE=1 exec unshare --mount --propagation unchanged "$0" "$cuts" "${program[@]}"
fi
mount --make-rprivate / 2>/dev/null || true # in a chroot / is no mount; then it is as private as it can be

work=$(mktemp -d)
mounted=
cleanup() {
    [ -z "${saver:-}" ] || kill -9 "$saver" 2>/dev/null || true
    [ -z "$mounted" ] || umount "$work/mnt" 2>/dev/null || umount -l "$work/mnt" || true
    rm -rf "$work"
}
trap cleanup EXIT
mkdir "$work/mnt"
truncate -s 64M "$work/image"
mkfs.ext4 -q "$work/image"
mount_it() {
    mount -o loop,noauto_da_alloc "$work/image" "$work/mnt" && mounted=1
}
mount_it 2>"$work/why" || skip "no loop mount here: $(cat "$work/why")"

for ((cut = 1; cut <= cuts; cut++)); do
    mkdir -p "$work/mnt/dir"
    sync -f "$work/mnt"
    : >"$work/acks"
    "${program[@]}" save "$work/mnt/dir" >"$work/acks" 2>"$work/errors" &
    saver=$!
    sleep "0.$((RANDOM % 40 + 10))"
    # EXT4_IOC_SHUTDOWN, flag 2: nothing more is flushed, not even the journal. What counts is what was acknowledged
    # before it: a sync that runs into the shutdown may still say OK, which no sync does once the power is gone.
    last=$(python3 - "$work/mnt" "$work/acks" <<'PY'
import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
lines = open(sys.argv[2]).read().split("\n")[:-1]
fcntl.ioctl(fd, 0x8004587D, struct.pack("I", 2))
print(lines[-1] if lines else "")
PY
    )
    wait "$saver" 2>/dev/null || true # the disk is gone: its next save fails, and it says so and ends
    saver=
    umount "$work/mnt"
    mounted=
    # A copy: while another mount namespace still holds the old mount, mounting the same image would give the dead one.
    cp --sparse=always "$work/image" "$work/next"
    mv "$work/next" "$work/image"
    mount_it
    if ! echo "$last" | "${program[@]}" check "$work/mnt/dir"; then
        echo "cut $cut of $cuts: acknowledged: '$last' ($(wc -l <"$work/acks") saves); left behind:" >&2
        ls -l "$work/mnt/dir" >&2
        exit 1
    fi
    total=$((${total:-0} + $(wc -l <"$work/acks")))
done
echo "$cuts power cuts, $total acknowledged saves, none lost"
