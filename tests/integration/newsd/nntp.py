"""A small NNTP client and a yEnc decoder for the tests of `weir newsd`: written apart from src/, so that one
mistake is not made twice."""
import json
import os
import re
import select
import socket
import ssl
import subprocess
import zlib


class Newsd:
    """A running server; `port` and what else it says about itself are attributes."""

    def __init__(self, weir, *args):
        self.process = subprocess.Popen([weir, "newsd", "--port", "0", "--json", *args],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("newsd did not start")
        self.said = json.loads(line)
        self.port = self.said["port"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        code = self.process.wait(20)
        self.process.stdout.close()
        if code != 0:
            raise RuntimeError(f"newsd ended with {code}")


class Connection:
    """Plain or TLS; lines and blocks with a deadline and a limit, so that no test hangs."""
    limit = 64 << 20

    def __init__(self, port, tls=None, timeout=20, greet=True, host="127.0.0.1"):
        self.sock = socket.create_connection((host, port), timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            tls.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)  # some Pythons call a cut an end
            self.sock = tls.wrap_socket(self.sock, server_hostname="localhost",
                                        suppress_ragged_eofs=False)
        self.buffer = b""
        try:
            self.greeting = self.line() if greet else None
        except OSError:
            self.sock.close()
            raise

    def send(self, *lines):
        self.sock.sendall(b"".join(
            (x if isinstance(x, bytes) else x.encode()) + b"\r\n" for x in lines))

    def more(self):
        if len(self.buffer) > self.limit:
            raise ValueError("a line or block without an end")
        got = self.sock.recv(1 << 18)
        if not got:
            raise EOFError(f"closed; {len(self.buffer)} bytes before it")
        self.buffer += got

    def line(self):
        while b"\r\n" not in self.buffer:
            self.more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def block(self):
        """The lines up to the dot line, as they came, without it."""
        searched = 0
        while True:
            if self.buffer.startswith(b".\r\n"):
                end, text = 3, b""
                break
            at = self.buffer.find(b"\r\n.\r\n", max(0, searched - 5))
            if at >= 0:
                end, text = at + 5, self.buffer[:at + 2]
                break
            searched = len(self.buffer)
            self.more()
        self.buffer = self.buffer[end:]
        return text

    def ask(self, line):
        self.send(line)
        return self.line()

    def body(self, article_id):
        status = self.ask(f"BODY <{article_id}>")
        return status, self.block() if status.startswith(b"222") else b""

    def rest(self):
        """Everything until the server closes; (bytes, how it ended)."""
        try:
            while True:
                self.more()
        except EOFError:
            return self.buffer, "eof"
        except ConnectionResetError:
            return self.buffer, "reset"
        except ssl.SSLEOFError:
            return self.buffer, "torn"
        except ssl.SSLError as e:
            return self.buffer, "torn" if e.reason == "UNEXPECTED_EOF_WHILE_READING" else e.reason
        except (TimeoutError, socket.timeout):
            return self.buffer, "silence"

    def silent_for(self, seconds):
        if self.buffer:
            return False
        return not select.select([self.sock], [], [], seconds)[0]

    def counters(self):
        status = self.ask("XSTATS")
        assert status.startswith(b"290"), status
        return json.loads(self.block())

    def hits(self):
        self.send("XHITS")
        assert self.line().startswith(b"290")
        rows = (x.split() for x in self.block().decode().splitlines())
        return {i[1:-1]: (int(h), int(c)) for i, h, c in rows}

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def unstuff(text):
    return re.sub(rb"(^|\r\n)\.", rb"\1", text)


def decode(body):
    """(data, fields of the header lines, crc is right)"""
    fields, data, inside = {}, bytearray(), False
    for line in unstuff(body).split(b"\r\n"):
        if line.startswith((b"=ybegin ", b"=ypart ", b"=yend ")):
            word, rest = line.split(b" ", 1)
            head, name, value = rest.partition(b"name=")
            if name:
                fields["name"] = value.decode()
            for pair in head.split():
                key, value = pair.split(b"=")
                fields[f"{word[1:].decode()} {key.decode()}"] = value.decode()
            inside = word != b"=yend"
        elif inside:
            escaped = False
            for c in line:
                if escaped:
                    data.append((c - 64 - 42) & 255)
                    escaped = False
                elif c == ord("="):
                    escaped = True
                else:
                    data.append((c - 42) & 255)
    crc = fields.get("yend pcrc32", fields.get("yend crc32"))
    good = (crc is not None and int(crc, 16) == zlib.crc32(data)
            and int(fields["yend size"]) == len(data))
    return bytes(data), fields, good


def segments(path):
    """[(subject, [message-id, ...]), ...] of an NZB."""
    import xml.etree.ElementTree as ET
    ns = "{http://www.newzbin.com/DTD/2003/nzb}"
    root = ET.parse(path).getroot()
    assert root.tag == ns + "nzb"
    files = []
    for f in root.iter(ns + "file"):
        rows = sorted(f.iter(ns + "segment"), key=lambda x: int(x.get("number")))
        files.append((f.get("subject"), [x.text for x in rows]))
    return files


def trusting(path):
    """A TLS context that believes this certificate and checks the name."""
    return ssl.create_default_context(cafile=os.fspath(path))
