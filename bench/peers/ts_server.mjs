// A server on the TypeScript SDK that answers from a payload file, as the SDK's documentation shows for plain
// `node:http`: host and origin guards, then one server and one transport for each request.
//
// The documentation uses `McpServer`, which registers the tools and validates arguments and results. `low` uses the
// low-level `Server` instead, which returns the recorded answers as they are. Few people write servers that way, but
// it is the fastest the SDK can be.

import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import {
    localhostHostValidation,
    localhostOriginValidation,
    NodeStreamableHTTPServerTransport
} from '@modelcontextprotocol/node';
import { McpServer, Server, fromJsonSchema } from '@modelcontextprotocol/server';

const [payloadFile, port, workers, level = 'high'] = process.argv.slice(2);
const payload = JSON.parse(readFileSync(payloadFile, 'utf8'));
const validateHost = localhostHostValidation();
const validateOrigin = localhostOriginValidation();

const identity = { name: 'peer', version: '1.0.0' };
// Compiled once. Compiling for each request would measure the compiler.
const tools = payload.tools_list.tools.map(tool => ({
    ...tool,
    inputSchema: fromJsonSchema(tool.inputSchema),
    outputSchema: fromJsonSchema(tool.outputSchema)
}));

function buildServer() {
    if (level === 'low') {
        const server = new Server(identity, { capabilities: { tools: {} } });
        server.setRequestHandler('tools/list', async () => payload.tools_list);
        server.setRequestHandler('tools/call', async request => payload[request.params.name]);
        return server;
    }
    const server = new McpServer(identity);
    for (const { name, ...config } of tools) server.registerTool(name, config, async () => payload[name]);
    return server;
}

async function answer(request, response) {
    if (!validateHost(request, response) || !validateOrigin(request, response)) return;
    const server = buildServer();
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: undefined,
        enableJsonResponse: true
    });
    response.on('close', () => void server.close());
    await server.connect(transport);
    await transport.handleRequest(request, response);
}

// One process for each core, as everywhere in this benchmark. Node alone runs a single process.
if (cluster.isPrimary && Number(workers) > 1) {
    const children = Array.from({ length: Number(workers) }, () => cluster.fork());
    process.on('SIGTERM', () => {
        for (const child of children) child.kill();
        process.exit(0);
    });
} else {
    createServer(answer).listen(Number(port), '127.0.0.1');
}
