// The TypeScript client v2: legacy handshake, negotiation, and the pinned modern revision.
import assert from 'node:assert/strict';
import { main } from './client.mjs';
import { pinned, version } from './pinned.mjs';

const MODERN = '2026-07-28';
const NEWEST_LEGACY = '2025-11-25';
const MODES = {
  legacy: { mode: 'legacy', expect: NEWEST_LEGACY },
  auto: { mode: 'auto', expect: MODERN },
  pinned: { mode: { pin: MODERN }, expect: MODERN },
};

await main(`typescript-client-${version('@modelcontextprotocol/client')}`, connect);

async function connect({ transport, era, target }) {
  const { Client } = pinned('@modelcontextprotocol/client');
  const { mode, expect } = MODES[era];
  const client = new Client({ name: 'docent-conformance', version: '1.0.0' }, { versionNegotiation: { mode } });
  const errors = [];
  client.onerror = (error) => errors.push(error.message);
  await client.connect(open(transport, target));
  assert.equal(client.getNegotiatedProtocolVersion(), expect, `mode \`${era}\` negotiated another revision`);
  return {
    errors,
    listTools: async () => (await client.listTools()).tools,
    callTool: (name, args) => client.callTool({ name, arguments: args }),
    close: () => client.close(),
  };
}

function open(transport, [command, ...args]) {
  switch (transport) {
    case 'http':
      return new (pinned('@modelcontextprotocol/client').StreamableHTTPClientTransport)(new URL(command));
    case 'stdio':
      return new (pinned('@modelcontextprotocol/client/stdio').StdioClientTransport)({ command, args, env: process.env });
    default:
      throw new Error(`unknown transport \`${transport}\``);
  }
}
