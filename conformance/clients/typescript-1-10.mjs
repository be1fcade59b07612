// TypeScript SDK 1.10.2, the oldest version with streamable HTTP that is still in use.
import { runSdk } from './sdk-1.mjs';

await runSdk('mcp-sdk-1-10');
