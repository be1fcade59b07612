// Tests that the MCP Inspector recognizes an app behind each tool that has a widget, and none behind the others.
//   apps.mjs <url of the MCP endpoint> <tool with an app>... -- <tool without one>...
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { program, version } from './pinned.mjs';

const INSPECTOR = '@modelcontextprotocol/inspector';
// The inspector exits with this status when a tool has no app.
const NO_APP = 2;

const [url, ...names] = process.argv.slice(2);
const cut = names.indexOf('--');
if (!url || cut < 1) {
  console.error('usage: apps.mjs <url> <tool with an app>... -- <tool without one>...');
  process.exit(2);
}
// The inspector keeps its catalogue in the home folder.
const home = mkdtempSync(join(tmpdir(), 'docent-inspector-'));

function probe(tool) {
  const args = ['--cli', '--method', 'tools/call', '--tool-name', tool, '--app-info', '--transport', 'http', '--server-url', url, '-q'];
  const options = { env: { ...process.env, HOME: home }, timeout: 60_000 };
  return new Promise((resolve) => {
    execFile(process.execPath, [program(INSPECTOR, 'mcp-inspector'), ...args], options, (error, stdout, stderr) =>
      resolve({ status: error?.code ?? 0, stdout, stderr }));
  });
}

try {
  for (const tool of names.slice(0, cut)) {
    const { status, stdout, stderr } = await probe(tool);
    const found = /"resourceUri":\s*"(ui:\/\/[^"]+)"/.exec(stdout)?.[1];
    if (status !== 0 || !found) throw new Error(`${tool}: exit ${status}: ${stdout}${stderr}`);
    console.log(`ok  ${tool} is an app at ${found}`);
  }
  for (const tool of names.slice(cut + 1)) {
    const { status, stdout } = await probe(tool);
    if (status !== NO_APP) throw new Error(`${tool}: exit ${status}, not ${NO_APP}: ${stdout}`);
    console.log(`ok  ${tool} is none`);
  }
  console.log(`the apps as inspector ${version(INSPECTOR)} sees them`);
} catch (error) {
  console.error(`failed: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(home, { recursive: true, force: true });
}
