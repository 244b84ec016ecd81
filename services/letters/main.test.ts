import { expect, test } from '@jest/globals';
import { startService } from '../../test/support/programs.ts';
import { until } from '../../test/support/wait.ts';
import { startAuthStub } from '../../test/support/auth-stub.ts';
import { calledAfterEach } from '../../test/support/called-after-each.ts';
import { useLetters } from './testing/letters.ts';

const letters = useLetters();
const closers = calledAfterEach();

async function start(authUrl: string) {
  const env = { AUTH_URL: authUrl, AUTH_INTERNAL_URL: authUrl, DATABASE_URL: letters.databaseUrl };
  const { child, ended, internal, output } = await startService('services/letters/main.ts', { env });
  closers.push(() => child.kill('SIGKILL'));
  const readiness = async () => {
    const response = await fetch(`${internal}/health/ready`);
    return { status: response.status, body: (await response.json()) as { checks: Record<string, string> } };
  };
  const logged = (message: string) =>
    output.stdout.split('\n').filter((line) => line.includes(`"message":"${message}"`));
  return { child, ended, readiness, logged };
}

const paths = ['/revocations', '/.well-known/jwks.json'];
test.each(paths)('is not ready until it has fetched %s, and logs once what it waits for', async (path) => {
  const auth = await startAuthStub();
  closers.push(auth.close);
  auth.hangs = new RegExp(`^${path}`);
  const { child, ended, readiness, logged } = await start(auth.url);
  await until('its stores are there', async () => {
    expect(await readiness()).toEqual({
      status: 503,
      body: { status: 'unavailable', checks: { postgres: 'ok', tokens: 'unavailable' } },
    });
    return true;
  });
  const waiting = await until('it says so', () => logged('not ready: waiting for required checks')[0]);
  expect(JSON.parse(waiting)).toMatchObject({ level: 'warn', failing: ['tokens'] });
  const asked = auth.requests;
  await until('it asks again', () => auth.requests > asked + 2);
  expect(logged('ready')).toEqual([]);
  auth.hangs = /^$/;
  await until('it is ready', async () => (await readiness()).status === 200);
  expect((await readiness()).body).toEqual({ status: 'ok', checks: { postgres: 'ok', tokens: 'ok' } });
  await until('it says so', () => logged('ready').length === 1);
  expect(logged('not ready: waiting for required checks')).toHaveLength(1);
  child.kill('SIGTERM');
  expect(await ended).toMatchObject({ code: 0, stderr: '' });
});
