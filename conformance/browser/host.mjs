// A host for one widget: a page that mounts it in a sandboxed frame, under the policy that hosts derive for a widget
// without domains. It speaks the standard, `window.openai`, or both.
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';

/** The result of `docent_mcp::csp::policy` for a widget that declares no domains, plus Trusted Types, so that no text
 * can become markup or script. */
const POLICY = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
  + "img-src 'self' data:; font-src 'self'; media-src 'self' data:; frame-src 'none'; object-src 'none'; base-uri 'self'; "
  + "require-trusted-types-for 'script'; trusted-types 'none'";

const LOOKS = {
  'chatgpt light': ['#ffffff', '#f4f4f4', '#0d0d0d', '#5d5d5d', '#e3e3e3'],
  'chatgpt dark': ['#212121', '#2f2f2f', '#ececec', '#b4b4b4', '#424242'],
  'claude light': ['#faf9f5', '#f0eee6', '#141413', '#5e5d59', '#dedcd1'],
  'claude dark': ['#262624', '#30302e', '#faf9f5', '#b0aea5', '#3f3e3a'],
};

const PAGE = `<!doctype html><html><head><meta charset="utf-8"><title>host</title><style>
  body { margin: 0; padding: 24px; font: 15px system-ui; display: grid; justify-items: center; }
  body.fullscreen { padding: 0; display: block; }
  iframe { border: 0; width: 100%; height: 40px; display: block; }
  #card { border: 1px solid #8884; border-radius: 16px; overflow: hidden; }
  .fullscreen #card { width: 100vw !important; border: 0; border-radius: 0; } .fullscreen iframe { height: 100vh !important; }
</style></head><body><div id="card"></div><script>(${host})()</script></body></html>`;

/** Runs in the host's page. */
function host() {
  const asked = window.asked = [];
  let frame, setting, answers = {};
  const send = (message) => frame.contentWindow.postMessage({ jsonrpc: '2.0', ...message }, '*');
  window.mount = (wanted) => {
    setting = wanted;
    answers = wanted.answers ?? {};
    asked.length = 0;
    document.body.className = wanted.mode;
    document.body.style.background = wanted.variables['--color-background-primary'];
    frame = document.createElement('iframe');
    frame.title = 'widget';
    frame.setAttribute('sandbox', 'allow-scripts');
    frame.style.colorScheme = wanted.theme;
    frame.src = `/widget/${wanted.widget}?${new URLSearchParams({ speaks: wanted.speaks, state: JSON.stringify(globals()) })}`;
    const card = document.getElementById('card');
    card.style.width = `${wanted.width}px`;
    card.replaceChildren(frame);
  };
  window.deliver = (result) => send({ method: 'ui/notifications/tool-result', params: result });
  window.cancel = () => send({ method: 'ui/notifications/tool-cancelled', params: { reason: 'user' } });
  window.change = (news) => {
    Object.assign(setting, news);
    send({ method: 'ui/notifications/host-context-changed', params: context() });
  };
  const modes = () => setting.modes ?? ['inline', 'fullscreen'];
  const context = () => ({ theme: setting.theme, locale: setting.locale, displayMode: setting.mode, availableDisplayModes: modes(),
    styles: { variables: setting.variables }, platform: 'web', containerDimensions: { width: setting.width } });
  const globals = () => ({ theme: setting.theme, locale: setting.locale, displayMode: setting.mode, toolInput: setting.args ?? {},
    toolOutput: setting.result?.structuredContent ?? null,
    toolResponseMetadata: setting.result ? { status: 'completed', mcp_tool_result: setting.result } : null });
  const grow = (mode) => {
    if (!modes().includes(mode)) return setting.mode;
    setting.mode = mode;
    document.body.className = mode;
    return mode;
  };
  const call = async (name, args) => {
    const answer = answers[name] ?? [];
    const next = answer.length > 1 ? answer.shift() : answer[0];
    if (next === 'never') return new Promise(() => {});
    if (next === undefined) throw new Error(`no answer for ${name}`);
    return next;
  };
  window.addEventListener('message', async (event) => {
    if (event.source !== frame?.contentWindow) return;
    const { jsonrpc, id, method, params, openai, args } = event.data ?? {};
    if (openai) {
      asked.push({ openai, args });
      let result;
      try {
        if (openai === 'callTool') result = await call(...args);
        if (openai === 'requestDisplayMode') result = { mode: grow(args[0].mode) };
        if (openai === 'notifyIntrinsicHeight') frame.style.height = `${args[0]}px`;
        frame.contentWindow.postMessage({ answer: id, result }, '*');
      } catch (error) { frame.contentWindow.postMessage({ answer: id, error: error.message }, '*'); }
      return;
    }
    if (jsonrpc !== '2.0' || setting.speaks === 'openai') return;
    if (method !== 'ui/notifications/size-changed') asked.push({ method, params });
    let result = {};
    try {
      if (method === 'ui/initialize') result = { protocolVersion: '2026-01-26', hostInfo: { name: 'fake', version: '1' }, hostCapabilities: {}, hostContext: context() };
      if (method === 'tools/call') result = await call(params.name, params.arguments);
      if (method === 'ui/request-display-mode') { result = { mode: grow(params.mode) }; }
      if (method === 'ui/notifications/size-changed' && setting.mode === 'inline') frame.style.height = `${params.height}px`;
      if (id !== undefined) send({ id, result });
    } catch (error) { if (id !== undefined) send({ id, error: { code: -32000, message: error.message } }); }
    if (method === 'ui/request-display-mode') send({ method: 'ui/notifications/host-context-changed', params: context() });
    if (method !== 'ui/notifications/initialized') return;
    if (setting.args) send({ method: 'ui/notifications/tool-input', params: { arguments: setting.args } });
    if (setting.result) window.deliver(setting.result);
  });
}

