import { internalPortOffset } from '@content-platform/contract';
import { isFree } from '../../deploy/local/ports.ts';

/**
 * Returns the first port of a free range, whose matching range of internal listeners is free as well. The ports are
 * below the system's ephemeral range.
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
