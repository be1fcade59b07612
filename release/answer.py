"""Queries an MCP server as a host would, until it has one cited answer: search, fetch the first hit, open its address.

    release/answer.py http://127.0.0.1:8787/mcp "question" [word that the text must contain] [--open]

Tries to connect for two minutes. Prints the hit and exits with 0, or says what is missing and exits with 1.
With --open the cited address must open too, and its page must contain the same word.
"""

import http.client
import json
import sys
import time
import urllib.parse

PATIENCE = 120
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}


def fail(text):
    print(f"error: {text}", file=sys.stderr)
    sys.exit(1)


def request(url, method, body=None, headers=None):
    parts = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=PATIENCE)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    connection.request(method, path or "/", body, headers or {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers.get("Content-Type", ""), text


def call(url, tool, arguments):
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    status, kind, text = request(url, "POST", json.dumps(message), HEADERS)
    if status != 200:
        fail(f"{tool}: status {status}: {text[:500]}")
    if kind.startswith("text/event-stream"):
        lines = [line[5:] for line in text.splitlines() if line.startswith("data:")]
        text = lines[-1]
    answer = json.loads(text)
    result = answer.get("result")
    if result is None or result.get("isError"):
        fail(f"{tool}: {text[:500]}")
    structured = result["structuredContent"]
    if json.loads(result["content"][0]["text"]) != structured:
        fail(f"{tool}: text and structured content differ")
    return structured


def wait(url, query):
    """The results of a search, as soon as there are citable ones: a new folder is still being indexed."""
    end = time.monotonic() + PATIENCE
    why = "the server does not answer"
    while time.monotonic() < end:
        try:
            results = call(url, "search", {"query": query})["results"]
            if results and results[0]["url"]:
                return results
            why = f"no citable result: {results[:1]}"
        except (OSError, http.client.HTTPException) as error:
            why = str(error)
        time.sleep(0.01)
    fail(f"no answer within {PATIENCE} s: {why}")


def main():
    opens = "--open" in sys.argv
    words = [word for word in sys.argv[1:] if word != "--open"]
    if len(words) not in (2, 3):
        sys.exit(__doc__)
    url, query = words[0], words[1]
    word = words[2] if len(words) == 3 else ""
    first = wait(url, query)[0]
    if not all(first.get(key) for key in ("id", "title", "url")):
        fail(f"the first hit cannot be cited: {first}")
    document = call(url, "fetch", {"id": first["id"]})
    if document["id"] != first["id"] or document["url"] != first["url"]:
        fail(f"fetch returned another document: {document['id']} {document['url']}")
    if word not in document["text"]:
        fail(f"`{word}` is not in the text of `{first['id']}`")
    if opens:
        status, kind, page = request(first["url"], "GET")
        if status != 200 or not kind.startswith("text/html") or word not in page:
            fail(f"the cited address does not open: {first['url']} {status} {kind}")
    print(f"{first['title']} <{first['url']}>: {len(document['text'])} characters")


main()
