// Runs a pool whose worker processes are busy, until a test kills it. Arguments: the upload of both jobs, the module
// that the worker processes run, and 'loading' to report before the worker processes have loaded the module.
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createLogger } from '@content-platform/chassis';
import { imageVariants } from '@content-platform/contract';
import { createPool } from '../processing/pool.ts';

const [, , path = '', program = '', when = ''] = process.argv;
const logger = createLogger('media-upload', 'info', { write: () => undefined });
const folder = dirname(path);
const text = join(folder, 'text');
writeFileSync(text, 'not an image');
const pool = createPool({
  folder: dirname(folder),
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
    const job = { path: upload, folder, sides: imageVariants };
    return pool.run(job, new AbortController().signal);
  });
// Two quick results show that both worker processes have loaded their module.
if (when !== 'loading') await Promise.all(both(text));
void both(path);
process.stdout.write('busy\n');
