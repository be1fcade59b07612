"""What clients see of a server through a proxy.

    checks.py knowledge|locked <https address> <certificate to trust>
    checks.py streams <https address> <certificate to trust> <process behind the proxy>

Fails with the first thing that is not as it should be. Nothing depends on how long anything takes: a wait ends when
what it waits for is there, or after a minute with a failure.
"""

import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.parse

PATIENCE = 60
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "proxy-checks", "version": "1"},
}


def expect(truth, what):
    if not truth:
        sys.exit(f"error: {what}")


class Server:
    """A server behind a proxy, reached as a client does: over TLS, by its name."""

    def __init__(self, address, authority):
        parts = urllib.parse.urlsplit(address)
        self.address, self.host, self.port = address, parts.hostname, parts.port
        self.authority = authority
        self.tls = ssl.create_default_context(cafile=authority)

    def open(self, method, path, body=None, headers=None, chunked=False):
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=PATIENCE, context=self.tls)
        connection.request(method, path, body, headers or {}, encode_chunked=chunked)
        return connection, connection.getresponse()

    def raw(self):
        """A connection of its own, for bytes that no client would send."""
        return self.tls.wrap_socket(socket.create_connection((self.host, self.port), PATIENCE), server_hostname=self.host)

    def get(self, path, headers=None):
        connection, answer = self.open("GET", path, headers=headers)
        text = answer.read().decode()
        connection.close()
        return answer, text

    def post(self, message, headers=None, path="/mcp", body=None, chunked=False):
        sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **(headers or {})}
        connection, answer = self.open("POST", path, body if body is not None else json.dumps(message), sent, chunked)
        text = answer.read().decode()
        connection.close()
        return answer, text

    def result(self, message, headers=None, path="/mcp"):
        answer, text = self.post(message, headers, path)
        expect(answer.status == 200, f"{message['method']}: {answer.status} {text[:300]}")
        if answer.headers["Content-Type"].startswith("text/event-stream"):
            text = [line[5:] for line in text.splitlines() if line.startswith("data:")][-1]
        message = json.loads(text)
        expect("result" in message, text[:500])
        return message["result"]


def legacy(method, params=None):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}


def modern(method, params, name=None):
    """A request of 2026-07-28 and its headers, which a proxy must not drop."""
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if name:
        headers["Mcp-Name"] = name
    return legacy(method, {**params, "_meta": META}), headers


class Events:
    """An event stream, message by message, while it is open."""

    def __init__(self, server, message, headers):
        sent = {"Content-Type": "application/json", "Accept": "text/event-stream", **headers}
        self.connection, self.answer = server.open("POST", "/mcp", json.dumps(message), sent)
        expect(self.answer.status == 200, f"{message['method']}: {self.answer.status}")

    def next(self):
        while True:
            line = self.answer.readline().decode()
            expect(line, "the stream ended")
            if line.startswith("data:"):
                return json.loads(line[5:])

    def hang_up(self):
        # A response in flight keeps the socket open by itself.
        self.answer.close()
        self.connection.close()


def call(name, arguments):
    return {"name": name, "arguments": arguments}


def knowledge(server):
    greeting = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "checks", "version": "1"}}
    for path in ["/mcp", "/mcp/", "/"]:
        expect(server.result(legacy("initialize", greeting), path=path)["serverInfo"]["name"] == "docent", path)
    cited(server)
    bodies(server)
    names(server)
    versions(server)
    smuggling(server)
    unread(server)


def cited(server):
    """An answer of either era carries addresses below the public one, and they open."""
    message, headers = modern("tools/call", call("search", {"query": "lead pipes"}), "search")
    for first in [
        server.result(legacy("tools/call", call("search", {"query": "lead pipes"}))),
        server.result(message, headers),
    ]:
        first = first["structuredContent"]["results"][0]
        expect(first["url"].startswith(f"{server.address}/d/"), first["url"])
        document = server.result(legacy("tools/call", call("fetch", {"id": first["id"]})))["structuredContent"]
        expect("pipe" in document["text"], "the text of the first hit is another")
        answer, page = server.get(first["url"].removeprefix(server.address))
        expect(answer.status == 200 and "pipe" in page, f"{first['url']} does not open")
    # Names with other letters than a header takes travel encoded; a proxy that touches them breaks the call.
    message, headers = modern("tools/call", call("search", {"query": "x"}), "=?base64?c2VhcmNo?=")
    expect("structuredContent" in server.result(message, headers), "an encoded name was not understood")


