import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '@content-platform/chassis';
import type { ContentCache } from './cache/index.ts';

const firstMs = 1_000;
const everyMs = 60_000;

/**
 * Says once what to set where Redis has replicas that are not counted on. It looks again every minute, for replicas may
 * come later.
 */
export async function warnOfReplicas(
  cache: Pick<ContentCache, 'advice'>,
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  for (let pause = firstMs; !signal.aborted; pause = everyMs) {
    // Redis being away has a line of its own.
    const advice = await cache.advice().catch(() => undefined);
    if (advice) return logger.warn(advice);
    await sleep(pause, undefined, { signal }).catch(() => undefined);
  }
}
