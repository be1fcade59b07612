"""Turns a connected client into the number of search results, or into the first broken rule of the
search and fetch contract; and the command line that every Python client shares into one line and an exit code:

    <script> <transport> <era> <query> <url | command [argument...]>

With EXPECTED set to a table of tools (kit.json), its servers are called in place of the target.
"""

import json
import os
import re
import sys
import traceback

import anyio

# The table of tools, when the kit's servers are tested.
EXPECTED = os.environ.get("EXPECTED")

UNKNOWN_ID = "conformance:there-is-no-such-document"

# Hosts accept a server only with exactly these input signatures.
SIGNATURES = {"search": "query", "fetch": "id"}


class Plain:
    """A client whose results are pydantic models, as plain JSON in wire format."""

    def __init__(self, list_tools, call_tool):
        self._list_tools = list_tools
        self._call_tool = call_tool

    async def list_tools(self):
        listed = await self._list_tools()
        return [plain(tool) for tool in getattr(listed, "tools", listed)]

    async def call_tool(self, name, args):
        return plain(await self._call_tool(name, args))


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def main(name, connect):
    """`connect(transport, era, target)` is an async context manager that yields a `Plain`."""
    if len(sys.argv) < (4 if EXPECTED else 5):
        sys.exit(__doc__)
    transport, era, query, *target = sys.argv[1:]

    async def check():
        if EXPECTED:
            return f"{await check_kit(lambda url: connect(transport, era, [url]))} tools"
        async with connect(transport, era, target) as client:
            return f"{await check_contract(client, query)} results"

    try:
        found = anyio.run(check)
    except BaseException as error:  # a task group wraps the first broken rule in groups of its own
        print(f"failed {name} {transport} {era}: {first_line(error)}")
        traceback.print_exc()
        sys.exit(1)
    print(f"ok {name} {transport} {era} {found}")


def first_line(error):
    while getattr(error, "exceptions", None):
        error = error.exceptions[0]
    return (str(error) or repr(error)).splitlines()[0]


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


async def check_contract(client, query):
    check_tools(await client.list_tools())

    found = payload("search", await client.call_tool("search", {"query": query}))
    expect(list(found) == ["results"], "search: `results` is not the only key of the payload")
    expect(isinstance(found["results"], list), "search: `results` is not a list")
    expect(found["results"], f"search: nothing found for `{query}`")
    for at, hit in enumerate(found["results"]):
        check_document(f"search: result {at}", hit)

    wanted = found["results"][0]["id"]
    document = payload("fetch", await client.call_tool("fetch", {"id": wanted}))
    check_document("fetch", document)
    expect(document["id"] == wanted, "fetch: another id came back than the one asked for")
    text = document.get("text")
    expect(isinstance(text, str) and text, "fetch: `text` is empty")
    for key, value in (document.get("metadata") or {}).items():
        expect(isinstance(value, str), f"fetch: metadata `{key}` is not a string")

    refused = await client.call_tool("fetch", {"id": UNKNOWN_ID})
    expect(refused.get("isError") is True, "fetch: an unknown id is not an error result")
    expect(only_text("fetch of an unknown id", refused), "fetch: the error has no message")
    return len(found["results"])


def check_tools(tools):
    for name, argument in SIGNATURES.items():
        tool = next((tool for tool in tools if tool["name"] == name), None)
        expect(tool, f"tools/list has no `{name}`")
        schema = tool["inputSchema"]
        expect(list(schema["properties"]) == [argument], f"{name}: other arguments than `{argument}`")
        expect(schema.get("required") == [argument], f"{name}: `{argument}` is not the required argument")


def payload(name, result):
    expect(result.get("isError") is not True, f"{name}: error result: {result.get('content')}")
    value = json.loads(only_text(name, result))
    expect(result.get("structuredContent"), f"{name}: no structuredContent")
    expect(value == result["structuredContent"], f"{name}: the text item differs from structuredContent")
    return value


def only_text(name, result):
    content = result["content"]
    expect(len(content) == 1, f"{name}: {len(content)} content items instead of one")
    expect(content[0]["type"] == "text", f"{name}: the content item is not text")
    return content[0]["text"]


def check_document(where, document):
    for key in ("id", "title", "url"):
        expect(isinstance(document.get(key), str), f"{where}: `{key}` is not a string")
    expect(document["id"], f"{where}: `id` is empty")
    expect(re.match(r"$|https?://.", document["url"]), f"{where}: `url` is neither empty nor http(s)")


async def check_kit(connect):
    """The same rules as in kit.mjs."""
    count = 0
    with open(EXPECTED, encoding="utf-8") as file:
        table = json.load(file)
    for url, tools in table.items():
        async with connect(url) as client:
            names = [tool["name"] for tool in await client.list_tools()]
            expect(names == list(tools), f"{url}: other tools than the table has")
            for name, expected in tools.items():
                check_result(name, expected, await client.call_tool(name, expected.get("arguments", {})))
            count += len(names)
    return count


def check_result(name, expected, result):
    expect(result.get("isError") is not True, f"{name}: error result: {result.get('content')}")
    data, text = expected.get("data"), expected.get("text")
    expect(result.get("structuredContent") == data, f"{name}: other data than expected: {result}")
    texts = [item["text"] for item in result["content"]]
    if text is None and data is not None:
        expect(len(texts) == 1, f"{name}: {len(texts)} content items instead of one")
        expect(json.loads(texts[0]) == data, f"{name}: the text differs from the data")
    else:
        expect(texts == ([] if text is None else [text]), f"{name}: another text than expected: {texts}")
