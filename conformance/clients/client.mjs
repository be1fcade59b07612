// The common main of all client scripts: runs a client and prints one line and an exit status:
//   <script> <transport> <era> <query> <url | command [argument...]>
// If EXPECTED is a table of tools (kit.json), the client calls the table's servers instead of the target.
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
  // Some clients swallow transport errors. Those are protocol violations of the server all the same.
  if (client.errors?.length) throw new Error(`transport error: ${client.errors.join('; ')}`);
  await client.close?.();
  return count;
}

function firstLine(error) {
  return String(error?.message ?? error).split('\n')[0];
}
