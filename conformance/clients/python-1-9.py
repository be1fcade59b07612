"""Python SDK 1.9.4, the last version before structured results. Older hosts still use it."""

import os
from contextlib import asynccontextmanager
from importlib.metadata import version

from contract import Plain, expect, main
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


def open_transport(transport, target):
    if transport == "http":
        return streamablehttp_client(target[0])
    if transport == "sse":
        return sse_client(target[0])
    return stdio_client(StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ)))


@asynccontextmanager
async def connect(transport, era, target):
    expect(era == "legacy", f"this SDK knows only the era `legacy`, not `{era}`")
    async with open_transport(transport, target) as streams:
        async with ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            yield Plain(session.list_tools, session.call_tool)


main(f"python-mcp-{version('mcp')}", connect)
