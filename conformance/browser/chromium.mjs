// Drives Chromium over the DevTools protocol: pages, frames, screenshots, and console messages.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The timeout of any step; not the time that it should take. */
const PATIENCE = 30_000;

export class Browser {
  #last = 0;
  #waiting = new Map();
  #frames = [];

  /** The console and log messages of all frames, errors and warnings alike. */
  complaints = [];

  /** The URLs that frames requested, including their own. */
  requests = [];

  static async start(program) {
    const browser = new Browser();
    browser.folder = mkdtempSync(join(tmpdir(), 'docent-browser-'));
    const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--no-first-run',
      '--disable-background-networking', '--remote-debugging-port=0', `--user-data-dir=${browser.folder}`, 'about:blank'];
    browser.child = spawn(program, flags, { stdio: ['ignore', 'ignore', 'pipe'] });
    const address = await browser.#address();
    const pages = await (await fetch(`http://${address}/json`)).json();
    browser.socket = new WebSocket(pages.find((page) => page.type === 'page').webSocketDebuggerUrl);
    await new Promise((resolve, reject) => Object.assign(browser.socket, { onopen: resolve, onerror: reject }));
    browser.socket.onmessage = (event) => browser.#hear(JSON.parse(event.data));
    for (const part of ['Runtime', 'Log', 'Page']) await browser.send(`${part}.enable`);
    await browser.send('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
    return browser;
  }

  #address() {
    return new Promise((resolve, reject) => {
      let said = '';
      this.child.on('error', reject);
      // Once the address is known, the exit of the browser does not matter here.
      this.child.on('exit', () => reject(new Error(`the browser ended: ${said.slice(-500)}`)));
      this.child.stderr.on('data', (data) => {
        said += data;
        const found = /DevTools listening on ws:\/\/([^/]+)\//.exec(said);
        if (found) resolve(found[1]);
      });
    });
  }

  #hear(message) {
    if (message.id) {
      this.#waiting.get(message.id)?.(message);
      this.#waiting.delete(message.id);
    } else if (message.method === 'Target.attachedToTarget' && message.params.targetInfo.type === 'iframe') {
      const session = message.params.sessionId;
      this.#frames.push(session);
      for (const part of ['Runtime', 'Log', 'Network']) this.send(`${part}.enable`, {}, session);
    } else if (message.method === 'Target.detachedFromTarget') {
      this.#frames = this.#frames.filter((session) => session !== message.params.sessionId);
    } else if (message.method === 'Network.requestWillBeSent') {
      this.requests.push(message.params.request.url);
    } else if (message.method === 'Log.entryAdded' && message.params.entry.level !== 'info') {
      this.complaints.push(message.params.entry.text);
    } else if (message.method === 'Runtime.exceptionThrown') {
      this.complaints.push(message.params.exceptionDetails.exception?.description ?? message.params.exceptionDetails.text);
    } else if (message.method === 'Runtime.consoleAPICalled' && ['error', 'warning'].includes(message.params.type)) {
      this.complaints.push(message.params.args.map((one) => one.value ?? one.description).join(' '));
    }
  }

  send(method, params = {}, sessionId = undefined) {
    return new Promise((resolve, reject) => {
      const id = ++this.#last;
      this.#waiting.set(id, (answer) => (answer.error ? reject(new Error(`${method}: ${answer.error.message}`)) : resolve(answer.result)));
      this.socket.send(JSON.stringify({ id, method, params, sessionId }));
    });
  }

  async #evaluate(expression, session) {
    // Evaluates like a script of the page: what its policy forbids is forbidden here too.
    const asked = { expression, awaitPromise: true, returnByValue: true, allowUnsafeEvalBlockedByCSP: false };
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', asked, session);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** The value of an expression in the page. */
  page(expression) { return this.#evaluate(expression); }

  /** The value of an expression in the frame that was mounted last. */
  frame(expression) {
    const session = this.#frames.at(-1);
    if (!session) throw new Error('there is no frame');
    return this.#evaluate(expression, session);
  }

  /** Waits until `question` returns something true. */
  async until(what, question) {
    const end = Date.now() + PATIENCE;
    for (;;) {
      let answer;
      try { answer = await question(); } catch { answer = undefined; }
      if (answer) return answer;
      if (Date.now() > end) throw new Error(`never: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async open(url, { width = 1440, height = 900 } = {}) {
    await this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
    // A URL that differs only in its fragment is not loaded again, so leave the page first.
    await this.send('Page.navigate', { url: 'about:blank' });
    await this.until('an empty page', () => this.page(`location.href === 'about:blank'`));
    await this.send('Page.navigate', { url });
    await this.until(`${url} to load`, () => this.page(`location.href !== 'about:blank' && document.readyState === 'complete'`));
  }

  /** A screenshot of the viewport, or of one element with a small margin. */
  async picture(file, selector) {
    const asked = { format: 'png' };
    if (selector) {
      const [x, y, width, height] = await this.page(`(({ x, y, width, height }) => [x, y, width, height])(document.querySelector('${selector}').getBoundingClientRect())`);
      asked.clip = { x: x - 16, y: y - 16, width: width + 32, height: height + 32, scale: 1 };
    }
    const { data } = await this.send('Page.captureScreenshot', asked);
    writeFileSync(file, Buffer.from(data, 'base64'));
  }

  async stop() {
    this.socket?.close();
    const gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill();
    await gone;
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
