import { expect, test } from '@jest/globals';
import { client } from '../../../test/support/identity.ts';
import { until } from '../../../test/support/wait.ts';
import { createProvider } from './provider.ts';
import { type EvilProvider, useEvilProvider } from '../testing/evil-provider.ts';

const path = '/.well-known/openid-configuration';
const json = { 'Content-Type': 'application/json' };
const elsewhere = { Location: '/jwks' };
const evil = useEvilProvider();

const provider = () =>
  createProvider({ issuer: evil.issuer, clientId: client.id, clientSecret: client.secret });
const asked = () => evil.asked.filter((one) => one === path).length;

test('discovers the provider once for concurrent calls, and not again for a while', async () => {
  const { configuration } = provider();
  const all = await Promise.all(Array.from({ length: 20 }, configuration));
  expect(new Set(all).size).toBe(1);
  expect(await configuration()).toBe(all[0]);
  expect(asked()).toBe(1);
});

test('pauses after a failed discovery, then tries again', async () => {
  const { configuration } = provider();
  evil.answers[path] = (response) => response.writeHead(500).end();
  const all = await Promise.allSettled(Array.from({ length: 20 }, configuration));
  expect(all.every(({ status }) => status === 'rejected')).toBe(true);
  await expect(configuration()).rejects.toMatchObject({ code: 'identity_unavailable' });
  expect(asked()).toBe(1);
  delete evil.answers[path];
  await until('it is asked again', () => configuration().then(() => true));
  expect(asked()).toBe(2);
});

test.each<[string, (evil: EvilProvider) => unknown]>([
  ['is silent', ({ answers }) => (answers[path] = () => undefined)],
  ['shows a page', ({ answers }) => (answers[path] = (response) => response.end('<html>'))],
  ['answers with a list', ({ answers }) => (answers[path] = (r) => r.writeHead(200, json).end('[]'))],
  ['sends elsewhere', ({ answers }) => (answers[path] = (r) => r.writeHead(302, elsewhere).end())],
  ['says that it is another one', ({ metadata }) => (metadata['issuer'] = 'https://other.example')],
  ['has no token endpoint', ({ metadata }) => (metadata['token_endpoint'] = undefined)],
  ['has no keys', ({ metadata }) => (metadata['jwks_uri'] = undefined)],
  ['has no place to log in', ({ metadata }) => (metadata['authorization_endpoint'] = undefined)],
])('reports a provider that %s as unavailable', async (_, change) => {
  change(evil);
  await expect(provider().configuration()).rejects.toMatchObject({ code: 'identity_unavailable' });
});
