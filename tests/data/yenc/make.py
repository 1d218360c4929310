#!/usr/bin/env python3
"""Makes the articles of this folder that are written by hand, one for each corner case, and index.tsv.

    NAME.art   the body as it comes from a server, with its dot line and sometimes more behind it
    NAME.bin   the bytes that must come out (shared by several articles; see index.tsv)

index.tsv: article, expected bytes or -, verdict, bytes consumed, lf (the peer speaks LF only) or -, part, begin (from 0),
end, and the name as UTF-8 (the rest of the line). nyuu-* were posted by nyuu 0.4.2 to a server that kept them, weir-*
were made by `weir yenc encode`; the encoder below is a third one, and knows nothing of the other two. What the verdict
must be is written here by hand, beside what is wrong with the article."""
import binascii
import os
import random
import zlib

os.chdir(os.path.dirname(os.path.abspath(__file__)))
random.seed(1)
DATA = random.randbytes(300)
LONG = random.randbytes(1500)
while zlib.crc32(ZEROS := random.randbytes(40)) >> 24 != 0:
    pass
rows = []


def encode(data, line=128, stuff=True):
    """Escapes what must be; a dot at a line start is doubled, as a posting program does."""
    out, column = bytearray(), 0
    for i, byte in enumerate(data):
        c = (byte + 42) & 255
        if column == 0 and c == ord('.') and stuff:
            out += b'.'
        if c in (0, 10, 13, 61):
            out += b'='
            c = (c + 64) & 255
            column += 1
        out.append(c)
        column += 1
        if column >= line or i == len(data) - 1:
            out += b'\r\n'
            column = 0
    return bytes(out)


def crc(data):
    return b'%08x' % zlib.crc32(data)


def case(name, body, verdict, data=None, end=b'.\r\n', used=None, lf='-', part=0, begin=0, stop=None, title='a.bin'):
    """One article; `data` is what must come out, b'' or None for nothing."""
    body += end
    open(name + '.art', 'wb').write(body)
    expected = '-'
    if data:
        expected = {DATA: 'data', LONG: 'long', ZEROS: 'zeros'}.get(data, name) + '.bin'
        open(expected, 'wb').write(data)
    if stop is None:
        stop = begin + len(data) if data else 0
    rows.append((name + '.art', expected, verdict, used if used is not None else len(body), lf, part, begin, stop, title))


def single(begin=b'line=128 size=300 name=a.bin', end=None, data=DATA, text=None):
    text = encode(data) if text is None else text
    end = b'size=300 crc32=' + crc(DATA) if end is None else end
    return b'=ybegin ' + begin + b'\r\n' + text + b'=yend ' + end + b'\r\n'


def multi(begin=b'part=2 total=3 line=128 size=900 name=a.bin', ypart=b'begin=301 end=600', end=None, data=DATA):
    end = b'size=300 part=2 pcrc32=' + crc(DATA) if end is None else end
    return b'=ybegin ' + begin + b'\r\n=ypart ' + ypart + b'\r\n' + encode(data) + b'=yend ' + end + b'\r\n'


def multi_case(name, body, verdict, data=DATA, **more):
    more = {'part': 2, 'begin': 300, 'stop': 600, **more}
    case(name, body, verdict, data, **more)


def header_case(name, body, **more):
    case(name, body, 'bad-header', None, **{'title': '*', **more})


