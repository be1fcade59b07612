// Signs real clients in through a real browser, and searches.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer } from 'node:https';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Browser } from '../browser/chromium.mjs';
import { program } from '../clients/pinned.mjs';
import { Caller, claims } from './client.mjs';
import { provider } from './provider.mjs';
import { Server } from './server.mjs';

const [docent, scratch, pictures] = process.argv.slice(2);
mkdirSync(pictures, { recursive: true });

const LISTEN = '127.0.0.1:8791';
const ENDPOINT = `http://${LISTEN}/mcp`;
const DOCUMENT = 'https://localhost:8792/client.json';
const PROVIDER = 8793;
const PASSWORD = 'a lamp at the quay';
const folder = join(scratch, 'parliament');

const browser = await Browser.start(process.env.CHROMIUM ?? 'chromium');
let server;
let failed = false;
try {
  await passwords();
  await providers();
} catch (error) {
  failed = true;
  console.error(error);
  if (server) console.error(server.said);
} finally {
  await server?.stop?.().catch(() => {});
  await browser.stop();
}
process.exit(failed ? 1 : 0);

function say(text) { console.log(`ok      ${text}`); }

/** Types into the page's form and presses a button. */
async function fill(values, button = 'button[value=allow]') {
  for (const [name, value] of Object.entries(values)) {
    await browser.page(`document.querySelector('[name=${name}]').value = ${JSON.stringify(value)}`);
  }
  await browser.page(`document.querySelector('${button}').click()`);
}

async function heading(text) {
  await browser.until(`the heading ${text}`, () => browser.page(`document.querySelector('h1')?.textContent.includes(${JSON.stringify(text)})`));
}

function arrived(caller, count) { return browser.until('the answer', () => caller.arrivals.length === count); }

async function passwords() {
  server = new Server(docent, folder, {
    DOCENT_AUTH_CLIENT_HOSTS: 'localhost:8792', DOCENT_AUTH_CLIENT_CA: join(scratch, 'ca.pem'), DOCENT_TITLE: 'Parliament of Corrowin',
  });
  const nobody = server.run(['serve', folder, '--listen', LISTEN, '--auth', 'password']);
  assert.equal(nobody.status, 2);
  assert.match(nobody.said, /docent user add NAME --path/);
  say('without users the command to type is named');
  const added = server.run(['user', 'add', 'anna', '--email', 'anna@port.example', '--group', 'crew', '--stdin', '--path', folder], `${PASSWORD}\n`);
  assert.equal(added.status, 0, added.said);
  await server.start(LISTEN, '--auth', 'password');
  const refused = await fetch(ENDPOINT, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } });
  assert.equal(refused.status, 401);

  const caller = new Caller(ENDPOINT);
  await caller.listen();
  await caller.search('housing', async (url) => {
    await look(url.href);
    await browser.open(url.href);
    await heading('Chart room');
    await fill({ name: 'anna', password: 'not the password' });
    await browser.until('the refusal', () => browser.page(`document.querySelector('.trouble')?.textContent.includes('do not go together')`));
    await browser.picture(join(pictures, 'wrong-password.png'));
    await fill({ name: 'anna', password: PASSWORD });
    await arrived(caller, 1);
  });
  assert.equal(caller.iss, `http://${LISTEN}`);
  const said = claims(caller.kept.access_token);
  assert.deepEqual([said.sub, said.aud, said.email, said.groups], ['anna', ENDPOINT, 'anna@port.example', ['crew']]);
  say('registration, a wrong password, the right one, a search');

  await restarted(caller);
  await denied();
  await byDocument();
  // A wrong password gets 403, which the console reports. Pages of other servers are not checked.
  assert.deepEqual(browser.complaints.filter((text) => !/status of 403/.test(text)), []);
  await official();
  await server.stop();
  caller.close();
}

/** Screenshots of the page, wide and narrow, light and dark, and of an error page. */
async function look(url) {
  for (const scheme of ['light', 'dark']) {
    await browser.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
    for (const width of [320, 1280]) {
      await browser.open(url, { width, height: 760 });
      const wide = await browser.page('document.documentElement.scrollWidth');
      assert.ok(wide <= width, `${wide} of ${width} pixels`);
      await browser.picture(join(pictures, `consent-${scheme}-${width}.png`));
    }
    await browser.open(`http://${LISTEN}/authorize?client_id=unknown`, { width: 320, height: 480 });
    await browser.picture(join(pictures, `error-${scheme}.png`));
  }
  browser.complaints = [];
  await browser.send('Emulation.setEmulatedMedia', { features: [] });
}

