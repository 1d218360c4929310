#!/usr/bin/env python3
"""weir newsd as a server that misbehaves: every action of a fault script, seen from the wire.   fault_test.py WEIR"""
import os
import random
import re
import ssl
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, os.path.dirname(__file__))
from nntp import Connection, Newsd, decode, segments, trusting  # noqa: E402

WEIR = sys.argv.pop(1)
ARTICLE = 20000


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory()
        cls.root = Path(cls.tmp.name)
        (cls.root / "posts/set").mkdir(parents=True)
        # Every 30th byte becomes a dot when it is encoded, so that many lines begin with one.
        r = random.Random(3)
        data = bytearray(r.randbytes(4 * ARTICLE))
        data[::30] = bytes([(ord(".") - 42) & 255]) * len(data[::30])
        cls.data = bytes(data)
        (cls.root / "posts/set/a.bin").write_bytes(cls.data)
        cls.pem = cls.root / "ca.pem"
        with Newsd(WEIR, "--dir", str(cls.root / "posts"), "--nzb", str(cls.root),
                   "--article-size", str(ARTICLE)):
            cls.ids = segments(cls.root / "set.nzb")[0][1]

    @classmethod
    def tearDownClass(cls):
        cls.tmp.cleanup()

    def start(self, script, *args, tls=False):
        path = self.root / "script"
        path.write_text(script)
        if tls:
            args += ("--tls", "--cert-out", str(self.pem))
        return Newsd(WEIR, "--dir", str(self.root / "posts"), "--article-size", str(ARTICLE),
                     "--script", str(path), *args)

    def connect(self, d, tls=False, **kw):
        return Connection(d.port, trusting(self.pem) if tls else None, **kw)

    def good(self, c, part):
        """The part comes as it should."""
        status, body = c.body(self.ids[part])
        self.assertTrue(status.startswith(b"222"), status)
        got, _, good = decode(body)
        self.assertTrue(good)
        self.assertEqual(got, self.data[part * ARTICLE:(part + 1) * ARTICLE])

    def both(self):
        for tls in (False, True):
            with self.subTest(tls=tls):
                yield tls

    def test_endings(self):
        """RST, FIN, a cut without close_notify and a TLS alert come where the script says: in the middle of a body,
        before it, or behind it."""
        how = {"reset": (("reset",), ("reset", "torn")),  # Python takes a reset within TLS for an end, too
               "close": (("eof",), ("eof",)), "cut": (("eof",), ("torn",))}
        for tls in self.both():
            for action, ends in how.items():
                for after in ("0", "5000", "50%", "all"):
                    with self.start(f"article part=2 : {action} after={after}", tls=tls) as d, \
                            self.connect(d, tls) as c:
                        self.good(c, 0)
                        c.send(f"BODY <{self.ids[1]}>")
                        got, end = c.rest()
                        self.assertIn(end, ends[tls], (action, after))
                        whole = len(got) > ARTICLE and got.endswith(b"\r\n.\r\n")
                        self.assertEqual(whole, after == "all", (action, after))
                        if after in ("0", "5000"):
                            self.assertEqual(len(got), int(after))
            with self.start("article part=2 : alert after=3000", tls=tls) as d, \
                    self.connect(d, tls) as c:
                c.send(f"BODY <{self.ids[1]}>")
                got, end = c.rest()
                if tls:  # a plain record in the midst of encrypted ones
                    self.assertNotIn(end, ("eof", "torn", "silence"))
                else:
                    self.assertTrue(got.endswith(b"\x15\x03\x03\x00\x02\x02\x28"))

    def test_half_close(self):
        """After half-close the server sends no more, and still takes bytes."""
        for tls in self.both():
            with self.start("article part=1 : half-close after=100", tls=tls) as d, \
                    self.connect(d, tls) as c:
                c.send(f"BODY <{self.ids[0]}>")
                self.assertEqual(c.rest()[1], "eof")
                if not tls:
                    c.send("DATE")
                    time.sleep(0.2)
                    c.send("DATE")

    def test_silence(self):
        """Silence is an open connection on which nothing comes: at connect, for the greeting, at login, before a body
        and within one."""
        for rule, tls in (("connect : silence", False), ("connect : silence", True),
                          ("greet : silence", False), ("greet : silence after=10", True)):
            with self.start(rule, tls=tls) as d:
                try:
                    with self.connect(d, tls, timeout=0.4) as c:
                        self.fail(f"{rule}: greeted with {c.greeting}")
                except TimeoutError:
                    pass
        with self.start("auth cmd=pass : silence") as d, self.connect(d) as c:
            c.ask("AUTHINFO USER x")
            c.send("AUTHINFO PASS x")
            self.assertTrue(c.silent_for(0.3))
        for after, least in (("0", 0), ("1", 1), ("50%", 10000)):
            with self.start(f"article : silence after={after}", tls=True) as d, \
                    self.connect(d, True) as c:
                c.send(f"BODY <{self.ids[0]}>")
                while len(c.buffer) < least:
                    c.more()
                c.sock.settimeout(0.3)
                got, end = c.rest()
                self.assertEqual(end, "silence")
                self.assertTrue(least <= len(got) <= 1.2 * least)

    def test_drip_and_pause(self):
        """A drip comes byte by byte, in any chunks, and is the right text in the end; a pause is one gap."""
        with self.start("article part=1 times=1 : drip bytes=1000 every=1\n"
                        "article part=1 : drip after=20% bytes=3000 every=0\n"
                        "article part=2 : pause after=70 ms=300\n"
                        "greet : drip bytes=1 every=0\n"
                        "article part=3 : drip every=200") as d, self.connect(d) as c:
            self.good(c, 0)
            self.good(c, 0)
            start = time.monotonic()
            self.good(c, 1)
            self.assertGreaterEqual(time.monotonic() - start, 0.29)
            c.send(f"BODY <{self.ids[2]}>")
            start = time.monotonic()
            while len(c.buffer) < 4:
                c.more()
            self.assertGreaterEqual(time.monotonic() - start, 0.59)

    def test_single_bytes(self):
        """One-byte chunks are one-byte TLS records."""
        with self.start("greet : drip bytes=1 every=0", tls=True) as d, \
                self.connect(d, True, greet=False) as c:
            sizes = []
            while b"\r\n" not in c.buffer:
                before = len(c.buffer)
                c.more()
                sizes.append(len(c.buffer) - before)
            self.assertEqual(set(sizes), {1})

    def test_endless(self):
        """An endless line has no line end, an endless body no dot line."""
        for action in ("endless-line", "endless-body"):
            with self.start(f"article : {action} at=1000") as d, self.connect(d) as c:
                c.send(f"BODY <{self.ids[0]}>")
                while len(c.buffer) < 3_000_000:
                    c.more()
                tail = c.buffer[1000:]
                self.assertNotIn(b"\r\n.\r\n", c.buffer)
                self.assertEqual(b"\n" in tail, action == "endless-body")
                self.assertLess(max(map(len, tail.split(b"\n"))),
                                140 if action == "endless-body" else 1 << 30)
        with self.start("greet : endless-line at=0") as d, self.connect(d, greet=False) as c:
            while len(c.buffer) < 1_000_000:
                c.more()
            self.assertNotIn(b"\n", c.buffer)

    def test_status(self):
        """A status code takes the place of a reply at every phase, with our words or the script's, and the connection
        goes on or closes behind it."""
        for code in (400, 420, 423, 430, 480, 481, 482, 500, 502, 503, 599):
            with self.start(f'article times=1 : status {code} "so # it: is, \\"said\\""\n') as d, \
                    self.connect(d) as c:
                self.assertEqual(c.body(self.ids[0])[0], f'{code} so # it: is, "said"'.encode())
                self.good(c, 0)
        with self.start('greet conn=1 : status 400, close\n'
                        'greet conn=2-3 : status 502 "too many connections", close\n'
                        'auth cmd=user conn=4 : status 482\n'
                        'auth cmd=pass conn=5- : status 481\n') as d:
            for n in (1, 2, 3):
                with self.connect(d) as c:
                    self.assertTrue(c.greeting.startswith(b"400" if n == 1 else b"502"))
                    self.assertEqual(c.rest(), (b"", "eof"))
            with self.connect(d) as c:
                self.assertTrue(c.ask("AUTHINFO USER x").startswith(b"482"))
            with self.connect(d) as c:
                self.assertTrue(c.ask("AUTHINFO USER x").startswith(b"381"))
                self.assertTrue(c.ask("AUTHINFO PASS x").startswith(b"481"))

    def test_a_refused_login_is_none(self):
        """Who got 481 from the script has not logged in."""
        with self.start("auth cmd=pass times=1 : status 481", "--user", "u", "--pass", "p") as d, \
                self.connect(d) as c:
            for code, then in ((b"481", b"480"), (b"281", b"223")):
                c.ask("AUTHINFO USER u")
                self.assertTrue(c.ask("AUTHINFO PASS p").startswith(code))
                self.assertTrue(c.ask(f"STAT <{self.ids[0]}>").startswith(then))

    def test_raw_replies(self):
        """Garbage, an empty status line, bytes before and behind a reply."""
        with self.start(r'''
                article part=1 : send "\xff\0garbage\r\n"   # not even a digit
                article part=2 : send "\r\n"
                article part=3 : before "100 early\r\n", behind "222 0 <late> late\r\n"
                greet : before "201 first\r\n"
                ''') as d, self.connect(d) as c:
            self.assertEqual(c.greeting, b"201 first")
            self.assertTrue(c.line().startswith(b"200"))
            self.assertEqual(c.ask(f"BODY <{self.ids[0]}>"), b"\xff\0garbage")
            self.assertEqual(c.ask(f"BODY <{self.ids[1]}>"), b"")
            self.assertEqual(c.ask(f"BODY <{self.ids[2]}>"), b"100 early")
            self.assertTrue(c.line().startswith(b"222 0 <" + self.ids[2].encode()))
            c.block()
            self.assertEqual(c.line(), b"222 0 <late> late")

    def test_wrong_articles(self):
        """The status line names another id, or the body is another part's with a right CRC."""
        with self.start("article part=1 : wrong-id\narticle part=2 : swap\n") as d, \
                self.connect(d) as c:
            status, body = c.body(self.ids[0])
            self.assertTrue(status.startswith(b"222 0 <"))
            self.assertNotIn(self.ids[0].encode(), status)
            self.assertEqual(decode(body)[0], self.data[:ARTICLE])
            status, body = c.body(self.ids[1])
            self.assertIn(self.ids[1].encode(), status)
            data, fields, good = decode(body)
            self.assertTrue(good)
            self.assertEqual(fields["ybegin part"], "3")

    def test_pipeline(self):
        """One reply of a pipeline of twenty is dropped, or comes twice."""
        for action, count in (("drop", 19), ("double", 21)):
            with self.start(f"article nth=5 : {action}") as d, self.connect(d) as c:
                asked = [self.ids[n % 4] for n in range(20)]
                c.send(*[f"BODY <{i}>" for i in asked], "DATE")
                seen = []
                while not (status := c.line()).startswith(b"111"):
                    seen.append(status.split(b"<")[1].split(b">")[0].decode())
                    self.assertTrue(decode(c.block())[2])
                self.assertEqual(len(seen), count)
                wrong = asked[:4] + (asked[5:] if action == "drop" else asked[4:5] + asked[4:])
                self.assertEqual(seen, wrong)

    def test_bad_bodies(self):
        """Damage and a lying CRC keep the size; a truncated body ends with its dot line all the same."""
        with self.start("article part=1 : damage\narticle part=2 : bad-crc\n"
                        "article part=3 : truncate at=40%\n"
                        "article part=4 cmd=ARTICLE : truncate at=0\n") as d, self.connect(d) as c:
            data, fields, good = decode(c.body(self.ids[0])[1])
            self.assertFalse(good)
            self.assertEqual(len(data), ARTICLE)
            self.assertEqual(sum(a != b for a, b in zip(data, self.data)), 1)
            data, fields, good = decode(c.body(self.ids[1])[1])
            self.assertFalse(good)
            self.assertEqual(data, self.data[ARTICLE:2 * ARTICLE])
            body = c.body(self.ids[2])[1]
            self.assertNotIn(b"=yend", body)
            self.assertTrue(0.3 * ARTICLE < len(body) < 0.5 * ARTICLE)
            c.send(f"ARTICLE <{self.ids[3]}>")
            self.assertTrue(c.line().startswith(b"220"))
            self.assertEqual(c.block(), b"")
            self.good(c, 3)

    def test_dots(self):
        """Lines that begin with a dot come dot-stuffed, and decode to the same bytes."""
        with self.start("article : dots") as d, self.connect(d) as c:
            status, body = c.body(self.ids[0])
            self.assertGreater(body.count(b"\r\n.."), 3)
            self.assertNotIn(b"\r\n=n", body)
            self.assertEqual(decode(body)[0], self.data[:ARTICLE])

    def test_bare_lf(self):
        """Data lines may end with LF alone; the last one and all others keep CRLF, and the bytes are the same."""
        with self.start("article part=1 : bare-lf") as d, self.connect(d) as c:
            status, body = c.body(self.ids[0])
            self.assertGreater(body.count(b"\n"), 100)
            self.assertEqual(body.count(b"\r\n"), 4)  # =ybegin, =ypart, the last data line, =yend
            self.assertEqual(decode(re.sub(b"\r?\n", b"\r\n", body))[0], self.data[:ARTICLE])
            self.good(c, 1)

    def test_before_tls(self):
        """Plain text before the handshake, an alert or a reset instead of one."""
        with self.start('connect conn=1 : before "200 plain\\r\\n"\nconnect conn=2 : alert\n'
                        'connect conn=3 : reset\nconnect conn=4 : close', tls=True) as d:
            for want in (ssl.SSLError, ssl.SSLError, (ConnectionResetError, ssl.SSLError),
                         (ConnectionResetError, ssl.SSLError, OSError)):
                with self.assertRaises(want):
                    self.connect(d, True).close()
            with self.connect(d, True) as c:
                self.good(c, 0)

    def test_key_update(self):
        """A KeyUpdate in the middle of a body does no harm to a client that knows TLS 1.3."""
        with self.start("article part=1-3 : key-update after=5000", tls=True) as d, \
                self.connect(d, True) as c:
            self.assertEqual(c.sock.version(), "TLSv1.3")
            for part in range(4):
                self.good(c, part)

    def test_raw_under_tls(self):
        """Bytes past TLS break the stream for a client that looks."""
        with self.start('article : raw "not a record" after=100', tls=True) as d, \
                self.connect(d, True) as c:
            c.send(f"BODY <{self.ids[0]}>")
            self.assertNotIn(c.rest()[1], ("eof", "silence"))

    def test_conditions(self):
        """conn, nth, hit, part, times, match and cmd choose the occasion; the first rule that fits acts."""
        with self.start("article match=*/a.bin part=1 hit=1 : status 430\n"
                        "article match=a.b?n part=2 times=2 : status 430\n"
                        "article match=p3.* nth=2-3 : status 430\n"
                        "article match=nothing : status 599\n"
                        "article conn=2 part=4 : status 431\n"
                        "article part=4 pct=0 : status 599\n"
                        "command cmd=date : status 599\n"
                        "command cmd=? : status 598\n") as d, self.connect(d) as c:
            got = [[c.ask(f"STAT <{self.ids[n]}>")[:3] for _ in range(4)] for n in range(4)]
            miss, there = b"430", b"223"
            self.assertEqual(got, [[miss, there, there, there], [miss, miss, there, there],
                                   [there, miss, miss, there], [there] * 4])
            self.assertTrue(c.ask("DATE").startswith(b"599"))
            self.assertTrue(c.ask("XYZ").startswith(b"598"))
            with self.connect(d) as second:
                self.assertTrue(second.ask(f"STAT <{self.ids[3]}>").startswith(b"431"))
            self.assertEqual(c.counters()["faults"], 8)

    def test_posting_refused(self):
        """POST can be refused at once, or when the article is here."""
        article = ("Subject: x", "Message-ID: <a@b>", "", "text", ".")
        with self.start("command cmd=POST times=1 : status 440\n"
                        "command cmd=POSTED times=1 : status 441") as d, self.connect(d) as c:
            self.assertTrue(c.ask("POST").startswith(b"440"))
            self.assertTrue(c.ask("DATE").startswith(b"111"))
            c.send("POST", *article)
            self.assertTrue(c.line().startswith(b"340"))
            self.assertTrue(c.line().startswith(b"441"))
            self.assertTrue(c.ask("STAT <a@b>").startswith(b"430"))
            c.send("POST", *article)
            self.assertTrue(c.line().startswith(b"340"))
            self.assertTrue(c.line().startswith(b"240"))

    def test_bad_scripts(self):
        """A script that makes no sense is refused with the line and the word."""
        import subprocess
        path = self.root / "bad"
        for text, words in (("\nfoo : reset", ("line 2", "foo")), ("article", ("line 1", "ACTION")),
                            ("article : explode", ("explode",)), ("article x=1 : reset", ("'x'",)),
                            ("article nth=0x1 : reset", ("nth",)), ("greet part=1 : reset", ("part",)),
                            ("connect : drip", ("drip",)), ("article : reset, close", ("close",)),
                            ("article : reset after=101%", ("after",)), ("article : send", ("send",)),
                            ('article : send "x', ("quote",)), ('article : send "\\q"', ("escape",)),
                            ("article : status 43", ("status",)), ("article : status, close", ("status",)),
                            ("article : reset bytes=1", ("bytes",)), ("article : reset reset", ("reset",)),
                            (": reset", ("line 1",)), ("article : " + "x" * 5000, ("long",))):
            path.write_text(text)
            done = subprocess.run([WEIR, "newsd", "--port", "0", "--script", str(path)],
                                  capture_output=True, text=True, timeout=20)
            self.assertEqual(done.returncode, 1, text)
            for word in words:
                self.assertIn(word, done.stderr, text)


if __name__ == "__main__":
    unittest.main()
