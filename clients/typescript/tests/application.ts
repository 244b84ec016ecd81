import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { extname, join } from 'node:path';
import { expect } from '@jest/globals';
import { ROOT } from '../../../deploy/local/config.ts';
import { runCommand } from '../../../deploy/local/run-command.ts';
import { newUser } from '../../../test/support/accounts.ts';
import { newPdf } from '../../../test/support/media.ts';
import { freshId, remove, save } from '../../../test/support/records.ts';
import { pageOrigin, stack } from '../../../test/support/stack.ts';

export const packageFolder = join(ROOT, 'clients', 'typescript');

/** An app that uses the types, in the right way and in wrong ones. */
export const appCode = `import { createClient, type Letter } from '@content-platform/client';
const platform = createClient({ url: 'https://api.example.com', storage: localStorage, fetch: (url, { credentials, ...init }) => fetch(url, init) });
export const letters: AsyncGenerator<Letter> = platform.list('listLetters', { state: 'open' });
export const title: string = (await platform.read('webform', 1)).title;
await platform.request('deleteSessions', {}, { timeoutMs: undefined });
// @ts-expect-error No such operation.
await platform.request('nothing');
// @ts-expect-error The input is not complete.
await platform.request('changePassword', { current_password: 'a' });
// @ts-expect-error Not a list.
platform.list('me');
`;

/** Returns the code blocks of the README in a language. */
export function readmeCode(language: string): string[] {
  const readme = readFileSync(join(packageFolder, 'README.md'), 'utf8');
  return [...readme.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(
    ([, code]) => code!,
  );
}

/** Creates the README's app beside a clone of the platform, outside of the repository and its packages. */
export async function createApplication() {
  const parent = mkdtempSync(join(tmpdir(), 'client-'));
  symlinkSync(ROOT, join(parent, 'content-platform'));
  const folder = join(parent, 'my-app');
  const run = async (
    command: string,
    args: string[],
    { cwd = folder, within = 60_000 } = {},
  ): Promise<string> => {
    const env = { PLATFORM_URL: stack().gateway };
    const { code, output } = await runCommand(command, args, { cwd, env, within });
    if (code !== 0) throw new Error(`${command} ${args.join(' ')}: ${output}`);
    return output;
  };
  const output = await run('bash', ['-e', '-c', readmeCode('sh').join('')], { cwd: parent });
  return { folder, run, output, close: () => rmSync(parent, { recursive: true, force: true }) };
}

/** Runs `work` with the input of the scenario, and edits its record until it ends. */
export async function withScenario<T>(work: (given: Record<string, unknown>) => Promise<T>): Promise<T> {
  const { email, password } = await newUser();
  const [model, id] = ['condition', freshId()] as const;
  await save(model, id, 'First');
  const pdf = newPdf().toString();
  let last: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => (last = save(model, id, 'Edited')), 300);
  try {
    return await work({ url: stack().gateway, email, password, model, id, pdf });
  } finally {
    clearInterval(timer);
    await last;
    await remove(model, id);
  }
}

/** Runs the scenario in the app with a Node program. */
export async function runScenario(
  { folder, run }: Awaited<ReturnType<typeof createApplication>>,
  node: string,
  given: Record<string, unknown>,
): Promise<unknown> {
  cpSync(join(packageFolder, 'tests', 'scenario.mjs'), join(folder, 'scenario.mjs'));
  const code = `import { createClient } from '@content-platform/client';
import { scenario } from './scenario.mjs';
console.log(JSON.stringify(await scenario(createClient, ${JSON.stringify(given)})));`;
  writeFileSync(join(folder, 'run.mjs'), code);
  return JSON.parse(await run(node, ['run.mjs']));
}

/** Serves the app's folder, with the README's page as index.html, at an origin that may call the API. */
export function servePage({ folder }: Awaited<ReturnType<typeof createApplication>>): Server {
  const page = readmeCode('html')[0]!.replace('http://127.0.0.1:8080', stack().gateway);
  writeFileSync(join(folder, 'index.html'), page);
  const isScript = (path: string): boolean => ['.js', '.mjs'].includes(extname(path));
  const server = createServer(async (request, response) => {
    response.setHeader('Content-Type', isScript(request.url!) ? 'text/javascript' : 'text/html');
    response.end(await readFile(join(folder, request.url!)).catch(() => undefined));
  });
  return server.listen(Number(new URL(pageOrigin()).port), 'localhost');
}

export const expected = ({ email, pdf }: Record<string, unknown>) => ({
  user: email,
  title: expect.stringMatching(/^(First|Edited)$/),
  listed: 50,
  many: [[2, 1], [999_999]],
  followed: 'seen',
  uploaded: ['application/pdf', pdf],
  parallel: 1,
  refreshes: 1,
  aborted: 'enough',
  error: 'not_found',
  loggedIn: false,
});