C = crc(DATA)
# CRC
case('single', single(), 'ok', DATA)
case('next-reply', single(), 'ok', DATA, end=b'.\r\n222 0 <next@reply>\r\n', used=len(single()) + 3)
case('crc-none', single(end=b'size=300'), 'no-crc', DATA)
case('crc-wrong', single(end=b'size=300 crc32=12345678'), 'bad-crc', DATA)
case('crc-upper', single(end=b'size=300 crc32=' + C.upper()), 'ok', DATA)
case('crc-zeros-stripped', single(b'line=128 size=40 name=a.bin', b'size=40 crc32=%x' % zlib.crc32(ZEROS), ZEROS), 'ok', ZEROS)
case('crc-16-digits', single(end=b'size=300 crc32=00000000' + C), 'ok', DATA)
case('crc-sign-extended', single(end=b'size=300 crc32=FFFFFFFF' + C.upper()), 'ok', DATA)
case('crc-0x', single(end=b'size=300 crc32=0x' + C), 'ok', DATA)
case('crc-blank-before', single(end=b'size=300 crc32= ' + C), 'ok', DATA)
case('crc-empty', single(end=b'size=300 crc32='), 'no-crc', DATA)
case('crc-unreadable', single(end=b'size=300 crc32=12z45678'), 'bad-crc', DATA)
case('crc-single-pcrc', single(end=b'size=300 pcrc32=' + C), 'ok', DATA)
case('crc-single-both', single(end=b'size=300 pcrc32=00000000 crc32=' + C), 'ok', DATA)
case('yend-trailing-blanks', single(end=b'size=300 crc32=' + C + b' \t '), 'ok', DATA)
multi_case('multi', multi(), 'ok')
multi_case('multi-both-crcs', multi(end=b'size=300 part=2 pcrc32=' + C + b' crc32=0badf00d'), 'ok')
multi_case('multi-file-crc-only', multi(end=b'size=300 part=2 crc32=0badf00d'), 'no-crc')
multi_case('multi-part-crc-in-crc32', multi(end=b'size=300 part=2 crc32=' + C), 'ok')
multi_case('multi-crc-wrong', multi(end=b'size=300 part=2 pcrc32=0badf00d'), 'bad-crc')
case('multi-one-of-one', multi(b'part=1 total=1 line=128 size=300 name=a.bin', b'begin=1 end=300', b'size=300 crc32=' + C), 'ok', DATA, part=1)
case('multi-one-of-one-no-ypart', single(b'part=1 total=1 line=128 size=300 name=a.bin'), 'ok', DATA, part=1)
case('multi-one-of-one-wrong', multi(b'part=1 total=1 line=128 size=300 name=a.bin', b'begin=1 end=300', b'size=300 crc32=0badf00d'), 'bad-crc', DATA, part=1)
# sizes
multi_case('yend-size-of-file', multi(end=b'size=900 part=2 pcrc32=' + C), 'ok')
multi_case('yend-size-of-file-bad-crc', multi(end=b'size=900 part=2 pcrc32=0badf00d'), 'bad-size')
case('yend-size-differs', single(end=b'size=301 crc32=' + C), 'bad-size', DATA)
case('data-short', single(data=DATA[:299]), 'bad-size', DATA[:299], stop=300)
case('data-long', single(data=DATA + b'more', end=b'size=304 crc32=' + crc(DATA + b'more')), 'bad-size', DATA)
multi_case('multi-long', multi(data=DATA + LONG), 'bad-size')
case('yend-missing', single().split(b'=yend')[0], 'no-end', DATA)
case('yend-and-dot-missing', single().split(b'=yend')[0], 'no-end', DATA, end=b'')
case('yend-glued-to-data', b'=ybegin line=128 size=300 name=a.bin\r\n' + encode(DATA)[:-2] + b'=yend size=300\r\n', 'no-end', DATA)
case('yend-without-line-end', single()[:-2], 'ok', DATA, end=b'')
cut = encode(DATA)[:162]
case('cut-in-line', b'=ybegin line=128 size=300 name=a.bin\r\n' + cut, 'no-end', DATA[:162 - 2 * cut.count(b'\r\n') - cut.count(b'=')], end=b'', stop=300)
header_case('size-missing', single(b'line=128 name=a.bin'))
header_case('size-zero', single(b'line=128 size=0 name=a.bin'))
header_case('size-2-63', single(b'line=128 size=9223372036854775808 name=a.bin'))
header_case('size-2-64', single(b'line=128 size=18446744073709551916 name=a.bin'))
header_case('size-negative', single(b'line=128 size=-300 name=a.bin'))
header_case('size-hex', single(b'line=128 size=0x12c name=a.bin'))
header_case('size-twice', single(b'line=128 size=300 size=301 name=a.bin'))
header_case('line-bad', single(b'line=12z size=300 name=a.bin'))
header_case('yend-size-bad', single(end=b'size=3oo crc32=' + C))
# parts
header_case('begin-zero', multi(ypart=b'begin=0 end=300'))
header_case('begin-behind-end', multi(ypart=b'begin=601 end=600'))
header_case('end-behind-size', multi(ypart=b'begin=601 end=901'))
header_case('begin-missing', multi(ypart=b'end=600'))
header_case('begin-huge', multi(ypart=b'begin=99999999999999999999 end=600'))
header_case('ypart-missing', single(b'part=2 total=3 line=128 size=900 name=a.bin'))
header_case('part-zero', multi(b'part=0 total=3 line=128 size=900 name=a.bin'))
header_case('part-beyond-total', multi(b'part=4 total=3 line=128 size=900 name=a.bin'))
header_case('yend-first', b'=yend size=300\r\n' + single())
header_case('ypart-first', b'=ypart begin=1 end=300\r\n' + single())
header_case('ybegin-twice', single().split(b'=yend')[0] + single())
case('second-block-ignored', single() + single(data=LONG), 'ok', DATA)
multi_case('ypart-glued-to-name', multi().replace(b'name=a.bin\r\n', b'name=a.bin'), 'ok')
multi_case('ypart-behind-blank-line', multi().replace(b'name=a.bin\r\n', b'name=a.bin\r\n\r\n'), 'ok')
# header lines
case('fields-in-other-order', single(b'size=300  line=128 name=a.bin'), 'ok', DATA)
case('fields-unknown', single(b'line=128 size=300 flavour=mild part2 name=a.bin'), 'ok', DATA)
case('fields-by-tabs', single(b'line=128\tsize=300\tname=a.bin'), 'ok', DATA)
case('line-missing', single(b'size=300 name=a.bin'), 'ok', DATA)
case('name-with-blanks', single(b'line=128 size=300 name=my  holiday film.avi'), 'ok', DATA, title='my  holiday film.avi')
case('name-quoted', single(b'line=128 size=300 name="a b.bin"'), 'ok', DATA, title='a b.bin')
case('name-one-quote', single(b'line=128 size=300 name="a b.bin'), 'ok', DATA, title='"a b.bin')
case('name-empty', single(b'line=128 size=300 name='), 'ok', DATA, title='')
case('name-missing', single(b'line=128 size=300'), 'ok', DATA, title='')
case('name-utf8', single('line=128 size=300 name=Grüße 日本.bin'.encode()), 'ok', DATA, title='Grüße 日本.bin')
case('name-latin1', single('line=128 size=300 name=Grüße.bin'.encode('latin-1')), 'ok', DATA, title='Grüße.bin')
case('name-trailing-blanks', single(b'line=128 size=300 name=a.bin \t '), 'ok', DATA)
case('name-with-fields', single(b'line=128 size=300 name=x size=9 part=7=y.bin'), 'ok', DATA, title='x size=9 part=7=y.bin')
case('name-path', single(b'line=128 size=300 name=../../etc/passwd'), 'ok', DATA, title='../../etc/passwd')
case('name-10k', single(b'line=128 size=300 name=' + b'n' * 10000), 'ok', DATA, title='n' * 1020)
# data lines
case('text-around', b'Hello,\r\n\r\nhere is =ybegin for you:\r\n..\r\n' + single() + b'\r\n--\r\nsig\r\n', 'ok', DATA)
case('lf-only', single().replace(b'\r\n', b'\n'), 'ok', DATA, end=b'\r\n.\r\n')
case('lf-only-peer', single().replace(b'\r\n', b'\n'), 'ok', DATA, end=b'.\nnext', lf='lf', used=len(single().replace(b'\r\n', b'\n')) + 2)
case('lf-dot-lf-is-no-end', single() + b'text\n.\n430 no such article\n.\r\nmore\r\n', 'ok', DATA)
case('lf-dot-lf-in-data', single(text=encode(DATA[:150]).rstrip(b'\r\n') + b'\n.\n' + encode(DATA[150:])), 'ok', DATA)
case('dots-stuffed', single(b'line=128 size=600 name=a.bin', b'size=600 crc32=' + crc(b'\x04' * 600), b'\x04' * 600), 'ok', b'\x04' * 600)
case('dots-not-stuffed', single(b'line=128 size=300 name=a.bin', text=b'.' + encode(DATA)), 'ok', DATA)
case('dot-before-yend', single(text=encode(DATA) + b'.'), 'ok', DATA)
case('lone-cr-and-lf', single(text=encode(DATA[:50])[:-1] + encode(DATA[50:99])[:-2] + b'\n' + encode(DATA[99:])), 'ok', DATA)
case('escape-needless', single(text=b'=' + bytes([(DATA[0] + 42 + 64) & 255]) + encode(DATA[1:])), 'ok', DATA)
escaped = bytes((c - 42) & 255 for c in (0, 10, 13, 61)) * 75
case('all-escaped', single(b'line=128 size=300 name=a.bin', b'size=300 crc32=' + crc(escaped), escaped), 'ok', escaped)
last = bytes(127) + b'\xd6' + bytes(127) + b'\x13' + bytes(44)
case('lines-of-129', single(b'line=128 size=300 name=a.bin', b'size=300 crc32=' + crc(last), last), 'ok', last)
case('escape-cr-lf', single(b'line=128 size=3 name=a.bin', b'size=3', text=b'k=\r\nk\r\n'), 'no-crc', b'A\xa3A')
case('escape-escape', single(b'line=128 size=3 name=a.bin', b'size=3', text=b'k==k\r\n'), 'no-crc', b'A\xd3A')
case('escape-at-end', b'=ybegin line=128 size=2 name=a.bin\r\nk=\r\n=yend size=2\r\n', 'no-crc', b'A\xa3')
for line in (64, 100, 127, 129, 256, 997):
    case('line-%d' % line, single(b'line=%d size=1500 name=a.bin' % line, b'size=1500 crc32=' + crc(LONG), text=encode(LONG, line)), 'ok', LONG)
