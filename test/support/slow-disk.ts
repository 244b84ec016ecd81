import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { startTraffic } from './traffic.ts';

/** A write that takes longer in ms is slow. On an idle disk it takes a few. */
const slowMs = 100;

/** Writes a block to the disk of `folder` ten times a second, as a COMMIT of PostgreSQL does, and notes slow writes. */
export async function watchDisk(folder: string) {
  const file = await open(join(folder, 'disk-probe'), 'w');
  const block = Buffer.alloc(8_192);
  const slow: { from: number; to: number }[] = [];
  const writing = startTraffic(10, async () => {
    const from = Date.now();
    await file.write(block, 0, block.length, 0);
    await file.datasync();
    if (Date.now() - from > slowMs) slow.push({ from, to: Date.now() });
  });
  return {
    /** Returns whether a write was slow between two times (Unix time in ms), give or take a second. */
    wasSlow: (from: number, to: number) => slow.some((one) => one.from < to + 1_000 && one.to > from - 1_000),
    async stop(): Promise<void> {
      await writing.stop();
      await file.close();
    },
  };
}
