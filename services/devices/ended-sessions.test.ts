import { beforeEach, expect, test } from '@jest/globals';
import { randomInt, randomUUID } from 'node:crypto';
import { holdOpen, untilBlocked } from '../../test/support/locks.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import { followEndedSessions } from './ended-sessions.ts';
import { openDevices } from './testing/devices.ts';

const own = useStarted(openDevices);
let ended: { position: number; sessionId: number }[];
let available: boolean;

async function fetchPage(after: number) {
  if (!available) throw new Error('unavailable');
  return {
    entries: ended.filter(({ position }) => position > after).slice(0, 2),
    last: ended.at(-1)?.position ?? 0,
  };
}

beforeEach(async () => {
  await own.sql('UPDATE devices.ended_session_position SET after = 0');
  [ended, available] = [[], true];
});

async function following(work: () => Promise<unknown>): Promise<void> {
  const stop = followEndedSessions(fetchPage, own.devices, own.logger);
  await work().finally(stop);
}
async function newDevice() {
  const [userId, sessionId, token] = [randomInt(1, 2 ** 40), randomInt(1, 2 ** 40), `token-${randomUUID()}`];
  await own.devices.register(userId, sessionId, { token });
  return { userId, sessionId, token };
}
const end = (position: number, sessionId: number) => ended.push({ position, sessionId });
const countOf = async (userId: number) => (await own.devices.list(userId, undefined, 10)).length;

test('continues where it was after auth was unavailable, also over several pages', () =>
  following(async () => {
    const devices = await Promise.all(Array.from({ length: 5 }, newDevice));
    own.log.length = 0;
    available = false;
    devices.forEach(({ sessionId }, index) => end(index + 1, sessionId));
    await until('a failure was logged', () => own.log.join().includes('ended sessions not read'));
    available = true;
    for (const { userId } of devices)
      await until('the device was deleted', async () => (await countOf(userId)) === 0);
    expect(await own.devices.endedSessionPosition()).toBe(5);
  }));

test("begins again if auth's database was restored from a backup", async () => {
  const known = await newDevice();
  await own.devices.endSessions([known.sessionId], 100);
  end(1, known.sessionId);
  const { userId, sessionId } = await newDevice();
  end(3, sessionId);
  await following(() => until('the device was deleted', async () => (await countOf(userId)) === 0));
  expect(await own.devices.endedSessionPosition()).toBe(3);
});

test('refuses a registration whose session has ended', async () => {
  const { userId, sessionId } = await newDevice();
  await own.devices.endSessions([sessionId], 1);
  const registration = own.devices.register(userId, sessionId, { token: `token-${randomUUID()}` });
  await expect(registration).rejects.toMatchObject({ error: 'invalid_token', status: 401 });
  expect(await countOf(userId)).toBe(0);
});

test('deletes the device of a registration that is under way when its session ends', async () => {
  const { userId, sessionId, token } = await newDevice();
  const lock = 'SELECT FROM devices.device WHERE token = $1 FOR UPDATE';
  const release = await holdOpen(own.database, (query) => query('test', lock, [token]));
  const registration = own.devices.register(userId, sessionId + 1, { token });
  await untilBlocked(own.database);
  const ending = own.devices.endSessions([sessionId + 1], 1);
  await Promise.race([ending, own.sql('SELECT pg_sleep(0.5)')]);
  await Promise.allSettled([release(), registration, ending]);
  expect(await countOf(userId)).toBe(0);
});
