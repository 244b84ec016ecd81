// Upgrades auth from an earlier release without downtime, and rolls the upgrade back.
import { expect, test } from '@jest/globals';
import { createLogger, prepareDatabases } from '@content-platform/chassis';
import { ROOT } from '../../../deploy/local/config.ts';
import { withDatabase } from '../../../test/support/connections.ts';
import { startRelease, useEarlierRelease } from '../../../test/support/releases.ts';
import { startProgram } from '../../../test/support/programs.ts';
import { until } from '../../../test/support/wait.ts';
import { verifyAudit } from '../commands/verify-audit.ts';
import { keySecret, password, runCommand as runAdmin } from '../testing/start-auth.ts';

const email = 'ann@example.com';
const release = useEarlierRelease('auth');

function runSql(text: string) {
  return withDatabase(release.url, (client) => client.query<Record<string, unknown>>(text));
}

function start(root: string, databaseUrl: string) {
  return startRelease(root, 'auth', {
    PUBLIC_URL: 'http://platform.test',
    DATABASE_URL: databaseUrl,
    AUTH_KEY_SECRET: keySecret,
  });
}
type Auth = Awaited<ReturnType<typeof start>>;

/** Logs in, reads the session and refreshes it, all the time, each at one of `processes`. Returns the failures. */
function startTraffic(processes: Auth[]) {
  const failures: string[] = [];
  const ending = new AbortController();
  let [rounds, logins] = [0, 0];
  const headers = { 'Content-Type': 'application/json' };
  async function ask(path: string, init: RequestInit) {
    const { origin } = processes[rounds++ % processes.length]!;
    const response = await fetch(origin + path, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`${init.method ?? 'GET'} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as { token: string; refresh_token: string; access_token: string };
  }
  async function round() {
    const login = JSON.stringify({ email, password });
    const { token, refresh_token } = await ask('/api/login', { method: 'POST', headers, body: login });
    logins += 1;
    await ask('/api/me', { headers: { Authorization: `Bearer ${token}` } });
    const body = JSON.stringify({ grant_type: 'refresh_token', refresh_token });
    const { access_token } = await ask('/api/token', { method: 'POST', headers, body });
    await ask('/api/sessions', { headers: { Authorization: `Bearer ${access_token}` } });
  }
  const client = async () => {
    while (!ending.signal.aborted) await round().catch((error: unknown) => failures.push(String(error)));
  };
  const clients = Promise.all([client(), client(), client()]);
  return {
    failures,
    logins: () => logins,
    async more(count: number) {
      const wanted = logins + count;
      await until(`${count} more logins succeed`, () => logins >= wanted || failures.length > 0);
    },
    async end() {
      ending.abort();
      await clients;
    },
  };
}

test('logins and sessions work during an upgrade, and after its rollback', async () => {
  const { folder, url, roleUrl } = release;
  const processes = await Promise.all([start(folder, url), start(folder, url)]);
  const admin = startProgram('services/auth/admin.ts', {
    args: ['create-user', '--email', email, '--name', 'Ann'],
    env: { DATABASE_URL: url },
    input: `${password}\n`,
    root: folder,
  });
  expect(await admin.ended).toMatchObject({ code: 0 });
  await runSql(`INSERT INTO auth.audit (at, event, user_id, actor, address)
    SELECT now() - n * interval '1 min', 'logout', n % 500, 'user:' || n % 500, '192.0.2.1' FROM generate_series(1, 100000) n`);

  const traffic = startTraffic(processes);
  await traffic.more(20);
  await prepareDatabases('auth', { platform: url, roleUrl, logger: createLogger('auth', 'warn') });
  await traffic.more(20);
  const [old, other] = processes as [Auth, Auth];
  processes.push(await start(ROOT, roleUrl), await start(ROOT, roleUrl));
  await traffic.more(40);
  processes.splice(0, 2);
  await traffic.more(1);
  await Promise.all([old.stop(), other.stop()]);
  await traffic.more(40);

  // After the rollback, the earlier release works on the new schema.
  processes.push(await start(folder, url));
  await traffic.more(40);
  const [first, second] = processes.splice(0, 2) as [Auth, Auth];
  await traffic.more(1);
  await Promise.all([first.stop(), second.stop()]);
  await traffic.more(20);
  await traffic.end();
  expect(traffic.failures).toEqual([]);

  // The next upgrade links the entries that the earlier release added.
  processes.push(await start(ROOT, roleUrl));
  const { rows } = await runSql(
    `SELECT count(*)::int FROM auth.audit WHERE event = 'login' AND user_id IS NOT NULL AND actor LIKE 'user:%' AND address IS NOT NULL`,
  );
  expect(rows).toEqual([{ count: traffic.logins() }]);
  const isLinked = (output: string) => /^The audit log is intact: \d+ links\.\n/.test(output);
  await until('each entry has its link', () => runAdmin(roleUrl, verifyAudit, []).then(isLinked), 120_000);
}, 600_000);
