import { expect, jest, test } from '@jest/globals';
import { runCommand } from '../deploy/local/run-command.ts';
import { ROOT } from '../deploy/local/config.ts';
import { findTests } from './jest.ts';

// jest lists all files of the repository, in several processes.
jest.setTimeout(300_000);

const { signal } = new AbortController();
const filesOf = async (...patterns: string[]) =>
  (await findTests({ patterns, folder: 'proof' }, signal)).map((file) => file.slice(ROOT.length + 1));

test.each(['content-cache/proof/changes', 'services/.*/proof/changes.test.ts', 'changes'])(
  'the pattern %s selects a proof',
  async (pattern) => {
    expect(await filesOf(pattern)).toEqual(['services/content-cache/proof/changes.test.ts']);
  },
);

test('a pattern does not match the path of the repository', async () => {
  expect(await filesOf(`${ROOT}|content-cache/proof/changes`)).toHaveLength(1);
});

test.each([[['--proof', '--only', 'race', 'no/such']], [['--only', '-t', 'title', 'structure', 'no/such']]])(
  'test/run.ts %j exits 1 with one line, before it starts anything',
  async (args) => {
    const script = ['deploy/local/bootstrap.mjs', 'test/run.ts', ...args];
    expect(await runCommand(process.execPath, script, { cwd: ROOT })).toEqual({
      code: 1,
      output: 'No test has no/such in its path.\n',
    });
  },
);
