#!/usr/bin/env python3
"""Generates folders of invented files, the same for the same seed.

    generate.py markdown|mixed|records FOLDER --count N
"""

import argparse
import gzip
import io
import json
import random
import sqlite3
import tarfile
import tempfile
import zipfile
from bisect import bisect
from itertools import accumulate
from pathlib import Path

WORDS = 30_000
PORTS = ["Ellin", "Tarn", "Orrin", "Skerry", "Vale", "Lowmere"]
DAY = (1980, 1, 1, 0, 0, 0)  # what archives say about their members, so that they are the same each time


class Writer:
    """Text of invented words with Zipf frequencies."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        onset, core, end = "bcdfghklmnprstvw", "aeiou", ["", "n", "r", "s", "l", "t", "m"]
        seen, self.words = set(), []
        while len(self.words) < WORDS:
            count = 1 + (len(self.words) > 200) + (len(self.words) > 5_000)
            parts = (self.dice.choice(onset) + self.dice.choice(core) + self.dice.choice(end) for _ in range(count))
            word = "".join(parts)
            if word not in seen:
                seen.add(word)
                self.words.append(word)
        self.sums = list(accumulate(1 / (rank + 2.7) for rank in range(WORDS)))

    def text(self, words):
        points = self.dice.choices(range(WORDS), cum_weights=self.sums, k=words)
        return " ".join(self.words[point] for point in points)

    def rare(self):
        return self.words[self.dice.randrange(5_000, WORDS)]

    def prose(self, words):
        lines = []
        while words > 0:
            count = min(words, self.dice.randint(30, 120))
            lines.append(self.text(count).capitalize() + ".")
            words -= count
        return "\n\n".join(lines)


def marker(number):
    """A word that occurs in this document only."""
    return "qx" + "".join("bcdfghjklm"[int(digit)] for digit in str(number)) + "zq"


def markdown(writer, number):
    head = f"---\ntitle: {writer.text(4).title()}\ndate: 20{number % 25:02}-0{1 + number % 9}-1{number % 9}\nport: {PORTS[number % 6]}\n---\n"
    parts = "\n\n".join(f"## {writer.text(3).title()}\n\n{writer.prose(120)}" for _ in range(writer.dice.randint(1, 4)))
    return (head + f"# {writer.text(4).title()}\n\n{marker(number)}\n\n{parts}\n").encode()


def text(writer, number):
    return f"{marker(number)}\n\n{writer.prose(300)}\n".encode()


def html(writer, number):
    paragraphs = "".join(f"<p>{writer.text(80)}.</p>" for _ in range(5))
    return (
        f"<!doctype html><html><head><title>{writer.text(4)}</title></head><body><nav>Home</nav>"
        f"<main><h1>{writer.text(3)}</h1><p>{marker(number)}</p>{paragraphs}</main></body></html>"
    ).encode()


def table(writer, number):
    rows = [f"port,berths,opened,note\n{PORTS[0]},4,2004-03-01,{marker(number)}\n"]
    for row in range(20):
        note = f'"{writer.text(12)}"'
        rows.append(f"{PORTS[row % 6]},{writer.dice.randrange(90)},20{row:02}-0{1 + row % 9}-12,{note}\n")
    return "".join(rows).encode()


def record(writer, number, words=40):
    return {
        "title": writer.text(4).title(),
        "text": f"{marker(number)} {writer.text(words)}.",
        "date": f"20{number % 25:02}-0{1 + number % 9}-1{number % 9}",
        "port": PORTS[number % 6],
        "rank": writer.dice.randrange(1_000),
    }


def lines(writer, number):
    return "".join(json.dumps(record(writer, number * 100 + 7 + row)) + "\n" for row in range(10)).encode()


def listed(writer, number):
    return json.dumps({"items": [record(writer, number * 100 + 7 + row) for row in range(10)]}, indent=1).encode()


def message(writer, number):
    return (
        f"From: office{number % 50}@harbour.example\nTo: pier@harbour.example\nSubject: {writer.text(5)}\n"
        f"Date: Tue, 12 Mar 2024 10:{number % 60:02}:00 +0000\nMessage-ID: <{number}@harbour.example>\n"
        f"MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n{marker(number)}\n\n{writer.prose(150)}\n"
    ).encode()


def packed(parts):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in parts:
            package.writestr(zipfile.ZipInfo(name, DAY), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def docx(writer, number):
    w = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    paragraphs = [marker(number)] + [writer.text(80) + "." for _ in range(6)]
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    kinds = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    rels = "http://schemas.openxmlformats.org/package/2006/relationships"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    return packed(
        [
            ("[Content_Types].xml", f'<Types xmlns="{types}"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="{kinds}"/></Types>'),
            ("_rels/.rels", f'<Relationships xmlns="{rels}"><Relationship Id="r1" Type="{office}" Target="word/document.xml"/></Relationships>'),
            ("word/document.xml", f'<w:document xmlns:w="{w}"><w:body>{body}</w:body></w:document>'),
        ]
    )  # fmt: skip


def pdf(writer, number):
    lines = [marker(number)] + [writer.text(9) for _ in range(45)]
    shown = "".join(f"({line}) Tj T* " for line in lines)
    stream = f"BT /F1 10 Tf 14 TL 50 780 Td {shown}ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ]
    out, places = b"%PDF-1.4\n", []
    for at, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (at, content)
    xref = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, xref)


def notebook(writer, number):
    cell = lambda kind, text: {"cell_type": kind, "metadata": {}, "source": text, **({"outputs": [], "execution_count": None} if kind == "code" else {})}
    cells = [cell("markdown", f"# {writer.text(3)}\n\n{marker(number)} {writer.text(90)}"), cell("code", "total = 1 + 2\nprint(total)")]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()


def code(writer, number):
    body = "\n".join(f"    {word} = {at}  # {writer.text(6)}" for at, word in enumerate(writer.text(30).split()))
    return f'"""{marker(number)}: {writer.text(12)}."""\n\n\ndef {writer.rare()}():\n{body}\n'.encode()


def archive(writer, number):
    parts = [(f"notes/{at}.md", markdown(writer, number * 100 + 7 + at)) for at in range(5)]
    return packed(parts)


def tar(writer, number):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as package:
        for at in range(5):
            content = text(writer, number * 100 + 7 + at)
            info = tarfile.TarInfo(f"notes/{at}.txt")
            info.size = len(content)
            package.addfile(info, io.BytesIO(content))
    return gzip.compress(out.getvalue(), mtime=0)


def database(writer, number):
    with tempfile.NamedTemporaryFile(suffix=".db") as file:
        with sqlite3.connect(file.name) as base:
            base.execute("create table vessels (name text, berths integer, note text)")
            rows = [(writer.text(2), row, f"{marker(number * 100 + 7 + row)} {writer.text(20)}") for row in range(10)]
            base.executemany("insert into vessels values (?, ?, ?)", rows)
        return Path(file.name).read_bytes()


# How many of a hundred files are of each kind.
MIX = [
    ("md", markdown, 40), ("txt", text, 10), ("html", html, 12), ("csv", table, 5), ("jsonl", lines, 3),
    ("json", listed, 3), ("eml", message, 6), ("docx", docx, 6), ("pdf", pdf, 6), ("ipynb", notebook, 2),
    ("py", code, 4), ("zip", archive, 1), ("tar.gz", tar, 1), ("db", database, 1),
]  # fmt: skip


def files(folder, count, seed, mix):
    writer = Writer(seed)
    kinds = [kind for kind in mix for _ in range(kind[2])]
    bytes_written = 0
    for number in range(count):
        ending, make, _ = kinds[number * 37 % len(kinds)]
        place = folder / f"{number // 500:03}"
        place.mkdir(parents=True, exist_ok=True)
        content = make(writer, number)
        (place / f"{number:06}.{ending}").write_bytes(content)
        bytes_written += len(content)
    return bytes_written


def records(folder, count, seed):
    """One file of `count` records of some hundred bytes each, and a small file beside it."""
    writer = Writer(seed)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "records.jsonl", "w") as out:
        for number in range(count):
            out.write(json.dumps({"id": f"r{number}", **record(writer, number, writer.dice.randint(20, 60))}) + "\n")
    (folder / "small.md").write_bytes(markdown(writer, 10**9))
    return (folder / "records.jsonl").stat().st_size


def make(kind, folder, count, seed):
    if kind == "records":
        return records(folder, count, seed)
    return files(folder, count, seed, MIX if kind == "mixed" else MIX[:1])


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("kind", choices=["markdown", "mixed", "records"])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--count", type=int, default=10_000)
    arguments.add_argument("--seed", type=int, default=1)
    asked = arguments.parse_args()
    print(make(asked.kind, asked.folder, asked.count, asked.seed), "bytes")
