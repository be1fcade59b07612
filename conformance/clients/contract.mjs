// Tests the search and fetch contract with a connected client. Returns the number of search results, or throws the
// first broken rule. `client` is { listTools(), callTool(name, args) } with plain MCP results.
import assert from 'node:assert/strict';

const UNKNOWN_ID = 'conformance:there-is-no-such-document';

// Hosts accept a server only with exactly these input signatures.
const SIGNATURES = { search: 'query', fetch: 'id' };

export async function checkContract(client, query) {
  checkTools(await client.listTools());

  const found = payload('search', await client.callTool('search', { query }));
  assert.deepEqual(Object.keys(found), ['results'], 'search: `results` is not the only key of the payload');
  assert.ok(Array.isArray(found.results), 'search: `results` is not a list');
  assert.ok(found.results.length > 0, `search: nothing found for \`${query}\``);
  found.results.forEach((hit, at) => checkDocument(`search: result ${at}`, hit));

  const { id } = found.results[0];
  const document = payload('fetch', await client.callTool('fetch', { id }));
  checkDocument('fetch', document);
  assert.equal(document.id, id, 'fetch: another id came back than the one asked for');
  assert.ok(typeof document.text === 'string' && document.text.length > 0, 'fetch: `text` is empty');
  for (const [key, value] of Object.entries(document.metadata ?? {})) {
    assert.equal(typeof value, 'string', `fetch: metadata \`${key}\` is not a string`);
  }

  const refused = await client.callTool('fetch', { id: UNKNOWN_ID });
  assert.equal(refused.isError, true, 'fetch: an unknown id is not an error result');
  assert.ok(onlyText('fetch of an unknown id', refused).length > 0, 'fetch: the error has no message');
  return found.results.length;
}

function checkTools(tools) {
  for (const [name, argument] of Object.entries(SIGNATURES)) {
    const tool = tools.find((candidate) => candidate.name === name);
    assert.ok(tool, `tools/list has no \`${name}\``);
    assert.deepEqual(Object.keys(tool.inputSchema.properties), [argument], `${name}: other arguments than \`${argument}\``);
    assert.deepEqual(tool.inputSchema.required, [argument], `${name}: \`${argument}\` is not the required argument`);
  }
}

function payload(name, result) {
  assert.notEqual(result.isError, true, `${name}: error result: ${JSON.stringify(result.content)}`);
  const value = JSON.parse(onlyText(name, result));
  assert.ok(result.structuredContent, `${name}: no structuredContent`);
  assert.deepEqual(value, result.structuredContent, `${name}: the text item differs from structuredContent`);
  return value;
}

function onlyText(name, result) {
  assert.equal(result.content.length, 1, `${name}: ${result.content.length} content items instead of one`);
  assert.equal(result.content[0].type, 'text', `${name}: the content item is not text`);
  return result.content[0].text;
}

function checkDocument(where, document) {
  for (const key of ['id', 'title', 'url']) {
    assert.equal(typeof document[key], 'string', `${where}: \`${key}\` is not a string`);
  }
  assert.ok(document.id.length > 0, `${where}: \`id\` is empty`);
  assert.match(document.url, /^$|^https?:\/\/./, `${where}: \`url\` is neither empty nor http(s)`);
}
