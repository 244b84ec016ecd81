import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { logout, type Model } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { machine, newUser, password, tokenOf } from '../../support/accounts.ts';
import { newPushToken, register } from '../../support/devices.ts';
import { announce, closeEvents } from '../../support/events.ts';
import { startOwnStack, type OwnStack } from '../../support/own-stack.ts';
import { clear, read } from '../../support/platform.ts';
import { closeRecords, database, freshId, save } from '../../support/records.ts';
import { untilRefused } from '../../support/revoked.ts';
import { isWell, pidOf, stack } from '../../support/stack.ts';
import { until } from '../../support/wait.ts';

/** These tests kill things, so they have a stack of their own; it starts again what dies, as npm start does. */
let own: OwnStack;
const model: Model = 'pathway';
/** Kafka may have to start, and a group to notice that a member is gone. */
const patienceMs = 120_000;

beforeAll(async () => {
  own = await startOwnStack();
  await Promise.all((['user', 'machine'] as const).map((account) => tokenOf(stack().gateway, account)));
}, 300_000);
afterAll(async () => {
  await closeEvents();
  await closeRecords();
  await own?.stop();
});
beforeEach(() => until('all is well', isWell, 150_000));

const event = (id: number) => JSON.stringify({ model, id });

/** A record that is in the cache. */
async function cachedRecord(title: string): Promise<number> {
  const id = freshId();
  await save(model, id, title);
  await until('it is cached', async () => (await read(model, id)).cache === 'hit');
  return id;
}

/** A record whose old version is in the cache and whose new one is in the database. */
async function changedRecord(): Promise<number> {
  const id = await cachedRecord('Old');
  await save(model, id, 'New');
  expect(await read(model, id)).toMatchObject({ cache: 'hit', title: 'Old' });
  return id;
}

const kill = (name: string, signal: NodeJS.Signals) => process.kill(own.pidOf(name), signal);

describe('Redis hangs', () => {
  test('every read is answered from the database, clears are refused in time, and made up for before the cache is used', async () => {
    const id = await changedRecord();
    kill('redis', 'SIGSTOP');
    try {
      const reads = await Promise.all(Array.from({ length: 50 }, () => read(model, id)));
      for (const answer of reads)
        expect(answer).toMatchObject({ status: 200, cache: 'bypass', title: 'New' });
      const start = performance.now();
      await expect(clear(model, id)).rejects.toThrow('503 cache_unavailable');
      expect(performance.now() - start).toBeLessThan(3_000);
    } finally {
      kill('redis', 'SIGCONT');
    }
    // The refused clear is never sent again. Whatever comes out of the cache from now on must be the new version.
    const hit = await until('the cache is used again', async () => {
      const answer = await read(model, id);
      if (answer.cache !== 'bypass') expect(answer.title).toBe('New');
      return answer.cache === 'hit' && answer;
    });
    expect(hit.title).toBe('New');
    await until('the pending clear is done with', async () => {
      const { rowCount } = await database().query('SELECT FROM content.pending_clear');
      return rowCount === 0;
    });
  });
});

describe('Redis is killed', () => {
  test('what comes back from its file is not served', async () => {
    const id = await changedRecord();
    const redis = new Redis(stack().redis);
    await redis.save();
    redis.disconnect();
    // Writing its file, Redis may have been taken for dead.
    await until('the clear is acknowledged', async () => (await clear(model, id)) >= 0);
    kill('redis', 'SIGKILL');
    await until('the cache is used again', async () => {
      const answer = await read(model, id).catch(() => undefined);
      if (answer?.status === 200) expect(answer.title).toBe('New');
      return answer?.cache === 'hit';
    });
  });
});

describe('Kafka is killed under events', () => {
  test(
    'none is lost',
    async () => {
      const ids = await Promise.all(Array.from({ length: 40 }, changedRecord));
      let sent = 0;
      const sending = (async () => {
        for (const id of ids) {
          await until('the event is sent', async () => announce(event(id), `${model}:${id}`), patienceMs);
          sent += 1;
          await sleep(20);
        }
      })();
      await until('some are sent', () => sent >= 10);
      kill('kafka', 'SIGKILL');
      await sending;
      for (const id of ids) {
        await until(
          'the event is carried out',
          async () => (await read(model, id)).title === 'New',
          patienceMs,
        );
      }
    },
    3 * patienceMs,
  );
});

describe('the consumer is killed under events', () => {
  test(
    'every event is carried out, every bad one is listed once',
    async () => {
      const ids = await Promise.all(Array.from({ length: 40 }, changedRecord));
      const bad: { partition: number; offset: number }[] = [];
      for (const [index, id] of ids.entries()) {
        if (index % 10 === 5) bad.push(await announce(`not json ${id}`));
        await announce(event(id), `${model}:${id}`);
        if (index === 20) kill('content-cache', 'SIGKILL');
      }
      for (const id of ids) {
        await until(
          'the event is carried out',
          async () => (await read(model, id).catch(() => undefined))?.title === 'New',
          patienceMs,
        );
      }
      for (const { partition, offset } of bad) {
        const { rowCount } = await until('the bad event is listed', async () => {
          const found = await database().query(
            'SELECT FROM content.failed_job WHERE "partition" = $1 AND "offset" = $2',
            [partition, offset],
          );
          return found.rowCount ? found : undefined;
        });
        expect(rowCount).toBe(1);
      }
    },
    3 * patienceMs,
  );
});

