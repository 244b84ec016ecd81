import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { connect } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { listAudit, services } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { stackFilePath } from '../../deploy/local/config.ts';
import { freePort } from '../../deploy/local/ports.ts';
import { writePrivate } from '../../deploy/local/state.ts';
import { newUser, tokenOf } from '../support/accounts.ts';
import { raceWhile } from '../support/gateway-race.ts';
import { read } from '../support/platform.ts';
import { stack } from '../support/stack.ts';
import { until, within } from '../support/wait.ts';
import { compose, containersOf, docker, killFor, writeStack } from './docker.ts';
import { closeAfterRaces, expectNoFailure, untilStackReady } from './races.ts';

/** Traffic through Caddy to four gateways. */
const traffic = { readsPerSecond: 200, changesPerSecond: 3 };
const original = { ...process.env };
const up = (...args: string[]) => compose('up', '--detach', '--wait', '--no-build', ...args);
const names = services.map(({ name }) => name);
let url: string;
let plainUrl: string;

/** Adds deploy/compose/edge.yml to the stack, before the file that publishes the internal listeners for the tests. */
beforeAll(async () => {
  const [http, https] = [await freePort(), await freePort()];
  [plainUrl, url] = [`http://localhost:${http}`, `https://localhost:${https}`];
  Object.assign(process.env, {
    COMPOSE_FILE: process.env['COMPOSE_FILE']!.replace(/:[^:]+$/, ':deploy/compose/edge.yml$&'),
    HTTP_PORT: String(http),
    HTTPS_PORT: String(https),
    PUBLIC_URL: '',
    // All tests have one client IP address, because Caddy replaces X-Forwarded-For.
    RATE_LIMIT_SCALE: '0',
  });
  await up('--scale', 'gateway=4', ...names, 'caddy');
  writePrivate(stackFilePath(), { ...stack(), gateway: url });
  const authority = await until('Caddy has made its authority', () =>
    compose('exec', '-T', 'caddy', 'cat', '/data/caddy/pki/authorities/local/root.crt'),
  );
  setDefaultCACertificates([...getCACertificates('default'), authority]);
  await until('reads work', async () => (await read('webform', 1)).status === 200, 120_000);
}, 600_000);
afterAll(async () => {
  Object.assign(process.env, original);
  await up('--remove-orphans', ...names);
  await writeStack();
  await untilStackReady();
  // Compose does not remove what only edge.yml names. The network would be in the way of the next run.
  await docker(['network', 'rm', `${process.env['COMPOSE_PROJECT_NAME']}_gateways`]);
  await docker(['volume', 'rm', `${process.env['COMPOSE_PROJECT_NAME']}_caddy`]);
}, 600_000);
closeAfterRaces();

test('serves HTTP/2 with HSTS, and redirects http to https', async () => {
  const session = connect(url);
  const request = session.request({ ':path': '/api/openapi.json' });
  const [headers] = await within(
    'the response',
    new Promise<[Record<string, unknown>]>((resolve, reject) => {
      request.once('response', (...args) => resolve([args[0]]));
      session.once('error', reject);
    }),
  );
  session.destroy();
  expect(headers).toMatchObject({
    ':status': 200,
    'strict-transport-security': expect.stringMatching(/^max-age=\d+/),
  });
  const redirected = await fetch(`${plainUrl}/api/me`, { redirect: 'manual' });
  expect(redirected.status).toBe(308);
  expect(redirected.headers.get('location')).toBe(`${url}/api/me`);
});

test('the gateway uses the IP address that Caddy saw, whatever the client claims', async () => {
  const { id, email, password } = await newUser();
  await fetch(`${url}/api/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': '203.0.113.9' },
    body: JSON.stringify({ email, password }),
  });
  const token = await tokenOf(url, 'admin');
  const { body } = await call(url, listAudit, { query: { user_id: id, event: 'login' }, token });
  // The address of this host in Docker's network.
  for (const { address } of body!.items) expect(address).toMatch(/^(172|192)\.[\d.]+\.1$/);
});

test('a gateway that is killed and the replacement of all four fail no request', async () => {
  const figures = await raceWhile(traffic, async () => {
    await sleep(2_000);
    const [first] = await containersOf('gateway');
    await killFor(first!, 3);
    for (const old of await containersOf('gateway')) {
      await up('--no-deps', '--no-recreate', '--scale', 'gateway=5', 'gateway');
      await docker(['stop', old]);
      await docker(['rm', old]);
    }
  });
  await expectNoFailure('gateways killed and replaced', figures);
}, 600_000);

test('a gateway that hangs gets no more requests', async () => {
  const [first] = await containersOf('gateway');
  await docker(['pause', first!]);
  try {
    // Three missed health checks.
    await sleep(4_000);
    for (let count = 0; count < 40; count += 1)
      expect((await within('a read', read('webform', 1), 5_000)).status).toBe(200);
  } finally {
    await docker(['unpause', first!]);
  }
});
