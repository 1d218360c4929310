#!/usr/bin/env python3
"""Sets made by Debian's par2, damaged in every way we know, repaired by weir, compared by SHA-256.

par2_matrix.py WEIR [--quick|--big] [--par2 PROGRAM]

Each case makes a set, damages a copy of it, and says what must happen: repaired to the same bytes (exit 0, and 1 from
verify), or refused with exit 2 and nothing changed. --big adds files of hundreds of megabytes, more sizes and more
killed repairs; --quick stops after the first set (for builds with sanitizers). TEST_SEED chooses another run."""
import argparse, hashlib, os, random, shutil, signal, subprocess, sys, tempfile, time

ap = argparse.ArgumentParser()
ap.add_argument("weir")
ap.add_argument("--big", action="store_true")
ap.add_argument("--quick", action="store_true")
ap.add_argument("--par2", default="par2", help="the program that creates the sets")
opt = ap.parse_args()
opt.weir = os.path.abspath(opt.weir)
seed = int(os.environ.get("TEST_SEED", "1"))
print(f"TEST_SEED={seed}")
rng = random.Random(seed)
# In memory where that can be had: a test that waits for a disk tests the disk.
memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) and not opt.big else None
work = tempfile.mkdtemp(prefix="weir-par2.", dir=memory)
cases = 0


def tree(d):
    out = {}
    for root, _, names in os.walk(d):
        for n in names:
            p = os.path.join(root, n)
            with open(p, "rb") as f:
                out[os.path.relpath(p, d)] = hashlib.sha256(f.read()).hexdigest()
    return out


def weir(d, *args, **kw):
    return subprocess.run([opt.weir, "par2", *args], cwd=d, capture_output=True, text=True, **kw)


class Set:
    """The files and volumes of one set; copy() gives a fresh one to damage."""

    def __init__(self, name, files, args, base="set.par2"):
        self.dir = os.path.join(work, name)
        self.base = base
        os.makedirs(self.dir)
        for n, data in files.items():
            p = os.path.join(self.dir, n)
            os.makedirs(os.path.dirname(p), exist_ok=True)
            with open(p, "wb") as f:
                f.write(data)
        given = [n for n in files if len(files[n]) > 0]
        r = subprocess.run([opt.par2, "c", "-q", "-q", *args, base, "--", *given], cwd=self.dir, capture_output=True, text=True)
        if r.returncode != 0:
            sys.exit(f"{name}: {opt.par2} could not create the set: {r.stdout}{r.stderr}")
        self.files = files
        self.name = name
        self.sums = {n: h for n, h in tree(self.dir).items() if n in files}

    def copy(self):
        d = os.path.join(work, "case")
        shutil.rmtree(d, ignore_errors=True)
        shutil.copytree(self.dir, d)
        return d

    def volumes(self, d):
        return sorted(n for n in os.listdir(d) if n.endswith(".par2") and ".vol" in n)


def same(s, d):
    have = tree(d)
    return all(have.get(n) == h for n, h in s.sums.items())


def check(ok, what, r=None):
    if not ok:
        sys.exit(f"FAILED: {what}\n" + (r.stdout + r.stderr if r else ""))


def case(s, what, damage, extra=(), verdict=0, threads=2, options=()):
    """verdict: what repair must exit with; 0 also means the same SHA-256 of all files afterwards."""
    global cases
    cases += 1
    d = s.copy()
    damage(d)
    before = tree(d)
    v = weir(d, "verify", f"-t{threads}", *options, s.base, *extra)
    check(v.returncode == {0: 1, 2: 2, "whole": 0}[verdict], f"{s.name}, {what}: verify exits {v.returncode}", v)
    check(tree(d) == before, f"{s.name}, {what}: verify changed something")
    r = weir(d, "repair", f"-t{threads}", *options, s.base, *extra)
    if verdict == 2:
        check(r.returncode == 2, f"{s.name}, {what}: repair exits {r.returncode}, not 2", r)
        check(tree(d) == before, f"{s.name}, {what}: a refused repair changed something")
        return
    check(r.returncode == 0, f"{s.name}, {what}: repair exits {r.returncode}", r)
    check(same(s, d), f"{s.name}, {what}: files differ after repair", r)
    check(not [n for n in tree(d) if n.endswith(".tmp")], f"{s.name}, {what}: unfinished files left")
    v = weir(d, "v", s.base)
    check(v.returncode == 0, f"{s.name}, {what}: verify after repair exits {v.returncode}", v)


# ---- kinds of damage; each returns a function of the directory ----


def edit(name, fn):
    def go(d):
        p = os.path.join(d, name)
        with open(p, "rb") as f:
            b = bytearray(f.read())
        b = fn(b)
        with open(p, "wb") as f:
            f.write(b)
    return go


