import { internalPortOffset } from '@content-platform/contract';
import { isFree } from '../../deploy/local/ports.ts';

/**
 * The first port of a row that is free as a whole, with the row of the internal listeners above it. The ports are below
 * the range from which the system hands out ports by itself.
 */
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
