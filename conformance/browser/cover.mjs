// Makes the picture on the front page of the documentation: results of the example corpus, as ChatGPT shows them.
//   cover.mjs <address of docent serve examples/parliament --preview> <file.webp>
import { writeFileSync } from 'node:fs';
import { Browser } from './chromium.mjs';

const [address, file] = process.argv.slice(2);
if (!file) {
  console.error('usage: cover.mjs <address of docent serve --preview> <file.webp>');
  process.exit(2);
}
const browser = await Browser.start(process.env.CHROMIUM ?? 'chromium');
try {
  const state = { tool: 'show_results', call: '1', host: 'chatgpt', theme: 'light', width: '768', args: JSON.stringify({ query: 'who pays for the winter ferry' }) };
  await browser.open(`${address}/preview#${new URLSearchParams(state)}`, { width: 1440, height: 2400 });
  await browser.until('cards', () => browser.frame(`document.querySelectorAll('.card mark').length > 0`));
  const shape = `(({ x, y, width, height }) => ({ x, y, width, height }))(document.querySelector('iframe').getBoundingClientRect())`;
  // The host resizes the frame as the widget requests.
  await browser.until('room', async () => (await browser.page(shape)).height > 800);
  await browser.frame('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))');
  const box = await browser.page(shape);
  const clip = { ...box, height: Math.min(box.height, 800), scale: 1.4 };
  const { data } = await browser.send('Page.captureScreenshot', { format: 'webp', quality: 80, clip });
  writeFileSync(file, Buffer.from(data, 'base64'));
} finally {
  await browser.stop();
}
