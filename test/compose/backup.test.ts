import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { DOWNLOADS, ROOT } from '../../deploy/local/config.ts';
import { runCommand } from '../../deploy/local/run-command.ts';
import { newUser, type OwnUser } from '../support/accounts.ts';
import { withDatabase } from '../support/connections.ts';
import { newImage, uploaded } from '../support/media.ts';
import { closeRecords, freshId, save } from '../support/records.ts';
import { stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { compose, describeStack, freePorts } from './docker.ts';

/** Returns the commands of docs/operations/backup.md under a heading. */
function commandsUnder(heading: string): string {
  const text = readFileSync(join(ROOT, 'docs/operations/backup.md'), 'utf8');
  const section = text.slice(text.indexOf(`## ${heading}`));
  return /```sh\n([^]*?)```/.exec(section)![1]!;
}

const folder = mkdtempSync(join(DOWNLOADS, 'backup-'));
const original = { ...process.env };

async function type(commands: string): Promise<void> {
  const { code, output } = await runCommand('bash', ['-euo', 'pipefail', '-c', commands], { cwd: folder });
  if (code !== 0) throw new Error(output);
}

/** Switches docker compose to another, empty stack on this machine with the same public URL. */
async function useEmptyStack(): Promise<void> {
  Object.assign(process.env, await freePorts());
  process.env['COMPOSE_PROJECT_NAME'] += '-restored';
  process.env['COMPOSE_PROFILES'] = '';
}

/**
 * Returns the row count and a content hash of every table, once the audit log is linked. A restored database begins a new
 * epoch of changes: the rows' transaction ids, the epoch itself and the list of clears differ.
 */
const contentsOf = (url: string): Promise<Record<string, string>> =>
  withDatabase(url, async (client) => {
    const { rows: tables } = await client.query<{ name: string }>(
      `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
       WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')
         AND table_name NOT IN ('change_epoch', 'invalidation')`,
    );
    const contents: Record<string, string> = {};
    const unlinked = () => client.query('SELECT FROM audit.unlinked');
    await until('it is linked', async () => (await unlinked()).rowCount === 0);
    for (const { name } of tables) {
      const text = `SELECT count(*) || ' ' || coalesce(md5(string_agg(row::text, ',' ORDER BY row::text)), '') AS told
                    FROM (SELECT (to_jsonb(source) - 'xid')::text AS row FROM ${name} AS source) AS rows`;
      contents[name] = (await client.query<{ told: string }>(text)).rows[0]!.told;
    }
    return contents;
  });

let user: OwnUser;
let record: number;
let image: contract.MediaFile;
beforeAll(async () => {
  user = await newUser();
  record = freshId();
  await save('pathway', record, 'Kept');
  image = await uploaded(user.token, await newImage());
});
afterAll(async () => {
  await closeRecords();
  if (process.env['COMPOSE_PROJECT_NAME'] !== original['COMPOSE_PROJECT_NAME'])
    await compose('down', '--volumes', '--rmi', 'local', '--timeout', '5');
  Object.assign(process.env, original);
  rmSync(folder, { recursive: true, force: true });
});

const download = async (gateway: string): Promise<Buffer> => {
  const address = new URL(new URL(image.variants[0]!.url).pathname, gateway);
  const response = await fetch(address, { headers: { Authorization: `Bearer ${user.token}` } });
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
};

test('the commands of docs/operations/backup.md restore everything into an empty stack', async () => {
  const before = await contentsOf(stack().postgres);
  const bytes = await download(stack().gateway);
  // Files appear and disappear while tar reads.
  const loop = 'touch /tmp/busy; while [ -e /tmp/busy ]; do : > /files/busy; rm /files/busy; done';
  const inMedia = (...command: string[]) => compose('exec', '-T', 'media-upload', ...command);
  await Promise.all([
    inMedia('sh', '-c', loop),
    type(commandsUnder('Backup')).finally(() => inMedia('rm', '-f', '/tmp/busy')),
  ]);
  await useEmptyStack();
  await type(commandsUnder('Restore'));
  const restored = await describeStack();
  expect(restored.gateway).not.toBe(stack().gateway);
  expect(await contentsOf(restored.postgres)).toEqual(before);

  const { gateway } = restored;
  const me = await call(gateway, contract.me, { token: user.token });
  expect(me.body).toMatchObject({ email: user.email });
  const params = { model: 'pathway', id: record } as const;
  expect((await call(gateway, contract.readContent, { params, token: user.token })).body).toMatchObject({
    title: 'Kept',
  });
  expect((await download(gateway)).equals(bytes)).toBe(true);
  const { email, password } = user;
  expect((await call(gateway, contract.login, { body: { email, password } })).status).toBe(200);
});
