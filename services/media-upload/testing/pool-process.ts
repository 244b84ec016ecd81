// Runs a pool whose worker processes are busy, until a test kills it. Arguments: the upload of both jobs, the module
// that the worker processes run, and 'loading' to report before the worker processes have loaded the module.
import { dirname } from 'node:path';
import { createLogger } from '@content-platform/chassis';
import { imageVariants } from '@content-platform/contract';
import { createPool } from '../processing/pool.ts';

const [, main = '', path = '', program = '', when = ''] = process.argv;
const logger = createLogger('media-upload', 'info', { write: () => undefined });
const pool = createPool({
  size: 2,
  maxWaiting: 0,
  waitMs: 60_000,
  jobMs: 600_000,
  maxBytes: Infinity,
  logger,
  program: new URL(program),
});
const both = (upload: string) =>
  [1, 2].map(() => {
    const job = { path: upload, folder: dirname(path), sides: imageVariants };
    return pool.run(job, new AbortController().signal);
  });
// This file is not an image: two quick results show that both worker processes have loaded their module.
if (when !== 'loading') await Promise.all(both(main));
void both(path);
process.stdout.write('busy\n');
