import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DOWNLOADS } from '../../../deploy/local/config.ts';
import { Problem } from '../../../deploy/local/problem.ts';
import { lastLines, onPath, runCommand } from '../../../deploy/local/run-command.ts';

/** Every package with its exact version, in the format of `pip freeze`. */
const requirementsFile = join(import.meta.dirname, 'requirements.txt');
export const requirements = (): string => readFileSync(requirementsFile, 'utf8');
const installFolder = join(DOWNLOADS, 'schemathesis');

/** Finds Python. @throws Problem without Python 3.10 or newer */
async function findPython(): Promise<string> {
  const python = onPath('python3');
  const { output } = python ? await runCommand(python, ['--version'], { within: 10_000 }) : { output: '' };
  const [, minor] = /^Python 3\.(\d+)/.exec(output) ?? [];
  if (!python || Number(minor ?? 0) < 10)
    throw new Problem(
      `Schemathesis needs python3 3.10 or newer on PATH; there is ${output.trim() || 'none'}.`,
    );
  return python;
}

async function run(command: string, args: string[]): Promise<void> {
  const { code, output } = await runCommand(command, args, { within: 300_000 });
  if (code !== 0) throw new Problem(`${command} ${args.join(' ')} failed.`, lastLines(output));
}

/** Installs the requirements into `.local` if they changed. @returns the folder of its programs @throws Problem */
export async function installSchemathesis(): Promise<string> {
  const wanted = requirements();
  const note = join(installFolder, '.installed');
  const programs = join(installFolder, 'bin');
  if (existsSync(note) && readFileSync(note, 'utf8') === wanted) return programs;
  await run(await findPython(), ['-m', 'venv', '--clear', installFolder]);
  await run(join(programs, 'pip'), ['install', '--quiet', '--no-deps', '-r', requirementsFile]);
  writeFileSync(note, wanted);
  return programs;
}
