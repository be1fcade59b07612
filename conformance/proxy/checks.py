"""Tests a server through a proxy, from a client's point of view.

    checks.py locked <https address> <certificate to trust>
    checks.py knowledge|streams <https address> <certificate to trust> <process behind the proxy>

Fails on the first deviation. No check depends on timing: a wait ends when its condition is met, or fails after a
minute.
"""

import html
import http.client
import json
import os
import re
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
    """A server behind a proxy, reached over TLS and by its name, as a client does."""

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
        """A raw connection, for bytes that no client would send."""
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
    """A request of revision 2026-07-28 and its headers, which a proxy must not drop."""
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if name:
        headers["Mcp-Name"] = name
    return legacy(method, {**params, "_meta": META}), headers


class Events:
    """Reads an event stream message by message while it is open."""

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
        # A response in flight keeps the socket open.
        self.answer.close()
        self.connection.close()


def call(name, arguments):
    return {"name": name, "arguments": arguments}


def knowledge(server, process):
    greeting = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "checks", "version": "1"}}
    for path in ["/mcp", "/mcp/", "/"]:
        expect(server.result(legacy("initialize", greeting), path=path)["serverInfo"]["name"] == "docent", path)
    cited(server)
    bodies(server)
    names(server)
    versions(server)
    smuggling(server)
    unread(server, process)


def cited(server):
    """Answers of both eras contain addresses below the public one, and these open."""
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
    # Names with characters that a header cannot carry are encoded. A proxy that changes them breaks the call.
    message, headers = modern("tools/call", call("search", {"query": "x"}), "=?base64?c2VhcmNo?=")
    expect("structuredContent" in server.result(message, headers), "an encoded name was not understood")


def bodies(server):
    """Large requests pass. Requests that are too large are refused by docent with a reason, not by the proxy."""
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
    """Only the configured host name is served, whatever forwarding headers claim."""
    answer, text = server.post(legacy("ping"), {"Host": "elsewhere.example"})
    expect(answer.status in (403, 421) or not text, f"another name: {answer.status} {text[:300]}")
    claims = {"X-Forwarded-Host": "elsewhere.example", "X-Forwarded-Proto": "http", "Forwarded": "host=elsewhere.example"}
    answer, text = server.post(legacy("tools/call", call("search", {"query": "pipes"})), claims)
    expect(answer.status == 200 and "elsewhere" not in text, f"forwarded names are believed: {text[:300]}")


# Request smuggling: what a proxy and the server might parse differently, such as where a request ends.
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
    """However a request is parsed, no other client gets the answer to a smuggled request."""
    for what, head in AMBIGUOUS.items():
        host = f"{server.host}:{server.port}"
        request = f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{head}{SMUGGLED.format(host=host)}"
        attacker = server.raw()
        attacker.sendall(request.encode())
        # Other clients use the proxy's keep-alive connections to the server, and each gets its own answer.
        for number in range(6):
            ping = {"jsonrpc": "2.0", "id": number, "method": "ping"}
            answer, text = server.post(ping, {"Accept": "application/json"})
            expect(answer.status == 200, f"{what}: {answer.status} {text[:300]}")
            expect(json.loads(text)["id"] == number, f"{what}: an answer to somebody else: {text[:300]}")
        attacker.close()


MIB = 1024 * 1024
# What clients that do not read their answers may add to docent's peak memory.
MAX_GROWTH = 128 * MIB
SILENT_CLIENTS = 20
SILENT_STREAMS = 8
# Half a megabyte each. The proxy and the kernel buffer about 8 MB of a stream, and docent 4 MiB.
MESSAGES = 120
# `fetch` answers with half a megabyte: 60,000 characters of four bytes, twice.
FETCH = legacy("tools/call", call("fetch", {"id": "long.txt"}))


def peak_memory(process):
    """The peak resident memory of a process, in bytes."""
    with open(f"/proc/{process}/status") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def unread(server, process):
    """Clients that do not read their answers block nobody else, and docent's memory stays bounded."""
    answer, text = server.post(FETCH)
    expect(answer.status == 200 and len(text.encode()) > 400_000, f"{answer.status}, {len(text.encode())} bytes")
    before = peak_memory(process)
    body = json.dumps(FETCH)
    request = f"POST /mcp HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    silent = [server.raw() for _ in range(SILENT_CLIENTS)]
    # A proxy sends these one by one, so docent has one answer for each client. Event streams are the harder case.
    for connection in silent:
        connection.sendall(request.encode() * 20)
    unread_streams = [fill_stream(server) for _ in range(SILENT_STREAMS)]
    for _ in range(20):
        server.result(FETCH)
    growth = peak_memory(process) - before
    expect(growth < MAX_GROWTH, f"unread answers added {growth // MIB} MiB")
    for connection in silent:
        connection.close()
    for connection, answer in unread_streams:
        answer.close()
        connection.close()
    server.result(FETCH)


def fill_stream(server):
    """Opens an event stream, does not read it, and requests answers until docent refuses because too many wait.

    The refusal proves that answers wait in docent, and not only in the buffers of the proxy and the kernel.
    """
    connection, answer = server.open("GET", "/sse", headers={"Accept": "text/event-stream"})
    lines = iter(lambda: answer.readline().decode().strip(), None)
    endpoint = next(line[5:].strip() for line in lines if line.startswith("data:"))
    end = time.monotonic() + PATIENCE
    accepted = 0
    while accepted < MESSAGES:
        told, text = server.post(FETCH, path=endpoint)
        if told.status == 202:
            accepted += 1
            continue
        if told.status == 404 or "unread" in text:
            return connection, answer
        # More requests of the stream are in progress than allowed.
        expect(told.status == 503 and time.monotonic() < end, f"a message to a stream: {told.status} {text[:300]}")
        time.sleep(0.05)
    sys.exit(f"error: docent accepts {accepted} requests for a stream that nobody reads")


