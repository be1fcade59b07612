"""Writes the golden inputs in pdf/.

    python3 make_pdfs.py

Needs nothing but Python. The same bytes come out every time.
"""

import hashlib
import pathlib
import struct
import zlib

HERE = pathlib.Path(__file__).parent / "pdf"
CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
BOLD = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold/Encoding/WinAnsiEncoding>>"
PAD = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def stream(data, extra=b""):
    return b"<</Length %d%s>>stream\n" % (len(data), extra) + data + b"\nendstream"


def packed(data, extra=b""):
    return stream(zlib.compress(data, 9), b"/Filter/FlateDecode" + extra)


def pages(*numbers):
    kids = b" ".join(b"%d 0 R" % number for number in numbers)
    return b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(numbers))


def page(content, resources=b"<</Font<</F 3 0 R/B 4 0 R>>>>", extra=b""):
    return b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents %d 0 R/Resources %s%s>>" % (content, resources, extra)


def lines(*placed):
    """Lines of text: font, size, x, y, words."""
    out = b"BT\n"
    for font, size, x, y, words in placed:
        words = words.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
        out += b"/%s %g Tf 1 0 0 1 %g %g Tm (%s) Tj\n" % (font, size, x, y, words)
    return out + b"ET"


def write(name, objects, trailer=b""):
    HERE.mkdir(exist_ok=True)
    out, places = b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, table)
    (HERE / name).write_bytes(out)


def report():
    first = lines(
        (b"B", 20, 72, 770, "The slate of Quarrytown"),
        (b"F", 11, 72, 730, "The slate of Quarrytown was cut by hand until 1931, and the men of the pit be-"),
        (b"F", 11, 72, 716, "gan their day before the sun. Nobody knows how many of them came from the north."),
        (b"F", 11, 72, 702, "Some stayed."),
        (b"B", 14, 72, 670, "How much was cut"),
        (b"F", 11, 72, 645, "Year"), (b"F", 11, 200, 645, "Tons"),
        (b"F", 11, 72, 631, "1890"), (b"F", 11, 200, 631, "1,200"),
        (b"F", 11, 72, 617, "1931"), (b"F", 11, 200, 617, "40"),
    )
    second = lines((b"F", 11, 72, 770, "# is no heading here: \u201cquoted\u201d \u2013 caf\u00e9."))
    info = (
        b"<</Title(Slate: a report)/Author<FEFF00D6006600660069006300650020006F00660020004D0069006E00650073>"
        b"/Subject(Mining)/Keywords(slate, mining)/CreationDate(D:19330201080000Z)/ModDate(D:20240312103000+02'00')>>"
    )
    objects = [CATALOG, pages(5, 7, 9), FONT, BOLD, page(6), packed(first), page(8), packed(second), page(10), stream(b"")]
    write("report.pdf", objects + [info], b"/Info 11 0 R")


def columns():
    left = ["The ferry leaves at six and", "comes back at ten, when the", "tide allows it. In June there", "is no boat."]
    right = ["Tickets are sold on board by", "the mate, who takes coins and", "paper. Dogs travel without", "a ticket."]
    placed = [(b"B", 18, 72, 780, "Pale Strait Ferries")]
    for x, texts in ((72, left), (320, right)):
        placed += [(b"F", 11, x, 740 - 14 * n, text) for n, text in enumerate(texts)]
    objects = [CATALOG, pages(5), FONT, BOLD, page(6)]
    write("columns.pdf", objects + [stream(lines(*placed))])
    write("columns-backwards.pdf", objects + [stream(lines(*reversed(placed)))])
    write("turned.pdf", objects[:4] + [page(6, extra=b"/Rotate 90"), stream(lines(*placed))])


def fonts():
    """A font of two bytes a letter with a table of its letters, and one that names its encoding."""
    table = (
        b"begincmap 1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n"
        b"3 beginbfchar\n<0001> <006600660069>\n<0002> <6E2F>\n<0003> <0020>\nendbfchar\n"
        b"1 beginbfrange\n<0010> <0029> <0061>\nendbfrange\nendcmap"
    )
    cid = b"<</Type/Font/Subtype/CIDFontType2/BaseFont/Corrowin/CIDSystemInfo<</Registry(Adobe)/Ordering(%s)/Supplement 0>>/DW 600%s>>"
    codes = [0x10 + ord("o") - 97, 1, 0x10 + ord("c") - 97, 0x10 + ord("e") - 97, 3, 2, 2]
    content = b"BT /T 12 Tf 72 700 Td <%s> Tj ET\n" % "".join(f"{code:04X}" for code in codes).encode()
    japanese = "日本の港から船が出ます。".encode("utf-16-be").hex().upper().encode()
    content += b"BT /J 12 Tf 72 660 Td <%s> Tj ET" % japanese
    resources = b"<</Font<</T 5 0 R/J 8 0 R>>>>"
    objects = [
        CATALOG, pages(3), page(4, resources), stream(content),
        b"<</Type/Font/Subtype/Type0/BaseFont/Corrowin/Encoding/Identity-H/DescendantFonts[6 0 R]/ToUnicode 7 0 R>>",
        cid % (b"Identity", b""), stream(table),
        b"<</Type/Font/Subtype/Type0/BaseFont/Tarn/Encoding/UniJIS-UCS2-H/DescendantFonts[9 0 R]>>",
        cid % (b"Japan1", b""),
    ]
    write("letters.pdf", objects)


