// A process with a pool whose children are at work, to be killed: argv has the file that they are given.
import { dirname } from 'node:path';
import { createLogger } from '@content-platform/chassis';
import { imageVariants } from '@content-platform/contract';
import { createPool } from '../processing/pool.ts';

const [, main = '', path = ''] = process.argv;
const logger = createLogger('media-upload', 'info', { write: () => undefined });
const pool = createPool({
  size: 2,
  maxWaiting: 0,
  waitMs: 60_000,
  jobMs: 60_000,
  maxBytes: Infinity,
  logger,
});
const both = (upload: string) =>
  [1, 2].map(() => {
    const job = { path: upload, folder: dirname(path), sides: imageVariants };
    return pool.run(job, new AbortController().signal);
  });
// This file is no picture: what is over at once shows that both have started.
await Promise.all(both(main));
void both(path);
process.stdout.write('at work\n');
