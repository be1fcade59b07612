"""Writes the golden spreadsheets of ../sheet. Run it in this folder; it needs nothing but Python.

The files are the same on every run: all times are fixed.
"""

import struct
import zipfile
from xml.sax.saxutils import escape

OUT = "../sheet/"


def pack(path, parts, first_stored=False):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for at, (name, text) in enumerate(parts):
            info = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_STORED if first_stored and at == 0 else zipfile.ZIP_DEFLATED
            package.writestr(info, text)


# --- Office Open XML ---

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def letters(column):
    name = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name


class Workbook:
    """Styles: 0 plain, 1 day, 2 day and time, 3 duration."""

    def __init__(self):
        self.sheets, self.strings = [], []

    def sheet(self, name, rows, state="visible"):
        out = []
        for number, cells in rows:
            out.append(f'<row r="{number}">')
            for column, value in cells:
                ref = f"{letters(column)}{number}"
                if isinstance(value, bool):
                    out.append(f'<c r="{ref}" t="b"><v>{int(value)}</v></c>')
                elif isinstance(value, tuple):
                    out.append(f'<c r="{ref}" s="{value[1]}"><v>{value[0]}</v></c>')
                elif isinstance(value, (int, float)):
                    out.append(f'<c r="{ref}"><v>{value}</v></c>')
                elif value.startswith("="):
                    out.append(f'<c r="{ref}" t="str"><f>A1</f><v>{escape(value[1:])}</v></c>')
                else:
                    if value not in self.strings:
                        self.strings.append(value)
                    out.append(f'<c r="{ref}" t="s"><v>{self.strings.index(value)}</v></c>')
            out.append("</row>")
        self.sheets.append((name, "".join(out), state))

    def write(self, path):
        entries = "".join(
            f'<sheet name="{escape(name)}" sheetId="{n}" state="{state}" r:id="rId{n}"/>'
            for n, (name, _, state) in enumerate(self.sheets, 1)
        )
        targets = "".join(
            f'<Relationship Id="rId{n}" Type="{RELS}/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n in range(1, len(self.sheets) + 1)
        )
        head = '<?xml version="1.0" encoding="UTF-8"?>'
        package = "http://schemas.openxmlformats.org/package/2006"
        strings = "".join(f'<si><t xml:space="preserve">{escape(s)}</t></si>' for s in self.strings)
        styles = (
            '<numFmts count="1"><numFmt numFmtId="164" formatCode="dd\\.mm\\.yyyy\\ hh:mm"/></numFmts>'
            '<cellXfs count="4"><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="46"/></cellXfs>'
        )
        parts = [
            ("[Content_Types].xml", f'{head}<Types xmlns="{package}/content-types"/>'),
            ("_rels/.rels", f'{head}<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" Type="{RELS}/officeDocument" Target="xl/workbook.xml"/></Relationships>'),
            ("xl/workbook.xml", f'{head}<workbook {MAIN} xmlns:r="{RELS}"><sheets>{entries}</sheets></workbook>'),
            ("xl/_rels/workbook.xml.rels", f'{head}<Relationships xmlns="{package}/relationships">{targets}</Relationships>'),
            ("xl/styles.xml", f"{head}<styleSheet {MAIN}>{styles}</styleSheet>"),
            ("xl/sharedStrings.xml", f'{head}<sst {MAIN} count="{len(self.strings)}" uniqueCount="{len(self.strings)}">{strings}</sst>'),
        ]
        for n, (_, rows, _) in enumerate(self.sheets, 1):
            parts.append((f"xl/worksheets/sheet{n}.xml", f"{head}<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>"))
        pack(path, parts)


def rows(*lines, start=1):
    return [
        (number, [(c, v) for c, v in enumerate(line) if v is not None])
        for number, line in enumerate(lines, start)
    ]


