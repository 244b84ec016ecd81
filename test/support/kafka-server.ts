import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { prepareKafka } from '../../deploy/local/kafka.ts';
import { openState } from '../../deploy/local/state.ts';
import { killed } from './server.ts';
import { until } from './wait.ts';

/** Starts a Kafka broker for one test, as `npm start` does, and waits until it responds. */
export async function startKafkaServer() {
  const state = openState(mkdtempSync(join(ROOT, '.local', 'test-')), 'a broker of a test');
  const { signal } = new AbortController();
  const prepared = await prepareKafka({ state, usualPorts: false, signal }, () => undefined);
  if (typeof prepared === 'string') throw new Error(`there is no Kafka: ${prepared}`);
  const { spec, brokers, version } = prepared;

  let child: ChildProcess;
  const killChild = () => child.kill('SIGKILL');
  async function start(): Promise<void> {
    await spec.prepare?.();
    child = spawn(spec.command, spec.args, { cwd: spec.cwd, stdio: 'ignore' });
    state.record('kafka', child.pid!, 'SIGKILL');
    await until('Kafka responds', () => spec.ready().then(() => true), spec.readyWithinMs);
  }
  const kill = () => killed(child);
  async function stop(): Promise<void> {
    await kill();
    process.removeListener('exit', killChild);
    state.release();
    rmSync(state.folder, { recursive: true, force: true });
  }

  process.once('exit', killChild);
  await start().catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  /** `restart` uses the same port and the same data. */
  return { brokers, version, kill, restart: start, stop };
}
export type KafkaServer = Awaited<ReturnType<typeof startKafkaServer>>;