async function restarted(caller) {
  // Issued tokens are stored on disk before the response, so even a kill loses nothing.
  await server.stop('SIGKILL');
  await server.start(LISTEN, '--auth', 'password');
  const before = caller.kept;
  await caller.search('harbour');
  assert.equal(caller.kept.access_token, before.access_token, 'the token is good after a restart');
  caller.kept = { ...before, access_token: `${before.access_token}x` };
  await caller.search('housing');
  assert.notEqual(caller.kept.refresh_token, before.refresh_token);
  const [current, { client_id }] = [caller.kept, caller.information];
  const again = (token) => fetch(`http://${LISTEN}/token`, {
    method: 'POST', body: new URLSearchParams({ grant_type: 'refresh_token', client_id, refresh_token: token }),
  });
  await again(current.refresh_token);
  assert.equal((await again(before.refresh_token)).status, 400);
  caller.kept = current;
  await assert.rejects(caller.search('housing'), 'an old refresh token ends the grant');
  say('refresh after the server was killed, and the end of a grant whose old token comes back');
}

async function denied() {
  const caller = new Caller(ENDPOINT);
  await caller.listen();
  await assert.rejects(caller.search('housing', async (url) => {
    await browser.open(url.href);
    await heading('Chart room');
    await fill({}, 'button[value=deny]');
    await arrived(caller, 1);
  }));
  const [answer] = caller.arrivals;
  assert.deepEqual([answer.get('error'), answer.get('iss'), answer.get('state')], ['access_denied', `http://${LISTEN}`, caller.expected]);
  caller.close();
  say('who cancels sends the client an answer too');
}

async function byDocument() {
  const caller = new Caller(ENDPOINT, { document: DOCUMENT, name: 'Tide table' });
  await caller.listen();
  let fetched = 0;
  const tls = { key: readFileSync(join(scratch, 'host.key')), cert: readFileSync(join(scratch, 'host.pem')) };
  const host = createServer(tls, (request, response) => {
    if (request.url !== '/client.json') return bad(request, response);
    fetched += 1;
    const { client_name, token_endpoint_auth_method } = caller.clientMetadata;
    // Registered without a port, as native apps do.
    const document = { client_id: DOCUMENT, client_name, token_endpoint_auth_method, redirect_uris: ['http://127.0.0.1/callback'] };
    response.setHeader('content-type', 'application/json').setHeader('cache-control', 'max-age=600').end(JSON.stringify(document));
  });
  await new Promise((resolve) => host.listen(8792, 'localhost', resolve));
  await caller.search('housing', async (url) => {
    await browser.open(url.href);
    await heading('Tide table');
    assert.ok(await browser.page(`document.body.textContent.includes('Identified by localhost')`));
    await browser.picture(join(pictures, 'consent-document.png'));
    await fill({ name: 'anna', password: PASSWORD });
    await arrived(caller, 1);
  });
  assert.equal(claims(caller.kept.access_token).client_id, DOCUMENT);
  assert.equal(fetched, 1, 'the document is fetched once');
  await badDocuments();
  host.close();
  caller.close();
  say('a client by its document, fetched once, a search');
}

/** Malicious client metadata documents. */
function bad(request, response) {
  const at = `https://localhost:8792${request.url}`;
  const document = { client_id: at, redirect_uris: ['http://127.0.0.1/callback'] };
  const json = (value) => response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
  switch (request.url) {
    case '/redirect.json': return response.writeHead(302, { location: DOCUMENT }).end();
    case '/large.json': return json({ ...document, logo: 'x'.repeat(33 * 1024) });
    case '/other.json': return json({ ...document, client_id: DOCUMENT });
    case '/secret.json': return json({ ...document, client_secret: 'x' });
    case '/page.json': return response.setHeader('content-type', 'text/html').end(JSON.stringify(document));
    case '/missing.json': return response.writeHead(404).end();
    // Sends one byte from time to time and never ends.
    case '/slow.json': {
      response.writeHead(200, { 'content-type': 'application/json' });
      const drip = setInterval(() => response.write(' '), 200);
      return response.on('close', () => clearInterval(drip));
    }
    default: return json(document);
  }
}

