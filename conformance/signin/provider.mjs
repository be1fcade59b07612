// The certified OpenID provider `oidc-provider`, with its own discovery, keys and sign-in pages, on the loopback interface.
import { pathToFileURL } from 'node:url';
import { pinned } from '../clients/pinned.mjs';

const { default: Provider } = await import(pathToFileURL(pinned.resolve('oidc-provider')).href);

/** Starts a provider at `port` that accepts anybody, for the resource `endpoint`, with docent as one of its clients. */
export async function provider(port, endpoint, callback) {
  const issuer = `http://127.0.0.1:${port}`;
  // Ignores warnings about settings that a production provider should change.
  console.warn = () => {};
  console.info = () => {};
  const server = new Provider(issuer, {
    clients: [{
      client_id: 'docent', client_secret: 'a secret of some length, and then more',
      redirect_uris: [callback], grant_types: ['authorization_code'], response_types: ['code'],
    }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['groups'] },
    scopes: ['openid', 'offline_access', 'email', 'profile', 'docs.read'],
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@port.example`, email_verified: true, groups: ['crew'] }),
    }),
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: 'docs.read', audience: endpoint, accessTokenFormat: 'jwt', accessTokenTTL: 600, jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    pkce: { required: () => true },
    cookies: { keys: ['a key for cookies of a test'] },
  });
  const listener = await new Promise((resolve) => { const l = server.listen(port, '127.0.0.1', () => resolve(l)); });
  return { issuer, close: () => new Promise((resolve) => { listener.closeAllConnections(); listener.close(resolve); }) };
}