def bodies(server):
    """Large requests pass whole, and what is too large is refused by docent, with its reason, not by the proxy."""
    large = "a " * (100 * 1024)
    message = json.dumps(legacy("tools/call", call("search", {"query": large})))
    whole, text = server.post(None, body=message)
    expect(whole.status == 200, f"a large request: {whole.status} {text[:300]}")

    def pieces():
        for at in range(0, len(message), 8192):
            yield message[at : at + 8192].encode()

    chunked, again = server.post(None, headers={"Transfer-Encoding": "chunked"}, body=pieces(), chunked=True)
    expect((chunked.status, again) == (200, text), f"the same in pieces: {chunked.status} {again[:300]}")
    padding = " " * (1024 * 1024 + 1)
    refused, text = server.post(None, body=json.dumps(legacy("ping")) + padding)
    expect(refused.status == 413 and "jsonrpc" in text, f"too large: {refused.status} {text[:300]}")


def names(server):
    """Only the name that docent was told of is served, whatever forwarding headers claim."""
    answer, text = server.post(legacy("ping"), {"Host": "elsewhere.example"})
    expect(answer.status in (403, 421) or not text, f"another name: {answer.status} {text[:300]}")
    claims = {"X-Forwarded-Host": "elsewhere.example", "X-Forwarded-Proto": "http", "Forwarded": "host=elsewhere.example"}
    answer, text = server.post(legacy("tools/call", call("search", {"query": "pipes"})), claims)
    expect(answer.status == 200 and "elsewhere" not in text, f"forwarded names are believed: {text[:300]}")


# What a proxy and the server behind it might read differently: where a request ends, or whose it is.
SMUGGLED = 'POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 49\r\n\r\n{{"jsonrpc":"2.0","id":"smuggled","method":"ping"}}'
AMBIGUOUS = {
    "length and chunks": "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": "Content-Length: 0\r\nContent-Length: 44\r\n\r\n",
    "a list of lengths": "Content-Length: 0, 44\r\n\r\n",
    "a signed length": "Content-Length: +0\r\n\r\n",
    "chunks in disguise": "Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n",
    "chunks after a tab": "Transfer-Encoding:\tchunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
    "chunks twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a folded header": "Transfer-Encoding:\r\n chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
    "a blank before the colon": "Transfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
    "a bare line feed": "X: y\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
    "a chunk size too large": "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n",
    "a chunk without its end": "Transfer-Encoding: chunked\r\n\r\n0\n\r\n",
}


def smuggling(server):
    """Whatever a request is read as, nobody else gets the answer to what was hidden behind it."""
    for what, head in AMBIGUOUS.items():
        host = f"{server.host}:{server.port}"
        request = f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{head}{SMUGGLED.format(host=host)}"
        attacker = server.raw()
        attacker.sendall(request.encode())
        # Others come over the connections that the proxy keeps to the server, and each gets its own answer.
        for number in range(6):
            ping = {"jsonrpc": "2.0", "id": number, "method": "ping"}
            answer, text = server.post(ping, {"Accept": "application/json"})
            expect(answer.status == 200, f"{what}: {answer.status} {text[:300]}")
            expect(json.loads(text)["id"] == number, f"{what}: an answer to somebody else: {text[:300]}")
        attacker.close()


def unread(server):
    """Clients that read nothing of their answers keep nobody else waiting, though the proxy sits between."""
    found = server.result(legacy("tools/call", call("search", {"query": "harbour"})))
    document = found["structuredContent"]["results"][0]["id"]
    body = json.dumps(legacy("tools/call", call("fetch", {"id": document})))
    request = f"POST /mcp HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    silent = [server.raw() for _ in range(50)]
    for connection in silent:
        connection.sendall(request.encode() * 20)
    for _ in range(20):
        server.result(legacy("tools/call", call("fetch", {"id": document})))
    for connection in silent:
        connection.close()


def versions(server):
    """Clients speak HTTP/2 to the proxy as well."""
    command = ["curl", "-sS", "--http2", "--cacert", server.authority, "-H", "Content-Type: application/json"]
    command += ["-d", json.dumps(legacy("ping")), "-o", os.devnull, "-w", "%{http_version} %{response_code}"]
    said = subprocess.run([*command, f"{server.address}/mcp"], capture_output=True, text=True, timeout=PATIENCE)
    expect(said.stdout == "2 200", f"over HTTP/2: {said.stdout} {said.stderr}")


