import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ROOT, stackFilePath } from '../../deploy/local/config.ts';
import { freePort } from '../../deploy/local/ports.ts';
import { PROMETHEUS_TARGETS } from '../../deploy/local/stack-file.ts';
import { findPrograms } from './prometheus-programs.ts';
import { startServer } from './server.ts';

export interface Sample {
  metric: Record<string, string>;
  /** Unix time in seconds, and the value as text. */
  value: [number, string];
}

export type Prometheus = Awaited<ReturnType<typeof startPrometheus>>;

/** Durations in the rules, with their shorter values in tests. Every window contains at least eight scrapes. */
const shorter: Record<string, string> = {
  '1m': '3s',
  '2m': '4s',
  '5m': '8s',
  '6m': '12s',
  '10m': '10s',
  '15m': '15s',
};

/** Shortens the durations in a rule file. Windows of half an hour and more stay unchanged. */
function quicken(rules: string): string {
  return (
    rules
      .replaceAll(/for: (1|2|5|6|10)m$/gm, (text) => text.replace(/\d+m/, (minutes) => shorter[minutes]!))
      .replaceAll(/\[(5m|10m|15m)\]/g, (_, window: string) => `[${shorter[window]!}]`)
      // Recording rules run every two seconds.
      .replaceAll('[1m]', '[8s]')
  );
}

/** Copies the project's configuration and inserts this stack's addresses and, if `isQuick`, shorter durations. */
async function configure(folder: string, alertmanager: string, isQuick: boolean): Promise<void> {
  await cp(join(ROOT, 'deploy', 'prometheus'), folder, { recursive: true });
  const rewrite = async (file: string, change: (text: string) => string) =>
    writeFile(join(folder, file), change(await readFile(join(folder, file), 'utf8')));
  const targets = join(dirname(stackFilePath()), PROMETHEUS_TARGETS);
  await rewrite('prometheus.yml', (text) =>
    text.replace('127.0.0.1:9093', alertmanager).replace(`../../.local/${PROMETHEUS_TARGETS}`, targets),
  );
  if (isQuick) {
    await rewrite('prometheus.yml', (text) => text.replaceAll(/(interval|timeout): \d+s/g, '$1: 1s'));
    for (const file of await readdir(join(folder, 'rules'))) await rewrite(join('rules', file), quicken);
  }
}

/** Starts a real Prometheus that scrapes the stack with the project's configuration. `isQuick` shortens its durations. */
export async function startPrometheus(alertmanager: string, { isQuick = true } = {}) {
  const { prometheus } = await findPrograms();
  const folder = await mkdtemp(join(tmpdir(), 'prometheus-'));
  await configure(folder, alertmanager, isQuick);
  const address = `127.0.0.1:${await freePort()}`;
  const args = [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=${address}`,
    '--log.level=warn',
  ];
  const server = await startServer(prometheus, args, `http://${address}/-/ready`);
  return {
    /** Returns the result of an instant query. Throws if the query is invalid. */
    async query(expression: string): Promise<Sample[]> {
      const url = new URL(`http://${address}/api/v1/query`);
      url.searchParams.set('query', expression);
      const answer = (await (await fetch(url)).json()) as { error?: string; data: { result: Sample[] } };
      if (answer.error) throw new Error(`${expression}: ${answer.error}`);
      return answer.data.result;
    },
    async stop(): Promise<void> {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
