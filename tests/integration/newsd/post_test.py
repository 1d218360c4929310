#!/usr/bin/env python3
"""A poster that nobody here wrote fills weir newsd: nyuu from npm.   post_test.py WEIR NYUU_DIR

nyuu is installed into NYUU_DIR on first use. Without node, npm or the network this test fails and says so."""
import fcntl
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, os.path.dirname(__file__))
from nntp import Connection, Newsd, decode, segments, trusting  # noqa: E402

NYUU_DIR = Path(sys.argv.pop(2))
WEIR = sys.argv.pop(1)


def install_nyuu():
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is not installed: run scripts/deps")
    NYUU_DIR.mkdir(parents=True, exist_ok=True)
    with open(NYUU_DIR / "lock", "w") as lock:  # the tests of two build trees may run at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        program = NYUU_DIR / "node_modules/nyuu/bin/nyuu.js"
        built = NYUU_DIR / "node_modules/yencode/build/Release/yencode.node"
        if not (program.exists() and built.exists()):
            done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "nyuu@0.4.0"],
                                  cwd=NYUU_DIR, capture_output=True, text=True)
            if done.returncode != 0 or not program.exists() or not built.exists():
                sys.exit("nyuu could not be installed from npm (network? compiler?):\n"
                         + done.stdout + done.stderr)
    return program


class Posting(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.root = Path(self.tmp.name)
        r = random.Random(11)
        self.files = {"a.bin": r.randbytes(1_234_567), "b with blanks.rar": r.randbytes(100_000),
                      "all.bytes": bytes(range(256)) * 700}
        (self.root / "up").mkdir()
        for name, data in self.files.items():
            (self.root / "up" / name).write_bytes(data)

    def tearDown(self):
        self.tmp.cleanup()

    def post(self, port, *args):
        return subprocess.run(
            ["node", str(NYUU), "-h", "127.0.0.1", "-P", str(port), "-n", "3", "-g",
             "alt.binaries.test", "-f", "poster <poster@example.com>", "-a", "100K", "-o",
             str(self.root / "out.nzb"), "-O", *args, *[str(self.root / "up" / n) for n in self.files]],
            capture_output=True, text=True, timeout=100)

    def check(self, d, tls, login):
        with Connection(d.port, tls) as c:
            if login:
                c.ask("AUTHINFO USER u")
                self.assertTrue(c.ask("AUTHINFO PASS p").startswith(b"281"))
            seen = {}
            for _, ids in segments(self.root / "out.nzb"):
                data = b""
                for i in ids:
                    status, body = c.body(i)
                    self.assertTrue(status.startswith(b"222"), status)
                    part, fields, good = decode(body)
                    self.assertTrue(good)
                    data += part
                seen[fields["name"]] = data
            self.assertEqual(seen, self.files)

    def test_plain(self):
        """What nyuu posts on three connections, with its own check by STAT, is fetched back identical."""
        (self.root / "spool").mkdir()
        with Newsd(WEIR, "--dir", str(self.root / "spool")) as d:
            done = self.post(d.port, "--check-connections", "1", "--check-delay", "0")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check(d, None, False)

    def test_tls_login_and_a_refusal(self):
        """The same over TLS with a login, in memory, when one article is refused at first."""
        script = self.root / "script"
        script.write_text('command cmd=POSTED nth=4 : status 441 "try again"\n')
        pem = self.root / "ca.pem"
        with Newsd(WEIR, "--tls", "--cert-out", str(pem), "--user", "u", "--pass", "p", "--script",
                   str(script)) as d:
            done = self.post(d.port, "-S", "--ignore-cert", "-u", "u", "-p", "p",
                             "--on-post-timeout", "retry", "--post-retries", "3",
                             "--post-retry-delay", "10ms")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check(d, trusting(pem), True)
            with Connection(d.port, trusting(pem)) as c:
                self.assertEqual(c.counters()["faults"], 1)


if __name__ == "__main__":
    NYUU = install_nyuu()
    unittest.main()