def flip(*at):
    def go(b):
        for a in at:
            b[a] ^= 0x55
        return b
    return go


def insert(at, n):
    return lambda b: b[:at] + bytes(n * [120]) + b[at:]


def delete(at, n):
    return lambda b: b[:at] + b[at + n:]


def remove(*names):
    def go(d):
        for n in names:
            os.remove(os.path.join(d, n))
    return go


def rename(a, b):
    return lambda d: os.rename(os.path.join(d, a), os.path.join(d, b))


def swap(a, b):
    def go(d):
        rename(a, "swap")(d), rename(b, a)(d), rename("swap", b)(d)
    return go


def both(*steps):
    def go(d):
        for s in steps:
            s(d)
    return go


def keep_volumes(s, blocks):
    """Leaves exactly that many recovery blocks, cutting the last volume if need be."""
    def go(d):
        left = blocks
        for v in s.volumes(d):
            n = int(v.rsplit("+", 1)[1].split(".")[0])
            if n <= left:
                left -= n
            elif left == 0:
                os.remove(os.path.join(d, v))
            else:  # spoil all but `left` of its recovery packets
                p = os.path.join(d, v)
                b = bytearray(open(p, "rb").read())
                at, spoiled = 0, 0
                while (at := b.find(b"PAR 2.0\0RecvSlic", at)) >= 0 and spoiled < n - left:
                    b[at + 20] ^= 1  # its first byte of data
                    at += 16
                    spoiled += 1
                open(p, "wb").write(b)
                left = 0
    return go


