"""The FastMCP client, which many Python agents are built on."""

import os
from contextlib import asynccontextmanager
from importlib.metadata import version

from contract import EXPECTED, Plain, expect, main
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
        async def call(name, args):
            # Converts the data into a type generated from the schema, as agents do.
            await client.call_tool(name, args)
            return await client.call_tool_mcp(name, args)

        yield Plain(client.list_tools, call if EXPECTED else client.call_tool_mcp)


main(f"fastmcp-{version('fastmcp-slim')}", connect)
