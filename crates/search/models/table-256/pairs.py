"""Freely licensed texts into pairs of a short and a long text that belong together: a heading and
its paragraph, a title and its abstract, a sentence and what stands around it, a docstring and its code.

    python3 pairs.py SOURCES PAIRS.jsonl.xz [JUDGED.jsonl ...]

SOURCES holds `git/` (clones, named as below), `debian/` (unpacked packages), `hp.obo`, `packages.txt`
(what `apt-cache dumpavail` prints), `python/` and `rust/` (installed packages). Documents of JUDGED
collections are left out, so that nothing is learnt from what it is judged by. Needs Python only.
"""

import ast
import glob
import gzip
import hashlib
import html
import json
import lzma
import random
import re
import subprocess
import sys

MAX_SHORT, MAX_LONG, MAX_PARAGRAPH = 300, 1500, 1200
# How many million characters of each source are kept, so that none drowns the others.
SHARES = {
    "elife": 42, "openstax": 8, "wordnet": 14, "hpo": 4, "debian": 6, "linux": 6,
    "python-doc": 6, "manuals": 9, "web": 14, "python": 18, "rust": 6,
}  # fmt: skip


def spaced(text):
    return re.sub(r"\s+", " ", text).strip()


def untagged(markup):
    return spaced(html.unescape(re.sub(r"<[^>]+>", " ", markup)))


def bare(text):
    return re.sub(r"\W+", "", text).lower()


def sentences(text):
    return re.split(r"(?<=[.!?]) ", text)