book = Workbook()
book.sheet("Vessels", rows(
    ["Fleet of Corrowin, spring 2024"],
    [],
    ["id", "name", "built", "berths", "in service", "last refit", "crossing"],
    ["V-1", "Orrin Dawn", (22433, 1), 120, True, (45363.4375, 2), (0.0625, 3)],
    ["V-2", "Skerry Queen", (25600, 1), 80.5, False, None, (1.25, 3)],
    ["V-3", "Pale Strait <II>", (35935, 1), None, True, (45292, 2), None, "odd one out"],
))
book.sheet("Old vessels", rows(["ID", "name"], ["V-1", "Tarn Lass"], ["V-2", "=Ellin & Sons"]))
book.sheet("Notes", rows(["Read me first"], ["Prepared by the pier office", None, "draft"], [], ["Berths are for passengers only."]))
book.sheet("Lists", rows(["a", "b"], ["x", "y"], ["z", "w"]), state="hidden")
book.sheet("Empty", [])
book.write(OUT + "fleet.xlsx")

book = Workbook()
book.sheet("Sheet1", rows(["id", "title", "text"], [17, "Water levy", "Ayes 8, noes 8."], [18, "Ferry subsidy", "Carried."]))
book.write(OUT + "divisions.xlsx")

# --- OpenDocument ---

NAMES = " ".join(
    f'xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{v}:1.0"'
    for n, v in [("office", "office"), ("table", "table"), ("text", "text"), ("draw", "drawing")]
)


def text_cell(text, more=""):
    paragraphs = "".join(f"<text:p>{escape(p)}</text:p>" for p in text.split("\n"))
    return f'<table:table-cell office:value-type="string"{more}>{paragraphs}</table:table-cell>'


def value_cell(kind, value, shown):
    name = {"float": "value", "date": "date-value", "boolean": "boolean-value"}[kind]
    return f'<table:table-cell office:value-type="{kind}" office:{name}="{value}"><text:p>{shown}</text:p></table:table-cell>'


def row(*cells, more=""):
    return f"<table:table-row{more}>{''.join(cells)}</table:table-row>"


far = '<table:table-row table:number-rows-repeated="1048000"><table:table-cell table:number-columns-repeated="16384"/></table:table-row>'
content = f"""<?xml version="1.0" encoding="UTF-8"?><office:document-content {NAMES}><office:body><office:spreadsheet>
<table:table table:name="Tides">{row(text_cell("place"), text_cell("day"), text_cell("metres"), text_cell("spring"), text_cell("remark"))}
{row(text_cell("Port Ellin"), value_cell("date", "2024-03-12", "12.3.24"), value_cell("float", "4.25", "4,25"), value_cell("boolean", "true", "TRUE"), text_cell("First line" + chr(10) + "second & last"))}
{row(text_cell("Tarn"), value_cell("date", "2024-03-12T06:40:00", "6:40"), value_cell("float", "3", "3,00"), value_cell("boolean", "false", "FALSE"), '<table:table-cell office:value-type="string"><office:annotation><text:p>a hidden comment</text:p></office:annotation><text:p>two<text:s/>words</text:p></table:table-cell>')}
{row(text_cell("Orrin", ' table:number-columns-repeated="2"'), value_cell("float", "1e2", "100"), more=' table:number-rows-repeated="2"')}
{far}</table:table>
<table:table table:name="p2">{row(text_cell("A single note."))}{far}</table:table>
</office:spreadsheet></office:body></office:document-content>"""
pack(OUT + "tides.ods", [
    ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
    ("META-INF/manifest.xml", "<manifest/>"),
    ("content.xml", content),
], first_stored=True)

# --- Excel 97 ---


def record(kind, data=b""):
    return struct.pack("<HH", kind, len(data)) + data


def wide(text, size):
    return struct.pack({1: "<B", 2: "<H"}[size], len(text)) + b"\x01" + text.encode("utf-16-le")


def narrow(text, size):
    return struct.pack({1: "<B", 2: "<H"}[size], len(text)) + b"\x00" + text.encode("latin-1")


def rk(number):
    return (int(number) << 2 | 2) & 0xFFFFFFFF


def bof(kind):
    return record(0x0809, struct.pack("<HHHHII", 0x0600, kind, 0, 0, 0, 0))


