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
import { isStackReady, pageOrigin, pidOf } from './stack.ts';
import { until } from './wait.ts';

export type OwnStack = Awaited<ReturnType<typeof startOwnStack>>;

const readyWithinMs = 150_000;

interface OwnStackOptions {
  /** Puts a proxy in front of each store and service. */
  proxy?: StartProxy;
  external?: External;
  /** Receives the stack's folder while it is still empty. */
  prepare?: (folder: string) => void;
  identityDemo?: boolean;
}

/** Starts a stack on free ports and publishes it once every service is ready: the cache was cleared by then. */
export async function startTestStack(
  folder: string,
  signal: AbortSignal,
  terminal: Terminal,
  { proxy, external = {}, identityDemo = false }: OwnStackOptions = {},
): Promise<RunningStack> {
  const gatewayPort = await freeRow(services.length + 1);
  // The gateway inherits it.
  process.env['CORS_ORIGINS'] = pageOrigin(`http://127.0.0.1:${gatewayPort}`);
  const running = await startStack({
    state: folder,
    gatewayPort,
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
    await until('every service is ready', () => isStackReady(running.stack()), readyWithinMs);
  } catch (error) {
    await running.stop();
    throw error;
  }
  running.publish();
  return running;
}

/** Starts a separate stack for a test that disrupts it, or for benchmarks; `stack()` then returns it. */
export async function startOwnStack(signal?: AbortSignal, options: OwnStackOptions = {}) {
  const folder = mkdtempSync(join(ROOT, '.local', 'test-'));
  options.prepare?.(folder);
  const stopping = new AbortController();
  const either = AbortSignal.any([stopping.signal, ...(signal ? [signal] : [])]);
  const running = await startTestStack(folder, either, createTerminal(), options);
  process.env['STACK_FILE'] = join(folder, 'stack.json');
  return {
    /** Returns the current pid of a process; a restart changes it. */
    pidOf,
    folder,
    /** Returns everything that its processes have logged so far. */
    logs() {
      const logs = join(folder, 'logs');
      return readdirSync(logs)
        .map((name) => readFileSync(join(logs, name), 'utf8'))
        .join('');
    },
    /** Stops the stack and closes the connections of test/support to it. */
    async stop(): Promise<void> {
      await closeEvents();
      await closeRecords();
      stopping.abort(new Stopped());
      await running.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