case('no-lines', single(b'line=1500 size=1500 name=a.bin', b'size=1500 crc32=' + crc(LONG), text=encode(LONG, 1 << 20)), 'ok', LONG)
case('lf-128', single(b'line=128 size=1500 name=a.bin', b'size=1500 crc32=' + crc(LONG), text=encode(LONG).replace(b'\r', b'')), 'ok', LONG)
every = bytes(range(256)) * 3
case('all-bytes', single(b'line=128 size=768 name=a.bin', b'size=768 crc32=' + crc(every), every), 'ok', every)
case('control-unknown', single(text=encode(DATA[:100]) + b'=ynote of a later version\r\n' + encode(DATA[100:])), 'ok', DATA)
# not yEnc
case('text-only', b'Hello,\r\nthis was removed on request.\r\n', 'not-yenc', title='')
case('empty', b'', 'not-yenc', title='')
uu = b''.join(binascii.b2a_uu(DATA[i:i + 45], backtick=True).replace(b'\n', b'\r\n') for i in range(0, 300, 45))
stuffed = uu.replace(b'\r\n.', b'\r\n..')
case('uu', b'text\r\nbegin 644 my file.txt\r\n' + stuffed + b'`\r\nend\r\n', 'no-crc', DATA, title='my file.txt', stop=0)
case('uu-blanks-stripped', b'begin 0644 a.bin\r\n' + b''.join(l.replace(b'`', b' ').rstrip() + b'\r\n' for l in stuffed.split(b'\r\n') if l) + b'\r\nend\r\n', 'no-crc', DATA, stop=0)
case('uu-later-part', b'\r\n' + stuffed, 'no-crc', DATA, title='', stop=0)
case('uu-damaged', b'begin 644 a.bin\r\n' + stuffed.replace(b'\r\nM', b'\r\nsome text\r\nM', 1) + b'`\r\nend\r\n', 'bad-size', DATA, stop=0)
case('begin-is-a-sentence', b'begin 644 things\r\nand then\r\n' + single(), 'ok', DATA)

