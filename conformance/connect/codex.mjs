// Codex's server for editors, asked which MCP servers it has and which tools they told it; prints a line for each.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const child = spawn(process.argv[2], ['app-server'], { stdio: ['pipe', 'pipe', 'ignore'] });
const send = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
// A client that hangs is a failure.
const limit = setTimeout(() => end(1), 60_000);

createInterface({ input: child.stdout }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.id === 0) {
    send({ method: 'initialized' });
    send({ id: 1, method: 'mcpServerStatus/list', params: {} });
  } else if (message.id === 1) {
    for (const server of message.result?.data ?? []) {
      console.log(server.name, server.serverInfo?.name, Object.keys(server.tools ?? {}).join(' '));
    }
    end(message.result ? 0 : 1);
  }
});
send({ id: 0, method: 'initialize', params: { clientInfo: { name: 'docent-test', title: 'docent', version: '1' } } });

function end(code) {
  clearTimeout(limit);
  child.kill();
  process.exitCode = code;
}
