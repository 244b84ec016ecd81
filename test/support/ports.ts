import { internalPortOffset } from '@content-platform/contract';
import { isFree } from '../../deploy/local/ports.ts';

/** Returns the first port of a range that is free, also for internal listeners, and below the ephemeral range. */
export async function freeRow(length: number): Promise<number> {
  for (;;) {
    const base = 20_000 + Math.floor(Math.random() * 10_000);
    const ports = Array.from({ length }, (_, index) => [
      base + index,
      base + index + internalPortOffset,
    ]).flat();
    if ((await Promise.all(ports.map(isFree))).every(Boolean)) return base;
  }
}
