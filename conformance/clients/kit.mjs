// Lets a client list and call the tools of the servers of `kit.json`. Returns their number, or throws the first result
// that differs from the expected one:
//   { <url of a server>: { <tool>: { arguments?, data?, text? } } }
// `data` is the structuredContent; without `text`, the text is its JSON.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

export async function checkKit(open, file) {
  let count = 0;
  for (const [url, tools] of Object.entries(JSON.parse(readFileSync(file, 'utf8')))) {
    const client = await open(url);
    const listed = (await client.listTools()).map((tool) => tool.name);
    assert.deepEqual(listed, Object.keys(tools), `${url}: other tools than the table has`);
    if (!process.env.LIST_ONLY) await callAll(client, Object.entries(tools));
    assert.ok(!client.errors?.length, `transport error: ${client.errors?.join('; ')}`);
    await client.close?.();
    count += listed.length;
  }
  return count;
}

// A client that starts a process for each call says how many it can start at once. It calls only every third tool,
// which covers each kind: a client that refuses a tool does so when it lists.
async function callAll(client, all) {
  const tools = all.filter((_, at) => !client.parallel || at % 3 === 0);
  const worker = async () => {
    for (let next = tools.shift(); next; next = tools.shift()) {
      const [name, expected] = next;
      checkResult(name, expected, await client.callTool(name, expected.arguments ?? {}));
    }
  };
  await Promise.all(Array.from({ length: client.parallel ?? 1 }, worker));
}

function checkResult(name, { data, text }, result) {
  assert.notEqual(result.isError, true, `${name}: error result: ${JSON.stringify(result.content)}`);
  assert.deepEqual(result.structuredContent, data, `${name}: other data than expected`);
  const texts = result.content.map((item) => item.text);
  if (text === undefined && data !== undefined) {
    assert.equal(texts.length, 1, `${name}: ${texts.length} content items instead of one`);
    assert.deepEqual(JSON.parse(texts[0]), data, `${name}: the text differs from the data`);
  } else {
    assert.deepEqual(texts, text === undefined ? [] : [text], `${name}: another text than expected`);
  }
}
