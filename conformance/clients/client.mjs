// Turns the command line every client script shares into one line on stdout and an exit code:
//   <script> <transport> <era> <query> <url | command [argument...]>
// With EXPECTED set to a table of tools (kit.json), its servers are called in place of the target.
import { checkContract } from './contract.mjs';
import { checkKit } from './kit.mjs';

export async function main(name, connect) {
  const [transport, era, query, ...target] = process.argv.slice(2);
  const { EXPECTED: table } = process.env;
  if (target.length === 0 && !table) {
    console.error('usage: <script> <transport> <era> <query> <url | command [argument...]>');
    process.exit(2);
  }
  try {
    const found = table
      ? `${await checkKit((url) => connect({ transport, era, target: [url] }), table)} tools`
      : `${await search(await connect({ transport, era, target }), query)} results`;
    console.log(`ok ${name} ${transport} ${era} ${found}`);
    process.exit(0);
  } catch (error) {
    console.log(`failed ${name} ${transport} ${era}: ${firstLine(error)}`);
    console.error(error);
    process.exit(1);
  }
}

async function search(client, query) {
  const count = await checkContract(client, query);
  // A client that swallows an error of the transport still saw a server that broke the protocol.
  if (client.errors?.length) throw new Error(`transport error: ${client.errors.join('; ')}`);
  await client.close?.();
  return count;
}

function firstLine(error) {
  return String(error?.message ?? error).split('\n')[0];
}
