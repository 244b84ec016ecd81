import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createLogger,
  createMetrics,
  createService,
  createTokenVerifier,
  handle,
  createJwksClient,
  type JwksClient,
} from '@content-platform/chassis';
import { me } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { until } from '../../../test/support/wait.ts';
import { createAccessTokens } from '../access-tokens.ts';
import { rotateSigningKey } from './key-rotation.ts';
import { decode, issuer, keySecret, startAuth, type TestAuth } from '../testing.ts';

/** Everything is as it is in production, so many times faster. */
const faster = 150;
const keyTimes = { ahead: 600 / faster, kept: 960 / faster, reload: 10 / faster, coolDown: 1 / faster };
const remoteTimes = {
  refreshAfter: 300_000 / faster,
  usableFor: 3_600_000 / faster,
  // So long that no unknown kid brings a new set: being published before it signs is all that helps a key.
  coolDown: 300_000 / faster,
  retryAfter: 500 / faster,
};
const lifetime = 900 / faster;

let auth: TestAuth;
/** Another service, as any that checks tokens with what auth publishes. */
let other: { server: Server; origin: string; keys: JwksClient };

beforeAll(async () => {
  auth = await startAuth({ keyTimes });
  await auth.addUser('ann@example.com', 'a-password-to-keep');
  const logger = createLogger('content-cache', 'error');
  const keys = createJwksClient(`${auth.origin}/.well-known/jwks.json`, logger, remoteTimes);
  const tokens = createTokenVerifier(issuer, keys, { include: () => false });
  const metrics = createMetrics('content-cache');
  const created_at = '2026-01-01T00:00:00.000Z';
  const person = { id: 1, email: 'ann@example.com', name: 'Ann', created_at, roles: ['user' as const] };
  const app = createService({ name: 'auth', logger, metrics, tokens }, [
    handle(me, () => ({ status: 200 as const, body: person })),
  ]);
  const server = createServer(app);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  other = { server, keys, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
});
afterAll(async () => {
  other.server.closeAllConnections();
  other.server.close();
  await other.keys.close();
  await auth.stop();
});

interface Minted {
  token: string;
  kid: string;
  /** Between these it is used, in ms since 1970. */
  from: number;
  exp: number;
}

/** A user with a session, and what signs tokens for it. */
async function openSession() {
  const user = (await auth.accounts.users.findByEmail('ann@example.com'))!;
  const text = `INSERT INTO auth.session (user_id, device, address, must_change_password, ends_at)
                VALUES ($1, 'test', '127.0.0.1', false, now() + interval '1 day') RETURNING id`;
  const { rows } = await auth.database.query<{ id: string }>('open', text, [user.id]);
  return (tokens: ReturnType<typeof createAccessTokens>) => tokens.forUser(user, Number(rows[0]!.id), false);
}

test('under load a rotation fails no request', async () => {
  const mint = await openSession();
  const old = auth.keys.current;
  const sign = createAccessTokens(issuer, auth.keys, lifetime);
  const origins = [auth.origin, other.origin];
  const stopping = new AbortController();
  const { signal } = stopping;
  const pool: Minted[] = [];
  const figures = { requests: 0, refused: 0, oldKeyAfterSwitch: 0, newKey: 0, invented: 0 };
  const refusals: unknown[] = [];

  async function show({ token, kid, exp }: Minted, origin: string): Promise<void> {
    const { status, error } = await call(origin, me, { token });
    // It ended on the way: that says nothing.
    if (Date.now() > exp) return;
    figures.requests += 1;
    const current = auth.keys.current.kid;
    if (kid !== old.kid) figures.newKey += 1;
    else if (current !== old.kid) figures.oldKeyAfterSwitch += 1;
    // When its own database is slow auth says so only after it has taken the token.
    if (status !== 200 && error?.message !== 'The database does not answer at the moment.') {
      figures.refused += 1;
      refusals.push({ origin, status, error, kid, current });
    }
  }

  async function issue(): Promise<void> {
    for (let count = 0; !signal.aborted; count += 1) {
      const token = mint(sign);
      const { header, claims } = decode(token);
      const exp = Number(claims['exp']) * 1000;
      // Some are shown for the first time when they are old: no process remembers those.
      const from = count % 2 === 0 ? Date.now() : exp - 1_000;
      const minted = { token, kid: String(header['kid']), from, exp };
      pool.push(minted);
      while (pool[0] && pool[0].exp < Date.now()) pool.shift();
      // Others at once: nobody has had time to hear of anything.
      if (count % 2 === 0) await Promise.all(origins.map((origin) => show(minted, origin)));
      await sleep(10);
    }
  }

  async function use(): Promise<void> {
    for (let turn = 0; !signal.aborted; turn += 1) {
      const now = Date.now();
      const usable = pool.filter((one) => one.from <= now && now < one.exp - 200);
      const chosen = usable[Math.floor(Math.random() * usable.length)];
      if (chosen) await show(chosen, origins[turn % 2]!);
      await sleep(5);
    }
  }

  /** Somebody who keeps the cool-down of unknown kids running. */
  async function invent(): Promise<void> {
    const [, payload, signature] = mint(sign).split('.');
    while (!signal.aborted) {
      const header = { alg: 'RS256', typ: 'at+jwt', kid: randomUUID() };
      const forged = `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${payload}.${signature}`;
      for (const origin of origins) {
        expect((await call(origin, me, { token: forged })).status).not.toBe(200);
        figures.invented += 1;
      }
      await sleep(10);
    }
  }

  const busy = Promise.all([issue(), use(), use(), invent()]);
  const rotated = (async () => {
    await until('tokens of the old key are in use', () => figures.requests > 100);
    const made = await rotateSigningKey(auth.accounts, keySecret, keyTimes);
    expect(made).toMatchObject({ replaced: old.kid });
    await until('the old key is retired', () => auth.keys.public.every(({ kid }) => kid !== old.kid));
    await sleep(remoteTimes.refreshAfter);
  })();
  await Promise.race([rotated, busy]).finally(() => stopping.abort());
  await busy;
  process.stderr.write(`rotation under load: ${JSON.stringify(figures)}\n`);
  expect(refusals).toEqual([]);
  for (const seen of [figures.oldKeyAfterSwitch, figures.newKey, figures.invented]) {
    expect(seen).toBeGreaterThan(10);
  }

  // Whoever has the retired key can do nothing with it.
  const stolen = createAccessTokens(issuer, { ...auth.keys, current: old }, 3_600);
  for (const origin of origins) {
    expect((await call(origin, me, { token: mint(stolen) })).status).toBe(401);
  }
});
