// Turns the command line every client script shares into one line on stdout and an exit code:
//   <script> <transport> <era> <query> <url | command [argument...]>
import { checkContract } from './contract.mjs';

export async function main(name, connect) {
  const [transport, era, query, ...target] = process.argv.slice(2);
  if (target.length === 0) {
    console.error('usage: <script> <transport> <era> <query> <url | command [argument...]>');
    process.exit(2);
  }
  try {
    const client = await connect({ transport, era, target });
    const count = await checkContract(client, query);
    // A client that swallows an error of the transport still saw a server that broke the protocol.
    if (client.errors?.length) throw new Error(`transport error: ${client.errors.join('; ')}`);
    await client.close?.();
    console.log(`ok ${name} ${transport} ${era} ${count} results`);
    process.exit(0);
  } catch (error) {
    console.log(`failed ${name} ${transport} ${era}: ${firstLine(error)}`);
    console.error(error);
    process.exit(1);
  }
}

function firstLine(error) {
  return String(error?.message ?? error).split('\n')[0];
}
