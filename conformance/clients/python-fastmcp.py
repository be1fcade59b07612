"""The FastMCP client, which many Python agents are built on."""

import os
from contextlib import asynccontextmanager
from importlib.metadata import version

from contract import Plain, expect, main
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


@asynccontextmanager
async def connect(transport, era, target):
    expect(era == "auto", f"the FastMCP client negotiates by itself: era `auto`, not `{era}`")
    if transport == "http":
        opened = StreamableHttpTransport(target[0])
    else:
        opened = StdioTransport(command=target[0], args=target[1:], env=dict(os.environ), keep_alive=False)
    async with Client(opened) as client:
        yield Plain(client.list_tools, client.call_tool_mcp)


main(f"fastmcp-{version('fastmcp-slim')}", connect)