strings = ["port", "opened", "berths", "Ellin", "Tärn “quay”", "height"]
# The last string begins in one record and ends in the next, in another width.
table = struct.pack("<II", 10, len(strings))
table += b"".join(narrow(s, 2) for s in strings[:4]) + wide(strings[4], 2)
table += struct.pack("<H", 6) + b"\x00" + b"hei"
sst = record(0x00FC, table) + record(0x003C, b"\x01" + "ght".encode("utf-16-le"))


def cell(kind, r, c, style, data):
    return record(kind, struct.pack("<HHH", r, c, style) + data)


def sheet_records():
    label = lambda r, c, at: cell(0x00FD, r, c, 0, struct.pack("<I", at))
    out = bof(0x0010)
    out += label(0, 0, 0) + label(0, 1, 1) + label(0, 2, 2) + label(0, 3, 5)
    out += label(1, 0, 3) + cell(0x0203, 1, 1, 1, struct.pack("<d", 22433)) + cell(0x027E, 1, 2, 0, struct.pack("<I", rk(42)))
    out += cell(0x0006, 1, 3, 0, struct.pack("<d", 3.5) + struct.pack("<HI", 0, 0) + struct.pack("<H", 0))
    out += label(2, 0, 4) + cell(0x0203, 2, 1, 2, struct.pack("<d", 45363.4375))
    out += record(0x00BD, struct.pack("<HH", 2, 2) + struct.pack("<HI", 0, rk(7)) + struct.pack("<HI", 0, rk(250) | 1) + struct.pack("<H", 3))
    out += cell(0x0006, 3, 0, 0, b"\x00\x00\x00\x00\x00\x00\xff\xff" + struct.pack("<HI", 0, 0) + struct.pack("<H", 0))
    out += record(0x0207, wide("Skerry", 2))
    out += cell(0x0205, 3, 2, 0, b"\x01\x00")
    out += bof(0x0020) + cell(0x0203, 9, 9, 0, struct.pack("<d", 1)) + record(0x000A)
    return out + record(0x000A)


def globals_records(starts):
    out = bof(0x0005) + record(0x0042, struct.pack("<H", 1200))
    out += record(0x041E, struct.pack("<H", 164) + narrow("yyyy\\-mm\\-dd hh:mm", 2))
    for fmt in [0, 14, 164]:
        out += record(0x00E0, struct.pack("<HH", 0, fmt) + b"\0" * 16)
    for start, name, hidden in starts:
        out += record(0x0085, struct.pack("<IBB", start, hidden, 0) + narrow(name, 1))
    return out + sst + record(0x000A)


first = sheet_records()
second = bof(0x0010) + cell(0x0204, 0, 0, 0, narrow("secret", 2)) + record(0x000A)
size = len(globals_records([(0, "Harbours", 0), (0, "Scratch", 1)]))
stream = globals_records([(size, "Harbours", 0), (size + len(first), "Scratch", 1)]) + first + second
stream += b"\0" * (4096 - len(stream))

END, FREE, FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
sectors = len(stream) // 512
fat = [FAT, END] + [n + 1 for n in range(2, 2 + sectors - 1)] + [END]
fat += [FREE] * (128 - len(fat))


def entry(name, kind, start, length, child=FREE):
    raw = name.encode("utf-16-le") + b"\0\0"
    out = raw.ljust(64, b"\0") + struct.pack("<HBB", len(raw), kind, 1)
    out += struct.pack("<III", FREE, FREE, child) + b"\0" * 36
    return out + struct.pack("<IQ", start, length)


header = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1" + b"\0" * 16 + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
header += b"\0" * 6 + struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4096, END, 0, END, 0)
header += struct.pack("<I", 0) + struct.pack("<I", FREE) * 108
folder = entry("Root Entry", 5, END, 0, 1) + entry("Workbook", 2, 2, len(stream)) + entry("", 0, 0, 0) * 2
with open(OUT + "harbours.xls", "wb") as file:
    file.write(header + struct.pack("<128I", *fat) + folder + stream)
