// Tests a real server: its widgets in its own preview, and the pages behind its citations.
//   knowledge.mjs <address of docent serve --preview> <address of one with hostile documents> <folder for pictures>
//   knowledge.mjs hostile        prints the hostile documents as JSON lines
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { checks } from './checks.mjs';
import { attacks } from './states.mjs';

const [address, hostile, pictures] = process.argv.slice(2);
if (address === 'hostile') {
  attacks().forEach((text, n) => console.log(JSON.stringify({
    id: `attack-${n}`, title: text, text: `# ${text}\n\n${text}\n\n- ${text}\n\n> ${text}\n\n\`\`\`\n${text}\n\`\`\``, url: text, date: '2024-05-28', author: text, [text.slice(0, 40)]: text,
  })));
  process.exit(0);
}
if (!pictures) {
  console.error('usage: knowledge.mjs <address of docent> <address of a hostile one> <folder for pictures>');
  process.exit(2);
}
async function call(server, name, args) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } });
  const headers = { 'content-type': 'application/json', accept: 'application/json', 'mcp-protocol-version': '2025-11-25' };
  return (await (await fetch(`${server}/mcp`, { method: 'POST', headers, body })).json()).result;
}

const foreign = `document.querySelectorAll('script, img, iframe, link, object, embed, base, video, form, input, svg, math, meta[http-equiv], [onload], [onerror]').length`;

await checks({ pictures }, async ({ browser, check }) => {
  await browser.send('Network.enable');
  const press = (selector) => browser.frame(`document.querySelector(${JSON.stringify(selector)}).click()`);

  for (const host of ['chatgpt', 'claude']) {
    await check(`results of a real server as ${host} shows them`, async () => {
      const state = { tool: 'show_results', call: '1', host, theme: host === 'claude' ? 'dark' : 'light', width: '768', args: JSON.stringify({ query: 'winter ferry' }) };
      await browser.open(`${address}/preview#${new URLSearchParams(state)}`, { height: 1400 });
      await browser.until('cards', () => browser.frame(`document.querySelectorAll('.card').length > 0`));
      assert.ok(await browser.frame(`document.querySelectorAll('.card mark').length > 0 && document.querySelectorAll('.column').length > 1`));
      await browser.picture(join(pictures, `real-results-${host}.png`));
      await press('.chip');
      await browser.until('a choice', () => browser.frame(`document.querySelector('.chip[aria-pressed=true]') !== null`));
      await press('.card .title');
      await browser.until('the reader', () => browser.frame(`document.querySelector('.passage.here') !== null`));
      await browser.picture(join(pictures, `real-reader-${host}.png`));
    });
  }

  await check('a document of a real server', async () => {
    const found = await call(address, 'search', { query: 'winter ferry' });
    const { id } = found.structuredContent.results[0];
    const state = { tool: 'show_document', call: '1', host: 'claude', theme: 'light', args: JSON.stringify({ id, query: 'winter ferry' }) };
    await browser.open(`${address}/preview#${new URLSearchParams(state)}`, { height: 1400 });
    await browser.until('the passage', () => browser.frame(`document.querySelector('.passage.here mark') !== null`));
    await browser.picture(join(pictures, 'real-document.png'));
    for (const [name, width] of [['page', 1100], ['page-narrow', 360]]) {
      await browser.open(`${address}/d/${id.split('/').map(encodeURIComponent).join('/')}?q=winter+ferry&p=1#p1`, { width });
      assert.equal(await browser.page('document.documentElement.scrollWidth <= innerWidth'), true, 'nothing sticks out');
      assert.ok(await browser.page(`document.querySelectorAll('mark').length`) > 0);
      assert.equal(await browser.page(`document.querySelector('section:target')?.id`), 'p1');
      await browser.picture(join(pictures, `${name}.png`));
    }
    await browser.send('Emulation.setEmulatedMedia', { media: 'print' });
    await browser.picture(join(pictures, 'page-print.png'));
    await browser.send('Emulation.setEmulatedMedia', { media: '', features: [{ name: 'prefers-color-scheme', value: 'dark' }] });
    await browser.picture(join(pictures, 'page-dark.png'));
    await browser.send('Emulation.setEmulatedMedia', { media: '', features: [] });
  });

  await check('200 hostile documents are pages of text', async () => {
    const texts = attacks();
    const wanted = new Set();
    for (const [n, text] of texts.entries()) {
      const url = `${hostile}/d/attack-${n}?q=script`;
      wanted.add(url);
      await browser.send('Page.navigate', { url });
      await browser.until(url, () => browser.page(`location.href === ${JSON.stringify(url)} && document.readyState === 'complete' && document.querySelector('article') !== null`));
      assert.equal(await browser.page(foreign), 0, text);
      assert.equal(await browser.page('window.hurt'), undefined, text);
      assert.equal(await browser.page(`[...document.querySelectorAll('a')].filter((one) => !/^https?:$/.test(one.protocol)).length`), 0, text);
    }
    const others = browser.requests.filter((url) => !wanted.has(url) && !url.endsWith('/favicon.ico') && url !== 'about:blank');
    assert.deepEqual(others, [], 'no request besides the pages');
  });
});
