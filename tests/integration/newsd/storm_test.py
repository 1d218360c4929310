#!/usr/bin/env python3
"""Clients that do anything at any time: the server stays up, answers the next one, and loses nothing.

    storm_test.py WEIR [ROUNDS]      TEST_SEED=N repeats a run"""
import os
import random
import socket
import ssl
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(__file__))
from nntp import Connection, Newsd, decode, segments, trusting  # noqa: E402

WEIR = sys.argv[1]
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 150
ARTICLE = 30000
SCRIPT = "\n".join(
    f"{phase} pct={pct} : {action}" for phase, pct, action in (
        ("connect", 3, "reset"), ("connect", 3, "silence"), ("connect", 3, 'before "x"'),
        ("greet", 3, "drip every=0"), ("greet", 3, "cut after=5"), ("auth", 10, "drop"),
        ("article", 3, "reset after=50%"), ("article", 3, "close after=20%"), ("article", 3, "cut"),
        ("article", 3, "half-close after=9000"), ("article", 3, "silence after=10"),
        ("article", 3, "drip bytes=700 every=1"), ("article", 3, "pause ms=5 after=80%"),
        ("article", 3, "endless-body"), ("article", 3, "endless-line at=0"),
        ("article", 3, "double"), ("article", 3, "damage, alert"), ("article", 3, "swap, key-update"),
        ("article", 3, "truncate at=1, raw \"zz\" after=10"), ("article", 3, "dots, bare-lf"),
        ("command", 3, "endless-body"), ("command", 3, 'before "1", behind "2", double')))


def words(r, ids):
    """One command, right or not."""
    i = r.choice(ids) if r.random() < 0.9 else "no@where"
    return r.choice([
        f"BODY <{i}>", f"ARTICLE <{i}>", f"HEAD <{i}>", f"STAT <{i}>", "GROUP g", f"BODY {r.randrange(40)}",
        "XHITS", "XSTATS", "DATE", "LIST", "HELP", "CAPABILITIES", "AUTHINFO USER u",
        "AUTHINFO PASS p", "POST\r\nSubject: x\r\nMessage-ID: <%d@x>\r\n\r\n..\r\n%s\r\n." % (
            r.randrange(50), "y" * r.randrange(3000)), "POST", "QUIT" if r.random() < 0.1 else "STAT",
        "", "\0" * 9, "x" * r.randrange(6000), "BODY <" + "z" * 3000 + ">"]).encode() + b"\r\n"


def storm(r, port, tls, ids):
    """One client: connects, sends pieces of a pipeline, reads some of it or nothing, and goes in some way."""
    sock = None
    try:
        sock = socket.create_connection(("127.0.0.1", port), 5)
        sock.settimeout(0.02)
        if tls is not None and r.random() < 0.9:
            sock.settimeout(0.3)
            sock = tls.wrap_socket(sock, server_hostname="localhost")
            sock.settimeout(0.02)
        data = b"".join(words(r, ids) for _ in range(r.randrange(40)))
        if r.random() < 0.1:
            data += r.randbytes(r.randrange(5000))
        for _ in range(r.randrange(1, 8)):
            cut = r.randrange(len(data) + 1)
            sock.send(data[:cut])
            data = data[cut:]
            if r.random() < 0.7:
                sock.recv(r.choice((1, 4096, 1 << 20)))
        if r.random() < 0.3:
            sock.shutdown(r.choice((socket.SHUT_WR, socket.SHUT_RD, socket.SHUT_RDWR)))
    except (OSError, ssl.SSLError):
        pass
    if sock is not None and r.random() < 0.5:
        sock.close()
        return None
    return sock  # left open for a while


def check(port, tls, ids, data):
    """A client that behaves gets its article; the storm's rules may hit it, so it asks until it is served."""
    for _ in range(400):
        try:
            with Connection(port, tls, timeout=1) as c:
                c.limit = 10 * ARTICLE
                n = random.Random(port).randrange(len(ids))
                status, body = c.body(ids[n])
                got, fields, good = decode(body)
                if good and got == data[n * ARTICLE:(n + 1) * ARTICLE]:
                    return
        except (OSError, EOFError, KeyError, ValueError, ssl.SSLError):
            continue
    sys.exit("the server does not serve any more")


def main():
    seed = int(os.environ.get("TEST_SEED", "1"))
    print(f"TEST_SEED={seed}")
    r = random.Random(seed)
    with tempfile.TemporaryDirectory() as tmp:
        root = Path(tmp)
        (root / "posts/set").mkdir(parents=True)
        data = r.randbytes(20 * ARTICLE)
        (root / "posts/set/a").write_bytes(data)
        (root / "script").write_text(SCRIPT)
        for args in ((), ("--tls", "--cert-out", str(root / "ca.pem")), ("--rtt", "3"),
                     ("--rate", "20M", "--cache", "1")):
            with Newsd(WEIR, "--dir", str(root / "posts"), "--nzb", str(root), "--article-size",
                       str(ARTICLE), "--script", str(root / "script"), *args) as d:
                tls = trusting(root / "ca.pem") if "--tls" in args else None
                ids = segments(root / "set.nzb")[0][1]
                held = []
                for _ in range(ROUNDS):
                    held.append(storm(r, d.port, tls, ids))
                    if len(held) > 20:
                        sock = held.pop(r.randrange(len(held)))
                        if sock is not None:
                            sock.close()
                check(d.port, tls, ids, data)
                start = time.monotonic()
            print(" ".join(args) or "plain", f"ended in {time.monotonic() - start:.2f} s")
            for sock in held:
                if sock is not None:
                    sock.close()


main()
