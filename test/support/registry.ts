import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { lastLines, runCommand } from '../../deploy/local/run-command.ts';

/** A hole in a package, as npm's advisories have it. */
export interface Advisory {
  /** The package that has the hole, or needs one that has. */
  name: string;
  severity: string;
  titles: string[];
}

/** What the registry could not be asked, and why: nothing is known then. */
export class Unasked extends Error {}

/** Without addresses: whose registry it is, is nobody's business. */
const reason = (text: string | undefined): string =>
  text?.replace(/https?:\/\/\S+/g, 'the registry') || 'no answer';

/** JSON that npm writes to stdout, among the warnings it writes to stderr. */
function parse<T>(output: string): T | undefined {
  const start = output.search(/^[{["]/m);
  const end = output.lastIndexOf(output[start] === '[' ? ']' : '}');
  try {
    return JSON.parse(output.slice(start, end + 1)) as T;
  } catch {
    return undefined;
  }
}

interface Report {
  message?: string;
  vulnerabilities?: Record<string, { severity: string; via: (string | { title: string })[] }>;
}

/** What `npm audit` finds in a project, what is for building and testing included. @throws Unasked */
export async function audit(project: string): Promise<Advisory[]> {
  const { output } = await runCommand('npm', ['audit', '--json'], {
    cwd: join(ROOT, project),
    within: 120_000,
  });
  const report = parse<Report>(output);
  if (!report?.vulnerabilities)
    throw new Unasked(`npm audit could not be asked: ${reason(report?.message ?? lastLines(output, 1)[0])}`);
  return Object.entries(report.vulnerabilities).map(([name, { severity, via }]) => ({
    name,
    severity,
    titles: via.map((cause) => (typeof cause === 'string' ? cause : cause.title)),
  }));
}

/** When each version of a package came out, by the registry. @throws Unasked */
export async function releases(name: string): Promise<Record<string, string>> {
  const { output } = await runCommand('npm', ['view', name, 'time', '--json'], {
    cwd: ROOT,
    within: 60_000,
  });
  const times = parse<Record<string, string>>(output);
  if (!times || Object.keys(times).length === 0)
    throw new Unasked(`npm view ${name} time could not be asked: ${reason(lastLines(output, 1)[0])}`);
  return Object.fromEntries(Object.entries(times).filter(([version]) => /^\d/.test(version)));
}