describe('PostgreSQL', () => {
  test('hangs: reads that need it answer 503 in time, reads from the cache go on', async () => {
    const cached = await cachedRecord('Cached');
    const { rows } = await database().query<{ pid: number }>(
      "SELECT pid FROM pg_stat_activity WHERE application_name = 'content-cache'",
    );
    const signalAll = (signal: NodeJS.Signals) => rows.forEach(({ pid }) => process.kill(pid, signal));
    signalAll('SIGSTOP');
    try {
      const refused = read(model, freshId());
      expect(await read(model, cached)).toMatchObject({ status: 200, cache: 'hit' });
      expect(await refused).toMatchObject({ status: 503 });
    } finally {
      signalAll('SIGCONT');
    }
    await until('reads work again', async () => (await read(model, freshId())).status === 404);
  });

  test('dies: 503, reads from the cache go on, and all is well again by itself', async () => {
    const cached = await cachedRecord('Cached');
    kill('postgres', 'SIGQUIT');
    // More than once: on a busy machine Redis, too, may be late, and the cache is passed by.
    await until('a read is refused while one from the cache is answered', async () => {
      const [refused, hit] = await Promise.all([read(model, freshId()), read(model, cached)]);
      return refused.status === 503 && hit.status === 200 && hit.cache === 'hit';
    });
    await until('reads work again', async () => (await read(model, freshId())).status === 404);
    expect(await read(model, cached)).toMatchObject({ status: 200, title: 'Cached' });
  });
});

describe('auth is away', () => {
  test('tokens that are valid go on working', async () => {
    const id = freshId();
    await save(model, id, 'Readable');
    kill('auth', 'SIGSTOP');
    try {
      for (let round = 0; round < 5; round++) expect(await read(model, id)).toMatchObject({ status: 200 });
    } finally {
      kill('auth', 'SIGCONT');
    }
  });

  test('a service that starts meanwhile is not ready; it is ready by itself soon after auth continues', async () => {
    const { internal } = stack().services['letters']!;
    const readiness = async () => {
      const response = await fetch(`${internal}/health/ready`);
      return { status: response.status, body: await response.json() };
    };
    kill('auth', 'SIGSTOP');
    try {
      const before = pidOf('letters');
      kill('letters', 'SIGKILL');
      await until('it is started again', () => pidOf('letters') !== before);
      await until('its stores are there', async () =>
        JSON.stringify((await readiness()).body).includes('"postgres":"ok"'),
      );
      expect(await readiness()).toEqual({
        status: 503,
        body: { status: 'unavailable', checks: { postgres: 'ok', tokens: 'unavailable' } },
      });
    } finally {
      kill('auth', 'SIGCONT');
    }
    const pid = pidOf('letters');
    await until('it is ready', async () => (await readiness()).status === 200, 5_000);
    expect(pidOf('letters')).toBe(pid);
  });
});

describe('devices is away', () => {
  const warnings = () => own.logs().split('a device stays registered after its logout').length - 1;

  test.each(['SIGKILL', 'SIGSTOP'] as const)(
    '%s: a logout with its push token ends the session in time, and the log says of whom a device stays',
    async (signal) => {
      const { token } = await newUser();
      const push = newPushToken();
      await register(token, { token: push });
      const before = warnings();
      kill('devices', signal);
      try {
        const start = performance.now();
        const answer = await call(stack().gateway, logout, { token, body: { fcm_token: push } });
        expect(answer.status).toBe(204);
        expect(performance.now() - start).toBeLessThan(3_000);
        await untilRefused(token);
      } finally {
        if (signal === 'SIGSTOP') kill('devices', 'SIGCONT');
      }
      await until('it is logged', () => warnings() === before + 1);
      expect(own.logs()).not.toContain(push);
    },
  );
});

describe('a service is away', () => {
  test('503 in time for what it does, and the others are unharmed', async () => {
    const { gateway } = stack();
    const pid = own.pidOf('content-cache');
    kill('content-cache', 'SIGKILL');
    const start = performance.now();
    // One that the service had begun with is broken off: 502.
    await until('a read is refused', async () => {
      const { status } = await read(model, 1);
      expect([502, 503]).toContain(status);
      return status === 503;
    });
    expect(performance.now() - start).toBeLessThan(3_000);
    const me = await fetch(`${gateway}/api/me`, {
      headers: { Authorization: `Bearer ${await tokenOf(gateway, 'user')}` },
    });
    expect(me.status).toBe(200);
    await until('it is back', async () => (await read(model, 1)).status === 200);
    expect(own.pidOf('content-cache')).not.toBe(pid);
  });
});

describe('the logs of all this', () => {
  test('hold no password, no secret and no token', async () => {
    const { gateway } = stack();
    await fetch(`${gateway}/api/login`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Cookie: 'session=a-cookie-value' },
      body: JSON.stringify({ email: 'user@example.com', password: 'a-wrong-password' }),
    });
    await fetch(`${gateway}/api/me`, {
      headers: { Authorization: `Bearer ${await tokenOf(gateway, 'machine')}` },
    });
    await until('the refused login is logged', () => own.logs().includes('a login failed'));
    const logs = own.logs();
    const { password: owner } = new URL(stack().postgres);
    for (const secret of [
      password,
      machine.secret,
      'a-wrong-password',
      'a-cookie-value',
      owner,
      'eyJ',
      'Bearer ',
    ]) {
      expect([secret, logs.includes(secret)]).toEqual([secret, false]);
    }
  });
});
