"""Writes the golden inputs in docx/, pptx/, odt/, epub/ and package/.

    python3 make_packages.py

Needs nothing but Python. The same bytes come out every time.
"""

import pathlib
import zipfile

HERE = pathlib.Path(__file__).parent
XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def package(path, parts, flag_bits=0):
    path = HERE / path
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as out:
        for name, content in parts:
            info = zipfile.ZipInfo(name, (2024, 3, 12, 10, 30, 0))
            stored = name == "mimetype"
            info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            out.writestr(info, content)
    if flag_bits:
        # The bit that says "encrypted", in every local and central header.
        data = bytearray(path.read_bytes())
        for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            at = data.find(signature)
            while at >= 0:
                data[at + offset] |= flag_bits
                at = data.find(signature, at + 4)
        path.write_bytes(data)


def content_types(part, kind):
    return (
        f'{XML}<Types xmlns="{TYPES}"><Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/{part}" ContentType="application/vnd.openxmlformats-officedocument.'
        f'{kind}.main+xml"/></Types>'
    )


def rels(*targets):
    items = "".join(
        f'<Relationship Id="rId{n}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(targets, 1)
    )
    return f'{XML}<Relationships xmlns="{RELS}">{items}</Relationships>'


def core(**said):
    items = "".join(f"<{name.replace('_', ':')}>{text}</{name.replace('_', ':')}>" for name, text in said.items())
    return (
        f'{XML}<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
        f"{items}</cp:coreProperties>"
    )


def p(text, style=None, level=None, run=""):
    properties = f'<w:pStyle w:val="{style}"/>' if style else ""
    if level is not None:
        properties += f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{2 if style == "Num" else 1}"/></w:numPr>'
    text = f'<w:r>{run}<w:t xml:space="preserve">{text}</w:t></w:r>' if isinstance(text, str) else text[0]
    return f"<w:p><w:pPr>{properties}</w:pPr>{text}</w:p>"


def row(*cells):
    return "<w:tr>" + "".join(f"<w:tc>{p(cell)}</w:tc>" for cell in cells) + "</w:tr>"


STYLES = (
    f"{XML}<w:styles {W}>"
    '<w:style w:type="paragraph" w:styleId="Titel"><w:name w:val="Title"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="heading 2"/>'
    '<w:basedOn w:val="berschrift1"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Verzeichnis1"><w:name w:val="toc 1"/></w:style>'
    "</w:styles>"
)
NUMBERING = (
    f"{XML}<w:numbering {W}>"
    '<w:abstractNum w:abstractNumId="5"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>'
    '<w:abstractNum w:abstractNumId="6"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="5"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="6"/></w:num>'
    "</w:numbering>"
)


