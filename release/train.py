"""Runs the PGO training workload, a server's typical day, on an instrumented program; see docs/releasing.md.

    release/train.py PROGRAM [--quick]

Indexes and serves the example. Asks questions drawn from its speeches: sentences, words, phrases, and words with a
missing letter. Fetches, searches and lists, as JSON and as event streams, over keep-alive connections. Then it stops
the server, which writes its profile when it exits. The questions are the same every time. --quick asks few questions,
to test that the script works.
"""

import http.client
import json
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent.parent / "examples/parliament"
PATIENCE = 120
# How many questions of each kind, and how often each is asked.
WHOLE = (120, 12)
QUICK = (2, 1)


class Client:
    """A host with one keep-alive connection."""

    def __init__(self, port, accept):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.headers = {"Content-Type": "application/json", "Accept": accept, "MCP-Protocol-Version": "2025-06-18"}

    def ask(self, method, params):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.connection.request("POST", "/mcp", json.dumps(message), self.headers)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            sys.exit(f"error: {method}: status {answer.status}: {text[:500]}")
        if answer.headers["Content-Type"].startswith("text/event-stream"):
            text = [line[5:] for line in text.splitlines() if line.startswith("data:")][-1]
        message = json.loads(text)
        if "result" not in message:
            sys.exit(f"error: {method}: {text[:500]}")
        return message["result"]

    def call(self, tool, arguments):
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            sys.exit(f"error: {tool}: {result['content'][0]['text']}")
        return result["structuredContent"]


def questions(count):
    """Typical questions, `count` of each kind, drawn from the speeches."""
    draw = random.Random(7)
    texts = [file.read_text().split("---", 2)[2] for file in sorted(EXAMPLE.glob("speeches/*.md"))]
    words = sorted({word for text in texts for word in text.split() if word.isalpha() and len(word) > 4})
    found = []
    for _ in range(count):
        text = draw.choice(texts).split()
        start = draw.randrange(len(text) - 12)
        sentence = [word.strip('.,;:"()#') for word in text[start : start + draw.randint(4, 12)]]
        word = draw.choice(words)
        gap = draw.randrange(1, len(word))
        found += [
            " ".join(sentence),
            word,
            " ".join(draw.sample(words, 3)),
            '"' + " ".join(sentence[:2]) + '"',
            word[:gap] + word[gap + 1 :],
        ]
    return found


def day(port, count, times):
    json_only = Client(port, "application/json")
    both = Client(port, "application/json, text/event-stream")
    for number, question in enumerate(questions(count)):
        client = json_only if number % 2 else both
        for _ in range(times):
            results = client.call("search", {"query": question})["results"]
        for result in results[:4]:
            client.call("fetch", {"id": result["id"]})
        client.call("search_hansard_speeches", {"query": question, "chamber": "Senate"})
        for method in ("tools/list", "resources/list", "ping"):
            client.ask(method, {})


def wait(port, server):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        try:
            if Client(port, "application/json").call("search", {"query": "water"})["results"]:
                return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit("error: the program does not answer")


def main():
    match sys.argv[1:]:
        case [program]:
            extent = WHOLE
        case [program, "--quick"]:
            extent = QUICK
        case _:
            sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "documents"
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".docent"))
        subprocess.run([program, "index", folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        server = subprocess.Popen([program, "serve", folder, "--listen", f"127.0.0.1:{port}"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait(port, server)
            day(port, *extent)
        finally:
            server.send_signal(signal.SIGTERM)
            ended = server.wait(PATIENCE)
    if ended:
        sys.exit(f"error: the program exited with {ended}")


main()
