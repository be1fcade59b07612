// Drives the preview with the task board of the kit's example, as a person would:
//   preview.mjs <address of the preview> <path of the board's page> <folder for pictures>
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checks } from './checks.mjs';

const [address, boardFile, pictures] = process.argv.slice(2);
if (!pictures) {
  console.error('usage: preview.mjs <address of the preview> <path of the board> <folder for pictures>');
  process.exit(2);
}
const board = `document.querySelectorAll('section').length === 3 && document.querySelectorAll('li').length`;
const columns = `[...document.querySelectorAll('section')].map((one) => one.querySelectorAll('li').length).join()`;
const talk = `document.getElementById('talk').textContent`;

// Policy violations appear on the console, and one check provokes them. So each check tests the console itself.
await checks({ pictures, quiet: false }, async ({ browser, check, silent: quiet }) => {
  const press = (text) => browser.page(`[...document.querySelectorAll('#switches button')].find((one) => one.textContent === '${text}').click()`);

  /** Opens the preview with the board mounted. */
  async function show(state) {
    await browser.open(`${address}/preview#${new URLSearchParams({ tool: 'show_board', call: '1', ...state })}`);
    await browser.until('the board', () => browser.frame(board));
  }

  for (const host of ['chatgpt', 'claude']) {
    for (const theme of ['light', 'dark']) {
      for (const width of ['320', '480', '768']) {
        for (const locale of ['en-US', 'de-DE']) {
          const name = `${host} ${theme} ${width} ${locale}`;
          await check(name, async () => {
            await show({ host, theme, width, locale });
            assert.equal(await browser.frame('self.origin'), 'null', 'an origin that is nobody\'s');
            assert.equal(await browser.frame('innerWidth') <= Number(width), true);
            assert.equal(await browser.frame('document.documentElement.scrollWidth <= innerWidth'), true, 'nothing sticks out');
            assert.equal(await browser.frame('document.documentElement.style.colorScheme'), theme);
            assert.equal(await browser.frame('document.documentElement.lang'), locale);
            assert.equal(await browser.frame('typeof window.openai'), host === 'chatgpt' ? 'object' : 'undefined');
            assert.equal(await browser.page(`document.querySelectorAll('.note').length`), 0);
            quiet();
            await browser.picture(join(pictures, `preview-${name.replaceAll(' ', '-')}.png`));
          });
        }
      }
    }
  }

  await check('the widget moves a card through the host, and back', async () => {
    await show({ host: 'claude', theme: 'light' });
    const before = await browser.frame(columns);
    await browser.frame(`document.querySelector('button:not(:disabled)').click()`);
    await browser.until('the call', () => browser.page(`document.getElementById('messages').textContent.includes('tools/call')`));
    assert.notEqual(await browser.frame(columns), before);
    await browser.frame(`document.querySelector('section:nth-child(2) button:first-child').click()`);
    await browser.until('the way back', async () => (await browser.frame(columns)) === before);
    quiet();
  });

  await check('a change of theme and language reaches a mounted widget', async () => {
    await show({ host: 'chatgpt', theme: 'light', locale: 'en-US' });
    await press('Dark');
    await browser.page(`{ const list = document.querySelector('#switches select'); list.value = 'de-DE'; list.dispatchEvent(new Event('change')); }`);
    await browser.until('the theme', () => browser.frame(`document.documentElement.style.colorScheme === 'dark' && document.documentElement.lang === 'de-DE'`));
    quiet();
  });

  await check('the policy refuses, and the page says so', async () => {
    await show({ host: 'chatgpt' });
    assert.equal(await browser.frame(`fetch('https://example.com').then(() => 'fetched', () => 'refused')`), 'refused');
    assert.equal(await browser.frame(`fetch('${address}/preview').then(() => 'fetched', () => 'refused')`), 'refused');
    assert.equal(await browser.frame(`(() => { try { return eval('1') } catch { return 'refused' } })()`), 'refused');
    assert.equal(await browser.frame(`(() => { try { return localStorage.length } catch { return 'refused' } })()`), 'refused');
    await browser.until('a note', () => browser.page(`${talk}.includes('the policy refused connect-src: https://example.com')`));
  });

  await check('messages of anybody else are ignored', async () => {
    await show({ host: 'claude' });
    const spoof = (words) => JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'ui/message', params: { role: 'user', content: [{ type: 'text', text: words }] } });
    await browser.page(`window.postMessage(${spoof('SPOOFED')}, '*')`);
    // The widget's own message arrives later, so the spoofed one was delivered first.
    await browser.frame(`window.parent.postMessage(${spoof('HONEST')}, '*')`);
    await browser.until('the honest one', () => browser.page(`${talk}.includes('HONEST')`));
    assert.equal(await browser.page(`${talk}.includes('SPOOFED')`), false);
    quiet();
  });

  await check('what a widget says stays text, and only web addresses are opened', async () => {
    await show({ host: 'claude' });
    const say = (method, params) => browser.frame(`window.parent.postMessage(${JSON.stringify({ jsonrpc: '2.0', id: 7, method, params })}, '*')`);
    await say('ui/open-link', { url: 'javascript:window.hurt = 1' });
    await say('ui/open-link', { url: 'https://shop.example.com/x' });
    await say('ui/message', { role: 'user', content: [{ type: 'text', text: '<img src=x onerror="window.hurt = 1"><script>window.hurt = 1</script>' }] });
    await browser.until('the message', () => browser.page(`${talk}.includes('onerror')`));
    assert.equal(await browser.page('window.hurt'), undefined);
    assert.equal(await browser.page(`document.querySelectorAll('#talk img, #talk script').length`), 0);
    assert.equal(await browser.page(`[...document.querySelectorAll('#talk a')].map((one) => one.href).join()`), 'https://shop.example.com/x');
    quiet();
  });

  await check('every mode has room, and there is a way back', async () => {
    await show({ host: 'chatgpt', mode: 'fullscreen', theme: 'light' });
    await browser.picture(join(pictures, 'preview-fullscreen.png'));
    assert.equal(await browser.page(`document.querySelector('.card').clientHeight === document.getElementById('stage').clientHeight`), true);
    await browser.page(`document.querySelector('.leave').click()`);
    assert.equal(await browser.page(`document.querySelector('.card').classList.contains('fullscreen')`), false);
    await press('Picture');
    await browser.until('a warning', () => browser.page(`${talk}.includes('the widget declares inline')`));
    await browser.picture(join(pictures, 'preview-picture.png'));
    quiet();
  });

  await check('a form, its mistakes, and errors of the server', async () => {
    await browser.open(`${address}/preview#${new URLSearchParams({ tool: 'attach_file', theme: 'light' })}`);
    await browser.until('the form', () => browser.page(`document.getElementById('argument-file')?.value.includes('file_id')`));
    await browser.page(`document.getElementById('argument-file').value = '{'; document.querySelector('#call .primary').click()`);
    assert.equal(await browser.page(`document.querySelector('#call .problem').textContent`), 'file is not JSON');
    await browser.page(`document.getElementById('argument-file').value = '"file-1"'; document.getElementById('argument-id').value = 't99'; document.querySelector('#call .primary').click()`);
    await browser.until('the error', () => browser.page(`document.getElementById('structured').textContent.includes('NOT_FOUND')`));
    await browser.picture(join(pictures, 'preview-form.png'));
    quiet();
  });

  await check('a saved page is mounted anew', async () => {
    await show({ host: 'claude', theme: 'light' });
    const text = readFileSync(boardFile, 'utf8');
    try {
      writeFileSync(boardFile, text.replace('<title>Task board</title>', '<title>Changed board</title>'));
      await browser.until('the new page', () => browser.frame(`document.title === 'Changed board' && ${board}`));
    } finally {
      writeFileSync(boardFile, text);
    }
  });

  await check('a narrow screen', async () => {
    await browser.open(`${address}/preview#${new URLSearchParams({ tool: 'show_board', call: '1', width: '320', theme: 'light' })}`, { width: 420, height: 1400 });
    await browser.until('the board', () => browser.frame(board));
    assert.equal(await browser.page('document.documentElement.scrollWidth <= innerWidth'), true, 'nothing sticks out');
    await browser.picture(join(pictures, 'preview-narrow.png'));
    quiet();
  });
});
