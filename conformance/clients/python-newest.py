"""The newest Python SDK, 2.x: negotiation, the legacy handshake, and the pinned modern revision."""

import os
from contextlib import asynccontextmanager
from importlib.metadata import version

from contract import Plain, expect, main
from mcp import Client, StdioServerParameters

REVISIONS = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


@asynccontextmanager
async def connect(transport, era, target):
    server = target[0] if transport == "http" else StdioServerParameters(
        command=target[0], args=target[1:], env=dict(os.environ)
    )
    async with Client(server, mode=era) as client:
        revision = client.protocol_version
        expect(revision == REVISIONS[era], f"mode `{era}` negotiated `{revision}`")
        yield Plain(client.list_tools, client.call_tool)


main(f"python-mcp-{version('mcp')}", connect)
