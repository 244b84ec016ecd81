import { createReadStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { runCommand } from '../../../deploy/local/run-command.ts';
import { machine } from '../accounts.ts';
import { stack } from '../stack.ts';
import type { Caller } from './roles.ts';
import { writeFiles } from './fixtures.ts';

const ownFolder = import.meta.dirname;

export interface Settings {
  seed: number;
  /** Schemathesis phases, separated by commas. */
  phases: string;
  /** Number of cases per operation in the fuzzing phase, and of scenarios in the stateful phase. */
  examples: number;
}

interface Report {
  running_time: number;
  operations: Record<string, unknown>;
  phases: Record<string, { status: string }>;
  test_cases: Record<string, number>;
  failures: { type: string; title: string; count: number; operations: string[] }[];
  errors: unknown[];
  /** Number of failures that a hook dropped. */
  filtered: number;
}

type Counts = Record<string, Record<string, number>>;

interface Document {
  paths: Record<string, Record<string, { operationId: string }>>;
}

/** A reported scenario: requests, replies and the results of the checks. */
interface Recorder {
  cases?: Record<string, { value: { method: string; path: string } }>;
  checks?: Record<string, { name: string; status: string }[]>;
  interactions?: Record<string, { response?: { status_code: number } }>;
}

function add(counts: Counts, of: string, what: string): void {
  const own = (counts[of] ??= {});
  own[what] = (own[what] ?? 0) + 1;
}

/** Counts checks and statuses of a run's events. Requests with an undocumented method only count as checks. */
async function count(file: string, { paths }: Document): Promise<{ checks: Counts; statuses: Counts }> {
  const [checks, statuses]: Counts[] = [{}, {}];
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const { ScenarioFinished: finished } = JSON.parse(line) as { ScenarioFinished?: { recorder: Recorder } };
    const { recorder } = finished ?? {};
    for (const { name, status } of Object.values(recorder?.checks ?? {}).flat()) add(checks!, name, status);
    for (const [id, { value }] of Object.entries(recorder?.cases ?? {})) {
      const operation = paths[value.path]?.[value.method.toLowerCase()]?.operationId;
      const status = recorder?.interactions?.[id]?.response?.status_code;
      if (operation !== undefined && status !== undefined) add(statuses!, operation, String(status));
    }
  }
  return { checks: checks!, statuses: statuses! };
}

/** Returns schemathesis.toml with the caller's credentials added. */
function configuration({ logins, peers }: Caller): string {
  const common = readFileSync(join(ownFolder, 'schemathesis.toml'), 'utf8');
  if (logins.length === 0) return common;
  const quoted = logins.map(({ name }) => JSON.stringify(name));
  const auth = [
    '[auth.wfc]',
    'path = "auth.json"',
    `user = ${quoted[0]}`,
    ...(peers.length > 0 ? [`peers = [${quoted.join(', ')}]`] : []),
  ];
  return `${common}\n${auth.join('\n')}\n`;
}

function hookContext({ name, sessionUser }: Caller, accounts: readonly number[]): object {
  return {
    gateway: stack().gateway,
    role: name,
    accounts: accounts.map(String),
    client: { client_id: machine.id, client_secret: machine.secret },
    ...(sessionUser && { session_user: { email: sessionUser.email, password: sessionUser.password } }),
  };
}

/**
 * Runs schemathesis, whose programs are in a folder, as `caller`. Requests must not change the users `accounts`. After
 * a finding, `folder` keeps the inputs and outputs.
 */
export async function runSchemathesis(
  programs: string,
  caller: Caller,
  { seed, phases, examples }: Settings,
  accounts: readonly number[],
) {
  const { gateway } = stack();
  const folder = mkdtempSync(join(tmpdir(), 'schemathesis-'));
  const write = (file: string, text: string) => writeFileSync(join(folder, file), text, { mode: 0o600 });
  const document = (await (await fetch(`${gateway}/api/openapi.json`)).json()) as Document;
  write('openapi.json', JSON.stringify(document));
  write('auth.json', JSON.stringify({ auth: caller.logins }));
  write('schemathesis.toml', configuration(caller));
  // The return URL of the demo's identity provider.
  write('return-to.txt', `"http://127.0.0.1:${Number(new URL(gateway).port) + 9}/return"\n`);
  await writeFiles(join(folder, 'files'));
  const { code, output } = await runCommand(
    join(programs, 'schemathesis'),
    [
      '--no-color',
      'run',
      'openapi.json',
      `--url=${gateway}`,
      `--seed=${seed}`,
      `--max-examples=${examples}`,
      `--phases=${phases}`,
      '--generation-database=none',
      '--report=json,ndjson',
      '--report-json-path=report.json',
      '--report-ndjson-path=events.ndjson',
    ],
    {
      cwd: folder,
      env: {
        PYTHONPATH: ownFolder,
        PYTHONDONTWRITEBYTECODE: '1',
        SCHEMATHESIS_CONTEXT: JSON.stringify(hookContext(caller, accounts)),
        SCHEMATHESIS_SEED: String(seed),
      },
    },
  );
  try {
    const report = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')) as Report;
    const counts = await count(join(folder, 'events.ndjson'), document);
    if (code === 0) rmSync(folder, { recursive: true, force: true });
    return { report, ...counts, output, code, folder };
  } catch (error) {
    throw new Error(`schemathesis as ${caller.name} did not finish:\n${output}`, { cause: error });
  }
}
export type Run = Awaited<ReturnType<typeof runSchemathesis>>;
