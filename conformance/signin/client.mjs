// The TypeScript SDK's client, with an OAuth provider that keeps everything in memory, and a redirect endpoint.
import { createServer } from 'node:http';
import { pinned } from '../clients/pinned.mjs';

const { Client } = pinned('mcp-sdk-1/client/index.js');
const { StreamableHTTPClientTransport } = pinned('mcp-sdk-1/client/streamableHttp.js');
const { UnauthorizedError } = pinned('mcp-sdk-1/client/auth.js');

export class Caller {
  constructor(endpoint, { document, name = 'Chart room' } = {}) {
    Object.assign(this, { endpoint, document, name });
  }

  /** Listens for authorization codes on any free port, as a program on the user's machine does. */
  async listen() {
    this.arrivals = [];
    this.page = createServer((request, response) => {
      const url = new URL(request.url, 'http://127.0.0.1');
      if (url.pathname === '/callback') this.arrivals.push(url.searchParams);
      response.setHeader('content-type', 'text/html').end('<title>Arrived</title><link rel=icon href=data:,><p>You can close this page.');
    });
    await new Promise((resolve) => this.page.listen(0, '127.0.0.1', resolve));
    this.redirectUrl = `http://127.0.0.1:${this.page.address().port}/callback`;
  }

  close() { this.page.close(); }

  // The interface that the SDK expects of a provider.
  get clientMetadata() {
    return {
      client_name: this.name, redirect_uris: [this.redirectUrl], token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], application_type: 'native',
    };
  }
  get clientMetadataUrl() { return this.document; }
  state() { return (this.expected = crypto.randomUUID()); }
  clientInformation() { return this.information; }
  saveClientInformation(information) { this.information = information; }
  tokens() { return this.kept; }
  saveTokens(tokens) { this.kept = tokens; }
  redirectToAuthorization(url) { this.asked = url; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  codeVerifier() { return this.verifier; }

  #transport() { return new StreamableHTTPClientTransport(new URL(this.endpoint), { authProvider: this }); }

  /** Searches. Signs in first if the server requires it, with `visit` as the person at the browser. */
  async search(query, visit) {
    let client = new Client({ name: this.name, version: '1.0.0' });
    let transport = this.#transport();
    try {
      await client.connect(transport);
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || !visit) throw error;
      const before = this.arrivals.length;
      await visit(this.asked);
      const arrived = this.arrivals.at(-1);
      if (this.arrivals.length !== before + 1) throw new Error(`${this.arrivals.length - before} answers came`);
      if (arrived.get('state') !== this.expected) throw new Error('the state is another one');
      this.iss = arrived.get('iss');
      await transport.finishAuth(arrived.get('code'));
      client = new Client({ name: this.name, version: '1.0.0' });
      transport = this.#transport();
      await client.connect(transport);
    }
    const answer = await client.callTool({ name: 'search', arguments: { query } });
    await client.close();
    const { results } = JSON.parse(answer.content[0].text);
    if (!results?.length) throw new Error(`nothing was found: ${answer.content[0].text.slice(0, 200)}`);
    return results;
  }
}

/** The claims of a token, not verified. */
export function claims(token) {
  return JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString());
}
