import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { lastLines, runCommand } from '../../deploy/local/run-command.ts';

export interface Advisory {
  /** The vulnerable package, or a package that depends on it. */
  name: string;
  severity: string;
  titles: string[];
}

/** The registry could not be queried, so the result is unknown. */
export class Unasked extends Error {}

/** Returns the error without URLs, which may name a private registry. */
const reason = (text: string | undefined): string =>
  text?.replace(/https?:\/\/\S+/g, 'the registry') || 'no answer';

/** Parses the JSON of npm's stdout, which may also contain warnings. */
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

/** Returns the findings of `npm audit` in a project, including development dependencies. @throws Unasked */
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

/** Returns the release date of each version of a package from the registry. @throws Unasked */
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
