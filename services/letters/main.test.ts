import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freeRow } from '../../test/support/ports.ts';
import { bareEnvironment } from '../../test/support/processes.ts';
import { until } from '../../test/support/wait.ts';
import { startAuthStub, type AuthStub } from '../../test/support/auth-stub.ts';
import { startLetters, type TestLetters } from './testing/letters.ts';

let letters: TestLetters;
let auth: AuthStub;
const closers: (() => unknown)[] = [];
beforeAll(async () => {
  letters = await startLetters();
  auth = await startAuthStub();
});
afterEach(() => closers.splice(0).forEach((close) => close()));
afterAll(async () => {
  auth.close();
  await letters.stop();
});

const main = fileURLToPath(new URL('main.ts', import.meta.url));

async function start() {
  const port = await freeRow(1);
  const env = {
    ...bareEnvironment,
    AUTH_URL: auth.url,
    AUTH_INTERNAL_URL: auth.url,
    DATABASE_URL: letters.databaseUrl,
    PORT: String(port),
  };
  const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  closers.push(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  const ended = once(child, 'exit').then(([code]) => code as number);
  const readiness = async () => {
    const response = await fetch(`http://127.0.0.1:${port + 1000}/health/ready`);
    return { status: response.status, body: (await response.json()) as { checks: Record<string, string> } };
  };
  const logged = (message: string) =>
    output.split('\n').filter((line) => line.includes(`"message":"${message}"`));
  return { child, ended, readiness, logged };
}

test('is not ready until it has the keys and revocations, and logs once what it waits for', async () => {
  auth.hangs = true;
  const { child, ended, readiness, logged } = await start();
  await until('its stores are there', async () => (await readiness()).body.checks['postgres'] === 'ok');
  expect(await readiness()).toEqual({
    status: 503,
    body: { status: 'unavailable', checks: { postgres: 'ok', tokens: 'unavailable' } },
  });
  const [waiting] = await until('it says so', () => {
    const lines = logged('not ready: waiting for required checks');
    return lines.length > 0 && lines;
  });
  expect(JSON.parse(waiting!)).toMatchObject({ level: 'warn', failing: ['tokens'] });
  expect(logged('ready')).toEqual([]);
  // After this time, more than one fetch has timed out.
  const asked = auth.requests;
  await until('it asks again', () => auth.requests > asked + 2);
  auth.hangs = false;
  await until('it is ready', async () => (await readiness()).status === 200);
  expect((await readiness()).body).toEqual({ status: 'ok', checks: { postgres: 'ok', tokens: 'ok' } });
  await until('it says so', () => logged('ready').length === 1);
  expect(logged('not ready: waiting for required checks')).toHaveLength(1);
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test('deletes nothing at start', async () => {
  const id = await letters.letter();
  await letters.skip(id, {}, { 'Idempotency-Key': 'old' });
  const { query } = letters.database;
  await query('test', `UPDATE letters.idempotency_key SET created_at = now() - interval '25 hours'`);
  const { child, ended, readiness } = await start();
  await until('it is ready', async () => (await readiness()).status === 200);
  expect((await query('test', 'SELECT FROM letters.idempotency_key')).rowCount).toBe(1);
  child.kill('SIGINT');
  expect(await ended).toBe(0);
});