def locked(server):
    """Everything about signing in names the public address, and nothing else does."""
    answer, text = server.post(legacy("tools/list"))
    challenge = answer.headers["WWW-Authenticate"] or ""
    metadata = f"{server.address}/.well-known/oauth-protected-resource/mcp"
    expect(answer.status == 401 and f'resource_metadata="{metadata}"' in challenge, f"{answer.status} {challenge} {text}")
    # A claim about another name changes nothing of what hosts would trust.
    claims = {"X-Forwarded-Host": "elsewhere.example", "X-Forwarded-Proto": "http"}
    for headers in [{}, claims]:
        answer, text = server.get("/.well-known/oauth-protected-resource/mcp", headers)
        told = json.loads(text)
        expect(told["resource"] == f"{server.address}/mcp", text)
        expect(told["authorization_servers"] == [server.address], text)
        answer, text = server.get("/.well-known/oauth-authorization-server", headers)
        told = json.loads(text)
        expect(told["issuer"] == server.address, text)
        for key in ["authorization_endpoint", "token_endpoint", "registration_endpoint"]:
            expect(told[key].startswith(f"{server.address}/"), text)
    # A token travels to docent, and its answer back.
    answer, text = server.post(legacy("tools/list"), {"Authorization": "Bearer nonsense"})
    expect(answer.status == 401 and "invalid_token" in answer.headers["WWW-Authenticate"], f"{answer.status} {text}")


def sockets(process):
    """How many sockets a process has open."""
    folder = f"/proc/{process}/fd"
    count = 0
    for name in os.listdir(folder):
        try:
            count += os.readlink(f"{folder}/{name}").startswith("socket:")
        except FileNotFoundError:
            pass
    return count


def streams(server, process):
    """Messages pass while their stream is open, and whoever hangs up is gone behind the proxy too."""
    before = sockets(process)
    message, headers = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    listeners = [Events(server, message, headers) for _ in range(5)]
    for events in listeners:
        expect(events.answer.headers["Content-Type"].startswith("text/event-stream"), "not a stream")
        expect(events.next()["method"] == "notifications/subscriptions/acknowledged", "no acknowledgement")
    for _ in range(3):
        server.result(legacy("tools/call", call("test_trigger_tool_change", {})))
        for events in listeners:
            expect(events.next()["method"] == "notifications/tools/list_changed", "no notice")
    expect(sockets(process) >= before + 5, "the streams do not reach the server")
    for events in listeners:
        events.hang_up()
    # What stays is at most one connection that the proxy keeps for the next request, for each worker.
    end = time.monotonic() + PATIENCE
    while sockets(process) > before + 2:
        expect(time.monotonic() < end, f"{sockets(process) - before} connections outlive their clients")
        time.sleep(0.05)
    progress(server)
    sse(server)


def progress(server):
    params = {**call("test_tool_with_progress", {}), "_meta": {"progressToken": 7}}
    events = Events(server, legacy("tools/call", params), {"MCP-Protocol-Version": "2025-11-25"})
    for done in [0, 50, 100]:
        told = events.next()["params"]
        expect((told["progressToken"], told["progress"]) == (7, done), f"progress: {told}")
    expect("result" in events.next(), "no answer after the progress")
    events.hang_up()


def sse(server):
    """The transport of 2024: the address arrives on an open stream, and answers follow there."""
    connection, answer = server.open("GET", "/sse", headers={"Accept": "text/event-stream"})
    lines = iter(lambda: answer.readline().decode().strip(), None)
    endpoint = next(line[5:].strip() for line in lines if line.startswith("data:"))
    accepted, text = server.post(legacy("ping"), path=endpoint)
    expect(accepted.status == 202, f"{accepted.status} {text}")
    told = next(line[5:] for line in lines if line.startswith("data:"))
    expect(json.loads(told)["result"] == {}, told)
    answer.close()
    connection.close()


def main():
    kind, server = sys.argv[1], Server(sys.argv[2], sys.argv[3])
    if kind == "streams":
        streams(server, int(sys.argv[4]))
    else:
        {"knowledge": knowledge, "locked": locked}[kind](server)
    print(f"proxy: {kind}: good")


main()
