#!/usr/bin/env python3
"""A downloader that nobody here wrote fetches from weir newsd: Debian's nzbget.   get_test.py WEIR"""
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.dirname(__file__))
from nntp import Newsd  # noqa: E402

WEIR = sys.argv[1]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    if shutil.which("nzbget") is None:
        sys.exit("nzbget is not installed: run scripts/deps")
    r = random.Random(5)
    files = {"a.bin": r.randbytes(6_000_000), "b c.dat": b"few bytes", "c.rar": r.randbytes(716800)}
    with tempfile.TemporaryDirectory() as tmp:
        root = Path(tmp)
        (root / "posts/set").mkdir(parents=True)
        for name, data in files.items():
            (root / "posts/set" / name).write_bytes(data)
        with Newsd(WEIR, "--dir", str(root / "posts"), "--nzb", str(root / "nzb"), "--tls", "--user",
                   "u", "--pass", "p", "--drop-pct", "20", "--article-size", "100000") as d:
            options = {
                "MainDir": root / "ng", "DestDir": root / "out", "LockFile": "",
                "ControlPort": free_port(), "Server1.Active": "yes", "Server1.Host": "127.0.0.1",
                "Server1.Port": d.port, "Server1.Encryption": "yes", "Server1.Username": "u",
                "Server1.Password": "p", "Server1.Connections": "6", "CertCheck": "no",
                "OutputMode": "log", "ParCheck": "manual", "Unpack": "no", "WriteLog": "none",
                "ArticleInterval": "0", "ArticleRetries": "9"}
            done = subprocess.run(
                ["nzbget", "-n", *[x for k, v in options.items() for x in ("-o", f"{k}={v}")],
                 str(root / "nzb/set.nzb")], capture_output=True, text=True, timeout=100)
        got = {f.name: f.read_bytes() for f in (root / "out").rglob("*") if f.is_file()}
        if got != files:
            sys.exit(f"nzbget has other files: {sorted(got)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    print("nzbget fetched the same bytes over TLS, with one reply in five broken off")


main()