async function badDocuments() {
  const ask = async (client) => {
    const query = new URLSearchParams({
      client_id: client, redirect_uri: 'http://127.0.0.1:1/callback', response_type: 'code',
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256',
    });
    const answer = await fetch(`http://${LISTEN}/authorize?${query}`, { redirect: 'manual' });
    return [answer.status, await answer.text()];
  };
  assert.equal((await ask('https://localhost:8792/good.json'))[0], 200);
  for (const name of ['redirect', 'large', 'other', 'secret', 'page', 'missing', 'slow']) {
    const [status, text] = await ask(`https://localhost:8792/${name}.json`);
    assert.equal(status, 400, name);
    assert.match(text, /cannot be identified/, name);
  }
  // The same host under a name that is not allowed, and without https.
  for (const client of ['https://127.0.0.1:8792/good.json', 'http://localhost:8792/good.json', 'https://localhost:8794/good.json']) {
    assert.equal((await ask(client))[0], 400, client);
  }
  say('documents that redirect, never end, are too large or lie are refused');
}

/** The official suite's scenarios for authorization servers. The browser acts as the person. */
async function official() {
  const registered = await fetch(`http://${LISTEN}/register`, {
    method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Official suite', redirect_uris: ['http://127.0.0.1:8796/callback'] }),
  });
  const { client_id } = await registered.json();
  const suite = program('@modelcontextprotocol/conformance', 'conformance');
  const args = [suite, 'authorization', '--url', `http://${LISTEN}`, '--client-id', client_id, '--resource', ENDPOINT, '--port', '8796'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => { said += data; });
  const url = await browser.until('the address', () => /^http:\S+\/authorize\?\S+$/m.exec(said)?.[0]);
  await browser.open(url);
  await heading('Official suite');
  await fill({ name: 'anna', password: PASSWORD });
  const status = await ended;
  if (status !== 0 || process.env.VERBOSE) console.log(said);
  assert.equal(status, 0, 'the official suite');
  say('the official suite\'s scenarios for authorization servers');
}

/** Signs in at the provider's own pages. */
async function atProvider(name) {
  await browser.until('the provider', () => browser.page(`location.port === '${PROVIDER}' && !!document.querySelector('[name=login]')`));
  await fill({ login: name, password: 'any' }, '[type=submit]');
  await browser.until('its consent', () => browser.page(`!document.querySelector('[name=login]') && (!!document.querySelector('form') || location.port !== '${PROVIDER}')`));
  if (await browser.page(`location.port === '${PROVIDER}'`)) await browser.page(`document.querySelector('[type=submit]').click()`);
}

async function providers() {
  const other = await provider(PROVIDER, ENDPOINT, `http://${LISTEN}/callback`);
  rmSync(join(folder, '.docent'), { recursive: true, force: true });

  server = new Server(docent, folder, { DOCENT_AUTH_ISSUERS: other.issuer, DOCENT_AUTH_PRIVATE_NETWORK: 'true' });
  await server.start(LISTEN);
  const direct = new Caller(ENDPOINT);
  await direct.listen();
  await direct.search('housing', async (url) => {
    assert.equal(url.origin, other.issuer);
    await browser.open(url.href);
    await atProvider('bo');
    await arrived(direct, 1);
  });
  const given = claims(direct.kept.access_token);
  assert.deepEqual([given.iss, given.aud, given.sub], [other.issuer, ENDPOINT, 'bo']);
  await server.stop();
  direct.close();
  say('a token of oidc-provider for our resource, a search');

  server = new Server(docent, folder, {
    DOCENT_AUTH_UPSTREAM_ISSUER: other.issuer, DOCENT_AUTH_UPSTREAM_CLIENT_ID: 'docent',
    DOCENT_AUTH_UPSTREAM_CLIENT_SECRET: 'a secret of some length, and then more',
  });
  await server.start(LISTEN, '--auth', 'upstream');
  const caller = new Caller(ENDPOINT);
  await caller.listen();
  await browser.send('Network.clearBrowserCookies');
  await caller.search('housing', async (url) => {
    await browser.open(url.href);
    await heading('Chart room');
    await browser.picture(join(pictures, 'consent-provider.png'));
    await fill({});
    await atProvider('cleo');
    await arrived(caller, 1);
  });
  const said = claims(caller.kept.access_token);
  assert.deepEqual([said.iss, said.sub, said.email, said.groups], [`http://${LISTEN}`, 'cleo', 'cleo@port.example', ['crew']]);
  await server.stop();
  server = undefined;
  caller.close();
  await other.close();
  say('sign-in at oidc-provider through docent, a search');
}
