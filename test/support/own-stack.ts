import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, type External } from '../../deploy/local/config.ts';
import { freeRow } from './ports.ts';
import { Stopped } from '../../deploy/local/problem.ts';
import { services } from '@content-platform/contract';
import { startStack } from '../../deploy/local/stack.ts';
import type { StartProxy } from '../../deploy/local/stores.ts';
import { createTerminal } from '../../deploy/local/terminal.ts';
import { closeEvents } from './events.ts';
import { closeRecords } from './records.ts';
import { isWell, pidOf } from './stack.ts';
import { until } from './wait.ts';

export interface OwnStack {
  /** The pid of a process as it is now; a restart changes it. */
  pidOf(name: string): number;
  /** Its folder. */
  folder: string;
  /** Everything that its processes have logged so far. */
  logs(): string;
  /** Ends it, and what test/support has open to it. */
  stop(): Promise<void>;
}

const wellWithinMs = 150_000;

interface OwnStackOptions {
  /** Puts a proxy in front of each store and service. */
  proxy?: StartProxy;
  /** Stores of the test's own. */
  external?: External;
  /** Sees its folder before anything is in it. */
  prepare?: (folder: string) => void;
  /** With an identity service, too. */
  identityDemo?: boolean;
}

/**
 * A stack for one test file that does it harm, or for benches; resolves when it lacks nothing: a new consumer has cleared
 * the cache by then. From now on `stack()` and all of test/support speak of this one. `signal` ends its start.
 */
export async function startOwnStack(signal?: AbortSignal, options: OwnStackOptions = {}): Promise<OwnStack> {
  const { proxy, external = {}, prepare, identityDemo = false } = options;
  const state = mkdtempSync(join(ROOT, '.local', 'test-'));
  prepare?.(state);
  const stopping = new AbortController();
  const running = await startStack({
    state,
    gatewayPort: await freeRow(services.length),
    external,
    ...(proxy && { proxy }),
    trustedProxies: '127.0.0.1/32',
    usualPorts: false,
    identityDemo,
    needsKafka: true,
    showLogs: false,
    terminal: createTerminal(),
    signal: AbortSignal.any([stopping.signal, ...(signal ? [signal] : [])]),
  });
  running.publish();
  process.env['STACK_FILE'] = join(state, 'stack.json');
  async function stop(): Promise<void> {
    await closeEvents();
    await closeRecords();
    stopping.abort(new Stopped());
    await running.stop();
    rmSync(state, { recursive: true, force: true });
  }
  await until('all is well', isWell, wellWithinMs).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return {
    pidOf,
    folder: state,
    logs() {
      const folder = join(state, 'logs');
      return readdirSync(folder)
        .map((name) => readFileSync(join(folder, name), 'utf8'))
        .join('');
    },
    stop,
  };
}
