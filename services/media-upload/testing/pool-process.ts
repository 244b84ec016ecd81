// A process with a pool whose children are at work, to be killed: argv has the file that they are given.
import { dirname } from 'node:path';
import { createLogger } from '@content-platform/chassis';
import { imageVariants } from '@content-platform/contract';
import { createPool } from '../processing/pool.ts';

const path = process.argv[2]!;
const logger = createLogger('media-upload', 'info', { write: () => undefined });
const pool = createPool({ size: 2, maxWaiting: 0, waitMs: 60_000, jobMs: 60_000, logger });
for (const _ of [1, 2])
  void pool.run({ path, folder: dirname(path), sides: imageVariants }, new AbortController().signal);
process.stdout.write('at work\n');
