// TypeScript SDK 1.10.2, the oldest with streamable HTTP that is still met in the wild.
import { runSdk } from './sdk-1.mjs';

await runSdk('mcp-sdk-1-10');
