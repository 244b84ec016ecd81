import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, type External } from '../../deploy/local/config.ts';
import { freeRow } from './ports.ts';
import { Stopped } from '../../deploy/local/problem.ts';
import { services } from '@content-platform/contract';
import { type RunningStack, startStack } from '../../deploy/local/stack.ts';
import type { StartProxy } from '../../deploy/local/stores.ts';
import { createTerminal, type Terminal } from '../../deploy/local/terminal.ts';
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

/** Starts a stack on free ports, and publishes it once it lacks nothing: a new consumer has cleared the cache by then. */
export async function startTestStack(
  folder: string,
  signal: AbortSignal,
  terminal: Terminal,
  { proxy, external = {}, identityDemo = false }: OwnStackOptions = {},
): Promise<RunningStack> {
  const running = await startStack({
    state: folder,
    gatewayPort: await freeRow(services.length),
    // A developer's own servers hold other data, and tests clear and fill what they use.
    external,
    ...(proxy && { proxy }),
    trustedProxies: '127.0.0.1/32',
    usualPorts: false,
    identityDemo,
    needsKafka: true,
    showLogs: false,
    terminal,
    signal,
  });
  try {
    await until('every service is ready', () => isWell(running.stack), wellWithinMs);
  } catch (error) {
    await running.stop();
    throw error;
  }
  running.publish();
  return running;
}

/**
 * A stack for one test file that does it harm, or for benches. From now on `stack()` and all of test/support speak of
 * this one. `signal` ends its start.
 */
export async function startOwnStack(signal?: AbortSignal, options: OwnStackOptions = {}): Promise<OwnStack> {
  const folder = mkdtempSync(join(ROOT, '.local', 'test-'));
  options.prepare?.(folder);
  const stopping = new AbortController();
  const either = AbortSignal.any([stopping.signal, ...(signal ? [signal] : [])]);
  const running = await startTestStack(folder, either, createTerminal(), options);
  process.env['STACK_FILE'] = join(folder, 'stack.json');
  return {
    pidOf,
    folder,
    logs() {
      const logs = join(folder, 'logs');
      return readdirSync(logs)
        .map((name) => readFileSync(join(logs, name), 'utf8'))
        .join('');
    },
    async stop() {
      await closeEvents();
      await closeRecords();
      stopping.abort(new Stopped());
      await running.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
