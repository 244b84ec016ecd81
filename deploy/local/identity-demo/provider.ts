import { type AdapterConstructor, type Configuration, Provider } from 'oidc-provider';
// @ts-expect-error: the types of the package lack its default adapter
import MemoryAdapter from 'oidc-provider/lib/adapters/memory_adapter.js';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

/** A person who can log in at the demo identity provider without a password. */
export interface Person {
  subject: string;
  name: string;
  email: string;
  emailVerified: boolean;
  suborgs: readonly string[];
}

interface ProviderOptions {
  issuer: string;
  client: { id: string; secret: string; redirectUri: string; backchannelLogoutUri?: string | undefined };
  people: readonly Person[];
}

const escape = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const page = (title: string, body: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>
<style>body { font: 1.1rem system-ui; max-width: 40rem; margin: 4rem auto } button { font: inherit; display: block; margin: .5rem 0 } pre { white-space: pre-wrap; overflow-wrap: anywhere }</style>
<h1>${title}</h1>${body}</html>`;

const button = (value: string, label: string): string =>
  `<button name="subject" value="${escape(value)}">${escape(label)}</button>`;

/** Renders the login form. An empty subject denies the login. */
const choicePage = (people: readonly Person[]): string =>
  page(
    'Who are you?',
    `<form method="post">${people.map(({ subject, name, email, emailVerified }) => button(subject, `${name}, ${email}${emailVerified ? '' : ' (not verified)'}`)).join('')}${button('', 'Cancel')}</form>`,
  );

/** Renders an error that cannot be returned to the client. */
const errorPage = (message: string): string => page('The login failed', `<p>${escape(message)}</p>`);

/** Renders the end of a demo login: the parameters that an app would get. */
const returnPage = (query: URLSearchParams): string =>
  page(
    query.has('code') ? 'You are back' : 'You were refused',
    `<p>${query.has('code') ? 'The code below is valid for one minute, together with the verifier. Paste it into the command on the terminal.' : 'The client gets this error:'}</p><pre>${[...query].map(([name, value]) => escape(`${name}=${value}`)).join('\n')}</pre>`,
  );

const keyFor = (alg: string) => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), alg, use: 'sig' };
};

function configurationOf({ client, people }: ProviderOptions): Configuration {
  return {
    // Named, because the library warns of its default.
    adapter: MemoryAdapter as AdapterConstructor,
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        redirect_uris: [client.redirectUri],
        // Allows every person to use the platform; issues no refresh tokens.
        grant_types: ['authorization_code'],
        response_types: ['code'],
        ...(client.backchannelLogoutUri && {
          backchannel_logout_uri: client.backchannelLogoutUri,
          backchannel_logout_session_required: true,
        }),
      },
    ],
    claims: { openid: ['sub', 'suborgs'], email: ['email', 'email_verified'], profile: ['name'] },
    scopes: ['openid'],
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
    // The dispatcher of the library refuses addresses of this machine, where the clients are.
    fetch(url, options) {
      Reflect.deleteProperty(options!, 'dispatcher');
      return fetch(url, options);
    },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    renderError(context, { error, error_description }) {
      context.type = 'html';
      context.body = errorPage(`${error}: ${error_description ?? ''}`);
    },
    cookies: { keys: [randomBytes(32).toString('hex')] },
    jwks: { keys: [keyFor('RS256')] },
    ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    findAccount(_context, subject) {
      const person = people.find((one) => one.subject === subject);
      if (!person) return undefined;
      const { name, email, emailVerified, suborgs } = person;
      return {
        accountId: subject,
        claims: () => ({ sub: subject, name, email, email_verified: emailVerified, suborgs: [...suborgs] }),
      };
    },
    /** Grants consent without asking, because the platform is the only client. */
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client!.clientId,
        accountId: oidc.session!.accountId!,
      });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
  };
}

const showPage = (response: ServerResponse, html: string): void =>
  void response.setHeader('Content-Type', 'text/html; charset=utf-8').end(html);

/** An OpenID provider in memory: people choose an identity. /return shows the parameters that a client would get. */
export function createIdentityProvider(options: ProviderOptions): RequestListener {
  const provider = new Provider(options.issuer, configurationOf(options));
  const oidc = provider.callback();

  async function interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') return showPage(response, choicePage(options.people));
    const subject = new URLSearchParams(await text(request)).get('subject');
    const result = subject
      ? { login: { accountId: subject } }
      : { error: 'access_denied', error_description: 'The user cancelled the login.' };
    await provider.interactionFinished(request, response, result);
  }

  return (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', options.issuer);
    if (pathname === '/return') return showPage(response, returnPage(searchParams));
    if (!pathname.startsWith('/interaction/')) return void oidc(request, response);
    interact(request, response).catch((error: Error) => {
      response.statusCode = 400;
      showPage(response, errorPage(error.message));
    });
  };
}