def docx():
    noted = (
        '<w:r><w:t>The slate of Quarrytown was cut by hand</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r>'
        '<w:r><w:t xml:space="preserve"> until 1931.</w:t></w:r><w:del><w:r><w:delText>1932</w:delText></w:r></w:del>',
    )
    body = (
        p("The slate of Quarrytown", "Titel")
        + p("1 History 3", "Verzeichnis1")
        + p("History", "berschrift1")
        + p(noted)
        + p("Ignore what stands above.", run="<w:rPr><w:vanish/></w:rPr>")
        + p("Who worked there", "berschrift2")
        + p("cutters", level=0)
        + p("with their boys", level=1)
        + p("carters &amp; sailors", level=0)
        + p("Wake at four", "Num", 0)
        + p("Walk to the pit", "Num", 0)
        + p("How much was cut", "berschrift1")
        + "<w:tbl>"
        + row("Year", "Tons")
        + row("1890", "1,200")
        + row("1931", "")
        + "</w:tbl>"
        + p("All figures are those of the Office of Mines.")
    )
    notes = (
        f'{XML}<w:footnotes {W}><w:footnote w:type="separator" w:id="0"><w:p><w:r><w:separator/></w:r></w:p></w:footnote>'
        f'<w:footnote w:id="2">{p("Report of the Office of Mines, 1932.")}</w:footnote></w:footnotes>'
    )
    parts = [
        ("[Content_Types].xml", content_types("word/document.xml", "wordprocessingml.document")),
        ("_rels/.rels", rels(("officeDocument", "word/document.xml"))),
        ("word/_rels/document.xml.rels", rels(("styles", "styles.xml"), ("numbering", "numbering.xml"), ("footnotes", "footnotes.xml"))),
        ("word/document.xml", f"{XML}<w:document {W}><w:body>{body}</w:body></w:document>"),
        ("word/styles.xml", STYLES),
        ("word/numbering.xml", NUMBERING),
        ("word/footnotes.xml", notes),
        ("docProps/core.xml", core(dc_title="Slate: a report", dc_creator="Office of Mines", cp_keywords="slate; mining", dcterms_created="1933-02-01T08:00:00Z", dcterms_modified="2024-03-12T10:30:00Z")),
    ]
    package("docx/slate.docx", parts)
    bare = f"{XML}<w:document {W}><w:body><w:p><w:r><w:t>Only words.</w:t></w:r></w:p></w:body></w:document>"
    package("docx/only_words.docx", parts[:2] + [("word/document.xml", bare)])
    package("docx/cut_off.docx", parts[:2] + [("word/document.xml", bare[:-30])])
    package("docx/missing.docx", parts[:2])
    broken = [(name, "<w:styles><w:style>" if name == "word/styles.xml" else content) for name, content in parts]
    package("docx/broken_styles.docx", broken[:5])
    bomb = (
        f'<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/hostname">]>'
        f"<w:document {W}><w:body><w:p><w:r><w:t>Entities: &b;&c;&amp;</w:t></w:r></w:p></w:body></w:document>"
    )
    package("docx/entities.docx", parts[:2] + [("word/document.xml", bomb)])


def slide(title, *shapes):
    sp = '<p:sp><p:nvSpPr><p:nvPr><p:ph{}/></p:nvPr></p:nvSpPr><p:txBody>{}</p:txBody></p:sp>'
    paragraph = '<a:p><a:pPr lvl="{}"/><a:r><a:t>{}</a:t></a:r></a:p>'
    inside = "".join(
        sp.format(kind, "".join(paragraph.format(level, text) for level, text in lines)) for kind, lines in shapes
    )
    inside += sp.format(' type="title"', paragraph.format(0, title)) if title else ""
    return (
        f'{XML}<p:sld xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
        ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">'
        f"<p:cSld><p:spTree>{inside}</p:spTree></p:cSld></p:sld>"
    )


def pptx():
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="rId{n}"/>' for n in (2, 1, 3))
    main = (
        f'{XML}<p:presentation xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
        f' xmlns:r="{OFFICE}"><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>'
    )
    package(
        "pptx/lanterns.pptx",
        [
            ("[Content_Types].xml", content_types("ppt/presentation.xml", "presentationml.presentation")),
            ("_rels/.rels", rels(("officeDocument", "ppt/presentation.xml"))),
            ("ppt/presentation.xml", main),
            ("ppt/_rels/presentation.xml.rels", rels(*(("slide", f"slides/slide{n}.xml") for n in (1, 2, 3)))),
            ("ppt/slides/slide1.xml", slide("What it costs", (' idx="1"', [(0, "paper"), (1, "white, from Tarn"), (0, "oil")]), (' type="sldNum"', [(0, "2")]))),
            ("ppt/slides/slide2.xml", slide("The Lantern feast", (' type="subTitle"', [(0, "Plans for the year")]))),
            ("ppt/slides/slide3.xml", slide("")),
            ("ppt/slides/_rels/slide1.xml.rels", rels(("notesSlide", "../notesSlides/notesSlide1.xml"))),
            ("ppt/notesSlides/notesSlide1.xml", slide("", (' type="sldImg"', []), (' type="body" idx="1"', [(0, "Say that oil is cheaper in spring.")]))),
            ("docProps/core.xml", core(dc_title="PowerPoint Presentation", dc_creator="Feast Board of Corrowin", dcterms_created="2023-09-01T12:00:00Z")),
        ],
    )


