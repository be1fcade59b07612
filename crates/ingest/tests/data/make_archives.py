#!/usr/bin/env python3
"""Writes the archives in `archive/`, the same bytes each time."""

import gzip
import io
import pathlib
import tarfile
import zipfile

HERE = pathlib.Path(__file__).parent / "archive"
NOTES = "---\ntitle: Ferry notes\ndate: 2024-03-12\n---\nThe ferry rests on Mondays.\n"
RECORDS = '{"id": "levee-1", "title": "Levee", "text": "The levee holds."}\n{broken\n'
MAIL = (
    "From: office@tarnport.example\nDate: Tue, 12 Mar 2024 10:30:00 +0000\n"
    "Subject: Pier\nMessage-ID: <pier@tarnport.example>\n\nThe pier is closed.\n"
)


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            entry = zipfile.ZipInfo(name, (2024, 3, 12, 10, 30, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return out.getvalue()


def tarred(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            data = content.encode()
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        link = tarfile.TarInfo("latest.md")
        link.type = tarfile.SYMTYPE
        link.linkname = "notes/ferry.md"
        archive.addfile(link)
    return out.getvalue()


def packed(data):
    return gzip.compress(data, mtime=0)


FILES = [("notes/ferry.md", NOTES), ("records.jsonl", RECORDS), ("mail/pier.eml", MAIL)]
inner = zipped([("wards/öst.txt", "Eleven wards.\n")])
(HERE / "minutes.zip").write_bytes(
    zipped(FILES + [("empty/", ""), ("picture.png", "\x89PNG"), ("../out.txt", "out"), ("inner.zip", inner), (".hidden.md", "x")])
)
(HERE / "minutes.tar.gz").write_bytes(packed(tarred(FILES + [("notes/" + "long-" * 30 + "name.txt", "A long name.\n")])))
(HERE / "wards.tar").write_bytes(tarred([("wards.txt", "Eleven wards.\n")]))
(HERE / "wards.txt.gz").write_bytes(packed("Eleven wards.\n".encode()))
(HERE / "cut.zip").write_bytes(inner[:-8])
