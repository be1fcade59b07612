// Tests the knowledge server's widgets in a fake host, state by state:
//   widgets.mjs <folder of the widgets> <folder for pictures> <script of the official host>
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { checks } from './checks.mjs';
import { serve, variables } from './host.mjs';
import { STATES, attacks, blocks, document as documentResult, failed, poisoned, results } from './states.mjs';

const [folder, pictures, official] = process.argv.slice(2);
if (!official) {
  console.error('usage: widgets.mjs <folder of the widgets> <folder for pictures> <script of the official host>');
  process.exit(2);
}
const host = await serve(folder, official);

/** The lowest contrast ratio of any text on the page. */
const CONTRAST = `(() => {
  const light = (color) => {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 1;
    const pen = canvas.getContext('2d');
    pen.fillStyle = color;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...pen.getImageData(0, 0, 1, 1).data].map((part) => (part /= 255) <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if (!/, 0\\)|\\/ |transparent/.test(color)) return color;
    }
    return 'white';
  };
  let worst = [21, ''];
  for (const one of document.querySelectorAll('h1, h2, h3, p, span, li, button:not(:disabled), mark, dt, dd, summary')) {
    if (!one.textContent.trim() || !one.checkVisibility() || one.closest(':disabled')) continue;
    const [a, b] = [light(getComputedStyle(one).color), light(behind(one))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < worst[0]) worst = [ratio, one.outerHTML.slice(0, 80)];
  }
  return worst;
})()`;

