import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { ROOT } from '../../deploy/local/config.ts';
import { freeRow } from '../support/ports.ts';
import { services } from '@content-platform/contract';
import {
  alive,
  cleanUp,
  launch,
  type Launcher,
  limitMs,
  newState,
  processesOf,
  startCommand,
} from './launcher.ts';

jest.setTimeout(limitMs);

let state: string;
let env: Record<string, string>;
let launcher: Launcher | undefined;

beforeEach(async () => {
  state = newState();
  env = { STATE_DIR: state, GATEWAY_PORT: String(await freeRow(services.length)), CI: '' };
});
afterEach(() => cleanUp(state, launcher));

test('an invalid setting prints one line and exits 1 before anything starts', async () => {
  launcher = launch(startCommand, { ...env, GATEWAY_PORT: '80 80' });
  expect(await launcher.ended).toBe(1);
  expect(launcher.output()).toBe('GATEWAY_PORT must be an integer from 1024 to 64000, not "80 80".\n');
  launcher = launch(startCommand, { ...env, DATABASE_URL: 'postgres://owner@db.invalid/platform' });
  expect(await launcher.ended).toBe(1);
  expect(launcher.output()).toMatch(/^DATABASE_URL names db\.invalid: npm start adds demo accounts/m);
  expect(processesOf(state)).toEqual({});
});

test('refuses an old Node version first', () => {
  const script = `Object.defineProperty(process.versions, 'node', { value: '18.20.0' });
    await import(${JSON.stringify(join(ROOT, 'deploy/local/bootstrap.mjs'))});`;
  const run = (): string =>
    execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
  expect(run).toThrow(/Node 18\.20\.0 is too old: install Node 20\.19 or newer/);
});

test('Ctrl-C during the start leaves nothing behind', async () => {
  launcher = launch(startCommand, env);
  await launcher.printed(/✓ Redis/);
  const processes = processesOf(state);
  launcher.interrupt();
  expect(await launcher.ended).toBe(0);
  expect(alive(processes)).toEqual([]);
  expect(processesOf(state)).toEqual({});
});