def versions(server):
    """Clients can also speak HTTP/2 to the proxy."""
    command = ["curl", "-sS", "--http2", "--cacert", server.authority, "-H", "Content-Type: application/json"]
    command += ["-d", json.dumps(legacy("ping")), "-o", os.devnull, "-w", "%{http_version} %{response_code}"]
    said = subprocess.run([*command, f"{server.address}/mcp"], capture_output=True, text=True, timeout=PATIENCE)
    expect(said.stdout == "2 200", f"over HTTP/2: {said.stdout} {said.stderr}")


def locked(server):
    """All authentication metadata contains the public address, and no other."""
    answer, text = server.post(legacy("tools/list"))
    challenge = answer.headers["WWW-Authenticate"] or ""
    metadata = f"{server.address}/.well-known/oauth-protected-resource/mcp"
    expect(answer.status == 401 and f'resource_metadata="{metadata}"' in challenge, f"{answer.status} {challenge} {text}")
    # Forwarding headers with another name do not change the metadata that hosts trust.
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
    # A token reaches docent, and its answer comes back.
    answer, text = server.post(legacy("tools/list"), {"Authorization": "Bearer nonsense"})
    expect(answer.status == 401 and "invalid_token" in answer.headers["WWW-Authenticate"], f"{answer.status} {text}")
    forged(server)


# The limits for requests whose network is unknown: burst, and each second after that. See
# crates/oauth/src. A forged network that docent believed would add a reserve of 30 sign-ins and of 120
# registrations.
SIGN_INS = (120, 5)
REGISTRATIONS = (300, 2)
REFUSALS = 50
CALLBACK = "https://app.example/cb"


def forged_networks(number):
    """Headers that claim another network for each number, in the forms that proxies treat differently."""
    address = f"{20 + number // 250 % 70}.{number % 250}.7.7"
    return [
        [("X-Forwarded-For", address)],
        [("X-Forwarded-For", f"10.0.0.1, {address}")],
        [("X-Forwarded-For", "9.9.9.9"), ("X-Forwarded-For", address)],
        [("X-Forwarded-For", address), ("X-Real-IP", address), ("Forwarded", f"for={address}")],
    ][number % 4]


def let_in(server, path, kind, body, accepted, limit):
    """Sends requests with forged networks until enough are refused. No more are let in than from one network."""
    burst, each_second = limit
    start, passed, refused, number = time.monotonic(), 0, 0, 0
    while refused < REFUSALS:
        if number % 200 == 0:
            connection = http.client.HTTPSConnection(server.host, server.port, timeout=PATIENCE, context=server.tls)
        text, headers = body(number)
        connection.putrequest("POST", path)
        for name, value in [("Content-Type", kind), ("Content-Length", len(text)), *headers, *forged_networks(number)]:
            connection.putheader(name, value)
        connection.endheaders(text.encode())
        answer = connection.getresponse()
        told = answer.read().decode()
        expect(answer.status in (accepted, 429), f"{path}: {answer.status} {told[:300]}")
        passed += answer.status == accepted
        refused += answer.status == 429
        number += 1
        expect(time.monotonic() < start + PATIENCE, f"{path}: forged networks let {passed} requests in, and refused {refused}")
    most = burst + each_second * (time.monotonic() - start) + 1
    expect(passed <= most, f"{path}: forged networks let {passed} requests in, at most {most:.0f} are allowed")


def registration(_):
    return json.dumps({"client_name": "Chart room", "redirect_uris": [CALLBACK]}), []


def forged(server):
    """Forged networks in `X-Forwarded-For` do not bypass the rate limits of sign-in and registration."""
    client = server.post(None, body=registration(0)[0], path="/register")[1]
    query = {"response_type": "code", "client_id": json.loads(client)["client_id"], "redirect_uri": CALLBACK}
    # The challenge of appendix B of RFC 7636.
    query |= {"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256"}
    answer, page = server.get(f"/authorize?{urllib.parse.urlencode(query)}")
    expect(answer.status == 200, f"the consent page: {answer.status} {page[:300]}")
    hidden = {name: html.unescape(re.search(f'name="{name}" value="([^"]*)"', page)[1]) for name in ["request", "token"]}
    cookie = answer.headers["Set-Cookie"].split(";")[0]

    def sign_in(number):
        # A password over 512 bytes counts as a guess and is not hashed, so this is fast on every machine.
        values = {**hidden, "decision": "allow", "name": f"user{number}", "password": "x" * 600}
        return urllib.parse.urlencode(values), [("Cookie", cookie)]

    let_in(server, "/authorize", "application/x-www-form-urlencoded", sign_in, 403, SIGN_INS)
    let_in(server, "/register", "application/json", registration, 201, REGISTRATIONS)


def sockets(process):
    """The number of open sockets of a process."""
    folder = f"/proc/{process}/fd"
    count = 0
    for name in os.listdir(folder):
        try:
            count += os.readlink(f"{folder}/{name}").startswith("socket:")
        except FileNotFoundError:
            pass
    return count


def streams(server, process):
    """Messages pass while their stream is open. When a client disconnects, its connection to docent closes too."""
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
    # At most one keep-alive connection of the proxy remains, for each worker.
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
    """HTTP+SSE: the endpoint address arrives on an open stream, and answers follow there."""
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
    if kind == "locked":
        locked(server)
    else:
        {"knowledge": knowledge, "streams": streams}[kind](server, int(sys.argv[4]))
    print(f"proxy: {kind}: passed")


main()
