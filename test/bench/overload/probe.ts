import { get } from 'node:http';
import { readContent } from '@content-platform/contract';
import { startTraffic } from '../../support/traffic.ts';
import type { TestSystem } from '../test-system.ts';
import { patienceMs, targetMs } from '../load/job.ts';

/** A reply, with the time of its request in ms since 1970; status 0: no reply in time. */
type Answer = Awaited<ReturnType<typeof ask>>;

async function ask(url: string, headers: Record<string, string> = {}) {
  const at = Date.now();
  const start = performance.now();
  const status = await new Promise<number>((resolve) => {
    const request = get(url, { headers, agent: false, signal: AbortSignal.timeout(patienceMs) }, (reply) => {
      reply.resume().once('end', () => resolve(reply.statusCode!));
    });
    request.once('error', () => resolve(0));
  });
  return { at, ms: performance.now() - start, status };
}

const summary = (answers: readonly Answer[]) => ({
  failed: answers.filter(({ status }) => status !== 200).length,
  max: Math.max(...answers.map(({ ms }) => ms)),
});

/** Requests health, metrics and a record during the load, and records the replies. */
export function startProbe({ gateway, internal }: TestSystem, token: string) {
  const [health, metrics, reads]: Answer[][] = [[], [], []];
  const read = gateway + readContent.path.replace(':model', 'pathway').replace(':id', '1');
  const traffic = [
    startTraffic(5, async () => health!.push(await ask(`${gateway}/health`))),
    startTraffic(1, async () => metrics!.push(await ask(`${internal}/metrics`))),
    startTraffic(10, async () => reads!.push(await ask(read, { Authorization: `Bearer ${token}` }))),
  ];
  return {
    /** @param endedAt end of the load in ms since 1970 */
    async stop(endedAt: number) {
      await Promise.all(traffic.map((each) => each.stop()));
      const bad = reads!.filter(({ at, ms, status }) => at >= endedAt && (status !== 200 || ms > targetMs));
      return {
        health: summary(health!),
        metrics: summary(metrics!),
        /** Ms from the end of the load to the last failed or late one of ten reads a second; 0: none failed. */
        recovery: Math.max(0, ...bad.map(({ at, ms }) => at + ms - endedAt)),
      };
    },
  };
}
export type Probed = Awaited<ReturnType<ReturnType<typeof startProbe>['stop']>>;