/** Runs first in the widget's frame where the host has `window.openai`. */
function openai(state) {
  let last = 0;
  const waiting = new Map();
  const call = (name) => (...args) => new Promise((resolve, reject) => {
    waiting.set(++last, { resolve, reject });
    parent.postMessage({ openai: name, id: last, args }, '*');
  });
  window.openai = { ...state };
  for (const name of ['callTool', 'sendFollowUpMessage', 'requestDisplayMode', 'openExternal', 'notifyIntrinsicHeight']) window.openai[name] = call(name);
  window.addEventListener('message', (event) => {
    if (event.source !== parent || !event.data?.answer) return;
    const { resolve, reject } = waiting.get(event.data.answer) ?? {};
    waiting.delete(event.data.answer);
    if (event.data.error) reject?.(new Error(event.data.error)); else resolve?.(event.data.result);
  });
}

/** Serves the page and the widgets of a folder, and at `/official` the official host, whose script is a file. `paths`
 * contains the path of every request. */
export async function serve(folder, official) {
  const paths = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://host');
    paths.push(url.pathname);
    const widget = /^\/widget\/(\w+)$/.exec(url.pathname)?.[1];
    if (widget) {
      let html = readFileSync(`${folder}/${widget}.html`, 'utf8');
      if (url.searchParams.get('speaks') !== 'standard') {
        const state = url.searchParams.get('state').replaceAll('<', '\\u003c');
        html = html.replace('<head>', () => `<head><script>(${openai})(${state})</script>`);
      }
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': POLICY }).end(html);
    } else if (url.pathname === '/official') {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<!doctype html><title>official</title><body><script src="/official.js"></script>');
    } else if (url.pathname === '/official.js') {
      response.writeHead(200, { 'content-type': 'text/javascript' }).end(readFileSync(official));
    } else if (url.pathname === '/') {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(PAGE);
    } else response.writeHead(url.pathname === '/favicon.ico' ? 204 : 404).end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { address: `http://127.0.0.1:${server.address().port}`, paths, stop: () => server.close() };
}

export function variables(host, theme) {
  const [page, well, text, soft, line] = LOOKS[`${host} ${theme}`];
  return {
    '--color-background-primary': page, '--color-background-secondary': well, '--color-text-primary': text,
    '--color-text-secondary': soft, '--color-border-primary': line, '--font-sans': 'system-ui, sans-serif',
    '--font-text-sm-size': '13px', '--border-radius-lg': '12px',
  };
}