await checks({ pictures }, async ({ browser, check }) => {
  /** Mounts a widget and waits until it is ready. */
  async function mount(setting, ready) {
    const wanted = { host: 'claude', theme: 'light', locale: 'en-US', width: 480, mode: 'inline', ...setting };
    wanted.speaks ??= wanted.host === 'chatgpt' ? 'both' : 'standard';
    wanted.variables = variables(wanted.host, wanted.theme);
    const width = wanted.mode === 'fullscreen' ? wanted.width : Math.max(wanted.width + 48, 400);
    await browser.open(host.address, { width, height: wanted.height ?? (wanted.mode === 'fullscreen' ? 900 : 2000) });
    await browser.page(`window.mount(${JSON.stringify(wanted)})`);
    await browser.until(`${wanted.widget}: ${ready}`, () => browser.frame(ready));
  }

  const press = (selector) => browser.frame(`document.querySelector(${JSON.stringify(selector)}).click()`);
  const asked = () => browser.page('window.asked');
  const calls = async () => (await asked()).filter((one) => one.method === 'tools/call').map((one) => one.params);
  const settled = () => browser.frame('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))');

  /** What must be true of every state. */
  async function decent({ theme, locale }) {
    assert.equal(await browser.frame('self.origin'), 'null', 'an origin that is nobody\'s');
    assert.equal(await browser.frame('document.documentElement.scrollWidth <= innerWidth'), true, 'nothing sticks out');
    assert.equal(await browser.frame('document.documentElement.style.colorScheme'), theme);
    assert.equal(await browser.frame('document.documentElement.lang'), locale);
    assert.deepEqual(await browser.frame(`[...document.querySelectorAll('button')].filter((one) => !(one.getAttribute('aria-label') ?? one.textContent).trim()).length`), 0, 'every button has a name');
    const small = `[...document.querySelectorAll('button, summary')].filter((one) => {
      const box = one.getBoundingClientRect();
      const more = getComputedStyle(one, '::after').content === 'none' ? 0 : 8;
      return box.height > 0 && box.height + more < 24;
    }).map((one) => one.outerHTML.slice(0, 80))`;
    assert.deepEqual(await browser.frame(small), [], 'every target can be hit');
  }

  for (const [state, { widget, args, result, ready }] of Object.entries(STATES)) {
    for (const style of ['chatgpt', 'claude']) {
      for (const theme of ['light', 'dark']) {
        for (const width of [320, 480, 768]) {
          for (const locale of ['en-US', 'de-DE']) {
            const name = `${state} ${style} ${theme} ${width} ${locale}`;
            await check(name, async () => {
              await mount({ widget, args, result, host: style, theme, width, locale }, ready);
              await settled();
              await decent({ theme, locale });
              const [ratio, where] = await browser.frame(CONTRAST);
              assert.ok(ratio >= 4.5, `contrast ${ratio.toFixed(2)} of ${where}`);
              await browser.until('its height', () => browser.page(`Math.abs(document.querySelector('iframe').offsetHeight - 40) > 1`));
              await browser.picture(join(pictures, `${name.replaceAll(' ', '-')}.png`), '#card');
            });
          }
        }
      }
    }
  }

  for (const [state, width] of [['results', 1200], ['results-narrowed', 1200], ['document', 1200], ['results', 390], ['document', 390]]) {
    for (const theme of ['light', 'dark']) {
      await check(`fullscreen ${state} ${theme} ${width}`, async () => {
        const { widget, result, ready } = STATES[state];
        await mount({ widget, result, theme, width, mode: 'fullscreen', host: 'chatgpt', height: 900 }, ready);
        await settled();
        await decent({ theme, locale: 'en-US' });
        await browser.picture(join(pictures, `fullscreen-${state}-${theme}-${width}.png`));
      });
    }
  }

  for (const locale of ['fr-FR', 'es-ES', 'ja-JP', 'zh-CN']) {
    await check(`in ${locale}`, async () => {
      await mount({ widget: 'results', result: results(), locale }, STATES.results.ready);
      const english = ['Open source', 'Ask about this', 'More results'];
      const text = await browser.frame(`document.querySelector('main').textContent`);
      for (const words of english) assert.equal(text.includes(words), false, words);
      await browser.picture(join(pictures, `results-${locale}.png`), '#card');
    });
  }

  await check('a language that nobody translated is English, dates too', async () => {
    await mount({ widget: 'results', result: results(), locale: 'pt-BR' }, STATES.results.ready);
    assert.equal(await browser.frame(`document.querySelector('.count').textContent`), '42 results');
    assert.match(await browser.frame(`document.querySelector('.facts').textContent`), /Feb 14, 2023/);
  });

  await check('a chip and a bar search again through the host', async () => {
    const narrowed = STATES['results-narrowed'].result;
    await mount({ widget: 'results', result: results(), answers: { show_results: [narrowed, results()] } }, STATES.results.ready);
    await press('.chip');
    await browser.until('the answer', () => browser.frame(`document.querySelector('.count').textContent === '9 results'`));
    assert.deepEqual((await calls())[0], { name: 'show_results', arguments: { query: 'winter ferry', filters: { party: ['Civic Labour'] } } });
    await press('.column:nth-child(4)');
    await browser.until('the other answer', () => browser.frame(`document.querySelector('.count').textContent === '42 results'`));
    assert.deepEqual((await calls())[1].arguments, { query: 'winter ferry', filters: { party: ['Harbour'] }, from: '2023-10-01', to: '2023-10-28' });
  });

  await check('the keyboard keeps its place when the page is drawn anew', async () => {
    await mount({ widget: 'results', result: results(), answers: { show_results: [results({ total: 41 })] } }, STATES.results.ready);
    // Move the focus into the frame as a person does. A frame that takes the focus itself may lose it again.
    await browser.send('Input.dispatchKeyEvent', { type: 'keyDown', key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 });
    await browser.until('the keyboard', () => browser.frame('document.hasFocus()'));
    await browser.frame(`document.querySelectorAll('.chip')[1].focus()`);
    await browser.send('Input.dispatchKeyEvent', { type: 'keyDown', key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' });
    await browser.until('the answer', () => browser.frame(`document.querySelector('.count').textContent === '41 results'`));
    await browser.until('the chip', () => browser.frame(`document.activeElement.dataset.key?.startsWith('chip-party-')`));
    await browser.frame(`document.querySelector('.column[tabindex="0"]').focus()`);
    await browser.send('Input.dispatchKeyEvent', { type: 'keyDown', key: 'ArrowRight', code: 'ArrowRight', windowsVirtualKeyCode: 39 });
    await browser.until('the next bar', () => browser.frame(`document.activeElement.dataset.key === 'bar-1'`));
  });

  await check('of two answers the later question counts', async () => {
    await mount({ widget: 'results', result: results(), answers: { show_results: ['never', results({ total: 7 })] } }, STATES.results.ready);
    await press('.chip');
    await press('.chip:nth-child(2)');
    await browser.until('the later answer', () => browser.frame(`document.querySelector('.count').textContent === '7 results'`));
  });

  await check('a failed search keeps what was there, and can be tried again', async () => {
    await mount({ widget: 'results', result: results(), answers: { show_results: [failed('the server is busy'), results({ total: 8 })] } }, STATES.results.ready);
    await press('.chip');
    await browser.until('the alert', () => browser.frame(`document.querySelector('[role=alert]')?.textContent.includes('the server is busy') && document.querySelectorAll('.card').length === 4`));
    await press('[data-key=retry]');
    await browser.until('the second try', () => browser.frame(`document.querySelector('.count').textContent === '8 results' && !document.querySelector('[role=alert]')`));
  });

  await check('a call that failed at once can be tried again', async () => {
    const { args, result, ready } = STATES['results-error'];
    await mount({ widget: 'results', args, result, answers: { show_results: [results()] } }, ready);
    await press('[data-key=retry]');
    await browser.until('the results', () => browser.frame(STATES.results.ready));
    assert.deepEqual((await calls())[0].arguments, args);
    const other = STATES['document-error'];
    await mount({ widget: 'document', args: other.args, result: other.result, answers: { show_document: [documentResult()] } }, other.ready);
    await press('[data-key=retry]');
    await browser.until('the document', () => browser.frame(STATES.document.ready));
    assert.deepEqual((await calls())[0].arguments, { ...other.args, query: '' });
  });

  await check('the reader shows all it has when it gets the screen', async () => {
    await mount({ widget: 'document', result: documentResult(), width: 700 }, STATES.document.ready);
    await press('[data-key=grow]');
    await browser.until('every passage', () => browser.frame(`document.querySelectorAll('.passage').length === 5 && document.documentElement.dataset.mode === 'fullscreen'`));
  });

  await check('the reader opens in full view, goes on, and leads back', async () => {
    const later = documentResult({ at: 5, passages: [5, 6, 7, 8].map((index) => ({ index, path: 'Closing', blocks: blocks(`Passage ${index}.`) })) });
    await mount({ widget: 'results', result: results(), width: 1000, height: 800, answers: { show_document: [documentResult(), later] } }, STATES.results.ready);
    await press('.card .title');
    await browser.until('the reader', () => browser.frame(`document.querySelector('.passage.here mark')`));
    assert.equal(await browser.frame('document.documentElement.dataset.mode'), 'fullscreen');
    await browser.until('the keyboard', () => browser.frame(`document.activeElement.tagName === 'H1'`));
    assert.deepEqual((await calls())[0], { name: 'show_document', arguments: { id: 'speeches/0.md', query: 'winter ferry', passage: 0 } });
    await press('[data-key=later]');
    await browser.until('what follows', () => browser.frame(`document.getElementById('passage-8') !== null`));
    assert.deepEqual((await calls())[1].arguments, { id: 'speeches/0.md', query: 'winter ferry', first: 5 });
    await browser.frame(`document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))`);
    await browser.until('the results', () => browser.frame(`document.activeElement.dataset.key === 'read-speeches/0.md'`));
  });

  await check('the reader in a card shows one passage, then its neighbours', async () => {
    await mount({ widget: 'document', result: documentResult() }, STATES.document.ready);
    assert.equal(await browser.frame(`document.querySelectorAll('.passage').length`), 1);
    await press('[data-key=earlier]');
    await press('[data-key=next]');
    await browser.until('the passage of the next match', () => browser.frame(`document.querySelector('.passage.here')?.id === 'passage-3'`));
    assert.equal(await browser.frame(`[...document.querySelectorAll('.passage')].map((one) => one.id.slice(8)).join()`), '0,1,2,3');
    assert.deepEqual(await calls(), [], 'what came with the answer is not asked for again');
  });

  await check('a citation is copied, or shown to be copied by hand', async () => {
    await mount({ widget: 'document', result: documentResult() }, STATES.document.ready);
    await press('[data-key=cite]');
    await browser.until('either', () => browser.frame(`document.querySelector('[data-key=cite]').textContent === 'Copied' || document.querySelector('.by-hand textarea') !== null`));
  });

  await check('sources are opened and questions asked by the host', async () => {
    for (const [style, opened, said] of [['claude', 'ui/open-link', 'ui/message'], ['chatgpt', 'openExternal', 'ui/message']]) {
      await mount({ widget: 'results', result: results(), host: style }, STATES.results.ready);
      await press('[data-key="source-speeches/0.md"]');
      await press('[data-key="ask-speeches/0.md"]');
      const heard = await browser.until('both', async () => {
        const all = await asked();
        return all.some((one) => (one.method ?? one.openai) === opened) && all.some((one) => one.method === said) && all;
      });
      const address = heard.find((one) => (one.method ?? one.openai) === opened);
      assert.equal(address.params?.url ?? address.args[0].href, 'https://parliament.example/speeches/0');
      const words = heard.find((one) => one.method === said).params.content[0].text;
      assert.equal(words, 'Tell me more about the document “Three boats a week: the winter ferry timetable to Far Skerries” (id: speeches/0.md).');
    }
  });

  await check('a link in a text is opened by the host, and by nobody else', async () => {
    const { result, ready } = STATES['document-rich'];
    await mount({ widget: 'document', result }, ready);
    await press('.passage a');
    const heard = await browser.until('the link', async () => (await asked()).find((one) => one.method === 'ui/open-link'));
    assert.equal(heard.params.url, 'https://parliament.example/register');
    assert.ok(await browser.frame(`document.querySelector('.passage a') !== null`), 'the widget is still there');
    assert.deepEqual(browser.requests.filter((url) => url.includes('register')), []);
  });

  await check('a host that speaks window.openai alone', async () => {
    await mount({ widget: 'results', result: results(), host: 'chatgpt', speaks: 'openai', answers: { show_results: [results({ total: 5 })] } }, STATES.results.ready);
    await press('.chip');
    await browser.until('the answer', () => browser.frame(`document.querySelector('.count').textContent === '5 results'`));
    await browser.picture(join(pictures, 'results-openai-only.png'), '#card');
    await mount({ widget: 'document', result: documentResult(), host: 'chatgpt', speaks: 'openai' }, STATES.document.ready);
  });

  await check('the official host mounts both widgets', async () => {
    const context = { theme: 'dark', locale: 'de-DE', displayMode: 'inline', availableDisplayModes: ['inline', 'fullscreen'], styles: { variables: variables('claude', 'dark') } };
    for (const [widget, result] of [['results', results()], ['document', documentResult()]]) {
      await browser.open(`${host.address}/official`, { width: 700, height: 900 });
      const setting = { widget, context, args: { query: 'winter ferry', id: 'speeches/0.md' }, result, answers: { show_results: results({ total: 3 }), show_document: documentResult() } };
      await browser.page(`window.mountOfficial(${JSON.stringify(setting)})`);
      await browser.until(widget, () => browser.frame(STATES[widget].ready));
      assert.equal(await browser.frame('document.documentElement.lang'), 'de-DE');
      const heard = (method) => browser.until(method, async () => (await asked()).some((one) => one.method === method));
      await heard('size');
      if (widget === 'results') {
        await press('.chip');
        await browser.until('the answer', () => browser.frame(`document.querySelector('.count').textContent === '3 Treffer'`));
        await press('[data-key="source-speeches/0.md"]');
        await heard('ui/open-link');
        await press('[data-key="ask-speeches/0.md"]');
        await heard('ui/message');
        await press('[data-key=grow]');
        await heard('ui/request-display-mode');
      } else await heard('ui/update-model-context');
      await browser.page('window.teardown()');
    }
  });

  await check('what the model reads is enough where _meta is lost', async () => {
    await mount({ widget: 'results', result: { ...results(), _meta: undefined } }, STATES.results.ready);
    await mount({ widget: 'document', result: { ...documentResult(), _meta: undefined } }, `document.querySelector('.passage')`);
  });

  await check('theme and language change while it is shown; a call may be stopped', async () => {
    await mount({ widget: 'results', result: results() }, STATES.results.ready);
    await browser.page(`window.change({ theme: 'dark', locale: 'ja-JP' })`);
    await browser.until('both', () => browser.frame(`document.documentElement.style.colorScheme === 'dark' && document.querySelector('.count').textContent === '42件の結果'`));
    await mount({ widget: 'document' }, STATES['document-loading'].ready);
    await browser.page('window.cancel()');
    await browser.until('the word', () => browser.frame(`document.body.textContent.includes('Stopped.')`));
  });

  await check('messages of anybody else are ignored', async () => {
    await mount({ widget: 'results', result: results() }, STATES.results.ready);
    const spoof = { jsonrpc: '2.0', method: 'ui/notifications/tool-result', params: results({ total: 666 }) };
    await browser.frame(`(() => {
      window.postMessage(${JSON.stringify(spoof)}, '*');
      window.dispatchEvent(new MessageEvent('message', { data: ${JSON.stringify(spoof)}, source: window }));
      window.dispatchEvent(new MessageEvent('message', { data: ${JSON.stringify(spoof)} }));
      return new Promise((done) => setTimeout(done, 50));
    })()`);
    // Later messages of the host arrive in order.
    for (const odd of ['null', '"x"', '{}', '{"jsonrpc":"2.0","id":999,"result":{}}', '{"jsonrpc":"2.0","method":"ui/notifications/tool-result","params":null}'])
      await browser.page(`document.querySelector('iframe').contentWindow.postMessage(${odd}, '*')`);
    await settled();
    assert.notEqual(await browser.frame(`document.querySelector('.count').textContent`), '666 results');
    assert.equal(await browser.frame(`document.querySelectorAll('.card').length`), 4, 'and nonsense of the host leaves what was there');
  });

  const foreign = `document.querySelectorAll('img, iframe, a, link, object, embed, base, video, audio, source, form, input, math, style ~ style, meta[http-equiv], [onload], [onerror], svg:not(.icon)').length
    + document.querySelectorAll('body script').length - 1`;
  for (const widget of ['results', 'document']) {
    await check(`${widget}: 200 texts that would like to be script stay text`, async () => {
      await mount({ widget, result: STATES[widget].result, mode: 'fullscreen', width: 1000 }, STATES[widget].ready);
      const texts = attacks();
      assert.equal(texts.length, 200);
      const before = browser.requests.length;
      for (const text of texts) {
        // Dates and sort orders are parsed strictly. So a second result keeps them valid and injects into the rest.
        const whole = widget === 'results' ? results() : documentResult();
        await browser.page(`window.deliver(${JSON.stringify(poisoned(whole, text))})`);
        const first = text.replaceAll(/\s+/g, ' ').trim().slice(0, 12);
        await browser.until(`${text} to be shown`, () => browser.frame(`document.querySelector('h1').textContent.replaceAll(/\\s+/g, ' ').includes(${JSON.stringify(first)})`));
        assert.equal(await browser.frame(foreign), 0, text);
        assert.equal(await browser.frame('window.hurt'), undefined, text);
        await browser.page(`window.deliver(${JSON.stringify(failed(text))})`);
      }
      await browser.page(`window.change({ locale: ${JSON.stringify(texts[0])}, theme: ${JSON.stringify(texts[1])}, variables: { '--color-background-primary': 'url(/hurt)', '--font-sans': 'image-set("/hurt")' } })`);
      await settled();
      assert.equal(await browser.page('window.hurt'), undefined);
      assert.deepEqual(browser.requests.slice(before), [], 'no request');
      assert.equal(host.paths.includes('/hurt'), false);
    });
  }
});
host.stop();
