"""A FastMCP server that answers from a payload file, tuned as FastMCP's documentation says.

Stateless HTTP, JSON answers, uvicorn with uvloop and httptools, no access log, one worker for each core.
"""

import json
import os
import sys

import uvicorn
from fastmcp import FastMCP
from fastmcp.tools import Tool, ToolResult
from mcp_types import TextContent, ToolAnnotations


class RecordedTool(Tool):
    """A tool that returns one recorded answer.

    Its descriptor comes from the recording too, so that all servers send the same tool list. The schemas of a function
    under `@mcp.tool` would be derived; the CPU time of a call was the same within the noise.
    """

    answer: ToolResult | None = None

    async def run(self, arguments):
        return self.answer

    def get_meta(self):
        # FastMCP would add a `fastmcp` object to every tool. Without it, all servers send the same list.
        return self.meta


def recorded_tool(descriptor, answer):
    annotations = descriptor.get("annotations")
    return RecordedTool(
        name=descriptor["name"],
        title=descriptor.get("title"),
        description=descriptor.get("description"),
        parameters=descriptor["inputSchema"],
        output_schema=descriptor.get("outputSchema"),
        annotations=ToolAnnotations(**annotations) if annotations else None,
        meta=descriptor.get("_meta"),
        answer=answer,
    )


def tool_result(result):
    content = [TextContent(type="text", text=item["text"]) for item in result["content"]]
    return ToolResult(content=content, structured_content=result.get("structuredContent"), meta=result.get("_meta"))


def build():
    with open(os.environ["BENCH_PAYLOAD"], encoding="utf-8") as file:
        payload = json.load(file)
    server = FastMCP("peer", dereference_schemas=False)
    for descriptor in payload["tools_list"]["tools"]:
        recorded = payload.get(descriptor["name"]) if descriptor["name"] in ("search", "fetch") else None
        server.add_tool(recorded_tool(descriptor, tool_result(recorded) if recorded else None))
    return server.http_app(path="/mcp", stateless_http=True, json_response=True)


if __name__ == "__main__":
    os.environ["BENCH_PAYLOAD"], port, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    uvicorn.run(
        # A single worker runs in this process. Several workers need a name that each of them can import.
        build() if workers == 1 else "fastmcp_server:build",
        factory=workers != 1,
        app_dir=os.path.dirname(os.path.abspath(__file__)),
        host="127.0.0.1",
        port=port,
        workers=workers,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )
