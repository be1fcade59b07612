// Asks Codex's server for editors for its MCP servers and their tools. Prints a line for each server.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const child = spawn(process.argv[2], ['app-server'], { stdio: ['pipe', 'pipe', 'ignore'] });
const send = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
// The timeout. A client that hangs fails.
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
