// Turns a payload file into a server on the TypeScript SDK that answers from it, as the SDK's documentation
// shows for plain `node:http`: host and origin guards, then one server and one transport for each request.
//
// The low-level `Server` hands out the recorded answers as they are. `McpServer` would also register every tool
// and check arguments and results anew on each request, at about 1.5 times the processor time, so the comparison
// errs in the SDK's favour.

import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import {
    localhostHostValidation,
    localhostOriginValidation,
    NodeStreamableHTTPServerTransport
} from '@modelcontextprotocol/node';
import { Server } from '@modelcontextprotocol/server';

const [payloadFile, port, workers] = process.argv.slice(2);
const payload = JSON.parse(readFileSync(payloadFile, 'utf8'));
const validateHost = localhostHostValidation();
const validateOrigin = localhostOriginValidation();

function buildServer() {
    const server = new Server({ name: 'peer', version: '1.0.0' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', async () => payload.tools_list);
    server.setRequestHandler('tools/call', async request => payload[request.params.name]);
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

// One process a core, as everywhere in this benchmark. Node runs a single one by itself.
if (cluster.isPrimary && Number(workers) > 1) {
    const children = Array.from({ length: Number(workers) }, () => cluster.fork());
    process.on('SIGTERM', () => {
        for (const child of children) child.kill();
        process.exit(0);
    });
} else {
    createServer(answer).listen(Number(port), '127.0.0.1');
}
