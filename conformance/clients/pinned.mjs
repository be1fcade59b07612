// Resolves a package name to the copy that `conformance/setup` installed, from any working directory.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const tools = new URL('../.tools/', import.meta.url);

export const pinned = createRequire(new URL('package.json', tools));

// Read from the file, because a package may hide its manifest from `require`.
export function version(name) {
  return manifest(name).version;
}

export function program(name, command) {
  return fileURLToPath(new URL(manifest(name).bin[command], folder(name)));
}

function manifest(name) {
  return JSON.parse(readFileSync(new URL('package.json', folder(name)), 'utf8'));
}

function folder(name) {
  return new URL(`node_modules/${name}/`, tools);
}