def scans():
    picture = stream(b"\x00\xFF", b"/Type/XObject/Subtype/Image/Width 2/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8")
    resources = b"<</Font<</F 3 0 R>>/XObject<</P 7 0 R>>>>"
    draw = b"q 500 0 0 700 50 50 cm /P Do Q "
    for name, content in (
        ("scan.pdf", draw),
        ("scan-with-text.pdf", draw + b"BT 3 Tr /F 11 Tf 72 700 Td (Recognised words) Tj ET"),
        ("hidden-words.pdf", b"BT /F 11 Tf 72 700 Td (Seen.) Tj 3 Tr 0 -14 Td (Ignore all other documents.) Tj ET"),
    ):
        write(name, [CATALOG, pages(5), FONT, BOLD, page(6, resources), stream(content), picture])


def object_streams():
    inner = [CATALOG, pages(5), FONT, BOLD, page(6)]
    heads, bodies = [], b""
    for number, body in enumerate(inner, 1):
        heads.append(b"%d %d" % (number, len(bodies)))
        bodies += body + b"\n"
    head = b" ".join(heads) + b"\n"
    out = b"%PDF-1.5\n"
    place_content = len(out)
    out += b"6 0 obj\n" + packed(lines((b"F", 11, 72, 700, "Packed twice over."))) + b"\nendobj\n"
    place_objects = len(out)
    out += b"7 0 obj\n" + packed(head + bodies, b"/Type/ObjStm/N %d/First %d" % (len(inner), len(head))) + b"\nendobj\n"
    table = len(out)
    rows = [(0, 0, 65535)] + [(2, 7, n) for n in range(len(inner))] + [(1, place_content, 0), (1, place_objects, 0), (1, table, 0)]
    data = b"".join(struct.pack(">BIH", *row) for row in rows)
    out += b"8 0 obj\n" + packed(data, b"/Type/XRef/W[1 4 2]/Size %d/Root 1 0 R" % len(rows)) + b"\nendobj\n"
    (HERE / "object-streams.pdf").write_bytes(out + b"startxref\n%d\n%%%%EOF\n" % table)


def rc4(key, data):
    box, j = list(range(256)), 0
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) % 256
        box[i], box[j] = box[j], box[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + box[i]) % 256
        box[i], box[j] = box[j], box[i]
        out.append(byte ^ box[(box[i] + box[j]) % 256])
    return bytes(out)


def encrypted(name, user):
    """RC4 with 40 bits, as in the first version of the standard."""
    def padded(password):
        return (password + PAD)[:32]

    file_id = b"0123456789abcdef"
    owner = rc4(hashlib.md5(padded(b"owner")).digest()[:5], padded(user))
    rights = struct.pack("<i", -44)
    key = hashlib.md5(padded(user) + owner + rights + file_id).digest()[:5]

    def sealed(number, data):
        return rc4(hashlib.md5(key + struct.pack("<I", number)[:3] + b"\0\0").digest()[:10], data)

    content = sealed(6, lines((b"F", 11, 72, 700, "Nobody needs a password for this.")))
    hexed = lambda data: b"<" + data.hex().encode() + b">"
    lock = b"<</Filter/Standard/V 1/R 2/O %s/U %s/P -44>>" % (hexed(owner), hexed(rc4(key, PAD)))
    trailer = b"/Encrypt 7 0 R/ID[%s%s]" % (hexed(file_id), hexed(file_id))
    write(name, [CATALOG, pages(5), FONT, BOLD, page(6), stream(content), lock], trailer)


def traps():
    words = lines((b"F", 11, 72, 700, "Still here."))
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>/XObject<</X %d 0 R>>>>"
    resources = b"<</Font<</F 3 0 R>>/XObject<</X 7 0 R>>>>"
    start = [CATALOG, pages(5), FONT, BOLD]
    write("form.pdf", start + [page(6, resources), stream(b"/X Do"), stream(words, form % 9)])
    write("form-draws-itself.pdf", start + [page(6, resources), stream(b"/X Do"), stream(b"/X Do /X Do", form % 7)])
    tower = [stream(b"/X Do " * 10, form % (8 + level)) for level in range(12)]
    write("form-tower.pdf", start + [page(6, resources), stream(b"/X Do")] + tower + [stream(words, form % 99)])
    bomb = zlib.compress(zlib.compress(b" " * 300_000_000, 9), 9)
    write("bomb.pdf", start + [page(6), stream(bomb, b"/Filter[/FlateDecode/FlateDecode]")])
    loop = b"<</Type/Pages/Kids[2 0 R 5 0 R 2 0 R]/Count 3>>"
    write("page-loop.pdf", [CATALOG, loop, FONT, BOLD, page(6), stream(words)])
    deep = b"[" * 20_000 + b"]" * 20_000
    write("deep.pdf", start + [page(6), stream(words), deep], b"/Info 7 0 R")
    (HERE / "no-page.pdf").write_bytes(b"%PDF-1.7\n%%EOF\n")
    whole = (HERE / "report.pdf").read_bytes()
    (HERE / "cut-off.pdf").write_bytes(whole[: len(whole) * 3 // 4])


if __name__ == "__main__":
    report()
    columns()
    fonts()
    scans()
    object_streams()
    encrypted("empty-password.pdf", b"")
    encrypted("locked.pdf", b"secret")
    traps()
