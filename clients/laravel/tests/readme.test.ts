import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { environmentWith, ROOT } from '../../../deploy/local/config.ts';
import { read } from '../../../test/support/platform.ts';
import { until } from '../../../test/support/wait.ts';
import { type Application, createApplication, installLimitMs } from './application.ts';

let application: Application;
let shell: number | undefined;

beforeAll(async () => {
  application = await createApplication();
}, installLimitMs);
afterAll(() => {
  // The worker of the README belongs to the shell's process group.
  if (shell !== undefined) process.kill(-shell, 'SIGKILL');
  application?.remove();
});

/** Returns the commands of the README, without the indentation of its list. */
function commandsOf(readme: string): string[] {
  const blocks = readme.matchAll(/^( *)```sh\n([^]*?)^\1```$/gm);
  return [...blocks].map(([, indent, code]) => code!.replaceAll(new RegExp(`^${indent}`, 'gm'), ''));
}

test('the ten commands of the README lead to a cleared record', async () => {
  const commands = commandsOf(readFileSync(join(ROOT, 'clients', 'laravel', 'README.md'), 'utf8'));
  expect(commands).toHaveLength(10);
  await until('the old record is cached', async () => (await read('webform', 37)).cache === 'hit');
  const log = join(application.folder, 'commands.log');
  const output = openSync(log, 'w');
  const script = `set -e\n${commands.slice(0, -1).join('').replace('platform:check', '$& --wait=45')}`;
  const bash = spawn('bash', ['-c', script], {
    cwd: application.folder,
    env: environmentWith(application.env),
    stdio: ['ignore', output, output],
    detached: true,
  });
  shell = bash.pid;
  const [code] = (await once(bash, 'exit')) as [number];
  expect({ code, output: readFileSync(log, 'utf8') }).toMatchObject({ code: 0 });
  const isNew = async () =>
    (await application.run('bash', ['-c', commands.at(-1)!])).output.includes('"title":"Intake"');
  await until('the record has the new title', isNew);
  const text = await until('the worker has printed the job', () => {
    const printed = readFileSync(log, 'utf8');
    return /Processed: +ContentPlatform\\Laravel\\AnnounceChange/.test(printed) && printed;
  });
  expect(text.match(/^ok /gm)).toHaveLength(6);
  // The worker prints the same for a failed announcement, which is in the queue again.
  const count = `echo (new PDO('sqlite:database/database.sqlite'))->query('SELECT count(*) FROM jobs')->fetchColumn();`;
  const isEmpty = async () => (await application.run('php', ['-r', count])).output === '0';
  await until('the announcement has succeeded', isEmpty);
}, 180_000);
