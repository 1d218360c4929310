#!/usr/bin/env python3
"""What weir newsd costs: CPU seconds of the server per GB it sends, plain, over TLS, and plain with every article
encoded again for every request.

    bench/newsd.py WEIR [--connections N] [--gb G] [--runs R]

But for the last case the articles are encoded before the clock starts (a first pass). The client only drains. Prints one JSON line per case with the median of the runs; the spread of the runs is in it."""
import argparse
import json
import os
import selectors
import ssl
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/integration/newsd"))
from nntp import Connection, Newsd, segments  # noqa: E402

DATA = 200 * 1024 * 1024


def cpu(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def drain(port, tls, ids, connections):
    """Asks for every id on some connection, all at once, and throws the bytes away."""
    sel = selectors.DefaultSelector()
    share = [ids[n::connections] for n in range(connections)]
    for mine in share:
        c = Connection(port, tls)
        want = b"".join(f"BODY <{i}>\r\n".encode() for i in mine) + b"QUIT\r\n"
        c.sock.sendall(want)
        c.sock.setblocking(False)
        sel.register(c.sock, selectors.EVENT_READ, c)
    total, open_ = 0, connections
    space = memoryview(bytearray(1 << 18))
    while open_:
        for key, _ in sel.select():
            sock = key.fileobj
            try:
                while True:
                    n = sock.recv_into(space)
                    if n == 0:
                        sel.unregister(sock)
                        sock.close()
                        open_ -= 1
                        break
                    total += n
            except (BlockingIOError, ssl.SSLWantReadError):
                pass
    return total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("weir")
    p.add_argument("--connections", type=int, default=8)
    p.add_argument("--gb", type=float, default=2)
    p.add_argument("--runs", type=int, default=5)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        root = Path(tmp)
        (root / "posts/set").mkdir(parents=True)
        (root / "posts/set/data").write_bytes(os.urandom(DATA))
        cases, cipher = {}, {}
        servers = {}
        for name, args in (("plain", ()), ("tls", ("--tls",)), ("encode", ("--cache", "1"))):
            servers[name] = Newsd(a.weir, "--dir", str(root / "posts"), "--nzb", str(root), *args)
        ids = segments(root / "set.nzb")[0][1]
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        context = {"plain": None, "tls": tls, "encode": None}
        for name, d in servers.items():
            drain(d.port, context[name], ids, a.connections)
            cases[name] = []
            with Connection(d.port, context[name]) as c:
                cipher[name] = c.sock.cipher()[0] if context[name] else None
        rounds = max(1, round(a.gb * 1e9 / DATA))
        for _ in range(a.runs):
            for name, d in servers.items():
                before, start = cpu(d.process.pid), time.monotonic()
                total = drain(d.port, context[name], ids * rounds, a.connections)
                used, took = cpu(d.process.pid) - before, time.monotonic() - start
                cases[name].append((used / total * 1e9, total / took / 1e6))
        for name, rows in cases.items():
            per_gb = [r[0] for r in rows]
            print(json.dumps({
                "case": name, "cipher": cipher[name], "connections": a.connections, "runs": a.runs,
                "server_cpu_s_per_gb": round(statistics.median(per_gb), 3),
                "least": round(min(per_gb), 3), "most": round(max(per_gb), 3),
                "mb_per_s": round(statistics.median(r[1] for r in rows))}))
            servers[name].__exit__()


main()