def damage_matrix(s, f, g, block):
    """All kinds on files f (large) and g (another) of a set with plenty of recovery blocks."""
    n = len(s.files[f])
    mid = n // 2
    case(s, "nothing", lambda d: None, verdict="whole")
    case(s, "bit rot", edit(f, flip(0, mid, n - 1)))
    case(s, "truncated", edit(f, lambda b: b[:mid + 1]))
    case(s, "cut to nothing", edit(f, lambda b: b[:0]))
    case(s, "longer", edit(f, lambda b: b + b"more"))
    for at in (0, 1, block, mid, n):
        case(s, f"inserted at {at}", edit(f, insert(at, 3)))
    for at in (0, block + 1, mid, max(0, n - 5)):
        case(s, f"deleted at {at}", edit(f, delete(at, 5)))
    case(s, "several", edit(f, lambda b: delete(mid, 7)(insert(block // 2, 11)(flip(n - 2)(b)))))
    case(s, "missing", remove(f))
    case(s, "both missing", remove(f, g))
    case(s, "renamed", rename(f, "renamed.x"), extra=["renamed.x"])
    case(s, "renamed and damaged", both(edit(f, flip(mid)), rename(f, "renamed.x")), extra=["renamed.x"])
    case(s, "swapped", swap(f, g))
    case(s, "swapped and damaged", both(swap(f, g), edit(f, flip(3)), edit(g, insert(9, 2))))
    case(s, "joined", both(lambda d: open(os.path.join(d, "joined"), "wb").write(s.files[g] + s.files[f]), remove(f, g)), extra=["joined"])
    case(s, "one thread", edit(f, insert(5, 1)), threads=1)
    case(s, "little memory", both(remove(f), edit(g, flip(0))), options=["-m1"])
    vol = s.volumes(s.dir)[-1]
    case(s, "damaged volume", both(edit(f, flip(mid)), edit(vol, flip(len(open(os.path.join(s.dir, vol), "rb").read()) // 2))))
    case(s, "bytes lost in a volume", both(edit(f, flip(mid)), edit(vol, delete(200, 9))))
    case(s, "index lost", both(edit(f, flip(mid)), lambda d: shutil.copy(os.path.join(d, vol), os.path.join(d, s.base))))


def exact(s, f, blocks, block):
    """Damage of that many blocks: exactly enough recovery blocks, and one too few."""
    damage = edit(f, flip(*[i * block for i in range(blocks)]))
    case(s, f"{blocks} damaged, as many recovery blocks", both(damage, keep_volumes(s, blocks)))
    case(s, f"{blocks} damaged, one too few", both(damage, keep_volumes(s, blocks - 1)), verdict=2)


def killed(s, damage, times):
    """kill -9 at any moment: the next run has all it needs."""
    global cases
    d = s.copy()
    damage(d)
    t = time.monotonic()
    weir(d, "r", s.base)
    whole = time.monotonic() - t
    for _ in range(times):
        cases += 1
        d = s.copy()
        damage(d)
        p = subprocess.Popen([opt.weir, "par2", "r", "-q", "-q", s.base], cwd=d)
        time.sleep(rng.random() * whole)
        p.send_signal(signal.SIGKILL)
        p.wait()
        r = weir(d, "r", s.base)
        check(r.returncode == 0 and same(s, d), f"{s.name}: repair after kill -9 exits {r.returncode}", r)
        check(not [n for n in tree(d) if n.endswith(".tmp")], f"{s.name}: unfinished files left after kill -9")


try:
    rb = rng.randbytes
    s = Set("usual", {"alpha.bin": rb(100_000), "beta.bin": rb(30_001), "gamma.bin": rb(4_000)}, ["-s1000", "-r100"])
    damage_matrix(s, "alpha.bin", "beta.bin", 1000)
    exact(s, "alpha.bin", 10, 1000)
    exact(s, "beta.bin", 1, 1000)

    if opt.quick:
        print(f"{cases} cases, all as they should be")
        sys.exit(0)

    s = Set("names", {"sub dir/größe.bin": rb(20_000), "sub dir/deep/日本語 ✓.bin": rb(9_999), "top.bin": rb(5)}, ["-s512", "-r100"])
    damage_matrix(s, "sub dir/größe.bin", "sub dir/deep/日本語 ✓.bin", 512)
    case(s, "whole folder gone", lambda d: shutil.rmtree(os.path.join(d, "sub dir")))

    s = Set("4 bytes", {"tiny.bin": rb(1), "four.bin": rb(4), "more.bin": rb(399)}, ["-s4", "-c200"])
    damage_matrix(s, "more.bin", "four.bin", 4)
    exact(s, "more.bin", 50, 4)

    s = Set("one block", {"only.bin": rb(77)}, ["-s80", "-c1"])
    case(s, "bit rot", edit("only.bin", flip(5)))
    case(s, "missing", remove("only.bin"))

    # Creating is slow with this many blocks: few recovery blocks, unless there is time.
    many = 300 if opt.big else 8
    s = Set("32768 blocks", {"many.bin": rb(131072)}, ["-s4", f"-c{many}"])
    case(s, "as many rotten", edit("many.bin", flip(*range(0, 4 * many, 4))))
    case(s, "shifted", edit("many.bin", insert(70_000, 1)))
    exact(s, "many.bin", many // 2, 4)

    s = Set("alike", {"zero.bin": bytes(50_000), "same1.bin": b"ab" * 20_000, "same2.bin": b"ab" * 20_000}, ["-s1000", "-r30"])
    case(s, "one of two alike missing", remove("same1.bin"))
    case(s, "zeros missing", remove("zero.bin"), verdict=2)
    case(s, "zeros moved", rename("zero.bin", "moved"), extra=["moved"])
    case(s, "alike ones swapped and rotten", edit("same2.bin", flip(1, 20_000)))

    s = Set("few large blocks", {"large.bin": rb(5_000_001), "other.bin": rb(10)}, ["-b4", "-c3"])
    case(s, "rotten at both ends", edit("large.bin", flip(0, 5_000_000)))
    case(s, "shifted", edit("large.bin", insert(1, 1)))

    a = Set("two sets", {"a1.bin": rb(30_000)}, ["-s600", "-c20"], base="a.par2")
    with open(os.path.join(a.dir, "b1.bin"), "wb") as f:
        f.write(rb(20_000))
    subprocess.run([opt.par2, "c", "-q", "-q", "-s400", "-c20", "b.par2", "b1.bin"], cwd=a.dir, check=True, capture_output=True)
    case(a, "only one of them rotten", edit("a1.bin", flip(9)))
    case(a, "volumes of the other named too", edit("a1.bin", flip(9)), extra=["b.par2", "b1.bin"])

    s = Set("to be killed", {f"k{i}.bin": rb(3_000_000) for i in range(4)}, ["-s40000", "-r20"])
    hurt = both(edit("k0.bin", insert(999, 1)), edit("k1.bin", flip(5, 1_000_000)), swap("k2.bin", "k3.bin"))
    killed(s, hurt, 60 if opt.big else 8)

    if opt.big:
        for block in (4, 20, 68, 1024, 16384, 16388, 65532, 300000):
            n = min(block * 40, 9_000_000)
            s = Set(f"blocks of {block}", {"x.bin": rb(n + 3), "y.bin": rb(n // 3 + 1)}, [f"-s{block}", "-r100"])
            damage_matrix(s, "x.bin", "y.bin", block)
        s = Set("over 100 MB in few blocks", {"huge.bin": rb(230_000_000)}, ["-b2", "-c2"])
        case(s, "both rotten", edit("huge.bin", flip(0, 229_999_999)))
        case(s, "missing, little memory", remove("huge.bin"), options=["-m16"])
        case(s, "shifted", edit("huge.bin", insert(0, 1)))
    print(f"{cases} cases, all as they should be")
finally:
    shutil.rmtree(work, ignore_errors=True)
