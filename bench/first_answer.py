"""Sends one question to an MCP server until it answers, with the tool of each server, and says whether the answer can
be cited: with an address that a person can open, or without.

    first_answer.py docent|qmd|fastmcp|docs-mcp-server <address> <question> <seconds>
"""

import http.client
import json
import sys
import time
import urllib.parse

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-06-18",
}
# Each server's search tool and its arguments. Without its downloaded models, qmd searches by words alone.
TOOLS = {
    "docent": ("search", lambda q: {"query": q}),
    "qmd": ("query", lambda q: {"searches": [{"type": "lex", "query": q}], "rerank": False}),
    "fastmcp": ("search", lambda q: {"query": q}),
    "docs-mcp-server": ("search_docs", lambda q: {"library": "documents", "query": q}),
}
# The name of the right file. Words of the question do not do, because any answer may repeat them.
WORD = "saint-orme-lead-pipes"


def post(address, message, session):
    parts = urllib.parse.urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    headers = {**HEADERS, **({"Mcp-Session-Id": session} if session else {})}
    connection.request("POST", parts.path, json.dumps(message), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    session = answer.headers.get("Mcp-Session-Id", session)
    connection.close()
    data = [line[5:] for line in text.splitlines() if line.startswith("data:")]
    text = data[-1] if data else text
    return (json.loads(text) if text.strip() else {}), session


def ask(name, address, question):
    greeting = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    _, session = post(address, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting}, None)
    post(address, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    tool, arguments = TOOLS[name]
    params = {"name": tool, "arguments": arguments(question)}
    answer, _ = post(address, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}, session)
    result = answer["result"]
    if result.get("isError"):
        raise ValueError(json.dumps(result)[:300])
    return json.dumps(result)


def main():
    name, address, question, seconds = sys.argv[1:]
    end = time.monotonic() + float(seconds)
    why = "no answer"
    while time.monotonic() < end:
        try:
            text = ask(name, address, question)
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            why = repr(error)[:300]
        else:
            if WORD in text:
                cited = "http://" in text or "https://" in text
                print("cited by an address that opens" if cited else "found, without an address to cite")
                return
            why = f"no hit: {text[:200]}"
        time.sleep(0.05)
    sys.exit(f"error: {why}")


main()
