#!/usr/bin/env bash
# Debian's inn2 as a news server for tests: on loopback, below one directory, never installed, run as an
# ordinary user.   tests/rigs/inn.sh DIR prepare|start|stop|status
#
#   prepare  fetches and unpacks the packages (apt-get download), makes configuration, spool and certificate
#   start    innd, and a reader each for plain text and TLS
#
# Environment: INN_PORT (plain, default 11120; TLS is the next one, the feeder the one before), INN_MB (spool,
# default 600). Login: tester / secret. Group: alt.binaries.test. DIR/env tells ports, login and certificate.
# Started by root it runs as "news" (a system user on every Debian); started by anybody else, as that user.
set -euo pipefail
dir=$(realpath -m "${1:?usage: inn.sh DIR prepare|start|stop|status}")
action=${2:?usage: inn.sh DIR prepare|start|stop|status}
root=$dir/root
bin=$root/usr/lib/news/bin
plain=${INN_PORT:-11120}
tls=$((plain + 1))
feed=$((plain - 1))
mb=${INN_MB:-600}
export LD_LIBRARY_PATH=$root/usr/lib/news:$root/usr/lib/$(uname -m)-linux-gnu
export INNCONF=$dir/etc/inn.conf

if [ "$(id -u)" -eq 0 ]; then
    user=news
    as_user() {
        setpriv --reuid=news --regid=news --clear-groups env LD_LIBRARY_PATH="$LD_LIBRARY_PATH" \
            INNCONF="$INNCONF" HOME="$dir" "$@"
    }
else
    user=$(id -un)
    as_user() { HOME="$dir" "$@"; }
fi
group=$(id -gn "$user")

fetch() {
    [ -x "$bin/innd" ] && return
    mkdir -p "$dir/debs"
    (cd "$dir/debs" && apt-get download -qq inn2 inn2-inews libcanlock3)
    for deb in "$dir"/debs/*.deb; do
        dpkg -x "$deb" "$root"
    done
}

configure() {
    cat >"$INNCONF" <<X
mta: "/bin/true %s"
organization: "test"
ovmethod: tradindexed
hismethod: hisv6
pathhost: news.test.invalid
domain: test.invalid
fromhost: test.invalid
runasuser: $user
runasgroup: $group
pathnews: $root/usr/lib/news
pathbin: $bin
pathetc: $dir/etc
pathdb: $dir/db
pathlog: $dir/log
pathrun: $dir/run
pathtmp: $dir/tmp
pathspool: $dir/spool
patharticles: $dir/spool/articles
pathoverview: $dir/spool/overview
pathincoming: $dir/spool/incoming
pathoutgoing: $dir/spool/outgoing
patharchive: $dir/spool/archive
pathfilter: $dir/filter
pathhttp: $dir/http
port: $feed
bindaddress: 127.0.0.1
maxartsize: 0
localmaxartsize: 0
maxconnections: 0
wireformat: true
nnrpdloadlimit: 0
initialtimeout: 30
clienttimeout: 1800
allownewnews: false
docnfsstat: false
doinnwatch: false
nnrpdposthost: 127.0.0.1
nnrpdpostport: $feed
tlscertfile: $dir/etc/cert.pem
tlskeyfile: $dir/etc/key.pem
tlscafile: $dir/etc/cert.pem
tlsprotocols: [ TLSv1.2 TLSv1.3 ]
tlscompression: false
X
    printf 'method cnfs {\n newsgroups: *\n class: 1\n options: BIG\n}\n' >"$dir/etc/storage.conf"
    printf 'cycbuffupdate:25\nrefreshinterval:30\ncycbuff:ONE:%s:%d\nmetacycbuff:BIG:ONE:INTERLEAVE\n' \
        "$dir/spool/cnfs/one" "$((mb * 1024))" >"$dir/etc/cycbuff.conf"
    cat >"$dir/etc/readers.conf" <<X
auth "users" {
    hosts: "127.0.0.1, localhost, ::1, stdin"
    auth: "ckpasswd -f $dir/etc/newsusers"
}
access "users" {
    users: "*"
    newsgroups: "*"
    access: RPA
    addcanlockuser: none
}
X
    echo "tester:$(openssl passwd -6 secret)" >"$dir/etc/newsusers"
    echo 'ME:!*/!local::' >"$dir/etc/newsfeeds"
    printf 'streaming: true\nmax-connections: 100\npeer ME { hostname: "localhost, 127.0.0.1" }\n' \
        >"$dir/etc/incoming.conf"
    printf '/remember/:10\n*:A:1:never:never\n' >"$dir/etc/expire.ctl"
    for f in moderators distrib.pats subscriptions innfeed.conf passwd.nntp; do : >"$dir/etc/$f"; done
    echo 'all:*:*:drop' >"$dir/etc/control.ctl"
    for g in control control.cancel control.checkgroups control.newgroup control.rmgroup junk; do
        echo "$g 0000000000 0000000001 n"
    done >"$dir/db/active"
    echo 'alt.binaries.test 0000000000 0000000001 y' >>"$dir/db/active"
    : >"$dir/db/active.times"
    printf 'alt.binaries.test\tTest\n' >"$dir/db/newsgroups"
    openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=localhost \
        -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' \
        -keyout "$dir/etc/key.pem" -out "$dir/etc/cert.pem" 2>/dev/null
}

prepare() {
    fetch
    local d
    for d in etc db log run tmp filter http spool; do rm -rf "${dir:?}/$d"; done
    mkdir -p "$dir"/{etc,db,log,run,tmp,filter,http} \
        "$dir"/spool/{articles,overview,incoming/tmp,outgoing,archive,cnfs,innfeed}
    configure
    truncate -s "${mb}M" "$dir/spool/cnfs/one"
    : >"$dir/db/history"
    [ "$(id -u)" -ne 0 ] || chown -R "$user:$group" "$dir"/{etc,db,log,run,tmp,filter,http,spool}
    chmod 600 "$dir/etc/key.pem"
    chmod 640 "$dir"/etc/*.conf "$dir/etc/newsusers"
    (cd "$dir/db" && as_user "$bin/makedbz" -i -o)
    printf 'host=127.0.0.1\nplain=%d\ntls=%d\nuser=tester\npass=secret\ncert=%s\n' \
        "$plain" "$tls" "$dir/etc/cert.pem" >"$dir/env"
}

start() {
    as_user "$bin/innd"
    for _ in $(seq 50); do
        as_user "$bin/ctlinnd" -t 1 mode >/dev/null 2>&1 && break
        sleep 0.1
    done
    as_user "$bin/nnrpd" -D -n -4 127.0.0.1 -p "$plain"
    as_user "$bin/nnrpd" -D -n -4 127.0.0.1 -p "$tls" -S
}

stop() {
    local p
    as_user "$bin/ctlinnd" -t 5 shutdown bye >/dev/null 2>&1 || true
    for p in "$plain" "$tls"; do
        [ ! -f "$dir/run/nnrpd-$p.pid" ] || kill "$(cat "$dir/run/nnrpd-$p.pid")" || true
    done
}

case $action in
prepare | start | stop) "$action" ;;
status) as_user "$bin/ctlinnd" mode ;;
*) echo "inn.sh: unknown action $action" >&2; exit 2 ;;
esac
