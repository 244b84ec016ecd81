import { expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { createClient, disableClient, rotateClient } from './commands/clients.ts';
import type { Command } from './commands/command.ts';
import { createUser, importUsers } from './commands/users.ts';
import { password, useAuth } from './testing/start-auth.ts';

const auth = useAuth();

interface Entry {
  event: contract.AuditEvent;
  user_id: string | null;
  actor: string | null;
  address: string | null;
  details: Record<string, unknown>;
}

/** Returns the last line of the output, which is the new secret, if there is one. */
const run = async (command: Command, args: string[], input = '') =>
  (await auth.run(command, args, input)).split('\n').at(-1)!;

/** Every secret, and every text that a stranger typed, of one run, by its kind. */
const typed: Record<string, string> = {
  password,
  'a wrong password': 'not the password of anybody',
  'a new password': 'eleven quiet herons read maps',
  'an unknown address': 'stranger@nowhere.example',
  'an unknown client': 'stranger-client',
  'a wrong secret': 'not the secret of anything',
  'an unknown refresh token': 'x'.repeat(43),
};

test('records every step of an account, but no secrets and no text from strangers', async () => {
  const { logIn, refresh, askAsClient: client } = auth;

  typed['a secret'] = await run(createClient, ['console', '--scope', 'jobs:manage']);
  typed['a token'] = (await client('console', typed['a secret'])).body!.access_token;
  // A second token within an hour adds no row.
  typed['another token'] = (await client('console', typed['a secret'])).body!.access_token;
  await client('console', typed['a wrong secret']!);
  await client(typed['an unknown client']!, typed['a secret']);

  await run(createUser, ['--email', 'root@example.com', '--name', 'Root', '--role', 'admin'], password);
  const { id: rootId, passwordHash } = (await auth.stores.users.findByEmail('root@example.com'))!;
  typed['a hash'] = passwordHash!;
  const imported = { email: 'new@example.com', name: 'New', password_hash: passwordHash };
  await run(importUsers, [], JSON.stringify(imported));
  const token = (await logIn('root@example.com', password)).body!.token;
  typed["an admin's token"] = token;
  const person = { email: 'ann@example.com', name: 'Ann', password };
  const { id } = (await auth.ask(contract.createUser, { body: person, token })).body!;
  await logIn(person.email, typed['a wrong password']!);
  await logIn(typed['an unknown address']!, password);
  const session = (await logIn(person.email, password)).body!;
  typed['an access token'] = session.token;
  typed['a refresh token'] = session.refresh_token;
  const refreshed = (await refresh(session.refresh_token)).body!;
  typed['its successor'] = refreshed.refresh_token!;
  typed['the next access token'] = refreshed.access_token;
  await refresh(typed['an unknown refresh token']!);
  await auth.sql(`UPDATE auth.refresh_token SET replaced_at = replaced_at - interval '1 min'`);
  await refresh(session.refresh_token);

  const params = { id };
  await auth.ask(contract.updateUser, { params, body: { roles: ['sre'], name: 'Anna' }, token });
  await auth.ask(contract.updateUser, { params, body: { roles: ['sre'], name: 'Anna' }, token });
  const second = (await logIn(person.email, password)).body!;
  const wrong = { current_password: typed['a wrong password']!, new_password: typed['a new password']! };
  await auth.ask(contract.changePassword, { body: wrong, token: second.token });
  await auth.ask(contract.logout, { token: second.token });
  await auth.ask(contract.deleteSessions, { token: (await logIn(person.email, password)).body!.token });
  await auth.ask(contract.updateUser, { params, body: { disabled: true }, token });
  await logIn(person.email, password);
  typed['another secret'] = await run(rotateClient, ['console']);
  await run(disableClient, ['console']);
  await client('console', typed['another secret']);

  const entries = await auth.sql<Entry>(
    'SELECT event, user_id, actor, host(address) AS address, details FROM auth.audit ORDER BY id',
  );
  const user = String(id);
  const ann = { user_id: user, actor: `user:${user}` };
  const byClient = { actor: 'client:console', address: '127.0.0.1' };
  const byRoot = { actor: `user:${rootId}`, address: '127.0.0.1' };
  const byStranger = { actor: null, address: '127.0.0.1' };
  const byCommand = { actor: 'command', address: null };
  const aSession = expect.any(Number) as unknown as number;
  const login = { ...ann, event: 'login', details: { session: aSession, device: 'node' } };
  expect(entries).toMatchObject([
    { ...byCommand, event: 'client_created', details: { client: 'console', scopes: ['jobs:manage'] } },
    { ...byClient, event: 'client_token', user_id: null },
    { ...byStranger, event: 'client_refused', details: { client: 'console', reason: 'wrong secret' } },
    { ...byStranger, event: 'client_refused', details: { reason: 'unknown client' } },
    { ...byCommand, event: 'user_created', details: { roles: ['admin'] } },
    { ...byCommand, event: 'user_created', details: { roles: ['user'] } },
    { event: 'login', user_id: String(rootId), details: { session: aSession } },
    { ...byRoot, event: 'user_created', user_id: user, details: { roles: ['user'] } },
    { ...byStranger, event: 'login_failed', user_id: user, details: { reason: 'wrong password' } },
    { ...byStranger, event: 'login_failed', user_id: null, details: { reason: 'unknown address' } },
    login,
    { ...byStranger, event: 'refresh_token_reused', user_id: user, details: { session: aSession } },
    {
      ...byRoot,
      event: 'user_changed',
      user_id: user,
      details: { name: 'changed', roles: { from: ['user'], to: ['sre'] } },
    },
    login,
    { ...ann, event: 'password_change_failed', details: { reason: 'wrong password', session: aSession } },
    { ...ann, event: 'logout', details: { session: aSession } },
    login,
    { ...ann, event: 'session_revoked', details: { session: 'all' } },
    { ...byRoot, event: 'user_changed', details: { disabled: { from: false, to: true } } },
    { ...byStranger, event: 'login_failed', user_id: user, details: { reason: 'disabled' } },
    { ...byCommand, event: 'client_secret_rotated', details: { client: 'console' } },
    { ...byCommand, event: 'client_disabled', details: { client: 'console' } },
    { ...byStranger, event: 'client_refused', details: { client: 'console', reason: 'disabled or rotated' } },
  ]);

  await auth.ask(contract.deleteUser, { params, token });
  const ofUser = `SELECT event, user_id, actor FROM auth.audit WHERE event IN ('user_deleted', 'session_revoked') ORDER BY id`;
  expect(await auth.sql<Entry>(ofUser)).toEqual([
    { event: 'session_revoked', user_id: null, actor: 'user' },
    { event: 'user_deleted', user_id: null, actor: byRoot.actor },
  ]);

  const rows = await auth.sql<{ line: string }>('SELECT audit::text AS line FROM auth.audit');
  const written = rows.map(({ line }) => line).join('\n');
  for (const [what, text] of Object.entries(typed))
    expect([what, text.length > 0, written.includes(text)]).toEqual([what, true, false]);
  const log = auth.log.join('');
  for (const [what, text] of Object.entries(typed)) expect([what, log.includes(text)]).toEqual([what, false]);
});
