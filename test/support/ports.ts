import { internalPortOffset } from '@content-platform/contract';
import { isFree } from '../../deploy/local/ports.ts';

// Each worker of jest has its own ports, and each call the next: a free port may be another's that is not open yet.
const first = 20_000 + 2_000 * (Number(process.env['JEST_WORKER_ID'] ?? 0) % 5);
let next = Math.floor(Math.random() * 980);

/** Returns the first port of a range that is free, also for internal listeners, and below the ephemeral range. */
export async function freeRow(length: number): Promise<number> {
  for (;;) {
    const base = first + (next % 980);
    next += length;
    const row = Array.from({ length }, (_, index) => base + index);
    const ports = [...row, ...row.map((port) => port + internalPortOffset)];
    if ((await Promise.all(ports.map(isFree))).every(Boolean)) return base;
  }
}