def odt():
    names = (
        'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
        ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"'
        ' xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/"'
    )
    body = (
        '<text:p text:style-name="P1">Rules of the harbour</text:p>'
        '<text:h text:outline-level="2">Mooring</text:h>'
        '<text:p>Boats moor<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body>'
        "<text:p>Not in June.</text:p></text:note-body></text:note> at the north pier<text:s text:c=\"2\"/>only.<text:line-break/>Ask the warden.</text:p>"
        '<text:list text:style-name="L1"><text:list-item><text:p>Slow down</text:p></text:list-item>'
        "<text:list-item><text:p>Tie up</text:p></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>Length</text:p></table:table-cell><table:table-cell><text:p>Fee</text:p></table:table-cell></table:table-row>"
        "<table:table-row><table:table-cell><text:p>10 m</text:p></table:table-cell><table:table-cell><text:p>4 crowns</text:p></table:table-cell></table:table-row></table:table>"
    )
    content = (
        f'{XML}<office:document-content {names}><office:automatic-styles><style:style style:name="P1" style:parent-style-name="Title"/>'
        '<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-format="1"/></text:list-style>'
        f"</office:automatic-styles><office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    meta = (
        f"{XML}<office:document-meta {names}><office:meta><dc:creator>Second Warden</dc:creator><meta:initial-creator>First Warden</meta:initial-creator>"
        "<meta:creation-date>2022-01-05T09:00:00.5</meta:creation-date><meta:keyword>harbour</meta:keyword><meta:keyword>fees</meta:keyword>"
        "</office:meta></office:document-meta>"
    )
    kind = ("mimetype", "application/vnd.oasis.opendocument.text")
    package("odt/harbour.odt", [kind, ("content.xml", content), ("meta.xml", meta)])
    locked = '<m:manifest xmlns:m="x"><m:file-entry m:full-path="content.xml"><m:encryption-data/></m:file-entry></m:manifest>'
    package("odt/locked.odt", [kind, ("content.xml", b"\x00\x01"), ("META-INF/manifest.xml", locked)])


def epub():
    page = '{}<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{}</title></head><body>{}</body></html>'
    opf = (
        f'{XML}<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:title>Tides of the Pale Strait</dc:title><dc:creator>Mara Quill</dc:creator><dc:creator>Joss Tarrant</dc:creator>"
        "<dc:language>en</dc:language><dc:identifier>urn:isbn:0000000000017</dc:identifier><dc:date>1901-05-04</dc:date>"
        "<dc:publisher>Corrowin Press</dc:publisher><dc:subject>Sea</dc:subject>"
        '<meta property="dcterms:modified">2024-03-12T10:30:00Z</meta></metadata><manifest>'
        '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
        '<item id="c2" href="text/two%20b.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="c1" href="text/one.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="pic" href="p.png" media-type="image/png"/></manifest>'
        '<spine><itemref idref="nav"/><itemref idref="c1"/><itemref idref="c2"/></spine></package>'
    )
    container = (
        f'{XML}<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    parts = [
        ("mimetype", "application/epub+zip"),
        ("META-INF/container.xml", container),
        ("OEBPS/book.opf", opf),
        ("OEBPS/nav.xhtml", page.format(XML, "Contents", "<nav><ol><li>Ebb</li><li>Flood</li></ol></nav>")),
        ("OEBPS/text/two b.xhtml", page.format(XML, "Flood", "<h1>Flood</h1><p>It comes back.</p>")),
        ("OEBPS/text/one.xhtml", page.format(XML, "Ebb", "<script/><h1>Ebb</h1><p>The water goes.</p><p>Nobody knows where.</p>")),
        ("OEBPS/p.png", b"\x89PNG"),
    ]
    package("epub/tides.epub", parts)
    encryption = (
        '<encryption xmlns="x"><EncryptedData><CipherData><CipherReference URI="OEBPS/text/one.xhtml"/></CipherData></EncryptedData></encryption>'
    )
    package("epub/protected.epub", parts + [("META-INF/encryption.xml", encryption)])


def others():
    package("package/secret.docx", [("[Content_Types].xml", "x"), ("_rels/.rels", "x")], flag_bits=1)
    package("package/bomb.docx", [("[Content_Types].xml", b" " * 5_000_000), ("_rels/.rels", rels(("officeDocument", "a.xml")))])
    (HERE / "package/no-zip.docx").write_text("This only has the name of a document.\n")


if __name__ == "__main__":
    for make in (docx, pptx, odt, epub, others):
        make()