def committed(clone, wanted):
    """The files of a clone's newest commit."""
    git = ["git", "-C", clone]
    names = subprocess.run([*git, "ls-tree", "-r", "--name-only", "HEAD"], capture_output=True, text=True, check=True)
    reader = subprocess.Popen([*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for name in filter(wanted, names.stdout.split("\n")):
        reader.stdin.write(f"HEAD:{name}\n".encode())
        reader.stdin.flush()
        header = reader.stdout.readline().split()
        if len(header) == 3:
            body = reader.stdout.read(int(header[2]))
            reader.stdout.read(1)
            yield body.decode("utf-8", "replace")
    reader.stdin.close()
    reader.wait()


def files(pattern):
    return sorted(glob.glob(pattern, recursive=True))


def text_of(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8", errors="replace") as file:
        return file.read()


def under_heading(heading, paragraphs):
    """The heading belongs to the first paragraph; of each other one a sentence stands for the rest."""
    for place, paragraph in enumerate(paragraphs):
        paragraph = spaced(paragraph)
        if len(paragraph) < 80:
            continue
        parts = sentences(paragraph)
        if place == 0 and heading:
            yield heading, paragraph[:MAX_PARAGRAPH]
        elif len(parts) > 2:
            one = parts.pop(random.randrange(len(parts)))
            yield one, " ".join(parts)[:MAX_PARAGRAPH]
        else:
            yield "", paragraph[:MAX_PARAGRAPH]


def elife(sources, judged):
    def wanted(name):
        first = re.fullmatch(r"articles/elife-\d+-v1\.xml", name)
        return first and int(hashlib.md5(name.encode()).hexdigest(), 16) % 2 == 0

    for article in committed(f"{sources}/git/elife-article-xml", wanted):
        title = re.search(r"<article-title>(.*?)</article-title>", article, re.S)
        abstract = re.search(r"<abstract>(.*?)</abstract>", article, re.S)
        if not title or not abstract or bare(untagged(title[1])) in judged:
            continue
        abstract = untagged(re.sub(r"<object-id.*?</object-id>", "", abstract[1]))
        abstract = re.sub(r"^\s*Abstract\s*|DOI:.*$", "", abstract)
        yield untagged(title[1]), abstract
        digest = re.search(r'<abstract abstract-type="(?:executive|plain-language)-summary">(.*?)</abstract>', article, re.S)
        plain = [untagged(p) for p in re.findall(r"<p>(.*?)</p>", digest[1], re.S)] if digest else []
        for paragraph in [p for p in plain if len(p) > 100 and "DOI" not in p[:20]][:4]:
            yield random.choice(sentences(paragraph)), paragraph
        keywords = [untagged(k) for k in re.findall(r"<kwd>(.*?)</kwd>", article)]
        if keywords:
            yield ", ".join(keywords[:6]), abstract
        body = article[article.find("<body") : article.find("</body>")]
        sections = re.findall(r"<title>(.*?)</title>\s*<p>(.*?)</p>", body, re.S)
        for heading, paragraph in random.sample(sections, min(4, len(sections))):
            heading, paragraph = untagged(heading), untagged(paragraph)
            if len(paragraph) > 150 and len(heading) > 12:
                yield heading, paragraph


def openstax(sources, _):
    for book in ("nursing-external-bundle", "principles-economics-bundle", "introduction-anthropology"):
        for module in committed(f"{sources}/git/osbooks-{book}", lambda name: name.endswith("index.cnxml")):
            for section in module.split("<section"):
                title = re.search(r"<title>(.*?)</title>", section, re.S)
                paragraphs = re.findall(r"<para[^>]*>(.*?)</para>", section, re.S)
                yield from under_heading(untagged(title[1]) if title else "", map(untagged, paragraphs))
            for term, meaning in re.findall(r"<term>(.*?)</term>\s*<meaning[^>]*>(.*?)</meaning>", module, re.S):
                yield untagged(term), untagged(meaning)


def wordnet(sources, _):
    for path in files(f"{sources}/debian/wordnet-base/usr/share/wordnet/data.*"):
        for line in text_of(path).split("\n"):
            if "|" in line and not line.startswith("  "):
                fields, gloss = line.split("|", 1)
                fields = fields.split()
                words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
                yield ", ".join(w.replace("_", " ").split("(")[0] for w in words), spaced(gloss).replace('"', "")


def hpo(sources, _):
    for term in text_of(f"{sources}/hp.obo").split("[Term]")[1:]:
        name = re.search(r"^name: (.*)", term, re.M)
        meaning = re.search(r'^def: "(.*?[^\\])"', term, re.M)
        synonyms = re.findall(r'^synonym: "(.*?)"', term, re.M)
        if name and meaning:
            yield name[1], meaning[1]
        if name and synonyms:
            yield name[1], "; ".join(synonyms[:5])


def debian(sources, _):
    seen = set()
    for package in text_of(f"{sources}/packages.txt").split("\n\n"):
        name = re.search(r"^Package: (.*)", package, re.M)
        about = re.search(r"^Description(?:-en)?: (.*)", package, re.M)
        if name and about and about[1] not in seen and not name[1].startswith("lib"):
            seen.add(about[1])
            yield name[1].replace("-", " "), about[1]


def rest(paths):
    """reStructuredText: headings are underlined."""
    rule = re.compile(r"^([=\-~^\"*#+])\1{3,}\s*$")
    for path in paths:
        text = re.sub(r":[a-z:]+:`~?([^`<]*)[^`]*`", r"\1", text_of(path)).replace("``", "")
        lines = text.split("\n")
        sections = [("", [])]
        for line, below in zip(lines, lines[1:] + [""]):
            if line.strip() and rule.match(below):
                sections.append((line.strip(), []))
            elif not rule.match(line):
                sections[-1][1].append(line)
        for heading, lines in sections:
            paragraphs = re.split(r"\n\s*\n", "\n".join(lines))
            prose = [p for p in paragraphs if not p.lstrip().startswith(("..", "|", "+-")) and "::" not in p[:40]]
            yield from under_heading(heading, prose[:6])


def linux(sources, _):
    yield from rest(files(f"{sources}/debian/linux-doc-6.1/**/Documentation/**/*.rst.gz"))


def python_doc(sources, _):
    yield from rest(files(f"{sources}/debian/python3.11-doc/**/_sources/**/*.txt"))


def manuals(sources, _):
    root = f"{sources}/debian"
    pages = files(f"{root}/postgresql*/**/*.html") + files(f"{root}/git-doc/**/*.html")
    pages += files(f"{root}/debian-handbook/**/en-US/*.html")
    rust = files(f"{root}/rust-doc/**/*.html")
    for path in pages + random.sample(rust, min(4000, len(rust))):
        page = re.sub(r"<(script|style|nav|pre)\b.*?</\1>", "", text_of(path), flags=re.S)
        for section in re.split(r"<h[1-4]", page)[1:]:
            heading = re.match(r"[^>]*>(.*?)</h", section, re.S)
            paragraphs = re.findall(r"<p[^>]*>(.*?)</p>", section, re.S)[:5]
            yield from under_heading(untagged(heading[1]).rstrip("¶#§") if heading else "", map(untagged, paragraphs))


def markdown(clone, wanted):
    for page in committed(clone, lambda name: name.endswith(".md") and wanted(name)):
        front = re.match(r"---\n(.*?)\n---\n", page, re.S)
        if front:
            title = re.search(r"^title: *(.*)$", front[1], re.M)
            page = f"# {title[1] if title else ''}\n\n{page[front.end() :]}"
        page = re.sub(r"\{[{%].*?[}%]\}|(?<=\])\([^)]*\)|[\[\]]", "", page)
        for section in re.split(r"\n(?=#+ )", page):
            heading = re.match(r"#+ (.*)\n", section)
            paragraphs = re.split(r"\n\s*\n", section[heading.end() if heading else 0 :])
            prose = [untagged(p) for p in paragraphs if not p.lstrip().startswith(("```", "|"))]
            yield from under_heading(untagged(heading[1]) if heading else "", prose[:6])


def web(sources, _):
    root = f"{sources}/git"
    yield from markdown(f"{root}/mdn-content", lambda name: name.startswith("files/en-us") and random.random() < 0.5)
    yield from markdown(f"{root}/kubernetes-website", lambda name: name.startswith("content/en/"))
    yield from markdown(f"{root}/github-docs", lambda name: name.startswith("content/"))
    yield from markdown(f"{root}/the-turing-way", lambda name: True)


def python(sources, judged):
    paths = [path for path in files(f"{sources}/python/**/*.py") if "/test" not in path]
    random.shuffle(paths)
    seen = set()
    for path in paths[:9000]:
        try:
            text = text_of(path)
            nodes = ast.walk(ast.parse(text)) if len(text) < 300_000 else []
        except (SyntaxError, ValueError, RecursionError):
            continue
        lines = text.split("\n")
        for node in nodes:
            about = ast.get_docstring(node) if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else None
            code = "\n".join(lines[node.lineno - 1 : node.end_lineno][:60]) if about else ""
            if not about or len(about) < 15 or bare(code)[:90] in judged or bare(code[:160]) in seen:
                continue
            seen.add(bare(code[:160]))
            # Every other piece of code has to speak for itself.
            if random.random() < 0.5:
                code = code.replace(about.split("\n")[0], "", 1)
            first = spaced(about.split("\n\n")[0])
            yield first if random.random() < 0.8 else node.name.replace("_", " "), code[:MAX_PARAGRAPH]


def rust(sources, _):
    paths = files(f"{sources}/rust/**/src/**/*.rs")
    random.shuffle(paths)
    item = re.compile(r"((?:^[ \t]*///.*\n)+)((?:[ \t]*#\[.*\n)*[ \t]*pub [^\n]*\n(?:.*\n){0,6})", re.M)
    seen = set()
    for path in paths[:9000]:
        for found in item.finditer(text_of(path)):
            about = re.sub(r"^[ \t]*/// ?", "", found[1], flags=re.M)
            first, *more = about.split("\n\n")
            more = spaced(" ".join(more))
            if len(spaced(first)) >= 20 and first not in seen:
                seen.add(first)
                yield first, found[2]
                if len(more) > 120 and random.random() < 0.5:
                    yield first, more


def judged_documents(paths):
    """Titles, and the beginnings of texts: code has no title."""
    found = set()
    for path in paths:
        for document in map(json.loads, text_of(path).splitlines()):
            found |= {bare(document.get("title", "")), bare(document["text"])[:90]}
    return found - {""}


def share(pairs, millions):
    random.shuffle(pairs)
    kept, size = [], 0
    for short, long in pairs:
        short, long = spaced(short)[:MAX_SHORT], long.strip()[:MAX_LONG]
        size += len(short) + len(long)
        if size > millions * 1e6:
            break
        if len(long) >= 15:
            kept.append((short, long))
    return kept


def main():
    sources, target, *judged = sys.argv[1:]
    judged, found = judged_documents(judged), []
    for name, millions in SHARES.items():
        random.seed(name)
        kept = share(list(globals()[name.replace("-", "_")](sources, judged)), millions)
        print(name, len(kept), "pairs", sum(len(s) + len(l) for s, l in kept) // 1000, "thousand characters")
        found += [(name, *pair) for pair in kept]
    random.shuffle(found)
    with lzma.open(target, "wt", preset=4, encoding="utf-8") as file:
        file.writelines(json.dumps(pair, ensure_ascii=False) + "\n" for pair in found)


if __name__ == "__main__":
    main()