for name, data, verdict, part, begin, title in (
        ('nyuu-single', 'nyuu-single', 'ok', 1, 0, 'single file.bin'), ('nyuu-line64', 'nyuu-single', 'ok', 1, 0, 'single file.bin'),
        ('nyuu-multi-1', 'nyuu-multi-1', 'ok', 1, 0, 'multi.bin'), ('nyuu-multi-2', 'nyuu-multi-2', 'ok', 2, 1000, 'multi.bin'),
        ('nyuu-multi-3', 'nyuu-multi-3', 'ok', 3, 2000, 'multi.bin'), ('nyuu-bytes', 'nyuu-bytes', 'ok', 1, 0, 'bytes.bin'),
        ('nyuu-dots', 'nyuu-dots', 'ok', 1, 0, 'dots.txt'), ('nyuu-utf8', 'nyuu-utf8', 'ok', 1, 0, 'Ünïcode.bin'),
        ('weir-single', 'long', 'ok', 0, 0, 'long.bin'), ('weir-line997', 'long', 'ok', 0, 0, 'long.bin'),
        ('weir-part', 'weir-part', 'ok', 2, 700, 'long.bin'), ('weir-dots', 'nyuu-dots', 'ok', 0, 0, 'dots.txt')):
    if not os.path.exists(name + '.art'):
        continue
    rows.append((name + '.art', data + '.bin', verdict, os.path.getsize(name + '.art'), '-', part, begin,
                 begin + os.path.getsize(data + '.bin'), title))
with open('index.tsv', 'w') as f:
    for row in rows:
        f.write('\t'.join(map(str, row)) + '\n')
print(len(rows), 'articles')
