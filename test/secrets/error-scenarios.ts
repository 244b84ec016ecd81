import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { emails } from '../support/accounts.ts';
import { newPushToken } from '../support/devices.ts';
import { announce } from '../support/events.ts';
import { newLetter } from '../support/letters.ts';
import { newPdf } from '../support/media.ts';
import type { OwnStack } from '../support/own-stack.ts';
import { database } from '../support/records.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { isStackReady } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { logIn, newPassword, type Client } from './client.ts';
import type { NewPerson } from './scenarios.ts';

/** Requests that write to each table. Under a constraint that always fails, PostgreSQL quotes the refused row. */
function writers(client: Client, person: NewPerson): Record<string, () => Promise<unknown>> {
  const { keep, send } = client;
  const { email, password, admin } = person;
  const login = () => send('/api/login', { json: { email, password } });
  return {
    'auth.session': login,
    'auth.refresh_token': login,
    'audit.entry': login,
    'auth.user': () =>
      send('/api/admin/users', {
        json: { email: `${randomUUID()}@example.com`, name: 'X', password: keep('password', newPassword()) },
        token: admin,
      }),
    'auth.identity_login': () =>
      send(
        `/api/identity/login?return_to=https://app.example.com/signed-in&state=x&code_challenge=${'x'.repeat(43)}`,
      ),
    'devices.device': () =>
      send('/api/register-fcm-token', { json: { token: keep('push token', newPushToken()) }, token: admin }),
    'letters.history': async () => {
      const letter = await newLetter({ userId: person.id }).catch(() => 1);
      return send(`/api/letters/${letter}`, {
        method: 'PATCH',
        json: { title: 'Y' },
        token: admin,
        headers: { 'If-Match': '*' },
      });
    },
    'media.file': () => {
      const body = new FormData();
      body.set('file', new File([newPdf()], 'a.pdf'));
      return send('/api/upload', { body, token: admin });
    },
    'content.failed_job': () => announce(keep('text of an event', `not JSON ${randomUUID()}`)),
  };
}

/** Causes every kind of fault while requests with secrets are in progress. */
export async function runErrorScenarios(
  client: Client,
  person: NewPerson,
  own: OwnStack,
  redis: RedisServer,
): Promise<void> {
  const { keep, send } = client;
  const sql = (text: string) => database().query(text);
  const login = () => send('/api/login', { json: { email: person.email, password: person.password } });
  const wrong = () =>
    send('/api/login', { json: { email: emails.user, password: keep('wrong password', newPassword()) } });

  for (const [table, write] of Object.entries(writers(client, person))) {
    await sql(`ALTER TABLE ${table} ADD CONSTRAINT nobody CHECK (false) NOT VALID`);
    await write();
    if (table === 'content.failed_job')
      await until('it is refused', () => own.logs().includes('failed_job" violates check'));
    await sql(`ALTER TABLE ${table} DROP CONSTRAINT nobody`);
  }
  await sql('ALTER TABLE auth.session RENAME TO elsewhere');
  await login();
  await send('/api/me', { token: person.admin });
  await sql('ALTER TABLE auth.elsewhere RENAME TO session');

  const asked = Promise.all([login(), wrong(), login()]);
  await sql('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()').catch(
    () => undefined,
  );
  await asked;

  // Changing the password of Redis makes Redis refuse every process.
  const other = keep('password of Redis', newPassword().replaceAll(/[^A-Za-z0-9]/g, ''));
  const usual = new URL(redis.url).password;
  const { admin } = redis;
  const before = ((await admin.config('GET', 'requirepass')) as string[])[1]!;
  await admin.config('SET', 'requirepass', other);
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await Promise.all([login(), wrong(), send('/api/content/webform/2', { token: person.admin })]);
  await sleep(1_500);
  await admin.config('SET', 'requirepass', before || usual);
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');

  for (const service of ['auth', 'letters', 'devices']) {
    process.kill(own.pidOf(service), 'SIGKILL');
    await Promise.all([login(), wrong(), send('/api/letters', { token: person.admin })]);
  }
  await until('every service is ready', isStackReady, 120_000);
  await logIn(client, person.email, person.password);
}
