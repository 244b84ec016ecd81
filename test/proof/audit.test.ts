// Queries the registry, whose answers change over time. A failed query fails the test, because the result is unknown.
import { expect, test } from '@jest/globals';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { lastLines, runCommand } from '../../deploy/local/run-command.ts';
import { projects } from '../support/dependencies.ts';
import { writeResult } from '../support/results.ts';

/** Accepted vulnerabilities by package, each with its reason. */
const bearable: Record<string, string> = {};

interface Report {
  message?: string;
  vulnerabilities?: Record<string, object>;
}

/** Returns the packages that `npm audit` names in a project, or why they are unknown. */
async function audit(project: string): Promise<{ project: string; vulnerable?: string[]; unknown?: string }> {
  const { output } = await runCommand('npm', ['audit', '--json'], {
    cwd: join(ROOT, project),
    within: 120_000,
  });
  // The output may also contain warnings.
  const [json = '{}'] = /^\{[^]*\}/m.exec(output) ?? [];
  const { vulnerabilities, message = lastLines(output, 1)[0] } = JSON.parse(json) as Report;
  const asked = { project: project || '.' };
  if (vulnerabilities) return { ...asked, vulnerable: Object.keys(vulnerabilities) };
  // URLs may name a private registry.
  return { ...asked, unknown: message?.replace(/https?:\/\/\S+/g, 'the registry') || 'no answer' };
}

test('npm audit reports only accepted vulnerabilities', async () => {
  const audits = await Promise.all(projects.map(audit));
  writeResult('faults', 'supply-chain', { settings: { bearable }, audit: audits });
  expect(audits.flatMap(({ unknown }) => unknown ?? [])).toEqual([]);
  const found = audits.flatMap(({ vulnerable = [] }) => vulnerable);
  expect(found.filter((name) => !Object.hasOwn(bearable, name))).toEqual([]);
});
