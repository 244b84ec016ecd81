import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { Stopped } from '../../deploy/local/problem.ts';
import { openState } from '../../deploy/local/state.ts';
import { startKafka, startPostgres, type StackContext } from '../../deploy/local/stores.ts';
import { supervise, type ProcessSpec, type Supervised } from '../../deploy/local/supervised.ts';
import { createTerminal } from '../../deploy/local/terminal.ts';

const graceMs = 10_000;

export interface Stores {
  postgres: string;
  logs: string;
  /** Empty without Kafka. */
  kafka: string;
  /** Versions that the stores report. */
  versions: Record<string, string>;
  stop(): Promise<void>;
}

/** Starts only PostgreSQL and, with `withKafka`, Kafka, as `npm start` does. */
export async function startStores({ withKafka }: { withKafka: boolean }): Promise<Stores> {
  const folder = mkdtempSync(join(ROOT, '.local', 'test-'));
  const state = openState(folder, 'a bench');
  const stopping = new AbortController();
  const { signal } = stopping;
  const terminal = createTerminal();
  const running = new Map<string, Supervised>();
  const nothing = (): void => {};
  async function up(spec: ProcessSpec): Promise<void> {
    const options = { state, terminal, signal, onRestart: nothing, onAbandoned: nothing };
    const supervised = supervise(spec, options);
    running.set(spec.name, supervised);
    await supervised.start();
  }
  /** Stops the stores of an aborted bench and deletes their data. */
  function kill(): void {
    for (const { pid } of running.values()) if (pid > 0) process.kill(-pid, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  }
  process.once('exit', kill);
  async function stop(): Promise<void> {
    process.off('exit', kill);
    stopping.abort(new Stopped());
    await Promise.all([...running.values()].map((each) => each.stop(graceMs)));
    state.release();
    rmSync(folder, { recursive: true, force: true });
  }

  const context: StackContext = { state, external: {}, usualPorts: false, needsKafka: true, signal, up };
  try {
    let kafkaVersion = '';
    const [databases, kafka] = await Promise.all([
      startPostgres(context, nothing),
      withKafka ? startKafka(context, (detail) => (kafkaVersion = detail || kafkaVersion)) : null,
    ]);
    return {
      postgres: databases.platform,
      logs: databases.logs,
      kafka: kafka ?? '',
      versions: {
        postgres: databases.version,
        ...(kafka !== null && { kafka: kafkaVersion.split(' ')[0]! }),
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
