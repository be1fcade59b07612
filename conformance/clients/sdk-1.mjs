// The TypeScript SDK 1.x of the alias given by the caller, over http, sse and stdio.
import { main } from './client.mjs';
import { pinned, version } from './pinned.mjs';

export function runSdk(alias) {
  return main(`typescript-sdk-${version(alias)}`, (request) => connect(alias, request));
}

async function connect(alias, { transport, era, target }) {
  if (era !== 'legacy') throw new Error(`this SDK knows only the era \`legacy\`, not \`${era}\``);
  const { Client } = pinned(`${alias}/client/index.js`);
  const client = new Client({ name: 'docent-conformance', version: '1.0.0' });
  const errors = [];
  client.onerror = (error) => errors.push(error.message);
  await client.connect(open(alias, transport, target));
  return {
    errors,
    listTools: async () => (await client.listTools()).tools,
    callTool: (name, args) => client.callTool({ name, arguments: args }),
    close: () => client.close(),
  };
}

function open(alias, transport, [command, ...args]) {
  switch (transport) {
    case 'http':
      return new (pinned(`${alias}/client/streamableHttp.js`).StreamableHTTPClientTransport)(new URL(command));
    case 'sse':
      return new (pinned(`${alias}/client/sse.js`).SSEClientTransport)(new URL(command));
    case 'stdio':
      return new (pinned(`${alias}/client/stdio.js`).StdioClientTransport)({ command, args, env: process.env });
    default:
      throw new Error(`unknown transport \`${transport}\``);
  }
}
