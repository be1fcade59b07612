// The newest TypeScript SDK of the 1.x line.
import { runSdk } from './sdk-1.mjs';

await runSdk('mcp-sdk-1');
