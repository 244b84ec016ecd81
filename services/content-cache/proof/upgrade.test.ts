// Upgrades content-cache from an earlier release, with one table for all models, while both releases run.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { createLogger, prepareDatabases } from '@content-platform/chassis';
import { ROOT } from '../../../deploy/local/config.ts';
import { startRedis } from '../../../test/support/redis-server.ts';
import { startRelease, useEarlierRelease, type ReleaseProcess } from '../../../test/support/releases.ts';
import { useStarted } from '../../../test/support/use-started.ts';
import { until } from '../../../test/support/wait.ts';
import { createTestTokens } from '../testing/tokens.ts';

let owner: pg.Pool;
// Defined before the hooks of the release, which drop the database.
afterAll(() => owner?.end());
const release = useEarlierRelease('content-cache');
const redis = useStarted(startRedis);
const tokens = useStarted(createTestTokens);
beforeAll(() => void (owner = new pg.Pool({ connectionString: release.url })));

function start(root: string, databaseUrl: string): Promise<ReleaseProcess> {
  return startRelease(root, 'content-cache', {
    PUBLIC_URL: tokens.issuer,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redis.url,
    AUTH_URL: tokens.authUrl,
    AUTH_INTERNAL_URL: tokens.authUrl,
    SERVICE_SECRET: 'a-service-secret-that-no-auth-knows',
  });
}

/** Changes records as a content server of the earlier release does, and announces each change. */
function startTraffic(processes: ReleaseProcess[]) {
  const failures: string[] = [];
  const ending = new AbortController();
  let rounds = 0;
  const any = () => processes[Math.floor(Math.random() * processes.length)]!.origin;
  async function ask(path: string, token: string, body?: object) {
    const response = await fetch(any() + path, {
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    return {
      status: response.status,
      body: (await response.json()) as { version?: number; success?: boolean },
    };
  }
  const read = (id: number) => ask(`/api/content/webform/${id}`, tokens.userToken());

  async function round(id: number): Promise<void> {
    const key = `model = 'webform' AND id = ${id}`;
    const [statement, status] = [
      [`UPDATE content.record SET title = 'Changed' WHERE ${key} RETURNING version`, 200],
      [`DELETE FROM content.record WHERE ${key} RETURNING version`, 404],
      [
        `INSERT INTO content.record (model, id, title, body) VALUES ('webform', ${id}, 'New', '{}') RETURNING version`,
        200,
      ],
    ][rounds % 3] as [string, number];
    const { rows } = await owner.query<{ version: string }>(statement);
    const target = { model: 'webform', id };
    const clear = await ask('/api/admin/cache/clear-model', tokens.token('cache:clear'), target);
    if (clear.body.success !== true) throw new Error(`clear-model: ${clear.status}`);
    for (const reply of await Promise.all([read(id), read(id), read(id)])) {
      if (reply.status !== status) throw new Error(`${statement}: the read returned ${reply.status}`);
      if (status === 200 && reply.body.version !== Number(rows[0]!.version))
        throw new Error(
          `${statement}: version ${rows[0]!.version}, but the read returned ${reply.body.version}`,
        );
    }
  }
  const running = (async () => {
    for (; !ending.signal.aborted; rounds += 1)
      await round(1).catch((error: unknown) => failures.push(String(error)));
  })();
  return {
    failures,
    async more(count: number) {
      const wanted = rounds + count;
      await until(`${count} more rounds`, () => rounds >= wanted || failures.length > 0, 60_000);
    },
    async end() {
      ending.abort();
      await running;
    },
  };
}

test('reads and clears stay correct during an upgrade, and after its rollback', async () => {
  const { folder, url, roleUrl } = release;
  const processes = [await start(folder, url), await start(folder, url)];
  await owner.query(`INSERT INTO content.record (model, id, title, body)
    SELECT 'webform', n, 'Old', '{}' FROM generate_series(1, 20000) AS n`);
  const traffic = startTraffic(processes);
  await traffic.more(30);
  const logger = createLogger('content-cache', 'warn');
  await prepareDatabases('content-cache', { platform: url, roleUrl, logger });
  await traffic.more(30);
  processes.push(await start(ROOT, roleUrl), await start(ROOT, roleUrl));
  await traffic.more(60);
  const old = processes.splice(0, 2);
  await traffic.more(1);
  await Promise.all(old.map((process) => process.stop()));
  await traffic.more(60);

  // After the rollback, the earlier release works on the new tables.
  processes.push(await start(folder, url));
  await traffic.more(30);
  const taken = processes.splice(0, 2);
  await traffic.more(1);
  await Promise.all(taken.map((process) => process.stop()));
  await traffic.more(30);
  await traffic.end();
  expect(traffic.failures).toEqual([]);
}, 600_000);
