#!/usr/bin/env python3
"""weir newsd as a server that behaves: articles, NZBs, login, TLS, posting, delays.   serve_test.py WEIR"""
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, os.path.dirname(__file__))
from nntp import Connection, Newsd, decode, segments, trusting  # noqa: E402

WEIR = sys.argv.pop(1)
ARTICLE = 20000


def make_posts(root):
    """Two sets with names that need escaping, and bytes of every value."""
    r = random.Random(7)
    files = {
        "first/a.bin": r.randbytes(5 * ARTICLE + 17),
        "first/sub/b & \"c\" <d>.txt": b"exactly two" * 10,
        "first/ü.dat": bytes(range(256)) * 40,
        "first/one": b"x",
        "second/dots.bin": bytes([(ord(".") - 42) & 255]) * 30000,
        "second/worst.bin": bytes([(c - 42) & 255 for c in b"\0\r\n="]) * 9000,
        "second/even.bin": r.randbytes(2 * ARTICLE),
    }
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (root / "second/empty").touch()
    (root / "loose").write_bytes(b"not in a set")
    os.symlink("/etc/passwd", root / "second/link")
    return files


class Serving(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.root = Path(self.tmp.name)
        self.posts = self.root / "posts"
        self.nzbs = self.root / "nzbs"
        self.files = make_posts(self.posts)

    def tearDown(self):
        self.tmp.cleanup()

    def start(self, *args):
        return Newsd(WEIR, "--dir", str(self.posts), "--nzb", str(self.nzbs), "--article-size",
                     str(ARTICLE), *args)

    def fetch_all(self, c):
        """Every file of every NZB by BODY, as {set: {name: bytes}}."""
        out = {}
        for nzb in sorted(self.nzbs.glob("*.nzb")):
            for subject, ids in segments(nzb):
                data = b""
                c.send(*[f"BODY <{i}>" for i in ids])  # all at once: pipelined
                for number, i in enumerate(ids, 1):
                    status = c.line()
                    self.assertTrue(status.startswith(f"222 0 <{i}>".encode()), status)
                    part, fields, good = decode(c.block())
                    self.assertTrue(good, (subject, number))
                    self.assertEqual(int(fields["ypart begin"]), len(data) + 1)
                    data += part
                    self.assertEqual(int(fields["ypart end"]), len(data))
                    self.assertEqual(fields["ybegin part"], str(number))
                    self.assertEqual(fields["ybegin total"], str(len(ids)))
                self.assertEqual(int(fields["ybegin size"]), len(data))
                out.setdefault(nzb.stem, {})[fields["name"]] = data
        return out

    def expected(self):
        out = {}
        for name, data in self.files.items():
            out.setdefault(name.split("/")[0], {})[name.split("/")[-1]] = data
        return out

    def test_every_file_comes_back(self):
        """Every file below every directory is served whole, pipelined, plain and over TLS, and the same after a
        restart, with the cache too small to hold anything too."""
        before = None
        for args in ((), ("--tls", "--cert-out", str(self.root / "ca.pem")), ("--cache", "1")):
            with self.start(*args) as d:
                tls = trusting(self.root / "ca.pem") if "--tls" in args else None
                with Connection(d.port, tls) as c:
                    self.assertEqual(self.fetch_all(c), self.expected())
                self.assertEqual(d.said["empty_files"], 1)
                self.assertEqual(d.said["files"], len(self.files))
            ids = {n.name: n.read_bytes() for n in self.nzbs.glob("*.nzb")}
            self.assertTrue(before is None or ids == before, "ids or dates changed by a restart")
            before = ids

    def test_nzb(self):
        """The NZB has its DOCTYPE, numbered subjects and one group per file."""
        with self.start("--group", "alt.binaries.weir", "--age", "10"):
            text = (self.nzbs / "first.nzb").read_text()
        self.assertIn('<!DOCTYPE nzb PUBLIC "-//newzBin//DTD NZB 1.1//EN"', text)
        self.assertEqual(text.count("<group>alt.binaries.weir</group>"), 4)
        subjects = [s for s, _ in segments(self.nzbs / "first.nzb")]
        self.assertEqual(subjects[0], '[1/4] - "a.bin" yEnc (1/6)')
        self.assertEqual(subjects[2], '[3/4] - "b & "c" <d>.txt" yEnc (1/1)')
        date = int(text.split('date="')[1].split('"')[0])
        age = (self.posts / "first/a.bin").stat().st_mtime - date
        self.assertEqual(int(age), 10 * 86400)

    def test_commands(self):
        """Each command answers as RFC 3977 says."""
        with self.start() as d, Connection(d.port) as c:
            self.assertTrue(c.greeting.startswith(b"200"))
            i = segments(self.nzbs / "first.nzb")[0][1][1]
            self.assertTrue(c.ask("CAPABILITIES").startswith(b"101"))
            self.assertIn(b"READER\r\n", c.block())
            self.assertTrue(c.ask("mode reader").startswith(b"200"))
            self.assertRegex(c.ask("DATE"), rb"^111 20\d{12}$")
            self.assertTrue(c.ask("HELP").startswith(b"100"))
            c.block()
            self.assertTrue(c.ask("LIST").startswith(b"215"))
            self.assertIn(b"alt.binaries.test", c.block())
            self.assertTrue(c.ask(f"STAT <{i}>").startswith(f"223 0 <{i}>".encode()))
            self.assertTrue(c.ask(f"HEAD <{i}>").startswith(f"221 0 <{i}>".encode()))
            head = c.block().decode()
            self.assertIn(f"Message-ID: <{i}>\r\n", head)
            self.assertIn('Subject: [1/4] - "a.bin" yEnc (2/6)\r\n', head)
            self.assertTrue(c.ask(f"ARTICLE <{i}>").startswith(f"220 0 <{i}>".encode()))
            whole = c.block()
            self.assertEqual(whole, head.encode() + b"\r\n" + c.body(i)[1])
            for line, code in (("STAT <no@where>", b"430"), ("BODY <>", b"430"), ("BODY <", b"430"),
                               ("STAT 1", b"412"), ("BODY", b"412"), ("GROUP", b"501"),
                               ("GROUP a.b", b"211"), ("STAT", b"223 1 "), ("STAT 2", b"223 2 "),
                               ("STAT 9999", b"423"), ("STAT x", b"423"), ("XYZ", b"500"),
                               ("", b"500"), ("A" * 5000, b"500"), ("MODE x", b"501")):
                self.assertTrue(c.ask(line).startswith(code), line)
            self.assertTrue(c.ask("QUIT").startswith(b"205"))
            self.assertEqual(c.rest(), (b"", "eof"))

    def test_login(self):
        """Nothing is read or posted before the right name and password were given."""
        with self.start("--user", "u s", "--pass", "p w") as d:
            i = segments(self.nzbs / "first.nzb")[0][1][0]
            with Connection(d.port) as c:
                for line in (f"BODY <{i}>", "POST", "GROUP a", "LIST"):
                    self.assertTrue(c.ask(line).startswith(b"480"))
                self.assertTrue(c.ask("AUTHINFO PASS p w").startswith(b"482"))
                for user, password, code in (("u s", "p", b"481"), ("x", "p w", b"481"),
                                             ("u s", "p w", b"281")):
                    self.assertTrue(c.ask(f"AUTHINFO USER {user}").startswith(b"381"))
                    self.assertTrue(c.ask(f"AUTHINFO PASS {password}").startswith(code))
                self.assertTrue(c.body(i)[0].startswith(b"222"))
                n = c.counters()
                self.assertEqual((n["logins"], n["login_failures"]), (1, 2))

    def test_tls_is_verified(self):
        """The self-made certificate proves localhost to a client that trusts it, also to openssl."""
        pem = self.root / "ca.pem"
        with self.start("--tls", "--cert-out", str(pem)) as d:
            done = subprocess.run(
                ["openssl", "s_client", "-quiet", "-verify_return_error", "-CAfile",
                 str(pem), "-verify_hostname", "localhost", "-connect", f"127.0.0.1:{d.port}"],
                input=b"DATE\r\nQUIT\r\n", capture_output=True, timeout=20)
            self.assertRegex(done.stdout, rb"^200 .*\r\n111 \d{14}\r\n205 ", done.stderr)

    def test_post(self):
        """A posted article is served again byte for byte, and a second one with its id is refused."""
        body = b"..dot line\r\nlast line =\r\n" + b"z" * 70000 + b"\r\n"
        head = b"From: a@b\r\nMessage-ID:  <made@up>\r\nSubject: s\r\nNewsgroups: a.b\r\n"
        with self.start() as d, Connection(d.port) as c:
            self.assertTrue(c.ask("POST").startswith(b"340"))
            # The end of one article, and what is pipelined behind it, in one write.
            c.sock.sendall(head + b"\r\n" + body + b".\r\nPOST\r\n")
            self.assertTrue(c.line().startswith(b"240 <made@up>"))
            self.assertTrue(c.line().startswith(b"340"))
            for byte in head + b"\r\n" + body[:40] + b"\r\n.\r\n":
                c.sock.sendall(bytes([byte]))
            self.assertTrue(c.line().startswith(b"441"))
            self.assertEqual(c.body("made@up")[1], body)
            c.send("ARTICLE <made@up>")
            c.line()
            self.assertEqual(c.block(), head + b"\r\n" + body)
            c.send("POST", "Subject: no id", "", "text", ".")
            self.assertTrue(c.line().startswith(b"340"))
            made = c.line().split()[1].decode()[1:-1]
            self.assertEqual(c.body(made)[1], b"text\r\n")
            c.send("POST", "no empty line", ".")
            self.assertTrue(c.line().startswith(b"340"))
            self.assertTrue(c.line().startswith(b"441"))

    def test_hits(self):
        """XHITS says how often each article was asked for and checked."""
        with self.start() as d, Connection(d.port) as c:
            ids = segments(self.nzbs / "first.nzb")[0][1]
            for i in (ids[0], ids[0], ids[2]):
                c.body(i)
            c.ask(f"STAT <{ids[2]}>")
            self.assertEqual(c.hits(), {ids[0]: (2, 0), ids[2]: (1, 1)})
            self.assertEqual(c.ask(f"XHITS <{ids[2]}>"), b"291 1 1")

    def test_rtt(self):
        """A reply comes a round trip after its command, and twenty pipelined ones take one round trip, not twenty."""
        with self.start("--rtt", "150") as d, Connection(d.port) as c:
            ids = segments(self.nzbs / "second.nzb")[0][1] * 10
            start = time.monotonic()
            c.send(*[f"BODY <{i}>" for i in ids])
            for _ in ids:
                self.assertTrue(c.line().startswith(b"222"))
                c.block()
            took = time.monotonic() - start
            self.assertGreaterEqual(took, 0.149)
            self.assertLess(took, 150e-3 * len(ids) / 2)

    def test_rate(self):
        """All connections together get the rate, and each its share."""
        rate = 400_000
        with self.start("--rate", str(rate)) as d:
            ids = segments(self.nzbs / "first.nzb")[0][1][:5]
            conns = [Connection(d.port) for _ in range(4)]
            start = time.monotonic()
            for c in conns:
                c.send(*[f"BODY <{i}>" for i in ids])
            total = 0
            for c in conns:
                for _ in ids:
                    c.line()
                    total += len(c.block())
            took = time.monotonic() - start
            for c in conns:
                c.close()
            # A token bucket may let through what it held at the start, never more; a slow machine only takes longer.
            self.assertGreater(took, (total - rate / 10) / rate)

    def test_missing_and_drops(self):
        """--missing takes away a share of the articles, the same ones each time; --drop-pct breaks replies off."""
        def missing(seed):
            with self.start("--missing", "*.bin:40", "--seed", str(seed)) as d, \
                    Connection(d.port) as c:
                gone = set()
                for nzb in self.nzbs.glob("*.nzb"):
                    for subject, ids in segments(nzb):
                        for i in ids:
                            if not c.ask(f"STAT <{i}>").startswith(b"223"):
                                gone.add(i)
                                self.assertIn(".bin", subject)
                return gone
        first = missing(1)
        self.assertTrue(1 <= len(first) <= 10, first)
        self.assertEqual(first, missing(1))
        self.assertNotEqual(first, missing(2))
        with self.start("--drop-pct", "100") as d:
            i = segments(self.nzbs / "first.nzb")[0][1][0]
            with Connection(d.port) as c:
                c.send(f"BODY <{i}>")
                got, how = c.rest()
                self.assertEqual(how, "reset")
                self.assertLess(len(got), ARTICLE)

    def test_bad_options(self):
        """A wrong option is named and nothing is started."""
        for args, word in ((("--dir", "/does/not/exist"), "/does/not/exist"),
                           (("--missing", "x"), "--missing"), (("--cert", "x"), "--key"),
                           (("--user", "x"), "--pass"), (("--bind", "nowhere"), "nowhere"),
                           (("--script", "/does/not/exist"), "/does/not/exist"), (("x",), "x")):
            done = subprocess.run([WEIR, "newsd", "--port", "0", *args], capture_output=True,
                                  text=True, timeout=20)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(word, done.stderr)
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
