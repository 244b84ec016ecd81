import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '@content-platform/chassis';
import type { ContentCache } from './cache/index.ts';

const firstMs = 1_000;
const intervalMs = 60_000;

/** Logs the setting to change, once, if Redis has replicas that the cache does not count. Checks every minute. */
export async function warnOfReplicas(
  cache: Pick<ContentCache, 'advice'>,
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  for (let pause = firstMs; !signal.aborted; pause = intervalMs) {
    // An unreachable Redis is logged elsewhere.
    const advice = await cache.advice().catch(() => undefined);
    if (advice) return logger.warn(advice);
    await sleep(pause, undefined, { signal }).catch(() => undefined);
  }
}
