// The MCP Inspector's command line: one process for each request, as on a shell.
import { execFile } from 'node:child_process';
import { main } from './client.mjs';
import { program, version } from './pinned.mjs';

// The inspector exits with this status when a tool result has `isError`. It prints the result all the same.
const TOOL_ERROR = 5;

const INSPECTOR = '@modelcontextprotocol/inspector';

await main(`inspector-${version(INSPECTOR)}`, connect);

async function connect({ transport, era, target }) {
  const ask = (...request) => inspect([...request, ...server(transport, era, target)]);
  return {
    parallel: 4,
    listTools: async () => (await ask('--method', 'tools/list')).tools,
    callTool: (name, args) =>
      ask('--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)),
  };
}

function server(transport, era, target) {
  const flags = ['--transport', transport, '--protocol-era', era, '--format', 'json', '-q'];
  return transport === 'stdio' ? [...flags, '--', ...target] : [...flags, '--server-url', target[0]];
}

function inspect(args) {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [program(INSPECTOR, 'mcp-inspector'), '--cli', ...args], { maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      if (error && error.code !== TOOL_ERROR) reject(new Error(`exit ${error.code}: ${stderr.trim() || stdout.trim()}`));
      else resolve(JSON.parse(stdout).result);
    });
  });
}
