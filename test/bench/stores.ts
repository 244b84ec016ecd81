import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { sendSignal } from '../../deploy/local/identity.ts';
import { Stopped } from '../../deploy/local/problem.ts';
import { createProcessTiers } from '../../deploy/local/process-tiers.ts';
import { openState } from '../../deploy/local/state.ts';
import { startKafka } from '../../deploy/local/kafka.ts';
import { startPostgres } from '../../deploy/local/postgres.ts';
import type { StackContext } from '../../deploy/local/stores.ts';
import { createTerminal } from '../../deploy/local/terminal.ts';

export type Stores = Awaited<ReturnType<typeof startStores>>;

/** Starts only PostgreSQL and, with `withKafka`, Kafka, as `npm start` does. */
export async function startStores({ withKafka }: { withKafka: boolean }) {
  const folder = mkdtempSync(join(ROOT, '.local', 'test-'));
  const state = openState(folder, 'a bench');
  const stopping = new AbortController();
  const { signal } = stopping;
  const terminal = createTerminal();
  const nothing = (): void => {};
  const processes = createProcessTiers({ state, terminal, signal, onRestart: nothing, onAbandoned: nothing });
  /** Stops the stores of an aborted bench and deletes their data. */
  function kill(): void {
    for (const name of ['postgres', 'kafka']) sendSignal(-processes.pidOf(name), 'SIGKILL');
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  }
  process.once('exit', kill);
  async function stop(): Promise<void> {
    process.off('exit', kill);
    stopping.abort(new Stopped());
    await processes.stop();
    state.release();
    rmSync(folder, { recursive: true, force: true });
  }

  const context: StackContext = {
    state,
    external: {},
    usualPorts: false,
    needsKafka: true,
    signal,
    up: (spec) => processes.up('stores', spec),
  };
  try {
    let kafkaVersion = '';
    const [databases, kafka] = await Promise.all([
      startPostgres(context, nothing),
      withKafka ? startKafka(context, (detail) => (kafkaVersion = detail || kafkaVersion)) : null,
    ]);
    return {
      postgres: databases.platform,
      logs: databases.logs,
      /** Empty without Kafka. */
      kafka: kafka ?? '',
      versions: {
        postgres: databases.version,
        ...(kafka !== null && { kafka: kafkaVersion.split(' ')[0]! }),
      } as Record<string, string>,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
